"""One pass over the rows of a Gaussian mixture: log likelihood and expected statistics. Numba.

The E-step of EM and the gradient follow from these statistics by a few small matrix products, so
responsibilities are kept only for a block of rows. Cost O(N K D^2).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from bayeszoo.errors import NumericalError
from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.likelihoods.compiling import loop
from bayeszoo.likelihoods.loops.vectors import exponentials, inverse_factor

BLOCK = 256
"""Rows in a block: few enough for the first-level cache, enough for vector instructions."""


# allows vectorized sums over rows, in any order
_sums = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})


@loop
def _whiten(rows: int, block: np.ndarray, mean: np.ndarray, inverse: np.ndarray, z: np.ndarray) -> None:
    """Fill in z = L^-1 (y - mean), of shape (D, rows)."""
    for i in range(len(mean)):
        for n in range(rows):
            z[i, n] = inverse[i, 0] * (block[0, n] - mean[0])
        for j in range(1, i + 1):
            for n in range(rows):
                z[i, n] += inverse[i, j] * (block[j, n] - mean[j])


@loop
def _log_densities(rows: int, constant: float, z: np.ndarray, out: np.ndarray) -> None:
    """Fill in constant - z'z / 2."""
    for n in range(rows):
        out[n] = constant
    for i in range(len(z)):
        for n in range(rows):
            out[n] -= 0.5 * z[i, n] * z[i, n]


@loop
def _responsibilities(rows: int, p: np.ndarray, work: np.ndarray) -> float:
    """Replace log w_k N(y | k), of shape (K, rows), by responsibilities; return the sum of the rows' log densities.

    A row that is impossible in all components has log density -inf and responsibilities 0.
    """
    largest, total = work[0], work[1]
    for n in range(rows):
        total[n], largest[n] = 0.0, p[0, n]
    for k in range(1, len(p)):
        for n in range(rows):
            largest[n] = p[k, n] if p[k, n] > largest[n] else largest[n]
    for n in range(rows):
        largest[n] = 0.0 if largest[n] == -np.inf else largest[n]
    for k in range(len(p)):
        for n in range(rows):
            p[k, n] -= largest[n]
        exponentials(p[k, :rows], work[2, :rows])
        for n in range(rows):
            total[n] += p[k, n]
    value = _sum_of_logs(rows, total)
    for n in range(rows):
        value += largest[n]
        total[n] = 0.0 if total[n] == 0.0 else 1 / total[n]
    for k in range(len(p)):
        for n in range(rows):
            p[k, n] *= total[n]
    return value


@loop
def _sum_of_logs(rows: int, x: np.ndarray) -> float:
    """Return the sum of log(x), with one logarithm for each product of 16 factors; each x is 0 or from 1 to K."""
    value, product = 0.0, 1.0
    for n in range(rows):
        product *= x[n]
        if n % 16 == 15:
            value += math.log(product)
            product = 1.0
    return value + math.log(product)


@_sums
def _add(rows: int, r: np.ndarray, z: np.ndarray, shift: np.ndarray, scatter: np.ndarray) -> float:
    """Add sum r z and sum r z z' to the given sums; return sum r."""
    count = 0.0
    for n in range(rows):
        count += r[n]
    for i in range(len(z)):
        total = 0.0
        for n in range(rows):
            total += r[n] * z[i, n]
        shift[i] += total
        for j in range(i + 1):
            total = 0.0
            for n in range(rows):
                total += r[n] * z[i, n] * z[j, n]
            scatter[i, j] += total
            scatter[j, i] = scatter[i, j]
    return count


@loop
def whitened_statistics(weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, Y: np.ndarray) -> Any:
    """Return log likelihood, N_k, sums of r z and of r z z', Cholesky factors L, their inverses; z = L^-1 (y - mu).

    All results are NaN if a covariance is not positive definite.
    """
    K, D = means.shape
    if weights.shape != (K,) or covariances.shape != (K, D, D) or Y.shape[1] != D:
        raise ValueError("weights, means, covariances and rows differ in K or D")
    factors, inverses, constants, start = np.zeros((K, D, D)), np.zeros((K, D, D)), np.empty(K), 0.0
    for k in range(K):
        constants[k] = math.log(weights[k]) - 0.5 * D * LOG_2_PI
        constants[k] -= inverse_factor(covariances[k], factors[k], inverses[k])
        if np.isnan(constants[k]):
            start = np.nan
    value, counts, shifts, scatters = start, np.full(K, start), np.full((K, D), start), np.full((K, D, D), start)
    block, z, p, work = np.empty((D, BLOCK)), np.empty((K, D, BLOCK)), np.empty((K, BLOCK)), np.empty((3, BLOCK))
    for first in range(0, len(Y), BLOCK):
        rows = min(BLOCK, len(Y) - first)
        for n in range(rows):
            for j in range(D):
                block[j, n] = Y[first + n, j]
        for k in range(K):
            _whiten(rows, block, means[k], inverses[k], z[k])
            _log_densities(rows, constants[k], z[k], p[k])
        value += _responsibilities(rows, p, work)
        for k in range(K):
            counts[k] += _add(rows, p[k], z[k], shifts[k], scatters[k])
    return value, counts, shifts, scatters, factors, inverses


class GaussianSums(NamedTuple):
    """Log likelihood of rows, and sums of r, r (y - mu_k) and r (y - mu_k) (y - mu_k)', r the responsibilities.

    The sums have shapes (K,), (K, D) and (K, D, D), about the given means mu_k.
    """

    value: float
    counts: np.ndarray
    shifts: np.ndarray
    scatters: np.ndarray


def gaussian_e_step(
    weights: npt.ArrayLike, means: npt.ArrayLike, covariances: npt.ArrayLike, Y: npt.ArrayLike
) -> GaussianSums:
    """Return log likelihood and expected statistics of rows (N, D) of a Gaussian mixture, in one pass.

    The sum of the weights (K,) need not be 1: the E-step of variational Bayes passes exp(E[log w]) with its other
    constants. An impossible row makes the log likelihood -inf, and is not counted. Raises
    `NumericalError` if a covariance is not positive definite, or a number is not finite.
    """
    arrays = (np.ascontiguousarray(a, dtype=np.float64) for a in (weights, means, covariances, Y))
    value, counts, shifts, scatters, factors, _ = whitened_statistics(*arrays)
    if np.isnan(value):
        raise NumericalError(
            "no log likelihood: a covariance is not positive definite, or a number is not finite",
            "not_positive_definite",
        )
    return GaussianSums(value, counts, (factors @ shifts[..., None])[..., 0], factors @ scatters @ factors.mT)
