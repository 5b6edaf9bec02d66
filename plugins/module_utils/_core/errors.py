# SPDX-License-Identifier: GPL-3.0-or-later
"""Expected failures, by meaning: one hierarchy for Kubernetes, AWS and this machine.

Code that calls something raises the class that says what the failure means, independent of its source, so that the code above can decide by
class or ``cause`` (ask again, leave alone, give up) and never by the text of a message. Only the edge (_edge/failure.py) turns an error
into a failed task. Any other exception is a bug, and is shown with its traceback.
"""

from __future__ import annotations

import re
import types
import typing as t

NEW_PLAN = "Make a new plan with --check -e muster_plan_file=FILE"
"""The next step where a reviewed plan does not fit what is there."""
_ENDS_A_SENTENCE = (".", "!", "?", ":", "\n")

Details = t.Mapping[str, t.Any]
E = t.TypeVar("E", bound="MusterError")
Causes = t.Sequence[tuple[str, re.Pattern[str]]]
"""Causes that a program tells only in words, each with its sentence, the more telling one first; they stand beside the translation."""


def cause_of(said: t.Any, causes: Causes) -> str:
    """The cause that a sentence or a log of another program has: the first of CAUSES whose pattern it has, or an empty text."""
    return next((cause for cause, pattern in causes if pattern.search(str(said or ""))), "")


