# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan of ansible-playbook --check, and runs within it, where a real API server has defaults; and a refusal writes nothing."""

import datetime as dt
import json
import subprocess
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.conftest import AUDIT_LOG, KUBECONFIG
from support import audit
from support.places import BIN

from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref

SPACE = "differential-plans"
PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  tasks:
    - name: Apply what may be deleted again
      muster.ml.apply:
        kubeconfig: "{{ kubeconfig }}"
        owner: differential-plans
        namespace: differential-plans
        state: "{{ state | default('present') }}"
        delete_data: "{{ data | default(false) }}"
        recreate: true
        force_conflicts: true
        prune: "{{ state | default('present') == 'present' }}"
        definition: "{{ objects if state | default('present') == 'present' else omit }}"
"""
POD = {
    "containers": [{"name": "a", "image": "registry.invalid/a:1", "ports": [{"containerPort": 80}]}],
    "volumes": [{"name": "v", "emptyDir": {}}],
}


def objects(value: str, selector: str = "a") -> list[dict[str, t.Any]]:
    """Kinds that the API server gives defaults, an address and allocated ports. A Deployment's selector cannot be changed in place."""
    template = {"metadata": {"labels": {"app": selector}}, "spec": POD}
    deployment = {"replicas": 0, "selector": {"matchLabels": {"app": selector}}, "template": template}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    rows: list[tuple[str, str, str, dict[str, t.Any]]] = [
        ("v1", "ConfigMap", "a", {"data": {"x": value}}),
        ("v1", "Secret", "a", {"stringData": {"password": f"canary-{value}"}}),
        ("v1", "Service", "a", {"spec": {"selector": {"app": "a"}, "ports": [{"port": 80}], "type": "NodePort"}}),
        ("v1", "PersistentVolumeClaim", "a", {"spec": claim}),
        ("apps/v1", "Deployment", "a", {"spec": deployment}),
    ]
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    made = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": SPACE}, **rest} for version, kind, name, rest in rows
    ]
    return [space, *made]


class Runs:
    """Runs of ansible-playbook with variables, all of which are inputs of a plan."""

    def __init__(self, folder: Path) -> None:
        self.plan, self.playbook = folder / "plan.json", folder / "play.yml"
        self.playbook.write_text(PLAYBOOK)

    def play(self, *options: str, **variables: t.Any) -> str:
        given = {"kubeconfig": str(KUBECONFIG), **variables}
        command: list[str | Path] = [
            BIN / "ansible-playbook",
            "-i",
            "localhost,",
            "-c",
            "local",
            self.playbook,
            *options,
            "-e",
            json.dumps(given),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return f"{done.returncode} {done.stdout}{done.stderr}"

    def review(self, **variables: t.Any) -> dict[str, t.Any]:
        began = dt.datetime.now(dt.UTC)
        printed = self.play("--check", "-e", f"muster_plan_file={self.plan}", **variables)
        assert printed.startswith("0 "), printed
        assert written(began) == []
        return dict(json.loads(self.plan.read_text()))

    def within(self, **variables: t.Any) -> str:
        return self.play("-e", f"muster_plan={self.plan}", **variables)


def written(since: dt.datetime) -> list[str]:
    return [str(found) for found in audit.written(AUDIT_LOG, since) if SPACE in found.uri and found.agent.startswith("muster/")]


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    found = Runs(tmp_path)
    yield found
    printed = found.play(state="absent", data=True, objects=[])
    assert printed.startswith("0 "), printed


def test_a_run_within_its_plan_and_one_that_is_refused_with_no_write(runs: Runs, cluster: HttpCluster) -> None:
    created = runs.review(objects=objects("1"))
    assert {row["action"] for row in created["changes"]} == {"create"}
    assert runs.within(objects=objects("1")).startswith("0 ")

    # A change, and one that deletes the Deployment and creates it again.
    changed = runs.review(objects=objects("2", "b"))
    assert [(row["action"], row["what"].split()[0]) for row in changed["changes"]] == [
        ("recreate", "Deployment"),
        ("change", "ConfigMap"),
        ("change", "Secret"),
    ]
    assert "canary-" not in runs.plan.read_text()

    # Somebody else changes what the plan changes, too.
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": SPACE}}
    cluster.patch(Ref("v1", "ConfigMap", "a", SPACE), {**other, "data": {"x": "7"}}, dry_run=False)
    began = dt.datetime.now(dt.UTC)
    refused = runs.within(objects=objects("2", "b"))
    assert refused.startswith("2 "), refused
    assert 'data.x "7" to "2" (the plan says "1" to "2")' in refused.replace('\\"', '"'), refused
    assert written(began) == []

    # As it was again, the plan holds, once; then it has nothing to do.
    cluster.patch(Ref("v1", "ConfigMap", "a", SPACE), {**other, "data": {"x": "1"}}, dry_run=False)
    assert runs.within(objects=objects("2", "b")).startswith("0 ")
    began = dt.datetime.now(dt.UTC)
    assert runs.within(objects=objects("2", "b")).startswith("0 ")
    assert written(began) == []

    # Its teardown keeps the claim, and another plan has the claim, too.
    kept = runs.review(state="absent", objects=[])
    assert [row["what"] for row in kept["kept"] if "data" in row["reason"]]
    began = dt.datetime.now(dt.UTC)
    assert "another inventory, or of other variables" in runs.within(state="absent", data=True, objects=[])
    assert written(began) == []
    gone = runs.review(state="absent", data=True, objects=[])
    assert gone["changes"][0]["data"], "data at risk is first"
    assert runs.within(state="absent", data=True, objects=[]).startswith("0 ")
