# SPDX-License-Identifier: GPL-3.0-or-later
"""A few hundred objects as people write them: every built-in kind that can be made, each value in several ways of writing.

Nothing here starts a pod, so that only what the API server itself does to an object is compared.
"""

import typing as t
from collections.abc import Callable

Manifest = dict[str, t.Any]
VARIANTS = 10
GROUP = "differential.muster.ml"

CPU = ("1", "1000m", 1, "1.0", "0.5", "500m", ".5", "2e3", "1500m", "1.5")
MEMORY = ("1Gi", "1024Mi", "1073741824", 1073741824, "1G", "1000M", "1e9", "0.5Gi", "512Mi", "128974848")
TEXTS = ("plain", "two\nlines\n", "trailing \n\n", "", "täglich ☕ 😀 \u2028 x", "tab\there", "'quoted'", '"double"', "#comment", "yes: no")
PORTS = (80, "http", 8080, "web", "metrics", 9090, "https", 443, "grpc", 65535)


def meta(kind: str, index: int) -> Manifest:
    """Names, labels, and annotations in different states of being there."""
    found: Manifest = {"name": f"{kind.lower()}-{index}", "labels": {"app": "differential", "index": str(index)}}
    if index % 4 == 1:
        found["annotations"] = {"example.com/text": TEXTS[index % len(TEXTS)]}
    elif index % 4 == 2:
        found["annotations"] = {}
    elif index % 4 == 3:
        found |= {"annotations": None, "creationTimestamp": None}
    return found


def resources(index: int) -> Manifest:
    amounts = {"cpu": CPU[index], "memory": MEMORY[index]}
    return ({"requests": amounts}, {"limits": amounts}, {"requests": amounts, "limits": amounts}, {}, {"limits": {}})[index % 5]


def container(index: int) -> Manifest:
    found: Manifest = {
        "name": "main",
        "image": ("registry.invalid/a", "registry.invalid/a:1", "registry.invalid/a:latest")[index % 3],
        "resources": resources(index),
        "ports": [{"containerPort": 8080, "name": "http"}, {"containerPort": 8080, "name": "quic", "protocol": "UDP"}],
        "env": [
            {"name": "TEXT", "value": TEXTS[index]},
            {"name": "EMPTY", "value": ""},
            {"name": "BARE"},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": ("1m", "1", 0)[index % 3]}}},
        ],
        "readinessProbe": {"httpGet": {"path": "/", "port": ("http", 8080)[index % 2]}, "periodSeconds": 5},
    }
    if index % 2:
        found |= {"args": [], "command": None, "securityContext": {}, "volumeMounts": [{"name": "scratch", "mountPath": "/s"}]}
    else:
        found |= {"args": ["--x", TEXTS[index]], "lifecycle": {"preStop": {"exec": {"command": ["true"]}}}}
    return found


def pod_spec(index: int) -> Manifest:
    found: Manifest = {"containers": [container(index)]}
    if index % 2:
        scratch: Manifest = ({}, {"medium": "Memory", "sizeLimit": MEMORY[index]})[index % 4 // 2]
        found |= {"volumes": [{"name": "scratch", "emptyDir": scratch}], "nodeSelector": {}, "tolerations": [], "affinity": None}
    else:
        found |= {
            "tolerations": [
                {"key": "gpu", "operator": "Exists"},
                {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5},
            ],
            "initContainers": [{"name": "first", "image": "registry.invalid/b"}],
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": "x"}}}
            ],
            "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["a"]}],
        }
    return found


def template(index: int, **more: t.Any) -> Manifest:
    return {"metadata": {"labels": {"app": f"a{index}"}, **({"creationTimestamp": None} if index % 2 else {})},
            "spec": {**pod_spec(index), **more}}  # fmt: skip


def selector(index: int) -> Manifest:
    if index % 3:
        return {"matchLabels": {"app": f"a{index}"}}
    return {"matchExpressions": [{"key": "app", "operator": "In", "values": [f"a{index}", "other"]}]}


def config_map(i: int) -> Manifest:
    return ({"data": {"text": TEXTS[i], "file.yml": "a: 1\n" * i}}, {"data": {}}, {"data": None}, {"binaryData": {"b": "AAEC"}},
            {"data": {"a": "b"}, "immutable": True})[i % 5]  # fmt: skip


