# SPDX-License-Identifier: GPL-3.0-or-later
"""Tags and labels as users write them in YAML: numbers and booleans are text, and what AWS refuses is refused in the plan."""

from typing import Any

import pytest

from ansible_collections.muster.ml.plugins.module_utils._aws.plan import tag_dict
from simulators.aws.client import Simulator
from simulators.modules import Run

Body = dict[str, Any]
CLUSTER = "words"


@pytest.fixture(scope="module")
def modules(ground: Body) -> dict[str, Body]:
    """Options of every module with tags; a cluster stands before what lives in it, and a file system before its access point."""
    control = {"role_arn": ground["control"], "subnet_ids": ground["subnets"][:2]}
    return {
        "eks_cluster": {"name": CLUSTER, **control, "authentication_mode": "API", "bootstrap_self_managed_addons": False},
        "eks_nodegroup": {
            "cluster_name": CLUSTER, "name": "g", "node_role": ground["node"], "subnets": ground["subnets"][:2],
        },
        "eks_addon": {"cluster_name": CLUSTER, "name": "kube-proxy"},
        "eks_access_entry": {"cluster_name": CLUSTER, "principal_arn": ground["pod"]},
        "eks_pod_identity_association": {
            "cluster_name": CLUSTER, "namespace": "ml", "service_account": "a", "role_arn": ground["pod"],
        },
        "eks_launch_template": {"name": "words"},
        "iam_oidc_provider": {"url": "https://oidc.example.com/words", "thumbprints": ["a" * 40]},
        "efs_file_system": {"name": "words"},
        "s3_bucket": {"name": "words-bucket"},
    }  # fmt: skip


def test_numbers_and_booleans_are_text_in_tags_of_every_module(changes: Run, run: Run, aws: Simulator, modules: dict[str, Body]) -> None:
    """As amazon.aws writes them. A mark that is a number finds what has it."""
    tags = {"cost_center": 1234, "prod": True, "share": 0.5, "none": "", 7: "key"}
    text = {"cost_center": "1234", "prod": "True", "share": "0.5", "none": "", "7": "key"}
    for module, options in modules.items():
        done = changes(module, **options, tags=tags, only_tagged={"owner": 17})
        assert done["changed"] is True, module
    system = run("efs_file_system", **modules["efs_file_system"])["file_system"]
    point = {"file_system_id": system["file_system_id"], "name": "p"}
    changes("efs_access_point", **point, tags=tags, only_tagged={"owner": 17})
    eks = aws.client("eks")
    assert eks.describe_cluster(name=CLUSTER)["cluster"]["tags"] == {**text, "owner": "17"}
    assert tag_dict(aws.client("s3").get_bucket_tagging(Bucket="words-bucket")["TagSet"]) == {**text, "owner": "17"}
    kept = run("efs_access_point", **point, state="absent", only_tagged={"owner": 18})
    assert "(owner=18), but owner=17" in kept["kept"]
    changes("efs_access_point", **point, state="absent", only_tagged={"owner": 17})


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        ({"aws:foo": "x"}, "the tag aws:foo cannot be set: AWS reserves aws: for its own"),
        ({"AWS:foo": "x"}, "the tag AWS:foo cannot be set"),
        ({"k" * 129: "x"}, "a key of 129 and a value of 1 characters"),
        ({"k": "v" * 257}, "a key of 1 and a value of 257 characters"),
        ({"": "x"}, "a key of 0"),
        ({"a": None}, "a has no value"),
        ({"a": {"b": "c"}}, "a has a mapping as its value"),
        ({"a": ["b"]}, "a has a list as its value"),
        ({f"k{n}": "x" for n in range(51)}, "would have 51 tags"),
        ({"a&b": "x"}, "has '&'"),
        ({"a": "line\nbreak"}, "has '\\n'"),
    ],
)
def test_tags_that_aws_refuses_are_refused_in_the_plan(aws: Simulator, run: Run, modules: dict[str, Body], tags: Body, words: str) -> None:
    """Before anything is created; a teardown is not kept from its work by them."""
    aws.clear()
    for module, options in modules.items():
        if module == "eks_launch_template" and ("&" in words or "\\n" in words):
            continue
        for more in ({"check": True}, {}):
            refused = run(module, **more, **options, tags=tags)
            assert words in refused["msg"], (module, refused)
    assert aws.attempts() == []
    assert run("s3_bucket", name="no-such-words", state="absent", tags=tags)["changed"] is False


