# SPDX-License-Identifier: GPL-3.0-or-later
"""EKS managed node groups as values: the desired state, and the requests that lead to it."""

from __future__ import annotations

import dataclasses
import typing as t

from .._cloud.errors import CallRefused
from .._cloud.plan import Body, Comparison, Plan, State, camel, creation_plan, same_members, without_none
from .._cloud.texts import refuse_node_label, refuse_twice
from .._core.errors import InvalidInput
from .api import NO_LAUNCH, Api
from .eks_cluster import minor
from .plan import Step
from .resource import Updated, status_state

LATEST = "latest"
CUSTOM = "CUSTOM"
"""The AMI type of nodes whose image is that of their launch template. EKS takes no version, release or other AMI type for them."""
SYMBOLIC = ("$Latest", "$Default")
RESERVED_DOMAINS = ("kubernetes.io", "k8s.io", "eks.amazonaws.com")
"""Domains of labels with which kubelet does not start (terraform-aws-modules/terraform-aws-eks#3346) or which EKS refuses
(eksctl-io/eksctl#4007)."""
FREE_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
"""Domains of labels that kubelet may set (IsKubeletLabel in k8s.io/kubelet/pkg/apis/well_known_labels.go, Kubernetes 1.35)."""
LONGEST = 63
"""Characters of a label's or taint's key with its domain (labelKey and taintKey of EKS in botocore)."""
EVICTION = (
    "The nodes are the old ones until their pods can go: `kubectl get poddisruptionbudgets --all-namespaces` shows what keeps them;"
    " run again then"
)
# Folders of AWS's public parameters by AMI type (EKS user guide, "Retrieve recommended Amazon Linux AMI IDs").
_RELEASES = {
    "AL2023_x86_64_STANDARD": "amazon-linux-2023/x86_64/standard",
    "AL2023_x86_64_NVIDIA": "amazon-linux-2023/x86_64/nvidia",
    "AL2023_x86_64_NEURON": "amazon-linux-2023/x86_64/neuron",
    "AL2023_ARM_64_STANDARD": "amazon-linux-2023/arm64/standard",
    "AL2023_ARM_64_NVIDIA": "amazon-linux-2023/arm64/nvidia",
}


def release_parameter(ami_type: str, version: str) -> str:
    """The public parameter with the newest release of an image; empty for images that have none."""
    folder = _RELEASES.get(ami_type)
    return f"/aws/service/eks/optimized-ami/{version}/{folder}/recommended/release_version" if folder else ""


