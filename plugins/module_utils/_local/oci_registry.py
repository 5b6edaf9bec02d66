# SPDX-License-Identifier: GPL-3.0-or-later
"""A registry that gets an image. ORAS asks it and pushes to it; like umoci, it is built from a pinned Go module."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import hashlib
import json
import os
import re
import shutil
import tarfile
import tempfile
import typing as t
from pathlib import Path

from .._core.errors import Causes, CommandFailed, Failed, Forbidden, InvalidInput, MusterError, Unauthorized, Unreachable
from .gobuild import GoBuild
from .host import run
from .oci import OciImage, Published
from .oci_nodes import write_layout

# An annotation of the manifest: images that are built upon this one inherit its labels, but not its annotations.
RECIPE = "ml.muster.recipe"
ADDRESS = re.compile(r"(localhost|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+|[A-Za-z0-9-]+(?=:))(:[0-9]+)?(/[a-z0-9._-]+)*")
# Docker Hub's credentials lie under another name than its images.
CREDENTIALS_OF = {"docker.io": "https://index.docker.io/v1/"}
UPLOAD_SECONDS = 3600

_LOGIN = "Set images_registry_username and images_registry_password, or log in to it (oras login, docker login) as the user who builds."
_DESCRIBE = ("manifest", "fetch", "--descriptor")
_OF_THE_SOURCE = (
    "Check the name, the network and the proxy settings; where its registry asks for a login, log in to it (oras login, docker login) "
    "as the user who runs this."
)
# What ORAS says, in lower case (it is pinned, so its words are known), what that means, and the next step.
_REFUSALS: tuple[tuple[str, type[MusterError], str, str], ...] = (
    ("credential not found", Unauthorized, "asks for credentials, and there are none", _LOGIN),
    ("unauthorized", Unauthorized, "refuses the credentials", _LOGIN),
    ("denied", Forbidden, "does not allow this", "Ask its owner for the right to push there, or correct images_registry."),
    ("forbidden", Forbidden, "does not allow this", "Ask its owner for the right to push there, or correct images_registry."),
    ("x509", Unreachable, "has a certificate that this machine does not trust",
     "Set images_registry_ca_cert to the file of the authority that signed it."),
    ("http response to https", Unreachable, "has no TLS", "Give it TLS: without, every host on the way can read the password."),
)  # fmt: skip
_ABSENT = "absent"
_CAUSES: Causes = ((_ABSENT, re.compile(": not found$")), *((row[0], re.compile(f"(?i){row[0]}")) for row in _REFUSALS))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Registry:
    """The user's registry, and a folder in it if the address has one."""

    address: str
    oras: GoBuild
    username: str = ""
    password: str = dataclasses.field(default="", repr=False)
    ca_cert: str = ""

    def __post_init__(self) -> None:
        if not ADDRESS.fullmatch(self.address):
            raise InvalidInput(
                f"images_registry: '{self.address}' is not the address of a registry.",
                hint="Write it as host, host:port or host/folder, without https:// and without a tag: registry.example.com/team.",
            )
        if bool(self.username) != bool(self.password):
            raise InvalidInput(
                f"{self.address}: of images_registry_username and images_registry_password, one is empty.",
                hint="Set both, or none of them to use the login of the user who builds.",
            )
        if self.ca_cert and not Path(self.ca_cert).is_file():
            raise InvalidInput(
                f"images_registry_ca_cert: there is no file {self.ca_cert}.", hint="Give the path of a PEM file on the machine that builds."
            )

    def reference(self, image: OciImage | Published) -> str:
        """The image's name in this registry."""
        return f"{self.address}/{image.name.partition('/')[2]}"

    def digest(self, image: OciImage) -> str:
        """Digest of what is under the image's name, if it was made from the image's recipe; else ''."""
        try:
            manifest = self._oras("manifest fetch", "", self.reference(image), timeout=120)
        except CommandFailed as exc:
            return self._nothing(image, exc)
        annotations = json.loads(manifest).get("annotations") or {}
        return f"sha256:{hashlib.sha256(manifest.encode()).hexdigest()}" if annotations.get(RECIPE) == image.key() else ""

    def copied(self, image: Published) -> str:
        """Digest of what the registry in the image's own name has, if it is under the image's name here, too; else ''."""
        try:
            described = run([str(self.oras.path), *_DESCRIBE, image.name], timeout=120)
        except CommandFailed as exc:
            raise Unreachable(f"{image.name}: {exc.said or exc.message}.", _OF_THE_SOURCE) from exc
        try:
            found = self._oras(" ".join(_DESCRIBE), "", self.reference(image), timeout=120)
        except CommandFailed as exc:
            return self._nothing(image, exc)
        digest: str = json.loads(described)["digest"]
        return digest if json.loads(found)["digest"] == digest else ""

    def copy(self, image: Published) -> str:
        """Copy the image, for all processors that it is made for, from the registry in its name, and return its digest."""
        try:
            self._oras("cp", "to-", image.name, self.reference(image), timeout=UPLOAD_SECONDS)
        except CommandFailed as exc:
            raise self._refusal(image, exc) from exc
        return self.copied(image)

    def _nothing(self, image: OciImage | Published, exc: CommandFailed) -> str:
        """An empty digest where the registry says that it has no such image; anything else that it says is an error."""
        if exc.cause == _ABSENT:
            return ""
        raise self._refusal(image, exc) from exc

    def push(self, image: OciImage, umoci: Path) -> str:
        """Upload what the registry lacks of the image in the cache, and return its digest."""
        with tempfile.TemporaryDirectory(dir=image.archive.parent, prefix=".push-") as folder:
            layout = Path(folder) / "layout"
            write_layout(image, str(umoci), unpacked_layers(image, Path(folder)), layout, "gzip", {RECIPE: image.key()})
            try:
                self._oras("cp --from-oci-layout", "to-", f"{layout}:image", self.reference(image), timeout=UPLOAD_SECONDS)
            except CommandFailed as exc:
                raise self._refusal(image, exc) from exc
        if digest := self.digest(image):
            return digest
        raise Failed(
            f"{self.reference(image)} is not what was pushed a moment ago.",
            hint="See who else pushes to this name, and whether the registry changes manifests; then run again.",
        )

    def _oras(self, command: str, prefix: str, *words: str, timeout: float) -> str:
        ca = [f"--{prefix}ca-file", self.ca_cert] if self.ca_cert else []
        with self._credentials() as path:
            config = [f"--{prefix}registry-config", path] if path else []
            return run([str(self.oras.path), *command.split(), *ca, *config, *words], timeout=timeout, causes=_CAUSES)

    @contextlib.contextmanager
    def _credentials(self) -> t.Iterator[str]:
        """Path of a file in memory: arguments are seen by every user, and a run that is killed leaves files of a disk behind."""
        if not self.username:
            yield ""
            return
        host = self.address.partition("/")[0]
        secret = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        with os.fdopen(os.memfd_create("credentials"), "w", encoding="utf-8") as file:
            json.dump({"auths": {CREDENTIALS_OF.get(host, host): {"auth": secret}}}, file)
            file.flush()
            yield f"/proc/{os.getpid()}/fd/{file.fileno()}"

    def _refusal(self, image: OciImage | Published, exc: CommandFailed) -> MusterError:
        said, reference = (exc.said or exc.message).rstrip("."), self.reference(image)
        for cause, kind, meaning, hint in _REFUSALS:
            if cause == exc.cause:
                return kind(f"{reference}: the registry {meaning}: {said}.", hint)
        return Unreachable(f"{reference}: {said}.", "Check images_registry, the network and the proxy settings.")


def unpacked_layers(image: OciImage, folder: Path) -> list[Path]:
    """The layers of the archive in the cache, as files."""
    with tarfile.open(image.archive) as archive:

        def blob(digest: str) -> t.IO[bytes]:
            return t.cast("t.IO[bytes]", archive.extractfile(f"./blobs/{digest.replace(':', '/')}"))

        index = json.load(t.cast("t.IO[bytes]", archive.extractfile("./index.json")))
        layers: list[Path] = []
        for layer in json.load(blob(index["manifests"][0]["digest"]))["layers"]:
            layers.append(folder / f"{len(layers)}.tar")
            with layers[-1].open("wb") as file:
                shutil.copyfileobj(blob(layer["digest"]), file, 1 << 20)
    return layers
