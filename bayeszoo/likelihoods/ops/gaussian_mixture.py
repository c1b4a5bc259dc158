"""Marginal log likelihood of Gaussian mixtures as one PyTensor operation with its gradient.

PyMC's mixture of `pm.MvNormal` keeps arrays of N x K numbers for each step of value and gradient, and compiles for
minutes. Here both come from one pass over the rows by `gaussian_loops`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt

from bayeszoo.likelihoods.loops import gaussian_mixture as gaussian_loops
from bayeszoo.likelihoods.loops import vectors
from bayeszoo.likelihoods.loops.gaussian_mixture import whitened_statistics
from bayeszoo.likelihoods.ops.operation import LogDensity


def _by_loops(weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, Y: np.ndarray) -> Any:
    """Return value and gradients from the statistics of z = L^-1 (y - mu): d/dSigma = L^-T (sum r z z' - N I) L^-1 / 2.

    At a weight of 0 the derivative is set to 0, its value in the softmax coordinates of samplers.
    """
    value, counts, shifts, scatters, _, inverses = whitened_statistics(weights, means, covariances, Y)
    K, D = shifts.shape
    of_weights, of_means, of_covariances = np.zeros(K), np.zeros((K, D)), np.zeros((K, D, D))
    for k in range(K):
        back = inverses[k].T
        of_weights[k] = counts[k] / weights[k] if weights[k] != 0.0 else 0.0
        of_means[k] = back @ shifts[k]
        of_covariances[k] = 0.5 * (back @ (scatters[k] - counts[k] * np.eye(D)) @ inverses[k])
    return np.asarray(value), of_weights, of_means, of_covariances


class GaussianMixtureLikelihood(LogDensity):
    """Weights (K,), means (K, D), covariances (K, D, D) and rows (N, D) to log likelihood, and its three gradients."""

    parameters = (1, 2, 3)
    data = ((2, "float64"),)
    sources = (gaussian_loops, vectors)
    loops = staticmethod(_by_loops)


def gaussian_mixture_log_likelihood(
    weights: pt.TensorVariable, means: pt.TensorVariable, covariances: pt.TensorVariable, Y: pt.TensorVariable
) -> pt.TensorVariable:
    """Return the log density of the ordered rows of a Gaussian mixture, assignments summed out, as a PyTensor scalar.

    Arguments are weights (K,), not normalized, means (K, D), and covariances (K, D, D), of which the lower triangle is
    used; rows Y (N, D) are ``pm.Data`` without gradient.

    The value is -inf if a row is impossible, NaN if a covariance is not positive definite: samplers reject both. The
    gradient in a covariance is the symmetric one, P (S_k - N_k Sigma_k) P / 2, with P the inverse of Sigma_k and S_k
    the scatter about mu_k weighted by responsibilities (Petersen and Pedersen 2012, The Matrix Cookbook, section 8.1).
    There are no second derivatives.
    """
    return GaussianMixtureLikelihood()(weights, means, covariances, Y)[0]
