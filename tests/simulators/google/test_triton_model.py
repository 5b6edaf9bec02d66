# SPDX-License-Identifier: GPL-3.0-or-later
"""triton_model with a bucket of Google's: by google-cloud-storage, as a caller who may use objects of that bucket and nothing else.

The replicas are those of the unit tests. What they load is what the bucket has at that moment, read by a client of its own.
"""

import hashlib
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.auth.transport.requests import AuthorizedSession
from google.cloud.storage import Client
from google.oauth2.credentials import Credentials

from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Failed,
    Forbidden,
    InvalidInput,
    NotFound,
    ServerError,
    Unauthorized,
    Unreachable,
)
from ansible_collections.muster.ml.plugins.module_utils._gcp import objects
from ansible_collections.muster.ml.plugins.modules import triton_model
from ansible_collections.muster.ml.tests.unit.fakes import pods, tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.models import FakeReplica, write_model
from simulators.google.client import ACCESS_TOKEN, PROJECT, Simulator

BUCKET = f"{PROJECT}-models"
MAY = [f"storage.objects.{verb}" for verb in ("list", "get", "create", "delete")]
INSERT, LIST, DELETE = (f"storage.objects.{verb}" for verb in ("insert", "list", "delete"))
PUT = "storage:objects.insert"
LABELS = {"app.kubernetes.io/name": "triton", "app.kubernetes.io/instance": "triton"}


def storage(google: Simulator) -> Client:
    """google-cloud-storage, led to the simulator."""
    credentials = Credentials(ACCESS_TOKEN)
    session = AuthorizedSession(credentials)
    session.trust_env, session.proxies, session.verify = False, {"https": google.url}, str(google.ca)
    return Client(project=PROJECT, credentials=credentials, _http=session)


class Replica(FakeReplica):
    """It reads the bucket whenever it loads a model."""

    def __init__(self, root: Path, bucket: Any) -> None:
        super().__init__(root)
        self._bucket = bucket

    def load(self, model: str, body: dict[str, Any]) -> str:
        shutil.rmtree(self.root, ignore_errors=True)
        for blob in self._bucket.list_blobs(prefix="live/"):
            path = self.root / blob.name.removeprefix("live/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(blob.download_as_bytes())
        return super().load(model, body)


class World:
    """Two replicas of a server whose repository is the folder ``live`` of the bucket."""

    def __init__(self, google: Simulator, tmp: Path) -> None:
        self.google, self.src = google, tmp / "src"
        self.bucket = storage(google).bucket(BUCKET)
        self.cluster = FakeCluster()
        self.replicas = [Replica(tmp / name, self.bucket) for name in ("a", "b")]
        args = ["tritonserver", "--model-control-mode=explicit", "--load-model=*"]
        self.cluster.add(
            {
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "triton", "namespace": "default"},
                "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "triton", "args": args}]}}},
            }
        )  # fmt: skip
        for name, replica in zip(("triton-a", "triton-b"), self.replicas, strict=True):
            self.cluster.add(pods.pod(name, labels=LABELS, conditions=[{"type": "Ready", "status": "True"}]))
            self.cluster.forwarded["default", name, 8000] = ("127.0.0.1", replica.port)

    def model(self, **versions: str) -> str:
        return str(write_model(self.src, {int(name[1:]): text for name, text in versions.items()}))

    def run(self, *, check: bool = False, faults: dict[str, str] | None = None, **params: Any) -> dict[str, Any]:
        place = {"namespace": "default", "model": "add", "wait_timeout": 10, "model_repository": f"gs://{BUCKET}/live"}
        self.google.clear()
        for method, kind in (faults or {}).items():
            self.google.fault(kind, method, times=99 if kind == "refuse" else 1, status=503)
        result = tasks.run(triton_model, self.cluster, {**place, **params}, check=check, warn=print, diff=True)
        # google-auth asks there where a service account may be used from.
        assert {*self.google.strangers()} <= {"iamcredentials.googleapis.com"}
        return result

    def names(self) -> list[str]:
        return [blob.name.removeprefix("live/add/") for blob in self.bucket.list_blobs()]

    @property
    def policy(self) -> str:
        text: str = self.bucket.blob("live/add/config.pbtxt").download_as_text()
        return text

    def served(self) -> list[list[int]]:
        return [replica.served() for replica in self.replicas]


