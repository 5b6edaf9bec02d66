# SPDX-License-Identifier: GPL-3.0-or-later
"""Each kind of fault of doctor.yml is made for real, and the doctor names its cause; of a cluster in order it says nothing."""

import contextlib
import datetime as dt
import importlib
import itertools
import re
import typing as t
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from ansible_collections.muster.ml.plugins.module_utils._core.clock import SYSTEM_CLOCK, Deadline
from ansible_collections.muster.ml.plugins.module_utils._core.errors import NotFound
from ansible_collections.muster.ml.plugins.module_utils._core.waiting import fixed_interval, last_answer, wait_for
from ansible_collections.muster.ml.plugins.module_utils._doctor import certificates, workloads
from ansible_collections.muster.ml.plugins.module_utils._doctor.diagnosis import diagnose
from ansible_collections.muster.ml.plugins.module_utils._doctor.findings import Finding
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref, ref_of
from ansible_collections.muster.ml.plugins.module_utils._kube.secret_text import encoded
from ansible_collections.muster.ml.plugins.module_utils._systems.nats import servers as nats
from ansible_collections.muster.ml.plugins.modules import doctor
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.certificates import signed


def certificate(days: re.Match[str]) -> str:
    return encoded({"": signed("doctor.example", days=int(days[1]), life=365).pem})[""]


TEXT = Path(__file__).with_name("doctor.yml").read_text(encoding="utf-8")
FAULTS: list[dict[str, t.Any]] = yaml.safe_load(re.sub(r"certificate (-?\d+)", certificate, TEXT))
PLACE = "muster-doctor"
WITHIN = 450.0
"""Seconds in which Kubernetes reports all of the faults on a busy machine: pauses between attempts of Jobs and containers are longest."""
IMAGE = "muster.local/tools:1.35.0"
VERSIONS = {"Pod": "v1", "Job": "batch/v1"}
WELL = {"app": "well"}
SERVERS: dict[str, dict[str, t.Any]] = {
    "nats_cluster": {"name": "nats", "image": "muster.local/nats:2.15.2", "replicas": 2},
    "rabbitmq_cluster": {"image": "muster.local/rabbitmq:4.0.5", "storage_size": "256Mi", "disk_free_limit": "50MB",
                         "resources": {"limits": {"memory": "512Mi"}}},
}  # fmt: skip
"""Modules that make servers in order, with their options."""


def of_fault(fault: Mapping[str, t.Any]) -> Iterator[Manifest]:
    """The objects that make the fault, without a namespace."""
    yield from fault.get("objects", ())
    if "object" in fault:
        return
    container = {"name": "main", "image": IMAGE, "command": ["sleep", "600"], **fault.get("container", {})}
    metadata = {"name": fault["name"], "labels": {"app": fault["name"]}, **fault.get("metadata", {})}
    spec: Manifest = {"terminationGracePeriodSeconds": 0, "containers": [container], **fault.get("pod", {})}
    if "workload" not in fault:
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        return
    kind, template = fault["workload"], {"metadata": {"labels": metadata["labels"]}, "spec": spec}
    selector = {} if kind == "Job" else {"selector": {"matchLabels": metadata["labels"]}}
    if kind == "Job":
        spec["restartPolicy"] = "Never"
    version = VERSIONS.get(kind, "apps/v1")
    yield {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {"template": template, **selector, **fault.get("spec", {})}}


def run(cluster: HttpCluster, name: str, options: Mapping[str, t.Any]) -> None:
    """Run a module of ours."""
    tasks.run(importlib.import_module(f"{doctor.__package__}.{name}"), t.cast(t.Any, cluster), dict(options))


def place_of(fault: Mapping[str, t.Any]) -> str:
    return f"{PLACE}-{fault['name']}" if "place" in fault else PLACE


def create(cluster: HttpCluster, item: Manifest, namespace: str) -> Ref:
    """Create it, in the namespace where its kind has one."""
    served = cluster.resource(item["apiVersion"], item["kind"])
    if served and served.namespaced and "namespace" not in item["metadata"]:
        item = {**item, "metadata": {**item["metadata"], "namespace": namespace}}
    return ref_of(cluster.apply(item, dry_run=False, force_conflicts=True))


def place(cluster: HttpCluster, name: str, labels: Mapping[str, str] | None = None) -> Ref:
    return create(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}}, "")


def make(cluster: HttpCluster, fault: Mapping[str, t.Any]) -> list[Ref]:
    """Make the fault; return what was created."""
    home, made = place_of(fault), list[Ref]()
    if "place" in fault:
        made.append(place(cluster, home, fault["place"].get("labels")))
    made += [create(cluster, item, home) for item in fault.get("place", {}).get("objects", ())]
    made += [create(cluster, item, home) for item in of_fault(fault)]
    if "module" in fault:
        run(cluster, fault["module"], {"namespace": home, "wait": False, **fault["options"]})
        # The controller of a Job that goes with its namespace leaves its finalizer on pods for as long as it waits with the next ones.
        made += [Ref("batch/v1", "Job", fault["options"]["name"], home)] if fault["module"] == "elastic_job" else []
    if "status" in fault:
        cluster.patch(made[-1], {"status": fault["status"]}, subresource="status", dry_run=False)
    if fault.get("delete"):
        cluster.delete(made[-1], dry_run=False)
    return made


