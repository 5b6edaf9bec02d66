# SPDX-License-Identifier: GPL-3.0-or-later
"""Trainer: trains, measures on held-out rows, saves and resumes. Started by ``persia-launcher nn-worker train.py``."""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import dataset
import persia.env
import torch
import yaml
from data_loader import make_batch
from device import Device, choose
from exchange import POLL_SECONDS, Exchange, Request, new_attempt, ranges, write_json
from metrics import auc, log_loss
from model import Tower
from persia.ctx import PreprocessMode, TrainCtx
from persia.data import DataLoader, StreamingDataset
from persia.distributed import DDPOption
from persia.embedding.optim import Adagrad
from settings import Settings, SettingsError, check_slots, read_settings

EVALUATION_BATCH = 512
REPEATS = 4  # how often batches that do not come are asked for again within MUSTER_TIMEOUT
PREEMPTED = 143  # 128 + SIGTERM: the work is saved up to the last checkpoint, start me again


class TrainingError(RuntimeError):
    """The training cannot go on; the message says why."""


class Trainer:
    def __init__(self, settings: Settings, dims: dict[str, int], device: Device) -> None:
        self.settings = settings
        self.device = device
        self.data = dataset.load(settings)
        self.exchange = Exchange(settings.run_dir)
        self.rank, self.world_size = persia.env.get_rank(), persia.env.get_world_size()
        self.in_order = bool(settings.reproducible) and self.world_size == 1
        self.stop = False
        self.step = self.first_step = self.steps = 0
        self.told = 0.0  # when the last step was printed
        self.history: list[dict[str, Any]] = []
        torch.manual_seed(settings.seed)
        self.model = Tower(len(settings.dense_columns), list(dims.values()), settings.hidden).to(device.name)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=settings.dense_lr)
        self.loss = torch.nn.BCEWithLogitsLoss()
        self.attempt = new_attempt()
        self.asked = -1
        self.embeddings = 0

    # ---- agreement between the trainers -------------------------------------------------------
    def agree(self, value: Any) -> Any:
        """Everybody gets what the first trainer says."""
        if self.world_size == 1:
            return value
        box = [value]
        torch.distributed.broadcast_object_list(box, src=0)
        return box[0]

    def any_stop(self) -> bool:
        if self.world_size == 1:
            return self.stop
        flag = torch.tensor([float(self.stop)], device=self.device.name)
        torch.distributed.all_reduce(flag)
        return bool(flag.item())

    # ---- the stream of batches ----------------------------------------------------------------
    def wait_for_loaders(self) -> int:
        deadline = time.monotonic() + self.settings.timeout
        while time.monotonic() < deadline:
            ready = self.exchange.loaders_ready()
            if ready:
                return ready
            self.alive()
            time.sleep(POLL_SECONDS)
        raise TrainingError(
            f"not all data loaders were there after {self.settings.timeout:g} s (seen: "
            f"{sorted(self.exchange.loaders()) or 'none'}); look at their logs, or raise MUSTER_TIMEOUT"
        )

    def ask(self, plan: dataset.Plan, epoch: int, first: int, count: int) -> Request:
        self.asked += 1
        request = Request(self.attempt, self.asked, epoch, first, count, plan.world_size, plan.loaders)
        if self.rank == 0:
            self.exchange.ask(request)
        return request

    def batches(self, stream: DataLoader, request: Request) -> Any:
        """This rank's batches of a request with their numbers, each once, in the order in which they come."""
        desired = request.count // request.world_size
        seen: set[str] = set()
        prefix = f"{request.attempt}/{request.number}/"
        last, repeats, missing = time.monotonic(), 0, -1
        while len(seen) < desired:
            # A short wait each time (see train_all), because signals are handled only between two waits.
            # The batch before this one, if it was dropped, holds the only permit to look embeddings up until it is gone.
            batch = None
            batch = next(iter(stream), None)
            if batch is None:
                waited = time.monotonic() - last
                if waited > (repeats + 1) * self.settings.timeout / REPEATS:
                    self.exchange.ask_again(request)
                    repeats += 1
                if waited > self.settings.timeout:
                    raise TrainingError(
                        f"no batch for {self.settings.timeout:g} s: {len(seen)} of {desired} of request {request.number} "
                        "came; a data loader, an embedding worker or server, or NATS is gone or stuck (see their logs)"
                    )
                continue
            tag = bytes(batch.consume_all_meta_data() or b"").decode()
            if not tag.startswith(prefix) or tag in seen:
                continue
            number = int(tag[len(prefix) :])
            if self.in_order and number != request.first + len(seen):
                # One before it was lost, or is late: both are asked for again.
                if missing != len(seen):
                    self.exchange.ask_again(request)
                    missing = len(seen)
                continue
            seen.add(tag)
            last, repeats = time.monotonic(), 0
            yield number, batch

    def alive(self) -> None:
        """Ends the process when nothing moves any more, even if PERSIA's native code never comes back to Python."""
        faulthandler.dump_traceback_later(3 * self.settings.timeout, exit=True)

    # ---- training -----------------------------------------------------------------------------
    def train(self, ctx: TrainCtx, stream: DataLoader, request: Request, trained: list[int]) -> float:
        ctx.model.train()
        total = 0.0
        for number, batch in self.batches(stream, request):
            self.alive()
            output, labels = ctx.forward(batch)
            loss = self.loss(output, labels[0])
            if not torch.isfinite(loss):
                raise TrainingError(f"the loss is {loss.item()} at step {self.step}; lower the learning rates")
            ctx.backward(loss)
            total += loss.item()
            trained.append(number)
            if self.step == self.first_step:
                print(f"MUSTER attempt={self.attempt} step={self.step} time={time.time():.2f}", flush=True)
            self.step += 1
            if self.rank == 0 and time.monotonic() - self.told >= 1:
                self.told = time.monotonic()
                place = f"step={self.step} steps={self.steps} epoch={request.epoch + 1} epochs={self.settings.epochs}"
                print(f"MUSTER {place} loss={loss.item():.4f}", flush=True)
        return total

    def note(self, epoch: int, trained: list[int]) -> None:
        """What this rank trained of an epoch. The checkpoint has it, too, so that the last log tells of every attempt that counts."""
        self.history.append({"attempt": self.attempt, "epoch": epoch + 1, "batches": ranges(trained), "time": round(time.time(), 2)})
        self.tell(self.history[-1:])

    @staticmethod
    def tell(history: list[dict[str, Any]]) -> None:
        for part in history:
            print("MUSTER trained " + " ".join(f"{name}={value}" for name, value in part.items()), flush=True)

    def evaluate(self, ctx: TrainCtx) -> dict[str, float]:
        """Loss and AUC on the held-out rows; PERSIA makes no new embeddings for them."""
        self.model.eval()
        ctx.preprocess_mode = PreprocessMode.EVAL
        scores: list[float] = []
        labels: list[float] = []
        rows = self.data.held_out
        with torch.no_grad():
            for start in range(0, len(rows), EVALUATION_BATCH):
                part = self.data.rows(rows[start : start + EVALUATION_BATCH])
                labels += [row.label for row in part]
                batch = make_batch(self.settings, part, tag=None, train=False)
                dense, embeddings, _labels = ctx.prepare_features(ctx.get_embedding_from_data(batch))
                scores += torch.sigmoid(self.model(dense, embeddings)).view(-1).tolist()
        ctx.preprocess_mode = PreprocessMode.TRAIN
        return {"loss": round(log_loss(scores, labels), 6), "auc": round(auc(scores, labels), 6)}

    # ---- checkpoints --------------------------------------------------------------------------
    def save(self, ctx: TrainCtx, *, epoch: int, done: int, figures: dict[str, Any]) -> None:
        """First the files, then the state that names them: a crash in between leaves the older checkpoint valid."""
        name = f"step-{self.step:08d}-{self.attempt}"
        folder = self.exchange.checkpoint_dir / name
        folder.mkdir()
        ctx.dump_torch_state_dict(self.model, str(folder), "dense.pt")
        ctx.dump_torch_state_dict(self.optimizer, str(folder), "opt.pt")
        self.dump_embeddings(ctx, folder / "embedding")
        state = {"checkpoint": name, "epoch": epoch, "done": done, "step": self.step, "history": self.history, **figures}
        write_json(self.exchange.state_file, {**state, "fingerprint": self.settings.fingerprint()})
        old = sorted(path for path in self.exchange.checkpoint_dir.iterdir() if path.name != name)
        for path in old[: max(0, len(old) - self.settings.keep_checkpoints + 1)]:
            shutil.rmtree(path)

    def check_embeddings(self, ctx: TrainCtx) -> None:
        """An embedding server that was replaced comes back empty; what is lost must not be saved over what is good."""
        before, self.embeddings = self.embeddings, sum(ctx.get_embedding_size())
        if self.embeddings < before:
            raise TrainingError(
                f"an embedding server lost its embeddings ({before} before, {self.embeddings} now): it was replaced; "
                "start the trainers again, they go on from the last checkpoint"
            )

    def dump_embeddings(self, ctx: TrainCtx, folder: Path) -> None:
        """PERSIA's own wait looks every 5 s and has no end; the marker that the last server writes is there at once."""
        self.check_embeddings(ctx)
        ctx.dump_embedding(str(folder), blocking=False)
        deadline = time.monotonic() + self.settings.timeout
        while not (folder / "embedding_dump_done").exists():
            if time.monotonic() > deadline:
                raise TrainingError(
                    f"the embedding servers saved nothing in {folder} for {self.settings.timeout:g} s; every group needs "
                    "the same storage at the same path, writable for its user"
                )
            time.sleep(POLL_SECONDS)
        # Not between the check above and the dump either: nobody may take an empty dump for a checkpoint.
        self.check_embeddings(ctx)

    def load(self, ctx: TrainCtx, state: dict[str, Any]) -> None:
        folder = self.exchange.checkpoint(state, self.settings.fingerprint())
        ctx.load_torch_state_dict(self.model, str(folder / "dense.pt"), map_location=self.device.name)
        ctx.load_torch_state_dict(self.optimizer, str(folder / "opt.pt"), map_location=self.device.name)
        if self.rank == 0:
            ctx.load_embedding(str(folder / "embedding"))
            self.history = state.get("history", [])
            self.tell(self.history)
        self.step = self.first_step = int(state["step"])

    # ---- the whole run ------------------------------------------------------------------------
    def run(self, ctx: TrainCtx, stream: DataLoader) -> int:
        settings, state = self.settings, self.agree(self.exchange.state())
        self.attempt = self.agree(self.attempt)
        if self.rank == 0:
            # The servers may still have what a lost attempt trained after its last checkpoint.
            ctx.clear_embeddings()
        if state:
            self.load(ctx, state)
            print(f"MUSTER resume epoch={state['epoch']} step={self.step} checkpoint={state['checkpoint']}", flush=True)
        # From here on this process takes batches: loaders may still hold one for the process before it.
        next(iter(stream), None)
        loaders = self.agree(self.wait_for_loaders() if self.rank == 0 else None)
        plan = dataset.plan(len(self.data.train), settings, self.world_size, loaders)
        left = (settings.epochs - int(state.get("epoch", 0))) * plan.steps - int(state.get("done", 0)) // self.world_size
        self.steps = self.step + left
        for epoch in range(int(state.get("epoch", 0)), settings.epochs):
            started, total, first_step, trained = time.monotonic(), 0.0, self.step, list[int]()
            for first, count in plan.requests():
                if first < int(state.get("done", 0)):
                    continue
                total += self.train(ctx, stream, self.ask(plan, epoch, first, count), trained)
                if self.rank == 0:
                    self.check_embeddings(ctx)
                if self.any_stop():
                    self.note(epoch, trained)
                    return self.preempted(ctx, epoch, first + count)
            self.note(epoch, trained)
            state = {}
            figures = self.evaluate(ctx) if self.rank == 0 else {}
            figures["train_loss"] = round(total / max(1, self.step - first_step), 6)
            last = epoch + 1 == settings.epochs
            if self.rank == 0:
                if last or (epoch + 1) % settings.checkpoint_epochs == 0:
                    self.save(ctx, epoch=epoch + 1, done=0, figures=figures)
                self.report(f"epoch={epoch + 1}", figures, time.monotonic() - started)
            self.agree(None)
        self.compare(ctx)
        return self.finished()

    def compare(self, ctx: TrainCtx) -> None:
        """Every rank measures what it has in the end. With gradients in step all print the same, whichever data each has seen."""
        weights = b"".join(value.cpu().numpy().tobytes() for value in self.model.state_dict().values())
        figures = self.evaluate(ctx)
        print(
            f"MUSTER rank={self.rank} world_size={self.world_size} loss={figures['loss']:.6f} auc={figures['auc']:.6f} "
            f"weights={hashlib.sha256(weights).hexdigest()[:16]}",
            flush=True,
        )

    def preempted(self, ctx: TrainCtx, epoch: int, done: int) -> int:
        if self.rank == 0:
            self.save(ctx, epoch=epoch, done=done, figures={})
            print(f"MUSTER stopped step={self.step}: asked to end, checkpoint saved", flush=True)
        self.agree(None)
        return PREEMPTED

    def report(self, what: str, figures: dict[str, Any], seconds: float) -> None:
        print(
            f"MUSTER {what} loss={figures['loss']:.4f} auc={figures['auc']:.4f} "
            f"train_loss={figures['train_loss']:.4f} step={self.step} seconds={seconds:.1f}",
            flush=True,
        )

    def finished(self) -> int:
        state = self.exchange.state()
        figures = {name: state[name] for name in ("loss", "auc", "train_loss", "epoch", "step") if name in state}
        if self.rank == 0:
            print(
                f"MUSTER result loss={figures['loss']:.4f} auc={figures['auc']:.4f} epochs={figures['epoch']} "
                f"steps={figures['step']} checkpoint={self.exchange.checkpoint_dir / state['checkpoint']}",
                flush=True,
            )
        if self.settings.success_file:
            with open(self.settings.success_file, "a", encoding="utf-8") as handle:
                handle.write(json.dumps({**figures, "trained": self.step > 0}) + "\n")
        return 0


