# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: eks_cluster_info
short_description: Read an EKS cluster with its node groups and add-ons
description:
  - Returns an Amazon EKS cluster, its node groups and add-ons, and the caller's account. A cluster that does not exist is no error.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - muster.ml.attributes
  - muster.ml.attributes.info
  - muster.ml.aws.support
options:
  name:
    description: Name of the cluster.
    type: str
    required: true
  roles:
    description: Names of IAM roles to look up as well, such as the roles for the cluster and its nodes.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Read the cluster, its node groups and add-ons
  muster.ml.eks_cluster_info:
    region: us-west-2
    name: training
  register: eks
"""

RETURN = r"""
exists:
  description: True if the cluster exists.
  returned: success
  type: bool
  sample: true
account:
  description: Id of the account.
  returned: success
  type: str
  sample: "123456789012"
partition:
  description: AWS partition of the account, which is the second part of its ARNs.
  returned: success
  type: str
  sample: aws-us-gov
region:
  description: Region of the cluster.
  returned: success
  type: str
  sample: us-west-2
cluster:
  description: Cluster as EKS describes it, in snake_case. Empty if it does not exist.
  returned: success
  type: dict
  sample: {name: training, status: ACTIVE, version: "1.36"}
owned:
  description: True if Muster created the cluster, which then has the tag C(muster.ml/owner) with its own name.
  returned: success
  type: bool
  sample: true
oidc_provider:
  description: Issuer of service account tokens, without C(https://). Empty if the cluster does not exist.
  returned: success
  type: str
  sample: oidc.eks.us-west-2.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF
nodegroups:
  description: Node groups of the cluster as EKS describes them, in snake_case, each with C(owned) (by its tag C(muster.ml/owner)).
  returned: success
  type: list
  elements: dict
  sample: [{nodegroup_name: cpu, status: ACTIVE, capacity_type: ON_DEMAND, owned: true}]
addons:
  description: Add-ons of the cluster as EKS describes them, in snake_case, each with C(owned).
  returned: success
  type: list
  elements: dict
  sample: [{addon_name: vpc-cni, status: ACTIVE, owned: true}]
roles:
  description: Existing roles among O(roles), each with its name, ARN, tags and C(owned) (created by Muster for this cluster,
    and not for one of its name in another region, by the tags C(muster.ml/owner) and C(muster.ml/region)).
  returned: success
  type: list
  elements: dict
  sample: [{name: training-node, arn: "arn:aws:iam::123456789012:role/training-node", tags: {muster.ml/owner: training}, owned: true}]
"""

from ansible_collections.muster.ml.plugins.module_utils._aws.eks_info import read_cluster
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import Spec, aws_main, surveyor

ARGUMENT_SPEC: Spec = {
    "name": {"type": "str", "required": True},
    "roles": {"type": "list", "elements": "str", "default": []},
}
execute = surveyor(lambda api, params: read_cluster(api, params["name"], params["roles"]))


def main() -> None:
    aws_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
