# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: eks_remains_info
short_description: List what an account still has of an EKS cluster
description:
  - Lists everything in the region that carries the tag C(muster.ml/owner) with the name of the cluster, and what EKS, Kubernetes and
    add-ons made for it, such as network interfaces, load balancers, volumes, security groups, recovery points and log groups.
  - It asks the service of tags, IAM and CloudWatch, and not those with which the resources are created and deleted.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - muster.ml.attributes
  - muster.ml.attributes.info
  - muster.ml.aws.support
options:
  name:
    description: Name of the cluster. It need not exist.
    type: str
    required: true
  owned_only:
    description: List only what carries the tag C(muster.ml/owner), for a cluster that was adopted and stays.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: List what is left of the cluster
  muster.ml.eks_remains_info:
    region: us-west-2
    name: training
  register: left
"""

RETURN = r"""
remains:
  description: Resources that were found.
  returned: success
  type: list
  elements: dict
  sample: [{id: 'arn:aws:ec2:eu-west-1:123456789012:volume/vol-0123456789abcdef0', kind: ec2 network-interface,
    maker: add-on vpc-cni}]
  contains:
    id:
      description: ARN, or name of the log group.
      type: str
    kind:
      description: Service and kind of resource.
      type: str
    maker:
      description: Maker of the resource, by its tag.
      type: str
"""

from ansible_collections.muster.ml.plugins.module_utils._aws.eks_remains import read_remains
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import Spec, aws_main, surveyor

ARGUMENT_SPEC: Spec = {"name": {"type": "str", "required": True}, "owned_only": {"type": "bool", "default": False}}
execute = surveyor(lambda api, params: read_remains(api, params["name"], owned_only=params["owned_only"]))


def main() -> None:
    aws_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
