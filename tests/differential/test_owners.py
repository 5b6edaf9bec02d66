# SPDX-License-Identifier: GPL-3.0-or-later
"""Several writers on a real API server: owners that share a namespace, what kubectl made before, two runs at once, things that change
between reading and writing. The unit tests have the same on a fake; here the server itself has the say.
"""

import concurrent.futures
import json
import os
import signal
import time
import typing as t
from collections.abc import Iterator

import pytest
from faults.conftest import AT_ONCE_S, KUBECONFIG, run_apply

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Conflict
from ansible_collections.muster.ml.plugins.module_utils._kube import removal
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster
from ansible_collections.muster.ml.plugins.module_utils._kube.lease import DURATION, HOME, name_of
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref, manager_of, owner_at
from differential.conftest import ask

SPACE = "differential-owners"
ONE, TWO = "differential.one", "differential.two"


def space(**labels: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE, "labels": labels}}


def config(name: str, **data: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": SPACE}, "data": data}


def apply(owner: str, *objects: Manifest, **options: t.Any) -> dict[str, t.Any]:
    return run_apply(KUBECONFIG, list(objects), owner=owner, **options)


@pytest.fixture(scope="module", autouse=True)
def ground(cluster: HttpCluster) -> Iterator[None]:
    yield
    cluster.delete(Ref("v1", "Namespace", SPACE), dry_run=False)


def labels(cluster: HttpCluster) -> dict[str, str]:
    found = (cluster.get(Ref("v1", "Namespace", SPACE)) or {})["metadata"]["labels"]
    return {key: value for key, value in found.items() if "/" not in key}


def test_each_owner_has_its_own_labels_on_a_shared_namespace(cluster: HttpCluster) -> None:
    assert apply(ONE, space(a="1", level="restricted"))["changed"]
    assert apply(TWO, space(b="2"))["changed"]
    assert not apply(TWO, space(b="2"))["changed"]
    refused = apply(TWO, space(b="2", level="privileged"))
    assert refused["failed"]
    assert manager_of(owner_at(ONE, SPACE)) in refused["msg"]
    assert apply(ONE, space(level="restricted"))["changed"]  # the first owner's change leaves the second one's label
    assert labels(cluster) == {"b": "2", "level": "restricted"}
    assert apply(TWO, space())["changed"]  # what an owner does not want any more goes, and nothing else
    assert labels(cluster) == {"level": "restricted"}


def test_what_kubectl_applied_is_used_then_refused_then_adopted_whole(kubectl: str, cluster: HttpCluster) -> None:
    text = json.dumps(config("made", kept="1", dropped="2"))
    ask(kubectl, "apply", "-f", "-", input=text)
    used = apply(ONE, config("made", kept="1"))
    assert [(item["action"], "it keeps its owner" in item["reason"]) for item in used["objects"]] == [("unchanged", True)]
    refused = apply(ONE, config("made", kept="9"))
    assert refused["failed"]
    assert "differs in data.kept" in refused["msg"]
    planned = apply(ONE, config("made", kept="9"), adopt=True, check=True)
    assert [item["action"] for item in planned["objects"]] == ["updated"]
    assert apply(ONE, config("made", kept="9"), adopt=True)["changed"]
    stored = cluster.get(Ref("v1", "ConfigMap", "made", SPACE)) or {}
    assert stored["data"] == {"kept": "9"}
    assert [entry["manager"] for entry in stored["metadata"]["managedFields"]] == [manager_of(owner_at(ONE, SPACE))]
    assert not any("last-applied" in key for key in stored["metadata"]["annotations"])
    assert not apply(ONE, config("made", kept="9"))["changed"]


def test_an_object_taken_from_another_owner_leaves_nothing_of_it(cluster: HttpCluster) -> None:
    apply(ONE, config("taken", x="1", old="1"))
    assert apply(TWO, config("taken", x="2"))["failed"]
    assert apply(TWO, config("taken", x="2"), force_conflicts=True)["changed"]
    assert (cluster.get(Ref("v1", "ConfigMap", "taken", SPACE)) or {})["data"] == {"x": "2"}
    assert not apply(TWO, config("taken", x="2"))["changed"]


def test_two_runs_of_one_owner_at_once_end_as_one_of_them(cluster: HttpCluster) -> None:
    sets = [[config(f"{word}{number}", x=word) for number in range(15)] for word in ("first", "second")]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda objects: apply(ONE, space(level="restricted"), *objects, prune=True), sets))
    assert not [result["msg"] for result in results if result.get("failed")]
    left = {item["data"]["x"] for item in cluster.list("v1", "ConfigMap", SPACE, f"muster.ml/owner={ONE},!muster.ml/settled")}
    assert len(left) == 1
    assert cluster.get(Ref("coordination.k8s.io/v1", "Lease", name_of("muster", owner_at(ONE, SPACE)), HOME)) is None
    again = apply(ONE, space(level="restricted"), *sets[0 if left == {"first"} else 1], prune=True)
    assert not again["changed"]