def lose(cluster: HttpCluster, name: str) -> None:
    """Delete a volume that a claim is bound to, past its protection."""
    ref = Ref("v1", "PersistentVolume", name)
    found = cluster.get(ref)
    if found and found["status"].get("phase") == "Bound":
        cluster.delete(ref, dry_run=False)
        cluster.patch(ref, {"metadata": {"finalizers": None}}, dry_run=False)


@pytest.fixture(scope="module")
def well(cluster: HttpCluster) -> Iterator[str]:
    """A namespace with servers and a Job that are in order."""
    ref = place(cluster, PLACE)
    for fault in ({"name": "well", "workload": "Deployment"}, {"name": "done", "workload": "Job", "container": {"command": ["true"]}}):
        make(cluster, fault)
    create(
        cluster,
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "well"}, "spec": {"selector": WELL, "ports": [{"port": 80}]}},
        PLACE,
    )
    for name, options in SERVERS.items():
        run(cluster, name, {"namespace": PLACE, "wait": True, "wait_timeout": int(WITHIN), **options})

    def observe() -> tuple[None, str | None]:
        server, job = (cluster.get(Ref(*of, PLACE)) or {} for of in (("apps/v1", "Deployment", "well"), ("batch/v1", "Job", "done")))
        works = server.get("status", {}).get("availableReplicas") and job.get("status", {}).get("succeeded")
        return None, None if works else "the server or the Job is not ready"

    wait_for(observe, goal="in order", deadline=Deadline(WITHIN, SYSTEM_CLOCK), pause=fixed_interval(0.5, SYSTEM_CLOCK))
    yield PLACE
    cluster.delete(ref, dry_run=False)


@pytest.fixture
def broken(cluster: HttpCluster, well: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Finding]]:
    """What the doctor says of all faults, once it says no more."""
    monkeypatch.setattr(workloads, "_ADDRESS", 20.0)
    made = list[Ref]()
    try:
        for fault in FAULTS:
            made += make(cluster, fault)
        yield last_answer(lambda: look(cluster), deadline=Deadline(WITHIN, SYSTEM_CLOCK), pause=fixed_interval(3.0, SYSTEM_CLOCK))
    finally:
        with contextlib.suppress(NotFound):
            cluster.patch(Ref("v1", "Pod", "finalizer", well), {"metadata": {"finalizers": None}}, dry_run=False)
        for ref in reversed(made):
            cluster.delete(ref, dry_run=False)


def look(cluster: HttpCluster) -> tuple[list[Finding], str | None]:
    """The findings, and which faults are not among them, or what else is."""
    for fault in FAULTS:
        if "lose" in fault:
            lose(cluster, fault["lose"])
    places = sorted({place_of(fault) for fault in FAULTS})
    found = list(itertools.chain.from_iterable(diagnose(cluster, name, [], doctor.SYSTEMS)[0] for name in places))
    missing = [f"{fault['cause']} ({named(fault)})" for fault in FAULTS if not told(fault, found)]
    return found, ", ".join([*missing, *sorted(more(found))]) or None


def more(found: list[Finding]) -> set[str]:
    """Causes that no fault has."""
    return {one.cause for one in found} - {fault["cause"] for fault in FAULTS}


def named(fault: Mapping[str, t.Any]) -> str:
    return str(fault.get("object") or f"{fault.get('workload', 'Pod')}/{fault['name']}")


def told(fault: Mapping[str, t.Any], found: list[Finding]) -> list[Finding]:
    """The findings about the object of a fault, or what it made, with its cause."""
    name = named(fault).partition("/")[2]
    return [one for one in found if one.cause == fault["cause"] and name in one.object and fault["says"] in one.evidence]


def test_of_a_cluster_in_order_the_doctor_says_nothing(cluster: HttpCluster, well: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats, "_SETTLED", 0.0)  # they are judged, too
    for _time in range(20):
        assert diagnose(cluster, well, [], doctor.SYSTEMS) == ([], [])


def test_each_fault_is_told_with_cause_evidence_and_next_step(broken: list[Finding]) -> None:
    missing = [f"{fault['cause']} ({named(fault)})" for fault in FAULTS if not told(fault, broken)]
    assert not missing, "\n".join([*missing, "", *(f"{one.object}: {one.cause}: {one.evidence}" for one in broken)])
    assert all(one.next and one.evidence for one in broken)
    assert not more(broken), [one for one in broken if one.cause in more(broken)]


def test_the_certificate_of_the_kubeconfig_is_judged(cluster: HttpCluster, well: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "_SOON", dt.timedelta(days=100_000))
    monkeypatch.setattr(certificates, "_SHARE", 1)
    told = [one.evidence for one in diagnose(cluster, well, [])[0] if one.object == f"kubeconfig of {cluster.server}"]
    assert [text.partition(":")[0] for text in told] == ["ca certificate", "client certificate"]
