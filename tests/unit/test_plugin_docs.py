# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of plugins, read as an operator reads it: each line alone, in a list or a table."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from support.docs.collection import Options, documented, fragment, fragment_part, modules, roles, variables
from support.reading import load, parse, syntax

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("modules", "doc_fragments", "filter", "lookup", "callback")
PAGES = [path for folder in FOLDERS for path in sorted((ROOT / "plugins" / folder).glob("*.py"))]
# What a short description begins with: what the plugin does.
VERBS = {
    "Add", "Apply", "Build", "Create", "Divide", "Download", "Fetch", "Gather", "Import", "Join", "List", "Manage", "Read", "Remove",
    "Report", "Run", "Write",
}  # fmt: skip
# A description that begins so says something about what stands elsewhere, instead of naming what it describes.
POINTS_ELSEWHERE = re.compile(
    r"(After|As|From|How|Its?|Likewise|Only|Something|That|The same|Their|Them|They|Those|What|When|Where|Whether|Which|Who|Why|With|"
    r"Without)\b"
)


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def blocks(path: Path) -> Iterator[dict[str, Any]]:
    """The YAML of each documentation block, that of examples left out."""
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            content = node.value.value
            name = node.targets[0].id if isinstance(node.targets[0], ast.Name) else ""
            if name == "RETURN":
                yield {"options": parse(content)}
            elif name == "DOCUMENTATION" or (path.parent.name == "doc_fragments" and name.isupper()):
                yield parse(content)


