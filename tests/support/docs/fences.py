# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the YAML on a page would work: tasks, plays, roles and variables, judged by what modules and roles document."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from ansible.module_utils.common.parameters import DEFAULT_TYPE_VALIDATORS

from support.docs import collection
from support.docs.collection import NAMESPACE, Options
from support.reading import Loader

ROLE_KEYWORDS = {"role", "name", "when", "tags", "vars", "become", "become_user", "delegate_to", "environment", "tasks_from"}
GROUP_PARTS = {"hosts", "children", "vars"}
ROLE_ACTIONS = {"ansible.builtin.include_role", "ansible.builtin.import_role"}
IMPORT_PLAYBOOK = {"import_playbook", "ansible.builtin.import_playbook"}
FOREIGN = ("ansible.", "kubernetes.core.", "amazon.aws.", "community.")


def complaints(text: str) -> Iterator[str]:
    """What is wrong with the YAML of one fence."""
    try:
        documents = [d for d in yaml.load_all(text, Loader) if d is not None]  # a SafeLoader
    except yaml.YAMLError as error:
        yield f"does not parse: {' '.join(str(error).split())}"
        return
    for document in documents:
        if isinstance(document, list):
            yield from in_list(document)
        elif isinstance(document, dict):
            yield from in_mapping(document)


