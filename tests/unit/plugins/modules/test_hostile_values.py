# SPDX-License-Identifier: GPL-3.0-or-later
"""Every option of every module with values that no sane task has: a result, or one error that names what is wrong.

The tasks are the examples of each module. One value in each is replaced, at any depth, and the module runs in check mode and for real,
against a cluster and clouds in memory, on a machine where it can change nothing (fakes/barred.py). In check mode nothing may be written
anywhere. MUSTER_HOSTILE sets how many tasks are tried in all, and MUSTER_HOSTILE_SEED repeats a run.
"""

from __future__ import annotations

import collections
import copy
import functools
import importlib
import json
import os
import random
import re
import signal
import sys
import tempfile
import traceback
import types
import typing as t
import warnings
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
from cryptography.hazmat.primitives.asymmetric import rsa
from support.reading import parse

from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._edge import aws, gcp
from ansible_collections.muster.ml.plugins.module_utils._edge.failure import EXPECTED, failure
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._edge.options import full_spec
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, connector
from ansible_collections.muster.ml.plugins.module_utils._edge.values import checked
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import to_be_dropped
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import ServedKind
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import keys
from ansible_collections.muster.ml.tests.unit.fakes.aws import Account, Pages, Refusal
from ansible_collections.muster.ml.tests.unit.fakes.barred import barred
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.google import PROJECT, Google, error
from ansible_collections.muster.ml.tests.unit.fakes.models import write_model
from ansible_collections.muster.ml.tests.unit.fakes.rabbitmq import PASSWORD, FakeBroker

MODULES = sorted(path.stem for path in (Path(__file__).parents[4] / "plugins" / "modules").glob("*.py"))
PLUGINS = "ansible_collections.muster.ml.plugins"
TASKS = int(os.environ.get("MUSTER_HOSTILE", "3300"))
# The tasks of `make test` are always the same; `make histories`, which sets MUSTER_HOSTILE, draws others each time.
SEED = int(os.environ.get("MUSTER_HOSTILE_SEED") or (random.SystemRandom().randrange(1 << 32) if "MUSTER_HOSTILE" in os.environ else 1))
CANARY, URL_CANARY = "canary-f00dfeed", "canary-0ddba11"
CPU_SECONDS, SECONDS = 10.0, 300.0

BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))
TEXTS: tuple[t.Any, ...] = (
    "", " ", "x", "X_y", "a\x00b", "a\nb", "\x1b[31m", "ä", "\U0001f600", "\ud800", "a" * 300, "a" * 70000, "-1", "0", "1e400", "NaN",
    "null", "~",
    "../../etc/passwd", "relative/path", "/", "/nonexistent/a/b", "a/b", "a:b", "a=b", "@", "%", "%zz", "*", "{{ 1/0 }}", "{% raw %}",
    "[", "{", "[" * 5000, "{a: " * 2000, BOMB,
    "http://127.0.0.1:abc/", "http://[::1/", "http://", "http://h:99999", "//h", "s3://", "gs:///x", "http://h:0/", "https://\x00",
    "::1", "fe80::1%eth0",
    f"https://user:{URL_CANARY}@h:abc/", f"amqp://user:{URL_CANARY}@h/x y", "10.0.0.0/33", "1.2.3", "10Gi", "-5Gi", "1.5.5",
    "999999999999Ei", "1h", "--help",
    "$(X)", "${X", "on", "${X}", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "-----BEGIN PRIVATE KEY-----", "٣",
    "²", "١٢",
)  # fmt: skip
NUMBERS: tuple[t.Any, ...] = (0, -1, 1, 2, 65536, 2**31, 2**63, 2**64, 10**40, 1.5, -0.0, float("inf"), float("nan"), 1e308)
OTHERS: tuple[t.Any, ...] = (
    None, True, False, [], {}, [None], [[]], [{}], ["x"], [1], {"a": None}, {"": ""}, {1: 2}, {None: "x"}, {"name": None},
    {"name": ["x"]}, {"name": 1},
    {"a": {"b": [1, {"c": None}]}}, "1", ("x",), b"x", [["x"], {"x": "y"}], {"limits": "1"}, {"limits": ["1"]}, {"limits": {"cpu": [1]}},
    {"limits": {"nvidia.com/gpu": "x"}}, {"limits": {"cpu": True}}, [{"name": ["x"]}], [{"name": "x", "value": {"a": 1}}],
    [{"mountPath": 1}],
    {"nodeAffinity": True}, {"matchLabels": {"a": 1}}, {"a" * 300: "x"}, [{"name": "x"}] * 1100, {"requests": {"memory": "1e400"}},
)  # fmt: skip


