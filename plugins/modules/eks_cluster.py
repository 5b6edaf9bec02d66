# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: eks_cluster
short_description: Manage EKS clusters
description:
  - Creates, updates and deletes the control plane of an Amazon EKS cluster.
  - Unlike C(community.aws.eks_cluster) it updates existing clusters, namely their version, endpoint access, logging,
    subnets, authentication mode, encryption, support type, deletion protection and tags.
  - A change that EKS does not support is refused before any request is sent.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - amazon.aws.tags
  - muster.ml.attributes
  - muster.ml.aws
  - muster.ml.aws.support
  - muster.ml.aws.waits
options:
  name:
    description: Name of the cluster.
    type: str
    required: true
  version:
    description:
      - Kubernetes version, such as V("1.35"). Defaults to the newest version for a new cluster.
      - EKS upgrades one minor version at a time and never downgrades. Node groups must be upgraded in between.
      - A warning says when the version leaves standard support, from 90 days before.
    type: str
  role_arn:
    description: IAM role of the control plane. Required to create a cluster. Cannot be changed.
    type: str
  subnet_ids:
    description: Subnets of the control plane's network interfaces, in at least two availability zones. Required for a new cluster.
    type: list
    elements: str
  security_group_ids:
    description: Additional security groups of the control plane's network interfaces.
    type: list
    elements: str
  endpoint_public_access:
    description: Serve the API outside of the VPC.
    type: bool
  endpoint_private_access:
    description: Serve the API inside the VPC.
    type: bool
  public_access_cidrs:
    description: Address ranges that may reach the public endpoint, with O(endpoint_public_access=true).
    type: list
    elements: str
  authentication_mode:
    description:
      - Source of the permissions to use the cluster. Can only be changed in the order of the choices.
      - Access entries (M(muster.ml.eks_access_entry)) need V(API_AND_CONFIG_MAP) or V(API).
    type: str
    choices: [CONFIG_MAP, API_AND_CONFIG_MAP, API]
  bootstrap_self_managed_addons:
    description:
      - Let EKS install its default network add-ons in a new cluster. Used at creation only.
      - V(false) leaves them to M(muster.ml.eks_addon).
    type: bool
  logging:
    description: Logs of the control plane to send to CloudWatch. C([]) for none.
    type: list
    elements: str
    choices: [api, audit, authenticator, controllerManager, scheduler]
  encryption_key_arn:
    description: KMS key, or alias of one, for the encryption of Secrets. Can be added later, but not changed or removed.
    type: str
  support_type:
    description: Support policy at the end of standard support. V(STANDARD) upgrades automatically, V(EXTENDED) costs more.
    type: str
    choices: [STANDARD, EXTENDED]
  deletion_protection:
    description: Refuse deletion of the cluster. V(false) together with O(state=absent) removes the protection first.
    type: bool
  wait_timeout:
    default: 3600
"""

EXAMPLES = r"""
- name: Create a cluster whose API only the office can reach
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

- name: Upgrade the cluster, with all other settings unchanged
  muster.ml.eks_cluster:
    region: us-west-2
    name: training
    version: "1.36"
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "EKS cluster training was kept: it does not have the mark of this owner (muster.ml/owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["eks:update_cluster_version (version 1.34 to 1.35)"]
cluster:
  description: Cluster as EKS describes it, in snake_case.
  returned: success
  type: dict
  sample: {endpoint: 'https://0123456789ABCDEF.gr7.eu-west-1.eks.amazonaws.com', certificate_authority: {data: LS0tLS1CRUdJTg==},
    identity: {oidc: {issuer: 'https://oidc.eks.eu-west-1.amazonaws.com/id/0123456789ABCDEF'}}, status: ACTIVE, version: '1.36'}
  contains:
    endpoint:
      description: Address of the API server.
      returned: when the cluster is active
      type: str
    certificate_authority:
      description: Certificate authority of the API server, base64 in C(data).
      returned: when the cluster is active
      type: dict
    identity:
      description: OpenID Connect issuer as C(oidc.issuer), for M(muster.ml.iam_oidc_provider).
      returned: when the cluster is active
      type: dict
    status:
      description: Status of the cluster.
      type: str
    version:
      description: Kubernetes version.
      type: str
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._aws.api import Api
from ansible_collections.muster.ml.plugins.module_utils._aws.eks_cluster import EksCluster, support_notice
from ansible_collections.muster.ml.plugins.module_utils._core.clock import utc
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import aws_main, converger, spec_of
from ansible_collections.muster.ml.plugins.module_utils._edge.cloud import text

ARGUMENT_SPEC = spec_of(EksCluster, wait=3600, encryption_key_arn=text(no_log=False))


def notice(api: Api, params: dict[str, t.Any]) -> str:
    """A warning if the version leaves standard support soon."""
    if not params["version"]:
        return ""
    return support_notice(api, params["version"], params["support_type"], utc(api.clock).date())


execute = converger(EksCluster, "cluster", check=notice)


def main() -> None:
    aws_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
