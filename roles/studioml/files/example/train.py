# SPDX-License-Identifier: GPL-3.0-or-later
"""Train a softmax regression on handwritten digits, and print its metrics as StudioML reads them. Needs nothing but Python 3.7 or newer."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import random
import time
from pathlib import Path
from typing import NamedTuple

CLASSES = 10
HELD_OUT = 5
"""Every fifth digit is not trained with."""


class Sample(NamedTuple):
    """A digit."""

    pixels: list[float]
    """From 0 to 1, with a constant at their end."""
    label: int


def read(path: Path) -> list[Sample]:
    """The digits of a file packed by gzip, with a row of 64 pixels from 0 to 16 and the class for each."""
    with gzip.open(path, "rt", newline="") as file:
        rows = [[float(cell) for cell in row] for row in csv.reader(file)]
    return [Sample([*(pixel / 16 for pixel in row[:-1]), 1.0], int(row[-1])) for row in rows]


def probabilities(weights: list[list[float]], pixels: list[float]) -> list[float]:
    """How likely each class is."""
    scores = [sum(w * x for w, x in zip(row, pixels)) for row in weights]
    largest = max(scores)
    powers = [math.exp(score - largest) for score in scores]
    return [power / sum(powers) for power in powers]


def learn(weights: list[list[float]], sample: Sample, rate: float) -> float:
    """One step of gradient descent; the loss before it."""
    pixels, label = sample
    found = probabilities(weights, pixels)
    for row, share, number in zip(weights, found, range(CLASSES)):
        step = rate * (share - (number == label))
        for place, pixel in enumerate(pixels):
            row[place] -= step * pixel
    return -math.log(max(found[label], 1e-12))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(__file__).with_name("digits.csv.gz"))
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    samples = read(options.data)
    training = [sample for number, sample in enumerate(samples) if number % HELD_OUT]
    held_out = samples[::HELD_OUT]
    weights = [[0.0] * len(samples[0][0]) for _class in range(CLASSES)]
    shuffled = random.Random(options.seed)
    for epoch in range(options.epochs):
        shuffled.shuffle(training)
        loss = sum(learn(weights, sample, options.learning_rate) for sample in training) / len(training)
        said = {"epoch": epoch + 1, "epochs": options.epochs, "loss": round(loss, 6), "time": round(time.time(), 3)}
        print(json.dumps({"experiment": said}), flush=True)
    right = 0
    for pixels, label in held_out:
        found = probabilities(weights, pixels)
        right += found.index(max(found)) == label
    print(json.dumps({"experiment": {"accuracy": round(right / len(held_out), 6)}}), flush=True)


if __name__ == "__main__":
    main()
