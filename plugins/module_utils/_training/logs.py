# SPDX-License-Identifier: GPL-3.0-or-later
"""The logs of a training's ranks, and the error of one that has failed, with their last lines."""

from __future__ import annotations

import typing as t
from collections.abc import Sequence

from .._core.errors import Failed, Forbidden, KeepsFailing, MusterError, NotFound
from .._core.pool import run_all_or_raise
from .._kube.cluster import Cluster
from .._kube.pod_status import EndedRun
from .status import JobStatus, Rank, last_lines

_PARALLEL = 8
_LAST = 200


def read_logs(cluster: Cluster, namespace: str, ranks: Sequence[Rank], *, required: bool = True, **options: t.Any) -> list[str]:
    """The logs of these ranks, read in parallel, in the order of RANKS; that of a pod that has not started is empty.

    Where they are not required, a log that cannot be read is empty, too, such as that of a pod whose node is lost or simulated.
    """

    def one(rank: Rank) -> str:
        try:
            return cluster.logs(namespace, rank.pod, **options)
        except NotFound:
            return ""
        except MusterError as exc:
            # The response for a container that has not started: 400, "is waiting to start".
            waits = rank.phase in ("Pending", "Terminating") or rank.reason or options.get("previous")
            if isinstance(exc, Forbidden) or (required and not waits):
                raise
            return ""

    return run_all_or_raise(one, ranks, parallel=_PARALLEL)


def failure_of(cluster: Cluster, status: JobStatus) -> MusterError:
    """The error of a failed training: which ranks failed, why, and the last lines of their logs."""
    bad = [rank for group in status.groups for rank in group.ranks if rank.phase == "Failed"][:3]
    quoted = "".join(_quoted(rank.pod, _last_lines(cluster, status.namespace, rank.pod) or rank.message) for rank in bad)
    return Failed(
        f"Training {status.namespace}/{status.name} has failed. {status.reason}{quoted}",
        hint="\nCorrect the cause, then set restart: true to train again." if quoted else "restart: true trains again.",
        details=status.result(),
    )


def repeated_failure_of(cluster: Cluster, status: JobStatus, rank: Rank, runs: Sequence[EndedRun]) -> MusterError:
    """The error of a training of which one rank keeps failing: how it ended, how often, and the last lines of its log."""
    last = runs[-1]
    said = f"pod {last.pod} has failed {len(runs)} times in a row at its start, the last time with {last}"
    lines = _last_lines(cluster, status.namespace, last.pod, last.container) or rank.message
    where = f"container {last.container} of pod {last.pod}"
    return KeepsFailing(
        f"Training {status} keeps failing: {said}.{_quoted(last.pod, lines)}",
        hint=f"\nCorrect the cause, then set restart: true to train again. The whole log (module job_logs) is that of {where} in "
        f"namespace {status.namespace}.",
        details={"last_seen": [said], **status.result()},
    )


def missing_image_of(status: JobStatus, rank: Rank) -> MusterError:
    """The error of a training of which a pod does not get its image."""
    said = f"pod {rank.pod}: {rank.image_trouble[0]}"
    return KeepsFailing(
        f"Training {status} cannot start: {said}.",
        hint="Correct the option that names the image, push the image, or name the Secret with the registry's credentials in "
        "image_pull_secrets; with another image, set recreate: true. Option image_timeout is how long a registry without an answer is "
        "waited for.",
        details={"last_seen": [said], **status.result()},
    )


def _quoted(pod: str, text: str) -> str:
    return "".join(f"\n[{pod}] {line}" for line in text.splitlines())


def _last_lines(cluster: Cluster, namespace: str, pod: str, container: str | None = None) -> str:
    """The end of the log; empty if it is gone, because the known reason must be reported in any case."""
    try:
        return last_lines(cluster.logs(namespace, pod, container=container, tail_lines=_LAST))
    except MusterError:
        return ""
