# SPDX-License-Identifier: GPL-3.0-or-later
"""The namespace with its Pod Security labels."""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._manifests.namespace import Namespace, manifests

Golden = t.Callable[[str, list[dict[str, t.Any]]], None]


def test_a_namespace(golden: Golden) -> None:
    given = {"labels": {"team": "ml"}, "annotations": {"contact": "ops"}}
    golden("namespace", manifests(Namespace(name="ml", pod_security="restricted", **given)))


def test_a_label_of_the_user_counts() -> None:
    audit = "pod-security.kubernetes.io/audit"
    (made,) = manifests(Namespace(name="ml", labels={audit: "baseline"}))
    assert made["metadata"]["labels"][audit] == "baseline"
    assert "annotations" not in made["metadata"]
