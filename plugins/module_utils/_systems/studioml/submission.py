# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of an experiment for its submitter: submit it once, wait for it, read its output.

Between broker and bucket there is no transaction. A note in the bucket records the submission: it is written before the message is
published (``submitting``) and again after the broker has confirmed it (``submitted``). So the state of an experiment is one of:

- never submitted: there is neither note nor output;
- ``submitted``: the broker had it. It is not submitted again, unless the user requests it;
- ``submitting``: the run was stopped in between, and the broker may have it. It is submitted again, with a warning that it may run twice;
- ended: its output has an end. Whether it runs now is not known: the queue's numbers only show that some experiment runs.

Two controllers that submit the same experiment within the same second may both do so.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
import json
import tempfile
import typing as t
from collections.abc import Mapping

from ..._core.clock import Clock, Deadline
from ..._core.errors import Failed, Immutable, MusterError, WaitTimeout
from ..._core.pool import OnProgress, Progress
from ..._core.sensitive import Sensitive
from ..._core.waiting import growing_interval, wait_for
from . import results
from .bucket import Found, S3Bucket
from .experiment import Experiment, seconds

_IN_MEMORY = 1 << 22
_FIRST, _LONGEST = 1.0, 10.0
GONE_S = 20.0
"""The time for which a queue must be reported as empty: the broker counts its messages every five seconds. A runner acknowledges a message
when the output is stored, so an experiment that is neither in the queue nor in the bucket was refused, or purged."""


@dataclasses.dataclass(frozen=True)
class Depth:
    """Numbers of a queue; None if the broker has not counted yet. ``messages`` includes those that a runner holds."""

    messages: int | None
    held: int | None
    consumers: int | None
    returned: int
    """The total number of redeliveries."""

    def __str__(self) -> str:
        known = [
            "an unknown number of messages" if self.messages is None else f"{self.messages} messages",
            f"{self.held or 0} of them held by runners",
            f"{self.consumers or 0} consumers",
        ]
        return ", ".join(known)


class Channel(t.Protocol):
    """The broker's side of one queue."""

    @property
    def queue(self) -> str:
        """The name of the queue."""

    def prepare(self, *, check: bool) -> list[str]:
        """Bind the queue, if it is not bound. Return the actions, or those of a real run."""

    def publish(self, body: bytes, name: str) -> None:
        """Publish a persistent message. An error has ``may_be_published`` if the broker may have the message nevertheless."""

    def depth(self) -> Depth:
        """The queue's numbers now."""

    def take(self, name: str) -> str | None:
        """Take a message out of the queue. Return the reason why that is not possible now; None if it was taken."""


@dataclasses.dataclass(frozen=True)
class Note:
    """The record of a submission."""

    spec: Mapping[str, t.Any]
    state: t.Literal["submitting", "submitted"]
    submitted: str
    count: int
    old_output: str = ""
    """The ETag of an output that existed before."""

    def as_file(self) -> t.IO[bytes]:
        return io.BytesIO(json.dumps({"muster": 1, **dataclasses.asdict(self)}, indent=1).encode())


@dataclasses.dataclass
class Seen:
    """The objects of an experiment in the bucket."""

    note: Note | None
    found: Found | None
    result: results.Result | None = None

    @property
    def output(self) -> Found | None:
        """The output, unless it is that of an earlier submission."""
        return None if self.found and self.note and self.found.etag == self.note.old_output else self.found

    @property
    def ended(self) -> t.Literal["finished", "failed"] | None:
        return self.result.ended if self.result else None


