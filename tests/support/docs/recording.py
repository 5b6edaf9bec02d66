# SPDX-License-Identifier: GPL-3.0-or-later
"""A picture of what a run printed, made from its log. See scripts/record."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path

from support.places import ROOT

PICTURE = ROOT / "docs" / "recording.svg"
COLUMNS = 124
CHARACTER, LINE, MARGIN = 7.3, 17, 14
STATUS = re.compile(r"^(ok|changed|fatal|failed|skipping): \[")
COLOURS = {"$": "#7ee787", "PLAY": "#ffffff", "changed": "#e3b341", "ok": "#7d8590", "muster": "#7ee787", "localhost": "#7ee787"}
NAME = "make run"
INDENT = " " * 11


def told(log: str, command: str = NAME) -> list[str]:
    """The log without what says nothing: rulers, empty lines, plays without a task; tasks that changed nothing are counted."""
    lines, unchanged = [f"$ {command}"], 0
    for line in _steps(log):
        if line.startswith("ok  "):
            unchanged += 1
            continue
        if unchanged:
            lines.append(f"ok       {unchanged} {'task' if unchanged == 1 else 'tasks'} with nothing to change")
            unchanged = 0
        if line.startswith("PLAY") and lines[-1].startswith("PLAY"):
            lines.pop()
        lines.append(re.sub(r"^ok: (?=\d)", "ok       ", line))
    return [_short(line) for line in lines]


def _steps(log: str) -> Iterator[str]:
    """Each play and each task's end on a line. What a task printed on its way comes before it, its message after it."""
    task, status = "", ""
    before: list[str] = []
    after: list[str] = []
    for line in [*_impersonal(log).splitlines(), "PLAY [end]"]:
        bare = re.sub(r"\s*\*{3,}$", "", line).rstrip()
        if found := re.match(r"(TASK|PLAY|RUNNING HANDLER) ?\[?(.*?)\]?$", bare):
            yield from (*_last_of_each(before), *([f"{status:8} {task}"] if status else []), *_last_of_each(after))
            before, after, status, task = [], [], "", found[2]
            if found[1] == "PLAY" and task != "end":
                yield f"PLAY {task}"
        elif found := STATUS.match(bare):
            before, after = [*before, *after], []
            status = "changed" if "changed" in (status, found[1]) else found[1]
        elif bare and not bare.startswith("included: ") and bare.strip() != "msg:":
            after.append(bare if not bare.startswith("    ") else INDENT + bare.strip().removeprefix("- ").strip("'"))


def _last_of_each(lines: list[str]) -> list[str]:
    """Of the lines in which one wait says how far it is, the first and the last, without the name of its task."""
    kept: list[str] = []
    for line in lines:
        wait = line.strip().partition(": ")[0]
        if not line.endswith(" s)"):
            kept.append(line)
        elif [other.strip().partition(": ")[0] for other in kept[-2:]] == [wait, wait]:
            kept[-1] = line
        else:
            kept.append(line)
    return [INDENT + line.strip().partition(": ")[2] if line.endswith(" s)") else line for line in kept]


def _impersonal(log: str) -> str:
    """Without the folders of whoever ran it."""
    log = re.sub(r"/\S*/inventories/", "inventories/", log)
    return re.sub(r"(?:/root|/home/\w+)/", "~/", log)


def _short(line: str) -> str:
    return line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…"


def svg(lines: list[str], command: str = NAME) -> str:
    width, height = round(COLUMNS * CHARACTER + 2 * MARGIN), len(lines) * LINE + 2 * MARGIN
    rows = [
        f'<text x="{MARGIN}" y="{MARGIN + LINE * n - 4}" fill="{_colour(line)}" xml:space="preserve">{escape(line, quote=False)}</text>'
        for n, line in enumerate(lines, 1)
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    about = f'<title>What {command} prints</title><rect width="100%" height="100%" rx="8" fill="#0d1117"/>'
    note = "<!-- Written by scripts/record from the log of a run; do not edit. -->\n"
    return f'{note}{head} font-family="ui-monospace, monospace" font-size="12">{about}{"".join(rows)}</svg>\n'


def _colour(line: str) -> str:
    word = line.split(" ", 1)[0].rstrip(":")
    return COLOURS.get(word, "#c9d1d9")


def in_picture() -> list[str]:
    """The lines that the picture shows."""
    return [unescape(m[1]) for m in re.finditer(r">([^<]*)</text>", PICTURE.read_text(encoding="utf-8"))]


def main() -> int:
    log, *rest = sys.argv[1:]
    command = rest[0] if rest else NAME
    picture = PICTURE.with_name(f"{rest[1]}.svg") if rest[1:] else PICTURE
    picture.write_text(svg(told(Path(log).read_text(encoding="utf-8"), command), command), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
