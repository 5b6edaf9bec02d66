# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

DOCUMENTATION = r"""
name: service_account_trust
short_description: Build the trust policy of an IAM role for pods
author: Muster contributors (!UNKNOWN)
description:
  - Returns the trust policy of an IAM role that only the pods of the named service accounts of an EKS cluster may assume.
positional: _input, identity, namespace, service_account
options:
  _input:
    description: Result of M(muster.ml.eks_cluster_info). The cluster need not exist yet.
    type: dict
    required: true
  identity:
    description:
      - Way in which pods get the role. With V(pod_identity) the association of EKS says which service account it is, with V(irsa) the
        policy does.
    type: str
    choices: [pod_identity, irsa]
    required: true
  namespace:
    description: Namespace of the service account.
    type: str
    required: true
  service_account:
    description: Name of the service account, or a list of several.
    type: raw
    required: true
seealso:
  - module: muster.ml.eks_pod_identity_association
    description: Names the service account for EKS Pod Identity.
"""

EXAMPLES = r"""
- name: Create a role for the pods of a service account
  amazon.aws.iam_role:
    name: training-read
    assume_role_policy_document: "{{ eks | muster.ml.service_account_trust('irsa', 'ml', 'elastic') }}"
"""

RETURN = r"""
_value:
  description: Trust policy, as an IAM policy document.
  type: dict
  sample: {Version: "2012-10-17", Statement: [{Effect: Allow, Principal: {Service: pods.eks.amazonaws.com}}]}
"""

Document = dict[str, t.Any]


def service_account_trust(
    cluster: t.Mapping[str, t.Any], identity: str, namespace: str, service_account: str | t.Sequence[str]
) -> Document:
    names = [service_account] if isinstance(service_account, str) else sorted(service_account)
    accounts = [f"system:serviceaccount:{namespace}:{name}" for name in names]
    agent = {"Principal": {"Service": "pods.eks.amazonaws.com"}, "Action": ["sts:AssumeRole", "sts:TagSession"]}
    trusted = agent if identity == "pod_identity" else _irsa(cluster, accounts)
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **trusted}]}


def _irsa(cluster: t.Mapping[str, t.Any], accounts: list[str]) -> Document:
    # A plan for an empty account has no provider yet.
    provider = cluster["oidc_provider"] or "oidc.planned"
    desired = {f"{provider}:aud": "sts.amazonaws.com", f"{provider}:sub": accounts if len(accounts) > 1 else accounts[0]}
    return {
        "Principal": {"Federated": f"arn:{cluster['partition']}:iam::{cluster['account']}:oidc-provider/{provider}"},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": {"StringEquals": desired},
    }


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"service_account_trust": service_account_trust}