class MusterError(Exception):
    """A failure that a user can understand and act on.

    ``message`` says what failed and on which object; ``hint`` says what to do next; ``ref`` is the object (the result's key ``object``);
    ``details`` become keys of the module's result, for playbooks that decide by them. Messages are sentences that stand alone: in the log
    of a nightly run nothing else may be left of the task.

    ``cause`` is a word for what the other side's answer means beyond the class, put on once, where the answer is translated. ``said`` is
    that answer, to be shown; ``named`` has what it names, such as a webhook.
    """

    cause = said = ""
    named: t.Mapping[str, str] = types.MappingProxyType({})

    def __init__(self, message: str, hint: str | None = None, *, ref: t.Any = None, details: Details | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or None
        self.ref = ref
        self.details: dict[str, t.Any] = dict(details or {})

    def with_cause(self: E, said: str, causes: Causes) -> E:
        """Set the cause from the sentence of another program: the first of CAUSES whose pattern it has."""
        self.said = said
        found = ((cause, match.groupdict()) for cause, pattern in causes if (match := pattern.search(said)))
        self.cause, named = next(found, ("", {}))
        self.named = {key: value for key, value in named.items() if value}
        return self

    def __str__(self) -> str:
        if not self.hint:
            return self.message
        stop = "" if self.message.endswith(_ENDS_A_SENTENCE) or self.hint.startswith("\n") else "."
        return f"{self.message}{stop} {self.hint}"


# Errors in what the user asked for


class InvalidInput(MusterError):
    """The request cannot be carried out: options that contradict each other, a name that Kubernetes refuses, data that would be lost.

    It is found before anything is sent or changed, so that a plan (check mode) reports it too. The user corrects the option that the
    message names, and runs again. Builders of manifests, AWS resources and the local cluster all raise this one class.
    """


class Immutable(MusterError):
    """The object exists, and the field that differs cannot be changed in place.

    It has a separate class because there is a way out: the user may allow the object to be deleted and created again (``recreate``), or
    choose another name.
    """


class Conflict(MusterError):
    """Another field manager owns the field, another owner the object, or another run holds the Lease.

    The request is valid; two sides disagree. The user decides: leaves the fields out, or takes them over with the option
    that the hint names. ``managers`` and ``fields`` are for playbooks that want to decide themselves.
    """

    def __init__(
        self, message: str, hint: str | None = None, *, managers: t.Sequence[str] = (), fields: t.Sequence[str] = (), ref: t.Any = None
    ) -> None:
        details = {"manager": ", ".join(managers), "fields": list(fields)}
        super().__init__(message, hint, ref=ref, details=details)
        self.managers = list(managers)
        self.fields = list(fields)


class LeaseLost(Conflict):
    """Another run holds, or held, the Lease that this run relied on, so its next write would rest on outdated reads."""


class Overtaken(Conflict):
    """Another run has written an object since this run read it, so this run's version of it is not written.

    It has a class of its own because there is a way on: read again what is there, and use it (``_kube/made_once.py``). Users meet it only
    where other runs write the object again and again. ``done`` is the report of what this run had written before, or None.
    """

    done: t.Any = None


class NoRoom(MusterError):
    """The cluster has no room for all pods that must run at once, so none was created.

    Its message has the numbers and the nearest size that fits. The user makes room, asks for less, or has the pods wait for room.
    """


# Refusals of the other side


class NotFound(MusterError):
    """An object that must exist does not, or the address of a kind answers 404.

    If absence is a normal answer, functions return None instead. The user creates what is missing first, or corrects its name.
    """


class MissingKind(NotFound):
    """The cluster serves no such apiVersion and kind.

    It concerns all objects of the kind, and not one: an operator or a definition is not installed, or the cluster is too old or too new
    for this version of the API. The user installs what serves the kind.
    """


class Terminating(MusterError):
    """The namespace or the object is being deleted, so nothing can be created in it or changed on it.

    It passes by itself unless a finalizer waits for a controller that is gone. The user waits, or looks at the finalizers in the message.
    """


class Rejected(MusterError):
    """The server understood the request and refused its content: validation, a quota, an admission webhook, a rule of AWS.

    Trying again does not help. The message has the server's reason; the user corrects the object or the policy.
    """


class Unauthorized(MusterError):
    """The credentials themselves are not accepted: expired, revoked, or of another cluster.

    The client has renewed them once before this is raised. The user logs in again, or points at another kubeconfig.
    """


class Forbidden(MusterError):
    """The credentials are accepted and do not allow this.

    Reads that only improve a message are skipped; everything else stops. The user asks for the permission that the message names.
    """


# No usable answer


class Unreachable(MusterError):
    """The other side gave no usable answer: connection refused, time ran out, TLS failed, an answer cut short.

    Retries are over when this is raised, except inside a wait, where the server may be restarting and the deadline still holds.
    The user checks the address, the network and the proxy settings that the message names.
    """


class ServerError(MusterError):
    """The server answered that it failed (status 5xx), also after retries.

    Inside a wait it is treated as Unreachable. Otherwise the user looks at the server's own log; the request was in order.
    """


class Gone(MusterError):
    """The server no longer has the history from which a watch should continue (410).

    etcd is compacted every few minutes, so this is an ordinary event in a long wait: list again and watch from there. Users never see it.
    """


# Bad ends


class Failed(MusterError):
    """The operation was started and ended badly, and waiting longer is of no use: a Job that used up its retries, a node of the
    local cluster that ended, a node group that AWS reports as CREATE_FAILED.

    The message has the reason that the object itself gives. The user removes the cause and runs again.
    """


class KeepsFailing(Failed):
    """The workload ends again and again with the same error, although Kubernetes restarts it; ``last_seen`` names it.

    It has a class of its own because, unlike what has failed for good, it may still be there: a larger training can go back to the
    size at which it worked. The user removes the cause; what is started after that may succeed without a new run.
    """


class CommandFailed(MusterError):
    """A program on this machine is not installed, did not end in time, or exited with an error; the message has its last words."""


class WaitTimeout(MusterError):
    """The deadline of a wait passed. ``last_seen`` says, for each thing that was waited for, why it was not there yet.

    The operation itself continues: the user may run again, raise the timeout, or remove the cause in last_seen.
    """

    def __init__(
        self, message: str, hint: str | None = None, *, last_seen: t.Sequence[str] = (), ref: t.Any = None, details: Details | None = None
    ) -> None:
        super().__init__(message, hint, ref=ref, details={"last_seen": list(last_seen), **(details or {})})
        self.last_seen = list(last_seen)


class ApplyFailed(MusterError):
    """Several objects failed in one run; ``errors`` has each, and the message all of them.

    With one error per run the user would have to run again for each mistake.
    """

    def __init__(self, message: str, *, errors: t.Sequence[MusterError], details: Details | None = None) -> None:
        super().__init__(message, details=details)
        self.errors = list(errors)
