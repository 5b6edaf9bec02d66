# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures about the code at a git revision: lines, functions, classes of errors, by package. See scripts/measure."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median

from support.places import ROOT

DOCUMENTATION = {"DOCUMENTATION", "EXAMPLES", "RETURN"}
# What is counted beside Python, by the ending of the name: tasks, variables and templates.
TEXTS = (".yml", ".yaml", ".j2", ".sh")
PLACES = ("plugins/", "roles/", "playbooks/")


@dataclass
class Figures:
    files: int = 0
    lines: list[int] = field(default_factory=list)  # the length of each line of code
    functions: list[int] = field(default_factory=list)  # the lines of code of each function
    error_roots: set[str] = field(default_factory=set)

    def row(self) -> list[str]:
        middle = [str(round(median(numbers))) if numbers else "" for numbers in (self.lines, self.functions)]
        return [str(self.files), str(len(self.lines)), middle[0], str(len(self.functions)), middle[1], ", ".join(sorted(self.error_roots))]


def code_lines(text: str) -> set[int]:
    """The numbers of the lines that hold code: no blank ones, no comments, no documentation."""
    found = {n for n, line in enumerate(text.splitlines(), 1) if line.strip() and not line.lstrip().startswith("#")}
    for node in ast.walk(ast.parse(text)):
        if _is_documentation(node):
            found -= _span(node)
    return found


def _is_documentation(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in DOCUMENTATION for t in node.targets)


def _span(node: ast.AST) -> set[int]:
    first = getattr(node, "lineno", 1)
    return set(range(first, (getattr(node, "end_lineno", None) or first) + 1))


def layer(name: str) -> str:
    """What a file is counted under: a package of module_utils, a kind of plugin, else its top folder."""
    parts = name.split("/")
    if parts[:2] == ["plugins", "module_utils"] and len(parts) > 3:
        return parts[2]
    return "/".join(parts[:2]) if parts[0] in ("plugins", "roles") else parts[0]


def measure(texts: Mapping[str, str]) -> dict[str, Figures]:
    found: dict[str, Figures] = {}
    for name, text in texts.items():
        figures = found.setdefault(layer(name), Figures())
        figures.files += 1
        if name.endswith(".py"):
            _count_python(figures, text)
        else:
            figures.lines += [len(line) for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return found


def _count_python(figures: Figures, text: str) -> None:
    numbers, all_lines = code_lines(text), text.splitlines()
    figures.lines += [len(all_lines[n - 1]) for n in sorted(numbers)]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            figures.functions.append(len(numbers & _span(node)))
        elif isinstance(node, ast.ClassDef) and {ast.unparse(base) for base in node.bases} & {"Exception", "ValueError", "RuntimeError"}:
            figures.error_roots.add(node.name)


def of_revision(revision: str | None) -> dict[str, str]:
    """The texts of a revision, or of the working tree."""
    if revision is None:
        listed = _git("ls-files", "-co", "--exclude-standard").splitlines()
        return {n: (ROOT / n).read_text(encoding="utf-8") for n in listed if _counts(n) and (ROOT / n).is_file()}
    return {n: _git("show", f"{revision}:{n}") for n in _git("ls-tree", "-r", "--name-only", revision).splitlines() if _counts(n)}


def _counts(name: str) -> bool:
    return name.startswith(PLACES) and name.endswith((".py", *TEXTS)) and "/doc_fragments/" not in name


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def table(found: Mapping[str, Figures]) -> Iterator[str]:
    yield "| where | files | lines of code | median line | functions | median function | error roots |"
    yield "|---|---:|---:|---:|---:|---:|---|"
    for name, figures in sorted(found.items()):
        yield f"| `{name}` | {' | '.join(figures.row())} |"
    whole = Figures()
    for figures in found.values():
        whole.files += figures.files
        whole.lines += figures.lines
        whole.functions += figures.functions
        whole.error_roots |= figures.error_roots
    yield f"| all | {' | '.join(whole.row())} |"


def main() -> int:
    revisions: list[str | None] = [*sys.argv[1:]] or [None]
    for revision in revisions:
        print(f"## {revision or 'working tree'}\n")
        print("\n".join(table(measure(of_revision(revision)))), "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