def test_tags_that_differ_in_case_are_one_for_iam(changes: Run, aws: Simulator, run: Run) -> None:
    """And two for the others."""
    tags = {"Team": "a", "team": "b"}
    aws.clear()
    for more in ({"check": True}, {}):
        refused = run("iam_oidc_provider", **more, url="https://oidc.example.com/case", tags=tags)
        assert "Team and team are one tag for IAM" in refused["msg"]
    assert aws.attempts() == []
    changes("s3_bucket", name="words-case", tags=tags)


def test_labels_and_taints_of_nodes(changes: Run, aws: Simulator, run: Run, modules: dict[str, Body]) -> None:
    group = {**modules["eks_nodegroup"], "name": "labelled"}
    done = changes("eks_nodegroup", **group, labels={"pool": 1, "spot": True, "example.com/team": "ml"})
    assert done["nodegroup"]["labels"] == {"pool": "1", "spot": "true", "example.com/team": "ml"}
    aws.clear()
    for labels, words in (
        ({"kubernetes.io/role": "gpu"}, "are reserved. Give it a value, and a domain of your own"),
        ({"node-role.kubernetes.io/gpu": "true"}, "are reserved"),
        ({"eks.amazonaws.com/x": "y"}, "are reserved"),
        ({"team": "A B"}, "nodes cannot have the label or taint team=A B"),
        ({"-a": "b"}, "nodes cannot have the label or taint -a=b"),
        ({"team": ""}, "the label team, because it is empty"),
        ({"team": "v" * 64}, "nodes cannot have the label or taint"),
        ({f"{'d' * 60}.com/team": "x"}, "has 69 characters"),
        ({"team": None}, "team has no value"),
        ({"team": ["a"]}, "team has a list as its value"),
    ):
        assert words in run("eks_nodegroup", **group, labels=labels)["msg"], labels
        assert words in run("eks_nodegroup", check=True, **{**group, "name": "new"}, labels=labels)["msg"], labels
    taint = [{"key": "nvidia.com/gpu", "value": "A B", "effect": "NO_SCHEDULE"}]
    assert "nodes cannot have the label or taint nvidia.com/gpu=A B" in run("eks_nodegroup", **group, taints=taint)["msg"]
    assert aws.attempts() == []


def test_what_is_named_twice_is_once(run: Run, ground: Body) -> None:
    """Lists of AWS are sets here, and its services refuse a change that is none."""
    base: Body = {"name": "twice", "role_arn": ground["control"], "subnet_ids": ground["subnets"][:2]}
    nodes: Body = {"cluster_name": "twice", "name": "twice", "node_role": ground["node"], "subnets": ground["subnets"][:2]}
    zone, group = ground["subnets"][0], "ml"
    twice: list[tuple[str, Body, Body]] = [
        ("eks_cluster", {**base, "logging": ["api"]}, {"logging": ["api", "api"], "subnet_ids": [*base["subnet_ids"], zone]}),
        ("eks_nodegroup", {**nodes, "instance_types": ["t3.large"]},
         {"instance_types": ["t3.large"] * 2, "subnets": [zone, *nodes["subnets"]]}),
        ("iam_oidc_provider", {"url": "https://example.com/twice", "client_ids": ["a"]}, {"client_ids": ["a", "a"]}),
        ("eks_access_entry", {"cluster_name": "twice", "principal_arn": ground["pod"], "kubernetes_groups": [group]},
         {"kubernetes_groups": [group, group]}),
    ]  # fmt: skip
    for module, options, more in twice:
        extra = {"authentication_mode": "API"} if module == "eks_cluster" else {}
        assert not (made := run(module, **options, **extra)).get("failed"), made["msg"]
        again = run(module, **{**options, **more}, **extra)
        assert (again.get("msg"), again["changed"]) == (None, False), module
