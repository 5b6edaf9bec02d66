# SPDX-License-Identifier: GPL-3.0-or-later
"""Firewall rules. What is not said is open: without a source, 0.0.0.0/0 is one.

Rules: either allowed or denied; a rule for what goes out has no tags and service accounts as sources, and tags and service accounts do not
mix (descriptions of the fields in the discovery document); ranges of both sources and destinations may be in either
(cloud.google.com/firewall/docs/firewalls, since 2023; GoogleCloudPlatform/magic-modules PR 7698, before it hashicorp/
terraform-provider-google issue 9280); a patch replaces whole lists; network, direction and whether it allows or denies stay as they were
made (cloud.google.com/firewall/docs/using-firewalls#updating_firewall_rules).
"""

import ipaddress
import re

from .. import quotas
from ..api import Asked, Refused, handles
from ..discovery import Body
from ..state import project
from .resources import bare, change, find, insert, invalid, made, refer, remove

PROTOCOLS = ("tcp", "udp", "icmp", "esp", "ah", "sctp", "ipip", "all")
PORTED = ("tcp", "udp", "sctp", "6", "17", "132")
FIXED = ("network", "direction")


def _check(body: Body) -> None:
    allowed, denied = body.get("allowed"), body.get("denied")
    if bool(allowed) == bool(denied):
        raise invalid("allowed", "", "Exactly one of allowed and denied must be specified.")  # assumed: the wording
    for field, rules in (("allowed", allowed), ("denied", denied)):
        for index, rule in enumerate(rules or []):
            _rule(f"{field}[{index}]", rule)
    for field in ("sourceRanges", "destinationRanges"):
        for index, one in enumerate(body.get(field) or []):
            try:
                ipaddress.ip_network(one)
            except ValueError as error:
                raise invalid(f"{field}[{index}]", one, "Must be a valid IP address range in CIDR format.") from error
    if body["direction"] == "EGRESS" and (body.get("sourceTags") or body.get("sourceServiceAccounts")):
        text = "Should not specify source tag or service account for egress direction."  # mchmarny/grunner issue 6
        raise Refused(400, text, reason="badRequest")
    tags = body.get("sourceTags") or body.get("targetTags")
    if tags and (body.get("sourceServiceAccounts") or body.get("targetServiceAccounts")):
        raise invalid("targetServiceAccounts", "", "Tags and service accounts cannot be used together.")  # assumed: the wording
    if not 0 <= int(body["priority"]) <= 65535:
        raise invalid("priority", body["priority"], "Must be between 0 and 65535.")


def _rule(field: str, rule: Body) -> None:
    protocol = str(rule.get("IPProtocol", ""))
    if protocol not in PROTOCOLS and not (protocol.isdigit() and int(protocol) < 256):
        raise invalid(f"{field}.IPProtocol", protocol, "Must be a valid protocol name or number.")
    ports = rule.get("ports") or []
    if ports and protocol not in PORTED:
        raise invalid(f"{field}.ports", ports[0], f"Ports are not allowed for protocol {protocol}.")
    for index, port in enumerate(ports):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", str(port))
        if not match or not 0 <= int(match[1]) <= int(match[2] or match[1]) <= 65535:
            text = "Ports specified in the wrong format."
            raise invalid(f"{field}.ports[{index}]", port, text)


def _defaults(body: Body) -> Body:
    """A source that is not given is every one; the same of destinations."""
    if body["direction"] == "INGRESS":
        if not any(body.get(name) for name in ("sourceRanges", "sourceTags", "sourceServiceAccounts")):
            body["sourceRanges"] = ["0.0.0.0/0"]
    elif not body.get("destinationRanges"):
        body["destinationRanges"] = ["0.0.0.0/0"]
    for name in (
        "sourceRanges",
        "destinationRanges",
        "sourceTags",
        "targetTags",
        "sourceServiceAccounts",
        "targetServiceAccounts",
        "allowed",
        "denied",
    ):
        if not body.get(name):
            body.pop(name, None)
    for rule in [*(body.get("allowed") or []), *(body.get("denied") or [])]:
        # By its name or its number; case does not matter.
        rule["IPProtocol"] = {"6": "tcp", "17": "udp", "1": "icmp"}.get(str(rule["IPProtocol"]), str(rule["IPProtocol"]))
        if not rule.get("ports"):
            rule.pop("ports", None)
    log = body.get("logConfig") or {}
    body["logConfig"] = {"enable": True, "metadata": "INCLUDE_ALL_METADATA", **log} if log.get("enable") else {"enable": False}
    return body


def _new(asked: Asked) -> Body:
    defaults = {"priority": 1000, "direction": "INGRESS", "disabled": False, "network": "global/networks/default"}
    body = made(asked, asked.body, defaults)
    body["network"] = refer(asked, body["network"], "networks", "resource.network").body["selfLink"]
    _check(body)
    return _defaults(body)


@handles("compute.firewalls.insert")
def _insert(asked: Asked) -> Body:
    found = project(str(asked.params["project"]))
    return insert(asked, _new(asked), failed=quotas.exceeded(asked, found, "", {"FIREWALLS": 1.0}))


def _fixed(asked: Asked, before: Body, after: Body) -> None:
    for name in FIXED:
        if bare(str(before[name])) != bare(str(after[name])):
            raise invalid(name, after[name], "The field cannot be changed.")  # assumed: the wording
    if ("allowed" in before) != bool(after.get("allowed")):
        raise invalid("allowed", "", "The action of a rule cannot be changed.")  # assumed: the wording


@handles("compute.firewalls.patch")
def _patch(asked: Asked) -> Body:
    thing = find(asked)
    known = asked.method.schemas["Firewall"]["properties"]
    wanted = {name: value for name, value in asked.body.items() if "[Output Only]" not in known[name].get("description", "")}
    after = {**thing.body, **wanted}
    if "network" in wanted:
        after["network"] = refer(asked, wanted["network"], "networks", "resource.network").body["selfLink"]
    _fixed(asked, thing.body, after)
    _check(after)
    after = _defaults(after)
    return change(asked, thing, {name: after.get(name) for name in {*thing.body, *after}}, "patch")


@handles("compute.firewalls.delete")
def _delete(asked: Asked) -> Body:
    return remove(asked, find(asked))
