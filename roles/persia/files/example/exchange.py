# SPDX-License-Identifier: GPL-3.0-or-later
"""How trainers and data loaders agree, through small files on the shared storage.

PERSIA's own stream has no epochs and no end, and a batch that was on its way to a trainer that died is lost. So the
first trainer asks for batches by number, the loaders send exactly those, and a trainer that starts again (a new
attempt) asks again from its last checkpoint.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from settings import SettingsError

POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Request:
    attempt: str
    number: int
    epoch: int
    first: int
    count: int
    world_size: int
    loaders: int
    repeat: int = 0

    def tag(self, batch: int) -> bytes:
        """Travels with the batch, so that a trainer knows batches of an older request and drops them."""
        return f"{self.attempt}/{self.number}/{batch}".encode()


def new_attempt() -> str:
    return uuid.uuid4().hex[:12]


def ranges(numbers: list[int]) -> str:
    """0, 1, 2, 7 as 0-2,7: a number that was there twice is there twice."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{first}-{last}" if first < last else str(first) for first, last in parts)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Readers see the old file or the new one, never a half of it; it survives a crash of the node."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:6]}")
    with temporary.open("w", encoding="utf-8") as handle:
        json.dump(value, handle)
        handle.flush()
        os.fsync(handle.fileno())
    temporary.replace(path)


def read_json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return value if isinstance(value, dict) else None


class Exchange:
    """The files of one run, all under its run directory."""

    def __init__(self, run_dir: str) -> None:
        self.run_dir = Path(run_dir)
        self.state_file = self.run_dir / "state.json"
        self.request_file = self.run_dir / "request.json"
        self.loader_dir = self.run_dir / "loaders"
        self.checkpoint_dir = self.run_dir / "checkpoints"

    def prepare(self) -> None:
        for folder in (self.run_dir, self.loader_dir, self.checkpoint_dir):
            folder.mkdir(parents=True, exist_ok=True)

    # data loaders
    def announce(self, loader: int, loaders: int) -> None:
        """Says that this loader is there; said again when a new attempt cleared the folder."""
        path = self.loader_dir / f"{loader}.json"
        if not path.exists():
            write_json(path, {"loaders": loaders, "since": time.time()})

    # trainers
    def forget(self) -> None:
        """What an older attempt left: loaders that are no more, and a request that nobody waits for."""
        for path in (self.request_file, *self.loader_dir.glob("[0-9]*.json")):
            path.unlink(missing_ok=True)

    def loaders(self) -> dict[int, int]:
        """Map each announced loader to the number of loaders that it announced."""
        found = {}
        for path in self.loader_dir.glob("[0-9]*.json"):
            value = read_json(path)
            if value:
                found[int(path.stem)] = int(value["loaders"])
        return found

    def loaders_ready(self) -> int | None:
        """The number of loaders once all of them announced the same number, else None."""
        found = self.loaders()
        sizes = {size for loader, size in found.items() if loader < size}
        if len(sizes) != 1:
            return None
        size = sizes.pop()
        return size if all(loader in found for loader in range(size)) else None

    def ask(self, request: Request) -> None:
        write_json(self.request_file, asdict(request))

    def ask_again(self, request: Request) -> None:
        """Batches were lost on their way, with an embedding worker for example; who has them already drops them."""
        current = self.request()
        if current and (current.attempt, current.number) == (request.attempt, request.number):
            self.ask(replace(current, repeat=current.repeat + 1))

    def request(self) -> Request | None:
        value = read_json(self.request_file)
        return Request(**value) if value else None

    # the state is the last checkpoint, so it changes in one step with it
    def state(self) -> dict[str, Any]:
        return read_json(self.state_file) or {}

    def checkpoint(self, state: dict[str, Any], fingerprint: str) -> Path:
        """The folder of the valid checkpoint, which must fit the settings."""
        if not state:
            raise SettingsError(f"there is no checkpoint in {self.run_dir}; name the run by MUSTER_RUN_DIR, or train first")
        if state.get("fingerprint") != fingerprint:
            raise SettingsError(
                f"the checkpoint in {self.run_dir} was made with other columns, label, split or model; "
                "give this run another MUSTER_RUN_DIR, or the old settings"
            )
        return self.checkpoint_dir / str(state["checkpoint"])

    def finished(self, epochs: int) -> bool:
        return int(self.state().get("epoch", 0)) >= epochs
