# SPDX-License-Identifier: GPL-3.0-or-later
"""IAM: service accounts and their policies.

Rules: a new one is read as missing for a while (cloud.google.com/iam/docs/service-accounts-create: "you might need to wait for 60 seconds
or more before you use the service account"; hashicorp/terraform-provider-google issues 18087, with the 404, and 15042, with a 403); 6 to 30
characters; a deleted one can be restored by its unique id for 30 days, and its name can be given again to another, which is not the same
(cloud.google.com/iam/docs/service-accounts-delete-undelete); 100 in a project.
"""

import base64
import re

from . import policies
from .api import Asked, Refused, handles
from .discovery import Body
from .state import BUCKETS, PROJECTS, Project, Thing, number, project, see

ACCOUNT_ID = re.compile(r"^[a-z]([-a-z0-9]*[a-z0-9])$")
MOST = 100
EDITABLE = ("displayName", "description")


def add(found: Project, email: str, fields: Body, late: bool = True) -> Thing:
    unique = f"1{number():020d}"
    body = {
        "name": f"projects/{found.id}/serviceAccounts/{email}", "projectId": found.id, "uniqueId": unique, "email": email,
        **{name: value for name, value in fields.items() if name in EDITABLE and value}, "etag": _etag(), "oauth2ClientId": unique,
    }  # fmt: skip
    thing = Thing(body, extra={"policy": {"etag": "ACAB"}})
    if not late:
        thing.unseen = dict.fromkeys(("iam", *(f"policy of a {kind}" for kind in ("project", "bucket"))), 0)
    found.shelf("serviceAccounts")[email] = thing
    return thing


def _etag() -> str:
    return base64.b64encode(f"{number():08d}".encode()).decode()


def _wanted(asked: Asked, name: str = "name") -> tuple[Project, Thing]:
    parts = asked.parts(name)
    wanted = parts["serviceAccounts"]
    owners = list(PROJECTS.values()) if parts["projects"] == "-" else [project(parts["projects"])]
    for owner in owners:
        for thing in owner.shelf("serviceAccounts").values():
            if wanted in (thing.body["email"], thing.body["uniqueId"]) and see(thing, "iam"):
                return owner, thing
    raise Refused(404, f"Service account {asked.params[name]} does not exist.")


@handles("iam.projects.serviceAccounts.create")
def _create(asked: Asked) -> Body:
    found = project(asked.parts("name")["projects"])
    account = str(asked.body.get("accountId", ""))
    fields = asked.body.get("serviceAccount") or {}
    if not 6 <= len(account) <= 30:
        raise Refused(400, f'The account ID "{account}" does not have a length between 6 and 30.')
    if not ACCOUNT_ID.match(account):
        text = "Service account ID must start with a lower case letter, followed by one or more lower case alphanumerical characters "
        raise Refused(400, f"{text}that can be separated by hyphens.")
    _lengths(fields)
    email = f"{account}@{found.id}.iam.gserviceaccount.com"
    if email in found.shelf("serviceAccounts"):
        raise Refused(409, f"Service account {account} already exists within project projects/{found.id}.")
    if len(found.shelf("serviceAccounts")) >= MOST:
        raise Refused(429, "Maximum number of service accounts on project reached.")
    return add(found, email, fields).body


def _lengths(fields: Body) -> None:
    """ServiceAccount.displayName and .description in the discovery document."""
    for name, most in (("displayName", 100), ("description", 256)):
        if len(str(fields.get(name, "")).encode()) > most:
            raise Refused(400, f"Service account {name} must not be longer than {most} bytes.")  # assumed: the wording


@handles("iam.projects.serviceAccounts.get")
def _get(asked: Asked) -> Body:
    return _wanted(asked)[1].body


def _change(thing: Thing, fields: Body, names: list[str]) -> Body:
    if fields.get("etag") not in (None, thing.body["etag"]):
        raise Refused(409, policies.CONCURRENT.format(fields["etag"], thing.body["etag"]), code="ABORTED", reason="aborted")
    _lengths(fields)
    for name in names:
        if fields.get(name):
            thing.body[name] = fields[name]
        else:
            thing.body.pop(name, None)
    thing.body["etag"] = _etag()
    return thing.body


@handles("iam.projects.serviceAccounts.patch")
def _patch(asked: Asked) -> Body:
    """No more than the name for people and the description (PatchServiceAccountRequest)."""
    _owner, thing = _wanted(asked)
    mask = [one.strip() for one in str(asked.body.get("updateMask", "")).split(",") if one.strip()]
    names = [{"display_name": "displayName"}.get(one, one) for one in mask]
    wrong = [name for name in names if name not in EDITABLE]
    if wrong or not names:
        raise Refused(400, f"Invalid update mask: {', '.join(wrong) or 'it is empty'}.")  # assumed: the wording
    return _change(thing, asked.body.get("serviceAccount") or {}, names)


def _all_policies(found: Project) -> list[Body]:
    shelves = [thing for shelf in found.shelves.values() for thing in shelf.values()]
    return [found.policy, *(t.extra["policy"] for t in [*shelves, *BUCKETS.values()] if "policy" in t.extra)]


@handles("iam.projects.serviceAccounts.delete")
def _delete(asked: Asked) -> Body:
    """It may be in use: nothing asks. What uses it stops working."""
    found, thing = _wanted(asked)
    email, unique = thing.body["email"], thing.body["uniqueId"]
    found.shelf("deletedServiceAccounts")[unique] = found.shelf("serviceAccounts").pop(email)
    policies.forget(found, _all_policies(found), email, unique)
    return {}


@handles("iam.projects.serviceAccounts.getIamPolicy")
def _get_policy(asked: Asked) -> Body:
    version = int(asked.params.get("options.requestedPolicyVersion") or 1)
    return policies.read(_wanted(asked, "resource")[1].extra["policy"], version)


@handles("iam.projects.serviceAccounts.setIamPolicy")
def _set_policy(asked: Asked) -> Body:
    thing = _wanted(asked, "resource")[1]
    thing.extra["policy"] = policies.write(asked, thing.extra["policy"], asked.body.get("policy") or {}, "service account")
    return dict(thing.extra["policy"])
