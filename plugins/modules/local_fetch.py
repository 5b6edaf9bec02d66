#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: local_fetch
short_description: Download released programs and the images of Kubernetes
description:
  - Downloads released files, verifies the pinned checksum of each before it is used, and keeps the programs in a cache. A file without a
    pinned checksum is refused.
  - Pulls the images that kubeadm lists for its version from their registry or a mirror, every part verified by its digest, and keeps them
    in the cache as OCI archives. Module M(muster.ml.local_node_images) imports them.
  - What the cache has is not asked for again. After a failure nothing else begins; what was fetched is kept.
  - Proxies are those of the environment, C(https_proxy) and C(no_proxy).
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes.host
options:
  released:
    description: Released files, in this order.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the file in messages.
        type: str
        required: true
      url:
        description: URL of the file.
        type: str
        required: true
      checksum:
        description: Digest of the file, prefixed with C(sha256:) or C(sha512:). For an archive it is the digest of the archive.
        type: str
        required: true
      program_paths:
        description: Path in the archive of each program, by name. Empty if the file is the program itself.
        type: dict
        required: true
  images:
    description: Images to pull after the files, by the last part of their names, such as V(etcd).
    type: list
    elements: str
    default: []
  kubeadm:
    description: Path of the kubeadm that lists the images. Their archives are kept in its folder. Required with O(images).
    type: path
  kubernetes_version:
    description: Version of Kubernetes whose images are pulled. Required with O(images).
    type: str
  registry_url:
    description: Base URL of the registry C(registry.k8s.io), or of a mirror that has the same repositories.
    type: str
    default: https://registry.k8s.io
  cache_dir:
    description: Folder of the cache. The programs are kept below C(bin/).
    type: path
    default: ~/.cache/muster
"""

EXAMPLES = r"""
- name: Download etcd and etcdctl
  muster.ml.local_fetch:
    released:
      - name: etcd
        url: "{{ etcd_url }}"
        checksum: "{{ etcd_checksum }}"
        program_paths:
          etcd: etcd-v3.6.14-linux-amd64/etcd
          etcdctl: etcd-v3.6.14-linux-amd64/etcdctl

- name: Download images of Kubernetes from a mirror
  muster.ml.local_fetch:
    images: [etcd, kube-apiserver]
    kubeadm: /usr/bin/kubeadm
    kubernetes_version: v1.36.3
    registry_url: https://mirror.example.com/kubernetes
"""

RETURN = r"""
paths:
  description: Paths of the programs and of the archives of images in the cache, by name.
  returned: success
  type: dict
  sample:
    etcd: /root/.cache/muster/bin/ffe840ff9295808e/etcd
"""

import typing as t
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._edge.recipe import NEEDED, rows
from ansible_collections.muster.ml.plugins.module_utils._local.download import base_url
from ansible_collections.muster.ml.plugins.module_utils._local.gobuild import architecture
from ansible_collections.muster.ml.plugins.module_utils._local.programs import Release, fetch
from ansible_collections.muster.ml.plugins.module_utils._local.pull import Pull, archive_path, listed
from ansible_collections.muster.ml.plugins.module_utils._local.side_by_side import Build, side_by_side

ARGUMENT_SPEC: dict[str, t.Any] = {
    "released": rows(name=NEEDED, url=NEEDED, checksum=NEEDED, program_paths={"type": "dict", "required": True}),
    "images": {"type": "list", "elements": "str", "default": []},
    "kubeadm": {"type": "path"},
    "kubernetes_version": {"type": "str"},
    "registry_url": {"type": "str", "default": "https://registry.k8s.io"},
    "cache_dir": {"type": "path", "default": "~/.cache/muster"},
}
# Downloads at the same time.
PARALLEL = 3


def side_by_side_each(builds: list[Build], ctx: HostContext) -> None:
    side_by_side([builds[number::PARALLEL] for number in range(PARALLEL)], ctx.progress)


def build_of_file(file: Release, number: str, ctx: HostContext) -> Build:
    return Build(f"fetching {file.name} ({number})", lambda _progress: fetch(file, ctx.clock))


def build_of_image(image: Pull, number: str, ctx: HostContext) -> Build:
    return Build(f"pulling {image.reference} ({number})", lambda _progress: image.run(ctx.clock))


def pulls(params: dict[str, t.Any], missing: dict[str, Path]) -> list[Pull]:
    """The missing images, under the names that kubeadm has for them."""
    references = listed(Path(params["kubeadm"]), params["kubernetes_version"]) if missing else {}
    if unknown := sorted(missing.keys() - references.keys()):
        raise InvalidInput(f"images: kubeadm lists no {', '.join(unknown)}.", hint=f"It lists {', '.join(references)}.")
    registry = base_url("registry", params["registry_url"])
    return [
        Pull(reference=references[name], registry=registry, archive=path, architecture=architecture()) for name, path in missing.items()
    ]


def execute(ctx: HostContext) -> dict[str, t.Any]:
    params = ctx.params
    if params["images"] and not (params["kubeadm"] and params["kubernetes_version"]):
        raise InvalidInput("images are given without kubeadm or kubernetes_version.", hint="Give both: that kubeadm knows their names.")
    files = [Release(**row, cache_dir=Path(params["cache_dir"])) for row in params["released"]]
    archives = {name: archive_path(Path(params["kubeadm"]), name) for name in params["images"]}
    missing = [file for file in files if not file.is_there()]
    missing_images = {name: path for name, path in archives.items() if not path.is_file()}
    if not ctx.check:
        side_by_side_each([build_of_file(file, f"{i} of {len(missing)}", ctx) for i, file in enumerate(missing, 1)], ctx)
        images = pulls(params, missing_images)
        side_by_side_each([build_of_image(image, f"{i} of {len(images)}", ctx) for i, image in enumerate(images, 1)], ctx)
    paths = {name: file.folder / name for file in files for name in file.program_paths} | archives
    changes = ctx.changes([*(file.name for file in missing), *missing_images.values()])
    return {**changes, "paths": {name: str(path) for name, path in paths.items()}}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
