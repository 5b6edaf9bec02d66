# SPDX-License-Identifier: GPL-3.0-or-later
"""An image archive in the cache, assembled by umoci; and its import into the containerd of each node."""

from __future__ import annotations

import functools
import json
import tarfile
import tempfile
import typing as t
from pathlib import Path

from .._core.errors import CommandFailed, InvalidInput
from .._core.files import draft_prefix
from . import gobuild
from .gobuild import GoBuild
from .host import import_failure, run
from .oci import OciImage
from .oci_layers import Progress, build_layers
from .once import making

# Without a fixed time the same input would give another image.
EPOCH = "1970-01-01T00:00:00Z"
NAMESPACE = "k8s.io"
# What was built on this machine cannot be pulled again. containerd's CRI plugin tells the kubelet of this label, and the kubelet then
# never deletes the image, https://kubernetes.io/docs/concepts/architecture/garbage-collection/ and containerd's pkg/cri/labels.
PINNED = ("--label", "io.cri-containerd.pinned=pinned")
RUN_ROOT = Path("/run/muster")
STATE_ROOT = Path("/var/lib/muster")


def build(image: OciImage, umoci: GoBuild, progress: Progress) -> Path:
    """Build the archive. It appears in the cache whole or not at all."""
    with making(image.archive) as missing:
        if missing:
            _build(image, umoci, progress)
    return image.archive


def _build(image: OciImage, umoci: GoBuild, progress: Progress) -> None:
    target = image.archive
    gobuild.ensure(umoci, "building umoci, which assembles images", progress)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=draft_prefix(target)) as folder:
        root, layout = Path(folder) / "root", Path(folder) / "layout"
        root.mkdir()
        layers = build_layers(image, root, progress)
        progress(f"{image.name}: assembling")
        # Uncompressed, because the layers are only copied to a containerd on the same machine.
        write_layout(image, str(umoci.path), layers, layout, "none", {})
        index = layout / "index.json"
        named = with_names(json.loads(index.read_text(encoding="utf-8")), image)
        index.write_text(json.dumps(named), encoding="utf-8")
        draft = Path(folder) / "archive"
        with tarfile.open(draft, "w", format=tarfile.GNU_FORMAT) as archive:
            archive.add(layout, arcname=".")
        draft.replace(target)


def write_layout(
    image: OciImage, umoci: str, layers: t.Sequence[Path], layout: Path, compress: str, annotations: t.Mapping[str, str]
) -> None:
    """An OCI layout with the image under the name ``image``."""
    place = f"{layout}:image"
    notes = [word for pair in annotations.items() for word in ("--manifest.annotation", "=".join(pair))]
    run([umoci, "init", "--layout", str(layout)])
    run([umoci, "new", "--image", place])
    for layer in layers:
        run([umoci, "raw", "add-layer", "--compress", compress, "--history.created", EPOCH, "--image", place, str(layer)])
    run([umoci, "config", "--no-history", "--created", EPOCH, *image.config_flags(), *notes, "--image", place])
    run([umoci, "gc", "--layout", str(layout)])


def with_names(index: dict[str, t.Any], image: OciImage) -> dict[str, t.Any]:
    """The index with the image under both its names, as containerd reads them."""
    (manifest,) = index["manifests"]
    both = [
        {**manifest, "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}}
        for name in (image.name, image.mark)
    ]
    return {**index, "manifests": both}


class StoredImage(t.NamedTuple):
    """An image in containerd's store, under one of its names."""

    digest: str
    pinned: bool
    """Whether the kubelet keeps it when the node's disk is nearly full. Other images that no container uses are deleted then."""


class Node:
    """The containerd of one node of a local cluster."""

    def __init__(self, cluster: str, name: str) -> None:
        self.name = name
        self._argv = [
            str(STATE_ROOT / cluster / "bin" / "ctr"),
            "--address",
            str(RUN_ROOT / cluster / name / "containerd.sock"),
            "--namespace",
            NAMESPACE,
            "images",
        ]

    def stored(self) -> dict[str, StoredImage]:
        """The images by name. Listed once for all images of a task's loop, until one of them is imported or removed."""
        return _listed(*self._argv)

    def import_archive(self, name: str, archive: Path) -> None:
        """Import the image with its own names. ``name`` is for the message of a failure."""
        try:
            self._change("import", *PINNED, str(archive), timeout=600)
        except CommandFailed as exc:
            raise import_failure(name, self.name, exc.message) from exc

    def importing(self) -> list[str]:
        """The command that imports the archive that it reads."""
        return [*self._argv, "import", *PINNED, "-"]

    def tag(self, reference: str, name: str) -> None:
        """Give an image another name, pinned as well: a tag has no labels of the name before."""
        self._change("tag", "--force", reference, name, timeout=60)
        self._change("label", name, PINNED[1], timeout=60)

    def remove(self, names: t.Sequence[str]) -> None:
        self._change("remove", "--sync", *names, timeout=120)

    def _change(self, *words: str, timeout: float) -> None:
        try:
            run([*self._argv, *words], timeout=timeout)
        finally:
            _listed.cache_clear()


@functools.cache
def _listed(*ctr: str) -> dict[str, StoredImage]:
    return parse_images(run([*ctr, "list"], timeout=120))


def parse_images(table: str) -> dict[str, StoredImage]:
    """The images by name, from the table that ``ctr images list`` prints."""
    rows = (line.split() for line in table.splitlines()[1:])
    return {row[0]: StoredImage(row[2], PINNED[1] in row[-1].split(",")) for row in rows if len(row) > 2}


def nodes_of(cluster: str) -> list[Node]:
    found = sorted((RUN_ROOT / cluster).glob("*/containerd.sock"))
    if not found:
        raise InvalidInput(
            f"No node of a local cluster '{cluster}' runs on this machine.",
            hint="Start it first (role local_cluster), correct the name, or leave cluster_name empty to build only.",
        )
    return [Node(cluster, path.parent.name) for path in found]


def is_imported(image: OciImage, stored: t.Mapping[str, StoredImage]) -> bool:
    """Whether a node has this very image: built from this recipe, still under its name, and pinned."""
    marked = stored.get(image.mark)
    return marked is not None and marked.pinned and stored.get(image.name) == marked


def imported_names(image: OciImage, stored: t.Collection[str]) -> list[str]:
    """All names under which images of this name were imported, older recipes included."""
    stem = f"{image.name.rpartition(':')[0]}:recipe-"
    return [name for name in stored if name == image.name or name.startswith(stem)]
