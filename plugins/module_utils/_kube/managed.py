# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects in a cluster that Muster manages, and those beside them."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._core.clock import Deadline
from .._core.errors import MusterError, NotFound
from .._core.pool import PARALLEL, run_all_or_raise
from .._core.waiting import fixed_interval, last_answer
from .cluster import Cluster
from .fields import last_write, owned_fields
from .kinds import LEADER_ANNOTATION, MADE_BY_CONTROLLERS, NEVER_OURS, REPORTS, Kinds
from .objects import (
    CONFIG_MAP,
    DEFINITION,
    HISTORY,
    JOB,
    LABEL_HOME,
    LABEL_OWNER,
    SECRET,
    SERVICE_ACCOUNT,
    GroupKind,
    Manifest,
    Ref,
    ServedKind,
    annotations_of,
    group_kind,
    group_of,
    labels_of,
    ref_of,
)
from .ready import PREDICATES, READY, State, state_of

# Controllers create these in every namespace: those of Kubernetes, of Istio (CACertNamespaceConfigMap and CRLNamespaceConfigMap in
# pilot/pkg/features), and of OpenShift (documentation, "Default service accounts"), with credentials for its registry as Secrets.
_ROLE_BINDING = ("rbac.authorization.k8s.io", "RoleBinding")
_IN_EVERY_NAMESPACE: dict[GroupKind, str] = {
    CONFIG_MAP: r"kube-root-ca\.crt|istio-ca-root-cert|istio-ca-crl|openshift-service-ca\.crt",
    SERVICE_ACCOUNT: r"default|builder|deployer",
    SECRET: r"(default|builder|deployer)-(token|dockercfg)-[a-z0-9]{5}",
    _ROLE_BINDING: r"system:(image-pullers|image-builders|deployers)",
}
_OF_ACCOUNTS = {"kubernetes.io/service-account.name", "openshift.io/internal-registry-auth-token.service-account"}
"""The annotation of such a Secret."""
# Labels that say the same of any name: of the operator lifecycle manager and of trust-manager.
_COPIED = {("operators.coreos.com", "ClusterServiceVersion"): "olm.copiedFrom", CONFIG_MAP: "trust.cert-manager.io/bundle"}
# Namespaces of Kubernetes, of GKE ("kubectl get namespaces" of new clusters of 1.35, Standard and Autopilot; gmp-*: Managed Service for
# Prometheus, "Set up managed collection"; gke-connect: fleets), and of AWS's agents, which come by themselves or as add-ons (CloudWatch
# user guide, "Amazon CloudWatch Observability EKS add-on"; GuardDuty user guide, "Runtime Monitoring").
_OF_KUBERNETES = re.compile(
    r"kube-(system|public|node-lease)|gke-(managed-[a-z0-9-]+|gmp-system|system|connect)|gmp-(system|public)|amazon-(cloudwatch|guardduty)"
)
_OF_THE_API_SERVER: set[GroupKind] = {("", "Service"), ("", "Endpoints"), ("discovery.k8s.io", "EndpointSlice")}
"""Kinds of the objects named kubernetes in namespace default, by which pods reach the API server."""
_ON_EVERY_NODE: set[GroupKind] = {("apps", "DaemonSet"), ("", "Node")}
_SERVED_WITHIN = 2.0
"""Seconds to repeat discovery if a definition seems not to be served: it may be appearing or vanishing at this moment."""
_LOOK_AGAIN = 0.5
"""Seconds between two of these tries. Discovery follows a definition within 0.1 s on an idle server."""


@dataclasses.dataclass(frozen=True)
class Managed:
    """One object that Muster manages."""

    owner: str
    ref: Ref
    state: State
    going: bool
    written: str = ""
    training: str = ""
    training_kind: str = ""
    home: str = ""

    def result(self) -> dict[str, t.Any]:
        """The row as the module returns it."""
        return {
            "owner": self.owner,
            "home": self.home,
            "kind": self.ref.kind,
            "name": self.ref.name,
            "namespace": self.ref.namespace,
            "ready": self.state.ready and not self.going,
            "reason": "is being deleted" if self.going else self.state.reason,
        }


Kind = tuple[str, str, ServedKind]


def _kinds(cluster: Cluster, *, namespaced_only: bool) -> list[Kind]:
    return [
        (api_version, kind, resource)
        for api_version, kind, resource in cluster.kinds()
        if (group_of(api_version), kind) not in NEVER_OURS and (resource.namespaced or not namespaced_only)
    ]


