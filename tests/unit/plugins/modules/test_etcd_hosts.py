# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""etcd on hosts: certificates in files, and members that are asked, taken out and added. The members are web servers here."""

from __future__ import annotations

import base64
import http.server
import json
import threading
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from cryptography import x509

from ansible_collections.muster.ml.plugins.filter.etcd_members import etcd_members
from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, Unreachable, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._kube import certificates
from ansible_collections.muster.ml.plugins.modules import etcd_certificates, etcd_info, etcd_member

MEMBERS = {"etcd-a": "10.0.0.4", "etcd-b": "b.example"}
METRICS = """etcd_server_has_leader 1
etcd_server_is_leader {leads}
etcd_server_version{{server_version="3.5.35"}} 1
etcd_network_active_peers{{Local="a",Remote="b"}} 1
"""


def run(module: t.Any, *, check: bool = False, **params: t.Any) -> dict[str, t.Any]:
    given = ArgumentSpecValidator(module.ARGUMENT_SPEC, **module.CONSTRAINTS).validate(params)
    assert not given.error_messages
    return t.cast("dict[str, t.Any]", module.execute(HostContext(params=given.validated_parameters, check=check)))


# Members


def test_members_are_listed_with_their_addresses_and_urls() -> None:
    plain = {"inventory_hostname": "etcd-a"}
    remote = {"inventory_hostname": "etcd-b", "ansible_host": "10.0.0.5"}
    inner = {"inventory_hostname": "etcd-c", "ansible_host": "10.0.0.6", "etcd_address": "10.9.0.6"}
    members = etcd_members([plain, remote, inner], peer_tls=False)
    assert [member["address"] for member in members] == ["etcd-a", "10.0.0.5", "10.9.0.6"]
    assert members[2] == {
        "name": "etcd-c",
        "address": "10.9.0.6",
        "client_url": "https://10.9.0.6:2379",
        "peer_url": "http://10.9.0.6:2380",
        "initial": "etcd-c=http://10.9.0.6:2380",
    }


# Certificates


def make(folder: Path, **params: t.Any) -> dict[str, t.Any]:
    return run(etcd_certificates, directory=str(folder), members=MEMBERS, **params)


def certificate(folder: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())


def test_made_once_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "etcd"
    planned = make(folder, check=True)
    assert not folder.exists()
    made = make(folder)
    assert made["fresh"] == planned["fresh"]
    assert set(made["fresh"]) == {"ca", "client", *(f"{m}/{kind}" for m in MEMBERS for kind in ("peer", "server"))}
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    again = make(folder)
    assert (again["changed"], again["fresh"], again["fingerprints"]) == (False, [], made["fingerprints"])
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before
    assert "BEGIN" not in json.dumps(made)


def test_nobody_else_may_read_a_key(tmp_path: Path) -> None:
    make(tmp_path / "etcd")
    assert (tmp_path / "etcd").stat().st_mode & 0o077 == 0
    keys = list((tmp_path / "etcd").rglob("*.key"))
    assert len(keys) == 6
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in keys)


def test_good_for_their_member_and_no_client_passes_for_one(tmp_path: Path) -> None:
    make(tmp_path)
    peer, client = certificate(tmp_path, "etcd-a/peer"), certificate(tmp_path, "client")
    for leaf in (peer, client):
        leaf.verify_directly_issued_by(certificate(tmp_path, "ca"))
    names = peer.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.4", "127.0.0.1"]
    assert peer.subject.rfc4514_string() == "CN=etcd-peers"
    assert client.subject.rfc4514_string() == "CN=etcd-client"


def test_another_address_or_an_end_in_sight_makes_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make(tmp_path)
    moved = run(etcd_certificates, directory=str(tmp_path), members={**MEMBERS, "etcd-b": "10.0.0.5"})
    assert set(moved["fresh"]) == {"etcd-b/peer", "etcd-b/server"}
    assert moved["fingerprints"]["etcd-a"] == first["fingerprints"]["etcd-a"]
    monkeypatch.setattr(certificates, "_RENEW_DAYS", 398)
    assert "ca" not in make(tmp_path)["fresh"]


def test_hosts_keep_the_authority_that_they_trust(tmp_path: Path) -> None:
    make(tmp_path / "first")
    # As slurp tells it; a host without a certificate skipped that task.
    content = base64.b64encode((tmp_path / "first" / "ca.crt").read_bytes()).decode()
    trusted = {"etcd-a": {"content": content, "encoding": "base64"}, "etcd-b": {"skipped": True}}
    with pytest.raises(Failed, match="etcd-a trusts another certificate authority"):
        make(tmp_path / "second", trusted=trusted)
    assert make(tmp_path / "first", trusted=trusted)["fresh"] == []


