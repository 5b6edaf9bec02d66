# SPDX-License-Identifier: GPL-3.0-or-later
"""What the documentation says is so: its examples would work, its commands and paths exist, nothing is said on two pages."""

import re
from functools import cache
from pathlib import Path

import pytest
import yaml
from support.docs import attempts, awx, collection, commands, fences, landing, pages, picture, recording, rights, settings, words
from support.docs.reference import comment_of, reference
from support.docs.write import ARCHITECTURE
from support.places import ROOT

LANGUAGES = {"console", "json", "mermaid", "python", "text", "yaml"}
CODE = {".cfg", ".go", ".j2", ".py", ".sh", ".toml", ".yaml", ".yml", ""}


@cache
def all_pages() -> list[pages.Page]:
    return pages.pages()


def written() -> list[pages.Page]:
    """The pages that people write."""
    return [page for page in all_pages() if not page.generated]


def page(text: str, name: str = "docs/lie.md") -> pages.Page:
    return pages.Page(name, text)


def test_there_are_pages_and_examples() -> None:
    shown = [fence.language for p in written() for fence in p.fences()]
    assert shown.count("yaml") > 20
    assert shown.count("console") > 15


def test_every_page_begins_with_what_it_is_about() -> None:
    """A sentence that begins with its subject comes between the title and the first part."""
    begun = {p.name: [line for line in p.prose() if line.strip()][:2] for p in all_pages()}
    wrong = [
        name for name, (title, first) in begun.items() if not title.startswith("# ") or first.startswith(("#", "|", "!", "To ", "For "))
    ]
    assert wrong == []


def test_every_fence_says_what_it_holds() -> None:
    """Commands are in `console`, where they are checked."""
    unnamed = [str(f) for p in written() for f in p.fences() if f.language not in LANGUAGES]
    hidden = [str(f) for p in written() for f in p.fences() if f.language == "text" and re.search(r"^\$ ", f.text, re.MULTILINE)]
    assert unnamed + hidden == []


def test_every_yaml_example_would_work() -> None:
    wrong = [f"{f}: {c}" for p in written() for f in p.fences() if f.language == "yaml" for c in fences.complaints(f.text)]
    assert wrong == []


def test_every_command_would_work() -> None:
    assert [c for p in written() for c in commands.Commands().of_page(p)] == []


def test_every_command_is_tried_as_far_as_it_can_go() -> None:
    """By the check `commands`, on a cluster; how far that is, and why, stands in docs/architecture/developing.md."""
    found = {attempt.how for p in written() for attempt in attempts.attempts(p)}
    assert found == {"as it is", "planned", "listed", "printed", "left"}
    told = re.sub(r"\s+", " ", (ROOT / "docs" / "architecture" / "developing.md").read_text(encoding="utf-8"))
    reasons = {a.why for p in written() for a in attempts.attempts(p)} - {""}
    assert [why for why in sorted(reasons) if why not in told] == []


def test_every_name_in_backticks_exists() -> None:
    assert [c for p in written() for c in words.unknown_names(p)] == []


def test_every_link_leads_somewhere() -> None:
    assert [c for p in all_pages() for c in words.dead_links(p, all_pages())] == []


def test_every_path_on_a_page_exists() -> None:
    told = [(p.name, c) for p in all_pages() for c in words.wrong_paths("\n".join(p.prose()), commands.made_by(p))]
    assert told == []


def test_every_path_in_a_comment_exists() -> None:
    files = [name for name in collection.files() if (ROOT / name).is_file() and (ROOT / name).suffix in CODE]
    # Most files name no path that is not there, be it in a comment or not.
    some = [name for name in sorted(files) if words.wrong_paths((ROOT / name).read_text(encoding="utf-8"))]
    texts = {name: words.comments(ROOT / name) for name in some}
    assert [(name, c) for name, text in texts.items() for c in words.wrong_paths(text)] == []


def test_every_page_that_the_code_names_exists() -> None:
    """Also in messages and descriptions."""
    files = [ROOT / name for name in sorted(collection.files()) if not name.endswith(".md") and (ROOT / name).is_file()]
    texts = {p: p.read_text(encoding="utf-8") for p in files if p.suffix in CODE and p.name != "test_docs.py"}
    assert [(str(p), c) for p, text in texts.items() for c in words.PAGE.findall(text) if c not in collection.files()] == []


def test_nothing_is_said_on_two_pages() -> None:
    assert words.said_twice(all_pages()) == []


def test_nothing_is_counted_that_changes() -> None:
    """What is so many today is another number tomorrow: leave the number out, or generate it."""
    assert [c for p in written() for c in words.counts(p)] == []


