# SPDX-License-Identifier: GPL-3.0-or-later
"""What the simulated services refuse as Google's do. No request here is taken, so that none stands in the way of another."""

from typing import Any

import pytest

from simulators.google.client import PROJECT, Simulator
from simulators.google.reader import COMPUTE, GKE, IAM, PROJECTS, STORAGE, Reader, cluster

Body = dict[str, Any]
REGIONAL = f"{COMPUTE}/regions/us-central1"
SUBNETS, ADDRESSES, ROUTERS = (f"{REGIONAL}/{one}" for one in ("subnetworks", "addresses", "routers"))
FIREWALLS = f"{COMPUTE}/global/firewalls"
MACHINES = f"{COMPUTE}/zones/us-central1-a/instances"
CLUSTERS = f"{GKE}/us-central1-a/clusters"
OLD = f"{CLUSTERS}/old"
KEYS = f"{STORAGE}/projects/{PROJECT}/hmacKeys"
REPOSITORIES = f"https://artifactregistry.googleapis.com/v1/projects/{PROJECT}/locations/us-central1/repositories"
NETWORK = f"projects/{PROJECT}/global/networks/ground"
PUBLIC = [{"cidrBlock": "8.8.8.0/24"}]
SHUT = {"enabled": True, "gcpPublicCidrsAccessEnabled": False}
CONDITION = {"title": "t", "expression": "true"}


def new(name: str = "new", **fields: Any) -> Body:
    return cluster(name, services="other-services", initialNodeCount=1, **fields)


def changed(**fields: Any) -> Body:
    return {"update": {f"desired{name}": value for name, value in fields.items()}}


def subnet(cidr: str, network: str = NETWORK) -> Body:
    return {"name": "unfit", "network": network, "ipCidrRange": cidr}


def firewall(**rule: Any) -> Body:
    return {"name": "odd", "network": NETWORK, **rule}


def nat(name: str, option: str, *ranges: str) -> Body:
    row = {"name": f"projects/{PROJECT}/regions/us-central1/subnetworks/ground", "sourceIpRangesToNat": list(ranges)}
    if "LIST_OF_SECONDARY_IP_RANGES" in ranges:
        row["secondaryIpRangeNames"] = ["pods"]
    listed = {"subnetworks": [row]} if ranges else {}
    return {"name": name, "natIpAllocateOption": "AUTO_ONLY", "sourceSubnetworkIpRangesToNat": option, **listed}


def private(**networks: Any) -> Body:
    return {"ipEndpointsConfig": {"enablePublicEndpoint": False, **({"authorizedNetworksConfig": networks} if networks else {})}}


PODS = nat("a", "LIST_OF_SUBNETWORKS", "LIST_OF_SECONDARY_IP_RANGES")


def router(one: Body, other: Body) -> Body:
    return {"name": "both", "network": NETWORK, "nats": [one, other]}


@pytest.fixture(scope="module")
def there(reader: Reader, ground: dict[str, str]) -> None:
    reader.write("POST", f"{COMPUTE}/global/networks", {"name": "auto", "autoCreateSubnetworks": True})
    image = "projects/debian-cloud/global/images/family/debian-12"
    machine = {
        "name": "guarded", "machineType": "zones/us-central1-a/machineTypes/e2-small", "deletionProtection": True,
        "disks": [{"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": image}}],
        "networkInterfaces": [{"subnetwork": "regions/us-central1/subnetworks/ground"}],
    }  # fmt: skip
    reader.write("POST", MACHINES, machine)
    reader.write("POST", ADDRESSES, {"name": "labelled"})
    reader.write("POST", CLUSTERS, cluster("old", initialNodeCount=1, initialClusterVersion="1.34"))
    late = {"name": "late", "initialNodeCount": 1, "version": "1.32", "management": {"autoRepair": True}}
    reader.write("POST", f"{OLD}/nodePools", {"nodePool": late})
    reader.write("POST", f"{STORAGE}/b?project={PROJECT}", {"name": "muster-full", "location": "us-central1"})
    upload = "https://storage.googleapis.com/upload/storage/v1/b/muster-full/o?uploadType=media&name=x"
    assert reader.raw("POST", upload, data=b"1").ok
    reader.write("POST", IAM, {"accountId": "late-one"})


