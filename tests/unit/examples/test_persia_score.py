# SPDX-License-Identifier: GPL-3.0-or-later
"""PERSIA's example: the score of a checkpoint, with a torch and a PERSIA that do nothing."""

import importlib
import math
import sys
import types
import typing as t
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[3] / "roles" / "persia" / "files" / "example"
NOTHING = ("numpy", "persia", "persia.ctx", "persia.embedding", "persia.embedding.data", "persia.env", "torch")


class Anything:
    Module = object


@pytest.fixture
def score(monkeypatch: pytest.MonkeyPatch) -> t.Any:
    for name in NOTHING:
        module = types.ModuleType(name)
        module.__dict__["__getattr__"] = lambda _name: Anything
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.syspath_prepend(str(EXAMPLE))
    for name in ("data_loader", "model", "score"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = importlib.import_module("score")
    monkeypatch.delitem(sys.modules, "numpy")  # pytest.approx would use it
    yield found
    for name in ("data_loader", "model", "score"):
        sys.modules.pop(name, None)


def test_the_score_is_that_of_the_trainer_by_another_way(score: t.Any) -> None:
    # Few different values: ties.
    scores = [(-2.0, -0.5, 0.0, 1.5)[(row * row + row // 3) % 4] for row in range(200)]
    labels = [float(row % 3 == 0) for row in range(200)]
    trainers = importlib.import_module("metrics")
    found = score.measure([(one, label > 0.5) for one, label in zip(scores, labels, strict=True)])
    assert found["auc"] == pytest.approx(trainers.auc(scores, labels), abs=1e-6)
    chances = [1 / (1 + math.exp(-one)) for one in scores]
    assert found["loss"] == pytest.approx(trainers.log_loss(chances, labels), abs=1e-6)
    assert score.measure([(2.0, True), (1.0, False)])["auc"] == 1
    assert score.measure([(2.0, False), (1.0, True)])["auc"] == 0


def test_what_is_no_checkpoint_of_these_settings_is_refused(tmp_path: Path) -> None:
    sys.path.insert(0, str(EXAMPLE))
    exchange, settings = importlib.import_module("exchange"), importlib.import_module("settings")
    sys.path.remove(str(EXAMPLE))
    run = exchange.Exchange(str(tmp_path))
    with pytest.raises(settings.SettingsError, match="there is no checkpoint in"):
        run.checkpoint({}, "a")
    with pytest.raises(settings.SettingsError, match="made with other columns"):
        run.checkpoint({"fingerprint": "b", "checkpoint": "step-1"}, "a")
    assert run.checkpoint({"fingerprint": "a", "checkpoint": "step-1"}, "a") == tmp_path / "checkpoints" / "step-1"
