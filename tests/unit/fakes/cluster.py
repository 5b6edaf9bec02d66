# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster and a clock for unit tests: no network, no sleep, no mocks.

FakeCluster keeps objects in a dict, does server-side apply with field ownership, counts requests, and serves watches from a
journal. A controller (a function from object to status) may be given per kind; it runs at each write.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import socket
import time
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Conflict, Forbidden, InvalidInput, MusterError, NotFound
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import revealed
from ansible_collections.muster.ml.plugins.module_utils._kube import redact
from ansible_collections.muster.ml.plugins.module_utils._kube.kinds import BUILT_IN, Kinds
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import (
    FIELD_MANAGER,
    Event,
    Listing,
    Manifest,
    Ref,
    ServedKind,
    ref_of,
)
from ansible_collections.muster.ml.plugins.module_utils._kube.responses import to_error
from ansible_collections.muster.ml.tests.unit.fakes.copies import copied


def answered(status: int, message: str, ref: Ref | None = None) -> MusterError:
    """The error that the client makes of an answer of the API server."""
    return to_error(status, {"message": message}, verb="apply", ref=ref, what=str(ref or "it"))


ALWAYS_THERE = ("default", "kube-system")
WRITES = ("apply", "create", "delete", "patch")

_KINDS = {
    "v1": "ConfigMap LimitRange Namespace Node Event PersistentVolume PersistentVolumeClaim Pod ResourceQuota Secret Service "
    "ServiceAccount",
    "apps/v1": "DaemonSet Deployment StatefulSet",
    "apiregistration.k8s.io/v1": "APIService",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "batch/v1": "Job",
    "coordination.k8s.io/v1": "Lease",
    "networking.k8s.io/v1": "NetworkPolicy",
    "node.k8s.io/v1": "RuntimeClass",
    "policy/v1": "PodDisruptionBudget",
    "storage.k8s.io/v1": "StorageClass",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition",
}
KINDS = {(api_version, kind): BUILT_IN[api_version, kind] for api_version, kinds in _KINDS.items() for kind in kinds.split()}

DEFAULT_CLASS: Manifest = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "example.com/disks",
}
DEFINITION: Manifest = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "foos.x.io"},
    "spec": {
        "group": "x.io",
        "scope": "Namespaced",
        "names": {"plural": "foos", "kind": "Foo"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    },
}
"""Of kind Foo, which the cluster serves once this is there."""


def only_in_namespaces(ref: Ref) -> None:
    """Refuse a list of all namespaces, as the API server does to who has a Role and no ClusterRole."""
    if ref.namespace is None:
        raise Forbidden("only in namespaces")


