# SPDX-License-Identifier: GPL-3.0-or-later
"""One member of one role in the policy of a resource. A policy is read, changed and written as a whole.

It has an etag. Google refuses the request if the policy has changed in between; then it is read and planned again.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._cloud.converge import Outcome
from .._cloud.plan import Body, Plan
from .._core.clock import Deadline
from .._core.errors import InvalidInput, MusterError, NotFound
from .._core.pace import Backoff, with_retries
from .._core.waiting import growing_interval, last_answer
from .api import Api
from .errors import NO_POOL, NO_PUBLIC, NOT_UNIFORM, REMADE, Refused
from .plan import Step

VERSION = 3
"""The version of policies with conditions. An older version shows conditions differently, and writing it would lose them."""
STALE = {"ABORTED", "CONDITION_NOT_MET", "CONFLICT"}
NO_CASE = re.compile(r"^(?:user|group|serviceAccount|domain):")
DELETED = re.compile(r"^deleted:(?P<member>[^?]+)\?uid=\d+$")
TYPES = re.compile(
    r"^(?:allUsers|allAuthenticatedUsers|principal(?:Set)?://.+"
    r"|(?:user|group|serviceAccount|domain|projectOwner|projectEditor|projectViewer|deleted):.+)$"
)
REPOSITORY = re.compile(r"projects/[^/]+/locations/[^/]+/repositories/[^/]+")
ACCOUNT_OF = re.compile(r"@([a-z0-9-]+)\.iam\.gserviceaccount\.com$")
HINTS = {
    NO_POOL: "The pool comes with the first cluster that has Workload Identity: create that first",
    REMADE: "An account of this name was deleted before and is still in the policy: run again later, or remove that member first "
    "(state: absent takes it out)",
    NO_PUBLIC: "The bucket does not allow public access: name who may read it",
    NOT_UNIFORM: "Turn on uniform bucket-level access of the bucket, or leave out condition",
}


@dataclasses.dataclass(frozen=True)
class Place:
    """The place of a policy. ``params`` request its version; if empty, the body does. ``wrapped``: the policy is sent as ``policy``."""

    noun: str
    service: str
    path: str
    methods: str
    verbs: tuple[str, str] = ("POST", "POST")
    suffixes: tuple[str, str] = (":getIamPolicy", ":setIamPolicy")
    params: Body = dataclasses.field(default_factory=dict)
    wrapped: bool = True

    @property
    def label(self) -> str:
        return f"policy of Google {self.noun}"


def place(project: str, resource: dict[str, str | None]) -> Place:
    """The one that the option ``resource`` names."""
    kind, name = next(((kind, name) for kind, name in resource.items() if name is not None), ("", ""))
    if not name:
        raise InvalidInput(f"resource: {kind} is empty", hint="Give the name of the resource")
    query = {"options.requestedPolicyVersion": VERSION}
    if kind == "project":
        return Place(f"project {name}", "cloudresourcemanager", f"projects/{name}", "projects")
    if kind == "service_account":
        found = ACCOUNT_OF.search(name)
        # The project that a service account is in, which its address tells.
        path = f"projects/{found[1] if found else project}/serviceAccounts/{name}"
        return Place(f"service account {name}", "iam", path, "projects.serviceAccounts", params=query)
    if kind == "bucket":
        query = {"optionsRequestedPolicyVersion": VERSION}
        verbs, suffixes = ("GET", "PUT"), ("/iam", "/iam")
        return Place(f"bucket {name}", "storage", f"b/{name}", "buckets", verbs, suffixes, query, wrapped=False)
    path, methods = _repository(name, project), "projects.locations.repositories"
    return Place(f"repository {name}", "artifactregistry", path, methods, ("GET", "POST"), params=query)


def _repository(name: str, project: str) -> str:
    if name.count("/") == 1:
        location, short = name.split("/")
        return f"projects/{project}/locations/{location}/repositories/{short}"
    if not REPOSITORY.fullmatch(name):
        raise InvalidInput(f"{name} is no repository", hint="Write LOCATION/NAME, such as us-central1/images")
    return name


@dataclasses.dataclass(frozen=True)
class IamMember:
    """A member, its role, and on which condition. Only this member of this role on this condition is ours."""

    place: Place
    role: str
    member: str
    condition: Body | None = None
    absent: bool = False

    def validate(self) -> None:
        if not TYPES.match(self.member):
            raise InvalidInput(
                f"{self.member} is no member of a policy",
                hint="Write its type before it: serviceAccount:NAME@PROJECT.iam.gserviceaccount.com, group:MAIL, user:MAIL",
            )

    def read(self, api: Api) -> Body | None:
        """The policy; None if the resource does not exist."""
        at = self.place
        path = at.path + at.suffixes[0]
        if at.verbs[0] == "GET":
            return api.read(at.label, at.service, path, **at.params)
        body = {} if at.params else {"options": {"requestedPolicyVersion": VERSION}}
        return api.ask(at.label, at.service, path, body, **at.params)

    def plan(self, policy: Body | None) -> Plan:
        members = self._members(policy)
        others = [one for one in members if not self._is_ours(one)]
        if self.absent:
            after = others
        else:
            present = any(_spelled(one) == _spelled(self.member) for one in members)
            after = members if present else [*members, self.member]
        if after == members:
            return Plan()
        at = self.place
        says = f"{'remove' if self.absent else 'add'} {self.member} as {self.role}"
        request = self._request(policy or {}, after)
        path = at.path + at.suffixes[1]
        step = Step(f"{at.methods}.setIamPolicy", request, says, at.service, verb=at.verbs[1], path=path)
        return Plan((step,), {self.role: members}, {self.role: after})

    def _request(self, policy: Body, members: list[str]) -> Body:
        others = [row for row in policy.get("bindings") or () if not self._is_binding(row)]
        condition = {"condition": self.condition} if self.condition else {}
        ours = [{"role": self.role, "members": members, **condition}] if members else []
        shown = {key: value for key, value in policy.items() if key not in ("kind", "resourceId")}
        after = {**shown, "version": VERSION, "bindings": [*others, *ours]}
        return {"policy": after} if self.place.wrapped else after

    def _members(self, policy: Body | None) -> list[str]:
        rows = (policy or {}).get("bindings") or ()
        return [one for row in rows if self._is_binding(row) for one in row.get("members") or ()]

    def _is_binding(self, binding: Body) -> bool:
        return binding.get("role") == self.role and _same_condition(binding.get("condition"), self.condition)

    def _is_ours(self, member: str) -> bool:
        """Whether it is our member; or was, before its account was deleted."""
        gone = DELETED.match(member)
        return _spelled(gone["member"] if gone else member) == _spelled(self.member)

    def told(self, policy: Body | None) -> list[str]:
        """The warnings about the policy: members whose account was deleted."""
        return [
            f"{self.place.label} still has {one} as {self.role}: an account of that name was deleted, and this member of the policy "
            f"grants nothing. state: absent removes it"
            for one in self._members(policy)
            if DELETED.match(one) and self._is_ours(one) and one != self.member
        ]

    def shown(self, policy: Body | None) -> Body:
        return {"role": self.role, "members": sorted(self._members(policy)), "condition": self.condition or {}}


def _spelled(member: str) -> str:
    """Return a user or service account in lower case, as Google stores it."""
    kind, colon, name = member.partition(":")
    return f"{kind}{colon}{name.lower()}" if NO_CASE.match(member) else member


def _same_condition(one: Body | None, other: Body | None) -> bool:
    keys = ("title", "description", "expression")
    return [(one or {}).get(key) or "" for key in keys] == [(other or {}).get(key) or "" for key in keys]


def converge_member(wanted: IamMember, api: Api, *, check: bool) -> Outcome:
    """Write the policy; if another client changed it meanwhile, read it and try again."""
    wanted.validate()
    backoff, deadline = Backoff(api.clock, first=0.5, factor=1.7, longest=10.0), Deadline(api.retry_timeout, api.clock)
    sent = Plan()

    def write() -> Outcome:
        nonlocal sent
        bounded = api.within(deadline.left)
        policy = _existing(wanted, bounded, check=check)
        plan = Plan() if policy is None and wanted.absent else wanted.plan(policy)
        if check or not plan.changed:
            # A request that was done, and whose answer was lost, meets its own change.
            return Outcome(plan if plan.changed else sent, policy)
        sent = plan
        return Outcome(plan, bounded.write(wanted.place.label, t.cast(Step, plan.steps[0])))

    try:
        return with_retries(write, lambda error: is_stale(error) and backoff.wait_for_retry(limit=deadline.seconds))
    except Refused as refused:
        hint = HINTS.get(refused.cause)
        raise (refused.with_hint(hint) if hint else refused) from refused


def _existing(wanted: IamMember, api: Api, *, check: bool) -> Body | None:
    """The policy. A resource that was just made may take a while to be seen; in a plan it may not exist at all."""

    def observe() -> tuple[Body | None, str | None]:
        policy = wanted.read(api)
        return policy, None if policy is not None or check or wanted.absent else "it does not appear yet"

    deadline, pause = Deadline(api.retry_timeout, api.clock), growing_interval(1.0, 10.0, api.clock)
    policy = last_answer(observe, deadline=deadline, pause=pause)
    if policy is None and not (check or wanted.absent):
        raise NotFound(f"Google {wanted.place.noun} does not exist", hint="Create it first, or correct resource")
    return policy


def is_stale(error: MusterError) -> bool:
    """Whether the policy was changed since it was read, or is to be read again for another reason."""
    if not isinstance(error, Refused):
        return False
    remade = error.http == 400 and error.cause == REMADE
    return remade or (bool(error.codes & STALE) and error.cause not in (NO_PUBLIC, NOT_UNIFORM))