def _each(kinds: list[Kind], read: t.Callable[[Kind], list[Manifest]]) -> list[Manifest]:
    """The objects that READ finds of every kind; one that two API groups serve counts once."""
    found = [manifest for batch in run_all_or_raise(read, kinds, parallel=PARALLEL) for manifest in batch]
    return list({str(item["metadata"].get("uid") or ref_of(item)): item for item in found}.values())


def managed_objects(cluster: Cluster, *, namespace: str | None = None, trainings: t.Mapping[str, str] | None = None) -> list[Managed]:
    """List the objects with our label, each with its state if the kind has one.

    ``trainings``: the kind of training by the label that all of its objects have, and whose value is its name.
    """

    def observe(kind: Kind) -> list[Manifest]:
        api_version, name, _resource = kind
        # Only kinds with a state are read whole; Secrets, for example, are not.
        stateful = (group_of(api_version), name) in PREDICATES
        read = cluster.list if stateful else cluster.list_metadata
        return list(read(api_version, name, namespace, LABEL_OWNER))

    found = _each(_kinds(cluster, namespaced_only=namespace is not None), observe)
    return sorted((_managed(item, trainings or {}) for item in found), key=lambda item: (item.owner, item.home, item.ref))


def _managed(item: Manifest, trainings: t.Mapping[str, str]) -> Managed:
    ref = ref_of(item)
    state = state_of(item, ref.kind, ref.api_version) if ref.group_kind in PREDICATES else READY
    if ref.group_kind == JOB and not state.failed:
        # A running or suspended Job is in order here; only a wait for its end needs more.
        state = READY
    labels = labels_of(item)
    of = next(((labels[label], kind) for label, kind in trainings.items() if labels.get(label)), ("", ""))
    going = bool(item["metadata"].get("deletionTimestamp"))
    return Managed(labels.get(LABEL_OWNER, ""), ref, state, going, last_write(item), *of, labels.get(LABEL_HOME, ""))


def trainings_of(found: t.Iterable[Managed]) -> set[tuple[str, str, str]]:
    """Namespace, name and kind of the trainings that the objects belong to."""
    return {(item.ref.namespace or "", item.training, item.training_kind) for item in found if item.training}


def unmanaged_objects(cluster: Cluster, namespace: str | None) -> list[str]:
    """Objects in NAMESPACE, or in any, that are neither ours, nor a controller's, nor Kubernetes' own; and what cannot be listed."""
    found, unseen = namespace_contents(cluster, namespace)
    foreign = sorted(ref_of(item) for item in found if LABEL_OWNER not in labels_of(item))
    return [*(str(ref) for ref in foreign if namespace or not _of_kubernetes(ref)), *unseen]