def test_the_reference_is_that_of_the_code() -> None:
    wrong = [n for n, text in reference().items() if not (ROOT / n).is_file() or (ROOT / n).read_text(encoding="utf-8") != text]
    left = {p.name for p in all_pages() if p.generated} - reference().keys()
    assert (wrong, left) == ([], set()), "run scripts/docs (and delete what it no longer writes)"


def test_the_job_templates_are_those_of_the_argument_specs() -> None:
    assert (ROOT / awx.FILE).read_text(encoding="utf-8") == awx.templates(), "run scripts/docs"


def test_every_playbook_and_inventory_says_what_it_is_for() -> None:
    begin = re.compile(r"[A-Z]\w* ")
    files = [*collection.playbooks().values(), *(ROOT / "inventories" / name / "hosts.yml" for name in collection.inventories())]
    assert [str(path) for path in files if not begin.match(comment_of(path))] == []


def test_the_picture_is_that_of_the_code() -> None:
    """The arrows exactly; the lines of code as far as the picture is right about sizes."""
    drawn = pages.between(ARCHITECTURE.read_text(encoding="utf-8"), picture.NAME)
    told, today = picture.sizes_in(drawn), picture.lines()
    far = {n: (told.get(n), size) for n, size in today.items() if abs(told.get(n, 0) - size) > picture.TOLERANCE * size}
    assert far == {}, "run scripts/docs"
    assert drawn == picture.picture(told), "run scripts/docs"


def test_the_table_of_rights_is_that_of_the_builders() -> None:
    again = {"nats_operator_namespace", "s3_artifacts_pod_identity", "triton_volume"}  # accounts that another golden has, too
    having = {
        path.stem for path in rights.GOLDENS.glob("*.yaml") if "kind: ServiceAccount\n  metadata:" in path.read_text(encoding="utf-8")
    }
    assert having | again == {*rights.VARIANTS} | again
    assert pages.between(rights.PAGE.read_text(encoding="utf-8"), rights.NAME) == rights.table(), "run scripts/docs"


@pytest.mark.parametrize("readme", settings.readmes(), ids=lambda path: path.parent.name)
def test_the_variables_of_a_system_are_those_of_its_spec(readme: Path) -> None:
    assert pages.between(readme.read_text(encoding="utf-8"), settings.NAME) == settings.readmes()[readme], "run scripts/docs"


@pytest.mark.parametrize("system", landing.SYSTEMS)
def test_the_picture_of_a_system_has_what_its_builders_make(system: str) -> None:
    """Each workload is a box, and the way to what it mounts a line; every kind is named."""
    made, drawn = landing.objects(system), landing.picture(system)
    told = set(re.findall(r">([^<]+)</text>", drawn))
    workloads = [item for item in made if any(landing.templates(item))]
    assert {item["metadata"]["name"] for item in workloads} <= told
    assert all(item["kind"] in drawn for item in made)
    assert drawn.count("<path ") >= len([mount for item in workloads for mount in {*landing.mounts(item)}]) > 0


def test_every_system_has_a_picture() -> None:
    assert [*landing.SYSTEMS] == sorted(awx.systems())
    assert (ROOT / landing.README).read_text(encoding="utf-8") == landing.picture("elastic"), "run scripts/docs"


def test_the_recording_shows_tasks_that_exist() -> None:
    """So a renamed task is seen in README, too."""
    known = [like(str(name)) for name in collection.task_names()]
    shown = [found[1] for line in recording.in_picture() if (found := re.match(r"TASK \[(?:\S+ : )?(.*)\] \*", line))]
    assert shown
    unknown = [name for name in shown if not any(known.match(name) for known in known)]
    assert unknown == [], "scripts/record"


def test_the_rulebook_runs_a_playbook_with_variables_that_it_has() -> None:
    (ruleset,) = yaml.safe_load((ROOT / "extensions/eda/rulebooks/doctor.yml").read_text(encoding="utf-8"))
    known = yaml.safe_load((ROOT / "playbooks/vars/argument_specs.yml").read_text(encoding="utf-8"))
    for action in (rule["action"]["run_playbook"] for rule in ruleset["rules"]):
        assert (ROOT / "playbooks" / f"{action['name'].removeprefix('muster.ml.')}.yml").exists()
        assert {*action["extra_vars"]} <= {*known["argument_specs"]["main"]["options"]}


def like(name: str) -> re.Pattern[str]:
    """What a run prints for a task of this name, with its templates filled in."""
    return re.compile(".*".join(re.escape(part) for part in re.split(r"\{\{.*?\}\}", name)) + "$")


