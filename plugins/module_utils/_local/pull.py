# SPDX-License-Identifier: GPL-3.0-or-later
"""Pull the images of Kubernetes that kubeadm names from their registry, or a mirror of it, into OCI archives in the cache.

The requests are those of the OCI distribution specification v1.1 (section Pull), the tokens those of the Docker registry v2
(Token Authentication Specification), the archives those of the OCI image layout v1.1.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import tarfile
import tempfile
import typing as t
import urllib.parse
from pathlib import Path

from .._core.clock import Clock
from .._core.errors import NotFound, Rejected, Unauthorized
from .._core.files import draft_prefix, naming
from . import download
from .host import run
from .once import making
from .programs import require_name

INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
Document = dict[str, t.Any]


def archive_path(kubeadm: Path, name: str) -> Path:
    """The archive of an image in the cache: beside the kubeadm that names it, whose folder is called after its content."""
    require_name(name)
    return kubeadm.parent / f"{name}.tar"


def listed(kubeadm: Path, version: str) -> dict[str, str]:
    """Short name -> reference, such as ``etcd: registry.k8s.io/etcd:3.6.8-0``, as this very kubeadm lists its images."""
    found = run([str(kubeadm), "config", "images", "list", "--kubernetes-version", version], timeout=60).split()
    return {reference.rpartition("/")[2].partition(":")[0]: reference for reference in found}


def manifest_url(registry: str, reference: str) -> str:
    """The URL of an image's manifest. A registry ``https://HOST/FOLDER`` has the repositories of the original below FOLDER."""
    host, _slash, folder = registry.partition("://")[2].partition("/")
    repository, _colon, tag = reference.partition("/")[2].rpartition(":")
    return f"{registry.partition('://')[0]}://{host}/v2/{f'{folder}/' if folder else ''}{repository}/manifests/{tag}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pull:
    """An image to pull: its reference, the base URL of the registry, the archive and the processor."""

    reference: str
    registry: str
    archive: Path
    architecture: str

    def run(self, clock: Clock) -> None:
        """Write the archive, whole or not at all."""
        with making(self.archive) as missing, naming(self.archive):
            if missing:
                try:
                    self._pull(clock)
                except (ValueError, LookupError, TypeError, AttributeError) as exc:
                    raise Rejected(
                        f"{self.reference}: what {self.registry} sends is no image: {exc!r}.",
                        hint="Check the registry in local_cluster_release_urls.",
                    ) from exc

    def _pull(self, clock: Clock) -> None:
        url = manifest_url(self.registry, self.reference)
        headers = {"Accept": ", ".join((*INDEXES, *MANIFESTS)), **_token(url, clock)}
        body, kind = _document(url, headers, clock)
        if kind in INDEXES:
            url = f"{url.rpartition('/')[0]}/{self._of_platform(url, json.loads(body))}"
            body, kind = _document(url, headers, clock)
        manifest = json.loads(body)
        with tempfile.TemporaryDirectory(dir=self.archive.parent, prefix=draft_prefix(self.archive)) as folder:
            layout = Path(folder) / "layout"
            blobs = layout / "blobs" / "sha256"
            blobs.mkdir(parents=True)
            for blob in (manifest["config"], *manifest["layers"]):
                digest = _digest(url, blob)
                # An image may have the same layer several times.
                if not (target := blobs / digest[7:]).exists():
                    download.save(f"{url.rpartition('/manifests/')[0]}/blobs/{digest}", target, digest, clock, headers)
            self._write(layout, body, kind)
            draft = Path(folder) / "archive"
            with tarfile.open(draft, "w", format=tarfile.GNU_FORMAT) as archive:
                archive.add(layout, arcname=".")
            draft.replace(self.archive)

    def _of_platform(self, url: str, index: Document) -> str:
        """The digest of the manifest for this processor."""
        for row in index.get("manifests") or []:
            platform = row.get("platform") or {}
            if (platform.get("os"), platform.get("architecture")) == ("linux", self.architecture):
                return _digest(url, row)
        raise NotFound(f"{url}: there is no image for linux/{self.architecture}.", hint="Use a mirror that has it.")

    def _write(self, layout: Path, manifest: bytes, kind: str) -> None:
        digest = hashlib.sha256(manifest).hexdigest()
        (layout / "blobs" / "sha256" / digest).write_bytes(manifest)
        row = {
            "mediaType": kind,
            "digest": f"sha256:{digest}",
            "size": len(manifest),
            "annotations": {"io.containerd.image.name": self.reference},
        }
        (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [row]}), encoding="utf-8")
        (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}', encoding="utf-8")


def reference_of(archive: Path) -> str:
    """The reference under which an archive was pulled."""
    with tarfile.open(archive) as tar:
        index = json.load(t.cast("t.IO[bytes]", tar.extractfile("./index.json")))
    return str(index["manifests"][0]["annotations"]["io.containerd.image.name"])


def _digest(url: str, row: Document) -> str:
    """The digest of a descriptor, which becomes part of a path."""
    digest = str(row.get("digest"))
    if not DIGEST.fullmatch(digest):
        raise Rejected(f"{url} names a part with the digest {digest!r}, which is no SHA-256.", hint="Use another mirror.")
    return digest


def _document(url: str, headers: download.Headers, clock: Clock) -> tuple[bytes, str]:
    """A manifest or an index, and its media type. One that is asked for by digest must have that digest."""
    with download.request(url, headers) as answer:
        kind, body = answer.headers.get_content_type(), download.read(url, answer, clock)
    asked = url.rpartition("/")[2]
    if DIGEST.fullmatch(asked) and f"sha256:{hashlib.sha256(body).hexdigest()}" != asked:
        raise Rejected(f"{url} does not have this digest.", hint="Do not use this mirror.")
    if kind not in (*INDEXES, *MANIFESTS):
        raise Rejected(f"{url} is of type {kind}, which is no image.", hint="Check the registry in local_cluster_release_urls.")
    return body, kind


def _token(url: str, clock: Clock) -> dict[str, str]:
    """Get a token for anonymous pulls, if the registry asks for one. Returns the header with it."""
    try:
        download.request(url, {"Accept": ", ".join((*INDEXES, *MANIFESTS))}, method="HEAD").close()
    except Unauthorized as exc:
        challenge = getattr(exc.__cause__, "headers", {}).get("WWW-Authenticate", "")
        asked = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
        if not challenge.lower().startswith("bearer ") or not asked.get("realm", "").startswith(("https:", "http:")):
            raise
        query = urllib.parse.urlencode({key: asked[key] for key in ("service", "scope") if key in asked})
        with download.request(f"{asked['realm']}?{query}") as answer:
            given = json.loads(download.read(asked["realm"], answer, clock))
        return {"Authorization": f"Bearer {given.get('token') or given.get('access_token')}"}
    return {}
