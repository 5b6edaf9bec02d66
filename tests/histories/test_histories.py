# SPDX-License-Identifier: GPL-3.0-or-later
"""Random histories of a cluster that several owners and strangers use, with runs that are killed between any two requests.

The cluster itself remembers who made what (World.makers), where the engine cannot look, and refuses every deletion and every change
that is not the actor's to make. MUSTER_HISTORIES sets how many histories are tried.
"""

import copy
import dataclasses
import os
import typing as t

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, MusterError
from ansible_collections.muster.ml.plugins.module_utils._kube.deletion import was_applied
from ansible_collections.muster.ml.plugins.module_utils._kube.engine import apply_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.kinds import Kinds
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import (
    LABEL_OWNER,
    Listing,
    Manifest,
    Ref,
    ServedKind,
    labels_of,
    name_and_home,
    owner_on,
    ref_of,
)
from ansible_collections.muster.ml.plugins.module_utils._kube.order import DATA_KINDS
from ansible_collections.muster.ml.plugins.module_utils._kube.removal import delete_objects
from ansible_collections.muster.ml.tests.unit.fakes.cluster import DEFINITION, FakeCluster

HISTORIES = int(os.environ.get("MUSTER_HISTORIES", "500"))
SAME = "MUSTER_HISTORIES" not in os.environ  # in make test; make histories draws others each time
# Two of them have one name, in two namespaces.
OWNERS = ("o.a@default", "o.a@ml", "o.b")
STRANGER = "a stranger"
MIRROR = ("project.openshift.io/v1", "Project")
FOO = ("x.io/v1", "Foo")
BOOKKEEPING = ("muster-",)


class Killed(BaseException):
    """The run is dead: no code of it gets another request through."""


class World(FakeCluster):
    """Knows who made each object, and what the one who acts may do."""

    def __init__(self) -> None:
        super().__init__()
        self.makers: dict[str, str] = {}
        self.actor = STRANGER
        self.words: frozenset[str] = frozenset()
        self.reached: frozenset[str] | None = None
        self.budget: int | None = None
        self.hidden: set[str] = set()
        self.met: dict[str, tuple[Ref, Manifest]] = {}
        self.controllers["CustomResourceDefinition"] = lambda _item: {"conditions": [{"type": "Established", "status": "True"}]}

    # What goes wrong

    def _note(self, verb: str, ref: Ref, dry_run: bool = False) -> None:
        if self.budget is not None:
            if self.budget <= 0:
                raise Killed
            self.budget -= 1
        super()._note(verb, ref, dry_run)

    def kinds(self) -> Kinds:
        found = super().kinds()
        seen = [one for one in found if one[0].partition("/")[0] not in self.hidden]
        stale = [f"{group}/v1" for group in sorted(self.hidden) if group != "x.io"]  # of x.io nobody says that it is missing
        return Kinds([*seen, (*MIRROR, ServedKind("projects", False))], stale)

    # The mirror: Projects are the Namespaces

    def list(self, api_version: str, kind: str, *rest: t.Any, **options: t.Any) -> Listing:
        if (api_version, kind) != MIRROR:
            return super().list(api_version, kind, *rest, **options)
        found = super().list("v1", "Namespace", *rest, **options)
        return Listing([{**item, "apiVersion": api_version, "kind": kind} for item in found], found.resource_version)

    def delete(self, ref: Ref, **options: t.Any) -> bool:
        if (ref.api_version, ref.kind) == MIRROR:
            ref = Ref("v1", "Namespace", ref.name)
        return super().delete(ref, **options)

    # What must not happen

    def remove(self, ref: Ref) -> None:
        live = self.objects[ref.identity]
        self._judge_deletion(live)
        super().remove(ref)
        for key, item in list(self.objects.items()):  # what the API server takes along
            inside = ref.kind == "Namespace" and key[2] == ref.name
            instance = ref.kind == "CustomResourceDefinition" and key[1] == FOO[1]
            if inside or instance:
                self.remove(ref_of(item))

    def _judge_deletion(self, live: Manifest) -> None:
        ref, maker = ref_of(live), self.makers[live["metadata"]["uid"]]
        if self.actor == STRANGER or ref.name.startswith(BOOKKEEPING):
            return
        assert maker == self.actor, f"{self.actor} deleted {ref} of {maker}"
        space = ref.name if ref.kind == "Namespace" else ref.namespace
        near = self.reached is None or space is None or space in self.reached
        assert near, f"{self.actor} deleted {ref} in a namespace that it did not name"
        if (ref.group, ref.kind) in DATA_KINDS:
            assert "delete data" in self.words, f"{self.actor} deleted {ref} with its data"

    def _store(self, manifest: Manifest, event: str) -> Manifest:
        before = self.objects.get(ref_of(manifest).identity)
        stored = super()._store(manifest, event)
        uid, ref = stored["metadata"]["uid"], ref_of(stored)
        if before is None:
            self.makers[uid] = self.actor
        elif self.actor != STRANGER and self.makers[uid] != self.actor and not ref.name.startswith(BOOKKEEPING):
            self._judge_change(ref, uid, before, stored)
        return stored

    def _judge_change(self, ref: Ref, uid: str, before: Manifest, after: Manifest) -> None:
        theirs = self.makers[uid]
        if self.words & {"adopt", "force"}:
            if owner_on(after) == self.actor:
                self.makers[uid] = self.actor
            return
        if uid in self.met or (theirs == STRANGER and LABEL_OWNER not in labels_of(before)):
            self.met.setdefault(uid, (ref, before))  # made between looking and writing: to be given back
            return
        assert ref.kind == "Namespace", f"{self.actor} changed {ref} of {theirs}"
        assert owner_on(before) == owner_on(after), f"{self.actor} took {ref}"

    def judge_meetings(self, *, killed: bool) -> None:
        """What was met by accident is as it was (a run that is killed at this very request cannot give it back)."""
        for uid, (ref, before) in self.met.items():
            now = self.objects.get(ref.identity)
            if killed or now is None or now["metadata"]["uid"] != uid:
                continue
            changed = {"resourceVersion", "managedFields", "generation"}
            told = [{key: value for key, value in item["metadata"].items() if value and key not in changed} for item in (before, now)]
            assert told[0] == told[1], f"{self.actor} changed {ref} of a stranger"
            assert before.get("spec") == now.get("spec"), f"{self.actor} changed {ref} of a stranger"
        self.met.clear()


