# SPDX-License-Identifier: GPL-3.0-or-later
"""Two numbers that say how good a model is."""

from __future__ import annotations

import math
from collections.abc import Sequence


def auc(scores: Sequence[float], labels: Sequence[float]) -> float:
    """Area under the ROC curve by ranks; equal scores share their mean rank."""
    positives = sum(1 for label in labels if label > 0.5)
    negatives = len(labels) - positives
    if not positives or not negatives:
        return math.nan
    order = sorted(range(len(scores)), key=scores.__getitem__)
    rank_sum, start = 0.0, 0
    while start < len(order):
        end = start
        while end < len(order) and scores[order[end]] == scores[order[start]]:
            end += 1
        mean_rank = (start + 1 + end) / 2
        rank_sum += mean_rank * sum(1 for place in order[start:end] if labels[place] > 0.5)
        start = end
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def log_loss(scores: Sequence[float], labels: Sequence[float]) -> float:
    total = 0.0
    for score, label in zip(scores, labels):
        score = min(max(score, 1e-7), 1 - 1e-7)
        total -= math.log(score if label > 0.5 else 1 - score)
    return total / len(labels)
