# SPDX-License-Identifier: GPL-3.0-or-later
"""Two API servers, and a folder as somebody has who installed the collection: an inventory, an ansible.cfg and files of their own."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.places import BIN, ROOT

from inventories.server import Server

# What leads to other clusters and settings. The pack of modules that other collections have may be kept (support/static.py).
FOREIGN = re.compile(r"ANSIBLE_(?!CALLBACK_PLUGINS$)|K8S_|KUBE|MUSTER_")
# What most people set for all of their machines, and what would hurt us.
THEIR_CONFIG = """\
[defaults]
roles_path = roles
gathering = smart
forks = 5
host_key_checking = False
nocows = True
inject_facts_as_vars = False
any_errors_fatal = False
"""
# In place of ssh: the rest of the command line runs here, as sshd would run it.
SSH = """\
#!/bin/sh
echo "$*" >>{log}
for word; do :; done
PATH={bin}:$PATH exec sh -c "$word"
"""
SUDO = """\
#!/bin/sh
echo "sudo $*" >>{log}
while [ "${{1#-}}" != "$1" ]; do
    case $1 in -u | -p) shift 2 ;; *) shift ;; esac
done
exec "$@"
"""


class Theirs:
    """A folder with an inventory, from which playbooks of the installed collection are run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output = ""
        self.environment: dict[str, str] = {}
        (folder / "ansible.cfg").write_text(THEIR_CONFIG)
        (folder / "roles" / "persia" / "tasks").mkdir(parents=True)
        (folder / "roles" / "persia" / "tasks" / "main.yml").write_text("[{ansible.builtin.fail: {msg: theirs}}]")
        self.program("ssh", SSH)
        self.program("sudo", SUDO)

    def program(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.format(log=self.folder / f"{name}.log", bin=path.parent))
        path.chmod(0o755)

    def write(self, name: str, content: Any) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    def log(self, program: str) -> str:
        path = self.folder / f"{program}.log"
        return path.read_text() if path.exists() else ""

    def play(self, playbook: str, *options: str, **settings: Any) -> int:
        """Run a playbook; its exit status."""
        self.output = ""
        done = subprocess.run(
            [BIN / "ansible-playbook", "-i", "inventory", playbook, *options, *(["-e", json.dumps(settings)] if settings else [])],
            cwd=self.folder,
            env={
                **{name: os.environ[name] for name in os.environ if not FOREIGN.match(name)},
                "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
                # Also where the tests are run by root.
                "ANSIBLE_BECOME_ALLOW_SAME_USER": "true",
                "ANSIBLE_CALLBACKS_ENABLED": "muster.ml.summary",
                "ANSIBLE_CONFIG": str(self.folder / "ansible.cfg"),
                "ANSIBLE_LOCAL_TEMP": str(self.folder / "tmp"),
                "ANSIBLE_SSH_EXECUTABLE": str(self.folder / "bin" / "ssh"),
                "HOME": str(self.folder),
                "NO_COLOR": "1",
                "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
                **self.environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        self.output = done.stdout + done.stderr
        return done.returncode

    @property
    def told(self) -> str:
        """The output without its line breaks, which depend on the length of a message."""
        return " ".join(self.output.split())

    def recap(self) -> dict[str, dict[str, int]]:
        """The counts of each host."""
        lines = re.findall(r"^(\S+) +: (ok=.*)$", self.output, re.MULTILINE)
        return {name: {key: int(n) for key, n in re.findall(r"(\w+)=(\d+)", counts)} for name, counts in lines}

    def summaries(self) -> dict[str, dict[str, Any]]:
        found = sorted((self.folder / "build" / "run").glob("*.json"))
        return {path.stem.removeprefix("summary").removeprefix("-"): json.loads(path.read_text()) for path in found}


@pytest.fixture
def theirs(tmp_path: Path) -> Theirs:
    return Theirs(tmp_path)


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    pair = Server("one"), Server("two")
    yield pair
    for server in pair:
        server.stop()
