# SPDX-License-Identifier: GPL-3.0-or-later
"""A module that ends between any two of its requests: the next run finishes what it began, and a removal leaves nothing.

MUSTER_INTERRUPTIONS=all cuts each module after each of its writes; without it one place is drawn for each, others every day.
"""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from simulators.aws.client import Simulator
from simulators.aws.holdings import holdings
from simulators.modules import Run

Body = dict[str, Any]
MARK = {"muster.ml/owner": "cut"}
ALL = os.environ.get("MUSTER_INTERRUPTIONS") == "all"
DRAW = random.Random(dt.datetime.now(dt.UTC).date().isoformat())  # noqa: S311  # no secret


@pytest.fixture
def cluster(aws: Simulator, run: Run, ground: Body) -> Body:
    name = "cut"
    if name not in aws.client("eks").list_clusters()["clusters"]:
        options = {"role_arn": ground["control"], "subnet_ids": ground["subnets"][:2], "authentication_mode": "API"}
        made = run("eks_cluster", name=name, bootstrap_self_managed_addons=False, **options)
        assert not made.get("failed"), made["msg"]
    return {"cluster_name": name}


def kinds(ground: Body) -> dict[str, tuple[Body, Body]]:
    """Module: (options to make it, further options to remove it)."""
    targets = [{"subnet_id": subnet} for subnet in ground["subnets"][:2]]
    policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKS{}Policy"
    entries = [{"policy_arn": policy.format(kind), "access_scope": {"type": "cluster"}} for kind in ("View", "Edit")]
    cluster = {"cluster_name": "cut"}
    return {
        "s3_bucket": ({"name": "cut-bucket", "versioning": True}, {"delete_data": True}),
        "efs_file_system": (
            {"name": "cut", "backup": True, "transition_to_ia": "AFTER_30_DAYS", "mount_targets": targets},
            {"delete_data": True},
        ),
        "eks_launch_template": ({"name": "cut"}, {}),
        "eks_access_entry": (
            {**cluster, "principal_arn": "arn:aws:iam::123456789012:role/cut", "policies": entries},
            {},
        ),
        "eks_addon": ({**cluster, "name": "vpc-cni"}, {}),
        "eks_nodegroup": (
            {
                **cluster,
                "name": "cut",
                "node_role": ground["node"],
                "subnets": ground["subnets"][:2],
                "scaling_config": {"min_size": 0, "max_size": 1},
            },
            {},
        ),
        "eks_pod_identity_association": (
            {**cluster, "namespace": "ml", "service_account": "cut", "role_arn": ground["pod"]},
            {},
        ),
        "iam_oidc_provider": ({"url": "https://example.org/cut", "thumbprints": ["0" * 40]}, {}),
    }


NAMES = sorted(kinds({"subnets": ["", ""], "node": "", "pod": ""}))


@pytest.fixture(autouse=True)
def released(aws: Simulator) -> Iterator[None]:
    yield
    aws.release()


@pytest.mark.parametrize("module", NAMES)
def test_a_module_that_is_cut_is_finished_by_the_next_run(
    aws: Simulator, run: Run, ground: Body, cluster: Body, module: str
) -> None:
    options, more = kinds(ground)[module]
    there = {**options, "only_tagged": MARK}
    keys = ("name", "cluster_name", "principal_arn", "namespace", "service_account", "url")
    gone = {key: there[key] for key in (*keys, "only_tagged") if key in there} | more | {"state": "absent"}
    before = holdings(aws)
    aws.clear()
    assert not run(module, **there).get("failed")
    made = len(aws.writes())
    whole = comparable(aws)
    aws.clear()
    assert run(module, **gone)["changed"]
    removed = len(aws.writes())
    assert holdings(aws) == before
    for place in places(made):
        cut(aws, run, module, there, place)
        again = run(module, **there)
        assert not again.get("failed"), (place, again["msg"])
        assert comparable(aws) == whole, f"cut after {place} of {made} writes"
        assert run(module, **there)["changed"] is False
        for late in places(removed):
            cut(aws, run, module, gone, late)
            assert not run(module, **gone).get("failed")
            assert holdings(aws) == before, f"cut after {late} of {removed} writes of the removal"
            run(module, **there)
        run(module, **gone)
        assert holdings(aws) == before


def places(count: int) -> list[int]:
    return list(range(count)) if ALL else [DRAW.randrange(count)]


def cut(aws: Simulator, run: Run, module: str, options: Body, after: int) -> None:
    aws.cut(after, holds=False)
    run(module, **options)
    assert aws.is_cut(), f"{module} has no write after {after}"
    aws.release()


def comparable(aws: Simulator) -> dict[str, int]:
    """How many of each kind there are: names that AWS makes up differ."""
    return {kind: len(rows) for kind, rows in holdings(aws).items()}
