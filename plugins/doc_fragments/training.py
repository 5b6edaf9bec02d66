# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that name a training; the same as WHICH in module_utils/_edge/systems.py. Written by scripts/systems; do not edit."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description: Name of the training.
    type: str
    required: true
  namespace:
    description: Namespace of the training. Defaults to the namespace of the kubeconfig's context.
    type: str
  kind:
    description: Module that created the training.
    type: str
    choices: [elastic_job, jobset, persia_job, training_statefulset]
    default: persia_job
"""
