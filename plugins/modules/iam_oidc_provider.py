# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: iam_oidc_provider
short_description: Manage OpenID Connect providers of IAM
description:
  - Creates, updates and deletes providers, by which roles can trust an issuer of tokens, such as the service accounts of an EKS cluster
    (IRSA).
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - amazon.aws.tags
  - muster.ml.attributes
  - muster.ml.aws
  - muster.ml.aws.support
options:
  url:
    description: URL of the issuer, C(https://...). For EKS it is the C(identity.oidc.issuer) of the cluster.
    type: str
    required: true
  client_ids:
    description: Audiences. Audiences that are not listed are removed.
    type: list
    elements: str
    default: [sts.amazonaws.com]
  thumbprints:
    description: Thumbprints of the issuer's certificates. IAM determines them by default.
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: Create the provider by which IAM roles trust service accounts of the cluster
  muster.ml.iam_oidc_provider:
    region: us-west-2
    url: "{{ eks.cluster.identity.oidc.issuer }}"
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "IAM OpenID Connect provider oidc.example.com/id/x was kept: it does not have the mark of this owner"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["iam:create_open_id_connect_provider (create)"]
provider:
  description: Provider as IAM describes it.
  returned: success
  type: dict
  contains:
    arn:
      description: ARN of the provider, for trust policies.
      type: str
      sample: "arn:aws:iam::123456789012:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/0123456789ABCDEF"
"""

from ansible_collections.muster.ml.plugins.module_utils._aws.iam_oidc_provider import IamOidcProvider
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import aws_main, converger, spec_of

ARGUMENT_SPEC = spec_of(IamOidcProvider, client_ids={"type": "list", "elements": "str", "default": ["sts.amazonaws.com"]})
execute = converger(IamOidcProvider, "provider")


def main() -> None:
    aws_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
