# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects from options, files, folders and URLs."""

from __future__ import annotations

import datetime as dt
import hashlib
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, Unreachable
from ansible_collections.muster.ml.plugins.module_utils._kube import source
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import to_plain_values
from ansible_collections.muster.ml.plugins.module_utils._kube.validate import check_objects

TWO = "kind: A\n---\nkind: B\n"


def test_text_mappings_and_lists_of_both() -> None:
    assert source.from_definition([TWO, {"kind": "C"}, ["kind: D"], "- kind: E"]) == [{"kind": kind} for kind in "ABCDE"]


def test_a_date_stays_text() -> None:
    assert source.from_definition("data: {x: 2026-11-21}") == [{"data": {"x": "2026-11-21"}}]


def test_files_folders_and_patterns(tmp_path: pathlib.Path) -> None:
    (tmp_path / "2.yaml").write_text("kind: C\n")
    (tmp_path / "1.yml").write_text(TWO)
    (tmp_path / "3.json").write_text('{"kind": "D"}')
    (tmp_path / "notes.txt").write_text("not: read\n")
    kinds = [[item["kind"] for item in source.from_path(str(src))] for src in (tmp_path, tmp_path / "1.yml", tmp_path / "*.y*ml")]
    assert kinds == [["A", "B", "C", "D"], ["A", "B"], ["A", "B", "C"]]


@pytest.mark.parametrize(
    ("name", "text", "told"), [("x.yaml", "a: [", "x.yaml, line 2: not YAML"), ("none.txt", None, "there is no such file")]
)
def test_what_cannot_be_read(tmp_path: pathlib.Path, name: str, text: str | None, told: str) -> None:
    if text:
        (tmp_path / name).write_text(text + "\n")
    with pytest.raises(InvalidInput, match=told):
        source.from_path(str(tmp_path / name))


def test_a_url_is_checked_by_its_digest(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(TWO)
    digest = hashlib.sha256(TWO.encode()).hexdigest()
    assert len(source.from_url(path.as_uri(), digest.upper())) == 2
    assert len(source.from_url(path.as_uri(), f"sha256:{digest}")) == 2
    with pytest.raises(InvalidInput, match=f"has sha256 {digest}, not the 00"):
        source.from_url(path.as_uri(), "00")
    with pytest.raises(Unreachable, match="cannot be read"):
        source.from_url((tmp_path / "none").as_uri(), digest)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_encodings_of_editors_are_read_in_every_locale(tmp_path: pathlib.Path, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locale.getpreferredencoding", lambda _do_setlocale=True: "ascii")
    monkeypatch.setattr("locale.getencoding", lambda: "ascii")
    path = tmp_path / "x.yaml"
    path.write_bytes("a: é☕\r\nb: |\r\n  x\r\n  y\r\n".encode(encoding))
    found = [{"a": "é☕", "b": "x\ny\n"}]
    assert source.from_path(str(path)) == found
    assert source.from_url(path.as_uri(), hashlib.sha256(path.read_bytes()).hexdigest()) == found


def test_what_is_no_text_is_told(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"a: \xff\xfe\xfa")
    with pytest.raises(InvalidInput, match="cannot be read"):
        source.from_path(str(path))
    with pytest.raises(InvalidInput, match="is not text"):
        source.from_url(path.as_uri(), hashlib.sha256(path.read_bytes()).hexdigest())


class Tagged(str):
    """As Ansible's own strings."""

    __slots__ = ()


def test_plain_values() -> None:
    value = to_plain_values({Tagged("a"): (Tagged("b"), 1, True, None, 1.5, dt.date(2026, 1, 2))})
    assert value == {"a": ["b", 1, True, None, 1.5, "2026-01-02"]}
    assert [type(item) for item in value] == [str]
    assert [type(item) for item in value["a"]] == [str, int, bool, type(None), float, str]


def test_keys_become_the_text_that_kubectl_makes_of_them() -> None:
    """Ansible has read a mapping with its own reader; numbers among its keys cannot be sorted beside text."""
    value = to_plain_values({8080: 1, True: 2, 1.10: 3, Tagged("a"): 4, dt.date(2026, 1, 2): 5})
    assert value == {"8080": 1, "true": 2, "1.1": 3, "a": 4, "2026-01-02": 5}
    assert {type(key) for key in value} == {str}


def test_no_key_pushes_out_another_one() -> None:
    assert to_plain_values({8080: 1, "8080": 2, None: 3}) == {8080: 1, "8080": 2, None: 3}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}\ne: *x", [{"a": {"b": 1}, "c": {"b": 1, "d": 2}, "e": {"b": 1}}]),
        ("[1, 1.5, ~, yes, '1', 0x10, !!str 5, [a, [b]]]", [[1, 1.5, None, True, "1", 16, "5", ["a", ["b"]]]]),
        ("a: 1\n---\n---\nb: |\n  x\n", [{"a": 1}, None, {"b": "x\n"}]),
    ],
)
def test_yaml_means_what_it_always_meant(text: str, found: list[t.Any]) -> None:
    assert source.documents(text, "here") == found == list(yaml.safe_load_all(text))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: [\n", "here, line 3: not YAML"),
        ("a: 1\na: 2", "here, line 2: the key 'a' occurs twice. Nothing was changed."),
        ("a: *hunter2", r"here, line 1: there is no such anchor before this alias; text that begins with \* needs quotes\."),
        ("a: !hunter2 b", r"here, line 1: the tag is not known, or not for such a value; text that begins with ! needs quotes\."),
        ("a: !hunter2 [b]", r"here, line 1: the tag is not known, or not for such a value; text that begins with ! needs quotes\."),
        ("a: &x\n  b: [*x]", "here, line 2: what the anchor x names would contain itself."),
        ("a: 1\n? [b]\n: 2", "here, line 2: a list or a map cannot be a key."),
        ("a: 1\n<<: [{b: 2}, 3]", "here, line 2: only maps can be merged."),
        ("a: &x [{b: 2}]\n<<: *x", "here, line 2: only maps can be merged."),
        ("a: 1\n--- b", "here, line 2: only a comment may stand beside ---."),
        ("a:\n- !!int x", "here, line 2: the tag is not known, or not for such a value; text that begins with ! needs quotes."),
        ("a: \ud83d", "here: half a surrogate pair is no character."),
        ('{"a": 1}\n{"b": "\\ud83d"}', "here, line 2: half a surrogate pair is no character."),
    ],
)
def test_text_that_makes_no_object_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        source.documents(text, "here")


