# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every option of every module with values that no sane task has: a result, or one error that names what is wrong.

The tasks are the examples of each module. One value in each is replaced, at any depth, and the module runs in check mode and for real,
against a cluster and clouds in memory, on a machine where it can change nothing (fakes/barred.py). MUSTER_HOSTILE sets how many tasks are
tried in all; MUSTER_HOSTILE_SEED repeats a run.
"""

from __future__ import annotations

import collections
import copy
import functools
import importlib
import json
import os
import random
import signal
import traceback
import types
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from botocore import xform_name
from botocore.exceptions import ParamValidationError
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from ansible_collections.muster.ml.plugins.module_utils._edge import aws, gcp
from ansible_collections.muster.ml.plugins.module_utils._edge.failure import EXPECTED, failure
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._edge.options import full_spec
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, connector
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import to_plain_values
from ansible_collections.muster.ml.tests.unit.fakes.aws import Account, Pages, Refusal
from ansible_collections.muster.ml.tests.unit.fakes.barred import barred
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.google import Google, error

MODULES = sorted(path.stem for path in (Path(__file__).parents[4] / "plugins" / "modules").glob("*.py"))
PLUGINS = "ansible_collections.muster.ml.plugins"
TASKS = int(os.environ.get("MUSTER_HOSTILE", "2000"))
SEED = int(os.environ.get("MUSTER_HOSTILE_SEED") or random.SystemRandom().randrange(1 << 32))
CANARY = "canary-f00dfeed"
CPU_SECONDS, SECONDS = 10.0, 300.0

TEXTS: tuple[t.Any, ...] = (
    "", " ", "x", "X_y", "a\x00b", "a\nb", "\x1b[31m", "ä", "\U0001f600", "\ud800", "a" * 300, "a" * 70000, "-1", "0", "1e400", "NaN", "null", "~",
    "../../etc/passwd", "relative/path", "/", "/nonexistent/a/b", "a/b", "a:b", "a=b", "@", "%", "%zz", "*", "{{ 1/0 }}", "{% raw %}", "[", "{",
    "http://127.0.0.1:abc/", "http://[::1/", "http://", "http://h:99999", "//h", "s3://", "gs:///x", "http://h:0/", "https://\x00", "::1", "fe80::1%eth0",
    f"https://user:{CANARY}@h:abc/", f"amqp://user:{CANARY}@h/x y", "10.0.0.0/33", "1.2.3", "10Gi", "-5Gi", "1.5.5", "999999999999Ei", "1h", "--help",
    "$(X)", "${X", "on", "${X}", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "-----BEGIN PRIVATE KEY-----", "٣", "²", "١٢",
)  # fmt: skip
NUMBERS: tuple[t.Any, ...] = (0, -1, 1, 2, 65536, 2**31, 2**63, 2**64, 10**40, 1.5, -0.0, float("inf"), float("nan"), 1e308)
OTHERS: tuple[t.Any, ...] = (
    None, True, False, [], {}, [None], [[]], [{}], ["x"], [1], {"a": None}, {"": ""}, {1: 2}, {None: "x"}, {"name": None}, {"name": ["x"]}, {"name": 1},
    {"a": {"b": [1, {"c": None}]}}, "1", ("x",), b"x", [["x"], {"x": "y"}], {"limits": "1"}, {"limits": ["1"]}, {"limits": {"cpu": [1]}},
    {"limits": {"nvidia.com/gpu": "x"}}, {"limits": {"cpu": True}}, [{"name": ["x"]}], [{"name": "x", "value": {"a": 1}}], [{"mountPath": 1}],
    {"nodeAffinity": True}, {"matchLabels": {"a": 1}}, {"a" * 300: "x"}, [{"name": "x"}] * 1100, {"requests": {"memory": "1e400"}},
)  # fmt: skip


def deep(levels: int) -> t.Any:
    found: t.Any = "x"
    for _level in range(levels):
        found = {"a": [found]}
    return found


# Tasks


@functools.cache
def module_of(name: str) -> t.Any:
    return importlib.import_module(f"{PLUGINS}.modules.{name}")


@functools.cache
def kind_of(name: str) -> str:
    source = Path(module_of(name).__file__).read_text(encoding="utf-8")
    return next(kind for kind in ("module", "host", "aws", "gcp") if f"    {kind}_main(" in source)


def spec_of(name: str) -> dict[str, t.Any]:
    own = dict(module_of(name).ARGUMENT_SPEC)
    return {"module": full_spec, "aws": aws.full_spec, "gcp": gcp.full_spec, "host": dict}[kind_of(name)](own)


PROJECT = {"project": "p", "auth_kind": "accesstoken", "access_token": CANARY}
CLUSTER = {"name": "c", "kubernetes_version": "1.36.3", "etcd_version": "3.6.5", "coredns_version": "1.12.4"}
LITERAL = {
    "files": {"train.py": "print(1)"}, "cluster": CLUSTER, "programs": {"kubelet": "/nonexistent/kubelet"},
    "login_password": CANARY, "password": CANARY, "login_host": "127.0.0.1", "host": "https://127.0.0.1:6443",
}  # fmt: skip
"""Instead of what examples have from variables."""


@functools.cache
def examples(name: str) -> list[dict[str, t.Any]]:
    found = []
    for task in yaml.safe_load(module_of(name).EXAMPLES):
        given = task.get(f"muster.ml.{name}")
        if given is None:
            continue
        params = {
            key: LITERAL.get(key, "x") if isinstance(value, str) and value.startswith("{{") else value
            for key, value in given.items()
        }
        if kind_of(name) == "gcp":
            params = {**PROJECT, **params}
        found.append(params)
    return found


class Hostile:
    """Draws tasks of one module."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.random = name, random.Random(f"{seed}/{name}")
        self.spec = spec_of(name)

    def task(self) -> tuple[dict[str, t.Any], str]:
        params = copy.deepcopy(self.random.choice(examples(self.name)))
        if "state" in self.spec and self.random.random() < 0.1:
            params["state"] = "absent"
        where = self._replaced(params) if self.random.random() < 0.5 else self._set(params, self.spec, "")
        return params, where

    def _set(self, params: dict[str, t.Any], spec: t.Mapping[str, t.Any], path: str) -> str:
        """Give any option of the module a value, or one below it where it has options."""
        name = self.random.choice(sorted(spec))
        option = spec[name]
        below = option.get("options")
        if below and self.random.random() < 0.7:
            inner = params.get(name)
            rows = option.get("elements") == "dict"
            row = inner[0] if rows and isinstance(inner, list) and inner else inner
            row = row if isinstance(row, dict) else {key: LITERAL.get(key, "x") for key, one in below.items() if one.get("required")}
            where = self._set(row, below, f"{path}{name}.")
            params[name] = [row] if rows else row
            return where
        params[name] = self.value(option.get("type", "str"))
        return f"{path}{name} = {params[name]!r:.90}"

    def _replaced(self, params: dict[str, t.Any]) -> str:
        """Replace what the example has somewhere, or put something beside it."""
        places: list[tuple[t.Any, t.Any, str]] = []

        def walk(value: t.Any, path: str) -> None:
            rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
            for key, item in rows:
                places.append((value, key, f"{path}.{key}"))
                walk(item, f"{path}.{key}")

        walk(params, "")
        if not places:
            return self._set(params, self.spec, "")
        holder, key, path = self.random.choice(places)
        drawn = self.random.random()
        if isinstance(holder, dict) and drawn < 0.1 and holder is not params:
            key = self.random.choice(TEXTS)
        elif isinstance(holder, list) and drawn < 0.1:
            holder.append(copy.deepcopy(holder[key]))
            return f"{path} twice"
        holder[key] = self.value("raw" if holder is not params else self.spec.get(key, {}).get("type", "raw"), holder.get(key) if isinstance(holder, dict) else None)
        return f"{path} = {holder[key]!r:.90}"

    def value(self, kind: str, instead_of: t.Any = None) -> t.Any:
        choices: tuple[t.Any, ...] = TEXTS + NUMBERS + OTHERS
        if self.random.random() < 0.7:
            if kind in ("str", "path") or isinstance(instead_of, str):
                choices = TEXTS
            elif kind in ("int", "float"):
                choices = NUMBERS
            elif kind in ("list", "dict", "raw"):
                choices = OTHERS
        if self.random.random() < 0.01:
            return deep(self.random.choice((3, 200, 3000)))
        return copy.deepcopy(self.random.choice(choices))


