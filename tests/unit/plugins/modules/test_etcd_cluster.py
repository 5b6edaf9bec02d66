# SPDX-License-Identifier: GPL-3.0-or-later
"""etcd_cluster: what is refused, what is made, and certificates that stay as they are."""

import base64
import datetime as dt
import typing as t

import pytest
from cryptography import x509

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import revealed
from ansible_collections.muster.ml.plugins.module_utils._kube import certificates
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd import members
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd.manifests import (
    EtcdCluster,
    MemberView,
    member_view,
    problems,
    with_mutual_connections,
)
from ansible_collections.muster.ml.plugins.modules import etcd_cluster
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.tasks import actions

METRICS = """# HELP etcd_server_has_leader Whether or not a leader exists.
etcd_server_has_leader 1
etcd_server_is_leader {leads}
etcd_server_version{{server_version="3.5.35"}} 1
etcd_network_active_peers{{Local="a",Remote="b"}} 1
etcd_network_active_peers{{Local="a",Remote="c"}} {other}
"""


def run(cluster: FakeCluster, *, check: bool = False, **params: t.Any) -> dict[str, t.Any]:
    cluster.add(tasks.DISKS)
    warned: list[str] = []
    given = {"namespace": "default", **params}
    return {**tasks.run(etcd_cluster, cluster, given, check=check, warn=warned.append), "_warned": warned}


def secret(cluster: FakeCluster, name: str) -> dict[str, bytes]:
    found = cluster.get(Ref("v1", "Secret", name, "default"))
    assert found is not None
    return {key: base64.b64decode(revealed(value)) for key, value in found["data"].items()}