class FakeClock:
    """Time that passes only when somebody waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._started = time.time() - self.now

    def time(self) -> float:
        return self._started + self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 0.001)


@dataclasses.dataclass(frozen=True)
class Request:
    """What was asked of the fake: verb, object, and whether it would have been stored."""

    verb: str
    ref: Ref
    dry_run: bool = False


def _fields(value: t.Any, path: str = "f:") -> t.Any:
    """fieldsV1 of a value: lists of objects with a name (mounts: a path) are keyed by it, other lists are atomic."""
    if isinstance(value, dict) and value:
        return {f"f:{key}": _fields(item) for key, item in value.items()}
    for key in ("mountPath", "name"):
        if isinstance(value, list) and value and all(isinstance(item, dict) and isinstance(item.get(key), str) for item in value):
            return {f"k:{json.dumps({key: item[key]})}": {".": {}, **_fields(item)} for item in value}
    return {}


def _owned(manifest: Manifest) -> Manifest:
    fields = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    metadata = {key: manifest["metadata"][key] for key in ("labels", "annotations") if key in manifest["metadata"]}
    return t.cast(Manifest, _fields({**fields, **({"metadata": metadata} if metadata else {})}))


def _without(value: t.Any, owned: t.Any, desired: t.Any, held: t.Any) -> t.Any:
    """Drop what was owned, is not wanted any more, and is not held by others."""
    if not isinstance(value, dict) or not owned:
        return value
    kept = {}
    for key, item in value.items():
        below = owned.get(f"f:{key}")
        wish = desired.get(key) if isinstance(desired, dict) else None
        theirs = held.get(f"f:{key}")
        if below is None or wish is not None:
            kept[key] = _without(item, below or {}, wish, theirs or {})
        elif theirs == {}:
            kept[key] = item
        elif isinstance(item, dict) and below:
            rest = _without(item, below, {}, theirs or {})
            if rest:
                kept[key] = rest
    return kept


def _merge(live: t.Any, desired: t.Any) -> t.Any:
    if isinstance(live, dict) and isinstance(desired, dict):
        return {**live, **{key: _merge(live.get(key), value) for key, value in desired.items()}}
    return copied(desired)


def _clashes(live: t.Any, desired: t.Any, owned: t.Any, path: str = "") -> list[str]:
    """Fields that a manager owns and that we want with another value, as the client names them: without a dot in front."""
    found: list[str] = []
    for key, below in owned.items():
        name = key.removeprefix("f:")
        where = f"{path}.{name}".lstrip(".")
        if not isinstance(desired, dict) or name not in desired or not isinstance(live, dict) or name not in live:
            continue
        if below and isinstance(desired[name], dict):
            found += _clashes(live[name], desired[name], below, where)
        elif live[name] != desired[name]:
            found.append(where)
    return found


Controller = t.Callable[[Manifest], Manifest | None]


class _Due(t.NamedTuple):
    """What happens before calls of a verb on objects of a kind (empty: of any) are answered."""

    verb: str
    kind: str
    act: t.Callable[[Ref], object]
    once: bool


@dataclasses.dataclass
class FakeTunnel:
    """A forwarded port."""

    socket: socket.socket
    trouble: str = ""

    def close(self) -> None:
        self.socket.close()


class _Guarded:
    """A cluster that calls CHECK before each request that writes."""

    def __init__(self, cluster: FakeCluster, check: t.Callable[[], None]) -> None:
        self._cluster, self._check = cluster, check

    def __getattr__(self, name: str) -> t.Any:
        if name not in WRITES:
            return getattr(self._cluster, name)

        def write(*args: t.Any, **options: t.Any) -> t.Any:
            if not options.get("dry_run"):
                self._check()
            return getattr(self._cluster, name)(*args, **options)

        return write


class FakeCluster:
    """See the module's docstring. Thread safe enough for the engine: each method is one step under the GIL."""

    def __init__(self, *, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.kinds_served = dict(KINDS)
        self.objects: dict[tuple[str, str, str, str], Manifest] = {}
        self.requests: list[Request] = []
        self.journal: list[tuple[int, Event]] = []
        self.controllers: dict[str, Controller] = {}
        self.log_lines: dict[tuple[str, str], str] = {}
        self.earlier_log_lines: dict[tuple[str, str], str] = {}
        self.proxy: dict[tuple[str, str, int, str], tuple[int, str]] = {}
        self.paths: dict[str, Manifest] = {}
        self.forwarded: dict[tuple[str, str, int], tuple[str, int]] = {}
        self.printed: dict[tuple[str, str], tuple[str, str]] = {}
        self.failures: dict[tuple[str, str], list[Exception]] = {}
        self.due: list[_Due] = []
        self.server_version = "v1.36.3"
        self.server_warnings: list[str] = []
        self.certificates: dict[str, str | None] = {}
        self.unknown: list[str] = []
        self.default_class = True
        """Whether there is a default StorageClass as long as a test has added none."""
        self.allows: t.Callable[[Manifest], bool] = lambda _attributes: True
        self._versions = itertools.count(1)
        self._version = 0

    # What tests set up and look at

    def add(self, *manifests: Manifest, manager: str | None = None) -> None:
        """Put objects there as somebody else made them (field manager ``manager``)."""
        for manifest in manifests:
            stored = copied(manifest)
            if manager:
                entry = {"manager": manager, "operation": "Update", "apiVersion": stored["apiVersion"]}
                stored["metadata"]["managedFields"] = [{**entry, "fieldsType": "FieldsV1", "fieldsV1": _owned(manifest)}]
            self._store(stored, "ADDED")

    def set_status(self, ref: Ref, status: Manifest) -> None:
        """Replace the status of an object, as its controller would."""
        stored = copied(self.objects[ref.identity])
        stored["status"] = status
        self._store(stored, "MODIFIED")

    def say(self, ref: Ref, reason: str, message: str, *, at: int = 0, **more: t.Any) -> None:
        """Let a controller say something of an object, AT so many seconds after noon; type is Normal, unless given."""
        about = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name, "namespace": ref.namespace}
        uid = self.objects[ref.identity]["metadata"]["uid"]
        moment = f"2026-11-21T12:{at // 60:02}:{at % 60:02}Z"
        metadata = {"name": f"{ref.name}.{len(self.journal):x}", "namespace": ref.namespace or "default"}
        self.add({"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": {**about, "uid": uid},
                  "reason": reason, "message": message, "lastTimestamp": moment, "type": "Normal", **more})  # fmt: skip

    def fail(self, verb: str, name: str, *errors: Exception) -> None:
        """Let the next calls of a verb on objects of this name fail, one error each."""
        self.failures.setdefault((verb, name), []).extend(errors)

    def before(self, verb: str, act: t.Callable[[Ref], object], kind: str = "", *, once: bool = True) -> None:
        """Do something before the next call of a verb on an object (of a kind) is answered, or before all of them. It may raise."""
        self.due.append(_Due(verb, kind, act, once))

    def refuse(self, verb: str, error: Exception, kind: str = "") -> None:
        """Let all calls of a verb on objects (of a kind) fail."""

        def fail(_ref: Ref) -> None:
            raise error

        self.before(verb, fail, kind, once=False)

    @property
    def writes(self) -> list[Request]:
        """Everything that changed, or would have changed, the cluster for good."""
        return [request for request in self.requests if request.verb in WRITES and not request.dry_run]

    def stored(self, kind: str, name: str, namespace: str | None = None) -> Manifest | None:
        """An object by kind and name, whatever its group."""
        for (_group, other_kind, other_namespace, other_name), manifest in self.objects.items():
            if (kind, name, namespace or "") == (other_kind, other_name, other_namespace):
                return manifest
        return None

    # The Cluster protocol

    @property
    def server(self) -> str:
        return "https://fake:6443"

    @property
    def namespace(self) -> str:
        return "default"

    def warnings(self) -> list[str]:
        return list(self.server_warnings)

    def close(self) -> None:
        """There are no connections."""

    def resource(self, api_version: str, kind: str, *, refresh: bool = False) -> ServedKind | None:
        for definition in list(self.objects.values()):
            if definition["kind"] == "CustomResourceDefinition":
                self._serve(definition)
        return self.kinds_served.get((api_version, kind))

    def kinds(self) -> Kinds:
        self.resource("", "")
        found = [(api_version, kind, resource) for (api_version, kind), resource in self.kinds_served.items()]
        return Kinds(found, self.unknown)

    def get(self, ref: Ref) -> Manifest | None:
        self._note("get", ref)
        if ref.kind == "Namespace" and ref.name in ALWAYS_THERE and ref.identity not in self.objects:
            return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ref.name, "resourceVersion": "1"}}
        found = self.objects.get(ref.identity)
        return redact.seal_secrets(copied(found)) if found else None

    def list(self, api_version: str, kind: str, namespace: str | None = None, label_selector: str | None = None) -> Listing:
        self._note("list", Ref(api_version, kind, "", namespace))
        found = [
            redact.seal_secrets(copied(manifest))
            for manifest in list(self.objects.values())
            if self._matches(manifest, api_version, kind, namespace, label_selector)
        ]
        if kind == "StorageClass" and not found and not label_selector and self.default_class:
            found = [copied(DEFAULT_CLASS)]
        return Listing(found, str(self._version))

    def list_metadata(
        self, api_version: str, kind: str, namespace: str | None = None, label_selector: str | None = None, *, limit: int | None = None
    ) -> Listing:
        full = self.list(api_version, kind, namespace, label_selector)
        return Listing(
            ({k: v for k, v in item.items() if k in ("apiVersion", "kind", "metadata")} for item in full[:limit]),
            full.resource_version,
            partial=limit is not None and len(full) > limit,
        )

    def apply(self, manifest: Manifest, *, dry_run: bool, force_conflicts: bool = False, manager: str = FIELD_MANAGER) -> Manifest:
        manifest = revealed(manifest)
        ref = ref_of(manifest)
        self._note("apply", ref, dry_run)
        self._check_place(ref)
        live = self.objects.get(ref.identity)
        self._same_object(ref, live, manifest)
        merged = self._applied(live, manifest, ref, force_conflicts, manager)
        if live is not None and {k: v for k, v in merged.items() if k != "status"} == {k: v for k, v in live.items() if k != "status"}:
            return redact.seal_secrets(copied(live))
        return redact.seal_secrets(merged if dry_run else self._store(merged, "MODIFIED" if live else "ADDED"))

    def create(self, manifest: Manifest, *, dry_run: bool, manager: str = FIELD_MANAGER) -> Manifest:
        manifest = revealed(manifest)
        if manifest["kind"] == "SelfSubjectAccessReview":
            return {**manifest, "status": {"allowed": self.allows(manifest["spec"]["resourceAttributes"])}}
        if manifest["kind"] == "SelfSubjectReview":
            return {**manifest, "status": {"userInfo": {"username": "ada"}}}
        ref = ref_of(manifest)
        self._note("create", ref, dry_run)
        self._check_place(ref)
        if ref.identity in self.objects:
            raise Conflict(f'{ref.kind} "{ref.name}" already exists', ref=ref)
        made = copied(manifest)
        entry = {"manager": manager, "operation": "Update", "apiVersion": ref.api_version, "fieldsType": "FieldsV1"}
        made["metadata"]["managedFields"] = [{**entry, "fieldsV1": _owned(manifest)}]
        return redact.seal_secrets(made if dry_run else self._store(made, "ADDED"))

    def _check_place(self, ref: Ref) -> None:
        resource = self.resource(ref.api_version, ref.kind)
        if resource is None:
            raise NotFound(f"{ref.kind} is not served", ref=ref)
        if resource.namespaced and ref.namespace and not self._has_namespace(ref.namespace):
            raise NotFound(f'namespaces "{ref.namespace}" not found', ref=ref)

    @staticmethod
    def _same_object(ref: Ref, live: Manifest | None, manifest: Manifest) -> None:
        """As the API server refuses a write that names an object, or a version of it, which is not there any more."""
        known = manifest.get("metadata", {})
        uid, version = known.get("uid"), known.get("resourceVersion")
        if uid and (live is None or live["metadata"]["uid"] != uid):
            raise Conflict(f"{ref}: Precondition failed: UID in precondition: {uid}", ref=ref)
        if version and live is not None and live["metadata"]["resourceVersion"] != version:
            raise Conflict(f"{ref}: the object has been modified", ref=ref)

    def delete(
        self,
        ref: Ref,
        *,
        dry_run: bool,
        propagation: str = "Background",
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
    ) -> bool:
        self._note("delete", ref, dry_run)
        live = self.objects.get(ref.identity)
        if live is None or (uid and live["metadata"]["uid"] != uid):
            return False
        if resource_version and live["metadata"]["resourceVersion"] != resource_version:
            return False
        if dry_run:
            return True
        if live["metadata"].get("finalizers"):
            marked = copied(live)
            marked["metadata"]["deletionTimestamp"] = "2026-11-21T00:00:00Z"
            self._store(marked, "MODIFIED")
            return True
        self.remove(ref)
        return True

    def remove(self, ref: Ref) -> None:
        """Let an object be gone, finalizers or not."""
        gone = self.objects.pop(ref.identity)
        version = self._version = next(self._versions)
        gone["metadata"]["resourceVersion"] = str(version)
        self.journal.append((version, Event("DELETED", copied(gone))))

    def patch(self, ref: Ref, patch: Manifest, *, subresource: str | None = None, dry_run: bool) -> Manifest:
        self._note("patch", ref, dry_run)
        live = self.objects.get(ref.identity)
        if live is None:
            raise NotFound(f"{ref} does not exist", ref=ref)
        self._same_object(ref, live, patch)
        merged = _merge(live, revealed(patch))
        return redact.seal_secrets(merged if dry_run else self._store(merged, "MODIFIED"))

    def watch(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        name: str | None = None,
        resource_version: str = "",
        timeout: float,
    ) -> t.Iterator[Event]:
        self._note("watch", Ref(api_version, kind, name or "", namespace))
        for version, event in list(self.journal):
            if version <= int(resource_version or 0) or (name and event.object["metadata"]["name"] != name):
                continue
            if self._matches(event.object, api_version, kind, namespace, label_selector):
                yield Event(event.type, redact.seal_secrets(copied(event.object)))
        self.clock.sleep(timeout)

    def logs(
        self, namespace: str, pod: str, *, container: str | None = None, tail_lines: int | None = None, previous: bool = False, **_: bool
    ) -> str:
        self._note("logs", Ref("v1", "Pod", pod, namespace))
        known = self.earlier_log_lines if previous else self.log_lines
        if (namespace, pod) not in known:
            raise NotFound(f"Pod {namespace}/{pod} does not exist", ref=Ref("v1", "Pod", pod, namespace))
        lines = known[namespace, pod].splitlines(keepends=True)
        return "".join(lines[-tail_lines:] if tail_lines else lines)

    def read(self, path: str, *, timeout: float) -> Manifest:
        """What a test put at PATHS."""
        if path not in self.paths:
            raise NotFound(f"{path} does not exist")
        return copied(self.paths[path])

    def proxy_get(self, namespace: str, pod: str, port: int, path: str, *, timeout: float) -> tuple[int, str]:
        self._note("proxy", Ref("v1", "Pod", pod, namespace))
        return self.proxy.get((namespace, pod, port, path), (503, "no such endpoint"))

    def port_forward(self, namespace: str, pod: str, port: int, *, timeout: float) -> t.Any:
        """A connection to what a test put at FORWARDED; to nothing otherwise, as where no process listens."""
        self._note("forward", Ref("v1", "Pod", pod, namespace))
        where = self.forwarded.get((namespace, pod, port))
        if where is None:
            ours, theirs = socket.socketpair()
            theirs.close()
            return FakeTunnel(ours, f"nobody listens at port {port}")
        return FakeTunnel(socket.create_connection(where))

    def execute(self, namespace: str, pod: str, container: str, command: t.Sequence[str], *, timeout: float) -> tuple[str, str]:
        """What a test put at PRINTED, whatever the command is."""
        self._note("execute", Ref("v1", "Pod", pod, namespace))
        return self.printed[namespace, pod]

    def version(self) -> str:
        return self.server_version

    def events_of(self, ref: Ref, uid: str | None = None) -> t.Sequence[Manifest]:
        self._note("events", ref)
        return [
            copied(item)
            for item in list(self.objects.values())
            if item["kind"] == "Event"
            and (item["involvedObject"]["kind"], item["involvedObject"]["name"]) == (ref.kind, ref.name)
            and item["metadata"]["namespace"] == (ref.namespace or "default")
            and uid in (None, item["involvedObject"].get("uid"))
        ]

    def guarded(self, check: t.Callable[[], None]) -> t.Any:
        return _Guarded(self, check)

    def within(self, seconds: float) -> FakeCluster:
        return self  # nothing takes time here

    # How it works

    def _note(self, verb: str, ref: Ref, dry_run: bool = False) -> None:
        for due in [one for one in self.due if one.verb == verb and one.kind in ("", ref.kind)]:
            if due.once:
                self.due.remove(due)
            due.act(ref)
        self.requests.append(Request(verb, ref, dry_run))
        queue = self.failures.get((verb, ref.name))
        if queue:
            raise queue.pop(0)

    def _serve(self, definition: Manifest) -> None:
        spec = definition["spec"]
        for version in spec["versions"]:
            key = (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
            self.kinds_served[key] = ServedKind(spec["names"]["plural"], spec["scope"] == "Namespaced")

    def _has_namespace(self, namespace: str) -> bool:
        return namespace in ALWAYS_THERE or ("", "Namespace", "", namespace) in self.objects

    @staticmethod
    def _matches(manifest: Manifest, api_version: str, kind: str, namespace: str | None, label_selector: str | None) -> bool:
        metadata = manifest["metadata"]
        if (manifest["apiVersion"], manifest["kind"]) != (api_version, kind):
            return False
        if namespace and metadata.get("namespace") != namespace:
            return False
        labels = metadata.get("labels") or {}
        desired = [part.partition("=") for part in (label_selector or "").split(",") if part]
        return all(labels.get(key) == value if equals else key in labels for key, equals, value in desired)

    @staticmethod
    def _applied(live: Manifest | None, manifest: Manifest, ref: Ref, force: bool, manager: str) -> Manifest:
        base = copied(live) if live else {}
        entries = base.get("metadata", {}).pop("managedFields", [])
        others = [entry for entry in entries if (entry["manager"], entry["operation"]) != (manager, "Apply")]
        ours = [entry["fieldsV1"] for entry in entries if entry not in others]
        clashes = {entry["manager"]: found for entry in others if (found := _clashes(live, manifest, entry["fieldsV1"]))}
        if clashes and not force:
            fields = [field for found in clashes.values() for field in found]
            raise Conflict(f"{ref}: {', '.join(clashes)} have {fields}", managers=list(clashes), fields=fields, ref=ref)
        held: dict[str, t.Any] = {}
        for entry in others:
            held = _merge(held, entry["fieldsV1"])
        for owned in ours:
            base = _without(base, owned, manifest, held)
        merged = t.cast(Manifest, _merge(base, manifest))
        entry = {"manager": manager, "operation": "Apply", "apiVersion": ref.api_version, "fieldsType": "FieldsV1",
                 "time": "2026-11-21T00:00:01Z"}  # fmt: skip
        merged["metadata"]["managedFields"] = [*others, {**entry, "fieldsV1": _owned(manifest)}]
        return merged

    def _store(self, manifest: Manifest, event: str) -> Manifest:
        ref = ref_of(manifest)
        version = self._version = next(self._versions)  # of this object, whatever other threads store meanwhile
        stored = copied(manifest)
        metadata = stored["metadata"]
        metadata.setdefault("uid", f"uid-{version}")
        metadata.setdefault("creationTimestamp", "2026-11-21T00:00:00Z")
        metadata["resourceVersion"] = str(version)
        metadata.setdefault("generation", 1)
        if not ref.name:
            raise InvalidInput("an object without a name")
        controller = self.controllers.get(ref.kind)
        status = controller(stored) if controller else None
        if status is not None:
            stored["status"] = status
        self.objects[ref.identity] = stored
        self.journal.append((version, Event(t.cast(t.Any, event), copied(stored))))
        return copied(stored)