def deep(levels: int) -> t.Any:
    found: t.Any = "x"
    for _level in range(levels):
        found = {"a": [found]}
    return found


def shown(value: t.Any) -> str:
    try:
        return f"{value!r:.90}"
    except RecursionError:
        return "deep"


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


SHA = "0" * 64
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFITo06Pk8sqCMoMHPaQiQ7BY3pjf7OE8BDcsnYozmIG experimenter"
CLUSTER = {"name": "c", "kubernetes_version": "1.36.3", "etcd_version": "3.6.5", "coredns_version": "1.12.4"}
DEFINITIONS: t.Any = {"users": [{"name": "runner", "password": CANARY, "tags": ["management"]}], "queues": [{"name": "q"}]}
MODEL = {"backend": "python", "max_batch_size": 8}


@functools.cache
def key_pairs() -> tuple[keys.Pair, keys.Pair]:
    pair = keys.rsa_pair(rsa.generate_private_key(65537, keys.BITS), Sensitive("phrase"))
    return pair, keys.new_signing_pair(to_be_dropped())


@functools.cache
def authority() -> str:
    with tempfile.TemporaryDirectory() as folder:
        context = HostContext(
            {"directory": f"{folder}/c", "brokers": {"a": ["a"]}, "trusted": {}, "delete_data": False, "state": "present"}, check=False
        )
        module_of("rabbitmq_certificates").execute(context)
        return next(Path(folder).rglob("ca.crt")).read_text(encoding="utf-8")


def literals() -> dict[str, t.Any]:
    """What examples have from variables, files and a machine of their own, by option."""
    pair, signer = key_pairs()
    return {
        "files": {"train.py": "print(1)", "data_loader.py": ""}, "cluster": CLUSTER, "program_paths": {"kubelet": "kubelet"},
        "sha256": SHA, "checksum": f"sha256:{SHA}", "password": CANARY, "login_password": CANARY, "access_key": CANARY,
        "secret_key": CANARY, "public_key": pair.public, "signing_key": signer.private.reveal(), "broker_ca": authority(),
        "project": PROJECT, "auth_kind": "accesstoken", "url_ca_cert": "ca.crt", "ca_cert": "ca.crt", "directory": "certificates",
        "workspace": ["workspace"], "filename": "train.py", "pythonenv": [], "src": "models/add", "name_of": "x", "binaries": {},
        "url": "https://example.com/x", "path": "made/file", "builder": "go", "module_dir": "go", "kustomize": "go",
        "requirements": "wheels.txt",
        "cache_dir": "cache", "subnet_id": "subnet-0123456789abcdef0", "subnet_ids": ["subnet-0123456789abcdef0"], "dest": "made",
        "security_groups": ["sg-0123456789abcdef0"], "login_host": "127.0.0.1", "login_protocol": "http",
    }  # fmt: skip


ALWAYS = {
    "project", "auth_kind", "subnet_id", "subnet_ids", "security_groups", "login_host", "ca_cert", "src", "workspace", "filename",
    "pythonenv", "url_ca_cert",
}  # fmt: skip
"""Options whose values are of this test, whatever the example says."""
MORE: dict[str, dict[str, t.Any]] = {
    "apply": {"src": "manifests"}, "dataset": {"url": "https://example.com/x.zip"}, "rabbitmq_definitions": {"src": "definitions.json"},
    "s3_object": {"src": "workspace/train.py"}, "iam_oidc_provider": {"url": "https://oidc.example.com/id/x"},
    "local_image": {"cluster_name": ""}, "object_store": {"buckets": []},
}  # fmt: skip