# Runs


class TimeIsUp(BaseException):
    """The module computes, or waits, for too long."""


def _time_is_up(_number: int, _frame: t.Any) -> None:
    raise TimeIsUp


class StrictClient:
    """A client of botocore: requests are judged by AWS's own description, and what the fake has no answer to is refused."""

    def __init__(self, account: Account, service: str) -> None:
        self._account, self._service, self._model = account, service, service_model(service)
        self.meta = types.SimpleNamespace(region_name="eu-west-1")

    def can_paginate(self, operation: str) -> bool:
        return operation != "list_open_id_connect_providers"

    def get_paginator(self, operation: str) -> Pages:
        return Pages(getattr(self, operation))

    def __getattr__(self, operation: str) -> t.Callable[..., t.Any]:
        def call(**request: t.Any) -> t.Any:
            names = {xform_name(name): name for name in self._model.operation_names}
            shape = self._model.operation_model(names[operation]).input_shape
            report = ParamValidator().validate(request, shape)
            if report.has_errors():
                raise ParamValidationError(report=report.generate_report())
            try:
                return self._account.call(self._service, operation, request)
            except (AttributeError, KeyError, TypeError, ValueError, IndexError, AssertionError):
                raise Refusal("ValidationException", "no such value") from None

        return call


@functools.cache
def service_model(service: str) -> ServiceModel:
    return ServiceModel(Loader().load_service_model(service, "service-2"), service)


