# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a cluster that have a method of their own: labels and the maintenance policy, each with what was read of it, and the older
ones.

Rules: labels need the fingerprint of those that are there (SetLabelsRequest.labelFingerprint; hashicorp/terraform-provider-google issue
5608), and where it is another one, that is 400 and failedPrecondition (crossplane-contrib/provider-gcp issue 477,
future-architect/gcp-instance-scheduler issue 50; in Compute Engine it is 412: compute/resources.py); a maintenance policy needs
the resourceVersion that was read (MaintenancePolicy.resourceVersion), and takes the place of the whole one, so that exclusions which are
left out of it are gone (hashicorp/terraform-provider-google issues 8566 and 9941, mended by sending all that are to be); a window leaves at
least 48 hours in 32 days, in pieces of 4 hours or more
(cloud.google.com/kubernetes-engine/docs/concepts/maintenance-windows-and-exclusions).
"""

import datetime as dt
import json
import re

from ..api import Asked, Refused, handles
from ..discovery import Body
from ..labels import refuse_of_gke
from ..state import digest
from . import clusters, updates
from .operations import free, start

_TIMESTAMP = re.compile(r"[\d-]{10}T[\d:.]{8,}(?:Z|[+-]\d\d:\d\d)")
LEAST_HOURS, LEAST_TOTAL, DAYS = 4, 48, 32


@handles("container.projects.locations.clusters.setResourceLabels")
def _labels(asked: Asked) -> Body:
    _found, thing = clusters.find(asked)
    free(thing.extra["path"])
    if asked.body.get("labelFingerprint") != thing.body["labelFingerprint"]:
        text = (
            "Labels could not be set due to fingerprint mismatch; try again with the proper fingerprint: incorrect fingerprint supplied "
            f'was "{asked.body.get("labelFingerprint", "")}", the expected one is "{thing.body["labelFingerprint"]}".'
        )
        raise Refused(400, text, code="FAILED_PRECONDITION", reason="failedPrecondition")
    wanted = dict(asked.body.get("resourceLabels") or {})
    refuse_of_gke(wanted, "resource_labels")

    def apply() -> None:
        thing.body |= {"resourceLabels": wanted, "labelFingerprint": digest(sorted(wanted.items()))}

    return updates.busy(asked, thing, "UPDATE_CLUSTER", apply)


@handles("container.projects.locations.clusters.setMaintenancePolicy")
def _maintenance(asked: Asked) -> Body:
    """This one's operation is over as soon as it is begun (assumed); no status shows it."""
    _found, thing = clusters.find(asked)
    free(thing.extra["path"])
    policy = dict(asked.body.get("maintenancePolicy") or {})
    if policy.get("resourceVersion") != thing.body["maintenancePolicy"]["resourceVersion"]:
        text = "The resource version of the maintenance policy does not match the current one. Read the cluster again."
        raise Refused(400, text, code="FAILED_PRECONDITION", reason="failedPrecondition")  # assumed: the wording
    after = policy_of(policy)
    return start(asked, "SET_MAINTENANCE_POLICY", thing.extra["path"], lambda: thing.body.update(maintenancePolicy=after))


def policy_of(policy: Body) -> Body:
    """A policy as it is shown; that of a new cluster needs no version."""
    window = policy.get("window") or {}
    _check(window)
    return {"resourceVersion": digest(json.dumps(window, sort_keys=True)), **({"window": window} if window else {})}


def _check(window: Body) -> None:
    if daily := window.get("dailyMaintenanceWindow"):
        if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", str(daily.get("startTime", ""))):
            raise Refused(400, "maintenance_policy.window.daily_maintenance_window.start_time must be of the form HH:MM.")  # assumed
        daily["duration"] = "PT4H0M0S"
    if recurring := window.get("recurringWindow"):
        _check_recurring(recurring)
    for name, row in (window.get("maintenanceExclusions") or {}).items():
        if _moment(row, "endTime") <= _moment(row, "startTime"):
            raise Refused(400, f"Maintenance exclusion {name} must end after it starts.")  # assumed: the wording


def _check_recurring(recurring: Body) -> None:
    row = recurring.get("window") or {}
    hours = (_moment(row, "endTime") - _moment(row, "startTime")).total_seconds() / 3600
    rule = dict(part.split("=", 1) for part in str(recurring.get("recurrence", "")).removeprefix("RRULE:").split(";") if "=" in part)
    if rule.get("FREQ") not in ("DAILY", "WEEKLY", "MONTHLY"):
        raise Refused(400, "maintenance_policy.window.recurring_window.recurrence must be an RRULE (RFC 5545).")  # assumed: the wording
    days = rule["BYDAY"].count(",") + 1 if "BYDAY" in rule else 1
    times = {"DAILY": DAYS, "WEEKLY": days * DAYS / 7, "MONTHLY": 1}[rule["FREQ"]]
    if hours < LEAST_HOURS or hours * times < LEAST_TOTAL:
        text = (
            f"maintenance policy would go longer than {DAYS}d without {LEAST_TOTAL}h maintenance availability of at least "
            f"{LEAST_HOURS}h contiguous duration (in time range [...]) - check maintenance windows and exclusions."
        )
        raise Refused(400, text)


def _moment(row: Body, name: str) -> dt.datetime:
    """The time, which is kept in UTC (ProtoJSON, Timestamp: what is generated ends in Z)."""
    try:
        found = dt.datetime.fromisoformat(_TIMESTAMP.fullmatch(str(row.get(name, "")))[0])  # type: ignore[index]
    except (TypeError, ValueError) as error:
        raise Refused(400, f"Invalid value for {name}: it must be a timestamp of RFC 3339.") from error  # assumed: the wording
    row[name] = found.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return found
