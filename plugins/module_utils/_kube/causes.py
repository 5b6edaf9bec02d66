# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the cause of a refusal that only its message text tells. This is the one module that decides by message texts.

Status code, reason and details are mapped to error classes in answers.py. The causes here share their class with others: admission plugins
answer a plain Forbidden, and a webhook that cannot be called is a plain InternalError.
"""

from __future__ import annotations

import re
import typing as t

from .._core.errors import MusterError

Cause = t.Literal[
    "webhook unavailable", "webhook without dry run", "webhook refusal", "missing reference", "uncounted quota", "allocated", "other"
]

_TEXTS: tuple[tuple[Cause, re.Pattern[str]], ...] = (
    # 500 InternalError: nothing answers at the webhook's address, or its certificate is not accepted.
    ("webhook unavailable", re.compile(r"failed calling webhook")),
    # 400 BadRequest: the webhook has side effects, so the API server does not ask it in a dry run.
    ("webhook without dry run", re.compile(r"does not support dry run")),
    # The webhook of Kubeflow Trainer 2.3.0 (pkg/runtime/core/trainingruntime.go), whose cache may not have a new runtime yet.
    ("missing reference", re.compile(r"specified (clusterT|t)rainingRuntime must be created before the TrainJob")),
    # The webhook chooses code and reason; only these words in front come from the API server.
    ("webhook refusal", re.compile(r"admission webhook")),
    # 403 Forbidden, from the plugins ServiceAccount, Priority and RuntimeClass: what a pod names does not exist (yet).
    ("missing reference", re.compile(r"error looking up service account|no PriorityClass with name|RuntimeClass .*not found")),
    # 403 Forbidden, from the plugin ResourceQuota: the controller of quotas has not counted yet what is used of a new one (CheckRequest of
    # k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go).
    ("uncounted quota", re.compile(r"status unknown for quota")),
    # 422 Invalid with reason FieldValueInvalid, as for any other wrong value: another Service has the address or the port.
    ("allocated", re.compile(r"already allocated")),
    # 403 Forbidden, from the plugin ResourceQuota: the one object more than the quota has (its "object count quota").
    ("allocated", re.compile(r"exceeded quota: \S+, requested: (count/[\w.-]+|configmaps|pods|secrets|services[\w.]*)=1, used")),
)


def cause_of(refusal: MusterError) -> Cause:
    """The first cause whose pattern matches."""
    return next((cause for cause, text in _TEXTS if text.search(refusal.message)), "other")