RULES: dict[str, tuple[str, str, Body | None, int, str]] = {
    "overlap": ("POST", SUBNETS, subnet("10.0.1.0/24"), 400, "conflicts with existing subnetwork 'ground' in region 'us-central1'"),
    "host part": ("POST", SUBNETS, subnet("10.20.0.1/24"), 400, "the host part is not zero"),
    "small": ("POST", SUBNETS, subnet("10.20.0.0/30"), 400, "The prefix length must be between"),
    "network": ("POST", SUBNETS, subnet("10.20.0.0/24", "global/networks/x"), 400, "The referenced network resource cannot be found"),
    "auto": ("POST", SUBNETS, subnet("10.200.0.0/16", "global/networks/auto"), 400, "cannot overlap with 10.128.0.0/9"),
    "own of auto": ("DELETE", f"{SUBNETS}/auto", None, 400, "Cannot delete auto subnetwork"),
    "in use": ("DELETE", f"{SUBNETS}/ground", None, 400, "resourceInUseByAnotherResource"),
    "no fingerprint": ("PATCH", f"{SUBNETS}/ground", {"secondaryIpRanges": []}, 412, "conditionNotMet"),
    "fingerprint": ("PATCH", f"{SUBNETS}/ground", {"secondaryIpRanges": [], "fingerprint": "c3RhbGU="}, 412, "conditionNotMet"),
    "label fingerprint": (
        "POST", f"{ADDRESSES}/labelled/setLabels", {"labels": {"a": "1"}, "labelFingerprint": "c3RhbGU="}, 412, "conditionNotMet",
    ),
    "every NAT": (
        "POST", ROUTERS, router(PODS, nat("b", "ALL_SUBNETWORKS_ALL_IP_RANGES")), 400,
        "a Nat with option ALL_SUBNETWORKS_ALL_IP_RANGES exists",
    ),
    "NAT of pods": ("POST", ROUTERS, router(PODS, nat("b", "LIST_OF_SUBNETWORKS", "ALL_IP_RANGES")), 400, "already configured for Nat"),
    "NAT twice": (
        "POST", ROUTERS,
        router(nat("a", "ALL_SUBNETWORKS_ALL_PRIMARY_IP_RANGES"), nat("b", "LIST_OF_SUBNETWORKS", "PRIMARY_IP_RANGE")),
        400, "already configured for Nat",
    ),
    "no traffic": ("POST", FIREWALLS, firewall(), 400, "invalid"),
    "both": ("POST", FIREWALLS, firewall(allowed=[{"IPProtocol": "tcp"}], denied=[{"IPProtocol": "all"}]), 400, "invalid"),
    "ports of icmp": ("POST", FIREWALLS, firewall(allowed=[{"IPProtocol": "icmp", "ports": ["1"]}]), 400, "invalid"),
    "ports reversed": ("POST", FIREWALLS, firewall(allowed=[{"IPProtocol": "tcp", "ports": ["9-1"]}]), 400, "invalid"),
    "sources": ("POST", FIREWALLS, firewall(allowed=[{"IPProtocol": "tcp"}], sourceRanges=["10.0.0.1/8"]), 400, "invalid"),
    "tags": (
        "POST", FIREWALLS, firewall(allowed=[{"IPProtocol": "tcp"}], direction="EGRESS", sourceTags=["a"]), 400,
        "Should not specify source tag",
    ),
    "protected": ("DELETE", f"{MACHINES}/guarded", None, 400, "invalidResourceUsage"),
    "running": (
        "POST", f"{MACHINES}/guarded/setMachineType", {"machineType": "zones/us-central1-a/machineTypes/e2-medium"}, 400,
        "resourceNotReady",
    ),
    "cluster's name": ("POST", CLUSTERS, new("Upper"), 400, "cluster.name"),
    "cluster twice": ("POST", CLUSTERS, new("old"), 409, "Already exists"),
    "cluster's disk": (
        "POST", CLUSTERS, new(initialClusterVersion="1.36.3-gke.1480000", nodeConfig={"diskSizeGb": 14}), 400, "at least 15 GB",
    ),
    "telemetry": (
        "POST", CLUSTERS, new(loggingService="none", monitoringConfig={"managedPrometheusConfig": {"enabled": True}}), 400,
        "Cannot specify logging_config or monitoring_config together",
    ),
    "master": ("PUT", OLD, changed(MasterVersion="1.36"), 400, "more than a minor version at a time"),
    "master back": ("PUT", OLD, changed(MasterVersion="1.33"), 400, "minor version downgrades are not supported"),
    "no version": ("PUT", OLD, changed(MasterVersion="1.99"), 400, "No valid versions with the prefix"),
    "nodes behind": ("PUT", OLD, changed(MasterVersion="1.35"), 400, "node pools late would be more than 2 minor versions behind"),
    "channel": ("PUT", OLD, changed(ReleaseChannel={"channel": "REGULAR"}), 400, "Auto-upgrade is enabled"),
    "two updates": ("PUT", OLD, changed(LoggingService="none", MonitoringService="none"), 400, "Exactly one update"),
    "etag": ("PUT", OLD, {"update": {"desiredLoggingService": "none", "etag": "stale"}}, 412, "etag"),
    "labels": ("POST", f"{OLD}:setResourceLabels", {"resourceLabels": {"a": "1"}, "labelFingerprint": "x"}, 400, "fingerprint mismatch"),
    "nodes ahead": (
        "PUT", f"{OLD}/nodePools/default-pool", {"nodeVersion": "1.35"}, 400, "must not have a greater minor version than master version",
    ),
    "nodes late": (
        "POST", f"{OLD}/nodePools", {"nodePool": {"name": "x", "version": "1.32"}}, 400, "must be within one minor version of master",
    ),
    "upgraded": ("POST", f"{OLD}/nodePools/late:setManagement", {"management": {"autoUpgrade": True}}, 400, "Auto-upgrade is enabled"),
    "disk": ("POST", f"{OLD}/nodePools", {"nodePool": {"name": "x", "config": {"diskSizeGb": 11}}}, 400, "at least 12 GB"),
    "disk later": ("PUT", f"{OLD}/nodePools/default-pool", {"diskSizeGb": "11"}, 400, "at least 12 GB"),
    **{
        f"bucket {name}": ("POST", f"{STORAGE}/b?project={PROJECT}", {"name": name}, 400, "Invalid bucket name")
        for name in ("Upper-Case", "goog-x", "my-google-x", "ab")
    },
    "bucket twice": ("POST", f"{STORAGE}/b?project={PROJECT}", {"name": "muster-full"}, 409, "you already own it"),
    "bucket taken": ("POST", f"{STORAGE}/b?project={PROJECT}", {"name": "training-data"}, 409, "requested bucket name is not available"),
    "bucket of others": ("GET", f"{STORAGE}/b/training-data", None, 403, "storage.buckets.get"),
    "bucket full": ("DELETE", f"{STORAGE}/b/muster-full", None, 409, "not empty"),
    "precondition": ("PATCH", f"{STORAGE}/b/muster-full?ifMetagenerationMatch=7", {"labels": {"a": "1"}}, 412, "pre-conditions"),
    "place": ("PATCH", f"{STORAGE}/b/muster-full", {"location": "EU"}, 400, "The location of a bucket cannot be changed."),
    "lifecycle": (
        "PATCH", f"{STORAGE}/b/muster-full",
        {"lifecycle": {"rule": [{"action": {"type": "Delete", "storageClass": "NEARLINE"}, "condition": {"age": 1}}]}},
        400, "Invalid argument",
    ),
    "bucket's etag": ("PUT", f"{STORAGE}/b/muster-full/iam", {"etag": "c3RhbGU=", "bindings": []}, 412, "conditionNotMet"),
    "uniform access": (
        "PUT", f"{STORAGE}/b/muster-full/iam",
        {"version": 3, "bindings": [{"role": "roles/storage.objectViewer", "members": ["user:a@example.com"], "condition": CONDITION}]},
        412, "conditionNotMet",
    ),
    "key of nobody": ("POST", f"{KEYS}?serviceAccountEmail=nobody@{PROJECT}.iam.gserviceaccount.com", None, 404, "not found"),
    "account twice": ("POST", IAM, {"accountId": "late-one"}, 409, "already exists"),
    "account": ("POST", IAM, {"accountId": "short"}, 400, "does not have a length between 6 and 30"),
    "project's etag": ("POST", f"{PROJECTS}:setIamPolicy", {"policy": {"etag": "c3RhbGU="}}, 409, "There were concurrent policy changes"),
    "kept versions": (
        "POST", f"{REPOSITORIES}?repositoryId=kept",
        {"format": "DOCKER", "cleanupPolicies": {"recent": {"action": "DELETE", "mostRecentVersions": {"keepCount": 3}}}},
        400, "needs action KEEP",
    ),
    "what is lacking": ("POST", f"{COMPUTE}/global/sslCertificates", {"name": "x"}, 501, "does not answer compute.sslCertificates.insert"),
}  # fmt: skip


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("rule", RULES)
def test_what_google_refuses_is_refused(reader: Reader, rule: str) -> None:
    verb, url, body, status, words = RULES[rule]
    found, reason, message = reader.refused(verb, url, body)
    assert (found, words in f"{reason}: {message}") == (status, True), message


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize(
    ("networks", "words"),
    [
        ({}, "Master authorized networks must be enabled if private endpoint is enabled"),
        ({"enabled": True, "gcpPublicCidrsAccessEnabled": True}, "cannot be enabled if private endpoint is enabled"),
        ({**SHUT, "cidrBlocks": PUBLIC}, 'CIDR range "8.8.8.0/24" is not a reserved network'),
        ({**SHUT, "cidrBlocks": [{"cidrBlock": "0.0.0.0/0"}]}, "is not a reserved network"),
    ],
)
def test_a_private_endpoint_has_networks_of_its_own(reader: Reader, networks: Body, words: str) -> None:
    """Of a new cluster, and of one that is changed."""
    made = new(privateClusterConfig={"enablePrivateNodes": True}, controlPlaneEndpointsConfig=private(**networks))
    assert words in reader.refused("POST", CLUSTERS, made)[2]
    assert words in reader.refused("PUT", OLD, changed(ControlPlaneEndpointsConfig=private(**networks)))[2]


