"""Sufficient statistics of Gaussian data: count, mean and scatter about the mean, pooled without cancellation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from bayeszoo.distributions.statistics.base import Stats, along, positive_or
from bayeszoo.distributions.structures import Structure
from bayeszoo.errors import InputError

MOST_COLUMNS = 4096


@dataclass(frozen=True, eq=False)
class Moments(Stats):
    """Count, mean and scatter of numbers, or of rows of D numbers: of one set of rows, or of many along leading axes.

    They pool by the update of Chan, Golub and LeVeque (1983): sums of ``y`` and ``y**2`` would lose every digit of the
    spread at y = 1e9.

    ``n`` rows, shape (...), have the mean ``mean`` + ``rest``, (...) or (..., D), where ``rest`` is the rounding error
    of ``mean``; any numbers where there are no rows. ``scatter`` is the sum over rows of the squared deviation from
    the mean: of numbers (...); of rows the outer products (..., D, D), the squares by column (..., D) or their sum
    over the columns (...).
    """

    n: Any = 0.0
    mean: Any = 0.0
    scatter: Any = 0.0
    rest: Any = 0.0

    @classmethod
    def of(cls, y: np.ndarray) -> Self:
        """Return the moments of an array of shape (n,) or (n, D), the scatter of the latter (D, D)."""
        if (columns := math.prod(y.shape[1:])) > MOST_COLUMNS:
            line = f"{columns:,} columns have a covariance of {8 * columns**2 / 1e9:.1f} GB, and several are needed"
            raise InputError(line, "not_writable", hint=f"choose columns, at most {MOST_COLUMNS:,}")
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

    @classmethod
    def weighted(cls, y: np.ndarray, weights: np.ndarray, structure: Structure | None = None) -> Self:
        """Return the moments of rows (n,) or (n, D) that count as often as their weights (n, *axes) say.

        Of rows of D numbers ``structure`` says how their scatter is written. Each set of rows is measured from a point
        near its own mean: near 1e9 nothing of its spread is lost, wherever the other sets are.
        """
        centre = y.mean(axis=0) if len(y) else np.zeros(y.shape[1:])
        axes, columns, n = weights.shape[1:], y.shape[1:], weights.sum(axis=0)
        flat = weights.reshape(len(y), math.prod(axes)).T
        sums, divisors = flat @ (y - centre), positive_or(n.ravel())
        means, left, each = centre + sums / along(divisors, sums), np.empty(sums.shape), []
        for k, (own, mean) in enumerate(zip(flat, means, strict=True)):
            rows = y - mean
            left[k] = own @ rows / divisors[k]
            rows -= left[k]
            each.append(own @ rows**2 if structure is None else structure.scatter(own, rows))
        shape = structure.shape if structure is not None else ()
        mean, rest = (values.reshape((*axes, *columns)) for values in two_sum(means, left))
        return cls(n, mean, np.reshape(each, (*axes, *shape)), rest)

    def __add__(self, other: Self) -> Self:
        n, coefficient = self.n + other.n, self.log_coefficient + other.log_coefficient
        share = other.n / positive_or(n)
        shift = self._to(other)
        scatter = self.scatter + other.scatter
        scatter = scatter + along(self.n * share, scatter) * squared(shift, scatter)
        mean, rest = two_sum(self.mean, self.rest + along(share, shift) * shift)
        return type(self)(n, mean, scatter, rest, log_coefficient=coefficient)

    def __sub__(self, other: Self) -> Self:
        n, coefficient = self.n - other.n, self.log_coefficient - other.log_coefficient
        some = n > 0
        shift = self._to(other)
        shift = shift * along(self.n / positive_or(n), shift)  # of the rows removed, relative to the remaining rows
        share = other.n / positive_or(self.n)
        scatter = self.scatter - other.scatter
        scatter = _floored(scatter - along(n * share, scatter) * squared(shift, scatter), np.ndim(shift))
        mean, rest = two_sum(self.mean, self.rest - along(share, shift) * shift)
        kept = [np.where(along(some, values), values, 0.0)[()] for values in (mean, scatter, rest)]
        return type(self)(n, *kept, log_coefficient=coefficient)

    def _to(self, other: Self) -> Any:
        """Return the mean of others less this one."""
        return (other.mean - self.mean) + (other.rest - self.rest)

    def discounted(self, factor: float) -> Self:
        """Return the moments of rows that count ``factor`` times."""
        coefficient = factor * self.log_coefficient
        return replace(self, n=factor * self.n, scatter=factor * self.scatter, log_coefficient=coefficient)

    def less(self, point: object) -> Any:
        """Return the mean less ``point``, to the last digit where they are close."""
        return (self.mean - np.asarray(point)) + self.rest

    def about(self, point: object) -> Any:
        """Return the scatter about ``point`` instead of the mean."""
        shift = self.less(point)
        return self.scatter + along(self.n, self.scatter) * squared(shift, self.scatter)

    @property
    def sd(self) -> Any:
        """Standard deviation of each column of one set of rows, with divisor n - 1; 1 where there is no spread."""
        variance = np.diagonal(self.scatter) if np.ndim(self.scatter) else self.scatter
        # constant columns keep a spread of rounding errors
        noise = self.n * np.square(1e-14 * self.mean)
        spread = np.where(variance > noise, variance, 0.0) / max(self.n - 1, 1)
        return np.where(spread > 0, np.sqrt(spread), 1.0)[()]


def squared(shift: Any, scatter: Any) -> Any:
    """Return the square of a shift as ``scatter`` is written: outer products, squares, or the sum of the squares."""
    more = np.ndim(scatter) - np.ndim(shift)
    if more > 0:
        return shift[..., :, None] * shift[..., None, :]
    return np.square(shift) if more == 0 else np.sum(np.square(shift), axis=-1)


def _floored(scatter: Any, axes_of_mean: int) -> Any:
    """Return scatters whose squares by column are not below 0, where rounding has taken some."""
    if np.ndim(scatter) <= axes_of_mean:
        return np.maximum(scatter, 0.0)
    below = np.minimum(np.diagonal(scatter, axis1=-2, axis2=-1), 0.0)
    return scatter - below[..., None] * np.eye(scatter.shape[-1])


def two_sum(large: Any, small: Any) -> tuple[Any, Any]:
    """Return the sum of two numbers or arrays and what its rounding took (Knuth, TAOCP, section 4.2.2, theorem B)."""
    total = large + small
    added = total - large
    return total, (large - (total - added)) + (small - added)


def gaussian_peak(stats: Moments, sigma: float) -> float:
    """Return the log likelihood of the rows at their mean, of standard deviation ``sigma``."""
    return float(-stats.n / 2 * math.log(2 * math.pi * sigma**2) - stats.scatter / (2 * sigma**2))
