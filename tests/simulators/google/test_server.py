# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulator itself: who gets in, what a request has to look like, what Google's own client makes of it; nothing else is asked."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.auth.exceptions import RefreshError
from google.auth.transport.requests import Request
from google.cloud.container_v1 import Cluster, ClusterManagerClient, Operation
from google.oauth2.credentials import Credentials
from google.oauth2.service_account import Credentials as Account

from simulators.google.client import ACCESS_TOKEN, CALLER, NUMBER, PROJECT, Simulator
from simulators.google.reader import COMPUTE, GKE, IAM, PROJECTS, STORAGE, Reader

CLUSTERS = f"{GKE}/us-central1-a/clusters"
NETWORKS = f"{COMPUTE}/global/networks"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
SERVICES = f"https://serviceusage.googleapis.com/v1/projects/{PROJECT}/services"


def test_who_proves_nothing_gets_no_token(google: Simulator) -> None:
    plain = requests.Session()
    plain.trust_env, plain.proxies, plain.verify = False, {"https": google.url}, str(google.ca)
    key = json.loads((google.folder / "service_account.json").read_text(encoding="utf-8"))
    other = {**key, "client_email": f"other@{PROJECT}.iam.gserviceaccount.com"}
    for row, scopes, words in ((other, [SCOPE], "Invalid JWT: issuer or audience"), (key, [""], "Invalid OAuth scope")):
        with pytest.raises(RefreshError, match=words):
            Account.from_service_account_info(row, scopes=scopes).refresh(Request(plain))


def test_other_hosts_are_refused_and_noted(google: Simulator) -> None:
    google.clear()
    for url in ("https://example.com/", "https://pubsub.googleapis.com/v1/x", "https://storage.googleapis.com.evil.example/"):
        with pytest.raises(requests.exceptions.ProxyError, match="403 Forbidden"):
            requests.get(url, proxies={"https": google.url}, verify=str(google.ca), timeout=30)
    plain = requests.get("http://metadata.google.internal/", proxies={"http": google.url}, timeout=30)
    assert (plain.status_code, "does not stand for metadata.google.internal" in plain.text) == (403, True)
    assert google.strangers() == ["example.com", "pubsub.googleapis.com", "storage.googleapis.com.evil.example", "metadata.google.internal"]
    assert google.attempts() == []