def secret(i: int) -> Manifest:
    return (
        {"data": {"a": "AAEC", "b": ""}}, {"type": "kubernetes.io/tls", "data": {"tls.crt": "YQ==", "tls.key": "Yg=="}},
        {"type": "kubernetes.io/basic-auth", "data": {"username": "YQ==", "password": "Yg=="}}, {"data": {}}, {"immutable": True},
    )[i % 5]  # fmt: skip


def service(i: int) -> Manifest:
    ports: list[Manifest] = [{"name": "http", "port": 80, "targetPort": PORTS[i]}, {"name": "dns", "port": 80, "protocol": "UDP"}]
    return {"spec": (
        {"ports": ports, "selector": {"app": "x"}}, {"clusterIP": "None", "ports": [{"port": 80}]}, {"type": "NodePort", "ports": ports},
        {"type": "ExternalName", "externalName": "example.com"}, {"ports": ports, "sessionAffinity": "ClientIP", "selector": None},
    )[i % 5]}  # fmt: skip


def stateful_set(i: int) -> Manifest:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": MEMORY[i]}}}}
    select = {"matchLabels": {"app": f"a{i}"}}
    return {"spec": {"replicas": 0, "serviceName": "s", "selector": select, "template": template(i),
                     "podManagementPolicy": ("Parallel", "OrderedReady")[i % 2],
                     "volumeClaimTemplates": [claim] if i % 2 else []}}  # fmt: skip


def deployment(i: int) -> Manifest:
    limits: Manifest = {"maxSurge": ("25%", 1)[i % 2], "maxUnavailable": (1, "50%")[i % 2]}
    strategy: Manifest = ({"type": "Recreate"}, {"rollingUpdate": limits}, {})[i % 3]
    return {"spec": {"replicas": 0, "selector": selector(i), "template": template(i), "strategy": strategy}}


def job(i: int) -> Manifest:
    return {"spec": {"suspend": True, "backoffLimit": i, "template": template(i, restartPolicy=("Never", "OnFailure")[i % 2])}}


def cron_job(i: int) -> Manifest:
    inner = {"spec": {"template": template(i, restartPolicy="Never")}}
    return {"spec": {"schedule": ("@daily", "0 0 * * *", "*/5 1-3 * * 1")[i % 3], "suspend": True, "jobTemplate": inner}}


def network_policy(i: int) -> Manifest:
    rule = {"from": [{"podSelector": {}}, {"ipBlock": {"cidr": "192.0.2.0/24", "except": []}}], "ports": [{"port": PORTS[i]}]}
    return {
        "spec": ({"podSelector": {}}, {"podSelector": {}, "ingress": [rule]}, {"podSelector": {}, "ingress": [{}], "egress": []})[i % 3]
    }


def ingress(i: int) -> Manifest:
    port: Manifest = ({"number": 80}, {"name": "http"})[i % 2]
    path = {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": port}}}
    return {
        "spec": {
            "rules": [{"host": f"h{i}.example.com", "http": {"paths": [path]}}],
            "tls": [{"hosts": ["a.example.com"]}] if i % 2 else [],
        }
    }


def autoscaler(i: int) -> Manifest:
    target: Manifest = ({"type": "Utilization", "averageUtilization": 80}, {"type": "AverageValue", "averageValue": CPU[i]})[i % 2]
    return {"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}, "maxReplicas": 3,
                     "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]}}  # fmt: skip


def budget(i: int) -> Manifest:
    return {"spec": {("minAvailable", "maxUnavailable")[i % 2]: (1, "50%", 0)[i % 3], "selector": {"matchLabels": {"app": f"none{i}"}}}}


def quota(i: int) -> Manifest:
    """Never one that holds for the pods of this list."""
    if i % 2:
        return {"spec": {"hard": {"requests.cpu": CPU[i], "limits.memory": MEMORY[i]}, "scopes": ["Terminating"]}}
    return {"spec": {"hard": {"count/widgets.example.com": 1000 + i}, "scopes": []}}


def limit_range(i: int) -> Manifest:
    return {"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": f"{i + 2}Ti"}, "min": {"storage": "1"}}]}}


