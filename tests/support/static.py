# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks that need no cluster."""

import os
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

from support import artefact
from support.lanes import Check, CheckFailed, Shell
from support.places import BIN, BUILD, PYTHON, ROOT, private_home, sources, tool_env, tree

NAMESPACE = {"PYTHONPATH": str(ROOT / "build" / "collections")}


def program(words: str, shell: Shell) -> None:
    """Run a program of the environment in the clone. Unit tests watch the time they take (tests/unit/conftest.py)."""
    name, *arguments = words.split()
    shell.run(BIN / name, *arguments, cwd=ROOT)


def shell_scripts(shell: Shell) -> None:
    """Everything that says it is a shell script, whatever its name."""
    scripts = [n for n in sources() if (ROOT / n).read_bytes()[:20].startswith((b"#!/bin/sh", b"#!/bin/bash", b"#!/usr/bin/env bash"))]
    shell.run(BIN / "shellcheck", *scripts, cwd=ROOT)


def ruff(shell: Shell) -> None:
    shell.run(BIN / "ruff", "check", cwd=ROOT)
    shell.run(BIN / "ruff", "format", "--check", cwd=ROOT)


def mypy(shell: Shell) -> None:
    shell.run(BIN / "mypy", cwd=ROOT)
    for folder in sorted({path.parent for path in ROOT.glob("roles/*/files/example/**/*.py")}):
        # Its scripts import each other, as in their pods.
        shell.run(BIN / "mypy", *sorted(folder.glob("*.py")), cwd=ROOT, env={"MYPYPATH": str(folder)})
    own = ("tests/run.py", "tests/support", "tests/acceptance/filter_plugins", "tests/faults", "tests/differential")
    shell.run(BIN / "mypy", *own, cwd=ROOT, env={"MYPYPATH": str(ROOT / "tests")})


def imports(shell: Shell) -> None:
    shell.run(BIN / "lint-imports", "--no-cache", cwd=ROOT, env=NAMESPACE)


def changelog(shell: Shell) -> None:
    shell.run(BIN / "antsibull-changelog", "lint", cwd=tree(), env=tool_env())


def documentation(shell: Shell) -> None:
    shell.run(
        BIN / "antsibull-docs", "lint-collection-docs", "--plugin-docs", "--skip-rstcheck",
        "--validate-collection-refs", "dependent", ".", cwd=tree(), env=tool_env(),
    )  # fmt: skip


def ansible_lint(words: tuple[str, ...], shell: Shell) -> None:
    """Two checks, because few changes touch a scenario; see lint.py."""
    program = (BIN / "python", ROOT / "tests" / "support" / "lint.py")
    shell.run(*program, "--offline", "--profile", "production", "--strict", *words, cwd=tree(), env=tool_env())


def sanity(shell: Shell) -> None:
    """Ansible's own tests; a name in an ignore file would be a skip, so the files must be empty."""
    for path in (tree() / "tests" / "sanity").glob("ignore-*.txt"):
        if path.read_text(encoding="utf-8").strip():
            raise CheckFailed(f"{path.name} has entries; mend what they hide")
    # What is in no artefact, half of all Python, only with FULL=1; the check ruff reads it in any case.
    some = [] if os.environ.get("FULL") else ["--exclude", "tests/", "--exclude", "extensions/"]
    shell.run(BIN / "ansible-test", "sanity", "--local", "--python", PYTHON, "--color", "no", *some, cwd=tree(), env=tool_env())


def package(shell: Shell) -> None:
    """Build what Galaxy would get, let Galaxy's importer judge it, and use it as somebody does who installs it.

    ansible-lint and ansible-test are checks of their own here; the importer gives the former a time limit that a busy
    machine does not keep.
    """
    out = BUILD / "package"
    built = artefact.build(shell.run, tree(), out)
    config = out / "importer.cfg"
    config.write_text("[galaxy-importer]\nCHECK_CHANGELOG = True\nRUN_ANSIBLE_LINT = False\nRUN_ANSIBLE_TEST = False\n", encoding="utf-8")
    shell.run(BIN / "python", "-m", "galaxy_importer.main", built, cwd=out, env={**tool_env(), "GALAXY_IMPORTER_CONFIG": str(config)})
    refuse_errors(shell.log)
    use_installed(shell, built, out / "home")


def use_installed(shell: Shell, built: Path, home: Path) -> None:
    """Install the artefact outside of the clone and read all of it, without the folders that nothing may need when it runs."""
    collection = artefact.install(shell.run, built, home)
    wrong = artefact.faults(built, collection)
    for line in wrong:
        shell.say(line)
    if wrong:
        raise CheckFailed(f"the artefact has {len(wrong)} faults, the first: {wrong[0]}")
    shutil.copytree(collection / "inventories" / "existing", home / "my-inventory")
    artefact.keep_what_runs(collection)
    run = partial(shell.run, cwd=home, env=artefact.environment(home))
    for kind, folder in {"module": "modules", "role": "roles", "callback": "callback", "filter": "filter", "lookup": "lookup"}.items():
        there = (collection / folder if kind == "role" else collection / "plugins" / folder).iterdir()
        names = sorted(f"muster.ml.{path.stem}" for path in there if not path.name.startswith("_"))
        run(BIN / "ansible-doc", "--json", "--type", kind, *names)
    playbooks = sorted(f"muster.ml.{path.stem}" for path in (collection / "playbooks").glob("*.yml"))
    run(BIN / "ansible-playbook", "-i", "my-inventory", "--syntax-check", *playbooks)


