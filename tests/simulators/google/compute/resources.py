# SPDX-License-Identifier: GPL-3.0-or-later
"""What resources of compute have in common: links, references to each other, fingerprints, operations.

Rules, with what shows them:
- links begin with https://www.googleapis.com/compute/v1/ whatever host was asked (google.cloud's firewall module breaks otherwise);
- a resource with an operation under way is "not ready" for another (reason resourceNotReady;
  terraform-google-modules/terraform-google-network issue 365, hashicorp/terraform-provider-google issue 10972);
- what others refer to cannot be deleted: of networks the operation says so, of the rest the request is refused
  (hashicorp/terraform-provider-google issue 5423, "Error waiting for Deleting Network: The network resource ... is already being used by
  ...");
- a stale fingerprint is refused with 412 conditionNotMet, and one has to be given (the descriptions of the fields in the discovery
  document; message of that of labels: skypilot-org/skypilot issue 4571).
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from .. import catalogue
from ..api import Asked, Refused
from ..discovery import Body
from ..labels import refuse_of_compute
from ..operations import Failed, look_at, nothing, running, unharmed
from ..state import Project, Thing, long_id, now, project
from .operations import start

ROOT = "https://www.googleapis.com/compute/v1/"
ANY_ROOT = re.compile(r"^https://(www|compute)\.googleapis\.com/compute/(v1|beta)/")
# Collection of the methods: (the resource's own word, the collection in paths, where it lives).
KINDS = {
    "networks": ("network", "networks", "global"),
    "subnetworks": ("subnetwork", "subnetworks", "regions"),
    "firewalls": ("firewall", "firewalls", "global"),
    "routers": ("router", "routers", "regions"),
    "addresses": ("address", "addresses", "regions"),
    "globalAddresses": ("address", "addresses", "global"),
    "routes": ("route", "routes", "global"),
    "instances": ("instance", "instances", "zones"),
    "disks": ("disk", "disks", "zones"),
    "instanceGroups": ("instanceGroup", "instanceGroups", "zones"),
    "instanceGroupManagers": ("instanceGroupManager", "instanceGroupManagers", "zones"),
    "forwardingRules": ("forwardingRule", "forwardingRules", "regions"),
    "targetPools": ("targetPool", "targetPools", "regions"),
    "networkEndpointGroups": ("networkEndpointGroup", "networkEndpointGroups", "zones"),
    "resourcePolicies": ("resourcePolicy", "resourcePolicies", "regions"),
}


def link(path: str) -> str:
    return f"{ROOT}{path}"


def bare(url: str) -> str:
    """A link without its root: projects/p/global/networks/n."""
    return ANY_ROOT.sub("", url)


def where(asked: Asked) -> str:
    """global, regions/r or zones/z of a request; a place that does not exist is refused."""
    for name, known in (("region", catalogue.regions()), ("zone", catalogue.zones())):
        if name in asked.params and f"/{name}s/" in asked.path:
            if asked.params[name] not in known:
                raise Refused(400, f"Invalid value for field '{name}': '{asked.params[name]}'. Unknown {name}.", reason="invalid")
            return f"{name}s/{asked.params[name]}"
    return "global"


def collection(asked: Asked) -> str:
    return asked.id.split(".")[1]


def path_of(asked: Asked, name: str = "") -> str:
    word, folder, _scope = KINDS[collection(asked)]
    name = name or str(asked.params.get(word) or asked.params.get("resource"))
    return f"projects/{asked.params['project']}/{where(asked)}/{folder}/{name}"


def shelf_of(kind: str) -> str:
    return KINDS[kind][1]


def find(asked: Asked) -> Thing:
    """The resource that a request is for."""
    path = path_of(asked)
    thing = project(str(asked.params["project"])).shelf(shelf_of(collection(asked))).get(path)
    if thing is None:
        raise Refused(404, f"The resource '{path}' was not found")
    return thing


def ready(thing: Thing) -> Thing:
    """Nothing else is being done to it. Who is refused has looked at what is, too: an answer that was lost keeps it for no longer."""
    path = bare(thing.body["selfLink"])
    if running(path):
        look_at(path)
        raise Refused(400, f"The resource '{path}' is not ready", reason="resourceNotReady")
    return thing


def refer(asked: Asked, value: str, kind: str, field: str, scope: str = "") -> Thing:
    """What a field refers to, by any form of its link, or by its name where ``scope`` is given."""
    found = project(str(asked.params.get("project") or asked.params.get("projectId")))
    word, folder, _scope = KINDS[kind]
    path = bare(str(value))
    if re.match(r"^(global|regions|zones)/", path):
        path = f"projects/{found.id}/{path}"
    elif re.fullmatch(r"[a-z][-a-z0-9]*", path) and scope:
        path = f"projects/{found.id}/{scope}/{folder}/{path}"
    if not re.fullmatch(rf"projects/[^/]+/(global|(regions|zones)/[^/]+)/{folder}/[^/]+", path):
        raise Refused(400, f"Invalid value for field '{field}': '{value}'. The URL is malformed.", reason="invalid")
    thing = found.shelf(folder).get(path)
    if thing is None:
        text = f"Invalid value for field '{field}': '{value}'. The referenced {word} resource cannot be found."
        raise Refused(400, text, reason="invalid")
    return ready(thing)


def invalid(field: str, value: Any, text: str) -> Refused:
    """A field of the resource has a value that does not do."""
    return Refused(400, f"Invalid value for field 'resource.{field}': '{value}'. {text}", reason="invalid")


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


# What a resource says of those that use it: no reference of its own.
BACK = {"networks": ("subnetworks", "peerings"), "addresses": ("users",), "disks": ("users",), "instanceGroups": ()}


def users(found: Project, path: str) -> list[str]:
    """Resources that refer to one."""
    hits = []
    for name, shelf in found.shelves.items():
        for key, thing in shelf.items():
            if key == path or not str(thing.body.get("selfLink", "")).startswith(ROOT):
                continue
            shown = {k: v for k, v in thing.body.items() if k not in (*BACK.get(name, ()), "selfLink", "selfLinkWithId")}
            if any(bare(text) == path for text in texts(shown)):
                hits.append(bare(thing.body["selfLink"]))
    return hits


def _fade(found: Project) -> None:
    """What workloads of a deleted cluster made goes some time later (workloads.py)."""
    for shelf in found.shelves.values():
        for path, thing in list(shelf.items()):
            if "fades" in thing.extra and thing.extra["cluster"] not in found.shelf("clusters"):
                thing.extra["fades"] -= 1
                if thing.extra["fades"] < 0:
                    del shelf[path]


def unused(found: Project, thing: Thing) -> None:
    _fade(found)
    word = thing.body["kind"].split("#")[1]
    path = bare(thing.body["selfLink"])
    if hits := users(found, path):
        text = f"The {word} resource '{path}' is already being used by '{hits[0]}'"
        raise Refused(400, text, reason="resourceInUseByAnotherResource")


def in_use(refused: Refused) -> Failed:
    return Failed("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", refused.message)


def fingerprint(value: Any) -> str:
    return base64.b64encode(hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()[:8]).decode()


def same(given: Any, current: str, text: str) -> None:
    """A fingerprint that is missing does not match either."""
    if given != current:
        raise Refused(412, text, reason="conditionNotMet")


LABELS = "Labels fingerprint either invalid or resource labels have changed"


def label(body: Body, labels: dict[str, str]) -> None:
    refuse_of_compute(labels)
    body["labels"] = dict(labels)
    if not labels:
        del body["labels"]
    body["labelFingerprint"] = fingerprint(labels)


def made(asked: Asked, given: Body, defaults: Body) -> Body:
    """A new resource's description: what was sent, what the cloud adds, where it is. [Output Only] fields that were sent are ignored."""
    kind = collection(asked)
    word = KINDS[kind][0]
    known = asked.method.schemas[asked.method.request]["properties"]
    taken = {
        name: value
        for name, value in given.items()
        if value is not None
        and "[Output Only]" not in known[name].get("description", "")
        and "Input only" not in known[name].get("description", "")
    }
    body = {"kind": f"compute#{word}", "id": long_id(), "creationTimestamp": now(), **defaults, **taken}
    place = where(asked)
    if place != "global":
        scope, name = place.split("/")
        body[scope[:-1]] = link(f"projects/{asked.params['project']}/{scope}/{name}")
    body["selfLink"] = link(path_of(asked, body["name"]))
    return body


