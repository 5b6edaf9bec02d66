# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: eks_cluster
short_description: EKS clusters that converge
version_added: 0.1.0
description:
  - Makes, changes and deletes the control plane of a cluster in Amazon EKS.
  - Unlike C(community.aws.eks_cluster) it applies what changes later, that is version, endpoint access, logging, subnets,
    authentication mode, encryption, support type, protection and tags.
  - What EKS cannot change is refused before anything is sent.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - amazon.aws.tags
  - amazon.aws.boto3
  - muster.ml.attributes
  - muster.ml.aws
  - muster.ml.aws.waits
options:
  name:
    description: Name of the cluster.
    type: str
    required: true
  version:
    description:
      - Kubernetes version, such as V("1.35"). When the cluster is made, the newest one if it is left out.
      - EKS upgrades one minor version at a time and never goes back; node groups have to be upgraded in between.
    type: str
  role_arn:
    description: IAM role of the control plane. Needed to make a cluster; cannot be changed.
    type: str
  subnet_ids:
    description: Subnets of the control plane's network interfaces, in at least two availability zones. Needed to make a cluster.
    type: list
    elements: str
  security_group_ids:
    description: Security groups of these interfaces, besides the one that EKS makes.
    type: list
    elements: str
  endpoint_public_access:
    description: Whether the API server can be reached from outside the VPC.
    type: bool
  endpoint_private_access:
    description: Whether the API server can be reached from inside the VPC.
    type: bool
  public_access_cidrs:
    description: From where it can be reached, where O(endpoint_public_access=true).
    type: list
    elements: str
  service_ipv4_cidr:
    description: Addresses of Services. Cannot be changed.
    type: str
  authentication_mode:
    description:
      - Where EKS looks up who may use the cluster. It can only be moved on, never back.
      - Access entries (M(muster.ml.eks_access_entry)) need V(API_AND_CONFIG_MAP) or V(API).
    type: str
    choices: [CONFIG_MAP, API_AND_CONFIG_MAP, API]
  bootstrap_cluster_creator_admin_permissions:
    description: Whether the caller becomes administrator of a new cluster. Only looked at when the cluster is made.
    type: bool
  bootstrap_self_managed_addons:
    description:
      - Whether EKS puts its network add-ons into a new cluster by itself. Only looked at when the cluster is made.
      - V(false) leaves them to M(muster.ml.eks_addon).
    type: bool
  logging:
    description: Logs of the control plane that are sent to CloudWatch; C([]) for none.
    type: list
    elements: str
    choices: [api, audit, authenticator, controllerManager, scheduler]
  encryption_key_arn:
    description: KMS key that Secrets are encrypted with. Can be added later, but not changed or taken away.
    type: str
  support_type:
    description: What happens at the end of standard support; V(STANDARD) upgrades by itself, V(EXTENDED) costs more.
    type: str
    choices: [STANDARD, EXTENDED]
  deletion_protection:
    description: Whether deletion is refused. V(false) together with O(state=absent) lifts it first.
    type: bool
  wait_timeout:
    description: Seconds to wait, in all.
    type: int
    default: 3600
"""

EXAMPLES = r"""
- name: Cluster whose API server only the office can reach
  muster.ml.eks_cluster:
    region: us-west-2
    name: training
    version: "1.35"
    role_arn: arn:aws:iam::123456789012:role/training-cluster
    subnet_ids: [subnet-0a, subnet-0b]
    endpoint_private_access: true
    public_access_cidrs: [203.0.113.0/24]
    authentication_mode: API
    logging: [audit]

- name: Later, only the version
  muster.ml.eks_cluster:
    region: us-west-2
    name: training
    version: "1.36"
"""

RETURN = r"""
kept:
  description: That it was to be absent and was kept, and why. A warning says the same.
  returned: when it was kept
  type: str
actions:
  description: The requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["eks:update_cluster_version (version 1.34 to 1.35)"]
cluster:
  description: The cluster as EKS describes it, in snake_case.
  returned: success
  type: dict
  contains:
    endpoint:
      description: Address of the API server.
      returned: when the cluster is active
      type: str
    certificate_authority:
      description: Its certificate authority, base64 in C(data).
      returned: when the cluster is active
      type: dict
    identity:
      description: C(oidc.issuer), for M(muster.ml.iam_oidc_provider).
      returned: when the cluster is active
      type: dict
    status:
      description: Status.
      returned: always
      type: str
      sample: ACTIVE
    version:
      description: Kubernetes version.
      returned: always
      type: str
"""

import dataclasses
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._aws.eks_cluster import LOG_TYPES, MODES, EksCluster
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import STATE, TAGS, aws_main, waiting

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    **STATE,
    **TAGS,
    **waiting(3600),
    "name": {"type": "str", "required": True},
    "version": {"type": "str"},
    "role_arn": {"type": "str"},
    "subnet_ids": {"type": "list", "elements": "str"},
    "security_group_ids": {"type": "list", "elements": "str"},
    "endpoint_public_access": {"type": "bool"},
    "endpoint_private_access": {"type": "bool"},
    "public_access_cidrs": {"type": "list", "elements": "str"},
    "service_ipv4_cidr": {"type": "str"},
    "authentication_mode": {"type": "str", "choices": list(MODES)},
    "bootstrap_cluster_creator_admin_permissions": {"type": "bool"},
    "bootstrap_self_managed_addons": {"type": "bool"},
    "logging": {"type": "list", "elements": "str", "choices": list(LOG_TYPES)},
    "encryption_key_arn": {"type": "str", "no_log": False},
    "support_type": {"type": "str", "choices": ["STANDARD", "EXTENDED"]},
    "deletion_protection": {"type": "bool"},
}


def resource(params: dict[str, t.Any]) -> EksCluster:
    """The cluster that the options describe."""
    return EksCluster(**{field.name: params[field.name] for field in dataclasses.fields(EksCluster)})


def main() -> None:
    """Run as a module."""
    aws_main(ARGUMENT_SPEC, resource, "cluster")


if __name__ == "__main__":
    main()
