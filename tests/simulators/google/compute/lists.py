# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading: one resource, those of a place, those of all places."""

from .. import catalogue, operations
from ..api import Asked, handles
from ..discovery import Body
from ..state import project
from .filters import chosen
from .resources import KINDS, bare, collection, find, link, set_labels, shelf_of, where

MOST = 500


def _get(asked: Asked) -> Body:
    """Whoever reads it looks at what is being done to it, too."""
    thing = find(asked)
    operations.look_at(bare(thing.body["selfLink"]))
    return find(asked).body


def page(asked: Asked, rows: list[Body], kind: str) -> Body:
    """In pages of 500 at most; without anything in it, `items` is not there at all."""
    rows = chosen(rows, str(asked.params.get("filter", "")))
    size = min(int(asked.params.get("maxResults") or MOST), MOST)
    first = int(asked.params.get("pageToken") or 0)
    path = asked.path.split("/v1/", 1)[-1]
    answer: Body = {"kind": f"compute#{kind}List", "id": path, "selfLink": link(path)}
    if rows:
        answer["items"] = rows[first : first + size]
    if first + size < len(rows):
        answer["nextPageToken"] = str(first + size)
    return answer


def _list(asked: Asked) -> Body:
    kind = collection(asked)
    start = f"projects/{asked.params['project']}/{where(asked)}/"
    shelf = project(str(asked.params["project"])).shelf(shelf_of(kind))
    return page(asked, [thing.body for key, thing in shelf.items() if key.startswith(start)], KINDS[kind][0])


def _aggregated(asked: Asked) -> Body:
    """By place; a place without any carries a warning instead, as the real one does for each."""
    word, folder, scope = KINDS[collection(asked)]
    found = project(str(asked.params["project"]))
    places = [f"regions/{r}" for r in catalogue.regions()] if scope == "regions" else [f"zones/{z}" for z in catalogue.zones()]
    items: Body = {}
    for place in [*places, "global"]:
        rows = [t.body for key, t in found.shelf(folder).items() if key.startswith(f"projects/{found.id}/{place}/")]
        rows = chosen(rows, str(asked.params.get("filter", "")))
        none = {
            "code": "NO_RESULTS_ON_PAGE", "message": f"There are no results for scope '{place}' on this page.",
            "data": [{"key": "scope", "value": place}],
        }  # fmt: skip
        if rows or place != "global":
            items[place] = {folder: rows} if rows else {"warning": none}
    path = asked.path.split("/v1/", 1)[-1]
    return {"kind": f"compute#{word}AggregatedList", "id": path, "items": items, "selfLink": link(path)}


for _kind, (_word, _folder, _scope) in KINDS.items():
    handles(f"compute.{_kind}.get")(_get)
    handles(f"compute.{_kind}.list")(_list)
    if _scope != "global":
        handles(f"compute.{_kind}.aggregatedList")(_aggregated)
for _kind in ("addresses", "globalAddresses", "instances", "disks", "forwardingRules"):
    handles(f"compute.{_kind}.setLabels")(set_labels)