@dataclasses.dataclass
class Life:
    """One experiment with its bucket and its queue. ``hidden``: secrets that its output may have."""

    wanted: Experiment
    bucket: S3Bucket
    channel: Channel
    now: t.Callable[[], dt.datetime]
    hidden: tuple[Sensitive, ...]
    _read: tuple[str, results.Result] | None = None

    def seen(self) -> Seen:
        """The note and the output. An output is read again only if it has changed."""
        listed = self.bucket.look(self.wanted.folder)
        note = self._note() if self.wanted.note in listed else None
        seen = Seen(note, listed.get(self.wanted.output))
        if output := seen.output:
            if self._read is None or self._read[0] != output.etag:
                with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
                    self.bucket.get(self.wanted.output, file)
                    self._read = (output.etag, results.read(file, self.hidden))
            seen.result = self._read[1]
        return seen

    def _note(self) -> Note | None:
        with io.BytesIO() as file:
            if not self.bucket.get(self.wanted.note, file):
                return None
            try:
                found = json.loads(file.read())
                return Note(**{field.name: found[field.name] for field in dataclasses.fields(Note)})
            except (ValueError, KeyError, TypeError):
                raise Failed(
                    f"{self.wanted.note} in bucket {self.bucket.name} is not a note of this collection.",
                    "Choose another name for the experiment.",
                ) from None  # a decoding error holds the whole text

    def check_same(self, note: Note) -> None:
        """Raise if another experiment has the name."""
        current = self.wanted.spec()
        differing = [key for key in current if current[key] != note.spec.get(key)]
        if differing:
            shown = "; ".join(f"{key} was {note.spec.get(key)!r}" for key in differing[:3])
            raise Immutable(
                f"Experiment {self.wanted.name} was submitted with another {', '.join(differing)} ({shown}).",
                "An experiment keeps what it was submitted with. Choose another name for this one.",
            )

    def submit(self, seen: Seen, body: bytes) -> None:
        """Write the note, publish, write the note again."""
        count = seen.note.count + 1 if seen.note else 1
        stamp = self.now().isoformat(timespec="seconds")
        note = Note(self.wanted.spec(), "submitting", stamp, count, seen.found.etag if seen.found else "")
        self.bucket.put(self.wanted.note, note.as_file())
        try:
            self.channel.publish(body, self.wanted.name)
        except MusterError as error:
            if error.details.get("may_be_published"):
                raise
            if seen.note:
                self.bucket.put(self.wanted.note, seen.note.as_file())
            else:
                self.bucket.delete(self.wanted.note)
            raise
        self.bucket.put(self.wanted.note, dataclasses.replace(note, state="submitted").as_file())

    def remove(self, timeout: float, clock: Clock, on_progress: OnProgress) -> None:
        """Take the message out of the queue, if necessary between two attempts of a runner, and delete the note."""
        empty_since = clock.monotonic()

        def observe() -> tuple[None, str | None]:
            nonlocal empty_since
            missing, depth = self.channel.take(self.wanted.name), self.channel.depth()
            if missing is None or depth.messages != 0:
                empty_since = clock.monotonic()
            over = missing is None or clock.monotonic() - empty_since > GONE_S
            return None, None if over else f"{missing} in queue {self.channel.queue} ({depth})"

        wait_for(
            observe, goal=f"Experiment {self.wanted.name} is not taken out", deadline=Deadline(timeout, clock),
            pause=growing_interval(_FIRST, _FIRST, clock), progress=Progress(on_progress, clock),
            hint="A runner that runs it gives it back when it has failed. What waits before it can be removed first.",
        )  # fmt: skip
        self.bucket.delete(self.wanted.note)

    def wait(self, timeout: float, clock: Clock, on_progress: OnProgress) -> Seen:
        """Wait for the end of the output."""
        before: list[int] = []
        empty_since, latest = clock.monotonic(), Seen(None, None)

        def observe() -> tuple[Seen, str | None]:
            nonlocal empty_since, latest
            latest = self.seen()
            if latest.ended:
                return latest, None
            try:
                depth = self.channel.depth()
            except MusterError:
                # A broker that starts does not have all of its queues yet.
                empty_since = clock.monotonic()
                raise
            before.append(depth.returned)
            if depth.messages != 0:
                empty_since = clock.monotonic()
            elif not latest.output and clock.monotonic() - empty_since > GONE_S:
                raise self._gone()
            return latest, self._missing(depth, depth.returned - before[0], latest)

        goal = f"Experiment {self.wanted.name} has no result"
        try:
            return wait_for(
                observe, goal=goal, deadline=Deadline(timeout, clock), pause=growing_interval(_FIRST, _LONGEST, clock),
                progress=Progress(on_progress, clock), hint=_PATIENT,
            )  # fmt: skip
        except WaitTimeout as error:
            error.hint = f"{self._over(latest.note)}{_PATIENT}"
            raise

    def _missing(self, depth: Depth, returned: int, seen: Seen) -> str:
        trained = seen.result.progress.line() if seen.result else ""
        parts = [trained] if trained else []
        parts.append(f"queue {self.channel.queue} has {depth}")
        if seen.output:
            parts.append(f"its output of {seen.output.modified:%H:%M:%S} UTC has no end yet")
        if returned > 0:
            parts.append(f"messages of the queue were given back {returned} times: runners ended, or refuse them")
        return "; ".join(parts)

    def _over(self, note: Note | None) -> str:
        """Return a sentence if its lifetime has passed, after which no runner starts it; empty otherwise."""
        if note is None or self.wanted.lifetime is None:
            return ""
        end = dt.datetime.fromisoformat(note.submitted) + dt.timedelta(seconds=seconds(self.wanted.lifetime))
        return f"Its lifetime of {self.wanted.lifetime} ended at {end:%Y-%m-%d %H:%M:%S} UTC. " if end < self.now() else ""

    def _gone(self) -> MusterError:
        return Failed(
            f"Experiment {self.wanted.name} is neither in queue {self.channel.queue} nor in bucket {self.bucket.name}: "
            "a runner has refused it, or the queue was purged.",
            "The runner's log has the reason (backing off, receive failed). Remove the cause, and set resubmit to true to submit it again.",
        )


_PATIENT = (
    "Runners ask for messages by themselves, so 0 consumers is usual. If messages are given back again and again, the runner's log says "
    "why (backing off, receive failed). Nothing was stopped: run it again to go on waiting."
)
