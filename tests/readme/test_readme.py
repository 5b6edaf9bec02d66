# SPDX-License-Identifier: GPL-3.0-or-later
"""README's paths for a cluster that is there and for a cloud, typed as they are printed, in fresh roots of Debian.

A root has the packages that README asks for and nothing else; it shares the network, the names and the certificates of this machine.
One has the layout of Ubuntu: its os-release, and a user who is not root. Its packages are Debian's, Ubuntu's Python 3.12 is not among them.
MUSTER_README has, as JSON, what the reader writes into the copied inventory.
"""

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
CLUSTER, CLOUD = "## On a cluster you have", "## On AWS or Google Cloud"
# Far from the two minutes that it takes alone: other checks run beside it, and the time is printed.
LIMIT_SECONDS = 900
UBUNTU = 'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\n'
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
exec chroot --userspec="$READER" "$ROOT" bash -ec 'cd; [ ! -e muster ] || . muster/bin/activate; eval "$TYPED"'
"""


def printed(heading: str) -> list[str]:
    """The commands of a section, in their order."""
    (readme,) = (page for page in pages() if page.name == "README.md")
    line = readme.text[: readme.text.index(heading)].count("\n")
    fence = next(fence for fence in readme.fences() if fence.line > line and fence.language == "console")
    return list(commands(fence.text))


@dataclass(frozen=True)
class Root:
    """The root file system of a reader whose home folder is /home/me; READER is user and group."""

    folder: Path
    reader: str
    compiles: bool
    """Whether pip compiles the 15,000 files of Ansible's collections, as it does by itself: 20 s of a processor. Few are read."""

    @property
    def home(self) -> Path:
        return self.folder / "home" / "me"

    def type(self, line: str, *, status: int = 0) -> str:
        """Run a line in a shell of the reader, which ends with that status; what it printed."""
        began = time.monotonic()
        outside = {name: value for name, value in os.environ.items() if OF_THE_NETWORK.match(name)}
        inside = {"HOME": "/home/me", "LANG": "C.UTF-8", "NO_COLOR": "1", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        if not (self.compiles or os.environ.get("FULL")):
            inside["PIP_COMPILE"] = "0"
        done = subprocess.run(
            [*AS_ROOT, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER],
            env={**outside, **inside, "ROOT": str(self.folder), "READER": self.reader, "TYPED": line},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        sys.stdout.write(f"{time.monotonic() - began:5.0f} s  {line}\n")
        assert done.returncode == status, f"{line}\n{(done.stdout + done.stderr)[-4000:]}"
        return done.stdout + done.stderr


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


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The clone and the artefact."""
    folder = tmp_path_factory.mktemp("given")
    clone(folder / "clone")
    return folder / "clone", artefact.build(run, ROOT, folder / "built")


@pytest.fixture(params=["bookworm", "trixie", "ubuntu"])
def root(request: pytest.FixtureRequest, tmp_path: Path, given: tuple[Path, Path]) -> Iterator[Root]:
    """With the clone, the artefact and the kubeconfig of the reader; what was installed on the cluster is removed at the end."""
    ubuntu = request.param == "ubuntu"
    found = Root(tmp_path / "root", "1000:1000" if ubuntu else "0:0", compiles=request.param == "bookworm")
    found.folder.mkdir()
    suite = "trixie" if ubuntu else request.param
    subprocess.run([*AS_ROOT, "tar", "-xf", archive(suite), "-C", found.folder, "--exclude=./dev/*"], check=True)
    (found.home / ".kube").mkdir(parents=True)
    shutil.copy2(KUBECONFIG, found.home / ".kube" / "config")
    shutil.copytree(given[0], found.folder / CLONE.lstrip("/"), symlinks=True)
    shutil.copy2(given[1], found.home)
    if ubuntu:
        (found.folder / "etc" / "os-release").unlink()
        (found.folder / "etc" / "os-release").write_text(UBUNTU, encoding="utf-8")
        with (found.folder / "etc" / "passwd").open("a", encoding="utf-8") as users:
            users.write("me:x:1000:1000::/home/me:/bin/bash\n")
        subprocess.run([*AS_ROOT, "chown", "-R", found.reader, found.home], check=True)
    yield found
    if request.param != "trixie" and (found.home / READERS_INVENTORY).is_dir():
        teardown = f"ansible-playbook -i {READERS_INVENTORY} muster.ml.teardown -e muster_delete_data=true"
        found.type(f"{teardown} --tags elastic,namespace")
    subprocess.run([*AS_ROOT, "rm", "-rf", "--one-file-system", found.folder], check=True)


def test_from_nothing_to_a_trained_model(root: Root, request: pytest.FixtureRequest) -> None:
    """Debian 12 takes the clone, the others the file that README names beside it. Debian 13 ends with the plan: Ubuntu's layout trains."""
    debian = {name: name in request.node.name for name in ("bookworm", "trixie")}
    assert list(root.folder.glob("usr/lib/python3*/EXTERNALLY-MANAGED"))
    began, told = time.monotonic(), ""
    for line in printed(CLUSTER):
        command, _mark, comment = line.partition("#")
        if "collection install" in command and not debian["bookworm"]:
            command = f"ansible-galaxy collection install {comment.split()[-1].rstrip(')')}"
        if debian["trixie"] and told.count("PLAY RECAP"):
            break
        told = root.type(command)
        assert "collection install" not in command or "was installed successfully" in told
        if command.startswith("cp "):
            settings = root.home / READERS_INVENTORY / "host_vars" / "localhost.yml"
            settings.parent.mkdir()
            settings.write_text(json.dumps(SETTINGS), encoding="utf-8")
    whole = time.monotonic() - began
    sys.stdout.write(f"{whole:5.0f} s  in all\n")
    if debian["trixie"]:
        to_a_cloud(root)
    else:
        assert re.search(r"accuracy\D{1,9}0\.[89]", told), told[-4000:]
    assert whole < LIMIT_SECONDS


def to_a_cloud(root: Root) -> None:
    """README's next section goes as far as it can without an account: to what only the reader knows."""
    *first, plan = printed(CLOUD)
    for line in first:
        root.type(line.partition("#")[0])
    assert "eks_cluster_public_access_cidrs" in root.type(plan.partition("#")[0], status=2)
