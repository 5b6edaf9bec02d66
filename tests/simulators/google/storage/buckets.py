# SPDX-License-Identifier: GPL-3.0-or-later
"""Buckets. Their names are everybody's.

Rules, with what shows them:
- a name that somebody else has: 409 "The requested bucket name is not available..."; one's own: 409 "Your previous request to create the
  named bucket succeeded and you already own it." (percona/mongo_terraform_ansible issue 24; googleapis/google-cloud-cpp issue 10478);
- with objects, older versions of objects among them, it is not deleted: 409 "The bucket you tried to delete is not empty.";
- PATCH merges, null takes away, of `lifecycle`, `cors` and the like the whole is replaced; PUT (update) forgets what it does not say;
- location, and storage class of what is stored, stay as they were made; the location comes back in capitals;
- a deleted bucket is kept for its soft delete time; its name is free at once for its owner (cloud.google.com/storage/docs/soft-delete;
  assumed: not for others);
- names: 3 to 63 characters, no `goog` at the start, no "google" in it (cloud.google.com/storage/docs/buckets#naming).
"""

import base64
import copy
import re
from typing import Any

from ..api import Answer, Asked, Raw, Refused, handles
from ..discovery import Body
from ..labels import broken
from ..state import BUCKETS, Project, Thing, now, number, project

NAME = re.compile(r"^[a-z0-9][-_.a-z0-9]{1,61}[a-z0-9]$")
TAKEN = ("data", "models", "muster", "test-bucket", "training-data")
# Cloud Storage documentation, "Bucket locations".
LOCATIONS = {
    **dict.fromkeys(("US", "EU", "ASIA"), "multi-region"),
    **dict.fromkeys(("ASIA1", "EUR4", "EUR5", "EUR7", "EUR8", "NAM4"), "dual-region"),
}
CLASSES = ("STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE", "MULTI_REGIONAL", "REGIONAL", "DURABLE_REDUCED_AVAILABILITY")
SOFT_DELETE_S, LEAST_SOFT_DELETE_S, MOST_SOFT_DELETE_S = 604800, 604800, 7776000
OUTPUT = (
    "kind", "id", "selfLink", "projectNumber", "timeCreated", "updated", "metageneration", "etag", "locationType", "generation",
    "softDeleteTime", "owner", "name",
)  # fmt: skip
FIXED = ("location", "customPlacementConfig", "hierarchicalNamespace")
ACTIONS = {"Delete": None, "SetStorageClass": "storageClass", "AbortIncompleteMultipartUpload": None}


def others() -> None:
    """Buckets of other people."""
    for name in TAKEN:
        BUCKETS[name] = Thing({"name": name}, extra={"project": "somebody-else", "objects": {}, "policy": {}})


def mine(thing: Thing) -> bool:
    return bool(thing.extra["project"] != "somebody-else")


def find(asked: Asked) -> Thing:
    name = str(asked.params["bucket"])
    thing = BUCKETS.get(name)
    if thing is None or thing.extra.get("deleted"):
        raise Refused(404, "The specified bucket does not exist.")
    if not mine(thing):
        permission = asked.id
        text = f"{asked.caller} does not have {permission} access to the Google Cloud Storage bucket."
        raise Refused(403, f"{text} Permission '{permission}' denied on resource (or it may not exist).")
    _preconditions(asked, thing)
    return thing


def _preconditions(asked: Asked, thing: Thing) -> None:
    current = thing.body["metageneration"]
    wanted, unwanted = asked.params.get("ifMetagenerationMatch"), asked.params.get("ifMetagenerationNotMatch")
    if asked.id.startswith("storage.buckets.") and (wanted not in (None, current) or unwanted == current):
        raise Refused(412, "At least one of the pre-conditions you specified did not hold.", reason="conditionNotMet")


def invalid(message: str) -> Refused:
    return Refused(400, message, reason="invalid")


