# SPDX-License-Identifier: GPL-3.0-or-later
"""PERSIA's operator: what is applied."""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._systems.persia.persia_operator import PersiaOperator, manifests

Golden = t.Callable[[str, list[dict[str, t.Any]]], None]


def test_the_operator(golden: Golden) -> None:
    operator = PersiaOperator(
        namespace="persia-operator",
        image="registry.example.com/persia-cpu:0.1.dev251",
        resources={"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        log_level="debug",
    )
    golden("persia_operator", manifests(operator))