@pytest.mark.parametrize(
    ("role", "member", "condition", "message"),
    [
        ("roles/no.such", "user:a@example.com", None, "Role roles/no.such is not supported"),
        ("roles/storage.admin", "a@example.com", None, "The member a@example.com is of an unknown type."),
        ("roles/storage.admin", f"serviceAccount:x@{PROJECT}.iam.gserviceaccount.com", None, "Service account x@"),
        ("roles/storage.admin", f"serviceAccount:{PROJECT}x.svc.id.goog[ns/ksa]", None, "Identity Pool does not exist"),
        ("roles/storage.admin", "user:a@example.com", CONDITION, "cannot contain condition"),
    ],
    ids=["role", "member", "account", "pool", "condition"],
)  # fmt: skip
def test_members_of_a_policy_are_there(reader: Reader, role: str, member: str, condition: Body | None, message: str) -> None:
    row = {"role": role, "members": [member], **({"condition": condition} if condition else {})}
    status, _reason, text = reader.refused("POST", f"{PROJECTS}:setIamPolicy", {"policy": {"bindings": [row]}})
    assert (status, message in text) == (400, True), text


def test_a_policy_with_conditions_is_not_written_over_by_an_older_version(reader: Reader) -> None:
    before = reader.write("POST", f"{PROJECTS}:getIamPolicy", {"options": {"requestedPolicyVersion": 3}})
    row = {"role": "roles/viewer", "members": ["user:a@example.com"], "condition": CONDITION}
    body = {"policy": {**before, "version": 3, "bindings": [*before["bindings"], row]}}
    etag = reader.write("POST", f"{PROJECTS}:setIamPolicy", body)["etag"]
    plain = {"version": 1, "bindings": before["bindings"]}
    told = reader.refused("POST", f"{PROJECTS}:setIamPolicy", {"policy": {**plain, "etag": etag}})[2]
    assert "version (1) cannot be less than the existing policy version (3)" in told
    assert reader.write("POST", f"{PROJECTS}:setIamPolicy", {"policy": plain})["version"] == 1, "without an etag nobody asks for it"


