# SPDX-License-Identifier: GPL-3.0-or-later
"""EKS add-ons as values."""

from __future__ import annotations

import dataclasses
import json
import typing as t

from .._cloud.plan import Body, Comparison, Plan, State, creation_plan, without_none
from .._core.errors import InvalidInput
from .api import Api
from .plan import Step
from .resource import Updated, status_state

# What EKS calls a field that it is to set and another client has set (AddonIssue.code in botocore).
CONFLICT = "ConfigurationConflict"
OVERWRITE, PRESERVE = "OVERWRITE", "PRESERVE"


@dataclasses.dataclass(frozen=True)
class EksAddon(Updated):
    """Options that are None keep their live value; EKS chooses them when the add-on is installed."""

    LABEL = "EKS add-on {name} of cluster {cluster_name}"
    IDENTITY = ("addonArn", "createdAt")
    NAMED: t.ClassVar = {"clusterName": "cluster_name", "addonName": "name"}

    cluster_name: str
    name: str
    version: str | None = None
    service_account_role_arn: str | None = None
    pod_identity_associations: list[Body] | None = None
    configuration_values: Body | None = None
    resolve_conflicts: t.Literal["NONE", "OVERWRITE", "PRESERVE"] | None = None
    preserve: bool = False

    @property
    def _desired_identities(self) -> list[Body] | None:
        """The desired pod identities; none if the service account gets its role by IRSA, because only one way counts at a time."""
        return [] if self.service_account_role_arn else self.pod_identity_associations

    def read(self, api: Api) -> Body | None:
        """The add-on, with the roles of its pod identities and the versions that fit its cluster."""
        live = self.described(api, "describe_addon", "addon")
        return live and {**live, "_identities": self._identities(api, live.get("podIdentityAssociations") or [])}

    def _identities(self, api: Api, arns: list[str]) -> list[Body]:
        if self._desired_identities is None:
            return []
        rows = []
        for arn in arns:
            request = {"clusterName": self.cluster_name, "associationId": arn.rsplit("/", 1)[-1]}
            found = api.read(self.label, "eks", "describe_pod_identity_association", **request)
            if found:
                rows.append({key: found["association"][key] for key in ("serviceAccount", "roleArn")})
        return rows

    def state(self, live: Body | None) -> State:
        """Degraded is final as well: pods of add-ons wait for nodes, which may be added later."""
        ready = ("ACTIVE", "DEGRADED")
        return status_state(live, ready=ready, failed=("CREATE_FAILED", "DELETE_FAILED", "UPDATE_FAILED"))

    def advice(self, codes: t.Collection[str]) -> str | None:
        if CONFLICT not in codes:
            return None
        return (
            "What is named is in the cluster and EKS did not put it there: a self-managed add-on, or a change by hand. With"
            f" resolve_conflicts: {OVERWRITE} EKS takes it over, with its own settings; roles eks_cluster and eks_nodegroups"
            " have it for each add-on"
        )

    def plan(self, live: Body | None) -> Plan:
        create = Step("create_addon", self._create_request(), "install", wait="stable")
        if live is None or self.going(live):
            return creation_plan(create)
        self._refuse_conflict(live)
        if live["status"] in ("CREATE_FAILED", "DELETE_FAILED"):
            # Without preserve EKS deletes the add-on's objects, also those of other clients: for vpc-cni the network of all pods.
            request = {**self.named, "preserve": True}
            remove = Step("delete_addon", request, f"delete, it is {live['status']}; its objects stay", wait="gone")
            return Plan((remove, create), {"status": live["status"]}, create.request)
        compare = Comparison()
        tags = self.tag_steps(compare, live, resourceArn=live["addonArn"])
        return compare.plan([*tags, *self._update(compare, live)])

    def deletions(self, live: Body) -> list[Step]:
        preserve = self.preserve or self._conflicts(live)
        return [Step("delete_addon", {**self.named, **({"preserve": True} if preserve else {})}, "remove", wait="gone")]

    def _conflicts(self, live: Body) -> bool:
        """Whether it failed because of fields that other clients have set in the cluster."""
        issues = live.get("health", {}).get("issues", [])
        return live["status"] in ("CREATE_FAILED", "UPDATE_FAILED") and any(one.get("code") == CONFLICT for one in issues)

    def _refuse_conflict(self, live: Body) -> None:
        """Refuse to try again what would end in the same conflict."""
        enough = (OVERWRITE,) if live["status"] == "CREATE_FAILED" else (OVERWRITE, PRESERVE)
        if self._conflicts(live) and self.resolve_conflicts not in enough:
            state = self.state(live)
            raise InvalidInput(f"{self.label} is {state.seen}, and would be again", hint=self.advice(state.codes))

    def _create_request(self) -> Body:
        return without_none(
            {
                **self.named,
                "addonVersion": self.version,
                "serviceAccountRoleArn": self.service_account_role_arn,
                "podIdentityAssociations": self.pod_identity_associations or None,
                "configurationValues": self.configuration_values and as_text(self.configuration_values),
                # "Resolve conflicts option preserve is not supported for operation CreateAddon" (eksctl-io/eksctl#5880).
                "resolveConflicts": None if self.resolve_conflicts == PRESERVE else self.resolve_conflicts,
                "tags": self.tags or None,
            }
        )

    def _update(self, compare: Comparison, live: Body) -> list[Step]:
        request = self.changes(compare, live, "service_account_role_arn")
        if compare.differs("version", live["addonVersion"], self.version):
            request["addonVersion"] = self.version
        if compare.differs("configuration_values", as_value(live.get("configurationValues")), self.configuration_values):
            request["configurationValues"] = as_text(self.configuration_values or {})
        identities = by_account(live.get("_identities", []))
        desired = None if self._desired_identities is None else by_account(self._desired_identities)
        if compare.differs("pod_identity_associations", identities, desired):
            request["podIdentityAssociations"] = self._desired_identities
        failed = live["status"] == "UPDATE_FAILED" and compare.differs("status", live["status"], "ACTIVE")
        if not (request or failed):
            return []
        says = ", ".join(sorted(request)) or "again"
        # An update without the role takes it away (UpdateAddonRequest.serviceAccountRoleArn in botocore).
        if role := self.service_account_role_arn or live.get("serviceAccountRoleArn"):
            request["serviceAccountRoleArn"] = role
        if self.resolve_conflicts:
            request["resolveConflicts"] = self.resolve_conflicts
        return [Step("update_addon", {**self.named, **request}, says, wait="update")]


