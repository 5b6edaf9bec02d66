# SPDX-License-Identifier: GPL-3.0-or-later
"""A mirror of what role local_cluster takes from released files: packed from this machine's own programs, with sums of their own."""

import contextlib
import gzip
import hashlib
import json
import os
import re
import shutil
import tarfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.muster.ml.plugins.module_utils._local import gobuild, pull, system_images
from ansible_collections.muster.ml.plugins.module_utils._local.archive import Image, write_image
from ansible_collections.muster.ml.plugins.module_utils._local.gobuild import GoBuild, architecture
from ansible_collections.muster.ml.plugins.module_utils._local.programs import go_build
from ansible_collections.muster.ml.plugins.module_utils._local.sources import IMAGES
from support.places import ROOT

ROLE = ROOT / "roles" / "local_cluster"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "muster"
INDEX, MANIFEST, CONFIG, LAYER = (
    f"application/vnd.oci.image.{kind}" for kind in ("index.v1+json", "manifest.v1+json", "config.v1+json", "layer.v1.tar+gzip")
)


def role_vars() -> dict[str, Any]:
    """vars/main.yml with the variables in the rows of its tables filled in."""
    text = (ROLE / "vars" / "main.yml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    for _nested in range(2):
        for name in re.findall(r"\{\{ (__local_cluster_\w+_(?:version|ldflags|module)) \}\}", text):
            text = text.replace(f"{{{{ {name} }}}}", str(found[name]).strip())
        found = yaml.safe_load(text)
    return found


def go_programs() -> dict[str, GoBuild]:
    """The programs that the role builds, of which the cache of this machine has those that a cluster needed so far."""
    rows = ({**row, "module_dir": ROLE / "files" / "go" / row["module"]} for row in role_vars()["__local_cluster_programs"])
    return {row["name"]: go_build(row, CACHE, architecture()) for row in rows}


def built() -> dict[str, Path]:
    """The programs of this machine: those that the role builds, in the cache, and Debian's."""
    found = {name: program.path for name, program in go_programs().items()}
    plugins = {name: Path("/usr/lib/cni") / name for name in ("ptp", "portmap", "host-local", "loopback")}
    return {**found, **plugins, "runc": Path("/usr/sbin/runc")}


@dataclass(frozen=True)
class Mirror:
    """One that runs. ``settings`` are the variables of the role with its URLs and sums."""

    settings: Mapping[str, Any]
    requests: list[str]


def pack(folder: Path) -> list[dict[str, Any]]:
    """Write the files as upstream packs them. Returns the role's table with their sums."""
    programs, rows = built(), role_vars()["__local_cluster_released"]
    for row in rows:
        path = folder / row["base"] / row["path"].replace("{arch}", architecture())
        path.parent.mkdir(parents=True, exist_ok=True)
        ((first, member), *_more) = row["program_paths"].items()
        if member:
            with tarfile.open(path, "w:gz", compresslevel=1) as archive:
                for name, place in row["program_paths"].items():
                    archive.add(programs[name], arcname=f"./{place}")
        else:
            shutil.copyfile(programs[first], path)
        with path.open("rb") as file:
            row["sha256_by_arch"] = {architecture(): hashlib.file_digest(file, "sha256").hexdigest()}
    version = role_vars()["__local_cluster_kubernetes_version"]
    for name, reference in pull.listed(programs["kubeadm"], version).items():
        image = system_images.build_image(reference, {name: str(programs[name])} if name in programs else {})
        _push(folder / "registry" / reference.partition("/")[2].rpartition(":")[0], reference.rpartition(":")[2], image)
    return list(rows)


def cache(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """A cache with nothing but what is not released, built first if no cluster of this machine needed it yet."""
    fetched = {*IMAGES, *(name for row in rows for name in row["program_paths"])}
    for name, program in go_programs().items():
        if name not in fetched:
            path = gobuild.ensure(program, f"building {name}", lambda _text: None)
            place = folder / "cache" / "bin" / path.parent.name / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, place)
    return folder / "cache"


def _push(repository: Path, tag: str, image: Image) -> None:
    """Write an image as the files that a registry answers with: an index for two processors, its manifest, and blobs."""
    for name in ("manifests", "blobs"):
        (repository / name).mkdir(parents=True, exist_ok=True)
    saved = repository / "saved.tar"
    with saved.open("wb") as out:
        write_image(image, out)
    with tarfile.open(saved) as archive:
        manifest, config, layer = (archive.extractfile(member) for member in archive)
        assert manifest is not None
        assert config is not None
        assert layer is not None
        packed = repository / "layer"
        with gzip.open(packed, "wb", compresslevel=1) as out:
            shutil.copyfileobj(layer, out)
        body = config.read()
    saved.unlink()
    parts = [_blob(repository, LAYER, packed)]
    packed.write_bytes(body)
    row = {"schemaVersion": 2, "mediaType": MANIFEST, "config": _blob(repository, CONFIG, packed), "layers": parts}
    digest = _manifest(repository, "", row)
    platforms = [{"architecture": "s390x", "os": "linux"}, {"architecture": architecture(), "os": "linux"}]
    digests = [f"sha256:{'0' * 64}", digest]
    rows = [{"mediaType": MANIFEST, "digest": one, "size": 1, "platform": two} for one, two in zip(digests, platforms, strict=True)]
    _manifest(repository, tag, {"schemaVersion": 2, "mediaType": INDEX, "manifests": rows})


def _manifest(repository: Path, tag: str, document: dict[str, Any]) -> str:
    body = json.dumps(document).encode()
    digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
    (repository / "manifests" / (tag or digest)).write_bytes(body)
    return digest


def _blob(repository: Path, kind: str, file: Path) -> dict[str, Any]:
    with file.open("rb") as content:
        digest = f"sha256:{hashlib.file_digest(content, 'sha256').hexdigest()}"
    size = file.stat().st_size
    file.replace(repository / "blobs" / digest)
    return {"mediaType": kind, "digest": digest, "size": size}


class _Handler(SimpleHTTPRequestHandler):
    requests: list[str]

    def translate_path(self, path: str) -> str:
        return super().translate_path(re.sub(r"^/v2/", "/", path))

    def guess_type(self, path: Any) -> str:
        if "/manifests/" in str(path):
            return str(json.loads(Path(path).read_bytes())["mediaType"])
        return "application/octet-stream"

    def log_message(self, _text: str, *_args: object) -> None:
        self.server.requests.append(f"{self.command} {self.path}")  # type: ignore[attr-defined]


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Mirror]:
    """Pack what is released into FOLDER, and serve it for the time of the with block."""
    rows = pack(folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder))) as server:
        server.requests = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
        thread.start()
        base = f"http://127.0.0.1:{server.server_address[1]}"
        urls = {name: f"{base}/{name}" for name in ("kubernetes", "github", "registry")}
        settings = {
            "local_cluster_source": "released",
            "local_cluster_release_urls": urls,
            "__local_cluster_released": rows,
            "local_cluster_cache_dir": str(cache(folder, rows)),
        }
        try:
            yield Mirror(settings, server.requests)  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()
            shutil.rmtree(folder)
