# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filter persia_job_file."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._kube.source import documents
from ansible_collections.muster.ml.plugins.module_utils._systems.persia.job_file import Translation, translate

DOCUMENTATION = r"""
name: persia_job_file
short_description: Read a PersiaJob as options
version_added: 0.1.0
author: Muster contributors (!UNKNOWN)
description:
  - Returns the options that a job file of PERSIA's documentation asks for. The file has a PersiaJob, in the names of 2021 or in those of
    today, and may have a NatsCluster.
  - A file with fields that cannot be taken over is refused as a whole, and C(refused) names them all.
positional: _input, source
options:
  _input:
    description: Text of the file.
    type: str
    required: true
  source:
    description: Name of the file for errors. Without a name there is no file, and the result is empty.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Show what a job file asks for
  ansible.builtin.debug:
    msg: "{{ lookup('ansible.builtin.file', 'train.persia.yml') | muster.ml.persia_job_file('train.persia.yml') }}"
"""

RETURN = r"""
_value:
  description: The C(options) of M(muster.ml.persia_job), those of M(muster.ml.nats_cluster) (C(nats)), and the C(differences).
  type: dict
"""


# Nothing has an empty name: nothing is made, changed or removed by a file that is refused.
_NAMELESS: dict[str, t.Any] = {"options": {"name": ""}, "nats": {"name": ""}, "differences": []}


def persia_job_file(text: str, source: str = "") -> dict[str, t.Any]:
    if not source:
        return {**dataclasses.asdict(Translation()), "refused": ""}
    try:
        found = translate(documents(text, source), source)
    except InvalidInput as error:
        return {**_NAMELESS, "refused": str(error)}
    return {**dataclasses.asdict(found), "refused": ""}


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"persia_job_file": persia_job_file}