def train_all(settings: Settings) -> int:
    source = os.environ.get("PERSIA_EMBEDDING_CONFIG", "")
    try:
        with open(source, encoding="utf-8") as handle:
            dims = check_slots(settings, yaml.safe_load(handle) or {}, source)
    except OSError as error:
        raise SettingsError(f"cannot read PERSIA_EMBEDDING_CONFIG={source!r}: {error}") from error
    device = choose()
    trainer = Trainer(settings, dims, device)
    print(
        f"MUSTER rank={trainer.rank} world_size={trainer.world_size} device={device.name} backend={device.backend} "
        f"mixed_precision={device.mixed_precision}",
        flush=True,
    )
    signal.signal(signal.SIGTERM, lambda *_args: setattr(trainer, "stop", True))
    trainer.exchange.prepare()
    trainer.alive()
    if trainer.exchange.finished(settings.epochs):
        return trainer.finished()
    if trainer.rank == 0:
        trainer.exchange.forget()
    with TrainCtx(
        model=trainer.model,
        embedding_optimizer=Adagrad(lr=settings.embedding_lr),
        dense_optimizer=trainer.optimizer,
        device_id=device.index,
        mixed_precision=device.mixed_precision,
        distributed_option=DDPOption(backend=device.backend) if trainer.world_size > 1 else None,
    ) as ctx:
        return trainer.run(ctx, stream(settings))


def stream(settings: Settings) -> DataLoader:
    """The batches of this rank. Reproducible: in their order, one at a time, the next when the last one's embeddings are updated."""
    batches = StreamingDataset(buffer_size=16)
    if settings.reproducible:
        return DataLoader(batches, timeout_ms=500, num_workers=1, reproducible=True, embedding_staleness=1)
    return DataLoader(batches, timeout_ms=500, num_workers=2)


def main() -> int:
    try:
        return train_all(read_settings())
    except (SettingsError, TrainingError) as error:
        print(f"MUSTER error: {error}", file=sys.stderr, flush=True)
        return 2 if isinstance(error, SettingsError) else 1


if __name__ == "__main__":
    sys.exit(main())