def filled(name: str, value: t.Any, key: str = "") -> t.Any:
    """An example with values instead of variables, and with what is in the folder of the test."""
    known = {**literals(), **MORE.get(name, {})}
    from_here = isinstance(value, str) and ("{{" in value or value.startswith(("/etc/", "/srv/", "/home/", "/var/", "~")))
    if key in known and (from_here or key in MORE.get(name, {}) or key in ALWAYS):
        return known[key]
    if isinstance(value, dict):
        return {inner: filled(name, item, inner) for inner, item in value.items()}
    if isinstance(value, list):
        return [filled(name, item) for item in value]
    return re.sub(r"\{\{.*?\}\}", "x", value) if isinstance(value, str) else value


@functools.cache
def examples(name: str) -> list[dict[str, t.Any]]:
    spec, found = spec_of(name), []
    for task in parse(module_of(name).EXAMPLES):
        if f"muster.ml.{name}" not in task:
            continue
        params = filled(name, task[f"muster.ml.{name}"] or {})
        params.pop("protocol", None)  # gRPC's own sockets are not Python's
        if kind_of(name) == "gcp":
            params = {"project": PROJECT, "auth_kind": "accesstoken", **params, "access_token": CANARY}
        if "login_user" in spec and "login_kubernetes" not in params:
            params |= {"login_user": "admin", "login_password": PASSWORD, "login_protocol": "http"}
            params.pop("ca_cert", None)
        found.append({**params, **({"wait": False} if "wait" in spec else {"wait_timeout": 5} if "wait_timeout" in spec else {})})
    return found


def manifests() -> list[t.Any]:
    """Objects of many kinds, as the systems have them."""
    found = {}
    for path in sorted((Path(__file__).parents[2] / "goldens").rglob("*.yaml")):
        for item in yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader):
            for one in item if isinstance(item, list) else [item]:
                if isinstance(one, dict) and isinstance(one.get("metadata"), dict):
                    found.setdefault((one.get("apiVersion"), one.get("kind")), one)
    return list(found.values())


def furnish(folder: Path) -> None:
    """The files that the examples name."""
    write_model(folder / "models" / "add", {1: "", 2: ""})
    for name, content in {
        "ca.crt": authority(), "workspace/train.py": "print(1)", "definitions.json": json.dumps(DEFINITIONS), "wheels.txt": "",
        "manifests/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "go/go.sum": "x v1.0.0 h1:x=\n",
        "kubelet": "",
        "go/x.go": "", "made/file": "{}",
    }.items():  # fmt: skip
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


SERVED = {
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): "jobsets", ("gateway.networking.k8s.io/v1", "HTTPRoute"): "httproutes",
    ("gateway.networking.k8s.io/v1", "GRPCRoute"): "grpcroutes", ("gateway.networking.k8s.io/v1", "Gateway"): "gateways",
    ("networking.istio.io/v1", "VirtualService"): "virtualservices",
    ("networking.istio.io/v1", "DestinationRule"): "destinationrules", ("persia.com/v1", "PersiaJob"): "persiajobs",
    ("nats.io/v1alpha2", "NatsCluster"): "natsclusters", ("kubeflow.org/v1", "PyTorchJob"): "pytorchjobs",
    ("monitoring.coreos.com/v1", "PodMonitor"): "podmonitors",
}  # fmt: skip


