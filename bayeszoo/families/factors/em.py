"""Expectation-maximization for probabilistic PCA, on statistics by pattern of missing numbers.

The latent factors of a row are Gaussian given what was observed of it, and alike but for their mean in all rows with
the same pattern, so a step costs the same however many rows there are. Missing numbers are integrated out of the
E-step, not filled in. Given the factors each column is a regression on them, with its own intercept. Tipping and Bishop
1999, section 3.2 and appendix B; PRML, section 12.2.2; with missing numbers Ilin and Raiko 2010.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.errors import NumericalError
from bayeszoo.families.factors import trapezoid
from bayeszoo.families.statistics.patterns import Patterns
from bayeszoo.model.base import Values
from bayeszoo.model.capabilities import Expectation

ppca_loops = lazy_loader.load("bayeszoo.likelihoods.loops.factors", suppress_warning=True)

VANISHED = 1e-12
"""Share of the mean variance of the columns below which the variance of the noise is on its way to 0."""


@dataclass(frozen=True, eq=False)
class FactorSums:
    """Expected statistics of the rows in which each column was observed, with x = (1, z) and y about `mean`.

    Attributes
    ----------
    gram : ndarray of shape (D, q + 1, q + 1)
        Sum of E[x x'].
    cross : ndarray of shape (D, q + 1)
        Sum of E[x] y.
    squares : ndarray of shape (D,)
        Sum of y^2.
    mean, variance : ndarray of shape (D,), float
        Where the E-step was.
    """

    gram: np.ndarray
    cross: np.ndarray
    squares: np.ndarray
    mean: np.ndarray
    variance: float

    @property
    def n(self) -> np.ndarray:
        """How often each column was observed, (D,)."""
        return self.gram[:, 0, 0]

    def residuals(self, coefficients: np.ndarray) -> float:
        """Return the expected sum of squared errors of y with coefficients (D, q + 1)."""
        fitted = np.einsum("di,dij,dj->", coefficients, self.gram, coefficients)
        return float(self.squares.sum() - 2 * np.sum(coefficients * self.cross) + fitted)


def log_likelihood(stats: Patterns, params: Values) -> float:
    """Return the log density of the rows at a point, factors and missing numbers integrated out."""
    return float(value_and_gradient(stats, params)[0])


def value_and_gradient(stats: Patterns, params: Values) -> tuple[float, np.ndarray, np.ndarray, float]:
    """Return the log likelihood and its derivatives in mean (D,), loadings (D, q) and variance."""
    value, of_mean, of_loadings, of_variance = ppca_loops.ppca_value_and_gradient(*_arrays(stats, params))
    return value, of_mean, of_loadings, of_variance


def e_step(stats: Patterns, params: Values) -> Expectation:
    """Return expected statistics and the log likelihood at the parameters ``mean``, ``loadings`` and ``variance``."""
    arrays = _arrays(stats, params)
    gram, cross, squares = ppca_loops.ppca_expected_sums(*arrays)
    sums = FactorSums(gram, cross, squares, arrays[0], arrays[2])
    return Expectation(sums, float(ppca_loops.ppca_value_and_gradient(*arrays)[0]))


def _arrays(stats: Patterns, params: Values) -> tuple[Any, ...]:
    mean, loadings = (np.ascontiguousarray(params[name], dtype=np.float64) for name in ("mean", "loadings"))
    given = stats.observed.astype(np.float64), stats.n, stats.mean, stats.scatter
    return mean, loadings, float(params["variance"]), *given


def m_step_flat(sums: FactorSums) -> dict[str, Any]:
    """Return the parameters that maximize the expected log likelihood, the loadings identified.

    Raises
    ------
    NumericalError
        When the variance of the noise goes to 0.
    """
    coefficients = np.linalg.solve(sums.gram, sums.cross[:, :, None])[:, :, 0]
    variance = sums.residuals(coefficients) / sums.n.sum()
    if not variance > VANISHED * sums.squares.sum() / sums.n.sum():
        raise NumericalError(f"{of_factors(sums.gram.shape[1] - 1)} fit the rows exactly, up to no noise")
    return _params(sums, trapezoid.identified(coefficients[:, 1:]), coefficients[:, 0], variance)


def of_factors(q: int) -> str:
    """Return ``1 component`` or ``q components``."""
    return f"{q} component{'s' * (q != 1)}"


def _params(sums: FactorSums, loadings: np.ndarray, shift: np.ndarray, variance: float) -> dict[str, Any]:
    return {"mean": sums.mean + shift, "loadings": loadings, "variance": np.float64(variance)}


@dataclass(frozen=True, eq=False)
class FactorPrior:
    """mean_d ~ N(m0_d, s0^2), entries of W ~ N(0, w0^2) up to a rotation, variance ~ InvGamma(a0, scale b0).

    Attributes
    ----------
    m0 : ndarray of shape (D,)
    s0, w0, a0, b0 : float
    """

    m0: np.ndarray
    s0: float
    w0: float
    a0: float
    b0: float

    def m_step(self, sums: FactorSums) -> dict[str, Any]:
        """Return parameters with a higher expected log joint: coefficients given the variance, then the variance.

        Each of the two steps is to the maximum (ECM: Meng and Rubin 1993), so EM never falls. A factor whose first
        loading comes out negative is turned round, which changes neither likelihood nor prior.
        """
        D, q = len(sums.gram), sums.gram.shape[1] - 1
        H, g = sums.gram / sums.variance, sums.cross / sums.variance
        H[:, range(q + 1), range(q + 1)] += 1 / np.array([self.s0, *[self.w0] * q]) ** 2
        g[:, 0] += (self.m0 - sums.mean) / self.s0**2
        coefficients = np.zeros((D, q + 1))
        for i in range(q):
            coefficients[i, : i + 2] = _with_repelled_last(H[i, : i + 2, : i + 2], g[i, : i + 2], q - 1 - i)
        coefficients[q:] = np.linalg.solve(H[q:], g[q:, :, None])[:, :, 0]
        variance = (self.b0 + sums.residuals(coefficients) / 2) / (self.a0 + 1 + sums.n.sum() / 2)
        return _params(sums, trapezoid.turned(coefficients[:, 1:]), coefficients[:, 0], variance)

    def log_density(self, params: Values) -> np.ndarray:
        """Return the log density of the parameters; leading axes are draws."""
        mean, variance = (np.asarray(params[name], dtype=np.float64) for name in ("mean", "variance"))
        of_mean = -np.sum(np.square((mean - self.m0) / self.s0), axis=-1) / 2
        of_mean -= mean.shape[-1] * math.log(self.s0 * math.sqrt(2 * math.pi))
        of_variance = self.a0 * math.log(self.b0) - math.lgamma(self.a0) - (self.a0 + 1) * np.log(variance)
        of_loadings = trapezoid.log_density(params["loadings"], self.w0)
        return np.asarray(of_mean + of_loadings + of_variance - self.b0 / variance)


def _with_repelled_last(H: np.ndarray, g: np.ndarray, power: int) -> np.ndarray:
    """Maximize -x'H x / 2 + g'x + power log|t| over x, whose last entry is t.

    Given t the others follow, and in t what is left is -h (t - centre)^2 / 2 + power log|t|, a quadratic equation.
    """
    inverse = np.linalg.inv(H)
    free, width = inverse @ g, inverse[-1, -1]
    t = (free[-1] + math.copysign(math.sqrt(free[-1] ** 2 + 4 * power * width), free[-1])) / 2
    return np.asarray(free + inverse[:, -1] / width * (t - free[-1]))


def closed_form(stats: Patterns, factors: int) -> dict[str, Any]:
    """Return the maximum-likelihood estimate of complete data, the loadings identified.

    The variance is the mean of the discarded eigenvalues of S = scatter / n, and W = U (Lambda - variance I)^1/2 of the
    others. Tipping and Bishop 1999, equations 7 and 8: S has divisor n, and not n - 1.

    Parameters
    ----------
    stats : Patterns
        Of complete data.
    factors : int
        q, from 0 to D - 1.

    Raises
    ------
    NumericalError
        When there are no rows, or the likelihood grows without bound: no variance is left beside q components.
    """
    moments = stats.whole
    if moments.n == 0:
        raise NumericalError("no maximum-likelihood estimate: there are no rows")
    values, vectors = np.linalg.eigh(moments.scatter / moments.n)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    variance = float(np.mean(values[factors:]))
    if not variance > VANISHED * values.mean():
        what = f"{of_factors(factors)} fit the {moments.n:g} row{'s' * (moments.n != 1)} exactly"
        raise NumericalError(f"no maximum-likelihood estimate: {what}")
    W = vectors[:, :factors] * np.sqrt(values[:factors] - variance)
    loadings = trapezoid.identified(W) if factors else W
    return {"mean": np.asarray(moments.mean), "loadings": loadings, "variance": np.float64(variance)}


def to_vector(params: Values) -> np.ndarray:
    """Return the mean, the free loadings row by row, and the log of the variance, shape (free parameters,)."""
    loadings = np.asarray(params["loadings"])
    return np.concatenate([params["mean"], loadings[trapezoid.entries(*loadings.shape)], [np.log(params["variance"])]])


def from_vector(x: np.ndarray, factors: int) -> dict[str, Any]:
    """Return the parameters with these coordinates."""
    size = (len(x) - 1 + factors * (factors - 1) // 2) // (factors + 1)
    loadings = np.zeros((size, factors))
    loadings[trapezoid.entries(size, factors)] = x[size:-1]
    return {"mean": x[:size], "loadings": loadings, "variance": np.exp(x[-1])}


def start(stats: Patterns, factors: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return parameters to climb from: the columns' means, and random loadings that explain a random share."""
    variances = stats.column_variances()
    scale = np.sqrt(np.where(np.isfinite(variances), variances, 0.0))
    scale = np.where(scale > 0, scale, scale.max() if scale.any() else 1.0)
    share = rng.uniform(0.1, 0.9)
    W = scale[:, None] * rng.standard_normal((stats.size, factors)) * math.sqrt(share / max(factors, 1))
    variance = np.float64((1 - share) * np.mean(scale**2))
    return {"mean": stats.each_column()[1], "loadings": trapezoid.identified(W), "variance": variance}
