# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
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
import threading
import types
import typing as t

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context
from ansible_collections.muster.ml.plugins.module_utils._kube import certificates
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import keys
from ansible_collections.muster.ml.plugins.modules import (
    etcd_cluster,
    object_store,
    prometheus_adapter,
    rabbitmq_cluster,
    training_secret,
)
from ansible_collections.muster.ml.tests.unit.fakes.cluster import WRITES, FakeCluster

Result = dict[str, t.Any]
Schedule = list[tuple[int, float]]
"""Which run goes on until before which of its own requests (counted from 0), one after the other."""

RSA = [rsa.generate_private_key(65537, 1024) for _number in range(4)]  # noqa: S505 -- nobody uses them, and they are quick
RULE = {"seriesQuery": "up", "metricsQuery": "up", "name": {"as": "up"}}
DISKS: Manifest = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "provisioner": "ebs.csi.aws.com",
    "metadata": {"name": "disks", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
}


@dataclasses.dataclass(frozen=True)
class Case:
    """One module with options with which it generates something. ``renewed`` is what replaces it, where anything does."""

    module: types.ModuleType
    params: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    renewed: dict[str, t.Any] | None = None
    expires: bool = False

    def run(self, cluster: FakeCluster, **more: t.Any) -> Result:
        spec = ArgumentSpecValidator(self.module.ARGUMENT_SPEC, **self.module.CONSTRAINTS)
        given = spec.validate(copy.deepcopy({"namespace": "default", **self.params, **more}))
        assert not given.error_messages
        told: list[str] = []
        context = Context(params=given.validated_parameters, check=False, connect=lambda: cluster, warn=told.append)
        return {**self.module.execute(context), "_told": told}


CASES = {
    "object_store": Case(object_store),
    "etcd_cluster": Case(etcd_cluster, {"peer_tls": True, "client_tls": True}, renewed={}, expires=True),
    "rabbitmq_cluster": Case(rabbitmq_cluster, {"size": 3}, renewed={}, expires=True),
    "prometheus_adapter": Case(
        prometheus_adapter, {"prometheus_url": "http://prometheus:9090", "rules": [RULE]}, renewed={}, expires=True
    ),
    "decryption_key": Case(training_secret, {"content": "decryption_key"}, renewed={"generation": 2}),
    "another passphrase": Case(training_secret, {"content": "decryption_key"}, renewed={"passphrase": "another one"}),
    "signing_key": Case(training_secret, {"content": "signing_key"}, renewed={"generation": 2}),
    "broker_login": Case(training_secret, {"content": "broker_login"}, renewed={"generation": 2}),
}
RENEWED = [name for name, case in CASES.items() if case.renewed is not None]


class Shared(FakeCluster):
    """A cluster whose requests are taken in turns by the threads of two runs."""

    def __init__(self) -> None:
        super().__init__()
        self.add(DISKS)
        self._turns: Schedule = []
        self._changed = threading.Condition()
        self._counts = [0, 0]
        self._of_thread = threading.local()
        self.secrets_at: list[int] = []
        """The numbers of the first run's requests that are about a Secret."""

    def _note(self, verb: str, ref: Ref, dry_run: bool = False) -> None:
        me = getattr(self._of_thread, "number", None)
        if me is not None:
            self._wait_for_turn(me)
            if ref.kind == "Secret" and me == 0:
                self.secrets_at.append(self._counts[0])
            self._counts[me] += 1
        super()._note(verb, ref, dry_run)

    def _wait_for_turn(self, me: int) -> None:
        with self._changed:
            while self._turns and not (self._turns[0][0] == me and self._counts[me] < self._turns[0][1]):
                if self._turns[0][0] == me:
                    self._turns.pop(0)
                    self._changed.notify_all()
                elif not self._changed.wait(timeout=20):
                    raise AssertionError("neither run goes on")

    def _end(self, me: int) -> None:
        with self._changed:
            self._turns = [turn for turn in self._turns if turn[0] != me]
            self._changed.notify_all()

    def together(self, turns: Schedule, case: Case, **more: t.Any) -> list[Result]:
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
            return [one.result() for one in [pool.submit(run, 0), pool.submit(run, 1)]]

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
    from ansible_collections.muster.ml.plugins.module_utils._core import pool

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


def schedules(requests: int, about_secrets: list[int]) -> t.Iterator[Schedule]:
    """The second run as a whole before each request of the first; and both stopped before each one about a Secret."""
    for at in range(requests):
        yield [(0, at), (1, math.inf), (0, math.inf)]
    for first, second in itertools.product(about_secrets, repeat=2):
        yield [(0, first), (1, second), (0, math.inf), (1, math.inf)]


def alone(case: Case, **more: t.Any) -> Shared:
    """A cluster after one run of CASE, which says how many requests that takes."""
    cluster = Shared()
    if more:
        case.run(cluster)
    cluster.together([(0, math.inf)], dataclasses.replace(case, params={**case.params, **more}))
    return cluster


@pytest.mark.parametrize("name", CASES)
def test_two_first_runs_at_once_make_one_set(name: str) -> None:
    case = CASES[name]
    plain = Shared()
    plain._of_thread.number = 0
    case.run(plain)
    wrong = {}
    for turns in schedules(plain._counts[0], plain.secrets_at):
        cluster = Shared()
        try:
            results = cluster.together(turns, case)
            check_end(cluster, case, dict.fromkeys(plain.secret_values(), 1))
        except Exception as exc:  # noqa: BLE001 -- all interleavings are tried, and each that fails is named
            wrong[str(turns)] = repr(exc)[:300]
            continue
        assert any(one["changed"] for one in results)
    assert not wrong, f"{len(wrong)} interleavings"
