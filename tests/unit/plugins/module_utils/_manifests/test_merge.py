# SPDX-License-Identifier: GPL-3.0-or-later
"""Overrides: merged as Kubernetes merges its own types."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests.merge import apply_overrides, strategic_merge

CONTAINER: dict[str, t.Any] = {
    "name": "main",
    "image": "a",
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    "ports": [{"name": "x", "containerPort": 1}],
}
POD: dict[str, t.Any] = {"containers": [CONTAINER], "tolerations": [{"key": "a"}], "nodeSelector": {"x": "1"}}


def test_lists_with_a_key_merge_item_by_item() -> None:
    patch = {"containers": [{"name": "main", "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}]}
    merged = strategic_merge(POD, patch)
    assert merged["containers"][0]["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}, {"name": "C", "value": "4"}]
    assert merged["containers"][0]["image"] == "a"


def test_a_new_item_is_added_and_one_can_be_deleted() -> None:
    patch = {"containers": [{"name": "main", "env": [{"name": "A", "$patch": "delete"}]}, {"name": "side", "image": "b"}]}
    merged = strategic_merge(POD, patch)
    assert [c["name"] for c in merged["containers"]] == ["main", "side"]
    assert merged["containers"][0]["env"] == [{"name": "B", "value": "2"}]


def test_lists_without_a_key_are_replaced() -> None:
    assert strategic_merge(POD, {"tolerations": [{"key": "b"}]})["tolerations"] == [{"key": "b"}]


def test_null_deletes_and_replace_replaces() -> None:
    assert "nodeSelector" not in strategic_merge(POD, {"nodeSelector": None})
    replaced = strategic_merge(POD, {"nodeSelector": {"$patch": "replace", "y": "2"}})
    assert replaced["nodeSelector"] == {"y": "2"}


def test_the_base_stays_as_it_was() -> None:
    strategic_merge(POD, {"containers": [{"name": "main", "image": "z"}], "nodeSelector": {"z": "1"}})
    assert CONTAINER["image"] == "a"
    assert POD["nodeSelector"] == {"x": "1"}


@pytest.mark.parametrize(
    "overrides", [{"metadata": {"name": "other"}}, {"spec": {"selector": {"matchLabels": {"a": "b"}}}}, {"kind": "Job"}]
)
def test_identity_cannot_be_overridden(overrides: dict[str, t.Any]) -> None:
    manifest = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "w"}, "spec": {"selector": {}}}
    with pytest.raises(InvalidInput, match="cannot be overridden"):
        apply_overrides(manifest, overrides)


@pytest.mark.parametrize(
    ("patch", "path", "right"),
    [
        ({"env": [{"$patch": "replace"}, {"name": "ONLY", "value": "x"}]}, "env", [{"name": "ONLY", "value": "x"}]),
        ({"env": [{"$patch": "replace"}]}, "env", []),
        ({"args": [{"$patch": "replace"}, {"a": 1}]}, "args", [{"a": 1}]),
        ({"env": [{"$patch": "delete", "name": "A"}, {"$patch": "delete", "name": "none"}]}, "env", [{"name": "B", "value": "2"}]),
        ({"$setElementOrder/env": [{"name": "B"}, {"name": "A"}]}, "env", [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]),
        ({"$deleteFromPrimitiveList/words": ["b"]}, "words", ["a", "c"]),
        ({"$setElementOrder/words": ["c", "a"]}, "words", ["c", "b", "a"]),
        ({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}, "strategy", {"type": "Recreate"}),
        ({"strategy": {"$patch": "delete"}}, "strategy", {}),
        ({"strategy": {"$patch": "merge", "type": "x"}}, "strategy", {"type": "x", "rollingUpdate": {}}),
        ({"new": {"below": [{"$patch": "replace"}], "$retainKeys": ["below"]}}, "new", {"below": []}),
    ],
)  # fmt: skip
def test_directives_of_a_strategic_merge_patch(patch: dict[str, t.Any], path: str, right: t.Any) -> None:
    base = {**CONTAINER, "words": ["a", "b", "c"], "strategy": {"type": "RollingUpdate", "rollingUpdate": {}}}
    assert strategic_merge(base, patch)[path] == right


@pytest.mark.parametrize(
    "patch",
    [{"$patch": "keep"}, {"$retain": []}, {"env": [{"$patch": "merge", "name": "A"}]}, {"words": [{"$patch": "delete", "x": 1}]},
     {"new": {"$replace": True}}, {"tolerations": [{"deep": {"$x": 1}}]}, {"$retainKeys": ["env"], "image": "b"}, {"$retainKeys": "env"},
     {"$setElementOrder": []}, {"$deleteFromPrimitiveList/args": None}, {"$setElementOrder/env": "A"}],
)  # fmt: skip
def test_an_unknown_directive_is_refused_by_name(patch: dict[str, t.Any]) -> None:
    with pytest.raises(InvalidInput, match=r"overrides: \$"):
        strategic_merge(CONTAINER, patch)


@pytest.mark.parametrize("patch", [{"env": [{"value": "x"}]}, {"env": [{"name": "A"}, {"value": "x"}]}, {"env": [None]}])
def test_an_element_without_the_key_of_its_list_is_refused(patch: dict[str, t.Any]) -> None:
    """As by kubectl: it would take the place of the whole list."""
    with pytest.raises(InvalidInput, match="an element of env has no name"):
        strategic_merge(CONTAINER, patch)
