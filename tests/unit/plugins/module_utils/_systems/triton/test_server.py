# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of a Triton server, as YAML in golden files, and options that cannot be."""

import dataclasses
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._manifests.storage import Storage
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.repository import Repository, arguments, checked_repository
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.server import Autoscaling, TritonServer, has_gpus, manifests

Golden = t.Callable[..., None]
POD = PodSettings(image="nvcr.io/nvidia/tritonserver:26.07-py3", resources={"limits": {"memory": "4Gi"}})
VOLUME = Repository(model_repository="/models/live", storage=Storage(claim_name="models", mount_path="/models"))
BUCKET = Repository(
    model_repository="s3://http://store.ml.svc:7070/models/live",
    credentials_secret="store-login",
    model_control_mode="explicit",
    load_models=("add", "classify"),
)


def server(**more: t.Any) -> TritonServer:
    return TritonServer(**{"name": "triton", "namespace": "ml", "pod": POD, "repository": VOLUME, **more})


def pod_of(wanted: TritonServer) -> dict[str, t.Any]:
    found: dict[str, t.Any] = next(o for o in manifests(wanted) if o["kind"] == "Deployment")["spec"]["template"]["spec"]
    return found


def flags(wanted: TritonServer) -> list[str]:
    found: list[str] = pod_of(wanted)["containers"][0]["args"]
    return found


def plain() -> list[dict[str, t.Any]]:
    return manifests(server(replicas=2, args=("--log-verbose=1",)))


def test_a_server_with_a_volume(golden: Golden) -> None:
    golden("triton_volume", plain())


def test_a_server_with_a_bucket_and_gpus(golden: Golden) -> None:
    pod = dataclasses.replace(POD, resources={"limits": {"nvidia.com/gpu": 1}})
    account = {"iam.gke.io/gcp-service-account": "triton@example-project.iam.gserviceaccount.com"}
    found = manifests(server(pod=pod, repository=BUCKET, service_account_annotations=account))
    golden("triton_bucket", found, plain())


def test_a_server_with_an_autoscaler(golden: Golden) -> None:
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 900}}
    scaling = Autoscaling(min_replicas=2, max_replicas=8, queue_time_us=20_000, behavior=behavior)
    found = manifests(server(replicas=None, autoscaling=scaling))
    golden("triton_autoscaling", found, plain())


def test_an_account_of_the_user_is_not_made_and_has_no_token_either() -> None:
    wanted = server(pod=dataclasses.replace(POD, service_account_name="mine"), network_policy=False)
    assert [o["kind"] for o in manifests(wanted)] == ["Service", "PodDisruptionBudget", "Deployment"]
    assert (pod_of(wanted)["serviceAccountName"], pod_of(wanted)["automountServiceAccountToken"]) == ("mine", False)


# Shows row 003.6.
@pytest.mark.parametrize("seconds", [5, 7, 600])
def test_loading_has_all_its_time(seconds: int) -> None:
    """The kubelet gives up after failureThreshold probes, periodSeconds apart."""
    probe = pod_of(server(startup_timeout=seconds))["containers"][0]["startupProbe"]
    assert seconds <= probe["failureThreshold"] * probe["periodSeconds"] < seconds + probe["periodSeconds"]


@pytest.mark.parametrize(("drain", "ends"), [(0, 0), (10, 30), (60, 300)])
def test_a_pod_is_not_killed_before_its_requests_have_ended(drain: int, ends: int) -> None:
    wanted = server(drain_timeout=drain, exit_timeout=ends)
    pod = pod_of(wanted)
    assert pod["terminationGracePeriodSeconds"] > drain + ends
    assert pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", str(drain)]
    assert f"--exit-timeout-secs={ends}" in flags(wanted)


