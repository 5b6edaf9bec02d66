# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans that people review: what a task would do, as rows, and whether rows of a later run are among them.

The rows come from the result that a module returns in check mode with a diff, so that plan and run are judged by one text.
"""

from __future__ import annotations

import json
import re
import typing as t
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ansible_collections.muster.ml.plugins.module_utils._core.errors import NEW_PLAN, InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import SECRET, Ref, group_kind
from ansible_collections.muster.ml.plugins.module_utils._kube.order import DATA_KINDS
from ansible_collections.muster.ml.plugins.module_utils._kube.report import LONGEST_OF_ONE, in_brief

Row = dict[str, t.Any]
Result = Mapping[str, t.Any]

ACTIONS: t.Final = ("delete", "recreate", "change", "create", "do", "keep")
"""The actions in the order of a plan. ``do``: a task without objects or a resource of a cloud; ``keep``: what is not deleted."""
_VERBS: t.Final = {"created": "create", "updated": "change", "recreated": "recreate", "deleted": "delete", "kept": "keep"}
_COVERED: t.Final = {
    "create": {"create", "recreate"},
    "change": {"change", "create", "recreate"},  # an earlier task of the run may have made it
    "recreate": {"recreate"},
    "delete": {"delete"},
    "do": {"do"},
}
"""The actions of a plan that allow an action of a run."""
_MARKS: t.Final = re.compile(r" \((absent|created again)\)$")
_SECRET: t.Final = re.compile(r"<redacted[^>]*>")
GENERATED: t.Final = "<generated>"
_NAMED: t.Final = 3
_NOTHING: t.Final = object()


def rows_of(result: Result, *, where: str, task: str, data: bool, hidden: bool = False) -> list[Row]:
    """The rows of what a module would do, by its result in check mode with a diff.

    WHERE is the cluster, account or host. DATA: whether the task may delete data. HIDDEN: the task shows no values.
    """
    found = list(_rows(result, task, data=data))
    for row in found:
        row["where"] = where
        if hidden:
            row["fields"] = [{key: value if key == "path" else "<redacted>" for key, value in one.items()} for one in row["fields"]]
    return found


def _rows(result: Result, task: str, *, data: bool) -> Iterator[Row]:
    given = result.get("diff") or []
    diffs = list(given) if isinstance(given, list) else [given]
    objects = [one for one in result.get("objects") or [] if isinstance(one, Mapping) and one.get("action") in _VERBS]
    for one in objects:
        place = "/".join(filter(None, (one.get("namespace"), str(one.get("name")))))
        what, action = f"{one.get('kind')} {place}", _VERBS[one["action"]]
        mine: Result = next((diff for diff in diffs if _header(diff)[0] == what), {}) if action != "keep" else {}
        diffs = [diff for diff in diffs if diff is not mine]
        shown = next((state for key in ("before", "after") if isinstance(state := mine.get(key), Mapping) and "apiVersion" in state), None)
        risk = (
            action in ("delete", "recreate") and shown is not None and group_kind(shown) in (DATA_KINDS | {SECRET} if data else DATA_KINDS)
        )
        group = {} if shown is None else {"group": group_kind(shown)[0]}
        yield {**_row(what, action, mine, risk, one.get("reason", "")), **group}
    if result.get("kept"):
        kept = result["kept"]
        yield _row(task, "keep", {}, False, kept if isinstance(kept, str) else "; ".join(map(str, kept)))
    diffs = [diff for diff in diffs if diff.get("before") != diff.get("after")]
    if result.get("changed") and (diffs or result.get("actions") or not any(one["action"] != "kept" for one in objects)):
        for diff in diffs or [{}]:
            what, action = _header(diff)
            risk = data and action in ("delete", "recreate")
            yield _row(what or task, action, diff, risk, "; ".join(map(str, result.get("actions") or [])))


def _header(diff: Result) -> tuple[str, str]:
    """Return the subject of a diff and the action, by its headers."""
    before, after = str(diff.get("before_header", "")), str(diff.get("after_header", ""))
    marks = [mark[1] if (mark := _MARKS.search(text)) else "" for text in (before, after)]
    action = "create" if marks[0] else {"absent": "delete", "created again": "recreate", "": "change" if before else "do"}[marks[1]]
    return _MARKS.sub("", before or after), action


def _row(what: str, action: str, diff: Result, data: bool, reason: str) -> Row:
    fields = [] if action == "delete" else list(_changes(diff.get("before") or {}, diff.get("after") or {}, ""))
    row: Row = {"what": what, "action": action, "data": data, "fields": fields}
    return {**row, "reason": reason} if reason else row


def _changes(before: t.Any, after: t.Any, path: str) -> Iterator[Row]:
    """The fields that differ, each with its values; a value that is not there is left out."""
    nested = next((kind for kind in (dict, list) if any(isinstance(one, kind) and one for one in (before, after))), None)
    if nested and all(one is _NOTHING or isinstance(one, nested) for one in (before, after)):
        pairs = [dict(enumerate(one)) if isinstance(one, list) else {} if one is _NOTHING else one for one in (before, after)]
        for key in sorted({**pairs[0], **pairs[1]}, key=lambda key: (isinstance(key, str), key)):
            below = f"{path}[{key}]" if nested is list or "." in str(key) else f"{path}.{key}" if path else str(key)
            yield from _changes(pairs[0].get(key, _NOTHING), pairs[1].get(key, _NOTHING), below)
    elif before != after:
        values = {"before": before, "after": after}
        yield {"path": path, **{key: _plain(value) for key, value in values.items() if value is not _NOTHING}}


def _plain(value: t.Any) -> t.Any:
    return in_brief(json.loads(json.dumps(value, default=str)), LONGEST_OF_ONE)


def with_generated(rows: list[Row], again: list[Row]) -> list[Row]:
    """The rows with a mark for each value that is another when the same task is asked AGAIN, such as a new key or certificate."""
    for row, other in zip(rows, again, strict=False):
        there = {field["path"]: _value(field, "after") for field in other["fields"]}
        for field in row["fields"]:
            if there.get(field["path"]) != _value(field, "after"):
                field["after"] = GENERATED
    return rows


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Rows in the order of a plan, data at risk first, each once."""
    unique = {json.dumps(row, sort_keys=True): row for row in rows}
    return sorted(
        unique.values(), key=lambda row: (not row["data"], ACTIONS.index(row["action"]), row["where"], row["what"], str(row["fields"]))
    )


