# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls to Google's REST APIs: repeated where Google asks for it, with errors that name the object.

Gets its session from the caller and imports no library of Google, so that the code above can be tested without one.
"""

from __future__ import annotations

import copy
import typing as t

from .._cloud.plan import Body
from .._core.clock import Clock
from .._core.errors import MusterError, Unreachable
from .._core.pace import Backoff, with_retries
from .errors import DISABLED, NOT_SEEN, OWNED, Refused, api_of, refusal
from .plan import Step

ADDRESSES = {
    "artifactregistry": "https://artifactregistry.googleapis.com/v1/",
    "cloudresourcemanager": "https://cloudresourcemanager.googleapis.com/v3/",
    "compute": "https://compute.googleapis.com/compute/v1/",
    "container": "https://container.googleapis.com/v1/",
    "iam": "https://iam.googleapis.com/v1/",
    "serviceusage": "https://serviceusage.googleapis.com/v1/",
    "storage": "https://storage.googleapis.com/storage/v1/",
}
THROTTLED = {"RATE_LIMIT_EXCEEDED", "429"}
# Google answers these without having done anything (google.aip.dev/194); after other failures only a read may be repeated.
NOT_DONE = (429, 503)
FAILED = (500, 502, 503, 504)
# If Google has never answered, the network or the proxy is probably wrong.
_FIRST_CONTACT = 3.0
EXISTS = "ALREADY_EXISTS"
# An API refuses for minutes after it was enabled.
_ENABLING = 300.0
CREATING = ("create", "insert")


class Session(t.Protocol):
    """One HTTP request with credentials: its status, and the answer as JSON, or as text where it is none. Raises Unreachable."""

    def request(self, verb: str, url: str, *, json: Body | None, params: Body) -> tuple[int, t.Any]: ...


class Api:
    """One project, or the one that a path names. ``lenient``: an API that is not enabled has no resources.

    That is so for a plan, as the API may be enabled by a task that would run before, and for what is to be deleted.
    """

    def __init__(self, session: Session, clock: Clock, retry_timeout: float = 90.0, *, project: str = "", lenient: bool = False) -> None:
        self._session = session
        self.project, self.lenient = project, lenient
        self.clock = clock
        self.retry_timeout = retry_timeout
        self._answered = False

    def within(self, seconds: float) -> Api:
        """The same API, whose requests are tried again for so many seconds at most."""
        bounded = copy.copy(self)
        bounded.retry_timeout = min(self.retry_timeout, seconds)
        return bounded

    def read(self, label: str, service: str, path: str, **params: t.Any) -> Body | None:
        """The answer to a GET; None if the object does not exist."""
        return self._look(label, Step("get", {}, "read", service, verb="GET", path=path, params=params))

    def _look(self, label: str, step: Step) -> Body | None:
        try:
            return self._send(label, step)
        except Refused as refused:
            if refused.http == 404 or (self.lenient and DISABLED in refused.codes):
                return None
            raise

    def pages(self, label: str, service: str, path: str, key: str, **params: t.Any) -> list[t.Any]:
        """All items of a listing, page after page; none if what should have them does not exist."""
        return [row for page in self.each_page(label, service, path, **params) for row in page.get(key) or []]

    def each_page(self, label: str, service: str, path: str, **params: t.Any) -> t.Iterator[Body]:
        """The answers of a listing, page after page."""
        while True:
            page = self.read(label, service, path, **params) or {}
            yield page
            if not page.get("nextPageToken"):
                return
            params = {**params, "pageToken": page["nextPageToken"]}

    def ask(self, label: str, service: str, path: str, body: Body, **params: t.Any) -> Body | None:
        """The answer to a POST that only reads, such as getIamPolicy; None if the object does not exist."""
        return self._look(label, Step("get", body, "read", service, path=path, params=params))

    def write(self, label: str, step: Step) -> Body:
        """Send a step. The response is empty if Google has already done it: for an earlier attempt, or for a run that was killed."""
        try:
            return self._send(label, step)
        except Refused as refused:
            if step.verb == "DELETE" and refused.http == 404:
                return {}
            exists = EXISTS in refused.codes or refused.cause == OWNED
            if exists and step.operation.rsplit(".", 1)[-1] in CREATING:
                return {}  # ``converge`` checks its owner next
            raise

    def _send(self, label: str, step: Step) -> Body:
        """Send a request, and retry it while Google refuses it as too early; then raise its last refusal."""
        backoff = Backoff(self.clock, first=1.0, factor=1.5, longest=15.0)
        reads = step.says == "read"
        what = f"{label}: {step.service}:{step.operation}" + ("" if reads else f" ({step.says})")

        def call() -> Body:
            url = ADDRESSES[step.service] + step.path
            body = step.request if step.verb not in ("GET", "DELETE") else None
            status, answer = self._session.request(step.verb, url, json=body, params=step.params)
            self._answered = True
            if status >= 400:
                raise refusal(what, step.service, status, answer)
            return answer if isinstance(answer, dict) else {}

        def again(error: MusterError) -> bool:
            if self._just_enabled(step, error):
                return backoff.wait_for_retry(limit=_ENABLING)
            limit = self.retry_timeout if self._answered else _FIRST_CONTACT
            return too_early(error, reads=reads) and backoff.wait_for_retry(limit=limit, retry_after=getattr(error, "delay", None))

        return with_retries(call, again)

    def _just_enabled(self, step: Step, error: MusterError) -> bool:
        """Whether an API refuses as if it were not enabled, and Service Usage knows that it is."""
        if not (isinstance(error, Refused) and DISABLED in error.codes and self.project):
            return False
        url = f"{ADDRESSES['serviceusage']}projects/{self.project}/services/{api_of(error.said, step.service)}"
        status, answer = self._session.request("GET", url, json=None, params={})
        return status == 200 and answer.get("state") == "ENABLED"


def too_early(error: MusterError, *, reads: bool) -> bool:
    """Whether the same request may be accepted in a while."""
    if isinstance(error, Unreachable):
        return True  # what was done already, a second request finds so (see ``Api.write``)
    if not isinstance(error, Refused):
        return False
    if error.codes & THROTTLED or error.http in NOT_DONE or (reads and error.http in FAILED):
        return True
    return not reads and error.http in (400, 404) and error.cause == NOT_SEEN