def _checked(body: Body) -> None:
    if body.get("storageClass") not in CLASSES:
        raise invalid(f"Invalid storage class: {body.get('storageClass')}")  # assumed: the wording
    for rule in (body.get("lifecycle") or {}).get("rule") or []:
        kind = (rule.get("action") or {}).get("type")
        if kind not in ACTIONS:
            raise invalid(f"Invalid lifecycle action type: {kind}")  # assumed: the wording
        storage_class = rule["action"].get("storageClass")
        if storage_class not in CLASSES if ACTIONS[kind] else storage_class:
            raise invalid("Invalid argument.")  # terraform-google-modules/terraform-google-cloud-storage issues 263 and 51
        if not rule.get("condition"):
            raise invalid("Invalid argument.")  # crossplane-contrib/provider-gcp issue 515
    seconds = int((body.get("softDeletePolicy") or {}).get("retentionDurationSeconds") or 0)
    if seconds and not LEAST_SOFT_DELETE_S <= seconds <= MOST_SOFT_DELETE_S:
        raise invalid("The soft delete retention duration must be 0, or between 7 and 90 days.")  # assumed: the wording
    if broken(body.get("labels")):
        raise invalid("Invalid label: keys and values have lowercase letters, numbers, underscores and dashes.")  # assumed: the wording
    iam = body.get("iamConfiguration") or {}
    if iam.get("publicAccessPrevention", "inherited") not in ("inherited", "enforced", "unspecified"):
        raise invalid(f"Invalid value for public access prevention: {iam['publicAccessPrevention']}")  # assumed: the wording


def _completed(body: Body) -> Body:
    """What a GET shows though nobody said it."""
    iam = dict(body.get("iamConfiguration") or {})
    uniform = bool((iam.get("uniformBucketLevelAccess") or {}).get("enabled"))
    locked = {"enabled": True, "lockedTime": now(90)} if uniform else {"enabled": False}
    body["iamConfiguration"] = {
        "bucketPolicyOnly": dict(locked), "uniformBucketLevelAccess": dict(locked),
        "publicAccessPrevention": iam.get("publicAccessPrevention") or "inherited",
    }  # fmt: skip
    soft = body.get("softDeletePolicy")
    seconds = str(int((soft or {}).get("retentionDurationSeconds", SOFT_DELETE_S)))
    body["softDeletePolicy"] = {"retentionDurationSeconds": seconds, **({"effectiveTime": now()} if int(seconds) else {})}
    for name in ("lifecycle", "labels", "versioning", "cors", "encryption", "logging", "website"):
        if body.get(name) in (None, {}, []) or (name == "lifecycle" and not body[name].get("rule")):
            body.pop(name, None)
    return body


def _touch(thing: Thing) -> None:
    thing.body["metageneration"] = str(int(thing.body.get("metageneration", "0")) + 1)
    thing.body["updated"] = now()
    thing.body["etag"] = base64.b64encode(f"\b{thing.body['metageneration']}".encode()).decode()


@handles("storage.buckets.insert")
def _insert(asked: Asked) -> Body:
    found, given = project(str(asked.params["project"])), copy.deepcopy(asked.body)
    name = str(given.get("name", ""))
    if not NAME.match(name) or name.startswith("goog") or "google" in name or re.fullmatch(r"[\d.]+", name):
        raise invalid(f"Invalid bucket name: '{name}'")
    if name in BUCKETS and not BUCKETS[name].extra.get("deleted"):
        if mine(BUCKETS[name]):
            raise Refused(409, "Your previous request to create the named bucket succeeded and you already own it.", reason="conflict")
        text = "The requested bucket name is not available. The bucket namespace is shared by all users of the system."
        raise Refused(409, f"{text} Please select a different name and try again.", reason="conflict")
    from .. import catalogue

    location = str(given.get("location") or "US").upper()
    if location not in LOCATIONS and location.lower() not in catalogue.regions():
        raise invalid(f"The specified location constraint is not valid: '{location}'.")
    body: Body = {
        "kind": "storage#bucket", "id": name, "selfLink": f"https://www.googleapis.com/storage/v1/b/{name}",
        "projectNumber": found.number, "generation": str(1790000000000000 + number()),
        "timeCreated": now(), "storageClass": "STANDARD", "rpo": "DEFAULT",
        **{key: value for key, value in given.items() if key not in OUTPUT and value is not None},
        "name": name, "location": location, "locationType": LOCATIONS.get(location, "region"),
    }  # fmt: skip
    if body["locationType"] == "region":
        del body["rpo"]
    _checked(body)
    thing = Thing(_completed(body), extra={"project": found.id, "objects": {}, "policy": _start(found)})
    _touch(thing)
    BUCKETS[name] = thing
    return thing.body


