# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lines of a file of Python are code."""

import ast

DOCUMENTATION = {"DOCUMENTATION", "EXAMPLES", "RETURN"}


def code_lines(text: str) -> set[int]:
    """The numbers of the lines that hold code: no blank ones, no comments, no documentation."""
    found = {n for n, line in enumerate(text.splitlines(), 1) if line.strip() and not line.lstrip().startswith("#")}
    for node in ast.walk(ast.parse(text)):
        if is_documentation(node):
            found -= lines_of(node)
    return found


def is_documentation(node: ast.AST) -> bool:
    """A string on its own, or one of the blocks that ansible-doc reads."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in DOCUMENTATION for t in node.targets)


def lines_of(node: ast.AST) -> set[int]:
    first = getattr(node, "lineno", 1)
    return set(range(first, (getattr(node, "end_lineno", None) or first) + 1))
