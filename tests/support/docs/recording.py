# SPDX-License-Identifier: GPL-3.0-or-later
"""A picture of a terminal, made from what `script` recorded in it. See scripts/record."""

import re
import sys
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path

from support.places import ROOT

PICTURE = ROOT / "docs" / "recording.svg"
COLUMNS = 124
CHARACTER, LINE, MARGIN = 7.3, 17, 14
PLAIN = "#c9d1d9"
# By the last number of an escape sequence, as Ansible uses them.
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "35": "#d2a8ff", "36": "#76e3ea"}
ESCAPE = re.compile(r"\x1b\[([\d;]*)m")


def shown(log: str, command: str) -> list[str]:
    """The lines of the terminal, long ones broken as it breaks them; without the names of the folders where it ran."""
    log = re.sub(r"^Script (started|done) .*\n?", "", log.replace("\r", ""), flags=re.MULTILINE)
    log = re.sub(r"/\S*/(inventories/|my-inventory|\.venv/)", r"\1", log)
    log = re.sub(r"(?:/root|/home/\w+)/", "~/", log)
    return [row for line in f"$ {command}\n{log}".rstrip().splitlines() for row in _rows(line)]


def _rows(line: str) -> Iterator[str]:
    """The rows that a line takes. The colour of a row goes on in the next one."""
    row, width, colour = "", 0, ""
    for part in re.split(r"(\x1b\[[\d;]*m)", line):
        if ESCAPE.fullmatch(part):
            row, colour = row + part, part
            continue
        while width + len(part) > COLUMNS:
            yield row + part[: COLUMNS - width]
            part, row, width = part[COLUMNS - width :], colour, 0
        row, width = row + part, width + len(part)
    yield row


def svg(lines: list[str], command: str) -> str:
    width, height = round(COLUMNS * CHARACTER + 2 * MARGIN), len(lines) * LINE + 2 * MARGIN
    rows = [f'<text x="{MARGIN}" y="{MARGIN + LINE * n - 4}" xml:space="preserve">{_spans(line)}</text>' for n, line in enumerate(lines, 1)]
    return "\n".join(
        [
            "<!-- Written by scripts/record in a terminal; do not edit. -->",
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'font-family="ui-monospace, monospace" font-size="12" fill="{PLAIN}">',
            f"<title>What {escape(command)} prints</title>",
            '<rect width="100%" height="100%" rx="8" fill="#0d1117"/>',
            *rows,
            "</svg>\n",
        ]
    )


def _spans(line: str) -> str:
    text, colour = "", ""
    for part in re.split(r"(\x1b\[[\d;]*m)", line):
        if found := ESCAPE.fullmatch(part):
            colour = COLOURS.get(found[1].rpartition(";")[2], "")
        elif part:
            written = escape(part, quote=False)
            text += f'<tspan fill="{colour}">{written}</tspan>' if colour else written
    return text


def in_picture() -> list[str]:
    """The lines that the picture shows."""
    found = re.findall(r"<text[^>]*>(.*)</text>", PICTURE.read_text(encoding="utf-8"))
    return [unescape(re.sub(r"<[^>]*>", "", line)) for line in found]


def main() -> int:
    log, command, name = Path(sys.argv[1]).read_text(encoding="utf-8"), *sys.argv[2:4]
    PICTURE.with_name(f"{name}.svg").write_text(svg(shown(log, command), command), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
