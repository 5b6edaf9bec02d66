# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules that look at one namespace and its cluster; the same as SURVEY in module_utils/_edge/options.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  namespace:
    description: Namespace to look at, which need not exist. Defaults to the namespace of the kubeconfig's context.
    type: str
  rules:
    description:
      - Rules as in a Role, in snake case. The API server is asked for each right by itself (SelfSubjectAccessReview), in O(namespace).
    type: list
    elements: dict
    default: []
    suboptions:
      api_groups:
        description: API groups of the resources, of which the core group is an empty text.
        type: list
        elements: str
        required: true
      resources:
        description: Resources, such as V(jobs) or V(pods/log).
        type: list
        elements: str
        required: true
      verbs:
        description: Verbs, such as V(create).
        type: list
        elements: str
        required: true
      cluster_wide:
        description: Ask for the whole cluster, as for a rule of a ClusterRole.
        type: bool
        default: false
"""