@pytest.fixture
def world(google: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """As a caller with the permissions that the module's documentation names."""
    environment = google.environment()
    for name in set(os.environ) - set(environment):
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(objects, "_PATIENCE_S", 3.0)
    google.reset()
    google.enable()
    storage(google).create_bucket(BUCKET, location="us-central1")
    google.permissions(MAY)
    found = World(google, tmp_path)
    yield found
    google.permissions(None)
    for replica in found.replicas:
        replica.stop()


def test_a_model_is_uploaded_by_content_and_a_second_run_writes_nothing(world: World) -> None:
    src = world.model(v1="one")
    planned = world.run(src=src, check=True)
    assert (planned["changed"], planned["uploaded"], world.google.attempts()) == (True, ["1/model.py"], [])
    assert (world.names(), world.served()) == ([], [[], []])
    done = world.run(src=src)
    assert world.google.writes() == [PUT, PUT]
    assert (done["uploaded"], done["versions"], world.served()) == (["1/model.py"], [1], [[1], [1]])
    assert world.names() == ["1/model.py", "config.pbtxt"]
    assert planned["diff"] == done["diff"]
    assert f"1/model.py sha256:{hashlib.sha256(b'one').hexdigest()[:16]}" in done["diff"][0]["after"]
    for check in (True, False):
        again = world.run(src=src, check=check)
        assert (again["changed"], again["uploaded"], world.google.attempts()) == (False, [], [])
        assert again["diff"] == []


def test_a_large_file_is_sent_as_an_upload_that_can_be_resumed(world: World) -> None:
    """More than the 8 MiB up to which the library sends a file in one request: one begins the upload, others have the content."""
    src = Path(world.model(v1="one"))
    weights = os.urandom(9 * 2**20)
    (src / "1" / "weights.bin").write_bytes(weights)
    world.run(src=str(src))
    assert world.google.writes() == [PUT] * 4
    assert world.bucket.blob("live/add/1/weights.bin").download_as_bytes() == weights
    assert not world.run(src=str(src))["changed"]
    assert world.google.attempts() == []


def test_a_new_version_takes_over_and_an_earlier_one_is_chosen_again(world: World) -> None:
    world.run(src=world.model(v1="one"))
    assert world.run(src=world.model(v1="one", v2="two"))["uploaded"] == ["2/model.py"]
    assert (world.served(), "versions: 2" in world.policy) == ([[2], [2]], True)
    back = world.run(versions=[1])
    assert (back["uploaded"], world.served(), world.google.writes()) == ([], [[1], [1]], [PUT])
    with pytest.raises(InvalidInput, match="version 1 is served"):
        world.run(src=world.model(v1="another"))


def test_a_broken_version_leaves_replicas_and_bucket_as_they_were(world: World) -> None:
    world.run(src=world.model(v1="one"))
    config = world.policy
    with pytest.raises(Failed, match=r"broken.*The store has again what it had, and versions 1 are served on"):
        world.run(src=world.model(v2="broken"))
    assert world.google.writes() == [PUT, PUT, "storage:objects.delete"]
    assert (world.served(), world.policy, world.names()) == ([[1], [1]], config, ["1/model.py", "config.pbtxt"])


def test_files_go_by_their_own_word_only(world: World) -> None:
    world.run(src=world.model(v1="one", v2="two"), versions=[1])
    with pytest.raises(InvalidInput, match="would load model add again"):
        world.run(state="absent")
    assert world.google.attempts() == []
    planned = world.run(state="absent", delete_data=True, check=True)
    assert world.google.attempts() == []
    gone = world.run(state="absent", delete_data=True)
    assert gone["deleted"] == planned["deleted"] == ["1/model.py", "2/model.py", "config.pbtxt"]
    assert (world.names(), world.served()) == ([], [[], []])
    assert not world.run(state="absent", delete_data=True)["changed"]


def test_a_file_that_somebody_else_deletes_meanwhile_is_not_missed(world: World) -> None:
    """The answer to a deletion is then 404."""
    world.run(src=world.model(v1="one"))
    assert world.run(state="absent", delete_data=True, faults={DELETE: "stale"})["changed"]
    assert world.google.ask("faults") == []


@pytest.mark.parametrize("verb", ["list", "get", "create", "delete"])
def test_a_permission_that_is_missing_is_named_with_the_bucket(world: World, verb: str) -> None:
    """Each of those that the documentation names is needed."""
    if verb != "create":
        world.run(src=world.model(v1="one"))
    world.google.permissions([one for one in MAY if not one.endswith(verb)])
    with pytest.raises(Forbidden) as caught:
        world.run(state="absent", delete_data=True) if verb == "delete" else world.run(src=world.model(v1="one"))
    assert caught.value.message.startswith(f"bucket {BUCKET}: to ")
    assert caught.value.hint == f"The caller lacks the permission storage.objects.{verb}"
    assert ACCESS_TOKEN not in str(caught.value)


def test_a_bucket_that_is_missing_is_told_but_not_in_a_plan(world: World) -> None:
    place = {"src": world.model(v1="one"), "model_repository": "gs://muster-nowhere/live"}
    assert world.run(**place, check=True)["uploaded"] == ["1/model.py"]
    with pytest.raises(NotFound, match="There is no bucket muster-nowhere"):
        world.run(**place)


def test_what_passes_by_itself_is_ridden_out_and_what_does_not_is_told(world: World) -> None:
    assert world.run(src=world.model(v1="one"), faults={INSERT: "drop", LIST: "throttle"})["changed"]
    assert world.google.ask("faults") == []
    with pytest.raises(ServerError, match=f"bucket {BUCKET}: to list the model was refused"):
        world.run(versions=[1], faults={LIST: "refuse"})


def test_a_run_that_is_killed_is_taken_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the files, before the configuration: nothing is served of it, and the next run sends what is missing."""
    with monkeypatch.context() as patched:

        def killed(*_args: Any) -> None:
            raise KeyboardInterrupt

        patched.setattr(triton_model.model_gcs.GcsObjects, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            world.run(src=world.model(v1="one"))
    assert world.names() == ["1/model.py"]
    assert world.run(src=world.model(v1="one"))["uploaded"] == []
    assert (world.google.writes(), world.served()) == ([PUT], [[1], [1]])


@pytest.mark.parametrize("kind", ["accesstoken", "serviceaccount", "application"])
def test_credentials_are_those_of_the_environment(world: World, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.delenv("GCP_AUTH_KIND")
    environment = world.google.environment(kind)
    ours = {
        "accesstoken": "GCP_ACCESS_TOKEN",
        "serviceaccount": "GCP_SERVICE_ACCOUNT_FILE",
        "application": "GOOGLE_APPLICATION_CREDENTIALS",
    }
    for name in ours.values():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(ours[kind], environment[ours[kind]])
    given = {} if kind == "accesstoken" else {"auth_kind": kind}
    assert world.run(src=world.model(v1="one"), **given)["changed"]


def test_credentials_that_are_missing_or_refused_are_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    src = world.model(v1="one")
    with pytest.raises(Unauthorized, match="no credentials for Google: Service Account authentication requires"):
        world.run(src=src, auth_kind="serviceaccount")
    monkeypatch.setenv("GCP_ACCESS_TOKEN", "ya29.stale")
    with pytest.raises(Unauthorized, match="Google does not accept the credentials") as caught:
        world.run(src=src)
    assert "stale" not in str(caught.value)


def test_google_that_cannot_be_reached_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as held:  # bound, so that nobody else listens there, and refuses
        held.bind(("127.0.0.1", 0))
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{held.getsockname()[1]}")
        with pytest.raises(Unreachable, match="Google could not be reached"):
            world.run(src=world.model(v1="one"))
