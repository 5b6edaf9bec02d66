# SPDX-License-Identifier: GPL-3.0-or-later
"""Access entries and pod identity associations of EKS as values."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._cloud.errors import CallRefused
from .._cloud.plan import Body, Comparison, Plan, creation_plan
from .._core.errors import InvalidInput
from .api import NO_ENTRIES, NO_PRINCIPAL, Api
from .plan import Step
from .resource import Immediate

_SESSION = re.compile(r"arn:([\w-]+):sts::(\d{12}):assumed-role/([^/]+)/.+")
_PRINCIPAL = re.compile(r"arn:[\w-]+:iam::\d{12}:(?:role|user)/\S+")


@dataclasses.dataclass(frozen=True)
class EksAccessEntry(Immediate):
    LABEL = "EKS access entry of {principal_arn} in cluster {cluster_name}"
    IDENTITY = ("accessEntryArn", "createdAt")
    NAMED: t.ClassVar = {"clusterName": "cluster_name", "principalArn": "principal_arn"}

    cluster_name: str
    principal_arn: str
    type: t.Literal["STANDARD", "EC2_LINUX", "EC2_WINDOWS", "EC2", "FARGATE_LINUX", "HYBRID_LINUX"] | None = None
    username: str | None = None
    kubernetes_groups: list[str] | None = None
    policies: list[Body] | None = None

    def read(self, api: Api) -> Body | None:
        live = self.described(api, "describe_access_entry", "accessEntry")
        if live is None:
            return None
        rows = api.pages(self.label, "eks", "list_associated_access_policies", "associatedAccessPolicies", **self.named)
        return {**live, "policies": [policy_view(row) for row in rows]}

    def hint(self, refused: CallRefused) -> str:
        if refused.cause == NO_ENTRIES:
            return "Set the cluster's authentication_mode to API_AND_CONFIG_MAP or API (module eks_cluster)"
        kind, name = self.principal_arn.split(":")[-1].split("/")[0], self.principal_arn.rsplit("/", 1)[-1]
        shown = f"Give the ARN of one that exists, with its path: `aws iam get-{kind} --{kind}-name {name}` shows it"
        return shown if refused.cause == NO_PRINCIPAL else ""

    def plan(self, live: Body | None) -> Plan:
        self._validate()
        if live is None:
            associate = [self._associate(policy) for policy in self.policies or ()]
            return creation_plan(Step("create_access_entry", self._create_request(), "create"), *associate)
        self.refuse_change("Delete the entry (state: absent) and run again", type=(live["type"], self.type))
        compare = Comparison()
        tags = self.tag_steps(compare, live, resourceArn=live["accessEntryArn"])
        return compare.plan([*tags, *self._update(compare, live), *self._policies(compare, live)])

    def deletions(self, live: Body) -> list[Step]:  # noqa: ARG002
        return [Step("delete_access_entry", self.named, "delete")]

    def _validate(self) -> None:
        self._refuse_principal()
        for name in (self.username or "", *(self.kubernetes_groups or ())):
            if name.startswith("system:"):
                raise InvalidInput(
                    f"{self.label}: EKS takes no user or group {name}, because its name begins with system:",
                    hint="For all rights give the policy AmazonEKSClusterAdminPolicy; otherwise bind a group with a name of your own",
                )
        for policy in self.policies or ():
            scope = policy["accessScope"]
            if (scope["type"] == "namespace") != bool(scope.get("namespaces")):
                raise InvalidInput(
                    f"{self.label}: {policy['policyArn']} has access_scope {scope}",
                    hint="Namespaces are given for the type namespace and for no other",
                )

    def _refuse_principal(self) -> None:
        """Refuse what can have no access entry (CreateAccessEntryRequest.principalArn in botocore; service-linked roles:
        hashicorp/terraform-provider-aws#36447)."""
        session = _SESSION.fullmatch(self.principal_arn)
        linked = ":role/aws-service-role/" in self.principal_arn
        if not session and not linked and _PRINCIPAL.fullmatch(self.principal_arn):
            return
        what = "a session of a role" if session else "linked to a service" if linked else "no ARN of an IAM role or user"
        role = "arn:{}:iam::{}:role/{}".format(*session.groups()) if session else "arn:aws:iam::123456789012:role/NAME"
        raise InvalidInput(
            f"{self.label}: the principal is {what}, which can have no access entry",
            hint=f"Give the ARN of a role or user, with its path if it has one, such as {role}; `aws iam get-role --role-name` shows it",
        )

    def _create_request(self) -> Body:
        return {**self.named, **self.requested("type", "username", "kubernetes_groups", "tags")}

    def _update(self, compare: Comparison, live: Body) -> list[Step]:
        request = self.changes(compare, live, "username")
        groups = None if self.kubernetes_groups is None else sorted({*self.kubernetes_groups})
        if compare.differs("kubernetes_groups", sorted(live.get("kubernetesGroups") or []), groups):
            request["kubernetesGroups"] = groups
        return [Step("update_access_entry", {**self.named, **request}, ", ".join(sorted(request)))] if request else []

    def _associate(self, policy: Body) -> Step:
        says = f"policy {policy['policyArn'].rsplit('/', 1)[-1]}"
        return Step("associate_access_policy", {**self.named, **policy_view(policy)}, says)

    def _policies(self, compare: Comparison, live: Body) -> list[Step]:
        if self.policies is None:
            return []
        current = {policy["policyArn"]: policy for policy in live["policies"]}
        desired = {policy["policyArn"]: policy_view(policy) for policy in self.policies}
        # Associating a policy again with another scope changes its scope.
        steps = [self._associate(policy) for arn, policy in desired.items() if current.get(arn) != policy]
        for arn in sorted(current.keys() - desired.keys()):
            request = {**self.named, "policyArn": arn}
            steps.append(Step("disassociate_access_policy", request, f"without policy {arn.rsplit('/', 1)[-1]}"))
        if steps:
            compare.differs("policies", list(current.values()), list(desired.values()))
        return steps


def policy_view(row: Body) -> Body:
    """A policy and its scope, without times, in one form."""
    scope = row["accessScope"]
    namespaces = sorted({*(scope.get("namespaces") or ())})
    return {"policyArn": row["policyArn"], "accessScope": {"type": scope["type"], **({"namespaces": namespaces} if namespaces else {})}}


@dataclasses.dataclass(frozen=True)
class EksPodIdentityAssociation(Immediate):
    LABEL = "EKS pod identity of {namespace}/{service_account} in cluster {cluster_name}"
    IDENTITY = ("associationArn", "createdAt")

    cluster_name: str
    namespace: str
    service_account: str
    role_arn: str | None = None

    def read(self, api: Api) -> Body | None:
        """Find the association by namespace and service account, for which EKS allows only one, because EKS chooses the ID."""
        place = {"namespace": self.namespace, "serviceAccount": self.service_account}
        rows = api.pages(self.label, "eks", "list_pod_identity_associations", "associations", clusterName=self.cluster_name, **place)
        if not rows:
            return None
        found = api.read(self.label, "eks", "describe_pod_identity_association", **self._live(rows[0]))
        return t.cast(Body, found["association"]) if found else None

    def used_by(self, live: Body) -> str:
        return f"belongs to {live['ownerArn']}" if live.get("ownerArn") else ""

    def plan(self, live: Body | None) -> Plan:
        if live is None:
            return creation_plan(Step("create_pod_identity_association", self._create_request(), "create"))
        if needed := self.used_by(live):
            raise InvalidInput(f"{self.label} {needed}", hint="Set pod_identity_associations of that add-on (module eks_addon)")
        compare = Comparison()
        desired = self.changes(compare, live, "role_arn")
        steps = [Step("update_pod_identity_association", {**self._live(live), **desired}, ", ".join(sorted(desired)))] if desired else []
        return compare.plan([*self.tag_steps(compare, live, resourceArn=live["associationArn"]), *steps])

    def deletions(self, live: Body) -> list[Step]:
        return [Step("delete_pod_identity_association", self._live(live), "delete")]

    def _live(self, live: Body) -> Body:
        """The association in requests: EKS chooses its ID."""
        return {"clusterName": self.cluster_name, "associationId": live["associationId"]}

    def _create_request(self) -> Body:
        if not self.role_arn:
            raise InvalidInput(f"{self.label} does not exist", hint="To create it, role_arn is needed")
        return self.requested("cluster_name", "namespace", "service_account", "role_arn", "tags")
