# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: iam_oidc_provider
short_description: OpenID Connect providers of IAM
version_added: 0.1.0
description:
  - Makes an issuer of tokens known to IAM, such as that of an EKS cluster, so that roles can trust its service accounts (IRSA).
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - amazon.aws.tags
  - amazon.aws.boto3
  - muster.ml.attributes
  - muster.ml.aws
options:
  url:
    description: Address of the issuer, C(https://...); for EKS the C(identity.oidc.issuer) of the cluster.
    type: str
    required: true
  client_ids:
    description: Audiences; all of them.
    type: list
    elements: str
    default: [sts.amazonaws.com]
  thumbprints:
    description: Certificates of the issuer; IAM finds out by itself when it is left out.
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: IAM knows the service accounts of the cluster
  muster.ml.iam_oidc_provider:
    region: us-west-2
    url: "{{ eks.cluster.identity.oidc.issuer }}"
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
provider:
  description: The provider.
  returned: success
  type: dict
  contains:
    arn:
      description: Its ARN, for trust policies.
      returned: always
      type: str
"""

import dataclasses
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._aws.iam_oidc_provider import IamOidcProvider
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import STATE, TAGS, aws_main

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    **STATE,
    **TAGS,
    "url": {"type": "str", "required": True},
    "client_ids": {"type": "list", "elements": "str", "default": ["sts.amazonaws.com"]},
    "thumbprints": {"type": "list", "elements": "str"},
}


def resource(params: dict[str, t.Any]) -> IamOidcProvider:
    """The provider that the options describe."""
    return IamOidcProvider(**{field.name: params[field.name] for field in dataclasses.fields(IamOidcProvider)})


def main() -> None:
    """Run as a module."""
    aws_main(ARGUMENT_SPEC, resource, "provider")


if __name__ == "__main__":
    main()
