#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_record
short_description: Manage the record of what is created on a host, and remove it
description:
  - With O(state=present), before anything is created, records those of the named packages, tables, units, folders and files that do not
    exist. What exists belongs to others and is never removed.
  - With O(state=absent) removes what is recorded, together with the files of M(muster.ml.host_file). Files are deleted by name. What was
    changed since, is a symbolic link, is mounted, is needed by others or was not recorded is kept and named. Folders go when they are
    empty.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes.host
attributes:
  diff_mode:
    details:
      - Names what is removed, or the record if something comes into it.
  action:
    support: none
options:
  path:
    description: Path of the record.
    type: path
    required: true
  packages:
    description: Names of packages of Debian that will be installed.
    type: list
    elements: str
    default: []
  nft_tables:
    description: Tables of nftables that will be loaded, with their family, such as C(inet example).
    type: list
    elements: str
    default: []
  units:
    description: Units of systemd that will be enabled and started. A removal disables and stops one that was not enabled.
    type: list
    elements: str
    default: []
  folders:
    description: Folders that will be created for files. A removal deletes them when they are empty.
    type: list
    elements: path
    default: []
  files:
    description: Files that a program will write, for which no digest is known.
    type: list
    elements: path
    default: []
  contents:
    description: Folders that a program will fill. A folder that has files already belongs to others, with all that comes into it.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Path of the folder.
        type: path
        required: true
      names:
        description: Names of the entries that the program creates, with C(*), C(?) and C([...]) as in a shell.
        type: list
        elements: str
        required: true
      package:
        description: Package of the program. As long as it is installed and not removed with this record, the entries stay.
        type: str
        default: ""
  delete_data:
    description: Delete data and keys, too, with O(state=absent).
    type: bool
    default: false
  refuse_foreign:
    description:
      - Files that M(muster.ml.host_file) will write. If one is there that is not recorded, the task fails before anything is created.
    type: list
    elements: path
    default: []
  keep:
    description: Paths of recorded files that this removal leaves for a later one.
    type: list
    elements: path
    default: []
  state:
    description: V(present) records, V(absent) removes.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Record what the role is about to create
  muster.ml.host_record:
    path: /etc/muster/example.json
    packages: [example]
    folders: [/etc/example/conf.d]
    contents:
      - path: /var/lib/example
        names: [database, "*.log"]
        package: example

- name: Remove what the role created, and the data
  muster.ml.host_record:
    path: /etc/muster/example.json
    delete_data: true
    state: absent
"""

RETURN = r"""
removed:
  description: Things that were removed, or would be in check mode.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: [package example, file /etc/example/conf.d/50-muster.conf]
kept:
  description: Things that were kept, each with the reason. A warning names what is not kept for its data.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: ["file /etc/example/key: it holds a key or data; delete_data deletes it"]
packages:
  description: Recorded packages, those that Muster installed or is about to install.
  returned: success
  type: list
  elements: str
  sample: [example]
"""

import copy
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._core import created
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, Result, Spec, host_main
from ansible_collections.muster.ml.plugins.module_utils._local import host_things

ARGUMENT_SPEC: Spec = {
    "path": {"type": "path", "required": True},
    "packages": {"type": "list", "elements": "str", "default": []},
    "nft_tables": {"type": "list", "elements": "str", "default": []},
    "units": {"type": "list", "elements": "str", "default": []},
    "folders": {"type": "list", "elements": "path", "default": []},
    "files": {"type": "list", "elements": "path", "default": []},
    "contents": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "path": {"type": "path", "required": True},
            "names": {"type": "list", "elements": "str", "required": True},
            "package": {"type": "str", "default": ""},
        },
    },
    "delete_data": {"type": "bool", "default": False},
    "refuse_foreign": {"type": "list", "elements": "path", "default": []},
    "keep": {"type": "list", "elements": "path", "default": []},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def present(ctx: HostContext, path: Path) -> Result:
    """Record the files and programs that do not exist yet."""
    params = ctx.params
    with created.opened(path, check=ctx.check) as record:
        if foreign := [one for one in params["refuse_foreign"] if created.is_foreign(record, Path(one))]:
            raise created.not_ours(foreign, path)
        before = copy.deepcopy(record)
        for kind in host_things.KINDS:
            host_things.claim(record, kind, params[kind])
        created.claim_folders(record, params["folders"])
        created.claim_files(record, params["files"])
        for one in params["contents"]:
            created.claim_contents(record, one["path"], one["names"], one["package"])
        if record != before and not ctx.check:
            created.save(path, record)
        return {**ctx.changes([path] if record != before else []), "packages": record.things.get("packages", [])}


def absent(ctx: HostContext, path: Path) -> Result:
    """Remove the recorded entries: programs first, then files that they and Muster wrote, then empty folders."""
    params = ctx.params
    with created.opened(path, check=ctx.check, removing=True) as record:
        removal = created.Removal(record, params["delete_data"], ctx.check)
        try:
            staying = host_things.remove(removal)
            removal.files([one for one in record.files if one not in params["keep"]])
            removal.contents(staying)
            removal.folders(path)
        finally:
            if not ctx.check:
                created.save(path, record)
        packages = record.things.get("packages", [])
    for one in removal.unjudged:
        ctx.warn(f"Kept {one}.")
    return {**ctx.changes(removal.removed), "removed": removal.removed, "kept": removal.kept, "packages": packages}


def execute(ctx: HostContext) -> Result:
    """Record the entries, or remove those recorded."""
    path = Path(ctx.params["path"]).absolute()
    return (present if ctx.params["state"] == "present" else absent)(ctx, path)


def main() -> None:
    host_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
