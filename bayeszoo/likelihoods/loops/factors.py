"""Log likelihood of rows N(mean, W W' + sigma2 I), some of their numbers missing, from statistics by pattern. Numba.

No PyTensor here. Cost O(D^2 q) a pattern, whatever the number of rows. Only matrices of size q x q are inverted
(Woodbury): with M = W'W + sigma2 I and G = W M^-1, the inverse of C = W W' + sigma2 I is (I - G W') / sigma2, C^-1 W is
G, and log |C| = (D - q) log sigma2 + log |M|. Every function that a compiled one calls is in this file or in `vectors`,
because numba's cache of compiled code looks at the time of one file: save this one when that one has changed.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from bayeszoo.likelihoods.loops.vectors import gram, inverse_factor

# without fastmath=False a function takes over that of the first one that calls it: PyTensor's moves terms about
_loops = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=False)
_NATS = math.log(2 * math.pi)


@_loops
def _product(A: np.ndarray, B: np.ndarray, to: np.ndarray) -> None:
    """Write A B."""
    for i in range(A.shape[0]):
        for a in range(B.shape[1]):
            to[i, a] = 0.0
        for j in range(A.shape[1]):
            for a in range(B.shape[1]):
                to[i, a] += A[i, j] * B[j, a]


@_loops
def _of_pattern(W: Any, variance: float, n: float, shift: Any, scatter: Any, of_shift: Any, of_W: Any) -> Any:
    """Return log likelihood and derivative in the variance of n rows; write those in their shift and in the loadings.

    `scatter` (d, d) is about the mean of the rows, `shift` (d,) their mean less that of the distribution.
    """
    d, q = W.shape
    M, inverse, G, B = np.empty((q, q)), np.empty((q, q)), np.empty((d, q)), np.empty((d, q))
    factor, half = np.zeros((q, q)), np.zeros((q, q))
    gram(W, W, M)
    for a in range(q):
        M[a, a] += variance
    log_det = (d - q) * math.log(variance) + 2 * inverse_factor(M, factor, half)
    gram(half, half, inverse)
    _product(W, inverse, G)
    _product(scatter, G, B)  # with the next loop, S G: S is the scatter about the mean of the distribution
    for a in range(q):
        along = 0.0
        for i in range(d):
            along += shift[i] * G[i, a]
        for i in range(d):
            B[i, a] += n * shift[i] * along
    gram(W, B, inverse)
    traces = np.zeros(3)  # of S and of G W', and of C^-1 S G W'
    for i in range(d):
        traces[0] += scatter[i, i] + n * shift[i] ** 2
        along = 0.0
        for a in range(q):
            traces[0] -= W[i, a] * B[i, a]
            traces[1] += G[i, a] * W[i, a]
            inner = B[i, a]
            for b in range(q):
                inner -= G[i, b] * inverse[b, a]
            of_W[i, a] = inner / variance - n * G[i, a]
            traces[2] += inner / variance * W[i, a]
    for i in range(d):
        of_shift[i] = n * shift[i]
        for a in range(q):
            along = 0.0
            for j in range(d):
                along += W[j, a] * shift[j]
            of_shift[i] -= n * G[i, a] * along
        of_shift[i] /= variance
    explained = traces[0] / variance  # the trace of C^-1 S
    value = -0.5 * (n * (d * _NATS + log_det) + explained)
    return value, -0.5 * (n * (d - traces[1]) - (explained - traces[2])) / variance


@_loops
def ppca_value_and_gradient(
    mean: Any, loadings: Any, variance: float, observed: Any, n: Any, means: Any, scatters: Any
) -> Any:
    """Return log likelihood and its derivatives in mean (D,), loadings (D, q) and variance; NaN at a variance <= 0."""
    D, q = loadings.shape
    if mean.shape != (D,) or observed.shape != (len(n), D) or means.shape != (len(n), D):
        raise ValueError("mean, loadings, patterns and their means differ in D, or in how many there are")
    if scatters.shape != (len(n), D, D):
        raise ValueError("the scatter matrices differ in D or in how many there are")
    value, of_variance, of_mean, of_loadings = 0.0, 0.0, np.zeros(D), np.zeros((D, q))
    if not variance > 0:
        return np.nan, of_mean, of_loadings, np.nan
    W, of_W, shift, of_shift, at = np.empty((D, q)), np.empty((D, q)), np.empty(D), np.empty(D), np.empty(D, np.int64)
    scatter = np.empty((D, D))
    for p in range(len(n)):
        d = 0
        for j in range(D):
            if observed[p, j] != 0.0:
                at[d] = j
                d += 1
        for i in range(d):
            shift[i] = means[p, at[i]] - mean[at[i]]
            for a in range(q):
                W[i, a] = loadings[at[i], a]
            for j in range(d):
                scatter[i, j] = scatters[p, at[i], at[j]]
        found, slope = _of_pattern(W[:d], variance, n[p], shift[:d], scatter[:d, :d], of_shift, of_W)
        value += found
        of_variance += slope
        for i in range(d):
            of_mean[at[i]] += of_shift[i]
            for a in range(q):
                of_loadings[at[i], a] += of_W[i, a]
    return value, of_mean, of_loadings, of_variance
