# SPDX-License-Identifier: GPL-3.0-or-later
"""Options for the removal of what others may use; the same as REMOVAL in module_utils/_edge/options.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  ignore_users_of:
    description:
      - Owners whose objects count as no users with O(state=absent), each as C(MODULE.NAMESPACE.NAME), such as C(persia_job.ml.fair).
      - What others use is kept, and a warning names them. Users are pods and what creates pods (also suspended, pending or scaled to
        zero), routes, queues and autoscalers, of any owner. What has ended or is being deleted is none. What cannot be judged, for
        lack of a right or an answer, is kept, too.
      - An entry C(KIND/NAME) names objects instead, with C(*) for any text, such as C(ConfigMap/corp-ca-*). They keep no namespace from
        deletion; for what a controller makes in every namespace. Known are those of Kubernetes, Istio, OpenShift and trust-manager.
      - Owners are for a task in check mode, when what the play removed before it is still there.
    type: list
    elements: str
    default: []
"""
