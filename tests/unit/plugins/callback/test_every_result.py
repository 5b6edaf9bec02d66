# SPDX-License-Identifier: GPL-3.0-or-later
"""Both callback plugins take what every module returns, in every shape that Ansible gives it. No module returns a key of Ansible."""

import ast
import json
import types
import typing as t
from pathlib import Path

import pytest
from ansible.executor.task_result import TaskResult
from ansible.inventory.host import Host
from ansible.playbook.task import Task
from ansible.plugins.callback import CallbackBase
from ansible.plugins.doc_fragments import default_callback, result_format_callback
from ansible.utils.context_objects import CLIArgs
from ansible.utils.display import Display
from support.places import ROOT
from support.reading import parse, syntax

from ansible_collections.muster.ml.plugins.callback import brief, summary

Returned = dict[str, t.Any]
MODULES = {path.stem: path for path in sorted((ROOT / "plugins" / "modules").glob("*.py"))}
SOURCES = [path for path in sorted((ROOT / "plugins").rglob("*.py")) if "_pod_programs" not in path.parts]
# What Ansible, its strategies and its callback plugins read or write in every result, beside keys that begin with _ansible_.
OF_ANSIBLE = {
    "add_group", "add_host", "ansible_facts", "ansible_included_var_files", "ansible_job_id", "ansible_loop_var", "ansible_stats",
    "attempts", "backup_file", "censored", "changed", "deprecations", "diff", "exception", "failed", "failed_when_result",
    "false_condition", "finished", "include", "include_args", "invocation", "item", "rc", "results", "results_file", "retries",
    "skip_reason", "skipped", "started", "stderr", "stderr_lines", "stdout", "stdout_lines", "unreachable", "warnings",
}  # fmt: skip
OF_TYPES: Returned = {"str": "text", "int": 1, "float": 0.5, "bool": True, "list": [{"name": "a"}], "dict": {"name": "a"}, "raw": None}
WEIRD: tuple[t.Any, ...] = (
    None,
    "text",
    0,
    1.5,
    True,
    [],
    {},
    {"a": {"failed": True}},
    ["text", None, 1],
    [[{}]],
    [{"failed": "yes"}],
    [{"msg": None}],
)


def documented(path: Path) -> Returned:
    """What a module says that it returns, with its samples."""
    for node in syntax(path).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "RETURN":
            assert isinstance(node.value, ast.Constant)
            found = parse(str(node.value.value)) or {}
            return {key: row.get("sample", OF_TYPES[row["type"]]) for key, row in found.items()}
    return {}


RETURNED = {name: documented(path) for name, path in MODULES.items()}


def literal_details() -> set[str]:
    """Keys that errors carry into the result of a failed task: ``details={...}`` in the source."""
    calls = (node for path in SOURCES for node in ast.walk(syntax(path)) if isinstance(node, ast.keyword))
    found = [node.value for node in calls if node.arg == "details" and isinstance(node.value, ast.Dict)]
    return {key.value for value in found for key in value.keys if isinstance(key, ast.Constant)}


@pytest.mark.parametrize("module", MODULES)
def test_no_module_returns_a_key_of_ansible(module: str) -> None:
    assert {key for key in RETURNED[module] if key in OF_ANSIBLE or key.startswith("_ansible")} == set()


def test_no_error_carries_a_key_of_ansible() -> None:
    assert literal_details() & OF_ANSIBLE == set()


def shapes(returned: Returned) -> dict[str, Returned]:
    """Results of a task, by what Ansible calls them."""
    failure = {**returned, "failed": True, "msg": "It has failed.", "exception": "(traceback unavailable)", "changed": False}
    once: dict[str, Returned] = {
        "ok": {**returned, "changed": False}, "changed": {**returned, "changed": True, "warnings": ["Take care."]},
        "checked": {**returned, "changed": True, "diff": [{"before": "a", "after": "b"}]}, "failed": failure,
        "unreachable": {"unreachable": True, "msg": "No route.", "changed": False},
        "skipped": {"skipped": True, "skip_reason": "Conditional result was False", "false_condition": "false", "changed": False},
        "nothing": {},
    }  # fmt: skip
    loops = {
        f"loop of {name}": {"results": [{**row, "item": item} for item in ("a", {"name": "b"}, None)], "msg": "All items completed", **row}
        for name, row in once.items()
    }
    return {**once, **loops, "loop of none": {"results": [], "skipped": True, "skip_reason": "No items in the list", "changed": False}}


