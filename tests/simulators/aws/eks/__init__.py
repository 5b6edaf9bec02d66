# SPDX-License-Identifier: GPL-3.0-or-later
"""EKS. Every request was checked against AWS's own description of it before it comes here.

Rules are those of the operations' documentation in botocore 1.44.5 (data/eks/2017-11-01/service-2.json) unless another
source stands beside one. What no source says is marked *assumed*.
"""

from collections.abc import Iterator
from typing import Any

from ..api import Asked, Refused
from ..state import SETTINGS, Body
from . import access, addons, clusters, nodegroups
from .account import account

__all__ = ["SETTINGS", "answer", "tagged"]

OPERATIONS = clusters.OPERATIONS | nodegroups.OPERATIONS | addons.OPERATIONS | access.OPERATIONS


def answer(asked: Asked) -> Body:
    handler: Any = OPERATIONS.get(asked.operation)
    if handler is None:
        raise Refused("NotSimulated", f"{asked.operation} is not simulated", 501)
    result: Body = handler(account(asked.region), asked.params)
    return result


def tagged(region: str) -> Iterator[tuple[str, dict[str, str]]]:
    """ARN and tags of everything that has tags."""
    for cluster in account(region).clusters.values():
        for body in clusters.bodies(cluster):
            [arn, *_others] = [str(body[name]) for name in clusters.ARNS if name in body]
            yield arn, body["tags"]
