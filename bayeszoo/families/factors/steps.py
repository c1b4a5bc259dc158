"""The E-step of factor models, for EM and variational Bayes, on statistics by pattern of missing numbers.

Given the factors, each column is a regression on them with an intercept. Given the columns' coefficients, the factors
of a row are Gaussian, with the same covariance in all rows with the same entries missing. So a step needs only the
count, mean and scatter of each pattern of missing entries, and its cost does not grow with the rows. Missing entries
are integrated out, not imputed. Tipping and Bishop 1999, section 3.2 and appendix B; Bishop 1999a, b; PRML, 12.2.2 and
12.2.3; Ilin and Raiko 2010 on missing entries.

There are D columns and q factors; the coefficients of column d are its mean and its loadings, (mean_d, W_d1..W_dq).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import lazy_loader
import numpy as np
import numpy.typing as npt

from bayeszoo.families.statistics.patterns import Patterns
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.model.capabilities.steps import Expectation

loops = lazy_loader.load("bayeszoo.likelihoods.loops.factors", suppress_warning=True)

LEAST_VARIANCE = 1e-290
"""Smallest variance of the noise whose inverse does not overflow."""


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The expectations that the E-step needs, of known or random parameters.

    ``mean`` (D, q + 1) and ``covariance`` (D, q + 1, q + 1), 0 if known, are those of each column's coefficients;
    ``precision`` is E[1 / variance], ``log_precision`` the expectation of its log, and ``relevance`` (q,) E[alpha], if
    the model has alpha.
    """

    mean: np.ndarray
    covariance: np.ndarray
    precision: float
    log_precision: float
    relevance: np.ndarray

    @classmethod
    def known(cls, params: Mapping[str, np.ndarray]) -> Coefficients:
        """Return those of known parameters; the precision is NaN if the variance is too small or too large."""
        mean, variance = np.column_stack([params["mean"], params["loadings"]]), float(params["variance"])
        precision = 1 / variance if LEAST_VARIANCE < variance < math.inf else math.nan
        nothing = np.zeros((*mean.shape, mean.shape[1]))
        return cls(mean, nothing, precision, math.log(precision), np.asarray(params.get("alpha", ())))

    @property
    def moments(self) -> np.ndarray:
        """Second moments about the mean of the first coefficient and about 0 of the others, (D, q + 1, q + 1)."""
        loadings = np.column_stack([np.zeros(len(self.mean)), self.mean[:, 1:]])
        return self.covariance + loadings[:, :, None] * loadings[:, None, :]


@dataclass(frozen=True, eq=False)
class Complete:
    """Expected statistics of the data with their factors, x = (1, z_1, ..., z_q) in each row.

    For the observed entries of each column: their number ``cells`` (D,), and the sums ``gram`` (D, q + 1, q + 1) of
    E[x x'], ``cross`` (D, q + 1) of E[x] (y - centre), and ``squares`` (D,) of (y - centre)^2. ``latent``
    (q + 1, q + 1) is the sum of E[x x'] over all rows. From the E-step's parameters: the mean ``centre`` (D,), so that
    sums of large numbers do not cancel, ``precision`` E[1 / variance], and ``relevance`` (q,) E[alpha].
    """

    cells: np.ndarray
    gram: np.ndarray
    cross: np.ndarray
    squares: np.ndarray
    centre: np.ndarray
    precision: float
    relevance: np.ndarray
    latent: np.ndarray

    def squared_error(self, mean: np.ndarray, covariance: npt.ArrayLike = 0.0) -> float:
        """Return the expected sum of squared errors of y - centre, given mean and covariance of the coefficients."""
        second_moments = covariance + mean[:, :, None] * mean[:, None, :]
        return float(self.squares.sum() - 2 * np.sum(mean * self.cross) + np.sum(second_moments * self.gram))


