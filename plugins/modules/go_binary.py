#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: go_binary
short_description: Build a program from a pinned Go module
version_added: 0.1.0
description:
  - Builds one program without cgo from a folder with C(go.mod) and C(go.sum), which pin it and its dependencies, and keeps it in a cache.
    The same pins and flags are never built twice.
  - Go downloads the modules from C(go env GOPROXY) and verifies them with C(go.sum).
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes.host
options:
  name:
    description: Name of the program.
    type: str
    required: true
  module_dir:
    description: Folder with C(go.mod) and C(go.sum).
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
  cache_dir:
    description: Folder of the cache. The program is kept below C(bin/).
    type: path
    default: ~/.cache/muster
  note:
    description: Note for the progress output, such as V(3 of 12).
    type: str
    default: ''
requirements:
  - Go in the version of C(go.mod), or 1.21 and later if it may download a newer toolchain
"""

EXAMPLES = r"""
- name: Build etcd
  muster.ml.go_binary:
    name: etcd
    module_dir: /srv/build/etcd
    package: go.etcd.io/etcd/server/v3
"""

RETURN = r"""
path:
  description: Path of the program in the cache.
  returned: success
  type: str
  sample: /root/.cache/muster/bin/0f3a5a6b7c8d9e0f/etcd
elapsed:
  description: Seconds that the build took. 0 if the program was in the cache.
  returned: success
  type: int
  sample: 75
"""

import typing as t
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._core.clock import SYSTEM_CLOCK
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._local.gobuild import GoBuild, architecture, build

ARGUMENT_SPEC: dict[str, t.Any] = {
    "name": {"type": "str", "required": True},
    "module_dir": {"type": "path", "required": True},
    "package": {"type": "str", "required": True},
    "ldflags": {"type": "str", "default": ""},
    "tags": {"type": "list", "elements": "str", "default": []},
    "cache_dir": {"type": "path", "default": "~/.cache/muster"},
    "note": {"type": "str", "default": ""},
}
CONSTRAINTS: dict[str, t.Any] = {}


def desired(params: dict[str, t.Any]) -> GoBuild:
    return GoBuild(
        name=params["name"],
        module_dir=Path(params["module_dir"]),
        package=params["package"],
        cache_dir=Path(params["cache_dir"]),
        ldflags=params["ldflags"],
        tags=tuple(params["tags"]),
        architecture=architecture(),
    )


def execute(ctx: HostContext) -> dict[str, t.Any]:
    program = desired(ctx.params)
    missing = not program.path.is_file()
    started = SYSTEM_CLOCK.monotonic()
    if missing and not ctx.check:
        note = f" ({ctx.params['note']})" if ctx.params["note"] else ""
        ctx.progress(f"building {program.name}{note}")
        build(program)
    return {"changed": missing, "path": str(program.path), "elapsed": round(SYSTEM_CLOCK.monotonic() - started)}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
