# SPDX-License-Identifier: GPL-3.0-or-later
"""When the modules for AWS and Google Cloud run in the process of their action plugins, and when as ordinary modules."""

import importlib
import pathlib
import sys
import types
import typing as t

import pytest
from ansible.plugins.action import ActionBase

from ansible_collections.google.cloud.plugins.module_utils import gcp_utils
from ansible_collections.muster.ml.plugins.module_utils._edge import aws, gcp
from ansible_collections.muster.ml.plugins.plugin_utils import _cloud_action
from ansible_collections.muster.ml.plugins.plugin_utils._action import MusterAction
from ansible_collections.muster.ml.plugins.plugin_utils._cloud_action import AwsAction, CloudAction, GcpAction
from ansible_collections.muster.ml.plugins.plugin_utils._host_action import HostAction

ACTIONS = "ansible_collections.muster.ml.plugins.action"
MODULES = pathlib.Path(importlib.import_module(f"{ACTIONS}.apply").__file__ or "").parents[1] / "modules"
BASES = {"_edge.aws": AwsAction, "_edge.gcp": GcpAction, "_edge.run": MusterAction}
OTHER = "/usr/bin/some-python"


def action_of(
    name: str, options: dict[str, t.Any] | None = None, variables: t.Mapping[str, t.Any] | None = None, **task: t.Any
) -> CloudAction:
    """The action plugin of a task on this machine."""
    action: CloudAction = object.__new__(importlib.import_module(f"{ACTIONS}.{name}").ActionModule)
    given = {"become": None, "async_val": 0, "check_mode": False, "diff": False, "environment": [], "delegate_to": None}
    action._task = types.SimpleNamespace(**{**given, "args": options or {}, **task})
    action._connection = types.SimpleNamespace(transport="local", become=None)
    action._templar = types.SimpleNamespace(template=lambda text: text.replace("{{ here }}", sys.executable))
    action._variables = variables or {}
    return action


@pytest.mark.parametrize("path", sorted(MODULES.glob("*.py")), ids=lambda path: path.stem)
def test_an_action_is_of_the_kind_of_its_module_and_imports_it_before_the_fork(path: pathlib.Path) -> None:
    """Every module for a cloud has one."""
    bases = [base for edge, base in BASES.items() if f"{edge} import" in path.read_text(encoding="utf-8")] or [HostAction]
    if (MODULES.parent / "action" / path.name).exists() or {AwsAction, GcpAction} & {*bases}:
        action = importlib.import_module(f"{ACTIONS}.{path.stem}").ActionModule
        assert all(issubclass(action, base) for base in bases)
        assert action.module.__name__.endswith(f".modules.{path.stem}")


@pytest.mark.parametrize("name", ["eks_cluster", "gke_cluster", "gcs_hmac_key"])
@pytest.mark.parametrize(
    ("task", "elsewhere"),
    [
        ({}, False),
        ({"variables": {"ansible_python_interpreter": "auto_silent"}}, False),
        ({"variables": {"ansible_python_interpreter": "{{ here }}"}}, False),
        ({"variables": {"ansible_python_interpreter": OTHER}}, True),
        # Another virtual environment of the same Python.
        ({"variables": {"ansible_python_interpreter": str(pathlib.Path(sys.executable).resolve())}}, True),
        ({"delegate_to": "b", "variables": {"ansible_delegated_vars": {"b": {"ansible_python_interpreter": OTHER}}}}, True),
        ({"delegate_to": "b", "variables": {"ansible_python_interpreter": OTHER, "ansible_delegated_vars": {"b": {"x": 1}}}}, False),
        ({"environment": [{"AWS_PROFILE": "x", "GCP_PROJECT": "x"}]}, True),
        ({"become": True}, True),
        ({"async_val": 60}, True),
    ],
)  # fmt: skip
def test_what_needs_another_process_gets_it(name: str, task: dict[str, t.Any], elsewhere: bool) -> None:
    assert action_of(name, **task)._runs_elsewhere() is elsewhere