def in_list(items: list[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, str):
            yield from in_role({"role": item})
        elif isinstance(item, dict) and ("role" in item):
            yield from in_role(item)
        elif isinstance(item, dict) and ("hosts" in item or IMPORT_PLAYBOOK & item.keys()):
            yield from in_play(item)
        elif isinstance(item, dict):
            yield from in_task(item)


def in_mapping(mapping: Mapping[str, Any]) -> Iterator[str]:
    """Variables, an inventory, module_defaults, or an object of Kubernetes, which is only parsed."""
    if {"apiVersion", "kind"} <= mapping.keys():
        return
    for name, value in mapping.items():
        if name == "module_defaults":
            yield from in_defaults(value)
        elif isinstance(value, dict) and value and value.keys() <= GROUP_PARTS:
            yield from in_group(value)
        elif name in collection.variables():
            yield from in_variables({name: value})
        else:
            yield f"nothing reads the variable {name}"


def in_group(group: Mapping[str, Any]) -> Iterator[str]:
    for variables in [group.get("vars"), *(group.get("hosts") or {}).values()]:
        yield from in_variables(variables or {})
    for child in (group.get("children") or {}).values():
        yield from in_group(child or {})


def in_play(play: Mapping[str, Any]) -> Iterator[str]:
    for key in IMPORT_PLAYBOOK & play.keys():
        if (name := str(play[key])).startswith(NAMESPACE) and name.removeprefix(NAMESPACE) not in collection.playbooks():
            yield f"there is no playbook {name}"
    yield from in_variables(play.get("vars") or {})
    yield from in_defaults(play.get("module_defaults") or {})
    for part in ("roles", "pre_tasks", "tasks", "post_tasks", "handlers"):
        items = play.get(part) or []
        yield from in_list([with_defaults(item, play.get("module_defaults") or {}) for item in items])


def with_defaults(item: Any, defaults: Mapping[str, Any]) -> Any:
    """A task with the options that its play gives to a group of our modules."""
    if not isinstance(item, dict):
        return item
    filled = dict(item)
    for action in [key for key in item if key.startswith(NAMESPACE) and isinstance(item[key], dict)]:
        name = action.removeprefix(NAMESPACE)
        known = collection.modules()[name].options if name in collection.modules() else {}
        groups = [group for group, members in collection.groups().items() if name in members]
        given = {key: value for group in groups for key, value in defaults.get(f"group/{NAMESPACE}{group}", {}).items()}
        filled[action] = {**{key: value for key, value in given.items() if key in known}, **item[action]}
    return filled


def in_role(item: Mapping[str, Any]) -> Iterator[str]:
    full = str(item.get("role", item.get("name")))
    name = full.removeprefix(NAMESPACE)
    if "{{" in full or full.startswith(FOREIGN):
        return
    if name not in collection.roles():
        yield f"there is no role {full}"
        return
    if (entry := item.get("tasks_from", "main")) not in {*collection.roles()[name].entries, "main"}:
        yield f"role {name} has no entry point {entry}"
    given = {k: v for k, v in item.items() if k not in ROLE_KEYWORDS}
    unknown = given.keys() - collection.variables().keys()
    yield from (f"role {name} reads no variable {variable}" for variable in sorted(unknown))
    # Ansible checks what is written beside the role, and not its vars, against the role's argument spec.
    of_others = given.keys() - unknown - collection.roles()[name].options.keys()
    yield from (f"role {name} takes {variable} in vars only" for variable in sorted(of_others))
    yield from in_variables({**given, **(item.get("vars") or {})})


def in_task(task: Mapping[str, Any]) -> Iterator[str]:
    for part in ("block", "rescue", "always"):
        yield from in_list(task.get(part) or [])
    yield from in_variables(task.get("vars") or {})
    yield from in_defaults(task.get("module_defaults") or {})
    actions = [key for key in task if "." in key]
    if not actions and "block" not in task:
        yield f"no module is named in full in the task with {', '.join(task)}"
    for action in actions:
        if action in ROLE_ACTIONS:
            yield from in_role(task[action])
        elif action.startswith(NAMESPACE):
            yield from in_module(action, task[action] or {})
        elif not action.startswith(FOREIGN):
            yield f"there is no module {action}"


def in_defaults(defaults: Mapping[str, Any]) -> Iterator[str]:
    for name, given in defaults.items():
        if name.startswith(NAMESPACE):
            yield from in_module(name, given, partial=True)
        elif name.startswith(f"group/{NAMESPACE}"):
            group = name.removeprefix(f"group/{NAMESPACE}")
            members = collection.groups().get(group)
            if members is None:
                yield f"there is no group {name}"
            known = {option for member in members or () for option in collection.modules()[member].options}
            yield from (f"{name}: no module has the option {option}" for option in given if option not in known)


def in_module(action: str, given: Any, *, partial: bool = False) -> Iterator[str]:
    module = collection.modules().get(action.removeprefix(NAMESPACE))
    if module is None:
        yield f"there is no module {action}"
    elif isinstance(given, dict):
        yield from against(module.options, given, action, partial=partial)


def in_variables(given: Mapping[str, Any]) -> Iterator[str]:
    """Variables of our roles and playbooks; any other name is the reader's own."""
    known = collection.variables()
    for name, value in given.items():
        if name in known:
            yield from of_type(known[name], value, name)
        elif collection.role_of(name) or name.startswith("muster_"):
            yield f"nothing reads the variable {name}"


def against(options: Options, given: Mapping[str, Any], where: str, *, partial: bool = False) -> Iterator[str]:
    by_name = {n: option for name, option in options.items() for n in (name, *option.get("aliases", ()))}
    for name, value in given.items():
        if name not in by_name:
            yield f"{where} has no option {name}"
        else:
            yield from of_type(by_name[name], value, f"{where}, {name}")
    if not partial:
        missing = [n for n, o in options.items() if o.get("required") and not {n, *o.get("aliases", ())} & given.keys()]
        yield from (f"{where} needs the option {name}" for name in missing)


def of_type(option: Mapping[str, Any], value: Any, where: str) -> Iterator[str]:
    if value is None or (isinstance(value, str) and "{{" in value):
        return
    kind = option.get("type", "str")
    try:
        value = DEFAULT_TYPE_VALIDATORS[kind](value) if kind != "str" or not isinstance(value, int | float) else str(value)
    except (TypeError, ValueError, KeyError) as error:
        yield f"{where}: {value!r} is no {kind}: {error}"
        return
    choices = option.get("choices")
    inner = option.get("suboptions") or (option.get("options") if kind in ("dict", "list") else None)
    for one in value if kind == "list" else [value]:
        if choices and one not in choices:
            yield f"{where}: {one!r} is none of {choices}"
        if kind == "list" and "elements" in option:
            yield from of_type({"type": option["elements"]}, one, where)
        if inner and isinstance(one, dict):
            yield from against(inner, one, where)
