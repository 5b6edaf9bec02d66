# SPDX-License-Identifier: GPL-3.0-or-later
"""Scores a checkpoint on the held-out rows, beside servers that have trained nothing. Started by ``persia-launcher nn-worker score.py``.

It shares with the trainer how rows are read and what the model looks like, but neither its numbers nor its way to them.
"""

from __future__ import annotations

import bisect
import faulthandler
import json
import math
import os
import sys

import dataset
import persia.env
import torch
import yaml
from data_loader import make_batch
from exchange import Exchange
from model import Tower
from persia.ctx import EmbeddingCtx, PreprocessMode
from settings import Settings, SettingsError, check_slots, read_settings

BATCH = 512


class ScoreCtx(EmbeddingCtx):
    """PERSIA's context for evaluation. By itself it looks for no servers."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__(PreprocessMode.EVAL, model=model)
        self.common_context.init_nats_publisher(1)
        self.common_context.wait_servers_ready()
        for address in self.common_context.get_embedding_worker_addr_list():
            self.common_context.init_rpc_client_with_addr(address)


def score(ctx: EmbeddingCtx, settings: Settings, data: dataset.Dataset) -> list[tuple[float, bool]]:
    """The model's answer for each held-out row, and whether the right one is yes."""
    rows = data.held_out
    answers: list[tuple[float, bool]] = []
    with torch.no_grad():
        for start in range(0, len(rows), BATCH):
            part = data.rows(rows[start : start + BATCH])
            batch = make_batch(settings, part, tag=None, train=False)
            output, _labels = ctx.forward(ctx.get_embedding_from_data(batch))
            answers += zip(output.double().reshape(-1).tolist(), (row.label > 0.5 for row in part))
    return answers


def measure(answers: list[tuple[float, bool]]) -> dict[str, float]:
    """AUC: the share of pairs of a positive and a negative row that are in the right order; a tie is half a pair."""
    negative = sorted(answer for answer, label in answers if not label)
    positive = [answer for answer, label in answers if label]
    right = sum(bisect.bisect_left(negative, one) + bisect.bisect_right(negative, one) for one in positive)
    wrong_by = [-answer if label else answer for answer, label in answers]
    loss = sum(max(one, 0) + math.log1p(math.exp(-abs(one))) for one in wrong_by) / len(answers)
    return {"loss": round(loss, 6), "auc": round(right / 2 / len(positive) / len(negative), 6)}


def run(settings: Settings) -> int:
    if persia.env.get_world_size() != 1:
        raise SettingsError("score.py is one process; give it one trainer (persia_nn_worker_replicas: 1)")
    source = os.environ.get("PERSIA_EMBEDDING_CONFIG", "")
    with open(source, encoding="utf-8") as handle:
        dims = check_slots(settings, yaml.safe_load(handle) or {}, source)
    exchange = Exchange(settings.run_dir)
    folder = exchange.checkpoint(exchange.state(), settings.fingerprint())
    data = dataset.load(settings)
    model = Tower(len(settings.dense_columns), list(dims.values()), settings.hidden)
    faulthandler.dump_traceback_later(3 * settings.timeout, exit=True)
    with ScoreCtx(model.eval()) as ctx:
        before = sum(ctx.get_embedding_size())
        ctx.load_torch_state_dict(model, str(folder / "dense.pt"), map_location="cpu")
        ctx.load_embedding(str(folder / "embedding"))
        embeddings = sum(ctx.get_embedding_size())
        figures = measure(score(ctx, settings, data))
    print(
        f"MUSTER result loss={figures['loss']:.4f} auc={figures['auc']:.4f} rows={len(data.held_out)} "
        f"embeddings={embeddings} before={before} checkpoint={folder}",
        flush=True,
    )
    if settings.success_file:
        with open(settings.success_file, "a", encoding="utf-8") as handle:
            handle.write(json.dumps(figures) + "\n")
    return 0


def main() -> int:
    try:
        return run(read_settings())
    except (OSError, SettingsError) as error:
        print(f"MUSTER error: {error}", file=sys.stderr, flush=True)
        return 2


if __name__ == "__main__":
    sys.exit(main())
