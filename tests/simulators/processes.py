# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of ansible-playbook: what one counted, the end of one that is killed, and what ends with one."""

import os
import re
import select
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path


def recap(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    line = [line for line in done.stdout.splitlines() if " failed=" in line][-1]
    return {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", line)}


def kill_all(pid: int) -> None:
    """End a process and everything that it has started; Ansible's workers have sessions of their own."""
    for one in family(pid):
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    return [pid, *(one for child in children for one in family(int(child)))]


def end_with(pid: int) -> None:
    """End this process, as Ctrl-C would, as soon as that one has ended."""
    watched = select.poll()
    watched.register(os.pidfd_open(pid), select.POLLIN)

    def wait() -> None:
        watched.poll()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()