def claim(i: int) -> Manifest:
    return {"spec": {"storageClassName": "", "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": MEMORY[i]}}}}


def role(i: int) -> Manifest:
    return {"rules": ([], [{"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["*"]}],
                      [{"apiGroups": ["apps", ""], "resources": ["*"], "verbs": ["get"], "resourceNames": []}])[i % 3]}  # fmt: skip


def binding(i: int) -> Manifest:
    subjects = [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}, {"kind": "User", "name": "a@example.com"}]
    return {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}, "subjects": subjects[: i % 3]}


def gadget(i: int) -> Manifest:
    """Of our own definition: defaults, a list map, an atomic list, a set, quantities, durations, whatever it likes."""
    spec: Manifest = {
        "listeners": [{"port": 80}, {"port": 80, "protocol": "UDP", "note": "x"}],
        "tags": ["b", "a"],
        "order": [1, 2, 1],
        "size": MEMORY[i],
        "timeout": ("90s", "1m30s", "1.5m")[i % 3],
        "port": PORTS[i],
        "free": {"any": {"thing": [None, 1, {}]}, "empty": {}},
    }
    if i % 2:
        spec |= {"mode": None, "free": {}, "tags": []}
    return {"spec": spec, **({"status": {"phase": "Dreamt"}} if i % 3 == 0 else {})}


NAMESPACED: dict[tuple[str, str], Callable[[int], Manifest]] = {
    ("v1", "ConfigMap"): config_map,
    ("v1", "Secret"): secret,
    ("v1", "Service"): service,
    ("v1", "ServiceAccount"): lambda i: ({}, {"automountServiceAccountToken": False}, {"imagePullSecrets": [{"name": "a"}]})[i % 3],
    ("v1", "Pod"): lambda i: {"spec": {**pod_spec(i), "schedulingGates": [{"name": "example.com/never"}]}},
    ("v1", "PodTemplate"): lambda i: {"template": template(i)},
    ("v1", "ReplicationController"): lambda i: {"spec": {"replicas": 0, "selector": {"app": f"a{i}"}, "template": template(i)}},
    ("v1", "PersistentVolumeClaim"): claim,
    ("v1", "ResourceQuota"): quota,
    ("v1", "LimitRange"): limit_range,
    ("apps/v1", "Deployment"): deployment,
    ("apps/v1", "StatefulSet"): stateful_set,
    ("apps/v1", "DaemonSet"): lambda i: {
        "spec": {"selector": {"matchLabels": {"app": f"a{i}"}}, "template": template(i, nodeSelector={"no": "where"})}
    },
    ("apps/v1", "ReplicaSet"): lambda i: {"spec": {"replicas": 0, "selector": selector(i), "template": template(i)}},
    ("batch/v1", "Job"): job,
    ("batch/v1", "CronJob"): cron_job,
    ("autoscaling/v2", "HorizontalPodAutoscaler"): autoscaler,
    ("policy/v1", "PodDisruptionBudget"): budget,
    ("networking.k8s.io/v1", "NetworkPolicy"): network_policy,
    ("networking.k8s.io/v1", "Ingress"): ingress,
    ("rbac.authorization.k8s.io/v1", "Role"): role,
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): binding,
    ("coordination.k8s.io/v1", "Lease"): lambda i: {"spec": {"holderIdentity": "x", "leaseDurationSeconds": i + 1}},
    ("discovery.k8s.io/v1", "EndpointSlice"): lambda i: {
        "addressType": "IPv4",
        "endpoints": [],
        "ports": [{"port": 80}] if i % 2 else None,
    },
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): lambda i: {
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": f"c{i}"}}]}}}
    },
    (f"{GROUP}/v1", "Gadget"): gadget,
    (f"{GROUP}/v1beta1", "Gizmo"): gadget,
}

