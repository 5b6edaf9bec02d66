# SPDX-License-Identifier: GPL-3.0-or-later
"""A StudioML runner as a Deployment, with the objects that it reads. No I/O.

The requirements come from the manifests and the code of leaf-ai/studio-go-runner (files named here are of it):

- Every flag is a variable, too: upper case, ``-`` as ``_`` (``envflag.Parse`` in cmd/runner/main.go). ``MESSAGE_CRYPT`` of its own example
  is no flag, so keys are found only because ``encrypt-dir`` has the same default.
- An experiment gets every variable of the runner (``extractValidEnv`` in cmd/runner/processor.go), that of the broker's address, too.
  The Secret therefore protects the password from users who may read Deployments, and not from experimenters.
- The cache needs a folder that exists (``InitObjStore``); otherwise the cache stays off, and only the log reports it.
- It talks to a store with TLS only at AWS or with ``s3-ca``, and then trusts nothing else (internal/s3/s3.go).
- Without a GPU it does not start, unless ``cpu-only`` is set (``validateGPUOpts``).
- It watches all ConfigMaps of its namespace, so the right to one by name would not do. Of them it reads ``STATE`` of the one that
  ``k8s-configmap`` names, and of one named after the pod (internal/runner/k8s.go).
- It listens for SIGTERM only until its first message of another kind (``watchReportingChannels``), so it is usually killed at the end of
  the grace period. Unacknowledged messages then return to the queue.
- The command of its image, cmd/runner/run.sh, prints every variable, the broker's address with its password too, and then starts one of
  two programs (0.14.2). So the program itself is the command here.
- Private key and passphrase are read once (``initWrapperOnce`` in cmd/runner/project.go), the keys of queues again and again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import urllib.parse
from collections.abc import Sequence

from ..._core.errors import InvalidInput
from ..._core.sensitive import Sensitive
from ..._manifests import servers
from ..._manifests.access import namespace_access, rule, service_account
from ..._manifests.merge import apply_overrides
from ..._manifests.meta import (
    ANNOTATION_CONFIG_HASH,
    ANNOTATION_USES,
    DEPLOYMENT,
    DNS_LABEL_MAX,
    Manifest,
    check_count,
    check_name,
    check_pattern,
    pinned_tag,
    quantity,
)
from ..._manifests.monitoring import monitor
from ..._manifests.network_policy import Flow, network_policy
from ..._manifests.pods import PodSettings, pod_template, refuse_variables
from ..._manifests.shared import config_map
from .amqp_url import Broker, check_amqp_url

METRICS_PORT = 9090
RUNNING, DRAINED = "Running", "DrainAndSuspend"
"""Values of the key STATE."""

_GPU = "nvidia.com/gpu"
_CERTS = "/runner/certs"
_PROGRAM = "/runner/runner-linux-amd64"
_CACHE = "/tmp/cache"  # noqa: S108  # of the pod, not of this machine
_CA = "/etc/studioml"
_URL_KEY, _MANAGEMENT_KEY = "AMQP_URL", "AMQP_MGT_URL"
_STORE_CA = "store-ca.crt"
STORE_CA_MAX = 128 * 1024
"""Bytes of the file S3_CA (internal/s3/s3.go, line 139 of 0.14.2). A larger one is refused for each artifact, again and again."""
_NEVER = {"CACHE_CREATE", "QUEUE_MISMATCH", "S3_CA", "AMQP_MGT_URL"}
"""Variables of options that may not be given."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]i?b?)", re.IGNORECASE)
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}
_NOT_RE2 = re.compile(r"\(\?(?:<?[=!]|P=|\()|\\[1-9]")
"""The syntax that Go's regular expressions lack: backreferences, lookahead and lookbehind."""
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.|$|-)")
_LAST = (0, 14)
"""The last series that knows RabbitMQ."""
# The published image has no user, and its programs belong to root. Stricter settings would need another image.
_POD: Manifest = {"seccompProfile": {"type": "RuntimeDefault"}}
_CONTAINER: Manifest = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["NET_RAW"]}}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Runner(servers.Server):
    """REPLICAS pods that take experiments from the queues of one broker. Field names are the options' names."""

    module, title, app = "studioml_runner", "Runner", "studioml-runner"
    workloads = (DEPLOYMENT,)

    name: str = "studioml-go-runner"
    amqp_url: Sensitive
    amqp_mgt_url: str | None = None
    broker_ca: str | None = None
    store_ca: str | None = None
    store_endpoint_url: str | None = None
    used_secrets: Sequence[str] = ()
    replicas: int = 1
    gpus: int = 1
    queue_match: str = "^rmq_.*$"
    queue_mismatch: str | None = None
    cache_size: str = "10Gib"
    tmp_size: str = "200Gi"
    max_cores: int = 0
    max_mem: str | None = None
    max_disk: str | None = None
    allow_env_secrets: bool = True
    key_secret: str = "studioml-runner-key-secret"  # noqa: S105  # a name
    passphrase_secret: str = "studioml-runner-passphrase-secret"  # noqa: S105  # a name
    signing_secret: str = "studioml-signing"  # noqa: S105  # a name
    response_secret: str = "studioml-report-keys"  # noqa: S105  # a name
    keys: Sensitive | None = None
    """Text of private key and passphrase, as they are in their Secrets; None if there are none yet."""

    @property
    def url_secret(self) -> str:
        """The name of the Secret with the broker's addresses."""
        return f"{self.name}-amqp"

    @property
    def ca_config_map(self) -> str:
        """The name of the ConfigMap with the authorities of broker and store."""
        return f"{self.name}-ca"


