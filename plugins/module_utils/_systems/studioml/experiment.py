# SPDX-License-Identifier: GPL-3.0-or-later
"""An experiment of StudioML as the client writes it into a request, with what the runner makes of each field. No I/O.

Read in the code of leaf-ai/studio-go-runner (files without another name) and in the wheel studioml 0.0.49:

- The runner writes key, project, file name, arguments, packages and variables into a shell script as they are (pythonenv.go). The client
  quotes the arguments (experiments/experiment.py). So arguments, packages and the file name are quoted here, and what stands inside of
  other quotes in the script is refused if the shell would change it.
- Memory and disk must be sizes, or the request is refused (cmd/runner/resource.go); ``hdd`` also limits the artifacts (processor.go,
  fetchAll). A ``max_duration`` that Go cannot read counts as 0, which ends an experiment before it begins (calcTimeLimit).
- An artifact is fetched from and stored at ``bucket`` and ``key``; ``qualified`` has the host (artifacts.go, storage.go). With
  ``unpack`` the key must end as a tar file does. What is ``mutable`` is stored at the end, if there is something in its folder.
- Credentials of an artifact are ``aws.access_key`` and ``aws.secret_access_key`` (internal/request/request.go, and the client's
  credentials.py). The example in the description of the interface has ``secret_key``. Both are written: a runner passes over names that it
  does not know.
- While it runs, everything mutable is stored in intervals of ``config.saveWorkspaceFrequency``, if that is more than 2 minutes, and else
  every 10 hours (processor.go, checkpointStart).
- The region is AWS_DEFAULT_REGION of ``config.env``, if the credentials have none (internal/s3/s3.go).
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import typing as t
from collections.abc import Mapping

from ..._core.errors import InvalidInput
from ..._core.sensitive import Sensitive
from ..._manifests.meta import check_count

Request = dict[str, t.Any]

GOOGLE = "https://storage.googleapis.com"
_FOLDERS = ("modeldir", "retval", "output", "tb", "_metrics", "_metadata")
"""Artifacts that an experiment fills, with the client's names."""
_QUEUE = re.compile(r"rmq_[-.\w]+", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][-.\w]{0,199}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z]\w*", re.ASCII)
_PYTHON = re.compile(r"\d+(\.\d+){0,2}", re.ASCII)
_DURATION = re.compile(r"(\d+(\.\d+)?(ms|h|m|s))+", re.ASCII)
_LONGEST_S = 2**63 / 1e9
"""Seconds of the longest duration of Go, whose durations are nanoseconds in 64 bits."""
_SIZE = re.compile(r"\d+(\.\d+)? ?([kmgtpe]i?b?|b)?", re.IGNORECASE | re.ASCII)
_CHANGED_BY_SHELL = '"$`\\\n'


@dataclasses.dataclass(frozen=True)
class Storage:
    """A bucket of an S3-compatible store, with the credentials that runners get for it."""

    bucket: str
    endpoint: str
    region: str
    access_key: Sensitive
    secret_key: Sensitive

    @property
    def host(self) -> str:
        return self.endpoint.partition("://")[2].rstrip("/")

    def check(self) -> None:
        """Raise if no URL can be built from it."""
        scheme, _colon, host = self.endpoint.partition("://")
        if scheme not in ("http", "https") or not host.rstrip("/") or "/" in host.rstrip("/"):
            raise InvalidInput(f"endpoint_url: {self.endpoint} is not http:// or https:// with a host.", f"Such as {GOOGLE}.")
        if not self.bucket or "/" in self.bucket:
            raise InvalidInput(f"bucket: '{self.bucket}' is not the name of a bucket.", "Give the name alone, or gs://NAME.")


@dataclasses.dataclass(frozen=True)
class Resources:
    """The resources that a runner must have free to take the experiment."""

    cpus: int
    gpus: int
    ram: str
    hdd: str
    gpu_mem: str | None = None

    def as_request(self) -> Request:
        found: Request = {"cpus": self.cpus, "gpus": self.gpus, "ram": self.ram, "hdd": self.hdd}
        return found if self.gpu_mem is None else {**found, "gpuMem": self.gpu_mem}


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One experiment; ``workspace`` is the key of its packed files in the bucket."""

    name: str
    queue: str
    filename: str
    resources: Resources
    workspace: str = ""
    args: tuple[str, ...] = ()
    pythonver: str = "3"
    pythonenv: tuple[str, ...] = ()
    project: str | None = None
    lifetime: str | None = None
    max_duration: str | None = None
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    secret_env: Mapping[str, Sensitive] = dataclasses.field(default_factory=dict)

    @property
    def folder(self) -> str:
        return f"experiments/{self.name}/"

    @property
    def output(self) -> str:
        return f"{self.folder}output.tar"

    @property
    def note(self) -> str:
        """The object key of the submission note, stored next to the runner's output."""
        return f"{self.folder}muster.json"

    def check(self) -> None:
        """Raise for the first option that the runner would misread."""
        _check_texts(self)
        for name, count in (("cpus", self.resources.cpus), ("gpus", self.resources.gpus)):
            check_count(count, f"resources_needed.{name}")
        for name, size in (("ram", self.resources.ram), ("hdd", self.resources.hdd), ("gpu_mem", self.resources.gpu_mem)):
            if size is not None and not _SIZE.fullmatch(size):
                raise InvalidInput(f"resources_needed.{name}: '{size}' is not a size.", "Write a unit, as in 6gb.")
        for name, duration in (("lifetime", self.lifetime), ("max_duration", self.max_duration)):
            if duration is not None and not (_DURATION.fullmatch(duration) and 0 < seconds(duration) < _LONGEST_S):
                raise InvalidInput(
                    f"{name}: '{duration}' is not a duration that an experiment can have.",
                    "Such as 30m or 1h30m; the units are h, m, s, ms.",
                )
        _check_env({**self.env, **self.secret_env})

    def spec(self) -> Request:
        """The fields that identify the experiment, without secrets. They are stored in the note, and compared with it."""
        own = ("queue", "workspace", "filename", "pythonver", "project", "lifetime", "max_duration")
        return {
            **{name: getattr(self, name) for name in own}, "args": list(self.args), "pythonenv": list(self.pythonenv),
            "env": dict(self.env), "secret_env": sorted(self.secret_env), "resources_needed": self.resources.as_request(),
        }  # fmt: skip


