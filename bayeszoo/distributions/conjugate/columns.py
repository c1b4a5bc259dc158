"""Columns of one kind, independent given the parameters, as one law of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np

from bayeszoo.distributions.conjugate.law import Block, Law
from bayeszoo.distributions.statistics.base import Stats
from bayeszoo.foundation.blocks import AT_ONCE
from bayeszoo.foundation.named import Arrays, Params


@dataclass(frozen=True, eq=False)
class Columns[S: Stats](Law[S]):
    """Rows (n, C) of independent numbers: the last axis of ``block`` is that of the columns, one law for each."""

    block: Block[S]

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the laws of rows."""
        return self.block.axes[:-1]

    @property
    def blocks(self) -> tuple[Block[Any], ...]:
        """The prior of the parameters of all columns."""
        return (self.block,)

    def at(self, params: Params) -> Params:
        """Return the parameters of this law among ``params``."""
        return self.block.at(params)

    def _each(self, rows: Arrays) -> Iterator[tuple[int, Block[S], Arrays]]:
        """Yield the number of each column, its prior, and its values (n,)."""
        values, before = np.asarray(rows[self.block.column]), (slice(None),) * len(self.axes)
        return ((c, self.block[(*before, c)], {self.block.column: values[:, c]}) for c in range(values.shape[1]))

    def apart(self, rows: Arrays) -> Iterator[tuple[Law[Any], Arrays]]:
        """Yield the law of each column, with its values."""
        return ((block, column_rows) for _, block, column_rows in self._each(rows))

    def _at(self, params: Params, column: int) -> Params:
        """Return the parameters of a column; the axis of columns is their last."""
        return {name: np.asarray(params[name])[..., column] for name in self.block.names}

    def statistics(self, rows: Arrays, weights: np.ndarray) -> S:
        """Return the statistics of each column, (*axes, C)."""
        return _stacked([block.statistics(column_rows, weights) for _, block, column_rows in self._each(rows)])

    def statistics_by(self, codes: np.ndarray, rows: Arrays) -> S:
        """Return the statistics of each column, (K, C), from rows that belong to the law with number ``codes`` (n,)."""
        if len(codes) * self.axes[0] <= AT_ONCE:
            return super().statistics_by(codes, rows)
        return _stacked([block.statistics_by(codes, column_rows) for _, block, column_rows in self._each(rows)])

    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log density of each row, (..., n, *axes)."""
        terms = (block.log_density(self._at(params, c), column_rows) for c, block, column_rows in self._each(rows))
        return np.asarray(reduce(add, terms))

    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return the mean of `log_density` over the parameters, (n, *axes)."""
        return np.asarray(
            reduce(add, (block.expected_log_density(column_rows) for _, block, column_rows in self._each(rows)))
        )

    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Log predictive density of each row alone, (n, *axes)."""
        return np.asarray(
            reduce(add, (block.log_predictive(column_rows) for _, block, column_rows in self._each(rows)))
        )

    def log_evidence(self, stats: S) -> np.ndarray:
        """Log density of the ordered rows, parameters integrated out, (..., *axes)."""
        return self.block.log_evidence(stats).sum(axis=-1)

    def updated(self, stats: S) -> Self:
        """Return the posterior given statistics."""
        return replace(self, block=self.block.updated(stats))

    def mle(self, stats: S) -> dict[str, np.ndarray]:
        """Return the maximum of the likelihood."""
        return self.block.mle(stats)

    def row_mean(self, params: Params) -> np.ndarray:
        """Return the mean of a row, (..., *axes, C)."""
        return self.block.row_mean(params)


class SparseColumns[S: Stats](Columns[S]):
    """`Columns` of counts in a sparse array (n, C), each row with an exposure: zeros take no time.

    Rows with count 0 in a column differ only in their exposure; rows with equal exposure are computed together.
    """

    def _each(self, rows: Arrays) -> Iterator[tuple[int, Block[S], Arrays]]:
        """Yield the number of each column, its prior, and its values (n,) with zeros."""
        table, exposure = self._table(rows)
        dense = {self.block.column: table.toarray()}
        return ((c, block, {**column_rows, **exposure}) for c, block, column_rows in super()._each(dense))

    def _table(self, rows: Arrays) -> tuple[Any, dict[str, np.ndarray]]:
        block: Any = self.block
        return rows[block.column].tocsc(), {block.exposure: np.asarray(rows[block.exposure], dtype=np.float64)}

    def _columns(self, rows: Arrays) -> Iterator[tuple[int, Block[S], np.ndarray, np.ndarray]]:
        """Yield the number of each column, its prior, and the rows and counts of its nonzero cells."""
        table, before = self._table(rows)[0], (slice(None),) * len(self.axes)
        for c, (start, end) in enumerate(zip(table.indptr[:-1], table.indptr[1:], strict=True)):
            yield c, self.block[(*before, c)], table.indices[start:end], table.data[start:end]

    def statistics(self, rows: Arrays, weights: np.ndarray) -> S:
        """Return the statistics of each column, (K, C); zeros are pooled for each of the K laws."""
        (name, exposure), K = next(iter(self._table(rows)[1].items())), weights.shape[1]
        of_columns, total_exposure = list[S](), weights.T @ exposure
        for _, block, occupied, counts in self._columns(rows):
            exposure_of_zeros = np.where(
                len(occupied) < len(weights),
                np.maximum(total_exposure - weights[occupied].T @ exposure[occupied], 0.0),
                0.0,
            )
            column_rows = {
                self.block.column: np.append(counts, np.zeros(K)),
                name: np.append(exposure[occupied], exposure_of_zeros),
            }
            of_columns.append(block.statistics(column_rows, np.concatenate([weights[occupied], np.eye(K)])))
        return _stacked(of_columns)

    def statistics_by(self, codes: np.ndarray, rows: Arrays) -> S:
        """Return the statistics of each column, (K, C), from rows that belong to the law with number ``codes`` (n,)."""
        return Law.statistics_by(self, codes, rows)

    def _summed(self, rows: Arrays, density: Callable[[int, Block[S], Arrays], np.ndarray]) -> np.ndarray:
        """Return the sum over columns of a log density (..., n, K)."""
        name, exposure = next(iter(self._table(rows)[1].items()))
        distinct, index = np.unique(exposure, return_inverse=True)
        zeros, corrections = {self.block.column: np.zeros(len(distinct)), name: distinct}, None
        total: Any = 0.0
        for c, block, occupied, counts in self._columns(rows):
            of_zeros = density(c, block, zeros)
            of_counts = density(c, block, {self.block.column: counts, name: exposure[occupied]})
            total, corrections = (
                total + of_zeros,
                np.zeros((*of_zeros.shape[:-2], len(index), of_zeros.shape[-1]))
                if corrections is None
                else corrections,
            )
            corrections[..., occupied, :] += (
                of_counts - np.where(np.isneginf(of_zeros), 0.0, of_zeros)[..., index[occupied], :]
            )
        return np.asarray(total[..., index, :] + corrections)

    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log density of each row, (..., n, K)."""
        return self._summed(rows, lambda c, block, column_rows: block.log_density(self._at(params, c), column_rows))

    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return the mean of `log_density` over the parameters, (n, K)."""
        return self._summed(rows, lambda _, block, column_rows: block.expected_log_density(column_rows))

    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Log predictive density of each row alone, (n, K)."""
        return self._summed(rows, lambda _, block, column_rows: block.log_predictive(column_rows))


def _stacked[S: Stats](of_columns: list[S]) -> S:
    """Stack statistics of columns along a new last axis."""
    names = [f.name for f in fields(of_columns[0]) if f.name != "log_coefficient"]
    arrays: dict[str, Any] = {name: np.stack([getattr(stats, name) for stats in of_columns], axis=-1) for name in names}
    return type(of_columns[0])(**arrays)
