# SPDX-License-Identifier: GPL-3.0-or-later
"""Replicas of a Triton server that load models from a folder as 2.51.0 does, the pod that writes there, and a bucket."""

from __future__ import annotations

import contextlib
import io
import json
import typing as t
from pathlib import Path

from google.protobuf import json_format

from ansible_collections.muster.ml.plugins.module_utils._pod_programs import model_writer
from ansible_collections.muster.ml.plugins.module_utils._systems.triton import model_config
from ansible_collections.muster.ml.tests.unit.fakes.served import Answering, Served

CONFIG = """\
backend: "python"
max_batch_size: 8
input [ { name: "A", data_type: TYPE_FP32, dims: [ 2 ] } ]
output [ { name: "B", data_type: TYPE_FP32, dims: [ 2 ] } ]
"""


def write_model(folder: Path, versions: dict[int, str], config: str = CONFIG) -> Path:
    """A folder of a model; of each version its program."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.pbtxt").write_text(config)
    for version, text in versions.items():
        (folder / str(version)).mkdir(exist_ok=True)
        (folder / str(version) / "model.py").write_text(text)
    return folder


class FakeReplica(Served):
    """A replica with the repository ROOT. A version whose program has "broken" in it cannot be loaded, nor by REFUSES anything."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.index: dict[str, dict[int, tuple[str, str]]] = {}
        self.asked: list[str] = []
        self.refuses = ""
        replica = self

        class Handler(Answering):
            def do_POST(self) -> None:
                body = self.body()
                parts = self.path.split("/")
                if self.path == "/v2/repository/index":
                    self.reply(200, replica.rows())
                    return
                replica.asked.append(f"{parts[-1]} {parts[-2]}")
                wrong = replica.unload(parts[-2]) if parts[-1] == "unload" else replica.load(parts[-2], json.loads(body or b"{}"))
                self.reply(400 if wrong else 200, {"error": wrong} if wrong else None)

        super().__init__(Handler)

    def rows(self) -> list[dict[str, str]]:
        found = [(model, version, *what) for model, versions in self.index.items() for version, what in sorted(versions.items())]
        return [
            {"name": model, "version": str(version), "state": state, **({"reason": reason} if reason else {})}
            for model, version, state, reason in found
        ]

    def served(self, model: str = "add") -> list[int]:
        return [version for version, (state, _reason) in sorted(self.index.get(model, {}).items()) if state == "READY"]

    def load(self, model: str, body: dict[str, t.Any]) -> str:
        if self.refuses:
            return self.refuses
        given = (body.get("parameters") or {}).get("config")
        folder = self.root / model
        if given:
            config = model_config.ModelConfig(json_format.Parse(given, model_config._definition()()))
        elif (folder / "config.pbtxt").is_file():
            config = model_config.parsed((folder / "config.pbtxt").read_text(), "config.pbtxt")
        else:
            return f"failed to load '{model}', failed to poll from model repository"
        there = [int(path.name) for path in folder.iterdir() if path.is_dir() and path.name.isdigit()]
        wanted = [version for version in config.chosen(there) if version in there]
        if not wanted:
            return f"at least one version must be available under the version policy of model '{model}'"
        versions = self.index.setdefault(model, {})
        for version in wanted:
            if "broken" in (folder / str(version) / "model.py").read_text():
                versions[version] = "UNAVAILABLE", "RuntimeError: broken"
                return f"load failed for model '{model}': version {version} is at UNAVAILABLE state: RuntimeError: broken"
        for version in [*versions]:
            if version not in wanted and versions[version][0] == "READY":
                versions[version] = "UNAVAILABLE", "unloaded"
        versions.update(dict.fromkeys(wanted, ("READY", "")))
        return ""

    def unload(self, model: str) -> str:
        for version in self.index.get(model, {}):
            self.index[model][version] = "UNAVAILABLE", "unloaded"
        return ""


def serve_writer(folder: Path) -> Served:
    """The program of the pod that writes, for one model."""

    class Handler(model_writer.Handler):
        pass

    Handler.folder = model_writer.Folder(folder)
    return Served(Handler)


class FakeBucket:
    """boto3's client, as far as it is asked, with one bucket of objects."""

    def __init__(self, root: Path) -> None:
        self.root = root
        """Objects are files there, so that a replica can read them."""
        self.sums: dict[str, dict[str, str]] = {}
        self.writes: list[str] = []

    def get_paginator(self, _name: str) -> FakeBucket:
        return self

    def paginate(self, *, Bucket: str, Prefix: str) -> list[t.Any]:  # noqa: N803
        names = sorted(path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file())
        return [{"Contents": [{"Key": name} for name in names if name.startswith(Prefix) and Bucket]}, {}]

    def head_object(self, *, Bucket: str, Key: str) -> dict[str, t.Any]:  # noqa: N803
        return {"Metadata": self.sums.get(Key, {}), "Bucket": Bucket}

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, t.Any]:  # noqa: N803
        return {"Body": io.BytesIO((self.root / Key).read_bytes()), "Bucket": Bucket}

    def upload_file(self, path: str, bucket: str, key: str, ExtraArgs: dict[str, t.Any]) -> None:  # noqa: N803
        self.put_object(Bucket=bucket, Key=key, Body=Path(path).read_bytes())
        self.sums[key] = ExtraArgs["Metadata"]

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:  # noqa: N803
        self.writes.append(f"put {Key}" if Bucket else "")
        (self.root / Key).parent.mkdir(parents=True, exist_ok=True)
        (self.root / Key).write_bytes(Body)

    def delete_object(self, *, Bucket: str, Key: str) -> None:  # noqa: N803
        self.writes.append(f"delete {Key}" if Bucket else "")
        (self.root / Key).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            (self.root / Key).parent.rmdir()
            (self.root / Key).parent.parent.rmdir()