def manifests(runner: Runner, state: str = RUNNING) -> list[Manifest]:
    """The objects of RUNNER, except the Secrets with its keys."""
    check(runner)
    account, url = service_account(runner.name, runner.namespace, runner.labels), runner.metadata(runner.url_secret)
    authorities = _authorities(runner)
    objects = [
        account,
        *namespace_access(account, [rule([""], ["configmaps"], ["get", "list", "watch"])]),
        state_config_map(runner, state),
        {"apiVersion": "v1", "kind": "Secret", "metadata": url, "stringData": dict(_addresses(runner))},
        *([config_map(runner.metadata(runner.ca_config_map), authorities)] if authorities else []),
        apply_overrides(deployment(runner), runner.overrides),
        servers.client_service(runner.metadata(), runner.labels, {"metrics": METRICS_PORT}),
    ]
    if runner.monitor:
        objects.append(monitor(runner.monitor, runner.metadata(), runner.labels))
    if runner.network_policy:
        # The kubelet's probes and the API server's proxy have addresses that no selector matches, and Prometheus may have one, too.
        flows = [Flow(None, [METRICS_PORT])]
        objects.append(network_policy(runner.metadata(), runner.labels, flows))
    return objects


def check(runner: Runner) -> Broker:
    """Refuse options that only a pod would refuse otherwise, in its log. Return the parts of the broker's URL that may be shown."""
    check_name(runner.name, "name", limit=DNS_LABEL_MAX - len("-amqp"), service=True)
    for field in ("replicas", "gpus", "max_cores"):
        check_count(getattr(runner, field), field)
    quantity(runner.tmp_size, "tmp_size")
    _check_image(runner.pod.image)
    for field in ("queue_match", "queue_mismatch"):
        _check_pattern(getattr(runner, field), field)
    for field in ("max_mem", "max_disk"):
        if getattr(runner, field):
            _bytes(getattr(runner, field), field)
    if _bytes(runner.cache_size, "cache_size") < 1024**3:
        raise InvalidInput(f"cache_size: '{runner.cache_size}' is too small.", "The runner needs at least 1Gib.")
    _check_env(runner)
    for field in ("broker_ca", "store_ca"):
        text = getattr(runner, field)
        if text and "BEGIN CERTIFICATE" not in text:
            raise InvalidInput(f"{field} is not a certificate in PEM.", "It begins with -----BEGIN CERTIFICATE-----.")
    size = len((runner.store_ca or "").encode())
    if size > STORE_CA_MAX:
        raise InvalidInput(
            f"store_ca has {size} bytes, and the runner refuses a file of more than {STORE_CA_MAX}.",
            "Give it the authorities of the store only.",
        )
    _check_management(runner.amqp_mgt_url)
    return check_amqp_url(runner.amqp_url, "amqp_url")


def _check_management(address: str | None) -> None:
    """Refuse a URL that the runner could not use, and a password in a field that is shown."""
    if not address:
        return
    parts = urllib.parse.urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(f"amqp_mgt_url: '{parts.scheme}://{parts.hostname}' is not the address of a management API.",
                           "Such as https://broker.example.com:15671.")  # fmt: skip
    if "@" in parts.netloc:
        raise InvalidInput("amqp_mgt_url has a user or password.", "Leave both out: those of amqp_url are taken.")


