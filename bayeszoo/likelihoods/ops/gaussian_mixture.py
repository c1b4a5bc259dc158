"""Marginal log likelihood of Gaussian mixtures as one PyTensor operation, which computes its gradient as well.

PyMC's mixture of `pm.MvNormal` keeps arrays of N x K numbers for each step of value and gradient, and compiles for
minutes. Here both come from one pass over the rows, with `gaussian_loops`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from bayeszoo.likelihoods.loops import gaussian_mixture as gaussian_loops
from bayeszoo.likelihoods.loops import vectors
from bayeszoo.likelihoods.loops.gaussian_mixture import whitened_statistics
from bayeszoo.likelihoods.ops.operation import LogDensity


def _by_loops(weights: Any, means: Any, covariances: Any, Y: Any) -> Any:
    """Return value and gradients from the statistics of z = L^-1 (y - mu): d/dSigma = L^-T (sum r z z' - N I) L^-1 / 2.

    At a weight of 0 the derivative is given as 0: in the softmax coordinates that samplers use, it is.
    """
    value, counts, shifts, scatters, _, inverses = whitened_statistics(weights, means, covariances, Y)
    K, D = shifts.shape
    of_weights, of_means, of_covariances = np.zeros(K), np.zeros((K, D)), np.zeros((K, D, D))
    for k in range(K):
        of_weights[k] = counts[k] / weights[k] if weights[k] != 0.0 else 0.0
        inner = np.zeros((D, D))
        for i in range(D):
            scatters[k, i, i] -= counts[k]
            for j in range(D):
                of_means[k, j] += inverses[k, i, j] * shifts[k, i]
                for m in range(D):
                    inner[i, m] += 0.5 * scatters[k, i, j] * inverses[k, j, m]
        for i in range(D):
            for j in range(D):
                for m in range(D):
                    of_covariances[k, i, j] += inverses[k, m, i] * inner[m, j]
    return np.asarray(value), of_weights, of_means, of_covariances


def _by_responsibilities(weights: Any, means: Any, covariances: Any, Y: Any) -> list[np.ndarray]:
    """Return value and gradients from the matrix of responsibilities, (K, N)."""
    if not np.all(np.linalg.eigvalsh(covariances) > 0):
        return [np.asarray(np.nan), *(np.full_like(value, np.nan) for value in (weights, means, covariances))]
    precisions, log_det, shifts = np.linalg.inv(covariances), np.linalg.slogdet(covariances)[1], Y - means[:, None]
    squares = np.einsum("kni,kij,knj->kn", shifts, precisions, shifts)
    with np.errstate(divide="ignore", invalid="ignore"):
        joint = (np.log(weights) - (log_det + shifts.shape[-1] * np.log(2 * np.pi)) / 2)[:, None] - squares / 2
        rows = scipy.special.logsumexp(joint, axis=0)
        r = np.exp(joint - np.where(np.isneginf(rows), 0.0, rows))
        of_weights = np.where(weights == 0, 0.0, r.sum(axis=1) / weights)
    of_means = np.einsum("kij,kn,knj->ki", precisions, r, shifts)
    scatters = np.einsum("kn,kni,knj->kij", r, shifts, shifts)
    of_covariances = (precisions @ scatters @ precisions - r.sum(axis=1)[:, None, None] * precisions) / 2
    return [np.asarray(rows.sum()), of_weights, of_means, of_covariances]


class GaussianMixtureLikelihood(LogDensity):
    """Weights (K,), means (K, D), covariances (K, D, D) and rows (N, D) to log likelihood, and its three gradients."""

    parameters = (1, 2, 3)
    data = ((2, "float64"),)
    sources = (gaussian_loops, vectors)
    loops, by_numpy = staticmethod(_by_loops), staticmethod(_by_responsibilities)


def gaussian_mixture_log_likelihood(weights: Any, means: Any, covariances: Any, Y: Any) -> Any:
    """Return the log density of the ordered rows of a Gaussian mixture, assignments summed out, as a PyTensor scalar.

    Of weights (K,), not divided by their sum, means (K, D) and symmetric covariances (K, D, D), whose lower triangle is
    read; rows Y (N, D) are ``pm.Data``, and have no gradient.

    -inf where no component can give a row, NaN where a covariance is not positive definite: samplers reject both. The
    gradient in a covariance is the symmetric one, P (S_k - N_k Sigma_k) P / 2, with P the inverse of Sigma_k and S_k
    the scatter about mu_k weighted by responsibilities (Petersen and Pedersen 2012, The Matrix Cookbook, section 8.1).
    Second derivatives raise NotImplementedError.
    """
    return GaussianMixtureLikelihood()(weights, means, covariances, Y)[0]
