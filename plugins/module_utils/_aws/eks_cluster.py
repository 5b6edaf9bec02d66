# SPDX-License-Identifier: GPL-3.0-or-later
"""EKS clusters as values: the desired state, and the requests that lead to it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
import typing as t

from .._cloud.errors import CallRefused
from .._cloud.plan import Body, Comparison, Plan, State, camelled, creation_plan, same_members, without_none
from .._cloud.texts import is_within, network_of, version_numbers
from .._core.errors import InvalidInput
from .api import IN_PARTS, Api
from .plan import Step
from .resource import Updated, status_state

LogType = t.Literal["api", "audit", "authenticator", "controllerManager", "scheduler"]
LOG_TYPES: tuple[LogType, ...] = t.get_args(LogType)
_VERSION = re.compile(r"1\.(\d+)")
# Ranges that no request from the internet comes from (RFC 1918, 6598, 1122, 3927). EKS refuses them for the public endpoint.
_RESERVED = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16")
Mode = t.Literal["CONFIG_MAP", "API_AND_CONFIG_MAP", "API"]
MODES: tuple[Mode, ...] = t.get_args(Mode)


def minor(version: str) -> int:
    """The minor version of Kubernetes; a malformed version is refused."""
    return version_numbers(version, _VERSION, "EKS", "1.MINOR")[0]


def upgrade(label: str, current: str, desired: str) -> None:
    """Refuse an older version, or one that skips a minor version, before anything is sent: EKS cannot do that."""
    now, then = minor(current), minor(desired)
    if then < now:
        raise InvalidInput(f"{label} runs {current}; EKS cannot go back to {desired}", hint=f"Set version to {current} or later")
    if then > now + 1:
        raise InvalidInput(
            f"{label} runs {current}; EKS upgrades one version at a time, not to {desired} at once",
            hint=f"Set version to 1.{now + 1}, run, upgrade the node groups, and go on from there",
        )


def ranges_of(option: str, ranges: t.Iterable[str]) -> list[str]:
    """Address ranges as EKS keeps them, each once."""
    return sorted({network_of(option, one) for one in ranges})


def public_ranges(option: str, ranges: t.Iterable[str]) -> list[str]:
    """The same, for requests from the internet: reserved ranges are refused."""
    found = ranges_of(option, ranges)
    wrong = [one for one in found if is_within(one, _RESERVED)]
    if wrong:
        raise InvalidInput(
            f"{option}: no request from the internet comes from {', '.join(wrong)}, and EKS refuses such ranges",
            hint="Give the address by which the internet knows the caller, as https://checkip.amazonaws.com shows it",
        )
    return found


NOTICE = 90  # days


def support_notice(api: Api, version: str, support_type: str | None, today: dt.date) -> str:
    """Return a warning about the end of a version's standard support, from 90 days before. EKS knows the dates."""
    try:
        found = api.read("EKS", "eks", "describe_cluster_versions", clusterVersions=[version]) or {}
    except CallRefused:
        return ""  # it is no reason to stop
    row: Body = next(iter(found.get("clusterVersions", [])), {})
    if "endOfStandardSupportDate" not in row:
        return ""
    end = row["endOfStandardSupportDate"].date()
    left = (end - today).days
    if left > NOTICE:
        return ""
    when = f"leaves standard support on {end}, in {left} days" if left > 0 else f"left standard support on {end}"
    after = "AWS upgrades the control plane then, and the nodes are yours to upgrade"
    if support_type == "EXTENDED":
        after = f"the control plane costs six times as much from then on, until {row['endOfExtendedSupportDate'].date()}"
    return f"Kubernetes {version} {when}: {after}. Plan the upgrade."