def as_text(values: Body) -> str:
    """Configuration as EKS stores it: a text, the same for equal values."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def as_value(text: str | None) -> Body:
    """The stored configuration, which another client may have written as YAML, as the documentation of EKS does."""
    import yaml  # a requirement of ansible-core

    try:
        found = yaml.safe_load(text or "{}")
    except yaml.YAMLError:
        found = None
    return found if isinstance(found, dict) else {"text": text}


def by_account(rows: t.Iterable[Body]) -> dict[str, str]:
    return {row["serviceAccount"]: row["roleArn"] for row in rows}


def check_version(label: str, offered: list[Body], desired: str | None, kubernetes: str) -> None:
    """Refuse a version that does not fit the cluster, naming those that do."""
    names = [row["addonVersion"] for addon in offered for row in addon["addonVersions"]]
    if not names:
        raise InvalidInput(f"{label}: EKS has no such add-on for Kubernetes {kubernetes}", hint="Check the name of the add-on")
    if desired and desired not in names:
        raise InvalidInput(
            f"{label}: version {desired} does not fit Kubernetes {kubernetes}",
            hint=f"There are {', '.join(names)}; leave out version for the usual one",
        )


def successor(name: str, installed: str, offered: list[Body], kubernetes: str) -> str | None:
    """The version that replaces an installed one after an upgrade of the cluster; None if that one may stay.

    kube-proxy goes with the control plane (EKS user guide, "Manage kube-proxy in Amazon EKS clusters"), others stay as long as EKS offers
    them for its version.
    """
    names = [str(row["addonVersion"]) for addon in offered for row in addon["addonVersions"]]
    behind = name == "kube-proxy" and not installed.startswith(f"v{kubernetes}.")
    if not names or (installed in names and not behind):
        return None
    usual = (
        str(row["addonVersion"])
        for addon in offered
        for row in addon["addonVersions"]
        if any(one.get("defaultVersion") for one in row.get("compatibilities", []))
    )
    return next(usual, names[0])
