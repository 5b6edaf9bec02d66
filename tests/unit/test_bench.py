# SPDX-License-Identifier: GPL-3.0-or-later
"""What the benchmarks of serving count, and which of them run."""

from pathlib import Path
from typing import Any

import benches
import closed_loop
import pytest
import serving

from ansible_collections.muster.ml.tests.unit.fakes.triton import FakeTriton

BENCH = Path(__file__).resolve().parents[1] / "bench"


def asked(triton: FakeTriton, clients: int = 3) -> list[float]:
    return closed_loop.run(("127.0.0.1", triton.port), "inference.example.com", clients, 0.5)


def test_each_client_asks_over_one_connection_and_the_first_requests_do_not_count(
    triton: FakeTriton, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed_loop, "WARM_S", 0.2)
    times = asked(triton)
    # What is in flight at the end is not counted either, of each client one.
    assert 0 < len(times) < triton.requests.count("/v2/models/add/infer") - 3 - 1
    assert len(triton.clients) == 3
    assert all(took > 0 for took in times)


@pytest.mark.parametrize("broken", [{"error": 0.5}, {"status": 503}])
def test_a_wrong_answer_ends_it(triton: FakeTriton, broken: dict[str, Any]) -> None:
    triton.__dict__.update(broken)
    with pytest.raises(SystemExit, match="An answer is "):
        asked(triton)


CHUNKS = b'4\r\n{"a"\r\n3\r\n: 1\r\n1\r\n}\r\n0\r\n\r\n'


@pytest.mark.parametrize(
    ("head", "body"), [(b"Content-Length: 8", b'{"a": 1}'), (b"Transfer-Encoding: chunked", CHUNKS)], ids=["one", "chunks"]
)
def test_an_answer_is_read_when_it_is_whole(head: bytes, body: bytes) -> None:
    whole = b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + body
    assert [end for end in range(len(whole)) if closed_loop.body_of(whole[:end]) is not None] == []
    assert closed_loop.joined(closed_loop.body_of(whole) or b"") == b'{"a": 1}'
    with pytest.raises(SystemExit, match="An answer is "):
        closed_loop.body_of(b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n")


def test_times_are_told_as_percentiles() -> None:
    told = closed_loop.account([number / 1000 for number in range(1, 101)], 2.0)
    assert told == {"requests": 100, "seconds": 2.0, "per_second": 50.0, "p50_ms": 50.0, "p99_ms": 99.0}
    with pytest.raises(SystemExit, match="No request ended"):
        closed_loop.account([], 2.0)


class Told(serving.Way):
    """A way that is not measured."""

    def measure(self, clients: int, seconds: float) -> dict[str, Any]:
        return {"way": self.name, "clients": clients}


def test_another_way_is_first_in_each_round() -> None:
    ways = [Told(name, "", 0) for name in "abc"]
    rows = [(row["round"], row["clients"], row["way"]) for row in serving.rounds(ways, 3, [1, 8], 1)]
    assert ["".join(way for r, c, way in rows if (r, c) == (number, 8)) for number in (1, 2, 3)] == ["abc", "bca", "cab"]
    assert len(rows) == len(set(rows)) == 18


def test_ratios_are_of_the_same_round() -> None:
    def row(number: int, way: str, rate: float) -> dict[str, Any]:
        return {"round": number, "way": way, "clients": 1, "requests": 10, "per_second": rate,
                "p50_ms": 1000 / rate, "p99_ms": 2000 / rate}  # fmt: skip

    rows = [row(1, serving.PROCESS, 100), row(1, serving.GATEWAY, 50), row(2, serving.PROCESS, 10), row(2, serving.GATEWAY, 5)]
    alone, behind = serving.summarise(rows)
    assert (alone["rate_ratio"], alone["per_second"], alone["requests"]) == (1.0, 55, 20)
    assert (behind["rate_ratio"], behind["p50_ratio"], behind["per_second_min"]) == (0.5, 2.0, 5)


def test_some_or_all_of_them_run() -> None:
    everything = benches.commands([], "config", ["--repeats", "2"])
    assert [Path(program).name for program, *_more in everything] == ["apply.py", "apply.py", "whole_site.py", "serving.py"]
    assert everything[0][1:] == ["--kubeconfig", "config", "--repeats", "2"]
    assert benches.commands(["serving"], "config", ["--rounds", "1"]) == [[str(BENCH / "serving.py"), "--rounds", "1"]]
    two = benches.commands(["site", "apply"], "config", ["--repeats", "2"])
    assert [more for _program, *more in two] == [["--kubeconfig", "config", "--repeats", "2"], []]
    assert all(Path(program).is_file() for program, *_more in everything)
