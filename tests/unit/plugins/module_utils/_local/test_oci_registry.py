# SPDX-License-Identifier: GPL-3.0-or-later
"""A registry of the user's: what counts as there, what is pushed, who may see the password, what a refusal says.

The messages of ORAS are those that it printed at a real registry (see the check `registry`).
"""

import base64
import hashlib
import io
import json
import tarfile
import typing as t
from itertools import pairwise
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Causes,
    Failed,
    Forbidden,
    InvalidInput,
    MusterError,
    Unauthorized,
    Unreachable,
)
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._local import gobuild, oci_nodes, oci_registry
from ansible_collections.muster.ml.plugins.module_utils._local.gobuild import GoBuild
from ansible_collections.muster.ml.plugins.module_utils._local.host import failure
from ansible_collections.muster.ml.plugins.module_utils._local.oci import OciImage, Published
from ansible_collections.muster.ml.plugins.module_utils._local.oci_registry import RECIPE, Registry
from ansible_collections.muster.ml.plugins.modules import local_image

CONFIG = {"entrypoint": ["/x"], "cmd": [], "env": {}, "user": "0:0", "working_dir": "/", "exposed_ports": [], "labels": {}}
NOTHING: dict[str, t.Any] = {"architectures": [], "debian": None, "wheels": [], "programs": [], "files": [], "links": []}
PASSWORD = "canary-password"


@pytest.fixture
def image(tmp_path: Path) -> OciImage:
    return OciImage(name="muster.local/x:1", recipe={**NOTHING, "config": CONFIG}, cache_dir=tmp_path)


@pytest.fixture
def pins(tmp_path: Path) -> Path:
    (tmp_path / "go.mod").write_text("module x\n\ngo 1.24\n")
    (tmp_path / "go.sum").write_text("x v1 h1:a=\n")
    return tmp_path


def registry(pins: Path, address: str = "registry.example.com/team", **options: str) -> Registry:
    oras = GoBuild(name="oras", module_dir=pins, package="oras.land/oras/cmd/oras", cache_dir=pins)
    return Registry(address=address, oras=oras, **options)


HEX = "0" * 64


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ("nats:2.14.2", "docker.io/library/nats:2.14.2"),
        ("prom/pushgateway:v1", "docker.io/prom/pushgateway:v1"),
        ("localhost/x:1", "localhost/x:1"),
        ("h:5000/a/b:1", "h:5000/a/b:1"),
        (f"quay.io/a/b@sha256:{HEX}", f"quay.io/a/b@sha256:{HEX}"),
        (f"quay.io/a/b:1@sha256:{HEX}", f"quay.io/a/b:1@sha256:{HEX}"),
    ],
)
def test_the_name_of_a_published_image_is_completed(given: str, whole: str) -> None:
    assert Published(given).name == whole


@pytest.mark.parametrize("name", ["nats", "quay.io/a/b", "a b:1", "a:1@sha256:12", "", "{{ x }}:1"])
def test_an_image_that_does_not_say_which_is_not_copied(name: str) -> None:
    with pytest.raises(InvalidInput, match="no image that can be copied"):
        Published(name)