class StrictSession:
    """google.cloud's session: a body has to be JSON, and what the fake has no answer to is refused."""

    def __init__(self, google: Google) -> None:
        self._google = google

    def request(self, verb: str, url: str, *, json: t.Any, params: t.Any) -> tuple[int, t.Any]:
        json_text(json)
        try:
            return self._google.request(verb, url, json=json, params=params)
        except (AttributeError, KeyError, TypeError, ValueError, IndexError):
            return error(400, "invalid", "no such value")


def json_text(body: t.Any) -> str:
    return json.dumps(body, allow_nan=False)


class World:
    """What modules reach."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.account, self.google = Account(), Google()
        patch.setattr(aws.Login, "client", lambda _login, service: StrictClient(self.account, service))
        patch.setattr(gcp, "HttpSession", lambda _params: StrictSession(self.google))
        for name in [name for name in os.environ if name.startswith(("K8S_AUTH_", "AWS_", "GCP_", "KUBE"))]:
            patch.delenv(name)
        patch.setenv("AWS_REGION", "eu-west-1")

    def context(self, name: str, params: dict[str, t.Any], told: list[str], *, check: bool, far: bool) -> t.Any:
        given: dict[str, t.Any] = {"params": params, "check": check, "diff": True, "warn": told.append, "progress": told.append}
        kind = kind_of(name)
        if kind == "module":
            return Context(**given, connect=connector(params) if far else FakeCluster)
        return aws.AwsContext(**given, login=aws.Login(params)) if kind == "aws" else HostContext(**given)

    def run(self, name: str, params: dict[str, t.Any], *, check: bool, far: bool = False) -> str | None:
        """What is wrong with the end of the task: the place of an error in Python, a secret; or None."""
        module = module_of(name)
        try:
            validated = ArgumentSpecValidator(spec_of(name), **getattr(module, "CONSTRAINTS", {})).validate(params)
        except Exception:  # noqa: BLE001  (Ansible's own, which the module never sees)
            return None
        if validated.error_messages:
            return None
        told: list[str] = []
        signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            with barred(self.folder):
                found = self.result(name, validated.validated_parameters, told, check=check, far=far)
            said = json.dumps(remove_values([found, told], validated._no_log_values))
        except TimeIsUp as error:
            return f"no end in time: {place(error)}"
        except Exception as error:  # noqa: BLE001  (what this test looks for)
            return place(error)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        if CANARY in said:
            return f"a secret is shown: {said[max(0, said.index(CANARY) - 60) :][:100]}"
        return None

    def result(self, name: str, params: dict[str, t.Any], told: list[str], *, check: bool, far: bool) -> t.Any:
        try:
            plain = to_plain_values(params)
            return module_of(name).execute(self.context(name, plain, told, check=check, far=far))
        except EXPECTED as error:
            return failure(error)


def place(error: BaseException) -> str:
    """The kind of an error, and where in the collection it came up."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/plugins/" in frame.filename]
    last = traceback.extract_tb(error.__traceback__)[-1]
    fake = " (in a fake)" if "/tests/" in last.filename and "barred" not in last.filename else ""
    where = f"{frames[-1].filename.partition('/plugins/')[2]}:{frames[-1].lineno}" if frames else f"{last.filename}:{last.lineno}"
    return f"{type(error).__name__} at {where}{fake}: {str(error)[:80]}"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[World]:
    before = [(number, signal.signal(number, _time_is_up)) for number in (signal.SIGVTALRM, signal.SIGALRM)]
    yield World(tmp_path, monkeypatch)
    for number, handler in before:
        signal.signal(number, handler)


@pytest.mark.parametrize("name", MODULES)
def test_hostile_values_end_in_a_result_or_in_one_error(name: str, world: World, record_property: t.Any) -> None:
    drawn = Hostile(name, SEED)
    wrong: collections.Counter[str] = collections.Counter()
    first: dict[str, str] = {}
    for number in range(max(1, TASKS // len(MODULES))):
        params, where = drawn.task()
        found = world.run(name, params, check=number % 2 == 0, far=number % 5 == 4)
        if found:
            wrong[found] += 1
            first.setdefault(found, where)
    if os.environ.get("MUSTER_HOSTILE_LOG"):
        with open(os.environ["MUSTER_HOSTILE_LOG"], "a") as f:
            for found, n in wrong.items():
                f.write(f"{name}\t{n}\t{found!r}\t{first[found]!r}\n")
    assert not wrong, f"seed {SEED}: " + "\n".join(f"{count} x {found}; first {first[found]}" for found, count in wrong.most_common())