@dataclasses.dataclass(frozen=True)
class EksNodegroup(Updated):
    """Options that are None keep their live value; EKS chooses them when the node group is created."""

    LABEL = "EKS node group {name} of cluster {cluster_name}"
    IDENTITY = ("nodegroupArn", "createdAt")
    NAMED: t.ClassVar = {"clusterName": "cluster_name", "nodegroupName": "name"}

    cluster_name: str
    name: str
    node_role: str | None = None
    subnets: list[str] | None = None
    version: str | None = None
    release_version: str | None = None
    ami_type: str | None = None
    instance_types: list[str] | None = None
    capacity_type: t.Literal["ON_DEMAND", "SPOT", "CAPACITY_BLOCK"] | None = None
    disk_size: int | None = None
    launch_template: Body | None = None
    scaling_config: Body | None = None
    update_config: Body | None = None
    node_repair_enabled: bool | None = None
    labels: dict[str, str] | None = None
    taints: list[Body] | None = None
    template_image: str | None = None
    """The image of the version of ``launch_template`` (see ``look_up``); empty without one, None where it is not known."""

    def read(self, api: Api) -> Body | None:
        """Read the node group; with the newest release of its image, if that is desired."""
        live = self.described(api, "describe_nodegroup", "nodegroup")
        if live is None or self.release_version != LATEST or self._custom(live):
            return live
        return {**live, "_latest": self._latest(api, live)}

    def _latest(self, api: Api, live: Body) -> str:
        """The newest release of the group's image, from AWS's public parameters."""
        kind, version = live["amiType"], self.version or live["version"]
        path = release_parameter(kind, version)
        found = api.read(self.label, "ssm", "get_parameter", Name=path) if path else None
        if not found:
            raise InvalidInput(
                f"{self.label}: AWS publishes no newest release of {kind} for Kubernetes {version}",
                hint="Give release_version the name of a release, or leave it out",
            )
        return str(found["Parameter"]["Value"])

    def state(self, live: Body | None) -> State:
        return status_state(live, ready=("ACTIVE", "DEGRADED"), failed=("CREATE_FAILED", "DELETE_FAILED"))

    def hint(self, refused: CallRefused) -> str:
        """EKS tries a launch template as the caller, and does not say which permission is missing (scylladb/scylla-cluster-tests#12172)."""
        hint = "For a launch template the caller lacks ec2:RunInstances or ec2:CreateTags; see playbooks/files/eks-policies"
        return hint if refused.cause == NO_LAUNCH else ""

    def advice(self, codes: t.Collection[str]) -> str | None:
        return EVICTION if "PodEvictionFailure" in codes else None

    def _custom(self, live: Body | None) -> bool:
        """Whether the image of the nodes is, or would be, that of the launch template."""
        return bool(self.template_image) or CUSTOM in (self.ami_type, (live or {}).get("amiType"))

    def plan(self, live: Body | None) -> Plan:
        self._validate()
        if self._custom(live):
            self._refuse_versions(live)
        create = Step("create_nodegroup", self._create_request(), "create", wait="stable") if self._complete else None
        if live is None or live["status"] in ("CREATE_FAILED", "DELETE_FAILED", "DELETING"):
            if create is None:
                raise InvalidInput(f"{self.label} does not exist", hint="To create it, node_role and subnets are needed")
            if live is None or self.going(live):
                return creation_plan(create)
            # It never had a working node, so there is nothing to lose; and EKS cannot change it.
            remove = Step("delete_nodegroup", self.named, f"delete, it is {live['status']}", wait="gone")
            return Plan((remove, create), {"status": live["status"]}, create.request)
        self._refuse_immutable(live)
        compare = Comparison()
        tags = self.tag_steps(compare, live, resourceArn=live["nodegroupArn"])
        return compare.plan([*tags, *self._upgrade(compare, live), *self._configure(compare, live)])

    def deletions(self, live: Body) -> list[Step]:  # noqa: ARG002
        return [Step("delete_nodegroup", self.named, "delete", wait="gone")]

    def _refuse_versions(self, live: Body | None) -> None:
        """Refuse options that EKS does not accept with the image of a launch template.

        See CreateNodegroupRequest and UpdateNodegroupVersionRequest in botocore.
        """
        options = {
            "version": self.version,
            "release_version": self.release_version,
            "ami_type": None if self.ami_type == CUSTOM else self.ami_type,
        }
        given = [f"{name} {value}" for name, value in options.items() if value is not None]
        if given:
            raise InvalidInput(
                f"{self.label} has the image of its launch template, and EKS takes no {', no '.join(given)} beside it",
                hint="Leave out version and release_version, and give ami_type: CUSTOM or none. For other nodes put the ID of another "
                "image into a new version of the launch template, and give that as launch_template.version",
            )
        if live is None and (not self.launch_template or self.template_image == ""):
            raise InvalidInput(
                f"{self.label}: ami_type is {CUSTOM}, and no launch template gives an image",
                hint="Give launch_template, with a version that has an image (ImageId), or another ami_type",
            )

    @property
    def _complete(self) -> bool:
        return bool(self.node_role and self.subnets)

    def _validate(self) -> None:
        if self.version is not None:
            minor(self.version)
        scaling = self.scaling_config or {}
        sizes = [scaling.get(key) for key in ("minSize", "desiredSize", "maxSize")]
        known = [size for size in sizes if size is not None]
        if known != sorted(known):
            raise InvalidInput(
                f"{self.label}: scaling_config has min_size, desired_size and max_size {sizes}",
                hint="min_size must not be over desired_size, nor desired_size over max_size",
            )
        # "max-unavailable must be within the range 1 and max size of the node group" (hashicorp/terraform-provider-aws#26535)
        most, away = scaling.get("maxSize"), (self.update_config or {}).get("maxUnavailable")
        if most is not None and away is not None and not 1 <= away <= most:
            raise InvalidInput(
                f"{self.label}: update_config.max_unavailable is {away}, and scaling_config.max_size {most}",
                hint="Give max_unavailable 1 to max_size, or max_unavailable_percentage",
            )
        refuse_twice(self.label, self.taints or ())
        self._refuse_words()
        if self.launch_template and self.disk_size is not None:
            raise InvalidInput(f"{self.label}: disk_size belongs in the launch template", hint="Leave out one of the two")

    def _refuse_words(self) -> None:
        """Refuse labels and taints that EKS or Kubernetes refuses."""
        labels, taints = self.labels or {}, [(taint["key"], taint.get("value") or "") for taint in self.taints or ()]
        for key, value in (*labels.items(), *taints):
            refuse_node_label(self.label, key, value)
            if len(key) > LONGEST:
                raise InvalidInput(f"{self.label}: the key {key} has {len(key)} characters", hint=f"EKS takes {LONGEST} with the domain")
        for key, value in labels.items():
            reserved = _within(key, RESERVED_DOMAINS) and not _within(key, FREE_DOMAINS)
            if reserved or not value:
                why = f"{', '.join(RESERVED_DOMAINS)} are reserved" if reserved else "it is empty"
                raise InvalidInput(
                    f"{self.label}: nodes do not start with the label {key}, because {why}",
                    hint=f"Give it a value, and a domain of your own or {FREE_DOMAINS[1]}; or label the nodes in Kubernetes",
                )

    def _create_request(self) -> Body:
        request = self.requested(
            "node_role", "subnets", "version", "release_version", "ami_type", "instance_types", "capacity_type", "disk_size",
            "launch_template", "scaling_config", "update_config", "labels", "taints", "tags",
        )  # fmt: skip
        if self.release_version == LATEST:
            del request["releaseVersion"]
        if self.ami_type == CUSTOM:
            del request["amiType"]
        if self.scaling_config:  # EKS requires all sizes; the desired one defaults to the minimum
            request["scalingConfig"] = {"desiredSize": self.scaling_config.get("minSize"), **self.scaling_config}
        if self.node_repair_enabled is not None:
            request["nodeRepairConfig"] = {"enabled": self.node_repair_enabled}
        return {**self.named, **request}

    def _refuse_immutable(self, live: Body) -> None:
        names = ("node_role", "ami_type", "capacity_type", "disk_size", "subnets", "instance_types")
        options = {name: (live.get(camel(name)), getattr(self, name)) for name in names}
        options |= {name: (options[name][0], same_members(*options[name])) for name in names[-2:]}
        self.refuse_change("Create a second node group with the new value, drain this one, and delete it", **options)
        self._refuse_other_template(live.get("launchTemplate") or {})

    def _refuse_other_template(self, live: Body) -> None:
        """A node group keeps the template that it was created with, or none (UpdateNodegroupVersionRequest.launchTemplate in botocore)."""
        desired = self.launch_template or {}
        if not desired or any(key in live and desired.get(key) == live[key] for key in ("id", "name")):
            return
        current = live.get("name") or live.get("id") or "no launch template"
        raise InvalidInput(
            f"{self.label} was created with {current}; EKS cannot change it to {desired.get('name') or desired.get('id')}",
            hint="Leave out launch_template, or create a second node group with it, drain this one, and delete it",
        )

    def _upgrade(self, compare: Comparison, live: Body) -> list[Step]:
        request: Body = {}
        if self.launch_template:
            current = live.get("launchTemplate") or {}
            version = self.launch_template.get("version")
            if version is not None and compare.differs("launch_template_version", current.get("version"), version):
                request["launchTemplate"] = self.launch_template
        if compare.differs("version", live["version"], self.version):
            self._refuse_downgrade(live)
            request["version"] = self.version
        release = live.get("_latest") if self.release_version == LATEST else self.release_version
        if compare.differs("release_version", live.get("releaseVersion"), release):
            request["releaseVersion"] = release
        if not request:
            return []
        says = f"version {live['version']} to {self.version}" if "version" in request else "image"
        if "launchTemplate" in request and "version" not in request:
            says = f"launch template version {request['launchTemplate']['version']}"
        if not self._custom(live):
            # Without a version EKS would go to that of the cluster.
            request.setdefault("version", live["version"])
        return [Step("update_nodegroup_version", {**self.named, **request}, says, wait="update")]

    def _refuse_downgrade(self, live: Body) -> None:
        if minor(t.cast(str, self.version)) < minor(live["version"]):
            raise InvalidInput(
                f"{self.label} runs {live['version']}; EKS cannot go back to {self.version}",
                hint="Create a second node group with the older version while the cluster still has it",
            )

    def _configure(self, compare: Comparison, live: Body) -> list[Step]:
        taints = None if self.taints is None else taints_by_identity(self.taints)
        shown = {key: value for key, value in (live.get("updateConfig") or {}).items() if key in (self.update_config or {})}
        repair, asked = (live.get("nodeRepairConfig") or {}).get("enabled", False), self.node_repair_enabled
        request = without_none(
            {
                "labels": _moves(compare, "labels", live.get("labels") or {}, self.labels),
                "taints": _moves(compare, "taints", taints_by_identity(live.get("taints")), taints),
                "scalingConfig": self._scaling(compare, live),
                "updateConfig": self.update_config if compare.differs("update_config", shown, self.update_config) else None,
                "nodeRepairConfig": {"enabled": asked} if compare.differs("node_repair_enabled", repair, asked) else None,
            }
        )
        if not request:
            return []
        return [Step("update_nodegroup_config", {**self.named, **request}, ", ".join(sorted(request)), wait="update")]

    def _scaling(self, compare: Comparison, live: Body) -> Body | None:
        """The given sizes; without a desired one, that of the autoscaler is kept, within the bounds."""
        if self.scaling_config is None:
            return None
        current = live.get("scalingConfig") or {}
        desired = {**current, **self.scaling_config}
        if "desiredSize" not in self.scaling_config:
            desired["desiredSize"] = max(desired["minSize"], min(desired["desiredSize"], desired["maxSize"]))
        return desired if compare.differs("scaling_config", current, desired) else None


