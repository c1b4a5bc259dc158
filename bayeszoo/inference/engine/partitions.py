"""Partitions of rows into clusters: their number, and a list of them."""

from __future__ import annotations

import numpy as np


def number_of_partitions(rows: int, most: int) -> int:
    """Count the partitions of N rows into at most K clusters: a sum of Stirling numbers of the second kind."""
    ways = [1] + [0] * most  # by the number of clusters
    for _ in range(rows):
        ways = [0] + [k * ways[k] + ways[k - 1] for k in range(1, most + 1)]
    return sum(ways)


def partitions(rows: int, most: int) -> np.ndarray:
    """Return all partitions of N rows into at most K clusters, (M, rows), clusters numbered by their first rows."""
    most = min(most, rows)
    assignments, used = np.zeros((1, 0), dtype=np.int8), np.zeros(1, dtype=np.int8)
    for _ in range(rows):
        choices = np.minimum(used + 1, most)
        clusters = np.arange(choices.sum()) - np.repeat(np.cumsum(choices) - choices, choices)
        assignments = np.column_stack([np.repeat(assignments, choices, axis=0), clusters.astype(np.int8)])
        used = np.maximum(np.repeat(used, choices), clusters + 1).astype(np.int8)
    return assignments
