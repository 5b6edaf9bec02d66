#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rabbitmq_certificates
short_description: Create, renew and delete TLS certificates for RabbitMQ on hosts
description:
  - Creates a certificate authority and a server certificate for each broker, in a folder that only its owner can read. Existing
    certificates are kept, and renewed when fewer than 60 of their 397 days are left.
  - The authority is valid for ten years. Its certificate is then renewed with the same key. If the authority is damaged or lost while
    certificates that it signed exist, the task fails and does not create another authority.
  - A record in the folder, C(muster.json), has digests of the files that this module wrote. With O(state=absent) only those are deleted,
    and the authority only with the last broker and if nothing else is in the folder.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes.host
  - muster.ml.requires.cryptography
attributes:
  action:
    support: none
options:
  directory:
    description:
      - Folder for the files C(ca.crt) and C(ca.key), and for each broker C(<broker>/server.crt) and C(<broker>/server.key).
    type: path
    required: true
  brokers:
    description: Names and addresses that clients use, by name of the broker.
    type: dict
    required: true
  trusted:
    description:
      - Certificates of the authority that hosts have already, as M(ansible.builtin.slurp) returns them, by name of the host.
        Results without C(content) are of hosts that have none yet.
      - The task fails if one is not of the authority in O(directory), because its clients trust that one.
    type: dict
    default: {}
  state:
    description: State of the certificates of O(brokers).
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Create the certificate of a broker
  muster.ml.rabbitmq_certificates:
    directory: ~/.config/muster/rabbitmq
    brokers:
      broker-a: [broker-a.example.com, 10.0.0.4]
"""

RETURN = r"""
fresh:
  description: Certificates that were created or renewed, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [ca, broker-a/server]
removed:
  description: Files and folders that were deleted, or would be in check mode.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: []
kept:
  description: Files and folders that were kept, each with the reason.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: []
"""

from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._core import created
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, Result, Spec, host_main
from ansible_collections.muster.ml.plugins.module_utils._kube.certificates import Leaf, files, read_from_hosts

ARGUMENT_SPEC: Spec = {
    "directory": {"type": "path", "required": True},
    "brokers": {"type": "dict", "required": True},
    "trusted": {"type": "dict", "default": {}},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
RECORD = "muster.json"


def leaves(brokers: dict[str, list[str]]) -> list[Leaf]:
    """Return the desired certificates. Each is valid on the broker's own host, too, where the role connects from."""
    return [
        Leaf(f"{broker}/server", broker, tuple(dict.fromkeys((*addresses, broker, "localhost", "127.0.0.1"))))
        for broker, addresses in brokers.items()
    ]


def present(ctx: HostContext, folder: Path) -> Result:
    """Create missing certificates and renew those that expire soon."""
    known = read_from_hosts(ctx.params["trusted"])
    path = folder / RECORD
    with created.opened(path, check=ctx.check) as record:
        written: list[Path] = []

        def note(file: Path, content: bytes) -> None:
            created.claim_folders(record, [str(file.parent)])
            created.note_file(record, file, content, data=True)
            created.save(path, record)
            written.append(file)

        desired = leaves(ctx.params["brokers"])
        fresh = files(folder, "ca", "rabbitmq-ca", desired, trusted=known, note=note, check=ctx.check, clock=ctx.clock)
        for file in written:
            created.settle_file(record, file)
        if written:
            created.save(path, record)
    return {**ctx.changes(fresh), "fresh": fresh}


def absent(ctx: HostContext, folder: Path) -> Result:
    """Delete the certificates of the brokers and, with the last one, the authority."""
    path = folder / RECORD
    with created.opened(path, check=ctx.check, removing=True) as record:
        removal = created.Removal(record, delete_data=True, check=ctx.check)
        own = {str(folder / broker) for broker in ctx.params["brokers"]}
        removal.files([one for one in record.files if str(Path(one).parent) in own])
        removal.folders(path)
        authority = [str(folder / f"ca.{end}") for end in ("key", "crt")]
        going = {one.removeprefix("file ") for one in removal.removed}
        others = _others_in(folder, {str(path), *authority, *going}) if folder.is_dir() else []
        if others:
            removal.keep(f"certificate authority in {folder}: {', '.join(others)} is there, too", for_data=True)
        else:
            removal.files([one for one in authority if one in record.files])
        if not ctx.check:
            created.save(path, record)
    for one in removal.unjudged:
        ctx.warn(f"Kept {one}.")
    return {**ctx.changes(removal.removed), "removed": removal.removed, "kept": removal.kept}


def _others_in(folder: Path, going: set[str]) -> list[str]:
    """Return entries of FOLDER that are not in GOING, or only partly."""

    def goes(entry: Path) -> bool:
        if str(entry) in going or entry.name == f".{RECORD}.lock":
            return True
        inner = list(entry.iterdir()) if entry.is_dir() and not entry.is_symlink() else []
        return bool(inner) and all(str(one) in going for one in inner)

    return sorted(one.name for one in folder.iterdir() if not goes(one))


def execute(ctx: HostContext) -> Result:
    """Create, renew or delete the certificates."""
    folder = Path(ctx.params["directory"]).absolute()
    for broker in ctx.params["brokers"]:
        if "/" in broker or broker in ("", ".", ".."):
            raise InvalidInput(f"brokers: '{broker}' cannot be the name of a folder.", "Name the broker otherwise.")
    return (present if ctx.params["state"] == "present" else absent)(ctx, folder)


def main() -> None:
    host_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
