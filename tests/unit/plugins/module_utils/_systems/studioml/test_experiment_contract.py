# SPDX-License-Identifier: GPL-3.0-or-later

"""What leaf-ai/studio-go-runner reads in a request, against what is built. Beside each fact is where it was read.

Names of files are of the runner, unless they begin with studio/: those are of the wheel studioml 0.0.49.
"""

from __future__ import annotations

import dataclasses
import io
import json
import shlex
import tarfile
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import results
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.experiment import Experiment, Resources, Storage, request, seconds
from ansible_collections.muster.ml.plugins.modules import studioml_experiment

STORAGE = Storage("leaf-store", "https://storage.googleapis.com", "us-west1", Sensitive("GOOG1E"), Sensitive("canary-hmac"))
LEAST = Experiment("1606243639_de40", "rmq_test", "train.py", Resources(1, 0, "2gb", "3gb"), workspace="blobstore/00.tar")


def made(**more: t.Any) -> dict[str, t.Any]:
    wanted = dataclasses.replace(LEAST, **more)
    wanted.check()
    return request(wanted, STORAGE, 1606243639.5)


def experiment(**more: t.Any) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", made(**more)["experiment"])


# Types of Go's fields: internal/request/request.go. A value of another type makes the whole request unreadable; null is no value.

TEXT, NUMBER, FLAG, TEXTS, MAP = (str,), (int, float), (bool,), (list,), (dict,)
FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    "experiment": {
        "args": TEXTS, "artifacts": MAP, "filename": TEXT, "info": MAP, "key": TEXT, "pythonenv": TEXTS, "pythonver": TEXT,
        "resources_needed": MAP, "status": TEXT, "time_added": NUMBER,
    },
    "config": {"database": MAP, "env": MAP, "pip": TEXTS, "verbose": TEXT},
}  # fmt: skip


@pytest.mark.parametrize("part", FIELDS)
def test_every_field_that_is_read_has_its_type(part: str) -> None:
    found = made()[part]
    assert {name: type(found[name]) in (*kinds,) for name, kinds in FIELDS[part].items()} == dict.fromkeys(FIELDS[part], True)


def test_texts_that_are_optional_are_texts_or_null() -> None:
    """max_duration and experimentLifetime are string; Go leaves a string empty at null."""
    assert experiment()["max_duration"] is None
    assert experiment(max_duration="20m")["max_duration"] == "20m"
    assert "experimentLifetime" not in made()["config"]
    assert made(lifetime="30m")["config"]["experimentLifetime"] == "30m"


def test_variables_are_texts() -> None:
    """Config.Env is map[string]string."""
    assert made(env={"A": "1"}, secret_env={"B": Sensitive("x")})["config"]["env"] == {
        "AWS_DEFAULT_REGION": "us-west1", "A": "1", "B": "x",
    }  # fmt: skip


def test_memory_and_disk_are_always_there() -> None:
    """cmd/runner/resource.go, allocResource: humanize.ParseBytes of an empty text is an error; gpuMem may be missing."""
    assert experiment()["resources_needed"] == {"cpus": 1, "gpus": 0, "ram": "2gb", "hdd": "3gb"}
    assert experiment(resources=Resources(2, 1, "1 GiB", "1gb", "4gb"))["resources_needed"]["gpuMem"] == "4gb"
    defaults = {name: spec.get("default") for name, spec in studioml_experiment.RESOURCES.items()}
    assert defaults == {"cpus": 1, "gpus": 0, "ram": "2gb", "hdd": "3gb", "gpu_mem": None}


def test_there_is_an_artifact_workspace() -> None:
    """cmd/runner/processor.go, newProcessor: without it the execution class cannot be determined."""
    workspace = experiment()["artifacts"]["workspace"]
    assert (workspace["mutable"], workspace["unpack"], workspace["key"]) == (False, True, "blobstore/00.tar")


