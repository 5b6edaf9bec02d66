# SPDX-License-Identifier: GPL-3.0-or-later
"""Two first runs at once, and two renewals: every module that generates logins, keys or certificates ends with one set of them.

The two runs share a FakeCluster and alternate at given requests, so that each interleaving is the same at every execution.
"""

from __future__ import annotations

import base64
import concurrent.futures
import contextlib
import copy
import dataclasses
import itertools
import math
import os
import re
import threading
import types
import typing as t
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from ansible_collections.muster.ml.plugins.module_utils._core import pool
from ansible_collections.muster.ml.plugins.module_utils._core.errors import Overtaken
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._kube import certificates
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref, ref_of
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import keys
from ansible_collections.muster.ml.plugins.modules import etcd_cluster, object_store, prometheus_adapter, rabbitmq_cluster, training_secret
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

Result = dict[str, t.Any]
Schedule = list[tuple[int, float]]
"""Which run goes on until before which of its own requests (counted from 0), one after the other."""

RSA = [rsa.generate_private_key(65537, 1024) for _number in range(4)]  # noqa: S505 -- nobody uses them, and they are quick
RULE = {"seriesQuery": "up", "metricsQuery": "up", "name": {"as": "up"}}


@dataclasses.dataclass(frozen=True)
class Case:
    """One module with options with which it generates something. ``renewed`` is what replaces it, where anything does."""

    module: types.ModuleType
    params: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    renewed: dict[str, t.Any] | None = None
    expires: bool = False

    def run(self, cluster: FakeCluster, **more: t.Any) -> Result:
        told: list[str] = []
        given = {"namespace": "default", **self.params, **more}
        return {**tasks.run(self.module, cluster, given, warn=told.append), "_told": told}


CASES = {
    "object_store": Case(object_store),
    "etcd_cluster": Case(etcd_cluster, {"client_tls": True}, renewed={}, expires=True),
    "rabbitmq_cluster": Case(rabbitmq_cluster, {"replicas": 3}, renewed={}, expires=True),
    "prometheus_adapter": Case(prometheus_adapter, {"prometheus_url": "http://prometheus:9090", "rules": [RULE]}, renewed={}, expires=True),
    "decryption_key": Case(training_secret, {"content": "decryption_key"}, renewed={"generation": 2}),
    "passphrase": Case(training_secret, {"content": "decryption_key"}, renewed={"passphrase": "another one"}),
    "signing_key": Case(training_secret, {"content": "signing_key"}, renewed={"generation": 2}),
    "broker_login": Case(training_secret, {"content": "broker_login"}, renewed={"generation": 2}),
}
FIRST = [name for name in CASES if name != "passphrase"]
RENEWED = [name for name, case in CASES.items() if case.renewed is not None]
SIGNING = Ref("v1", "Secret", "studioml-client-signing-key", "default")


class Shared(FakeCluster):
    """A cluster whose requests are taken in turns by the threads of two runs."""

    def __init__(self) -> None:
        super().__init__()
        self._of_thread = threading.local()
        self._turns: Schedule = []
        self._changed = threading.Condition()
        self._counts = [0, 0]
        self.secrets_at: list[int] = []
        """The numbers of the first run's requests that write a Secret."""
        self.seen: list[dict[str, str]] = [{}, {}]
        """The versions of Secrets that each run read first; empty where there was none."""
        self.wrote: list[set[str]] = [set(), set()]
        """The Secrets that each run wrote."""
        self.add(tasks.DISKS)

    def copy(self) -> Shared:
        """The same cluster, before it is asked anything more."""
        twin = Shared()
        twin.objects, twin.journal = copy.deepcopy(self.objects), list(self.journal)
        twin._version = self._version
        twin._versions = itertools.count(self._version + 1)
        return twin

    def _note(self, verb: str, ref: Ref, dry_run: bool = False) -> None:
        me = getattr(self._of_thread, "number", None)
        if me is not None:
            self._wait_for_turn(me)
            if ref.kind == "Secret" and me == 0 and verb in ("create", "apply") and not dry_run:
                self.secrets_at.append(self._counts[0])
            self._counts[me] += 1
        super()._note(verb, ref, dry_run)

    def _wait_for_turn(self, me: int) -> None:
        with self._changed:
            while self._turns and not (self._turns[0][0] == me and self._counts[me] < self._turns[0][1]):
                if self._turns[0][0] == me:
                    self._turns.pop(0)
                    self._changed.notify_all()
                elif not self._changed.wait(timeout=120):
                    raise AssertionError("neither run goes on")

    def _end(self, me: int) -> None:
        with self._changed:
            self._turns = [turn for turn in self._turns if turn[0] != me]
            self._changed.notify_all()

    def get(self, ref: Ref) -> Manifest | None:
        found, me = super().get(ref), getattr(self._of_thread, "number", None)
        if me is not None and ref.kind == "Secret":
            self.seen[me].setdefault(str(ref), found["metadata"]["resourceVersion"] if found else "")
        return found

    def _store(self, manifest: Manifest, event: str) -> Manifest:
        me = getattr(self._of_thread, "number", None)
        if me is not None and manifest["kind"] == "Secret":
            self.wrote[me].add(str(ref_of(manifest)))
        return super()._store(manifest, event)

    def overtaken(self, me: int) -> set[str]:
        """The Secrets that the other run has written since this one read them, while this one wrote none of them."""
        found = {str(ref_of(item)): item["metadata"]["resourceVersion"] for item in self.objects.values()}
        return {ref for ref, version in self.seen[me].items() if found[ref] != version} - self.wrote[me]

    def together(self, turns: Schedule, case: Case, runs: int = 2, **more: t.Any) -> list[Result]:
        """The results of two runs of CASE."""
        self._turns, self._counts = list(turns), [0, 0]

        def run(me: int) -> Result:
            self._of_thread.number = me
            try:
                return case.run(self, **more)
            finally:
                self._of_thread.number = None
                self._end(me)

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return [one.result() for one in [pool.submit(run, number) for number in range(runs)]]

    def secret_values(self) -> dict[str, list[Manifest]]:
        """Every set of values that each Secret has had, in the order of the writes."""
        found: dict[str, list[Manifest]] = {}
        for _version, event in self.journal:
            if event.object["kind"] == "Secret":
                had = found.setdefault(event.object["metadata"]["name"], [])
                if not had or had[-1] != event.object["data"]:
                    had.append(event.object["data"])
        return found


