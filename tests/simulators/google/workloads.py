# SPDX-License-Identifier: GPL-3.0-or-later
"""What workloads of a cluster leave in the project when the cluster goes. Here GKE deletes none of it, which is the worst case.

"Other Google Compute Engine resources that might be in use by the cluster, such as load balancer resources, are not deleted if they weren't
present when the cluster was initially created" (clusters.delete in the discovery document). GKE tries to delete load balancers and
disks, and does not promise it (cloud.google.com/kubernetes-engine/docs/how-to/deleting-a-cluster,
cloud.google.com/sdk/gcloud/reference/container/clusters/delete). The firewall rule of a load balancer keeps the network from being deleted,
as do network endpoint groups, which are removed some minutes after the cluster (hashicorp/terraform-provider-google issue 7637,
decisionbox-io/decisionbox-platform PR 87; names of apollosolutions/build-a-supergraph issue 34, descriptions of kubernetes/ingress-gce,
NegDescription).
"""

import json

from . import catalogue
from .compute.machines import new_disk
from .compute.resources import link
from .discovery import Body
from .state import Project, Thing, digest, long_id, now, number


def make(found: Project, cluster: str, location: str, fades: int = 0) -> list[str]:
    """A claim's disk, and a Service of type LoadBalancer: forwarding rule, target pool, firewall rule, endpoint group. Their paths.

    FADES: once the cluster is gone, Google removes them, but for the disk, when so many deletions were refused because of them.
    """
    path = f"projects/{found.id}/locations/{location}/clusters/{cluster}"
    body: Body = found.shelf("clusters")[path].body
    region, mark = catalogue.region_of(location), digest(cluster, number(), length=32)
    disk_path, disk = new_disk(
        found, body["locations"][0], f"pvc-{mark[:8]}-0000-4000-8000-{mark[8:20]}", {"diskType": "pd-balanced", "sizeGb": "10"}, "disk"
    )
    disk["description"] = '{"kubernetes.io/created-for/pvc/name":"data","kubernetes.io/created-for/pvc/namespace":"default"}'
    disk["labels"] = {"goog-k8s-cluster-name": cluster, "goog-k8s-cluster-location": location, "goog-k8s-node-pool-name": ""}
    found.shelf("disks")[disk_path] = Thing(disk)
    where = f"projects/{found.id}/regions/{region}"
    rule, pool, wall = (
        f"{where}/forwardingRules/a{mark}",
        f"{where}/targetPools/a{mark}",
        f"projects/{found.id}/global/firewalls/k8s-fw-a{mark}",
    )
    common = {"id": long_id(), "creationTimestamp": now(), "description": '{"kubernetes.io/service-name":"default/web"}'}
    net = link(body["networkConfig"]["network"])
    found.shelf("targetPools")[pool] = Thing(
        {"kind": "compute#targetPool", **common, "name": f"a{mark}", "region": link(where), "selfLink": link(pool)}
    )
    found.shelf("forwardingRules")[rule] = Thing({
        "kind": "compute#forwardingRule", **common, "name": f"a{mark}", "region": link(where), "target": link(pool),
        "IPAddress": "198.51.100.9", "selfLink": link(rule),
        "IPProtocol": "TCP", "loadBalancingScheme": "EXTERNAL", "network": net, "labels": {"goog-k8s-cluster-name": cluster},
    })  # fmt: skip
    found.shelf("firewalls")[wall] = Thing({
        "kind": "compute#firewall", **common, "name": f"k8s-fw-a{mark}", "network": net, "priority": 1000, "direction": "INGRESS",
        "disabled": False,
        "sourceRanges": ["0.0.0.0/0"], "allowed": [{"IPProtocol": "tcp", "ports": ["80"]}], "selfLink": link(wall),
        "logConfig": {"enable": False},
        "targetTags": [f"gke-{cluster}-{digest(body['id'])}-node"],
    })  # fmt: skip
    zone = f"projects/{found.id}/zones/{body['locations'][0]}"
    group = f"{zone}/networkEndpointGroups/k8s1-{mark[:8]}-default-web-80-{mark[8:16]}"
    described = {"cluster-uid": mark[:16], "namespace": "default", "service-name": "web", "port": "80"}
    found.shelf("networkEndpointGroups")[group] = Thing({
        "kind": "compute#networkEndpointGroup", **common, "description": json.dumps(described), "name": group.rsplit("/", 1)[-1],
        "zone": link(zone), "network": net, "subnetwork": link(body["networkConfig"]["subnetwork"]), "selfLink": link(group),
        "networkEndpointType": "GCE_VM_IP_PORT", "size": 0,
    })  # fmt: skip
    made = [rule, pool, wall, group]
    for one in made if fades else ():
        found.shelf(one.split("/")[-2])[one].extra |= {"cluster": path, "fades": fades}
    return [disk_path, *made]
