# SPDX-License-Identifier: GPL-3.0-or-later
"""The decision whether something may be deleted, in one place for Kubernetes, for AWS and for this machine.

Code that deletes passes a Candidate, and gets the reason why it must stay. A candidate that cannot be judged stays.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Candidate:
    """Something that the caller would delete. Texts are clauses without a full stop; empty means no."""

    name: str
    """The name in messages: ``ConfigMap ml/a``, ``S3 bucket x``, ``folder /var/lib/muster/x``."""
    marked: bool
    """It has the mark of this owner: our label, our tag, or a cgroup or name that only Muster gives."""
    recorded: bool
    """The record of its creation agrees: our field manager owns its fields, or the recorded options of the local cluster name it."""
    needed: str = ""
    """The other user: another owner, or a desired object that the API serves under another name (with the same uid)."""
    unknown: str = ""
    """The input of the decision that could not be read: a kind that is not served, an API group whose discovery failed."""
    data: str = ""
    """The data that would be lost and cannot be created again."""
    beyond: str = ""
    """The reason why it is out of reach of the run that found it: it is in a namespace that the run does not name."""
    other: str = ""
    """The owner that its mark names, for the message if that is another one."""


def why_kept(candidate: Candidate, *, delete_data: bool) -> str:
    """Return why the candidate must stay; empty if it may be deleted."""
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
        return f"{candidate.data}; delete_data: true deletes it"
    return ""
