# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: variable_problems
short_description: List variables and tags that do not exist, and values that no role takes
author: Muster contributors (!UNKNOWN)
description:
  - Returns what is wrong with the variables of this collection that an inventory, a playbook or C(-e) sets for the current host.
  - A name is wrong if it begins with C(muster_) or with the name of a role and is not documented, or if it differs from a documented one by
    two letters at most.
  - Of roles that have the name of a program which other projects configure as well, such as C(etcd), only the latter is judged.
  - A value is wrong if the argument spec of the role refuses its type or is without it among the choices. Templates are not judged.
  - Keys and values of C(elastic_options) and C(elastic_storage) are judged as lookup P(muster.ml.role_options#lookup) does.
  - A tag of the command is wrong if nothing has it. A playbook that is not of this collection may have tags of its own; if one differs
    from one of ours by two letters at most, there is a warning.
options:
  ignored:
    description: Names, or patterns such as C(persia_dashboard_*), that are not judged. The playbooks give C(muster_ignored_variables).
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Fail if a variable does not exist
  ansible.builtin.assert:
    that: problems | length == 0
    fail_msg: "{{ problems | join(' ') }}"
  vars:
    problems: "{{ lookup('muster.ml.variable_problems', wantlist=true) }}"
"""

RETURN = r"""
_raw:
  description: One sentence for each problem, with the variable or tag, where it is set, and the nearest name. Empty if there is none.
  type: list
  elements: str
  sample: []
"""

import pathlib
import typing as t

from ansible.plugins.lookup import LookupBase

from ansible_collections.muster.ml.plugins.plugin_utils._origins import given, origin
from ansible_collections.muster.ml.plugins.plugin_utils._specs import COLLECTION
from ansible_collections.muster.ml.plugins.plugin_utils._tags import tag_problems
from ansible_collections.muster.ml.plugins.plugin_utils._variables import Given, problems


class LookupModule(LookupBase):
    def run(self, terms: t.Any, variables: dict[str, t.Any] | None = None, **kwargs: t.Any) -> list[str]:  # noqa: ARG002
        self.set_options(var_options=variables, direct=kwargs)
        rows = (self._given(name, value) for name, value in (variables or {}).items())
        ignored = self.get_option("ignored")
        return [*tag_problems(ignored), *problems([row for row in rows if row], ignored)]

    def _given(self, name: str, value: object) -> Given | None:
        """The variable, unless the collection itself, a task's result or Ansible set it."""
        # Each variable of a role or playbook has an underscore, and what Ansible gives every task, such as hostvars, has none.
        if "_" not in name or name.startswith(("_", "ansible_")):
            return None
        tag, of_name = origin(value), origin(name)
        # Of a registered result the name has a place and the value has none. Booleans and null never have one.
        if tag is None and of_name is not None and value is not None and not isinstance(value, bool):
            return None
        place = tag or of_name
        path = pathlib.Path(place.path) if place is not None and place.path else None
        if path and any(path.is_relative_to(COLLECTION / folder) for folder in ("roles", "playbooks", "plugins")):
            return None
        return given(name, value, self._templar)
