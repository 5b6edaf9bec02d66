# SPDX-License-Identifier: GPL-3.0-or-later
"""What leaf-ai/studio-go-runner reads, against what is made for it. Beside each fact is where it was read.

15a450f3^ is the last commit with its examples, as they were at 0.14.3.
"""

from __future__ import annotations

import base64
import re
import typing as t
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive, revealed
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.amqp_url import check_amqp_url
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.runner import DRAINED, Runner, manifests
from ansible_collections.muster.ml.plugins.modules import studioml_runner, training_secret

Manifest = dict[str, t.Any]
PASSWORD = "canary-of-the-broker"
URL = f"amqp://runner:{PASSWORD}@broker:5672/%2f?connection_attempts=30&retry_delay=.5&socket_timeout=5"
ROOT = Path(__file__).resolve().parents[6]
IMAGE = studioml_runner.ARGUMENT_SPEC["image"]["default"]


def runner(**more: t.Any) -> Runner:
    pod = PodSettings(image=IMAGE, resources={"limits": {"memory": "11Gi", "cpu": "2"}})
    return Runner(**{"namespace": "studioml", "pod": pod, "amqp_url": Sensitive(URL), **more})


def made(kind: str, called: str | None = None, /, **more: t.Any) -> Manifest:
    (found,) = [m for m in manifests(runner(**more)) if m["kind"] == kind and called in (None, m["metadata"]["name"])]
    return found


def pod(**more: t.Any) -> Manifest:
    return t.cast(Manifest, made("Deployment", **more)["spec"]["template"]["spec"])


def container(**more: t.Any) -> Manifest:
    return t.cast(Manifest, pod(**more)["containers"][0])


def variables(**more: t.Any) -> dict[str, str]:
    return {row["name"]: row["value"] for row in container(**more)["env"] if "value" in row}


def test_the_whole(golden: t.Callable[[str, list[Manifest]], None]) -> None:
    golden("studioml_runner", revealed(manifests(runner(**EVERYTHING, monitor="PodMonitoring"))))


# The Deployment: deployment.yaml of its example for Google at 15a450f3^


MOUNTS = {
    "/runner/certs/message/encryption": ("studioml-runner-key-secret", ["ssh-privatekey", "ssh-publickey"]),
    "/runner/certs/message/passphrase": ("studioml-runner-passphrase-secret", ["ssh-passphrase"]),
    "/runner/certs/queues/signing": ("studioml-signing", []),
    "/runner/certs/queues/response-encrypt": ("studioml-report-keys", []),
}


@pytest.mark.parametrize("path", MOUNTS)
def test_the_four_mounts_have_their_paths_and_keys(path: str) -> None:
    """deployment.yaml, volumeMounts and volumes. A Secret of public keys is mounted whole: a file for each prefix of queue names."""
    secret, items = MOUNTS[path]
    (mount,) = [one for one in container()["volumeMounts"] if one["mountPath"] == path]
    (volume,) = [one for one in pod()["volumes"] if one["name"] == mount["name"]]
    assert mount["readOnly"] is True
    assert volume["secret"]["secretName"] == secret
    assert volume["secret"]["optional"] is False
    assert [(item["key"], item["path"]) for item in volume["secret"].get("items", [])] == [(key, key) for key in items]


def test_module_training_secret_makes_the_secrets_that_are_mounted() -> None:
    made_by_default = {*training_secret.NAMES.values(), training_secret.ARGUMENT_SPEC["passphrase_secret"]["default"]}
    assert {secret for secret, _items in MOUNTS.values()} <= made_by_default


