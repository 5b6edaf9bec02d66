# SPDX-License-Identifier: GPL-3.0-or-later
"""A request as the simulated services see it, how they refuse one, and who answers which method."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .discovery import Body, Method

CODES = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ALREADY_EXISTS",
    412: "FAILED_PRECONDITION", 416: "OUT_OF_RANGE", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 501: "UNIMPLEMENTED", 503: "UNAVAILABLE",
}  # fmt: skip
REASONS = {
    400: "badRequest", 401: "authError", 403: "forbidden", 404: "notFound", 409: "alreadyExists", 412: "conditionNotMet",
    416: "requestedRangeNotSatisfiable", 429: "rateLimitExceeded", 500: "internalError", 501: "notImplemented", 503: "backendError",
}  # fmt: skip


class Refused(Exception):
    """An error of a service. ``code`` is its canonical word, ``reason`` the older one, which Google's Go and Python clients print."""

    def __init__(
        self, status: int, message: str, *, reason: str = "", code: str = "", details: Sequence[Body] = (), domain: str = "global"
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.status, self.message, self.details, self.domain = status, message, list(details), domain
        self.reason = reason or REASONS.get(status, "unknown")
        self.code = code or CODES.get(status, "UNKNOWN")

    def body(self, document: str) -> Body:
        """Compute and Cloud Storage give no canonical word (compute does where its API is not enabled)."""
        error: Body = {
            "code": self.status,
            "message": self.message,
            "errors": [{"message": self.message, "domain": self.domain, "reason": self.reason}],
        }
        if self.details or document not in ("compute.v1", "storage.v1"):
            error["status"] = self.code
        if self.details:
            error["details"] = self.details
        return {"error": error}


def error_info(reason: str, domain: str, **metadata: str) -> Body:
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": domain, "metadata": metadata}


@dataclass
class Asked:
    """One request, understood."""

    method: Method
    host: str
    path: str
    params: dict[str, Any]
    body: Body
    raw: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    caller: str = ""

    @property
    def id(self) -> str:
        return self.method.id

    @property
    def writes(self) -> bool:
        """A policy is read by POST."""
        return self.method.verb != "GET" and not self.id.endswith(".getIamPolicy")

    def parts(self, name: str) -> dict[str, str]:
        """{"projects": "p", "locations": "l", ...} of a parameter such as "projects/p/locations/l/clusters/c"."""
        words = str(self.params[name]).split("/")
        return dict(zip(words[::2], words[1::2], strict=False))


@dataclass
class Raw:
    """An answer that is no JSON, or has a status or headers of its own."""

    content: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


Answer = Body | Raw
Handler = Callable[[Asked], Answer]
HANDLERS: dict[str, Handler] = {}


def handles(*ids: str) -> Callable[[Handler], Handler]:
    """Say which methods a function answers."""

    def register(handler: Handler) -> Handler:
        for one in ids:
            if one in HANDLERS:
                raise RuntimeError(f"{one} is answered twice")
            HANDLERS[one] = handler
        return handler

    return register


def answer(asked: Asked) -> Answer:
    handler = HANDLERS.get(asked.id)
    if handler is None:
        raise Refused(501, f"the simulator does not answer {asked.id}", code="UNIMPLEMENTED")
    return handler(asked)