def cluster() -> FakeCluster:
    """A cluster that has what the examples take for granted."""
    found = FakeCluster()
    found.kinds_served.update({kind: ServedKind(plural, True) for kind, plural in SERVED.items()})
    for name in ("ml", "studioml", "prometheus-adapter", "web", "monitoring"):
        found.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    meta = {"name": "standard", "annotations": annotations}
    found.add({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta, "provisioner": "x"})
    found.add({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "efs-claim", "namespace": "ml"}, "spec": {}})
    for name, space in (("store-login", "ml"), ("studioml-signing", "studioml")):
        found.add({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": space}, "data": {}})
    for number in range(8):
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
        labels = {"kubernetes.io/hostname": f"n{number}", "cloud.google.com/gke-accelerator": "nvidia-l4"}
        found.add({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}", "labels": labels}, "spec": {},
            "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
        })  # fmt: skip
    return found


class Hostile:
    """Draws tasks of one module."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.random = name, random.Random(f"{seed}/{name}")  # noqa: S311  (repeats a run)
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
            row = row if isinstance(row, dict) else {key: literals().get(key, "x") for key, one in below.items() if one.get("required")}
            where = self._set(row, below, f"{path}{name}.")
            params[name] = [row] if rows else row
            return where
        params[name] = self.value(option.get("type", "str"))
        return f"{path}{name} = {shown(params[name])}"

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
        holder[key] = self.value(
            "raw" if holder is not params else self.spec.get(key, {}).get("type", "raw"),
            holder.get(key) if isinstance(holder, dict) else None,
        )
        return f"{path} = {shown(holder[key])}"

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
        self._names = {xform_name(name): name for name in self._model.operation_names}
        self.meta = types.SimpleNamespace(region_name="eu-west-1", method_to_api_mapping=self._names, service_model=self._model)

    def can_paginate(self, operation: str) -> bool:
        return operation != "list_open_id_connect_providers"

    def get_paginator(self, operation: str) -> Pages:
        return Pages(getattr(self, operation))

    def __getattr__(self, operation: str) -> t.Callable[..., t.Any]:
        def call(**request: t.Any) -> t.Any:
            shape = self._model.operation_model(self._names[operation]).input_shape
            report = ParamValidator().validate(request, shape)
            if report.has_errors():
                raise ParamValidationError(report=report.generate_report())
            request.pop("clientRequestToken", None)
            try:
                return self._account.call(self._service, operation, request)
            except (LookupError, AttributeError, TypeError, ValueError, AssertionError, StopIteration):
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
        except (LookupError, AttributeError, TypeError, ValueError):
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
        patch.setenv("HOME", str(folder))
        furnish(folder)
        self.broker = FakeBroker()
        self.broker.put(("queues", "/", "rmq_gpu"), {"arguments": {}})
        self.clusters: list[FakeCluster] = []

    def stop(self) -> None:
        self.broker.stop()

    def context(self, name: str, params: dict[str, t.Any], told: list[str], *, check: bool, far: bool) -> t.Any:
        given: dict[str, t.Any] = {"params": params, "check": check, "diff": True, "warn": told.append, "progress": told.append}
        kind = kind_of(name)
        if kind == "module":
            return Context(**given, connect=connector(params) if far else self.cluster)
        return aws.AwsContext(**given, login=aws.Login(params)) if kind == "aws" else HostContext(**given)

    def cluster(self) -> FakeCluster:
        self.clusters.append(cluster())
        return self.clusters[-1]

    def written(self) -> list[str]:
        """What clouds, broker and clusters were asked to change, and the files there are, as they are."""
        of_clusters = [one for each in self.clusters for one in each.writes]
        requests = [*self.account.writes, *self.google.writes, *self.broker.writes(), *of_clusters]
        states = [(path, path.lstat()) for path in sorted(self.folder.rglob("*"))]
        return [*map(repr, requests), *(f"{path} {of.st_mode:o} {of.st_size} {of.st_mtime_ns}" for path, of in states if not path.is_dir())]

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
        self.clusters.clear()
        before = self.written() if check else []
        signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            with warnings.catch_warnings(action="ignore"), barred(self.folder, self.broker.server_address[1]):
                found = self.result(name, self.soon(validated.validated_parameters), told, check=check, far=far)
            said = json.dumps(remove_values([found, told], validated._no_log_values))
        except TimeIsUp as error:
            return f"no end in time: {place(error)}"
        except Exception as error:  # noqa: BLE001  (what this test looks for)
            return place(error)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        if check and (now := self.written()) != before:
            return f"check mode changes something: {next((one for one in now if one not in before), 'a deletion')[:200]}"
        # A result describes what was asked for, addresses too; errors and warnings go to logs.
        for canary, text in ((CANARY, said), (URL_CANARY, json.dumps([told, found.get("msg", "")]))):
            # KUBECONFIG is a list with colons, so an address is in pieces that no longer look like one.
            if canary in text and URL_CANARY not in str(params.get("kubeconfig")):
                return f"a secret is shown: {text[max(0, text.index(canary) - 60) :][:100]}"
        return None

    @staticmethod
    def soon(params: dict[str, t.Any]) -> dict[str, t.Any]:
        """Options without waits that take the fake clock years."""
        return {
            key: min(value, 600) if "timeout" in key and isinstance(value, int) and value < 1 << 31 else value
            for key, value in params.items()
        }

    def result(self, name: str, params: dict[str, t.Any], told: list[str], *, check: bool, far: bool) -> t.Any:
        if "login_port" in params and not far:
            params["login_port"] = self.broker.server_address[1]
        try:
            options = checked(spec_of(name), params, getattr(module_of(name), "CONSTRAINTS", {}))
            return module_of(name).execute(self.context(name, options, told, check=check, far=far))
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
    found = World(tmp_path, monkeypatch)
    yield found
    found.stop()
    for number, handler in before:
        signal.signal(number, handler)


# A socket that never connected may be left to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", MODULES)
def test_hostile_values_end_in_a_result_or_in_one_error(name: str, world: World) -> None:
    drawn = Hostile(name, SEED)
    wrong: collections.Counter[str] = collections.Counter()
    first: dict[str, str] = {}
    for number in range(max(1, TASKS // len(MODULES))):
        params, where = drawn.task()
        found = world.run(name, params, check=number % 2 == 0, far=number % 5 == 4)
        if found:
            wrong[found] += 1
            first.setdefault(found, where)
    sys.stdout.write(f"{name}: {number + 1} tasks, {wrong.total()} with an error in Python or a secret\n")
    assert not wrong, f"seed {SEED}: " + "\n".join(f"{count} x {found}; first {first[found]}" for found, count in wrong.most_common())


NAMED: list[tuple[str, dict[str, t.Any], str]] = [
    ("apply", {"definition": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ["x"]}}}, "metadata.name is not a string"),
    ("apply", {"definition": {"apiVersion": 1, "kind": "ConfigMap", "metadata": {"name": "x"}}}, "apiVersion is 1"),
    ("training_statefulset", {"init_containers": [{"name": "x", "env": True}]}, r"init_containers\[0\].env is not a list"),
    ("inference_check", {"namespace": None, "url": "http://127.0.0.1:abc/"}, "url is no URL"),
    ("dataset", {"resources": {"limits": "1"}}, "resources.limits is not a mapping"),
    ("rabbitmq_info", {"login_user": None}, "parameters are required together: login_user, login_password"),
    ("elastic_job", {"script": None}, "script"),
    (
        "triton_model",
        {"model_repository": "/m/x", "storage": {"claim_name": "c", "mount_path": "m"}, "credentials_secret": None},
        "must begin with",
    ),
    ("jobset", {"tolerations": [{"key": 1}]}, r"tolerations\[0\].key is not a string"),
    ("gcp_network", {"name": "x", "project": "\ud800"}, "project has half of a surrogate pair"),
    ("s3_bucket", {"name": "a\x00b"}, "name has a NUL character"),
]
"""Inputs that ended in errors in Python, and what their messages have to say."""


@pytest.mark.parametrize(("name", "options", "told"), NAMED)
def test_the_message_names_the_option(name: str, options: dict[str, t.Any], told: str, world: World) -> None:
    given = {**examples(name)[0], **options}
    module = module_of(name)
    validated = ArgumentSpecValidator(spec_of(name), **getattr(module, "CONSTRAINTS", {})).validate(given)
    if validated.error_messages:
        assert re.search(told, "; ".join(validated.error_messages))
        return
    with barred(world.folder):
        found = world.result(name, dict(validated.validated_parameters), [], check=False, far=False)
    assert re.search(told, found["msg"]), found["msg"]


@pytest.mark.parametrize("name", MODULES)
def test_what_examples_say_is_accepted(name: str) -> None:
    spec, constraints = spec_of(name), getattr(module_of(name), "CONSTRAINTS", {})
    for params in examples(name):
        validated = ArgumentSpecValidator(spec, **constraints).validate(params)
        assert validated.error_messages == []
        checked(spec, validated.validated_parameters, constraints)


def test_urls_in_messages_have_no_login(world: World) -> None:
    address = f"https://user:{URL_CANARY}@h/"
    file = {"name": "x", "url": address, "checksum": f"sha256:{SHA}", "program_paths": {"x": ""}}
    params = {**dict.fromkeys(spec_of("local_fetch")), "released": [file], "images": [], "cache_dir": "cache"}
    told: list[str] = []
    with barred(world.folder):
        found = world.result("local_fetch", params, told, check=False, far=False)
    assert URL_CANARY not in json.dumps([found, told])
    assert "https://***@h/" in found["msg"]
