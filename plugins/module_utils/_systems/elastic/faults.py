# SPDX-License-Identifier: GPL-3.0-or-later
"""Find elastic trainings whose pods wait for each other: the rendezvous does not answer, or fewer pods join it than the training needs."""

from __future__ import annotations

import collections
import functools
import itertools
import typing as t
from collections.abc import Iterator, Mapping, Sequence

from ..._core.conditions import is_true
from ..._core.pool import PARALLEL, run_all_or_raise
from ..._doctor.findings import Finding
from ..._doctor.reading import Snapshot
from ..._kube.objects import Manifest, labels_of
from ..._kube.pod_status import main_container
from ..._kube.uses import TRAININGS
from ..._training.logs import read_logs
from ..._training.status import Rank, rank_of
from .native import RENDEZVOUS
from .spec import ElasticJob
from .world import events

_SILENT, _JOIN = 60.0, "600"
"""Seconds in which etcd may be restarted without a finding; and for the pods to join, where rdzv_conf says nothing."""
_TAIL = 300
"""Lines of a log, more than are written between two repetitions of the round."""
_ANSWERS, _AWAY, _PARTED = ("rendezvous", "rendezvous_reachable"), ("waiting", "rendezvous_unreachable"), ("rendezvous_lost", "membership")
"""Events of the launcher (_pod_programs/elastic_launch.py): the rendezvous answers, or does not; the pods have to meet again."""
_GAVE_UP = "the rendezvous "
"""Begin of the reason with which the launcher ends when the time to join is over."""


def faults(seen: Snapshot) -> Iterator[Finding]:
    """Read the logs of a few pods of each training. Why other pods do not run are findings about them."""
    parts = run_all_or_raise(lambda one: list(_judged(seen, *one)), list(_trainings(seen).items()), parallel=PARALLEL)
    yield from itertools.chain.from_iterable(parts)


def _trainings(seen: Snapshot) -> Mapping[str, list[Manifest]]:
    """The pods of each training that has not ended, by its name."""
    ends: dict[str, t.Iterable[str]] = {"Job": ("Complete", "Failed"), **{kind: ends for (_group, kind), ends in TRAININGS.items()}}
    over = {item["metadata"].get("uid") for kind, names in ends.items() for item in seen.of(kind) if is_true(item, *names)}
    found = collections.defaultdict[str, list[Manifest]](list)
    for pod in seen.of("Pod"):
        name = labels_of(pod).get(ElasticJob.label)
        if name and not any(owner.get("uid") in over for owner in pod["metadata"].get("ownerReferences") or []):
            found[name].append(pod)
    return found


def _judged(seen: Snapshot, name: str, pods: Sequence[Manifest]) -> Iterator[Finding]:
    ranks, now = [rank_of(pod) for pod in pods], seen.now.timestamp()
    running = sorted((rank for rank in ranks if rank.phase == "Running" and rank.started), key=lambda rank: (rank.started, rank.rank))
    # The oldest pods have seen most, the youngest ones tell why they cannot join.
    logs = read_logs(seen.cluster, seen.namespace, [*running[:2], *running[2:][-1:]], required=False, tail_lines=_TAIL)
    told = [event for event in events(logs) if event.get("event") in (*_ANSWERS, *_AWAY, *_PARTED)]
    last: Mapping[str, t.Any] = told[-1] if told else {"event": "", "time": 0.0}
    reason = f"pod {last.get('index')}: {last['reason']}" if last.get("reason") else ""
    env = {row["name"]: str(row.get("value") or "") for row in main_container(pods[0]).get("env") or []}
    finding = functools.partial(Finding, "error", f"Training {seen.namespace}/{name}")
    if last["event"] in _AWAY and env.get(RENDEZVOUS) != "c10d" and now - last["time"] > _SILENT:
        evidence = reason or f"pod {last.get('index')}: {env.get('PET_RDZV_ENDPOINT')} does not answer any more"
        advice = "See the pods of etcd, and its address, port and TLS in options etcd, rdzv_endpoint and rdzv_conf."
        yield finding("rendezvous does not answer", evidence, advice)
        return
    conf = dict(part.split("=", 1) for part in env.get("PET_RDZV_CONF", "").split(",") if "=" in part)
    gave_up = next((f"pod {rank.rank}: {rank.message}" for rank in ranks if rank.message.startswith(_GAVE_UP)), "")
    waited = _waited(seen, running, logs, told)
    if waited is None or not (gave_up or waited > float(conf.get("join_timeout", _JOIN))):
        return
    evidence = f"{len(running)} of at least {env.get('PET_NNODES', '1').partition(':')[0]} pods run, and have not met"
    advice = "See the findings about its other pods. Those that run must reach each other and the rendezvous (DNS, NetworkPolicy)."
    yield finding("pods of the training do not meet", "; ".join(filter(None, [evidence, reason or gave_up])), advice)


def _waited(seen: Snapshot, running: Sequence[Rank], logs: Sequence[str], told: Sequence[Mapping[str, t.Any]]) -> float | None:
    """Seconds for which the pods have waited for each other; None if they have met."""
    met = max((event["time"] for event in told if event["event"] == "rendezvous"), default=0.0)
    parted = next((event["time"] for event in told if event["event"] in _PARTED and event["time"] > met), None)
    if met or any(text.count("\n") >= _TAIL for text in logs):  # a script that logs so much has begun
        return seen.now.timestamp() - parted if parted else None
    return seen.age(running[0].started) if running else 0.0