def defaults() -> Returned:
    """The options of both plugins with their defaults."""
    texts = [default_callback.ModuleDocFragment.DOCUMENTATION, result_format_callback.ModuleDocFragment.DOCUMENTATION]
    options = [parse(text)["options"] for text in (*texts, summary.DOCUMENTATION)]
    return {name: row.get("default") for found in options for name, row in found.items()}


class Plugins:
    """Both plugins, with their defaults."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "summary.json"
        self.plugins = [brief.CallbackModule(), summary.CallbackModule(Display())]
        for plugin in self.plugins:
            plugin._play = types.SimpleNamespace(strategy="linear")

    def tell(self, module: str, result: Returned, *, no_log: bool = False) -> None:
        """Give them one result as a strategy does."""
        loop = ["a", "b"] if "results" in result and result.get("msg") == "All items completed" else None
        task = Task.load({"name": "Ask", "debug": {}, "no_log": no_log, **({"loop": loop} if loop else {})})
        task.action = module
        given = made(Host("localhost"), task, result)
        event = next((name for name in ("failed", "unreachable", "skipped") if result.get(name)), "ok")
        for plugin in self.plugins:
            plugin.v2_playbook_on_task_start(task, is_conditional=False)
            if "attempts" in result:
                plugin.v2_runner_retry(given)
            for row in result.get("results") or [] if loop else []:
                inner = made(Host("localhost"), task, row)
                kind = next((name for name in ("failed", "unreachable", "skipped") if row.get(name)), "ok")
                getattr(plugin, f"v2_runner_item_on_{kind}", plugin.v2_runner_item_on_failed)(inner)
            getattr(plugin, f"v2_runner_on_{event}")(given)

    def end(self) -> Returned:
        """The summary that was written."""
        self.plugins[1]._playbook = "site.yml"
        self.plugins[1].v2_playbook_on_stats(Stats())
        return t.cast(Returned, json.loads(self.path.read_text()))


class Stats:
    changed: t.ClassVar[dict[str, int]] = {}
    failures: t.ClassVar[dict[str, int]] = {}
    dark: t.ClassVar[dict[str, int]] = {}
    custom: t.ClassVar[dict[str, t.Any]] = {}


def made(host: Host, task: Task, result: Returned) -> t.Any:
    """The result as callback plugins get it. ansible-core 2.19 has a class of its own for what comes from a worker."""
    from ansible.executor import task_result

    fields = {"name": task.name}
    if hasattr(task_result, "_RawTaskResult"):
        raw = task_result._RawTaskResult
        return raw(host=host, task=task, return_data=dict(result), task_fields=fields).as_callback_task_result()
    return TaskResult(host, task, dict(result), fields).clean_copy()


@pytest.fixture(params=[0, 1], ids=["brief", "verbose"])
def plugins(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugins:
    options = {**defaults(), "path": str(tmp_path / "summary.json")}
    monkeypatch.setattr(CallbackBase, "get_option", lambda _self, option, *_more: options[option])
    monkeypatch.setattr(summary.context, "CLIARGS", CLIArgs({"check": False}))
    monkeypatch.setattr(Display(), "verbosity", request.param)
    return Plugins(tmp_path)


@pytest.mark.parametrize("module", MODULES)
def test_every_result_of_a_module_is_taken(plugins: Plugins, module: str, capsys: pytest.CaptureFixture[str]) -> None:
    returned = {**RETURNED[module], "objects": RETURNED[module].get("objects", [])}
    for result in shapes(returned).values():
        plugins.tell(f"muster.ml.{module}", result)
        plugins.tell(f"muster.ml.{module}", result, no_log=True)
    assert "It has failed." in "".join(capsys.readouterr())
    assert plugins.end()["playbook"] == "site.yml"


@pytest.mark.parametrize("module", ["muster.ml.studioml_experiment", "amazon.aws.ec2_vpc_net", "other.collection.module"])
@pytest.mark.parametrize("key", ["results", "objects", "actions", "msg", "warnings", "changed"])
def test_a_key_may_have_any_value(plugins: Plugins, module: str, key: str) -> None:
    for value in WEIRD:
        if key == "warnings" and value:
            continue  # ansible-core itself takes a list only
        for more in ({"failed": True}, {"changed": True}, {}):
            plugins.tell(module, {"msg": "Nothing.", **more, key: value})
    plugins.end()
