# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the code itself: sizes, layers, headers, and that what is said twice is said alike."""

import ast
import configparser
import dataclasses
import importlib
import io
import re
import subprocess
import tokenize
import typing
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest
from support.docs import kinds
from support.docs.measure import is_documentation, lines_of
from support.reading import imported, load, syntax

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = ROOT / "plugins"
MODULES = sorted((PLUGINS / "modules").glob("*.py"))
ALL_CODE = sorted(PLUGINS.rglob("*.py"))

MODULE_LINES = 150
FUNCTION_LINES = 40
MAIN_LINES = 25
HTTP_LIBRARIES = re.compile(r"(aiohttp|http\.client|httpx|kr8s|kubernetes|lightkube|requests|urllib\.request|urllib3)(\.|$)")
SPDX = "GPL-3.0-or-later"
# What Ansible's sanity tests want in plugins with documentation; for all other files REUSE.toml names the holder.
NOTICE = ("Copyright: (c) 2026, Muster contributors", "GNU General Public License v3.0+")
DOCUMENTED = {"callback", "filter", "lookup", "modules"}
HEADED = {".cfg", ".go", ".j2", ".ps1", ".py", ".sh", ".toml", ".yaml", ".yml"}
# Kept by tools which would drop the header at their next run.
GENERATED = {"changelogs/changelog.yaml"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def code_lines(path: Path) -> frozenset[int]:
    """The numbers of the lines that hold code: no blank ones, no comments, no documentation."""
    noise = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type not in noise:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in nodes(path):
        if is_documentation(node):
            lines -= lines_of(node)
    return frozenset(lines)


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(syntax(path)))


def functions(path: Path) -> list[Function]:
    return [node for node in nodes(path) if isinstance(node, Function)]


def size_of(path: Path, function: Function) -> int:
    return len(code_lines(path) & lines_of(function))


def place_of(path: Path, function: Function) -> str:
    return f"{name_of(path)}:{function.lineno}: {function.name}"


@cache
def tracked_files() -> tuple[Path, ...]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file())


def test_the_collection_has_modules() -> None:
    assert MODULES, "no module found: the checks below would hold for nothing"


def test_a_module_is_small() -> None:
    sizes = {name_of(path): len(code_lines(path)) for path in MODULES}
    large = {name: size for name, size in sizes.items() if size > MODULE_LINES}
    assert not large, "these do more than one thing; move logic to module_utils"


def test_functions_are_small() -> None:
    sizes = {place_of(path, f): size_of(path, f) for path in ALL_CODE for f in functions(path)}
    assert not {place: size for place, size in sizes.items() if size > FUNCTION_LINES}


def test_a_name_means_one_class_or_that_of_both_clouds() -> None:
    """Step, Resource, Plan, Place, State and Api once named up to six classes each."""
    names = ("Step", "Resource", "Plan", "Place", "State", "Api")
    classes = [node.name for path in ALL_CODE for node in nodes(path) if isinstance(node, ast.ClassDef)]
    assert {name: classes.count(name) for name in names if classes.count(name) > 2} == {}


def test_main_is_a_seam() -> None:
    mains = {name_of(path): [size_of(path, f) for f in functions(path) if f.name == "main"] for path in MODULES}
    assert not {name: sizes for name, sizes in mains.items() if len(sizes) != 1 or sizes[0] > MAIN_LINES}


# Google's answers and the messages of a stream have a kind of their own; discovery tells those of one API group at a time.
OTHER_KINDS = re.compile(r"plugins/module_utils/(_gcp/|_pod_programs/|_kube/(client|kinds|proxy|tls|tunnel)\.py)")
# A job file is told by the kinds in it; the version of each is then compared, and another one refused by its name.
# Pods name objects by fields whose kinds are in a table. The results of modules, which the callback prints, have no API group.
TRANSLATED = {"plugins/callback/brief.py", "plugins/module_utils/_kube/references.py", "plugins/module_utils/_manifests/job_file.py"}


