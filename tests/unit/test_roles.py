# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the roles: complete, documented alike in both places, and free of the shortcuts that hide errors."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible.utils.display import Display
from support import reading
from support.docs import fences
from support.docs.collection import tasks_in
from support.places import sources

ROOT = Path(__file__).resolve().parents[2]
# Tasks that other roles import, without options and a README of their own.
INTERNAL = [ROOT / "roles" / "released_operator"]
ROLES = sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir() and path not in INTERNAL)
# Those that put something on a cluster or a machine.
DEPLOYING = [r for r in ROLES if any((r / "tasks" / f"{phase}.yml").exists() for phase in ("install", "configure", "remove"))]
# Whose tasks obey the rules about errors, commands and waiting.
TASK_FOLDERS = [role / "tasks" for role in [*ROLES, *INTERNAL]] + [ROOT / "tests" / "acceptance"]
PARTS = ("README.md", "defaults/main.yml", "meta/main.yml", "meta/argument_specs.yml", "tasks/main.yml")
PHASES = ("preflight", "install", "configure", "verify")
# What exists, for all phases: whichever of them a tag selects, this page runs before.
READ = "read"
PRIVATE = re.compile(r"\b__\w+")
# A program's own command line is never the way to Kubernetes: no check mode, no diff, no error that names its object.
FORBIDDEN_PROGRAMS = ("helm", "kubectl")
COMMANDS = {"ansible.builtin.command", "ansible.builtin.shell", "ansible.builtin.raw"}

# What these delete, stop or disable may be another's: they ask for no record. Muster's own modules host_file and host_record do.
ON_HOSTS = "file copy apt apt_repository dnf package pip user group cron systemd systemd_service service iptables known_hosts mount"
# Where files may be that roles, playbooks and plugins read: the inclusion rules of the Ansible package allow no other folders.
RUN_TIME_FOLDERS = {"meta", "playbooks", "plugins", "roles"}
FOLDER_VARIABLE = re.compile(r"\b(role_path|playbook_dir)[ ~}']*(/[\w./*-]+)")
# It configures what is unpacked already, and removes nothing.
COMPLETING = ["dpkg", "--configure", "--pending"]
DELETING_PROGRAMS = "rm rmdir unlink find shred mv userdel groupdel dpkg apt apt-get dnf yum rpm systemctl service umount iptables"


def deletes(task: dict[str, Any]) -> bool:
    """Whether a task takes something from a host or the controller by a module or a program that knows nothing of records."""
    for name in ON_HOSTS.split():
        given = task.get(f"ansible.builtin.{name}", task.get(f"ansible.posix.{name}"))
        options = given if isinstance(given, dict) else {}
        state, enabled = str(options.get("state", "")), str(options.get("enabled", "true")).lower()
        # A choice that is made by an expression may be each of them, but the state of a package: present or latest.
        if state in ("absent", "stopped", "unmounted") or enabled in ("false", "no") or options.get("masked"):
            return True
        if "{{" in state and not state.endswith("_package_state }}"):
            return True
    for name in COMMANDS & task.keys():
        given = task[name]
        words = given.get("argv", given.get("cmd", "")) if isinstance(given, dict) else given
        words = words if isinstance(words, list) else str(words).split()
        if (
            words
            and words != COMPLETING
            and (str(words[0]).rpartition("/")[2] in DELETING_PROGRAMS.split() or {"delete", "flush"} & set(map(str, words)))
        ):
            return True
    return False


def role_name(path: Path) -> str:
    return path.name


def folder_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def load(path: Path) -> Any:
    return reading.load(path) if path.exists() else None


def defaults(role: Path) -> dict[str, Any]:
    return load(role / "defaults" / "main.yml") or {}


def entry_points(role: Path) -> dict[str, dict[str, Any]]:
    specs = load(role / "meta" / "argument_specs.yml")["argument_specs"]
    return {name: spec.get("options") or {} for name, spec in specs.items()}


