#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: inference_check
short_description: Report what a model answers, and how fast
description:
  - Queries a model for its readiness and metadata, sends it inputs, compares the outputs with those that are expected, and measures the
    time of the requests.
  - Every replica that is ready is checked, each by a forwarded port, with the rights of the kubeconfig. With O(url) whatever answers there
    is checked instead, such as a gateway.
  - One request is sent after the other over one connection. Proxies of the environment are not used.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.attributes
  - muster.ml.attributes.kube_info
options:
  name:
    description: Name of the server, as in M(muster.ml.triton_server) or, with O(protocol=openai), M(muster.ml.vllm_server).
    type: str
    default: triton
  namespace:
    description: Namespace of the server. Defaults to the namespace of the kubeconfig's context.
    type: str
  url:
    description:
      - Address of a server, such as V(http://inference.example.com), instead of O(name) and O(namespace).
      - With O(protocol=grpc), C(https) says that TLS is used, and C(http) that it is not.
    type: str
  hostname:
    description:
      - Host name that is asked for at O(url), such as that of a route whose name leads nowhere yet. By default the host of the URL.
      - With C(https) the certificate must be valid for this name.
    type: str
  url_ca_cert:
    description: File of certificates (PEM) of the authorities that are trusted for O(url). By default those of the system.
    type: path
  protocol:
    description: API of the server that is used, V(http) and V(grpc) of Triton. V(openai) is that of language models.
    type: str
    choices: [http, grpc, openai]
    default: http
  api_key_secret:
    description: Secret of O(namespace) with the key C(VLLM_API_KEY) for O(protocol=openai), as in M(muster.ml.vllm_server).
    type: str
  model:
    description: Name of the model.
    type: str
    required: true
  model_version:
    description: Version of the model. By default the server chooses.
    type: str
  inputs:
    description: Input tensors. Without them only readiness and metadata are checked.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the input.
        type: str
        required: true
      datatype:
        description: Type of its values. V(FP16) and V(BF16) need O(protocol=grpc), because the HTTP API has no JSON for them.
        type: str
        required: true
        choices: [BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FP16, BF16, FP32, FP64, BYTES]
      shape:
        description: Size of each dimension, the one of the batch first if the model has one.
        type: list
        elements: int
        required: true
      data:
        description: Values, in one list or in nested ones.
        type: list
        elements: raw
        required: true
  expected:
    description: Outputs that are expected. Without them any answer will do.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the output.
        type: str
        required: true
      data:
        description: Values, in one list or in nested ones.
        type: list
        elements: raw
        required: true
  parameters:
    description:
      - Parameters of the request, by name, such as C(sequence_id), C(sequence_start) and C(sequence_end) for a model that has a state, or
        C(max_tokens) for a language model.
      - With O(protocol=openai), the request itself, such as C(messages) (a chat) or C(prompt), C(max_tokens) and C(temperature), instead of
        O(inputs). Its outputs are C(text), C(finish_reason) and, with C(return_token_ids), C(token_ids). An answer that was cut fails.
    type: dict
    default: {}
  stream:
    description:
      - Take any number of responses to a request, as decoupled models make them, such as language models. By gRPC with C(ModelStreamInfer),
        by HTTP with the extension Generate, which knows no sequences; with O(protocol=openai) server-sent events.
      - O(expected) then has the values of all responses, in their order, or one text, which their texts make together.
      - Without it a decoupled model has to make one response. It is asked in the same ways, by HTTP with C(generate).
    type: bool
    default: false
  tolerance:
    description: Difference that numbers may have, absolute, or relative to the larger one.
    type: float
    default: 1.0e-06
  requests:
    description: Number of requests to each replica, whose outputs are all compared.
    type: int
    default: 1
  request_timeout:
    description: Seconds for each answer.
    type: int
    default: 30
  wait:
    description: Wait until a replica is ready, and the model in each that is.
    type: bool
    default: false
  wait_timeout:
    description: Seconds after which waiting fails.
    type: int
    default: 120
requirements:
  - grpcio >= 1.67.1, for O(protocol=grpc)
  - tritonclient >= 2.53.0, for O(protocol=grpc)
seealso:
  - module: muster.ml.triton_server
  - module: muster.ml.vllm_server
"""

EXAMPLES = r"""
- name: Check that each replica adds, and in less than 50 ms for 99 of 100 requests
  muster.ml.inference_check:
    namespace: ml
    model: add
    inputs:
      - {name: A, datatype: FP32, shape: [1, 2], data: [1.5, 2]}
      - {name: B, datatype: FP32, shape: [1, 2], data: [1, 1]}
    expected:
      - {name: SUM, data: [2.5, 3]}
    requests: 100
  register: checked
  failed_when: checked is failed or checked.latency_ms.p99 > 50

- name: Check what a language model writes that Triton's vLLM backend serves
  muster.ml.inference_check:
    namespace: ml
    model: chat
    inputs:
      - {name: text_input, datatype: BYTES, shape: [1], data: ["One and one is"]}
      - {name: exclude_input_in_output, datatype: BOOL, shape: [1], data: [true]}
    parameters: {max_tokens: 1, temperature: 0}
    expected: [{name: text_output, data: [" two"]}]

- name: Check what a language model behind OpenAI's API answers
  muster.ml.inference_check:
    name: llm
    namespace: ml
    protocol: openai
    model: chat
    api_key_secret: llm-key
    stream: true
    parameters:
      messages: [{role: user, content: "What is the capital of France?"}]
      max_tokens: 8
      temperature: 0

- name: Wait for a model behind a gateway
  muster.ml.inference_check:
    url: https://inference.example.com
    model: add
    wait: true

- name: Check by gRPC a model behind a gateway whose name leads nowhere yet
  muster.ml.inference_check:
    url: https://203.0.113.7
    hostname: inference.example.com
    url_ca_cert: files/ca.crt
    protocol: grpc
    model: half
    inputs:
      - {name: A, datatype: FP16, shape: [1, 2], data: [1.5, 2]}
"""

RETURN = r"""
replicas:
  description: Replicas that were checked. With O(url) that address.
  returned: success
  type: list
  elements: str
  sample: [triton-6b7c8d9e0f-x2v9k]
server:
  description: Metadata of the server, as the first replica reports them.
  returned: success
  type: dict
  sample: {name: triton, version: 2.51.0}
model:
  description: Metadata of the model, as the first replica reports them, such as its C(versions), C(platform), C(inputs) and C(outputs).
  returned: success
  type: dict
  sample: {name: add, versions: ["1"], platform: python}
outputs:
  description: Outputs of the last request to the first replica. Empty without O(inputs).
  returned: success
  type: list
  elements: dict
  sample: [{name: SUM, datatype: FP32, shape: [1, 2], data: [2.5, 3]}]
answers:
  description: RV(outputs) by name, the texts of a stream as one. Those of more than 16 values are left out.
  returned: success
  type: dict
  sample: {SUM: [2.5, 3]}
model_version:
  description: Version of the model that made these outputs. Empty without O(inputs).
  returned: success
  type: str
  sample: "1"
requests:
  description: Number of requests to all replicas together.
  returned: success
  type: int
  sample: 200
latency_ms:
  description: Milliseconds of the requests to all replicas together, with the way there. Empty without O(inputs).
  returned: success
  type: dict
  sample: {p50: 2.1, p90: 2.9, p99: 6.4, mean: 2.3, max: 6.9}
"""

import functools
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, NotFound
from ansible_collections.muster.ml.plugins.module_utils._core.trust import authorities_in
from ansible_collections.muster.ml.plugins.module_utils._edge import groups
from ansible_collections.muster.ml.plugins.module_utils._edge.options import WAIT, options_of
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._kube.secret_text import needed_text
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import check_count
from ansible_collections.muster.ml.plugins.module_utils._systems.llm.client import Completion, OpenAiClient
from ansible_collections.muster.ml.plugins.module_utils._systems.llm.server import API_KEY, PORT, VllmServer
from ansible_collections.muster.ml.plugins.module_utils._systems.triton import replicas
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.checking import Opened, checked, unready
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.client import Client
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.grpc_client import GrpcClient
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.inference import DATATYPES, Inference
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.server import PORTS, TritonServer

NAME: dict[str, t.Any] = {"type": "str", "required": True}
DATA: dict[str, t.Any] = {"type": "list", "elements": "raw", "required": True}
INPUT = {
    "name": NAME,
    "datatype": {**NAME, "choices": list(DATATYPES)},
    "shape": {"type": "list", "elements": "int", "required": True},
    "data": DATA,
}
ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "name": {"type": "str", "default": "triton"},
    "namespace": {"type": "str"},
    "url": {"type": "str"},
    "hostname": {"type": "str"},
    "url_ca_cert": {"type": "path"},
    "protocol": {"type": "str", "choices": ["http", "grpc", "openai"], "default": "http"},
    "api_key_secret": {"type": "str", "no_log": False},  # its name
    "model": NAME,
    "inputs": {"type": "list", "elements": "dict", "default": [], "options": INPUT},
    "expected": {"type": "list", "elements": "dict", "default": [], "options": {"name": NAME, "data": DATA}},
    **options_of(Inference, "model_version", "parameters", "stream", "tolerance"),
    "requests": {"type": "int", "default": 1},
    "request_timeout": {"type": "int", "default": 30},
    **WAIT,
}

CONSTRAINTS: dict[str, t.Any] = {"required_by": {"hostname": ("url",), "url_ca_cert": ("url",)}}

# The client of each protocol, the kind of its servers, and their port.
_SPEAKING: dict[str, tuple[t.Callable[..., t.Any], type[TritonServer] | type[VllmServer], int]] = {
    "http": (Client, TritonServer, PORTS["http"]),
    "grpc": (GrpcClient, TritonServer, PORTS["grpc"]),
    "openai": (OpenAiClient, VllmServer, PORT),
}
_PAUSE = 1.0


def desired(params: dict[str, t.Any]) -> Inference | Completion:
    """The inference that the options describe."""
    for name in ("requests", "request_timeout"):
        check_count(params[name], name, minimum=1)
    asked = {key: params[key] for key in ("model", "expected", "parameters", "stream", "tolerance")}
    if params["protocol"] != "openai":
        if params["api_key_secret"]:
            raise InvalidInput("api_key_secret: Triton has no keys.", "Use it with protocol: openai.")
        return Inference(**asked, model_version=params["model_version"], inputs=params["inputs"])
    if params["inputs"] or params["model_version"]:
        raise InvalidInput("inputs, model_version: OpenAI's API has neither.", "Give messages or prompt in parameters.")
    return Completion(**asked)


def authorities(params: dict[str, t.Any]) -> str | None:
    """The certificates that are trusted for the URL; None for those of the system."""
    return authorities_in(params["url_ca_cert"], "url_ca_cert") if params["url_ca_cert"] else None


def key_of(ctx: Context) -> dict[str, t.Any]:
    """The API key in the Secret, for the client."""
    name = ctx.params["api_key_secret"]
    if not name:
        return {}
    ref = Ref("v1", "Secret", name, ctx.namespace)
    found = ctx.cluster.get(ref)
    if found is None:
        raise NotFound(f"{ref} does not exist.", f"It has the key {API_KEY}.", ref=ref)
    return {"key": needed_text(found, API_KEY, API_KEY)}


def places(ctx: Context) -> dict[str, Opened]:
    """Return name of a replica -> function that connects to it."""
    params, url = ctx.params, ctx.params["url"]
    client, kind, port = _SPEAKING[params["protocol"]]
    speaking = functools.partial(client, timeout=params["request_timeout"], **key_of(ctx))
    if url:
        more = {"hostname": params["hostname"], "authorities": authorities(params)}
        return {url: lambda: speaking(url, f"{kind.title} at {url}", **more)}
    pods = replicas.ready_pods(ctx.cluster, params["name"], ctx.namespace, kind)
    return {pod.name: functools.partial(replicas.reached_by, ctx.cluster, pod, port, speaking, kind) for pod in pods}


def reachable(ctx: Context, inference: Inference | Completion) -> dict[str, Opened]:
    """Return the places; with wait, once the model is ready in all of them."""

    def observe() -> tuple[dict[str, Opened], str | None]:
        found = places(ctx)
        return found, unready(found, inference)

    if not ctx.params["wait"]:
        return places(ctx)
    return groups.waited(ctx, observe, goal=f"Model {inference.model} is not ready", every=_PAUSE)


def execute(ctx: Context) -> dict[str, t.Any]:
    """Check every replica."""
    inference = desired(ctx.params)
    found = checked(reachable(ctx, inference), inference, ctx.params["requests"], ctx.clock)
    return {"changed": False, **found}


def main() -> None:
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
