# SPDX-License-Identifier: GPL-3.0-or-later
"""Partial responses: `fields=items(name,id),nextPageToken` gives no more than that
(developers.google.com/drive/api/guides/fields-parameter)."""

import re
from typing import Any

Tree = dict[str, Any]


def only(body: Any, fields: str) -> Any:
    if not fields or fields == "*":
        return body
    tokens = re.findall(r"[^,()/]+|[,()/]", fields)
    tree, _rest = _parse(tokens)
    return _keep(body, tree)


def _parse(tokens: list[str]) -> tuple[Tree, list[str]]:
    tree: Tree = {}
    while tokens and tokens[0] != ")":
        if tokens[0] == ",":
            tokens = tokens[1:]
            continue
        at, name, tokens = tree, tokens[0], tokens[1:]
        while tokens and tokens[0] == "/":
            at, name, tokens = at.setdefault(name, {}), tokens[1], tokens[2:]
        inner: Tree = {}
        if tokens and tokens[0] == "(":
            inner, tokens = _parse(tokens[1:])
            tokens = tokens[1:]
        at.setdefault(name, {}).update(inner)
    return tree, tokens


def _keep(body: Any, tree: Tree) -> Any:
    if not tree or "*" in tree:
        return body
    if isinstance(body, list):
        return [_keep(item, tree) for item in body]
    if not isinstance(body, dict):
        return body
    return {name: _keep(body[name], inner) for name, inner in tree.items() if name in body}
