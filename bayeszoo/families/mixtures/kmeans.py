"""Seeds of clusters by k-means++ (Arthur and Vassilvitskii 2007): rows far from each other, at random."""

from __future__ import annotations

import numpy as np

from bayeszoo.families.statistics.moments import Moments


def seeds(Y: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
    """Choose K different rows, each with probability proportional to its squared distance from those before it.

    Parameters
    ----------
    Y : ndarray of shape (N, D)
        Rows, N >= K. Columns are measured in their standard deviations.
    K : int
        How many.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int, shape (K,)
        Their places. Where only copies of chosen rows are left, any of them.
    """
    rows = _standardized(Y)
    chosen = [int(rng.integers(len(rows)))]
    nearest = np.full(len(rows), np.inf)
    free = np.ones(len(rows), dtype=bool)
    for _ in range(K - 1):
        free[chosen[-1]] = False
        nearest = np.minimum(nearest, np.sum((rows - rows[chosen[-1]]) ** 2, axis=1))
        share = np.where(free, nearest, 0.0)
        share = share if share.any() else free.astype(np.float64)
        chosen.append(int(rng.choice(len(rows), p=share / share.sum())))
    return np.array(chosen)


def clusters(Y: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
    """Return which seed each row is nearest to, shape (N,); every seed is in its own cluster."""
    rows, chosen = _standardized(Y), seeds(Y, K, rng)
    distances = np.stack([np.sum((rows - rows[i]) ** 2, axis=1) for i in chosen], axis=1)
    nearest = np.argmin(distances, axis=1)
    nearest[chosen] = np.arange(K)
    return nearest


def _standardized(Y: np.ndarray) -> np.ndarray:
    stats = Moments.of(Y)
    return np.asarray((Y - stats.mean) / stats.sd)
