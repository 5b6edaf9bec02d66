# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP client against a small server on the loopback interface: retries, credentials, watches, paths."""

from __future__ import annotations

import concurrent.futures
import errno
import http.server
import json
import os
import pathlib
import socket
import tempfile
import threading
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Conflict,
    Failed,
    Forbidden,
    Gone,
    InvalidInput,
    LeaseLost,
    MusterError,
    NotFound,
    Rejected,
    ServerError,
    Unauthorized,
    Unreachable,
)
from ansible_collections.muster.ml.plugins.module_utils._core.pace import Limits
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster, Transport
from ansible_collections.muster.ml.plugins.module_utils._kube.credentials import RequestAuth, bearer
from ansible_collections.muster.ml.plugins.module_utils._kube.kubeconfig import Connection
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref, ServedKind
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock
from ansible_collections.muster.ml.tests.unit.fakes.served import Answering

Reply = tuple[int, t.Any, dict[str, str]]
POD = Ref("v1", "Pod", "p", "ml")


class Server(http.server.ThreadingHTTPServer):
    """Answers with what a test queued, then with an empty object; remembers what it was asked."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.replies: list[Reply | None] = []
        self.seen: list[tuple[str, str, t.Any, dict[str, list[str]]]] = []
        self.connections: set[int] = set()
        super().__init__((host, 0), Handler)

    def handle_error(self, request: t.Any, client_address: t.Any) -> None:
        """A connection that the test resets is no news."""


class Handler(Answering):
    server: Server

    def answer(self) -> None:
        body = self.body()
        headers = {key: self.headers.get_all(key) or [] for key in self.headers}
        self.server.seen.append((self.command, self.path, json.loads(body) if body else None, headers))
        self.server.connections.add(self.client_address[1])
        reply = self.server.replies.pop(0) if self.server.replies else (200, {}, {})
        if reply is None:  # drop the connection after the request was taken in
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        status, content, more = reply
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response_only(status)
        for key, value in {"Content-Length": str(len(data)), **more}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PATCH = do_DELETE = answer


class Renewable:
    """A token that is another one after each renewal."""

    def __init__(self) -> None:
        self.number = 1

    def auth(self) -> RequestAuth:
        return RequestAuth(bearer(str(self.number), "a test"))

    def refresh(self, refused: RequestAuth) -> bool:
        self.number += 1
        return True


@pytest.fixture
def server() -> t.Iterator[Server]:
    found = Server()
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


@pytest.fixture
def kube(server: Server, clock: FakeClock) -> t.Iterator[HttpCluster]:
    found = connect(server, clock)
    yield found
    found.close()


def connect(server: Server, clock: FakeClock, **options: t.Any) -> HttpCluster:
    url = f"http://127.0.0.1:{server.server_address[1]}"
    return HttpCluster(Transport(Connection(server=url, source="a test", **options), clock))


def status(code: int, **more: t.Any) -> Reply:
    return (code, {"kind": "Status", "code": code, **more}, {})


def test_paths_of_core_and_group_and_subresource(server: Server, kube: HttpCluster) -> None:
    kube.get(POD)
    kube.get(Ref("rbac.authorization.k8s.io/v1", "ClusterRole", "system:x/y"))
    kube.list("apps/v1", "StatefulSet", None, "a=b,c")
    kube.patch(POD, {"a": 1}, subresource="status", dry_run=True)
    assert [path for _verb, path, _body, _headers in server.seen] == [
        "/api/v1/namespaces/ml/pods/p",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:x%2Fy",
        "/apis/apps/v1/statefulsets?labelSelector=a%3Db%2Cc",
        "/api/v1/namespaces/ml/pods/p/status?fieldManager=muster&dryRun=All",
    ]


@pytest.mark.parametrize(("run", "agent"), [("", "muster"), ("0123456789ab", "muster/0123456789ab"), ("a\nb", "muster")])
def test_apply_is_a_server_side_apply_as_muster(
    server: Server, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, run: str, agent: str
) -> None:
    monkeypatch.setenv("MUSTER_RUN", run)
    kube = connect(server, clock)
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ml"}}
    kube.apply(manifest, dry_run=True, force_conflicts=True)
    verb, path, body, headers = server.seen[0]
    assert (verb, body, headers["Content-Type"]) == ("PATCH", manifest, ["application/apply-patch+yaml"])
    assert path.endswith("/pods/p?fieldManager=muster&force=true&fieldValidation=Strict&dryRun=All")
    assert headers["User-Agent"] == [agent]
    kube.close()


def test_connections_are_kept_and_shared(server: Server, kube: HttpCluster) -> None:
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _number: kube.get(POD), range(40)))
    assert len(server.seen) == 40
    assert len(server.connections) <= 4


def test_items_of_a_list_say_what_they_are(server: Server, kube: HttpCluster) -> None:
    items = [{"metadata": {"name": "a"}}, {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {}}]
    server.replies = [(200, {"metadata": {"resourceVersion": "7"}, "items": items}, {})]
    found = kube.list_metadata("v1", "Pod", "ml")
    assert found.resource_version == "7"
    assert {(item["apiVersion"], item["kind"]) for item in found} == {("v1", "Pod")}
    assert "PartialObjectMetadataList" in server.seen[0][3]["Accept"][0]


def test_too_many_requests_waits_as_long_as_it_is_told(server: Server, kube: HttpCluster, clock: FakeClock) -> None:
    server.replies = [(429, {}, {"Retry-After": "9"}), (503, {}, {}), (200, {"kind": "Pod"}, {})]
    assert kube.get(POD) == {"kind": "Pod"}
    assert 9 <= clock.now - 1000 < 12


def test_it_gives_up_in_the_end(server: Server, kube: HttpCluster, clock: FakeClock) -> None:
    server.replies = [status(503, message="overloaded")] * 500
    with pytest.raises(ServerError, match="overloaded"):
        kube.get(POD)
    assert clock.now - 1000 <= 61


def test_an_answer_that_did_not_come_in_all_its_time_is_asked_for_again(
    server: Server, kube: HttpCluster, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a network cut: one answer may take as long as an outage is waited for."""
    kube.get(POD)
    ask, began, limits = Transport._exchange, clock.now, kube._http.limits

    def silent(*given: t.Any) -> t.Any:
        if clock.now - began < limits.answer:
            clock.sleep(limits.answer)
            raise TimeoutError("The read operation timed out")
        return ask(*given)

    monkeypatch.setattr(Transport, "_exchange", silent)
    server.replies = [status(503), (200, {"kind": "Pod"}, {})]
    assert kube.get(POD) == {"kind": "Pod"}
    assert clock.now - began < limits.answer + limits.outage
    began = clock.now
    server.replies = [status(503)] * 500
    with pytest.raises(ServerError):
        kube.get(POD)
    assert clock.now - began <= limits.answer + limits.outage