def _start(found: Project) -> Body:
    """Owners, editors and viewers of the project have legacy roles on a new bucket."""
    rows = (
        ("legacyBucketOwner", "Owner", "Editor"), ("legacyBucketReader", "Viewer"), ("legacyObjectOwner", "Owner", "Editor"),
        ("legacyObjectReader", "Viewer"),
    )  # fmt: skip
    bindings = [{"role": f"roles/storage.{role}", "members": sorted(f"project{one}:{found.id}" for one in who)} for role, *who in rows]
    return {"version": 1, "etag": "CAE=", "bindings": bindings}


@handles("storage.buckets.get")
def _get(asked: Asked) -> Body:
    return find(asked).body


def page(asked: Asked, rows: list[Body], kind: str) -> Body:
    size = min(int(asked.params.get("maxResults") or 1000), 1000)
    first = int(asked.params.get("pageToken") or 0)
    answer: Body = {"kind": kind, **({"items": rows[first : first + size]} if rows else {})}
    if first + size < len(rows):
        answer["nextPageToken"] = str(first + size)
    return answer


def merged(before: Any, patch: Body) -> Body:
    """JSON merge patch (RFC 7396), which PATCH of this API is."""
    after = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            after.pop(name, None)
        elif isinstance(value, dict):
            after[name] = merged(after.get(name), value)
        else:
            after[name] = value
    return after


def _fixed(before: Body, after: Body) -> None:
    for name in FIXED:
        if str(after.get(name) or before.get(name)).upper() != str(before.get(name)).upper():
            raise invalid(f"The {name} of a bucket cannot be changed.")  # assumed: the wording
    lock = before["iamConfiguration"]["uniformBucketLevelAccess"]
    new = ((after.get("iamConfiguration") or {}).get("uniformBucketLevelAccess") or {}).get("enabled")
    if lock["enabled"] and new is False and lock["lockedTime"] < now():
        raise invalid("Uniform bucket-level access is locked and cannot be disabled.")  # assumed: the wording


@handles("storage.buckets.patch")
def _patch(asked: Asked) -> Body:
    thing = find(asked)
    after = merged(thing.body, {name: value for name, value in asked.body.items() if name not in OUTPUT})
    if "lifecycle" in asked.body:
        after["lifecycle"] = asked.body["lifecycle"]
    return _replace(thing, after)


def _replace(thing: Thing, after: Body) -> Body:
    _fixed(thing.body, after)
    _checked(after)
    before_lock = thing.body["iamConfiguration"]["uniformBucketLevelAccess"]
    _completed(after)
    after["location"] = thing.body["location"]
    if before_lock["enabled"] and after["iamConfiguration"]["uniformBucketLevelAccess"]["enabled"]:
        for name in ("bucketPolicyOnly", "uniformBucketLevelAccess"):
            after["iamConfiguration"][name] = dict(before_lock)
    thing.body = after
    _touch(thing)
    return thing.body


@handles("storage.buckets.delete")
def _delete(asked: Asked) -> Answer:
    thing = find(asked)
    if any(rows for rows in thing.extra["objects"].values()):
        raise Refused(409, "The bucket you tried to delete is not empty.", reason="conflict")
    thing.extra["deleted"] = True
    thing.body["softDeleteTime"] = now()
    if not int(thing.body["softDeletePolicy"]["retentionDurationSeconds"]):
        del BUCKETS[str(asked.params["bucket"])]
    return Raw(b"", 204)
