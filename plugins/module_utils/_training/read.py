# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the state of a training from a cluster, whichever way it was made.

Private to the collection.
"""

from __future__ import annotations

import dataclasses

from .._kube.cluster import Cluster
from .kind import Kind, Observed
from .status import job_status


def read(cluster: Cluster, kind: Kind, namespace: str, name: str) -> Observed:
    """Read the training from its workloads and pods."""
    for backend in kind.backends:
        workloads = backend.find(cluster, namespace, name)
        if workloads:
            pods = cluster.list("v1", "Pod", namespace, backend.selector(name))
            groups = backend.groups(cluster, workloads, pods)
            status = job_status(name, namespace, groups, trainer_role=kind.trainer_role, backend=backend.name)
            return Observed(status, workloads)
    return Observed(job_status(name, namespace, ()))


def observe(cluster: Cluster, kind: Kind, namespace: str, name: str) -> Observed:
    """As ``read``, with the progress that the pods report in their logs."""
    observed = read(cluster, kind, namespace, name)
    return (
        dataclasses.replace(observed, progress=kind.progress(cluster, observed.status)) if kind.progress else observed
    )
