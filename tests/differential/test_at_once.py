# SPDX-License-Identifier: GPL-3.0-or-later
"""Pairs of first runs that start at the same instant, as processes of their own, on a real API server: one set of generated values.

The unit tests have every interleaving on a fake. prometheus_adapter is not here: it registers an API of the whole cluster, which nothing
would answer for. Pods find no node.
"""

import base64
import importlib
import multiprocessing
import typing as t
from collections.abc import Iterator

import pytest
from cryptography import x509
from faults.conftest import KUBECONFIG

from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive, revealed
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, connector
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import keys
from ansible_collections.muster.ml.tests.unit.fakes import tasks

PAIRS = 3
NOWHERE = {"node_selector": {"muster.ml/nowhere": "true"}}
CASES: dict[str, tuple[str, dict[str, t.Any]]] = {
    "object_store": ("object_store", NOWHERE),
    "etcd_cluster": ("etcd_cluster", {"client_tls": True, **NOWHERE}),
    "rabbitmq_cluster": ("rabbitmq_cluster", {"replicas": 3, **NOWHERE}),
    "decryption_key": ("training_secret", {"content": "decryption_key"}),
    "signing_key": ("training_secret", {"content": "signing_key"}),
    "broker_login": ("training_secret", {"content": "broker_login"}),
}
Result = dict[str, t.Any]


def run(name: str, params: dict[str, t.Any], barrier: t.Any = None) -> Result:
    """The result of one run, with what it warned of; of a failed one its message."""
    module = importlib.import_module(f"ansible_collections.muster.ml.plugins.modules.{name}")
    told: list[str] = []
    options = {**tasks.options(module, params), "kubeconfig": str(KUBECONFIG)}
    context = Context(params=options, check=False, connect=connector(options), warn=told.append)
    if barrier is not None:
        context.cluster.get(Ref("v1", "Namespace", params["namespace"]))  # the connection is there before it counts
        barrier.wait()
    try:
        return {**module.execute(context), "told": told}
    except Exception as exc:  # noqa: BLE001 -- it crosses to another process
        return {"failed": repr(exc)}
    finally:
        context.close()


def _one_of_two(name: str, params: dict[str, t.Any], barrier: t.Any, results: t.Any) -> None:
    results.put(run(name, params, barrier))


def pair(name: str, params: dict[str, t.Any]) -> list[Result]:
    fresh = multiprocessing.get_context("spawn")
    barrier, results = fresh.Barrier(2), fresh.Queue()
    both = [fresh.Process(target=_one_of_two, args=(name, params, barrier, results)) for _number in range(2)]
    for one in both:
        one.start()
    found = [results.get(timeout=120) for _one in both]
    for one in both:
        one.join()
    return found


@pytest.fixture
def space(cluster: HttpCluster, case: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace for each case of each test: the one of the test before may still be terminating."""
    test = "renewals" if "renewals" in request.node.name else "first-runs"
    name = f"differential-{test}-{case.replace('_', '-')}"
    manifest: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    cluster.apply(manifest, dry_run=False)
    yield name
    cluster.delete(Ref("v1", "Namespace", name), dry_run=False)


def secrets_of(cluster: HttpCluster, space: str) -> dict[str, Manifest]:
    return {item["metadata"]["name"]: item for item in cluster.list("v1", "Secret", space)}


def value(secret: Manifest, key: str) -> bytes:
    return base64.b64decode(revealed(secret["data"])[key])


def check_fit(found: dict[str, Manifest]) -> None:
    """Certificates are signed by the authority in the Secret beside them, and a key is opened by its passphrase."""
    authorities = [value(one, "tls.crt") for one in found.values() if one["type"] == "kubernetes.io/tls"]
    for secret in found.values():
        if "ca.crt" in secret["data"]:
            assert value(secret, "ca.crt") in authorities
            signer = x509.load_pem_x509_certificate(value(secret, "ca.crt"))
            x509.load_pem_x509_certificate(value(secret, "tls.crt")).verify_directly_issued_by(signer)
        if "ssh-passphrase" in secret["data"]:
            name = secret["metadata"]["name"].replace("phrase", "key")  # as test_pairs_of_first_runs names them
            private = Sensitive(value(found[name], "ssh-privatekey").decode())
            keys.read_rsa_key(private, Sensitive(value(secret, "ssh-passphrase").decode()), name)


@pytest.mark.parametrize("case", CASES)
def test_pairs_of_first_runs_make_one_set(
    case: str, space: str, cluster: HttpCluster, record_property: t.Callable[[str, object], None]
) -> None:
    module, given = CASES[case]
    adopted = 0
    for number in range(PAIRS):
        params = {"namespace": space, "name": f"{case.replace('_', '-')[:12]}-{number}-key", **given}
        if case == "decryption_key":
            params["passphrase_secret"] = f"{params['name'].removesuffix('-key')}-phrase"
        both = pair(module, params)
        assert [one for one in both if "failed" in one] == []
        assert any(one["changed"] for one in both)
        found = secrets_of(cluster, space)
        check_fit(found)
        creators = [one for one in both for entry in one["objects"] if entry["kind"] == "Secret" and entry["action"] == "created"]
        adopted += any("by another run at the same moment" in line for one in both for line in one["told"])
        assert len(creators) == len({entry["name"] for one in both for entry in one["objects"] if entry["kind"] == "Secret"})
        again = run(module, params)
        assert not again["changed"], again
        versions = {name: item["metadata"]["resourceVersion"] for name, item in found.items()}
        assert {name: item["metadata"]["resourceVersion"] for name, item in secrets_of(cluster, space).items()} == versions
    record_property("adopted", f"{adopted} of {PAIRS}")


@pytest.mark.parametrize("case", ["signing_key", "decryption_key", "broker_login"])
def test_pairs_of_renewals_make_one_more_set(case: str, space: str, cluster: HttpCluster) -> None:
    """The first write after the creation also makes the fields ones that were applied; to the server they were not."""
    module, given = CASES[case]
    params = {"namespace": space, **given}
    assert run(module, params)["changed"]
    for generation in (2, 3):
        before = secrets_of(cluster, space)
        both = pair(module, {**params, "generation": generation})
        assert [one for one in both if "failed" in one] == []
        found = secrets_of(cluster, space)
        changed = {name for name in found if revealed(found[name]["data"]) != revealed(before[name]["data"])}
        assert changed == {name for name in found if "passphrase" not in name}
        updated = [one for one in both if any(entry["action"] == "updated" for entry in one["objects"])]
        assert len(updated) == 1
        assert not run(module, {**params, "generation": generation})["changed"]
