# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may be deleted: the one place that decides, for Kubernetes, for AWS and for this machine.

Everybody who deletes says what is known about a thing (a Candidate), and asks why it must stay. What cannot be judged stays.

Private to the collection.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One thing that nobody wants any more, as far as the caller can tell. Texts are clauses without a full stop, empty for no."""

    name: str
    """For messages: ``ConfigMap ml/a``, ``S3 bucket x``, ``folder /var/lib/muster/x``."""
    marked: bool
    """It carries our mark for this owner: a label, a tag, the cgroup or the name that only we give."""
    recorded: bool
    """What was written down when it was made agrees: our field manager owns its fields, the cluster's recorded options name it."""
    needed: str = ""
    """Who else has the very same thing: another owner, or a wanted object that is served under another name (the same uid)."""
    unknown: str = ""
    """What could not be found out and would have to be known: a kind that is not served, a group whose discovery failed."""
    data: str = ""
    """What would be lost for good."""


def why_kept(candidate: Candidate, *, data_option: str, delete_data: bool) -> str:
    """Why the candidate must stay; empty where it may be deleted. ``data_option`` is the word that a user says to delete data."""
    if not candidate.marked:
        return "is not ours: it does not carry our mark"
    if not candidate.recorded:
        return "carries our mark, but nothing says that we made it (a copy?)"
    if candidate.needed:
        return candidate.needed
    if candidate.unknown:
        return f"cannot be judged: {candidate.unknown}"
    if candidate.data and not delete_data:
        return f"{candidate.data}; {data_option} deletes it"
    return ""