def _check_image(image: str) -> None:
    tag = pinned_tag(image, "Give it a version of the series 0.14, or a digest.")
    found = _VERSION.match(tag)
    if found and (int(found[1]), int(found[2])) > _LAST:
        raise InvalidInput(f"image: '{image}' has no RabbitMQ any more.", "0.14 is the last series that has.")


def _check_pattern(pattern: str | None, what: str) -> None:
    check_pattern(pattern or "", what)
    if _NOT_RE2.search(pattern or ""):
        raise InvalidInput(
            f"{what}: '{pattern}' refers, or looks ahead or back, which the runner's expressions cannot.",
            "queue_mismatch leaves out what queue_match would take.",
        )


def _bytes(size: str, what: str) -> float:
    """A size as the runner reads it."""
    found = _SIZE.fullmatch(size.strip())
    if not found:
        raise InvalidInput(f"{what}: '{size}' is not a size.", "Write a number with a unit, as in 10Gib.")
    base = 1024 if "i" in found[2].lower() else 1000
    power = _POWERS[found[2][0].lower()]
    return float(found[1]) * float(base**power)


def _check_env(runner: Runner) -> None:
    """Refuse variables that an option sets, and credentials, which all users who may read the Deployment would see."""
    ours = dict.fromkeys([*(variable["name"] for variable in environment(runner)), *_NEVER], "Leave it out of env.")
    refuse_variables(runner.pod.env, {**ours, "S3_CA": "store_ca has the authorities of the store."})


# Configuration of the pods


def environment(runner: Runner) -> list[Manifest]:
    """The variables. The only secret one is a reference."""
    values = {
        "LOGXI_FORMAT": "happy,maxcol=1024",
        "LOGXI": "*=INF",
        "QUEUE_MATCH": runner.queue_match,
        "QUEUE_MISMATCH": runner.queue_mismatch,
        "ENCRYPT_DIR": f"{_CERTS}/message",
        "REQUEST_SIGNATURES_DIR": f"{_CERTS}/queues/signing",
        "RESPONSE_SIGNATURES_DIR": f"{_CERTS}/queues/response-encrypt",
        "CLEAR_TEXT_MESSAGES": "false",
        "CACHE_DIR": _CACHE,
        "CACHE_SIZE": runner.cache_size,
        "CPU_ONLY": _bool(not runner.gpus),
        "MAX_CORES": str(runner.max_cores) if runner.max_cores else None,
        "MAX_MEM": runner.max_mem,
        "MAX_DISK": runner.max_disk,
        "ALLOW_ENV_SECRETS": _bool(runner.allow_env_secrets),
        "K8S_NAMESPACE": runner.namespace,
        "K8S_CONFIGMAP": runner.name,
        "PROM_ADDRESS": f":{METRICS_PORT}",
        # These CAs are added to those of the image, because Go reads its directory of CA certificates, too.
        "SSL_CERT_FILE": f"{_CA}/ca.crt" if runner.broker_ca else None,
        "S3_CA": f"{_CA}/{_STORE_CA}" if runner.store_ca else None,
    }
    addresses: list[Manifest] = [
        {"name": key, "value_from": {"secretKeyRef": {"name": runner.url_secret, "key": key}}} for key in _addresses(runner)
    ]
    return [*addresses, *({"name": name, "value": value} for name, value in values.items() if value)]


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _volumes(runner: Runner) -> tuple[list[Manifest], list[Manifest]]:
    """Volumes and mounts at the paths that the published image expects. None is optional: a runner without keys refuses everything."""
    keys = {
        "message-encryption": (runner.key_secret, "message/encryption", ["ssh-privatekey", "ssh-publickey"]),
        "encryption-passphrase": (runner.passphrase_secret, "message/passphrase", ["ssh-passphrase"]),
        "queue-signing": (runner.signing_secret, "queues/signing", []),
        "response-queue-signing": (runner.response_secret, "queues/response-encrypt", []),
    }
    volumes: list[Manifest] = [{"name": "tmp-volume", "emptyDir": {"sizeLimit": runner.tmp_size}}]
    mounts: list[Manifest] = [
        {"name": "tmp-volume", "mountPath": "/tmp"},  # noqa: S108  # of the pod
        # The kubelet creates the folder, which must exist.
        {"name": "tmp-volume", "mountPath": _CACHE, "subPath": "cache"},
    ]
    for name, (secret, path, items) in keys.items():
        chosen = {"items": [{"key": key, "path": key} for key in items]} if items else {}
        volumes.append({"name": name, "secret": {"secretName": secret, "optional": False, **chosen}})
        mounts.append({"name": name, "mountPath": f"{_CERTS}/{path}", "readOnly": True})
    if _authorities(runner):
        volumes.append({"name": "authorities", "configMap": {"name": runner.ca_config_map}})
        mounts.append({"name": "authorities", "mountPath": _CA, "readOnly": True})
    return volumes, mounts


