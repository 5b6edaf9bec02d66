#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: local_build
short_description: Build programs, container images and released manifests
description:
  - Builds programs from Go modules that C(go.sum) pins, and keeps them in a cache. The same pins and flags are never built twice.
  - Builds container images at the same time, so that all cores have work until the end. Module M(muster.ml.local_image) finds them in the
    cache.
  - Writes manifests that projects release, from the sources in their Go modules. The result must have the digest of the released file.
  - Go downloads the modules from C(go env GOPROXY). Their sums are compared with C(go.sum) before anything of them runs.
  - After a failure nothing else begins; what is being built ends first and is kept.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes.host
options:
  programs:
    description: Programs to build, in this order.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the program.
        type: str
        required: true
      module_dir:
        description:
          - Folder with a C(go.sum) of one line, the module of the program and the sum of its files. The C(go.mod) and C(go.sum) among these
            pin the dependencies. More lines are modules that its C(go.mod) replaces by folders of its repository.
          - A folder that has a C(go.mod), too, pins all by itself. Go files in it are the package V(.).
        type: path
        required: true
      package:
        description: Import path of the program's main package.
        type: str
        required: true
      ldflags:
        description: Linker flags in addition to C(-s -w), such as C(-X) settings of a version.
        type: str
        default: ''
      tags:
        description: Build tags.
        type: list
        elements: str
        default: []
      cgo:
        description:
          - Use of packages in C. They need a C compiler, and the program needs the C library, which an image must have by
            O(muster.ml.local_image#module:recipe.debian).
        type: bool
        default: false
  recipes:
    description: Recipes of images to build beside the programs, by full name, as O(muster.ml.local_image#module:recipe).
    type: dict
    default: {}
  builder:
    description: Folder with the C(go.sum) that pins umoci, as O(programs[].module_dir). Required with O(recipes).
    type: path
  manifests:
    description:
      - Manifests to write. Check mode writes them, too, because the tasks that follow read them.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: File to write. Every user may read it.
        type: path
        required: true
      sha256:
        description: SHA-256 of the file as the project released it.
        type: str
        required: true
      module_dir:
        description: Folder with the C(go.sum) that pins the module.
        type: path
        required: true
      module:
        description: Path of the module.
        type: str
        required: true
      kustomization:
        description:
          - Kustomization that kustomize builds; its resources are folders of the module. Without it the files of O(manifests[].sources) are
            joined.
        type: dict
        default: {}
      sources:
        description: Texts and files of the module, in this order.
        type: list
        elements: dict
        default: []
        suboptions:
          text:
            description: Text to insert.
            type: str
            default: ''
          files:
            description: Glob pattern of files in the module.
            type: str
            default: ''
          before:
            description: Text before each file. C({path}) in it stands for the path of the file in the module.
            type: str
            default: ''
          replace:
            description: Words to replace in these files.
            type: dict
            default: {}
  kustomize:
    description: Folder with the C(go.sum) that pins kustomize, as O(programs[].module_dir). Required with O(manifests[].kustomization).
    type: path
  cache_dir:
    description: Folder of the cache. Programs are kept below C(bin/), images below C(images/).
    type: path
    default: ~/.cache/muster
requirements:
  - Go in the version that the modules need, or 1.21 and later if it may download a newer toolchain
  - mmdebstrap, debian-archive-keyring and pip, for images that need them
  - gcc and libc6-dev, for programs with C(cgo)
seealso:
  - module: muster.ml.local_image
"""

EXAMPLES = r"""
- name: Build etcd, and beside it an image of the NATS server
  muster.ml.local_build:
    programs:
      - name: etcd
        module_dir: /srv/build/etcd
        package: go.etcd.io/etcd/server/v3
    builder: /srv/build/umoci
    recipes:
      muster.local/nats:2.15.2:
        programs:
          - name: nats-server
            module_dir: /srv/build/nats-server
            package: github.com/nats-io/nats-server/v2
            dest: /nats-server
        config:
          entrypoint: [/nats-server]

- name: Write the manifest that JobSet 0.12.0 was released with
  muster.ml.local_build:
    kustomize: /srv/build/kustomize
    manifests:
      - path: /var/cache/muster/manifests/jobset-0.12.0.yaml
        sha256: a41aaf12dd0b7b0a3d626b8d6107f32c3dc889d7e7830adc46b8cdb77a8963bb
        module_dir: /srv/build/jobset
        module: sigs.k8s.io/jobset
        kustomization:
          resources: [config/default]
          images:
            - name: us-central1-docker.pkg.dev/k8s-staging-images/jobset/jobset
              newName: registry.k8s.io/jobset/jobset
              newTag: v0.12.0
"""

RETURN = r"""
paths:
  description: Paths of the programs in the cache, in the order of O(programs).
  returned: success
  type: list
  elements: str
  sample: [/root/.cache/muster/bin/0f3a5a6b7c8d9e0f/etcd]
elapsed:
  description: Seconds that the builds took. 0 if everything was in the cache.
  returned: success
  type: int
  sample: 75
"""

import functools
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, Result, Spec, host_main
from ansible_collections.muster.ml.plugins.module_utils._edge.recipe import FOLDER, MAP, NEEDED, OFF, TEXT, WORDS, checked_recipe, rows
from ansible_collections.muster.ml.plugins.module_utils._local import gobuild, oci_nodes, released
from ansible_collections.muster.ml.plugins.module_utils._local.oci import OciImage
from ansible_collections.muster.ml.plugins.module_utils._local.programs import go_build
from ansible_collections.muster.ml.plugins.module_utils._local.side_by_side import Build, Progress, side_by_side

PROGRAM = {"name": NEEDED, "module_dir": FOLDER, "package": NEEDED, "ldflags": TEXT, "tags": WORDS, "cgo": OFF}
MANIFEST = {
    "path": FOLDER,
    "sha256": NEEDED,
    "module_dir": FOLDER,
    "module": NEEDED,
    "kustomization": MAP,
    "sources": rows(text=TEXT, files=TEXT, before=TEXT, replace=MAP),
}
ARGUMENT_SPEC: Spec = {
    "programs": {"type": "list", "elements": "dict", "default": [], "options": PROGRAM},
    "recipes": {"type": "dict", "default": {}},
    "builder": {"type": "path"},
    "manifests": rows(**MANIFEST),
    "kustomize": {"type": "path"},
    "cache_dir": {"type": "path", "default": "~/.cache/muster"},
}


def build_of_program(program: gobuild.GoBuild, number: str) -> Build:
    def run(_progress: Progress) -> None:
        gobuild.build(program)

    return Build(f"building {program.name} ({number})", run)


def build_of_image(image: OciImage, builder: str) -> Build:
    return Build(f"building {image.name}", functools.partial(oci_nodes.build, image, image.umoci(builder)))


def write_manifests(ctx: HostContext) -> list[Path]:
    """Write the manifests that are missing or differ, and return them."""
    desired = [
        released.ReleasedManifest(**{**row, "path": Path(row["path"]), "module_dir": Path(row["module_dir"])})
        for row in ctx.params["manifests"]
    ]
    if any(one.kustomization for one in desired) and not ctx.params["kustomize"]:
        raise InvalidInput("manifests has a kustomization, and kustomize is missing.", hint="Give the folder with kustomize's go.sum.")
    missing = [one for one in desired if not one.is_there()]
    for one in missing:
        ctx.progress(f"writing {one.path.name}")
        released.write(one, lambda: kustomize_program(ctx))
    return [one.path for one in missing]


def kustomize_program(ctx: HostContext) -> Path:
    desired = gobuild.GoBuild(
        name="kustomize",
        module_dir=Path(ctx.params["kustomize"]),
        package="sigs.k8s.io/kustomize/kustomize/v5",
        cache_dir=Path(ctx.params["cache_dir"]),
        architecture=gobuild.architecture(),
    )
    return gobuild.ensure(desired, "building kustomize", ctx.progress)


def execute(ctx: HostContext) -> Result:
    started = ctx.clock.monotonic()
    if ctx.params["recipes"] and not ctx.params["builder"]:
        raise InvalidInput("recipes are given without a builder.", hint="Give the folder with umoci's go.sum.")
    cache, processor = Path(ctx.params["cache_dir"]), gobuild.architecture()
    programs = [go_build(row, cache, processor) for row in ctx.params["programs"]]
    images = [
        OciImage(name=name, recipe=checked_recipe(name, recipe), cache_dir=cache, architecture=processor)
        for name, recipe in ctx.params["recipes"].items()
    ]
    missing_programs = [one for one in programs if not one.path.is_file()]
    missing_images = [one for one in images if not one.archive.is_file()]
    if not ctx.check:
        side_by_side(
            [
                [build_of_program(one, f"{i} of {len(missing_programs)}") for i, one in enumerate(missing_programs, 1)],
                [build_of_image(one, ctx.params["builder"]) for one in missing_images],
            ],
            ctx.progress,
        )
    written = write_manifests(ctx)
    return {
        **ctx.changes([*(one.path for one in missing_programs), *(one.archive for one in missing_images), *written]),
        "paths": [str(one.path) for one in programs],
        "elapsed": round(ctx.clock.monotonic() - started),
    }


def main() -> None:
    host_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
