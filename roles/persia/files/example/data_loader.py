# SPDX-License-Identifier: GPL-3.0-or-later
"""Data loader: sends the batches that the trainer asks for, this replica's share of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

import dataset
import numpy as np
import persia.env
from exchange import POLL_SECONDS, Exchange, Request
from persia.ctx import DataCtx
from persia.embedding.data import IDTypeFeature, IDTypeFeatureWithSingleID, Label, NonIDTypeFeature, PersiaBatch
from settings import Settings, SettingsError, read_settings


def make_batch(settings: Settings, rows: list[dataset.Row], *, tag: bytes | None, train: bool) -> PersiaBatch:
    return PersiaBatch(
        [
            _ids(column, [row.ids[place] for row in rows], several=bool(settings.id_separator))
            for place, column in enumerate(settings.id_columns)
        ],
        non_id_type_features=_dense(settings, rows),
        labels=[Label(np.array([[row.label] for row in rows], dtype=np.float32))],
        requires_grad=train,
        meta=tag,
    )


def _ids(column: str, rows: list[list[int]], *, several: bool) -> IDTypeFeature | IDTypeFeatureWithSingleID:
    if several:
        return IDTypeFeature(column, [np.array(ids, dtype=np.uint64) for ids in rows])
    return IDTypeFeatureWithSingleID(column, np.array([ids[0] for ids in rows], dtype=np.uint64))


def _dense(settings: Settings, rows: list[dataset.Row]) -> list[NonIDTypeFeature] | None:
    if not settings.dense_columns:
        return None
    return [NonIDTypeFeature(np.array([row.dense for row in rows], dtype=np.float32))]


def send(ctx: DataCtx, data: dataset.Dataset, settings: Settings, request: Request, order: Sequence[int]) -> None:
    """Sends this loader's share of an epoch in that order. Blocks for ever when the trainer is gone; the supervisor ends that."""
    size, loader = settings.batch_size, persia.env.get_replica_index()
    for batch in dataset.share(request.first, request.count, loader, request.loaders):
        rows = data.rows(order[batch * size : (batch + 1) * size])
        ctx.send_data(make_batch(settings, rows, tag=request.tag(batch), train=True))


def serve(settings: Settings, data: dataset.Dataset, exchange: Exchange, attempt: str) -> None:
    """The sender: answers every request of one attempt of the trainers, as long as its supervisor lives."""
    supervisor, ctx, done = os.getppid(), DataCtx(), None
    epoch, order = -1, data.train
    while os.getppid() == supervisor:
        request = exchange.request()
        if request is None or request.attempt != attempt or (request.number, request.repeat) == done:
            time.sleep(POLL_SECONDS)
            continue
        if request.epoch != epoch:
            epoch, order = request.epoch, dataset.epoch_order(data.train, settings.seed, request.epoch)
        send(ctx, data, settings, request, order)
        done = (request.number, request.repeat)


def supervise(settings: Settings, exchange: Exchange) -> int:
    """One sender for each attempt of the trainers, until the training has ended.

    PERSIA counts the batches of a process to choose their rank, asks for the number of trainers once, and waits in
    native code for a trainer that is gone. So a new attempt gets a new process.
    """
    loader, loaders = persia.env.get_replica_index(), persia.env.get_replica_size()
    sender, attempt = None, ""
    try:
        while not exchange.finished(settings.epochs):
            exchange.announce(loader, loaders)
            request = exchange.request()
            if request and request.loaders == loaders and request.attempt != attempt:
                stop(sender)
                attempt = request.attempt
                print(f"MUSTER loader {loader} of {loaders}: serving attempt {attempt}", flush=True)
                sender = subprocess.Popen([sys.executable, __file__, attempt])
            if sender and sender.poll() is not None:
                print(f"MUSTER error: the sender ended with {sender.returncode}", file=sys.stderr, flush=True)
                return 1
            time.sleep(POLL_SECONDS)
    finally:
        stop(sender)
    print("MUSTER loader: the training has ended", flush=True)
    return 0


def stop(sender: subprocess.Popen[bytes] | None) -> None:
    if sender:
        sender.kill()
        sender.wait()


def terminate(*_signal: object) -> NoReturn:
    sys.exit(143)


def main() -> int:
    try:
        settings = read_settings()
        data = dataset.load(settings)
    except SettingsError as error:
        print(f"MUSTER error: {error}", file=sys.stderr, flush=True)
        return 2
    exchange = Exchange(settings.run_dir)
    exchange.prepare()
    if len(sys.argv) > 1:
        serve(settings, data, exchange, sys.argv[1])
        return 0
    signal.signal(signal.SIGTERM, terminate)
    return supervise(settings, exchange)


if __name__ == "__main__":
    sys.exit(main())
