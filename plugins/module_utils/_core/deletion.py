# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may be deleted: the one place that decides, for Kubernetes, for AWS and for this machine.

Code that deletes passes what it knows about an object (a Candidate), and gets the reason why it must stay. What cannot be judged stays.

Private to the collection.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Candidate:
    """Something that the caller would delete. Texts are clauses without a full stop; empty means no."""

    name: str
    """For messages: ``ConfigMap ml/a``, ``S3 bucket x``, ``folder /var/lib/muster/x``."""
    marked: bool
    """It has the mark of this owner: our label, our tag, or a cgroup or name that only Muster gives."""
    recorded: bool
    """The record of its creation agrees: our field manager owns its fields, or the recorded options of the local cluster name it."""
    needed: str = ""
    """Who else needs it: another owner, or a desired object that the API serves under another name (with the same uid)."""
    unknown: str = ""
    """What is needed for the decision and could not be read: a kind that is not served, an API group whose discovery failed."""
    data: str = ""
    """What would be lost and cannot be created again."""
    beyond: str = ""
    """Why the run that found it does not reach it: it is in a namespace that the run does not name."""
    other: str = ""
    """Whose mark it has, for the message where that is not this owner's."""


def why_kept(candidate: Candidate, *, data_option: str, delete_data: bool) -> str:
    """Why the candidate must stay; empty if it may be deleted. ``data_option`` is the option that allows deleting data."""
    if not candidate.marked:
        return "does not have the mark of this owner" + (f", but that of {candidate.other}" if candidate.other else "")
    if not candidate.recorded:
        return "has the mark of this owner, but no record says that Muster created it (a copy?)"
    if candidate.needed:
        return candidate.needed
    if candidate.beyond:
        return candidate.beyond
    if candidate.unknown:
        return f"cannot be judged: {candidate.unknown}"
    if candidate.data and not delete_data:
        return f"{candidate.data}; {data_option} deletes it"
    return ""
