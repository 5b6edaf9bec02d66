# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of HTTP APIs, as servers, gateways and proxies may send them, read by the client of OpenAI's API."""

import json
import typing as t
from collections.abc import Iterator

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput, MusterError
from ansible_collections.muster.ml.plugins.module_utils._systems.llm.client import Completion, OpenAiClient
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock
from ansible_collections.muster.ml.tests.unit.fakes.served import Answering, Served

ASKED = Completion(model="m", parameters={"prompt": "x"}, stream=True)
EVENTS = [json.dumps({"choices": [{"text": text, "finish_reason": reason}]}) for text, reason in (("a", None), ("b", "stop"))]
STREAM = "".join(f"data: {event}\n\n" for event in [*EVENTS, "[DONE]"])


class Fake(Answering):
    answers: t.ClassVar[list[tuple[int, str, str]]] = []

    def do_POST(self) -> None:
        self.body()
        status, kind, text = self.answers[0]
        self.reply(status, text, {"Content-Type": kind})

    do_GET = do_POST


@pytest.fixture
def url() -> Iterator[str]:
    served = Served(Fake)
    yield f"http://127.0.0.1:{served.port}/v1"  # as module vllm_server returns it
    served.stop()


def ask(url: str, text: str, status: int = 200, kind: str = "text/event-stream; charset=utf-8") -> t.Any:
    Fake.answers[:] = [(status, kind, text)]
    with OpenAiClient(url, "S", timeout=5) as client:
        return client.infer(ASKED, FakeClock())[0]["outputs"][0]["data"]


@pytest.mark.parametrize(
    "text",
    [
        STREAM,
        STREAM.replace("\n", "\r\n"),
        STREAM.replace("\n", "\r"),
        STREAM.replace("data: ", "data:"),
        STREAM.replace("[DONE]", "[DONE] "),
        STREAM.replace(': [{"text"', ':\ndata: [{"text"'),
        *(f"{first}{STREAM}" for first in (": ping\n\n", "event: message\nid: 1\n", "\ufeff", "\n", "retry: 3\n\n")),
    ],
)
def test_streams_are_read_as_the_standard_says(url: str, text: str) -> None:
    assert ask(url, text) == ["ab"]


@pytest.mark.parametrize(
    "text",
    [
        STREAM[:30],
        STREAM.removesuffix("data: [DONE]\n\n"),
        "[" * 100000,
        *(
            f"data: {event}\n\ndata: [DONE]\n\n"
            for event in ("null", "[]", "5", "{", '{"choices": [{"index": 1e400}]}', '{"choices": [null]}', '{"choices": {"a": 1}}')
        ),
    ],
)
def test_what_is_no_answer_is_not_whole(url: str, text: str) -> None:
    with pytest.raises(Failed, match="the answer is not whole"):
        ask(url, text)


@pytest.mark.parametrize(
    ("status", "text", "said"),
    [
        (200, 'event: error\ndata: {"message": "boom"}\n\n', "boom"),
        (404, '{"detail": "Not Found"}', "Not Found"),
        (400, '{"object": "error", "message": "too long"}', "too long"),
        (503, "upstream connect error", "upstream connect error"),
        (502, "<html>", "no reason given"),
    ],
)
def test_errors_are_told_in_the_words_of_the_server(url: str, status: int, text: str, said: str) -> None:
    with pytest.raises(Failed, match=rf"{said} \(status {status}\)"):
        ask(url, text, status, "text/event-stream" if status == 200 else "text/plain")


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999", "http://[::1", f"http://{'a' * 70}.example", "http://u:p@127.0.0.1:1"])
def test_addresses_that_cannot_be_are_refused(url: str) -> None:
    with pytest.raises(MusterError) as refused, OpenAiClient(url, "S", timeout=5) as client:
        client.server()
    assert isinstance(refused.value, InvalidInput) or "aaa" in url
