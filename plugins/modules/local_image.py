#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: local_image
short_description: Build or copy a container image for the nodes of a local cluster or for a registry
description:
  - Builds an OCI image from Debian packages (with mmdebstrap), wheels of PyPI that are pinned by hash, and programs from pinned Go modules,
    and assembles it with umoci. Needs no daemon and no registry.
  - Keeps the image in a cache, under a hash of the recipe and the files that it names, so the same recipe is never built twice.
  - Imports the image only into nodes that do not have it yet, and pushes it with ORAS only to a registry that does not have it yet.
  - Without O(recipe), copies a published image from the registry in its name to O(registry).
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes.host
options:
  name:
    description:
      - Full name of the image, such as V(muster.local/nats:2.15.2).
      - Without O(recipe), any name that a pod may have, such as V(nats:2.14.2), which is one of Docker Hub, or one with a digest.
    type: str
    required: true
  state:
    description:
      - State of the image. V(present) builds it if it is not in the cache, and imports it.
      - V(absent) removes it from the nodes. The cache stays, and so does what is in a registry.
    type: str
    choices: [present, absent]
    default: present
  cluster_name:
    description: Local cluster whose nodes get the image. Without one and without O(registry) the image is only built.
    type: str
    default: ''
  registry:
    description:
      - Registry that the image is pushed to, under its name with the registry's address in the place of the host.
      - It must have TLS. A manifest there names the recipe that it was made from, so the same recipe is pushed once.
    type: dict
    suboptions:
      address:
        description: Host, with a port or a folder if it has one, such as V(registry.example.com/team).
        type: str
        required: true
      username:
        description: User of the registry. If empty, the login of the user who runs the module is used (C(~/.docker/config.json)).
        type: str
        default: ''
      password:
        description: Password or token of the user. It is never on a command line and never on a disk.
        type: str
        default: ''
      ca_cert:
        description: PEM file of the authority that signed the registry's certificate. Defaults to those that the machine trusts.
        type: path
      client:
        description: Folder with the C(go.sum) that pins ORAS.
        type: path
        required: true
  cache_dir:
    description: Folder of the cache for images.
    type: path
    default: ~/.cache/muster
  builder:
    description: Folder with the C(go.sum) that pins umoci.
    type: path
    required: true
  note:
    description: Note for the progress output, such as V(3 of 5).
    type: str
    default: ''
  recipe:
    description:
      - Contents of the image.
      - Without it the image is copied to O(registry), with the login that the user who runs the module has for the registry in O(name).
    type: dict
    suboptions:
      architectures:
        description: Processor architectures that the image can be built for, by Go's names. All by default.
        type: list
        elements: str
        default: []
      debian:
        description: Root file system of the image, from Debian packages.
        type: dict
        suboptions:
          suite:
            description: Release of Debian.
            type: str
            required: true
          packages:
            description: Packages as apt accepts them, such as V(python3=3.9.2-3).
            type: list
            elements: str
            required: true
          variant:
            description: Variant of mmdebstrap.
            type: str
            default: minbase
          mirror:
            description: Mirror for the packages. Defaults to the mirror of the host's apt sources, else the public one.
            type: str
            default: ''
          security_mirror:
            description: Mirror for the security updates. Used together with O(recipe.debian.mirror).
            type: str
            default: ''
      wheels:
        description: Wheels of PyPI.
        type: list
        elements: dict
        default: []
        suboptions:
          requirements:
            description: Path of a requirements file with versions and hashes.
            type: path
            required: true
          python_version:
            description: Version of Python in the image.
            type: str
            required: true
          dest:
            description: Absolute path of the folder to install the wheels in. Console scripts are installed in C(/usr/local/bin).
            type: str
            default: ''
          members:
            description: Files to copy from the wheels, each with its absolute path in the image, instead of installing the wheels.
            type: dict
            default: {}
      programs:
        description: Programs to build from Go modules.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description: Name of the program.
            type: str
            required: true
          module_dir:
            description: Folder with the C(go.sum) that pins it, as O(muster.ml.local_build#module:programs[].module_dir).
            type: path
            required: true
          package:
            description: Import path of the program's main package.
            type: str
            required: true
          ldflags:
            description: Linker flags.
            type: str
            default: ''
          tags:
            description: Build tags.
            type: list
            elements: str
            default: []
          cgo:
            description:
              - Use of packages in C. They need a C compiler, and the program needs the C library, which comes with O(recipe.debian), of a
                release that is not older than this machine's.
            type: bool
            default: false
          dest:
            description: Absolute path in the image.
            type: str
            required: true
      files:
        description: Small files with their content. If O(recipe.files[].dest) ends in a slash, a folder is created.
        type: list
        elements: dict
        default: []
        suboptions:
          dest:
            description: Absolute path in the image.
            type: str
            required: true
          content:
            description: Content of the file.
            type: str
            default: ''
          mode:
            description: Permissions of the file.
            type: str
            default: '0644'
      links:
        description: Symbolic links.
        type: list
        elements: dict
        default: []
        suboptions:
          dest:
            description: Absolute path in the image.
            type: str
            required: true
          target:
            description: Target of the link.
            type: str
            required: true
      config:
        description: Configuration of the image.
        type: dict
        required: true
        suboptions:
          entrypoint:
            description: Program to run. Required, because a pod's C(args) replace the command of an image without an entrypoint.
            type: list
            elements: str
            required: true
          cmd:
            description: Default arguments, for pods without C(args).
            type: list
            elements: str
            default: []
          env:
            description: Environment variables.
            type: dict
            default: {}
          user:
            description: User and group as numbers, by which Kubernetes can verify that the user is not root.
            type: str
            default: '1000:1000'
          working_dir:
            description: Working directory of the program.
            type: str
            default: /
          exposed_ports:
            description: Ports that the program listens on.
            type: list
            elements: int
            default: []
          labels:
            description: Labels of the image.
            type: dict
            default: {}
requirements:
  - Go, for umoci, ORAS and programs
  - gcc and libc6-dev, for programs with C(cgo)
  - mmdebstrap and debian-archive-keyring, for images with Debian packages
  - pip, for images with wheels
"""

EXAMPLES = r"""
- name: Build an image of the NATS server for the local cluster
  muster.ml.local_image:
    name: muster.local/nats:2.15.2
    cluster_name: muster
    builder: /srv/build/umoci
    recipe:
      programs:
        - name: nats-server
          module_dir: /srv/build/nats-server
          package: github.com/nats-io/nats-server/v2
          dest: /nats-server
      config:
        entrypoint: [/nats-server]

- name: Upload a published image to the registry of the cluster
  muster.ml.local_image:
    name: docker.io/library/nats:2.14.2
    builder: /srv/build/umoci
    registry:
      address: registry.example.com/team
      client: /srv/build/oras
"""

RETURN = r"""
archive:
  description: >-
    Path of the image in the cache, an OCI archive that C(ctr images import), C(skopeo) and C(crane) read. Empty for a copied image.
  returned: success
  type: str
  sample: /root/.cache/muster/images/0f3a5a6b7c8d9e0f.tar
image:
  description: Name of the image with its digest in the registry. Empty without a registry, and in check mode if it lacks the image.
  returned: success
  type: str
  sample: registry.example.com/team/nats@sha256:6f0c...
nodes:
  description: Nodes that the image was imported into, or removed from.
  returned: success
  type: list
  elements: str
  sample: [muster-1]
elapsed:
  description: Seconds that the build and the import took.
  returned: success
  type: float
  sample: 31.5
"""

import typing as t
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._edge.recipe import FOLDER, NEEDED, RECIPE, TEXT
from ansible_collections.muster.ml.plugins.module_utils._local import oci_nodes
from ansible_collections.muster.ml.plugins.module_utils._local.gobuild import architecture, ensure
from ansible_collections.muster.ml.plugins.module_utils._local.oci import OciImage, Published
from ansible_collections.muster.ml.plugins.module_utils._local.oci_registry import Registry
from ansible_collections.muster.ml.plugins.module_utils._local.programs import go_build

REGISTRY = {"address": NEEDED, "username": TEXT, "password": {**TEXT, "no_log": True}, "ca_cert": {"type": "path"}, "client": FOLDER}
ARGUMENT_SPEC: dict[str, t.Any] = {
    "name": NEEDED,
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "cluster_name": TEXT,
    "registry": {"type": "dict", "options": REGISTRY},
    "cache_dir": {"type": "path", "default": "~/.cache/muster"},
    "builder": FOLDER,
    "note": TEXT,
    "recipe": {"type": "dict", "options": RECIPE},
}
CONSTRAINTS: dict[str, t.Any] = {"required_one_of": [("recipe", "registry")], "required_if": [("state", "absent", ["recipe"])]}


def desired(params: dict[str, t.Any]) -> OciImage:
    cache = Path(params["cache_dir"])
    return OciImage(name=params["name"], recipe=params["recipe"], cache_dir=cache, architecture=architecture())


def desired_registry(params: dict[str, t.Any]) -> Registry | None:
    given = params.get("registry")
    if not given or params["state"] == "absent":
        return None
    client = {"name": "oras", "package": "oras.land/oras/cmd/oras", "module_dir": given["client"]}
    return Registry(
        address=given["address"].rstrip("/"),
        username=given["username"],
        password=given["password"],
        ca_cert=given["ca_cert"] or "",
        oras=go_build(client, Path(params["cache_dir"]), architecture()),
    )


def has_client(ctx: HostContext, registry: Registry, name: str) -> bool:
    if ctx.check and not registry.oras.path.is_file():
        ctx.warn(f"{registry.address} was not asked whether it has {name}: ORAS, which asks it, is not built yet.")
        return False
    ensure(registry.oras, "building ORAS, which pushes images", ctx.progress)
    return True


def copied(ctx: HostContext, registry: Registry) -> dict[str, t.Any]:
    image = Published(ctx.params["name"])
    digest = registry.copied(image) if has_client(ctx, registry, image.name) else ""
    changed = not digest
    if changed and not ctx.check:
        ctx.progress(f"copying {image.name} to {registry.address}")
        digest = registry.copy(image)
    name = registry.reference(image).partition("@")[0]
    return {**ctx.changes([name] if changed else []), "nodes": [], "image": f"{name}@{digest}" if digest else "", "archive": ""}


def present(ctx: HostContext, image: OciImage, nodes: list[oci_nodes.Node]) -> dict[str, t.Any]:
    registry = desired_registry(ctx.params)
    without = [node for node in nodes if not oci_nodes.is_imported(image, node.stored())]
    digest = registry.digest(image) if registry and has_client(ctx, registry, image.name) else ""
    push = registry if not digest else None
    # If every node and the registry have the image, the cache is not needed.
    build = not image.archive.is_file() and bool(without or push or not (nodes or registry))
    umoci = image.umoci(ctx.params["builder"])
    if build and not ctx.check:
        note = f" ({ctx.params['note']})" if ctx.params["note"] else ""
        ctx.progress(f"building {image.name}{note}")
        oci_nodes.build(image, umoci, ctx.progress)
    for node in () if ctx.check else without:
        ctx.progress(f"importing {image.name} into {node.name}")
        node.import_archive(image.name, image.archive)
    if push and not ctx.check:
        path = ensure(umoci, "building umoci, which assembles images", ctx.progress)
        ctx.progress(f"pushing {push.reference(image)}")
        digest = push.push(image, path)
    return {
        **ctx.changes([*([image.archive] if build else []), *(node.name for node in without), *([push.reference(image)] if push else [])]),
        "nodes": [node.name for node in without],
        "image": f"{registry.reference(image).rpartition(':')[0]}@{digest}" if registry and digest else "",
        "archive": str(image.archive),
    }


def absent(ctx: HostContext, image: OciImage, nodes: list[oci_nodes.Node]) -> dict[str, t.Any]:
    having = {node: names for node in nodes if (names := oci_nodes.imported_names(image, node.stored()))}
    for node, names in () if ctx.check else having.items():
        node.remove(names)
    names = [node.name for node in having]
    return {**ctx.changes(names), "nodes": names, "image": "", "archive": str(image.archive)}


def execute(ctx: HostContext) -> dict[str, t.Any]:
    started = ctx.clock.monotonic()
    registry = desired_registry(ctx.params)
    if registry and ctx.params["recipe"] is None:
        found = copied(ctx, registry)
    else:
        cluster = ctx.params["cluster_name"]
        nodes = oci_nodes.nodes_of(cluster) if cluster else []
        found = (present if ctx.params["state"] == "present" else absent)(ctx, desired(ctx.params), nodes)
    return {**found, "elapsed": round(ctx.clock.monotonic() - started, 1)}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
