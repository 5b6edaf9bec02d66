#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_file
short_description: Write a file on a host, and delete it by the record of that
description:
  - Writes a file as a whole, after the digest of its content was written into a record. With O(state=absent) the file is deleted if it has
    one of the recorded digests, and is kept, with a warning that names the reason, if it was changed since or is a symbolic link.
  - A file that exists and is not in the record belongs to others. It is never deleted, and not replaced unless O(foreign=replace).
  - M(muster.ml.host_record) records and removes what is no file of this module.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes.host
attributes:
  diff_mode:
    details:
      - Shows O(content), never O(secret_content), and permissions.
  action:
    support: none
options:
  path:
    description: Path of the file. Its folder has to exist.
    type: path
    required: true
  record:
    description: Path of the record. Its folder is created. Several files, and M(muster.ml.host_record), may share one.
    type: path
    required: true
  content:
    description: Content of the file.
    type: str
  secret_content:
    description: Content of a file with keys or passwords, which is not shown or logged.
    type: str
  owner:
    description: User that the file belongs to. Without it the user that the task runs as.
    type: str
  group:
    description: Group that the file belongs to. Without it that of the user.
    type: str
  mode:
    description: Permissions of the file, as an octal number.
    type: str
    default: "0600"
  holds_data:
    description:
      - The file cannot be created again, such as a key.
      - M(muster.ml.host_record) deletes it only with O(muster.ml.host_record#module:delete_data).
    type: bool
    default: false
  foreign:
    description:
      - Treatment of a file of others with another content in the place. V(refuse) fails and changes nothing. V(replace) writes the
        file and does not record it, so that it is kept by a removal.
      - An empty file counts as none.
    type: str
    choices: [refuse, replace]
    default: refuse
  state:
    description: State of the file.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Write the settings of a program
  muster.ml.host_file:
    path: /etc/example/conf.d/50-muster.conf
    record: /etc/muster/example.json
    content: "listeners = 1\n"
    mode: "0644"

- name: Delete the settings of a program
  muster.ml.host_file:
    path: /etc/example/conf.d/50-muster.conf
    record: /etc/muster/example.json
    state: absent
"""

RETURN = r"""
checksum:
  description: SHA-256 of the content.
  returned: with O(state=present)
  type: str
  sample: b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c
kept:
  description: The file, with the reason, if it was kept with O(state=absent).
  returned: with O(state=absent)
  type: list
  elements: str
  sample: ["file /etc/example/key: it holds a key or data; delete_data deletes it"]
"""

import grp
import os
import pwd
import stat
import typing as t
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._core import created
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, NotFound
from ansible_collections.muster.ml.plugins.module_utils._core.files import replaced
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main

ARGUMENT_SPEC: dict[str, t.Any] = {
    "path": {"type": "path", "required": True},
    "record": {"type": "path", "required": True},
    "content": {"type": "str"},
    "secret_content": {"type": "str", "no_log": True},
    "owner": {"type": "str"},
    "group": {"type": "str"},
    "mode": {"type": "str", "default": "0600"},
    "holds_data": {"type": "bool", "default": False},
    "foreign": {"type": "str", "choices": ["refuse", "replace"], "default": "refuse"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
Attributes = tuple[int, int, int]
"""Mode, owner and group."""
File = tuple[bytes, t.Union[Attributes, None]]  # noqa: UP007 -- Ansible's pylint refuses the other form in an alias
CONSTRAINTS: dict[str, t.Any] = {
    "mutually_exclusive": [("content", "secret_content")],
    "required_if": [("state", "present", ("content", "secret_content"), True)],
}


def _id_of(name: str | None, what: str, find: t.Callable[[str], int], *, otherwise: int) -> int:
    if name is None:
        return otherwise
    try:
        return find(name)
    except KeyError as exc:
        raise NotFound(f"{what}: there is no {what} {name} on this host.", hint="Create it first.") from exc


def _mode(text: str) -> int:
    try:
        mode = int(text, 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= 0o7777:
        raise InvalidInput(f"mode: {text} is no octal number of permissions.", hint='"0600" is one.')
    return mode


def present(ctx: HostContext, path: Path, record_path: Path) -> dict[str, t.Any]:
    """Write the file, if its content or its attributes differ."""
    params = ctx.params
    content = (params["secret_content"] if params["content"] is None else params["content"]).encode()
    mode = _mode(params["mode"])
    with created.opened(record_path, check=ctx.check) as record:
        live = created.content_of(path)
        foreign = created.is_foreign(record, path)
        if foreign and live != content and (live is None or params["foreign"] == "refuse"):
            raise created.not_ours([str(path)], record_path)
        before = None if live is None else (live, _attributes_of(path))
        if live == content and foreign:
            return {**_difference(ctx, path, before, before), "checksum": created.digest(content)}
        attributes = None if ctx.check and live is None else _attributes(ctx, mode)
        result = {**_difference(ctx, path, before, (content, attributes)), "checksum": created.digest(content)}
        if result["changed"] and not ctx.check and attributes:
            created.note_file(record, path, content, data=params["holds_data"])
            created.save(record_path, record)
            _write(path, content, *attributes)
            created.settle_file(record, path)
            created.save(record_path, record)
        return result


def _difference(ctx: HostContext, path: Path, before: File | None, after: File | None) -> dict[str, t.Any]:
    """The keys ``changed`` and ``diff`` of the result, which shows no content that is secret or deleted."""
    headers = dict.fromkeys(("before_header", "after_header"), str(path))
    pairs = zip(_shown(ctx, before), _shown(ctx, after), strict=True)
    diff = [{"before": one, "after": other, **headers} for one, other in pairs if one != other]
    return {"changed": before != after, **({"diff": diff} if ctx.diff else {})}


def _shown(ctx: HostContext, file: File | None) -> tuple[str, dict[str, t.Any]]:
    content, attributes = file or (b"", None)
    text = "" if ctx.params["content"] is None else content.decode(errors="replace")
    named = {"mode": f"{attributes[0]:04o}", "owner": attributes[1], "group": attributes[2]} if attributes else {}
    return text, {"state": "file" if file else "absent", **named}


def _attributes(ctx: HostContext, mode: int) -> Attributes:
    owner = _id_of(ctx.params["owner"], "owner", lambda name: pwd.getpwnam(name).pw_uid, otherwise=os.geteuid())
    group = _id_of(ctx.params["group"], "group", lambda name: grp.getgrnam(name).gr_gid, otherwise=os.getegid())
    return mode, owner, group


def _attributes_of(path: Path) -> Attributes:
    found = path.lstat()
    return stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid


def _write(path: Path, content: bytes, mode: int, owner: int, group: int) -> None:
    if not path.parent.is_dir():
        raise NotFound(f"path: the folder {path.parent} does not exist.", hint="Create it first.")
    with replaced(path, mode) as file:
        # Only its owner can read the file until it has the permissions of MODE.
        os.fchown(file.fileno(), owner, group)
        file.write(content)


def absent(ctx: HostContext, path: Path, record_path: Path) -> dict[str, t.Any]:
    """Delete the file if it is recorded and unchanged."""
    before = (b"", _attributes_of(path)) if os.path.lexists(path) else None
    with created.opened(record_path, check=ctx.check, removing=True) as record:
        removal = created.Removal(record, delete_data=True, check=ctx.check)
        if str(path) in record.files:
            removal.files([str(path)])
        elif os.path.lexists(path):
            removal.keep(f"file {path}: {record_path}, the record of what Muster created, does not have it")
        if not ctx.check:
            created.save(record_path, record)
    for one in removal.kept:
        ctx.warn(f"Kept {one}.")
    return {**_difference(ctx, path, before, None if removal.removed else before), "kept": removal.kept}


def execute(ctx: HostContext) -> dict[str, t.Any]:
    """Write the file, or delete it."""
    path, record_path = Path(ctx.params["path"]).absolute(), Path(ctx.params["record"]).absolute()
    return (present if ctx.params["state"] == "present" else absent)(ctx, path, record_path)


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