def tasks(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every task below a folder with its place, those inside blocks and plays too."""
    for path in sorted(folder.rglob("*.yml")):
        page = load(path)
        for task in tasks_in(page if isinstance(page, list) else []):
            yield f"{path.relative_to(ROOT)}: {task.get('name')}", task


def test_the_collection_has_roles() -> None:
    assert ROLES, "no role found: the checks below would hold for nothing"


@pytest.mark.parametrize("role", ROLES, ids=role_name)
def test_a_role_is_complete(role: Path) -> None:
    assert [part for part in PARTS if not (role / part).is_file()] == []


@pytest.mark.parametrize("role", DEPLOYING, ids=role_name)
def test_what_installs_can_be_removed(role: Path) -> None:
    assert (role / "tasks" / "remove.yml").exists()


@pytest.mark.parametrize("role", ROLES, ids=role_name)
def test_defaults_are_documented(role: Path) -> None:
    """Same names, same values: the documentation is the interface and may not drift from what happens."""
    options = entry_points(role)["main"]
    documented = {name: option["default"] for name, option in options.items() if "default" in option}
    assert documented == defaults(role)


def test_roles_for_google_cloud_have_one_owner() -> None:
    """What is once in a project is one region's, and no task names another owner."""
    google = [role for role in ROLES if role.name.startswith(("gcp_", "gcs_", "gke_")) and role.name != "gcp_project"]
    owners = {role.name: reading.load(role / "vars" / "main.yml")[f"__{role.name}_owner"] for role in google}
    (owner,) = set(owners.values())
    jinja = jinja2.Environment(autoescape=True)
    for given, value in (
        ({}, "muster"),
        ({"muster_gcp_region": ""}, "muster"),
        ({"muster_gcp_region": "us-central1"}, "muster--us-central1"),
        ({"muster_gke_name": "a", "muster_gcp_region": "europe-west1"}, "a--europe-west1"),
    ):  # fmt: skip
        assert jinja.from_string(owner).render(given) == value
    for role in google:
        for place, task in tasks(role):
            given = next((task[key] for key in task if re.match(r"muster\.ml\.g(cp|cs|ke)_", key)), {})
            assert given.get("owner", f"{{{{ __{role.name}_owner }}}}") == f"{{{{ __{role.name}_owner }}}}", place


def test_what_an_account_of_aws_has_once_belongs_to_one_region() -> None:
    """IAM and the names of buckets know no regions: clusters of one name in two of them would share roles and buckets."""
    found = set()
    for role in ROLES:
        variables = load(role / "vars" / "main.yml") or {}
        for place, task in tasks(role):
            kind = next((key for key in task if key in ("amazon.aws.iam_role", "muster.ml.s3_bucket")), "")
            given = task.get(kind, {})
            if kind == "amazon.aws.iam_role" and given.get("state") == "absent":
                assert "selectattr('owned')" in task["when"], place
            elif kind:
                mark = str(given["tags" if kind == "amazon.aws.iam_role" else "only_tagged"])
                said = [mark, *(str(variables.get(name)) for name in used(mark, variables))]
                assert any("muster.ml/region" in text for text in said), place
                found.add(kind)
    assert len(found) == 2


@pytest.mark.parametrize("role", ROLES, ids=role_name)
def test_other_entry_points_agree_with_the_first(role: Path) -> None:
    first, *others = entry_points(role).values()
    for options in others:
        shared = first.keys() & options.keys()
        assert {n: options[n].get("default") for n in shared} == {n: first[n].get("default") for n in shared}


@pytest.mark.parametrize("role", ROLES, ids=role_name)
def test_names_carry_the_role(role: Path) -> None:
    assert [name for name in defaults(role) if not name.startswith(f"{role.name}_")] == []
    private = load(role / "vars" / "main.yml") or {}
    assert [name for name in private if not name.startswith(f"__{role.name}_")] == []


@pytest.mark.parametrize("role", DEPLOYING, ids=role_name)
def test_main_is_a_contents_page(role: Path) -> None:
    """Nothing happens in tasks/main.yml itself: it names the phases, in their order."""
    pages = load(role / "tasks" / "main.yml")
    keys = ("ansible.builtin.import_tasks", "ansible.builtin.include_tasks", "ansible.builtin.import_role")
    named = [next((task[key] for key in keys if key in task), None) for task in tasks_in(pages) if "block" not in task]
    phases = [Path(page.get("file") or page["tasks_from"] if isinstance(page, dict) else page).stem for page in named if page]
    assert len(phases) == len(named), "a task in tasks/main.yml is no import"
    assert phases == [phase for phase in (READ, *PHASES) if phase in phases]


@pytest.mark.parametrize("role", [r for r in DEPLOYING if (r / "tasks" / f"{READ}.yml").exists()], ids=role_name)
def test_a_phase_uses_no_result_of_another(role: Path) -> None:
    """Each phase runs alone, by its tag, so it may use its own results and those of tasks/read.yml, which has all their tags."""
    (read, *pages) = load(role / "tasks" / "main.yml")
    assert set(read["tags"]) == {tag for page in pages for tag in page["tags"]}
    texts = {p: (role / "tasks" / f"{p}.yml").read_text() for p in PHASES if (role / "tasks" / f"{p}.yml").exists()}
    results = {phase: set(re.findall(r"register: (__\w+)", text)) for phase, text in texts.items()}
    for phase, text in texts.items():
        others = set().union(*(made for other, made in results.items() if other != phase))
        assert used(text, load(role / "vars" / "main.yml")) & others == set()


def used(text: str, variables: dict[str, Any]) -> set[str]:
    """The private names in a text, and in the variables that it uses."""
    names: set[str] = set()
    found = set(PRIVATE.findall(text))
    while found:
        names |= found
        found = {name for known in found for name in PRIVATE.findall(str(variables.get(known, "")))} - names
    return names


@pytest.mark.parametrize("folder", TASK_FOLDERS, ids=folder_name)
def test_no_error_is_hidden(folder: Path) -> None:
    hiding = [place for place, task in tasks(folder) if task.get("ignore_errors") or task.get("failed_when") in (False, "false")]
    assert hiding == []


@pytest.mark.parametrize("folder", TASK_FOLDERS, ids=folder_name)
def test_kubernetes_is_reached_by_modules(folder: Path) -> None:
    for place, task in tasks(folder):
        for key in COMMANDS & task.keys():
            assert not any(program in str(task[key]).split() for program in FORBIDDEN_PROGRAMS), place


@pytest.mark.parametrize("folder", [*ROLES, ROOT / "playbooks"], ids=folder_name)
def test_check_mode_knows_who_creates_namespaces_and_kinds(folder: Path) -> None:
    """A plan from nothing counts those that earlier tasks of muster.ml.apply would have brought, and sees none of another module."""
    reading_only = ("kubernetes.core.k8s_info",)
    assert [
        place for place, task in tasks(folder) if any(key.startswith("kubernetes.core.") and key not in reading_only for key in task)
    ] == []


def test_the_sum_of_a_manifest_stands_once() -> None:
    """The role that installs a release and local_images, which writes its manifest, read it from one file."""
    place = "roles/released_operator/files/sums.yml"
    sums = load(ROOT / place)
    texts = {name: (ROOT / name).read_text() for name in sources() if name.endswith(".yml")}
    assert [name for name, text in texts.items() for one in sums.values() if one in text] == [place] * 6
    written = load(ROOT / "roles" / "local_images" / "vars" / "main.yml")["__local_images_manifests"]
    assert {row["sha256"] for row in written.values()} == {f"{{{{ __local_images_sums.{name} }}}}" for name in sums}
    assert sums["jobset"] in (ROOT / "plugins" / "lookup" / "manifests.py").read_text()  # in its example


def test_no_other_module_of_ours_creates_namespaces() -> None:
    builders = {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "plugins").rglob("*.py") if '"kind": "Namespace"' in path.read_text("utf-8")
    }
    applied_by_roles = {"plugins/module_utils/_manifests/namespace.py", "plugins/module_utils/_local/local_cluster.py"}
    assert builders == applied_by_roles


