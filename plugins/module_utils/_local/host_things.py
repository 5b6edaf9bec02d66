# SPDX-License-Identifier: GPL-3.0-or-later
"""Resources of a host that roles create, other than files: packages of Debian, tables of nftables, enabled units.

They are recorded and removed as files are.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Callable, Sequence

from .._core.created import Record, Removal
from .._core.errors import Causes, CommandFailed
from . import host

# Seconds that apt waits for another program that installs packages.
_APT_LOCK_SECONDS = 120
_NOTHING = "nothing of the name"
_OF_DPKG: Causes = ((_NOTHING, re.compile("no packages found")),)
_OF_NFT: Causes = ((_NOTHING, re.compile("No such file or directory")),)
# The last one is of a script in /etc/init.d, such as a removed package leaves (systemd 252, Debian 12): status 1 means disabled.
_OF_SYSTEMCTL: Causes = (
    (_NOTHING, re.compile(r"(disabled|masked|static|indirect|not-found|No such file or directory|systemd-sysv-install is-enabled \S+)$")),
)
_REMOVED_WITH_IT = re.compile(r"^Remv (\S+)", re.MULTILINE)


class Kind(t.NamedTuple):
    """The functions that find and remove resources of one kind."""

    noun: str
    exists: Callable[[str], bool]
    why_unknown: Callable[[str], str]
    """The reason why its removal cannot be judged, as a clause; empty if there is none."""
    remove: Callable[[str], None]


def _says(argv: Sequence[str], causes: Causes) -> str:
    """The output of a program that only reads; empty if it is not installed, or there is nothing of the name."""
    try:
        return host.run(argv, causes=causes)
    except CommandFailed as error:
        if error.cause in (_NOTHING, host.NOT_INSTALLED):
            return ""
        raise


def _installed(package: str) -> bool:
    # A package that was removed and not purged has the status config-files: its configuration and data may be those of others.
    status = _says(["dpkg-query", "--show", "--showformat=${db:Status-Status}", package], _OF_DPKG)
    return status not in ("", "not-installed", "config-files")


def _others_removed_with(package: str) -> str:
    plan = host.run(["apt-get", "--simulate", "remove", package])
    others = sorted({one.partition(":")[0] for one in _REMOVED_WITH_IT.findall(plan)} - {package})
    return f"{', '.join(others)} depends on it and would be removed, too" if others else ""


def _remove_package(package: str) -> None:
    lock = f"--option=DPkg::Lock::Timeout={_APT_LOCK_SECONDS}"
    host.run(["apt-get", "--yes", lock, "remove", package], env={"DEBIAN_FRONTEND": "noninteractive"})


def _loaded(table: str) -> bool:
    return bool(_says(["nft", "list", "table", *table.split()], _OF_NFT))


def _unload(table: str) -> None:
    host.run(["nft", "delete", "table", *table.split()])


def _enabled(unit: str) -> bool:
    """Whether systemd starts the unit at boot; what systemctl (252 to 257) says of one that it does not start is no error."""
    return _says(["systemctl", "is-enabled", unit], _OF_SYSTEMCTL).strip() in ("enabled", "enabled-runtime", "alias")


def _disable(unit: str) -> None:
    host.run(["systemctl", "disable", "--now", unit])


KINDS: dict[str, Kind] = {
    "packages": Kind("package", _installed, _others_removed_with, _remove_package),
    "nft_tables": Kind("nftables table", _loaded, lambda _table: "", _unload),
    "units": Kind("enabled unit", _enabled, lambda _unit: "", _disable),
}


def claim(record: Record, kind: str, names: Sequence[str]) -> None:
    """Record resources that are about to be created, if they do not exist."""
    known = record.things.get(kind, [])
    if new := [one for one in names if one not in known and not KINDS[kind].exists(one)]:
        record.things[kind] = [*known, *new]


def remove(removal: Removal) -> list[str]:
    """Remove the recorded resources; return the packages that stay installed, recorded or not judged."""
    for kind_name, kind in KINDS.items():
        names = removal.record.things.get(kind_name, [])
        for one in list(names):
            there = kind.exists(one)
            package = kind_name == "units" and one in removal.record.things.get("packages", []) and not removal.check
            needed = f"is that of the package {one}, which stays" if package else ""
            if there and not removal.judge(f"{kind.noun} {one}", unknown=kind.why_unknown(one), needed=needed):
                continue
            if not removal.check:
                if there:
                    kind.remove(one)
                names.remove(one)
    planned = {name.removeprefix("package ") for name in removal.removed}
    filled = {one.package for one in removal.record.contents.values()} - {""}
    return [one for one in sorted(filled) if one not in planned and _installed(one)]
