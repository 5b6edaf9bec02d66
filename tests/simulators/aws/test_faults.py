# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong: each fault is told once, clearly, and the next run converges."""

from __future__ import annotations

import json
from typing import Any

from simulators.aws.client import Simulator
from simulators.aws.conftest import Run

Body = dict[str, Any]


def cluster(ground: Body, name: str = "f") -> Body:
    return {
        "name": name,
        "role_arn": ground["control"],
        "subnet_ids": ground["subnets"][:2],
        "authentication_mode": "API",
    }


def nodes(ground: Body, name: str) -> Body:
    return {"cluster_name": "f", "name": name, "node_role": ground["node"], "subnets": ground["subnets"][:2]}


def test_a_role_that_is_not_seen_yet_is_waited_for(aws: Simulator, run: Run, ground: Body) -> None:
    aws.fault("role_not_visible", "CreateCluster", times=2)
    assert run("eks_cluster", **cluster(ground))["cluster"]["status"] == "ACTIVE"
    assert aws.attempts().count("eks:CreateCluster") == 3


def test_throttling_is_waited_for(aws: Simulator, run: Run, ground: Body) -> None:
    aws.clear()
    aws.fault("throttle", "DescribeCluster", times=2)
    aws.fault("throttle", "TagResource", times=6)
    assert run("eks_cluster", name="f", tags={"a": "b"})["changed"]
    assert aws.client("eks").describe_cluster(name="f")["cluster"]["tags"] == {"a": "b"}
    assert aws.ask("faults") == []


def test_nodes_that_cannot_start_tell_why_and_are_made_anew(aws: Simulator, run: Run, ground: Body) -> None:
    issue = {"code": "AsgInstanceLaunchFailures", "message": "no g5.xlarge in us-west-2a", "resourceIds": ["eks-bad"]}
    aws.fault("create_failed", "CreateNodegroup", **issue)
    failed = run("eks_nodegroup", **nodes(ground, "bad"))
    assert failed["msg"].startswith(
        "EKS node group bad of cluster f: create failed: CREATE_FAILED (AsgInstanceLaunchFailures"
    )
    assert "no g5.xlarge in us-west-2a" in failed["msg"]
    assert "eks-bad" in failed["msg"]
    mended = run("eks_nodegroup", **nodes(ground, "bad"))
    assert [action.split(" ")[0] for action in mended["actions"]] == ["eks:delete_nodegroup", "eks:create_nodegroup"]
    assert mended["nodegroup"]["status"] == "ACTIVE"


def test_an_update_that_fails_is_a_failure(aws: Simulator, run: Run) -> None:
    aws.fault(
        "update_fails",
        "ConfigUpdate",
        errorCode="PodEvictionFailure",
        errorMessage="pod ml/x stays",
        resourceIds=["i-1"],
    )
    change = {"cluster_name": "f", "name": "bad", "labels": {"a": "b"}}
    failed = run("eks_nodegroup", **change)
    assert "labels ended as Failed: PodEvictionFailure: pod ml/x stays (i-1)" in failed["msg"]
    assert run("eks_nodegroup", **change)["nodegroup"]["labels"] == {"a": "b"}


def test_a_run_that_was_cut_off_is_taken_up(aws: Simulator, run: Run, ground: Body) -> None:
    left = run("eks_nodegroup", **nodes(ground, "cut"), wait=False)
    assert left["nodegroup"]["status"] == "CREATING"
    aws.clear()
    taken = run("eks_nodegroup", **nodes(ground, "cut"))
    assert (taken["changed"], taken["nodegroup"]["status"], aws.attempts()) == (False, "ACTIVE", [])


def test_time_is_up(aws: Simulator, run: Run, ground: Body) -> None:
    late = run("eks_nodegroup", **nodes(ground, "late"), wait_timeout=0)
    assert "Last seen: CREATING. AWS continues to work on it: run again" in late["msg"]
    assert run("eks_nodegroup", **nodes(ground, "late"))["changed"] is False


def test_what_the_caller_may_not_do_is_named(aws: Simulator, run: Run, ground: Body) -> None:
    message = "User: arn:aws:iam::123456789012:user/ci is not authorized to perform: eks:CreateCluster"
    aws.fault("refuse", "CreateCluster", code="AccessDeniedException", message=message, status=403)
    refused = run("eks_cluster", **cluster(ground, "denied"))
    assert "EKS cluster denied: create_cluster (create) was refused: AccessDeniedException" in refused["msg"]
    assert "lacks this permission" in refused["msg"]
    assert run("eks_cluster", **cluster(ground, "denied"))["cluster"]["status"] == "ACTIVE"


def test_an_addon_that_fails_tells_why(aws: Simulator, run: Run) -> None:
    aws.fault("create_failed", "CreateAddon", code="ConfigurationConflict", message="Deployment coredns exists")
    named = {"cluster_name": "f", "name": "coredns"}
    assert "ConfigurationConflict: Deployment coredns exists" in run("eks_addon", **named)["msg"]
    assert run("eks_addon", **named, resolve_conflicts="OVERWRITE")["addon"]["status"] == "ACTIVE"


def test_a_line_break_in_a_token_is_told_without_the_token(run: Run) -> None:
    """Python's own message about the header has the token in it, spelled otherwise than the option that Ansible hides."""
    refused = run("eks_cluster", name="x", session_token="IQoJb3JpEXAMPLETOKEN\n", state="absent")
    assert "EKS cluster x: describe_cluster: the HTTP client failed with" in refused["msg"]
    assert "IQoJb3JpEXAMPLETOKEN" not in json.dumps(refused)


def test_no_connection_is_one_line(run: Run) -> None:
    failed = run("eks_cluster", name="f", endpoint_url="http://127.0.0.1:9")
    assert "Could not connect to the endpoint URL" in failed["msg"]
    assert "Check region, credentials and network" in failed["msg"]
