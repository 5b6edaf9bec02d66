# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings about states that the cluster of tests/faults/test_doctor.py does not get into, by the fields that Kubernetes documents."""

from __future__ import annotations

import datetime as dt
import json
import sys
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden
from ansible_collections.muster.ml.plugins.module_utils._doctor.diagnosis import diagnose
from ansible_collections.muster.ml.plugins.module_utils._doctor.findings import Finding, folded
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Listing, Manifest, ServedKind
from ansible_collections.muster.ml.plugins.module_utils._kube.secret_text import encoded
from ansible_collections.muster.ml.plugins.module_utils._pod_programs.elastic_launch import LOG_PREFIX
from ansible_collections.muster.ml.plugins.modules.doctor import SYSTEMS
from ansible_collections.muster.ml.tests.unit.fakes.certificates import Signed, signed
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

OLD = "2026-01-01T00:00:00Z"
PEM_KEY = signed("x").key_pem()
OVER, SOON = "certificate has expired", "certificate expires soon"


def thing(api_version: str, kind: str, name: str, **more: t.Any) -> Manifest:
    metadata: Manifest = {"name": name, "uid": name, "creationTimestamp": OLD, **more.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {}, **more}


def pod(name: str = "p", *, owner: str = "", **status: t.Any) -> Manifest:
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner, "controller": True}] if owner else []
    metadata = {"namespace": "ml", "ownerReferences": owners}
    return thing("v1", "Pod", name, metadata=metadata, spec={"nodeName": "n"}, status={"phase": "Running", **status})


def condition(kind: str, status: str, reason: str = "", message: str = "") -> Manifest:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": OLD}


def waiting(reason: str, message: str = "") -> Manifest:
    return {"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": reason, "message": message}}}]}


NODE = thing("v1", "Node", "n", status={"conditions": [condition("Ready", "True")]})
# The message of containerd 2 for a repository that the registry does not have (recorded on the cluster of check registry).
REFUSED = 'failed to pull and unpack image "r/x:1": failed to resolve image: r/x:1: not found'


@pytest.mark.parametrize(
    ("item", "cause"),
    [
        (pod(**waiting("ImagePullBackOff", REFUSED)), "image is refused by its registry"),
        (pod(**waiting("CreateContainerConfigError", "container has runAsNonRoot and image will run as root (pod: \"a\")")),
         "image runs as root, which the pod forbids"),
        (pod(phase="Failed", conditions=[condition("DisruptionTarget", "True", "PreemptionByScheduler", "for a higher one")]), "preempted"),
        (pod(phase="Failed", conditions=[condition("DisruptionTarget", "True", "DeletionByPodGC")]), "ended with its node"),
        (pod(phase="Failed", reason="NodeAffinity", message="Pod was rejected"), "refused by its node (NodeAffinity)"),
        (thing("v1", "Node", "m", status={"conditions": [condition("Ready", "True"), condition("DiskPressure", "True", "Full")]}),
         "node has DiskPressure"),
        (thing("v1", "PersistentVolumeClaim", "c", metadata={"namespace": "ml"}, spec={}, status={"phase": "Pending"}),
         "there is no default storage class"),
        (thing("jobset.x-k8s.io/v1alpha2", "JobSet", "j", metadata={"namespace": "ml"},
               status={"conditions": [condition("Failed", "True", "FailedJobs", "jobset failed")]}), "training has failed"),
        (thing("kueue.x-k8s.io/v1beta2", "LocalQueue", "q", metadata={"namespace": "ml"},
               status={"conditions": [condition("Active", "False", "ClusterQueueDoesNotExist")]}), "queue admits nothing"),
        (thing("kueue.x-k8s.io/v1beta2", "Workload", "w", metadata={"namespace": "ml"},
               status={"conditions": [condition("QuotaReserved", "False", "Pending", "insufficient quota")]}), "waits in its queue"),
        (thing("gateway.networking.k8s.io/v1", "Gateway", "g", metadata={"namespace": "ml"},
               status={"conditions": [condition("Accepted", "False", "InvalidParameters")]}), "Gateway is not in effect"),
        (thing("v1", "Namespace", "ml", metadata={"deletionTimestamp": OLD}, status={"phase": "Terminating"}), "stays in deletion"),
    ],
)  # fmt: skip
def test_a_state_is_one_finding(item: Manifest, cause: str, cluster: FakeCluster) -> None:
    cluster.default_class = False
    cluster.kinds_served[item["apiVersion"], item["kind"]] = ServedKind(f"{item['kind'].lower()}s", "namespace" in item["metadata"])
    assert [one.cause for one in found(cluster, item)] == [cause]


