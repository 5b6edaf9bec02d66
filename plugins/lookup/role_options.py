# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: role_options
short_description: Read the options that a user adds to those of a role
author: Muster contributors (!UNKNOWN)
description:
  - Returns a variable such as C(elastic_options), whose keys are options of a module, or of the lookup P(muster.ml.manifests#lookup), for
    which the role has no variable; or one such as C(elastic_storage), whose keys are those of one option of a module.
  - The roles of this collection use it themselves, in C(module_defaults) of the tasks that take these options.
  - Fails if a key is no such option or is one that the role sets, and if a value is not of the type or among the choices of the option.
options:
  _terms:
    description: Name of the variable.
    type: list
    elements: str
    required: true
seealso:
  - plugin: muster.ml.variable_problems
    plugin_type: lookup
    description: Judges all variables of an inventory before anything is asked of a cluster.
"""

EXAMPLES = r"""
- name: Show the other options of the training
  ansible.builtin.debug:
    msg: "{{ lookup('muster.ml.role_options', 'elastic_options') }}"
  vars:
    elastic_options: {max_restarts: 5}
"""

RETURN = r"""
_raw:
  description: The options by their names.
  type: list
  elements: dict
  sample: [{max_restarts: 5}]
"""

import typing as t

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase


class LookupModule(LookupBase):
    def run(self, terms: list[str], variables: dict[str, t.Any] | None = None, **kwargs: t.Any) -> list[dict[str, t.Any]]:
        self.set_options(var_options=variables, direct=kwargs)
        return [self._judged(name, (variables or {}).get(name) or {}) for name in terms]

    def _judged(self, name: str, value: t.Any) -> dict[str, t.Any]:
        if not value:
            return {}
        # Each task with such options looks its variable up in a process of its own, and nearly all of these variables are empty.
        from ansible_collections.muster.ml.plugins.plugin_utils._origins import given
        from ansible_collections.muster.ml.plugins.plugin_utils._variables import problems

        found = self._templar.template(value)
        # Places are those of the variable as it was set; only then have templates values that can be judged.
        wrong = problems([given(name, value, self._templar)]) or problems([given(name, found, self._templar)])
        if wrong:
            raise AnsibleError(" ".join(wrong))
        return t.cast("dict[str, t.Any]", found)
