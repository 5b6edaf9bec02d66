# SPDX-License-Identifier: GPL-3.0-or-later
"""HMAC keys of service accounts. The secret is in the answer to the creation and nowhere else.

Rules: cloud.google.com/storage/docs/authentication/hmackeys: 10 keys for a service account; ACTIVE or INACTIVE; only an inactive one is
deleted; what is deleted cannot come back, and is still shown for 30 days to who asks for deleted ones; a new service account is not known
here for a while.
"""

import base64
import hashlib

from ..api import Answer, Asked, Raw, Refused, handles
from ..discovery import Body
from ..state import Thing, now, number, project, see
from .buckets import page

MOST = 10


def _find(asked: Asked) -> Thing:
    found = project(str(asked.params["projectId"]))
    thing = found.shelf("hmacKeys").get(str(asked.params["accessId"]))
    if thing is None:
        raise Refused(404, "Access ID not found in project muster-test." if found.id == "muster-test" else "Access ID not found.")
    return thing


@handles("storage.projects.hmacKeys.create")
def _create(asked: Asked) -> Body:
    found, email = project(str(asked.params["projectId"])), str(asked.params["serviceAccountEmail"])
    if not see(found.shelf("serviceAccounts").get(email), "storage"):
        raise Refused(404, f"Service Account '{email}' not found.")  # googleapis/java-storage PR 2444
    live = [t for t in found.shelf("hmacKeys").values() if t.body["serviceAccountEmail"] == email and t.body["state"] != "DELETED"]
    if len(live) >= MOST:
        raise Refused(429, f"Maximum number of HMAC keys ({MOST}) for service account {email} reached.")  # assumed: the wording
    access = "GOOG1E" + base64.b32encode(hashlib.sha256(f"{email}{number()}".encode()).digest()).decode()[:55]
    secret = base64.b64encode(hashlib.sha256(f"canary-hmac-{access}".encode()).digest()[:30]).decode()
    body = {
        "kind": "storage#hmacKeyMetadata", "id": f"{found.id}/{access}", "accessId": access, "projectId": found.id,
        "serviceAccountEmail": email,
        "state": "ACTIVE", "timeCreated": now(), "updated": now(), "etag": _etag(),
        "selfLink": f"https://www.googleapis.com/storage/v1/projects/{found.id}/hmacKeys/{access}",
    }  # fmt: skip
    found.shelf("hmacKeys")[access] = Thing(body)
    return {"kind": "storage#hmacKey", "metadata": body, "secret": secret}


def _etag() -> str:
    return base64.b64encode(f"hmac{number():06d}".encode()).decode()


@handles("storage.projects.hmacKeys.list")
def _list(asked: Asked) -> Body:
    found = project(str(asked.params["projectId"]))
    email, deleted = asked.params.get("serviceAccountEmail"), asked.params.get("showDeletedKeys")
    rows = [
        t.body
        for t in found.shelf("hmacKeys").values()
        if email in (None, t.body["serviceAccountEmail"]) and (deleted or t.body["state"] != "DELETED")
    ]
    return page(asked, rows, "storage#hmacKeysMetadata")


@handles("storage.projects.hmacKeys.update")
def _update(asked: Asked) -> Body:
    thing, state = _find(asked), asked.body.get("state")
    if thing.body["state"] == "DELETED":
        # googleapis/google-cloud-cpp issue 2434
        raise Refused(400, "Cannot update keys in 'DELETED' state.", reason="invalid")
    if asked.body.get("etag") not in (None, thing.body["etag"]):
        raise Refused(412, "At least one of the pre-conditions you specified did not hold.", reason="conditionNotMet")
    thing.body |= {"state": state, "updated": now(), "etag": _etag()}
    return thing.body


@handles("storage.projects.hmacKeys.delete")
def _delete(asked: Asked) -> Answer:
    thing = _find(asked)
    if thing.body["state"] == "ACTIVE":
        raise Refused(400, "Cannot delete keys in 'ACTIVE' state.", reason="invalid")  # assumed: worded like an update
    if thing.body["state"] == "DELETED":
        raise Refused(404, "Access ID not found in project.")  # assumed: the wording
    thing.body |= {"state": "DELETED", "updated": now(), "etag": _etag()}
    return Raw(b"", 204)