def reads_kind(node: ast.AST) -> bool:
    """Whether an expression is the kind of an object without its API group: x.kind, x["kind"] or x.get("kind")."""
    if isinstance(node, ast.Attribute):
        return node.attr == "kind"
    if isinstance(node, ast.Subscript):
        found = isinstance(node.slice, ast.Constant) and node.slice.value == "kind"
        return found and "params" not in (getattr(node.value, "attr", ""), getattr(node.value, "id", ""))  # an option
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "str" and node.args:
            return reads_kind(node.args[0])
        called = isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args
        return bool(called) and isinstance(node.args[0], ast.Constant) and node.args[0].value == "kind"
    return False


def compared(node: ast.AST) -> list[ast.AST]:
    """The expressions that a node compares, or looks up."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return [one for side in sides for one in (side.elts if isinstance(side, ast.Set | ast.List) else [side])]
    if isinstance(node, ast.Subscript):
        return [node.slice]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        if name in ("get", "pop", "add", "setdefault", "index", "count"):
            return list(node.args[:1])
        return [node.func.value] if name in ("endswith", "startswith") else []
    if isinstance(node, ast.DictComp):
        return [node.key]
    if isinstance(node, ast.SetComp):
        return [node.elt]
    return []


def is_bare_name(node: ast.AST, path: Path) -> bool:
    """A variable ``kind`` of the engine, whose kinds are always those of objects."""
    return isinstance(node, ast.Name) and node.id == "kind" and path.parent.name == "_kube"


def kinds_without_group(path: Path) -> list[int]:
    """The lines that judge an object by its bare kind."""
    return [one.lineno for node in nodes(path) for one in compared(node) if reads_kind(one) or is_bare_name(one, path)]


def test_a_kind_is_never_judged_without_its_api_group() -> None:
    """Any definition may bring an Event, a Secret or a Namespace of its own: Ref.group_kind and objects.group_kind tell them apart."""
    files = [path for path in ALL_CODE if not OTHER_KINDS.match(name_of(path)) and name_of(path) not in TRANSLATED]
    found = [f"{name_of(path)}:{line}" for path in files for line in kinds_without_group(path)]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        'ref.kind == "Pod"', 'item["kind"] in ("Job", "Pod")', 'manifest.get("kind") != "Secret"', "TABLE.get(ref.kind)",
        "forms[live['kind']]", "{w.kind: w for w in found}", "{w.kind for w in found}", 'str(item.get("kind", "")).endswith("List")',
    ],
)  # fmt: skip
def test_a_bare_kind_is_seen(text: str) -> None:
    sides = [one for node in ast.walk(ast.parse(text)) for one in compared(node)]
    assert any(map(reads_kind, sides))
    assert not any(reads_kind(one) for node in ast.walk(ast.parse("(ref.group, ref.kind) == NAMESPACE")) for one in compared(node))


RANDOM = {"token_urlsafe", "token_hex", "token_bytes", "generate_private_key", "generate", "urandom", "uuid4", "uuid1", "SystemRandom"}
NOT_KEPT = {
    "_aws/api.py": "the token of one request, which is sent again with it",
    "_core/sensitive.py": "a key of this process, with which values are compared",
    "_kube/lease.py": "the name of a run",
    "_kube/tunnel.py": "the key of a WebSocket, and masks of its frames",
    "_kube/write.py": "a name for a dry run",
    "_pod_programs/dataset_fetch.py": "the name of a run",
    "_pod_programs/elastic_launch.py": "the name of a node of torchrun, which generates it itself",
    "plugins/callback/summary.py": "the identifier of a run",
    "_systems/elastic/training.py": "the name of a rendezvous, in an object that is made once (Desired.made_once)",
    "_systems/persia/training.py": "the name of a group of pods, in objects that are made once (Desired.made_once)",
    "_systems/rabbitmq/health.py": "a message and its queue, both for a moment",
    "_systems/studioml/message.py": "a message's key",
}
"""Files that make random values which no other run has to find again, and what these are."""


def test_what_is_made_once_has_one_door() -> None:
    """A value that is generated and kept comes of _kube/made_once.py, which lets two runs at once end with one of it."""
    utils = PLUGINS / "module_utils"
    made = {
        path.relative_to(utils).as_posix() if path.is_relative_to(utils) else name_of(path)
        for path in ALL_CODE
        for node in nodes(path)
        if isinstance(node, ast.Attribute | ast.ImportFrom)
        and RANDOM & ({node.attr} if isinstance(node, ast.Attribute) else {one.name for one in node.names})
    }
    assert made - {"_kube/made_once.py", "_kube/new_keys.py"} == set(NOT_KEPT)
    called = {
        name_of(path)
        for path in ALL_CODE
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Fresh", "MadeOnce")
    }
    assert called == {"plugins/module_utils/_kube/made_once.py"}


def test_one_file_talks_to_kubernetes() -> None:
    talking = {name_of(p) for p in ALL_CODE if any(HTTP_LIBRARIES.match(name) for name in imported(p))}
    # These only fetch: manifests that a user names by address, released programs, and (in a pod) a data set, metrics, and what an etcd can.
    fetching = {
        "plugins/module_utils/_kube/source.py",
        "plugins/module_utils/_local/download.py",
        "plugins/module_utils/_pod_programs/dataset_fetch.py",
        "plugins/module_utils/_pod_programs/elastic_launch.py",
        "plugins/module_utils/_pod_programs/persia_metrics.py",
    }
    # Another API, with logins and errors of its own.
    rabbitmq = {"plugins/module_utils/_systems/rabbitmq/api.py"}
    # A kept connection to a server of models, whose answers are timed.
    models = {"plugins/module_utils/_core/json_http.py"}
    assert talking - fetching - rabbitmq - models == {"plugins/module_utils/_kube/client.py"}


def test_every_builder_of_manifests_is_under_a_contract() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    pure = [
        "plugins/" + pattern.partition(".plugins.")[2].replace(".", "/")
        for name in ("builders-are-pure", "builders-of-systems-are-pure")
        for pattern in contracts[f"importlinter:contract:{name}"]["source_modules"].split()
    ]
    builders = [p for p in ALL_CODE if any(isinstance(n, ast.FunctionDef) and n.name == "manifests" for n in syntax(p).body)]
    assert len(builders) > 20
    parents = {p: [p.relative_to(ROOT).with_suffix(""), *p.relative_to(ROOT).parents] for p in builders}
    assert [name_of(p) for p, names in parents.items() if not any(fnmatch(str(n), pattern) for n in names for pattern in pure)] == []


def test_only_the_edge_ends_a_module() -> None:
    """In one place; what Ansible calls is overridden with a call of ``super()``."""
    ending = [f"{name_of(p)}: {ast.unparse(a)}" for p in ALL_CODE for a in attributes(p) if a.attr in ("exit_json", "fail_json")]
    place = "plugins/module_utils/_edge/failure.py: module."
    assert sorted(one for one in ending if ": super()." not in one) == [f"{place}exit_json", f"{place}fail_json"]


def says_changed(node: ast.AST) -> bool:
    """Whether a result gets the key ``changed``, with any value but False."""
    keyed = list(zip(node.keys, node.values, strict=True)) if isinstance(node, ast.Dict) else []
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        keyed = [(node.targets[0].slice, node.value)]
    return any(ast.unparse(key) == "'changed'" and ast.unparse(value) != "False" for key, value in keyed if key)


@pytest.mark.parametrize("name", [path.stem for path in MODULES])
def test_choices_are_those_of_the_type(name: str) -> None:
    """An option, and the field of its name of a dataclass that the module imports, have the same choices."""
    module = importlib.import_module(f"ansible_collections.muster.ml.plugins.modules.{name}")
    imports = [one for one in vars(module).values() if isinstance(one, type) and dataclasses.is_dataclass(one)]
    classes = [one for one in imports if "._edge." not in one.__module__]
    fields = [(key, literals(hint)) for one in classes for key, hint in typing.get_type_hints(one).items() if key in module.ARGUMENT_SPEC]
    wrong = {key for key, found in fields if found != list(module.ARGUMENT_SPEC[key].get("choices", ()))}
    assert wrong == SAME_NAME_ONLY.get(name, set())


SAME_NAME_ONLY = {"inference_route": {"kind"}, "local_cluster_info": {"source"}, "rabbitmq_definitions": {"update_password"}}
"""Fields of another meaning than the option of their name."""


def literals(hint: object) -> list[object]:
    """The values of a Literal, which may be an element of a list, or not be given."""
    inner = typing.get_args(hint)
    return list(inner) if typing.get_origin(hint) is typing.Literal else [value for one in inner for value in literals(one)]


def test_who_says_that_something_changed_makes_the_diff() -> None:
    makers = [(f"{name_of(path)}:{one.lineno}", one) for path in ALL_CODE if "callback" not in path.parts for one in functions(path)]
    saying = {place: ast.unparse(one) for place, one in makers if any(map(says_changed, ast.walk(one)))}
    assert len(saying) > 5
    assert [place for place, text in saying.items() if "'diff'" not in text] == []


def test_retries_are_where_the_rules_say() -> None:
    rules = (ROOT / "docs" / "architecture" / "developing.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(plugins/\S+\.py)`", next(line for line in rules.splitlines() if line.startswith("| 10. "))))
    using = {name_of(p) for p in ALL_CODE if any(name.endswith("_core.pace") for name in imported(p))}
    assert told - {"plugins/module_utils/_core/pace.py"} == using


def test_no_error_is_left_out_by_its_widest_class() -> None:
    """What ruff's BLE001 does not see; at the end of a script its own functions run, which may raise anything."""
    wide = {p.name for p in ALL_CODE if re.search(r"suppress\((Base)?Exception\)", p.read_text(encoding="utf-8"))}
    assert wide == {"persia_program.py"}


