# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""States as EKS and EFS tell them."""

from __future__ import annotations

import typing as t

from .._cloud.plan import Body, State


def reason(issue: Body) -> str:
    """An issue or error of EKS as one line: code, message, resources."""
    code = issue.get("code") or issue.get("errorCode", "")
    message = issue.get("message") or issue.get("errorMessage", "")
    where = ", ".join(issue.get("resourceIds") or [])
    return f"{code}: {message.rstrip('.')}" + (f" ({where})" if where else "")


def status_state(live: Body | None, ready: t.Container[str], failed: t.Container[str], key: str = "status") -> State:
    """The state of a resource with a status and, in EKS, health issues that explain it."""
    if live is None:
        return State(stable=True, seen="does not exist")
    status = live[key]
    issues = "; ".join(reason(issue) for issue in live.get("health", {}).get("issues", []))
    seen = f"{status} ({issues})" if issues else status
    failure = seen if status in failed else ""
    return State(stable=status in ready or status in failed, seen=seen, failure=failure)
