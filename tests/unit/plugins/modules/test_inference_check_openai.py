# SPDX-License-Identifier: GPL-3.0-or-later
"""inference_check by OpenAI's API: what a language model answered, as vLLM sends it."""

import base64
import json
import typing as t
from collections.abc import Iterator

import openai
import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput, NotFound, Unauthorized
from ansible_collections.muster.ml.plugins.modules import inference_check
from ansible_collections.muster.ml.tests.unit.fakes import pods, tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.vllm import KEY, RECORDED, FakeVllm

GREEDY = RECORDED["greedy"]
PROMPT = {"prompt": GREEDY["prompt"], "max_tokens": 16, "temperature": 0, "return_token_ids": True}
CHAT = {**PROMPT, "prompt": None, "messages": [{"role": "user", "content": GREEDY["prompt"]}]}
TOKENS = [{"name": "token_ids", "data": GREEDY["token_ids"]}]
LABELS = {"app.kubernetes.io/name": "vllm", "app.kubernetes.io/instance": "llm"}


@pytest.fixture
def vllm() -> Iterator[FakeVllm]:
    fake = FakeVllm()
    yield fake
    fake.stop()


def run(vllm: FakeVllm, key: str = KEY, **params: t.Any) -> dict[str, t.Any]:
    """Check the only replica of the server."""
    cluster = FakeCluster()
    cluster.add(pods.pod("llm-a", labels=LABELS, conditions=[{"type": "Ready", "status": "True"}]))
    cluster.forwarded["default", "llm-a", 8000] = ("127.0.0.1", vllm.port)
    data = {"VLLM_API_KEY": base64.b64encode(key.encode()).decode()}
    cluster.add({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": "default"}, "data": data})
    given = {"name": "llm", "namespace": "default", "protocol": "openai", "model": "tiny", "api_key_secret": "keys"}
    result = tasks.run(inference_check, cluster, {**given, **params})
    assert not cluster.writes
    assert KEY not in json.dumps(result)
    return result


@pytest.mark.parametrize("asked", [PROMPT, CHAT], ids=["completion", "chat"])
def test_tokens_are_those_that_the_weights_give(vllm: FakeVllm, asked: dict[str, t.Any]) -> None:
    found = run(vllm, parameters=asked, expected=TOKENS, requests=2)
    assert (found["replicas"], found["requests"], found["server"]) == (["llm-a"], 2, {"version": "0.32.0"})
    assert found["model"]["max_model_len"] == 128
    assert vllm.bodies[-1] == {"model": "tiny", **asked}
    with pytest.raises(Failed, match=r"Output token_ids differs in 1 of 16 values: value 15 is 37 instead of 9"):
        run(vllm, parameters=asked, expected=[{"name": "token_ids", "data": [*GREEDY["token_ids"][:-1], 9]}])


@pytest.mark.parametrize("stream", [False, True])
def test_openai_s_own_client_reads_the_same(vllm: FakeVllm, *, stream: bool) -> None:
    """Which is what most programs ask with: the check sees what they see."""
    given = {"model": "tiny", "prompt": GREEDY["prompt"], "max_tokens": 16, "temperature": 0}
    at = f"http://127.0.0.1:{vllm.port}/v1"
    with openai.OpenAI(base_url=at, api_key=KEY, max_retries=0) as client:
        assert [one.id for one in client.models.list()] == ["tiny"]
        answer: t.Any = client.completions.create(**given, stream=stream)
        rows = [row.choices[0] for row in (answer if stream else [answer])]
    told = {one["name"]: one["data"] for one in run(vllm, stream=stream, parameters=PROMPT)["outputs"]}
    assert (["".join(row.text for row in rows)], [rows[-1].finish_reason]) == (told["text"], told["finish_reason"])
    with pytest.raises(openai.AuthenticationError), openai.OpenAI(base_url=at, api_key="other", max_retries=0) as client:
        client.models.list()


@pytest.mark.parametrize("asked", [PROMPT, CHAT], ids=["completion", "chat"])
def test_a_stream_is_one_answer(vllm: FakeVllm, asked: dict[str, t.Any]) -> None:
    expected = [{"name": "text", "data": [" w185 w112 w10 w81"]}, {"name": "finish_reason", "data": ["length"]}]
    assert run(vllm, parameters=asked, expected=expected, stream=True)["requests"] == 1
    assert vllm.bodies[-1]["stream"] is True


@pytest.mark.parametrize(("old", "new"), [("data: [DONE]", ""), ('"finish_reason":"length"', '"finish_reason":"abort"')])
def test_an_answer_that_was_cut_is_none(vllm: FakeVllm, old: str, new: str) -> None:
    recorded = RECORDED["completion_stream"]
    assert old in recorded["text"]
    vllm.answer = {**recorded, "text": recorded["text"].replace(old, new)}
    with pytest.raises(Failed, match="the answer is not whole"):
        run(vllm, parameters=PROMPT, stream=True)


def test_a_text_with_other_ends_of_lines_is_whole(vllm: FakeVllm) -> None:
    recorded = RECORDED["completion_stream"]
    vllm.answer = {**recorded, "text": recorded["text"].replace(" w10", "\u2028\x85")}
    assert run(vllm, parameters=PROMPT, stream=True)["outputs"][0]["data"] == [" w185 w112\u2028\x85 w81"]


def test_a_refusal_is_told_in_the_words_of_the_server(vllm: FakeVllm) -> None:
    vllm.answer = RECORDED["too_long"]
    with pytest.raises(Failed, match=r"max_tokens=1000 cannot be greater than max_model_len=128.* \(status 400\)"):
        run(vllm, parameters=PROMPT)


def test_without_the_key_it_is_told_which_option_has_it(vllm: FakeVllm) -> None:
    with pytest.raises(Unauthorized, match=r"refuses to list its models: Unauthorized \(status 401\)") as caught:
        run(vllm, api_key_secret=None)
    assert caught.value.hint == "Give its key by api_key_secret."
    with pytest.raises(NotFound, match="Secret default/nosuch does not exist"):
        run(vllm, api_key_secret="nosuch")


def test_a_key_that_no_request_can_have_is_refused_and_not_shown(vllm: FakeVllm) -> None:
    with pytest.raises(InvalidInput, match="such as a newline") as caught:
        run(vllm, key=f"{KEY}\n")
    assert KEY not in str(caught.value)


def test_a_model_that_is_not_there_is_told(vllm: FakeVllm) -> None:
    with pytest.raises(NotFound, match="model example/other is not ready"):
        run(vllm, model="example/other")


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"parameters": {**PROMPT, **{k: CHAT[k] for k in ("messages",)}}}, "messages are for a chat"),
        ({"parameters": {"max_tokens": 1}}, "is asked nothing"),
        ({"expected": TOKENS}, "is asked nothing"),
        ({"parameters": {**PROMPT, "model": "x"}}, "model is an option of its own"),
        ({"model": "a\nb"}, "is not a name of a model"),
        ({"model_version": "1"}, "has neither"),
        ({"protocol": "http"}, "Triton has no keys"),
    ],
)
def test_nonsense_is_refused(vllm: FakeVllm, params: dict[str, t.Any], told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        run(vllm, **params)
    assert told in caught.value.message
    assert not vllm.bodies