def found(cluster: FakeCluster, *items: Manifest) -> list[Finding]:
    """The findings but those about the DNS of the fake, which has none; and nothing that could not be read."""
    cluster.add(NODE, *items)
    told, unread = diagnose(cluster, "ml", [], SYSTEMS)
    assert unread == []
    return [one for one in told if "DNS" not in one.cause]


def test_pods_of_a_job_that_has_succeeded_are_in_order(cluster: FakeCluster) -> None:
    cluster.add(thing("batch/v1", "Job", "j", metadata={"namespace": "ml"}, status={"conditions": [condition("Complete", "True")]}))
    assert found(cluster, pod(owner="j", phase="Failed"), pod("q", phase="Succeeded")) == []


def test_equal_findings_of_one_workload_are_one() -> None:
    row = {"severity": "error", "cause": "failed", "evidence": "x", "next": "y", "group": "Job j"}
    pods = [Finding(object=f"Pod ml/p-{number}", **row) for number in range(3)]  # type: ignore[arg-type]
    assert [one.object for one in folded(pods)] == ["Pod ml/p-0 and 2 more"]


def test_what_may_not_be_read_is_named_and_not_judged(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_api_version: str, kind: str, *_more: t.Any) -> Listing:
        if kind in allowed:
            return Listing()
        raise Forbidden(f"The user may not list {kind}.")

    allowed = {"Pod"}
    monkeypatch.setattr(cluster, "list", refuse)
    findings, unread = diagnose(cluster, "ml", [])
    assert findings == []
    assert {"The user may not list Node.", "The user may not list Secret."} <= set(unread)
    allowed.clear()
    with pytest.raises(Forbidden, match="Pod"):
        diagnose(cluster, "ml", [])


def test_clocks_are_compared_with_the_api_server(cluster: FakeCluster) -> None:
    now = dt.datetime.now(dt.UTC)
    stored, renewed = now.isoformat(), (now + dt.timedelta(minutes=7)).isoformat()
    metadata = {"namespace": "kube-node-lease", "managedFields": [{"manager": "kubelet", "time": stored}]}
    lease = thing("coordination.k8s.io/v1", "Lease", "n", metadata=metadata, spec={"renewTime": renewed})
    assert [(one.object, one.evidence) for one in found(cluster, lease)] == [("Node n", "420 s ahead of the API server")]


def ago(seconds: float) -> dt.datetime:
    return dt.datetime.now(dt.UTC) - dt.timedelta(seconds=seconds)


def year(left: int, by: Signed | None = None) -> str:
    """A certificate (PEM) for a year, of which so many days are left."""
    return signed("x", by, days=left, life=365).pem


def secret(name: str = "s", **data: str) -> Manifest:
    return thing("v1", "Secret", name, metadata={"namespace": "ml"}, data=encoded({key.replace("_", "."): data[key] for key in data}))


TIMES = [(365, 31, ""), (365, 29, SOON), (90, 19, ""), (90, 17, SOON), (1, 1, ""), (365, -1, OVER)]


@pytest.mark.parametrize(("life", "left", "cause"), TIMES)
def test_a_certificate_is_told_in_time(life: int, left: int, cause: str, cluster: FakeCluster) -> None:
    told = found(cluster, secret(tls_crt=signed("x", days=left, life=life).pem, tls_key=PEM_KEY))
    assert [(one.object, one.cause) for one in told] == ([("Secret ml/s", cause)] if cause else [])


def test_of_a_bundle_one_certificate_has_to_be_valid_and_of_a_server_its_own(cluster: FakeCluster) -> None:
    old, new, by = year(-1), year(300), signed("authority", ca=True)
    neither, both = secret("c", b_pem=PEM_KEY, c_crt="x"), secret("a", ca_crt=old + new, tls_crt=year(300, by) + old)
    told = found(cluster, both, secret("b", tls_crt=year(-1, by) + new), neither)
    assert [(one.object, one.cause) for one in told] == [("Secret ml/b", OVER)]


