# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters: made, read, deleted. What GKE adds to one is in `_defaults`.

Rules: names have 40 characters at most; one of that name and place is 409 "Already exists: projects/..."; a cluster is made with nodes (or,
as Terraform does it, with a pool that is deleted afterwards); with the first one that uses Workload Identity, the project's identity pool
comes into being; the cluster is there in PROVISIONING, or in ERROR, before and after its operation says so.
"""

import copy
import ipaddress
import re

from .. import catalogue
from ..api import Asked, Refused, handles
from ..compute.resources import bare
from ..discovery import Body
from ..labels import refuse_of_gke
from ..operations import Failed, look_at
from ..state import PROJECT, SETTINGS, Project, Thing, digest, now, number, project
from . import ground, nodes, pools, shown, versions
from .doors import check_authorized, endpoint
from .operations import free, link, start

NAME = re.compile(r"^[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?$")


def missing(path: str) -> Refused:
    """Zonal ones are named by their zone (hashicorp/terraform-provider-google issue 7851), regional ones by locations (issue 5229)."""
    return Refused(404, f"Not found: {link(path).removeprefix('https://container.googleapis.com/v1/')}.")


def find(asked: Asked, field: str = "name") -> tuple[Project, Thing]:
    parts = asked.parts(field)
    found = project(parts["projects"])
    path = f"projects/{found.id}/locations/{parts['locations']}/clusters/{parts['clusters']}"
    thing = found.shelf("clusters").get(path)
    if thing is None:
        raise missing(path)
    return found, thing


@handles("container.projects.locations.clusters.get")
def _get(asked: Asked) -> Body:
    _found, thing = find(asked)
    look_at(thing.extra["path"])
    found, thing = find(asked)
    thing.body["endpoint"] = endpoint(thing.body)
    return shown.cluster(found, thing)


@handles("container.projects.locations.clusters.list")
def _list(asked: Asked) -> Body:
    parts = asked.parts("parent")
    found = project(parts["projects"])
    if parts["locations"] != "-":
        versions.place(parts["locations"])
    rows = [shown.cluster(found, thing) for key, thing in found.shelf("clusters").items() if parts["locations"] in ("-", key.split("/")[3])]
    return {"clusters": rows} if rows else {}


@handles("container.projects.locations.clusters.create")
def _create(asked: Asked) -> Body:
    parts, given = asked.parts("parent"), copy.deepcopy(asked.body.get("cluster") or {})
    found, location = project(parts["projects"]), versions.place(parts["locations"])
    name = str(given.get("name", ""))
    if not NAME.match(name):
        # otrack/cloud-computing-infrastructures PR 17
        text = (
            f'Invalid value for field "cluster.name": "{name}". Must be a match of regex \'(?:{NAME.pattern[1:-1]})\' (only lowercase '
            "alphanumerics and '-' allowed, must start with a letter and end with an alphanumeric, and must be no longer than 40 "
            "characters)."
        )
        raise Refused(400, text)
    path = f"projects/{found.id}/locations/{location}/clusters/{name}"
    if path in found.shelf("clusters"):
        raise Refused(409, f"Already exists: {link(path).removeprefix('https://container.googleapis.com/v1/')}.")
    _telemetry(given)
    wanted = _pools(given)
    network, subnet = ground.network(found, given, location)
    body = _defaults(found, given, location, network, subnet)
    thing = Thing(body, extra={"path": path})
    made = [pools.new(asked, found, thing, pool) for pool in wanted]
    pools.afford(asked, found, made)
    found.shelf("clusters")[path] = thing
    for pool in made:
        found.shelf("nodePools")[pool.extra["path"]] = pool
    ground.furnish(found, body)
    if body["workloadIdentityConfig"]:
        found.shelf("identityPools").setdefault(f"{found.id}.svc.id.goog", Thing({}))

    def finish() -> None:
        body["status"] = "RUNNING"
        for pool in made:
            pool.body["status"] = "RUNNING"
            nodes.settle(found, body, pool)

    def fail(failed: Failed) -> None:
        conditions = [{"message": str(failed), "canonicalCode": "UNKNOWN"}]
        body.update(status="ERROR", statusMessage=str(failed), conditions=conditions)

    from .nodepools import exhausted

    failed = [exhausted(found, thing, pool, int(pool.extra["per_zone"])) for pool in made]
    return start(asked, "CREATE_CLUSTER", path, finish, fail, next((one for one in failed if one), None))


def _telemetry(given: Body) -> None:
    """The older fields and the newer ones exclude each other (hashicorp/terraform-provider-google issue 10805)."""
    if any(given.get(f"{one}Config") for one in TELEMETRY) and any(given.get(f"{one}Service") for one in TELEMETRY):
        text = "Cannot specify logging_config or monitoring_config together with logging_service or monitoring_service."
        raise Refused(400, text)


TELEMETRY = ("logging", "monitoring")


def _pools(given: Body) -> list[Body]:
    """The pools that a request names, or the default one that it describes."""
    count, pools_ = int(given.pop("initialNodeCount", 0) or 0), given.pop("nodePools", None) or []
    config = given.pop("nodeConfig", None)
    if (given.get("autopilot") or {}).get("enabled"):
        return _autopilot(given, bool(pools_ or count or config))
    if pools_ and (count or config):
        raise Refused(
            400, "Cluster.initial_node_count and Cluster.node_config must not be set with Cluster.node_pools."
        )  # Cluster.initialNodeCount; assumed: the wording
    if pools_:
        return list(pools_)
    if count < 1:
        raise Refused(400, "Cluster.initial_node_count must be greater than zero.")
    return [{"name": "default-pool", "initialNodeCount": count, "config": config or {}}]


def _autopilot(given: Body, nodes_given: bool) -> list[Body]:
    """An Autopilot cluster has a channel and Workload Identity, and pools of its own, with 32 pods a node (pulumi/pulumi issue 8638)."""
    if nodes_given:
        raise Refused(400, "Setting node pools is not allowed on GKE Autopilot clusters.")  # assumed: as other fields, see below
    if (given.get("nodePoolDefaults") or {}).get("nodeConfigDefaults"):
        # GoogleCloudPlatform/ai-on-gke issue 820
        text = "Setting node_pool_defaults.node_config_defaults.node_kubelet_config is not allowed on GKE Autopilot clusters."
        raise Refused(400, text)
    channel = (given.get("releaseChannel") or {}).get("channel")
    given["releaseChannel"] = {"channel": "REGULAR" if channel in (None, "", "UNSPECIFIED") else channel}
    given["workloadIdentityConfig"] = {"workloadPool": f"{PROJECT}.svc.id.goog"}
    return [{"name": "default-pool", "initialNodeCount": 1, "maxPodsConstraint": {"maxPodsPerNode": "32"}, "config": {}}]


def _zones(given: Body, location: str) -> list[str]:
    """Where nodes are: as asked, else the zone itself, or three of the region."""
    region = catalogue.region_of(location)
    rows = list(given.get("locations") or ([location] if catalogue.is_zone(location) else catalogue.zones(region)[:3]))
    for zone in rows:
        check_zone(zone, region)
    if catalogue.is_zone(location) and location not in rows:
        raise Refused(400, f'Cluster locations must include the cluster\'s zone "{location}".')  # assumed: the wording
    return sorted(set(rows))


def check_zone(zone: str, region: str) -> None:
    if zone not in catalogue.zones(region):
        raise Refused(400, f'Location "{zone}" is not in region "{region}", or does not exist.')  # assumed: the wording


MONITORED = [
    "SYSTEM_COMPONENTS", "STORAGE", "HPA", "POD", "DAEMONSET", "DEPLOYMENT", "STATEFULSET", "KUBELET", "CADVISOR", "DCGM", "JOBSET",
]  # fmt: skip


def _defaults(found: Project, given: Body, location: str, network: Thing, subnet: Thing) -> Body:
    """A new cluster as GKE completes it."""
    channel = str((given.get("releaseChannel") or {}).get("channel") or "")
    version = versions.chosen(str(given.get("initialClusterVersion") or ""), channel)
    pool = (given.get("workloadIdentityConfig") or {}).get("workloadPool")
    check_workload_pool(found, pool)
    zones = _zones(given, location)
    labels = dict(given.get("resourceLabels") or {})
    refuse_of_gke(labels, "cluster.resource_labels")
    body: Body = {
        "addonsConfig": {"gcePersistentDiskCsiDriverConfig": {"enabled": True}, "dnsCacheConfig": {}, "gcpFilestoreCsiDriverConfig": {},
                         "kubernetesDashboard": {"disabled": True}, "networkPolicyConfig": {"disabled": True}, "gcsFuseCsiDriverConfig": {},
                         "httpLoadBalancing": {}, "horizontalPodAutoscaling": {}},
        "autopilot": {}, "autoscaling": {"autoscalingProfile": "BALANCED"}, "binaryAuthorization": {}, "createTime": now()[:19] + "+00:00",
        "databaseEncryption": {"state": "DECRYPTED", "currentState": "CURRENT_STATE_DECRYPTED"},
        "defaultMaxPodsConstraint": {"maxPodsPerNode": "110"},
        "enterpriseConfig": {"clusterTier": "STANDARD"}, "id": digest(found.id, location, given["name"], number(), length=64),
        "legacyAbac": {},
        "loggingConfig": {"componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS", "WORKLOADS"]}},
        "loggingService": "logging.googleapis.com/kubernetes", "maintenancePolicy": {"resourceVersion": "e3b0c442"},
        "monitoringConfig": {"componentConfig": {"enableComponents": MONITORED}, "managedPrometheusConfig": {"enabled": True},
                             "advancedDatapathObservabilityConfig": {}},
        "monitoringService": "monitoring.googleapis.com/kubernetes", "nodePoolAutoConfig": {}, "notificationConfig": {"pubsub": {}},
        "nodePoolDefaults": {"nodeConfigDefaults": {"loggingConfig": {"variantConfig": {"variant": "DEFAULT"}}, "nodeKubeletConfig": {}}},
        "rbacBindingConfig": {"enableInsecureBindingSystemUnauthenticated": True, "enableInsecureBindingSystemAuthenticated": True},
        "releaseChannel": {}, "securityPostureConfig": {"mode": "BASIC", "vulnerabilityMode": "VULNERABILITY_MODE_UNSPECIFIED"},
        "shieldedNodes": {"enabled": True}, "workloadIdentityConfig": {}, "anonymousAuthenticationConfig": {"mode": "ENABLED"},
        "podAutoscaling": {"hpaProfile": "PERFORMANCE"},
    }  # fmt: skip
    known = {name: value for name, value in given.items() if value is not None}
    if known.get("maintenancePolicy"):
        from .setters import policy_of

        known["maintenancePolicy"] = policy_of(known["maintenancePolicy"])
    for name in ("addonsConfig", "monitoringConfig", "nodePoolDefaults"):
        known[name] = {**body[name], **(known.get(name) or {})}
    body |= known
    body |= {
        "initialClusterVersion": version, "currentMasterVersion": version, "location": location, "zone": location, "locations": zones,
        "selfLink": link(f"projects/{found.id}/locations/{location}/clusters/{given['name']}"), "status": "PROVISIONING",
        "network": network.body["name"], "subnetwork": subnet.body["name"], "resourceLabels": labels,
        "labelFingerprint": digest(sorted(labels.items())),
        "masterAuth": {"clusterCaCertificate": SETTINGS.certificate_authority, "clientCertificateConfig": {}},
    }  # fmt: skip
    _network(found, body, given, network, subnet)
    return body


def check_workload_pool(found: Project, pool: str | None) -> None:
    if pool and pool != f"{found.id}.svc.id.goog":
        text = f"Currently, the only supported identity namespace is the one associated with the project: {found.id}.svc.id.goog."
        raise Refused(400, text)


def _network(found: Project, body: Body, given: Body, network: Thing, subnet: Thing) -> None:
    """Ranges, and the same said of the control plane twice: by the old fields and by controlPlaneEndpointsConfig."""
    private = dict(given.get("privateClusterConfig") or {})
    endpoints = copy.deepcopy(given.get("controlPlaneEndpointsConfig") or {})
    ip = endpoints.setdefault("ipEndpointsConfig", {})
    ground.control_plane(found, str(private.get("masterIpv4CidrBlock") or ""))
    nodes_private = bool(private.get("enablePrivateNodes") or (given.get("networkConfig") or {}).get("defaultEnablePrivateNodes"))
    if private.get("enablePrivateEndpoint") and not nodes_private:
        raise Refused(400, "Private endpoint requires private nodes.")  # assumed: the wording
    policy = ground.allocate(found, body, subnet)
    if nodes_private and policy.get("useRoutes"):
        # ansible/ansible issue 61028
        text = "Alias IP addresses are required for private cluster, please make sure you enable alias IPs when creating a cluster."
        raise Refused(400, text)
    body["ipAllocationPolicy"] = policy
    body["clusterIpv4Cidr"], body["servicesIpv4Cidr"] = (policy.get("clusterIpv4CidrBlock", ""), policy.get("servicesIpv4CidrBlock", ""))
    body["networkConfig"] = {
        "defaultSnatStatus": {}, "serviceExternalIpsConfig": {}, "defaultEnablePrivateNodes": nodes_private,
        **(given.get("networkConfig") or {}),
        "network": bare(network.body["selfLink"]), "subnetwork": bare(subnet.body["selfLink"]),
    }  # fmt: skip
    block = private.get("masterIpv4CidrBlock") or subnet.body["ipCidrRange"]
    inside = str(ipaddress.ip_network(block)[2])
    public = not private.get("enablePrivateEndpoint") and ip.get("enablePublicEndpoint", True)
    authorized = ip.get("authorizedNetworksConfig") or given.get("masterAuthorizedNetworksConfig") or {}
    body["masterAuthorizedNetworksConfig"] = {"gcpPublicCidrsAccessEnabled": public, **authorized}
    check_authorized(body["masterAuthorizedNetworksConfig"], public=public)
    ip |= {
        "enabled": ip.get("enabled", True), "enablePublicEndpoint": public, "privateEndpoint": inside,
        "publicEndpoint": f"203.0.113.{number() % 250 + 1}",
        "authorizedNetworksConfig": body["masterAuthorizedNetworksConfig"],
        "globalAccess": bool((private.get("masterGlobalAccessConfig") or {}).get("enabled")),
    }  # fmt: skip
    endpoints["dnsEndpointConfig"] = {
        "endpoint": f"gke-{body['id'][:12]}-{found.number}.{catalogue.region_of(body['location'])}.gke.goog", "allowExternalTraffic": False,
        **(endpoints.get("dnsEndpointConfig") or {}),
    }  # fmt: skip
    body["controlPlaneEndpointsConfig"] = endpoints
    body["privateClusterConfig"] = {
        **private, "enablePrivateNodes": nodes_private, "enablePrivateEndpoint": not public, "privateEndpoint": inside,
        "publicEndpoint": ip["publicEndpoint"],
    }  # fmt: skip
    body["endpoint"] = endpoint(body)


@handles("container.projects.locations.clusters.delete")
def _delete(asked: Asked) -> Body:
    """Its nodes, firewall rules and endpoint go with it; disks of claims, load balancers and what they opened stay."""
    found, thing = find(asked)
    path = thing.extra["path"]
    free(path)
    before, thing.body["status"] = thing.body["status"], "STOPPING"

    def finish() -> None:
        for pool in shown.pools_of(found, path):
            nodes.clear(found, pool)
            found.shelf("nodePools").pop(pool.extra["path"])
        ground.unfurnish(found, thing.body)
        found.shelf("clusters").pop(path)

    def fail(failed: Failed) -> None:
        thing.body |= {"status": "ERROR" if before == "ERROR" else before, "statusMessage": str(failed)}

    return start(asked, "DELETE_CLUSTER", path, finish, fail)