def test_schemas_of_other_projects_are_theirs() -> None:
    """CustomResourceDefinitions are those that a project publishes, unless it publishes none that can be had everywhere."""
    # nats-operator creates its own at start, without a schema (pkg/util/kubernetes/crd.go of 0.8.3); PERSIA's is in a repository that is
    # no Go module, so that a local cluster could not have it.
    own = {f"roles/nats_operator/files/crds/{name}.yml" for name in ("natscluster", "natsservicerole")}
    own.add("roles/persia_operator/files/crds/persiajob.yml")
    shipped = [name for name in sources() if name.startswith(("roles/", "plugins/", "playbooks/", "examples/"))]
    schema = re.compile(r"^\W*openAPIV3Schema\W*:", re.MULTILINE)
    assert {name for name in shipped if schema.search((ROOT / name).read_text(errors="replace"))} == own


@pytest.mark.parametrize("folder", TASK_FOLDERS, ids=folder_name)
def test_nothing_waits_by_the_clock(folder: Path) -> None:
    for place, task in tasks(folder):
        assert "ansible.builtin.pause" not in task, place
        assert "sleep " not in str([task.get(key) for key in COMMANDS]), place


@pytest.mark.parametrize("folder", [*ROLES, ROOT / "playbooks"], ids=folder_name)
def test_waits_are_those_of_modules(folder: Path) -> None:
    """A task that is tried again and again prints FAILED - RETRYING each time, and neither what is missing nor until when it waits."""
    assert [place for place, task in tasks(folder) if {"until", "retries", "delay"} & task.keys()] == []