# What there is to be wished for

SPACE: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}}
KINDS = (("v1", "ConfigMap"), ("v1", "PersistentVolumeClaim"), ("apps/v1", "Deployment"), FOO)


def thing(kind: tuple[str, str], name: str, namespace: str, value: str) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": {"value": value}}


THINGS = st.builds(thing, st.sampled_from(KINDS), st.sampled_from(["x", "y"]), st.sampled_from(["default", "ml"]), st.sampled_from("12"))
SPACES = st.sampled_from(["", "restricted", "privileged"]).map(
    lambda level: {**SPACE, "metadata": {"name": "ml", "labels": {"enforce": level} if level else {}}}
)
WISHES = st.lists(st.one_of(THINGS, SPACES, st.just(DEFINITION)), min_size=1, max_size=5, unique_by=lambda item: ref_of(item).identity)
WHO = st.sampled_from(OWNERS)
WHEN = st.none() | st.integers(0, 40)


@dataclasses.dataclass(frozen=True)
class Apply:
    who: str
    wish: list[Manifest]
    words: frozenset[str]
    killed: int | None

    def do(self, world: World) -> None:
        near = "near" in self.words
        spaces = [ref.name if ref.kind == "Namespace" else ref.namespace for ref in map(ref_of, self.wish)]
        world.reached = frozenset(filter(None, [*spaces, name_and_home(self.who)[1]])) if near else None
        apply_objects(
            world, copy.deepcopy(self.wish), owner=self.who, check=False, parallel=1, wait_timeout=30,
            prune="prune" in self.words, delete_data="delete data" in self.words, adopt="adopt" in self.words,
            force_conflicts="force" in self.words, namespaces=() if near else None,
        )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Remove:
    who: str
    wish: list[Manifest] | None
    words: frozenset[str]
    killed: int | None

    def do(self, world: World) -> None:
        named = copy.deepcopy(self.wish)
        data = "delete data" in self.words
        delete_objects(world, named, self.who, check=False, delete_data=data, parallel=1, wait_timeout=30)