def args(cluster: FakeCluster) -> list[str]:
    found = cluster.get(Ref("apps/v1", "StatefulSet", "etcd", "default"))
    assert found is not None
    return t.cast("list[str]", found["spec"]["template"]["spec"]["containers"][0]["args"])


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"replicas": 2}, "Choose 1, 3 or 5"),
        ({"image": "example/etcd"}, "is not pinned"),
        ({"image": "example:5000/etcd:latest"}, "is not pinned"),
        ({"image": "example/etcd:v3.6.8", "enable_v2": True}, "no v2 API"),
        ({"replicas": 3, "storage_size": ""}, "lost its data"),
    ],
)
def test_nonsense_is_refused_before_anybody_is_asked(cluster: FakeCluster, params: dict[str, t.Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        run(cluster, **params)


PLAIN = {"client_tls": False}


def test_without_client_tls_clients_need_no_certificate_and_v2_is_off(cluster: FakeCluster) -> None:
    made = set(actions(run(cluster, network_policy=False, **PLAIN)))
    assert made == {"Secret/etcd-ca", "Secret/etcd-peer-tls", "Service/etcd", "Service/etcd-peers", "StatefulSet/etcd"}
    assert not [arg for arg in args(cluster) if "v2" in arg or arg.startswith("--client-cert")]
    assert "v2" in " ".join(args_of_v2(cluster))


def args_of_v2(cluster: FakeCluster) -> list[str]:
    run(cluster, enable_v2=True)
    return args(cluster)


@pytest.mark.parametrize("size", [1, 3])
def test_members_and_clients_talk_tls_without_a_word(cluster: FakeCluster, size: int) -> None:
    result = run(cluster, replicas=size)
    assert result["url"] == "https://etcd:2379"
    assert {"--peer-client-cert-auth=true", "--client-cert-auth=true"} <= set(args(cluster))
    assert not [arg for arg in args(cluster) if "http://" in arg and "metrics" not in arg]
    assert secret(cluster, "etcd-client-tls")["ca.crt"] == secret(cluster, "etcd-ca")["tls.crt"]


def test_client_tls_is_turned_on_where_it_is_asked_for_and_members_keep_their_claims(cluster: FakeCluster) -> None:
    run(cluster, **PLAIN)
    before = cluster.get(Ref("apps/v1", "StatefulSet", "etcd", "default"))
    changed = run(cluster, client_tls=True)
    assert actions(changed)["StatefulSet/etcd"] == "updated"
    assert changed["url"] == "https://etcd:2379"
    after = cluster.get(Ref("apps/v1", "StatefulSet", "etcd", "default"))
    assert before is not None
    assert after is not None
    assert after["spec"]["volumeClaimTemplates"] == before["spec"]["volumeClaimTemplates"]


def test_certificates_are_signed_and_good_for_their_names_only(cluster: FakeCluster) -> None:
    run(cluster, replicas=3, client_tls=True)
    authority = x509.load_pem_x509_certificate(secret(cluster, "etcd-ca")["tls.crt"])
    for name, hosts in (("peer", True), ("server", True), ("client", False)):
        data = secret(cluster, f"etcd-{name}-tls")
        leaf = x509.load_pem_x509_certificate(data["tls.crt"])
        leaf.verify_directly_issued_by(authority)
        assert data["ca.crt"] == secret(cluster, "etcd-ca")["tls.crt"]
        named = [e for e in leaf.extensions if isinstance(e.value, x509.SubjectAlternativeName)]
        assert bool(named) is hosts
        if hosts:
            assert "*.etcd-peers.default.svc" in named[0].value.get_values_for_type(x509.DNSName)


def test_a_certificate_that_ends_soon_is_renewed_by_the_same_authority(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "_LEAF_DAYS", 59)
    run(cluster, replicas=3)
    short, authority = secret(cluster, "etcd-peer-tls"), secret(cluster, "etcd-ca")
    monkeypatch.undo()
    result = run(cluster, replicas=3)
    assert actions(result)["Secret/etcd-peer-tls"] == "updated"
    assert actions(result)["StatefulSet/etcd"] == "unchanged"
    renewed = x509.load_pem_x509_certificate(secret(cluster, "etcd-peer-tls")["tls.crt"])
    assert renewed.not_valid_after_utc - dt.datetime.now(dt.UTC) > dt.timedelta(days=390)
    assert secret(cluster, "etcd-ca") == authority
    assert secret(cluster, "etcd-peer-tls") != short


def test_a_lost_authority_is_told_before_anything_is_changed_while_there_are_members(cluster: FakeCluster) -> None:
    run(cluster, replicas=3)
    cluster.remove(Ref("v1", "Secret", "etcd-ca", "default"))
    writes = len(cluster.writes)
    with pytest.raises(
        Failed, match="Secret default/etcd-ca does not exist, but certificates that it signed do: Secret default/etcd-peer-tls"
    ):
        run(cluster, replicas=3)
    assert len(cluster.writes) == writes
    # Without members, as after a first run that was cut off, a new one is made.
    cluster.remove(Ref("apps/v1", "StatefulSet", "etcd", "default"))
    assert actions(run(cluster, replicas=3))["Secret/etcd-ca"] == "created"


def test_no_key_is_in_the_result() -> None:
    result = run(FakeCluster(), replicas=3, client_tls=True)
    assert "PRIVATE" not in str(result)
    assert "BEGIN" not in str(result)


def test_members_are_taken_once(cluster: FakeCluster) -> None:
    run(cluster, replicas=3)
    with pytest.raises(InvalidInput, match="was made with the members"):
        run(cluster, replicas=5)


def test_a_connection_counts_that_one_end_knows() -> None:
    def view(own: str, active: dict[str, int]) -> MemberView:
        lines = [f'etcd_network_active_peers{{Local="{own}",Remote="{peer}"}} {on}' for peer, on in active.items()]
        return member_view(own, True, "\n".join([f'etcd_server_id{{server_id="{own}"}} 1', *lines, ""]))

    late = view("c", {"a": 0, "b": 1})
    assert late.peers == 1
    views = with_mutual_connections([view("a", {"b": 1, "c": 1}), view("b", {"a": 1, "c": 1}), late])
    assert [found.peers for found in views] == [2, 2, 2]
    cut = with_mutual_connections([view("a", {"b": 1, "c": 0}), view("b", {"a": 1, "c": 1}), late])
    assert [found.peers for found in cut] == [1, 2, 1]
    assert [found.peers for found in with_mutual_connections([late, MemberView("d", error="no answer")])] == [1, 0]


def test_members_judge_themselves() -> None:
    cluster = EtcdCluster(name="e", namespace="n", replicas=3, pod=PodSettings(image="etcd:v3.5.35"))
    good = [member_view(f"e-{i}", True, METRICS.format(leads=int(i == 0), other=1)) for i in range(3)]
    assert problems(cluster.replicas, good) == []
    assert {view.version for view in good} == {"3.5.35"}
    lonely = member_view("e-2", True, METRICS.format(leads=0, other=0))
    assert problems(cluster.replicas, [*good[:2], lonely]) == ["e-2: is connected to 1 of 2 other members"]
    ill = member_view("e-2", False, "")
    assert problems(cluster.replicas, [*good[:2], ill]) == ["e-2: says that it is not healthy"]
    assert problems(cluster.replicas, good[1:]) == ["2 of 3 members have a pod"]


@pytest.mark.parametrize("begun_again", [False, True])
def test_a_member_that_lost_its_data_is_told_at_once(cluster: FakeCluster, begun_again: bool) -> None:
    etcd_cluster_of = EtcdCluster(name="etcd", namespace="default", replicas=3, pod=PodSettings(image="etcd:v3.5.35"))
    crashed = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 2, "ready": False}
    for number in range(3):
        status = {"phase": "Running", "containerStatuses": [crashed]} if number == 1 else {"phase": "Running"}
        metadata = {"name": f"etcd-{number}", "namespace": "default", "labels": etcd_cluster_of.labels}
        cluster.add({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": status})
    lines = cluster.earlier_log_lines if begun_again else cluster.log_lines
    lines["default", "etcd-1"] = '{"msg":"member 8211f1d0f64f3269 has already been bootstrapped"}'
    with pytest.raises(Failed, match=r"member etcd-1 has lost its data.*data-etcd-1 is new and empty.*delete_data: true"):
        members.wait(cluster, etcd_cluster_of, timeout=1, progress=print)
