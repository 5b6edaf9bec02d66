# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases of the images of nodes, and where AWS publishes the newest one.

Parameters: EKS user guide, "Retrieve recommended Amazon Linux AMI IDs"; names of releases: the same, "Amazon EKS optimized Amazon Linux AMI
versions".
"""

import re
from typing import Any

from ..api import Asked, Refused
from ..journal import JOURNAL

PARAMETER = re.compile(
    r"^/aws/service/eks/optimized-ami/(?P<version>1[.][0-9]+)/amazon-linux-2023/(x86_64|arm64)/(standard|nvidia|neuron)"
    r"/recommended/release_version$"
)
FIRST, NEXT = "20261101", "20261120"


def newest(version: str) -> str:
    """The fault ``release``, never used up, puts another one on offer."""
    offered = any(fault.kind == "release" for fault in JOURNAL.faults)
    return f"{version}.0-{NEXT if offered else FIRST}"


def chosen(version: str, desired: str | None) -> str:
    """A release that exists for the version ("The AMI version of the Amazon EKS optimized AMI", CreateNodegroupRequest.releaseVersion)."""
    release = desired or newest(version)
    if not re.match(rf"^{re.escape(version)}[.][0-9]+-[0-9]{{8}}$", release):
        raise Refused("InvalidParameterException", f"Requested release version {release} is not valid for kubernetes version {version}.")
    return release


def parameter(asked: Asked) -> dict[str, Any] | None:
    """The answer to a question for such a parameter; None where moto may know it."""
    name = asked.params.get("Name", "") if asked.operation == "GetParameter" else ""
    match = PARAMETER.match(name)
    if not match:
        return None
    return {"Parameter": {"Name": name, "Type": "String", "Value": newest(match["version"]), "Version": 1}}