class OneByOne(concurrent.futures.Executor):
    """Requests of one run, one after the other, so that they can be counted."""

    def __init__(self, *_args: t.Any) -> None: ...

    def map(self, work: t.Any, *items: t.Any, **_options: t.Any) -> t.Iterator[t.Any]:  # type: ignore[override]
        return iter([work(*one) for one in zip(*items, strict=True)])


@pytest.fixture(autouse=True)
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "concurrent", types.SimpleNamespace(futures=types.SimpleNamespace(ThreadPoolExecutor=OneByOne)))
    monkeypatch.setattr(keys, "BITS", 1024)
    ready = itertools.cycle(RSA)
    monkeypatch.setattr(keys, "new_rsa_key", lambda _fresh: next(ready))


def decoded(secret: Manifest, key: str) -> bytes:
    return base64.b64decode(secret["data"][key])


def check_fit(cluster: Shared) -> None:
    """What belongs together fits: certificates and their authority, a key and its passphrase."""
    for secret in [one for one in cluster.objects.values() if one["kind"] == "Secret"]:
        if "ca.crt" in secret["data"]:
            authority = [one for one in cluster.objects.values() if decodable(one) == decoded(secret, "ca.crt")]
            assert authority, f"{secret['metadata']['name']} trusts an authority that is in no Secret"
            signer = x509.load_pem_x509_certificate(decoded(secret, "ca.crt"))
            x509.load_pem_x509_certificate(decoded(secret, "tls.crt")).verify_directly_issued_by(signer)
    key = cluster.stored("Secret", "studioml-runner-key-secret", "default")
    if key:
        phrase = cluster.stored("Secret", "studioml-runner-passphrase-secret", "default")
        assert phrase
        words = Sensitive(decoded(phrase, "ssh-passphrase").decode())
        keys.read_rsa_key(Sensitive(decoded(key, "ssh-privatekey").decode()), words, "it")


def decodable(item: Manifest) -> bytes | None:
    return decoded(item, "tls.crt") if item["kind"] == "Secret" and "tls.crt" in item["data"] else None


def check_end(cluster: Shared, case: Case, sets: dict[str, int], **more: t.Any) -> None:
    values = cluster.secret_values()
    assert {name: len(had) for name, had in values.items()} == sets
    check_fit(cluster)
    before = len(cluster.writes)
    assert not case.run(cluster, **more)["changed"]
    assert cluster.writes[before:] == []


def schedules(plain: Shared, *, every: bool) -> t.Iterator[Schedule]:
    """The second run as a whole before each request of the first up to its last write of a Secret; or both stop before such writes.

    Both stop before the same write, or the second one write later; EVERY means each pair of writes.
    """
    for at in range(plain.secrets_at[-1] + 2):
        yield [(0, at), (1, math.inf), (0, math.inf)]
    writes = plain.secrets_at
    near = zip([*writes, *writes], [*writes, *writes[1:]], strict=False)
    for first, second in itertools.product(writes, repeat=2) if every else near:
        yield [(0, first), (1, second), (0, math.inf), (1, math.inf)]