@pytest.mark.parametrize(
    ("lie", "told"),
    [
        ("- muster.ml.training_statefulset:\n    name: a\n    extended_resources: {}", "has no option extended_resources"),
        ("- muster.ml.training_statefulset:\n    replicas: 2", "needs the option name"),
        ("- muster.ml.training_statefulset:\n    name: a\n    replicas: eight", "'eight' is no int"),
        ("- muster.ml.training_statefulset:\n    name: a\n    state: gone", "'gone' is none of"),
        ("- muster.ml.training_stateful_set:\n    name: a", "no module muster.ml.training_stateful_set"),
        ("- apply:\n    src: a", "no module is named in full"),
        ("- hosts: all\n  roles:\n    - role: muster.ml.persiaa", "no role muster.ml.persiaa"),
        ("- hosts: all\n  roles:\n    - role: muster.ml.persia\n      persia_nodes: 2", "reads no variable persia_nodes"),
        ("- hosts: all\n  vars: {persia_wait_for: sometimes}", "'sometimes' is none of"),
        ("- hosts: all\n  tasks:\n    - ansible.builtin.include_role: {name: muster.ml.persia, tasks_from: x}", "no entry point x"),
        ("- import_playbook: muster.ml.everything", "no playbook muster.ml.everything"),
        ("elastic_replicas: two", "'two' is no int"),
        ("elastic_workers: 2", "nothing reads the variable elastic_workers"),
        ("all:\n  hosts:\n    a: {etcd_sise: 3}", "nothing reads the variable etcd_sise"),
        ("module_defaults:\n  group/muster.ml.all: {kubconfig: a}", "no module has the option kubconfig"),
        (
            "- hosts: a\n  module_defaults: {group/muster.ml.rabbitmq: {login_user: a}}\n"
            "  tasks:\n    - muster.ml.studioml_experiment: {queue: rmq_a}",
            "needs the option",
        ),
        ("a: [", "does not parse"),
    ],
)
def test_a_wrong_example_is_found(lie: str, told: str) -> None:
    assert told in "\n".join(fences.complaints(lie))


@pytest.mark.parametrize(
    ("lie", "told"),
    [
        ("make everything", "no target everything"),
        ("make prove SYSTEM=persia", "reads no variable SYSTEM"),
        ("make prove SYSTEMS=persiaa", "no system persiaa"),
        ("make test ONLY='ruff mypi'", "no check mypi"),
        ("make bench ONLY='apply unit'", "no benchmark unit"),
        ("ansible-playbook -i inventories/locale site.yml", "no inventory inventories/locale"),
        ("ansible-playbook -i inventories/local playbooks/sites.yml", "no playbook playbooks/sites.yml"),
        ("ansible-playbook -i my-inventory muster.ml.sites", "no playbook muster.ml.sites"),
        ("ansible-playbook site.yml -e elastic_replica=2", "nothing reads the variable elastic_replica"),
        ("ansible-playbook site.yml -e elastic_replicas=two", "'two' is no int"),
        ("ansible-playbook site.yml -e '{elastic_args: {a: 1}}'", "is no list"),
        ("ansible-playbook site.yml --tags persian", "nothing has the tag persian"),
        ("ansible-playbook site.yml --dry-run", "--dry-run is no option"),
        ("ansible-doc muster.ml.aply", "no muster.ml.aply"),
        ("scripts/moleculer persia", "no scripts/moleculer"),
        ("scripts/molecule persian converge", "no scenario persian"),
        ("pip install -r requirements-azure.txt", "no requirements-azure.txt"),
        ("helm install muster", "helm is no program"),
    ],
)
def test_a_wrong_command_is_found(lie: str, told: str) -> None:
    assert told in "\n".join(commands.Commands().of_page(page(f"```console\n$ {lie}\n```\n")))


@pytest.mark.parametrize(
    ("lie", "found"),
    [
        ("see `_kube/klient.py`", words.wrong_paths),
        ("see `docs/architecture/speeds.md` and the rest", words.wrong_paths),
        ("tests/unit/.../_kube/test_deletions.py", words.wrong_paths),
        ("`elastic_workers`", lambda text: list(words.unknown_names(page(text)))),
        ("`-e muster_sistems=x`", lambda text: list(words.unknown_names(page(text)))),
        ("`muster.ml.persia_jobs`", lambda text: list(words.unknown_names(page(text)))),
        ("[a](nowhere.md)", lambda text: list(words.dead_links(page(text), all_pages()))),
        ("[a](architecture.md#nowhere)", lambda text: list(words.dead_links(page(text), all_pages()))),
        ("It has eight methods.", lambda text: list(words.counts(page(text)))),
        ("one two three four five six seven eight nine ten a b c.", lambda text: words.said_twice([page(text), page(text, "b.md")])),
    ],
)
def test_a_wrong_word_is_found(lie: str, found: object) -> None:
    assert callable(found)
    assert found(lie)
