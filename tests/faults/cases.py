# SPDX-License-Identifier: GPL-3.0-or-later
"""What can go wrong between muster.ml.apply and the API server, and what must come of it.

The faults are injected by proxy.py; test_faults.py compares, and docs/operating/faults.md shows the same rows.
"""

import dataclasses
from collections.abc import Callable

from faults import proxy
from faults.proxy import Rule, answer_with

ONE = r"^(?!.*dryRun).*/configmaps/c3\?"
"""The write of one ConfigMap out of six objects."""
WRITES = r"^(?!.*dryRun)"
WATCH = r"watch=true"
UNREACHABLE = (
    "The API server https://127.0.0.1:6443 (~/.kube/config) does not answer: {}. Check the address, and that the cluster is running."
)
SERVER_ERROR = "The API server failed to apply ConfigMap ml/c3 (status {}): {}."


@dataclasses.dataclass(frozen=True)
class Case:
    """One row: the fault, where it strikes, and the documented result. ``message`` is empty where the task succeeds."""

    name: str
    fault: str
    where: str
    rules: Callable[[], list[Rule]]
    does: str
    message: str = ""
    left: int | None = None
    """How many of the six objects are there when it fails; None where that depends on who came first."""
    wait: bool = False
    prune: bool = False
    at_least_s: float = 0
    short: bool = False
    """Whether a limit of 60 s ends the run, or a request of it; it is a short one in the test."""


def always(fault: proxy.Fault, method: str, target: str) -> Callable[[], list[Rule]]:
    return lambda: [Rule(fault, method, target, times=10_000)]


def sometimes(fault: proxy.Fault, method: str, target: str, times: int = 1) -> Callable[[], list[Rule]]:
    return lambda: [Rule(fault, method, target, times=times)]


