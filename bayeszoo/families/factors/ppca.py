"""Probabilistic PCA: its EM, and its maximum-likelihood estimate in closed form.

Tipping and Bishop 1999, section 3.2 and appendix B; PRML, section 12.2; the E-step is that of `steps`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.errors import NumericalError
from bayeszoo.families.factors import loadings_shape, steps
from bayeszoo.families.factors.base import FactorModel
from bayeszoo.families.factors.steps import Complete
from bayeszoo.families.statistics.patterns import Patterns, as_patterns
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.numerics.optimize import MAX_DISTANCE, describe
from bayeszoo.model.capabilities.steps import Coordinates

VANISHED = 1e-12
"""Share of the mean variance of the columns below which the noise variance counts as going to 0."""


class PpcaModel(FactorModel, family=True):
    """A `FactorModel` whose loadings are identified; a subclass gives the prior and the declaration.

    Loadings are lower trapezoidal with a positive diagonal. The steps of EM accept statistics as well as rows.
    """

    @abstractmethod
    def prior(self, columns: int) -> FactorPrior:
        """Return the prior of the parameters for rows of D numbers, which must be more than the factors."""

    def start(self, data: Any, rng: np.random.Generator) -> dict[str, Any]:
        """Return parameters to climb from: the columns' means, and random loadings that explain a random share."""
        stats = as_patterns(data)
        variances = stats.column_variances()
        scale = np.sqrt(np.where(np.isfinite(variances), variances, 0.0))
        scale = np.where(scale > 0, scale, scale.max() if scale.any() else 1.0)
        share = rng.uniform(0.1, 0.9)
        W = scale[:, None] * rng.standard_normal((stats.size, self.q)) * math.sqrt(share / self.q)
        variance = np.float64((1 - share) * np.mean(scale**2))
        return {"mean": stats.each_column()[1], "loadings": loadings_shape.identified(W), "variance": variance}

    def m_step(self, stats: Complete, flat: bool = False) -> dict[str, np.ndarray]:
        """Return parameters with a higher expected log joint density or, with ``flat``, log likelihood."""
        return m_step_flat(stats) if flat else self.prior(len(stats.centre)).m_step(stats)

    def coordinates(self, data: Patterns) -> Coordinates:
        """Return the mean, the free loadings and the log of the variance as coordinates of the parameters."""

        def parameters(x: np.ndarray) -> dict[str, np.ndarray]:
            params = from_vector(x, self.q)
            return {**params, "loadings": loadings_shape.turned(params["loadings"])}

        return Coordinates(to_vector, parameters)

    def closed_mle(self, stats: Patterns) -> dict[str, Any] | None:
        """Return the maximum-likelihood estimate of complete data; None, which calls for EM, if numbers are missing."""
        self.prior(stats.size)
        return closed_form(stats, self.q) if stats.is_complete else None

    def certificate(self, stats: Patterns, params: Params) -> list[Check]:
        """Check that the likelihood is stationary at the parameters and has a maximum in all free entries.

        The gradient is that of the sampled density, and shares no code with the closed form.
        """
        entries, x = loadings_shape.entries(len(params["mean"]), self.q), to_vector(params)

        def likelihood(x: np.ndarray) -> tuple[float, np.ndarray]:
            point = from_vector(x, self.q)
            value, of_mean, of_loadings, of_variance = steps.value_and_gradient(stats, point)
            return value, np.concatenate([of_mean, of_loadings[entries], [point["variance"] * of_variance]])

        return [at_most("stationary_distance", describe(likelihood, x).distance, MAX_DISTANCE)]


def m_step_flat(stats: Complete) -> dict[str, np.ndarray]:
    """Return the parameters that maximize the expected log likelihood, the loadings identified.

    Raises `NumericalError` if the variance of the noise goes to 0.
    """
    coefficients = np.linalg.solve(stats.gram, stats.cross[:, :, None])[:, :, 0]
    variance = stats.squared_error(coefficients) / stats.cells.sum()
    if not variance > VANISHED * stats.squares.sum() / stats.cells.sum():
        raise NumericalError(f"{of_factors(stats.gram.shape[1] - 1)} fit the rows exactly, up to no noise", "exact_fit")
    return _params(stats, loadings_shape.identified(coefficients[:, 1:]), coefficients[:, 0], variance)


def of_factors(q: int) -> str:
    """Return ``1 component`` or ``q components``."""
    return f"{q} component{'s' * (q != 1)}"


def _params(stats: Complete, loadings: np.ndarray, shift: np.ndarray, variance: float) -> dict[str, np.ndarray]:
    return {"mean": stats.centre + shift, "loadings": loadings, "variance": np.float64(variance)}


