# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a training script of PERSIA and leave with the status that the script itself ended with: program.py [ARGUMENT ...]

MUSTER_ENTRY names the script. It runs as ``python3 SCRIPT ARGUMENT ...`` would run it: as module ``__main__``, with its own folder first
on sys.path. Only the end differs. Threads of persia_core still run when the interpreter is torn down; one that calls back into Python
then makes the process abort (``terminate called without an active exception``, SIGABRT), although the training has ended: seen with
persia 0.1.dev251 and the example adult-income of its repository. This program does what Python does before that point (it waits for
threads that are no daemons, calls the functions of atexit, flushes the output) and then ends the process by os._exit.

Python 3.7 and its standard library are enough: PERSIA's wheels are made for 3.7 to 3.9.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import types
import typing as t
from pathlib import Path

ENTRY = "MUSTER_ENTRY"
# The variables by which persia-launcher takes the same path; a script may read its own.
_LAUNCHER_ENTRIES = ("PERSIA_NN_WORKER_ENTRY", "PERSIA_DATALOADER_ENTRY")
INTERRUPTED = 130


def status_of(code: object) -> int:
    """Return the exit status that Python gives to SystemExit(CODE); what is no number is printed, as Python does."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    sys.stderr.write(f"{code}\n")
    return 1


def report(entry: str) -> int:
    """Print the traceback of the current exception from the script's first frame on; return the exit status 1."""
    kind, error, trace = sys.exc_info()
    first = trace
    while first is not None and first.tb_frame.f_code.co_filename != entry:
        first = first.tb_next
    if kind is not None and error is not None:
        sys.excepthook(kind, error.with_traceback(first), first)
    return 1


def run(entry: str) -> int:
    """Run the script as the module ``__main__``, which stays in its place as long as the process lives; return the exit status."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=entry, __builtins__=__builtins__, __spec__=None)
    try:
        code = compile(Path(entry).read_bytes(), entry, "exec", dont_inherit=True)
        sys.modules["__main__"] = main
        exec(code, main.__dict__)  # noqa: S102  # the user's own program
    except SystemExit as ended:
        return status_of(ended.code)
    except KeyboardInterrupt:
        report(entry)
        return INTERRUPTED
    except BaseException:  # noqa: BLE001  # whatever a script raises is its failure
        return report(entry)
    return 0


def finish() -> None:
    """Do what Python does at its end before it tears the interpreter down; what fails there is printed and changes no status."""
    with contextlib.suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # a script may have closed or removed it
            stream.flush()


def main() -> t.NoReturn:
    """Run the script that the environment names."""
    entry = os.environ[ENTRY]
    # With the operator, persia-launcher's own variable names this program.
    os.environ.update({name: entry for name in _LAUNCHER_ENTRIES if os.environ.get(name) == str(Path(__file__).absolute())})
    sys.argv = [entry, *sys.argv[1:]]
    sys.path[0] = str(Path(entry).resolve().parent)
    status = run(entry)
    finish()
    os._exit(status)


if __name__ == "__main__":
    main()
