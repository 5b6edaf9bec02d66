# SPDX-License-Identifier: GPL-3.0-or-later
"""Run ansible-lint with one syntax check of all playbooks and roles together; it starts ansible-playbook for each (26.10.1, runner.py).

When the common one fails, ansible-lint checks one by one as it always does, and reports the file and the line.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import yaml
from ansiblelint.__main__ import main
from ansiblelint.file_utils import Lintable
from ansiblelint.runner import Runner

one_by_one = Runner._map_syntax_check_workers


def syntax_check(runner: Runner, worker: Any, files: list[Lintable]) -> list[Any]:
    playbooks = [str(file.path) for file in files if file.kind == "playbook"]
    roles = [{"ansible.builtin.import_role": {"name": str(file.path.absolute())}} for file in files if file.kind == "role"]
    with tempfile.TemporaryDirectory() as folder:
        of_roles = Path(folder) / "roles.yml"
        of_roles.write_text(yaml.safe_dump([{"hosts": "localhost", "tasks": roles}]), encoding="utf-8")
        done = subprocess.run(["ansible-playbook", "--syntax-check", of_roles, *playbooks], stdout=subprocess.DEVNULL, check=False)
    return [] if done.returncode == 0 else one_by_one(runner, worker, files)


if __name__ == "__main__":
    with mock.patch.object(Runner, "_map_syntax_check_workers", syntax_check):
        sys.exit(main())