def insert(
    asked: Asked,
    body: Body,
    finish: Callable[[], None] = nothing,
    failed: Failed | None = None,
    extra: dict[str, Any] | None = None,
    undo: Callable[[], None] = nothing,
) -> Body:
    """It is there at once and not ready until its operation is over; where that fails, it goes again, with what came with it (undo)."""
    found, path = project(str(asked.params["project"])), bare(body["selfLink"])
    shelf = found.shelf(shelf_of(collection(asked)))
    if path in shelf:
        raise Refused(409, f"The resource '{path}' already exists")
    thing = Thing(body, extra=extra or {})
    shelf[path] = thing

    def gone(_failed: Failed) -> None:
        if shelf.get(path) is thing:
            del shelf[path]
        undo()

    return start(asked, "insert", thing, finish, gone, failed).body


def change(asked: Asked, thing: Thing, fields: Body, word: str = "", finish: Callable[[], None] = nothing) -> Body:
    """The change is seen when the operation is over."""
    ready(thing)

    def apply() -> None:
        for name, value in fields.items():
            if value is None:
                thing.body.pop(name, None)
            else:
                thing.body[name] = value
        finish()

    return start(asked, word or asked.id.rsplit(".", 1)[-1], thing, apply, unharmed).body


def remove(asked: Asked, thing: Thing, late_refusal: bool = False, finish: Callable[[], None] = nothing) -> Body:
    found, path = project(str(asked.params["project"])), bare(thing.body["selfLink"])
    ready(thing)
    failed = None
    try:
        unused(found, thing)
    except Refused as refused:
        if not late_refusal:
            raise
        failed = in_use(refused)

    def gone() -> None:
        found.shelf(shelf_of(collection(asked))).pop(path, None)
        finish()

    return start(asked, "delete", thing, gone, unharmed, failed).body


def set_labels(asked: Asked) -> Body:
    thing = find(asked)
    same(asked.body.get("labelFingerprint"), thing.body.get("labelFingerprint", fingerprint({})), LABELS)
    fresh: Body = {}
    label(fresh, asked.body.get("labels") or {})
    return change(asked, thing, {"labels": None, **fresh}, "setLabels")
