# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of trainings, by name. Written by scripts/systems; do not edit."""

from __future__ import annotations

from .._systems.elastic import training as elastic
from .._systems.jobset import training as jobset
from .._systems.persia import training as persia
from .._systems.statefulset import training as statefulset
from .._training.kind import Kind
from .options import Spec

KINDS: dict[str, Kind] = {
    "elastic_job": elastic.KIND,
    "jobset": jobset.KIND,
    "persia_job": persia.KIND,
    "training_statefulset": statefulset.KIND,
}
"""Each by the name of its module."""

WHICH: Spec = {
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str"},
    "kind": {"type": "str", "choices": sorted(KINDS), "default": "persia_job"},
}
"""The options that name a training."""
