# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains a classifier with torchrun while workers come and go; goes on from the last step that all of them made.

Every batch is made of the same samples in the same order whatever the number of workers, so a training that was
disturbed ends where an undisturbed one does.
"""

from __future__ import annotations

import signal

# Before torch starts threads: SIGTERM is taken by a thread of its own (see Training.watch), also while the main one
# waits for other workers in native code.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

import argparse  # noqa: E402
import contextlib  # noqa: E402
import datetime as dt  # noqa: E402
import gzip  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import socket  # noqa: E402
import ssl  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
import urllib.request  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset  # noqa: E402

DIGITS = Path(__file__).with_name("digits.csv.gz")
KEEP = 2


def say(event: str, **fields: Any) -> None:
    """What muster.ml.elastic_job and job_info read: world size and steps."""
    told = json.dumps({"event": event, "time": round(time.time(), 3), **fields})
    # In one piece: the agent writes to the same place.
    print(f"muster.ml/elastic {told}\n", end="", flush=True)


def report(percent: int, **metrics: Any) -> None:
    """Report the progress to Kubeflow Trainer 2, which keeps it in the TrainJob, where it takes that (feature TrainJobStatus)."""
    url = os.environ.get("KUBEFLOW_TRAINER_SERVER_URL")
    if not url:
        return
    rows = [{"name": name, "value": str(value)} for name, value in metrics.items()]
    now = dt.datetime.now(dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"progressPercentage": percent, "metrics": rows, "lastUpdatedTime": now}
    try:
        token = Path(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read_text(encoding="ascii")
        request = urllib.request.Request(url, json.dumps({"trainerStatus": status}).encode(), {"Authorization": f"Bearer {token}"})
        trusted = ssl.create_default_context(cafile=os.environ["KUBEFLOW_TRAINER_SERVER_CA_CERT"])
        urllib.request.urlopen(request, timeout=5, context=trusted).close()
    except OSError as error:
        say("not_reported", error=str(error))


# Data


def digits(path: str) -> tuple[Dataset[Any], Dataset[Any], int]:
    """Handwritten digits of 8x8 pixels: 1440 to train on, 357 to measure on."""
    try:
        with gzip.open(path, "rt", encoding="ascii") as lines:
            rows = torch.tensor([[float(value) for value in line.split(",")] for line in lines])
    except OSError as error:
        sys.exit(f"--data-file: {error}; bring digits.csv.gz of the example with this script, as elastic_files does")
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))]
    pixels, labels = rows[:, :-1] / 16.0, rows[:, -1].long()
    return TensorDataset(pixels[:1440], labels[:1440]), TensorDataset(pixels[1440:], labels[1440:]), 10


class ImageFolder(Dataset[Any]):
    """Images in <folder>/<class>/ or below, as ImageNet has them, or as the file val_annotations.txt of tiny-imagenet tells."""

    def __init__(self, folder: Path, classes: list[str], side: int) -> None:
        told = folder / "val_annotations.txt"
        if told.is_file():
            rows = (line.split("\t") for line in told.read_text(encoding="utf-8").splitlines())
            found = [(folder / "images" / row[0], classes.index(row[1])) for row in rows]
        else:
            found = [(path, label) for label, name in enumerate(classes) for path in (folder / name).rglob("*")]
        self.images = sorted((p, label) for p, label in found if p.suffix.lower() in (".jpeg", ".jpg", ".png"))
        if not self.images:
            sys.exit(f"{folder} holds no images of the classes of train ({', '.join(classes[:3])}, ...)")
        self.side = side

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        from PIL import Image

        path, label = self.images[index]
        with Image.open(path) as image:
            raw = image.convert("RGB").resize((self.side, self.side)).tobytes()
        pixels = torch.frombuffer(bytearray(raw), dtype=torch.uint8).float() / 64.0 - 2.0
        return pixels.view(self.side, self.side, 3).permute(2, 0, 1), label


def load(options: argparse.Namespace) -> tuple[Dataset[Any], Dataset[Any], int]:
    """Data sets to train on and to measure on, number of classes."""
    if options.data == "digits":
        return digits(options.data_file)
    folder = Path(options.data)
    if not (folder / "train").is_dir():
        sys.exit(f"--data {folder} has no folder train")
    classes = sorted(entry.name for entry in (folder / "train").iterdir() if entry.is_dir())
    train = ImageFolder(folder / "train", classes, options.side)
    measured = ImageFolder(folder / "val", classes, options.side) if (folder / "val").is_dir() else train
    return train, measured, len(classes)


class ResumableSampler(DistributedSampler[Any]):
    """A rank's share of an epoch's whole batches, from the sample START on; the order is that of any other world."""

    def __init__(self, dataset: Dataset[Any], *, batch: int, start: int, **options: Any) -> None:
        super().__init__(dataset, **options)
        self.batch, self.start = batch, start

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        size = len(self.dataset)
        order = torch.randperm(size, generator=generator).tolist()[: size - size % self.batch]
        return iter(order[self.start :][self.rank :: self.num_replicas])


# Networks


def perceptron(classes: int, width: int) -> nn.Module:
    """For the digits, which have 64 pixels."""
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes))


def convolutions(classes: int, width: int) -> nn.Module:
    """For images of any size. It normalises in groups of channels, not in batches, whose parts differ with the number of workers."""
    layers: list[nn.Module] = []
    given = 3
    for channels in (width // 8, width // 4, width // 2):
        layers += [nn.Conv2d(given, channels, 3, padding=1), nn.GroupNorm(4, channels), nn.ReLU(), nn.MaxPool2d(2)]
        given = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * given, classes))


def network(options: argparse.Namespace, classes: int) -> nn.Module:
    """The one that suits the data, or one of torchvision by its name, such as resnet101."""
    if options.model == "auto":
        return (perceptron if options.data == "digits" else convolutions)(classes, options.width)
    try:
        import torchvision

        built: nn.Module = getattr(torchvision.models, options.model)(num_classes=classes)
    except (ImportError, AttributeError) as error:
        sys.exit(f"--model {options.model}: {error}; auto needs no torchvision")
    return built


# Training


class Training:
    """Model, optimizer and position; what a checkpoint holds."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self.folder = Path(options.run_dir)
        self.device = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
        self.train_set, self.test_set, classes = load(options)
        if options.batch_size % self.world_size:
            sys.exit(f"--batch-size {options.batch_size} cannot be shared by {self.world_size} workers; try 60")
        torch.manual_seed(options.seed)
        self.model = network(options, classes).to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=options.lr, momentum=0.9)
        self.gpu = Gpu() if self.device.type == "cuda" else None
        self.epoch, self.done, self.step, self.saved = 0, 0, 0, -1
        self.reported = 0.0
        self.history: list[dict[str, int]] = []
        # Held while model and position change together; outside of it they belong together and can be saved.
        self.changing = threading.Lock()

    def save(self) -> None:
        """Any worker may, because after a step all have the same model; a file is there whole or not at all."""
        if self.step == self.saved:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f"part-{socket.gethostname()}-{os.getpid()}.pt"
        names = ("epoch", "done", "step", "history")
        state: dict[str, Any] = {name: getattr(self, name) for name in names}
        state.update(model=self.model.state_dict(), optimizer=self.optimizer.state_dict())
        with self.gpu.reading() if self.gpu else contextlib.nullcontext():
            torch.save(state, part)
        os.replace(part, self.folder / f"step-{self.step:010d}.pt")
        self.saved = self.step
        for old in sorted(self.folder.glob("step-*.pt"))[:-KEEP]:
            old.unlink(missing_ok=True)

    def resume(self) -> None:
        """The first worker chooses, or two could begin at different steps."""
        found = sorted(self.folder.glob("step-*.pt")) if self.rank == 0 else []
        choice = [str(found[-1]) if found else None]
        dist.broadcast_object_list(choice, src=0, device=self.device)
        if choice[0]:
            state = torch.load(choice[0], map_location=self.device)
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.epoch, self.done, self.step = state["epoch"], state["done"], state["step"]
            self.history, self.saved = state["history"], state["step"]
            if self.gpu:
                self.gpu.has_stepped()
        if self.rank == 0:
            place = {"epoch": self.epoch, "done": self.done, "step": self.step}
            say("start", torch=torch.__version__, world_size=self.world_size, **place)

    def stop(self) -> None:
        """Save the last whole step."""
        if self.changing.acquire(timeout=20):
            self.save()
            say("stopped", rank=self.rank, epoch=self.epoch, done=self.done, step=self.step)

    def run(self) -> None:
        parallel = nn.parallel.DistributedDataParallel(self.model)
        told, began = 0.0, time.monotonic()
        in_epoch = len(self.train_set) // self.options.batch_size
        left = (self.options.epochs - self.epoch) * in_epoch - self.done // self.options.batch_size
        ends = {"epochs": self.options.epochs, "steps": self.step + left}
        while self.epoch < self.options.epochs:
            for inputs, labels in self.batches():
                loss = nn.functional.cross_entropy(parallel(inputs.to(self.device)), labels.to(self.device))
                self.optimizer.zero_grad()
                loss.backward()
                if self.gpu:
                    self.gpu.wait(self.options.timeout)
                with self.changing:
                    self.optimizer.step()
                    if self.gpu:
                        self.gpu.has_stepped()
                    self.step += 1
                    self.done += self.options.batch_size
                if self.rank == 0 and time.monotonic() - told >= 1:
                    told = time.monotonic()
                    say("step", world_size=self.world_size, epoch=self.epoch, step=self.step, loss=round(loss.item(), 4), **ends)
                time.sleep(max(0.0, began + self.options.step_time - time.monotonic()))
                began = time.monotonic()
            self.end_epoch()

    def batches(self) -> DataLoader[Any]:
        options = self.options
        sampler = ResumableSampler(
            self.train_set, batch=options.batch_size, start=self.done, num_replicas=self.world_size, rank=self.rank, seed=options.seed
        )
        sampler.set_epoch(self.epoch)
        return self.loader(self.train_set, options.batch_size // self.world_size, sampler)

    def loader(self, dataset: Dataset[Any], batch_size: int, sampler: Any = None) -> DataLoader[Any]:
        workers = 0 if isinstance(dataset, TensorDataset) else self.options.workers
        return DataLoader(dataset, batch_size, sampler=sampler, num_workers=workers, worker_init_fn=let_end if workers else None)

    def end_epoch(self) -> None:
        accuracy = self.accuracy() if self.rank == 0 else 0.0
        with self.changing:
            self.history.append({"epoch": self.epoch, "samples": self.done})
            self.epoch, self.done, self.saved = self.epoch + 1, 0, -1
            if self.rank == 0:
                self.save()
        if self.rank == 0:
            ended = self.history[-1]
            say("epoch", world_size=self.world_size, accuracy=accuracy, step=self.step, **ended)
            if self.epoch == self.options.epochs or time.monotonic() - self.reported >= 1:
                self.reported = time.monotonic()
                report(100 * self.epoch // self.options.epochs, epoch=ended["epoch"], step=self.step, accuracy=accuracy)

    def accuracy(self) -> float:
        right, total = 0, 0
        self.model.eval()
        with torch.no_grad():
            for inputs, labels in self.loader(self.test_set, 256):
                found = self.model(inputs.to(self.device)).argmax(1).cpu()
                right, total = right + int((found == labels).sum()), total + len(labels)
        self.model.train()
        return round(right / max(1, total), 4)


def let_end(_worker: int) -> None:
    """Let the loader end a process of its own, which has its signal mask from us."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def use_gpu() -> str:
    """Take the GPU of this process. NCCL is to raise errors in the main thread as gloo does, not to end the process by SIGABRT."""
    local, found = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if local >= found:
        sys.exit(f"nproc_per_node is more than the {found} GPUs of this pod; ask for as many of nvidia.com/gpu in resources")
    torch.cuda.set_device(local)
    is_old = [int(part) for part in torch.__version__.split(".")[:2]] < [2, 2]
    os.environ.setdefault("NCCL_BLOCKING_WAIT" if is_old else "TORCH_NCCL_BLOCKING_WAIT", "1")
    return "nccl"


class Gpu:
    """Keeps the state after the last whole step readable while the GPU waits for a worker that is lost.

    DistributedDataParallel only queues its collectives. Whatever this process queues after one that never ends does not end either, and
    some of torch's functions hold Python's lock while they wait for it, so that nothing can be saved until SIGKILL.
    """

    def __init__(self) -> None:
        self.stream, self.stepped = torch.cuda.Stream(), torch.cuda.Event()
        self.has_stepped()

    def has_stepped(self) -> None:
        """Mark the end of a step in the stream that trains."""
        self.stepped.record()

    @staticmethod
    def wait(seconds: float) -> None:
        """Wait until the gradients of all workers are there."""
        arrived, deadline = torch.cuda.Event(), time.monotonic() + seconds
        arrived.record()
        while not arrived.query():
            if time.monotonic() > deadline:
                raise RuntimeError(f"no answer of the other workers for {seconds:g} s")
            time.sleep(0.0002)

    def reading(self) -> contextlib.AbstractContextManager[Any]:
        """A context whose copies wait for the last step, and for nothing that was queued after it."""
        self.stream.wait_event(self.stepped)
        context: contextlib.AbstractContextManager[Any] = torch.cuda.stream(self.stream)
        return context


def watch(running: list[Training]) -> None:
    """Asked to end: save what there is to save and go, whatever the main thread is waiting for."""

    def wait() -> None:
        signal.sigwait({signal.SIGTERM})
        for training in running:
            training.stop()
        os._exit(143)

    threading.Thread(target=wait, daemon=True).start()


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="digits", help="digits, or a folder with train/ and val/ of images by class")
    parser.add_argument("--data-file", default=DIGITS, help="digits.csv.gz, beside this script by default")
    parser.add_argument("--side", type=int, default=64, help="images are scaled to this many pixels, at least 8")
    parser.add_argument("--workers", type=int, default=2, help="processes that load images, for each process that trains")
    parser.add_argument("--model", default="auto", help="auto, or a network of torchvision, such as resnet101")
    parser.add_argument("--run-dir", default=os.environ.get("MUSTER_RUN_DIR", "/workspace/shared/run"))
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=60, help="of all workers together")
    parser.add_argument("--width", type=int, default=256, help="of the layers: the work of a step")
    parser.add_argument("--step-time", type=float, default=0.0, help="seconds that a step takes at least: a larger model's")
    parser.add_argument("--last-time", type=float, default=0.0, help="seconds that the first worker works on when the others have ended")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--timeout", type=float, default=60, help="seconds without an answer of the other workers")
    parser.add_argument("--patience", type=float, default=15, help="seconds for the agent to end us after a peer is lost")
    return parser.parse_args()


def main() -> None:
    options = read_options()
    # From now on: who comes late to a rendezvous has the others meet again while they still look for each other.
    running: list[Training] = []
    watch(running)
    backend = use_gpu() if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=dt.timedelta(seconds=options.timeout))
    training = Training(options)
    training.resume()
    running.append(training)
    try:
        training.run()
    except RuntimeError as error:
        # Another worker is gone. The agent is about to end us for the next rendezvous; a failure of our own would
        # count against max_restarts.
        with training.changing:
            training.save()
        say("peer_lost", rank=training.rank, step=training.step, error=str(error).splitlines()[0][:200])
        time.sleep(options.patience)
        raise
    if training.rank == 0:
        time.sleep(options.last_time)
        figures = {"accuracy": training.accuracy(), "epochs": training.epoch, "steps": training.step}
        say("result", world_size=training.world_size, **figures, history=training.history)


if __name__ == "__main__":
    main()
