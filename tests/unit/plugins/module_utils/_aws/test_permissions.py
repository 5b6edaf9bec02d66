# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the published policies give what AWS says is missing."""

import pytest
from support.places import ROOT

from ansible_collections.muster.ml.plugins.module_utils._aws.permissions import explained

FOLDER = ROOT / "playbooks" / "files" / "eks-policies"
SAID = "You are not authorized to perform this operation. User: u is not authorized to perform: {} on resource: r"


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        (SAID.format("ec2:CreateVpc"), [("ec2:CreateVpc", "apply", "MakeNetworks", '"ec2:CreateVpc",')]),
        (SAID.format("eks:DescribeNodegroup"), [("eks:DescribeNodegroup", "check", "ReadClusters", '"eks:Describe*",')]),
        (
            "another account owns it, or the caller lacks s3:ListBucket on it (403)",
            [("s3:ListBucket", "check", "ReadBucket", '"s3:ListBucket"')],
        ),
        (
            "For a launch template the caller lacks ec2:RunInstances or ec2:CreateTags",
            [
                ("ec2:RunInstances", "apply", "LaunchNodes", '"ec2:RunInstances"'),
                ("ec2:CreateTags", "apply", "MakeNetworks", '"ec2:CreateTags",'),
            ],
        ),
        ("the API server does not answer", []),
        (SAID.format("eks:CreateCluster") + " with an explicit deny in a service control policy", []),
        (SAID.format("eks:CreateCluster") + " because no permissions boundary allows the eks:CreateCluster action", []),
    ],
    ids=lambda value: value[-30:] if isinstance(value, str) else "",
)
def test_the_line_is_named(text: str, statements: list[tuple[str, str, str, str]]) -> None:
    told = explained(text, FOLDER)
    assert len(told) == len(statements)
    for said, (action, name, sid, line) in zip(told, statements, strict=True):
        lines = (FOLDER / f"{name}.json").read_text().splitlines()
        number = next(n for n, one in enumerate(lines, start=1) if one.strip() == line)
        assert said == f"{action}: {FOLDER}/{name}.json, line {number} (statement {sid})"


def test_one_that_several_policies_give_is_named_in_each() -> None:
    (told,) = explained(SAID.format("ec2:DeleteNatGateway"), FOLDER)
    assert told.count("statement ") == 2
    assert "MakeNetworks" in told
    assert "DeleteNetworks" in told


def test_what_no_policy_gives_is_said_to_be_none() -> None:
    assert f"in none of the policies of {FOLDER}" in explained(SAID.format("iam:CreateUser"), FOLDER)[0]