def _check_texts(wanted: Experiment) -> None:
    plain = "Letters, digits, '-', '_' and '.' can be used: the runner writes it into a script as it is."
    for name, text, pattern, hint in (
        ("name", wanted.name, _NAME, plain),
        ("project", wanted.project, _NAME, plain),
        ("queue", wanted.queue, _QUEUE, "The client's names for queues of RabbitMQ begin with rmq_."),
        ("pythonver", wanted.pythonver, _PYTHON, "The runner takes its first Python whose version begins so, such as 3 or 3.7."),
    ):
        if text is not None and not pattern.fullmatch(text):
            raise InvalidInput(f"{name}: '{text}' cannot be used.", hint)
    for line in wanted.pythonenv:
        if not line.strip() or line.startswith("#") or (line.startswith("-") and not line.startswith("-e ")):
            raise InvalidInput(f"pythonenv: '{line}' is no package.", "Give each as pip freeze prints it, such as torch==2.15.0.")


def _check_env(variables: Mapping[str, str | Sensitive]) -> None:
    """Refuse values that a shell would change: the runner's script has them in double quotes. Values may be secrets: they are not shown."""
    for name, value in variables.items():
        if not _VARIABLE.fullmatch(name):
            raise InvalidInput(f"env: '{name}' is not the name of a variable.", "The runner drops one that begins with '_'.")
        text = str(Sensitive(value).reveal())
        found = [character for character in _CHANGED_BY_SHELL if character in text]
        if found:
            what = "a line break" if found[0] == "\n" else found[0]
            raise InvalidInput(f"env: the value of {name} has {what}, which the runner's shell would change.", "Encode it, as base64.")


def request(wanted: Experiment, storage: Storage, now: float) -> Request:
    """The request as the client builds it. ``now``: seconds since 1970. It has credentials: it is for encrypting only."""
    place = {"type": "s3", "endpoint": storage.endpoint, "bucket": storage.bucket}
    env = {name: Sensitive(value).reveal() for name, value in {**wanted.env, **wanted.secret_env}.items()}
    config: Request = {
        "database": {**place, "authentication": "none", "projectId": wanted.project or ""}, "storage": place, "cloud": {}, "pip": [],
        "saveWorkspaceFrequency": "5m", "verbose": "error", "resources_needed": wanted.resources.as_request(),
        "env": {"AWS_DEFAULT_REGION": storage.region, **env},
    }  # fmt: skip
    if wanted.lifetime is not None:
        config["experimentLifetime"] = wanted.lifetime
    artifacts = {
        "workspace": _artifact(storage, wanted.workspace, mutable=False),
        **{name: _artifact(storage, f"{wanted.folder}{name}.tar", mutable=True) for name in _FOLDERS},
    }
    experiment: Request = {
        "key": wanted.name, "filename": shlex.quote(wanted.filename), "args": [shlex.quote(word) for word in wanted.args],
        "pythonenv": [_package(line) for line in wanted.pythonenv], "pythonver": wanted.pythonver, "project": wanted.project,
        "resources_needed": wanted.resources.as_request(), "artifacts": artifacts, "status": "waiting", "time_added": now,
        "time_started": None, "time_last_checkpoint": None, "time_finished": None, "info": {}, "git": None, "metric": None,
        "max_duration": wanted.max_duration, "owner": "guest", "from_compl_service": False,
    }  # fmt: skip
    return {"config": config, "experiment": experiment}


def _package(line: str) -> str:
    """Quote a line of pip freeze for a shell; ``-e ADDRESS`` is two arguments."""
    option, space, address = line.partition(" ")
    return f"-e {shlex.quote(address)}" if space and option == "-e" else shlex.quote(line)


def _artifact(storage: Storage, key: str, *, mutable: bool) -> Request:
    secret = storage.secret_key.reveal()
    aws = {"access_key": storage.access_key.reveal(), "secret_access_key": secret, "secret_key": secret, "region": storage.region}
    return {
        "bucket": storage.bucket, "key": key, "qualified": f"s3://{storage.host}/{storage.bucket}/{key}",
        "mutable": mutable, "unpack": True, "credentials": {"aws": aws},
    }  # fmt: skip


def seconds(duration: str) -> float:
    """A duration as Go reads it."""
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"(\d+(?:\.\d+)?)(ms|h|m|s)", duration))