@pytest.mark.parametrize("folder", [*ROLES, ROOT / "playbooks"], ids=folder_name)
def test_what_installs_packages_completes_interrupted_installations(folder: Path) -> None:
    """After a run that was killed in dpkg, apt refuses: dpkg was interrupted, you must manually run 'dpkg --configure -a'."""
    found = [task for _place, task in tasks(folder)]
    completes = any((task.get("ansible.builtin.command") or {}).get("argv") == COMPLETING for task in found)
    assert completes or not any("ansible.builtin.apt" in task for task in found)


@pytest.mark.parametrize("folder", [*ROLES, ROOT / "playbooks"], ids=folder_name)
def test_hosts_lose_only_what_a_record_names(folder: Path) -> None:
    assert [place for place, task in tasks(folder) if deletes(task)] == []


@pytest.mark.parametrize(
    "task",
    [
        {"ansible.builtin.file": {"path": "/x", "state": "absent"}},
        {"ansible.builtin.file": {"path": "/x", "state": "{{ 'absent' if gone else 'file' }}"}},
        {"ansible.builtin.apt": {"name": "x", "state": "absent"}},
        {"ansible.builtin.user": {"name": "x", "state": "absent"}},
        {"ansible.builtin.systemd_service": {"name": "x", "state": "stopped"}},
        {"ansible.builtin.systemd_service": {"name": "x", "enabled": False}},
        {"ansible.builtin.command": {"argv": ["nft", "delete", "table", "inet", "x"]}},
        {"ansible.builtin.command": {"argv": ["/bin/rm", "-rf", "/x"]}},
        {"ansible.builtin.shell": "rm -rf /x"},
    ],
)
def test_a_deletion_without_a_record_is_found(task: dict[str, Any]) -> None:
    assert deletes(task)


@pytest.mark.parametrize("role", DEPLOYING, ids=role_name)
def test_a_role_has_a_scenario(role: Path) -> None:
    """On the real cluster by molecule or, where that takes long, by a claim; a role of a cloud on that cloud's simulator."""
    simulated = [page for page in (ROOT / "tests" / "simulators").glob("*/test_*.py") if role.name in page.read_text()]
    name = re.compile(rf"muster\.ml\.{role.name}\b")
    claimed = [page for page in (ROOT / "tests" / "acceptance").glob("*/*.yml") if name.search(page.read_text())]
    scenario = ROOT / "extensions" / "molecule" / role.name
    parts = ("molecule.yml", "converge.yml", "verify.yml", "cleanup.yml")
    assert simulated or claimed or [part for part in parts if not (scenario / part).is_file()] == []


def files_read(path: Path) -> Iterator[Path]:
    """The paths of the collection, some with wildcards, that a file of a role or a playbook names by its own folder."""
    for variable, rest in FOLDER_VARIABLE.findall(path.read_text(encoding="utf-8")):
        base = ROOT / "playbooks" if variable == "playbook_dir" else ROOT.joinpath(*path.relative_to(ROOT).parts[:2])
        yield Path(os.path.normpath(f"{base}{rest}"))


