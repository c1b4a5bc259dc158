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
from bayeszoo.families.lasso import descent as lasso
from bayeszoo.families.lasso.coefficient import LaplaceGaussian

MAX_CORRELATION = 1e-12
"""Between columns that count as orthogonal."""
MAX_ROUNDS = 1000
"""Of the mode over weights and noise in turn."""
STARTS = 9
"""Noise variances from which joint modes are looked for."""
SAME = 1e-6
"""Relative difference of noise variances within which two modes are one."""


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


def together(first: Posterior, second: Posterior) -> Posterior:
    """Return two independent posteriors as one."""

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {**first.rvs(size, rng), **second.rvs(size, rng)}

    return Posterior({**first, **second}, draw, lambda params: first.logpdf(params) + second.logpdf(params))


def mode(design: np.ndarray, outcome: np.ndarray, b: np.ndarray, sigma2: float) -> lasso.Solution:
    """Return the weights of highest density given the noise variance."""
    return lasso.coordinate_descent(design.T @ design / sigma2, design.T @ outcome / sigma2, 1 / b)


@dataclass(frozen=True)
class JointMode:
    """A local maximum of the density of weights and noise variance, and its log height up to a constant."""

    theta: np.ndarray
    sigma2: float
    height: float


def joint_modes(design: np.ndarray, outcome: np.ndarray, b: np.ndarray, shape: float, scale: float) -> list[JointMode]:
    """Return the modes of weights and noise variance that are found from several noise variances, the highest first.

    Parameters
    ----------
    design, outcome, b : ndarray of shape (R, T), (R,), (T,)
    shape, scale : float
        The density of the noise variance given the weights is that of InvGamma(shape, scale + squared error / 2).

    Raises
    ------
    NumericalError
        When none is found.

    Notes
    -----
    Weights and variance are maximized in turn. The density may have several modes: little noise around weights that are
    far out for their prior, and much noise around weights near 0 (Park and Casella 2008, section 2 and appendix A).
    """
    lowest, highest = scale / (shape + 1), noise_mode(outcome, shape, scale)
    starts = np.geomspace(lowest, highest, STARTS) if highest > lowest else [lowest]
    found: list[JointMode] = []
    for start in starts:
        one = _climb(design, outcome, b, shape, scale, float(start))
        if one is not None and all(abs(one.sigma2 / other.sigma2 - 1) > SAME for other in found):
            found.append(one)
    if not found:
        raise NumericalError(f"no joint mode of weights and noise found in {MAX_ROUNDS} rounds")
    return sorted(found, key=lambda one: -one.height)


def _climb(
    design: np.ndarray, outcome: np.ndarray, b: np.ndarray, shape: float, scale: float, sigma2: float
) -> JointMode | None:
    for _ in range(MAX_ROUNDS):
        theta = mode(design, outcome, b, sigma2).theta
        error, before = design @ theta - outcome, sigma2
        sigma2 = noise_mode(error, shape, scale)
        if abs(sigma2 - before) <= 1e-12 * sigma2:
            squares = scale + float(np.sum(np.square(error))) / 2
            height = -float(np.sum(np.abs(theta) / b)) - (shape + 1) * math.log(sigma2) - squares / sigma2
            return JointMode(theta, sigma2, height)
    return None


def noise_mode(error: np.ndarray, shape: float, scale: float) -> float:
    """Return the mode of InvGamma(shape, scale + squared error / 2)."""
    return (scale + float(np.sum(np.square(error))) / 2) / (shape + 1)