def _pod(runner: Runner) -> PodSettings:
    pod = runner.pod
    volumes, mounts = _volumes(runner)
    limits = {**((pod.resources or {}).get("limits") or {}), **({_GPU: runner.gpus} if runner.gpus else {})}
    taint = {"key": _GPU, "operator": "Equal", "value": "present", "effect": "NoSchedule"}
    return dataclasses.replace(
        pod,
        command=(_PROGRAM if runner.gpus else f"{_PROGRAM}-cpu",),
        resources={**(pod.resources or {}), **({"limits": limits} if limits else {})},
        tolerations=(*([taint] if runner.gpus else []), *pod.tolerations),
        node_selector={"kubernetes.io/os": "linux", **(pod.node_selector or {})},
        service_account_name=runner.name,
        ports=({"name": "metrics", "container_port": METRICS_PORT},),
        volumes=tuple(volumes),
        volume_mounts=tuple(mounts),
        # There is no liveness probe: a restart would end experiments that run.
        readiness_probe={"httpGet": {"path": "/metrics", "port": METRICS_PORT}, "periodSeconds": 5, "timeoutSeconds": 5},
        pod_security_context=_POD if pod.pod_security_context is None else pod.pod_security_context,
        security_context=_CONTAINER if pod.security_context is None else pod.security_context,
    )


def deployment(runner: Runner) -> Manifest:
    """The runners. Old pods are gone before new ones start: they are drained, and the new ones need their GPUs."""
    template = pod_template(
        _pod(runner),
        container="studioml-go-runner",
        labels=runner.labels,
        selector=runner.labels,
        env=environment(runner),
        annotations={ANNOTATION_CONFIG_HASH: restart_hash(runner)},
    )
    spec = {"replicas": runner.replicas, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": runner.labels}, "template": template}
    # The broker's address is in a Secret, and that of the store only in the requests of the experiments.
    uses = [
        check_amqp_url(runner.amqp_url, "amqp_url").host,
        urllib.parse.urlsplit(runner.store_endpoint_url or "").hostname,
        *(f"Secret:{name}" for name in runner.used_secrets),
    ]
    meta = {**runner.queued_metadata, "annotations": {ANNOTATION_USES: " ".join(filter(None, uses))}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def restart_hash(runner: Runner) -> str:
    """A digest of values that the runner reads only at its start, and that are not in the pod template.

    The broker's password may be short. It cannot be guessed from the digest, because that also covers the private key.
    """
    private = runner.keys.reveal() if runner.keys else ""
    digest = hashlib.sha256()
    addresses = [address.reveal() for address in _addresses(runner).values()] if private else []
    for part in (private, *addresses, *_authorities(runner).values()):
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()[:16]


# Objects beside the Deployment


def state_config_map(runner: Runner, state: str) -> Manifest:
    """The ConfigMap with which runners are drained."""
    return config_map(runner.metadata(), {"STATE": state})


def _addresses(runner: Runner) -> dict[str, Sensitive]:
    """The broker's addresses, by variable. The management API's has user and password, too: with another one the runner takes both from
    there, and 0.14 ends with an invalid memory address where they are missing (``rmqConfig`` in cmd/runner/rabbit.go)."""
    found = {_URL_KEY: runner.amqp_url}
    if runner.amqp_mgt_url:
        credentials = urllib.parse.urlsplit(runner.amqp_url.reveal()).netloc.rpartition("@")[0]
        scheme, colon, rest = runner.amqp_mgt_url.partition("://")
        found[_MANAGEMENT_KEY] = Sensitive(f"{scheme}{colon}{credentials}@{rest}")
    return found


def _authorities(runner: Runner) -> dict[str, str]:
    """The CA certificates by file."""
    return {name: text for name, text in (("ca.crt", runner.broker_ca), (_STORE_CA, runner.store_ca)) if text}