# Members


class Member(http.server.ThreadingHTTPServer):
    healthy = True
    leads = 0
    known: t.ClassVar[list[dict[str, t.Any]]] = []
    asked: t.ClassVar[list[tuple[str, t.Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Member

    def log_message(self, *_args: t.Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        if self.path == "/health":
            self.answer(200 if self.server.healthy else 503, json.dumps({"health": str(self.server.healthy).lower()}))
        else:
            self.answer(200, METRICS.format(leads=self.server.leads))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verb = self.path.rpartition("/")[2]
        if verb != "list":
            self.server.asked.append((verb, body))
        self.answer(200, json.dumps({"members": self.server.known}))

    def answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture
def members() -> t.Iterator[list[Member]]:
    found = [Member(("127.0.0.1", 0), Handler) for _number in range(2)]
    threads = [threading.Thread(target=m.serve_forever, kwargs={"poll_interval": 0.01}) for m in found]
    for thread in threads:
        thread.start()
    found[0].leads = 1
    Member.asked.clear()
    Member.known[:] = [
        {"ID": "10501334649042878790", "name": "etcd-a", "peerURLs": ["https://10.0.0.4:2380"], "clientURLs": ["x"]},
        {"ID": "255", "name": "etcd-b", "peerURLs": ["https://10.0.0.5:2380"], "clientURLs": ["y"]},
    ]
    yield found
    for member, thread in zip(found, threads, strict=True):
        member.shutdown()
        thread.join()
        member.server_close()


def endpoints(members: list[Member]) -> list[str]:
    return [member.url for member in members]


def test_healthy_when_each_one_says_so(members: list[Member]) -> None:
    found = run(etcd_info, endpoints=endpoints(members), wait=True)
    assert found["problems"] == []
    assert [(row["version"], row["leads"], row["peers"]) for row in found["members"]] == [
        ("3.5.35", True, 1),
        ("3.5.35", False, 1),
    ]
    assert found["known"][0]["id"] == "91bc3c398fb3c146"


def test_what_is_wrong_is_told_by_member(members: list[Member]) -> None:
    members[1].healthy = False
    found = run(etcd_info, endpoints=[members[0].url, members[1].url, "http://127.0.0.1:1"])
    assert "/health answers 503" in found["members"][1]["error"]
    assert "127.0.0.1:1: no answer" in found["problems"][2]
    with pytest.raises(WaitTimeout, match=r"not healthy after 0 s\. .*503.*journalctl -u etcd"):
        run(etcd_info, endpoints=endpoints(members), wait=True, wait_timeout=0)


def test_some_members_need_not_be_connected(members: list[Member]) -> None:
    """Before one is restarted the others have to be healthy. They know it, so alone they are no whole cluster."""
    other = endpoints(members)[:1]
    with pytest.raises(WaitTimeout, match="connected to 1 of 0 other members"):
        run(etcd_info, endpoints=other, wait=True, wait_timeout=0)
    assert run(etcd_info, endpoints=other, wait=True, wait_timeout=0, connected=False)["members"][0]["healthy"]
    members[0].healthy = False
    with pytest.raises(WaitTimeout, match="/health answers 503"):
        run(etcd_info, endpoints=other, wait=True, wait_timeout=0, connected=False)


def replace(members: list[Member], **params: t.Any) -> dict[str, t.Any]:
    desired = {"name": "etcd-b", "peer_url": "https://10.0.0.5:2380", "state": "replaced"}
    return run(etcd_member, endpoints=endpoints(members), **{**desired, **params})


def test_a_lost_member_is_taken_out_and_may_join_again(members: list[Member]) -> None:
    assert replace(members, check=True)["actions"] == ["remove ff", "add https://10.0.0.5:2380"]
    assert Member.asked == []
    assert replace(members)["changed"]
    assert Member.asked == [("remove", {"ID": "255"}), ("add", {"peerURLs": ["https://10.0.0.5:2380"]})]


def test_one_that_has_not_joined_yet_is_left_alone(members: list[Member]) -> None:
    Member.known[1] = {"ID": "256", "peerURLs": ["https://10.0.0.5:2380"]}
    assert not replace(members)["changed"]
    assert replace(members, state="absent")["actions"] == ["remove 100"]


def test_who_is_there_stays_and_who_is_not_needs_no_removal(members: list[Member]) -> None:
    assert not replace(members, state="present")["changed"]
    assert not replace(members, state="absent", name="etcd-x", peer_url=None)["changed"]


def test_nobody_answers() -> None:
    with pytest.raises(Unreachable, match="Is a majority of them running"):
        run(etcd_member, endpoints=["http://127.0.0.1:1"], name="a", peer_url="http://127.0.0.1:2380")
