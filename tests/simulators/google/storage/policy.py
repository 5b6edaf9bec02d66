# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies of buckets. A stale etag is 412 here (cloud.google.com/storage/docs/access-control/iam: "conditionNotMet"); public access may be
prevented."""

from .. import policies
from ..api import Asked, Refused, handles
from ..discovery import Body
from .buckets import find


@handles("storage.buckets.getIamPolicy")
def _get(asked: Asked) -> Body:
    policy = policies.read(find(asked).extra["policy"], int(asked.params.get("optionsRequestedPolicyVersion") or 1))
    return {"kind": "storage#policy", "resourceId": f"projects/_/buckets/{asked.params['bucket']}", **policy}


@handles("storage.buckets.setIamPolicy")
def _set(asked: Asked) -> Body:
    thing = find(asked)
    current = thing.extra["policy"]
    if asked.body.get("etag") not in (None, "", current["etag"]):
        raise Refused(412, "At least one of the pre-conditions you specified did not hold.", reason="conditionNotMet")
    members = [member for row in asked.body.get("bindings") or [] for member in row.get("members") or []]
    if thing.body["iamConfiguration"]["publicAccessPrevention"] == "enforced" and any(one in policies.PUBLIC for one in members):
        text = "The member bindings allUsers and allAuthenticatedUsers are not allowed since public access prevention is enforced."
        raise Refused(412, text, reason="conditionNotMet")
    for member in members:
        if not policies.known(member, "bucket"):
            raise Refused(400, f"Service account {member.removeprefix('serviceAccount:')} does not exist.", reason="invalid")
    if not thing.body["iamConfiguration"]["uniformBucketLevelAccess"]["enabled"] and any(
        "condition" in row for row in asked.body.get("bindings") or []
    ):
        # googleapis/python-storage issue 52, a PreconditionFailed; assumed: the wording
        raise Refused(412, "Conditions need uniform bucket-level access.", reason="conditionNotMet")
    thing.extra["policy"] = policies.write(asked, current, asked.body, "bucket")
    return {"kind": "storage#policy", "resourceId": f"projects/_/buckets/{asked.params['bucket']}", **thing.extra["policy"]}
