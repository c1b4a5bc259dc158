"""Sufficient statistics of Gaussian data: count, mean and scatter about the mean, pooled without cancellation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.model.base import Stats

MOST_COLUMNS = 4096


@dataclass(frozen=True, eq=False)
class Moments(Stats):
    """Count, mean and scatter of numbers, or of rows of D numbers.

    They pool by the update of Chan, Golub and LeVeque (1983): sums of ``y`` and ``y**2`` would lose every digit of the
    spread at y = 1e9.

    ``n`` rows have ``mean`` + ``rest``, numbers or (D,), of which the second is what rounding takes from the first; 0
    when there are none. ``scatter``, a number or (D, D), is the sum over rows of the outer product of the deviation
    from the mean with itself.
    """

    n: float = 0.0
    mean: Any = 0.0
    scatter: Any = 0.0
    rest: Any = 0.0

    @classmethod
    def of(cls, y: np.ndarray) -> Self:
        """Return the moments of an array of shape (n,) or (n, D)."""
        if (columns := math.prod(y.shape[1:])) > MOST_COLUMNS:
            line = f"{columns:,} columns have a covariance of {8 * columns**2 / 1e9:.1f} GB, and several are needed"
            raise InputError(line, hint=f"choose columns, at most {MOST_COLUMNS:,}")
        if not len(y):
            nothing = np.zeros(y.shape[1:])[()]
            return cls(0.0, nothing, np.zeros(y.shape[1:] * 2)[()], nothing)
        mean = y.mean(axis=0)
        centred = y - mean
        left = centred.mean(axis=0)
        mean, rest = two_sum(mean, left)
        centred -= left
        # a sum in pairs is more exact than a dot product, and wakes no threads
        scatter = np.sum(np.square(centred)) if centred.ndim == 1 else centred.T @ centred
        return cls(float(len(y)), mean, scatter, rest)

    def __add__(self, other: Self) -> Self:
        n, coefficient = self.n + other.n, self.log_coefficient + other.log_coefficient
        if n == 0:
            return replace(self, log_coefficient=coefficient)
        shift = self._to(other)
        scatter = self.scatter + other.scatter + np.multiply.outer(shift, shift) * (self.n * other.n / n)
        mean, rest = two_sum(self.mean, self.rest + shift * (other.n / n))
        return type(self)(n, mean, scatter, rest, log_coefficient=coefficient)

    def __sub__(self, other: Self) -> Self:
        n, coefficient = self.n - other.n, self.log_coefficient - other.log_coefficient
        if n == 0:
            return type(self)(0.0, 0 * self.mean, 0 * self.scatter, 0 * self.mean, log_coefficient=coefficient)
        shift = self._to(other) * (self.n / n)  # of the data taken away against those that remain
        scatter = self.scatter - other.scatter - np.multiply.outer(shift, shift) * (n * other.n / self.n)
        below = np.minimum(np.diagonal(scatter) if np.ndim(scatter) else scatter, 0.0)  # by rounding
        scatter = scatter - (np.diag(below) if np.ndim(scatter) else below)
        mean, rest = two_sum(self.mean, self.rest - shift * (other.n / self.n))
        return type(self)(n, mean, scatter, rest, log_coefficient=coefficient)

    def _to(self, other: Self) -> Any:
        """Return the mean of others less this one."""
        return (other.mean - self.mean) + (other.rest - self.rest)

    def discounted(self, factor: float) -> Self:
        """Return the moments of rows that count ``factor`` times."""
        coefficient = factor * self.log_coefficient
        return replace(self, n=factor * self.n, scatter=factor * self.scatter, log_coefficient=coefficient)

    def less(self, point: Any) -> Any:
        """Return the mean less ``point``, to the last digit where they are close."""
        return (self.mean - np.asarray(point)) + self.rest

    def about(self, point: Any) -> Any:
        """Return the scatter about ``point`` instead of the mean."""
        shift = self.less(point)
        return self.scatter + self.n * np.multiply.outer(shift, shift)

    @property
    def sd(self) -> Any:
        """Standard deviation of each column with divisor n - 1; 1 where the rows have no spread to go by."""
        variance = np.diagonal(self.scatter) if np.ndim(self.scatter) else self.scatter
        # constant columns keep a spread of rounding errors
        noise = self.n * np.square(1e-14 * self.mean)
        spread = np.where(variance > noise, variance, 0.0) / max(self.n - 1, 1)
        return np.where(spread > 0, np.sqrt(spread), 1.0)[()]


def two_sum(large: Any, small: Any) -> tuple[Any, Any]:
    """Return the sum of two numbers or arrays and what its rounding took (Knuth, TAOCP, section 4.2.2, theorem B)."""
    total = large + small
    added = total - large
    return total, (large - (total - added)) + (small - added)


def gaussian_peak(stats: Moments, sigma: float) -> float:
    """Return the log likelihood of the rows at their mean, of standard deviation ``sigma``."""
    return float(-stats.n / 2 * math.log(2 * math.pi * sigma**2) - stats.scatter / (2 * sigma**2))
