# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Train the classifier of this example: train.py DIGITS_CSV_GZ

The data are the digits of the example of role elastic. It writes digits/1/weights.json, and seven.pgm, a picture that it has not seen.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
STEPS, RATE, HELD_OUT = 400, 0.5, 360


def main() -> None:
    """Train by gradient descent, print the accuracy on the held-out rows, and write both files."""
    with gzip.open(sys.argv[1], "rt", encoding="ascii") as file:
        rows = np.loadtxt(file, delimiter=",")
    pixels, digits = rows[:, :64] / 16, rows[:, 64].astype(int)
    x, y = pixels[:-HELD_OUT], np.eye(10)[digits[:-HELD_OUT]]
    weights, bias = np.zeros((64, 10)), np.zeros(10)
    for _step in range(STEPS):
        scores = np.exp(x @ weights + bias)
        error = scores / scores.sum(axis=1, keepdims=True) - y
        weights -= RATE * x.T @ error / len(x)
        bias -= RATE * error.mean(axis=0)
    weights, bias = weights.round(3), bias.round(3)
    guesses = (pixels[-HELD_OUT:] @ weights + bias).argmax(axis=1)
    print(f"accuracy {(guesses == digits[-HELD_OUT:]).mean():.3f} on {HELD_OUT} held-out digits")
    (HERE / "digits" / "1" / "weights.json").write_text(json.dumps({"weights": weights.tolist(), "bias": bias.tolist()}) + "\n")
    seven = rows[-HELD_OUT:][(digits[-HELD_OUT:] == 7) & (guesses == 7)][0, :64].astype(int).reshape(8, 8)
    lines = [" ".join(f"{value:2}" for value in line) for line in seven]
    (HERE / "seven.pgm").write_text("P2\n8 8\n16\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
