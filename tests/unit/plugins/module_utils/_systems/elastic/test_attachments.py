# SPDX-License-Identifier: GPL-3.0-or-later
"""An etcd and a data set as options of an elastic job."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic import spec
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.spec import Params, with_dataset, with_etcd

JOB: dict[str, t.Any] = {
    "name": "digits",
    "namespace": "ml",
    "image": "example/torch:1",
    "script": "/train.py",
    "replicas": 1,
    "rdzv_backend": "etcd-v2",
    "rdzv_conf": {},
    "volumes": None,
    "volume_mounts": None,
    "env": None,
    "storage": {"claim_name": "checkpoints", "mount_path": "/workspace/shared"},
}
DATASET = {"claim_name": "images", "path": "tiny", "mount_path": "/data"}
CERTIFICATE = {
    "protocol": "https",
    "ca_cert": "/etc/etcd-tls/ca.crt",
    "ssl_cert": "/etc/etcd-tls/tls.crt",
    "ssl_cert_key": "/etc/etcd-tls/tls.key",
}


def meeting(etcd: dict[str, t.Any], **more: t.Any) -> Params:
    return with_etcd({**JOB, **more}, etcd)


def training(dataset: dict[str, t.Any], **more: t.Any) -> Params:
    return with_dataset({**JOB, **more}, dataset)


def test_a_job_meets_at_its_etcd_with_a_certificate() -> None:
    given = meeting({"name": "meet", "tls": True})
    assert given["rdzv_endpoint"] == "meet:2379"
    assert given["rdzv_conf"] == CERTIFICATE
    assert given["volumes"] == [{"name": "etcd-tls", "secret": {"secretName": "meet-client-tls"}}]
    assert given["volume_mounts"] == [{"name": "etcd-tls", "mountPath": "/etc/etcd-tls", "readOnly": True}]


def test_an_etcd_without_tls_is_only_an_address() -> None:
    given = meeting({"name": "meet", "tls": False})
    assert (given["rdzv_endpoint"], given["rdzv_conf"], given["volumes"]) == ("meet:2379", {}, None)


def test_what_the_user_says_of_the_rendezvous_wins() -> None:
    given = meeting({"name": "meet", "tls": True}, rdzv_conf={"ca_cert": "/mine/ca.crt", "retries": 3})
    assert given["rdzv_conf"] == {**CERTIFICATE, "ca_cert": "/mine/ca.crt", "retries": 3}


def test_with_c10d_there_is_no_etcd() -> None:
    with pytest.raises(InvalidInput, match="etcd: with c10d"):
        meeting({"name": "meet", "tls": True}, rdzv_backend="c10d")


def test_a_data_set_is_mounted_and_named() -> None:
    mine = {"name": "mine", "emptyDir": {}}
    given = training(DATASET, volumes=[mine], env=[{"name": "A", "value": "1"}])
    assert given["env"] == [{"name": "MUSTER_DATA_DIR", "value": "/data/tiny"}, {"name": "A", "value": "1"}]
    assert given["volumes"] == [mine, {"name": "dataset", "persistentVolumeClaim": {"claimName": "images"}}]
    assert given["volume_mounts"] == [{"name": "dataset", "mountPath": "/data", "readOnly": True}]


def test_a_data_set_beside_the_checkpoints_is_not_mounted_twice() -> None:
    given = training({**DATASET, "claim_name": "checkpoints"})
    assert given["env"] == [{"name": "MUSTER_DATA_DIR", "value": "/workspace/shared/tiny"}]
    assert (given["volumes"], given["volume_mounts"]) == (None, None)


def test_a_folder_of_the_users_choice_wins() -> None:
    env = [{"name": "MUSTER_DATA_DIR", "value": "/elsewhere"}]
    assert training(DATASET, env=env)["env"] == env


def test_the_pods_have_it_all() -> None:
    """Attached things are part of the job like what is spelled out: a running one of an earlier version is the same job."""
    attached = spec.from_params({**JOB, "etcd": {"name": "meet", "tls": True}, "dataset": DATASET})
    spelled = spec.from_params(
        {
            **JOB,
            "rdzv_endpoint": "meet:2379",
            "rdzv_conf": CERTIFICATE,
            "env": [{"name": "MUSTER_DATA_DIR", "value": "/data/tiny"}],
            "volumes": [
                {"name": "etcd-tls", "secret": {"secretName": "meet-client-tls"}},
                {"name": "dataset", "persistentVolumeClaim": {"claimName": "images"}},
            ],
            "volume_mounts": [
                {"name": "etcd-tls", "mountPath": "/etc/etcd-tls", "readOnly": True},
                {"name": "dataset", "mountPath": "/data", "readOnly": True},
            ],
        }
    )
    assert attached == spelled
