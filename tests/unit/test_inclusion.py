# SPDX-License-Identifier: GPL-3.0-or-later
"""What docs/operating/inclusion.md says of the collection, and the files for a forge, whose commands are those of this repository."""

import re
from typing import Any

import pytest
import yaml
from support.docs import collection, commands
from support.places import ROOT, sources
from support.reading import load, parse

FORGE = ROOT / ".github"
WORKFLOWS = sorted((FORGE / "workflows").glob("*.yml"))
# Collections that the Ansible package has.
IN_THE_PACKAGE = {"amazon.aws", "google.cloud", "kubernetes.core"}


def jobs(path: Any) -> dict[str, Any]:
    found: dict[str, Any] = load(path)["jobs"]
    return found


def support_of_check_mode(documented: dict[str, Any]) -> str | None:
    """By the module itself, or by a fragment of the collection that it uses."""
    found = {}
    for name in documented.get("extends_documentation_fragment", ()):
        if name.startswith(collection.NAMESPACE):
            found |= collection.fragment_part(name, "attributes").get("check_mode", {})
    return (found | documented.get("attributes", {}).get("check_mode", {})).get("support")


def test_every_module_supports_check_mode() -> None:
    paths = sorted((ROOT / "plugins" / "modules").glob("*.py"))
    assert [path.stem for path in paths if support_of_check_mode(collection.documented(path)) != "full"] == []


def test_no_module_returns_facts_or_is_asked_by_state() -> None:
    for name, module in collection.modules().items():
        assert not {"get", "query", "info"} & {*(module.options.get("state", {}).get("choices") or ())}, name
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "plugins" / "modules").glob("*.py")}
    assert [str(path) for path, text in texts.items() if "ansible_facts" in text] == []


def test_galaxy_knows_what_it_must() -> None:
    galaxy = load(ROOT / "galaxy.yml")
    assert {"authors", "dependencies", "description", "license", "readme", "repository", "tags", "version"} <= galaxy.keys()
    assert galaxy["dependencies"].keys() <= IN_THE_PACKAGE
    assert all(re.match(r">=[1-9]", bounds) for bounds in galaxy["dependencies"].values())
    assert re.fullmatch(r">=\d+\.\d+\.\d+", load(ROOT / "meta" / "runtime.yml")["requires_ansible"])
    kinds = re.findall(r'SPDX-License-Identifier = "(.+)"', (ROOT / "REUSE.toml").read_text(encoding="utf-8"))
    assert set(galaxy["license"]) == {part for kind in kinds for part in kind.split(" AND ")}


def test_shared_code_is_private() -> None:
    places = [*(ROOT / "plugins" / "module_utils").iterdir(), *(ROOT / "plugins" / "plugin_utils").iterdir()]
    assert [path.name for path in places if not path.name.startswith("_")] == []


def test_no_file_is_large() -> None:
    assert [name for name in sources() if (ROOT / name).stat().st_size > 1_000_000] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_commands_that_exist(path: Any) -> None:
    """make, scripts and their options; values of a matrix in their place."""
    for job in jobs(path).values():
        matrix = job.get("strategy", {}).get("matrix", {})
        for step in job.get("steps", ()):
            for line in str(step.get("run", "")).splitlines():
                rows = re.findall(r"\$\{\{ matrix\.(\w+) \}\}", line)
                filled = [line.replace(f"${{{{ matrix.{row} }}}}", value) for row in rows for value in matrix[row]] or [line]
                ours = [text for text in filled if text.startswith(("make ", "scripts/"))]
                assert [told for text in ours for told in commands.Commands().complaints(text)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_no_more_rights_than_it_needs(path: Any) -> None:
    assert load(path)["permissions"] == {"contents": "read"}
    steps = [step for job in jobs(path).values() for step in job.get("steps", ())]
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    used = [step["uses"] for step in steps if "uses" in step]
    assert [name for name in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name)] == []  # a tag may move
    installed = " ".join(found for step in steps for found in re.findall(r"pip install (.*)", str(step.get("run", ""))))
    assert [name for name in installed.split() if "==" not in name] == []
    # What a contributor can name (a branch, a title) is never part of a shell's text.
    assert [step["run"] for step in steps if re.search(r"\$\{\{ *github\.(event|head_ref|ref_name)", str(step.get("run", "")))] == []


def test_every_system_is_proved_nightly() -> None:
    targets = jobs(FORGE / "workflows" / "nightly.yml")["long"]["strategy"]["matrix"]["target"]
    proved = {name for target in targets for name in target.partition("SYSTEMS=")[2].split(",") if name}
    assert proved == collection.claims().keys()


@pytest.mark.parametrize("path", sorted((FORGE / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.stem)
def test_a_form_is_one(path: Any) -> None:
    """What the forge requires: a name, a description, and an id and a label for each question."""
    form = load(path)
    assert {"name", "description", "body"} <= form.keys()
    asked = [part for part in form["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in asked}) == len(asked) > 0
    assert all(part["attributes"]["label"] for part in asked)


def test_hooks_run_what_make_test_runs() -> None:
    (local,) = parse((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert local["repo"] == "local"
    programs = {hook["entry"].split()[0] for hook in local["hooks"]}
    assert programs == {".venv/bin/ruff", ".venv/bin/yamllint", ".venv/bin/shellcheck", ".venv/bin/reuse", "scripts/docs"}


def test_the_templates_of_awx_are_such() -> None:
    """Types of questions as AWX has them (awx/main/models/mixins.py); choices contain the default."""
    for template in yaml.safe_load((ROOT / "awx" / "job_templates.yml").read_text(encoding="utf-8"))["awx_job_templates"]:
        asked = template.get("survey_spec", {}).get("spec", [])
        assert template["survey_enabled"] is bool(asked)
        for question in asked:
            assert question["type"] in {"float", "integer", "multiplechoice", "multiselect", "password", "text"}
            assert question["variable"] in collection.variables()
            assert "choices" not in question or question.get("default") in {None, *question["choices"]}