def test_one_thing_at_a_time(reader: Reader, there: None) -> None:
    """What is being made cannot be used, and a cluster that is being changed not be changed."""
    reader.begin("POST", f"{COMPUTE}/global/networks", {"name": "unready", "autoCreateSubnetworks": False})
    assert reader.refused("POST", SUBNETS, subnet("10.21.0.0/24", "global/networks/unready"))[:2] == (400, "resourceNotReady")
    running = reader.begin("PUT", OLD, changed(LoggingService="none"))
    assert f"incompatible operation {running['name']}" in reader.refused("PUT", OLD, changed(MonitoringService="none"))[2]
    while running["status"] != "DONE":
        running = reader.get(running["selfLink"])


def test_a_network_with_subnetworks_of_its_own_goes_with_them(reader: Reader, there: None) -> None:
    network = f"{COMPUTE}/global/networks/auto"
    reader.write("POST", SUBNETS, {**subnet("10.120.0.0/16", "global/networks/auto"), "name": "more"})
    assert reader.write("DELETE", network)["error"]["errors"][0]["code"] == "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"
    reader.write("DELETE", f"{SUBNETS}/more")
    reader.write("DELETE", network)
    assert (reader.get(network), reader.get(f"{SUBNETS}/auto")) == (None, None)


def test_an_hmac_key_goes_only_inactive_and_ten_are_the_most(google: Simulator, reader: Reader) -> None:
    email = reader.write("POST", IAM, {"accountId": "hmac-owner"})["email"]
    url = f"{KEYS}?serviceAccountEmail={email}"
    assert reader.raw("POST", url).status_code == 404, "Cloud Storage does not know the new account yet"
    made = reader.write("POST", url)
    key = f"{KEYS}/{made['metadata']['accessId']}"
    assert made["secret"] not in str([reader.get(url), google.ask("holdings"), google.ask("requests")])
    assert "Cannot delete keys in 'ACTIVE' state" in reader.refused("DELETE", key)[2]
    reader.write("PUT", key, {"state": "INACTIVE"})
    assert reader.refused("PUT", key, {"state": "ACTIVE", "etag": made["metadata"]["etag"]})[0] == 412
    assert [reader.raw("POST", url).status_code for _time in range(10)] == [200] * 9 + [429]
