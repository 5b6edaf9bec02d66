# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of Kubernetes, pulled from a registry with every fault into archives of the cache."""

import dataclasses
import hashlib
import json
import tarfile
import threading
import typing as t
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, MusterError, NotFound, Rejected, Unreachable
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._local import pull
from ansible_collections.muster.ml.plugins.module_utils._local.pull import INDEXES, MANIFESTS
from ansible_collections.muster.ml.plugins.modules import local_fetch
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

REFERENCE = "registry.k8s.io/coredns/coredns:v1.14.2"
LAYER, CONFIG = b"a layer", b"{}"


def sha(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclasses.dataclass
class Registry:
    """What it has, by path, with the media type; and what it was asked."""

    url: str = ""
    files: dict[str, tuple[bytes, str]] = dataclasses.field(default_factory=dict)
    token: str = ""
    asked: list[str] = dataclasses.field(default_factory=list)

    def put(self, reference: str, body: bytes, kind: str) -> str:
        self.files[f"/v2/mirror/coredns/coredns/{reference or 'manifests/' + sha(body)}"] = body, kind
        return sha(body)

    def fill(self, architecture: str = "amd64") -> None:
        layer, config = (self.put(f"blobs/{sha(body)}", body, "application/octet-stream") for body in (LAYER, CONFIG))
        manifest = {"config": {"digest": config}, "layers": [{"digest": layer}, {"digest": layer}]}
        digest = self.put("", json.dumps(manifest).encode(), MANIFESTS[0])
        rows = [{"digest": digest, "platform": {"os": os, "architecture": architecture}} for os in ("windows", "linux")]
        rows[0]["digest"] = "sha256:" + "0" * 64
        self.put("manifests/v1.14.2", json.dumps({"manifests": rows}).encode(), INDEXES[0])

    def pull(self, folder: Path) -> pull.Pull:
        folder.mkdir(exist_ok=True)
        return pull.Pull(reference=REFERENCE, registry=f"{self.url}/mirror", archive=folder / "coredns.tar", architecture="amd64")


@pytest.fixture
def registry() -> t.Iterator[Registry]:
    held = Registry()

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            held.asked.append(f"{self.command} {self.path} {self.headers.get('Authorization', '')}".strip())
            if self.path.startswith("/token?"):
                self.answer(json.dumps({"token": "t0"}).encode(), "application/json")
            elif held.token and self.path.startswith("/v2/") and self.headers.get("Authorization") != f"Bearer {held.token}":
                self.send_response(401)
                self.send_header("WWW-Authenticate", f'Bearer realm="{held.url}/token",service="s",scope="repository:x:pull"')
                self.end_headers()
            elif held.token and "/blobs/" in self.path and not self.path.startswith("/store"):
                self.send_response(307)
                self.send_header("Location", f"{held.url}/store{self.path}")
                self.end_headers()
            elif (found := held.files.get(self.path.removeprefix("/store"))) is None:
                self.send_error(404)
            else:
                self.answer(*found)

        def do_HEAD(self) -> None:
            self.do_GET()

        def answer(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body.removesuffix(b"(half)"))

        def log_message(self, *_args: object) -> None:
            """No log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        held.url = f"http://127.0.0.1:{server.server_address[1]}"
        held.fill()
        yield held
        server.shutdown()
        thread.join()


def contents(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {one.name: t.cast("t.IO[bytes]", tar.extractfile(one)).read() for one in tar if one.isfile()}


def test_an_image_is_pulled_for_this_processor_and_not_asked_for_again(registry: Registry, tmp_path: Path) -> None:
    desired = registry.pull(tmp_path)
    desired.run(FakeClock())
    found = contents(desired.archive)
    (row,) = json.loads(found["./index.json"])["manifests"]
    assert row["mediaType"] == MANIFESTS[0]
    assert row["size"] == len(found[f"./blobs/sha256/{row['digest'][7:]}"])
    assert found[f"./blobs/sha256/{sha(LAYER)[7:]}"] == LAYER
    assert pull.reference_of(desired.archive) == REFERENCE
    assert [path.name for path in tmp_path.iterdir()] == ["coredns.tar"]
    registry.asked.clear()
    desired.run(FakeClock())
    assert registry.asked == []


def test_a_token_is_got_and_stays_with_the_registry(registry: Registry, tmp_path: Path) -> None:
    registry.token = "t0"
    registry.pull(tmp_path).run(FakeClock())
    assert "GET /token?service=s&scope=repository%3Ax%3Apull" in registry.asked
    assert [line for line in registry.asked if "/store/" in line]
    assert not [line for line in registry.asked if "/store/" in line and "Bearer" in line]


def of_no_platform(registry: Registry) -> None:
    registry.fill(architecture="s390x")


def without_the_tag(registry: Registry) -> None:
    del registry.files["/v2/mirror/coredns/coredns/manifests/v1.14.2"]


def half_a_layer(registry: Registry) -> None:
    registry.put(f"blobs/{sha(LAYER)}", LAYER + b"(half)", "")


def another_layer(registry: Registry) -> None:
    registry.put(f"blobs/{sha(LAYER)}", b"another", "")


def another_manifest(registry: Registry) -> None:
    (path,) = (path for path in registry.files if "/manifests/sha256:" in path)
    registry.files[path] = b"{}", MANIFESTS[0]


def page_of_a_portal(registry: Registry) -> None:
    registry.put("manifests/v1.14.2", b"<html>Sign in</html>", "text/html")


def no_json(registry: Registry) -> None:
    registry.put("manifests/v1.14.2", b"<html>", INDEXES[0])


def a_list(registry: Registry) -> None:
    registry.put("manifests/v1.14.2", b"[]", MANIFESTS[0])


def digest_of_a_path(registry: Registry) -> None:
    registry.put("manifests/v1.14.2", json.dumps({"config": {"digest": "sha256:../../x"}, "layers": []}).encode(), MANIFESTS[0])


@pytest.mark.parametrize(
    ("fault", "kind", "told"),
    [
        (of_no_platform, NotFound, "there is no image for linux/amd64"),
        (without_the_tag, NotFound, r"manifests/v1\.14\.2: the server answers HTTP 404 Not Found"),
        (half_a_layer, Unreachable, "the connection ended after 7 of 13 bytes"),
        (another_layer, Rejected, r"blobs/sha256:\w+ has sha256 \w+, expected \w+"),
        (another_manifest, Rejected, "does not have this digest"),
        (page_of_a_portal, Rejected, "is of type text/html, which is no image"),
        (no_json, Rejected, "what http://.*/mirror sends is no image"),
        (a_list, Rejected, "what http://.*/mirror sends is no image"),
        (digest_of_a_path, Rejected, r"names a part with the digest 'sha256:../../x', which is no SHA-256"),
    ],
)
def test_a_fault_of_a_registry_is_told_and_leaves_nothing(
    fault: t.Callable[[Registry], None], kind: type[MusterError], told: str, registry: Registry, tmp_path: Path
) -> None:
    fault(registry)
    with pytest.raises(kind, match=told) as caught:
        registry.pull(tmp_path).run(FakeClock())
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("registry_url", "url"),
    [
        ("https://registry.k8s.io", "https://registry.k8s.io/v2/coredns/coredns/manifests/v1.14.2"),
        ("http://x:1/k8s/io", "http://x:1/v2/k8s/io/coredns/coredns/manifests/v1.14.2"),
    ],
)
def test_a_mirror_may_have_a_folder(registry_url: str, url: str) -> None:
    assert pull.manifest_url(registry_url, REFERENCE) == url


# kubeadm v1.36.3 config images list --kubernetes-version v1.36.3, of the program that the role builds
LISTED = """registry.k8s.io/kube-apiserver:v1.36.3
registry.k8s.io/kube-controller-manager:v1.36.3
registry.k8s.io/kube-scheduler:v1.36.3
registry.k8s.io/kube-proxy:v1.36.3
registry.k8s.io/coredns/coredns:v1.14.2
registry.k8s.io/pause:3.10.2
registry.k8s.io/etcd:3.6.8-0
"""


def given(folder: Path, held: Registry, **params: t.Any) -> HostContext:
    kubeadm = folder / "kubeadm"
    if not kubeadm.exists():
        kubeadm.write_text(f"#!/bin/sh\n[ $5 = v1.36.3 ] && cat <<END\n{LISTED}END\n")
        kubeadm.chmod(0o755)
    defaults = {
        "released": [], "images": ["coredns"], "kubeadm": str(kubeadm), "kubernetes_version": "v1.36.3",
        "registry_url": f"{held.url}/mirror/", "cache_dir": str(folder),
    }  # fmt: skip
    return HostContext({**defaults, **params}, check=False)


def test_images_are_those_that_kubeadm_lists(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_fetch, "architecture", lambda: "amd64")
    result = local_fetch.execute(given(tmp_path, registry))
    assert result == {"changed": True, "paths": {"coredns": str(tmp_path / "coredns.tar")}}
    assert pull.reference_of(tmp_path / "coredns.tar") == REFERENCE
    registry.asked.clear()
    assert not local_fetch.execute(given(tmp_path, registry))["changed"]
    assert registry.asked == []


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"images": ["nginx"]}, "kubeadm lists no nginx"),
        ({"images": ["../coredns"]}, "is no name of a program or an image"),
        ({"kubeadm": None}, "without kubeadm or kubernetes_version"),
        ({"registry_url": "registry.k8s.io"}, "is not the URL of a mirror"),
    ],
)
def test_wrong_options_are_refused(params: dict[str, t.Any], told: str, registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=told):
        local_fetch.execute(given(tmp_path, registry, **params))
    assert registry.asked == []


def test_an_archive_lies_beside_any_path(tmp_path: Path) -> None:
    """Of a folder, or of /, it is the run of kubeadm that tells."""
    assert [pull.archive_path(path, "etcd") for path in (Path("/"), tmp_path / "kubeadm")] == [Path("/etcd.tar"), tmp_path / "etcd.tar"]
