# SPDX-License-Identifier: GPL-3.0-or-later
"""A Triton server with one model, ``add``, as 2.51.0 answers over HTTP; and what it answers for one that is decoupled."""

import json
import pathlib
import typing as t

from ansible_collections.muster.ml.tests.unit.fakes.certificates import signed
from ansible_collections.muster.ml.tests.unit.fakes.served import Answering, Served

RECORDED: dict[str, t.Any] = json.loads((pathlib.Path(__file__).parents[1] / "recorded/vllm_backend.json").read_text(encoding="utf-8"))
"""What 2.51.0 answered with the vLLM backend, and without it."""
METADATA: dict[str, t.Any] = {"name": "add", "versions": ["1"], "platform": "python", "inputs": [], "outputs": []}


def certificate_in(folder: pathlib.Path, host: str) -> pathlib.Path:
    """A file with a certificate for HOST, its own authority, and its key."""
    made, file = signed("test", host=host), folder / "server.pem"
    file.write_text(made.pem + made.key_pem())
    return file


# With a model that makes three responses, and one that has a state.
EVENTS = """\
data: {"B":[1.0,2.0],"model_name":"dec","model_version":"1"}

data: {"B":[2.0,3.0],"model_name":"dec","model_version":"1"}

data: {"B":[3.0,4.0],"model_name":"dec","model_version":"1"}

"""
NO_DECOUPLED = 501, {"error": "HTTP end point doesn't support models with decoupled transaction policy"}
NO_SEQUENCE = 400, {"error": "inference request to model 'seq' must specify a non-zero or non-empty correlation ID"}


class FakeTriton(Served):
    """The server with the model ``add``."""

    def __init__(self, certificate: pathlib.Path | None = None) -> None:
        self.ready = True
        self.error = 0.0
        """Added to every output."""
        self.config: t.Any = {"name": "add", "model_transaction_policy": {"decoupled": False}}
        self.status = 200
        """Of answers to right requests of inference."""
        self.answers: tuple[int, t.Any] | None = None
        """To every request of inference, instead of what is right."""
        self.bodies: list[t.Any] = []
        self.requests: list[str] = []
        self.clients: set[t.Any] = set()
        """The connections that requests of inference came by."""
        self.hosts: set[str | None] = set()
        triton = self

        class Handler(Answering):
            def do_GET(self) -> None:
                triton.requests.append(self.path)
                triton.hosts.add(self.headers["Host"])
                if self.path == "/v2":
                    self.reply(200, {"name": "triton", "version": "2.51.0"})
                elif self.path in ("/v2/models/add", "/v2/models/add/versions/1"):
                    self.reply(200, METADATA)
                elif self.path.endswith("/config"):
                    self.reply(200, triton.config)
                elif self.path.startswith("/v2/models/add/") and triton.ready:
                    self.reply(200, None)
                else:
                    self.reply(400, {"error": "Model version not ready"})

            def do_POST(self) -> None:
                triton.requests.append(self.path)
                triton.clients.add(self.client_address)
                body = json.loads(self.body())
                triton.bodies.append(body)
                if triton.answers:
                    self.reply(*triton.answers)
                    return
                rows = {row["name"]: row for row in body["inputs"]}
                if {*rows} != {"A", "B"}:
                    self.reply(400, {"error": "expected 2 inputs"})
                    return
                data = [a + b + triton.error for a, b in zip(rows["A"]["data"], rows["B"]["data"], strict=True)]
                output = {"name": "SUM", "datatype": "FP32", "shape": rows["A"]["shape"], "data": data}
                self.reply(triton.status, {"model_name": "add", "model_version": "1", "outputs": [output]})

        super().__init__(Handler, certificate)
