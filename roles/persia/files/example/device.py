# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a trainer's process computes: on the GPU of its local rank, or on the CPU."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import persia.env
import torch
from persia.prelude import is_cuda_feature_available
from settings import SettingsError


@dataclass(frozen=True)
class Device:
    index: int | None

    @property
    def name(self) -> str:
        return "cpu" if self.index is None else f"cuda:{self.index}"

    @property
    def backend(self) -> str:
        """How the trainers' processes talk to each other."""
        return "gloo" if self.index is None else "nccl"

    @property
    def mixed_precision(self) -> bool:
        return self.index is not None


def choose(environ: Mapping[str, str] | None = None) -> Device:
    """The GPU of this process. GPUs that were asked for and cannot be used are an error, not a slow training."""
    environ = os.environ if environ is None else environ
    rank, found = persia.env.get_local_rank(), torch.cuda.device_count() if torch.cuda.is_available() else 0
    if rank < found and is_cuda_feature_available():
        return Device(rank)
    asked = environ.get("MUSTER_GPUS", "")
    if asked:
        why = f"torch sees {found} of them" if rank >= found else "PERSIA is built without CUDA in this image"
        raise SettingsError(f"the pod asks for {asked} GPUs, and process {rank} cannot use one: {why}")
    return Device(None)
