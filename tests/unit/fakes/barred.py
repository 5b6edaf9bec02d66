# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine on which a module can change nothing: one folder is writable, and there are no programs, processes or network.

Python reports each of these operations to audit hooks (PEP 578), whatever function starts them; an exception of the hook becomes the
result of the operation.
"""

import contextlib
import errno
import os
import socket
import sys
import time
import typing as t
from pathlib import Path

import pytest

_CHANGED_PATH: t.Final = {
    "os.chmod": 0, "os.chown": 0, "os.link": 1, "os.mkdir": 0, "os.mkfifo": 0, "os.remove": 0, "os.rename": 1, "os.rmdir": 0,
    "os.setxattr": 0, "os.symlink": 1, "os.truncate": 0, "os.utime": 0, "shutil.rmtree": 0,
}  # fmt: skip
"""The argument of each event that is the path of what changes."""
_PROGRAMS: t.Final = ("os.exec", "os.posix_spawn", "os.system", "subprocess.Popen", "os.startfile", "pty.spawn")
_PROCESSES: t.Final = ("os.fork", "os.forkpty", "os.kill", "os.killpg", "os.setns", "os.unshare")
_WRITES: t.Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_open_folders: list[Path] = []
_open_ports: list[int] = []


def _path(given: t.Any) -> Path:
    return Path(os.path.realpath(os.fsdecode(given)))


def _deny_write(given: t.Any) -> None:
    if isinstance(given, int) or given is None or os.fsdecode(given) == os.devnull:
        return
    path = _path(given)
    if not any(path.is_relative_to(folder) for folder in _open_folders):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))


def _hook(event: str, args: tuple[t.Any, ...]) -> None:
    if not _open_folders:
        return
    if event == "open":
        if isinstance(args[2], int) and args[2] & _WRITES:
            _deny_write(args[0])
    elif event in _CHANGED_PATH:
        _deny_write(args[_CHANGED_PATH[event]])
    elif event in _PROGRAMS:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(args[0]))
    elif event in _PROCESSES:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
    elif event == "socket.getaddrinfo" and not str(args[0]).startswith("127."):
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
    elif event == "socket.connect" and args[1] not in [("127.0.0.1", port) for port in _open_ports]:
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


_installed: list[bool] = []


@contextlib.contextmanager
def barred(folder: Path, *ports: int) -> t.Iterator[None]:
    """Until the end of the with block only FOLDER can be written, only PORTS of this machine answer, and time passes only in waits."""
    if not _installed:
        sys.addaudithook(_hook)
        _installed.append(True)
    slept = [0.0]
    monotonic = time.monotonic

    def sleep(seconds: float) -> None:
        slept[0] += max(seconds, 0.001)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", sleep)
        patch.setattr(time, "monotonic", lambda: monotonic() + slept[0])
        patch.chdir(folder)
        patch.setenv("HOME", str(folder))
        patch.setenv("TMPDIR", str(folder))
        _open_folders.append(folder.resolve())
        _open_ports.extend(ports)
        try:
            yield
        finally:
            _open_folders.clear()
            _open_ports.clear()
