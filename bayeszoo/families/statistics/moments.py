"""Sufficient statistics of Gaussian data: count, mean and scatter about the mean, pooled without cancellation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from bayeszoo.model.base import Stats


@dataclass(frozen=True, eq=False)
class Moments(Stats):
    """Count, mean and scatter of numbers, or of rows of D numbers.

    They pool by the update of Chan, Golub and LeVeque (1983): sums of ``y`` and ``y**2`` would lose every digit of the
    spread at y = 1e9.

    Attributes
    ----------
    n : float
        How many rows.
    mean : float or ndarray of shape (D,)
        Their mean; 0 when there are none.
    scatter : float or ndarray of shape (D, D)
        Sum over rows of the outer product of the deviation from the mean with itself.
    """

    n: float = 0.0
    mean: Any = 0.0
    scatter: Any = 0.0

    @classmethod
    def of(cls, y: np.ndarray) -> Self:
        """Return the moments of an array of shape (n,) or (n, D)."""
        if not len(y):
            return cls(0.0, np.zeros(y.shape[1:])[()], np.zeros(y.shape[1:] * 2)[()])
        mean = y.mean(axis=0)
        mean = mean + (y - mean).mean(axis=0)  # what the rounding of a sum of large numbers took
        centred = y - mean
        # a sum in pairs is more exact than a dot product, and wakes no threads
        scatter = np.sum(np.square(centred)) if centred.ndim == 1 else centred.T @ centred
        return cls(float(len(y)), mean, scatter)

    def __add__(self, other: Self) -> Self:
        n, coefficient = self.n + other.n, self.log_coefficient + other.log_coefficient
        if n == 0:
            return replace(self, log_coefficient=coefficient)
        shift = other.mean - self.mean
        scatter = self.scatter + other.scatter + np.multiply.outer(shift, shift) * (self.n * other.n / n)
        return type(self)(n, self.mean + shift * (other.n / n), scatter, log_coefficient=coefficient)

    def __sub__(self, other: Self) -> Self:
        n, coefficient = self.n - other.n, self.log_coefficient - other.log_coefficient
        if n == 0:
            return type(self)(0.0, 0 * self.mean, 0 * self.scatter, log_coefficient=coefficient)
        shift = (other.mean - self.mean) * (self.n / n)  # of the data taken away against those that remain
        scatter = self.scatter - other.scatter - np.multiply.outer(shift, shift) * (n * other.n / self.n)
        mean = self.mean - shift * (other.n / self.n)
        return type(self)(n, mean, _not_negative(scatter), log_coefficient=coefficient)

    def discounted(self, factor: float) -> Self:
        """Return the moments of rows that count ``factor`` times."""
        return replace(
            self, n=factor * self.n, scatter=factor * self.scatter, log_coefficient=factor * self.log_coefficient
        )

    def about(self, point: Any) -> Any:
        """Return the scatter about ``point`` instead of the mean."""
        shift = self.mean - np.asarray(point)
        return self.scatter + self.n * np.multiply.outer(shift, shift)

    @property
    def sd(self) -> Any:
        """Standard deviation of each column with divisor n - 1; 1 where the rows have no spread to go by."""
        variance = np.diagonal(self.scatter) if np.ndim(self.scatter) else self.scatter
        # constant columns keep a spread of rounding errors
        noise = self.n * np.square(1e-14 * self.mean)
        spread = np.where(variance > noise, variance, 0.0) / max(self.n - 1, 1)
        return np.where(spread > 0, np.sqrt(spread), 1.0)[()]


def _not_negative(scatter: Any) -> Any:
    """Undo what rounding takes below zero on the diagonal."""
    if np.ndim(scatter) == 0:
        return max(scatter, 0.0)
    below = np.minimum(np.diagonal(scatter), 0.0)
    return scatter - np.diag(below)


def gaussian_peak(stats: Moments, sigma: float) -> float:
    """Return the log likelihood of the rows at their mean, of standard deviation ``sigma``."""
    return float(-stats.n / 2 * math.log(2 * math.pi * sigma**2) - stats.scatter / (2 * sigma**2))