def test_roles_and_playbooks_read_files_of_allowed_folders_only() -> None:
    found = {file for folder in ("roles", "playbooks") for path in (ROOT / folder).rglob("*.yml") for file in files_read(path)}
    assert len(found) > 5
    assert sorted(file for file in found if not list(ROOT.glob(str(file.relative_to(ROOT))))) == []
    assert sorted(file for file in found if file.relative_to(ROOT).parts[0] not in RUN_TIME_FOLDERS) == []


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "roles").iterdir()))
def test_internal_variables_that_a_role_reads_are_set_in_it(name: str) -> None:
    files = [path for path in (ROOT / "roles" / name).rglob("*") if path.suffix in (".yml", ".j2")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    read = set(re.findall(r"\b__[a-z][a-z0-9_]+\b", text))
    # As a key, as what a task registers, as the variable of a loop, or in a template.
    keys = r"(?:^\s*(?:- )?|[{,]\s*)(__\w+):(?=\s|$)"
    named = r"(?:register|loop_var|index_var): (__\w+)|\bset (__\w+)|\bfor (__\w+)"
    found = [name for row in re.findall(f"{keys}|{named}", text, re.MULTILINE) for name in row if name]
    given = {"__released_operator_spec"}  # by the roles that share its tasks
    assert read - {*found} - given == set()


def test_what_stands_beside_a_role_is_an_option_of_it() -> None:
    """Ansible checks that, and not the role's vars, against its argument spec, and fails the run."""
    names = [name for name in sources() if name.endswith(".yml") and name.startswith(("playbooks/", "extensions/", "tests/"))]
    plays = [(name, play) for name in names for play in reading.load(ROOT / name) or () if isinstance(play, dict)]
    roles = [(name, role) for name, play in plays for role in play.get("roles") or () if isinstance(role, dict)]
    assert len(roles) > 25
    wrong = {name: said for name, role in roles for said in fences.in_role(role) if said.endswith("in vars only")}
    assert wrong == {}


@pytest.mark.parametrize("trusted", [False, True])
def test_the_broker_on_google_is_known_by_what_google_says(trusted: bool) -> None:
    """The keys that the machine published, and no others; a first key is trusted on request only."""
    page = {**defaults(ROOT / "roles" / "gcp_broker_vm"), **load(ROOT / "roles" / "gcp_broker_vm" / "vars" / "main.yml")}
    variables: dict[str, Any] = {name: trust_as_template(value) if isinstance(value, str) else value for name, value in page.items()}
    variables |= {"__gcp_broker_vm_host": "broker", "__gcp_broker_vm_found": {"address": {"id": "7"}}}
    variables["gcp_broker_vm_accept_new_host_key"] = trusted
    variables["__gcp_broker_vm_keys"] = {} if trusted else {"host_keys": ["ssh-ed25519 AAAA", "ssh-rsa BBBB"]}
    words = shlex.split(Templar(DataLoader(), variables=variables).template(trust_as_template("{{ __gcp_broker_vm_ssh_args }}")))
    known = dict(word.split("=", 1) for word in words if word != "-o")
    assert known.pop("HostKeyAlias") == "broker.7"
    assert known.pop("StrictHostKeyChecking") == ("accept-new" if trusted else "yes")
    command = shlex.split(known.pop("KnownHostsCommand", "").replace("%%", "%"))
    assert known == ({} if trusted else {"UserKnownHostsFile": "/dev/null", "GlobalKnownHostsFile": "/dev/null"})
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout if command else ""
    assert said == ("" if trusted else "broker.7 ssh-ed25519 AAAA\nbroker.7 ssh-rsa BBBB\n")


PLAIN_FILTERS = {"bool", "default", "float", "int", "length", "mandatory", "string"}
CONDITIONS = {"changed_when", "failed_when", "that", "until", "when"}


def templates(value: Any, *, bare: bool = False) -> Iterator[str]:
    """The templates in the YAML of a role; those of conditions have no braces."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from templates(one, bare=key in CONDITIONS)
    elif isinstance(value, list):
        for one in value:
            yield from templates(one, bare=bare)
    elif isinstance(value, str) and ("{{" in value or "{%" in value or bare):
        yield value if "{{" in value or "{%" in value else f"{{{{ {value} }}}}"


def test_roles_compute_no_more_in_templates() -> None:
    """Lower the bounds with each expression that a module, a filter or a builder takes over."""
    files = [path for role in ROLES for part in ("defaults", "vars", "tasks") for path in (role / part).glob("*.yml")]
    parsed = [jinja2.Environment().parse(text) for path in files for text in templates(reading.load(path))]  # noqa: S701  (only read)
    filters = [node.name for tree in parsed for node in tree.find_all(jinja2.nodes.Filter) if node.name not in PLAIN_FILTERS]
    assert len(filters) <= 423
    assert not any(tree.find(jinja2.nodes.For) for tree in parsed)


def test_ansible_reads_what_is_installed_without_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that a merge brings and that is given again is a warning in every run."""
    told: list[str] = []
    monkeypatch.setattr(Display, "warning", lambda _self, text, *_more, **_options: told.append(text))
    for top in ("playbooks", "roles", "inventories"):
        for page in sorted((ROOT / top).rglob("*.yml")):
            DataLoader().load_from_file(str(page))
            assert told == [], page


@pytest.mark.parametrize("role", ["elastic", "llm", "persia"])
def test_a_data_set_is_judged_before_counted_on_in_the_dry_run_and_taken_away(role: str) -> None:
    included = [
        one["ansible.builtin.include_role"] for _, one in tasks(ROOT / "roles" / role / "tasks") if "ansible.builtin.include_role" in one
    ]
    parts = {one.get("tasks_from", "main") for one in included if one["name"] == "muster.ml.dataset"}
    assert parts == {"main", "preflight", "dry_run", "remove"}