@dataclasses.dataclass(frozen=True)
class EksCluster(Updated):
    """Options that are None keep their live value; EKS chooses them when the cluster is created."""

    LABEL = "EKS cluster {name}"
    IDENTITY = ("arn", "createdAt")
    NAMED: t.ClassVar = {"name": "name"}

    name: str
    version: str | None = None
    role_arn: str | None = None
    subnet_ids: list[str] | None = None
    security_group_ids: list[str] | None = None
    endpoint_public_access: bool | None = None
    endpoint_private_access: bool | None = None
    public_access_cidrs: list[str] | None = None
    authentication_mode: Mode | None = None
    bootstrap_self_managed_addons: bool | None = None
    logging: list[LogType] | None = None
    encryption_key_arn: str | None = None
    support_type: t.Literal["STANDARD", "EXTENDED"] | None = None
    deletion_protection: bool | None = None

    @property
    def _public_cidrs(self) -> list[str] | None:
        """The ranges as EKS keeps them."""
        return None if self.public_access_cidrs is None else public_ranges("public_access_cidrs", self.public_access_cidrs)

    def read(self, api: Api) -> Body | None:
        """Read the cluster; with the zones of live and desired subnets if these differ, and the key's ARN if the option is an alias."""
        live = self.described(api, "describe_cluster", "cluster")
        if live is None:
            return None
        if ":alias/" in (self.encryption_key_arn or ""):
            key = api.read(self.label, "kms", "describe_key", KeyId=self.encryption_key_arn) or {"KeyMetadata": {}}
            live = {**live, "_key": key["KeyMetadata"].get("Arn")}
        subnets = live.get("resourcesVpcConfig", {}).get("subnetIds", [])
        if same_members(subnets, self.subnet_ids) is None:
            return live
        request = {"SubnetIds": sorted({*subnets, *(self.subnet_ids or ())})}
        rows = (api.read(self.label, "ec2", "describe_subnets", **request) or {}).get("Subnets", [])
        return {**live, "_zones": {row["SubnetId"]: row["AvailabilityZone"] for row in rows}}

    def state(self, live: Body | None) -> State:
        return status_state(live, ready=("ACTIVE",), failed=("FAILED",))

    def plan(self, live: Body | None) -> Plan:
        self._validate()
        if live is None or self.going(live):
            return creation_plan(Step("create_cluster", self._create_request(), "create", wait="stable"))
        if live["status"] == "FAILED":
            raise InvalidInput(f"{self.label} is FAILED and cannot be repaired", hint="Delete it (state: absent) and run again")
        self.refuse_change(f"Set role_arn to {live['roleArn']}, or create another cluster", role_arn=(live["roleArn"], self.role_arn))
        compare = Comparison()
        steps = [*self.tag_steps(compare, live, resourceArn=live["arn"]), *self._endpoint_access(compare, live)]
        steps += [*self._networks(compare, live), *self._settings(compare, live)]
        return compare.plan([*steps, *self._encryption(compare, live), *self._upgrade(compare, live)])

    def deletions(self, live: Body) -> list[Step]:
        unlock = []
        if live.get("deletionProtection"):
            if self.deletion_protection is not False:
                raise InvalidInput(
                    f"{self.label} is protected from deletion",
                    hint="Set deletion_protection: false together with state: absent to delete it all the same",
                )
            request = {"name": self.name, "deletionProtection": False}
            unlock = [Step("update_cluster_config", request, "deletion protection off", wait="update")]
        return [*unlock, Step("delete_cluster", self.named, "delete", wait="gone")]

    def hint(self, refused: CallRefused) -> str:
        if refused.cause == IN_PARTS:
            return "Delete its node groups and Fargate profiles first"
        shown = f"`aws eks list-insights --cluster-name {self.name}` and `describe-insight` show them; mend them, and run again"
        return shown if refused.code == "InvalidStateException" else ""

    def _validate(self) -> None:
        if self.version is not None:
            minor(self.version)
        if unknown := sorted(set(self.logging or ()) - set(LOG_TYPES)):
            raise InvalidInput(f"logging: {', '.join(unknown)} unknown", hint=f"There are {', '.join(LOG_TYPES)}")
        if self.endpoint_public_access is False and self.endpoint_private_access is False:
            raise InvalidInput(
                f"{self.label}: no client could reach an API server without public and without private access",
                hint="Set endpoint_public_access or endpoint_private_access to true",
            )

    def _create_request(self) -> Body:
        if not self.role_arn or not self.subnet_ids:
            raise InvalidInput(f"{self.label} does not exist", hint="To create it, role_arn and subnet_ids are needed")
        networks = camelled(vars(self), ("subnet_ids", "security_group_ids", "endpoint_public_access", "endpoint_private_access"))
        request = {
            **self.requested("name", "version", "role_arn", "bootstrap_self_managed_addons", "deletion_protection", "tags"),
            "resourcesVpcConfig": without_none({**networks, "publicAccessCidrs": self._public_cidrs}),
            "accessConfig": self.authentication_mode and {"authenticationMode": self.authentication_mode},
            "logging": {"clusterLogging": [{"types": self.logging, "enabled": True}]} if self.logging else None,
            "encryptionConfig": self._encryption_config() if self.encryption_key_arn else None,
            "upgradePolicy": self.support_type and {"supportType": self.support_type},
        }
        return without_none(request)

    def _encryption_config(self) -> list[Body]:
        return [{"resources": ["secrets"], "provider": {"keyArn": self.encryption_key_arn}}]

    def _config(self, says: str, **change: t.Any) -> Step:
        """The update requests: EKS accepts one kind of change per request, and one request at a time."""
        return Step("update_cluster_config", {"name": self.name, **change}, says, wait="update")

    def _endpoint_access(self, compare: Comparison, live: Body) -> list[Step]:
        config = live["resourcesVpcConfig"]
        public = self.endpoint_public_access if self.endpoint_public_access is not None else config.get("endpointPublicAccess", True)
        # Without public access EKS answers with an empty list of address ranges.
        current = ranges_of("publicAccessCidrs", config.get("publicAccessCidrs") or [])
        cidrs = same_members(current, self._public_cidrs) if public else None
        changed = [
            compare.differs("endpoint_public_access", config.get("endpointPublicAccess", True), self.endpoint_public_access),
            compare.differs("endpoint_private_access", config.get("endpointPrivateAccess", False), self.endpoint_private_access),
            compare.differs("public_access_cidrs", current, cidrs),
        ]
        if not any(changed):
            return []
        request = without_none(
            {
                "endpointPublicAccess": self.endpoint_public_access,
                "endpointPrivateAccess": self.endpoint_private_access,
                "publicAccessCidrs": self._public_cidrs if public else None,
            }
        )
        return [self._config("endpoint access", resourcesVpcConfig=request)]

    def _networks(self, compare: Comparison, live: Body) -> list[Step]:
        config, steps = live["resourcesVpcConfig"], []
        subnets = same_members(config["subnetIds"], self.subnet_ids)
        if compare.differs("subnet_ids", config["subnetIds"], subnets):
            self._refuse_other_zones(live)
            steps.append(self._config("subnets", resourcesVpcConfig={"subnetIds": self.subnet_ids}))
        groups = same_members(config.get("securityGroupIds"), self.security_group_ids)
        if compare.differs("security_group_ids", config.get("securityGroupIds"), groups):
            steps.append(self._config("security groups", resourcesVpcConfig={"securityGroupIds": groups}))
        return steps

    def _refuse_other_zones(self, live: Body) -> None:
        """A cluster stays in the zones that it was created in (aws/containers-roadmap#2258)."""
        known, before = live["_zones"], live["resourcesVpcConfig"]["subnetIds"]
        here, there = (sorted({known.get(one, "?") for one in some}) for some in (before, self.subnet_ids or ()))
        if here != there and "?" not in here + there:
            raise InvalidInput(
                f"{self.label} is in the zones {', '.join(here)}; EKS cannot change them to {', '.join(there)}",
                hint=f"Set subnet_ids to subnets in just these zones, such as {', '.join(before)}; node groups may use others",
            )

    def _settings(self, compare: Comparison, live: Body) -> list[Step]:
        steps = [*self._logging(compare, live), *self._authentication(compare, live)]
        if compare.differs("support_type", live.get("upgradePolicy", {}).get("supportType"), self.support_type):
            steps.append(self._config("support type", upgradePolicy={"supportType": self.support_type}))
        if compare.differs("deletion_protection", live.get("deletionProtection", False), self.deletion_protection):
            steps.append(self._config("deletion protection", deletionProtection=self.deletion_protection))
        return steps

    def _logging(self, compare: Comparison, live: Body) -> list[Step]:
        rows = live.get("logging", {}).get("clusterLogging", [])
        current = sorted(kind for row in rows if row["enabled"] for kind in row["types"])
        if not compare.differs("logging", current, None if self.logging is None else sorted({*self.logging})):
            return []
        desired = self.logging or []
        on = [kind for kind in LOG_TYPES if kind in desired]
        off = [kind for kind in LOG_TYPES if kind not in desired]
        config = [{"types": kinds, "enabled": state} for kinds, state in ((on, True), (off, False)) if kinds]
        return [self._config("logging", logging={"clusterLogging": config})]

    def _authentication(self, compare: Comparison, live: Body) -> list[Step]:
        current = live.get("accessConfig", {}).get("authenticationMode", MODES[0])
        if not compare.differs("authentication_mode", current, self.authentication_mode):
            return []
        desired = t.cast(str, self.authentication_mode)
        if MODES.index(desired) < MODES.index(current):
            raise InvalidInput(
                f"{self.label} has authentication_mode {current}; EKS cannot go back to {desired}",
                hint=f"Set authentication_mode to {current}",
            )
        # EKS only takes one step at a time: from the config map to both, from both to the API.
        path = MODES[MODES.index(current) + 1 : MODES.index(desired) + 1]
        return [self._config(f"authentication mode {mode}", accessConfig={"authenticationMode": mode}) for mode in path]

    def _encryption(self, compare: Comparison, live: Body) -> list[Step]:
        rows = live.get("encryptionConfig") or []
        current = rows[0]["provider"]["keyArn"] if rows else None
        # EKS shows the key, also where it was given an alias.
        if not compare.differs("encryption_key_arn", current, live.get("_key") or self.encryption_key_arn):
            return []
        if current:
            raise InvalidInput(
                f"{self.label} encrypts its secrets with {current}; EKS cannot change the key",
                hint=f"Set encryption_key_arn to {current}; rotation of the key itself is done in KMS",
            )
        request = {"clusterName": self.name, "encryptionConfig": self._encryption_config()}
        return [Step("associate_encryption_config", request, "encryption of secrets", wait="update")]

    def _upgrade(self, compare: Comparison, live: Body) -> list[Step]:
        if not compare.differs("version", live["version"], self.version):
            return []
        desired = t.cast(str, self.version)
        upgrade(self.label, live["version"], desired)
        request = {"name": self.name, "version": desired}
        return [Step("update_cluster_version", request, f"version {live['version']} to {desired}", wait="update")]
