# SPDX-License-Identifier: GPL-3.0-or-later
"""A run by the published policies, in an account that behaves as a real one does: late, forgetful and busy.

python -m simulators.aws.trouble URL STAGE    before a run: its policies, and what will happen to it
python -m simulators.aws.trouble URL          after it: fails unless all of that has happened
"""

import sys
from typing import Any

from .client import Account
from .play import published

Happens = tuple[str, str, int, dict[str, Any]]
BUSY = {
    "code": "OperationAborted",
    "message": "A conflicting conditional operation is currently in progress against this resource. Please try again.",
    "status": 409,
}


def throttled(*operations: str) -> list[Happens]:
    return [("throttle", operation, 2, {}) for operation in operations]


READS = ("DescribeVpcs", "GetRole", "DescribeCluster", "DescribeFileSystems", "HeadBucket")
# A stage is a run: what its caller is about, and what happens to the run.
STAGES: dict[str, tuple[str, list[Happens]]] = {
    "plan": ("check", throttled(*READS)),
    "build": (
        "apply",
        [
            *throttled(*READS, "CreateSubnet", "CreateNatGateway", "CreateRole", "CreateNodegroup", "CreateMountTarget"),
            *throttled("PutPublicAccessBlock", "PutObject", "CreateLaunchTemplate"),
            ("role_not_visible", "CreateCluster", 6, {}),
            ("role_not_visible", "CreateNodegroup", 2, {}),
            ("role_not_visible", "CreatePodIdentityAssociation", 2, {}),
            ("stale", "HeadBucket", 3, {"after": "PutBucketPolicy"}),
            ("stale", "DescribeFileSystems", 3, {"after": "CreateFileSystem"}),
            ("stale", "DescribeCluster", 3, {"after": "CreateCluster"}),
            ("stale", "DescribeNodegroup", 3, {"after": "CreateNodegroup"}),
            ("stale", "DescribeAddon", 3, {"after": "CreateAddon"}),
            ("refuse", "CreateBucket", 2, BUSY),
            ("refuse", "PutBucketPolicy", 2, BUSY),
        ],
    ),
    "site": ("apply", throttled(*READS, "CreateAddon", "GetObject")),
    "again": ("apply", throttled(*READS, "DescribeNodegroup", "DescribeAddon")),
    "teardown": (
        "teardown",
        [
            *throttled(*READS, "DeleteNodegroup", "DeleteCluster", "DeleteMountTarget", "DeleteRole", "DeleteNatGateway"),
            *(
                ("dependency", operation, 1, {})
                for operation in ("DeleteSubnet", "DeleteSecurityGroup", "DetachInternetGateway", "DeleteVpc")
            ),
        ],
    ),
}


def main(url: str, stage: str = "") -> int:
    account = Account(url)
    if stage:
        phase, happens = STAGES[stage]
        account.policies(phase, published()[phase])
        for kind, operation, times, detail in happens:
            account.fault(kind, operation, times, **detail)
        return 0
    if waiting := account.ask("faults"):
        print(f"did not happen: {waiting}", file=sys.stderr)
    return 1 if waiting else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
