# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands between a newcomer and the first cluster: from where the API server is reached, in which zones it may be, what names fit."""

import dataclasses
from collections.abc import Iterator

import pytest
import yaml

from simulators.aws.holdings import holdings
from simulators.aws.play import POLICIES, Play, playground, without
from simulators.aws.shapes import Maker
from simulators.processes import recap

PROVE = pytest.mark.prove
OFFICE = {"eks_cluster_public_access_cidrs": ["203.0.113.0/24"]}


def network(play: Play) -> dict[str, list[str]]:
    """The private subnets, for runs of later roles alone."""
    tagged = [{"Name": "tag:kubernetes.io/role/internal-elb", "Values": ["1"]}]
    found = play.aws.client("ec2").describe_subnets(Filters=tagged)["Subnets"]
    return {"eks_cluster_subnet_ids": [row["SubnetId"] for row in found]}


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    """The shipped inventory, in an account of its own."""
    with playground(tmp_path_factory.mktemp("first"), {}) as ground:
        yield ground


REFUSED = {
    "nobody": ({}, ("Set eks_cluster_public_access_cidrs", "eks_cluster_private_access_cidrs")),
    "bucket": (
        {**OFFICE, "muster_eks_name": "a-name-that-is-too-long-for-a-bucket"},
        ("S3 does not take a-name-that-is-too-long-for-a-bucket-artifacts-000000000000-us-west-2",),
    ),
    "letters": ({**OFFICE, "muster_eks_name": "Team_ML"}, ("lowercase letters, digits, dots and hyphens",)),
    "roles": ({**OFFICE, "muster_eks_name": "n" * 53}, ("IAM roles of at most 64 characters",)),
    "cluster": ({**OFFICE, "muster_eks_name": "-x"}, ("-x cannot be the name of the cluster",)),
}  # fmt: skip


def test_what_cannot_be_is_refused_before_anything_is_asked(play: Play) -> None:
    """An API server that nobody could reach, and names that do not fit. One run for a cluster of each."""
    local = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    hosts = {
        name: {**local, "muster_kubeconfig": str(play.folder / f"{name}.kubeconfig"), "muster_eks_name": name, **wrong}
        for name, (wrong, _words) in REFUSED.items()
    }
    inventory = play.folder / "refused.yml"
    inventory.write_text(yaml.safe_dump({"muster_clusters": {"hosts": hosts}}), encoding="utf-8")
    play.aws.clear()
    done = dataclasses.replace(play, settings={})("eks", "-i", str(inventory), "--tags", "eks_network,eks_cluster")
    counts = {line.split()[0]: line for line in done.stdout.splitlines() if " failed=" in line}
    for name, (_wrong, words) in REFUSED.items():
        assert all(word in play.said() for word in words), (name, done.stdout[-3000:])
        assert " failed=1 " in counts[name]
    assert play.aws.ask("requests") == []