def every(options: Options, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each option or return value, at any depth."""
    for name, option in options.items():
        yield f"{path}{name}", option
        for deeper in ("suboptions", "options", "contains"):
            yield from every(option.get(deeper) or {}, f"{path}{name}.")


def described(options: Options) -> Iterator[tuple[str, str]]:
    """The first sentence of each option or return value."""
    for path, option in every(options):
        if text := option.get("description"):
            yield path, text if isinstance(text, str) else text[0]


def test_no_part_of_a_fragment_has_the_name_of_another_fragment() -> None:
    """Ansible would take muster.ml.aws.wait for the fragment wait, in the folder of aws, and say nothing."""
    fragments = [path for path in PAGES if path.parent.name == "doc_fragments"]
    parts = {
        name.id
        for path in fragments
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Assign)
        for name in node.targets
        if isinstance(name, ast.Name)
    }
    assert {part.lower() for part in parts} & {path.stem for path in fragments} == set()


def test_no_option_is_a_way_to_the_cluster_besides() -> None:
    """An own option C(username) of a module would be the login at the API server, too, and refused there by everything but certificates."""
    ways = fragment("muster.ml.auth").keys()
    ours = {module.name: module.own.keys() & ways for module in modules().values() if "muster.ml.auth" in module.fragments}
    assert ours
    assert {name: options for name, options in ours.items() if options} == {}


def shape(option: Mapping[str, Any]) -> tuple[str, ...]:
    """The type of an option. A path on another machine, or in a pod, is a text."""
    return tuple("str" if kind == "path" else kind for kind in (option["type"], option.get("elements")) if kind)


# Names that two APIs give to fields of different types, and lists of what is built, which have more fields than names and values.
OTHER_APIS = {
    "env": "lists of Kubernetes; mappings in images (OCI) and in StudioML's configuration",
    "files": "texts by name; lists of what a role builds or writes",
    "max_unavailable": "a number or a percentage in Kubernetes; a number in EKS and GKE, which have another field for percentages",
    "parameters": "of an inference request; of RabbitMQ's definitions",
    "permissions": "of a folder in EFS; of RabbitMQ's definitions",
    "ports": "of a firewall's rule; of a container",
    "registry": "a base URL among others; a registry with its login",
    "resources": "of a rule of RBAC; of a container",
    "tags": "of AWS; of Google's networks, RabbitMQ and Go's builds",
    "value": "of a variable, a taint or a parameter",
}


def test_options_of_one_name_have_one_shape() -> None:
    shapes: dict[str, set[tuple[str, ...]]] = {}
    for module in modules().values():
        for path, option in every(module.options):
            shapes.setdefault(path.rpartition(".")[2], set()).add(shape(option))
    assert {name: found for name, found in shapes.items() if len(found) > 1}.keys() == OTHER_APIS.keys()


def test_an_option_of_several_modules_is_in_a_fragment() -> None:
    """With one text, type and default; the name of a cluster is the identity of the modules that make or read one."""
    same: dict[tuple[str, ...], list[str]] = {}
    for module in modules().values():
        for name, option in module.own.items():
            if "description" in option and name != "name":
                same.setdefault((name, *(str(option.get(key)) for key in ("description", "type", "default"))), []).append(module.name)
    assert {name: users for (name, *_rest), users in same.items() if len(users) > 2} == {}


def test_every_reference_is_to_a_collection_that_is_needed() -> None:
    """So that the check docs, which validates references to dependencies, validates all."""
    reference = re.compile(r"\b(?:M\((\w+\.\w+)\.\w+\)|(?:P|O|RV)\((\w+\.\w+)\.\w+#)|^  - (?:module|plugin): (\w+\.\w+)\.", re.MULTILINE)
    texts = [path.read_text(encoding="utf-8") for path in (*PAGES, *ROOT.glob("roles/*/meta/argument_specs.yml"))]
    found = {name for text in texts for names in reference.findall(text) for name in names if name}
    assert "muster.ml" in found
    assert found <= {"muster.ml", "ansible.builtin", *load(ROOT / "galaxy.yml")["dependencies"]}


def test_variables_of_one_name_have_one_shape() -> None:
    """After the name of the role. One whose default is a template has to be raw in the documentation, and is what the template makes."""
    shapes: dict[str, set[tuple[str, ...]]] = {}
    for name, role in roles().items():
        for variable, option in role.options.items():
            if not (option["type"] == "raw" and "{{" in str(option.get("default"))):
                shapes.setdefault(variable.removeprefix(f"{name}_"), set()).add(shape(option))
    # Buckets of GCS have options, and NAT is one gateway for all zones or for each in AWS, where Google has only one.
    assert {name for name, found in shapes.items() if len(found) > 1} == {"buckets", "nat"}


# Other names for what has one already, with that name.
TWINS = {
    r".*[A-Z].*": "snake case",
    r"\w+_s(ecs?)?|(.*_)?timeout_\w+|timeout": "..._timeout in seconds, or ..._seconds as the API has it",
    r"(.*_)?(minimum|maximum)_\w+": "min_... and max_...",
    r"(.*_)?((remove|purge|lose)_(data|logs|cluster)|(?<!soft_)delete_(?!data$|cluster$)\w+)": "delete_data",
    r"(.*_)?ca_(path|file)|registry_ca": "..._ca_cert of a file, ..._ca of a text",
    r"(.*_)?(?<!rdzv_)(?<!private_)endpoint": "..._endpoint_url",
    r"(.*_)?(passphrase|secret)_name": "..._secret",
    r"(.*_)?(etcd|nats|cluster|broker)_size": "..._replicas",
}  # fmt: skip


def test_no_option_or_variable_has_the_name_of_a_twin() -> None:
    paths = [path for owner in (*modules().values(), *roles().values()) for path, _option in every(owner.options)]
    names = {path.rpartition(".")[2] for path in (*paths, *variables())}
    assert len(names) > 1000
    assert {name: better for name in names for twin, better in TWINS.items() if re.fullmatch(twin, name)} == {}


def test_short_descriptions_say_what_a_plugin_does() -> None:
    short = {name_of(p): b["short_description"] for p in PAGES for b in blocks(p) if "short_description" in b}
    assert short, "no plugin found: this would hold for nothing"
    assert {name: text for name, text in short.items() if text.split()[0].rstrip(",") not in VERBS or text.endswith(".")} == {}
    assert len(set(short.values())) == len(short)


def test_descriptions_begin_with_what_they_describe() -> None:
    lines = [
        (f"{name_of(path)}: {name}", text)
        for path in PAGES
        for block in blocks(path)
        for name, text in described(block.get("options") or {})
    ]
    assert [f"{place}: {text}" for place, text in lines if POINTS_ELSEWHERE.match(text)] == []


def attributes_of(name: str) -> dict[str, dict[str, Any]]:
    """The attributes of a module, as ansible-doc merges them with those of its fragments."""
    found: dict[str, dict[str, Any]] = {}
    own = documented(ROOT / "plugins" / "modules" / f"{name}.py").get("attributes") or {}
    for part in (own, *(fragment_part(one, "attributes") for one in modules()[name].fragments)):
        for attribute, text in part.items():
            found[attribute] = text | found.get(attribute, {})
    return found


def test_the_attribute_action_says_whether_there_is_an_action_plugin() -> None:
    actions = {path.stem for path in (ROOT / "plugins" / "action").glob("*.py")}
    told = {name for name in modules() if attributes_of(name).get("action", {}).get("support") == "full"}
    assert told == actions


def test_attributes_say_how_far_check_mode_and_diff_go() -> None:
    bare = [
        f"{name}: {attribute}"
        for name in modules()
        for attribute in ("check_mode", "diff_mode", "idempotent")
        if not attributes_of(name).get(attribute, {}).get("details")
    ]
    assert bare == []


LEGAL: dict[str | None, re.Pattern[str]] = {
    "bool": re.compile(r"true|false"), "int": re.compile(r"-?\d+"), "float": re.compile(r"-?[\d.]+"),
}  # fmt: skip


def is_legal(value: str, path: str, options: Options) -> bool:
    """Whether an option that a text names exists, and may have the value that the text gives it."""
    name, _dot, deeper = path.partition(".")
    option = options.get(name.split("[")[0])
    if option is None or deeper:
        return option is not None and is_legal(value, deeper, option.get("suboptions") or {})
    choices = [str(choice).lower() if isinstance(choice, bool) else str(choice) for choice in option.get("choices") or ()]
    return (
        value in choices
        if choices
        else bool(LEGAL.get(option.get("type"), re.compile("")).fullmatch(value) or option.get("type") not in LEGAL)
    )


def test_every_option_with_a_value_exists_and_takes_it() -> None:
    """O(state=absent) of the module itself, also in the fragments that it uses, and in what it returns."""
    wrong = set()
    for name, module in modules().items():
        path = ROOT / "plugins" / "modules" / f"{name}.py"
        own = [str(documented(path)), str(documented(path, "RETURN"))]
        shared = [
            str(fragment_part(one, part)) for one in module.fragments if one.startswith("muster.") for part in ("options", "attributes")
        ]
        for option, value in re.findall(r"\bO\(([\w.\[\]]+)=([^)]*)\)", " ".join([*own, *shared])):
            if not is_legal(value, option, module.options):
                wrong.add(f"{name}: O({option}={value})")
    assert sorted(wrong) == []


def leaves(values: Options, path: str = "") -> Iterator[tuple[str, Any]]:
    """The return values that have no others in them, or a sample for all of them, by their path."""
    for name, value in values.items():
        if value.get("contains") and "sample" not in value:
            yield from leaves(value["contains"], f"{path}{name}.")
        else:
            yield f"{path}{name}", value


TYPES = {"str": str, "bool": bool, "int": int, "float": float, "list": list, "dict": dict}


def test_every_return_value_has_a_sample() -> None:
    wrong = [
        f"{name_of(path)}: {value}"
        for path in PAGES
        if path.parent.name in ("modules", "filter", "lookup")
        for value, text in leaves(documented(path, "RETURN"))
        if not isinstance(text.get("sample"), TYPES.get(text["type"], object))
    ]
    assert wrong == []
