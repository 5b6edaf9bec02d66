# SPDX-License-Identifier: GPL-3.0-or-later
"""What every request passes: who asks, which method it is, faults, whether the API is enabled, its form, the permissions, the handler."""

import json
import threading
import traceback
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from . import authorise, oauth
from .api import Answer, Asked, Raw, Refused, answer
from .discovery import Body, Method, match
from .journal import JOURNAL
from .partial import only
from .schema import check

JSON = "application/json; charset=UTF-8"
UNAUTHENTICATED = (
    "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential. "
    "See https://developers.google.com/identity/sign-in/web/devconsole-project."
)
THROTTLED = {
    "compute.v1": (403, "Rate Limit Exceeded", "rateLimitExceeded"),  # compute's own; 403 since its beginnings
    "storage.v1": (429, "The object exceeded the rate limit for object mutation operations (create, update, and delete). Please reduce "
                        "your request rate. See https://cloud.google.com/storage/docs/gcs429.", "rateLimitExceeded"),
}  # fmt: skip
QUOTA = "Quota exceeded for quota metric 'Requests' and limit 'Requests per minute' of service '{}' for consumer 'project_number:{}'."


class Dropped(Exception):
    """The connection ends without an answer, though the work was done."""


@dataclass
class Gate:
    """``serve`` answers one request at a time: the project is one thing."""

    tokens: oauth.Tokens
    lock: threading.RLock = field(default_factory=threading.RLock)
    # What each address was last answered: that is what a stale read shows again.
    seen: dict[tuple[str, str, str], Raw] = field(default_factory=dict)

    def serve(self, host: str, verb: str, target: str, headers: dict[str, str], raw: bytes) -> Raw:
        with self.lock:
            if host == oauth.HOST:
                return self._token(target, raw)
            path, _mark, query = target.partition("?")
            found = match(host, verb, path)
            if found is None:
                JOURNAL.note("unknown", host, path, verb != "GET", 404)
                text = f"The requested URL {path} was not found on this server."
                return Raw(f"<!DOCTYPE html><title>Error 404 (Not Found)!!1</title><p>{text}".encode(), 404, {"Content-Type": "text/html"})
            method, params = found
            asked = Asked(method, host, path, params, {}, raw, headers)
            try:
                done = self._answer(asked, parse_qs(query, keep_blank_values=True), target)
            except Exception as error:  # noqa: BLE001  # a mistake of ours must not look like a busy service, which is asked again
                refused = error if isinstance(error, Refused) else Refused(418, traceback.format_exc(), code="SIMULATOR_BROKEN")
                done = Raw(_dump(refused.body(method.document)), refused.status)
            return self._noted(asked, target, done)

    def _token(self, target: str, raw: bytes) -> Raw:
        status, body = self.tokens.token(raw)
        JOURNAL.note("oauth2.token", oauth.HOST, target.partition("?")[0], False, status)
        return Raw(_dump(body), status)

    def _answer(self, asked: Asked, query: dict[str, list[str]], target: str) -> Raw:
        self._authenticate(asked, query)
        self._faults(asked)
        if JOURNAL.fault("stale", asked.id):
            return self._stale(asked, target)
        params, body = check(asked.method, query, *_body(asked.method, asked))
        asked.params.update(params)
        asked.body = body
        where = authorise.project_of(asked)
        authorise.check_enabled(asked, where)
        authorise.check(asked)
        done: Answer = answer(asked)
        if isinstance(done, Raw):
            return done
        return Raw(_dump(only(done, str(asked.params.get("fields", "")))))

    def _authenticate(self, asked: Asked, query: dict[str, list[str]]) -> None:
        scheme, _space, token = asked.headers.get("authorization", "").partition(" ")
        token = token if scheme == "Bearer" else query.get("access_token", [""])[0]
        if token not in self.tokens.good:
            raise Refused(401, UNAUTHENTICATED)
        asked.caller = self.tokens.good[token]

    @staticmethod
    def _faults(asked: Asked) -> None:
        """`throttle` (status), `refuse` (status, message, reason, code)."""
        document = asked.method.document
        if fault := JOURNAL.fault("throttle", asked.id):
            if fault.detail.get("status") == HTTPStatus.SERVICE_UNAVAILABLE:
                raise Refused(503, "The service is currently unavailable.")
            status, message, reason = THROTTLED.get(document, (429, QUOTA.format(asked.method.service, "123456789012"), ""))
            raise Refused(status, message, reason=reason, domain="usageLimits", code="RESOURCE_EXHAUSTED")
        if fault := JOURNAL.fault("refuse", asked.id):
            words = {name: fault.detail[name] for name in ("reason", "code", "details") if name in fault.detail}
            raise Refused(int(fault.detail["status"]), fault.detail.get("message", "refused by a test"), **words)

    def _stale(self, asked: Asked, target: str) -> Raw:
        """A copy that does not know yet of the last change: what this address was answered before, or that nothing is there."""
        before = self.seen.get((asked.host, asked.method.verb, target))
        if before is None:
            raise Refused(404, f"The resource '{authorise.resource_of(asked)}' was not found")
        return before

    def _noted(self, asked: Asked, target: str, done: Raw) -> Raw:
        JOURNAL.note(asked.id, asked.host, asked.path, asked.writes, done.status)
        if not asked.writes:
            self.seen[asked.host, asked.method.verb, target] = done
        if done.status < HTTPStatus.BAD_REQUEST and JOURNAL.fault("drop", asked.id):
            raise Dropped
        return done


def _body(method: Method, asked: Asked) -> tuple[Any, bool]:
    """(the body, whether there is one). An object's content is none that a schema describes."""
    if not asked.raw or asked.path.startswith(("/upload/", "/resumable/")):
        return None, False
    kind = asked.headers.get("content-type", "application/json")
    if "json" not in kind:
        return None, False
    try:
        return json.loads(asked.raw), True
    except ValueError as error:
        raise Refused(400, f"Invalid JSON payload received. {error}") from error


def _dump(body: Body) -> bytes:
    return json.dumps(body, indent=2).encode()