class Limit:
    """The rows of a plan: the most that a run may do."""

    def __init__(self, rows: Iterable[Row], name: str) -> None:
        self._name = name
        self._rows: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            self._rows.setdefault((row["where"], row["what"]), []).append(row)

    def refuse(self, rows: Iterable[Row]) -> None:
        """Raise InvalidInput if one of these is not in the plan."""
        wrong = [text for row in rows if row["action"] != "keep" and (text := self._missing(row))]
        if wrong:
            more = f"; and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
            raise self.error("; ".join(wrong[:_NAMED]) + more)

    def permit(self, where: str, ref: Ref, *, deletes: bool) -> None:
        """Raise InvalidInput if the plan does not name this object, or, with DELETES, does not delete it. Asked before each request."""
        planned = {row["action"] for row in self._rows.get((where, str(ref)), ()) if row.get("group", ref.group) == ref.group}
        if not (planned & {"delete", "recreate"} if deletes else planned):
            raise self.error(f"to {'delete' if deletes else 'write'} {ref}, of which it says {' and '.join(sorted(planned)) or 'nothing'}")

    def error(self, text: str) -> InvalidInput:
        """The refusal of what TEXT says."""
        return InvalidInput(
            f"The plan {self._name} does not have what this task would do: {text}.",
            hint=f"Nothing of it was done. {NEW_PLAN}, and read it again.",
        )

    def _missing(self, row: Row) -> str:
        """Return the part of a row that the plan lacks, as a clause; empty if it has all of it."""
        same = self._rows.get((row["where"], row["what"]), [])
        planned = [one for one in same if one.get("group") == row.get("group") or None in (one.get("group"), row.get("group"))]
        fitting = [one for one in planned if one["action"] in _COVERED[row["action"]]]
        told = f"{row['action']} {row['what']}"
        if not fitting:
            others = sorted({one["action"] for one in planned})
            return f"{told} (the plan says {' and '.join(others)})" if others else told
        known: dict[str, list[Row]] = {}
        for field in (field for one in fitting for field in one["fields"]):
            known.setdefault(field["path"], []).append(field)
        for field in row["fields"] if row["action"] != "delete" else ():
            in_plan = known.get(field["path"], [])
            if not _covers(in_plan, field):
                said = " or ".join(map(_told, in_plan)) if in_plan else "nothing of it"
                return f"{told}, {field['path']} {_told(field)} (the plan says {said})"
        return ""


def _covers(planned: Sequence[Row], field: Row) -> bool:
    """Whether the plan leads to this value, from the value of the plan or from one that the plan itself would have set."""
    afters = [_value(one, "after") for one in planned]
    if json.dumps(GENERATED) in afters:
        return True
    return _value(field, "after") in afters and _value(field, "before") in [*afters, *(_value(one, "before") for one in planned)]


def _value(field: Row, key: str) -> str:
    """A value for comparison. Fingerprints of secrets are of one run only: that the field changes is compared, not to what."""
    return _SECRET.sub("<redacted>", json.dumps(field[key], sort_keys=True)) if key in field else ""


def _told(field: Row) -> str:
    return " to ".join(json.dumps(field[key]) if key in field else "nothing" for key in ("before", "after"))
