# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations of compute: global, of a region, of a zone. Errors are `error.errors[]` of code and message (Operation in the discovery
document)."""

from collections.abc import Callable

from ..api import Asked, Refused, handles
from ..discovery import Body
from ..operations import OPERATIONS, Failed, Operation, begin
from ..state import Thing, digest, long_id, now, number

ROOT = "https://www.googleapis.com/compute/v1/"
WORDS = {400: "BAD REQUEST", 403: "FORBIDDEN", 404: "NOT FOUND", 503: "SERVICE UNAVAILABLE"}


def _ends(body: Body, failed: Failed | None) -> None:
    body["status"], body["progress"] = "DONE", 100
    if failed:
        body["error"] = {"errors": [{"code": failed.code, "message": str(failed)}]}
        body["httpErrorStatusCode"] = failed.status
        body["httpErrorMessage"] = WORDS.get(failed.status, "BAD REQUEST")


def start(
    asked: Asked, kind: str, thing: Thing, finish: Callable[[], None], fail: Callable[[Failed], None], failed: Failed | None = None
) -> Operation:
    target = str(thing.body["selfLink"])
    owner, place = target.removeprefix(ROOT).split("/")[1:3]
    scope = "global" if place == "global" else f"{place}/{target.removeprefix(ROOT).split('/')[3]}"
    count = number()
    name = f"operation-{1_790_000_000_000 + count}-{digest(count, length=13)}-{digest(target)}-{digest(kind)}"
    body: Body = {
        "kind": "compute#operation", "id": long_id(), "name": name, "operationType": kind, "targetLink": target,
        "targetId": thing.body["id"], "status": "RUNNING", "user": asked.caller, "progress": 0, "insertTime": now(), "startTime": now(),
        "selfLink": f"{ROOT}projects/{owner}/{scope}/operations/{name}",
    }  # fmt: skip
    if scope != "global":
        one, _slash, where = scope.partition("/")
        body[one[:-1]] = f"{ROOT}projects/{owner}/{one}/{where}"
    return begin(asked, f"projects/{owner}/{scope}/operations/{name}", body, target.removeprefix(ROOT), _ends, finish, fail, failed)


def _key(asked: Asked) -> str:
    place = next((f"{one}s/{asked.params[one]}" for one in ("region", "zone") if one in asked.params), "global")
    return f"projects/{asked.params['project']}/{place}/operations/"


def _find(asked: Asked) -> Operation:
    key = f"{_key(asked)}{asked.params['operation']}"
    if key not in OPERATIONS:
        raise Refused(404, f"The resource '{key}' was not found")
    return OPERATIONS[key]


@handles("compute.globalOperations.get", "compute.regionOperations.get", "compute.zoneOperations.get")
def _get(asked: Asked) -> Body:
    operation = _find(asked)
    operation.look()
    return operation.body


@handles("compute.globalOperations.list", "compute.regionOperations.list", "compute.zoneOperations.list")
def _list(asked: Asked) -> Body:
    rows = [operation.body for key, operation in OPERATIONS.items() if key.startswith(_key(asked))]
    answer: Body = {"kind": "compute#operationList", "id": _key(asked), "selfLink": f"{ROOT}{_key(asked).rstrip('/')}"}
    return {**answer, "items": rows} if rows else answer
