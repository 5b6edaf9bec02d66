# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes' own images: pulled, or built from its programs, and imported into a node before kubeadm runs."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import typing as t
from pathlib import Path

from .._core.errors import CommandFailed
from .archive import Image, ImageFile, library_files, write_image
from .cluster import LocalCluster
from .host import SYSTEM_PATH, import_failure, run
from .node import write_if_changed
from .oci_nodes import Node, StoredImage
from .pull import reference_of
from .spec import NodeSpec

Programs = t.Mapping[str, str]
CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
RECORD = "images.json"
# kube-proxy reads its rules from nft, which prints 17 instead of udp without this file. A restarted kube-proxy, as on a node that comes
# back, then takes its own rules for foreign ones and deletes them, and the node reaches no Service.
PROTOCOLS = ImageFile(dest="/etc/protocols", text="tcp 6 TCP\nudp 17 UDP\nsctp 132 SCTP\n", mode=0o644)
TEXTS: dict[str, tuple[ImageFile, ...]] = {"kube-proxy": (PROTOCOLS,)}


def image_names(cluster: LocalCluster, node: NodeSpec) -> dict[str, tuple[str, ...]]:
    """Image name -> the programs in it. Workers need less than the node of the control plane."""
    options = cluster.options
    repository, kubernetes = options["image_repository"], options["kubernetes_version"]
    names: dict[str, tuple[str, ...]] = {f"{repository}/pause:{options['pause_tag']}": ()}
    if node.index == 1:
        names[f"{repository}/etcd:{options['etcd_version']}"] = ("etcd",)
        names |= {f"{repository}/{name}:{kubernetes}": (name,) for name in CONTROL_PLANE}
    names[f"{repository}/kube-proxy:{kubernetes}"] = ("kube-proxy",)
    names[f"{repository}/coredns:{options['coredns_version']}"] = ("coredns",)
    names |= {f"{repository}/{name}:{kubernetes}": (name,) for name in ("local-path-provisioner", "kube-network-policies")}
    return names


def content_ids(cluster: LocalCluster, node: NodeSpec, programs: Programs) -> dict[str, str]:
    """Image name -> its key, of images whose programs the cluster has. Folders of programs are named by their content: a path is a key."""
    found = {}
    for name, parts in image_names(cluster, node).items():
        if not programs.keys() >= set(parts):
            continue
        archive = released(name, programs)
        texts = [file.text for file in TEXTS.get(_short(name), ())]
        made_from = [name, [str(archive)]] if archive else [name, [programs[one] for one in parts], *texts]
        found[name] = hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:16]
    return found


def released(name: str, programs: Programs) -> Path | None:
    """The archive of an image that was pulled, or None if it is made from programs."""
    path = Path(programs.get(_short(name), ""))
    return path if path.suffix == ".tar" else None


def _short(name: str) -> str:
    """The program after which an image is named."""
    return name.rpartition("/")[2].rpartition(":")[0]


def recorded(node: NodeSpec) -> dict[str, str]:
    path = Path(node.state_dir) / RECORD
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def missing_images(cluster: LocalCluster, node: NodeSpec, programs: Programs) -> list[str]:
    have, stored = recorded(node), stored_images(cluster, node)
    return [
        name
        for name, desired in content_ids(cluster, node, programs).items()
        if have.get(name) != desired or (stored is not None and not (name in stored and stored[name].pinned))
    ]


def stored_images(cluster: LocalCluster, node: NodeSpec) -> dict[str, StoredImage] | None:
    """Images in the node's containerd by name; None while containerd does not run, when the record of the imports has to do."""
    if not Path(node.containerd_socket).exists():
        return None
    try:
        return Node(cluster.spec.name, node.name).stored()
    except CommandFailed:
        return None


def build_image(name: str, programs: Programs) -> Image:
    """One image by its name."""
    short = _short(name)
    if short == "pause":
        # catatonit waits for ever and reaps the orphaned processes of its pod.
        return Image(name=name, files=(_host_program("catatonit", "/pause"),), entrypoint=("/pause", "-P"))
    files: tuple[ImageFile, ...] = (ImageFile(src=programs[short], dest=f"/usr/local/bin/{short}"), *TEXTS.get(short, ()))
    if short == "kube-proxy":
        files += _with_libraries("nft")
    if short == "local-path-provisioner":
        # The provisioner's helper pods create and remove the folders of volumes with this shell.
        files += (_host_program("busybox", "/bin/busybox"),)
        files += tuple(ImageFile(dest=f"/bin/{one}", link="/bin/busybox") for one in ("sh", "mkdir", "rm", "chmod"))
    return Image(name=name, files=files, entrypoint=(f"/usr/local/bin/{short}",))


def _host_program(program: str, dest: str) -> ImageFile:
    return ImageFile(src=_which(program), dest=dest)


def _with_libraries(program: str) -> tuple[ImageFile, ...]:
    path = _which(program)
    return library_files(path, f"/usr/sbin/{program}", run(["ldd", path]))


def _which(program: str) -> str:
    found = shutil.which(program, path=SYSTEM_PATH)
    if found is None:
        raise CommandFailed(f"{program} is not installed.", hint="Run the role again: its preflight names the package.")
    return str(Path(found).resolve())


def import_image(cluster: LocalCluster, node: NodeSpec, name: str, programs: Programs) -> None:
    """Import the image under its name into the node's containerd."""
    target = Node(cluster.spec.name, node.name)
    if (archive := released(name, programs)) is None:
        _stream(target.importing(), node, build_image(name, programs))
        return
    target.import_archive(name, archive)
    target.tag(reference_of(archive), name)


def _stream(argv: list[str], node: NodeSpec, image: Image) -> None:
    """Write the image while ctr reads it, so that it is not on the disk twice."""
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as child:  # fmt: skip
        if child.stdin is None or child.stderr is None:
            raise CommandFailed(f"{argv[0]} could not be started.")
        try:
            write_image(image, t.cast("t.BinaryIO", child.stdin))
            child.stdin.close()
        except BrokenPipeError:
            # It ended before it had read everything; its error output below says why.
            child.kill()
        said = child.stderr.read().decode(errors="replace")
    if child.returncode:
        raise import_failure(image.name, node.name, said)


def record(node: NodeSpec, name: str, content_id: str) -> None:
    write_if_changed(Path(node.state_dir) / RECORD, json.dumps({**recorded(node), name: content_id}, indent=1) + "\n", 0o644)
