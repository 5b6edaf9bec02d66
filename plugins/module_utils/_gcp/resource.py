# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of Google Cloud's resources: what they have in common, and how one is written.

A kind is a frozen dataclass with keywords only. Its fields are the options of its module, so that the module needs no code for them
(``_edge/gcp.py`` derives the options from the fields, and makes it from the options by their names). A kind with an ordinary REST API is a
``Labelled`` (its owner's mark is a label) or a ``Described`` (it is at the end of the description), and says::

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class GcpAddress(Labelled):
        NOUN = "address"                                    # for messages: "Google address x"
        SERVICE, COLLECTION = "compute", "addresses"        # methods are compute:addresses.insert, .delete, ...
        PARENT = "projects/{project}/regions/{region}"      # filled from the fields
        CHANGES = (SET_LABELS,)                             # what can be changed, by which method

        region: str
        address_type: str | None = None

        def body(self) -> Body:                             # what is asked for, in the API's words
            return {"name": self.name, "addressType": self.address_type}

That is all: creation sends the body with the mark, a second run compares only what is in the body (``compare.same``: what Google adds,
leaves out, orders or spells otherwise is no difference), a field that differs is sent by the ``Change`` that names it, and a field that
no ``Change`` names is refused before anything is sent. Changes go in the order of CHANGES: the one of the mark first, so that an
interrupted adoption is known as ours. None in the body is not asked for. Where a key that is left out means something (all ports),
``body`` must spell it out. Every key of a map counts (``compare.MAPS``, which a new field with keys of the user's own joins). Besides, a
kind may

* name fields that only count when it is created (``ONCE``), and where FIXED_HINT should say more than to choose another name;
* have its own ``state`` (creation and changes are waited for through their operation; this is for what goes on after it), ``seen`` (a
  live resource in the body's terms), ``validate`` (refuse nonsense), ``creation``, ``deletion`` or ``change_step`` (a request that is
  not the usual one), ``deletions``, ``data_at_risk`` with ``delete_data``, ``HINTS`` (a better hint for a word
  of Google's), and ``FREED``;
* start from ``Resource`` alone when nothing of this fits.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t
from urllib.parse import quote

from .._cloud import plan as cloud
from .._cloud import resource
from .._cloud.errors import CallRefused
from .._cloud.plan import GONE, Body, Comparison, Plan, State, creation_plan, without_none
from .._core.errors import Failed, InvalidInput, MusterError
from . import operations
from .api import Api
from .compare import MARK, asked_part, labels_with, mark_of, same, split_mark, text_with
from .errors import BUSY, DISABLED, FORBIDDEN, Refused, hint_of
from .labels import refuse_labels
from .plan import Step

# Names of ingress-gce (NEGs, k8s1-..., k8s2-...), of Kubernetes' cloud provider (k8s-fw-..., a with the uid of a Service) and of GKE.
_MAKERS = (
    (
        re.compile(r"networkEndpointGroups/.*|\w+/(?:k8s.*|a[0-9a-f]{31})"),
        " (a Service, Ingress or Gateway on a cluster made it, and it goes some minutes after the cluster)",
    ),
    (re.compile(r"\w+/gke-.*"), " (GKE made it for a cluster, and it goes some minutes after that)"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resource(resource.CloudResource[Api]):
    """Anything in a project."""

    CLOUD = "Google"
    BUSY = ("is busy or still in use", "Wait until that has ended, or run again later")
    HINTS: t.ClassVar[dict[str, str]] = {}
    """Hints for words of Google, and causes, where this kind knows more than ``errors.HINTS``; ``hint`` may know more still."""
    FREED: t.ClassVar[bool] = False
    """Whether what uses it may be removed by GKE, some minutes after the cluster for which it was made
    (hashicorp/terraform-provider-google#7637)."""
    SERVICE: t.ClassVar[str]

    project: str
    owner: str | None = None

    def under_way(self, api: Api, step: cloud.CloudStep, answer: Body) -> str | None:
        found = operations.look(api, self.label, t.cast(Step, step), answer)
        if not isinstance(found, operations.Ended):
            return found
        hint = self.hint(found.problem.codes) or hint_of(found.problem, found.problem.codes, step.service)
        told, details = (f"{self.label}: {step.says} failed: {found.problem}", {"operation": found.name, "code": found.problem.code})
        ended = Refused(told, hint, codes=found.problem.codes, said=found.problem.message)
        raise ended if self.passes(ended) else Failed(told, hint, details=details)

    def passes(self, refused: CallRefused) -> bool:
        codes = refused.codes if isinstance(refused, Refused) else frozenset()
        freed = self.FREED and "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE" in codes
        ended_throttled = "RATE_LIMIT_EXCEEDED" in codes and isinstance(refused, Refused) and not refused.http
        return freed or ended_throttled or "RESOURCE_NOT_READY" in codes or refused.cause == BUSY

    def busy(self, refused: CallRefused) -> str:
        """The message of the refusal, with the creator of the resource that blocks it, if its name shows that."""
        holder = refused.named.get("holder", "")
        made = next((who for names, who in _MAKERS if names.fullmatch(holder)), "")
        return f"{refused.message}{made}"

    def explain(self, refused: CallRefused) -> MusterError:
        if isinstance(refused, Refused) and {DISABLED, FORBIDDEN} & refused.codes:
            return refused  # no kind knows more of that, and another word of the answer may be that of a missing permission
        told = self.hint([refused.cause, *sorted(refused.codes)]) if isinstance(refused, Refused) else ""
        return refused.with_hint(told) if told and isinstance(refused, Refused) else refused

    def hint(self, codes: t.Sequence[str]) -> str:
        """The hint for a refusal or a failed operation, if this kind knows more than Google's message."""
        return next((self.HINTS[code] for code in codes if code in self.HINTS), "")


@dataclasses.dataclass(frozen=True)
class Change:
    """A method that updates fields of the body in one request, which ``change_step`` builds.

    ``suffix`` follows the path of the resource; ``also`` are live fields that the request must repeat, such as a fingerprint;
    ``masked`` requests name their fields in ``updateMask``, as the newer APIs require.
    """

    fields: tuple[str, ...]
    method: str = "patch"
    verb: str = "PATCH"
    suffix: str = ""
    also: tuple[str, ...] = ()
    masked: bool = False


SET_LABELS = Change(("labels",), "setLabels", "POST", "/setLabels", also=("labelFingerprint",))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rest(Resource):
    """A resource that is created, read, changed and deleted by its path."""

    NOUN: t.ClassVar[str]
    COLLECTION: t.ClassVar[str]
    PARENT: t.ClassVar[str] = "projects/{project}/global"
    METHODS: t.ClassVar[str] = ""
    """The prefix of method ids, if it is not the collection: ``projects.locations.repositories``."""
    CREATE: t.ClassVar[str] = "insert"
    CHANGES: t.ClassVar[tuple[Change, ...]] = ()
    ONCE: t.ClassVar[frozenset[str]] = frozenset()
    FIXED_HINT: t.ClassVar[str] = "Choose another name, or delete it first"
    IDENTITY: t.ClassVar[tuple[str, ...]] = ("id",)

    name: str

    @property
    def label(self) -> str:
        return super().label or f"Google {self.NOUN} {self.name}"

    @property
    def parent(self) -> str:
        return self.PARENT.format_map(vars(self))

    @property
    def path(self) -> str:
        return f"{self.parent}/{self.COLLECTION}/{quote(self.name, safe='')}"

    def body(self) -> Body:
        """The desired resource in the API's terms, without the mark."""
        raise NotImplementedError

    def marked(self, live: Body) -> Body:
        """The field with the owner's mark as it is to be; empty if it is as it should be anyway."""
        raise NotImplementedError

    def labels_for(self, live: dict[str, str] | None, asked: dict[str, str] | None) -> dict[str, str]:
        """The labels that it is to have, with the mark of its owner; those that Google does not accept are refused."""
        refuse_labels(self.label, {**(asked or {}), **mark_of(self.owner)})
        return labels_with(live, asked, self.owner or "")

    def validate(self) -> None:
        """Refuse options that cannot be."""

    def read(self, api: Api) -> Body | None:
        return api.read(self.label, self.SERVICE, self.path)

    def seen(self, live: Body) -> Body:
        """The live resource in the terms of ``body``."""
        return live

    def state(self, live: Body | None) -> State:
        return State(stable=True, seen="there") if live else GONE

    def method(self, name: str) -> str:
        return f"{self.METHODS or self.COLLECTION}.{name}"

    def step(self, method: str, says: str, request: Body | None = None, suffix: str = "", verb: str = "POST", **params: str) -> Step:
        """A request to the resource, or below it by SUFFIX."""
        path = self.path + suffix
        return Step(self.method(method), request or {}, says, self.SERVICE, "stable", verb, path, params)

    def creation(self) -> Step:
        request = {**without_none(self.body()), **self.marked({})}
        path = f"{self.parent}/{self.COLLECTION}"
        return Step(self.method(self.CREATE), request, "create", self.SERVICE, "stable", path=path)

    def deletion(self) -> Step:
        return Step(self.method("delete"), {}, "delete", self.SERVICE, "gone", verb="DELETE", path=self.path)

    def change_step(self, change: Change, fields: Body, live: Body) -> Step:
        """The request that changes FIELDS, which have their desired values."""
        request = {**fields, **{key: live[key] for key in change.also if key in live}}
        params = {"updateMask": ",".join(sorted(fields))} if change.masked else {}
        return self.step(change.method, ", ".join(sorted(fields)), request, change.suffix, change.verb, **params)

    def plan(self, live: Body | None) -> Plan:
        self.validate()
        if live is None:
            return creation_plan(self.creation())
        now = self.seen(live)
        desired = {**without_none(self.body()), **self.marked(now)}
        others = {key: value for key, value in desired.items() if self._differs(key, now.get(key), value)}
        self._refuse_fixed(now, others)
        compare, steps = Comparison(), []
        for change in self.CHANGES:
            fields = {key: others[key] for key in change.fields if key in others}
            for key, value in fields.items():
                compare.differs(key, asked_part(now.get(key), value, key), value)
            if fields:
                steps.append(self.change_step(change, fields, live))
        return compare.plan(steps)

    def deletions(self, live: Body) -> list[Step]:  # noqa: ARG002
        return [self.deletion()]

    def _differs(self, key: str, live: t.Any, desired: t.Any) -> bool:
        return key not in self.ONCE and not same(live, desired, key)

    def _refuse_fixed(self, live: Body, others: Body) -> None:
        changeable = {key for change in self.CHANGES for key in change.fields}
        for key in sorted(others.keys() - changeable):
            now = asked_part(live.get(key), others[key], key)
            raise InvalidInput(f"{self.label} has {key} {now!r}; Google cannot change it to {others[key]!r}", hint=self.FIXED_HINT)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Labelled(Rest):
    """A resource whose owner's mark is a label. It has the given labels, the mark and Google's own labels, and no others."""

    MARK = "label"

    labels: dict[str, str] | None = None

    def marks(self, live: Body) -> dict[str, str]:
        return dict(live.get("labels") or {})

    def marked(self, live: Body) -> Body:
        if self.labels is None and not self.owner:
            return {}
        return {"labels": self.labels_for(live.get("labels"), self.labels)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Described(Rest):
    """A resource without labels, whose owner's mark is at the end of its description."""

    MARK = "mark"

    description: str | None = None

    def marks(self, live: Body) -> dict[str, str]:
        owner = split_mark(live.get("description") or "")[1]
        return {MARK: owner} if owner else {}

    def taking_over(self, mark: str, theirs: dict[str, str]) -> str:
        if any("description" in change.fields for change in self.CHANGES):
            return super().taking_over(mark, theirs)
        way = f"run with owner: {theirs[MARK]}" if theirs else "run without owner"
        return f"{way}, as Google cannot change the description of a {self.NOUN}"

    def marked(self, live: Body) -> Body:
        if self.description is None and not self.owner:
            return {}
        return {"description": text_with(live.get("description"), self.description, self.owner or "")}