def simulator(name: str, shell: Shell) -> None:
    """The tests of a cloud's modules and roles, on a simulator of it that the tests of each file start themselves.

    One life of a cluster by the playbooks is among them, from the plan to the teardown that keeps data. Others are marked `prove`: later
    changes, what belongs to others, killed runs, removed data, plans of systems; FULL=1 and make prove SYSTEMS=eks,gke run them, too.
    """
    some = [] if os.environ.get("FULL") else ["-m", "not prove"]
    shell.run(
        BIN / "pytest", "-n", "2", "--dist", "loadfile", *some, f"tests/simulators/{name}", "--durations=10",
        cwd=ROOT, env={"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip


def simulators() -> list[str]:
    return sorted({path.parent.name for path in (ROOT / "tests" / "simulators").glob("*/test_*.py")})


def refuse_errors(log: Path) -> None:
    """The importer ends with status 0 whatever it found; its log is what counts."""
    text = log.read_text(encoding="utf-8")
    complaints = [line for line in text.splitlines() if line.startswith(("ERROR", "WARNING"))]
    if complaints or "Importer processing completed successfully" not in text:
        raise CheckFailed(complaints[0] if complaints else "the importer did not complete")


def prepare() -> None:
    """Make what several checks use, before they run side by side."""
    tree()
    private_home()
    if not os.environ.get("FULL"):
        quicken(BUILD / "quick")


def quicken(folder: Path) -> None:
    """Let Ansible pack a module of another collection once for all checks, and Python compile it once; with FULL=1 each run does."""
    shutil.rmtree(folder, ignore_errors=True)
    os.environ |= {"QUICK_FOLDER": str(folder), "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "tests" / "support" / "quick" / "callbacks")}


CODE = ("plugins/*", "tests/*", "roles/*.py", "scripts/*", "*.toml", ".importlinter")
SCENARIOS = ("extensions", "tests/acceptance", "tests/conformance")
BUILT = ("galaxy.yml", "*.toml", "*.txt")
PLAYS = ("roles/*", "playbooks/*", "site.yml", "inventories/*", "plugins/*", "meta/*", "galaxy.yml")
# What the tests of a simulated cloud play: its roles, and those of the systems that they plan.
CLOUDS = {
    "aws": ("roles/e[kf]s_*", "roles/s3_*", "roles/elastic/*", "playbooks/eks*", "inventories/eks/*", "docs/platforms/eks*"),
    "google": ("roles/g[kc][eps]*", "roles/filestore_csi/*", "roles/studioml*", "roles/triton*", "roles/tpu/*", "roles/elastic/files/*",
               "roles/inference_gateway/*", "playbooks/gke*", "inventories/gke/*", "docs/platforms/gke*"),
}  # fmt: skip
BESIDE = (
    "plugins/*",
    "roles/namespace/*",
    "roles/gpu_drivers/*",
    "playbooks/[a-df-z]*",
    "playbooks/*/*",
    "tests/unit/fakes/*",
    "tests/simulators/*.py",
)


def of_cloud(name: str) -> Check:
    reads = (*CLOUDS[name], *BESIDE, f"tests/simulators/{name}/*")
    return Check(f"simulator-{name}", partial(simulator, name), reads=reads)


CHECKS = [
    Check("ruff", ruff, reads=CODE),
    Check("mypy", mypy, reads=CODE),
    Check("imports", imports, reads=CODE),
    Check("unit", partial(program, "pytest -n 2 --durations=10")),
    Check("histories", partial(program, "pytest tests/histories"), reads=("plugins/*", "tests/histories/*", "tests/unit/fakes/*")),
    Check("inventories", partial(program, "pytest -n 2 tests/inventories"), reads=(*PLAYS, "tests/inventories/*", "tests/unit/fakes/*")),
    Check("rabbitmq", partial(program, "pytest tests/rabbitmq --durations=5"), reads=("plugins/*", "tests/rabbitmq/*")),
    Check("alerts", partial(program, "pytest tests/alerts"),
          reads=("plugins/*", "roles/local_images/files/go/prometheus/*", "tests/alerts/*", "tests/unit/fakes/*")),
    Check("studioml", partial(program, "pytest tests/studioml --durations=5"),
          reads=("plugins/*", "roles/local_images/*", "roles/studioml*", "roles/elastic/files/*", "tests/studioml/*", "tests/rabbitmq/*",
                 "tests/unit/fakes/*")),
    Check("yaml", partial(program, "yamllint --strict .")),
    Check("shell", shell_scripts),
    Check("licences", partial(program, "reuse --root . lint")),
    Check("changelog", changelog, reads=("changelogs/*", "galaxy.yml", "plugins/*", "meta/*")),
    Check("docs", documentation, reads=("docs/*", *PLAYS)),
    Check("ansible-lint", partial(ansible_lint, ("--exclude", "extensions/", "--exclude", "tests/")), reads=(*PLAYS, ".ansible-lint*")),
    Check("ansible-lint-tests", partial(ansible_lint, SCENARIOS), reads=(*(f"{one}/*" for one in SCENARIOS), ".ansible-lint*")),
    Check("package", package),
    Check("sanity", sanity, reads=("plugins/*", "roles/*.py", "tests/config.yml", "meta/*", *BUILT)),
    *(of_cloud(name) for name in simulators()),
]  # fmt: skip
# They give way to the checks on clusters, so that little processor time is theirs until those have ended. Brokers have time limits.
CHECKS = [replace(check, nice=0 if check.name in ("unit", "rabbitmq", "studioml") else 5, timeout_s=3600) for check in CHECKS]
