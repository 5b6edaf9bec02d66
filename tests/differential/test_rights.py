# SPDX-License-Identifier: GPL-3.0-or-later
"""What service accounts of the collection may do, as an API server says it: what the table of docs/operating/security.md says, no more."""

import json
import typing as t

import pytest
from faults.conftest import KUBECONFIG, run_apply
from support.docs import rights

from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from differential.conftest import ask

SPACE, OWNER = "differential-table", "differential.table"
# It is part of the cluster of the checks.
INSTALLED = "local_cluster_default"


def here(value: t.Any, key: str = "") -> t.Any:
    """The objects with a namespace of this test in the place of that of the goldens."""
    if isinstance(value, dict):
        return {name: here(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [here(one) for one in value]
    return SPACE if key == "namespace" and value != "kube-system" else value


def granted(kubectl: str, user: str, namespace: str) -> set[rights.Right]:
    """What the API server says that a user may do in a namespace."""
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace}}
    said = ask(kubectl, "create", "--validate=false", "-f", "-", "-o", "json", f"--as={user}", input=json.dumps(review))
    return rights.atoms(json.loads(said)["status"]["resourceRules"])


@pytest.fixture
def objects(golden: str, cluster: HttpCluster) -> t.Iterator[list[rights.Object]]:
    found = rights.access_objects(golden)
    if golden == INSTALLED:
        yield found
        return
    ground = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    # Roles of several namespaces of a golden become one.
    found = list({(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]): item for item in here(found)}.values())
    options: dict[str, t.Any] = {"owner": OWNER, "namespace": SPACE}
    result = run_apply(KUBECONFIG, [ground, *found], **options)
    assert not result.get("failed"), result["msg"]
    yield found
    removed = run_apply(KUBECONFIG, found, state="absent", **options)
    assert not removed.get("failed"), removed["msg"]


@pytest.fixture(scope="module", autouse=True)
def no_namespace(cluster: HttpCluster) -> t.Iterator[None]:
    yield
    cluster.delete(Ref("v1", "Namespace", SPACE), dry_run=False)


@pytest.mark.parametrize("golden", rights.VARIANTS)
def test_an_account_may_do_what_the_table_says(golden: str, objects: list[rights.Object], kubectl: str) -> None:
    for (namespace, name), places in rights.rules_of(objects).items():
        for where in (namespace, "kube-system", "default"):
            user = f"system:serviceaccount:{namespace}:{name}"
            all_have = granted(kubectl, f"system:serviceaccount:{namespace}:no-such-account", where)
            expected = rights.atoms([*places.get(rights.EVERYWHERE, []), *places.get(where, [])])
            assert granted(kubectl, user, where) - all_have == expected, (user, where)
