# SPDX-License-Identifier: GPL-3.0-or-later
"""muster.ml.apply: one suite for the module and for its action plugin, which must give the same result."""

import json
import pathlib
import types
import typing as t

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args

from ansible_collections.muster.ml.plugins.action.apply import ActionModule
from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden
from ansible_collections.muster.ml.plugins.module_utils._edge import run as edge
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import ServedKind
from ansible_collections.muster.ml.plugins.modules import apply, local_image, rabbitmq_definitions
from ansible_collections.muster.ml.plugins.plugin_utils import _action, _controller
from ansible_collections.muster.ml.tests.unit.fakes.cluster import DEFINITION, FakeCluster

Result = dict[str, t.Any]


class Run(t.Protocol):
    """Runs muster.ml.apply with options; check and diff as task keywords."""

    def __call__(self, *, check: bool = False, diff: bool = False, **options: t.Any) -> Result: ...


def config(name: str = "a", **data: str) -> dict[str, t.Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def plugin(options: dict[str, t.Any], *, check: bool, diff: bool, environment: list[dict[str, str]]) -> ActionModule:
    """The action plugin of a task."""
    task = types.SimpleNamespace(
        args=options, check_mode=check, diff=diff, async_val=0, become=False, environment=environment, name="",
        action="muster.ml.apply",
    )  # fmt: skip
    local = types.SimpleNamespace(transport="local", _shell=types.SimpleNamespace(tmpdir=None))
    return ActionModule(task, local, None, None, None, None)


def as_action() -> Run:
    def run(*, check: bool = False, diff: bool = False, **options: t.Any) -> Result:
        found = plugin(options, check=check, diff=diff, environment=[]).run(task_vars={})
        return {key: value for key, value in found.items() if value or key != "warnings"}

    return run


def as_module(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The ordinary module, with the environment that the action plugin gives it, and its result as the action plugin returns it."""

    def run(*, check: bool = False, diff: bool = False, **options: t.Any) -> Result:
        action = plugin({}, check=check, diff=diff, environment=[{"HTTPS_PROXY": "x"}])

        def execute(**_options: t.Any) -> Result:
            for variables in action._task.environment:
                for name, value in variables.items():
                    monkeypatch.setenv(name, value)
            with patch_module_args({**options, "_ansible_check_mode": check, "_ansible_diff": diff}), pytest.raises(SystemExit):
                apply.main()
            printed = capsys.readouterr()
            found: Result = json.loads(printed.out)
            assert found.pop("invocation") == {"module_args": {"check": check}}
            # Where ansible itself runs, as here, a module's warnings are shown at once instead of being part of its result.
            return {**found, "warnings": [printed.err]} if printed.err else found

        monkeypatch.setattr(action, "_execute_module", execute)
        return action.run(task_vars={})

    return run


@pytest.fixture(params=["module", "action"])
def run(
    request: pytest.FixtureRequest,
    cluster: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: pathlib.Path,
) -> Run:
    """Tasks of one run of Ansible: on the controller, or elsewhere by the ordinary module."""
    for place in (edge, _action):
        monkeypatch.setattr(place, "connector", lambda _params: lambda: cluster)
    monkeypatch.setattr(_action, "_PROMISES", tmp_path / "promised")
    return as_action() if request.param == "action" else as_module(capsys, monkeypatch)


def test_create_again_and_change(run: Run, cluster: FakeCluster) -> None:
    entry = {"kind": "ConfigMap", "name": "a", "namespace": "default"}
    assert run(definition=config(x="1")) == {"changed": True, "objects": [{**entry, "action": "created"}]}
    assert run(definition=config(x="1")) == {"changed": False, "objects": [{**entry, "action": "unchanged"}]}
    found = run(definition=[config(x="2")], diff=True)
    assert found["objects"] == [{**entry, "action": "updated", "reason": "the definition changed"}]
    assert found["diff"][0]["after"]["data"] == {"x": "2"}


def test_yaml_text_and_check_mode(run: Run, cluster: FakeCluster) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
    found = run(definition=text, namespace="default", check=True)
    assert [item["action"] for item in found["objects"]] == ["created", "created"]
    assert cluster.writes == []


def test_absent(run: Run, cluster: FakeCluster) -> None:
    run(definition=config(x="1"), owner="o.x")
    assert run(owner="o.x", state="absent", check=True)["changed"]
    assert run(definition=config(), owner="o.x", state="absent")["objects"][0]["action"] == "deleted"
    assert not run(owner="o.x", state="absent")["changed"]


def test_prune_by_owner(run: Run, cluster: FakeCluster) -> None:
    run(definition=[config("a"), config("b")], owner="o.x")
    found = run(definition=[config("a")], owner="o.x", prune=True)
    assert [item["action"] for item in found["objects"]] == ["unchanged", "deleted"]


@pytest.mark.parametrize("named", [True, False])
def test_what_prune_remembers_goes_with_the_objects(run: Run, cluster: FakeCluster, named: bool) -> None:
    run(definition=config(), owner="o.x", prune=True)
    assert len(cluster.objects) == 2
    options = {"definition": config()} if named else {}
    run(**options, owner="o.x", state="absent", check=True)
    assert len(cluster.objects) == 2
    assert run(**options, owner="o.x", state="absent")["changed"]
    assert cluster.objects == {}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"definition": {"kind": "Pod"}}, "apiVersion is missing"),
        ({"definition": "a: ["}, "not YAML"),
        ({"src": "/nowhere"}, "there is no such file"),
        ({"definition": {}, "prune": True}, "prune needs an owner of its own"),
        ({"state": "absent"}, "state=absent needs objects to delete, or an owner"),
        ({"definition": {}, "owner": "a b"}, "is not a label value"),
        ({"definition": {}, "src": "x"}, "mutually exclusive"),
        ({"url": "https://x"}, "required together"),
        ({}, "state is present but any of the following are missing: definition, src, url"),
        ({"definition": {}, "nonsense": 1}, "nonsense"),
    ],
)
def test_bad_options_fail_with_a_sentence_and_change_nothing(run: Run, cluster: FakeCluster, options: dict[str, t.Any], told: str) -> None:
    found = run(**options)
    assert found["failed"] is True
    assert told in found["msg"]
    assert cluster.writes == []


def test_failures_carry_the_object(run: Run, cluster: FakeCluster) -> None:
    cluster.add(config(x="1") | {"metadata": {"name": "a", "namespace": "default", "labels": {"muster.ml/owner": "o.y"}}})
    found = run(definition=config(x="2"), owner="o.x")
    assert found["object"] == {"api_version": "v1", "kind": "ConfigMap", "name": "a", "namespace": "default"}
    assert found["manager"] == "o.y"


def test_warnings_of_the_server_reach_the_user(run: Run, cluster: FakeCluster) -> None:
    cluster.server_warnings = ["policy/v1beta1 is deprecated"]
    assert "deprecated" in json.dumps(run(definition=config()))


def test_no_secret_value_leaves(run: Run, cluster: FakeCluster) -> None:
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "stringData": {"p": "hunter2"}}
    shown = json.dumps(run(definition=manifest, diff=True))
    assert "hunter2" not in shown
    assert "aHVudGVyMg" not in shown


WIDGET = {"apiVersion": "x.io/v1", "kind": "Foo", "metadata": {"name": "w", "namespace": "default"}}


@pytest.mark.parametrize("secret", [{"kubeconfig": {"users": ["canary"]}}, {"api_key": "canary"}])
def test_arguments_that_callbacks_may_show_have_no_secret(run: Run, cluster: FakeCluster, secret: dict[str, t.Any]) -> None:
    action = plugin({"definition": config(), **secret}, check=False, diff=False, environment=[])
    for changed in (True, False):  # as with until
        assert action.run(task_vars={})["changed"] is changed
        assert "canary" not in str(action._task.args)
        assert action._task.args["definition"] == config()


SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "stringData": {"p": "canary"}}


@pytest.mark.parametrize(
    "definition",
    [
        SECRET,
        [config(), {"kind": "List", "items": [SECRET]}],
        json.dumps({**SECRET, "kind": "Secert"}),
        yaml.safe_dump({"Kind": "secrets", "data": {"p": "canary"}}),
        {**config(p="canary"), "metadata": {"name": "a", "annotations": {"muster.ml/sensitive": "data.p"}}},
        {"kind": "Config Map", "stringData": {"p": "canary"}},
    ],
)  # fmt: skip
def test_a_definition_that_callbacks_may_show_has_no_secret(run: Run, definition: t.Any) -> None:
    action = plugin({"definition": definition}, check=False, diff=False, environment=[])
    for _again in range(2):
        assert "canary" not in json.dumps([action.run(task_vars={}), action._task.args])


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        (rabbitmq_definitions.ARGUMENT_SPEC, {"users": [{"name": "a", "password": "canary"}, {"name": "b", "password": "canary"}]}),
        (local_image.ARGUMENT_SPEC, {"registry": {"address": "b:5000", "password": "canary"}}),
        (local_image.ARGUMENT_SPEC, {"registry": "address=a password=canary"}),
    ],
)
def test_options_of_options_are_hidden(spec: Result, value: Result) -> None:
    shown = _controller._shown("", value, {"options": spec})
    assert "canary" not in str(shown)
    assert shown.keys() == value.keys()


def test_a_definition_of_an_earlier_task_counts_in_check_mode(run: Run, cluster: FakeCluster) -> None:
    assert run(check=True, definition=WIDGET)["msg"].startswith("The cluster does not serve Foo (x.io/v1).")
    first = run(check=True, definition=DEFINITION)
    assert first["changed"]
    assert "promised" not in first
    found = run(check=True, definition=WIDGET)
    assert [item["action"] for item in found["objects"]] == ["created"], found
    assert cluster.writes == []
    assert run(definition=WIDGET)["failed"]


def test_a_kind_that_something_else_installs_counts_where_it_is_told(run: Run) -> None:
    options = {"definition": WIDGET, "expected_kinds": ["x.io/v1/Foo"]}
    assert run(check=True, **options)["objects"][0]["action"] == "created"
    assert run(check=True, definition=WIDGET)["changed"], "later tasks need not tell it again"
    assert run(**options)["failed"]
    assert "is not something like" in run(check=True, **{**options, "expected_kinds": ["Foo"]})["msg"]


def in_space(name: str) -> dict[str, t.Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": name}}


def test_a_namespace_of_an_earlier_task_counts_in_check_mode(run: Run, cluster: FakeCluster) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}}
    refused = run(check=True, definition=in_space("ml"))["msg"]
    assert refused.startswith("Namespace ml does not exist. Create it first")
    assert run(definition=in_space("ml"))["msg"].startswith("Namespace ml does not exist. Create it first")
    assert run(check=True, definition=[in_space("ml"), space])["changed"]
    for definition in (in_space("ml"), [in_space("default"), in_space("ml")]):
        found = run(check=True, definition=definition)
        assert {item["action"] for item in found["objects"]} == {"created"}, found
    assert run(check=True, definition=in_space("nl"))["failed"]
    assert run(definition=in_space("ml"))["failed"], "the plan has created nothing"
    assert cluster.writes == []


def test_an_account_of_an_earlier_task_counts_for_its_token_in_check_mode(run: Run, cluster: FakeCluster) -> None:
    notes = {"kubernetes.io/service-account.name": "robot"}
    metadata = {"name": "t", "namespace": "default", "annotations": notes}
    token = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": metadata}
    for check in (True, False):
        assert "token of ServiceAccount default/robot, which does not exist" in run(check=check, definition=token)["msg"]
    run(check=True, definition={**named("v1", "ServiceAccount"), "metadata": {"name": "robot", "namespace": "default"}})
    assert run(check=True, definition=token)["objects"][0]["action"] == "created"
    assert run(definition=token)["failed"]
    assert cluster.writes == []


def test_a_namespace_that_something_else_creates_counts_where_it_is_told(run: Run) -> None:
    options = {"definition": in_space("ml"), "expected_namespaces": ["ml"]}
    assert run(check=True, **options)["objects"][0]["action"] == "created"
    assert run(check=True, definition=in_space("ml"))["changed"], "later tasks need not tell it again"
    assert run(**options)["failed"]


def test_a_namespace_that_may_not_be_read_is_left_to_the_server(run: Run, cluster: FakeCluster) -> None:
    cluster.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
    cluster.fail("get", "ml", Forbidden("User dev may not get namespaces."))
    assert run(check=True, definition=in_space("ml"))["objects"][0]["action"] == "created"


def named(api_version: str, kind: str) -> dict[str, t.Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "default"}}


@pytest.mark.parametrize(
    ("api_version", "kind", "meant"),
    [
        ("v1", "secret", "Secret (v1)"),
        ("v1", "configmaps", "ConfigMap (v1)"),
        ("apps/v1", "Deploymnet", "Deployment (apps/v1)"),
        ("v1", "Deployment", "Deployment (apps/v1)"),
        ("apps/v1beta1", "Deployment", "Deployment (apps/v1)"),
        ("x.io/v1beta1", "Foo", "Foo (x.io/v1)"),
        ("x.io/v1", "foo", "Foo (x.io/v1)"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_a_misspelt_kind_is_refused_before_anything_is_deleted(
    run: Run, cluster: FakeCluster, api_version: str, kind: str, meant: str, check: bool
) -> None:
    cluster.add(DEFINITION)
    run(definition=config())
    cluster.requests.clear()
    found = run(state="absent", check=check, definition=[config(), named(api_version, kind)])
    assert found["msg"].startswith(f"The cluster does not serve {kind} ({api_version}), did you mean {meant}?"), found
    assert cluster.writes == []


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("y.io/v1", "Bar"), ("y.io/v1", "Secret"), ("y.io/v1", "Foo"), ("x.io/v1", "FooClass")],
    ids=["no such group", "called as one of Kubernetes", "called as one of another group", "its neighbour is still there"],
)
@pytest.mark.parametrize("check", [True, False])
def test_nothing_is_left_of_a_kind_whose_definition_is_gone(
    run: Run, cluster: FakeCluster, api_version: str, kind: str, check: bool
) -> None:
    cluster.add(DEFINITION)
    run(definition=config())
    found = run(state="absent", check=check, definition=[config(), named(api_version, kind)])
    assert [row["action"] for row in found["objects"]] == ["deleted", "unchanged"], found


@pytest.mark.parametrize("check", [True, False])
def test_a_definition_that_is_gone_is_named_with_its_objects(run: Run, cluster: FakeCluster, check: bool) -> None:
    neighbour = {**DEFINITION, "metadata": {"name": "fooes.x.io"}}
    neighbour["spec"] = {**DEFINITION["spec"], "names": {"plural": "fooes", "kind": "Fooe"}}
    cluster.add(neighbour)
    found = run(state="absent", check=check, definition=[DEFINITION, WIDGET])
    assert [row["action"] for row in found["objects"]] == ["unchanged", "unchanged"], found


def test_what_an_earlier_task_would_have_defined_is_not_misspelt(run: Run, cluster: FakeCluster) -> None:
    cluster.kinds_served["x.io/v1", "Fooe"] = ServedKind("fooes", True)
    assert run(check=True, state="absent", definition=WIDGET)["failed"]
    run(check=True, definition=DEFINITION)
    assert not run(check=True, state="absent", definition=WIDGET)["changed"]
