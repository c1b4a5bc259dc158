"""Sufficient statistics of Gaussian rows with missing numbers: moments by pattern of observed columns.

The missing numbers of a Gaussian row are integrated out by leaving them out, so that count, mean and scatter are
sufficient for the rows of one pattern. Complete data are one pattern. Nothing is imputed: numbers are assumed to be
missing at random (Little and Rubin 2002, section 11.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from bayeszoo.distributions.statistics.base import Stats
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import InputError, NumericalError

MOST_IN_SCATTERS = 10**8
"""Most entries of all scatter matrices together: 0.8 GB."""


@dataclass(frozen=True, eq=False)
class Patterns(Stats):
    """Count, mean and scatter of the rows of each pattern, the most complete patterns first.

    Statistics of several data sets pool exactly, pattern by pattern, without cancellation (`Moments`). ``observed``
    (P, D) marks the numbers that the ``n`` (P,) rows of each pattern have. ``mean`` (P, D) is the mean of these rows in
    the units of the data, and ``scatter`` (P, D, D) the sum of the outer products of their deviations from it; both are
    0 for missing numbers.
    """

    observed: np.ndarray
    n: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray

    @classmethod
    def of(cls, Y: np.ndarray) -> Self:
        """Return the statistics of rows (N, D), with NaN for missing numbers."""
        Y = np.asarray(Y, dtype=np.float64)
        observed, pattern = distinct(~np.isnan(Y))
        if (
            len(observed) > 1 and len(observed) * Y.shape[1] ** 2 > MOST_IN_SCATTERS
        ):  # with a single pattern `Moments` raises the error
            patterns = f"{len(observed)} patterns of missing values in {Y.shape[1]} columns"
            raise InputError(f"{patterns} are too many to keep the scatter of each", "too_large")
        order = np.argsort(pattern, kind="stable")
        ends = np.searchsorted(pattern[order], np.arange(len(observed) + 1))
        rows = (Y[order[ends[p] : ends[p + 1]]] if len(observed) > 1 else Y for p in range(len(observed)))
        moments = {seen.tobytes(): _spread_out(seen, part) for seen, part in zip(observed, rows, strict=True)}
        return cls._of(moments, Y.shape[1])

    @classmethod
    def _of(cls, moments: dict[bytes, Moments], size: int, log_coefficient: float = 0.0) -> Self:
        """Return the statistics of moments by pattern of ``size`` columns, the patterns sorted."""
        keys = sorted(moments, reverse=True)
        parts = [moments[key] for key in keys]
        return cls(
            np.array([np.frombuffer(key, dtype=bool) for key in keys], dtype=bool).reshape(len(keys), size),
            np.array([part.n for part in parts], dtype=np.float64),
            np.reshape([part.mean for part in parts], (len(parts), size)),
            np.reshape([part.scatter for part in parts], (len(parts), size, size)),
            log_coefficient=log_coefficient,
        )

    def _moments(self) -> Iterator[tuple[bytes, Moments]]:
        for seen, n, mean, scatter in zip(self.observed, self.n, self.mean, self.scatter, strict=True):
            yield seen.tobytes(), Moments(float(n), mean, scatter)

    def __add__(self, other: Self) -> Self:
        pooled = dict(self._moments())
        for pattern, moments in other._moments():
            pooled[pattern] = pooled[pattern] + moments if pattern in pooled else moments
        return self._of(pooled, self.size, self.log_coefficient + other.log_coefficient)

    def __sub__(self, other: Self) -> Self:
        left = dict(self._moments())
        for pattern, moments in other._moments():
            if pattern not in left:
                raise NumericalError("rows cannot be taken away: none has the same numbers missing", "not_subtractable")
            left[pattern] = left[pattern] - moments
        kept = {pattern: moments for pattern, moments in left.items() if moments.n != 0}
        return self._of(kept, self.size, self.log_coefficient - other.log_coefficient)

    def discounted(self, factor: float) -> Self:
        """Return the statistics of rows that count ``factor`` times."""
        coefficient = factor * self.log_coefficient
        return replace(self, n=factor * self.n, scatter=factor * self.scatter, log_coefficient=coefficient)

    @property
    def size(self) -> int:
        """D, the number of columns."""
        return int(self.observed.shape[1])

    @property
    def rows(self) -> float:
        """The number of rows of all patterns."""
        return float(self.n.sum())

    @property
    def is_complete(self) -> bool:
        """Whether no number is missing."""
        return bool(self.observed.all())

    @property
    def whole(self) -> Moments:
        """Moments of complete data."""
        if not self.is_complete:
            raise NumericalError("rows with missing numbers have no scatter about their mean", "not_identified")
        nothing = Moments.of(np.zeros((0, self.size)))
        return next((moments for _, moments in self._moments()), nothing)

    def each_column(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return count (D,), mean (D,) and sum of squared deviations (D,) of the observed numbers of each column."""
        n = self.n @ self.observed
        mean = self.n @ self.mean / np.where(n > 0, n, 1.0)
        shift = np.where(self.observed, self.mean - mean, 0.0)
        return n, mean, np.diagonal(self.scatter, axis1=1, axis2=2).sum(axis=0) + self.n @ shift**2

    def column_variances(self) -> np.ndarray:
        """Return the variance of each column about its mean, divisor n - 1, (D,); NaN for constant or empty columns.

        A column whose spread is only rounding counts as constant.
        """
        n, mean, squares = self.each_column()
        seen = (n > 1) & (squares > n * np.square(1e-14 * mean))
        return np.where(seen, squares / np.maximum(n - 1, 1), np.nan)


def distinct(masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of masks (M, N), in decreasing order, and the index of each mask among them, (M,)."""
    if masks.all():  # an array of no rows or columns, too
        return masks[:1], np.zeros(len(masks), dtype=np.int64)
    packed = np.packbits(masks, axis=1)
    keys = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, rows, index = np.unique(keys, return_index=True, return_inverse=True)
    return masks[rows[::-1]], len(rows) - 1 - index


def _spread_out(seen: np.ndarray, rows: np.ndarray) -> Moments:
    """Return the moments of rows of one pattern, with zeros for missing numbers."""
    moments = Moments.of(rows if seen.all() else rows[:, seen])
    mean, scatter = np.zeros(len(seen)), np.zeros((len(seen), len(seen)))
    mean[seen] = moments.mean
    scatter[np.ix_(seen, seen)] = moments.scatter
    return Moments(moments.n, mean, scatter)


def as_patterns(data: Any) -> Patterns:
    """Return statistics unchanged, or compute the statistics of the rows ``Y`` of data."""
    return data if isinstance(data, Patterns) else Patterns.of(data["Y"])
