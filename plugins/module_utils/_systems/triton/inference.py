# SPDX-License-Identifier: GPL-3.0-or-later
"""One inference as a value: the request, the expected outputs, and the differences of a response from them."""

from __future__ import annotations

import dataclasses
import math
import re
import typing as t
from collections.abc import Mapping, Sequence

from ..._core.errors import Causes, Failed, InvalidInput, cause_of

DATATYPES = (
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "BF16", "FP32", "FP64", "BYTES",
)  # fmt: skip
NOT_IN_JSON = ("FP16", "BF16")
"""The datatypes that the HTTP API only accepts as bytes."""
# What Triton 2.51.0 says (tests/unit/recorded/vllm_backend.json).
_CAUSES: Causes = (
    ("decoupled", re.compile("decoupled transaction policy|exactly 1 response")),
    ("sampling", re.compile("no attribute 'lora_name'")),
    ("backend", re.compile("unable to find backend library for backend")),
)
_HINTS = {
    "decoupled": "Set stream: true.",
    "sampling": "vLLM refuses one of the parameters, and the server's log says which.",
    "backend": "Another image has it: nvcr.io/nvidia/tritonserver:26.07-vllm-python-py3 has vllm, and ...-py3 the others.",
}
_SHOWN = 16
"""The most values of an output that is shown, because a large one would fill the summary of a run."""
_PERCENTILES = (50, 90, 99)


