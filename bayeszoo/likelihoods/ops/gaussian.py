"""The log density of a Gaussian vector as a PyTensor operation with its gradient in the covariance matrix."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt

from bayeszoo.likelihoods.loops import gaussian as gaussian_loops
from bayeszoo.likelihoods.loops.gaussian import gaussian_value_and_gradient
from bayeszoo.likelihoods.ops.operation import LogDensity


def _by_loops(covariance: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return value and gradient as arrays."""
    value, gradient = gaussian_value_and_gradient(covariance, y)
    return np.asarray(value), gradient


class ZeroMeanGaussian(LogDensity):
    """Covariance (n, n) and vector (n,) to log density and its gradient in the covariance."""

    parameters = (2,)
    data = ((1, "float64"),)
    sources = (gaussian_loops,)
    loops = staticmethod(_by_loops)


def zero_mean_log_density(covariance: pt.TensorVariable, y: pt.TensorVariable) -> pt.TensorVariable:
    """Return the log density of y ~ N(0, covariance), shapes (n,) and (n, n), as a PyTensor scalar.

    It is -inf if the covariance is not positive definite, up to rounding. There are no second derivatives.
    """
    return ZeroMeanGaussian()(covariance, y)[0]
