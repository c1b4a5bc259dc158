"""Permanents of small matrices of logarithms, to average densities over permutations of labels. Numba."""

from __future__ import annotations

import math

import numpy as np

from bayeszoo.likelihoods.compiling import loop

LEAST = 1e-250
"""Scaled sums below this may have lost terms, and are computed in logarithms."""


@loop
def _log_sum(first: float, second: float) -> float:
    larger, smaller = max(first, second), min(first, second)
    return larger if smaller == -np.inf else larger + math.log1p(math.exp(smaller - larger))


@loop
def _scaled(logs: np.ndarray, rows: np.ndarray, scaled: np.ndarray, sums: np.ndarray) -> float:
    """Return the log permanent by sums of products over sets of columns; -inf on underflow."""
    size, shift = len(logs), 0.0
    for j in range(size):
        largest = logs[j].max()
        shift += largest
        for k in range(size):
            scaled[j, k] = math.exp(logs[j, k] - largest)
    for used in range(1, len(sums)):
        total = 0.0
        for k in range(size):
            if used >> k & 1:
                total += sums[used ^ (1 << k)] * scaled[rows[used], k]
        sums[used] = total
    return shift + math.log(sums[-1]) if sums[-1] > LEAST else -np.inf


@loop
def _in_logarithms(logs: np.ndarray, rows: np.ndarray, sums: np.ndarray) -> float:
    sums[0] = 0.0
    for used in range(1, len(sums)):
        sums[used] = -np.inf
        for k in range(len(logs)):
            if used >> k & 1:
                sums[used] = _log_sum(sums[used], sums[used ^ (1 << k)] + logs[rows[used], k])
    return float(sums[-1])


@loop
def log_permanents(logs: np.ndarray) -> np.ndarray:
    """Return log permanents (M,) of exp(logs), matrices (M, K, K): sums over permutations of products of entries.

    Row by row over sets of columns: 2^K K / 2 terms instead of K! K, all positive, so that nothing cancels.
    """
    size = logs.shape[1]
    scaled, sums, out = np.empty((size, size)), np.ones(1 << size), np.empty(len(logs))
    rows = np.full(1 << size, -1)  # a set of n columns belongs to the first n rows
    for used in range(1 << size):
        for k in range(size):
            rows[used] += used >> k & 1
    for i in range(len(logs)):
        sums[0] = 1.0
        out[i] = _scaled(logs[i], rows, scaled, sums)
        if not out[i] > -np.inf:
            out[i] = _in_logarithms(logs[i], rows, sums)
    return out
