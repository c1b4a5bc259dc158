"""Sufficient statistics of a regression: count, means, and a triangular factor of the scatter about them.

The factor comes from orthogonal transformations of the rows (a QR decomposition in chunks: Golub and Van Loan 2013,
section 5.2), so that its singular values are those of the centred rows. The scatter itself, X'X, would square the
condition number, and could not tell apart two columns that agree in eight digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import scipy

from bayeszoo.distributions.statistics.base import Stats
from bayeszoo.distributions.statistics.moments import two_sum
from bayeszoo.errors import InputError

CHUNK = 65_536
"""Rows per QR decomposition."""


@dataclass(frozen=True, eq=False)
class FactoredMoments(Stats):
    """Count, mean and factored scatter of rows of numbers: the columns of a design, and the outcome last.

    ``n`` rows have the mean ``mean`` + ``rest``, each (K + 1,), where ``rest`` is the rounding error of ``mean``; both
    are 0 without rows. ``root`` (R, K + 1), R <= K + 1, is a factor of the scatter: ``root.T @ root`` is the sum over
    rows of the outer products of deviations from the mean. ``units`` (K,) is one unit of each standardized column, in
    the units of the user's table.
    """

    n: float
    mean: np.ndarray
    root: np.ndarray
    units: np.ndarray
    rest: np.ndarray

    @classmethod
    def of(cls, columns: np.ndarray, outcome: np.ndarray, units: np.ndarray) -> Self:
        """Return the moments of a design of shape (n, K) and an outcome of shape (n,)."""
        size = columns.shape[1] + 1
        rows = np.column_stack([columns, outcome])
        if not len(rows):
            return cls(0.0, np.zeros(size), np.zeros((0, size)), units, np.zeros(size))
        mean = rows.mean(axis=0)
        mean, rest = two_sum(mean, (rows - mean).mean(axis=0))
        root = np.zeros((0, size))
        for start in range(0, len(rows), CHUNK):
            root = triangular(np.vstack([root, (rows[start : start + CHUNK] - mean) - rest]))
        return cls(float(len(rows)), mean, root, units, rest)

    def __add__(self, other: Self) -> Self:
        if not np.array_equal(self.units, other.units):
            raise InputError("the statistics are of designs in different units: they do not add up", "wrong_statistics")
        n = self.n + other.n
        if not (self.n and other.n):
            return self if self.n else other
        shift = self._to(other)
        between_root = np.sqrt(self.n / n * other.n) * shift
        mean, rest = two_sum(self.mean, self.rest + shift * (other.n / n))
        root = triangular(np.vstack([self.root, other.root, between_root]))
        coefficient = self.log_coefficient + other.log_coefficient
        return replace(self, n=n, mean=mean, rest=rest, root=root, log_coefficient=coefficient)

    def __sub__(self, other: Self) -> Self:
        n = self.n - other.n
        if n == 0 or other.n == 0:
            return self if n else replace(self, n=0.0, mean=0 * self.mean, rest=0 * self.rest, root=self.root[:0])
        shift = self._to(other) * (self.n / n)  # of the rows removed, relative to the remaining rows
        between_root = np.sqrt(n / self.n * other.n) * shift
        root = downdated(self.root, np.vstack([other.root, between_root]))
        mean, rest = two_sum(self.mean, self.rest - shift * (other.n / self.n))
        return replace(self, n=n, mean=mean, rest=rest, root=root)

    def _to(self, other: Self) -> np.ndarray:
        """Return the mean of the other statistics minus this mean."""
        return (other.mean - self.mean) + (other.rest - self.rest)

    def discounted(self, factor: float) -> Self:
        """Return the moments of rows that count ``factor`` times."""
        return replace(self, n=factor * self.n, root=np.sqrt(factor) * self.root)

    def equations(self, intercept: bool, origin: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the fewest rows with the same sum of squared errors as the data for all coefficients.

        They are a design (R + 1, K), with a first column for an intercept, and outcomes (R + 1,) minus ``origin``.
        """
        means = (self.mean - np.append(np.zeros(len(self.units)), origin)) + self.rest
        rows = np.vstack([np.sqrt(self.n) * means, self.root])
        ones = np.zeros((len(rows), int(intercept)))
        ones[:1] = np.sqrt(self.n)
        return np.hstack([ones, rows[:, :-1]]), rows[:, -1]


def triangular(rows: np.ndarray) -> np.ndarray:
    """Return at most K rows with the same sums of squares and products as ``rows``, shape (R, K)."""
    return np.linalg.qr(rows, mode="r") if len(rows) > rows.shape[1] else rows


def downdated(root: np.ndarray, removed: np.ndarray) -> np.ndarray:
    """Return a factor of ``root.T @ root - removed.T @ removed``, (R, K) and (M, K), without forming either product.

    The rows of ``removed`` must be among the rows of ``root``'s scatter. With removed = Q root the difference is
    root' (I - Q'Q) root, and I - Q'Q has a root given by the singular values of Q (Golub and Van Loan 2013, section
    6.5.4).
    """
    size = np.sqrt(np.sum(np.square(root), axis=0))
    size = np.where(size > 0, size, 1.0)
    _, s, v = scipy.linalg.svd(root / size, full_matrices=False)
    kept = s > np.finfo(np.float64).eps * max(root.shape) * s[:1]
    s, v = s[kept], v[kept]
    share = triangular(removed / size) @ (v.T / s)
    _, d, w = scipy.linalg.svd(share, full_matrices=True)
    left = np.ones(len(s))
    left[: len(d)] = np.sqrt(np.maximum((1 - d) * (1 + d), 0.0))
    return np.asarray((left[:, None] * w) @ (s[:, None] * v) * size)
