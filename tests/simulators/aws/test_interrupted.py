# SPDX-License-Identifier: GPL-3.0-or-later
"""A module that ends between any two of its requests: the next run finishes what it began, and a removal leaves nothing.

MUSTER_INTERRUPTIONS=all cuts each module after each of its writes; without it one place is drawn for each, others every day.
"""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Iterator
from pathlib import Path
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
        "eks_access_entry": ({**cluster, "principal_arn": ground["web"], "policies": entries}, {}),
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
        "eks_pod_identity_association": ({**cluster, "namespace": "ml", "service_account": "cut", "role_arn": ground["pod"]}, {}),
        "iam_oidc_provider": ({"url": "https://example.org/cut", "thumbprints": ["0" * 40]}, {}),
    }


NAMES = sorted(kinds({"subnets": ["", ""], "node": "", "pod": "", "web": ""}))

# Options that name a resource.
NAMED = ("name", "cluster_name", "principal_arn", "namespace", "service_account", "url")


@pytest.fixture(autouse=True)
def released(aws: Simulator) -> Iterator[None]:
    yield
    aws.release()


@pytest.mark.parametrize("module", NAMES)
def test_a_module_that_is_cut_is_finished_by_the_next_run(aws: Simulator, run: Run, ground: Body, cluster: Body, module: str) -> None:
    options, more = kinds(ground)[module]
    there = {**options, "only_tagged": MARK}
    gone = {key: there[key] for key in (*NAMED, "only_tagged") if key in there} | more | {"state": "absent"}
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


def test_every_request_may_be_refused_for_a_while(
    aws: Simulator, run: Run, ground: Body, cluster: Body, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As in a busy account: each operation is throttled for longer than botocore has patience, listings and HEAD requests included."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    aws.clear()
    aws.fault("throttle", "each", times=2)

    def goes_well(module: str, **options: Any) -> Body:
        result = run(module, **options)
        assert not result.get("failed"), (module, result["msg"])
        return result

    goes_well("eks_cluster", name="cut", tags={"busy": True})
    for module, (options, more) in kinds(ground).items():
        made = goes_well(module, **options)
        if module == "efs_file_system":
            point = {"file_system_id": made["file_system"]["file_system_id"], "name": "busy"}
            goes_well("efs_access_point", **point)
            goes_well("efs_access_point", **point, state="absent")
        if module == "s3_bucket":
            (tmp_path / "x").write_text("x", encoding="utf-8")
            goes_well("s3_object", bucket="cut-bucket", name="x", src=str(tmp_path / "x"))
        goes_well(module, **options, tags={"busy": True})
        goes_well("eks_cluster_info", name="cut", roles=["node"])
        goes_well(module, **{k: v for k, v in options.items() if k in NAMED}, **more, state="absent")
    goes_well("eks_remains_info", name="cut")
    group = aws.client("ec2").create_security_group(GroupName="busy", Description="x", VpcId=ground["vpc"])
    goes_well("ec2_removal", id=group["GroupId"])
    refused = {row["operation"] for row in aws.ask("requests") if row["status"] in (400, 429, 503)}
    assert refused >= {"HeadBucket", "HeadObject", "ListRoles", "ListAddons", "ListObjectVersions", "GetResources"}
