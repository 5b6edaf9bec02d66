# SPDX-License-Identifier: GPL-3.0-or-later
"""Text is read as kubectl reads it; what kubectl makes of each text is recorded in tests/differential/yaml_answers.json."""

import json
import time
import typing as t

import pytest
import yaml
from differential.yaml_corpus import LAXER, NAME, STRICTER, answers, texts
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.muster.ml.plugins.module_utils._kube import yaml_reader
from ansible_collections.muster.ml.plugins.module_utils._kube.client import request_body
from ansible_collections.muster.ml.plugins.module_utils._kube.yaml_reader import MAX_DEPTH, Unreadable, read
from ansible_collections.muster.ml.plugins.module_utils._kube.yaml_scalars import json_number, key_text, plain_value

ANSWERS = answers()


def written(value: t.Any) -> str:
    """Tells 1 from true and from "1", which Python's == does not. What lies beyond 64 bits is a float for Kubernetes."""
    return json.dumps(
        json.loads(json.dumps(value), parse_int=lambda text: json_number(int(text)), parse_float=lambda text: json_number(float(text))),
        sort_keys=True,
    )  # fmt: skip


def result(text: str) -> str:
    try:
        return written([value for value in read(text) if value is not None])
    except Unreadable:
        return "null"


def test_the_record_is_of_this_corpus() -> None:
    assert list(ANSWERS) == texts()
    assert len(ANSWERS) > 600
    assert STRICTER.keys() | LAXER.keys() <= ANSWERS.keys()


def test_every_text_has_the_values_that_kubectl_gives_it() -> None:
    wrong = {
        text: (result(text), written(answer))
        for text, answer in ANSWERS.items()
        if text not in STRICTER and text not in LAXER and result(text) != written(answer)
    }
    assert wrong == {}


def test_without_libyaml_almost_all_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own parser of YAML has a few rules of its own, none of which gives another value."""
    monkeypatch.delattr(yaml, "CSafeLoader")
    others = [text for text, answer in ANSWERS.items() if text not in STRICTER and text not in LAXER and result(text) != written(answer)]
    assert [text for text in others if result(text) != "null" and ANSWERS[text] is not None] == []
    assert len(others) < 12


@pytest.mark.parametrize(("text", "told"), STRICTER.items())
def test_what_kubectl_drops_without_a_word_is_refused(text: str, told: str) -> None:
    assert ANSWERS[text] is not None
    with pytest.raises(Unreadable, match=told.replace("(", r"\(")):
        read(text)


@pytest.mark.parametrize(("text", "found"), LAXER.items())
def test_what_only_kubectl_refuses_has_its_plain_meaning(text: str, found: dict[str, t.Any]) -> None:
    assert ANSWERS[text] is None
    assert read(text) == [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, **found}]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: 2\na: 3\n", 3),
        ("a: 1\n---\nb: *x\n", 3),
        ("a: [\n", 2),
        ("a: 1\n--- b\n", 2),
        ('{"a": 1}\n{"b": 2}\n{"c": 3,}\n', 3),
        ('{"a": 1}\n{"b": 2, "b": 3}\n', 2),
        ('{"a": 1}\n---\nb: .inf\n', 3),
        ("a: !!int x\n", 1),
        ("? [1]\n: 2\n", 1),
        ("a: 1\n~: 2\n", 2),
    ],
)
def test_an_error_names_its_line(text: str, line: int) -> None:
    with pytest.raises(Unreadable) as caught:
        read(text)
    assert caught.value.line == line


BOMBS = {
    "maps": "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)),
    "merge keys": "a0: &a0 {k0: x}\n" + "".join(f"a{n}: &a{n} {{<<: *a{n - 1}, k: *a{n - 1}, l: *a{n - 1}}}\n" for n in range(1, 60)),
    "long text": f"a: &a {'x' * 10_000}\nb: [{', '.join(['*a'] * 10_000)}]\n",
    "long keys": f"a: &a {{{'x' * 1000}: 1}}\nb: [{', '.join(['*a'] * 10_000)}]\n",
    "documents": "a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]\nb: [*a, *a, *a, *a, *a, *a, *a, *a]\n---\n" * 1_000,
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_few_lines_of_aliases_do_not_fill_the_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name != "maps":  # the bound itself is tried once
        monkeypatch.setattr(yaml_reader, "MAX_ALIASED", yaml_reader.MAX_ALIASED // 10)
    began = time.process_time()
    with pytest.raises(Unreadable, match="aliases expand to too much"):
        read(BOMBS[name])
    assert time.process_time() - began < 10


def test_as_many_aliases_as_people_write_are_read() -> None:
    common = "labels: &l {a: b, c: d}\n"
    found = read(common + "".join(f"k{n}: *l\n" for n in range(10_000)))[0]
    assert found["k9999"] == {"a": "b", "c": "d"}


def test_what_an_alias_names_is_copied() -> None:
    found = read("a: &x {b: [1]}\nc: *x\nd: {<<: *x}\n")[0]
    found["a"]["b"].append(2)
    assert found["c"] == found["d"] == {"b": [1]}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "a: " + "{a: " * 5000 + "}" * 5000,
        '{"a": ' * 100_000,
        '{"a": ' * 5000 + "1" + "}" * 5000,
        "".join(f"a{n}: &a{n} {'[' * 150}{f'*a{n - 1}' if n else 1}{']' * 150}\n" for n in range(9)),
    ],
)
def test_what_lies_too_deep_is_refused(text: str) -> None:
    with pytest.raises(Unreadable, match=f"more than {MAX_DEPTH} maps and lists"):
        read(text)


def test_depth_that_is_allowed() -> None:
    for text in ("a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1), '{"a": ' * (MAX_DEPTH - 1) + "1" + "}" * (MAX_DEPTH - 1)):
        assert read(text)


def test_half_a_character_is_refused_wherever_it_stands() -> None:
    for text in ("a: \ud83d", '{"a": "\\uD83D"}', '{"\\ud83d": 1}'):
        with pytest.raises(Unreadable, match="half a surrogate pair"):
            read(text)


def test_without_libyaml_half_a_character_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "CSafeLoader")
    with pytest.raises(Unreadable, match="half a surrogate pair") as caught:
        read('a: 1\nb: "\\ud83d"\n')
    assert caught.value.line == 2


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4),
)  # fmt: skip


@given(st.dictionaries(st.text("ab=<.-"), JSON_VALUES, max_size=4))
def test_what_was_written_as_json_comes_back(value: dict[str, t.Any]) -> None:
    assert read(json.dumps(value)) == [value]
    assert read(json.dumps(value, ensure_ascii=False)) == [value]


@given(st.dictionaries(st.text("ab=<.-"), JSON_VALUES, max_size=4))
@example({"text": "\x7f\x85 \u2028 \u2029 \ufeff\ufffe\uffff😀\\ud83d"})
def test_the_api_server_which_reads_what_is_applied_as_yaml_gets_every_character(value: dict[str, t.Any]) -> None:
    as_yaml = "# not to be taken for JSON\n" + request_body(value).decode()
    assert written(read(as_yaml)[0]) == written(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_keeps_its_value(number: float) -> None:
    found = read(f"a: {number!r}")[0]["a"]
    assert isinstance(found, str) is ("e" in repr(number) and "." not in repr(number) and plain_value(repr(number)) == repr(number))
    assert float(found) == number


@given(st.floats())
def test_a_number_as_a_key_has_text(number: float) -> None:
    assert key_text(number)
