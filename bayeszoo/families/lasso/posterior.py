"""What is known in closed form of a linear model with Laplace weights, and its mode."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.distributions import frozen
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.errors import NumericalError
from bayeszoo.families.lasso.coefficient import LaplaceGaussian

MAX_CORRELATION = 1e-12
"""Between columns that count as orthogonal."""


class Moved:
    """The distribution of ``origin + x / units`` for x of a given distribution, elementwise."""

    def __init__(self, distribution: Any, origin: np.ndarray, units: np.ndarray) -> None:
        self._own, self._origin, self._units = distribution, origin, units

    def mean(self) -> np.ndarray:
        """Return the means."""
        return np.asarray(self._origin + self._own.mean() / self._units)

    def std(self) -> np.ndarray:
        """Return the standard deviations."""
        return np.asarray(self._own.std() / self._units)

    def ppf(self, q: Any) -> np.ndarray:
        """Return the quantiles."""
        return np.asarray(self._origin + self._own.ppf(q) / self._units)

    def cdf(self, x: Any) -> np.ndarray:
        """Return cumulative probabilities."""
        return np.asarray(self._own.cdf((np.asarray(x) - self._origin) * self._units))

    def logpdf(self, x: Any) -> np.ndarray:
        """Return log densities."""
        return np.asarray(self._own.logpdf((np.asarray(x) - self._origin) * self._units) + np.log(self._units))

    def rvs(self, size: Any = None, random_state: Any = None) -> np.ndarray:
        """Draw independently."""
        return np.asarray(self._origin + self._own.rvs(size=size, random_state=random_state) / self._units)


@dataclass(frozen=True)
class Orthogonal:
    """Posterior of weights with Laplace priors given orthogonal columns and unit noise, and their part of the evidence.

    Attributes
    ----------
    weights : LaplaceGaussian
        Independent.
    log_ratio : float
        Log of the integral of prior times exp(-squared error / 2).
    """

    weights: LaplaceGaussian
    log_ratio: float


def orthogonal(design: np.ndarray, outcome: np.ndarray, b: np.ndarray) -> Orthogonal:
    """Combine independent Laplace priors with orthogonal columns.

    Parameters
    ----------
    design : ndarray of shape (R, T)
    outcome : ndarray of shape (R,)
    b : ndarray of shape (T,)
        Scales of the priors.

    Raises
    ------
    NumericalError
        When two columns are not orthogonal: the posterior is then a mixture of 2**T truncated Gaussians.
    """
    size = np.sqrt(np.sum(np.square(design), axis=0))
    unit = design / np.where(size > 0, size, 1.0)
    largest = float(np.max(np.abs(np.triu(unit.T @ unit, 1)), initial=0.0))
    if largest > MAX_CORRELATION:
        raise NumericalError(f"no closed form: the columns are not orthogonal (largest correlation {largest:.3g})")
    along = unit.T @ outcome
    centre = along / np.where(size > 0, size, 1.0)
    weights = LaplaceGaussian(np.square(size), centre, b)
    rest = outcome - unit @ along
    rest = rest - unit @ (unit.T @ rest)
    # the completed square: precision c^2 / 2 is in neither factor of the normalizer
    normalizers = weights.log_normalizer - np.log(2 * b)
    return Orthogonal(weights, math.fsum(normalizers) - float(np.sum(np.square(rest))) / 2)


def mixture_prior(origin: np.ndarray, b: np.ndarray) -> Posterior:
    """Return weights w ~ N(origin, tau2) and their variances tau2 ~ Exponential(mean 2 b^2): each w ~ Laplace(b)."""
    variances = frozen.expon(scale=2 * np.square(b))

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        tau2 = variances.rvs(size=(*size, len(b)), random_state=rng)
        return {"w": rng.normal(origin, np.sqrt(tau2)), "tau2": tau2}

    def log_density(params: Mapping[str, Any]) -> float:
        tau2 = np.asarray(params["tau2"])
        normal = frozen.norm(origin, np.sqrt(tau2))
        return math.fsum([*variances.logpdf(tau2), *normal.logpdf(params["w"])])

    return Posterior({"w": frozen.laplace(origin, b), "tau2": variances}, draw, log_density)