def test_the_environment_leads_nowhere_else(google: Simulator) -> None:
    """What a process with this environment asks goes to the simulator, by requests and by what else uses the system's certificates."""
    program = (
        "import requests, urllib.request\n"
        "print(requests.get('https://compute.googleapis.com/nothing').status_code)\n"
        "try:\n    urllib.request.urlopen('https://storage.googleapis.com/nothing')\nexcept OSError as error:\n    print(error.code)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env=google.environment(), capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["404", "404"]


UNFIT = [
    ("unknown name", "POST", NETWORKS, {"name": "n", "autoCreateSubnetworks": False, "typo": 1},
     "Unknown name \"typo\" at 'resource': Cannot find field."),
    ("unknown name inside", "POST", CLUSTERS, {"cluster": {"name": "c", "nodePools": [{"config": {"workloadMetaConfig": {}}}]}},
     "Unknown name \"workloadMetaConfig\" at 'cluster.node_pools[0].config': Cannot find field."),
    ("unknown choice", "POST", CLUSTERS, {"cluster": {"name": "c", "releaseChannel": {"channel": "FAST"}}},
     "Invalid value at 'cluster.release_channel.channel'"),
    ("unknown choice of compute", "POST", f"{COMPUTE}/global/firewalls", {"name": "f", "direction": "UP"},
     "Invalid value for field 'resource.direction': 'UP'"),
    ("text for a number", "POST", CLUSTERS, {"cluster": {"initialNodeCount": "three"}},
     "Invalid value at 'cluster.initial_node_count' (TYPE_INT32)"),
    ("text for a truth", "POST", NETWORKS, {"name": "n", "autoCreateSubnetworks": "no"}, "(TYPE_BOOL)"),
    ("one for many", "POST", CLUSTERS, {"cluster": {"locations": "us-central1-a"}}, "Invalid value at 'cluster.locations' (repeated)"),
    ("text for a message", "POST", CLUSTERS, {"cluster": {"releaseChannel": "STABLE"}}, "Invalid value at 'cluster.release_channel'"),
    ("unknown parameter", "GET", f"{NETWORKS}?colour=red", None, "Unknown name \"colour\": Cannot bind query parameter."),
    ("a name's form", "POST", NETWORKS, {"name": "Upper", "autoCreateSubnetworks": False}, "Must be a match of regex"),
    ("a name that is missing", "POST", NETWORKS, {"autoCreateSubnetworks": False}, "Required field 'resource.name'"),
]  # fmt: skip


@pytest.mark.parametrize(("verb", "url", "body", "message"), [row[1:] for row in UNFIT], ids=[row[0] for row in UNFIT])
def test_what_does_not_fit_the_schema_is_refused(reader: Reader, verb: str, url: str, body: Any, message: str) -> None:
    status, _reason, text = reader.refused(verb, url, body)
    assert (status, message in text) == (400, True), text


def test_cloud_storage_ignores_names_that_it_does_not_know(reader: Reader) -> None:
    """google.cloud's gcp_storage_bucket sends `project` on DELETE."""
    reader.write("POST", f"{STORAGE}/b?project={PROJECT}&typo=1", {"name": "muster-odd-names", "unheardOf": {"x": 1}})
    assert "unheardOf" not in reader.get(f"{STORAGE}/b/muster-odd-names")
    assert reader.raw("DELETE", f"{STORAGE}/b/muster-odd-names?project={PROJECT}").status_code == 204


def test_a_partial_response_has_no_more_than_was_asked_for(reader: Reader) -> None:
    reader.write("POST", NETWORKS, {"name": "partial", "autoCreateSubnetworks": False})
    found = reader.get(f"{NETWORKS}?fields=items(name,routingConfig/routingMode)&filter=name=partial")
    assert found == {"items": [{"name": "partial", "routingConfig": {"routingMode": "REGIONAL"}}]}


def test_permissions_are_told_as_each_service_tells_them(google: Simulator, reader: Reader) -> None:
    """Google names the permission that is missing, and what it is missing for, each service in its own words."""
    place = f"projects/{PROJECT}/regions/us-central1/subnetworks"
    told = {
        ("POST", f"{COMPUTE}/regions/us-central1/subnetworks"): f"Required 'compute.subnetworks.create' permission for '{place}'",
        ("POST", CLUSTERS): f'Required "container.clusters.create" permission(s) for "projects/{PROJECT}/locations/us-central1-a".',
        ("POST", f"{STORAGE}/b?project={PROJECT}"): f"{CALLER} does not have storage.buckets.create access to the Google Cloud project.",
        ("POST", IAM): "Permission 'iam.serviceAccounts.create' denied on resource",
        ("POST", f"{PROJECTS}:setIamPolicy"): "The caller does not have permission",
    }
    google.permissions(["compute.networks.*", "serviceusage.*"])
    try:
        for (verb, url), words in told.items():
            status, _reason, message = reader.refused(verb, url, {})
            assert (status, message.startswith(words)) == (403, True), message
    finally:
        google.permissions(None)


def test_an_api_that_is_not_enabled_says_so_and_so_it_does_just_after(tmp_path: Path) -> None:
    simulator = Simulator(tmp_path)
    try:
        reader = Reader(simulator)
        error = reader.raw("GET", NETWORKS).json()["error"]
        info = error["details"][0]
        assert (error["code"], info["reason"], info["domain"]) == (403, "SERVICE_DISABLED", "googleapis.com")
        assert (info["metadata"]["service"], info["metadata"]["consumer"]) == ("compute.googleapis.com", f"projects/{NUMBER}")
        operation, looks = reader.begin("POST", f"{SERVICES}:batchEnable", {"serviceIds": ["compute.googleapis.com"]}), 0
        while not operation.get("done"):
            operation, looks = reader.get(f"https://serviceusage.googleapis.com/v1/{operation['name']}"), looks + 1
        assert looks == 2
        assert "has not been used in project" in reader.refused("GET", NETWORKS)[2]
        assert "items" not in reader.get(NETWORKS)
        wrong = reader.refused("POST", f"{SERVICES}:batchEnable", {"serviceIds": ["nosuch.googleapis.com"]})
        assert "Not found or permission denied for service" in wrong[2]
    finally:
        simulator.stop()


def test_external_addresses_are_of_the_network_that_was_given(tmp_path: Path) -> None:
    simulator = Simulator(tmp_path, "--addresses", "10.213.77.192/30")
    try:
        simulator.enable()
        reader = Reader(simulator)
        url = f"{COMPUTE}/regions/us-central1/addresses"
        for name in ("first", "second", "third"):
            reader.write("POST", url, {"name": name})
            assert reader.get(f"{url}/{name}")["address"] in ("10.213.77.193", "10.213.77.194")
    finally:
        simulator.stop()


def test_googles_own_client_makes_a_cluster_whose_range_has_no_room_for_more_nodes(
    google: Simulator, ground: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """google-cloud-container takes its proxy and authorities from the environment. The range is for four nodes with 110 pods each."""
    for name in ("HTTPS_PROXY", "REQUESTS_CA_BUNDLE", "NO_PROXY"):
        monkeypatch.setenv(name, google.environment()[name])
    gke, zone = ClusterManagerClient(credentials=Credentials(ACCESS_TOKEN), transport="rest"), f"projects/{PROJECT}/locations/us-central1-a"

    def finished(operation: Any) -> Any:
        while operation.status != Operation.Status.DONE:
            operation = gke.get_operation(name=f"{zone}/operations/{operation.name}")
        return operation

    policy = {"use_ip_aliases": True, "cluster_ipv4_cidr_block": "/22", "services_secondary_range_name": "services"}
    body = {"name": "narrow", "network": "ground", "subnetwork": "ground", "initial_node_count": 3, "ip_allocation_policy": policy}
    assert not finished(gke.create_cluster(parent=zone, cluster=body)).error.code
    name = f"{zone}/clusters/narrow"
    assert gke.get_cluster(name=name).status == Cluster.Status.RUNNING
    done = finished(gke.create_node_pool(parent=name, node_pool={"name": "more", "initial_node_count": 2}))
    assert (done.error.code, "gke-narrow-pods-" in done.error.message, "is exhausted" in done.error.message) == (8, True, True)
    with pytest.raises(exceptions.NotFound, match="clusters/absent"):
        gke.get_cluster(name=f"{zone}/clusters/absent")
