#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: prometheus_adapter
short_description: Run prometheus-adapter on Kubernetes
description:
  - Creates, updates and deletes prometheus-adapter, which serves the API C(custom.metrics.k8s.io) (C(v1beta1) and C(v1beta2)), from which
    a HorizontalPodAutoscaler reads metrics of pods.
  - The API server verifies its certificate. An authority for it is created once and kept in a Secret; the certificate is renewed when
    fewer than 60 of its 397 days are left.
  - A cluster has one such API. Where another owner serves it, the task fails before it changes anything, and names that owner.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.auth.namespace
  - muster.ml.wait
  - muster.ml.removal
  - muster.ml.attributes
  - muster.ml.attributes.kube
  - muster.ml.requires.cryptography
  - muster.ml.pod.pull
options:
  image:
    description: Image of the adapter, with a version or digest. Its entrypoint is called with arguments.
    type: str
    default: registry.k8s.io/prometheus-adapter/prometheus-adapter:v0.12.0
  resources:
    description: C(requests) and C(limits) of the container, as in the Kubernetes API.
    type: dict
  node_selector:
    description: Labels that a node must have.
    type: dict
  tolerations:
    description: Taints that the pod tolerates, as in the Kubernetes API.
    type: list
    elements: dict
  prometheus_url:
    description: URL of the Prometheus, such as V(http://prometheus.ml.svc:9090). Required with O(state=present).
    type: str
  rules:
    description:
      - Metrics to make of series, as C(rules) of the adapter's own configuration. Required with O(state=present).
      - It may only list pods, so that they have to be metrics of pods.
    type: list
    elements: dict
    default: []
  relist_interval:
    description: Time between two reads of which series there are, as a Go duration. A new pod has its metric after that.
    type: str
    default: 30s
  state:
    description: State of the adapter.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: muster.ml.triton_server
"""

EXAMPLES = r"""
- name: Run an adapter that serves the rate of requests of pods
  muster.ml.prometheus_adapter:
    namespace: prometheus-adapter
    prometheus_url: http://prometheus.ml.svc:9090
    rules:
      - seriesQuery: http_requests_total{namespace!="",pod!=""}
        resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
        name: {as: requests_per_second}
        metricsQuery: sum by (<<.GroupBy>>) (rate(<<.Series>>{<<.LabelMatchers>>}[1m]))
    wait: true
"""

RETURN = r"""
objects:
  description: Objects, each with what was done to it.
  returned: success
  type: list
  elements: dict
  sample: [{kind: APIService, name: v1beta1.custom.metrics.k8s.io, action: created}]
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Conflict
from ansible_collections.muster.ml.plugins.module_utils._edge import groups
from ansible_collections.muster.ml.plugins.module_utils._edge.options import REMOVAL, STATE, WAIT, fields_of, options_of
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube import certificates, fields
from ansible_collections.muster.ml.plugins.module_utils._kube.engine import apply_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import MadeOf, MadeOnce, apply_made_once
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import LABEL_OWNER, Manifest, Ref, labels_of
from ansible_collections.muster.ml.plugins.module_utils._kube.removal import delete_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.report import Report
from ansible_collections.muster.ml.plugins.module_utils._manifests import metrics_adapter
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import owner_of, owners
from ansible_collections.muster.ml.plugins.module_utils._manifests.metrics_adapter import MetricsAdapter
from ansible_collections.muster.ml.plugins.module_utils._manifests.operators import operator_labels

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    **options_of(MetricsAdapter, "namespace", "prometheus_url", "relist_interval"),
    "image": {"type": "str", "default": "registry.k8s.io/prometheus-adapter/prometheus-adapter:v0.12.0"},
    **{name: groups.POD[name] for name in ("image_pull_policy", "image_pull_secrets", "resources", "node_selector", "tolerations")},
    "rules": {"type": "list", "elements": "dict", "default": []},
    **REMOVAL,
    **STATE,
    **WAIT,
}

CONSTRAINTS: dict[str, t.Any] = {"required_if": [("state", "present", ("prometheus_url", "rules"))]}


def refuse_another(ctx: Context, owner: str) -> None:
    """Refuse to be the second owner of the API."""
    for version in metrics_adapter.VERSIONS:
        ref = Ref(*metrics_adapter.API_SERVICE, metrics_adapter.api_name(version))
        live = ctx.cluster.get(ref)
        if live is not None and labels_of(live).get(LABEL_OWNER) != owner:
            raise Conflict(
                f"{metrics_adapter.METRICS_GROUP} is served already: {_described(ref, live)}. A cluster has one such API.",
                ref=ref,
                managers=sorted(fields.managers(live)),
                hint="Leave this adapter out (in role and playbooks prometheus_adapter_manage: false), and give an autoscaler the name "
                "that the metric has there (autoscaling.metric of triton_server). Nothing was changed.",
            )


def _described(ref: Ref, live: Manifest) -> str:
    service = (live.get("spec") or {}).get("service") or {}
    leads = f" leads to Service {service.get('namespace')}/{service.get('name')}" if service else " is there"
    by = labels_of(live).get(LABEL_OWNER) or ", ".join(sorted(fields.managers(live)))
    return f"{ref}{leads}{f', made by {by}' if by else ''}"


def execute(ctx: Context) -> dict[str, t.Any]:
    """Create, update or delete the adapter."""
    params = ctx.params
    namespace = params["namespace"] or "default"
    if params["state"] == "present":
        # Invalid input fails before any request to the cluster.
        metrics_adapter.check(MetricsAdapter(**{**fields_of(MetricsAdapter, params), "namespace": namespace}))
    namespace = ctx.namespace
    owner = owner_of("prometheus_adapter", namespace, metrics_adapter.NAME)
    waiting = {key: params[key] for key in WAIT}
    if params["state"] == "absent":
        # No other client trusts its CA, so its Secret is deleted, too.
        report = delete_objects(
            ctx.cluster, None, owner, check=ctx.check, namespace=namespace, delete_data=True,
            ignore_users_of=owners(params["ignore_users_of"]), on_progress=ctx.progress, **waiting,
        )  # fmt: skip
        return ctx.result(report)
    refuse_another(ctx, owner)
    adapter = MetricsAdapter(**{**fields_of(MetricsAdapter, params), "namespace": namespace})
    leaf = certificates.Leaf(metrics_adapter.CERTIFICATE, metrics_adapter.NAME, adapter.hosts)
    labels = operator_labels(metrics_adapter.NAME)

    def make(once: MadeOnce) -> tuple[list[Manifest], list[Manifest]]:
        pairs = certificates.secrets(once, namespace, metrics_adapter.AUTHORITY, [leaf], labels, in_use=False)
        objects = [*pairs, *metrics_adapter.manifests(adapter, str(pairs[-1]["data"]["ca.crt"]))]
        # An APIService without a running server would break discovery for all clients, so it is applied last.
        apis = [one for one in objects if (one["apiVersion"], one["kind"]) == metrics_adapter.API_SERVICE]
        return [one for one in objects if one not in apis], apis

    def apply(objects: t.Sequence[Manifest], made_of: MadeOf | None = None) -> Report:
        options = {"check": ctx.check, "references": ctx.promised, "on_progress": ctx.progress, **waiting}
        return apply_objects(ctx.cluster, objects, owner=owner, made_of=made_of, **options)

    report, apis = apply_made_once(ctx.cluster, make, apply)
    return ctx.result(report.merge(apply(apis)))


def main() -> None:
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
