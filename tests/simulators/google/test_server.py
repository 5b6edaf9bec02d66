# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulator itself: who gets in, what a request has to look like, what is noted, and that nothing outside can be reached."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from google.auth.exceptions import RefreshError
from google.auth.transport.requests import AuthorizedSession, Request
from google.oauth2.credentials import Credentials
from google.oauth2.service_account import Credentials as Account

from simulators.google.client import ACCESS_TOKEN, CALLER, PROJECT, Simulator

COMPUTE = f"https://compute.googleapis.com/compute/v1/projects/{PROJECT}"
GKE = f"https://container.googleapis.com/v1/projects/{PROJECT}/locations/us-central1/clusters"
STORAGE = "https://storage.googleapis.com/storage/v1"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"


def session(google: Simulator, credentials: Any) -> AuthorizedSession:
    """google-auth, which fetches its token through the proxy as well."""
    plain = requests.Session()
    plain.trust_env, plain.proxies, plain.verify = False, {"https": google.url}, str(google.ca)
    made = AuthorizedSession(credentials, auth_request=Request(plain))
    made.trust_env, made.proxies, made.verify = False, plain.proxies, plain.verify
    return made


def test_a_service_account_and_a_user_get_tokens(google: Simulator) -> None:
    account = Account.from_service_account_file(str(google.folder / "service_account.json"), scopes=[SCOPE])
    row = json.loads((google.folder / "user.json").read_text(encoding="utf-8"))
    person = Credentials(
        None, refresh_token=row["refresh_token"], token_uri="https://oauth2.googleapis.com/token", client_id=row["client_id"],
        client_secret=row["client_secret"],
    )  # fmt: skip
    for one in (account, person):
        assert session(google, one).get(f"{COMPUTE}/global/networks").status_code == 200
        assert one.token not in (None, ACCESS_TOKEN)


def test_who_proves_nothing_gets_no_token(google: Simulator) -> None:
    key = json.loads((google.folder / "service_account.json").read_text(encoding="utf-8"))
    other = Account.from_service_account_info({**key, "client_email": f"other@{PROJECT}.iam.gserviceaccount.com"}, scopes=[SCOPE])
    with pytest.raises(RefreshError, match="Invalid JWT: issuer or audience"):
        session(google, other).get(f"{COMPUTE}/global/networks")
    with pytest.raises(RefreshError, match="Invalid OAuth scope"):
        session(google, Account.from_service_account_info(key, scopes=[""])).get(f"{COMPUTE}/global/networks")


def test_a_wrong_token_is_refused(google: Simulator, reader: Any) -> None:
    answer = reader.raw("GET", f"{COMPUTE}/global/networks", headers={"Authorization": "Bearer wrong"})
    assert answer.status_code == 401
    assert answer.json()["error"]["errors"][0]["reason"] == "authError"


def test_other_hosts_are_refused_and_noted(google: Simulator) -> None:
    google.clear()
    for url in ("https://example.com/", "https://pubsub.googleapis.com/v1/x", "https://storage.googleapis.com.evil.example/"):
        with pytest.raises(requests.exceptions.ProxyError, match="403 Forbidden"):
            requests.get(url, proxies={"https": google.url}, verify=str(google.ca), timeout=30)
    plain = requests.get("http://metadata.google.internal/", proxies={"http": google.url}, timeout=30)
    assert (plain.status_code, "does not stand for metadata.google.internal" in plain.text) == (403, True)
    assert google.strangers() == ["example.com", "pubsub.googleapis.com", "storage.googleapis.com.evil.example", "metadata.google.internal"]
    assert google.attempts() == []


def test_its_certificates_are_good_for_who_has_the_authority_only(google: Simulator) -> None:
    for host in ("compute", "container", "storage", "oauth2"):
        url = f"https://{host}.googleapis.com/"
        assert requests.get(url, proxies={"https": google.url}, verify=str(google.ca), timeout=30).status_code in (400, 404)
    with requests.Session() as stranger:
        stranger.trust_env, stranger.proxies = False, {"https": google.url}
        with pytest.raises(requests.exceptions.SSLError):
            stranger.get("https://compute.googleapis.com/")


UNFIT = [
    ("unknown name", "POST", f"{COMPUTE}/global/networks", {"name": "n", "autoCreateSubnetworks": False, "typo": 1},
     "Unknown name \"typo\" at 'resource': Cannot find field."),
    ("unknown name inside", "POST", GKE, {"cluster": {"name": "c", "nodePools": [{"config": {"workloadMetaConfig": {}}}]}},
     "Unknown name \"workloadMetaConfig\" at 'cluster.node_pools[0].config': Cannot find field."),
    ("unknown choice", "POST", GKE, {"cluster": {"name": "c", "releaseChannel": {"channel": "FAST"}}},
     "Invalid value at 'cluster.release_channel.channel'"),
    ("unknown choice of compute", "POST", f"{COMPUTE}/global/firewalls", {"name": "f", "direction": "UP"},
     "Invalid value for field 'resource.direction': 'UP'"),
    ("text for a number", "POST", GKE, {"cluster": {"initialNodeCount": "three"}},
     "Invalid value at 'cluster.initial_node_count' (TYPE_INT32)"),
    ("text for a truth", "POST", f"{COMPUTE}/global/networks", {"name": "n", "autoCreateSubnetworks": "no"}, "(TYPE_BOOL)"),
    ("one for many", "POST", GKE, {"cluster": {"locations": "us-central1-a"}}, "Invalid value at 'cluster.locations' (repeated)"),
    ("text for a message", "POST", GKE, {"cluster": {"releaseChannel": "STABLE"}}, "Invalid value at 'cluster.release_channel'"),
    ("unknown parameter", "GET", f"{COMPUTE}/global/networks?colour=red", None, "Unknown name \"colour\": Cannot bind query parameter."),
    ("a name's form", "POST", f"{COMPUTE}/global/networks", {"name": "Upper", "autoCreateSubnetworks": False}, "Must be a match of regex"),
    ("a name that is missing", "POST", f"{COMPUTE}/global/networks", {"autoCreateSubnetworks": False}, "Required field 'resource.name'"),
]  # fmt: skip


