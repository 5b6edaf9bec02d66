# SPDX-License-Identifier: GPL-3.0-or-later
"""Find out which cluster a kubeconfig is for, so that none of another cluster is replaced or removed, and how long it is valid."""

from __future__ import annotations

import base64
import contextlib
import re
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

# The form that kubeadm writes. A file in another form was written or changed by other means.
_FIELD = re.compile(r"^ +(server|certificate-authority-data|client-certificate-data): *(\S+) *$", re.MULTILINE)
# The validity in a certificate, until 2049 (RFC 5280, 4.1.2.5): two UTCTimes, YYMMDDHHMMSSZ, in DER.
_VALIDITY = re.compile(rb"\x17\x0d\d{12}Z\x17\x0d(\d{12})Z")
RENEWAL = timedelta(days=90)
"""Time before the end of a certificate from which on a run renews it."""


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


def ends_soon(path: Path, now: datetime) -> bool:
    """Whether the client certificate in the file must be renewed: it ends within RENEWAL, or none can be read."""
    for data in cluster_values(path, "client-certificate-data"):
        with contextlib.suppress(ValueError):
            found = _VALIDITY.search(ssl.PEM_cert_to_DER_cert(base64.b64decode(data).decode()))
            if found is None:
                continue
            end = datetime.strptime(found[1].decode(), "%y%m%d%H%M%S").replace(tzinfo=UTC)
            return end - now < RENEWAL
    return True


def has_other_entries(path: Path, endpoint: str) -> bool:
    """Whether the file has entries that are not for our cluster at that address, or for an earlier one there."""
    try:
        return path.stat().st_size > 0 and cluster_values(path, "server") != {endpoint}
    except FileNotFoundError:
        return False
