"""Laws of the mean and of a quantile of known numbers under Dirichlet(1, ..., 1) weights (Rubin 1981)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy

_ROUNDED = 1e-12


class WeightedMean:
    """The mean of numbers under Dirichlet(1, ..., 1) weights: its density is a B-spline whose knots are the numbers.

    Curry and Schoenberg (1966): B-splines are the densities of such means. Repeated numbers are repeated knots.

    Parameters
    ----------
    values : ndarray
        The numbers, shape (n,), not all of them equal.
    """

    def __init__(self, values: np.ndarray) -> None:
        knots = np.sort(values)
        self.low, self.range = float(knots[0]), float(np.ptp(knots))
        places = (knots - self.low) / self.range
        self._mean, self._std = self.low + self.range * places.mean(), self.range * places.std()
        self._std /= math.sqrt(len(knots) + 1)
        self._factor = len(knots) - 1
        self._density = scipy.interpolate.BSpline.basis_element(places, extrapolate=False)
        self._mass = self._density.antiderivative()

    def mean(self) -> float:
        """Return the mean of the numbers."""
        return float(self._mean)

    def std(self) -> float:
        """Return the root of s_n^2 / (n + 1), where s_n^2 has the divisor n."""
        return float(self._std)

    def pdf(self, x: object) -> Any:
        """Return the density, 0 outside the range of the numbers."""
        heights = np.nan_to_num(self._density((np.asarray(x) - self.low) / self.range))
        return heights * self._factor / self.range

    def cdf(self, x: object) -> Any:
        """Return P(mean <= x)."""
        place = np.clip((np.asarray(x) - self.low) / self.range, 0.0, 1.0)
        return np.where(place == 1.0, 1.0, np.clip(self._mass(place) * self._factor, 0.0, 1.0))[()]

    def ppf(self, level: float) -> float:
        """Return the quantile of a level between 0 and 1."""
        excess = lambda place: float(self.cdf(self.low + self.range * place)) - level  # noqa: E731
        return self.low + self.range * float(scipy.optimize.brentq(excess, 0.0, 1.0, xtol=1e-14))


class WeightedQuantile:
    """A quantile of numbers under Dirichlet(1, ..., 1) weights: one of them, with a probability for each.

    The quantile is the smallest number up to which the weights sum to ``p`` or more. The weights of the k smallest of n
    numbers sum to a Beta(k, n - k) variable, so P(Q_p <= x_(k)) = P(Beta(k, n - k) > p).

    Parameters
    ----------
    values : ndarray
        The numbers, shape (n,).
    p : float
        The level of the quantile, between 0 and 1.
    """

    def __init__(self, values: np.ndarray, p: float) -> None:
        self.values, counts = np.unique(values, return_counts=True)
        below = np.cumsum(counts)[:-1]
        inner = scipy.stats.beta.sf(p, below, len(values) - below)
        self.cumulative = np.append(inner, 1.0)
        self.probabilities = np.diff(self.cumulative, prepend=0.0)

    def mean(self) -> float:
        """Return the mean."""
        return float(self.values[0] + self.probabilities @ (self.values - self.values[0]))

    def std(self) -> float:
        """Return the standard deviation."""
        unit = float(np.ptp(self.values)) or 1.0  # squares of small numbers would underflow
        return unit * math.sqrt(self.probabilities @ np.square((self.values - self.mean()) / unit))

    def cdf(self, x: np.ndarray) -> Any:
        """Return P(quantile <= x)."""
        return np.append(0.0, self.cumulative)[np.searchsorted(self.values, x, side="right")]

    def ppf(self, level: float) -> float:
        """Return the smallest of the numbers whose cumulative probability is ``level`` or more, up to rounding."""
        return float(self.values[np.searchsorted(self.cumulative, level - _ROUNDED)])