def test_a_certificate_in_several_objects_is_one_finding_and_a_key_is_in_none(cluster: FakeCluster) -> None:
    old = year(2)
    cluster.certificates = {"client certificate": year(2), "ca certificate": None}
    (ours, folded) = found(cluster, secret("a", ca_crt=old, tls_key=PEM_KEY, both_pem=PEM_KEY + old), secret("b", ca_crt=old))
    assert (folded.object, ours.object) == ("kubeconfig of https://fake:6443", "Secret ml/a and 1 more")
    assert not any(line in str((ours, folded)) for line in PEM_KEY.splitlines())


def test_without_the_library_certificates_are_not_judged(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.x509", None)
    cluster.add(secret(tls_crt=year(-1)))
    told, unread = diagnose(cluster, "ml", [], SYSTEMS)
    assert not [one for one in told if "certificate" in one.cause]
    assert unread == ["Certificates are not judged: the Python library cryptography is not installed."]


def test_as_much_is_asked_about_two_hundred_pods_as_about_two() -> None:
    ended = {"terminated": {"exitCode": 3, "reason": "Error", "finishedAt": "2026-01-01T00:00:00Z"}}
    asked = []
    for number in (2, 200):
        cluster = FakeCluster()
        cluster.log_lines["ml", "p000"] = "no data\n"
        rows = [pod(f"p{row:03}", owner="j", phase="Failed", containerStatuses=[{"name": "main", "state": ended}]) for row in range(number)]
        (told,) = found(cluster, *rows)
        assert told.evidence == "container main: Error (exit status 3); its log ends with: no data"
        asked.append(sorted((request.verb, str(request.ref)) for request in cluster.requests))
    assert asked[0] == asked[1]
    assert [verb for verb, _ref in asked[0]].count("logs") == 1


@pytest.mark.parametrize(("code", "told"), [(3, "main: Error (exit status 3)"), (0, "a-proxy: Error (exit status 143)")])
def test_a_failed_pod_is_told_by_its_main_container_unless_that_has_not_failed(code: int, told: str) -> None:
    """A sidecar is ended after it."""
    ends = {"a-proxy": (143, "2026-01-01T00:00:09Z"), "main": (code, "2026-01-01T00:00:00Z")}
    state = {name: {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": at}} for name, (code, at) in ends.items()}
    failed = pod(phase="Failed", containerStatuses=[{"name": name, "state": state[name]} for name in ends])
    failed["spec"]["containers"] = [{"name": "main"}, {"name": "a-proxy"}]
    (finding,) = found(FakeCluster(), failed)
    assert finding.evidence == f"container {told}"


def nats(*ready: int, size: int = 3) -> list[Manifest]:
    """A NATS cluster with servers that are ready since so many seconds."""
    labels = {"app": "nats", "nats_cluster": "n"}
    rows = [pod(f"n-{number}", conditions=[condition("Ready", "True")]) for number in range(len(ready))]
    for row, since in zip(rows, ready, strict=True):
        row["metadata"]["labels"] = labels
        row["status"]["conditions"][0]["lastTransitionTime"] = ago(since).isoformat()
    spec = {"replicas": size, "template": {"metadata": {"labels": labels}}}
    return [thing("apps/v1", "StatefulSet", "n", metadata={"namespace": "ml"}, spec=spec, status={"replicas": size}), *rows]


ONE = "routes to 1 of 2 other servers"
ROUTES = [([2, 2, 2], 90, ""), ([2, 1, 1], 90, f"n-1: {ONE}; n-2: {ONE}"), ([2, 1, 1], 0, ""),
          ([1, 1], 90, f"2 of 3 servers have a pod; n-0: {ONE}; n-1: {ONE}")]  # fmt: skip


@pytest.mark.parametrize(("routes", "youngest", "evidence"), ROUTES)
def test_routes_are_counted_when_all_servers_are_ready(routes: list[int], youngest: int, evidence: str, cluster: FakeCluster) -> None:
    for number, others in enumerate(routes):
        cluster.proxy["ml", f"n-{number}", 8222, "/varz"] = (200, json.dumps({"remotes": others}))
    ready = [*[90] * (len(routes) - 1), youngest]
    assert [one.evidence for one in found(cluster, *nats(*ready))] == ([evidence] if evidence else [])


def test_a_nats_server_that_may_not_be_asked_is_named(cluster: FakeCluster) -> None:
    cluster.add(NODE, *nats(90, size=1))
    assert diagnose(cluster, "ml", [], SYSTEMS)[1] == ["NATS server n-0: /varz answers 503: no such endpoint"]


def worker(name: str, started: int, gave_up: str = "", *, backend: str) -> Manifest:
    """A pod of an elastic training that runs since so many seconds, or has given up."""
    state: Manifest = {"running": {"startedAt": ago(started).isoformat()}}
    if gave_up:
        state = {"terminated": {"exitCode": 1, "message": gave_up, "reason": "Error", "finishedAt": ago(0).isoformat()}}
    row = pod(name, phase="Failed" if gave_up else "Running", containerStatuses=[{"name": "main", "state": state}])
    row["metadata"]["labels"] = {"muster.ml/elastic-job": "e"}
    conf = {"PET_NNODES": "2:4", "PET_RDZV_BACKEND": backend, "PET_RDZV_ENDPOINT": "etcd:2379", "PET_RDZV_CONF": "join_timeout=300,x=1"}
    row["spec"]["containers"] = [{"name": "main", "env": [{"name": key, "value": value} for key, value in conf.items()]}]
    return row


UNREACHABLE, APART = "rendezvous does not answer", "pods of the training do not meet"


@pytest.mark.parametrize(
    ("backend", "pods", "events", "cause"),
    [
        ("c10d", [("a", 200)], [], ""),
        ("c10d", [("a", 400)], [], APART),
        ("c10d", [("busy", 900)], [], ""),
        ("c10d", [("a", 400), ("b", 400)], [(390, "rendezvous", "")], ""),
        ("c10d", [("a", 900)], [(800, "rendezvous", ""), (700, "membership", ""), (100, "rendezvous_lost", "")], APART),
        ("c10d", [("a", 900)], [(800, "rendezvous", ""), (200, "membership", "")], ""),
        ("c10d", [("a", 900)], [(900, "rendezvous_lost", ""), (800, "rendezvous", "")], ""),
        ("c10d", [("a", 5), ("b", 0, "the rendezvous at a:1 did not answer for 300 s: refused")], [], APART),
        ("c10d", [("b", 0, "the rendezvous that this pod hosts was lost")], [], APART),
        ("c10d", [("b", 0, "the script failed more often than max_restarts allows")], [], ""),
        ("c10d", [("a", 200)], [(190, "waiting", "a-0: refused")], ""),
        ("c10d", [("a", 400)], [(390, "waiting", "a-0: refused")], APART),
        ("etcd-v2", [("a", 200)], [(190, "waiting", "etcd:2379: refused")], UNREACHABLE),
        ("etcd-v2", [("a", 200)], [(190, "waiting", ""), (150, "rendezvous_reachable", "")], ""),
        ("etcd-v2", [("a", 900)], [(800, "rendezvous", ""), (10, "rendezvous_unreachable", "")], ""),
        ("etcd-v2", [("a", 900)], [(800, "rendezvous", ""), (90, "rendezvous_unreachable", "")], UNREACHABLE),
    ],
)
def test_a_rendezvous_is_judged_by_what_the_launcher_logs(
    backend: str, pods: list[t.Any], events: list[tuple[int, str, str]], cause: str, cluster: FakeCluster
) -> None:
    lines = [{"event": event, "time": ago(since).timestamp(), "index": 0, "reason": reason} for since, event, reason in events]
    cluster.log_lines["ml", "a"] = "".join(f"{LOG_PREFIX}{json.dumps(line)}\n" for line in lines)
    cluster.log_lines["ml", "busy"] = "a step\n" * 400
    told = [one for one in found(cluster, *(worker(*row, backend=backend) for row in pods)) if one.object == "Training ml/e"]
    assert [one.cause for one in told] == ([cause] if cause else [])
    assert all(event[2] in one.evidence for one in told for event in events)
