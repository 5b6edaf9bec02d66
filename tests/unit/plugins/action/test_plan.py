# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan that people review, and a run that may do what is in it and nothing else."""

import copy
import datetime as dt
import itertools
import json
import pathlib
import types
import typing as t

import pytest
from ansible import context

from ansible_collections.muster.ml.plugins.action import apply as apply_action
from ansible_collections.muster.ml.plugins.action import gcp_network, s3_bucket
from ansible_collections.muster.ml.plugins.module_utils._edge import aws, gcp
from ansible_collections.muster.ml.plugins.module_utils._edge import run as edge
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.plugin_utils import _action, _review
from ansible_collections.muster.ml.tests.unit.fakes.aws import Account
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.google import PROJECT, Google

Result = dict[str, t.Any]
Manifest = dict[str, t.Any]
Options = dict[str, t.Any]

OWNER = "o.x"
CLAIM = Ref("v1", "PersistentVolumeClaim", "disk", "default")


def config(name: str = "a", **data: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def secret(value: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "stringData": {"password": value}}


def claim() -> Manifest:
    metadata = {"name": "disk", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {"accessModes": ["ReadWriteOnce"]}}


class Runs:
    """Tasks of a module in runs of Ansible on this controller, with and without check mode."""

    plugin: t.Any = apply_action.ActionModule
    defaults: t.Mapping[str, t.Any] = {"owner": OWNER}

    def __init__(self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, folder: pathlib.Path) -> None:
        self.cluster, self.patch, self.plan = cluster, monkeypatch, folder / "plan.json"
        for place in (edge, _action):
            monkeypatch.setattr(place, "connector", lambda _params: lambda: self.cluster)
        monkeypatch.setattr(_action, "_PROMISES", folder / "promised")
        monkeypatch.setattr(_review, "NOTED", folder / "noted")
        monkeypatch.setattr(_review, "load_extra_vars", lambda _loader: dict(self.extra))
        monkeypatch.setenv("MUSTER_RUN", "0123456789ab")
        self.extra: dict[str, t.Any] = {"x": 1}
        self.inventory = folder / "inventory"
        self.inventory.mkdir()
        (self.inventory / "hosts.yml").write_text("all:\n")
        self.made = dt.datetime.now(dt.UTC)
        self.writes: t.Callable[[], list[t.Any]] = lambda: self.cluster.writes

    def task(self, options: Options, *, check: bool = False, rehearsal: bool = False, **variables: t.Any) -> Result:
        """The result of one task, with --check, or with check_mode of its own. Every task reads the plan, as if a run began with it."""
        self.patch.setattr(context, "CLIARGS", {"check": check, "inventory": (str(self.inventory),), "extra_vars": ["x"]})
        task = types.SimpleNamespace(
            args={**self.defaults, **options}, check_mode=check or rehearsal, diff=False, async_val=0, become=False, environment=[],
            name="Apply", action="muster.ml.apply", delegate_to=None, no_log=variables.pop("no_log", False),
        )  # fmt: skip
        local = types.SimpleNamespace(transport="local", become=None, _shell=types.SimpleNamespace(tmpdir=None))
        templar = types.SimpleNamespace(template=lambda value: value)
        action = self.plugin(task, local, None, None, templar, None)
        return dict(action.run(task_vars={"inventory_hostname": "localhost", **variables}))

    def review(self, *tasks: Options, complete: bool = True, **more: t.Any) -> dict[str, t.Any]:
        """A run with --check, and the plan that it leaves."""
        before = len(self.writes())
        for options in tasks:
            found = self.task(options, check=True, muster_plan_file=str(self.plan), **more)
            assert not found.get("failed"), found["msg"]
            assert "diff" not in found
        assert len(self.writes()) == before
        assert _review.write("site.yml", self.made, [], [], complete=complete) == [str(self.plan)]
        _review.NOTED.unlink()
        return dict(json.loads(self.plan.read_text()))

    def within(self, options: Options, **variables: t.Any) -> Result:
        """A task within the plan. What is refused has written nothing."""
        before = len(self.writes())
        found = self.task(options, muster_plan=str(self.plan), **variables)
        if found.get("failed"):
            assert len(self.writes()) == before
        return found


@pytest.fixture
def runs(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Runs:
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "uid-of-cluster"}}
    cluster.add(system)
    return Runs(cluster, monkeypatch, tmp_path)