def test_a_full_disk_is_no_fault_of_the_server(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client key is read from a file, when the first connection is made."""

    def full(*_given: t.Any, **_how: t.Any) -> t.NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "mkstemp", full)
    pair = {"client_cert": "-----BEGIN CERTIFICATE-----", "client_key": Sensitive("-----BEGIN PRIVATE KEY-----")}
    kube = HttpCluster(Transport(Connection(server="https://127.0.0.1:1", source="~/kubeconfig", **pair), clock))
    with pytest.raises(Failed, match=r"The client key in ~/kubeconfig cannot .* temporary file: No space left on device\. Free space"):
        kube.get(POD)
    assert clock.now == 1000


def test_a_connection_that_breaks_after_the_request_is_tried_again(server: Server, kube: HttpCluster) -> None:
    server.replies = [None, None, (200, {"kind": "Pod"}, {})]
    assert kube.get(POD) == {"kind": "Pod"}


def test_an_address_without_a_server_fails_soon(clock: FakeClock) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    kube = HttpCluster(Transport(Connection(server=f"http://127.0.0.1:{port}", source="/x/kubeconfig"), clock))
    with pytest.raises(Unreachable, match=rf"http://127.0.0.1:{port} \(/x/kubeconfig\) does not answer: Connection refused"):
        kube.get(POD)
    assert clock.now - 1000 <= 3


def test_an_expired_token_is_renewed_once(server: Server, clock: FakeClock) -> None:
    kube = connect(server, clock, credentials=Renewable())
    server.replies = [status(401), (200, {"kind": "Pod"}, {})]
    assert kube.get(POD) == {"kind": "Pod"}
    assert [headers["Authorization"] for *_rest, headers in server.seen] == [["Bearer 1"], ["Bearer 2"]]
    server.replies = [status(401), status(401)]
    with pytest.raises(Unauthorized):
        kube.get(POD)
    kube.close()


def test_a_watch_renews_credentials_too(server: Server, clock: FakeClock) -> None:
    kube = connect(server, clock, credentials=Renewable())
    event = b'{"type": "ADDED", "object": {"metadata": {"name": "p"}}}\n'
    server.replies = [status(401), (200, event, {})]
    assert [event.type for event in kube.watch("v1", "Pod", "ml", timeout=5)] == ["ADDED"]
    server.replies = [status(401), status(401)]
    with pytest.raises(Unauthorized):
        list(kube.watch("v1", "Pod", "ml", timeout=5))


def test_a_watch_that_breaks_off_in_the_middle_of_an_event(server: Server, kube: HttpCluster) -> None:
    server.replies = [(200, b'{"type": "ADDED", "obj', {})]
    with pytest.raises(Unreachable, match="broke off in the middle of an event"):
        list(kube.watch("v1", "Pod", "ml", timeout=5))


@pytest.mark.parametrize("length", ["8", "200"], ids=["cut and counted", "cut on the way"])
def test_a_truncated_body_is_asked_for_again(server: Server, kube: HttpCluster, length: str) -> None:
    server.replies = [(200, {"metadata": {}}, {})]
    kube.get(POD)
    server.replies = [(200, b'{"metada', {"Content-Length": length, "Connection": "close"}), (200, {"metadata": {"name": "p"}}, {})]
    assert kube.get(POD) == {"metadata": {"name": "p"}}


def test_a_body_that_drips_is_no_answer(server: Server) -> None:
    class Ticking(FakeClock):
        """Time passes with every look at it."""

        def monotonic(self) -> float:
            self.now += 1.0
            return self.now

    url = f"http://127.0.0.1:{server.server_address[1]}"
    kube = HttpCluster(Transport(Connection(server=url, source="a test"), Ticking(), Limits(answer=0.5)))
    with pytest.raises(Unreachable, match="was not complete after"):
        kube.get(POD)


def test_events_of_one_object_are_asked_for_by_name(server: Server, kube: HttpCluster) -> None:
    server.replies = [(200, {"items": [{"reason": "FailedMount"}]}, {})]
    assert kube.events_of(POD, "u-1") == [{"reason": "FailedMount"}]
    kube.events_of(Ref("v1", "Node", "n"))
    about = "involvedObject.kind%3DPod%2CinvolvedObject.name%3Dp%2CinvolvedObject.uid%3Du-1"
    node = "involvedObject.kind%3DNode%2CinvolvedObject.name%3Dn"
    assert [path for _verb, path, _body, _headers in server.seen] == [
        f"/api/v1/namespaces/ml/events?fieldSelector={about}&limit=100",
        f"/api/v1/namespaces/default/events?fieldSelector={node}&limit=100",
    ]


def test_all_answers_of_a_bounded_cluster_share_its_time(server: Server, kube: HttpCluster, clock: FakeClock) -> None:
    kube.get(POD)
    server.replies = [status(503)] * 200
    began, bounded = clock.now, kube.within(5)
    for _number in range(3):
        with pytest.raises(ServerError):
            bounded.get(POD)
        with pytest.raises(ServerError):
            bounded.within(60).logs("ml", "p")
    assert clock.now - began <= 5
    with pytest.raises(ServerError):
        kube.get(POD)
    assert clock.now - began > 30


def test_each_try_of_a_request_that_writes_is_checked_and_nothing_else(server: Server, kube: HttpCluster) -> None:
    """A network that was away for long must not let out what is no longer true."""
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ml"}}
    checks: list[int] = []

    def check() -> None:
        checks.append(len(server.seen))
        if len(checks) == 4:
            raise LeaseLost("lost")

    guarded = kube.guarded(check)
    guarded.get(POD)
    guarded.apply(manifest, dry_run=True)
    assert not checks
    guarded.apply(manifest, dry_run=False)
    guarded.patch(POD, {}, dry_run=False)
    server.replies = [status(503)] * 5
    with pytest.raises(LeaseLost):
        guarded.delete(POD, dry_run=False)
    assert checks == [2, 3, 4, 5]
    assert [verb for verb, *_rest in server.seen] == ["GET", "PATCH", "PATCH", "PATCH", "DELETE"]


def test_a_pod_that_does_not_answer_through_the_proxy_is_asked_for_its_timeout_only(
    server: Server, kube: HttpCluster, clock: FakeClock
) -> None:
    kube.get(POD)
    server.replies = [status(503, message="error trying to reach service")] * 200
    began = clock.now
    assert kube.proxy_get("ml", "p", 8222, "/varz", timeout=5)[0] == 503
    assert clock.now - began <= 5
    with pytest.raises(ServerError, match="error trying to reach service"):
        kube.read("/apis/x.io/v1/foos/a/places", timeout=2)
    assert clock.now - began <= 7


def test_a_connection_is_waited_for_no_longer_than_its_answer(kube: HttpCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[float] = []

    def connect_slowly(_address: t.Any, timeout: float, *_more: t.Any) -> t.NoReturn:
        tried.append(timeout)
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", connect_slowly)
    with pytest.raises(Unreachable):
        kube.within(0.5).get(POD)
    assert max(tried) <= 0.5


def test_two_that_make_the_same_object(server: Server, kube: HttpCluster) -> None:
    server.replies = [status(409, reason="AlreadyExists", message='pods "p" already exists')]
    kube.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ml"}}, dry_run=False)
    assert len(server.seen) == 2


def test_what_is_not_there(server: Server, kube: HttpCluster) -> None:
    server.replies = [status(404)] * 5
    assert kube.get(POD) is None
    assert kube.list("v1", "Pod") == []
    assert kube.delete(POD, dry_run=False) is False
    assert kube.resource("x.io/v1", "Foo") is None
    with pytest.raises(NotFound):
        kube.patch(POD, {}, dry_run=False)


def test_delete_is_of_that_very_object_and_only_another_one_or_version_is_no_error(server: Server, kube: HttpCluster) -> None:
    assert kube.delete(POD, dry_run=False, propagation="Foreground", uid="u-1", resource_version="7", grace_period_seconds=0)
    options = server.seen[0][2]
    assert (options["propagationPolicy"], options["preconditions"]) == ("Foreground", {"uid": "u-1", "resourceVersion": "7"})
    assert options["gracePeriodSeconds"] == 0
    server.replies = [
        status(409, message="the UID in the precondition (u-1) does not match the UID in record (u-2)"),
        status(409, message="Precondition failed: ResourceVersion in precondition: 7, in object meta: 8"),
        status(409, reason="Conflict", message="the namespace is held by a webhook"),
    ]
    assert kube.delete(POD, dry_run=False, uid="u-1") is False
    assert kube.delete(POD, dry_run=False, uid="u-1", resource_version="7") is False
    with pytest.raises(Conflict, match="held by a webhook"):
        kube.delete(POD, dry_run=False, uid="u-1", resource_version="7")


def test_unknown_kinds_are_looked_up_once_per_group_version(server: Server, kube: HttpCluster) -> None:
    listing = {
        "resources": [{"name": "foos", "kind": "Foo", "namespaced": True}, {"name": "foos/status", "kind": "Foo", "namespaced": True}]
    }
    server.replies = [(200, listing, {}), (200, {}, {})]
    assert kube.resource("x.io/v1", "Foo") == ServedKind("foos", True)
    assert kube.resource("x.io/v1", "Bar") is None
    assert len(server.seen) == 1
    assert kube.resource("x.io/v1", "Foo", refresh=True) is None


def test_a_kind_that_discovery_did_not_know_yet_is_looked_up_again_for_a_write(server: Server, kube: HttpCluster) -> None:
    desired = {"apiVersion": "x.io/v1", "kind": "Foo", "metadata": {"name": "a", "namespace": "ml"}}
    listing = {"resources": [{"name": "foos", "kind": "Foo", "namespaced": True}]}
    server.replies = [status(404), (200, {}, {}), (200, listing, {}), (200, desired, {})]
    assert kube.resource("x.io/v1", "Foo") is None
    with pytest.raises(NotFound, match=r"does not serve Foo of x.io/v1"):
        kube.apply(desired, dry_run=False)
    assert kube.apply(desired, dry_run=False) == desired


def test_kinds_come_from_aggregated_discovery(server: Server, kube: HttpCluster) -> None:
    def resource(name: str, kind: str, *verbs: str) -> dict[str, t.Any]:
        return {"resource": name, "responseKind": {"kind": kind}, "scope": "Namespaced", "verbs": list(verbs)}

    versions = [
        {"version": "v2", "resources": [resource("foos", "Foo", "list", "delete")]},
        {"version": "v1", "resources": [resource("foos", "Foo", "list", "delete"), resource("bars", "Bar", "list")]},
    ]
    groups = {"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "x.io"}, "versions": versions}]}
    server.replies = [(200, {"kind": "APIGroupDiscoveryList", "items": []}, {}), (200, groups, {})]
    assert kube.kinds() == [("x.io/v2", "Foo", ServedKind("foos", True))]
    server.replies = [(200, {"kind": "APIVersions"}, {})]
    with pytest.raises(InvalidInput, match=r"1\.30"):
        kube.kinds()


def test_a_watch_yields_events_and_reports_that_history_is_gone(server: Server, kube: HttpCluster) -> None:
    lines = [{"type": "ADDED", "object": {"metadata": {"name": "p"}}}, {"type": "ERROR", "object": {"code": 410, "message": "too old"}}]
    server.replies = [(200, "\n".join(map(json.dumps, lines)).encode() + b"\n", {"Connection": "close"}), status(403, message="no")]
    events = kube.watch("v1", "Pod", "ml", name="p", resource_version="5", timeout=3)
    assert next(events).type == "ADDED"
    with pytest.raises(Gone):
        next(events)
    path = server.seen[0][1]
    assert "resourceVersion=5" in path
    assert "fieldSelector=metadata.name%3Dp" in path
    assert "timeoutSeconds=3" in path
    with pytest.raises(Forbidden):
        list(kube.watch("v1", "Pod", "ml", timeout=3))


def test_logs_and_the_pod_proxy(server: Server, kube: HttpCluster) -> None:
    server.replies = [(200, b"epoch=1\n", {}), (404, b"nothing here", {}), status(404, message='pods "p" not found')]
    assert kube.logs("ml", "p", container="c", tail_lines=5, previous=True) == "epoch=1\n"
    assert kube.proxy_get("ml", "p", 8222, "/varz?x=1", timeout=2) == (404, "nothing here")
    with pytest.raises(NotFound, match="Pod ml/p"):
        kube.logs("ml", "p")
    assert [path for _verb, path, *_rest in server.seen[:2]] == [
        "/api/v1/namespaces/ml/pods/p/log?container=c&tailLines=5&previous=true",
        "/api/v1/namespaces/ml/pods/p:8222/proxy/varz?x=1",
    ]


def test_the_log_of_a_pod_with_sidecars_is_that_of_its_main_container(server: Server, kube: HttpCluster) -> None:
    """As kubectl chooses it; the API server refuses to choose. Another refusal is no reason to look."""
    two = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main"}, {"name": "istio-proxy"}]}}
    choose = status(400, message="a container name must be specified for pod p, choose one of: [main istio-proxy]")
    server.replies = [choose, (200, two, {}), (200, b"epoch=1\n", {})]
    assert kube.logs("ml", "p", tail_lines=5, previous=True) == "epoch=1\n"
    log = "/api/v1/namespaces/ml/pods/p/log?"
    paths = [f"{log}tailLines=5&previous=true", "/api/v1/namespaces/ml/pods/p", f"{log}container=main&tailLines=5&previous=true"]
    assert [path for _verb, path, *_rest in server.seen] == paths
    server.replies = [status(400, message='container "main" in pod "p" is waiting to start: ContainerCreating')]
    with pytest.raises(Rejected, match="is waiting to start"):
        kube.logs("ml", "p")


def test_warnings_are_kept_once(server: Server, kube: HttpCluster) -> None:
    server.replies = [(200, {}, {"Warning": '299 - "policy/v1beta1 is deprecated"'})] * 2
    kube.get(POD)
    kube.get(POD)
    server.replies = [(200, b"", {"Warning": '299 - "is deprecated"'})]
    list(kube.watch("v1", "Pod", "ml", timeout=5))
    assert kube.warnings() == ["policy/v1beta1 is deprecated", "is deprecated"]


def test_a_server_of_another_protocol(server: Server, kube: HttpCluster) -> None:
    server.replies = [(400, b"Client sent an HTTP request to an HTTPS server.\n", {})]
    with pytest.raises(Exception, match="Client sent an HTTP request to an HTTPS server"):
        kube.list("v1", "Pod")


SERVERS = {
    "foo": "no scheme and host",
    "10.0.0.1:6443": "no scheme and host",
    "ftp://x": "no scheme and host",
    "https://": "no scheme and host",
    "https://x:abc": "host or port is wrong",
    "https://x:99999": "host or port is wrong",
    "https://x:0": "port 0",
    "https://[fd00::1": "host or port is wrong",
    "https://[fe80::1%25eth0]:6443": "a zone",
    "https://a..b": "host or port is wrong",
    "https://x\n:6443": "control characters",
    "https://user@x": "more than scheme, host, port and path",
    "https://x?token=y": "more than scheme, host, port and path",
}


@pytest.mark.parametrize(("server", "told"), SERVERS.items(), ids=SERVERS)
def test_nonsense_is_no_url(server: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=rf"option host\) is not the URL of an API server: .*{told}"):
        Transport(Connection(server=server, source="option host"), FakeClock())


def test_a_host_of_the_new_internet(clock: FakeClock) -> None:
    class Six(Server):
        address_family = socket.AF_INET6

    with Six("::1") as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        port = server.server_address[1]
        kube = HttpCluster(Transport(Connection(server=f"http://[::1]:{port}/ab", source="a test"), clock))
        kube.get(POD)
        kube.close()
        server.shutdown()
    assert server.seen[0][1] == "/ab/api/v1/namespaces/ml/pods/p"
    assert server.seen[0][3]["Host"] == [f"[::1]:{port}"]


REDIRECTS = {
    "https://login.corp/?key=s3cr3t": "to https://login.corp.",
    "https://u:s3cr3t@login.corp:8443/s3cr3t": "to https://login.corp.",
    "//login.corp/": "to http://login.corp.",
    "/login?key=s3cr3t": "to a path of its own.",
    "http://[s3cr3t": "to nowhere.",
    "": "to a path of its own.",
}
ASKED: dict[str, t.Callable[[HttpCluster], t.Any]] = {
    "get": lambda kube: kube.get(POD),
    "list": lambda kube: kube.list("v1", "Pod"),
    "apply": lambda kube: kube.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, dry_run=False),
    "patch": lambda kube: kube.patch(POD, {}, dry_run=False),
    "delete": lambda kube: kube.delete(POD, dry_run=False),
    "kinds": lambda kube: kube.kinds(),
    "resource": lambda kube: kube.resource("x.io/v1", "Foo"),
    "watch": lambda kube: list(kube.watch("v1", "Pod", "ml", timeout=5)),
    "logs": lambda kube: kube.logs("ml", "p"),
    "read": lambda kube: kube.read("/apis/x.io/v1/foos/a/places", timeout=5),
    "pod": lambda kube: kube.proxy_get("ml", "p", 80, "/", timeout=5),
    "version": lambda kube: kube.version(),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_a_redirect_is_no_answer(server: Server, kube: HttpCluster, ask: t.Callable[[HttpCluster], t.Any], code: int) -> None:
    server.replies = [(code, b"<a>Found</a>", {"Location": "https://login.corp/?key=s3cr3t"})]
    told = rf"http://127.0.0.1:\d+ \(a test\) answered with a redirect \(status {code}\) to https://login.corp\. A login page"
    with pytest.raises(Unreachable, match=told):
        ask(kube)
    assert len(server.seen) == 1


@pytest.mark.parametrize("page", [b"<title>Sign in</title>", b"[]", b'"hello"', b"null"])
def test_a_login_page_is_no_answer(server: Server, kube: HttpCluster, page: bytes) -> None:
    server.replies = [(200, page, {})] * 20
    with pytest.raises(Unreachable, match="no JSON object, as of a login page"):
        kube.kinds()


@pytest.mark.parametrize(("location", "told"), REDIRECTS.items(), ids=range(len(REDIRECTS)))
def test_a_redirect_tells_the_host_it_leads_to_and_no_more(server: Server, kube: HttpCluster, location: str, told: str) -> None:
    server.replies = [(302, b"", {"Location": location})] * 2
    for ask in (ASKED["get"], ASKED["watch"]):
        with pytest.raises(Unreachable) as caught:
            ask(kube)
        assert told in str(caught.value)
        assert "s3cr3t" not in str(caught.value)
        assert caught.value.__cause__ is None


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_means_more_than_one_object_is_never_sent(server: Server, kube: HttpCluster, name: str) -> None:
    for ask in (
        lambda: kube.delete(Ref("v1", "Pod", name, "ml"), dry_run=False),
        lambda: kube.get(Ref("v1", "Pod", name, "ml")),
        lambda: kube.logs("ml", name),
    ):
        with pytest.raises(InvalidInput, match="is not the name of an object"):
            ask()
    assert server.seen == []


def test_every_part_of_a_path_is_quoted(server: Server, kube: HttpCluster) -> None:
    kube.get(Ref("v1", "Pod", "a?b#c%/ü", "x/../y"))
    kube.resource("x?.io/v1", "Foo")
    assert [path for _verb, path, *_rest in server.seen] == ["/api/v1/namespaces/x%2F..%2Fy/pods/a%3Fb%23c%25%2F%C3%BC", "/apis/x%3F.io/v1"]


def test_a_server_that_says_at_once_is_not_asked_without_a_pause(server: Server, kube: HttpCluster, clock: FakeClock) -> None:
    server.replies = [(429, {}, {"Retry-After": "0"})] * 20
    kube.get(POD)
    assert clock.now - 1000 >= 2


def test_a_server_that_says_until_when(server: Server, kube: HttpCluster, clock: FakeClock) -> None:
    # Its own clock counts, which here is years behind.
    until = {"Retry-After": "Thu, 01 Jan 2015 12:00:20 GMT", "Date": "Thu, 01 Jan 2015 12:00:00 GMT"}
    server.replies = [(503, {}, until)]
    kube.get(POD)
    assert 20 <= clock.now - 1000 < 21


class Expiring(Renewable):
    """Another certificate after each renewal, too."""

    def auth(self) -> RequestAuth:
        return RequestAuth(bearer(str(self.number), "a test"), f"certificate {self.number}", Sensitive("key"))


def test_a_connection_goes_with_its_client_certificate(server: Server, clock: FakeClock) -> None:
    credentials = Expiring()
    kube = connect(server, clock, credentials=credentials)
    kube.get(POD)
    kube.get(POD)
    credentials.number = 2
    kube.get(POD)
    kube.close()
    assert len(server.connections) == 2


def test_headers_are_sent_each_as_the_utf8_that_kubernetes_reads(server: Server, clock: FakeClock) -> None:
    kube = connect(server, clock, headers=(("Impersonate-User", "Größe"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b")))
    kube.get(POD)
    kube.close()
    assert server.seen[0][3]["Impersonate-Group"] == ["a", "b"]
    assert server.seen[0][3]["Impersonate-User"][0].encode("latin-1").decode() == "Größe"


# What is sent and judged with care


SECRET = Ref("v1", "Secret", "s", "ml")


def secret() -> dict[str, t.Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ml"}, "data": {"a": "aHVudGVyMg=="}}


def test_secret_values_are_sealed_however_they_come_in(server: Server, kube: HttpCluster) -> None:
    event = json.dumps({"type": "ADDED", "object": secret()}).encode()
    server.replies = [(200, secret(), {}), (200, {"items": [secret()]}, {}), (200, event, {"Connection": "close"}), (200, secret(), {})]
    seen = [kube.get(SECRET), *kube.list("v1", "Secret", "ml"), *kube.watch("v1", "Secret", "ml", timeout=1)]
    seen.append(kube.patch(SECRET, {}, dry_run=False))
    assert len(seen) == 4
    assert "aHVudGVyMg==" not in str(seen)


def test_a_sealed_value_goes_out_as_it_is_and_nothing_else_that_is_no_json(server: Server, kube: HttpCluster) -> None:
    kube.apply({**secret(), "data": {"a": Sensitive({"b": ["aHVudGVyMg==", 1]})}}, dry_run=False)
    assert server.seen[0][2]["data"] == {"a": {"b": ["aHVudGVyMg==", 1]}}
    with pytest.raises(TypeError, match="PosixPath is no JSON"):
        kube.apply({**secret(), "data": pathlib.PosixPath("/")}, dry_run=False)


def test_what_was_sent_is_not_told_where_it_is_refused(server: Server, kube: HttpCluster) -> None:
    server.replies = [status(400, message="hunter2 is no good password")]
    with pytest.raises(MusterError, match="<redacted> is no good password"):
        kube.apply({**secret(), "data": {"a": Sensitive("aHVudGVyMg==")}}, dry_run=False)


def test_a_kind_that_is_not_served_any_more_is_not_taken_for_a_kind_without_objects(server: Server, kube: HttpCluster) -> None:
    server.replies = [status(404, message="the server could not find the requested resource")]
    with pytest.raises(NotFound):
        kube.list_metadata("v1", "Pod")


def test_a_patch_of_one_version_is_not_sent_again(server: Server, kube: HttpCluster) -> None:
    met = status(409, reason="Conflict", message="the object has been modified; please apply your changes")
    server.replies = [met]
    with pytest.raises(Conflict):
        kube.patch(POD, {"metadata": {"resourceVersion": "7"}}, dry_run=False)
    assert len(server.seen) == 1
    server.replies = [met]
    kube.patch(POD, {"metadata": {}}, dry_run=False)
    assert len(server.seen) == 3


def test_an_apply_names_its_field_manager_and_forces_nothing_unasked(server: Server, kube: HttpCluster) -> None:
    kube.apply(secret(), dry_run=False, manager="muster:o.x")
    assert "?fieldManager=muster%3Ao.x&force=false&" in server.seen[0][1]


def test_groups_whose_server_did_not_answer_are_known_to_be_unknown(server: Server, kube: HttpCluster) -> None:
    versions = [{"version": "v1beta1", "freshness": "Stale", "resources": []}, {"version": "v1", "freshness": "Current"}]
    groups = {"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "metrics.k8s.io"}, "versions": versions}]}
    server.replies = [(200, {"kind": "APIGroupDiscoveryList", "items": []}, {}), (200, groups, {})]
    found = kube.kinds()
    assert (found, found.unknown) == ([], ["metrics.k8s.io/v1beta1"])


def test_a_list_that_is_cut_off_says_so(server: Server, kube: HttpCluster) -> None:
    server.replies = [(200, {"items": [], "metadata": {"continue": "more"}}, {}), (200, {"items": []}, {})]
    assert [kube.list_metadata("v1", "Pod", limit=1).partial for _time in range(2)] == [True, False]
