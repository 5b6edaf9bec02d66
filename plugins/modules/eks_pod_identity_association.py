# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: eks_pod_identity_association
short_description: Manage EKS Pod Identity associations
description:
  - Creates, updates and deletes associations, which give the pods of a service account an IAM role. The cluster needs the add-on
    C(eks-pod-identity-agent).
  - The role's trust policy must allow C(sts:AssumeRole) and C(sts:TagSession) for the service C(pods.eks.amazonaws.com).
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
  namespace:
    description: Namespace of the service account.
    type: str
    required: true
  service_account:
    description: Name of the service account. It need not exist yet.
    type: str
    required: true
  role_arn:
    description: ARN of the role. Required to create an association.
    type: str
"""

EXAMPLES = r"""
- name: Grant training pods read access to the bucket with the scripts
  muster.ml.eks_pod_identity_association:
    region: us-west-2
    cluster_name: training
    namespace: ml
    service_account: elastic
    role_arn: arn:aws:iam::123456789012:role/training-artifacts-read
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "EKS pod identity of ml/elastic in cluster training was kept: it does not have the mark of this owner (muster.ml/owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["eks:create_pod_identity_association (create)"]
association:
  description: Association as EKS describes it, in snake_case.
  returned: success
  type: dict
  sample: {association_id: a-0123456789abcdef0, namespace: ml, service_account: elastic}
"""

from ansible_collections.muster.ml.plugins.module_utils._aws.eks_access import EksPodIdentityAssociation
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import aws_main, converger, spec_of

ARGUMENT_SPEC = spec_of(EksPodIdentityAssociation)
execute = converger(EksPodIdentityAssociation, "association")


def main() -> None:
    aws_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
