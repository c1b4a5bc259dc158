"""Features of few levels, with a Dirichlet prior for each: the probabilities of all features lie on one axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from bayeszoo.distributions import frozen
from bayeszoo.distributions.conjugate import dirichlet
from bayeszoo.distributions.conjugate.categorical import Categorical, counts_by, log_of_codes
from bayeszoo.distributions.conjugate.law import Block, Law
from bayeszoo.distributions.posterior import Marginal
from bayeszoo.distributions.special import sum_of_others
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.foundation.named import Arrays, Params


@dataclass(frozen=True, eq=False)
class Tables(Block[Counts]):
    """Levels (n, features) as indices on one axis of L (-1: missing); each table ~ Dirichlet(its alpha), (*axes, L).

    ``tables`` has the indices of each feature's levels; they partition the axis. Features are
    independent. The posterior is Dirichlet(alpha + counts) of each table.
    """

    alpha: np.ndarray
    tables: tuple[tuple[int, ...], ...]
    own: ClassVar[Any] = (1,)

    @cached_property
    def _parts(self) -> tuple[tuple[list[int], Categorical], ...]:
        """The indices of each table's levels, and its prior."""
        of_each = (list(places) for places in self.tables)
        return tuple((indices, Categorical(self.names, self.column, self.alpha[..., indices])) for indices in of_each)

    def _of_tables(self, values: Callable[[Categorical], object]) -> np.ndarray:
        """Return values (..., *axes, V) of all tables on one axis, (..., *axes, L)."""
        of_parts = [np.asarray(values(part)) for _, part in self._parts]
        all_values = np.empty((*of_parts[0].shape[:-1], self.alpha.shape[-1]))
        for (indices, _), values_of_part in zip(self._parts, of_parts, strict=True):
            all_values[..., indices] = values_of_part
        return all_values

    def _split(self, params: Params) -> Iterator[tuple[Categorical, Params]]:
        """Yield the prior of each table, and its probabilities."""
        p = np.asarray(params[self.names[0]], dtype=np.float64)
        return ((part, {self.names[0]: p[..., indices]}) for indices, part in self._parts)

    def apart(self, rows: Arrays) -> Iterator[tuple[Law[Any], Arrays]]:
        """Yield the law of each feature, with its codes within its table."""
        for (indices, part), levels in zip(self._parts, np.asarray(rows[self.column]).T, strict=True):
            code_of_level = np.full(self.alpha.shape[-1] + 1, -1)  # the last entry is for missing levels, -1
            code_of_level[indices] = np.arange(len(indices))
            yield part, {self.column: code_of_level[levels]}

    @property
    def free_parameters(self) -> int:
        """The number of levels minus 1, summed over tables: probabilities sum to 1."""
        return sum(part.free_parameters for _, part in self._parts)

    @property
    def unbounded(self) -> str:
        """The reason if a concentration is below 1."""
        return next((part.unbounded for _, part in self._parts if part.unbounded), "")

    def statistics(self, rows: Arrays, weights: np.ndarray) -> Counts:
        """Count each level."""
        levels, L, axes = np.asarray(rows[self.column]), self.alpha.shape[-1], weights.shape[1:]
        weights_of_laws = weights.reshape(len(weights), math.prod(axes)).T
        counts = [
            np.sum([np.bincount(codes + 1, weights_of_law, L + 1)[1:] for codes in levels.T], axis=0)
            for weights_of_law in weights_of_laws
        ]
        return Counts(np.reshape(counts, (*axes, L)))

    def statistics_by(self, codes: np.ndarray, rows: Arrays) -> Counts:
        """Count each level in the law with number ``codes`` (n,), -1 for none."""
        levels = np.asarray(rows[self.column])
        return Counts(np.sum([counts_by(codes, level, *self.alpha.shape) for level in levels.T], axis=0))

    def each(self, rows: Arrays) -> Counts:
        """Return counts of each row: 1 for each of its levels."""
        levels, L = np.asarray(rows[self.column]), self.alpha.shape[-1]
        counts = np.zeros((len(levels), L + 1))
        np.put_along_axis(counts, levels + 1, 1.0, axis=1)
        return Counts(counts[:, 1:].reshape(len(levels), *(1,) * len(self.axes), L))

    def _of_rows(self, log_p: np.ndarray, rows: Arrays) -> np.ndarray:
        """Return the sums of log probabilities (..., *axes, L) over the levels of each row, (..., n, *axes)."""
        levels = np.asarray(rows[self.column])
        total = np.zeros((*log_p.shape[:-1], len(levels)))
        for codes in levels.T:
            total += log_of_codes(log_p, codes)
        return np.moveaxis(total, -1, -1 - len(self.axes))

    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log probability of the levels of each row, (..., n, *axes)."""
        with np.errstate(divide="ignore", invalid="ignore"):  # invalid probabilities give NaN, which is refused
            return self._of_rows(np.log(np.asarray(params[self.names[0]], dtype=np.float64)), rows)

    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return the sum of expected log probabilities of each row, (n, *axes)."""
        return self._of_rows(self._of_tables(lambda part: part.expected_log), rows)

    def updated(self, stats: Counts) -> Self:
        """Return Dirichlet(alpha + counts)."""
        return replace(self, alpha=self.alpha + stats.counts)

    def log_evidence(self, stats: Counts) -> np.ndarray:
        """Return the sum over tables of log B(alpha + counts) - log B(alpha), (..., *axes)."""
        terms = (part.log_evidence(Counts(stats.counts[..., indices])) for indices, part in self._parts)
        return np.sum(list(terms), axis=0)

    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Log predictive probability of each row alone, (n, *axes), from mean probabilities."""
        return self._of_rows(np.log(self.typical()[self.names[0]]), rows)

    def typical(self) -> dict[str, np.ndarray]:
        """Return the means, which are all > 0."""
        return {self.names[0]: self._of_tables(lambda part: part.typical()[self.names[0]])}

    def mode(self) -> dict[str, np.ndarray]:
        """Return (alpha - 1) / sum(alpha - 1) of each table, which may lie on the edge."""
        return {self.names[0]: self._of_tables(lambda part: part.mode()[self.names[0]])}

    def mle(self, stats: Counts) -> dict[str, np.ndarray]:
        """Return the observed shares."""
        shares = np.empty(stats.counts.shape)
        for indices, part in self._parts:
            shares[..., indices] = part.mle(Counts(stats.counts[..., indices]))[self.names[0]]
        return {self.names[0]: shares}

    def log_each(self, params: Params) -> np.ndarray:
        """Log density of all tables, (..., *axes)."""
        return np.sum([part.log_each(params_of_table) for part, params_of_table in self._split(params)], axis=0)

    def divergence(self, prior: Self) -> float:
        """Return KL(self || prior) in nats."""
        pairs = zip(self._parts, prior._parts, strict=True)
        return sum(part.divergence(prior_part) for (_, part), (_, prior_part) in pairs)

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw probabilities, (*size, *axes, L)."""
        return {self.names[0]: self._of_tables(lambda part: part.rvs(size, rng)[self.names[0]])}

    def marginals(self) -> dict[str, Marginal]:
        """Return the Beta distribution of each entry."""
        others = self._of_tables(lambda part: sum_of_others(part.alpha, -1))
        return {self.names[0]: frozen.beta(self.alpha, others)}

    def within(self) -> dict[str, Callable[[], np.ndarray]]:
        """Return the covariance matrix of all entries; tables are independent."""
        return {self.names[0]: self._covariance}

    def _covariance(self) -> np.ndarray:
        places = np.arange(self.alpha.size).reshape(self.alpha.shape)
        matrix = np.zeros((self.alpha.size, self.alpha.size))
        for indices, part in self._parts:
            entries = places[..., indices].ravel()
            matrix[np.ix_(entries, entries)] = dirichlet.covariance(part.alpha)
        return matrix
