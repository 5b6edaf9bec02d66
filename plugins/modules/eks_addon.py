# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: eks_addon
short_description: Manage EKS add-ons
description:
  - Installs, updates and removes add-ons of an Amazon EKS cluster.
  - A version that is not compatible with the cluster is refused before any request is sent, and the error lists those that are.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - amazon.aws.tags
  - muster.ml.attributes
  - muster.ml.aws
  - muster.ml.aws.support
  - muster.ml.aws.waits
  - muster.ml.requires.yaml
  - muster.ml.aws.cluster
options:
  name:
    description: Name of the add-on, such as V(aws-efs-csi-driver).
    type: str
    required: true
    aliases: [addon_name]
  version:
    description:
      - Version of the add-on. Defaults to the cluster's default for a new add-on.
      - An installed version stays without it, until EKS does not offer it for the cluster's Kubernetes version any more. C(kube-proxy) gets
        the minor version of the cluster.
    type: str
    aliases: [addon_version]
  service_account_role_arn:
    description: IAM role of the add-on's service account, through the cluster's OpenID Connect provider (IRSA).
    type: str
  pod_identity_associations:
    description: IAM roles of the add-on's service accounts, through EKS Pod Identity.
    type: list
    elements: dict
    suboptions:
      service_account:
        description: Name of the service account.
        type: str
        required: true
      role_arn:
        description: ARN of the role.
        type: str
        required: true
  configuration_values:
    description: Complete configuration in the schema of the add-on.
    type: dict
  resolve_conflicts:
    description:
      - Resolution of conflicts with what another client put into the cluster, such as a self-managed add-on of the same name.
      - V(OVERWRITE) takes it over with the settings of EKS. V(PRESERVE) keeps the settings at an update, and is V(NONE) at the
        installation. Without either the add-on fails, and is not tried again.
    type: str
    choices: [NONE, OVERWRITE, PRESERVE]
  preserve:
    description: Keep the add-on's objects in the cluster, with O(state=absent). Those of an add-on that failed by a conflict always stay.
    type: bool
    default: false
  wait_timeout:
    default: 1200
"""

EXAMPLES = r"""
- name: Install the driver for EFS file systems with its own role
  muster.ml.eks_addon:
    region: us-west-2
    cluster_name: training
    name: aws-efs-csi-driver
    pod_identity_associations:
      - service_account: efs-csi-controller-sa
        role_arn: arn:aws:iam::123456789012:role/training-efs-csi
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "EKS add-on vpc-cni of cluster training was kept: it does not have the mark of this owner (muster.ml/owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["eks:create_addon (create)"]
addon:
  description: Add-on as EKS describes it, in snake_case.
  returned: success
  type: dict
  sample: {addon_name: vpc-cni, cluster_name: training, status: ACTIVE}
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._aws.api import Api
from ansible_collections.muster.ml.plugins.module_utils._aws.eks_addon import EksAddon, check_version, successor
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import aws_main, converger, spec_of
from ansible_collections.muster.ml.plugins.module_utils._edge.cloud import from_options, rows, text

ARGUMENT_SPEC = spec_of(
    EksAddon, wait=1200, name=text(required=True, aliases=["addon_name"]), version=text(aliases=["addon_version"]),
    pod_identity_associations=rows(service_account=text(required=True), role_arn=text(required=True)),
)  # fmt: skip


def check(api: Api, params: dict[str, t.Any]) -> str:
    """Check that EKS supports the version for the cluster, or find the one that replaces the installed version after an upgrade.

    Check mode accepts any version for a cluster that does not exist yet.
    """
    desired = from_options(EksAddon, params)
    found = api.read(desired.label, "eks", "describe_cluster", name=desired.cluster_name)
    if not found:
        return ""
    kubernetes = found["cluster"]["version"]
    request = {"addonName": desired.name, "kubernetesVersion": kubernetes}
    if desired.version:
        offered = api.pages(desired.label, "eks", "describe_addon_versions", "addons", **request)
        check_version(desired.label, offered, desired.version, kubernetes)
    elif live := desired.read(api):
        offered = api.pages(desired.label, "eks", "describe_addon_versions", "addons", **request)
        params["version"] = successor(desired.name, live["addonVersion"], offered, kubernetes)
    return ""


CONSTRAINTS: dict[str, t.Any] = {"mutually_exclusive": [("service_account_role_arn", "pod_identity_associations")]}
execute = converger(EksAddon, "addon", nested=["pod_identity_associations"], check=check)


def main() -> None:
    aws_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