def apply(*objects: Manifest, **more: t.Any) -> Options:
    return {"definition": list(objects), **more}


def gone(*objects: Manifest, **more: t.Any) -> Options:
    return {"state": "absent", **({"definition": list(objects)} if objects else {}), **more}


TWO = apply(config("a", x="1"), config("b", y="1"))
CHANGED = apply(config("a", x="2"), config("b", y="1"))
FORCED = {"force_conflicts": True}
PRUNED = apply(config("a", x="1"), prune=True)


def by_hand(runs: Runs, name: str, **data: str) -> None:
    """Another client changes the data of an object that is there, and so takes them out of our fields."""
    stored = copy.deepcopy(runs.cluster.stored("ConfigMap", name, "default") or {})
    del stored["metadata"]["managedFields"][0]["fieldsV1"]["f:data"]
    fields = {"f:data": {f"f:{key}": {} for key in data}}
    stored["metadata"]["managedFields"].append({"manager": "kubectl-edit", "operation": "Update", "fieldsV1": fields})
    runs.cluster.add({**stored, "data": data})


def removed(runs: Runs, name: str) -> None:
    runs.cluster.remove(Ref("v1", "ConfigMap", name, "default"))


Meanwhile = t.Callable[[Runs], object]


@pytest.mark.parametrize(
    ("there", "planned", "meanwhile", "then", "refused"),
    [
        # What is in the plan, all of it or a part.
        ([], TWO, None, TWO, ""),
        ([], TWO, None, apply(config("a", x="1")), ""),
        ([TWO], CHANGED, None, CHANGED, ""),
        ([TWO], PRUNED, None, PRUNED, ""),
        ([TWO], gone(config("a")), None, gone(config("a")), ""),
        ([TWO], gone(), None, gone(), ""),
        ([], apply(secret("one")), None, apply(secret("one")), ""),
        ([apply(secret("one"))], apply(secret("two")), None, apply(secret("two")), ""),
        ([apply(claim())], gone(claim(), delete_data=True), None, gone(claim(), delete_data=True), ""),
        # What is so already.
        ([], TWO, lambda runs: runs.task(TWO), TWO, ""),
        ([], TWO, lambda runs: runs.task(apply(config("b", y="1"))), TWO, ""),
        ([TWO], CHANGED, lambda runs: runs.task(CHANGED), CHANGED, ""),
        ([TWO], gone(), lambda runs: runs.task(gone()), gone(), ""),
        ([TWO], PRUNED, lambda runs: removed(runs, "b"), PRUNED, ""),
        ([TWO], TWO, None, TWO, ""),
        # Other values, fields and objects.
        ([], TWO, None, CHANGED, 'create ConfigMap default/a, data.x nothing to "2" (the plan says nothing to "1")'),
        ([], TWO, None, apply(config("a", x="1", z="1")), "data.z nothing to"),
        ([], TWO, None, apply(config("c")), "create ConfigMap default/c"),
        ([TWO], CHANGED, None, apply(config("a", x="3")), '"3" (the plan says "1" to "2")'),
        ([TWO], CHANGED, None, apply(config("a")), "data.x"),
        ([TWO], CHANGED, None, apply(config("a", x="2"), config("b", y="2")), "change ConfigMap default/b"),
        ([TWO], TWO, None, CHANGED, "change ConfigMap default/a"),
        ([], TWO, None, apply(secret("one")), "create Secret default/s"),
        # Another state of the cluster.
        ([TWO], CHANGED, lambda runs: by_hand(runs, "a", x="5"), CHANGED | FORCED, 'data.x "5" to "2" (the plan says "1" to "2")'),
        ([TWO], TWO, lambda runs: by_hand(runs, "b", y="9"), TWO | FORCED, "change ConfigMap default/b"),
        ([TWO], TWO, lambda runs: by_hand(runs, "b"), TWO | FORCED, "change ConfigMap default/b"),
        ([TWO], CHANGED, lambda runs: removed(runs, "a"), CHANGED, "create ConfigMap default/a (the plan says change)"),
        ([TWO], TWO, lambda runs: removed(runs, "a"), TWO, "create ConfigMap default/a"),
        ([apply(config("a", x="1"))], PRUNED, lambda runs: runs.task(TWO), PRUNED, "delete ConfigMap default/b"),
        # Deletions that the plan does not have, data above all.
        ([TWO], CHANGED, None, gone(config("a")), "delete ConfigMap default/a (the plan says change)"),
        ([TWO], gone(config("a")), None, gone(), "delete ConfigMap default/b"),
        ([TWO], TWO, None, PRUNED, "delete ConfigMap default/b"),
        ([apply(claim())], gone(claim()), None, gone(claim(), delete_data=True), f"delete {CLAIM} (the plan says keep)"),
        ([apply(claim())], apply(claim()), None, gone(delete_data=True), f"delete {CLAIM}"),
        # Deletions that keep data need nothing of the plan.
        ([apply(claim())], gone(claim()), None, gone(claim()), ""),
    ],
)  # fmt: skip
def test_the_run_does_what_the_plan_has_and_nothing_else(
    runs: Runs, there: list[Options], planned: Options, meanwhile: Meanwhile | None, then: Options, refused: str
) -> None:
    for options in there:
        assert not runs.task(options).get("failed")
    runs.review(planned)
    if meanwhile:
        meanwhile(runs)
    found = runs.within(then)
    assert refused in found.get("msg", "")
    assert bool(refused) == bool(found.get("failed")), found
    if refused:
        assert "muster_plan_file=FILE" in found["msg"]
    assert not found["changed"] or runs.within(then)["changed"] is False, "the same again has nothing to do"


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (str, ""),
        (lambda runs: runs.extra.update(muster_plan="p", muster_plan_file="q"), ""),
        (lambda runs: runs.extra.update(x=2), "of other variables of -e"),
        (lambda runs: (runs.inventory / "hosts.yml").write_text("all: {}\n"), "of another inventory"),
        (lambda runs: (runs.inventory / "more.yml").write_text(""), "of another inventory"),
        (lambda runs: runs.patch.setattr(_review, "version", lambda: "9.9.9"), "and this is 9.9.9"),
        (lambda runs: setattr(runs, "cluster", FakeCluster()), "works in cluster"),
        (lambda runs: runs.plan.write_text("{}"), "is no plan of this collection"),
        (lambda runs: runs.plan.write_text("["), "is no plan of this collection"),
        (lambda runs: runs.plan.unlink(), "plan.json cannot be read: No such file or directory. Make a new plan"),
    ],
)  # fmt: skip
def test_a_plan_holds_for_what_it_was_made_of(runs: Runs, change: t.Callable[[Runs], object], refused: str) -> None:
    runs.review(TWO)
    change(runs)
    found = runs.within(TWO)
    assert refused in found.get("msg", "")
    assert bool(found.get("failed")) == bool(refused)


