# SPDX-License-Identifier: GPL-3.0-or-later
"""Which unknown kinds are misspelt, and which are those of a definition that is gone."""

import pathlib

import pytest
from support.reading import load

from ansible_collections.muster.ml.plugins.module_utils._kube.kinds import BUILT_IN, misspelt, nearest
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import ServedKind, group_of

ROOT = pathlib.Path(__file__).parents[5]
KUEUE = (
    "AdmissionCheck ClusterQueue Cohort LocalQueue MultiKueueCluster MultiKueueConfig ProvisioningRequestConfig ResourceFlavor Topology"
    " Workload WorkloadPriorityClass"
)


def kinds(table: dict[str, str]) -> dict[tuple[str, str], ServedKind]:
    """The kinds of each API version, as they are served."""
    return {(api_version, kind): ServedKind(f"{kind.lower()}s", True) for api_version, words in table.items() for kind in words.split()}


# Of the operators that roles install.
OURS = kinds({
    "gateway.networking.k8s.io/v1": "BackendTLSPolicy Gateway GatewayClass GRPCRoute HTTPRoute",
    "gateway.networking.k8s.io/v1beta1": "Gateway GatewayClass HTTPRoute ReferenceGrant",
    "jobset.x-k8s.io/v1alpha2": "JobSet",
    "kubeflow.org/v1": "PyTorchJob TFJob MPIJob XGBoostJob PaddleJob JAXJob",
    "kueue.x-k8s.io/v1beta1": KUEUE,
    "kueue.x-k8s.io/v1beta2": KUEUE,
    "nats.io/v1alpha2": "NatsCluster NatsServiceRole",
    "persia.com/v1": "PersiaJob",
})  # fmt: skip
# Of the experimental Gateway API, Istio, Traefik and Prometheus' operator: neighbours with much the same names.
NEIGHBOURS = kinds({
    "gateway.networking.k8s.io/v1": "TCPRoute TLSRoute UDPRoute ListenerSet",
    "traefik.io/v1alpha1": "IngressRoute IngressRouteTCP IngressRouteUDP Middleware MiddlewareTCP TLSOption TLSStore",
    "networking.istio.io/v1": "Gateway VirtualService ServiceEntry WorkloadEntry WorkloadGroup DestinationRule",
    "kubeflow.org/v1": "MXJob",
    "monitoring.coreos.com/v1": "PodMonitor ServiceMonitor Prometheus PrometheusRule Probe Alertmanager",
})  # fmt: skip
SERVED = [(api_version, kind, resource) for (api_version, kind), resource in {**BUILT_IN, **OURS, **NEIGHBOURS}.items()]


@pytest.mark.parametrize("pair", [*OURS, *NEIGHBOURS], ids="/".join)
def test_a_kind_is_not_misspelt_where_all_its_neighbours_stayed(pair: tuple[str, str]) -> None:
    group = group_of(pair[0])
    left = [one for one in SERVED if (group_of(one[0]), one[1]) != (group, pair[1])]
    assert not misspelt(left, *pair)


@pytest.mark.parametrize("pair", [*BUILT_IN, *OURS, *NEIGHBOURS], ids="/".join)
def test_slips_of_every_kind_are_seen_and_answered(pair: tuple[str, str]) -> None:
    api_version, kind = pair
    half = len(kind) // 2
    for slip in (
        kind.lower(),
        f"{kind}s",
        kind[:half] + kind[half + 1 :],
        kind[:half] + "q" + kind[half:],
        kind[:half] + "q" + kind[half + 1 :],
        kind[:half] + kind[half : half + 2][::-1] + kind[half + 2 :],
    ):
        assert misspelt(SERVED, api_version, slip), slip
        assert nearest(SERVED, api_version, slip), slip
    assert misspelt(SERVED, f"{api_version}beta1", kind)


@pytest.mark.parametrize("path", sorted(ROOT.glob("tests/unit/goldens/*.yaml")), ids=lambda path: path.stem)
def test_what_a_role_deletes_by_name_is_harmless_where_its_kinds_are_gone(path: pathlib.Path) -> None:
    left = [one for one in SERVED if (one[0], one[1]) not in OURS]
    for manifest in load(path):
        pair = manifest["apiVersion"], manifest["kind"]
        assert pair in BUILT_IN or not misspelt(left, *pair)
