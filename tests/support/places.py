# SPDX-License-Identifier: GPL-3.0-or-later
"""The places that checks work in: a copy of the sources where Ansible's tools want them, and a home of its own."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "test"
BIN = Path(sys.executable).parent
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

# ansible-test asks for pip's own installer at an address that only some networks reach. A wheel of pip can install
# itself, so this stands in for it, with the same version of pip, from the package index that pip is set up for.
PIP_INSTALLER = '''"""Stand-in for ansible-test's get-pip: install pip from the wheel beside this file."""
import glob
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, glob.glob(os.path.join(here, "pip-{version}-*.whl"))[0])
from pip._internal.cli.main import main

arguments = [a for a in sys.argv[1:] if a not in ("--no-setuptools", "--no-wheel")]
sys.exit(main(["install", "--find-links", here, *arguments]))
'''


def below(folder: str | Path) -> Iterator[Path]:
    """All files and folders below a folder. Other checks work meanwhile: what vanishes is left out, where Path.rglob would fail."""
    for place, folders, files in os.walk(folder):
        yield from (Path(place, name) for name in (*folders, *files))


def cache_home() -> Path:
    """Where things are kept between runs and clones."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "muster"


def local_kubectl(kubeconfig: str | Path) -> str:
    """The kubectl of the local cluster that this kubeconfig is of."""
    (cluster,) = yaml.safe_load(Path(kubeconfig).read_text(encoding="utf-8"))["clusters"]
    return f"/var/lib/muster/{cluster['name']}/bin/kubectl"


def sources() -> list[str]:
    """What git knows or would take: no build outputs, no caches."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


@cache
def tree() -> Path:
    """A copy of the sources at .../ansible_collections/muster/ml, with the collections they need beside it.

    ansible-test refuses a checkout that is only linked to such a place, and lints whatever git does not ignore.
    """
    collections = BUILD / "tree" / "ansible_collections"
    shutil.rmtree(collections, ignore_errors=True)
    ours = collections / "muster" / "ml"
    for name in sources():
        (ours / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, ours / name, follow_symlinks=False)
    for command in (["git", "init", "-q"], ["git", "add", "-A"]):
        subprocess.run(command, cwd=ours, check=True)
    (ours / "tests" / "output" / ".tmp").mkdir(parents=True)
    for neighbour in ("amazon", "ansible", "community", "google", "kubernetes"):
        # ansible-core finds these in site-packages; the sanity tests look beside us only.
        installed = next(
            Path(p) / "ansible_collections" / neighbour for p in sys.path if (Path(p) / "ansible_collections" / neighbour).is_dir()
        )
        (collections / neighbour).symlink_to(installed)
    return ours


@cache
def private_home() -> Path:
    """A home folder for tools that keep state there, ready for ansible-test to make its environments offline."""
    home = cache_home() / "test-home"
    bootstrap = home / ".ansible" / "test" / "cache"
    bootstrap.mkdir(parents=True, exist_ok=True)
    import ansible_test

    source = Path(next(iter(ansible_test.__path__))) / "_internal" / "python_requirements.py"
    found = re.search(r"pip='([\d.]+)'", source.read_text(encoding="utf-8"))
    if not found:
        raise LookupError(f"{source} no longer names the version of pip that ansible-test installs")
    version = found[1]
    if not list(bootstrap.glob(f"pip-{version}-*.whl")):
        subprocess.run([BIN / "pip", "download", "-q", "--no-deps", "--dest", bootstrap, f"pip=={version}"], check=True)
    installer = bootstrap / f"get_pip_{version.replace('.', '_')}.py"
    installer.write_text(PIP_INSTALLER.replace("{version}", version), encoding="utf-8")
    return home


def empty_config() -> Path:
    """What the tools are to read in place of a configuration that this machine or its user may have."""
    path = BUILD / "ansible.cfg"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[defaults]\ninternal_poll_interval = 0.01\n", encoding="utf-8")
    return path


def tool_env() -> dict[str, str]:
    """The environment in which Ansible's tools see our copy, keep their state to themselves and share pip's cache."""
    return {
        "ANSIBLE_COLLECTIONS_PATH": str(BUILD / "tree"),
        "ANSIBLE_CONFIG": str(empty_config()),
        # antsibull-docs copies a collection as git knows it; .venv lies in our own clone, which ignores it: nothing came.
        "GIT_CEILING_DIRECTORIES": str(ROOT),
        "HOME": str(private_home()),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR") or str(cache_home().parent / "pip"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "NO_COLOR": "1",
    }
