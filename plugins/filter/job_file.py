# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._kube.source import documents
from ansible_collections.muster.ml.plugins.module_utils._manifests.job_file import Translation
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic import job_file as elastic
from ansible_collections.muster.ml.plugins.module_utils._systems.persia import job_file as persia

DOCUMENTATION = r"""
name: job_file
short_description: Read a job file of PERSIA or torchelastic as options
author: Muster contributors (!UNKNOWN)
description:
  - Returns the options that a job file of another program's documentation asks for.
  - For C(persia) the file has a PersiaJob, in the names of 2021 or in those of today, or the StatefulSets of PERSIA's groups; and it may
    have a NatsCluster. For C(elastic) it has an ElasticJob of torchelastic's operator, or its pods and Services of before.
  - A file with fields that cannot be taken over is refused as a whole, and C(refused) names them all.
positional: _input, system, source
options:
  _input:
    description: Text of the file.
    type: str
    required: true
  system:
    description: The system that the file is for.
    type: str
    choices: [elastic, persia]
    required: true
  source:
    description: Name of the file for errors. Without a name there is no file, and the result is empty.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Show what a job file asks for
  ansible.builtin.debug:
    msg: "{{ lookup('ansible.builtin.file', 'train.persia.yml') | muster.ml.job_file('persia', 'train.persia.yml') }}"
"""

RETURN = r"""
_value:
  description:
    - The C(options) of M(muster.ml.persia_job) or M(muster.ml.elastic_job), and the C(differences).
    - Those of M(muster.ml.nats_cluster) are C(options.nats).
  type: dict
  sample: {options: {name: adult, nn_worker: {replicas: 1}}, differences: []}
"""


# Nothing has an empty name: nothing is made, changed or removed by a file that is refused.
_NAMELESS: dict[str, t.Any] = {"options": {"name": "", "nats": {"name": ""}}, "differences": []}
_SYSTEMS: dict[str, t.Callable[..., Translation]] = {"elastic": elastic.translate, "persia": persia.translate}


def job_file(text: str, system: str, source: str = "") -> dict[str, t.Any]:
    if not source:
        return {**dataclasses.asdict(Translation()), "refused": ""}
    try:
        found = _SYSTEMS[system](documents(text, source), source)
    except InvalidInput as error:
        return {**_NAMELESS, "refused": str(error)}
    return {**dataclasses.asdict(found), "refused": ""}


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"job_file": job_file}