def e_step(coefficients: Coefficients, patterns: Patterns) -> Expectation:
    """Return expected statistics under the best q(z), and its log normalizer: at known parameters log likelihood.

    If the noise is so small that matrices cannot be inverted, the value is not finite, and climbs reject the point.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            return _e_step(coefficients, patterns)
        except np.linalg.LinAlgError:
            return _e_step(replace(coefficients, precision=math.nan), patterns)


def _e_step(coefficients: Coefficients, patterns: Patterns) -> Expectation:
    moments, centre, tau = coefficients.moments, coefficients.mean[:, 0], coefficients.precision
    seen = np.asarray(patterns.observed, dtype=np.float64)  # (P, D)
    n, scatter = np.asarray(patterns.n, dtype=np.float64), patterns.scatter
    offset = np.where(seen > 0, patterns.mean - centre, 0.0)
    q = coefficients.mean.shape[1] - 1
    inner = np.eye(q) + tau * np.einsum("pd,dij->pij", seen, moments[:, 1:, 1:])
    covariance = np.linalg.inv(inner)  # of the factors of a row, (P, q, q)
    loadings = (seen[:, :, None] * coefficients.mean[:, 1:]).swapaxes(1, 2)
    slopes = tau * covariance @ loadings  # of the factors' mean on y, (P, q, D)
    pull = np.einsum("pd,di->pi", seen, moments[:, 0, 1:])
    z = np.einsum("pid,pd->pi", slopes, offset) - tau * np.einsum("pij,pj->pi", covariance, pull)
    spread = slopes @ scatter  # (P, q, D)
    zz = spread @ slopes.swapaxes(1, 2) + n[:, None, None] * z[:, :, None] * z[:, None, :]
    x, xx = np.column_stack([np.ones(len(n)), z]), np.empty((len(n), q + 1, q + 1))  # sums over a pattern's rows
    xx[:, 0], xx[:, 1:, 0], xx[:, 1:, 1:] = n[:, None] * x, n[:, None] * z, zz + n[:, None, None] * covariance
    cross = (n[:, None] * offset).T @ x
    cross[:, 1:] += np.einsum("pd,pid->di", seen, spread)
    squares = np.einsum("pd,pdd->d", seen, scatter) + n @ offset**2
    gram = np.einsum("pd,pij->dij", seen, xx)
    stats = Complete(n @ seen, gram, cross, squares, centre, tau, coefficients.relevance, xx.sum(axis=0))
    value = stats.cells.sum() * (coefficients.log_precision - LOG_2_PI)
    value -= tau * (squares.sum() + stats.cells @ moments[:, 0, 0])
    value += np.sum(zz * inner) - n @ np.linalg.slogdet(inner)[1]
    return Expectation(stats, float(value) / 2)


def value_and_gradient(stats: Patterns, params: Params) -> tuple[float, np.ndarray, np.ndarray, float]:
    """Return the log likelihood and its derivatives in mean (D,), loadings (D, q) and variance."""
    mean, loadings = (np.ascontiguousarray(params[name], dtype=np.float64) for name in ("mean", "loadings"))
    parts = stats.observed.astype(np.float64), stats.n, stats.mean, stats.scatter
    value, *slopes = loops.ppca_value_and_gradient(mean, loadings, float(params["variance"]), *parts)
    return value, *slopes


def pairwise_covariance(stats: Patterns) -> np.ndarray:
    """Return the covariance of the rows about their mean, divisor N, shape (D, D).

    If numbers are missing, each entry is computed from the rows in which both columns were observed.
    """
    seen, (_, mean, _) = stats.observed.astype(np.float64), stats.each_column()
    shift = np.where(stats.observed, stats.mean - mean, 0.0)
    scatter = stats.scatter.sum(axis=0) + (stats.n[:, None] * shift).T @ shift
    return np.asarray(scatter / np.maximum((stats.n[:, None] * seen).T @ seen, 1.0))


def leading_axes(stats: Patterns, count: int) -> np.ndarray:
    """Return the leading eigenvectors of the covariance of the rows, shape (D, count)."""
    return np.linalg.eigh(pairwise_covariance(stats))[1][:, ::-1][:, :count]