@dataclasses.dataclass(frozen=True)
class Meddle:
    """What people do who do not know of Muster."""

    what: str
    item: Manifest
    who: str = STRANGER
    words: frozenset[str] = frozenset()
    killed: int | None = None

    def do(self, world: World) -> None:
        key = ref_of(self.item).identity
        live = world.objects.get(key)
        space = self.item["metadata"].get("namespace")
        served = self.item["kind"] != FOO[1] or ref_of(DEFINITION).identity in world.objects
        if self.what == "create" and live is None and served and (space != "ml" or ("", "Namespace", "", "ml") in world.objects):
            world.add(self.item, manager="kubectl")
        elif self.what == "copy" and live and live["kind"] == "ConfigMap":
            twin = copy.deepcopy(live)
            twin["metadata"].update(name="copy-of-x", namespace="default", uid=f"copy-{world._version}")
            if ("", "ConfigMap", "default", "copy-of-x") not in world.objects:
                world.add(twin)
        elif self.what == "strip" and live:
            stripped = copy.deepcopy(live)
            labels_of(stripped).pop(LABEL_OWNER, None)
            world._store(stripped, "MODIFIED")
        elif self.what in ("hide x.io", "hide apps"):
            world.hidden.add(self.what.removeprefix("hide "))
        elif self.what == "show":
            world.hidden.clear()
        elif self.what == "delete" and live:
            world.remove(ref_of(self.item))


APPLY_WORDS = st.frozensets(st.sampled_from(["prune", "delete data", "adopt", "force", "near"]))
ACTS = st.one_of(
    st.builds(Apply, WHO, WISHES, APPLY_WORDS, WHEN),
    st.builds(Apply, WHO, WISHES, st.sampled_from([frozenset({"prune"}), frozenset({"prune", "near"})]), WHEN),
    st.builds(Remove, WHO, st.none() | WISHES, st.frozensets(st.just("delete data")), WHEN),
    st.builds(Meddle, st.sampled_from(["create", "copy", "strip", "hide x.io", "hide apps", "show", "delete"]), THINGS),
    st.builds(Meddle, st.just("create"), SPACES),
)
Act: t.TypeAlias = Apply | Remove | Meddle


def perform(world: World, act: Act) -> None:
    """Let somebody act, and be killed at some request."""
    world.actor, world.words, world.budget, world.reached = act.who, act.words, act.killed, None
    killed = False
    try:
        act.do(world)
    except MusterError:
        pass
    except Killed:
        killed = True
    world.judge_meetings(killed=killed)
    world.actor, world.words, world.budget, world.reached = STRANGER, frozenset(), None, None


@settings(max_examples=HISTORIES, deadline=None, derandomize=SAME, suppress_health_check=list(HealthCheck))
@given(st.lists(ACTS, max_size=8), WHO, st.lists(THINGS, min_size=1, max_size=3, unique_by=lambda item: ref_of(item).identity))
def test_nothing_is_lost_and_what_is_ours_and_unwanted_goes_in_the_end(acts: list[Act], who: str, last: list[Manifest]) -> None:
    world = World()
    for act in acts:
        perform(world, act)
    world.hidden.clear()
    before = {key for key, item in world.objects.items() if is_ours(world, item, who) and not key[3].startswith(BOOKKEEPING)}
    finally_desired = [item for item in last if item["metadata"]["namespace"] == "default" and item["kind"] != "Foo"]
    finally_desired.append(thing(KINDS[0], "own", "default", "1"))
    end = Apply(who, finally_desired, frozenset({"prune", "delete data", "adopt", "force"}), None)
    world.actor, world.words = who, end.words
    end.do(world)
    world.actor = STRANGER
    desired = {ref_of(item).identity for item in finally_desired}
    left = {key for key in before & world.objects.keys() if key not in desired and not others_stand_on(world, key, who)}
    assert not left
    world.requests.clear()
    end.do(world)
    assert world.writes == []


def is_ours(world: World, item: Manifest, who: str) -> bool:
    """Made by WHO, and nobody took the label away, or (killed before the label) all its fields."""
    whole = owner_on(item) == who and was_applied(item, who)
    return whole and world.makers[item["metadata"]["uid"]] == who


def others_stand_on(world: World, key: tuple[str, str, str, str], who: str) -> bool:
    """A namespace with somebody else's objects in it stays, and so does a definition with somebody else's instances."""
    for other, item in world.objects.items():
        inside = key[1] == "Namespace" and other[2] == key[3]
        instance = key[1] == "CustomResourceDefinition" and other[1] == FOO[1]
        if (inside or instance) and (not is_ours(world, item, who) or others_stand_on(world, other, who)):
            return True
    return False