@pytest.mark.parametrize(
    ("phase", "statement", "options", "action"),
    [
        pytest.param("check", "ReadClusters", ["--check", "--tags", "eks_cluster_preflight"], "eks:DescribeCluster", marks=PROVE),
        pytest.param("check", "ReadNetworks", ["--check", "--tags", "eks_network_preflight"], "ec2:DescribeAvailabilityZones", marks=PROVE),
        pytest.param("check", "ReadBucket", ["--check", "--tags", "s3_artifacts"], "s3:ListBucket", marks=PROVE),
        ("apply", "MakeRoles", ["--tags", "s3_artifacts"], "iam:CreateRole"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_missing_permission_is_one_clear_error(
    play: Play, monkeypatch: pytest.MonkeyPatch, phase: str, statement: str, options: list[str], action: str
) -> None:
    """One for each way in which a service says it; test_playbook.py judges every statement by the requests of all its runs."""
    monkeypatch.setitem(play.policies, phase, without(play.policies[phase], statement))
    done = play("eks", *options, **OFFICE)
    assert (done.returncode, recap(done)["failed"]) == (2, 1), done.stdout[-3000:]
    told = [line.strip() for line in done.stdout.splitlines() if "(statement " in line]
    assert len(told) == 1, done.stdout[-3000:]
    assert told[0].startswith(f"{action}: {POLICIES}/")
    assert f"(statement {statement})" in told[0]


def test_a_used_up_quota_is_told(play: Play) -> None:
    play.aws.quota("vpcs", 1)
    done = play("eks", "--tags", "eks_network", **OFFICE)
    assert (done.returncode, recap(done)["changed"]) == (2, 0), done.stdout[-3000:]
    assert "VpcLimitExceeded" in play.said()
    play.aws.quota("vpcs", 5)


@pytest.mark.prove
def test_a_nat_gateway_that_fails_is_told(play: Play) -> None:
    """Its address has an owner; the next test's run takes it, and the last one sees that nothing is left."""
    play.aws.fault("nat_fails", "CreateNatGateway")
    done = play("eks", "--tags", "eks_network", **OFFICE)
    assert (done.returncode, recap(done)["failed"]) == (2, 1), done.stdout[-3000:]
    assert "nat" in play.said().lower()
    addresses = play.aws.client("ec2").describe_addresses()["Addresses"]
    assert [{tag["Key"]: tag["Value"] for tag in row["Tags"]}["muster.ml/owner"] for row in addresses] == ["muster"]


@pytest.mark.prove
def test_the_endpoint_of_a_new_cluster_is_waited_for(play: Play) -> None:
    play.api_server.warm_up = 8.0
    done = play("eks", "--tags", "eks_network,eks_cluster", **OFFICE)
    assert done.returncode == 0, done.stdout[-3000:]
    config = play.aws.client("eks").describe_cluster(name="muster")["cluster"]["resourcesVpcConfig"]
    assert (config["endpointPublicAccess"], config["publicAccessCidrs"]) == (True, ["203.0.113.0/24"])
    assert len(play.aws.client("ec2").describe_addresses()["Addresses"]) == 1


@pytest.mark.prove
def test_ranges_are_let_in_as_they_are_meant_and_a_second_run_changes_nothing(play: Play) -> None:
    """An address with the bits of its host, and one without a prefix."""
    there = {"eks_cluster_public_access_cidrs": ["203.0.113.9/24", "198.51.100.7"]}
    for writes in (["eks:UpdateClusterConfig"], []):
        play.aws.clear()
        done = play("eks", "--tags", "eks_cluster", **there, **network(play))
        assert (done.returncode, play.aws.attempts()) == (0, writes), done.stdout[-3000:]
    refused = play("eks", "--tags", "eks_network", eks_cluster_public_access_cidrs=["10.0.0.0/8"])
    assert (refused.returncode, play.aws.attempts()) == (2, [])
    assert "eks_cluster_public_access_cidrs: no request from the internet comes from 10.0.0.0/8" in play.said()


@pytest.fixture
def inside(play: Play) -> Iterator[None]:
    """As from a machine in the VPC that the internet does not know."""
    play.aws.caller("192.0.2.1", private_address="10.40.0.9")
    yield
    play.aws.caller()


@pytest.mark.prove
@pytest.mark.usefixtures("inside")
def test_the_private_endpoint_is_open_to_named_ranges(play: Play) -> None:
    closed = {"muster_wait_timeout": 4, "eks_cluster_private_only": True}
    done = play("eks", "--tags", "eks_cluster", **network(play), **closed)
    assert done.returncode == 2
    assert "its API server cannot be used from here: The API server https://MUSTER.gr7.us-west-2" in play.said()
    assert "inside the VPC from its nodes only (eks_cluster_private_access_cidrs)" in play.said()
    for changed in (1, 0):
        done = play("eks", "--tags", "eks_cluster", **network(play), eks_cluster_private_access_cidrs=["10.40.0.0/16"])
        assert (done.returncode, recap(done)["changed"] > 0) == (0, bool(changed)), done.stdout[-3000:]


@pytest.mark.prove
def test_teardown_leaves_nothing(play: Play) -> None:
    """By the word for a cluster that cannot be asked: its endpoint is private by now."""
    done = play("eks_teardown", eks_cluster_delete_data=True, muster_delete_cluster=True)
    assert done.returncode == 0, done.stdout[-3000:]
    left = holdings(play.aws)
    assert left["address"] == {}
    ours = {kind: [name for name, row in left[kind].items() if "muster" in str(row)] for kind in left}
    assert {kind: names for kind, names in ours.items() if names} == {}


EAST = {"muster_aws_region": "us-east-1", **OFFICE}


def network_of_an_older_run(play: Play) -> str:
    """A VPC of Muster's whose first subnets are in the zone that EKS refuses, as the first zone by name was chosen once."""
    ec2 = play.aws.client("ec2", "us-east-1")

    def tags(name: str, *more: str) -> list[dict[str, str]]:
        return [{"Key": key, "Value": value} for key, value in (("Name", name), ("muster.ml/owner", "muster"), *more)]

    vpc = str(ec2.create_vpc(CidrBlock="10.40.0.0/16")["Vpc"]["VpcId"])
    ec2.create_tags(Resources=[vpc], Tags=tags("muster"))
    for zone, cidr in (("us-east-1a", "10.40.0.0/20"), ("us-east-1b", "10.40.16.0/20"), ("us-east-1a", "10.40.128.0/23")):
        made = ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=zone)["Subnet"]["SubnetId"]
        ec2.create_tags(Resources=[made], Tags=tags(f"muster-{zone}"))
    return vpc


@pytest.mark.prove
def test_a_zone_that_eks_refuses_is_refused_before_anything_is_made(play: Play) -> None:
    """Whatever it is called in this account."""
    play.aws.clear()
    done = play("eks", "--tags", "eks_network", **EAST, eks_network_zones=["us-east-1a", "us-east-1b"])
    assert (recap(done)["failed"], play.aws.attempts()) == (1, []), done.stdout[-3000:]
    assert "eks_network_zones: us-east-1a cannot be used" in play.said()
    assert "It can use us-east-1b, us-east-1c" in play.said()


@pytest.mark.prove
def test_zones_are_chosen_by_what_eks_can_use_and_a_network_of_an_older_run_is_taken_up(play: Play) -> None:
    vpc = network_of_an_older_run(play)
    done = play("eks", "--tags", "eks_network,eks_cluster", **EAST)
    assert done.returncode == 0, done.stdout[-3000:]
    config = play.aws.client("eks", "us-east-1").describe_cluster(name="muster")["cluster"]["resourcesVpcConfig"]
    assert config["vpcId"] == vpc
    rows = play.aws.client("ec2", "us-east-1").describe_subnets(SubnetIds=config["subnetIds"])["Subnets"]
    found = sorted((row["AvailabilityZone"], row["AvailabilityZoneId"], row["CidrBlock"]) for row in rows)
    assert found == [("us-east-1b", "use1-az1", "10.40.16.0/20"), ("us-east-1c", "use1-az2", "10.40.32.0/20")]
    play.aws.clear()
    again = play("eks", "--tags", "eks_network", **EAST)
    assert (again.returncode, play.aws.attempts()) == (0, [])


def cluster_of_somebody_else(play: Play) -> None:
    """Without any add-on."""
    maker = Maker(play.aws, "theirs", 99)
    maker.network({})
    maker.cluster()


@pytest.mark.prove
def test_a_cluster_without_the_agent_of_pod_identity_is_refused(play: Play) -> None:
    cluster_of_somebody_else(play)
    play.aws.clear()
    adopted = {"muster_eks_name": "theirs", "eks_manage_cluster": False}
    done = play("eks", "--tags", "efs_filesystem_preflight,s3_artifacts_preflight", **adopted)
    assert (recap(done)["failed"], play.aws.attempts()) == (1, []), done.stdout[-3000:]
    assert "has no add-on eks-pod-identity-agent, without which no pod gets an IAM role" in play.said()
