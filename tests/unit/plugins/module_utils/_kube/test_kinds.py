# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which unknown kinds are misspelt, and which are those of a definition that is gone."""

from __future__ import annotations

import pathlib

import pytest
import yaml

from ansible_collections.muster.ml.plugins.module_utils._kube.kinds import BUILT_IN, misspelt, nearest
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Resource, group_of
from ansible_collections.muster.ml.plugins.module_utils._kube.order import kinds_of_definitions

ROOT = pathlib.Path(__file__).parents[5]
OURS = {
    pair: Resource(f"{pair[1].lower()}s", True)
    for path in sorted(ROOT.glob("roles/*/files/crds/*.yml"))
    for pair in kinds_of_definitions(yaml.safe_load_all(path.read_text(encoding="utf-8")))
}
# Of the experimental Gateway API, Istio, Traefik, the training operator and Prometheus' operator: neighbours with much the same names.
NEIGHBOURS = {
    (api_version, kind): Resource(f"{kind.lower()}s", True)
    for api_version, kinds in {
        "gateway.networking.k8s.io/v1": "TCPRoute TLSRoute UDPRoute ListenerSet",
        "traefik.io/v1alpha1": "IngressRoute IngressRouteTCP IngressRouteUDP Middleware MiddlewareTCP TLSOption TLSStore",
        "networking.istio.io/v1": "Gateway VirtualService ServiceEntry WorkloadEntry WorkloadGroup DestinationRule",
        "kubeflow.org/v1": "TFJob MPIJob MXJob XGBoostJob PaddleJob JAXJob",
        "monitoring.coreos.com/v1": "PodMonitor ServiceMonitor Prometheus PrometheusRule Probe Alertmanager",
    }.items()
    for kind in kinds.split()
}
SERVED = [(api_version, kind, resource) for (api_version, kind), resource in {**BUILT_IN, **OURS, **NEIGHBOURS}.items()]


def test_the_definitions_of_our_roles_were_found() -> None:
    assert {group_of(api_version) for api_version, _kind in OURS} >= {
        "gateway.networking.k8s.io",
        "kueue.x-k8s.io",
        "nats.io",
    }


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
    for manifest in yaml.safe_load(path.read_text(encoding="utf-8")):
        pair = manifest["apiVersion"], manifest["kind"]
        assert pair in BUILT_IN or not misspelt(left, *pair)
