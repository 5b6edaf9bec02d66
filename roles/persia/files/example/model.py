# SPDX-License-Identifier: GPL-3.0-or-later
"""The dense part of the model: embeddings and dense columns into a small perceptron."""

from __future__ import annotations

import torch


class Tower(torch.nn.Module):
    def __init__(self, dense: int, embeddings: list[int], hidden: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(dense + sum(embeddings), hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 1))

    def forward(self, dense: list[torch.Tensor], embeddings: list[torch.Tensor]) -> torch.Tensor:
        # Embeddings travel as half floats, which a CPU cannot multiply.
        return self.layers(torch.cat([part.float() for part in (*dense, *embeddings)], dim=1))