@pytest.mark.parametrize(("hours", "age", "refused"), [(None, 23.9, False), (None, 24.1, True), ("1", 0.9, False), (0.5, 0.6, True)])
def test_a_plan_expires(runs: Runs, hours: object, age: float, refused: bool) -> None:
    runs.made -= dt.timedelta(hours=age)
    runs.review(TWO)
    found = runs.within(TWO, **({} if hours is None else {"muster_plan_hours": hours}))
    assert bool(found.get("failed")) is refused
    assert not refused or "(muster_plan_hours)" in found["msg"]


def test_the_plan_of_a_run_that_failed_is_not_taken(runs: Runs) -> None:
    assert runs.review(TWO, complete=False)["complete"] is False
    assert "a run that failed" in runs.within(TWO)["msg"]


def test_what_the_plan_says(runs: Runs) -> None:
    """Data at risk first, then in the order of the actions; the same again gives the same file."""
    runs.task(apply(claim(), config("a", x="1"), secret("hunter22"), config("old")))
    tasks = [apply(config("new"), config("a", x="2"), secret("hunter23")), gone(config("old")), gone(claim(), delete_data=True)]
    plan = runs.review(*tasks)
    assert [(row["action"], row["what"]) for row in plan["changes"]] == [
        ("delete", str(CLAIM)), ("delete", "ConfigMap default/old"), ("change", "ConfigMap default/a"), ("change", "Secret default/s"),
        ("create", "ConfigMap default/new"),
    ]  # fmt: skip
    assert plan["changes"][2]["fields"] == [{"path": "data.x", "before": "1", "after": "2"}]
    assert [row["data"] for row in plan["changes"]] == [True, False, False, False, False]
    assert plan["where"] == {"cluster uid-of-cluster": ["localhost"]}
    page = _review.page_of(runs.plan).read_text()
    assert page.startswith("# Plan of site.yml: 2 to delete, 2 to change, 1 to create\n\n**Data at risk: 1 of them")
    for text in (page, runs.plan.read_text()):
        assert "hunter2" not in text
        assert "aHVudGVyMj" not in text
        assert "<redacted " in text
    assert runs.review(*reversed(tasks)) == plan


