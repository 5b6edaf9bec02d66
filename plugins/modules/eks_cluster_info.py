# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: eks_cluster_info
short_description: What an EKS cluster is, and what belongs to it
version_added: 0.2.0
description:
  - Reads a cluster of Amazon EKS, its node groups and add-ons, and the caller's account. A cluster that does not exist is no error.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - amazon.aws.boto3
  - muster.ml.attributes
  - muster.ml.aws_info
options:
  name:
    description: Name of the cluster.
    type: str
    required: true
  roles:
    description: Names of IAM roles to look for as well, such as those that the cluster or its nodes are to use.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: What there is
  muster.ml.eks_cluster_info:
    region: us-west-2
    name: training
  register: eks
"""

RETURN = r"""
exists:
  description: Whether the cluster exists.
  returned: success
  type: bool
account:
  description: Number of the account.
  returned: success
  type: str
partition:
  description: The partition of AWS that it is in, the second part of every ARN in it.
  returned: success
  type: str
  sample: aws-us-gov
cluster:
  description: The cluster as EKS describes it, in snake_case; empty where it does not exist.
  returned: success
  type: dict
owned:
  description: Whether the cluster carries the tag C(muster.ml/owner) with its own name, that is, whether Muster created it.
  returned: success
  type: bool
oidc_provider:
  description: Issuer of the tokens of its service accounts, without C(https://); empty where the cluster does not exist.
  returned: success
  type: str
  sample: oidc.eks.us-west-2.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF
nodegroups:
  description: Its node groups, likewise.
  returned: success
  type: list
  elements: dict
addons:
  description: Its add-ons, likewise.
  returned: success
  type: list
  elements: dict
roles:
  description: Those of the roles asked for that exist, each with its name, ARN, tags and C(owned) (created by Muster for this cluster).
  returned: success
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._aws.eks_info import survey
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import info_main

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "name": {"type": "str", "required": True},
    "roles": {"type": "list", "elements": "str", "default": []},
}


def main() -> None:
    """Run as a module."""
    info_main(ARGUMENT_SPEC, lambda api, params: survey(api, params["name"], params["roles"]))


if __name__ == "__main__":
    main()
