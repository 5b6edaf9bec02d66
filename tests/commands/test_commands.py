# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the documentation, page by page, in a copy of the repository: as far as each can go on the cluster of the checks.

Those of the installed collection (`muster.ml.site`, and what is copied out of it) are run with the artefact, installed outside of the
clone, without the folders that nothing may need when it runs.

The settings of this run come after those of the page: which cluster, and its storage class. What a page leaves to the reader's inventory
comes before them.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support import artefact
from support.docs.attempts import Attempt, attempts
from support.docs.commands import READERS_INVENTORY, made_by
from support.docs.pages import Page, pages
from support.places import BIN, ROOT, sources
from support.reading import load

KUBECONFIG = os.environ["MUSTER_KUBECONFIG"]
SETTINGS = {
    "local_cluster_name": os.environ["MUSTER_CLUSTER_NAME"],
    "local_cluster_audit_log": os.environ["MUSTER_AUDIT_LOG"],
    "local_cluster_kubeconfig": KUBECONFIG,
    "muster_kubeconfig": KUBECONFIG,
    "muster_become": os.geteuid() != 0,
    "persia_storage": {"storage_class_name": "local-path", "size": "1Gi", "access_modes": ["ReadWriteOnce"]},
}
# What the reader's own inventory says, unless the command says it. Released manifests are files, because nothing outside of this machine is
# asked; those are the files of the local inventory, which the page's command for it writes.
READERS_SETTINGS = {
    **{
        name: value for name, value in load(ROOT / "inventories" / "local" / "group_vars" / "all.yml").items() if name.endswith("_manifest")
    },
    "persia_image": "registry.example.com/persia-cpu:0.1.dev251",
    "triton_model_repository": "gs://example-models/production",
}
# What commands of the pages before have done. SETTINGS say which cluster, whichever a page names.
WORKED: set[tuple[str, ...]] = set()
SHOWN = [page for page in pages() if list(attempts(page))]
PLANNED = [{*attempt.does} for page in SHOWN for attempt in attempts(page) if attempt.how == "planned"]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    for name in sources():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


@pytest.fixture
def repository(copied: Path) -> Iterator[Path]:
    """Without what the commands of other pages have copied in it."""
    before = {path for folder in (copied, copied / "inventories") for path in folder.iterdir()}
    yield copied
    for path in {path for folder in (copied, copied / "inventories") for path in folder.iterdir()} - before:
        shutil.rmtree(path)


def run(*command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    subprocess.run(command, cwd=cwd, env={**os.environ, **(env or {})}, check=True)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with the installed collection, and the inventories that a reader copies out of it."""
    folder = tmp_path_factory.mktemp("reader")
    collection = artefact.install(run, artefact.build(run, ROOT, folder / "built"), folder / "home")
    artefact.keep_what_runs(collection, "inventories")
    return folder / "home"


def tried(attempt: Attempt, repository: Path, home: Path) -> str:
    """Why a command does not work; nothing if it does."""
    argv = [re.sub(r"^~(?=/)", str(home), word) for word in attempt.argv]
    of_the_installed = any(word.startswith("muster.ml.") for word in argv)
    if argv[0] == "ansible-playbook":
        own = {} if "inventories/local" in argv else READERS_SETTINGS
        argv = [argv[0], "-e", json.dumps(own), *argv[1:], "-e", json.dumps(SETTINGS)]
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
        "ANSIBLE_CONFIG": str(repository / "ansible.cfg"),
        "NO_COLOR": "1",
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        **(artefact.environment(home) if of_the_installed else {}),
    }
    done = subprocess.run(argv, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"{attempt.how}: {attempt.line}\n{(done.stdout + done.stderr)[-4000:]}"


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.name)
def test_the_commands_of_a_page_work(page: Page, repository: Path, home: Path) -> None:
    if READERS_INVENTORY not in made_by(page):
        shutil.copytree(repository / "inventories" / "existing", repository / READERS_INVENTORY)
    failures = []
    for attempt in attempts(page):
        # A plan with fewer options than another one is made with FULL=1.
        within = not os.environ.get("FULL") and attempt.how == "planned" and any({*attempt.does} < words for words in PLANNED)
        if attempt.how != "left" and not within and (attempt.argv[0] == "cp" or attempt.does not in WORKED):
            failures.append(tried(attempt, repository, home))
            WORKED.update([] if failures[-1] else [attempt.does])
    assert not any(failures), "\n".join(filter(None, failures))