def test_what_stays_is_in_the_plan_with_its_reason(runs: Runs) -> None:
    runs.task(apply(claim()))
    plan = runs.review(gone(claim()))
    assert plan["changes"] == []
    assert [(row["what"], "delete_data: true" in row["reason"]) for row in plan["kept"]] == [(str(CLAIM), True)]


def test_a_task_without_log_has_no_values_in_the_plan(runs: Runs) -> None:
    plan = runs.review(apply(config("a", x="hidden-value")), no_log=True)
    assert "hidden-value" not in runs.plan.read_text()
    assert {"path": "data.x", "after": "<redacted>"} in plan["changes"][0]["fields"]
    assert runs.within(apply(config("a", x="hidden-value")), no_log=True)["changed"]


def test_an_object_that_another_client_makes_after_the_comparison_is_not_deleted(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request that writes is asked about before it is sent."""
    runs.task(TWO)
    runs.review(PRUNED)
    compare = _review.Limit.refuse

    def late(limit: t.Any, rows: t.Any) -> None:
        compare(limit, rows)
        with monkeypatch.context() as patch:
            patch.setattr(context, "CLIARGS", {})
            runs.task(apply(config("c")))

    monkeypatch.setattr(_review.Limit, "refuse", late)
    found = runs.task(PRUNED, muster_plan=str(runs.plan))
    assert "to delete ConfigMap default/c, of which it says nothing" in found["msg"]
    assert runs.cluster.stored("ConfigMap", "c", "default")


def test_a_plan_needs_the_callback_that_writes_it(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUSTER_RUN")
    assert "callbacks_enabled" in runs.task(TWO, check=True, muster_plan_file=str(runs.plan))["msg"]


def test_a_run_in_check_mode_may_be_compared_with_a_plan(runs: Runs) -> None:
    runs.review(TWO)
    assert runs.task(TWO, check=True, muster_plan=str(runs.plan))["changed"]
    assert runs.task(CHANGED, check=True, muster_plan=str(runs.plan))["failed"]


def test_a_task_in_check_mode_of_a_real_run_is_a_rehearsal_of_its_own(runs: Runs) -> None:
    runs.review(TWO)
    assert runs.task(CHANGED, rehearsal=True, muster_plan=str(runs.plan))["changed"]


def test_a_generated_value_may_be_another_than_when_the_plan_was_made(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands beside it may not."""
    serial, execute = itertools.count(), apply_action.ActionModule.module.execute

    def generating(ctx: t.Any) -> Result:
        ctx.params["definition"][0]["data"]["id"] = f"{next(serial)}"
        return dict(execute(ctx))

    monkeypatch.setattr(apply_action.ActionModule.module, "execute", generating)
    plan = runs.review(apply(config("a", x="1")))
    assert {"path": "data.id", "after": "<generated>"} in plan["changes"][0]["fields"]
    assert {"path": "data.x", "after": "1"} in plan["changes"][0]["fields"]
    assert "data.x" in runs.within(apply(config("a", x="2")))["msg"]
    assert runs.within(apply(config("a", x="1")))["changed"]


@pytest.mark.parametrize(
    ("then", "calls"),
    [("1", [(True, True), (True, True), (True, True), (False, False)]), ("2", [(True, True), (True, True), (True, True)])],
)
def test_a_module_that_runs_elsewhere_is_compared_before_it_runs(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, then: str, calls: list[tuple[bool, bool]]
) -> None:
    """Its host stands for the cluster, which the controller does not see."""
    seen: list[tuple[bool, bool]] = []

    def execute(action: t.Any, **_given: t.Any) -> Result:
        seen.append((action._task.check_mode, action._task.diff))
        after = {"apiVersion": "v1", "data": {"x": action._task.args["x"]}}
        diff = {"before_header": "ConfigMap ml/a", "after_header": "ConfigMap ml/a", "before": {}, "after": after}
        row = {"kind": "ConfigMap", "name": "a", "namespace": "ml", "action": "updated"}
        return {"changed": True, "objects": [row], "diff": [diff]}

    monkeypatch.setattr(apply_action.ActionModule, "_runs_elsewhere", lambda _action: True)
    monkeypatch.setattr(apply_action.ActionModule, "_execute_module", execute)
    assert runs.review({"x": "1"})["where"] == {"host localhost": ["localhost"]}
    assert bool(runs.within({"x": then}).get("failed")) is (then == "2")
    assert seen == calls


# Clouds


@pytest.fixture(params=["gcp_network", "s3_bucket"])
def clouds(request: pytest.FixtureRequest, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """The same with a network of a project of Google Cloud, and with a bucket of an AWS account."""
    google, account = Google(), Account()
    monkeypatch.setattr(gcp, "HttpSession", lambda _params: google)
    monkeypatch.setattr(aws.Login, "client", lambda _login, service: account.client(service))
    if request.param == "gcp_network":
        runs.plugin, runs.writes = gcp_network.ActionModule, lambda: google.writes
        runs.defaults = {"project": PROJECT, "auth_kind": "application", "name": "n", "owner": "m"}
    else:
        runs.plugin, runs.writes = s3_bucket.ActionModule, lambda: account.writes
        runs.defaults = {"region": "eu-west-1", "name": "n", "only_tagged": {"team": "m"}}
    return runs


ABSENT = {"state": "absent"}


def other(runs: Runs) -> Options:
    return {"routing_mode": "GLOBAL"} if runs.plugin is gcp_network.ActionModule else {"versioning": True}


def test_a_resource_of_a_cloud_is_created_changed_and_deleted_within_plans(clouds: Runs) -> None:
    for options, action in (({}, "create"), (other(clouds), "change"), (ABSENT, "delete")):
        plan = clouds.review(options)
        assert [row["action"] for row in plan["changes"]] == [action]
        assert plan["changes"][0]["what"] in ("Google network n", "S3 bucket n")
        assert plan["where"] in (
            {f"Google project {PROJECT}": ["localhost"]},
            {"AWS account 123456789012, region eu-west-1": ["localhost"]},
        )
        assert clouds.within(options)["changed"]
        assert not clouds.within(options).get("failed"), "what is so already needs nothing"


@pytest.mark.parametrize(("planned", "then"), [("none", "other"), ("none", "absent"), ("other", "absent"), ("absent", "other")])
def test_another_change_of_a_resource_of_a_cloud_is_refused(clouds: Runs, planned: str, then: str) -> None:
    options = {"none": {}, "other": other(clouds), "absent": ABSENT}
    assert clouds.task({})["changed"]
    clouds.review(options[planned])
    found = clouds.within(options[then])
    assert found["failed"]
    assert "does not have what this task would do" in found["msg"]


def test_a_resource_that_changes_after_the_comparison_is_refused_before_the_first_request(
    clouds: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    clouds.task({})
    clouds.review(other(clouds))
    monkeypatch.setattr(_review.Limit, "refuse", lambda _limit, _rows: clouds.task(ABSENT))
    before = len(clouds.writes())
    found = clouds.task(other(clouds), muster_plan=str(clouds.plan))
    assert "has changed since it was compared with the plan" in found["msg"]
    assert len(clouds.writes()) == before + 1, "the deletion of the other client"


def test_the_project_and_the_account_are_those_of_the_plan(clouds: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    clouds.review({})
    for edge_of_cloud in (gcp, aws):
        monkeypatch.setattr(edge_of_cloud, "place_of", lambda _ctx: "another one")
    assert "it works in another one, and the plan is about" in clouds.within({})["msg"]