class Oras:
    """Stands in for ORAS and umoci: notes what is run, and has one manifest."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, manifest: str = "", says: str = "") -> None:
        self.ran: list[list[str]] = []
        self.credentials: list[dict[str, t.Any]] = []
        self.manifest, self.says, self.pushed = manifest, says, ""
        for module in (oci_registry, oci_nodes):
            monkeypatch.setattr(module, "run", self.run)
        monkeypatch.setattr(gobuild, "build", lambda desired: desired.path)

    def run(self, argv: t.Sequence[str], causes: Causes = (), **_options: t.Any) -> str:
        self.ran.append(list(argv))
        self.credentials += [json.loads(Path(path).read_text()) for option, path in pairwise(argv) if option.endswith("registry-config")]
        if argv[1] == "cp":
            self.manifest = self.pushed
        if argv[1] == "manifest" and not self.manifest:
            raise failure(argv, 1, self.says or "Error response from registry: a/x:1: not found", causes)
        return self.manifest if argv[1] == "manifest" else ""


def manifest(key: str) -> str:
    return json.dumps({"schemaVersion": 2, "annotations": {RECIPE: key}})


def digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@pytest.mark.parametrize(
    "address", ["", "team", "team/x", "https://registry.example.com", "registry.example.com/team:1", "h:5000/", "a b.c", "h.x/Team"]
)
def test_what_is_no_address_of_a_registry_is_refused(pins: Path, address: str) -> None:
    with pytest.raises(InvalidInput, match="images_registry"):
        registry(pins, address)


@pytest.mark.parametrize("address", ["localhost", "h:5000", "10.0.0.1:5000/a", "registry.example.com", "docker.io/team"])
def test_what_is_an_address_of_a_registry_is_taken(pins: Path, image: OciImage, address: str) -> None:
    assert registry(pins, address).reference(image) == f"{address}/x:1"


def test_half_a_login_and_a_missing_authority_are_refused(pins: Path) -> None:
    for half in ({"username": "u"}, {"password": "p"}):
        with pytest.raises(InvalidInput, match="one is empty"):
            registry(pins, **half)
    with pytest.raises(InvalidInput, match="no file /nowhere"):
        registry(pins, ca_cert="/nowhere")


def test_only_an_image_of_the_same_recipe_is_there(pins: Path, image: OciImage, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = manifest(image.key()), manifest("0123456789abcdef")
    assert [registry(pins).digest(image) for text in (own, other, "{}", "") if Oras(monkeypatch, text)] == [digest(own), "", "", ""]


def test_the_password_is_in_no_argument_and_in_no_file_that_stays(pins: Path, image: OciImage, monkeypatch: pytest.MonkeyPatch) -> None:
    oras = Oras(monkeypatch, manifest(image.key()))
    secret = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    asked = registry(pins, "h:5000/team", username="me", password=PASSWORD)
    asked.digest(image)
    assert oras.credentials == [{"auths": {"h:5000": {"auth": secret}}}]
    words = oras.ran[0]
    assert not [word for word in words if PASSWORD in word or secret in word]
    assert not Path(words[words.index("--registry-config") + 1]).exists()
    assert PASSWORD not in repr(asked)


def test_docker_hub_has_its_credentials_under_a_name_of_its_own(pins: Path, image: OciImage, monkeypatch: pytest.MonkeyPatch) -> None:
    oras = Oras(monkeypatch, manifest(image.key()))
    registry(pins, "docker.io/team", username="me", password=PASSWORD).digest(image)
    assert list(oras.credentials[0]["auths"]) == ["https://index.docker.io/v1/"]


@pytest.mark.parametrize(
    ("says", "kind", "told"),
    [
        ("Error response from registry: unauthorized: authentication required", Unauthorized, "refuses the credentials"),
        ('HEAD "https://h/v2/": response status code 401: Unauthorized', Unauthorized, "refuses the credentials"),
        ("Error: basic credential not found", Unauthorized, "there are none"),
        ("denied: requested access to the resource is denied", Forbidden, "does not allow"),
        ("response status code 403: Forbidden", Forbidden, "does not allow"),
        ("tls: failed to verify certificate: x509: unknown authority", Unreachable, "images_registry_ca_cert"),
        ("http: server gave HTTP response to HTTPS client", Unreachable, "has no TLS"),
        ("dial tcp 10.0.0.1:5000: connect: connection refused", Unreachable, "connection refused"),
    ],
)
def test_a_refusal_says_what_it_means(
    pins: Path, image: OciImage, monkeypatch: pytest.MonkeyPatch, says: str, kind: type[MusterError], told: str
) -> None:
    Oras(monkeypatch, says=says)
    with pytest.raises(kind, match=told) as error:
        registry(pins).digest(image)
    assert isinstance(error.value, kind)
    assert "registry.example.com/team/x:1" in str(error.value)
    assert "images_registry" in str(error.value) or "TLS" in str(error.value)


def archived(image: OciImage) -> None:
    """An archive of two layers, as umoci makes it."""
    manifest = {"layers": [{"digest": "sha256:a"}, {"digest": "sha256:b"}]}
    files = {
        "./index.json": json.dumps({"manifests": [{"digest": "sha256:m"}, {"digest": "sha256:m"}]}),
        "./blobs/sha256/m": json.dumps(manifest),
        "./blobs/sha256/a": "first",
        "./blobs/sha256/b": "second",
    }
    image.archive.parent.mkdir(parents=True)
    with tarfile.open(image.archive, "w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


def test_the_layers_of_an_archive_come_out_in_their_order(image: OciImage, tmp_path: Path) -> None:
    archived(image)
    assert [path.read_text() for path in oci_registry.unpacked_layers(image, tmp_path)] == ["first", "second"]


def context(pins: Path, *, check: bool = False, **registry: str) -> HostContext:
    given = {"address": "h:5000", "username": "", "password": "", "ca_cert": None, "client": str(pins), **registry}
    params = {"name": "muster.local/x:1", "state": "present", "cluster_name": "", "note": "", "registry": given}
    params |= {"cache_dir": str(pins), "builder": str(pins), "recipe": {**NOTHING, "config": CONFIG}}
    return HostContext(params=params, check=check)


def test_what_is_missing_is_pushed_compressed_and_said_by_digest(pins: Path, image: OciImage, monkeypatch: pytest.MonkeyPatch) -> None:
    archived(image)
    oras = Oras(monkeypatch)
    oras.pushed = manifest(image.key())
    result = local_image.execute(context(pins, address="h:5000/team/"))
    assert (result["changed"], result["image"]) == (True, f"h:5000/team/x@{digest(oras.pushed)}")
    assert [argv[argv.index("--compress") + 1] for argv in oras.ran if "--compress" in argv] == ["gzip", "gzip"]
    assert [f"{RECIPE}={image.key()}" in argv for argv in oras.ran if argv[1] == "config"] == [True]
    assert [argv[-1] for argv in oras.ran if argv[1] == "cp"] == ["h:5000/team/x:1"]
    assert [path.name for path in image.archive.parent.iterdir()] == [image.archive.name]


def test_what_is_there_is_neither_built_nor_pushed(pins: Path, image: OciImage, monkeypatch: pytest.MonkeyPatch) -> None:
    oras = Oras(monkeypatch, manifest(image.key()))
    result = local_image.execute(context(pins))
    assert (result["changed"], result["image"]) == (False, f"h:5000/x@{digest(oras.manifest)}")
    assert [argv[1] for argv in oras.ran] == ["manifest"]
    assert not image.archive.exists()


def test_check_mode_pushes_nothing_and_builds_no_client(pins: Path, image: OciImage, monkeypatch: pytest.MonkeyPatch) -> None:
    archived(image)
    oras, told = Oras(monkeypatch), []
    plan = context(pins, check=True)
    plan.warn = told.append
    assert local_image.execute(plan)["changed"]
    assert oras.ran == []
    assert "h:5000 was not asked" in told[0]
    client = registry(pins).oras.path
    client.parent.mkdir(parents=True)
    client.touch()
    result = local_image.execute(plan)
    assert (result["changed"], result["image"]) == (True, "")
    assert [argv[1] for argv in oras.ran] == ["manifest"]


def test_a_registry_that_keeps_something_else_is_an_error(pins: Path, image: OciImage, monkeypatch: pytest.MonkeyPatch) -> None:
    archived(image)
    oras = Oras(monkeypatch)
    oras.pushed = manifest("0123456789abcdef")
    with pytest.raises(Failed, match="not what was pushed"):
        local_image.execute(context(pins))
