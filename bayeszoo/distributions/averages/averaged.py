"""The distribution of rows averaged over draws of the parameters, or over the points of a quadrature."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy

from bayeszoo.distributions.beta_binomial_tails import MOST_SUMMED
from bayeszoo.distributions.discrete import BetaBinomial
from bayeszoo.foundation.named import RandomState
from bayeszoo.foundation.numerics.levels import CLOSE, reached

NOTHING = 1e-13
"""Probability below which a point of the grid is left out of the bounds of quantiles."""
OUTSKIRTS, BEYOND = 1e-17, 1e-6
"""Probability below which a point counts as the edge of a grid, and the largest share of a moment from the edge."""
MOVED = 1e-4
"""Largest change of a moment when the grid is halved, in sds; the full grid's error is at most a sixteenth of it."""
ROUNDING = 1e-14
"""Share of a mean below which differences between points are rounding."""
LARGEST = 1e300
"""Quantiles above it are NaN: SciPy has no distribution function of larger counts."""


class RowLaw(Protocol):
    """The distributions of rows, with SciPy's methods; shape (..., rows), or (..., rows, K) for rows of K numbers.

    Leading axes are draws of parameters, or points. There is also ``logpdf``, or for counts ``logpmf``: one number for
    each row, (..., rows).
    """

    def mean(self) -> Any:
        """Return the means."""

    def var(self) -> Any:
        """Return the variances."""

    def std(self) -> Any:
        """Return the standard deviations."""

    def cdf(self, y: Any) -> Any:
        """Return the probability that each number is at most ``y``."""

    def rvs(self, size: Any, random_state: RandomState = None) -> Any:
        """Draw outcomes of shape ``size``."""


class Known(NamedTuple):
    """Mean and sd of rows, and whether the points determine each."""

    mean: np.ndarray
    sd: np.ndarray
    has_mean: np.ndarray
    has_sd: np.ndarray


def mixed(
    means: np.ndarray, variances: np.ndarray, weights: np.ndarray, halved: np.ndarray | None, mass: Any = None
) -> Known:
    """Return the moments of mixtures of distributions (points, rows) by the laws of total expectation and variance.

    A moment from points beyond the grid shows in the share of its edge points; an error between points shows in the
    change when the grid is halved.

    Parameters
    ----------
    means, variances : ndarray
        Moments of each row at each point, shape (points, rows, ...).
    weights, halved : ndarray
        The probability of each point, (points,), or for each row, (points, rows), and that on the grid of every other
        point, None for draws.
    mass : ndarray, optional
        The probabilities (points,) that define the edge of the grid, if other than the weights.
    """
    is_edge = (weights if mass is None else mass) < OUTSKIRTS

    def holds(values: np.ndarray, scale: np.ndarray, rounding: np.ndarray) -> np.ndarray:
        if halved is None:
            return np.isfinite(scale)
        at_edge, moved = _total(weights[is_edge], np.abs(values[is_edge])), np.abs(_total(weights - halved, values))
        return np.isfinite(scale) & (at_edge <= BEYOND * scale + rounding) & (moved <= MOVED * scale + rounding)

    with np.errstate(over="ignore", invalid="ignore"):
        mean = _total(weights, means)
        squares = variances + np.square(means - mean)
        variance, scale = _total(weights, squares), _total(weights, np.sqrt(squares))
        rounding = ROUNDING * np.abs(mean)
        has_mean, has_sd = holds(means - mean, scale, rounding), holds(squares, variance, np.square(rounding))
        return Known(mean, np.sqrt(variance), has_mean, has_sd)


