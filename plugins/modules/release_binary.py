#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: release_binary
short_description: Download a released program and verify its checksum
version_added: 0.1.0
description:
  - Downloads a released file, verifies its pinned checksum before the file is used, and keeps the program in a cache.
  - A file without a pinned checksum is refused.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes.host
options:
  name:
    description: Name of the program.
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
  member:
    description: Path of the program in the archive. Empty if the file is the program itself.
    type: str
    default: ''
  cache_dir:
    description: Folder of the cache. The program is kept below C(bin/).
    type: path
    default: ~/.cache/muster
  note:
    description: Note for the progress output, such as V(3 of 12).
    type: str
    default: ''
"""

EXAMPLES = r"""
- name: Download etcd
  muster.ml.release_binary:
    name: etcd
    url: "{{ etcd_url }}"
    checksum: "{{ etcd_checksum }}"
    member: etcd-v3.6.8-linux-amd64/etcd
"""

RETURN = r"""
path:
  description: Path of the program in the cache.
  returned: success
  type: str
  sample: /root/.cache/muster/bin/0f3a5a6b7c8d9e0f/etcd
"""

import typing as t
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._local.programs import Release, fetch

ARGUMENT_SPEC: dict[str, t.Any] = {
    "name": {"type": "str", "required": True},
    "url": {"type": "str", "required": True},
    "checksum": {"type": "str", "required": True},
    "member": {"type": "str", "default": ""},
    "cache_dir": {"type": "path", "default": "~/.cache/muster"},
    "note": {"type": "str", "default": ""},
}
CONSTRAINTS: dict[str, t.Any] = {}


def execute(ctx: HostContext) -> dict[str, t.Any]:
    params = ctx.params
    desired = Release(
        name=params["name"], url=params["url"], checksum=params["checksum"], member=params["member"], cache_dir=Path(params["cache_dir"])
    )
    missing = not desired.path.is_file()
    if missing and not ctx.check:
        ctx.progress(f"fetching {desired.name}" + (f" ({params['note']})" if params["note"] else ""))
        fetch(desired)
    return {"changed": missing, "path": str(desired.path)}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