@settings(max_examples=max(HISTORIES // 5, 50), deadline=None, derandomize=SAME, suppress_health_check=list(HealthCheck))
@given(st.builds(Apply, WHO, WISHES, APPLY_WORDS, st.none()), ACTS, st.integers(0, 30), st.lists(ACTS, max_size=3))
def test_a_run_in_the_middle_of_another_one_takes_nothing(first: Apply, second: Act, at: int, before: list[Act]) -> None:
    """A second run, of the same owner or of another one, comes between two requests of the first."""
    world = World()
    for act in before:
        perform(world, act)
    world.hidden.clear()
    plain_note = world._note

    def note(verb: str, ref: Ref, dry_run: bool = False) -> None:
        nonlocal at
        at -= 1
        if at == 0:
            world._note = plain_note  # type: ignore[method-assign]
            state = world.actor, world.words, world.reached
            perform(world, second)
            world.actor, world.words, world.reached = state
        plain_note(verb, ref, dry_run)

    world._note = note  # type: ignore[method-assign]
    perform(world, first)
    world._note = plain_note  # type: ignore[method-assign]
    world.hidden.clear()
    # Whatever was remembered in between, a run that is alone finds everything.
    alone = thing(KINDS[0], "own", "default", "2")
    words = frozenset({"prune", "delete data", "adopt", "force"})
    perform(world, Apply(first.who, [alone], words, None))
    left = {key for key, item in world.objects.items() if is_ours(world, item, first.who) and not key[3].startswith(BOOKKEEPING)}
    assert {key for key in left if not others_stand_on(world, key, first.who)} == {ref_of(alone).identity}


# What several owners share

QUEUES = ("kueue.x-k8s.io/v1beta2", "LocalQueue")
PERSIA = ("persia.com/v1", "PersiaJob")
URL = "nats://bus:4222"


def made(kind: tuple[str, str], name: str, **more: t.Any) -> Manifest:
    metadata = {"name": name, "namespace": "default", **more.pop("metadata", {})}
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, **more}


SERVES = {"muster.ml/serves": "instances:persiajobs.persia.com"}
PARTS: dict[str, list[Manifest]] = {
    "bus": [made(("v1", "Service"), "bus"), made(("apps/v1", "StatefulSet"), "bus"), made(("v1", "ConfigMap"), "bus")],
    "data": [made(("v1", "PersistentVolumeClaim"), "data"), made(("v1", "ConfigMap"), "fetch")],
    "login": [made(("v1", "Secret"), "login"), made(("apps/v1", "StatefulSet"), "store")],
    "queue": [made(QUEUES, "queue")],
    "operator": [made(("apps/v1", "Deployment"), "operator", metadata={"annotations": SERVES}), made(("v1", "ServiceAccount"), "operator")],
}
ALONE = {("data", "PersistentVolumeClaim")}
"""What of a part is used without the rest of it."""
RUNNERS = (("v1", "Pod"), ("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job"), PERSIA)


def user_of(part: str, kind: tuple[str, str], name: str) -> Manifest:
    """An object of a kind that runs something and uses the part."""
    env = [{"name": "NATS", "value": URL}] if part == "bus" else []
    keys = [{"secretRef": {"name": "login"}}] if part == "login" else []
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}] if part == "data" else []
    pod = {"containers": [{"name": "c", "env": env, "envFrom": keys}], "volumes": volumes}
    queued = {"labels": {"kueue.x-k8s.io/queue-name": "queue"}} if part == "queue" else {}
    spec = {"Pod": pod, "PersiaJob": {**pod, "nnWorker": {"replicas": 1}}}.get(kind[1], {"template": {"spec": pod}})
    return made(kind, name, spec=spec, metadata=queued)


