# SPDX-License-Identifier: GPL-3.0-or-later
"""From where the API server of a cluster can be reached.

Rules: EKS user guide, "Cluster API server endpoint" (docs.aws.amazon.com/eks/latest/userguide/cluster-endpoint.html). Without public
access only the VPC and networks connected to it reach the private endpoint, and only where a security group of the control plane's
network interfaces lets TCP 443 in; the group that EKS makes admits only itself.
"""

import ipaddress
from typing import Any

from ..api import Refused
from ..state import SETTINGS, ec2
from .account import Account, Cluster

HTTPS = 443


def reachable(account: Account, cluster: Cluster) -> bool:
    """Whether whoever runs the tests reaches it."""
    config = cluster.body["resourcesVpcConfig"]
    if config["endpointPublicAccess"] and _in(SETTINGS.caller_address, config["publicAccessCidrs"]):
        return True
    inside = SETTINGS.caller_private_address
    groups = [config["clusterSecurityGroupId"], *config["securityGroupIds"]]
    return bool(config["endpointPrivateAccess"] and inside and any(_admits(account, group, inside) for group in groups))


def _admits(account: Account, group: str, address: str) -> bool:
    found: Any = ec2(account.region).get_security_group_from_id(group)
    for rule in found.ingress_rules if found else []:
        every = str(rule.ip_protocol) == "-1"
        port = every or (rule.ip_protocol == "tcp" and int(rule.from_port) <= HTTPS <= int(rule.to_port))
        if port and _in(address, [rule.ip_range["CidrIp"]] if "CidrIp" in rule.ip_range else []):
            return True
    return False


def _in(address: str, ranges: list[str]) -> bool:
    return any(ipaddress.ip_address(address) in ipaddress.ip_network(one) for one in ranges)


RESERVED = [
    ipaddress.ip_network(one) for one in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16")
]


def public_ranges(ranges: list[str]) -> list[str]:
    """The ranges as EKS keeps them: each as the network that it means (assumed, as EC2 does: CreateSubnet, CidrBlock).

    "You can't specify reserved addresses" (the same page of the user guide; message: github.com/aws/aws-cdk/issues/33176).
    """
    try:
        networks: list[Any] = [ipaddress.ip_network(one, strict=False) for one in ranges]
        wrong = any(network.version == 4 and network.subnet_of(one) for network in networks for one in RESERVED)
    except ValueError:
        wrong = True
    if wrong:
        said = f"The following CIDRs are invalid in publicAccessCidrs: [{','.join(ranges)}]"
        raise Refused("InvalidParameterException", said)
    return [str(network) for network in networks]