def apply_stopping(owner: str, *objects: Manifest, **options: t.Any) -> tuple[int, int]:
    """Apply in a process that stops as with kill -STOP just before it deletes. Returns its id, and where to read the result."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    plain = removal.Deletion._delete

    def stopping(self: removal.Deletion, ref: Ref, item: Manifest) -> bool:
        removal.Deletion._delete = plain  # type: ignore[method-assign]
        os.kill(os.getpid(), signal.SIGSTOP)
        return plain(self, ref, item)

    removal.Deletion._delete = stopping  # type: ignore[method-assign]
    os.write(writing, json.dumps(apply(owner, *objects, **options)).encode())
    os._exit(0)


def test_a_run_that_slept_is_followed_after_its_time_and_deletes_nothing_when_it_wakes(cluster: HttpCluster) -> None:
    mine = {"namespace": SPACE, "prune": True}
    apply(TWO, config("kept", x="1"), config("wanted", x="1"), **mine)
    began = time.monotonic()
    process, answer = apply_stopping(TWO, config("kept", x="2"), **mine)
    _process, status = os.waitpid(process, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    try:
        result = apply(TWO, config("kept", x="3"), config("wanted", x="1"), **mine)
        assert not result.get("failed"), result["msg"]
        assert time.monotonic() - began >= DURATION - 1
    finally:
        os.kill(process, signal.SIGCONT)
        told = json.loads(os.read(answer, 1 << 20))
        os.waitpid(process, 0)
        os.close(answer)
    assert told["failed"]
    assert "Lost the Lease to another run, which has ended since: this run had not renewed it for" in told["msg"]
    assert cluster.get(Ref("v1", "ConfigMap", "wanted", SPACE))
    assert not apply(TWO, config("kept", x="3"), config("wanted", x="1"), **mine)["changed"]
    assert cluster.get(Ref("coordination.k8s.io/v1", "Lease", name_of("muster", owner_at(TWO, SPACE)), HOME)) is None


def test_two_owners_of_one_name_in_two_namespaces(cluster: HttpCluster) -> None:
    """Each has its objects, those of the whole cluster, too, and its record that nothing is left over."""
    other, group = f"{SPACE}-other", "rbac.authorization.k8s.io/v1"
    try:
        for place in (SPACE, other):
            role = {"apiVersion": group, "kind": "ClusterRole", "metadata": {"name": place}, "rules": []}
            home = {**space(), "metadata": {"name": place}}
            there = {**config("x", x="1"), "metadata": {"name": place, "namespace": place}}
            assert apply("differential.app", home, there, role, prune=True)["changed"]
        for place in (SPACE, other):
            assert cluster.get(Ref("v1", "ConfigMap", place, place))
            assert cluster.get(Ref(group, "ClusterRole", place))
        assert apply("differential.app", namespace=other, state="absent", delete_data=True, definition=None)["changed"]
        assert cluster.get(Ref("v1", "ConfigMap", SPACE, SPACE))
        assert cluster.get(Ref(group, "ClusterRole", SPACE))
        assert cluster.get(Ref(group, "ClusterRole", other)) is None
    finally:
        for place in (SPACE, other):
            cluster.delete(Ref(group, "ClusterRole", place), dry_run=False)
        cluster.delete(Ref("v1", "Namespace", other), dry_run=False)


def test_what_changed_since_it_was_read_is_not_deleted(cluster: HttpCluster) -> None:
    apply(ONE, config("busy", x="1"))
    ref = Ref("v1", "ConfigMap", "busy", SPACE)
    read = (cluster.get(ref) or {})["metadata"]
    apply(ONE, config("busy", x="2"))
    assert not cluster.delete(ref, dry_run=False, uid=read["uid"], resource_version=read["resourceVersion"])
    assert not cluster.delete(ref, dry_run=False, uid="another")
    assert cluster.get(ref)
    assert cluster.delete(ref, dry_run=False, uid=read["uid"])


def test_an_apply_to_an_object_that_is_gone_does_not_bring_it_back(cluster: HttpCluster) -> None:
    desired = config("gone", x="1")
    desired["metadata"]["uid"] = "0a0a0a0a-0000-0000-0000-000000000000"
    with pytest.raises(Conflict):
        cluster.apply(desired, dry_run=False)
    assert cluster.get(Ref("v1", "ConfigMap", "gone", SPACE)) is None


def test_a_patch_that_names_the_version_it_is_about_is_not_sent_again(cluster: HttpCluster) -> None:
    apply(ONE, config("patched", x="1"))
    ref = Ref("v1", "ConfigMap", "patched", SPACE)
    began = time.monotonic()
    with pytest.raises(Conflict):
        cluster.patch(ref, {"metadata": {"resourceVersion": "1"}, "data": {"x": "2"}}, dry_run=False)
    assert time.monotonic() - began < AT_ONCE_S
