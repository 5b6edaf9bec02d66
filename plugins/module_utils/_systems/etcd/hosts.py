# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Query etcd members outside of Kubernetes at the addresses that clients use.

Private to the collection.
"""

from __future__ import annotations

import json
import typing as t
from collections.abc import Mapping, Sequence
from urllib.error import HTTPError
from urllib.parse import urlsplit

from ..._core.brief import listed
from ..._core.clock import SYSTEM_CLOCK, Clock, Deadline
from ..._core.errors import Unreachable
from ..._core.pool import PARALLEL, OnProgress, Progress, run_all_or_raise
from ..._core.waiting import fixed_interval, wait_for
from .manifests import MemberView, member_view, problems, with_mutual_connections

CONNECTION: dict[str, t.Any] = {
    "endpoints": {"type": "list", "elements": "str", "required": True},
    "ca_cert": {"type": "path"},
    "client_cert": {"type": "path"},
    # Also the name of a file.
    "client_key": {"type": "path", "no_log": False},
}
_TIMEOUT = 5.0
_PAUSE = 1.0


class Clients:
    """A client of the members at ENDPOINTS, with a certificate if there is one. OPEN_URL is Ansible's."""

    def __init__(self, params: Mapping[str, t.Any], open_url: t.Callable[..., t.Any]) -> None:
        self._open_url = open_url
        self.endpoints: Sequence[str] = [endpoint.rstrip("/") for endpoint in params["endpoints"]]
        self._tls = {
            "ca_path": params["ca_cert"],
            "client_cert": params["client_cert"],
            "client_key": params["client_key"],
        }

    def ask(
        self, endpoint: str, path: str, body: Mapping[str, t.Any] | None = None, *, timeout: float = _TIMEOUT
    ) -> str:
        """The answer to a GET, or to a POST with a body."""
        data = None if body is None else json.dumps(body)
        method = "GET" if body is None else "POST"
        try:
            with self._open_url(
                f"{endpoint}{path}", data=data, method=method, timeout=timeout, use_proxy=False, **self._tls
            ) as answer:
                return str(answer.read().decode())
        except HTTPError as exc:
            said = exc.read().decode(errors="replace").strip()[:200]
            raise Unreachable(f"{path} answers {exc.code}: {said}") from exc
        except (OSError, ValueError) as exc:
            raise Unreachable(f"no answer: {getattr(exc, 'reason', exc)}") from exc

    def view(self, endpoint: str, *, timeout: float = _TIMEOUT) -> MemberView:
        """What one member reports about itself; TIMEOUT is for each of two answers."""
        name = urlsplit(endpoint).netloc
        try:
            healthy = '"true"' in self.ask(endpoint, "/health", timeout=timeout)
            return member_view(name, healthy, self.ask(endpoint, "/metrics", timeout=timeout))
        except Unreachable as exc:
            return MemberView(name, error=exc.message)

    def first_answer(self, path: str, body: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """The answer of the first member that answers."""
        said = []
        for endpoint in self.endpoints:
            try:
                return dict(json.loads(self.ask(endpoint, path, body)))
            except (Unreachable, ValueError) as exc:
                said.append(f"{endpoint}: {exc}")
        raise Unreachable(f"No etcd member answers {path}: {'; '.join(said)}", hint="Is a majority of them running?")

    def members(self) -> list[dict[str, t.Any]]:
        """The members of the cluster, as it reports them."""
        # Not linearizable, so that members answer even without a majority.
        rows = self.first_answer("/v3/cluster/member/list", {"linearizable": False}).get("members", [])
        return [
            {
                "id": f"{int(row['ID']):x}",
                "name": row.get("name", ""),
                "peer_urls": row.get("peerURLs", []),
                "started": bool(row.get("clientURLs")),
            }
            for row in rows
        ]


def observe(clients: Clients, *, timeout: float = _TIMEOUT) -> tuple[list[MemberView], list[str]]:
    """What every member reports, queried in parallel, and what is wrong with it."""
    views = with_mutual_connections(
        run_all_or_raise(lambda endpoint: clients.view(endpoint, timeout=timeout), clients.endpoints, parallel=PARALLEL)
    )
    return views, problems(len(clients.endpoints), views)


def wait(
    clients: Clients, timeout: float, progress: OnProgress, clock: Clock = SYSTEM_CLOCK, *, connected: bool = True
) -> list[MemberView]:
    """Wait until every member is healthy and, if CONNECTED, connected to every other one, and one of them leads."""
    deadline = Deadline(timeout, clock)

    def ask() -> tuple[list[MemberView], str | None]:
        # Each member answers two requests.
        views, wrong = observe(clients, timeout=min(_TIMEOUT, deadline.answer_timeout / 2))
        if not connected:
            wrong = [f"{view.pod}: {view.trouble}" for view in views if view.trouble]
        return views, listed(wrong)

    return wait_for(
        ask, goal="etcd is not healthy", deadline=deadline, pause=fixed_interval(_PAUSE, clock), progress=Progress(progress, clock),
        hint="Its unit's log on that host says why: journalctl -u etcd.",
    )  # fmt: skip