@pytest.mark.parametrize(("verb", "url", "body", "message"), [row[1:] for row in UNFIT], ids=[row[0] for row in UNFIT])
def test_what_does_not_fit_the_schema_is_refused(reader: Any, verb: str, url: str, body: Any, message: str) -> None:
    status, _reason, text = reader.refused(verb, url, body)
    assert (status, message in text) == (400, True), text


def test_cloud_storage_ignores_names_that_it_does_not_know(reader: Any) -> None:
    """google.cloud's gcp_storage_bucket sends `project` on DELETE."""
    reader.write("POST", f"{STORAGE}/b?project={PROJECT}&typo=1", {"name": "muster-odd-names", "unheardOf": {"x": 1}})
    assert "unheardOf" not in reader.get(f"{STORAGE}/b/muster-odd-names")
    assert reader.raw("DELETE", f"{STORAGE}/b/muster-odd-names?project={PROJECT}").status_code == 204


def test_what_the_simulator_lacks_says_so(reader: Any) -> None:
    status, _reason, message = reader.refused("POST", f"{COMPUTE}/global/sslCertificates", {"name": "x"})
    assert (status, message) == (501, "the simulator does not answer compute.sslCertificates.insert")


def test_a_partial_response_has_no_more_than_was_asked_for(reader: Any) -> None:
    reader.write("POST", f"{COMPUTE}/global/networks", {"name": "partial", "autoCreateSubnetworks": False})
    found = reader.get(f"{COMPUTE}/global/networks?fields=items(name,routingConfig/routingMode)&filter=name=partial")
    assert found == {"items": [{"name": "partial", "routingConfig": {"routingMode": "REGIONAL"}}]}


def test_the_journal_tells_attempts_from_writes_and_reads(google: Simulator, reader: Any) -> None:
    google.clear()
    body = {"name": "noted", "autoCreateSubnetworks": False}
    reader.write("POST", f"{COMPUTE}/global/networks", body)
    assert reader.refused("POST", f"{COMPUTE}/global/networks", body)[:2] == (409, "alreadyExists")
    reader.begin("POST", f"https://cloudresourcemanager.googleapis.com/v1/projects/{PROJECT}:getIamPolicy", {})
    assert google.writes() == ["compute:networks.insert"]
    assert google.attempts() == ["compute:networks.insert"] * 2
    google.clear()
    assert google.ask("requests") == []


def test_nothing_is_left_after_a_reset(tmp_path: Path) -> None:
    simulator = Simulator(tmp_path)
    try:
        before = simulator.ask("holdings")
        simulator.enable()
        simulator.permissions([])
        answer = requests.get(
            f"{COMPUTE}/global/networks", proxies={"https": simulator.url}, verify=str(simulator.ca), timeout=30,
            headers={"Authorization": f"Bearer {ACCESS_TOKEN}"},
        )  # fmt: skip
        assert answer.status_code == 403
        simulator.reset()
        assert simulator.ask("holdings") == before
        assert list(before) == ["services", "bindings"]
        assert list(before["services"]) == ["serviceusage.googleapis.com"]
    finally:
        simulator.stop()


def test_permissions_are_told_as_each_service_tells_them(google: Simulator, reader: Any) -> None:
    """Google names the permission that is missing, and what it is missing for, each service in its own words."""
    google.permissions(["compute.networks.*", "serviceusage.*"])

    def refused(verb: str, url: str, body: Any = None) -> str:
        answer = reader.raw(verb, url, json=body)
        assert answer.status_code == 403, answer.text
        return str(answer.json()["error"]["message"])

    try:
        subnet = f"{COMPUTE}/regions/us-central1/subnetworks"
        wanted = f"Required 'compute.subnetworks.create' permission for 'projects/{PROJECT}/regions/us-central1/subnetworks'"
        assert refused("POST", subnet, {"name": "s"}) == wanted
        wanted = f'Required "container.clusters.create" permission(s) for "projects/{PROJECT}/locations/us-central1".'
        assert refused("POST", GKE, {"cluster": {"name": "c"}}) == wanted
        text = refused("POST", f"{STORAGE}/b?project={PROJECT}", {"name": "some-bucket"})
        assert text.startswith(f"{CALLER} does not have storage.buckets.create access to the Google Cloud project.")
        accounts = f"https://iam.googleapis.com/v1/projects/{PROJECT}/serviceAccounts"
        assert "Permission 'iam.serviceAccounts.create' denied on resource" in refused("POST", accounts, {"accountId": "account-x"})
        policy = f"https://cloudresourcemanager.googleapis.com/v1/projects/{PROJECT}:setIamPolicy"
        assert refused("POST", policy, {"policy": {}}) == "The caller does not have permission"
    finally:
        google.permissions(None)


def test_the_environment_leads_nowhere_else(google: Simulator) -> None:
    """What a process with this environment asks goes to the simulator, by requests and by what else uses the system's certificates."""
    program = (
        "import requests, urllib.request\n"
        "print(requests.get('https://compute.googleapis.com/nothing').status_code)\n"
        "try:\n    urllib.request.urlopen('https://storage.googleapis.com/nothing')\nexcept OSError as error:\n    print(error.code)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env=google.environment(), capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["404", "404"]
