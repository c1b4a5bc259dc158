"""Log likelihood of rows N(mean, W W' + sigma2 I) with missing numbers, from statistics by pattern. Numba.

Cost O(D^2 q) a pattern, whatever the number of rows. Only matrices of size q x q are inverted
(Woodbury): with M = W'W + sigma2 I and G = W M^-1, the inverse of C = W W' + sigma2 I is (I - G W') / sigma2, C^-1 W is
G, and log |C| = (D - q) log sigma2 + log |M|.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.likelihoods.compiling import loop
from bayeszoo.likelihoods.loops.vectors import inverse_factor


@loop
def _of_pattern(W: np.ndarray, variance: float, n: float, shift: np.ndarray, scatter: np.ndarray) -> Any:
    """Return the log likelihood of n rows, and its derivatives in shift, loadings and variance.

    ``scatter`` (d, d) is about the mean of the rows, ``shift`` (d,) their mean minus that of the distribution.
    """
    d, q = W.shape
    factor, half = np.zeros((q, q)), np.zeros((q, q))
    log_det = (d - q) * math.log(variance) + 2 * inverse_factor(W.T @ W + variance * np.eye(q), factor, half)
    G, S = W @ (half.T @ half), scatter + n * np.outer(shift, shift)
    B = S @ G
    explained = (np.trace(S) - np.sum(W * B)) / variance  # the trace of C^-1 S
    inner = (B - G @ (W.T @ B)) / variance  # C^-1 S G
    value = -0.5 * (n * (d * LOG_2_PI + log_det) + explained)
    of_variance = -0.5 * (n * (d - np.sum(G * W)) - (explained - np.sum(W * inner))) / variance
    return value, n * (shift - G @ (W.T @ shift)) / variance, inner - n * G, of_variance


@loop
def ppca_value_and_gradient(
    mean: np.ndarray,
    loadings: np.ndarray,
    variance: float,
    observed: np.ndarray,
    n: np.ndarray,
    means: np.ndarray,
    scatters: np.ndarray,
) -> Any:
    """Return log likelihood and its derivatives in mean (D,), loadings (D, q) and variance; NaN at a variance <= 0."""
    D, q = loadings.shape
    if mean.shape != (D,) or observed.shape != (len(n), D) or means.shape != (len(n), D):
        raise ValueError("mean, loadings, patterns and their means differ in D or in number")
    if scatters.shape != (len(n), D, D):
        raise ValueError("the scatter matrices differ in D or in number")
    value, of_variance, of_mean, of_loadings = 0.0, 0.0, np.zeros(D), np.zeros((D, q))
    if not variance > 0:
        return np.nan, of_mean, of_loadings, np.nan
    for p in range(len(n)):
        columns = np.flatnonzero(observed[p])
        d = len(columns)
        W, shift, scatter = np.empty((d, q)), np.empty(d), np.empty((d, d))
        for i in range(d):
            shift[i] = means[p, columns[i]] - mean[columns[i]]
            for a in range(q):
                W[i, a] = loadings[columns[i], a]
            for j in range(d):
                scatter[i, j] = scatters[p, columns[i], columns[j]]
        if d:
            term, of_shift, of_W, slope = _of_pattern(W, variance, n[p], shift, scatter)
            value += term
            of_variance += slope
            for i in range(d):
                of_mean[columns[i]] += of_shift[i]
                for a in range(q):
                    of_loadings[columns[i], a] += of_W[i, a]
    return value, of_mean, of_loadings, of_variance
