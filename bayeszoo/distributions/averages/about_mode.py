"""A unimodal density of one or two numbers, on grids about its mode: its integral, marginals and draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from bayeszoo.foundation.numerics.grid import Grid, Integrand, enclosing
from bayeszoo.foundation.numerics.quadrature import Distribution, peak

DEPTH = 50.0
"""Nats below the maximum at which a density is cut off."""

LogDensity = Callable[[np.ndarray], np.ndarray]
"""A log density at points (P, D), shape (P,)."""


class AboutMode(Integrand):
    """A log density in coordinates z, in which its Gaussian approximation at the mode is standard normal.

    ``u = mode + root z`` with a lower triangular root, in the given order of the coordinates. So the first number
    depends on the first z only, and its marginal distribution follows from that of z.
    """

    def __init__(
        self, log_density: LogDensity, mode: np.ndarray, curvature: np.ndarray, order: Sequence[int], finer: int = 1
    ) -> None:
        self._log_density, self._mode, self._order, self.finer = log_density, mode, list(order), finer
        self.names = tuple(map(str, order))
        covariance = np.linalg.inv(curvature)[np.ix_(self._order, self._order)]
        self._root = np.linalg.cholesky((covariance + covariance.T) / 2)
        self._log_volume = float(np.sum(np.log(np.diag(self._root))))
        centre, scale = np.zeros(len(mode)), np.ones(len(mode))
        self.low, self.high, self._highest = enclosing(self.log_density, centre, scale, 64 * scale, DEPTH)

    def points(self, places: np.ndarray) -> np.ndarray:
        """Return u at coordinates z (P, D), in the original order."""
        u = np.empty_like(places)
        u[:, self._order] = self._mode[self._order] + places @ self._root.T
        return u

    def highest(self) -> np.ndarray:
        """Return the maximum of the density, from the highest point of the search for bounds."""
        top, _ = peak(self.log_density, self.low, self.high, self._highest)
        return self.points(top[None])[0]

    def log_density(self, points: np.ndarray) -> np.ndarray:
        """Return the log density in the coordinates at points (P, D)."""
        heights = self._log_density(self.points(points)) + self._log_volume
        return np.where(np.isfinite(heights), heights, -math.inf)

    def values(self, i: int, places: object) -> np.ndarray:
        """Return the first number, which depends on its coordinate only; for other numbers, their coordinates."""
        values = np.asarray(places)
        return self._mode[self._order[0]] + self._root[0, 0] * values if i == 0 else values


class FirstMarginal:
    """The marginal distribution of the first number of a grid."""

    def __init__(self, integrand: AboutMode, grid: Grid) -> None:
        share, places = grid.share(0), np.asarray(integrand.values(0, grid.rules[0].points))
        self.mean = float(share @ places)
        self.sd = math.sqrt(float(share @ np.square(places - self.mean)))
        tabulated = grid.distribution(0)
        self.law = Distribution(integrand.values(0, tabulated.points), tabulated.below)


class VectorMarginal:
    """The marginals of the entries of a vector (T,), ``origin + sd u``, each tabulated."""

    def __init__(self, entries: Sequence[FirstMarginal], origin: np.ndarray, sd: np.ndarray) -> None:
        self._entries, self._origin, self._sd = entries, origin, sd

    def mean(self) -> np.ndarray:
        """Return the means, shape (T,)."""
        return self._origin + self._sd * np.array([entry.mean for entry in self._entries])

    def std(self) -> np.ndarray:
        """Return the standard deviations."""
        return self._sd * np.array([entry.sd for entry in self._entries])

    def cdf(self, x: npt.ArrayLike) -> np.ndarray:
        """Return the probabilities below x, shape (..., T)."""
        u = (np.asarray(x, dtype=np.float64) - self._origin) / self._sd
        return np.stack([entry.law.cdf(u[..., j]) for j, entry in enumerate(self._entries)], axis=-1)

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantiles of a level."""
        return self._origin + self._sd * np.array([entry.law.quantile(q) for entry in self._entries])
