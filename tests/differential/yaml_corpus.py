# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts whose values kubectl's reader and ours must agree on, and what kubectl made of them.

    python tests/differential/yaml_corpus.py

asks kubectl's own libraries (go/main.go, pinned in go/go.mod to what kubectl 1.36.3 is built with) and writes ANSWERS.
The unit tests compare our reader with that file, and test_yaml.py compares the file with the kubectl of the local cluster.
"""

import json
import subprocess
import typing as t
from pathlib import Path

ANSWERS = Path(__file__).with_name("yaml_answers.json")
NAME = "the-name"
# Every document is an object, so that kubectl prints it.
OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}}
HEAD = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {NAME}}}\n"
JSON = f'{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{NAME}"}}, '

_WORDS = (  # noqa: SIM905
    "y Y yes Yes YES yEs n N no No NO nO true True TRUE tRUE false False FALSE on On ON oN off Off OFF oFF t f T F "
    "null Null NULL nULL nil None none ~ ~~ = == != =~ << < > .nan .NaN .NAN nan NaN .inf .Inf .INF +.inf -.inf "
    "+.Inf -.INF inf Infinity -Infinity .Infinity . .. ... - -- + +- _ _1 __ $ $1 a:b a::b http://x:80/y x=y yes: "
    "y: a#b a,b a-b 50% 10m 1Gi 100Mi 1.5Gi 0.5m"
).split()
_DIGITS = (  # noqa: SIM905
    "0 00 1 7 08 09 010 017 0017 018 019.5 0o17 0O17 0o18 0o 0x1f 0X1F 0xfg 0x 0b101 0B1 0b2 0b 1_000 1__0 1_ 0_7 "
    "0x_f 0o_7 0b_1 12345678901 2147483648 4294967296 9007199254740992 9007199254740993 9223372036854775807 "
    "9223372036854775808 18446744073709551615 18446744073709551616 77777777777777777777 99999999999999999999999 0x7fffffffffffffff "
    "0x8000000000000000 0xffffffffffffffff 0x10000000000000000 0777777777777777777777777 0o7777777777777777777777 "
    "1. 1.0 1.5 1.10 01.5 .5 .50 .5_0 .5__0 1_0.5 0.1 0.30000000000000004 3.141592653589793238 1e3 1E3 1e+3 1e-3 "
    "1.e3 1.5e3 .5e1 1e03 1e 1e+ e3 1e400 1e-400 1e20 1e21 1e22 123456789.123 1e308 4.9e-324 0.000001 0.0000001 "
    "1.0e-7 12345678901234567890.5 0x1p-2 0x1.8 1e3.5"
).split()
_DATES = (
    "2001-12-14", "2001-1-2", "2001-12-14T21:59:43Z", "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43.10", "2001-13-14",
    "2026-11-21", "12:30", "12:30:45", "1:2:3:4", "190:20:30.15", "22:22", "1.2.3", "1.2.3.4", "10.0.0.0/8", "1-2", "1/2", "1,000",
    "1 000", "v1", "1a", "1.10.0",
)  # fmt: skip
_STYLES = (
    '"y"', "'y'", '"1"', "'0x1f'", '""', "''", "'it''s'", '"a\\tb\\n\\u00e9\\x41\\U0001F600\\0"', '"\\/"', '"a\n  b"', "'a\n\n  b'",
    "a\n  b", "|\n  x\n  y\n", "|-\n  x\n", "|+\n  x\n\n", ">\n  x\n  y\n\n  z\n", ">-\n  x\n   y\n", "|2\n   x\n", "|\n  yes\n",
    "|\n  1\n", "é☕😀", "'\t'", "!!str 5", "!!str yes", "!!str", "!!int 5", "!!int '5'", "!!int 0x1f", "!!int 1.5", "!!int a",
    "!!float 5", "!!float 1.5", "!!float a", "!!float .5", "!!bool yes", "!!bool 'on'", "!!bool 5", "!!null ''", "!!null ~", "!!null x",
    "!!binary aGVsbG8=", "!!binary '*'", "!!timestamp 2001-12-14", "! 5", "! '5'", "!!map {a: 1}", "!!seq [1]", "&a 5", "&a yes", "&a",
    "@x", "`x", "%x", "[", "]", "{", "'", '"', "*a", "[]", "{}", "[1, y, ~, '1', 0x10, 1.0, [a, [b]]]", "{a: 1, b: [y], c: {d: ~}}",
    "[a b, c]", "[1, 2,]", "{a, b: }", "{a: 1, ? b : 2}", "[a: 1, b: 2]", "\n  a: 1\n", "\n  - 1\n  - 2\n", "\n- 1\n- 2\n",
    "\n- a: 1\n  b: 2\n-\n  - 3\n", "\n- =\n- '!='\n- !!str =\n", "1 # comment", "a#no comment", "a # comment", "# comment", "\ta",
    "a\tb", "a: b", "- a", "? a", "\n\ta: 1\n",
)  # fmt: skip
_KEYS = (
    "y", "on", "1", "0x10", "017", "08", "1_000", "1.5", "1.10", "1e3", "1e6", "1e-7", "123456.5", "16777217.0", "0.1",
    "3.14159265358979", ".inf", "-.inf", ".nan", "1e300", "~", "null", "''", "2001-12-14", "18446744073709551615", "=", "a b", "'1'",
    '"y"', "!!str 1", "!!int 1", "!!float 16777217", "!!binary aGk=", "[a]", "{a: b}", "a/b.c:d", "-1", "+1",
)  # fmt: skip

_A = "base: &a {x: 1, y: [1, {z: 2}]}\n"
_DOCUMENTS = (
    # Aliases and merge keys.
    _A + "b: *a\n",
    _A + "b: {<<: *a, x: 2}\n",
    _A + "b: {x: 2, <<: *a}\n",
    _A + "b: {<<: [*a, {x: 5, w: 6}]}\n",
    _A + "b: {<<: [{x: 5, w: 6}, *a]}\n",
    _A + "b: {<<: *a, <<: {x: 7}}\n",
    _A + "b: {'<<': *a}\n",
    _A + "b: {!!merge <<: *a}\n",
    _A + "b: {! <<: *a}\n",
    _A + "b: {! '<<': *a}\n",
    _A + "b: {<<: 5}\n",
    _A + "b: {<<: [1]}\n",
    _A + "b: {<<: ~}\n",
    _A + "b: {<<: {<<: *a, q: 1}}\n",
    "l: &a [{x: 1}]\nb: {<<: *a}\n",
    "<<: {p: 1}\nq: 2\n",
    "a: &x 1\nb: &x 2\nc: *x\n",
    "a: *x\nb: &x 1\n",
    "a: &x [*x]\n",
    "a: &x {b: *x}\n",
    "a: &x 017\nb: *x\nc: {*x : 1}\n",
    "a: &x [&x 1, *x]\nb: *x\n",
    "a: &x\nb: *x\n",
    "&k key: &v value\n*k : 1\n",
    "&k key: &v value\nb: [*k, *v]\n",
    "a: <<\nb: [<<]\n",
    "a: &x1-y_z 1\nb: *x1-y_z\n",
    "a: &x 1e3\nb: [*x, *x]\n",
    "b: &m {<<: {x: 1}, x: 2}\nc: {<<: *m, x: 3}\n",
    # Documents.
    f"a: 1\n---\n{HEAD}b: 2\n",
    f"a: 1\n--- # comment\n{HEAD}b: 2\n",
    f"a: 1\n---   \n{HEAD}b: 2\n",
    f"a: 1\n---\n---\n\n---\n# nothing\n---\n{HEAD}b: 2\n",
    f"a: 1\n...\n---\n{HEAD}b: 2\n",
    "a: 1\n...\n",
    "a: 1\n...\n# comment\n",
    "a: 1\n--- {b: 2}\n",
    "a: 1\n--- text\n",
    "a: 1\n---text\n",
    "a: 1\n----\nb: 2\n",
    "a: 1\n---",
    "a: |\n  x\n  ---\n  y\n",
    "a: |\n  ---\n  b: c\n",
    "a: 'x\n---\ny'\n",
    f"a: &x 1\n---\n{HEAD}b: *x\n",
    # Lines, spaces, characters.
    "a: 1\r\nb: |\r\n  x\r\n  y\r\n",
    "a: 'x\r\n  y'\r\n",
    f"a: 1\r\n---\r\n{HEAD}b: 2\r\n",
    "a: 1\n\n\n  # comment\nb: 2",
    "a:\n  b: 1\n c: 2\n",
    "a: [1,\n2,\n\t3]\n",
    "a:\t1\n",
    "a: 1 \nb:  2\t\n",
    'a: "\u2028x"\n',
    "a: x\u00a0y\n",
    "a: 'x\u0085y'\n",
    "a: \x07\n",
    "a: 1\nb\n",
    "a: 1\n  b: 2\n",
    "a: - 1\n",
    "a: [1, 2\n",
    "a: {b: 1\n",
    "a: 'x\n",
    'a: "x\\q"\n',
    'a: "\\ud83d\\ude00"\n',
    "? a\n: 1\n? b\n",
    "? |\n  k\n: v\n",
    "a:\n- b\n-c\n",
    f"{'k' * 1020}: 1\n",
    f"{'k' * 1030}: 1\n",
    "a: {b:1}\n",
    'a: {"b":1}\n',
    "a: [x:1]\n",
    "a: {b:c:d}\n",
    "a: [b?]\n",
    "a: {b: http://x}\n",
)
_JSON_TEXTS = (
    '"v": 1}',
    '"v": 1.0}',
    '"v": 1e3}',
    '"v": 1.5}',
    '"v": -0}',
    '"v": -0.0}',
    '"v": 1e400}',
    '"v": 9007199254740993}',
    '"v": 9223372036854775808}',
    '"v": 1E2}',
    '"v": 01}',
    '"v": 0x1f}',
    '"v": .5}',
    '"v": +1}',
    '"v": NaN}',
    '"v": NaN, "w": "\\ud83d\\ude00"}',
    f'"v": 1}}\nNaN: 2\n{HEAD}',
    '"v": yes}',
    '"v": null}',
    '"v": "\\u00e9\\ud83d\\ude00\\/"}',
    '"v": "a\\u0000b"}',
    '"v": [1,]}',
    '"v": 1} ',
    '"v": 1}\n\n',
    f'"v": 1}}{JSON}"w": 2}}',
    f'"v": 1}}\n{JSON}"w": 2}}\n',
    f'"v": 1}}\n---\n{HEAD}w: 2\n',
    f'"v": 1}}\n---\n{JSON}"w": 2}}',
    f'"v": 1}} {JSON}"w": 2}} {JSON}"x": 0x3}}',
    f'"v": 1}} {JSON}"w": 2}} {JSON}"x": 3}}',
    '"v":\t1}',
    '"v": "a\tb"}',
    '"v": {"n": {"m": [[], {}]}}}',
    "v: 1, 'w': 017}",
    '"v": 1} # comment',
)

# What kubectl reads, dropping something without a word, and we refuse; with what we say.
STRICTER = {
    f"{HEAD}a: 1\na: 2\n": "the key 'a' occurs twice",
    f"{HEAD}1: a\n'1': a\n": "the key '1' occurs twice",
    f"{HEAD}true: 1\ntrue: 2\n": "the key 'true' occurs twice",
    f'{JSON}"a": 1, "a": 2}}': "the key 'a' occurs twice",
    f"{HEAD}a: 1\n...\nb: 2\n": "did not find expected <document start>",
    f"{HEAD}a: 1\n...\n}}\n": "did not find expected",
    f"{HEAD}value: !=\n": "the tag is not known",
    f"{HEAD}&k key: &v value\n*k : 1\n": "the key 'key' occurs twice",
    f"{HEAD}a: !vault 5\n": "the tag is not known",
    f"{HEAD}a: !!python/object:os.system [x]\n": "is not known",
    f"{HEAD}a: !!set {{x, y}}\n": "is not known",
    f'{JSON}"a": "\\ud83d"}}': "half a surrogate pair",
}

# What kubectl refuses and we read, because libyaml knows newer YAML than kubectl's copy of it, or because it is harmless.
LAXER = {
    f'{HEAD}value: "\\/"\n': {"value": "/"},
    f"{HEAD}a: [b?]\n": {"a": ["b?"]},
    f"{HEAD}? 18446744073709551615\n: value\n": {"18446744073709551615": "value"},
    f"%YAML 1.1\n---\n{HEAD}a: 1\n": {"a": 1},
}


def texts() -> list[str]:
    """All of them, those that kubectl refuses among them."""
    numbers = [f"{sign}{digits}" for digits in _DIGITS for sign in ("", "-", "+")]
    values = [f"{HEAD}value: {text}\n" for text in (*_WORDS, *numbers, *_DATES, *_STYLES)]
    values += [f"{HEAD}value: [{text}]\n" for text in (*_WORDS[:20], *_DATES)]
    keys = [f"{HEAD}? {text}\n: value\n" for text in _KEYS]
    documents = [HEAD + text for text in _DOCUMENTS] + [JSON + text for text in _JSON_TEXTS]
    documents += [
        f"\ufeff{HEAD}a: 1\n",
        f'\ufeff{JSON}"v": "\\ud83d\\ude00"}}',
        f"---\n{HEAD}a: 1\n",
        f"# comment\n---\n{HEAD}a: 1\n",
        f"%YAML 1.1\n---\n{HEAD}a: 1\n",
        f'\n\n  {JSON}"v": 1}}',
    ]
    return list(dict.fromkeys([*values, *keys, *documents, *STRICTER]))


def answers() -> dict[str, list[t.Any] | None]:
    """What kubectl's libraries made of each text: the values of its documents, None where they refuse it."""
    return dict(map(_whole, json.loads(ANSWERS.read_text(encoding="utf-8"))))


