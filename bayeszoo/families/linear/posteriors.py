"""Joint posteriors of regression weights: Gaussian, and with an unknown noise variance normal-inverse-gamma."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bayeszoo.distributions import frozen
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.families.linear.least_squares import Solution

_LOG_2_PI = math.log(2 * math.pi)


def gaussian(name: str, solution: Solution) -> Posterior:
    """Return a Gaussian vector called ``name``, shape (T,), with the mean and covariance of the solution."""

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        noise = rng.standard_normal((*size, len(solution.mean))) * solution.trust
        return {name: solution.mean + noise @ solution.factor.T}

    def log_density(params: Mapping[str, Any]) -> float:
        return _log_normal(solution, params[name], 1.0)

    return Posterior({name: frozen.norm(solution.mean, solution.sd)}, draw, log_density)


def normal_inverse_gamma(name: str, variance: str, solution: Solution, shape: float, scale: float) -> Posterior:
    """Return a vector and a variance, jointly: variance ~ InvGamma(shape, scale), vector | variance ~ N.

    Parameters
    ----------
    name, variance : str
        What they are called.
    solution : Solution
        Its mean is that of the vector, and its covariance times the variance is the vector's given the variance.
    shape, scale : float
        Of the inverse-gamma distribution: 1 / variance ~ Gamma(shape, rate=scale).
    """
    inverse_gamma = frozen.invgamma(shape, scale=scale)
    student = frozen.t(2 * shape, solution.mean, math.sqrt(scale / shape) * solution.sd)

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        variances = np.asarray(scale / rng.standard_gamma(shape, size))
        noise = rng.standard_normal((*size, len(solution.mean))) * solution.trust
        return {name: solution.mean + np.sqrt(variances)[..., None] * (noise @ solution.factor.T), variance: variances}

    def log_density(params: Mapping[str, Any]) -> float:
        value = float(params[variance])
        return float(inverse_gamma.logpdf(value)) + _log_normal(solution, params[name], value)

    return Posterior({name: student, variance: inverse_gamma}, draw, log_density)


def _log_normal(solution: Solution, value: Any, variance: float) -> float:
    """Log density of N(mean, variance factor factor')."""
    squares = solution.distance(np.asarray(value))
    size = len(solution.mean)
    return -(size * (_LOG_2_PI + math.log(variance)) + squares / variance) / 2 - solution.log_det_factor