def test_artifacts_are_those_of_the_client_at_its_keys() -> None:
    """studio/runner.py, main; studio/db_providers/keyvalue_provider.py, _get_mutable_artifact_key."""
    artifacts = experiment()["artifacts"]
    assert set(artifacts) == {"workspace", "modeldir", "retval", "output", "tb", "_metrics", "_metadata"}
    for name in set(artifacts) - {"workspace"}:
        assert artifacts[name]["key"] == f"experiments/1606243639_de40/{name}.tar"
        assert (artifacts[name]["mutable"], artifacts[name]["unpack"]) == (True, True)


def test_an_artifact_names_host_bucket_and_key() -> None:
    """internal/runner/storage.go, NewStorage: scheme s3, the host, then bucket and key where the fields are empty."""
    output = experiment()["artifacts"]["output"]
    key = "experiments/1606243639_de40/output.tar"
    assert output["qualified"] == f"s3://storage.googleapis.com/leaf-store/{key}"
    assert (output["bucket"], output["key"]) == ("leaf-store", key)


def test_what_is_unpacked_ends_as_a_tar_file_does() -> None:
    """internal/runner/artifacts.go, Fetch: archive.IsTar(art.Key), or it is an error."""
    assert {row["key"].rpartition(".")[2] for row in experiment()["artifacts"].values()} == {"tar"}


def test_every_artifact_has_credentials() -> None:
    """internal/request/request.go, AWSCredential: access_key, secret_access_key and interface.md: secret_key. storage.go refuses none."""
    for artifact in experiment()["artifacts"].values():
        assert artifact["credentials"] == {
            "aws": {"access_key": "GOOG1E", "secret_access_key": "canary-hmac", "secret_key": "canary-hmac", "region": "us-west1"}
        }


def test_the_program_does_not_get_the_credentials_in_its_environment() -> None:
    """cmd/runner/handle.go takes them from config.env only where an artifact has none."""
    assert [name for name in made()["config"]["env"] if "KEY" in name] == []


def test_the_project_of_metrics_and_logs_is_in_the_database() -> None:
    """cmd/runner/processor.go: Config.Database.ProjectId."""
    assert made(project="leaf")["config"]["database"]["projectId"] == "leaf"


def test_the_storage_says_whether_there_is_tls() -> None:
    """s3://HOST does not. Ours, for the stand-in; the client sends its whole configuration (unencrypted_payload_builder.py)."""
    assert made()["config"]["storage"] == {"type": "s3", "endpoint": "https://storage.googleapis.com", "bucket": "leaf-store"}


@given(st.lists(st.text(st.characters(codec="ascii", exclude_characters="\0")), max_size=4))
def test_a_shell_reads_the_arguments_as_they_were_given(args: list[str]) -> None:
    """internal/runner/pythonenv.go: python {{Filename}} {{range Args}}; studio/experiments/experiment.py quotes them."""
    found = experiment(args=tuple(args), filename="my train.py")
    assert shlex.split(" ".join([found["filename"], *found["args"]])) == ["my train.py", *args]


def test_packages_are_words_of_the_script() -> None:
    """pythonenv.go: pip install {{range Pips}}. Prefixes such as tensorflow== are compared before, so plain ones stay plain."""
    lines = ("tensorflow==2.4.1", "torch>=1.0", "-e git+https://h/r@c#egg=x")
    assert experiment(pythonenv=lines)["pythonenv"] == ["tensorflow==2.4.1", "'torch>=1.0'", "-e 'git+https://h/r@c#egg=x'"]


@pytest.mark.parametrize("name", ["a b", "a/b", 'a"b', "$(x)", "", "-a", "é"])
def test_a_name_that_the_script_would_change_is_refused(name: str) -> None:
    """pythonenv.go: mkdir -p .../{{Key}}, and between quotes for jq; ioutil.TempDir("", Key) takes no separator."""
    with pytest.raises(InvalidInput):
        made(name=name)
    with pytest.raises(InvalidInput):
        made(project=name or "a b")


@pytest.mark.parametrize("value", ['a"', "$HOME", "`x`", "a\\b", "a\nb"])
def test_a_value_that_the_script_would_change_is_refused(value: str) -> None:
    """pythonenv.go: export {{key}}="{{value}}"."""
    with pytest.raises(InvalidInput, match="which the runner's shell would change"):
        made(env={"A": value})