def _short(text: str, answer: list[t.Any] | None) -> list[t.Any]:
    """A value's text and what it is read as, without the object around it; another text and its answer as they are."""
    (only,) = answer if answer and len(answer) == 1 else [None]
    if text.startswith(f"{HEAD}value: ") and isinstance(only, dict) and only == {**OBJECT, "value": only.get("value")}:
        return [text.removeprefix(f"{HEAD}value: "), {"is": only["value"]}] if "value" in only else [text, answer]
    return [text, answer]


def _whole(row: list[t.Any]) -> tuple[str, list[t.Any] | None]:
    text, answer = row
    return (f"{HEAD}value: {text}", [{**OBJECT, "value": answer["is"]}]) if isinstance(answer, dict) else (text, answer)


def written(answered: t.Iterable[tuple[str, list[t.Any] | None]]) -> str:
    """The text of ANSWERS, as many of them in a line as fit."""
    rows = [json.dumps(_short(*pair), ensure_ascii=True) for pair in answered]
    lines: list[str] = []
    for row in rows:
        if lines and len(lines[-1]) + len(row) < 138:
            lines[-1] += f", {row}"
        else:
            lines.append(row)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main() -> None:
    asked = texts()
    done = subprocess.run(
        ["go", "run", "."], cwd=Path(__file__).with_name("go"), input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    ANSWERS.write_text(written(zip(asked, json.loads(done.stdout), strict=True)), encoding="utf-8")


if __name__ == "__main__":
    main()
