# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Expected failures, by meaning. Only the edge (_edge/run.py) turns them into a failed task.

    MusterError
     + InvalidInput        what was asked for makes no sense; nothing was sent
     + NotFound            an object that must exist does not
     + MissingKind         the cluster does not serve a kind
     + Terminating         the namespace (or object) is being deleted
     + Conflict            another field manager, or another owner, has the field or the object
     + Immutable           the field cannot be changed in place
     + Rejected            the API server, a quota or a webhook refused the object
     + Unauthorized        the credentials are not accepted
     + Forbidden           the credentials do not allow the verb
     + Unreachable         no answer from the API server
     + ServerError         the API server failed, also after retries
     + Gone                a watch must start again from a new list
     + Failed              the object itself says that it will not get ready
     + WaitTimeout         the deadline passed; carries what was last seen
     + ApplyFailed         several of the above at once

Private to the collection.
"""

from __future__ import annotations

import typing as t

__all__ = (
    "ApplyFailed",
    "Conflict",
    "Failed",
    "Forbidden",
    "Gone",
    "Immutable",
    "InvalidInput",
    "MissingKind",
    "MusterError",
    "NotFound",
    "Rejected",
    "ServerError",
    "Terminating",
    "Unauthorized",
    "Unreachable",
    "WaitTimeout",
)


class MusterError(Exception):
    """A failure that the user can understand: message, next step, object, and values for the result."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        ref: t.Any = None,
        details: dict[str, t.Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.ref = ref
        self.details = details or {}

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class InvalidInput(MusterError):
    """What was asked for makes no sense; found before anything was sent."""


class NotFound(MusterError):
    """An object that must exist does not."""


class MissingKind(MusterError):
    """The cluster does not serve this apiVersion and kind."""


class Terminating(MusterError):
    """The namespace or the object is being deleted."""


class Conflict(MusterError):
    """Another field manager has fields that we want, or another owner has the object."""

    def __init__(
        self,
        message: str,
        *,
        managers: t.Sequence[str] = (),
        fields: t.Sequence[str] = (),
        hint: str | None = None,
        ref: t.Any = None,
    ) -> None:
        details = {"manager": ", ".join(managers), "fields": list(fields)}
        super().__init__(message, hint=hint, ref=ref, details=details)
        self.managers = list(managers)
        self.fields = list(fields)


class Immutable(MusterError):
    """The field cannot be changed in place."""


class Rejected(MusterError):
    """The API server, a quota or an admission webhook refused the object."""


class Unauthorized(MusterError):
    """The credentials are not accepted."""


class Forbidden(MusterError):
    """The credentials do not allow the verb."""


class Unreachable(MusterError):
    """No answer from the API server."""


class ServerError(MusterError):
    """The API server failed, also after retries."""


class Gone(MusterError):
    """A watch must start again from a new list."""


class Failed(MusterError):
    """The object itself says that it will not get ready (a Job that used up its retries)."""


class WaitTimeout(MusterError):
    """The deadline passed. ``last_seen`` says, per object, why it was not ready."""

    def __init__(
        self, message: str, *, last_seen: t.Sequence[str] = (), hint: str | None = None, ref: t.Any = None
    ) -> None:
        super().__init__(message, hint=hint, ref=ref, details={"last_seen": list(last_seen)})
        self.last_seen = list(last_seen)


class ApplyFailed(MusterError):
    """Several objects failed; ``errors`` has each."""

    def __init__(self, message: str, *, errors: t.Sequence[MusterError], details: dict[str, t.Any] | None = None):
        super().__init__(message, details=details)
        self.errors = list(errors)