def _moves(compare: Comparison, field: str, current: dict[t.Any, t.Any], desired: dict[t.Any, t.Any] | None) -> Body | None:
    """The labels, or taints by their identity, that are to be put and that are to go, in the form of EKS."""

    def shown(rows: dict[t.Any, t.Any]) -> t.Any:
        return list(rows.values()) if field == "taints" else rows

    if desired is None or not compare.differs(field, shown(current), shown(desired)):
        return None
    put = {key: value for key, value in desired.items() if current.get(key) != value}
    gone = {key: current[key] for key in sorted(current.keys() - desired.keys())}
    removed = shown(gone) if field == "taints" else list(gone)
    moves = {f"addOrUpdate{field.capitalize()}": shown(put), f"remove{field.capitalize()}": removed}
    return {name: rows for name, rows in moves.items() if rows}


def look_up(api: Api, params: Body) -> str:
    """Add to the options what the launch template says: the image of its version, and which number $Latest and $Default are.

    EKS takes these words and shows the number, so that they would be a change in every run (argument version of aws_eks_node_group in
    terraform-provider-aws). A template that a plan would make is not there yet, and nothing is added.
    """
    asked = params.get("launch_template")
    if not asked:
        return ""
    version = asked.get("version") or "$Default"
    if version not in SYMBOLIC and not version.isdecimal():
        raise InvalidInput(
            f"EKS node group {params['name']}: {version!r} is no version of a launch template",
            hint=f"Give launch_template.version a number, or {' or '.join(SYMBOLIC)}",
        )
    key = "LaunchTemplateId" if asked.get("id") else "LaunchTemplateName"
    request = {key: asked.get("id") or asked.get("name"), "Versions": [version]}
    label = f"Launch template {request[key]} of EKS node group {params['name']}"
    found = api.read(label, "ec2", "describe_launch_template_versions", **request) or {}
    for row in found.get("LaunchTemplateVersions", []):
        params["template_image"] = row["LaunchTemplateData"].get("ImageId", "")
        if asked.get("version") in SYMBOLIC:
            asked["version"] = str(row["VersionNumber"])
    return ""


def _within(key: str, domains: t.Iterable[str]) -> bool:
    """Whether the domain of a label's key is one of DOMAINS or below it."""
    domain, slash, _name = key.rpartition("/")
    return bool(slash) and any(f".{domain}".endswith(f".{one}") for one in domains)


def taints_by_identity(taints: t.Iterable[Body] | None) -> dict[tuple[str, str], Body]:
    """Taints by (key, effect); a missing value counts as empty."""
    rows = [{"key": x["key"], "value": x.get("value") or "", "effect": x["effect"]} for x in taints or ()]
    return {(row["key"], row["effect"]): row for row in sorted(rows, key=lambda row: (row["key"], row["effect"]))}
