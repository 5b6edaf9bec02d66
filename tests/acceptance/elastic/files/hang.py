# SPDX-License-Identifier: GPL-3.0-or-later
"""Hangs: the last rank waits for its data for ever, and the others for it, in a collective."""

from __future__ import annotations

import sys
import threading

import torch
import torch.distributed as dist


def load_batch() -> torch.Tensor:
    """Load a batch that does not come."""
    threading.Event().wait()
    return torch.ones(1)


dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
sys.stderr.write("all ranks have met\n")
last = dist.get_rank() == dist.get_world_size() - 1
dist.all_reduce(load_batch() if last else torch.ones(1))