@dataclass(frozen=True, eq=False)
class FactorPrior:
    """mean_d ~ N(m0_d, s0^2), entries of W ~ N(0, w0^2) up to a rotation, variance ~ InvGamma(a0, scale b0)."""

    m0: np.ndarray
    s0: float
    w0: float
    a0: float
    b0: float

    def m_step(self, stats: Complete) -> dict[str, np.ndarray]:
        """Return parameters with a higher expected log joint: coefficients given the variance, then the variance.

        Each of the two steps goes to the conditional maximum (ECM: Meng and Rubin 1993), so the density never falls.
        The sign of a factor with a negative diagonal loading is changed, which alters neither likelihood nor prior.
        """
        D, q = len(stats.gram), stats.gram.shape[1] - 1
        H, g = stats.gram * stats.precision, stats.cross * stats.precision
        H[:, range(q + 1), range(q + 1)] += 1 / np.array([self.s0, *[self.w0] * q]) ** 2
        g[:, 0] += (self.m0 - stats.centre) / self.s0**2
        coefficients = np.zeros((D, q + 1))
        for i in range(q):
            coefficients[i, : i + 2] = _with_repelled_last(H[i, : i + 2, : i + 2], g[i, : i + 2], q - 1 - i)
        coefficients[q:] = np.linalg.solve(H[q:], g[q:, :, None])[:, :, 0]
        variance = (self.b0 + stats.squared_error(coefficients) / 2) / (self.a0 + 1 + stats.cells.sum() / 2)
        return _params(stats, loadings_shape.turned(coefficients[:, 1:]), coefficients[:, 0], variance)

    def log_density(self, params: Params) -> np.ndarray:
        """Return the log density of the parameters; leading axes are draws."""
        mean, variance = (np.asarray(params[name], dtype=np.float64) for name in ("mean", "variance"))
        of_mean = -np.sum(np.square((mean - self.m0) / self.s0), axis=-1) / 2
        of_mean -= mean.shape[-1] * math.log(self.s0 * math.sqrt(2 * math.pi))
        of_variance = self.a0 * math.log(self.b0) - math.lgamma(self.a0) - (self.a0 + 1) * np.log(variance)
        of_loadings = loadings_shape.log_density(params["loadings"], self.w0)
        return np.asarray(of_mean + of_loadings + of_variance - self.b0 / variance)


def _with_repelled_last(H: np.ndarray, g: np.ndarray, power: int) -> np.ndarray:
    """Maximize -x'H x / 2 + g'x + power log|t| over x, whose last entry is t.

    Given t the other entries follow. The objective in t is -h (t - centre)^2 / 2 + power log|t|, whose stationary
    points solve a quadratic equation.
    """
    inverse = np.linalg.inv(H)
    free, width = inverse @ g, inverse[-1, -1]
    t = (free[-1] + math.copysign(math.sqrt(free[-1] ** 2 + 4 * power * width), free[-1])) / 2
    return np.asarray(free + inverse[:, -1] / width * (t - free[-1]))


def closed_form(stats: Patterns, factors: int) -> dict[str, Any]:
    """Return the maximum-likelihood estimate of complete data, the loadings identified.

    The variance is the mean of the discarded eigenvalues of S = scatter / n, and W = U (Lambda - variance I)^1/2 has
    the q largest eigenvalues Lambda. Tipping and Bishop 1999, equations 7 and 8: S has divisor n, and not n - 1.

    Raises `NumericalError` if there are no rows, or the likelihood is unbounded because q components leave no variance.
    """
    moments = stats.whole
    if moments.n == 0:
        raise NumericalError("no maximum-likelihood estimate: there are no rows", "no_data")
    values, vectors = np.linalg.eigh(moments.scatter / moments.n)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    variance = float(np.mean(values[factors:]))
    if not variance > VANISHED * values.mean():
        reason = f"{of_factors(factors)} fit the {moments.n:g} row{'s' * (moments.n != 1)} exactly, up to rounding"
        raise NumericalError(f"no maximum-likelihood estimate: {reason}", "no_maximum")
    W = vectors[:, :factors] * np.sqrt(values[:factors] - variance)
    loadings = loadings_shape.identified(W)
    return {"mean": np.asarray(moments.mean), "loadings": loadings, "variance": np.float64(variance)}


def to_vector(params: Params) -> np.ndarray:
    """Return the mean, the free loadings row by row, and the log of the variance, shape (free parameters,)."""
    loadings = np.asarray(params["loadings"])
    free = loadings[loadings_shape.entries(*loadings.shape)]
    return np.concatenate([params["mean"], free, [np.log(params["variance"])]])


def from_vector(x: np.ndarray, factors: int) -> dict[str, np.ndarray]:
    """Return the parameters with these coordinates."""
    size = (len(x) - 1 + factors * (factors - 1) // 2) // (factors + 1)
    loadings = np.zeros((size, factors))
    loadings[loadings_shape.entries(size, factors)] = x[size:-1]
    return {"mean": x[:size], "loadings": loadings, "variance": np.exp(x[-1])}
