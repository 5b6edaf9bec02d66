# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data loader: sends the batches that the trainer asks for, this replica's share of them."""

from __future__ import annotations

import os
import signal
import sys
import time

import dataset
import numpy as np
import persia.env
from exchange import POLL_SECONDS, Exchange, Request
from persia.ctx import DataCtx
from persia.embedding.data import IDTypeFeatureWithSingleID, Label, NonIDTypeFeature, PersiaBatch
from settings import Settings, SettingsError, read_settings


def make_batch(
    data: dataset.Dataset, settings: Settings, rows: list[int], *, tag: bytes | None, train: bool
) -> PersiaBatch:
    ids = np.array([data.ids[row] for row in rows], dtype=np.uint64)
    return PersiaBatch(
        [
            IDTypeFeatureWithSingleID(column, np.ascontiguousarray(ids[:, place]))
            for place, column in enumerate(settings.id_columns)
        ],
        non_id_type_features=_dense(data, settings, rows),
        labels=[Label(np.array([[data.labels[row]] for row in rows], dtype=np.float32))],
        requires_grad=train,
        meta=tag,
    )


def _dense(data: dataset.Dataset, settings: Settings, rows: list[int]) -> list[NonIDTypeFeature] | None:
    if not settings.dense_columns:
        return None
    return [NonIDTypeFeature(np.array([data.dense[row] for row in rows], dtype=np.float32))]


def send(ctx: DataCtx, data: dataset.Dataset, settings: Settings, request: Request, exchange: Exchange) -> bool:
    """Sends this loader's share; False when another attempt of the trainer took over meanwhile."""
    order = dataset.epoch_order(data.train, settings.seed, request.epoch)
    size, loader = settings.batch_size, persia.env.get_replica_index()
    for batch in dataset.share(request.first, request.count, loader, request.loaders):
        current = exchange.request()
        if current is None or current.attempt != request.attempt:
            return False
        rows = order[batch * size : (batch + 1) * size]
        ctx.send_data(make_batch(data, settings, rows, tag=request.tag(batch), train=True))
    return True


def serve(settings: Settings, data: dataset.Dataset, exchange: Exchange) -> None:
    """Returns when the training has ended; becomes a new process for a new attempt of the trainer.

    PERSIA counts the batches of a DataCtx to choose their rank and asks for the number of trainers only once, so a
    new attempt needs a new DataCtx, which a process can have only one of.
    """
    loader, loaders = persia.env.get_replica_index(), persia.env.get_replica_size()
    ctx, attempt, done = None, "", -1
    while not exchange.finished(settings.epochs):
        exchange.announce(loader, loaders)
        request = exchange.request()
        if request is None or (request.attempt, request.number) == (attempt, done) or request.loaders != loaders:
            time.sleep(POLL_SECONDS)
            continue
        if ctx is None:
            attempt, ctx = request.attempt, DataCtx()
        if request.attempt != attempt or not send(ctx, data, settings, request, exchange):
            print("MUSTER loader: the trainer started again, starting again too", flush=True)
            os.execv(sys.executable, [sys.executable, *sys.argv])
        done = request.number


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    try:
        settings = read_settings()
        data = dataset.load(settings)
    except SettingsError as error:
        print(f"MUSTER error: {error}", file=sys.stderr, flush=True)
        return 2
    exchange = Exchange(settings.run_dir)
    exchange.prepare()
    serve(settings, data, exchange)
    print("MUSTER loader: the training has ended", flush=True)
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # persia_core's threads can abort an interpreter that ends in the usual way.
    os._exit(code)
