"""Densities in covariance matrices as a PyTensor operation.

PyTensor's own Cholesky factor, triangular solve and matrix product give the same numbers, but numba compiles them and
their gradients for minutes; loops over small matrices compile in seconds.
"""

from __future__ import annotations

import numpy as np

from bayeszoo.likelihoods.loops import vectors
from bayeszoo.likelihoods.loops.vectors import inverse_factor
from bayeszoo.likelihoods.ops.operation import LogDensity


def _by_loops(sigma: np.ndarray, scatter: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values, and with P the inverse of Sigma the gradients (P S P - n P) / 2 and -P / 2."""
    size = sigma.shape[1]
    if scatter.shape != sigma.shape:
        raise ValueError("covariances and scatter matrices differ in K or D")
    if len(n) != 1 and len(n) != len(sigma):
        raise ValueError("numbers n and covariances have different lengths")
    values, of_sigma, of_scatter = np.empty(len(sigma)), np.empty(sigma.shape), np.empty(sigma.shape)
    for k in range(len(sigma)):
        rows = n[k] if len(n) > 1 else n[0]
        factor, inverse = np.zeros((size, size)), np.zeros((size, size))
        log_det = 2 * inverse_factor(sigma[k], factor, inverse)
        P = inverse.T @ inverse + (0.0 if log_det == log_det else np.nan)
        product = P @ np.ascontiguousarray(scatter[k])
        values[k] = -0.5 * (rows * log_det + np.trace(product))
        of_sigma[k], of_scatter[k] = 0.5 * (product @ P - rows * P), -0.5 * P
    return values, of_sigma, of_scatter


class GaussianTerms(LogDensity):
    """Sigma, S (K, D, D) and n (1,) or (K,) to -(n log|Sigma| + tr(Sigma^-1 S)) / 2, with gradients in Sigma and S.

    For n Gaussian rows with scatter S about the mean it is the log density up to a constant; also that of Sigma
    under an inverse-Wishart distribution with scale matrix S and n - D - 1 degrees of freedom.
    """

    parameters = (3, 3)
    data = ((1, "float64"),)
    value_ndim = 1
    sources = (vectors,)
    loops = staticmethod(_by_loops)