class Expecting(t.Protocol):
    """A request to a model, and what is expected of the answer."""

    @property
    def model(self) -> str:
        """The name of the model."""

    @property
    def inputs(self) -> Sequence[t.Any]:
        """The inputs; without any, no request is sent."""

    @property
    def expected(self) -> Sequence[Mapping[str, t.Any]]:
        """The outputs."""

    @property
    def tolerance(self) -> float:
        """The difference that numbers may have."""

    @property
    def stream(self) -> bool:
        """Whether there may be any number of responses."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inference:
    """A request to one model, and the outputs that are expected."""

    model: str
    model_version: str | None = None
    inputs: Sequence[Mapping[str, t.Any]] = ()
    expected: Sequence[Mapping[str, t.Any]] = ()
    parameters: Mapping[str, bool | float | str] = dataclasses.field(default_factory=dict)
    stream: bool = False
    """Whether the model sends any number of responses to a request."""
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        # The name is a part of the path of requests; Triton's repository has a folder with it.
        if not re.fullmatch(r"[!-.0-~]+", self.model + (self.model_version or "")):
            raise InvalidInput(f"model: '{self.model}' is not a name of a model.")
        if not self.inputs and self.expected:
            raise InvalidInput("expected: no inference is made without inputs.", "Give the inputs of the model.")
        for name, value in self.parameters.items():
            if not isinstance(value, bool | int | float | str):
                raise InvalidInput(f"parameters: {name} is neither a boolean, a number nor a text.")
        if self.tolerance < 0:
            raise InvalidInput(f"tolerance: {self.tolerance} is less than 0.")
        for row in self.inputs:
            wants, has = math.prod(row["shape"]), len(flat(row["data"]))
            if wants != has:
                raise InvalidInput(f"inputs: {row['name']} has {has} values, but its shape {row['shape']} has {wants}.")
        for what, rows in (("inputs", self.inputs), ("expected", self.expected)):
            names = [row["name"] for row in rows]
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise InvalidInput(f"{what}: {twice[0]} is there twice.")

    @property
    def path(self) -> str:
        """The path of the model, or of one of its versions."""
        return f"/v2/models/{self.model}" + (f"/versions/{self.model_version}" if self.model_version else "")

    def asked(self, *, generates: bool) -> str:
        """The path of inference. Over HTTP, only the extension Generate serves decoupled models: by ``generate`` those that answer once."""
        return f"{self.path}/{'generate_stream' if self.stream else 'generate' if generates else 'infer'}"

    def body(self, *, generates: bool) -> dict[str, t.Any]:
        """The body of the request. Without expected outputs, all outputs are requested."""
        for row in self.inputs:
            if row["datatype"] in NOT_IN_JSON:
                raise InvalidInput(
                    f"inputs: {row['name']} is {row['datatype']}, for which the HTTP API has no JSON.", "Use protocol: grpc."
                )
        inputs = [
            {"name": row["name"], "datatype": row["datatype"], "shape": row["shape"], "data": flat(row["data"])} for row in self.inputs
        ]
        parameters = {"parameters": dict(self.parameters)} if self.parameters else {}
        if generates:
            return {**{row["name"]: row["data"][0] if len(row["data"]) == 1 else row["data"] for row in inputs}, **parameters}
        outputs = [{"name": row["name"]} for row in self.expected]
        return {"inputs": inputs, **({"outputs": outputs} if outputs else {}), **parameters}


def flat(data: t.Any) -> list[t.Any]:
    """The values of nested lists, in their order."""
    return [value for item in data for value in flat(item)] if isinstance(data, list) else [data]


def refused(who: str, doing: str, said: str, status: int | str) -> Failed:
    """The error for an answer of the server that has an error."""
    text = said.rstrip(".; \n")
    return Failed(f"{who} refuses to {doing}: {text} (status {status}).", hint_of(said)).with_cause(said, _CAUSES)


def hint_of(said: str) -> str | None:
    """The next step after a sentence of the server, where that is known."""
    return _HINTS.get(cause_of(said, _CAUSES))


def differences(inference: Expecting, answer: Mapping[str, t.Any]) -> list[str]:
    """Return the differences of a response from the expected outputs, a sentence for each output."""
    given, found = _values(answer), []
    for row in inference.expected:
        name, want = row["name"], flat(row["data"])
        have = given.get(name)
        if have is None:
            found.append(f"Output {name} is missing.")
            continue
        if inference.stream and len(want) == 1 and all(isinstance(value, str) for value in have):
            have = ["".join(have)]  # a text in as many pieces as the model likes
        if len(have) != len(want):
            found.append(f"Output {name} has {len(have)} values instead of {len(want)}.")
        else:
            wrong = [i for i, pair in enumerate(zip(have, want, strict=True)) if not _equal(*pair, inference.tolerance)]
            if wrong:
                first = wrong[0]
                found.append(
                    f"Output {name} differs in {len(wrong)} of {len(want)} values: "
                    f"value {first} is {have[first]!r} instead of {want[first]!r}."
                )
    return found


def _equal(have: t.Any, want: t.Any, tolerance: float) -> bool:
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (have, want)):
        return math.isclose(have, want, rel_tol=tolerance, abs_tol=tolerance) or (math.isnan(have) and math.isnan(want))
    return bool(have == want)


def answers(answer: Mapping[str, t.Any]) -> dict[str, list[t.Any]]:
    """The values of the outputs by name. A stream has an output for each response, of which texts make one; large ones are left out."""
    names = [row["name"] for row in answer.get("outputs") or []]
    found = _values(answer)
    whole = {name for name, data in found.items() if names.count(name) > 1 and all(isinstance(value, str) for value in data)}
    shown = {name: ["".join(data)] if name in whole else data for name, data in found.items()}
    return {name: data for name, data in shown.items() if len(data) <= _SHOWN}


def _values(answer: Mapping[str, t.Any]) -> dict[str, list[t.Any]]:
    given: dict[str, list[t.Any]] = {}
    for row in answer.get("outputs") or []:
        given.setdefault(row["name"], []).extend(flat(row.get("data") or []))
    return given


def latencies(seconds: Sequence[float]) -> dict[str, float]:
    """Percentiles (the smallest time that so many of the requests did not exceed), mean and maximum in milliseconds."""
    if not seconds:
        return {}
    ordered = [round(value * 1000, 2) for value in sorted(seconds)]
    found = {f"p{share}": ordered[math.ceil(len(ordered) * share / 100) - 1] for share in _PERCENTILES}
    return {**found, "mean": round(sum(ordered) / len(ordered), 2), "max": ordered[-1]}