@pytest.mark.parametrize("name", ["eks_cluster", "gcp_network", "apply", "local_node"])
def test_async_is_done_by_the_ordinary_module(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    action = action_of(name, async_val=60, action=name)
    action._connection._shell = types.SimpleNamespace(tmpdir=None)
    monkeypatch.setattr(action, "_execute_module", lambda **given: {"async": given["wrap_async"]})
    monkeypatch.setenv("MUSTER_RUN", "0123456789ab")
    assert action.run(task_vars={})["async"] is True
    assert action._task.environment == [{"MUSTER_RUN": "0123456789ab"}]


@pytest.mark.parametrize(("name", "edge"), [("eks_addon", aws), ("gcp_network", gcp)])
def test_libraries_that_only_the_host_has_are_used_there(name: str, edge: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with an Ansible of pipx. The same without the collection whose login is used."""
    action = action_of(name)
    monkeypatch.setattr(edge, "HAS_LIBRARIES", False)
    assert action._runs_elsewhere()
    monkeypatch.undo()
    monkeypatch.setattr(type(action), "module", None)
    assert action._runs_elsewhere()


def test_an_action_without_its_libraries_can_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> t.NoReturn:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(_cloud_action.importlib, "import_module", missing)
    assert type("ActionModule", (AwsAction,), {"__module__": f"{ACTIONS}.eks_cluster"}).module is None


def test_the_log_of_botocore_is_left_to_the_module_class_that_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert action_of("eks_cluster", {"debug_botocore_endpoint_logs": True})._runs_elsewhere()
    monkeypatch.setenv("ANSIBLE_DEBUG_BOTOCORE_LOGS", "true")
    assert action_of("eks_cluster")._runs_elsewhere()


def test_the_login_is_that_of_google_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, t.Any] = {}
    monkeypatch.setattr(gcp_utils.AnsibleModule, "__init__", lambda _self, **given: seen.update(given["argument_spec"]))
    gcp_utils.GcpModule(argument_spec={})
    own = {name: {key: value for key, value in row.items() if value is not False} for name, row in seen.items()}
    assert own == gcp.AUTH


@pytest.mark.parametrize("check", [True, False])
def test_the_result_is_that_of_the_module_without_its_secrets(monkeypatch: pytest.MonkeyPatch, check: bool) -> None:
    """The token is in the environment only, as in a terminal."""
    monkeypatch.setenv("GCP_ACCESS_TOKEN", "canary-token")
    monkeypatch.setattr(ActionBase, "run", lambda *_: {})

    def execute(ctx: t.Any) -> dict[str, t.Any]:
        ctx.warn("told")
        return {"changed": True, "seen": [ctx.check, ctx.diff, ctx.params["owner"], ctx.params["access_token"]]}

    action = action_of("gcp_network", {"name": "n", "owner": "o", "auth_kind": "accesstoken"}, check_mode=check, diff=True)
    monkeypatch.setattr(action.module, "execute", execute)
    hidden = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
    assert action.run(task_vars={}) == {"changed": True, "seen": [check, True, "o", hidden], "warnings": ["told"]}


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("gcp_network", {"name": "n", "auth_kind": "application", "nonsense": 1}, "Unsupported parameters: nonsense. Supported"),
        ("gcp_network", {"name": "n", "auth_kind": "application"}, "No project is given. Set project, or GCP_PROJECT"),
        ("gcp_network", {"name": "n", "project": "p", "auth_kind": "accesstoken"}, "An access token must be supplied"),
        ("eks_cluster", {"name": "n", "profile": "x", "access_key": "y"}, "both a profile and access tokens"),
        ("eks_cluster", {"name": "n"}, "You must specify a region. Set region and profile, or AWS_REGION"),
        ("eks_cluster", {"name": "n", "profile": "absent", "region": "x"}, "The config profile (absent) could not be found"),
    ],
)
def test_wrong_options_are_one_error(
    name: str, options: dict[str, t.Any], told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    for variable in ("GCP_PROJECT", "GCP_ACCESS_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setattr(ActionBase, "run", lambda *_: {})
    found = action_of(name, options).run(task_vars={})
    assert (found["failed"], told in found["msg"]) == (True, True), found["msg"]