CLUSTER_WIDE: dict[tuple[str, str], Callable[[int], Manifest]] = {
    ("v1", "Namespace"): lambda _i: {},
    ("v1", "PersistentVolume"): lambda i: {
        "spec": {"capacity": {"storage": MEMORY[i]}, "accessModes": ["ReadOnlyMany"], "storageClassName": "no", "hostPath": {"path": "/x"}}
    },
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): lambda i: role(i) if i % 2 else {
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"no": "where"}}]}
    },
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): binding,
    ("scheduling.k8s.io/v1", "PriorityClass"): lambda i: {"value": i},
    ("storage.k8s.io/v1", "StorageClass"): lambda i: {"provisioner": "x.example.com", "parameters": {"a": "b"} if i % 2 else None},
    ("storage.k8s.io/v1", "CSIDriver"): lambda i: {"spec": {"attachRequired": bool(i % 2)}},
    ("networking.k8s.io/v1", "IngressClass"): lambda _i: {"spec": {"controller": "example.com/x"}},
    ("node.k8s.io/v1", "RuntimeClass"): lambda i: {"handler": "x", **({"overhead": {"podFixed": {"cpu": CPU[i]}}} if i % 2 else {})},
    ("resource.k8s.io/v1", "DeviceClass"): lambda _i: {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"): lambda _i: {"webhooks": []},
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"): lambda _i: {},
    ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration"): lambda i: {
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": i, "limitResponse": {"type": "Reject"}}}
    },
}  # fmt: skip


def objects(mark: str) -> list[Manifest]:
    """All of them; ``mark`` goes into the names of what has no namespace."""
    found = [
        {"apiVersion": api_version, "kind": kind, "metadata": meta(kind, i), **build(i)}
        for (api_version, kind), build in NAMESPACED.items()
        for i in range(VARIANTS)
    ]
    for (api_version, kind), build in CLUSTER_WIDE.items():
        for i in range(1, 4):
            metadata = meta(kind, i)
            metadata["name"] = f"differential-{mark}-{metadata['name']}"
            found.append({"apiVersion": api_version, "kind": kind, "metadata": metadata, **build(i)})
    found += [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"plain-{i}"}, "stringData": {"a": TEXTS[i], "b": "x\ny\n"}}
        for i in range(VARIANTS)
    ]
    return found


def definition(kind: str, versions: tuple[str, ...]) -> Manifest:
    """A definition with what makes comparing hard. The last version is the stored one."""
    text, whatever = {"type": "string"}, {"x-kubernetes-int-or-string": True}
    listener = {
        "type": "object",
        "required": ["port"],
        "properties": {"port": {"type": "integer"}, "protocol": {**text, "default": "TCP"}, "note": text},
    }
    listeners = {"type": "array", "items": listener, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"]}
    spec = {
        "listeners": listeners,
        "tags": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "order": {"type": "array", "items": {"type": "integer"}},
        "size": whatever,
        "timeout": text,
        "port": whatever,
        "mode": {**text, "default": "auto"},
        "fixed": {**text, "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "stays as it is"}]},
        "nested": {"type": "object", "default": {"a": 1}, "properties": {"a": {"type": "integer"}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    schema = {"type": "object", "properties": {
        "spec": {"type": "object", "properties": spec},
        "status": {"type": "object", "properties": {"phase": text}},
    }}  # fmt: skip
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {"name": version, "served": True, "storage": version == versions[-1], "schema": {"openAPIV3Schema": schema},
                 "subresources": {"status": {}}}
                for version in versions
            ],
        },
    }  # fmt: skip


DEFINITIONS = [definition("Gadget", ("v1",)), definition("Gizmo", ("v1beta1", "v1"))]

_RULES = [
    {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]},
    {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE", "UPDATE"]},
]
MEDDLER = "differential.muster.ml"
POLICY: list[Manifest] = [
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": MEDDLER},
        "spec": {
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": _RULES},
            "mutations": [
                {
                    "patchType": "JSONPatch",
                    "jsonPatch": {
                        "expression": "[JSONPatch{op: 'add', path: '/metadata/labels/index', value: 'meddled'},"
                        " JSONPatch{op: 'add', path: '/metadata/labels/meddler', value: 'was-here'}]"
                    },
                }
            ],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": MEDDLER},
        "spec": {"policyName": MEDDLER, "matchResources": {"namespaceSelector": {"matchLabels": {MEDDLER: "yes"}}}},
    },
]
