"""Columns of one kind that are independent given the parameters, as one law of rows of numbers."""

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
    """Rows (n, C) of independent numbers: the last axis of ``block`` is that of the columns, each a law of its own."""

    block: Block[S]

    @property
    def axes(self) -> tuple[int, ...]:
        """The shape of the laws of a whole row that stand side by side."""
        return self.block.axes[:-1]

    @property
    def blocks(self) -> tuple[Block[Any], ...]:
        """The prior of the parameters of all columns."""
        return (self.block,)

    def at(self, params: Params) -> Params:
        """Return its parameters among those given."""
        return self.block.at(params)

    def _each(self, rows: Arrays) -> Iterator[tuple[int, Block[S], Arrays]]:
        """Yield the place of each column, its prior, and its numbers (n,)."""
        values, before = np.asarray(rows[self.block.column]), (slice(None),) * len(self.axes)
        return ((c, self.block[(*before, c)], {self.block.column: values[:, c]}) for c in range(values.shape[1]))

    def apart(self, rows: Arrays) -> Iterator[tuple[Law[Any], Arrays]]:
        """Yield the law of each column, with its numbers."""
        return ((block, own) for _, block, own in self._each(rows))

    def _at(self, params: Params, column: int) -> Params:
        """Return the parameters of a column, which have no axes of their own after that of the columns."""
        return {name: np.asarray(params[name])[..., column] for name in self.block.names}

    def statistics(self, rows: Arrays, weights: np.ndarray) -> S:
        """Return the statistics of each column, (*axes, C)."""
        return _stacked([block.statistics(own, weights) for _, block, own in self._each(rows)])

    def statistics_by(self, codes: np.ndarray, rows: Arrays) -> S:
        """Return the statistics of each column, (K, C), of rows of known places (n,) along the one axis."""
        if len(codes) * self.axes[0] <= AT_ONCE:
            return super().statistics_by(codes, rows)
        return _stacked([block.statistics_by(codes, own) for _, block, own in self._each(rows)])

    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log density of each row, (..., n, *axes)."""
        each = (block.log_density(self._at(params, c), own) for c, block, own in self._each(rows))
        return np.asarray(reduce(add, each))

    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return its mean over the parameters, (n, *axes)."""
        return np.asarray(reduce(add, (block.expected_log_density(own) for _, block, own in self._each(rows))))

    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Log density of each row by itself, parameters integrated out, (n, *axes)."""
        return np.asarray(reduce(add, (block.log_predictive(own) for _, block, own in self._each(rows))))

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
    """The same of counts in a sparse array (n, C), each row with an exposure: what is 0 takes no time.

    Rows of one column without a count differ in their exposure alone; of several they are taken together.
    """

    def _each(self, rows: Arrays) -> Iterator[tuple[int, Block[S], Arrays]]:
        """Yield the place of each column, its prior, and its numbers (n,), zeros among them."""
        table, exposure = self._table(rows)
        dense = {self.block.column: table.toarray()}
        return ((c, block, {**own, **exposure}) for c, block, own in super()._each(dense))

    def _table(self, rows: Arrays) -> tuple[Any, dict[str, np.ndarray]]:
        block: Any = self.block
        return rows[block.column].tocsc(), {block.exposure: np.asarray(rows[block.exposure], dtype=np.float64)}

    def _columns(self, rows: Arrays) -> Iterator[tuple[int, Block[S], np.ndarray, np.ndarray]]:
        """Yield the place of each column, its prior, and the rows and counts of its cells that are not 0."""
        table, before = self._table(rows)[0], (slice(None),) * len(self.axes)
        for c, (start, end) in enumerate(zip(table.indptr[:-1], table.indptr[1:], strict=True)):
            yield c, self.block[(*before, c)], table.indices[start:end], table.data[start:end]

    def statistics(self, rows: Arrays, weights: np.ndarray) -> S:
        """Return the statistics of each column, (*axes, C): one axis, for each of whose places zeros are pooled."""
        (name, exposure), K = next(iter(self._table(rows)[1].items())), weights.shape[1]
        each, whole = list[S](), weights.T @ exposure
        for _, block, at, counts in self._columns(rows):
            none = np.where(len(at) < len(weights), np.maximum(whole - weights[at].T @ exposure[at], 0.0), 0.0)
            own = {self.block.column: np.append(counts, np.zeros(K)), name: np.append(exposure[at], none)}
            each.append(block.statistics(own, np.concatenate([weights[at], np.eye(K)])))
        return _stacked(each)

    def statistics_by(self, codes: np.ndarray, rows: Arrays) -> S:
        """Return the statistics of each column, (K, C), of rows of known places (n,) along the one axis."""
        return Law.statistics_by(self, codes, rows)

    def _summed(self, rows: Arrays, density: Callable[[int, Block[S], Arrays], np.ndarray]) -> np.ndarray:
        """Return the sum over columns of a density (..., n, K) of their numbers."""
        name, exposure = next(iter(self._table(rows)[1].items()))
        distinct, place = np.unique(exposure, return_inverse=True)
        zeros, more = {self.block.column: np.zeros(len(distinct)), name: distinct}, None
        total: Any = 0.0
        for c, block, at, counts in self._columns(rows):
            none = density(c, block, zeros)
            own = density(c, block, {self.block.column: counts, name: exposure[at]})
            total, more = (
                total + none,
                np.zeros((*none.shape[:-2], len(place), none.shape[-1])) if more is None else more,
            )
            more[..., at, :] += own - np.where(np.isneginf(none), 0.0, none)[..., place[at], :]
        return np.asarray(total[..., place, :] + more)

    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log density of each row, (..., n, K)."""
        return self._summed(rows, lambda c, block, own: block.log_density(self._at(params, c), own))

    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return its mean over the parameters, (n, K)."""
        return self._summed(rows, lambda _, block, own: block.expected_log_density(own))

    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Log density of each row by itself, parameters integrated out, (n, K)."""
        return self._summed(rows, lambda _, block, own: block.log_predictive(own))


def _stacked[S: Stats](each: list[S]) -> S:
    """Return statistics of columns as those of all of them, along a last axis."""
    names = [f.name for f in fields(each[0]) if f.name != "log_coefficient"]
    arrays: dict[str, Any] = {name: np.stack([getattr(own, name) for own in each], axis=-1) for name in names}
    return type(each[0])(**arrays)
