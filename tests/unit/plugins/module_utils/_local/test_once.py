# SPDX-License-Identifier: GPL-3.0-or-later
"""Two clusters need the same program, or change what all clusters share, at the same time."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._core.files import draft_prefix, locked
from ansible_collections.muster.ml.plugins.module_utils._local.once import making


def test_the_second_waits_and_finds_it_made(tmp_path: Path) -> None:
    target, made = tmp_path / "bin" / "kubelet", []
    begun, waits = threading.Event(), threading.Event()

    def first() -> None:
        with making(target) as missing:
            begun.set()
            assert not waits.wait(0.1), "the second one was let in"
            assert missing
            target.write_text("built")
            made.append("first")

    def second() -> None:
        begun.wait()
        with making(target) as missing:
            waits.set()
            assert not missing
            made.append("second")

    with ThreadPoolExecutor() as pool:
        for one in [pool.submit(first), pool.submit(second)]:
            one.result()
    assert made == ["first", "second"]
    assert list(target.parent.iterdir()) == [target]


def test_what_killed_runs_left_of_a_file_goes_and_that_of_others_stays(tmp_path: Path) -> None:
    target, other = tmp_path / "kubelet", tmp_path / f"{draft_prefix(tmp_path / 'kubectl')}1"
    (tmp_path / f"{draft_prefix(target)}folder").mkdir()
    (tmp_path / f"{draft_prefix(target)}folder" / "layer").write_text("half")
    for path in (tmp_path / f"{draft_prefix(target)}17", other):
        path.write_text("half")
    with making(target) as missing:
        assert missing
    assert list(tmp_path.iterdir()) == [other]


def test_after_a_failure_the_next_one_makes_it(tmp_path: Path) -> None:
    target = tmp_path / "kubelet"
    with pytest.raises(OSError, match="no space"), making(target):
        raise OSError("no space")
    with making(target) as missing:
        assert missing
    assert list(tmp_path.iterdir()) == []


def test_nobody_holds_a_lock_that_was_removed(tmp_path: Path) -> None:
    lock, inside, most = tmp_path / "state" / ".lock", 0, 0

    def hold(_number: int) -> None:
        nonlocal inside, most
        with locked(lock):
            inside += 1
            most = max(most, inside)
            threading.Event().wait(0.002)
            inside -= 1
        with contextlib.suppress(OSError):
            lock.parent.rmdir()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(hold, range(40)))
    assert most == 1
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_no_file_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"/ is a folder"), making(Path("/")):
        pass
