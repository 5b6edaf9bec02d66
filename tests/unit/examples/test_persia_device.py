# SPDX-License-Identifier: GPL-3.0-or-later
"""PERSIA's example on GPUs, with a torch and a PERSIA of our own."""

import importlib
import sys
import types
import typing as t
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[3] / "roles" / "persia" / "files" / "example"


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., t.Any]:
    """device.choose() in a process of that rank, in an image like that."""

    def chosen(rank: int, *, gpus: int, built: bool = True, asked: str = "") -> t.Any:
        cuda = types.SimpleNamespace(is_available=lambda: gpus > 0, device_count=lambda: gpus)
        env, prelude = types.ModuleType("persia.env"), types.ModuleType("persia.prelude")
        env.__dict__["get_local_rank"] = lambda: rank
        prelude.__dict__["is_cuda_feature_available"] = lambda: built
        persia, torch = types.ModuleType("persia"), types.ModuleType("torch")
        persia.__dict__["env"], torch.__dict__["cuda"] = env, cuda
        for module in (persia, env, prelude, torch):
            monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.syspath_prepend(str(EXAMPLE))
        monkeypatch.delitem(sys.modules, "device", raising=False)
        return importlib.import_module("device").choose({"MUSTER_GPUS": asked})

    return chosen


# Shows row 000.22.
def test_each_process_has_the_gpu_of_its_local_rank(choose: t.Callable[..., t.Any]) -> None:
    for rank in (0, 1):
        device = choose(rank, gpus=2, asked="2")
        assert (device.index, device.name, device.backend) == (rank, f"cuda:{rank}", "nccl")
        assert device.mixed_precision


@pytest.mark.parametrize(("gpus", "built"), [(0, True), (0, False), (1, False)])
def test_without_gpus_it_computes_on_the_cpu(choose: t.Callable[..., t.Any], gpus: int, built: bool) -> None:
    device = choose(0, gpus=gpus, built=built)
    assert (device.index, device.name, device.backend, device.mixed_precision) == (None, "cpu", "gloo", False)


@pytest.mark.parametrize(
    ("rank", "gpus", "built", "why"),
    [
        (0, 0, True, "torch sees 0 of them"),
        (1, 1, True, "process 1 cannot use one: torch sees 1 of them"),
        (0, 2, False, "PERSIA is built without CUDA"),
    ],
)
def test_gpus_that_cannot_be_used_are_an_error(choose: t.Callable[..., t.Any], rank: int, gpus: int, built: bool, why: str) -> None:
    with pytest.raises(ValueError, match=f"asks for 2 GPUs, and .*{why}"):
        choose(rank, gpus=gpus, built=built, asked="2")
