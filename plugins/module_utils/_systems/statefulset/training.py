# SPDX-License-Identifier: GPL-3.0-or-later
"""A replica group of module training_statefulset, as job_info and job_logs see it."""

from __future__ import annotations

from ..._manifests.meta import LABEL_GROUP
from ..._training.kind import Backend, Kind
from ..._training.status import STATEFUL_SET

# Trainings of other kinds have the label of a group as well, so the group is found by its name.
KIND = Kind(name="training_statefulset", backends=(Backend(name="", label=LABEL_GROUP, workloads=(STATEFUL_SET,), named=True),))
