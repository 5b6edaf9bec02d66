# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of the documentation, and what is on them: fences, sentences, code in a line, links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.places import ROOT, sources

REFERENCE = "docs/reference/"
CODE = re.compile(r"(`+)(.+?)\1")
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")


@dataclass(frozen=True)
class Fence:
    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Page:
    name: str  # of its file, from the root of the repository
    text: str

    @property
    def generated(self) -> bool:
        return self.name.startswith(REFERENCE)

    def fences(self) -> list[Fence]:
        return list(_fences(self.name, self.text))

    def prose(self) -> list[str]:
        """The lines outside of fences and comments; those inside are empty, so that line numbers stay right."""
        text = re.sub(r"<!--.*?-->", lambda m: "\n" * m[0].count("\n"), self.text, flags=re.DOTALL)
        lines, inside = [], False
        for line in text.splitlines():
            mark = line.lstrip().startswith("```")
            lines.append("" if inside or mark else line)
            inside ^= mark
        return lines

    def code(self) -> list[tuple[int, str]]:
        """What stands in backticks, with its line."""
        return [(n, m[2]) for n, line in enumerate(self.prose(), 1) for m in CODE.finditer(line)]

    def links(self) -> list[tuple[int, str]]:
        return [(n, m[1]) for n, line in enumerate(self.prose(), 1) for m in LINK.finditer(line)]

    def anchors(self) -> set[str]:
        """The names that GitHub gives to the headings."""
        heads = [line.lstrip("#").strip() for line in self.prose() if line.startswith("#")]
        return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}

    def sentences(self) -> Iterator[tuple[str, str]]:
        """Each sentence and each cell of a table, as it stands and reduced to its words."""
        blocks = re.split(r"\n\s*\n|\n(?=\s*[-*|#]|\s*\d+\. )", "\n".join(self.prose()))
        for block in blocks:
            cells = block.split("|") if block.lstrip().startswith("|") else [block]
            for sentence in (s for cell in cells for s in re.split(r"(?<=[.!?:;])\s+", cell)):
                yield sentence.strip(), " ".join(re.findall(r"[\w'/.<>-]*\w", sentence.lower()))


def _fences(page: str, text: str) -> Iterator[Fence]:
    for found in re.finditer(r"^( *)```(\w*)\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL):
        body = re.sub(rf"^{found[1]}", "", found[3], flags=re.MULTILINE)
        yield Fence(page, text[: found.start()].count("\n") + 1, found[2], body)


def pages(root: Path = ROOT) -> list[Page]:
    """All pages but the changelog, which tells what was true when it was written."""
    names = [n for n in sources() if n.endswith(".md") and n != "CHANGELOG.md" and not n.startswith("LICENSES/")]
    return [Page(name, (root / name).read_text(encoding="utf-8")) for name in sorted(names)]


def between(text: str, name: str) -> str:
    """What stands between the marks of a generated part."""
    begin, end = marks(name)
    return text.split(begin, 1)[1].split(end, 1)[0].strip()


def replace_between(text: str, name: str, part: str) -> str:
    begin, end = marks(name)
    before, rest = text.split(begin, 1)
    return f"{before}{begin}\n{part}\n{end}{rest.split(end, 1)[1]}"


def marks(name: str) -> tuple[str, str]:
    return f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
