# SPDX-License-Identifier: GPL-3.0-or-later
"""Scores the newest checkpoint of train.py on held-out data, without the training: what was saved is what was learned.

It takes the options of the training: python3 score.py --run-dir FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch.utils.data import DataLoader
from train import load, network, read_options, say


def main() -> None:
    options = read_options()
    checkpoints = sorted(Path(options.run_dir).glob("step-*.pt"))
    if not checkpoints:
        sys.exit(f"--run-dir {options.run_dir} holds no checkpoint")
    state = torch.load(checkpoints[-1], map_location="cpu")
    _train_set, test_set, classes = load(options)
    model = network(options, classes)
    model.load_state_dict(state["model"])
    model.eval()
    right = 0
    with torch.no_grad():
        for inputs, labels in DataLoader(test_set, 100):
            right += int((model(inputs).argmax(1) == labels).sum())
    say("score", accuracy=round(right / len(test_set), 4), samples=len(test_set), step=state["step"])


if __name__ == "__main__":
    main()
