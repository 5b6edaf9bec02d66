# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: eks_access_entry
short_description: Manage access entries of EKS clusters
description:
  - Creates, updates and deletes access entries, which give an IAM role or user access to an Amazon EKS cluster through EKS access
    policies or groups for Kubernetes RBAC.
  - The cluster's authentication mode must be C(API_AND_CONFIG_MAP) or C(API).
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - amazon.aws.tags
  - muster.ml.attributes
  - muster.ml.aws
  - muster.ml.aws.support
  - muster.ml.aws.cluster
options:
  principal_arn:
    description: ARN of the IAM role or user.
    type: str
    required: true
  type:
    description: Type of the entry. Defaults to V(STANDARD). Cannot be changed.
    type: str
    choices: [STANDARD, EC2_LINUX, EC2_WINDOWS, EC2, FARGATE_LINUX, HYBRID_LINUX]
  username:
    description: User name in Kubernetes. Defaults to one that EKS derives from O(principal_arn).
    type: str
  kubernetes_groups:
    description: Groups in Kubernetes. Groups that are not listed are removed.
    type: list
    elements: str
  policies:
    description: EKS access policies to associate.
    type: list
    elements: dict
    suboptions:
      policy_arn:
        description: ARN of the policy, such as V(arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy).
        type: str
        required: true
      access_scope:
        description: Scope of the policy.
        type: dict
        required: true
        suboptions:
          type:
            description: Type of the scope, the whole cluster or namespaces.
            type: str
            choices: [cluster, namespace]
            required: true
          namespaces:
            description: Namespaces of the scope.
            type: list
            elements: str
"""

EXAMPLES = r"""
- name: Grant the team edit access to its namespace
  muster.ml.eks_access_entry:
    region: us-west-2
    cluster_name: training
    principal_arn: arn:aws:iam::123456789012:role/ml-team
    policies:
      - policy_arn: arn:aws:eks::aws:cluster-access-policy/AmazonEKSEditPolicy
        access_scope: {type: namespace, namespaces: [ml]}
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "EKS access entry of arn:aws:iam::123456789012:role/ops in cluster c was kept: it does not have the mark of this owner"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["eks:create_access_entry (create)"]
access_entry:
  description: Access entry as EKS describes it, in snake_case, with its C(policies).
  returned: success
  type: dict
  sample: {cluster_name: training, principal_arn: "arn:aws:iam::123456789012:role/ops", type: STANDARD, policies: []}
"""

from ansible_collections.muster.ml.plugins.module_utils._aws.eks_access import EksAccessEntry
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import aws_main, converger, spec_of
from ansible_collections.muster.ml.plugins.module_utils._edge.cloud import STRINGS, group, rows, text

SCOPE = {**group(type=text("cluster", "namespace", required=True), namespaces=STRINGS), "required": True}
ARGUMENT_SPEC = spec_of(EksAccessEntry, policies=rows(policy_arn=text(required=True), access_scope=SCOPE))
execute = converger(EksAccessEntry, "access_entry", nested=["policies"])


def main() -> None:
    aws_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