def try_all(case: Case, more: dict[str, t.Any], prepared: Callable[[], Shared]) -> None:
    """Two runs with the options MORE in each interleaving, and what they leave; PREPARED makes the cluster before them.

    `make histories` tries all of them.
    """
    plain = prepared()
    before = {name: len(had) for name, had in plain.secret_values().items()}
    plain.together([(0, math.inf)], case, runs=1, **more)
    sets = {name: len(had) for name, had in plain.secret_values().items()}
    assert sets != before
    wrong = {}
    for turns in schedules(plain, every="MUSTER_EXAMPLES" in os.environ):
        cluster = prepared()
        try:
            results = cluster.together(turns, case, **more)
            check_end(cluster, case, sets, **more)
            check_said(cluster, results)
        except Exception as exc:  # noqa: BLE001 -- all interleavings are tried, and each that fails is named
            wrong[str(turns)] = repr(exc)[:300]
    assert not wrong, f"{len(wrong)} interleavings fail"


def check_said(cluster: Shared, results: list[Result]) -> None:
    """Both runs ended well; one that was overtaken says of what, and its objects say so, too."""
    assert any(result["changed"] for result in results)
    for me, result in enumerate(results):
        told = {line.partition(" was ")[0] for line in result["_told"] if "by another run at the same moment" in line}
        assert told <= cluster.wrote[1 - me]
        assert told or not cluster.overtaken(me)
        objects = [f"{one['kind']} {one['namespace']}/{one['name']}" for one in result["objects"] if "reason" in one]
        assert told <= set(objects)


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", FIRST)
def test_two_first_runs_at_once_make_one_set(name: str) -> None:
    try_all(CASES[name], {}, Shared)


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", RENEWED)
def test_two_renewals_at_once_make_one_set(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    with monkeypatch.context() as short:
        if case.expires:
            short.setattr(certificates, "_AUTHORITY_DAYS", 30)
            short.setattr(certificates, "_LEAF_DAYS", 30)
        first = Shared()
        case.run(first)
    try_all(case, case.renewed or {}, first.copy)


@pytest.mark.parametrize("stored", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", FIRST)
def test_what_a_killed_run_made_is_completed_and_not_made_again(name: str, stored: bool) -> None:
    case = CASES[name]
    plain = Shared()
    plain.together([(0, math.inf)], case, runs=1)
    sets = {name: len(had) for name, had in plain.secret_values().items()}
    for number in range(len(plain.secrets_at)):
        cluster = Shared()
        with kills(cluster, number, stored=stored), contextlib.suppress(KeyboardInterrupt):
            case.run(cluster)
        case.run(cluster)
        check_end(cluster, case, sets)


@contextlib.contextmanager
def kills(cluster: Shared, number: int, *, stored: bool) -> t.Iterator[None]:
    """End the run at its nth creation of a Secret, before or after it is stored."""
    whole, count = cluster.create, itertools.count()

    def create(manifest: Manifest, **options: t.Any) -> Manifest:
        last = not options["dry_run"] and next(count) == number
        if last and not stored:
            raise KeyboardInterrupt
        found = whole(manifest, **options)
        if last:
            raise KeyboardInterrupt
        return found

    cluster.create = create  # type: ignore[method-assign]
    yield
    cluster.create = whole  # type: ignore[method-assign]


def test_the_answer_to_a_creation_that_got_lost_is_no_other_run() -> None:
    """As the client repeats a request whose connection broke: the object is there, and it is that of this run."""
    case, cluster = CASES["signing_key"], Shared()
    whole = cluster.create

    def create(manifest: Manifest, **options: t.Any) -> Manifest:
        if not options["dry_run"]:
            whole(manifest, **options)
        return whole(manifest, **options)

    cluster.create = create  # type: ignore[method-assign]
    result = case.run(cluster)
    assert [one["action"] for one in result["objects"]] == ["created"]
    assert result["_told"] == []


def test_what_other_runs_write_again_and_again_is_told_in_the_end() -> None:
    case, cluster = CASES["signing_key"], Shared()
    case.run(cluster)
    whole = cluster.apply

    def apply(manifest: Manifest, **options: t.Any) -> Manifest:
        cluster.set_status(SIGNING, {})
        return whole(manifest, **options)

    cluster.apply = apply  # type: ignore[method-assign]
    with pytest.raises(Overtaken, match=r"studioml-client-signing-key was changed by another run at the same moment.*Run again"):
        case.run(cluster, generation=2)


def test_every_module_that_generates_is_in_the_table() -> None:
    """The door is ``apply_made_once``, or ``generated`` of a life of servers; gcs_hmac_key has its cases with the simulator of Google."""
    root = Path(__file__).parents[4] / "plugins"
    door = re.compile(r"\bapply_made_once\(|def generated\(self")
    calling = {path for path in root.rglob("*.py") if door.search(path.read_text(encoding="utf-8"))}
    ways = {"_kube/made_once.py", "_edge/servers.py", "_systems/studioml/key_secrets.py", "_edge/hmac.py"}
    calling -= {root / "module_utils" / way for way in ways}
    tried = {t.cast(str, case.module.__file__) for case in CASES.values()} - {t.cast(str, training_secret.__file__)}
    assert {path.stem for path in calling} == {Path(file).stem for file in tried}
