# SPDX-License-Identifier: GPL-3.0-or-later
"""Traefik: what is applied, and what it may not do."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._systems.traefik.traefik import Traefik, manifests

Golden = t.Callable[[str, list[dict[str, t.Any]]], None]
GIVEN: dict[str, t.Any] = {
    "namespace": "traefik",
    "image": "docker.io/library/traefik:v3.6.12",
    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
}


def test_what_is_applied(golden: Golden) -> None:
    golden("traefik", manifests(Traefik(**GIVEN)))


def test_its_permissions_end_at_its_namespaces(golden: Golden) -> None:
    """Of Secrets above all. The Service with the address of Gateways is in its own namespace."""
    made = manifests(Traefik(**GIVEN, namespaces=["ml"]))
    golden("traefik_namespaces", [one for one in made if one["kind"] == "ServiceAccount" or "Role" in one["kind"]])
    (deployment,) = [one for one in made if one["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert "--providers.kubernetesgateway.namespaces=ml,traefik" in container["args"]


def test_the_kubelet_waits_until_it_has_drained() -> None:
    made = manifests(Traefik(**GIVEN, drain_timeout=5, exit_timeout=20))
    (deployment,) = [one for one in made if one["kind"] == "Deployment"]
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > 25


@pytest.mark.parametrize("wrong", [{"service_type": "External"}, {"class_name": "Traefik"}, {"namespaces": ["No"]}, {"exit_timeout": -1}])
def test_what_is_refused(wrong: dict[str, t.Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        manifests(Traefik(**GIVEN, **wrong))