# Shows row 002.17.
def test_gpu_limit_and_toleration() -> None:
    """deployment.yaml: limits nvidia.com/gpu 1, memory 11Gi, cpu 2; a toleration of the taint that GKE sets, Equal present NoSchedule."""
    assert container()["resources"]["limits"] == {"nvidia.com/gpu": "1", "memory": "11Gi", "cpu": "2"}
    assert pod()["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}]
    assert variables()["CPU_ONLY"] == "false"


@pytest.mark.parametrize("kind", ["PodMonitoring", "ServiceMonitor"])
def test_metrics_are_collected_from_the_named_port(kind: str) -> None:
    """The kinds of Google's managed Prometheus and of prometheus-operator; both name a port, and select by labels."""
    found = made(kind, monitor=kind)
    assert found["spec"] == {"selector": {"matchLabels": runner().labels}, "endpoints": [{"port": "metrics", "interval": "30s"}]}
    served = made("Service") if kind == "ServiceMonitor" else made("Deployment")["spec"]["template"]
    assert runner().labels.items() <= served["metadata"]["labels"].items()


# Its state: internal/runner/k8s.go, cmd/runner/k8s.go


def test_the_state_is_in_the_configmap_that_it_watches() -> None:
    """Flags k8s-namespace and k8s-configmap, whose default is studioml-go-runner; key STATE, Running or DrainAndSuspend."""
    found = made("ConfigMap")
    assert found["metadata"]["name"] == "studioml-go-runner"
    assert (variables()["K8S_NAMESPACE"], variables()["K8S_CONFIGMAP"]) == ("studioml", found["metadata"]["name"])
    assert found["data"] == {"STATE": "Running"}
    (drained,) = [m for m in manifests(runner(), DRAINED) if m["kind"] == "ConfigMap"]
    assert drained["data"] == {"STATE": "DrainAndSuspend"}


# Variables: cmd/runner/main.go (envflag.Parse): flags in upper case, - as _

FLAGS = {
    "k8s-namespace", "k8s-configmap", "amqp-url", "amqp-mgt-url", "queue-match", "queue-mismatch", "working-dir", "cache-dir", "cache-size",
    "max-cores", "max-mem", "max-disk", "cpu-only", "encrypt-dir", "clear-text-messages", "request-signatures-dir",
    "response-signatures-dir", "prom-address", "allow-env-secrets", "s3-ca",
}  # fmt: skip
"""Of 0.14, as its usage lists them. LOGXI variables are those of its logger, SSL_CERT_FILE is Go's."""
EVERYTHING: Manifest = {
    "amqp_mgt_url": "http://broker:15672", "broker_ca": "-----BEGIN CERTIFICATE-----", "store_ca": "-----BEGIN CERTIFICATE-----",
    "queue_mismatch": "x", "max_cores": 2,
    "max_mem": "1gib", "max_disk": "1gib",
}  # fmt: skip


@pytest.mark.parametrize("more", [{}, EVERYTHING], ids=["least", "everything"])
def test_every_variable_is_a_flag(more: Manifest) -> None:
    """MESSAGE_CRYPT of the example is none, and does nothing."""
    names = {row["name"] for row in container(**more)["env"]} - {"LOGXI", "LOGXI_FORMAT", "SSL_CERT_FILE"}
    assert names <= {flag.upper().replace("-", "_") for flag in FLAGS}
    assert "MESSAGE_CRYPT" not in names


FACTS: dict[str, tuple[t.Callable[[], t.Any], t.Any]] = {
    "deployment.yaml: tmp-volume at /tmp, emptyDir with sizeLimit 200Gi": (
        lambda: [(one["emptyDir"], at(one["name"])[0]) for one in pod()["volumes"] if "emptyDir" in one],
        [({"sizeLimit": "200Gi"}, "/tmp")],
    ),
    "internal/runner/objectstore.go, InitObjStore: a folder of the cache that is not there is an error, which cmd/runner/cache.go drops": (
        lambda: [one["mountPath"] for one in container()["volumeMounts"] if one.get("subPath")], [variables()["CACHE_DIR"]],
    ),
    "cmd/runner/cache.go, getCacheOptions: less than 1Gb is refused, and size and folder are only read together": (
        lambda: variables()["CACHE_SIZE"], "10Gib",
    ),
    "cmd/runner/main.go, validateGPUOpts: without cpu-only a missing GPU is an error at the start": (
        lambda: (variables(gpus=0)["CPU_ONLY"], pod(gpus=0).get("tolerations"), container(gpus=0)["resources"]["limits"]),
        ("true", None, {"memory": "11Gi", "cpu": "2"}),
    ),
    "cmd/runner/run.sh, the command of the image, prints every variable, and starts one of two programs": (
        lambda: [container(gpus=gpus)["command"] for gpus in (1, 0)],
        [["/runner/runner-linux-amd64"], ["/runner/runner-linux-amd64-cpu"]],
    ),
    "deployment.yaml: beta.kubernetes.io/os, deprecated since Kubernetes 1.14": (
        lambda: pod()["nodeSelector"], {"kubernetes.io/os": "linux"},
    ),
    "cmd/runner/prometheus.go: prom-address :9090, path /metrics; the example has neither port nor Service": (
        lambda: (variables()["PROM_ADDRESS"], container()["ports"], container()["readinessProbe"]["httpGet"],
                 made("Service")["spec"]["ports"][0]["port"]),
        (":9090", [{"name": "metrics", "containerPort": 9090, "protocol": "TCP"}], {"path": "/metrics", "port": 9090}, 9090),
    ),
    "every runner watches a ConfigMap of its own": (
        lambda: [variables(name=name)["K8S_CONFIGMAP"] for name in ("one", "other")], ["one", "other"],
    ),
    "cmd/runner/main.go, watchReportingChannels: its goroutine ends with the first message, after which SIGTERM has no reader": (
        lambda: (studioml_runner.ARGUMENT_SPEC["termination_grace_period_seconds"]["default"], "livenessProbe" in container()), (10, False),
    ),
    "the example rolls, for which a cluster needs a free GPU more than it has runners": (
        lambda: made("Deployment")["spec"]["strategy"], {"type": "Recreate"},
    ),
    "internal/runner/secret_store.go, KubernetesWrapper: encryption and passphrase below encrypt-dir; the stores of keys at theirs": (
        lambda: [f"{variables()['ENCRYPT_DIR']}/encryption", f"{variables()['ENCRYPT_DIR']}/passphrase",
                 variables()["REQUEST_SIGNATURES_DIR"], variables()["RESPONSE_SIGNATURES_DIR"]],
        list(MOUNTS),
    ),
    "the example sets CLEAR_TEXT_MESSAGES to true, which takes unencrypted messages in spite of the keys": (
        lambda: variables()["CLEAR_TEXT_MESSAGES"], "false",
    ),
    "deployment.yaml: ^rmq_.*$; Kubernetes would replace $(NAME), and nothing else": (lambda: variables()["QUEUE_MATCH"], "^rmq_.*$"),
    "cmd/runner/rabbit.go: the port of AMQP plus 10000, http for amqp and https for amqps, unless amqp-mgt-url says another": (
        lambda: [check_amqp_url(Sensitive(url)).management_url for url in (URL, URL.replace("amqp:", "amqps:").replace("5672", "5671"))],
        ["http://broker:15672", "https://broker:15671"],
    ),
    "cmd/runner/handle.go: credentials of the storage come with the request only with allow-env-secrets, off by default; older clients "
    "send them in config.env and nowhere else, 0.0.49 with each artifact (studio/credentials/credentials.py)": (
        lambda: [variables(**more)["ALLOW_ENV_SECRETS"] for more in ({}, {"allow_env_secrets": False})], ["true", "false"],
    ),
    "1bbc93f8 removed cmd/runner/rabbit.go: 0.14 is the last series with RabbitMQ": (
        lambda: re.sub(r"\d+$", "", IMAGE), "quay.io/leafai/studio-go-runner:0.14.",
    ),
}  # fmt: skip
"""What upstream has, with where it was read -> what is made for it."""


def at(volume: str) -> list[str]:
    """Where a volume is mounted."""
    return [one["mountPath"] for one in container()["volumeMounts"] if one["name"] == volume]


@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_of_upstream(fact: str) -> None:
    made_for_it, expected = FACTS[fact]
    assert made_for_it() == expected


# Shows row 002.10.
def test_the_address_of_the_broker_is_in_a_secret_only() -> None:
    """The example has it in a ConfigMap."""
    (row,) = [row for row in container()["env"] if row["name"] == "AMQP_URL"]
    reference = row["valueFrom"]["secretKeyRef"]
    secret = made("Secret", reference["name"])
    assert secret["stringData"][reference["key"]].reveal() == URL
    text = yaml.safe_dump([m for m in manifests(runner()) if m["kind"] != "Secret"])
    assert PASSWORD not in text
    assert base64.b64encode(PASSWORD.encode()).decode()[:12] not in text


def test_another_management_api_is_asked_with_the_credentials_of_the_broker() -> None:
    """cmd/runner/rabbit.go:57, rmqConfig: user and password are then those of amqp-mgt-url, and without them 0.14.2 ends with an
    invalid memory address (internal/runner/rmq.go:169), as was seen."""
    (row,) = [row for row in container(amqp_mgt_url="https://other:1/")["env"] if row["name"] == "AMQP_MGT_URL"]
    reference = row["valueFrom"]["secretKeyRef"]
    secret = made("Secret", reference["name"], amqp_mgt_url="https://other:1/")
    assert secret["stringData"][reference["key"]].reveal() == f"https://runner:{PASSWORD}@other:1/"


@pytest.mark.parametrize(
    ("address", "told"), [("https://u:p@other:1", "has a user or password"), ("other:15672", "is not the address of a management API")]
)
def test_an_address_of_the_management_api_that_cannot_be_used_is_refused(address: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=f"amqp_mgt_url.*{told}"):
        manifests(runner(amqp_mgt_url=address))


def test_the_authorities_of_the_store_are_a_file_that_the_runner_takes() -> None:
    """internal/s3/s3.go:139: more than 128 KiB are refused, for each artifact."""
    largest = "-----BEGIN CERTIFICATE-----".ljust(128 * 1024)
    found = variables(store_ca=largest)["S3_CA"]
    (mount,) = [m for m in container(store_ca=largest)["volumeMounts"] if m["name"] == "authorities"]
    folder, _slash, name = found.rpartition("/")
    assert mount["mountPath"] == folder
    assert made("ConfigMap", "studioml-go-runner-ca", store_ca=largest)["data"] == {name: largest}
    with pytest.raises(InvalidInput, match="store_ca has 131073 bytes, and the runner refuses a file of more than 131072"):
        manifests(runner(store_ca=largest + " "))
    with pytest.raises(InvalidInput, match="store_ca is not a certificate"):
        manifests(runner(store_ca="/etc/ssl/certs/ca-certificates.crt"))


def test_a_file_of_authorities_is_not_named_by_a_variable() -> None:
    pods = PodSettings(image=IMAGE, env=({"name": "S3_CA", "value": "/etc/ssl/certs/ca-certificates.crt"},))
    with pytest.raises(InvalidInput, match=r"S3_CA is set by an option.*store_ca"):
        manifests(runner(pod=pods))


def test_the_authorities_of_every_inventory_are_taken() -> None:
    """Each file that an inventory names for it."""
    named = [
        (path, name)
        for path in (ROOT / "inventories").rglob("*.yml")
        for name in re.findall(r"studioml_store_ca:.*inventory_dir ~ '/([^']+)'", path.read_text())
    ]
    assert named
    for path, name in named:
        text = (path.parents[1] / name).read_text()
        assert manifests(runner(store_ca=text))
        assert len(x509.load_pem_x509_certificates(text.encode())) >= 5


def test_an_authority_of_the_broker_is_read_by_go() -> None:
    """crypto/x509, root_unix.go: SSL_CERT_FILE instead of the usual file; the usual folders are read in any case."""
    found = variables(broker_ca="-----BEGIN CERTIFICATE-----")
    (mount,) = [m for m in container(broker_ca="-----BEGIN CERTIFICATE-----")["volumeMounts"] if m["name"] == "authorities"]
    assert found["SSL_CERT_FILE"] == f"{mount['mountPath']}/ca.crt"
    config_map = made("ConfigMap", "studioml-go-runner-ca", broker_ca="-----BEGIN CERTIFICATE-----")
    assert config_map["data"] == {"ca.crt": "-----BEGIN CERTIFICATE-----"}


# Messages: internal/defense/envelope.go, internal/runner/secret_store.go, cmd/runner/processor.go
