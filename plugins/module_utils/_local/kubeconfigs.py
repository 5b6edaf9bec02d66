# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find out which cluster a kubeconfig is for, so that none of another cluster is replaced or removed.

Private to the collection.
"""

from __future__ import annotations

import re
from pathlib import Path

# The form that kubeadm writes. A file in another form was written or changed by other means.
_FIELD = re.compile(r"^ +(server|certificate-authority-data): *(\S+) *$", re.MULTILINE)


def cluster_values(path: Path, field: str) -> set[str]:
    """The values of FIELD of the clusters in the file; empty if there is no such file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return set()
    return {value for key, value in _FIELD.findall(text) if key == field}


def is_same_cluster(one: Path, other: Path) -> bool:
    """Whether both files are for one and the same cluster only."""
    return all(
        len(cluster_values(one, field)) == 1 and cluster_values(one, field) == cluster_values(other, field)
        for field in ("server", "certificate-authority-data")
    )


def has_other_entries(path: Path, endpoint: str) -> bool:
    """Whether the file has entries that are not for our cluster at that address, or for an earlier one there."""
    try:
        return path.stat().st_size > 0 and cluster_values(path, "server") != {endpoint}
    except FileNotFoundError:
        return False