def test_no_pod_ends_before_another_one_is_ready() -> None:
    made = next(o for o in manifests(server()) if o["kind"] == "Deployment")
    assert made["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    wanted = server(overrides={"spec": {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}})
    made = next(o for o in manifests(wanted) if o["kind"] == "Deployment")
    assert made["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


@pytest.mark.parametrize(
    ("resources", "found"),
    [
        (None, False),
        ({"limits": {"memory": "1Gi"}}, False),
        ({"limits": {"nvidia.com/gpu": 0}}, False),
        ({"requests": {"nvidia.com/gpu": 2}}, True),
        ({"limits": {"nvidia.com/gpu": "1"}}, True),
    ],
)
def test_metrics_of_gpus_are_for_pods_that_have_some(resources: t.Any, found: bool) -> None:
    assert has_gpus(dataclasses.replace(POD, resources=resources)) is found


def test_a_mode_has_its_flags() -> None:
    poll = dataclasses.replace(VOLUME, model_control_mode="poll", repository_poll_interval=3)
    assert arguments(poll) == ["--model-repository=/models/live", "--model-control-mode=poll", "--repository-poll-secs=3"]
    assert [flag for flag in arguments(BUCKET) if "load" in flag] == ["--load-model=add", "--load-model=classify"]


@pytest.mark.parametrize("place", ["/models", "/models/", "/models/a/b", "s3://models", "s3://models/a/b", "s3://http://store:7070/models",
                                   "s3://https://h/models/a", "s3://h:1/m/a", "gs://m/a"])  # fmt: skip
def test_places_for_models(place: str) -> None:
    assert checked_repository(Repository(model_repository=place, storage=VOLUME.storage if place.startswith("/") else None))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model_repository": ""}, "is not a place for models"),
        ({"model_repository": "models"}, "is not a place for models"),
        ({"model_repository": "https://example.com/models"}, "is not a place for models"),
        ({"model_repository": "s3://"}, "is not a place for models"),
        ({"model_repository": "gs://a b"}, "is not a place for models"),
        ({"model_repository": "gs://a"}, "no server would read the volume"),
        ({"model_repository": "/other"}, "is not below storage.mount_path"),
        ({"model_repository": "/models/../other"}, "is not below storage.mount_path"),
        ({"model_repository": "/modelsets"}, "is not below storage.mount_path"),
        ({"storage": None}, "there is no volume"),
        ({"credentials_secret": "s"}, "a volume needs no keys"),
        ({"model_repository": "gs://a", "storage": None, "credentials_secret": "s"}, "of no use for Google Cloud Storage"),
        ({"repository_poll_interval": 0}, "repository_poll_interval: 0 is too small"),
        ({"load_models": ["a"]}, "loads every model of its repository"),
        ({"load_models": ["a"], "model_control_mode": "poll"}, "loads every model of its repository"),
        ({"load_models": ["a/1"], "model_control_mode": "explicit"}, "'a/1' is not a name of a model"),
        ({"load_models": ["a", "a"], "model_control_mode": "explicit"}, "'a' is there twice"),
        ({"load_models": ["*", "a"], "model_control_mode": "explicit"}, "'*' means all models"),
    ],
)
def test_repositories_that_cannot_be(changes: dict[str, t.Any], told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        manifests(server(repository=dataclasses.replace(VOLUME, **changes)))
    assert told in caught.value.message


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"name": "Triton"}, "not a valid name"),
        ({"replicas": -1}, "replicas: -1 is too small"),
        ({"startup_timeout": 1}, "startup_timeout: 1 is too small"),
        ({"drain_timeout": -1}, "drain_timeout: -1 is too small"),
        ({"exit_timeout": -1}, "exit_timeout: -1 is too small"),
        ({"shm_size": "1 GB"}, "not a quantity"),
        ({"args": ["log-verbose"]}, "is not a flag"),
        ({"args": ["--model-repository=/x"]}, "--model-repository is set by the module. Use option model_repository."),
        ({"args": ["--http-port=80"]}, "--http-port is set by the module"),
        ({"pod": dataclasses.replace(POD, image="a/b")}, "is not pinned"),
        ({"pod": dataclasses.replace(POD, resources={"limits": {"nvidia.com/gpu": 0.5}})}, "is not a whole number"),
        ({"pod": dataclasses.replace(POD, termination_grace_period_seconds=40)}, "40 s end before drain_timeout"),
        (
            {"pod": dataclasses.replace(POD, service_account_name="a"), "service_account_annotations": {"a": "b"}},
            "service_account_name names another one",
        ),
    ],
)
def test_servers_that_cannot_be(changes: dict[str, t.Any], told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        manifests(server(**changes))
    assert told in f"{caught.value.message} {caught.value.hint}"


def test_a_longer_end_is_taken() -> None:
    pod = dataclasses.replace(POD, termination_grace_period_seconds=41)
    assert pod_of(server(pod=pod))["terminationGracePeriodSeconds"] == 41
