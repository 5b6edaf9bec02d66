# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for StudioML's runner, piece by piece. The whole is run by the check studioml, at a real broker and store."""

from __future__ import annotations

import base64
import io
import json
import socket
import ssl
import tarfile
import typing as t
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import to_be_dropped
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import keys, message, results
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.runner_metrics import view
from ansible_collections.muster.ml.roles.local_images.files.studioml_runner import standin as program

pytestmark = pytest.mark.usefixtures("small_keys")
Manifest = dict[str, t.Any]
RECORDED = Path(__file__).resolve().parents[5] / "roles" / "local_images" / "files" / "studioml_runner" / "0.14.2.json"
SIGNER, OTHER = keys.new_signing_pair(to_be_dropped()), keys.new_signing_pair(to_be_dropped())
RUNNER = rsa.generate_private_key(65537, 2048)
PAIR = keys.rsa_pair(RUNNER, Sensitive("phrase"))
REQUEST: Manifest = {
    "config": {"experimentLifetime": "30m"},
    "experiment": {"key": "1", "time_added": 1000.0, "resources_needed": {"cpus": 1, "ram": "1gb", "hdd": "1gb"}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The mounts."""
    files = {
        "encryption/ssh-privatekey": PAIR.private.reveal(), "encryption/ssh-publickey": PAIR.public, "passphrase/ssh-passphrase": "phrase",
        "signing/info": "x", "signing/rmq_": SIGNER.public, "signing/rmq_other": OTHER.public, "signing/rmq": OTHER.public,
        "signing/..data": "x",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def where(folder: Path, **more: t.Any) -> program.Settings:
    given: Manifest = {"user": "u", "password": "p", "host": "h", "port": 5672, "vhost": "/", "tls": False, "management": "http://h:15672"}
    return program.Settings(**{**given, "keys": folder, "signers": folder / "signing", **more})


def opened(folder: Path, body: bytes, queue: str = "rmq_test", **more: t.Any) -> Manifest:
    return program.request_of(body, queue, where(folder, **more), program.read_key(folder))


def test_a_signature_may_be_its_64_bytes_alone(folder: Path) -> None:
    wire = json.loads(message.build(REQUEST, PAIR.public, SIGNER.private))
    wire["message"]["signature"] = base64.b64encode(base64.b64decode(wire["message"]["signature"])[-64:]).decode()
    assert opened(folder, json.dumps(wire).encode()) == REQUEST


@pytest.mark.parametrize("queue", ["sqs_test", "rm"])
def test_a_queue_without_a_signer_is_refused(folder: Path, queue: str) -> None:
    with pytest.raises(program.Refused, match=f"no key is known for signatures of queue {queue}") as caught:
        opened(folder, message.build(REQUEST, PAIR.public, SIGNER.private), queue)
    assert not caught.value.hard


def test_clear_text_is_taken_only_where_it_is_allowed(folder: Path) -> None:
    body = json.dumps(REQUEST).encode()
    assert opened(folder, body, clear_text=True) == REQUEST
    with pytest.raises(program.Refused, match="unencrypted messages not enabled") as caught:
        opened(folder, body)
    assert caught.value.hard
    with pytest.raises(program.Refused, match="is not a request"):
        opened(folder, b"[]", clear_text=True)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("encryption/ssh-privatekey", "-----BEGIN OPENSSH PRIVATE KEY-----", "is not of the type RSA PRIVATE KEY"),
        ("passphrase/ssh-passphrase", "phrase\n", "cannot be decrypted with ssh-passphrase"),
        ("encryption/ssh-publickey", None, "ssh-publickey cannot be read"),
    ],
)
def test_keys_that_cannot_be_used_are_told(folder: Path, name: str, text: str | None, told: str) -> None:
    (folder / name).unlink()
    if text:
        (folder / name).write_text(text)
    with pytest.raises(program.Refused, match=told):
        program.read_key(folder)


@pytest.mark.parametrize(
    ("url", "management", "found"),
    [
        ("amqp://u:p@h:5672/%2f?x=1", "", ("h", 5672, "/", False, "http://h:15672")),
        ("amqps://u:p@h:5671/team%2Fa", "", ("h", 5671, "team/a", True, "https://h:15671")),
        ("amqp://u:p@h/", "https://u:p@m:1/", ("h", 5672, "/", False, "https://m:1")),
    ],
)
def test_the_address_is_read_as_upstream_does(monkeypatch: pytest.MonkeyPatch, url: str, management: str, found: tuple[t.Any, ...]) -> None:
    monkeypatch.setenv("AMQP_URL", url)
    monkeypatch.setenv("AMQP_MGT_URL", management)
    made = program.settings()
    assert (made.host, made.port, made.vhost, made.tls, made.management) == found
    assert "p" not in (made.identity.partition("//")[2], repr(made).partition("password")[2])
    assert "'p'" not in repr(made)


@pytest.mark.parametrize(("text", "found"), [("30m", 1800.0), ("1h30m", 5400.0), ("1.5s", 1.5), ("20ms", 0.02), ("", None), (None, None)])
def test_durations(text: str | None, found: float | None) -> None:
    assert program.seconds(text) == found


@pytest.mark.parametrize(
    ("experiment", "left"),
    [({}, 1700.0), ({"max_duration": "20m"}, 1200.0), ({"max_duration": "2h"}, 1700.0), ({"time_added": 0}, program.LONGEST)],
)
def test_an_experiment_has_the_shorter_of_its_limits(experiment: Manifest, left: float) -> None:
    request = {**REQUEST, "experiment": {**REQUEST["experiment"], **experiment}}
    assert program.time_limit(request, 1100.0) == left


def archive(*members: tarfile.TarInfo) -> tarfile.TarFile:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    file.seek(0)
    return tarfile.open(fileobj=file)


def member(name: str, kind: bytes = tarfile.REGTYPE, **more: t.Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, 1 if kind == tarfile.REGTYPE else 0
    for key, value in more.items():
        setattr(info, key, value)
    return info


@pytest.mark.parametrize(
    "bad", [member("../a"), member("/etc/a"), member("a", tarfile.SYMTYPE, linkname="/etc"), member("a", tarfile.CHRTYPE)]
)
def test_an_archive_does_not_leave_its_folder(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    with pytest.raises(program.Refused, match="no plain file or folder below it") as caught:
        program.unpack(archive(member("good"), bad), tmp_path / "in", "workspace")
    assert caught.value.hard
    assert not (tmp_path / "in").exists()


def test_an_archive_is_unpacked_without_special_rights(tmp_path: Path) -> None:
    program.unpack(archive(member("d", tarfile.DIRTYPE, mode=0o777), member("d/a", mode=0o4755)), tmp_path, "workspace")
    assert (tmp_path / "d" / "a").stat().st_mode & 0o7777 == 0o755


def test_artifacts_have_the_credentials_of_the_request_only_if_that_is_allowed() -> None:
    request = {
        "config": {"env": {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "canary"}},
        "experiment": {
            "resources_needed": {"ram": "1gb", "hdd": "1gb"},
            "artifacts": {"output": {"qualified": "s3://store.example/bucket/experiments/1/output.tar", "mutable": True}},
        },
    }
    (place,) = program.places(request, env_secrets=True)
    assert (place.endpoint, place.bucket, place.key) == ("http://store.example", "bucket", "experiments/1/output.tar")
    assert "canary" not in repr(place)
    with pytest.raises(program.Refused, match="artifact output has no credentials"):
        program.places(request, env_secrets=False)
    request["experiment"]["artifacts"]["output"]["credentials"] = {"aws": {"access_key": "own", "secret_key": "s"}}  # type: ignore[index]
    assert program.places(request, env_secrets=False)[0].credentials == ("own", "s")
    request["experiment"]["artifacts"]["output"]["credentials"]["aws"] = {"access_key": "own", "secret_access_key": "a"}  # type: ignore[index]
    assert program.places(request, env_secrets=False)[0].credentials == ("own", "a")


def test_a_store_has_tls_with_authorities_only_and_they_have_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    output = {"qualified": "s3://store.example/bucket/k.tar", "credentials": {"aws": {"access_key": "a", "secret_access_key": "s"}}}
    request: Manifest = {"experiment": {**REQUEST["experiment"], "artifacts": {"output": output}}}
    authorities = tmp_path / "ca.crt"
    authorities.write_bytes(b"x" * program.STORE_CA_MAX)
    assert program.places(request, env_secrets=False)[0].endpoint == "http://store.example"
    monkeypatch.setenv("S3_CA", str(authorities))
    assert program.places(request, env_secrets=False)[0].endpoint == "https://store.example"
    for content, told in ((b"x" * (program.STORE_CA_MAX + 1), "suspicously large"), (b"", "was empty")):
        authorities.write_bytes(content)
        with pytest.raises(program.Refused, match=told):
            program.places(request, env_secrets=False)
    authorities.unlink()
    with pytest.raises(program.Refused, match="unable to read a PEM"):
        program.places(request, env_secrets=False)


@pytest.mark.parametrize("missing", ["ram", "hdd"])
def test_a_request_without_a_size_is_refused(missing: str) -> None:
    needed = {name: text for name, text in REQUEST["experiment"]["resources_needed"].items() if name != missing}
    with pytest.raises(program.Refused, match="invalid syntax") as caught:
        program.places({"experiment": {"resources_needed": needed}}, env_secrets=False)
    assert not caught.value.hard


def test_what_ends_a_runner_at_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMQP_URL", "amqp://u:p@h:5672/")
    for name, value, told in (("CACHE_SIZE", "1000mib", "less than 1Gb"), ("AMQP_MGT_URL", "https://h:15671", "Username password missing")):
        monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit, match=told):
            program.settings()
        monkeypatch.delenv(name)


def test_arguments_are_words_of_a_shell(tmp_path: Path) -> None:
    """Upstream: internal/runner/pythonenv.go writes them into a script; the client quotes them (experiment.py, shquote)."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a b.py").write_text("import sys; print(sys.argv[1:])")
    request = {"experiment": {"filename": "'a b.py'", "args": ["--name", "'two words'"]}}
    with (tmp_path / "out").open("wb") as file:
        assert program.start(request, tmp_path, file).wait() == 0
    assert (tmp_path / "out").read_text() == "['--name', 'two words']\n"
    with pytest.raises(program.Refused, match="cannot be read as a shell does"), (tmp_path / "out").open("wb") as file:
        program.start({"experiment": {"filename": "a.py", "args": ["'"]}}, tmp_path, file)


@pytest.mark.parametrize(("returncode", "ended"), [(0, "finished"), (2, "failed"), (-9, "failed")])
def test_the_end_of_an_output_is_what_module_studioml_experiment_reads(returncode: int, ended: str) -> None:
    """pythonenv.go: under set -e the stop time is written only after a program that ended well; processor.go: failed when ..."""
    lines = program.ending(returncode).encode().splitlines()
    assert results.judged(lines, []).ended == ended
    assert ("stop_time" in program.ending(returncode)) == (returncode == 0)


def test_metrics_are_what_module_studioml_runner_reads() -> None:
    metrics = program.Metrics()
    metrics.add("runner_queue_checked", queue_type="rabbitMQ", queue_name="amqp://h")
    metrics.add("runner_queue_ignored", 2, queue_type="rabbitMQ", queue_name="*")
    metrics.add("runner_project_running", experiment='a "b"\\')
    metrics.add("runner_project_running", experiment="over")
    metrics.add("runner_project_running", -1, experiment="over")
    found = view("pod", metrics.text(), "")
    assert (found.checked, found.ignored, found.experiments) == (1, 2, ('a "b"\\',))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ConnectionRefusedError(111, "x"), "its connection is refused"),
        (socket.gaierror(-2, "x"), "its name is unknown"),
        (TimeoutError(), "its log says why"),
        (ssl.SSLCertVerificationError(1, "x"), "its certificate is not trusted"),
    ],
)
def test_causes_are_those_that_the_module_knows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: OSError, told: str
) -> None:
    if isinstance(error, ssl.SSLCertVerificationError):
        error.verify_message = "x"
    monkeypatch.setenv("MUSTER_RECORDED", str(RECORDED))
    program.say("refused", "unable to refresh RMQ manifest", program.cause_of(error))
    assert told in view("pod", "", capsys.readouterr().err).trouble


def test_a_report_is_a_message_in_text() -> None:
    text = program.report_text('a"b', "stop", {"success": "True"})
    assert 'experiment_id { value: "a\\"b" }' in text
    assert text.count("{") == text.count("}")
    assert 'fields { key: "success" value: "True" } }' in text