@pytest.mark.parametrize(("text", "length"), [("30m", 1800.0), ("1h30m", 5400.0), ("1.5h", 5400.0), ("20ms", 0.02)])
def test_durations_are_those_of_go(text: str, length: float) -> None:
    """time.ParseDuration. processor.go, calcTimeLimit: a max_duration that it cannot read ends the experiment at once."""
    made(max_duration=text, lifetime=text)
    assert seconds(text) == length


@pytest.mark.parametrize("text", ["20", "1d", "", "20 m", "-1m"])
def test_durations_that_go_cannot_read_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        made(max_duration=text)
    with pytest.raises(InvalidInput):
        made(lifetime=text)


def test_life_begins_with_the_submission() -> None:
    """processor.go, calcTimeLimit: a time_added of 10 or less leaves the life time out."""
    assert experiment()["time_added"] == 1606243639.5


def test_nothing_in_the_note_is_secret() -> None:
    spec = json.dumps(dataclasses.replace(LEAST, secret_env={"TOKEN": Sensitive("canary-token")}).spec())
    assert "canary" not in spec
    assert "TOKEN" in spec


# Output: internal/runner/pythonenv.go, cmd/runner/processor.go

SEED = """\
+ set -v
+ trap 'fail "The execution was aborted because a command exited with an error status code."' ERR
{"studioml":{"experiment":{"key":"1606243639_de40"}}}
Epoch 10/10
{"experiment": {"loss": 0.2437, "acc": 0.93}}
{"experiment": {"completed": "true"}}
[{"op": "add", "path": "/a", "value": 1}]
{"not json
result=$?
+ result=0
echo "{\\"studioml\\": {\\"stop_time\\": \\"`date`\\"}}" | jq -c '.'
"""
STOP = '{"studioml":{"stop_time":"2020-11-24T10:50:13"}}\n'


def archive(text: str, name: str = "output") -> io.BytesIO:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text.encode()))
    file.seek(0)
    return file


@pytest.mark.parametrize("name", ["output", "./output"])
def test_an_output_as_in_the_seed_is_read(name: str) -> None:
    """Seed 002: tar xf output.tar gives the file output. The script is in it, as it is read (set -v) and as it is run (set -x)."""
    found = results.read(archive(SEED + STOP, name), [])
    assert found.ended == "finished"
    assert found.results["experiment"] == {"loss": 0.2437, "acc": 0.93, "completed": "true"}
    assert results.read(archive(SEED, name), []).ended is None
    assert results.read(archive(SEED + STOP, "other"), []).ended is None


@pytest.mark.parametrize(
    "text",
    [
        "The execution was aborted because a command exited with an error status code.\n",
        "no line break before itfailed when downloading user data\nexit status 1",
        "failed when downloading user data\nNoSuchKey",
        f"failed when downloading user data\n{STOP}",
    ],
)
def test_an_output_of_a_failure_is_one(text: str) -> None:
    """processor.go, deployAndRun and outputErr, which appends to the file."""
    assert results.read(archive(SEED + text), []).ended == "failed"


def test_results_are_merged_in_their_order() -> None:
    """copyToMetaData: documents are merge patches (RFC 7386)."""
    lines = [b'{"a": {"b": 1, "c": 2}}', b'{"a": {"b": null, "d": {"e": 1}}}', b'{"x": 1}', b'{"x": {"y": 2}}']
    assert results.judged(lines, []).results == {"a": {"c": 2, "d": {"e": 1}}, "x": {"y": 2}}


def test_last_lines_are_shown_without_secrets() -> None:
    secret = Sensitive("canary" * 60)
    found = results.judged([f"export KEY={secret.reveal()}".encode(), b"\xff", b""], [secret])
    assert found.last == ("export KEY=<redacted>", "\ufffd")


def test_something_else_than_a_tar_file_is_an_error() -> None:
    with pytest.raises(Failed, match="not a tar file"):
        results.read(io.BytesIO(b"<html>" * 200), [])