class Shared(FakeCluster):
    """Knows who uses what, and refuses to let go of what is used, or of anything while users cannot be seen."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds_served |= {QUEUES: ServedKind("localqueues", True), PERSIA: ServedKind("persiajobs", True)}
        self.users: dict[Ref, tuple[str, str]] = {}
        self.over: set[Ref] = set()
        self.blind: set[str] = set()
        self.judging = ""

    def list(self, api_version: str, kind: str, namespace: str | None = None, *rest: t.Any, **more: t.Any) -> Listing:
        if kind in self.blind and not (rest or more):
            raise Forbidden(f"may not list {kind}")
        return super().list(api_version, kind, namespace, *rest, **more)

    def in_use(self, part: str) -> bool:
        """An operator is needed by what has ended, too, for it alone takes its finalizer off."""
        return any(used == part and (part == "operator" or ref not in self.over) for ref, (_kind, used) in self.users.items())

    def remove(self, ref: Ref) -> None:
        if self.judging:
            alone = {kind for part, kind in ALONE if part == self.judging}
            if not alone or ref.kind in alone:
                assert not self.in_use(self.judging), f"{ref} was removed while it is used"
                assert not self.blind, f"{ref} was removed, and nobody could see who uses it"
        super().remove(ref)


@dataclasses.dataclass(frozen=True)
class Use:
    who: str
    part: str
    kind: tuple[str, str]
    name: str

    def do(self, world: Shared) -> None:
        kind = PERSIA if self.part == "operator" else self.kind
        item = user_of(self.part, kind, self.name)
        if ref_of(item).identity in world.objects:
            return
        if self.who == STRANGER:
            world.add(item)
        else:
            apply_objects(world, [item], owner=self.who, check=False, parallel=1)
        world.users[ref_of(item)] = (self.who, self.part)
        world.over.discard(ref_of(item))


@dataclasses.dataclass(frozen=True)
class Change:
    what: str
    which: int

    def do(self, world: Shared) -> None:
        if not world.users:
            return
        ref = list(world.users)[self.which % len(world.users)]
        if self.what == "drop":
            world.remove(ref)
            del world.users[ref]
        elif self.what == "leave":
            world.objects[ref.identity]["metadata"]["deletionTimestamp"] = "2026-11-21T00:00:00Z"
            world.over.add(ref)
        elif ref.kind == "Pod":
            world.set_status(ref, {"phase": self.what})
            world.over.add(ref)
        elif ref.kind == "Job":
            kind = {"Succeeded": "Complete"}.get(self.what, self.what)
            world.set_status(ref, {"conditions": [{"type": kind, "status": "True"}]})
            world.over.add(ref)


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    check: bool

    def do(self, world: Shared) -> None:
        world.judging = self.name
        before = copy.deepcopy(world.objects)
        owner = f"part.{self.name}"
        report = delete_objects(world, None, owner, check=self.check, delete_data=True, parallel=1, wait_timeout=30)
        world.judging = ""
        assert not self.check or world.objects == before
        deleted = {change.ref.kind for change in report.changes if change.action == "deleted"}
        alone = {kind for part, kind in ALONE if part == self.name}
        if world.in_use(self.name) or world.blind:
            assert not (deleted & alone if alone else deleted)


@dataclasses.dataclass(frozen=True)
class Look:
    kind: str

    def do(self, world: Shared) -> None:
        world.blind = {self.kind} if self.kind else set()


SHARING = st.one_of(
    st.builds(
        Use, st.sampled_from([*OWNERS, STRANGER]), st.sampled_from(list(PARTS)), st.sampled_from(RUNNERS), st.sampled_from("uv")
    ),
    st.builds(Change, st.sampled_from(["Succeeded", "Failed", "leave", "drop"]), st.integers(0, 9)),
    st.builds(Part, st.sampled_from(list(PARTS)), st.booleans()),
    st.builds(Look, st.sampled_from(["", "", *(kind for _part, kind in RUNNERS)])),
)  # fmt: skip


@settings(max_examples=HISTORIES, deadline=None, derandomize=SAME, suppress_health_check=list(HealthCheck))
@given(st.lists(SHARING, min_size=2, max_size=12))
def test_what_others_use_is_kept_and_goes_with_the_last_of_them(acts: list[Use | Change | Part | Look]) -> None:
    world = Shared()
    for name, objects in PARTS.items():
        apply_objects(world, copy.deepcopy(objects), owner=f"part.{name}", check=False, parallel=1)
    for act in acts:
        act.do(world)
    world.blind.clear()
    for name in PARTS:
        Part(name, check=True).do(world)
        Part(name, check=False).do(world)
    for ref in list(world.users):
        world.remove(ref)
    world.users.clear()
    for name in PARTS:
        Part(name, check=False).do(world)
    assert not [item for item in world.objects.values() if labels_of(item).get(LABEL_OWNER, "").startswith("part.")]