def pods_on(cluster: Cluster, nodes: t.Iterable[str]) -> list[str]:
    """Pods on the nodes that fit one of these selectors, in any namespace but those of Kubernetes, that would lose their node.

    Those that have ended lose nothing, and a DaemonSet has its pods on every node.
    """
    names = {ref_of(node).name for fitting in nodes for node in cluster.list_metadata("v1", "Node", None, fitting)}
    found = (pod for pod in cluster.list("v1", "Pod") if pod["spec"].get("nodeName") in names)
    alive = (pod for pod in found if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"))
    refs = (Ref("v1", "Pod", pod["metadata"]["name"], pod["metadata"]["namespace"]) for pod in alive if not _of_every_node(pod))
    return sorted(str(ref) for ref in refs if not _of_kubernetes(ref))


def _of_every_node(pod: Manifest) -> bool:
    return any(group_kind(owner) in _ON_EVERY_NODE for owner in pod["metadata"].get("ownerReferences") or ())


def _of_kubernetes(ref: Ref) -> bool:
    """Whether an object is the cluster's own: in a namespace of Kubernetes or its cloud, or of the Service that leads to the API server."""
    own = (ref.namespace, ref.name) == ("default", "kubernetes") and ref.group_kind in _OF_THE_API_SERVER
    return own or bool(_OF_KUBERNETES.fullmatch(ref.namespace or ""))


def served_kinds(cluster: Cluster, *, new: t.Container[str] = ()) -> tuple[Kinds, list[tuple[str, str]]]:
    """The kinds that are served; and those that may have objects but cannot be listed now, with the reason.

    ``new``: API versions (group/version) that nothing served until now, so that they have no objects.
    """

    def observe() -> tuple[tuple[Kinds, list[tuple[str, str]]], str | None]:
        kinds = cluster.kinds()
        missing = [row for row in _unserved(cluster, kinds) if row[0] not in new]
        return (kinds, missing), "a kind is not served" if missing else None

    return last_answer(observe, deadline=Deadline(_SERVED_WITHIN, cluster.clock), pause=fixed_interval(_LOOK_AGAIN, cluster.clock))


def _unserved(cluster: Cluster, kinds: Kinds) -> list[tuple[str, str]]:
    found = [(name, "the server behind that API does not answer") for name in kinds.unknown]
    try:
        definitions = cluster.list_metadata("apiextensions.k8s.io/v1", DEFINITION[1])
    except MusterError:  # without the right to read definitions, only discovery is left
        return found
    names = sorted(item["metadata"]["name"] for item in definitions)
    missing = "its definition exists, but the kind is not served now"
    return [*found, *((name, missing) for name in names if not kinds.of_definition(name))]


def namespace_contents(cluster: Cluster, namespace: str | None) -> tuple[list[Manifest], list[str]]:
    """Metadata of the objects in NAMESPACE, or in all, except those of controllers and Kubernetes' own; and what cannot be listed.

    In all, an API whose server does not answer is none of this: the server is itself something in a namespace. It ends with the nodes.
    """

    def observe() -> tuple[tuple[list[Manifest], list[str], list[Kind], list[tuple[str, str]]], str | None]:
        known, missing = served_kinds(cluster)
        missing = [row for row in missing if namespace or row[0] not in known.unknown]
        kinds = [one for one in known if one[2].namespaced and (group_of(one[0]), one[1]) not in REPORTS]
        found, unseen, gone = _within(cluster, namespace, kinds)
        return (found, unseen, kinds, missing), "a kind vanished meanwhile" if gone else None

    found, unseen, kinds, missing = last_answer(
        observe, deadline=Deadline(_SERVED_WITHIN, cluster.clock), pause=fixed_interval(_LOOK_AGAIN, cluster.clock)
    )
    unseen += [f"objects of {name}: {why}" for name, why in missing]
    listed = {(group_of(api_version), kind) for api_version, kind, _resource in kinds}
    return [item for item in found if not _comes_by_itself(item, listed)], sorted(unseen)


def _within(cluster: Cluster, namespace: str | None, kinds: list[Kind]) -> tuple[list[Manifest], list[str], bool]:
    """The objects in the namespace, what cannot be listed, and whether a kind vanished meanwhile."""
    unseen: list[str] = []
    gone: list[Kind] = []

    def observe(kind: Kind) -> list[Manifest]:
        try:
            return list(cluster.list_metadata(kind[0], kind[1], namespace))
        except MusterError as exc:
            if isinstance(exc, NotFound):
                gone.append(kind)
            unseen.append(f"objects of kind {kind[1]}: {exc.message.rstrip('.')}")
            return []

    return _each(kinds, observe), unseen, bool(gone)


def _comes_by_itself(item: Manifest, listed: t.Container[GroupKind]) -> bool:
    """Whether an object needs no judgement of its own.

    An owner of one of the LISTED kinds is judged itself or, if it is gone, Kubernetes deletes the object. Any other owner, such as
    a cluster-wide object, has to be judged by its user.
    """
    metadata = item["metadata"]
    owners = metadata.get("ownerReferences") or []
    if any((group_of(owner.get("apiVersion", "")), owner["kind"]) in listed for owner in owners):
        return True
    if group_kind(item) == ("", "Endpoints") and LEADER_ANNOTATION in annotations_of(item):
        return True
    if (group_kind(item), metadata["name"]) == (CONFIG_MAP, HISTORY) and owned_fields(item, HISTORY):
        return True
    label, controllers = MADE_BY_CONTROLLERS.get(group_kind(item), ("", frozenset[str]()))
    copied = _COPIED.get(group_kind(item)) in labels_of(item)
    known = re.fullmatch(_IN_EVERY_NAMESPACE.get(group_kind(item), ""), metadata["name"])
    of_account = group_kind(item) != SECRET or not _OF_ACCOUNTS.isdisjoint(annotations_of(item))
    return labels_of(item).get(label) in controllers or copied or bool(known and of_account)
