# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests, operations and the life of a kind with an ordinary REST API, shown by networks and by a kind with labels."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._cloud.converge import ConvergeOptions, Outcome, WaitOptions, converge
from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput, Unreachable, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._gcp import operations
from ansible_collections.muster.ml.plugins.module_utils._gcp.api import Api
from ansible_collections.muster.ml.plugins.module_utils._gcp.compare import (
    asked_part,
    labels_with,
    mark_of,
    merged,
    same,
    split_mark,
    text_with,
)
from ansible_collections.muster.ml.plugins.module_utils._gcp.errors import Refused
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_address import GcpAddress
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_firewall import GcpFirewall
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_network import GcpNetwork
from ansible_collections.muster.ml.plugins.module_utils._gcp.plan import Step
from ansible_collections.muster.ml.plugins.module_utils._gcp.resource import SET_LABELS, Labelled, Resource
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock
from ansible_collections.muster.ml.tests.unit.fakes.google import PROJECT, Google, error

OLD, NEW = "https://www.googleapis.com/compute/v1", "https://compute.googleapis.com/compute/v1"
OWNER = {"muster-owner": "m"}
NETWORK = GcpNetwork(project=PROJECT, owner="m", name="x", routing_mode="REGIONAL")
PATH = f"projects/{PROJECT}/global/networks/x"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Address(Labelled):
    NOUN = "address"
    SERVICE, COLLECTION = "compute", "addresses"
    PARENT = "projects/{project}/regions/{region}"
    CHANGES = (SET_LABELS,)

    region: str
    address_type: str | None = None

    def body(self) -> dict[str, t.Any]:
        return {"name": self.name, "addressType": self.address_type}


ADDRESS = Address(project=PROJECT, owner="m", name="x", region="r", address_type="EXTERNAL")
ADDRESS_PATH = f"projects/{PROJECT}/regions/r/addresses/x"
RULE = GcpFirewall(project=PROJECT, owner="m", name="f", network="x", allowed=[{"ip_protocol": "icmp"}], source_ranges=["10.0.0.0/8"])
RULE_PATH = f"projects/{PROJECT}/global/firewalls/f"
WIDE = GcpAddress(project=PROJECT, owner="m", name="wide")
WIDE_PATH = f"projects/{PROJECT}/global/addresses/wide"


def run(google: Google, resource: Resource, *, seconds: float = 600, **options: t.Any) -> Outcome:
    mark = {"muster-owner": resource.owner} if resource.owner else {}
    choices = ConvergeOptions(**{"absent": False, "check": False, "mark": mark, **options})
    return converge(resource, Api(google, FakeClock()), choices, WaitOptions(wait=True, seconds=seconds))


# Comparison


@pytest.mark.parametrize(
    ("live", "desired", "equal"),
    [
        ({"a": 1, "added": 2}, {"a": 1}, True),
        ({}, {"a": False, "b": "", "c": [], "d": {}, "e": None}, True),
        ({"a": "100"}, {"a": 100}, True),
        (["b", "a"], ["a", "b"], True),
        (["a", "b"], ["a"], False),
        ([{"k": 1, "x": 1}, {"k": 2}], [{"k": 2}, {"k": 1}], True),
        ([{"k": 1}, {"k": 1}], [{"k": 1}, {"k": 2}], False),
        (f"{OLD}/projects/p/global/networks/n", "projects/p/global/networks/n", True),
        (f"{OLD}/projects/p/global/networks/n", f"{NEW}/projects/p/global/networks/n", True),
        ("projects/p/global/networks/n", "n", True),
        ("projects/p/global/networks/n", "projects/q/global/networks/n", False),
        ("a/n", "n", False),
        (True, False, False),
        (None, True, False),
        ("x", "", False),
    ],
)  # fmt: skip
def test_only_what_was_asked_for_is_compared(live: t.Any, desired: t.Any, equal: bool) -> None:
    assert same(live, desired) is equal


