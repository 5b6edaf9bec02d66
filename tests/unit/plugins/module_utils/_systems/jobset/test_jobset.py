# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The JobSet controller: what is applied, and which pods need it in order to be created."""

from __future__ import annotations

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._systems.jobset.jobset import JobSetController, manifests

Golden = t.Callable[[str, list[dict[str, t.Any]]], None]
GIVEN: dict[str, t.Any] = {
    "namespace": "jobset-system",
    "image": "registry.k8s.io/jobset/jobset:v0.12.0",
    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "4Gi"}},
}


def test_the_controller_with_its_webhooks(golden: Golden) -> None:
    golden("jobset", manifests(JobSetController(**GIVEN)))


def test_pods_of_others_are_created_without_it() -> None:
    webhooks = [webhook for one in manifests(JobSetController(**GIVEN)) for webhook in one.get("webhooks", ())]
    of_pods = [webhook for webhook in webhooks if webhook["rules"][0]["resources"] == ["pods"]]
    assert len(webhooks) == 4
    assert len(of_pods) == 2
    only = [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]
    assert [webhook["objectSelector"]["matchExpressions"] for webhook in of_pods] == [only, only]


def test_it_may_change_no_secret_and_no_webhook_of_others() -> None:
    rules = [rule for one in manifests(JobSetController(**GIVEN)) for rule in one.get("rules", ())]
    guarded = {"secrets", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"}
    writing = [r for r in rules if guarded & set(r["resources"]) and not set(r["verbs"]) <= {"get", "list", "watch"}]
    assert len(writing) == 3
    assert [rule for rule in writing if not rule.get("resourceNames")] == []