def _total(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sum over points with weights (points,), or (points, rows)."""
    return np.asarray(np.tensordot(weights, values, 1) if weights.ndim == 1 else np.sum(weights * values, axis=0))


class Averaged:
    """The mixture of distributions of rows, of shape (points, rows), over their first axis.

    Parameters
    ----------
    law : frozen SciPy distribution
        Laws of rows at points: ``mean()``, ``var()``, ``cdf(y)``, and ``logpdf(y)`` or for counts ``logpmf(y)``.
    weights : ndarray, optional
        The probability of each point, shape (points,). By default the points are draws with equal weights.
    halved : ndarray, optional
        The probabilities on the grid of every other point, for points of a quadrature.
    """

    def __init__(self, law: Any, weights: np.ndarray | None = None, halved: np.ndarray | None = None) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            self._means, self._variances = np.asarray(law.mean(), dtype=np.float64), np.asarray(law.var())
        points = len(self._means)
        self._law, self._is_count, self._halved = law, hasattr(law, "logpmf"), halved
        self._weights = np.full(points, 1 / points) if weights is None else weights
        self._sums = list[np.ndarray]()

    @cached_property
    def moments(self) -> Known:
        """Moments, and whether the points determine each."""
        return mixed(self._means, self._variances, self._weights, self._halved)

    def mean(self) -> np.ndarray:
        """Return the mean of each row, NaN where it is not known."""
        return np.where(self.moments.has_mean, self.moments.mean, np.nan)

    def std(self) -> np.ndarray:
        """Return the standard deviation of each row, NaN where it is not known."""
        return np.where(self.moments.has_sd, self.moments.sd, np.nan)

    def logpdf(self, y: Any) -> np.ndarray:
        """Return the log density, or log mass, of outcomes (rows,)."""
        log_p = (self._law.logpmf if self._is_count else self._law.logpdf)(y)
        return np.asarray(scipy.special.logsumexp(log_p, b=self._weights[:, None], axis=0))

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """Return the probability of at most ``y``, shape (rows,)."""
        return np.asarray(np.tensordot(self._weights, self.below(y), 1))

    def below(self, y: np.ndarray) -> np.ndarray:
        """Return the probability of at most ``y``, (rows,), at each point, shape (points, rows)."""
        with np.errstate(over="ignore", invalid="ignore"):
            below = np.asarray(self._law.cdf(y))
        return np.where(np.isfinite(self._means), below, 0.0) if self._is_count else below  # infinite: above all

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantile of a level, for counts the smallest that reaches it; NaN above `LARGEST`."""
        if isinstance(self._law, BetaBinomial) and np.max(self._law.trials) <= MOST_SUMMED:
            return self._summed(q)
        low, high = self._bounds(q)
        quantile = reached(self.cdf, q, low, high, self._is_count)
        return np.where(quantile < LARGEST, quantile, np.nan)

    def _bounds(self, q: float) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the mixture's quantile: those of all nonnegligible points, by Cantelli's inequality."""
        used = self._weights > NOTHING
        with np.errstate(over="ignore", invalid="ignore"):
            sds = np.sqrt(self._variances)
            if not self._is_count and not np.isfinite(sds[used]).all():  # Cantelli's bound needs a variance
                quantiles = np.asarray(self._law.ppf(q))[used]
                return np.nextafter(quantiles.min(axis=0), -np.inf), np.nextafter(quantiles.max(axis=0), np.inf)
            low = np.min(np.where(np.isfinite(sds), self._means - sds * np.sqrt((1 - q) / q), 0.0)[used], axis=0)
            high = np.max((self._means + sds * np.sqrt(q / (1 - q)))[used], axis=0)
        high = np.nextafter(np.where(high < LARGEST, high, LARGEST), np.inf)  # also replaces NaN
        if self._is_count:
            return np.maximum(np.floor(low), 0.0) - 1, np.ceil(high)
        return np.nextafter(low, -np.inf), high

    def _summed(self, q: float) -> np.ndarray:
        """Return quantiles for few trials from cached cumulative masses; `cdf` would sum anew at each count."""
        most = int(np.max(self._law.trials))
        while len(self._sums) <= most and not (self._sums and np.all(self._sums[-1] >= q - CLOSE)):
            mass = np.tensordot(self._weights, np.exp(self._law.logpmf(float(len(self._sums)))), 1)
            self._sums.append(mass + (self._sums[-1] if self._sums else 0.0))
        below = np.sum(~(np.array(self._sums) >= q - CLOSE), axis=0)
        return np.where(below <= most, below.astype(np.float64), np.nan)