def test_only_the_edge_imports_other_collections() -> None:
    """Import Linter cannot forbid them: an external module of a contract has to be a root package."""
    utils = [p for p in ALL_CODE if "module_utils" in p.parts]
    others = {name_of(p) for p in utils if any(re.match(r"ansible_collections\.(?!muster\.)", name) for name in imported(p))}
    assert {name for name in others if "/_edge/" not in name} == set()
    assert others


def attributes(path: Path) -> list[ast.Attribute]:
    return [node for node in nodes(path) if isinstance(node, ast.Attribute)]


def test_the_kinds_of_trainings_are_those_of_the_folders() -> None:
    written = kinds.texts(ROOT)
    old = [name for name, text in written.items() if (ROOT / name).read_text(encoding="utf-8") != text]
    assert not old, "run: scripts/systems"


@pytest.mark.parametrize(
    ("group", "mark"), [("all", "_edge.run"), ("aws", "_edge.aws"), ("gcp", "_edge.gcp"), ("rabbitmq", "**api.CONNECTION")]
)
def test_an_action_group_holds_every_module_with_its_options(group: str, mark: str) -> None:
    names = {name for name in load(ROOT / "meta" / "runtime.yml")["action_groups"][group] if isinstance(name, str)}
    assert names == {p.stem for p in MODULES if mark in p.read_text(encoding="utf-8")}


