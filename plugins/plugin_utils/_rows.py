# SPDX-License-Identifier: GPL-3.0-or-later
"""Readers for callback plugins of the result of a task, whose keys belong to the module that returned it."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping


def rows(value: object) -> list[Mapping[str, t.Any]]:
    """The dictionaries in a list; none if the value is no list. A module may return anything under any key."""
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def parts(result: Mapping[str, t.Any]) -> list[Mapping[str, t.Any]]:
    """The results of the items of a loop, else the result itself.

    Ansible puts the items of a loop under ``results``, and modules without a loop return that key, too: ansible.builtin.dnf lists strings.
    """
    return rows(result.get("results")) or [result]
