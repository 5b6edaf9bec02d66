# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of Google, as parts of a plan."""

from __future__ import annotations

import dataclasses

from .._cloud import plan
from .._cloud.plan import Body


@dataclasses.dataclass(frozen=True)
class Step(plan.CloudStep):
    """One request. ``operation`` is the id of the method in Google's discovery documents without the service: ``networks.insert``.

    ``request`` is its body, ``path`` what follows the address of the service, ``params`` the query. With ``wait`` other than ``none`` the
    operation that it starts is waited for, if it starts one.
    """

    verb: str = "POST"
    path: str = ""
    params: Body = dataclasses.field(default_factory=dict)