def test_every_action_plugin_has_its_module() -> None:
    actions = {path.stem for path in (PLUGINS / "action").glob("*.py")}
    assert actions <= {path.stem for path in MODULES}


def header_of(path: Path) -> tuple[str, ...]:
    """The programs that run in pods have the header of a plugin."""
    in_full = path.parent in [*(PLUGINS / kind for kind in DOCUMENTED), PLUGINS / "module_utils" / "_pod_programs"]
    return (SPDX, *(NOTICE if in_full else ()))


def test_every_source_file_has_the_licence_header() -> None:
    bare = [
        name_of(path)
        for path in tracked_files()
        if path.suffix in HEADED
        and name_of(path) not in GENERATED
        and not all(line in path.read_text(encoding="utf-8")[:600] for line in header_of(path))
    ]
    assert not bare


def test_no_half_done_merge_is_committed() -> None:
    texts = {p: p.read_bytes() for p in tracked_files()}
    assert not [name_of(p) for p, text in texts.items() if re.search(rb"^(<<<<<<<|>>>>>>>) ", text, re.MULTILINE)]


def test_no_path_of_one_machine_is_committed() -> None:
    mark = "/work/"  # in two parts, or this file would be a finding
    texts = {".cfg", ".ini", ".j2", ".json", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml", ""}
    found = [
        name_of(p)
        for p in tracked_files()
        if p.suffix in texts and any(f"{mark}{w}" in p.read_text(encoding="utf-8") for w in ("main", "shared"))
    ]
    assert not found


def exceptions_of(path: Path) -> dict[str, list[str]]:
    """The exception classes of a file and their bases, by name."""
    classes = [node for node in nodes(path) if isinstance(node, ast.ClassDef)]
    bases = {node.name: [base.id for base in node.bases if isinstance(base, ast.Name)] for node in classes}
    return {name: of for name, of in bases.items() if {"Exception", "OSError", "ValueError"} & set(of)}


def test_errors_have_one_root() -> None:
    """An exception of its own is for one file; what another file is to catch is a MusterError."""
    utils = [p for p in ALL_CODE if "module_utils" in p.parts and "_pod_programs" not in p.parts]
    roots = {name: path for path in utils for name in exceptions_of(path)}
    assert roots.pop("MusterError").name == "errors.py"
    layers = {
        name: {p.parent.name for p in utils if p != path and re.search(rf"\b{name}\b", p.read_text(encoding="utf-8"))}
        for name, path in roots.items()
    }
    assert not {name: used for name, used in layers.items() if used - {roots[name].parent.name}}


def is_date(node: ast.AST) -> bool:
    return ast.unparse(node).rpartition(".")[2] in ("date", "datetime")


def test_one_loop_waits() -> None:
    """_core/waiting.py sleeps between two looks, _core/pace.py between two tries of one call; there is one clock."""
    ours = [p for p in ALL_CODE if not {"_pod_programs", "callback"} & set(p.parts)]
    sleeping = {name_of(p) for p in ours if any(a.attr == "sleep" for a in attributes(p))}
    assert {name for name in sleeping if "/_core/" not in name} == set()
    assert {name_of(p) for p in ours if "time" in imported(p)} == {"plugins/module_utils/_core/clock.py"}
    read = {f"{name_of(p)}: {a.attr}" for p in ours for a in attributes(p) if a.attr in ("now", "utcnow", "today") and is_date(a.value)}
    assert read == set()  # the date, too, is that of a clock
    loops = {name_of(p) for p in ours for n in nodes(p) if isinstance(n, ast.While) and "wait_for_retry" in ast.dump(n)}
    assert loops == {"plugins/module_utils/_kube/client.py"}  # ``with_retries`` is the loop of all others


def test_the_clock_is_handed_in() -> None:
    """The system's clock is a default of the edge only: below it, mypy refuses a call without a clock."""
    ours = [p for p in ALL_CODE if {"module_utils", "modules"} & set(p.parts) and p.name != "clock.py"]
    lines = [f"{name_of(p)}: {line}" for p in ours for line in p.read_text("utf-8").splitlines() if "SYSTEM_CLOCK" in line]
    default = re.compile(r"/_edge/.*(import .*SYSTEM_CLOCK|\bclock: Clock = (dataclasses\.field\(default=)?SYSTEM_CLOCK\b)")
    assert [line for line in lines if not default.search(line)] == []


SEARCHES = {"count", "endswith", "find", "findall", "finditer", "fullmatch", "index", "match", "search", "startswith"}
WORDS = {"evidence", "log", "message", "msg", "said", "stderr"}


def decisions_by_words(tree: ast.AST) -> set[int]:
    """The lines that search the message of an error, or what was made of it."""
    found = set()
    for inside in [list(ast.walk(n)) for n in ast.walk(tree) if isinstance(n, Function)]:
        known = {n.arg for n in inside if isinstance(n, ast.arg)} & WORDS
        known |= {f"{to}({n.name})" for n in inside if isinstance(n, ast.ExceptHandler) for to in ("str", "repr")}

        def is_told(one: ast.AST, known: set[str] = known) -> bool:
            named = [n for n in ast.walk(one) if isinstance(n, ast.Attribute | ast.Call | ast.Name)]
            read = {n.value for n in ast.walk(one) if isinstance(n, ast.Constant)}  # x["message"], x.get("message")
            return "message" in read or any(getattr(n, "attr", None) in WORDS or ast.unparse(n) in known for n in named)

        for node in [n for n in inside if isinstance(n, ast.Assign | ast.NamedExpr) and is_told(n.value)]:
            targets = [n for target in getattr(node, "targets", [node]) for n in ast.walk(getattr(target, "target", target))]
            known |= {n.id for n in targets if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for node in inside:
            searched = node.comparators if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn) else []
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SEARCHES:
                searched = [node.func.value, *node.args]
            found |= {n.lineno for n in searched if is_told(n)}
    return found


def test_only_translations_decide_by_words() -> None:
    """Elsewhere a class, code or cause decides, which ``with_cause`` and ``cause_of`` find in the table of the program that said it."""
    ours = [p for p in ALL_CODE if "_pod_programs" not in p.parts]
    assert {name_of(p).removeprefix("plugins/module_utils/") for p in ours if decisions_by_words(syntax(p))} == {
        "_core/errors.py",  # ``with_cause`` itself
        "_gcp/errors.py",
        "_kube/reasons.py",  # the names of APIs that a namespace waits for
        "_kube/responses.py",  # who lacks which permission
        "_systems/triton/failing.py",  # the last error of a log, to be shown
        "_systems/elastic/faults.py",  # the message of a rank, which is the launcher's of this collection
        "_training/stacks.py",  # what py-spy prints
    }


@pytest.mark.parametrize(
    "line",
    ['"x509" in exc.message', 'str(exc).endswith("gone")', "BUSY.search(refused.said)", '"a" not in (text := f"{exc}: {exc.message}")'],
)
def test_a_decision_by_words_is_found(line: str) -> None:
    assert decisions_by_words(ast.parse(f"def f():\n try: g()\n except E as exc:\n  if {line}: raise")) == {4}


def causes_of(path: Path) -> list[tuple[str, re.Pattern[str]]]:
    """The rows of the tables of causes in a file."""
    tables = [n for n in syntax(path).body if isinstance(n, ast.AnnAssign) and "Causes" in ast.unparse(n.annotation)]
    module = "ansible_collections.muster.ml." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
    values = [getattr(importlib.import_module(module), ast.unparse(table.target)) for table in tables]
    return [row for value in values for rows in (value.values() if isinstance(value, dict) else [value]) for row in rows]


def test_every_sentence_that_means_a_cause_is_in_a_test() -> None:
    """As it was said by the other program."""
    texts = [n.value for p in sorted((ROOT / "tests" / "unit").rglob("*.py")) for n in nodes(p) if isinstance(n, ast.Constant)]
    said = [text for text in texts if isinstance(text, str)]
    rows = [(path, *row) for path in ALL_CODE for row in causes_of(path)]
    assert len(rows) > 30
    assert [f"{name_of(path)}: {cause}" for path, cause, words in rows if not any(words.search(text) for text in said)] == []


def test_one_pool_has_the_threads() -> None:
    pooling = {name_of(p) for p in ALL_CODE if any(name.startswith("concurrent") for name in imported(p))}
    assert pooling - {"plugins/module_utils/_pod_programs/dataset_fetch.py"} == {"plugins/module_utils/_core/pool.py"}


# Of what is on this machine. Those of _local: drafts, and what the record of a local cluster, its cgroups and its names are about.
DELETING = {
    "_core/created.py",  # by a record
    "_core/files.py",  # its own drafts and locks
    "_kube/tls.py",  # its own temporary file
    "_local/gobuild.py",
    "_local/membership.py",
    "_local/node.py",
    "_local/oci_layers.py",
    "_local/once.py",  # drafts that killed runs left of what it makes
    "_local/removal.py",
    "_systems/studioml/client_files.py",  # by the record of the client's folder
}


def test_files_are_deleted_in_few_places() -> None:
    """Every deletion of a file goes by a record, or is one of the program's own drafts; a new place has to be judged."""
    verbs = {"unlink", "rmdir", "rmtree", "remove_tree", "removedirs"}
    found = {
        path.relative_to(ROOT / "plugins" / "module_utils").as_posix() if "module_utils" in path.parts else name_of(path)
        for path in ALL_CODE
        if "_pod_programs" not in path.parts and verbs & {one.attr for one in attributes(path)}
    }
    assert found == DELETING
