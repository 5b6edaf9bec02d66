# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command and write what it used, as JSON: measured.py ACCOUNT LOG COMMAND...

A process of its own because the kernel counts the memory of whoever forks to the child's peak, and this one is small.
"""

import json
import os
import sys
import time

NOTABLE_S = 0.1  # what worked less, for itself or for the command, is not told by name


def machine_cpu_s() -> float:
    """Seconds that all processors of this machine worked since it started, whoever for."""
    with open("/proc/stat", encoding="ascii") as stream:  # noqa: PTH123  (as below)
        user, nice, system, _idle, _iowait, irq, softirq = (int(field) for field in stream.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def cpu_s_by_process() -> dict[tuple[str, str], float]:
    """Seconds that every process that lives now has worked, by its id and its program's name."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208  (as below)
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:  # noqa: PTH123
                before, _bracket, after = stream.read().rpartition(")")
        except OSError:  # it has just ended
            continue
        user, system = after.split()[11:13]
        found[pid, before.partition("(")[2].partition("/")[0]] = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return found


def main() -> None:
    """Fork, run, wait, write the account."""
    account, log, *command = sys.argv[1:]
    others = cpu_s_by_process()
    worked, started = machine_cpu_s(), time.monotonic()
    pid = os.fork()
    if not pid:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        os.execvp(command[0], command)  # noqa: S606  (the command is the bench's own)
    # wait4 gives this process's own account, its waited-for children included
    _pid, status, used = os.wait4(pid, 0)
    wall_s, machine_s = time.monotonic() - started, machine_cpu_s() - worked
    by_program: dict[str, float] = {}
    for (other, program), seconds in cpu_s_by_process().items():
        by_program[program] = by_program.get(program, 0.0) + seconds - others.get((other, program), 0.0)
    found = {
        "status": os.waitstatus_to_exitcode(status),
        "wall_s": wall_s,
        "cpu_s": used.ru_utime + used.ru_stime,
        "machine_cpu_s": machine_s,
        "others_cpu_s": {program: seconds for program, seconds in by_program.items() if seconds >= NOTABLE_S},
        "rss_mib": used.ru_maxrss / 1024,
    }
    with open(account, "w", encoding="utf-8") as stream:  # noqa: PTH123  (pathlib alone would double the memory)
        json.dump(found, stream)


if __name__ == "__main__":
    main()
