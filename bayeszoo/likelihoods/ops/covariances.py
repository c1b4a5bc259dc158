"""Densities of covariance matrices and of means given them, several at a time, as PyTensor operations.

They could be written with PyTensor's own operations, of which there would be thirty; numba compiles these for half a
minute, and loops over small matrices in seconds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy
from pytensor.link.numba.dispatch import basic as numba_basic

from bayeszoo.likelihoods.ops import precision
from bayeszoo.likelihoods.ops.operation import LogDensity

_log_det_and_inverse = numba_basic.numba_njit(precision.by_loops)
_NATS = math.log(2 * math.pi)


def _inverse_wisharts(sigma: Any, nu: Any, psi: Any, constant: Any) -> Any:
    """Return log densities, and (P Psi P - (nu + D + 1) P) / 2 with P the inverse of Sigma."""
    values, gradients, size = np.empty(len(sigma)), np.zeros(sigma.shape), sigma.shape[1]
    if psi.shape != (1, size, size):
        raise ValueError("the covariances and their scale matrix differ in D")
    power, half = nu[0] + size + 1, np.empty((size, size))
    for k in range(len(sigma)):
        log_det, P = _log_det_and_inverse(sigma[k])
        trace = 0.0
        for i in range(size):
            for j in range(size):
                trace += P[i, j] * psi[0, i, j]
                half[i, j] = 0.0
                for m in range(size):
                    half[i, j] += 0.5 * P[i, m] * psi[0, m, j]
        for i in range(size):
            for j in range(size):
                gradients[k, i, j] = -0.5 * power * P[i, j]
                for m in range(size):
                    gradients[k, i, j] += half[i, m] * P[m, j]
        values[k] = constant[0] - 0.5 * (power * log_det[()] + trace)
    return values, gradients


def _inverse_wisharts_by_numpy(sigma: Any, nu: Any, psi: Any, constant: Any) -> list[np.ndarray]:
    if not np.all(np.linalg.eigvalsh(sigma) > 0):
        return [np.full(len(sigma), np.nan), np.full_like(sigma, np.nan)]
    power, P = nu[0] + sigma.shape[-1] + 1, np.linalg.inv(sigma)
    values = constant[0] - (power * np.linalg.slogdet(sigma)[1] + np.trace(P @ psi, axis1=1, axis2=2)) / 2
    return [values, (P @ psi @ P - power * P) / 2]


class InverseWishartDensities(LogDensity):
    """Sigma (K, D, D) to log densities and their gradient, given nu (1,), Psi (1, D, D) and the log constant (1,)."""

    parameters = (3,)
    data = ((1, "float64"), (3, "float64"), (1, "float64"))
    value_ndim = 1
    sources = (precision,)
    loops, by_numpy = staticmethod(_inverse_wisharts), staticmethod(_inverse_wisharts_by_numpy)


def _scaled_normals(value: Any, sigma: Any, mean: Any, kappa: Any) -> Any:
    """Return log densities, and with u = P (value - mean), gradients -kappa u and (kappa u u' - P) / 2."""
    size, kappa = value.shape[1], kappa[0]
    if sigma.shape != (len(value), size, size) or mean.shape != (1, size):
        raise ValueError("means and covariances differ in K or D")
    values, of_value, of_sigma, u = np.empty(len(value)), np.empty(value.shape), np.empty(sigma.shape), np.empty(size)
    for k in range(len(value)):
        log_det, P = _log_det_and_inverse(sigma[k])
        squares = 0.0
        for i in range(size):
            u[i] = 0.0
            for j in range(size):
                u[i] += P[i, j] * (value[k, j] - mean[0, j])
            squares += u[i] * (value[k, i] - mean[0, i])
        for i in range(size):
            of_value[k, i] = -kappa * u[i]
            for j in range(size):
                of_sigma[k, i, j] = 0.5 * (kappa * u[i] * u[j] - P[i, j])
        values[k] = -0.5 * (size * (_NATS - math.log(kappa)) + log_det[()] + kappa * squares)
    return values, of_value, of_sigma


def _scaled_normals_by_numpy(value: Any, sigma: Any, mean: Any, kappa: Any) -> list[np.ndarray]:
    if not np.all(np.linalg.eigvalsh(sigma) > 0):
        return [np.full(len(value), np.nan), np.full_like(value, np.nan), np.full_like(sigma, np.nan)]
    pairs = zip(value, sigma, strict=True)
    values = [scipy.stats.multivariate_normal(mean[0], cov / kappa[0]).logpdf(one) for one, cov in pairs]
    P, shift = np.linalg.inv(sigma), value - mean
    u = (P @ shift[..., None])[..., 0]
    return [np.array(values), -kappa[0] * u, (kappa[0] * u[:, :, None] * u[:, None, :] - P) / 2]


class ScaledNormalDensities(LogDensity):
    """Means (K, D) and covariances (K, D, D) to log densities, two gradients; given the mean (1, D) and kappa (1,)."""

    parameters = (2, 3)
    data = ((2, "float64"), (1, "float64"))
    value_ndim = 1
    sources = (precision,)
    loops, by_numpy = staticmethod(_scaled_normals), staticmethod(_scaled_normals_by_numpy)
