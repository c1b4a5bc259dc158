"""Sufficient statistics of Gaussian data: count, mean and scatter about the mean, pooled without cancellation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from bayeszoo.distributions.statistics.base import Stats, along, positive_or_one
from bayeszoo.distributions.structures import Structure
from bayeszoo.errors import InputError

MOST_COLUMNS = 4096


@dataclass(frozen=True, eq=False)
class Moments(Stats):
    """Count, mean and scatter of numbers, or of rows of D numbers, for one set of rows or many along leading axes.

    They are added by the update of Chan, Golub and LeVeque (1983): sums of ``y`` and ``y**2`` would lose the digits of
    the spread at y = 1e9.

    ``n`` rows, shape (...), have the mean ``mean`` + ``rest``, (...) or (..., D), where ``rest`` is the rounding error
    of ``mean``; both are arbitrary without rows. ``scatter`` is the sum over rows of the squared deviation from
    the mean: for numbers (...); for rows the outer products (..., D, D), the squares by column (..., D) or their sum
    over the columns (...).
    """

    n: Any = 0.0
    mean: Any = 0.0
    scatter: Any = 0.0
    rest: Any = 0.0

    @classmethod
    def of(cls, y: np.ndarray) -> Self:
        """Return the moments of an array of shape (n,) or (n, D), for the latter with scatter (D, D)."""
        if (columns := math.prod(y.shape[1:])) > MOST_COLUMNS:
            line = f"{columns:,} columns have a covariance of {8 * columns**2 / 1e9:.1f} GB, and several are needed"
            raise InputError(line, "not_writable", hint=f"choose columns, at most {MOST_COLUMNS:,}")
        if not len(y):
            zero = np.zeros(y.shape[1:])[()]
            return cls(0.0, zero, np.zeros(y.shape[1:] * 2)[()], zero)
        mean = y.mean(axis=0)
        centred = y - mean
        residual_mean = centred.mean(axis=0)
        mean, rest = two_sum(mean, residual_mean)
        centred -= residual_mean
        # pairwise summation is more exact than a dot product, and starts no threads
        scatter = np.sum(np.square(centred)) if centred.ndim == 1 else centred.T @ centred
        return cls(float(len(y)), mean, scatter, rest)

    @classmethod
    def weighted(cls, y: np.ndarray, weights: np.ndarray, structure: Structure | None = None) -> Self:
        """Return the moments of rows (n,) or (n, D) with weights (n, *axes).

        For rows of D numbers, ``structure`` is that of their scatter. Each set of rows is centred at a point
        near its own mean: at 1e9 no digit of its spread is lost, wherever the other sets lie.
        """
        centre = y.mean(axis=0) if len(y) else np.zeros(y.shape[1:])
        axes, columns, n = weights.shape[1:], y.shape[1:], weights.sum(axis=0)
        weights_of_sets = weights.reshape(len(y), math.prod(axes)).T
        sums, divisors = weights_of_sets @ (y - centre), positive_or_one(n.ravel())
        means, residual_means, scatters = centre + sums / along(divisors, sums), np.empty(sums.shape), []
        for k, (weights_of_set, mean) in enumerate(zip(weights_of_sets, means, strict=True)):
            centred = y - mean
            residual_means[k] = weights_of_set @ centred / divisors[k]
            centred -= residual_means[k]
            scatters.append(
                weights_of_set @ centred**2 if structure is None else structure.scatter(weights_of_set, centred)
            )
        shape = structure.shape if structure is not None else ()
        mean, rest = (values.reshape((*axes, *columns)) for values in two_sum(means, residual_means))
        return cls(n, mean, np.reshape(scatters, (*axes, *shape)), rest)

    def __add__(self, other: Self) -> Self:
        n, coefficient = self.n + other.n, self.log_coefficient + other.log_coefficient
        share = other.n / positive_or_one(n)
        shift = self._to(other)
        scatter = self.scatter + other.scatter
        scatter = scatter + along(self.n * share, scatter) * squared(shift, scatter)
        mean, rest = two_sum(self.mean, self.rest + along(share, shift) * shift)
        return type(self)(n, mean, scatter, rest, log_coefficient=coefficient)

    def __sub__(self, other: Self) -> Self:
        n, coefficient = self.n - other.n, self.log_coefficient - other.log_coefficient
        has_rows = n > 0
        shift = self._to(other)
        shift = shift * along(self.n / positive_or_one(n), shift)  # of the rows removed, relative to the remaining rows
        share = other.n / positive_or_one(self.n)
        scatter = self.scatter - other.scatter
        scatter = _floored(scatter - along(n * share, scatter) * squared(shift, scatter), np.ndim(shift))
        mean, rest = two_sum(self.mean, self.rest - along(share, shift) * shift)
        arrays = [np.where(along(has_rows, values), values, 0.0)[()] for values in (mean, scatter, rest)]
        return type(self)(n, *arrays, log_coefficient=coefficient)

    def _to(self, other: Self) -> Any:
        """Return the mean of ``other`` minus this mean."""
        return (other.mean - self.mean) + (other.rest - self.rest)

    def discounted(self, factor: float) -> Self:
        """Return the moments of rows with weight ``factor``."""
        coefficient = factor * self.log_coefficient
        return replace(self, n=factor * self.n, scatter=factor * self.scatter, log_coefficient=coefficient)

    def less(self, point: object) -> Any:
        """Return the mean minus ``point``, exact to the last digit if they are close."""
        return (self.mean - np.asarray(point)) + self.rest

    def about(self, point: object) -> Any:
        """Return the scatter about ``point`` instead of the mean."""
        shift = self.less(point)
        return self.scatter + along(self.n, self.scatter) * squared(shift, self.scatter)

    @property
    def sd(self) -> Any:
        """Standard deviation of each column of one set of rows, with divisor n - 1; 1 without spread."""
        variance = np.diagonal(self.scatter) if np.ndim(self.scatter) else self.scatter
        # constant columns have a spread of rounding errors
        noise = self.n * np.square(1e-14 * self.mean)
        spread = np.where(variance > noise, variance, 0.0) / max(self.n - 1, 1)
        return np.where(spread > 0, np.sqrt(spread), 1.0)[()]


def squared(shift: Any, scatter: Any) -> Any:
    """Return the square of a shift in the form of ``scatter``: outer products, squares, or the sum of squares."""
    extra_axes = np.ndim(scatter) - np.ndim(shift)
    if extra_axes > 0:
        return shift[..., :, None] * shift[..., None, :]
    return np.square(shift) if extra_axes == 0 else np.sum(np.square(shift), axis=-1)


def _floored(scatter: Any, axes_of_mean: int) -> Any:
    """Return scatters with negative squares by column, from rounding, set to 0."""
    if np.ndim(scatter) <= axes_of_mean:
        return np.maximum(scatter, 0.0)
    below = np.minimum(np.diagonal(scatter, axis1=-2, axis2=-1), 0.0)
    return scatter - below[..., None] * np.eye(scatter.shape[-1])


def two_sum(large: Any, small: Any) -> tuple[Any, Any]:
    """Return the sum of two numbers or arrays and its rounding error (Knuth, TAOCP, section 4.2.2, theorem B)."""
    total = large + small
    added = total - large
    return total, (large - (total - added)) + (small - added)


def gaussian_peak(stats: Moments, sigma: float) -> float:
    """Return the log likelihood of the rows at their mean and standard deviation ``sigma``."""
    return float(-stats.n / 2 * math.log(2 * math.pi * sigma**2) - stats.scatter / (2 * sigma**2))
