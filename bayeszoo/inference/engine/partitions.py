"""Partitions of rows into clusters: how many there are, and all of them."""

from __future__ import annotations

import numpy as np


def number_of_partitions(rows: int, most: int) -> int:
    """Count the partitions of N rows into at most K clusters: sums of Stirling numbers of the second kind."""
    ways = [1] + [0] * most  # by the number of clusters
    for _ in range(rows):
        ways = [0] + [k * ways[k] + ways[k - 1] for k in range(1, most + 1)]
    return sum(ways)


def partitions(rows: int, most: int) -> np.ndarray:
    """Return every partition of N rows into at most K clusters, (M, rows), clusters numbered by their first rows."""
    every, used = np.zeros((1, 0), dtype=np.int8), np.zeros(1, dtype=np.int8)
    for _ in range(rows):
        choices = np.minimum(used + 1, most)
        own = np.arange(choices.sum()) - np.repeat(np.cumsum(choices) - choices, choices)
        every = np.column_stack([np.repeat(every, choices, axis=0), own.astype(np.int8)])
        used = np.maximum(np.repeat(used, choices), own + 1).astype(np.int8)
    return every