MODIFIED = answer_with(
    409, "Conflict", 'Operation cannot be fulfilled on configmaps "c3": the object has been modified; please apply your changes again'
)
BOTH_MADE = answer_with(409, "AlreadyExists", 'configmaps "c3" already exists')
INVALID = answer_with(422, "Invalid", 'ConfigMap "c3" is invalid: data: Invalid value: too clever')
BUSY = answer_with(429, "TooManyRequests", "too many requests, please try again later", retry_after="1")
BUSY_LONG = answer_with(429, "TooManyRequests", "too many requests, please try again later", retry_after="3600")
LEADER = answer_with(500, "InternalError", "etcdserver: leader changed")
BROKEN = answer_with(500, "InternalError", "Internal error occurred: nil map")
UNAVAILABLE = answer_with(503, "ServiceUnavailable", "the server is currently unable to handle the request")
EXPIRED = answer_with(410, "Expired", "too old resource version")
RESUMED = "asks again and succeeds"
CASES = (
    Case(
        "409-modified", "409, another client changed the object at the same time", "3 writes", sometimes(MODIFIED, "PATCH", ONE, 3), RESUMED
    ),
    Case("409-exists", "409, another client made the object at the same time", "a write", sometimes(BOTH_MADE, "PATCH", ONE), RESUMED),
    Case(
        "409-for-ever",
        "409, for as long as we ask",
        "writes of an object",
        always(MODIFIED, "PATCH", ONE),
        "gives up after 60 s",
        'Cannot apply ConfigMap ml/c3: Operation cannot be fulfilled on configmaps "c3": the object has been modified; please apply your '
        "changes again. Another client changes it at the same time; run again.",
        left=4,
        at_least_s=3,
        short=True,
    ),
    Case("410-answer", "410", "a watch", sometimes(EXPIRED, "GET", WATCH, 2), "reads again, watches on and succeeds", wait=True),
    Case(
        "410-event",
        "410 as an ERROR event",
        "inside a watch",
        sometimes(proxy.event_of_error, "GET", WATCH, 2),
        "reads again, watches on and succeeds",
        wait=True,
    ),
    Case(
        "422-rehearsal",
        "422",
        "the dry run before the first write",
        always(INVALID, "PATCH", "/configmaps/c3.*dryRun"),
        "fails at once",
        'The API server refused ConfigMap ml/c3: ConfigMap "c3" is invalid: data: Invalid value: too clever.',
        left=0,
    ),
    Case(
        "422-write",
        "422",
        "a write, after a dry run that passed",
        always(INVALID, "PATCH", ONE),
        "fails at once",
        'The API server refused ConfigMap ml/c3: ConfigMap "c3" is invalid: data: Invalid value: too clever.',
        left=4,
    ),
    Case(
        "429",
        "429 with Retry-After: 1",
        "3 writes of an object",
        sometimes(BUSY, "PATCH", ONE, 3),
        "waits as told and succeeds",
        at_least_s=3,
    ),
    Case(
        "429-long",
        "429 with Retry-After: 3600",
        "writes of an object",
        always(BUSY_LONG, "PATCH", ONE),
        "fails, because 60 s is the limit",
        SERVER_ERROR.format(429, "too many requests, please try again later"),
        left=4,
    ),
    Case("500-etcd", "500 of etcd", "2 writes", sometimes(LEADER, "PATCH", ONE, 2), RESUMED),
    Case(
        "500",
        "500",
        "a write",
        always(BROKEN, "PATCH", ONE),
        "fails at once",
        SERVER_ERROR.format(500, "Internal error occurred: nil map"),
        left=4,
    ),
    Case(
        "503",
        "503",
        "3 reads and 3 writes",
        lambda: [Rule(UNAVAILABLE, "GET", times=3), Rule(UNAVAILABLE, "PATCH", WRITES, times=3)],
        RESUMED,
    ),
    Case(
        "503-for-ever",
        "503",
        "writes of an object",
        always(UNAVAILABLE, "PATCH", ONE),
        "gives up after 60 s",
        SERVER_ERROR.format(503, "the server is currently unable to handle the request"),
        left=4,
        at_least_s=3,
        short=True,
    ),
    Case(
        "reset-before",
        "connection reset before the server has the request",
        "3 writes",
        sometimes(proxy.reset_before, "PATCH", WRITES, 3),
        RESUMED,
    ),
    Case(
        "reset-after",
        "connection reset after the write, its answer is lost",
        "3 writes",
        sometimes(proxy.reset_after, "PATCH", WRITES, 3),
        RESUMED,
    ),
    Case(
        "reset-after-delete",
        "connection reset after the deletion, its answer is lost",
        "a deletion of prune",
        sometimes(proxy.reset_after, "DELETE", ""),
        RESUMED,
        prune=True,
    ),
    Case(
        "reset-watch",
        "connection reset",
        "3 watches",
        sometimes(proxy.reset_before, "GET", WATCH, 3),
        "reads again, watches on and succeeds",
        wait=True,
    ),
    Case(
        "slow-once",
        "no byte",
        "a write",
        sometimes(proxy.silent, "PATCH", ONE),
        "asks again after 60 s and succeeds",
        at_least_s=3,
        short=True,
    ),
    Case(
        "slow",
        "no byte",
        "writes of an object",
        always(proxy.silent, "PATCH", ONE),
        "gives up after 60 s",
        UNREACHABLE.format("The read operation timed out"),
        left=4,
        at_least_s=3,
        short=True,
    ),
    Case(
        "slow-wait",
        "no byte",
        "reads and watches while waiting",
        lambda: [Rule(proxy.silent, "GET", "/services/s", after=1, times=10_000)],
        "fails at wait_timeout",
        "1 of 6 objects not ready after 4 s. Service ml/s: has no load balancer address yet, which a cloud or a controller like "
        "MetalLB gives. The API server https://127.0.0.1:6443 (~/.kube/config) does not answer: The read operation timed out.",
        left=6,
        wait=True,
        at_least_s=4,
        short=True,
    ),
    Case(
        "cut-off",
        "body cut off",
        "a list and 3 writes",
        lambda: [Rule(proxy.cut_off, "GET", "labelSelector"), Rule(proxy.cut_off, "PATCH", WRITES, times=3)],
        RESUMED,
    ),
    Case(
        "cut-and-counted",
        "body cut off by something that corrects its length",
        "a list and 3 writes",
        lambda: [Rule(proxy.cut_and_counted, "GET", "labelSelector"), Rule(proxy.cut_and_counted, "PATCH", WRITES, times=3)],
        RESUMED,
    ),
    Case(
        "cut-watch",
        "event cut off",
        "2 watches",
        sometimes(proxy.half_an_event, "GET", WATCH, 2),
        "reads again, watches on and succeeds",
        wait=True,
    ),
)


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the table, whatever made it."""

    name: str
    fault: str
    where: str
    does: str
    message: str = ""


UNAUTHORIZED = (
    "The API server does not accept the credentials (401, when asked to apply ConfigMap ml/c3). "
    "The token or certificate may have expired, or belongs to another cluster."
)
UNTRUSTED = (
    "The API server https://127.0.0.1:6443 (~/.kube/config) has a certificate that is not trusted: unable to get local issuer certificate. "
    "The certificate authority in ~/.kube/config belongs to another cluster, or set ca_cert."
)
TOKEN = Row("token", "token expired", "in the middle of the writes", "fails at once", UNAUTHORIZED)
PLUGIN = Row(
    "plugin", "token expired, with a credential plugin", "in the middle of the writes",
    "asks the plugin once, and succeeds",
)  # fmt: skip
PLUGIN_WATCH = Row("plugin-watch", "token expired, with a credential plugin", "a watch", "asks the plugin once, watches on and succeeds")
STRANGER = Row("stranger", "certificate of another authority", "the connection", "fails at once; no request is sent", UNTRUSTED)
RESTART = Row("restart", "API server killed (`kill -9`)", "in the middle of 60 writes", "waits until it is back, and succeeds")
RESTART_WAIT = Row("restart-wait", "API server killed (`kill -9`)", "a watch", "waits until it is back, watches on and succeeds")
CUT = "network cut for 60 s"
CUT_WRITES = Row("cut-writes", CUT, "in the middle of the writes", "asks again when it is back, and succeeds")
CUT_PRUNE = Row("cut-prune", CUT, "a deletion of prune, with the Lease", "asks again when it is back, and succeeds")
CUT_WAIT = Row("cut-wait", CUT, "a watch", "reads again when it is back, watches on and succeeds")
CUT_LOG = Row("cut-log", CUT, "the log of a pod", "asks again when it is back, and succeeds")
CUT_TUNNEL = Row("cut-tunnel", CUT, "a forwarded port", "goes on when it is back")
AHEAD = Row("clock-ahead", "clock of the controller an hour ahead", "a run with prune, wait and plugin", "succeeds; the plugin runs once")
BEHIND = Row(
    "clock-behind", "clock of the controller an hour behind", "a run with prune, wait and plugin", "succeeds; the plugin runs once"
)
DISK = Row(
    "disk",
    "disk of the controller full",
    "the first connection, with a client certificate",
    "fails at once; no request is sent",
    "The client key in ~/.kube/config cannot be read by OpenSSL without a temporary file: No space left on device. Free space there, or "
    "set the environment variable TMPDIR to a folder of a disk with room.",
)
FULL = Row(
    "claim",
    "claim of a pod full",
    "a Job that writes a checkpoint",
    "names the pod at wait_timeout, and `doctor.yml` the end of its log; the Job goes on from the last checkpoint once there is room",
    "No space left on device",
)
RENEWED = Row("renewed", "token of a ServiceAccount ended", "a wait", "takes the new token of `tokenFile` or plugin, and succeeds")
FLEET = Row(
    "fleet", "one of five hosts has an invalid object", "one task for all of them",
    "four are done; the next run does the fifth alone",
    "1 problem in the objects to apply: ConfigMap Not_A_Name: metadata.name 'Not_A_Name' is not a DNS name (lower case letters, digits, "
    "'-' and '.', at most 253). Nothing was changed.",
)  # fmt: skip

ROWS = (
    *(Row(case.name, case.fault, case.where, case.does, case.message) for case in CASES),
    TOKEN, PLUGIN, PLUGIN_WATCH, STRANGER, RESTART, RESTART_WAIT,
    CUT_WRITES, CUT_PRUNE, CUT_WAIT, CUT_LOG, CUT_TUNNEL, AHEAD, BEHIND, DISK, FULL, RENEWED, FLEET,
)  # fmt: skip
