# SPDX-License-Identifier: GPL-3.0-or-later
"""README's path for a cluster that is there, typed as it is printed, in fresh roots of Debian, from a virtual environment to a model.

A root has the packages that README asks for and nothing else; it shares the network, the names and the certificates of this machine.
MUSTER_README has, as JSON, what the reader writes into the copied inventory.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import artefact
from support.docs.commands import CLONE, READERS_INVENTORY, commands
from support.docs.pages import pages
from support.places import ROOT, cache_home, sources

KUBECONFIG = Path(os.environ["MUSTER_KUBECONFIG"])
SETTINGS = json.loads(os.environ.get("MUSTER_README", '{"muster_namespace": "readme"}'))
PACKAGES = ("ca-certificates", "git", "python3", "python3-venv")
HEADING = "## On a cluster you have"
LIMIT_SECONDS = 300
# The way to the package index is the machine's.
OF_THE_NETWORK = re.compile(r"(PIP_(?!FIND_LINKS)|SSL_|REQUESTS_|https?_proxy|no_proxy)", re.IGNORECASE)
AS_ROOT = [] if os.geteuid() == 0 else ["sudo", "--preserve-env"]
ENTER = """\
set -e
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
mount -t proc proc "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
mount --rbind /etc/ssl "$ROOT/etc/ssl"
for file in /etc/resolv.conf /etc/hosts; do touch "$ROOT$file"; mount --bind "$file" "$ROOT$file"; done
exec chroot "$ROOT" bash -ec 'cd; [ ! -e muster ] || . muster/bin/activate; eval "$TYPED"'
"""


def printed() -> list[str]:
    """The commands of the section, in their order."""
    (readme,) = (page for page in pages() if page.name == "README.md")
    line = readme.text[: readme.text.index(HEADING)].count("\n")
    fence = next(fence for fence in readme.fences() if fence.line > line and fence.language == "console")
    return list(commands(fence.text))


@dataclass(frozen=True)
class Root:
    """The root file system of a reader whose home folder is /home/me."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home" / "me"

    def type(self, line: str) -> str:
        """Run a line in a shell of the reader; what it printed."""
        outside = {name: value for name, value in os.environ.items() if OF_THE_NETWORK.match(name)}
        inside = {"HOME": "/home/me", "LANG": "C.UTF-8", "NO_COLOR": "1", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        done = subprocess.run(
            [*AS_ROOT, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER],
            env={**outside, **inside, "ROOT": str(self.folder), "TYPED": line}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{(done.stdout + done.stderr)[-4000:]}"
        return done.stdout


def archive(suite: str) -> Path:
    """The root file system of a release of Debian, kept between runs."""
    digest = hashlib.sha256(" ".join(PACKAGES).encode()).hexdigest()[:8]
    path = cache_home() / "roots" / f"{suite}-{digest}.tar"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        made = path.with_suffix(".new.tar")
        subprocess.run([*AS_ROOT, "mmdebstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", suite, made], check=True)
        made.rename(path)
    return path


def run(*command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    subprocess.run(command, cwd=cwd, env={**os.environ, **(env or {})}, check=True)


def clone(target: Path) -> None:
    """The sources as they are now, as a repository."""
    for name in sources():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name, follow_symlinks=False)
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=me", "-c", "user.email=me@example.org", "commit", "-q", "-m", "all"]):
        subprocess.run(["git", *words], cwd=target, check=True)


@pytest.fixture(params=["bookworm", "trixie"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Root]:
    """With the clone, the artefact and the kubeconfig of the reader; what was installed on the cluster is removed at the end."""
    found = Root(tmp_path / "root")
    found.folder.mkdir()
    subprocess.run([*AS_ROOT, "tar", "-xf", archive(request.param), "-C", found.folder, "--exclude=./dev/*"], check=True)
    (found.home / ".kube").mkdir(parents=True)
    shutil.copy2(KUBECONFIG, found.home / ".kube" / "config")
    clone(found.folder / CLONE.lstrip("/"))
    shutil.copy2(artefact.build(run, ROOT, tmp_path / "built"), found.home)
    yield found
    if (found.home / READERS_INVENTORY).is_dir():
        found.type(f"ansible-playbook -i {READERS_INVENTORY} muster.ml.teardown -e muster_remove_data=true")
    shutil.rmtree(found.folder)


def test_from_nothing_to_a_trained_model(root: Root, request: pytest.FixtureRequest) -> None:
    """The newer Debian takes the file that README names beside the clone."""
    began, told = time.monotonic(), ""
    for line in printed():
        before = time.monotonic()
        command, _mark, comment = line.partition("#")
        if "collection install" in command and "trixie" in request.node.name:
            command = f"ansible-galaxy collection install {comment.split()[-1].rstrip(')')}"
        told = root.type(command)
        sys.stdout.write(f"{time.monotonic() - before:5.0f} s  {command}\n")
        if command.startswith("cp "):
            settings = root.home / READERS_INVENTORY / "host_vars" / "localhost.yml"
            settings.parent.mkdir()
            settings.write_text(json.dumps(SETTINGS), encoding="utf-8")
    whole = time.monotonic() - began
    sys.stdout.write(f"{whole:5.0f} s  in all\n")
    assert re.search(r"accuracy\D{1,9}0\.[89]", told), told[-4000:]
    assert whole < LIMIT_SECONDS
