# SPDX-License-Identifier: GPL-3.0-or-later
"""What leaf-ai/studio-go-runner reads in a request, against what is built. Beside each fact is where it was read.

Names of files are of the runner, unless they begin with studio/: those are of the wheel studioml 0.0.49.
"""

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


ARTIFACTS = ("workspace", "modeldir", "retval", "output", "tb", "_metrics", "_metadata")
FACTS: dict[str, tuple[t.Callable[[], t.Any], t.Any]] = {
    "Config.Env is map[string]string": (
        lambda: made(env={"A": "1"}, secret_env={"B": Sensitive("x")})["config"]["env"],
        {"AWS_DEFAULT_REGION": "us-west1", "A": "1", "B": "x"},
    ),
    "cmd/runner/resource.go, allocResource: humanize.ParseBytes of an empty text is an error; gpuMem may be missing": (
        lambda: (
            experiment()["resources_needed"],
            experiment(resources=Resources(2, 1, "1 GiB", "1gb", "4gb"))["resources_needed"]["gpuMem"],
            {name: spec.get("default") for name, spec in studioml_experiment.RESOURCES.items()},
        ),
        ({"cpus": 1, "gpus": 0, "ram": "2gb", "hdd": "3gb"}, "4gb", {"cpus": 1, "gpus": 0, "ram": "2gb", "hdd": "3gb", "gpu_mem": None}),
    ),
    "cmd/runner/processor.go, newProcessor: without a workspace the execution class cannot be determined; studio/runner.py, main, and "
    "studio/db_providers/keyvalue_provider.py, _get_mutable_artifact_key: the client's artifacts at its keys; "
    "internal/runner/artifacts.go, "
    "Fetch: archive.IsTar(art.Key), or it is an error": (
        lambda: {name: (row["mutable"], row["unpack"], row["key"]) for name, row in experiment()["artifacts"].items()},
        {
            **{name: (True, True, f"experiments/1606243639_de40/{name}.tar") for name in ARTIFACTS},
            "workspace": (False, True, "blobstore/00.tar"),
        },
    ),
    "internal/runner/storage.go, NewStorage: scheme s3, the host, then bucket and key where the fields are empty": (
        lambda: [experiment()["artifacts"]["output"][name] for name in ("qualified", "bucket")],
        ["s3://storage.googleapis.com/leaf-store/experiments/1606243639_de40/output.tar", "leaf-store"],
    ),
    "internal/request/request.go, AWSCredential: access_key, secret_access_key; interface.md: secret_key; storage.go refuses none": (
        lambda: [row["credentials"]["aws"] for row in experiment()["artifacts"].values()],
        [{"access_key": "GOOG1E", "secret_access_key": "canary-hmac", "secret_key": "canary-hmac", "region": "us-west1"}] * len(ARTIFACTS),
    ),
    "cmd/runner/handle.go takes credentials from config.env, which the program gets, only where an artifact has none": (
        lambda: [name for name in made()["config"]["env"] if "KEY" in name], [],
    ),
    "cmd/runner/processor.go: Config.Database.ProjectId is the project of metrics and logs": (
        lambda: made(project="leaf")["config"]["database"]["projectId"], "leaf",
    ),
    "s3://HOST does not say whether there is TLS; for the stand-in (the client sends its whole configuration, "
    "unencrypted_payload_builder.py)": (
        lambda: made()["config"]["storage"], {"type": "s3", "endpoint": "https://storage.googleapis.com", "bucket": "leaf-store"},
    ),
    "pythonenv.go: pip install {{range Pips}}; prefixes such as tensorflow== are compared before, so plain ones stay plain": (
        lambda: experiment(pythonenv=("tensorflow==2.4.1", "torch>=1.0", "-e git+https://h/r@c#egg=x"))["pythonenv"],
        ["tensorflow==2.4.1", "'torch>=1.0'", "-e 'git+https://h/r@c#egg=x'"],
    ),
    "processor.go, calcTimeLimit: a time_added of 10 or less leaves the life time out": (lambda: experiment()["time_added"], 1606243639.5),
}  # fmt: skip
"""What upstream has, with where it was read -> what is built for it."""


# Shows row 002.13.
@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_of_upstream(fact: str) -> None:
    built, expected = FACTS[fact]
    assert built() == expected


@given(st.lists(st.text(st.characters(codec="ascii", exclude_characters="\0")), max_size=4))
def test_a_shell_reads_the_arguments_as_they_were_given(args: list[str]) -> None:
    """internal/runner/pythonenv.go: python {{Filename}} {{range Args}}; studio/experiments/experiment.py quotes them."""
    found = experiment(args=tuple(args), filename="my train.py")
    assert shlex.split(" ".join([found["filename"], *found["args"]])) == ["my train.py", *args]


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