@pytest.mark.parametrize(
    ("live", "desired", "equal"),
    [
        ({"a": "1"}, {"a": "1"}, True),
        ({"a": "1"}, {"a": 1}, True),
        ({"a": "1", "b": "2"}, {"a": "1"}, False),
        ({"a": "1"}, {}, False),
        (None, {}, True),
        ({"a": ""}, {}, False),
        ({"a": ""}, {"a": ""}, True),
        ({"a": "projects/p/x"}, {"a": "x"}, False),
        ({"a": {"from": 1, "to": 2}}, {"a": {"from": 1}}, False),
        ({"a": {"from": 1, "how": {}}}, {"a": {"from": "1", "how": {"deep": None}}}, True),
        ({"a": {"of": [{"x": 1, "y": 2}]}}, {"a": {"of": [{"x": 1}]}}, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["labels", "config.linuxNodeConfig.sysctls"])
def test_every_key_of_a_map_counts_at_any_depth(live: t.Any, desired: t.Any, equal: bool, path: str) -> None:
    for name in reversed(path.split(".")):
        live, desired = {name: live, "added": 1}, {name: desired}
    assert same(live, desired) is equal
    assert merged(live, desired)["added"] == 1
    assert same(merged(live, desired), desired), "a request that replaces the whole has the map as it is to be"
    assert same(asked_part(live, desired), desired) is equal, "a diff shows the difference"


def test_the_mark_is_among_the_labels_and_googles_own_stay() -> None:
    assert labels_with({"goog-x": "1", "old": "1"}, {"new": "1"}, "m") == {"goog-x": "1", "new": "1", **OWNER}
    assert labels_with({"old": "1"}, None, "m") == {"old": "1", **OWNER}
    assert labels_with({"old": "1", **OWNER}, {"new": "1"}, "") == {"new": "1", **OWNER}, "a mark never goes by itself"


def test_an_owner_is_refused_that_no_label_can_have() -> None:
    assert mark_of("muster--us-central1") == {"muster-owner": "muster--us-central1"}
    assert mark_of("m" * 63)
    assert mark_of(None) == mark_of("") == {}
    for owner, words in (
        (f"{'m' * 40}--northamerica-northeast1", r"m--northamerica-northeast1 \(65 characters\) cannot be an owner: .* at most 63"),
        ("Muster", r"Muster \(6 characters\) cannot be an owner: Google allows lowercase letters, digits, hyphens and underscores"),
        ("a) (muster-owner=b", "cannot be an owner"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=words):
            mark_of(owner)


def test_the_mark_ends_the_description() -> None:
    assert text_with("", None, "m") == "(muster-owner=m)"
    assert text_with("(muster-owner=m)", "text", "m") == "text (muster-owner=m)"
    assert text_with("text (muster-owner=m)", None, "") == "text (muster-owner=m)"
    assert split_mark("a (b) (muster-owner=m)") == ("a (b)", "m")
    assert split_mark("a (muster-owner=m) b") == ("a (muster-owner=m) b", "")


# Requests


def step(**change: t.Any) -> Step:
    return dataclasses.replace(NETWORK.creation(), **change)


@pytest.mark.parametrize(
    "refusal", [error(429, "rateLimitExceeded"), error(403, "rateLimitExceeded"), error(503, "backendError"), (503, "busy")]
)
def test_what_google_asks_to_send_again_is_sent_again(refusal: t.Any) -> None:
    google = Google()
    google.refusals = [("POST", refusal), ("POST", refusal)]
    assert run(google, NETWORK).plan.changed
    assert len(google.writes) == 1


def test_a_write_is_not_sent_again_when_nobody_knows_whether_it_was_done() -> None:
    google = Google()
    google.refusals = [("POST", error(500, "internalError"))]
    with pytest.raises(Refused, match="INTERNAL_ERROR"):
        run(google, NETWORK)
    assert google.writes == []
    google.refusals = [("GET", error(500, "internalError"))]
    assert run(google, NETWORK).plan.changed


def test_a_service_account_that_is_not_seen_yet_is_waited_for() -> None:
    google = Google()
    google.refusals = [("POST", error(400, "badRequest", "Service account a@p.iam.gserviceaccount.com does not exist."))] * 3
    assert run(google, NETWORK).plan.changed


class Breaking(Google):
    """A connection that breaks at some requests, by their number; what was sent may have been done or not."""

    def __init__(self, *breaks: int, done: bool = False) -> None:
        super().__init__()
        self.breaks, self.done = breaks, done

    def request(self, verb: str, url: str, **more: t.Any) -> t.Any:
        breaks = len(self.asked) in self.breaks
        if not breaks or self.done:
            answer = super().request(verb, url, **more)
        else:
            self.asked.append("broken")
        if breaks:
            raise Unreachable("the connection broke")
        return answer


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("when", range(1, 6))
def test_a_connection_may_break_at_any_request(when: int, done: bool) -> None:
    google = Breaking(when, done=done)
    assert run(google, NETWORK).plan.changed
    assert not run(google, NETWORK).plan.changed
    assert len(google.writes) == 1
    google.breaks = (len(google.asked) + when - 1,)
    run(google, NETWORK, absent=True)
    assert google.things == {}


def test_a_wrong_address_is_not_tried_for_long() -> None:
    google = Breaking(*range(99))
    with pytest.raises(Unreachable, match="the connection broke"):
        run(google, NETWORK)
    assert len(google.asked) < 5


def test_pages_follow_each_other() -> None:
    google = Google()
    pages = iter([{"items": [1], "nextPageToken": "t"}, {"items": [2]}])
    google._get = lambda _path, _params: (200, next(pages))  # type: ignore[method-assign]
    assert Api(google, FakeClock()).pages("x", "compute", "projects/p/x", "items") == [1, 2]


# Operations


def looked_at(operation: dict[str, t.Any]) -> t.Any:
    google = Google()
    started = {"operationType": "X", "name": "o", "status": "RUNNING"}
    google.operations["projects/p/locations/l/operations/o"] = [operation]
    asked = step(service="container", path="projects/p/locations/l/clusters")
    return operations.look(Api(google, FakeClock()), "x", asked, started)


def test_an_operation_tells_how_far_it_is() -> None:
    metrics = {"metrics": [{"name": "CLUSTER_CONFIGURING", "intValue": "3"}]}
    running = {"status": "RUNNING", "progress": metrics, "detail": "nodes"}
    assert looked_at(running) == "operation o is RUNNING, CLUSTER_CONFIGURING 3, nodes"
    assert looked_at({"status": "DONE"}) is None


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ({"error": {"code": 9, "message": "It failed."}}, "FAILED_PRECONDITION: It failed"),
        ({"error": {"code": 8, "message": "no"}, "nodepoolConditions": [{"code": "GCE_STOCKOUT", "message": "no"}]}, "STOCKOUT: no"),
        ({"statusMessage": "no", "clusterConditions": [{"code": "GCE_QUOTA_EXCEEDED"}]}, "QUOTA_EXCEEDED: no"),
        ({"error": {"errors": [{"code": "QUOTA_EXCEEDED", "message": "Quota 'CPUS' exceeded."}]}}, "QUOTA_EXCEEDED: Quota 'CPUS' exceeded"),
    ],
)  # fmt: skip
def test_how_an_operation_ended_is_told(end: dict[str, t.Any], told: str) -> None:
    ended = looked_at({"status": "DONE", **end})
    assert isinstance(ended, operations.Ended)
    assert str(ended.problem) == told


def test_what_is_done_at_once_is_not_looked_for() -> None:
    google = Google()
    answer = {"name": "operations/noop.DONE_OPERATION", "done": True}
    assert operations.look(Api(google, FakeClock()), "x", step(service="serviceusage"), answer) is None
    assert google.asked == []


# The life of a kind


def test_what_appears_between_reading_and_creating_is_judged_by_its_mark() -> None:
    """Another run of ours was first, or a read was an old one; and somebody else may have been."""
    for description, ours in (("(muster-owner=m)", True), ("", False)):
        google = Google()
        google.things[PATH] = {"name": "x", "id": "1", "description": description}
        google.refusals = [("GET", error(404, "notFound"))]
        if ours:
            assert run(google, NETWORK).live
            continue
        with pytest.raises(InvalidInput, match="does not carry the mark muster-owner=m: another owner created it"):
            run(google, NETWORK)
        assert google.things[PATH]["description"] == ""


def test_a_network_cannot_get_a_mark_later() -> None:
    google = Google()
    run(google, dataclasses.replace(NETWORK, owner=None))
    with pytest.raises(InvalidInput, match="without owner the name alone decides"):
        run(google, NETWORK, adopt=True)


@pytest.mark.parametrize("owner", ["m", "m--us-central1"])
@pytest.mark.parametrize(
    ("resource", "path", "way"),
    [
        pytest.param(
            ADDRESS, ADDRESS_PATH, "take muster-owner={owner} away and run with adopt: true, or give it the label {here}",
            id="label",
        ),
        pytest.param(
            RULE, RULE_PATH, "take muster-owner={owner} away and run with adopt: true, or give it the mark {here}", id="mark",
        ),
        pytest.param(WIDE, WIDE_PATH, "give it the label {here}", id="both"),
        pytest.param(
            NETWORK, PATH, "run with owner: {owner}, as Google cannot change the description of a network", id="fixed mark",
        ),
    ],
)  # fmt: skip
def test_the_mark_of_another_region_is_named_with_the_way_to_go_on(resource: t.Any, path: str, way: str, owner: str) -> None:
    """So is the older one, the name alone, of which nobody can tell whose it is."""
    google = Google()
    run(google, dataclasses.replace(resource, owner=owner))
    before = dict(google.things[path])
    here = dataclasses.replace(resource, owner="m--europe-west1")
    for adopt in (False, True):
        with pytest.raises(InvalidInput) as refused:
            run(google, here, adopt=adopt)
        assert f"muster-owner=m--europe-west1: it has muster-owner={owner}, and it is left as it is" in str(refused.value)
        expected = way.format(owner=owner, here="muster-owner=m--europe-west1")
        assert str(refused.value.hint) == f"Choose another name; or, to take it over, {expected}"
    kept = run(google, here, absent=True).kept
    assert kept.endswith(f"the mark of this owner (muster-owner=m--europe-west1), but muster-owner={owner}")
    assert google.things[path] == before


def test_the_ways_to_go_on_lead_on() -> None:
    google = Google()
    for resource in (RULE, WIDE, NETWORK):
        run(google, dataclasses.replace(resource, owner="m--us-central1"))
    google.things[RULE_PATH]["description"] = ""
    run(google, RULE, adopt=True)
    assert google.things[RULE_PATH]["description"] == "(muster-owner=m)"
    google.things[WIDE_PATH]["labels"] = dict(OWNER)
    assert not run(google, WIDE).plan.changed
    assert not run(google, dataclasses.replace(NETWORK, owner="m--us-central1")).plan.changed


def test_an_operation_that_ends_badly_fails_the_task_with_googles_reason_and_a_next_step() -> None:
    google = Google()
    google.ends = [{"error": {"errors": [{"code": "QUOTA_EXCEEDED", "message": "Quota 'NETWORKS' exceeded"}]}}]
    with pytest.raises(Failed, match=r"create failed: QUOTA_EXCEEDED.*'NETWORKS' exceeded\. Ask for more quota") as failed:
        run(google, NETWORK)
    assert failed.value.details["code"] == "QUOTA_EXCEEDED"


SERVICES, GKES = r" \(a Service, Ingress or Gateway on a cluster made it.*?\)", r" \(GKE made it for a cluster.*?\)"


@pytest.mark.parametrize(
    ("holder", "who"),
    [
        ("zones/r-a/networkEndpointGroups/k8s1-ddb447c6-router-router-80-9f63cdd9", SERVICES),
        ("zones/r-a/networkEndpointGroups/ingressgateway", SERVICES),
        ("global/firewalls/k8s-e4198c6a84c32393-node-http-hc", SERVICES),
        ("global/firewalls/k8s-fw-adf57fd8b2b5a11e7a07842010af002a", SERVICES),
        ("regions/r/forwardingRules/adf57fd8b2b5a11e7a07842010af002a", SERVICES),
        ("global/firewalls/gke-my-cluster-usa-1-43ae0aff-mcsd", GKES),
        ("global/firewalls/ssh", ""),
    ],
)
@pytest.mark.parametrize("prefix", ["", "https://www.googleapis.com/compute/v1/"])
def test_what_is_still_used_is_asked_for_again_until_the_end_names_the_holder(holder: str, who: str, prefix: str) -> None:
    """The holders are those of issues 5423, 5948, 14202 of hashicorp's provider, murphye/cheap-gke-cluster 8 and others."""
    used = {
        "code": "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE",
        "message": f"The network resource 'projects/p/global/networks/x' is already being used by '{prefix}projects/p/{holder}'",
    }
    google = Google()
    run(google, NETWORK)
    google.ends = [{"error": {"errors": [used]}}] * 3
    assert run(google, NETWORK, absent=True).live is None
    run(google, NETWORK)
    google.ends = [{"error": {"errors": [used]}}] * 300
    with pytest.raises(
        WaitTimeout, match=rf"Google network x is busy or still in use after 600 s.*used by '\S*{holder}'{who}\. Wait until"
    ):
        run(google, NETWORK, absent=True)


def test_what_is_busy_is_waited_for_and_named_when_it_does_not_end() -> None:
    google = Google()
    busy = error(400, "badRequest", "Cluster is running incompatible operation operation-1.", status="FAILED_PRECONDITION")
    google.refusals = [("POST", busy)] * 3
    assert run(google, NETWORK).plan.changed
    google.refusals = [("DELETE", busy)] * 999
    with pytest.raises(WaitTimeout, match=r"network x is busy or still in use after 600 s.*incompatible operation operation-1"):
        run(google, NETWORK, absent=True)


def test_an_operation_that_does_not_end_in_time_tells_how_far_it_is() -> None:
    google = Google()
    started = google.operation

    def endless(path: str) -> dict[str, t.Any]:
        answer = started(path)
        google.operations = {place: states[:1] for place, states in google.operations.items()}
        return answer

    google.operation = endless  # type: ignore[method-assign]
    with pytest.raises(WaitTimeout, match=r"create has not finished after 60 s. Last seen: operation \S+ is RUNNING, 40 %\. Google"):
        run(google, NETWORK, seconds=60)