class Unsafe(str):
    """Marked text whose methods return marked values again."""

    __slots__ = ()

    def encode(self, *args: t.Any, **options: t.Any) -> t.Any:
        return UnsafeBytes(super().encode(*args, **options))


class UnsafeBytes(bytes):
    __slots__ = ()

    def decode(self, *args: t.Any, **options: t.Any) -> t.Any:
        return Unsafe(super().decode(*args, **options))


def test_marked_text_is_read_too() -> None:
    """PyYAML takes str and none of its subclasses."""
    assert to_plain_values(Unsafe("kind: ConfigMap")).__class__ is str


def test_a_released_manifest_must_have_its_digest(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "released.yaml"
    path.write_text(TWO)
    digest = hashlib.sha256(TWO.encode()).hexdigest()
    assert source.from_release(str(path), digest) == [{"kind": "A"}, {"kind": "B"}]
    with pytest.raises(InvalidInput, match=f"has sha256 {digest}, not the 00"):
        source.from_release(str(path), "00")
    with pytest.raises(InvalidInput, match=r"none\.yaml cannot be read"):
        source.from_release(str(tmp_path / "none.yaml"), digest)
    with pytest.raises(Unreachable, match=r"url http://localhost:1/x\.yaml cannot be read"):
        source.from_release("http://localhost:1/x.yaml", digest)


@pytest.mark.parametrize("text", ["kind: ConfigMap\n", "kind: List\nitems: [{kind: ConfigMap}]\n", "- a\n", "kind: A\n--- x\n"])
def test_an_error_about_an_object_of_a_folder_names_its_file(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "good.yml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    (tmp_path / "wrong.yml").write_text(text)
    with pytest.raises(InvalidInput, match=r"wrong\.yml") as caught:
        check_objects(source.from_path(str(tmp_path)))
    assert "good.yml" not in str(caught.value)


@pytest.mark.parametrize("target", ["nowhere", "b.yaml"])
@pytest.mark.parametrize("src", [".", "*.yaml"])
def test_a_link_that_leads_nowhere_is_told(tmp_path: pathlib.Path, src: str, target: str) -> None:
    """As by kubectl: of a folder that lost a file, prune would delete the objects."""
    (tmp_path / "a.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    (tmp_path / "b.yaml").symlink_to(target)
    with pytest.raises(InvalidInput, match=r"b\.yaml cannot be read"):
        source.from_path(str(tmp_path / src))
