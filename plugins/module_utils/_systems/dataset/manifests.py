# SPDX-License-Identifier: GPL-3.0-or-later
"""A data set on a shared claim: the Job that fetches it once."""

from __future__ import annotations

import dataclasses
import re
import typing as t
from collections.abc import Mapping, Sequence

from ..._core.errors import InvalidInput
from ..._manifests import storage
from ..._manifests.meta import Manifest, check_count, check_name, check_sha256, compact, quantity, spec_hash
from ..._manifests.pods import RESTRICTED_CONTAINER, PodSettings, on_disruption, on_exit, pod_template
from ..._manifests.programs import program
from ..._manifests.shared import config_map
from ..._pod_programs import dataset_fetch
from ..._pod_programs.dataset_fetch import EXIT_PERMANENT

Unpack = t.Literal["auto", "none", "tar", "zip"]
_NAME_MAX = 50
_SCHEMES = ("https", "http", "s3", "gs")
_SIGNED = re.compile(r"[?&](x-amz-signature|x-goog-signature|sig|signature|token)=", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dataset:
    """The source of a data set, and the folder in the claim that it is unpacked into."""

    name: str
    namespace: str
    pod: PodSettings
    sha256: str
    claim_name: str
    url: str | None = None
    url_secret: Mapping[str, str] | None = None
    endpoint_url: str | None = None
    path: str | None = None
    unpack: Unpack = "auto"
    size_bytes: int | None = None
    storage_size: str | None = None
    storage_class_name: str | None = None
    access_modes: Sequence[str] = storage.Storage.access_modes
    credentials_secret: str | None = None
    backoff_limit: int = 6
    active_deadline_seconds: int | None = None

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its pods."""
        return {"app.kubernetes.io/name": "dataset", "app.kubernetes.io/instance": self.name}

    @property
    def folder(self) -> str:
        """The folder of the data in the claim."""
        return self.path or self.name


def manifests(dataset: Dataset) -> list[Manifest]:
    """The claim (if we create it), the program, and the Job."""
    check(dataset)
    config = config_map(_metadata(dataset, f"{dataset.name}-dataset"), {"fetch.py": program(dataset_fetch)})
    claim = storage.claim(
        _metadata(dataset, dataset.claim_name),
        size=dataset.storage_size,
        storage_class_name=dataset.storage_class_name,
        access_modes=dataset.access_modes,
    )
    spec = job_spec(dataset)
    # A Job cannot be changed, so other options mean another Job.
    mark = spec_hash([spec, config["data"]])[:10]
    name = f"{dataset.name}-{mark}"
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(dataset, name), "spec": spec}
    return [*([claim] if dataset.storage_size else []), config, job]


def place_of(job: Manifest) -> tuple[str, str]:
    """The claim and the folder that one of our Jobs fills; empty for any other Job."""
    pod = job["spec"]["template"]["spec"]
    volumes = [one.get("persistentVolumeClaim") or {} for one in pod.get("volumes") or [] if one["name"] == "data"]
    claims = [one["claimName"] for one in volumes if one]
    env = pod["containers"][0].get("env") or []
    folders = [one.get("value", "") for one in env if one["name"] == "DATASET_PATH"]
    return (claims[0], folders[0]) if claims and folders else ("", "")


def nested(one: str, other: str) -> bool:
    """Whether two folders are the same, or one lies in the other."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def check(dataset: Dataset) -> None:
    """Refuse options that only the pod would refuse otherwise, in its log."""
    check_name(dataset.name, "name", limit=_NAME_MAX)
    check_sha256(dataset.sha256, "sha256")
    parts = dataset.folder.split("/")
    if not dataset.folder or any(part in ("", ".", "..", ".muster") for part in parts):
        raise InvalidInput(f"path: '{dataset.folder}' is not a folder in the claim.", "Such as imagenet or vision/tiny.")
    if dataset.size_bytes is not None:
        check_count(dataset.size_bytes, "size_bytes", minimum=1)
    check_count(dataset.backoff_limit, "backoff_limit")
    if dataset.storage_size is not None:
        quantity(dataset.storage_size, "storage_size")
    if dataset.url is not None:
        _check_url(dataset.url)
    if dataset.endpoint_url is not None and not re.match(r"https?://[^/@]+", dataset.endpoint_url):
        raise InvalidInput(f"endpoint_url: '{dataset.endpoint_url}' is no server.", "Such as https://minio.example:9000.")


def _check_url(url: str) -> None:
    scheme, found, rest = url.partition("://")
    if not found or scheme not in _SCHEMES or not rest.strip("/"):
        raise InvalidInput(f"url: '{url}' is no address.", f"It begins with one of {', '.join(_SCHEMES)}, and ://.")
    if _SIGNED.search(url) or "@" in rest.partition("/")[0]:
        raise InvalidInput(
            "url: it holds a signature or password, which every user who may read the Job would see.",
            "Put it into a Secret and name that in url_secret.",
        )


def _metadata(dataset: Dataset, name: str) -> Manifest:
    return {"name": name, "namespace": dataset.namespace, "labels": dataset.labels}


def _environment(dataset: Dataset) -> list[Manifest]:
    fixed = {
        "DATASET_URL": dataset.url,
        "DATASET_ENDPOINT_URL": dataset.endpoint_url,
        "DATASET_SHA256": dataset.sha256,
        "DATASET_PATH": dataset.folder,
        "DATASET_UNPACK": dataset.unpack,
        "DATASET_SIZE": None if dataset.size_bytes is None else str(dataset.size_bytes),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    rows: list[Manifest] = [{"name": name, "value": value} for name, value in fixed.items() if value is not None]
    # The ID by which the pods of this Job recognise files that earlier pods of it have left.
    job = {"fieldPath": "metadata.labels['batch.kubernetes.io/controller-uid']"}
    rows.append({"name": "DATASET_RUN", "value_from": {"fieldRef": job}})
    if dataset.url_secret:
        ref = {"name": dataset.url_secret["name"], "key": dataset.url_secret["key"]}
        rows.append({"name": "DATASET_URL", "value_from": {"secretKeyRef": ref}})
    return rows


def job_spec(dataset: Dataset) -> Manifest:
    """The Job: one pod at a time; a wrong checksum ends the Job at once, a lost pod does not."""
    pod = dataclasses.replace(
        dataset.pod,
        command=("python3", "/opt/muster/fetch.py"),
        volumes=(
            *dataset.pod.volumes,
            {"name": "data", "persistentVolumeClaim": {"claimName": dataset.claim_name}},
            {"name": "program", "configMap": {"name": f"{dataset.name}-dataset"}},
        ),
        volume_mounts=(
            *dataset.pod.volume_mounts,
            {"name": "data", "mountPath": "/data"},
            {"name": "program", "mountPath": "/opt/muster", "readOnly": True},
        ),
        security_context=dataset.pod.security_context or RESTRICTED_CONTAINER,
    )
    template = pod_template(pod, container="fetch", labels=dataset.labels, selector=dataset.labels, env=_environment(dataset))
    template["spec"]["restartPolicy"] = "Never"
    if dataset.credentials_secret:
        template["spec"]["containers"][0]["envFrom"] = [{"secretRef": {"name": dataset.credentials_secret}}]
    return compact(
        {
            "backoffLimit": dataset.backoff_limit,
            "activeDeadlineSeconds": dataset.active_deadline_seconds,
            # Two pods must not write the same file.
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": [on_exit("FailJob", "fetch", EXIT_PERMANENT), on_disruption("Ignore")]},
            "template": template,
        }
    )
