# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs and images are built at the same time, and after a failure nothing else begins."""

import threading
import typing as t
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import CommandFailed, InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._local import gobuild, oci_nodes
from ansible_collections.muster.ml.plugins.module_utils._local.side_by_side import Build, Progress, side_by_side
from ansible_collections.muster.ml.plugins.modules import local_build

SECONDS = 10.0


def test_the_queues_run_at_the_same_time_and_each_in_order() -> None:
    both, lines, done = threading.Barrier(2), list[str](), list[str]()

    def meet(progress: Progress) -> None:
        both.wait(SECONDS)
        progress("nats: assembling")
        both.wait(SECONDS)

    def first(_progress: Progress) -> None:
        both.wait(SECONDS)
        both.wait(SECONDS)
        done.append("kubelet")

    second = Build("kubectl (2 of 2)", lambda _progress: done.append("kubectl"))
    side_by_side([[Build("building kubelet (1 of 2)", first), second], [Build("building nats", meet)]], lines.append)
    assert done == ["kubelet", "kubectl"]
    assert "building kubelet (1 of 2); nats: assembling" in lines


def test_after_a_failure_nothing_begins_and_what_runs_is_ended() -> None:
    failing, done, lines = threading.Event(), list[str](), list[str]()

    def slow(_progress: Progress) -> None:
        assert failing.wait(SECONDS)
        done.append("kubelet")

    def fail(_progress: Progress) -> None:
        raise CommandFailed("mmdebstrap exited with 1")

    def show(line: str) -> None:
        lines.append(line)
        if "failed" in line:
            failing.set()

    never = Build("never", lambda _progress: done.append("never"))
    with pytest.raises(CommandFailed, match="mmdebstrap exited with 1"):
        side_by_side([[Build("building kubelet", slow), never], [Build("building nats", fail), never]], show)
    assert done == ["kubelet"]
    assert lines[-1] == "building kubelet; building nats failed, the others end what they build"


def context(pins: Path, *, check: bool = False, **params: t.Any) -> HostContext:
    program = {"name": "etcd", "module_dir": str(pins), "package": "example.org/etcd", "ldflags": "", "tags": []}
    image = {"muster.local/x:1": {"config": {"entrypoint": ["/x"]}}}
    given = {"programs": [program], "recipes": image, "manifests": [], "builder": str(pins), "cache_dir": str(pins / "cache"), **params}
    return HostContext(params=given, check=check)


def test_what_is_missing_is_built_once(pins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []

    def make(target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("made")
        made.append(target)

    monkeypatch.setattr(gobuild, "build", lambda program: make(program.path))
    monkeypatch.setattr(oci_nodes, "build", lambda image, _umoci, _progress: make(image.archive))
    assert local_build.execute(context(pins, check=True))["changed"]
    assert made == []
    result = local_build.execute(context(pins))
    assert result["changed"]
    assert sorted(map(str, made)) == sorted([*result["paths"], str(next((pins / "cache/images").iterdir()))])
    assert not local_build.execute(context(pins))["changed"]
    assert len(made) == 2


def test_a_recipe_is_checked_before_anything_is_built(pins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gobuild, "build", lambda _program: pytest.fail("built"))
    with pytest.raises(InvalidInput, match=r"muster\.local/x:1: .*entrypiont"):
        local_build.execute(context(pins, recipes={"muster.local/x:1": {"config": {"entrypiont": ["/x"]}}}))
    with pytest.raises(InvalidInput, match="without a builder"):
        local_build.execute(context(pins, builder=None))
