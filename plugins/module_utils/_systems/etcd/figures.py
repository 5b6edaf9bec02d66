# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures that etcd members report."""

from __future__ import annotations

import re
import typing as t

from ..._core.metrics import Figures, Sample, named, samples


def alarms(health: str) -> t.Iterator[Sample]:
    """The alarm that /health tells, or that there is none. With one, or without a leader, its status is 503.

    Of the metrics, 3.5.35 has none of alarms. etcd_debugging_server_alarms of 3.6.8 counts each refused write, and goes back by one where
    an alarm is over (etcdserver/apply/apply.go): it was 21 then.
    """
    yield from (Sample("etcd_alarm", {"alarm": alarm}, 1) for alarm in re.findall(r'"reason":"(?:ALARM (\w+))?', health))


FIGURES = Figures(
    prefix="etcd_",
    paths={"/metrics": samples, "/health": alarms},
    answers=(200, 503),
    counts={"members": named("etcd_server_id")},
    largest={
        "keys": ("etcd_debugging_mvcc_keys_total", 1),
        "used_bytes": ("etcd_mvcc_db_total_size_in_bytes", 1),
        "quota_bytes": ("etcd_server_quota_backend_bytes", 1),
    },
    texts={"leader": ("etcd_server_is_leader", "pod"), "alarm": ("etcd_alarm", "alarm")},
)
"""The figures of a cluster, all of whose members have the same keys."""
