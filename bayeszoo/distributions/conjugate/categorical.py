"""Categories with a Dirichlet prior."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy

from bayeszoo.distributions import complexity, frozen, information
from bayeszoo.distributions.conjugate import dirichlet
from bayeszoo.distributions.conjugate.law import Block
from bayeszoo.distributions.posterior import Marginal
from bayeszoo.distributions.special import sum_of_others
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.numerics.constants import LEAST_LOG, TINY

WEAK = 1e5
"""Sum of concentrations below which the textbook's formulas, three times as fast, keep ten digits."""


def counts_by(places: np.ndarray, codes: np.ndarray, size: int, categories: int) -> np.ndarray:
    """Count category codes (n,) in each of ``size`` groups, numbered by ``places`` (n,); -1 is not counted."""
    cells = (places + 1) * (categories + 1) + codes + 1
    counts = np.bincount(cells, minlength=(size + 1) * (categories + 1))
    return counts.reshape(size + 1, categories + 1)[1:, 1:] * 1.0


def log_of_codes(log_p: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return log probabilities (..., V) at codes (n,), 0 at a missing code, -1; of shape (..., n)."""
    missing = np.zeros((*log_p.shape[:-1], 1))  # the last entry, for code -1
    return np.take(np.concatenate([log_p, missing], axis=-1), codes, axis=-1)


def normalized_length(counts: np.ndarray) -> float:
    """Return the code length of ordered observations by normalized maximum likelihood in nats, from counts (V,)."""
    total = counts.sum()
    best = float(np.sum(scipy.special.xlogy(counts, counts / total))) if total else 0.0
    return complexity.multinomial(int(total), len(counts)) - best


@dataclass(frozen=True, eq=False)
class Categorical(Block[Counts]):
    """Codes (n,) of V categories (-1: missing), or rows of counts (n, V); p ~ Dirichlet(alpha), (*axes, V).

    Counts may be a sparse array. The posterior is Dirichlet(alpha + counts). Densities are of the ordered observations.
    """

    alpha: np.ndarray
    own: ClassVar[Any] = (1,)

    @cached_property
    def expected_log(self) -> np.ndarray:
        """The expected logarithms of the probabilities, (*axes, V)."""
        return dirichlet.expected_log(self.alpha)

    @cached_property
    def _log_constant(self) -> np.ndarray:
        return dirichlet.log_constant(self.alpha)

    @cached_property
    def _is_weak(self) -> bool:
        return bool(self.alpha.sum(axis=-1).max(initial=0.0) < WEAK)

    def _of(self, rows: Arrays) -> Any:
        """Return the codes, or the counts, which may be a sparse array."""
        column = rows[self.column]
        return column if scipy.sparse.issparse(column) else np.asarray(column)

    @property
    def free_parameters(self) -> int:
        """V - 1 for each law: probabilities sum to 1."""
        return self.alpha.size - self.alpha.size // self.alpha.shape[-1]

    @property
    def unbounded(self) -> str:
        """The reason if a concentration is below 1."""
        is_below_1 = (self.alpha < 1) & (self.alpha.shape[-1] > 1)
        return self._grows(is_below_1, "a concentration", f"an entry of {self.names[0]} goes to 0")

    @property
    def is_flat(self) -> bool:
        """Whether the density is constant."""
        return bool(np.all(self.alpha == 1))

    def normalized_length(self, stats: Counts) -> float | None:
        """Return the code length of the ordered rows by normalized maximum likelihood; None for several laws."""
        return normalized_length(stats.counts) if self.alpha.ndim == 1 else None

    def statistics(self, rows: Arrays, weights: np.ndarray) -> Counts:
        """Count each category."""
        column, V, axes = self._of(rows), self.alpha.shape[-1], weights.shape[1:]
        weights_of_laws = weights.reshape(len(weights), math.prod(axes)).T
        counts = (
            weights_of_laws @ column
            if column.ndim == 2
            else [np.bincount(column + 1, weights_of_law, V + 1)[1:] for weights_of_law in weights_of_laws]
        )
        return Counts(np.reshape(counts, (*axes, V)))

    def statistics_by(self, codes: np.ndarray, rows: Arrays) -> Counts:
        """Count each category in the law with number ``codes`` (n,), -1 for none; faster than `statistics`."""
        column = self._of(rows)
        if column.ndim == 2:
            is_counted = np.flatnonzero(codes >= 0)
            cells = (np.ones(len(is_counted)), (codes[is_counted], is_counted))
            sums = scipy.sparse.csr_array(cells, shape=(len(self.alpha), len(codes))) @ column
            return Counts(np.asarray(sums.toarray() if scipy.sparse.issparse(sums) else sums, dtype=np.float64))
        return Counts(counts_by(codes, column, *self.alpha.shape))

    def each(self, rows: Arrays) -> Counts:
        """Return a count of 1 of each row's category, or a row's counts."""
        column, V = self._of(rows), self.alpha.shape[-1]
        counts = np.eye(V + 1)[column + 1][:, 1:] if column.ndim == 1 else column
        counts = counts.toarray() if scipy.sparse.issparse(counts) else counts
        return Counts(counts.reshape(len(counts), *(1,) * len(self.axes), V))

    def _of_rows(self, log_p: np.ndarray, rows: Arrays) -> np.ndarray:
        """Return the sums of log probabilities (..., *axes, V) over the observations of each row, (..., n, *axes)."""
        column = self._of(rows)
        if column.ndim == 2:
            finite = np.where(np.isneginf(log_p), LEAST_LOG, log_p)
            totals = (column @ finite.reshape(-1, log_p.shape[-1]).T).T.reshape(*log_p.shape[:-1], -1)
            return np.moveaxis(np.where(totals > LEAST_LOG / 2, totals, -np.inf), -1, -1 - len(self.axes))
        return np.moveaxis(log_of_codes(log_p, column), -1, -1 - len(self.axes))

    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log probability of the observations of each row, (..., n, *axes)."""
        with np.errstate(divide="ignore", invalid="ignore"):  # invalid probabilities give NaN, which is refused
            return self._of_rows(np.log(np.asarray(params[self.names[0]], dtype=np.float64)), rows)

    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return the sum of expected log probabilities of each row, (n, *axes)."""
        return self._of_rows(self.expected_log, rows)

    def updated(self, stats: Counts) -> Self:
        """Return Dirichlet(alpha + counts)."""
        return replace(self, alpha=self.alpha + stats.counts)

    def log_evidence(self, stats: Counts) -> np.ndarray:
        """Return log B(alpha + counts) - log B(alpha), (..., *axes)."""
        return dirichlet.log_dirichlet_ratio(self.alpha, stats.counts)

    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Log predictive probability of each row alone, (n, *axes); for a code, from mean probabilities."""
        column = self._of(rows)
        if column.ndim == 2:
            ratios = dirichlet.log_ratio_of_rows(self.alpha.reshape(-1, self.alpha.shape[-1]), column)
            return ratios.reshape(-1, *self.axes)
        return self._of_rows(np.log(self.alpha) - np.log(self.alpha.sum(axis=-1, keepdims=True)), rows)

    def typical(self) -> dict[str, np.ndarray]:
        """Return the means, which are all > 0."""
        return {self.names[0]: self.alpha / self.alpha.sum(axis=-1, keepdims=True)}

    def mode(self) -> dict[str, np.ndarray]:
        """Return (alpha - 1) / sum(alpha - 1), which may lie on the edge; 1 for a single category."""
        if self.alpha.shape[-1] == 1:
            return {self.names[0]: np.ones_like(self.alpha)}
        excess = self.alpha - 1
        total = excess.sum(axis=-1, keepdims=True)
        if not ((excess >= 0).all() and (total > 0).all()):
            self._refuse(np.any(excess < 0, axis=-1), "is unbounded, some alpha < 1")
            self._refuse(np.all(excess == 0, axis=-1), "is flat, every alpha = 1")
        return {self.names[0]: excess / total}

    def mle(self, stats: Counts) -> dict[str, np.ndarray]:
        """Return the observed shares."""
        total = stats.counts.sum(axis=-1, keepdims=True)
        self._require_observed(total)
        return {self.names[0]: stats.counts / total}

    def entropy(self, params: Params) -> np.ndarray:
        """Return -sum p log p, (..., *axes)."""
        return information.entropy(np.asarray(params[self.names[0]]))

    def entropy_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and sd of the entropy, (*axes)."""
        return information.mean_entropy(self.alpha), information.sd_entropy(self.alpha)

    def row_divergence(self, params: Params, other: Self, others: Params) -> np.ndarray:
        """Return sum p log(p / q), (..., *axes)."""
        return information.divergence(np.asarray(params[self.names[0]]), np.asarray(others[other.names[0]]))

    def log_each(self, params: Params) -> np.ndarray:
        """Log Dirichlet density, (..., *axes)."""
        p = np.asarray(params[self.names[0]], dtype=np.float64)
        if not (self._is_weak and (p > 0).all()):
            return dirichlet.log_density(p, self.alpha)
        return np.asarray(((self.alpha - 1) * np.log(p)).sum(axis=-1) + self._log_constant)

    def log_of_several(self, alphas: np.ndarray, params: Params) -> np.ndarray:
        """Return log densities (..., M) of all parameters under M priors (M, *axes, V), by one matrix product."""
        logs = self._logs(params)
        logs = logs.reshape(*logs.shape[: logs.ndim - self.alpha.ndim], -1)
        constants = dirichlet.log_constant(alphas)
        return logs @ (alphas - 1).reshape(len(alphas), -1).T + constants.reshape(len(alphas), -1).sum(axis=1)

    def log_entries(self, params: Params) -> np.ndarray:
        """Return log densities (..., j, k) of entries k of all distributions under the concentrations of entries j.

        The sum over k at j = s(k) is the joint log density of the prior with entries permuted by s.
        """
        logs, powers = self._logs(params), (self.alpha - 1).reshape(-1, self.alpha.shape[-1])
        logs = logs.reshape(*logs.shape[: logs.ndim - self.alpha.ndim], *powers.shape)
        return powers.T @ logs + self._log_constant.sum() / self.alpha.shape[-1]

    def _logs(self, params: Params) -> np.ndarray:
        """Return log probabilities; underflowed probabilities count as the smallest float."""
        return np.log(np.maximum(np.asarray(params[self.names[0]], dtype=np.float64), TINY))

    def divergence(self, prior: Self) -> float:
        """Return KL(self || prior) in nats."""
        if not (self._is_weak and prior._is_weak):
            return dirichlet.divergence(self.alpha, prior.alpha)
        moved = (self.alpha - prior.alpha) * self.expected_log
        return float(moved.sum() + (self._log_constant - prior._log_constant).sum())

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw probabilities, (*size, *axes, V)."""
        return {self.names[0]: dirichlet.draw_dirichlet(self.alpha, size, rng)}

    def marginals(self) -> dict[str, Marginal]:
        """Return the Beta distribution of each entry."""
        return {self.names[0]: frozen.beta(self.alpha, sum_of_others(self.alpha, -1))}

    def within(self) -> dict[str, Callable[[], np.ndarray]]:
        """Return the covariance matrix of all entries."""
        return {self.names[0]: lambda: dirichlet.covariance(self.alpha)}


@dataclass(frozen=True, eq=False)
class Categoricals(Categorical):
    """Rows of counts of J variables with V categories (n, J, V); each variable has p ~ Dirichlet(alpha), (*axes, J, V).

    The variables are independent. Densities are of the ordered observations.
    """

    own: ClassVar[Any] = (2,)

    def statistics(self, rows: Arrays, weights: np.ndarray) -> Counts:
        """Count each category of each variable."""
        axes, shape = weights.shape[1:], self.alpha.shape[-2:]
        counts = np.asarray(rows[self.column]).reshape(-1, math.prod(shape))
        return Counts((weights.reshape(len(weights), math.prod(axes)).T @ counts).reshape(*axes, *shape))

    def statistics_by(self, codes: np.ndarray, rows: Arrays) -> Counts:
        """Count each category in the law with number ``codes`` (n,), -1 for none."""
        return Block.statistics_by(self, codes, rows)

    def each(self, rows: Arrays) -> Counts:
        """Return the counts of each row."""
        counts = np.asarray(rows[self.column])
        return Counts(counts.reshape(len(counts), *(1,) * len(self.axes), *counts.shape[1:]))

    def _of_rows(self, log_p: np.ndarray, rows: Arrays) -> np.ndarray:
        """Return the sums of log probabilities (..., *axes, J, V) over the observations of each row."""
        flat = np.asarray(rows[self.column]).reshape(-1, math.prod(self.alpha.shape[-2:]))
        return super()._of_rows(log_p.reshape(*log_p.shape[:-2], -1), {self.column: flat})

    def log_evidence(self, stats: Counts) -> np.ndarray:
        """Return the sum over variables of log B(alpha + counts) - log B(alpha), (..., *axes)."""
        return np.asarray(super().log_evidence(stats).sum(axis=-1))

    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Log predictive probability of each row alone, (n, *axes)."""
        return Block.log_predictive(self, rows)

    def log_each(self, params: Params) -> np.ndarray:
        """Log density of the probabilities of all variables, (..., *axes)."""
        return np.asarray(super().log_each(params).sum(axis=-1))
