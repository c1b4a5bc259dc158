"""Symbols as the emissions of hidden Markov models, with Dirichlet priors or known probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayeszoo.distributions import dirichlet
from bayeszoo.families.hmm import passes
from bayeszoo.families.hmm.emissions import Emissions
from bayeszoo.families.hmm.passes import Sums
from bayeszoo.families.hmm.tables import Pair, ProbabilityTable
from bayeszoo.model.base import Values


class Symbols(ProbabilityTable, Emissions):
    """Categorical(emission_k): a `Table` of shape (K, V), whose statistics are counts."""

    state_axis = -2

    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which codes are no masks."""
        return np.asarray(y) >= 0

    def _log_table(self, params: Values) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.of(params))

    def _rows(self, log_table: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.vstack([log_table.T, np.zeros(len(log_table))])[y]  # the mask, -1, is the last row

    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log probability of each symbol."""
        return self._rows(self._log_table(params), y)

    def expected_log_density(self, hyper: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return expected log probabilities."""
        return self._rows(self.expected_log(hyper), y)

    def sums(self, tables: Pair, params: Values, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Count symbols in one compiled pass."""
        return passes.table_sums(*tables, self._log_table(params), y, starts)

    def expected_sums(self, tables: Pair, hyper: Any, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Count symbols in one compiled pass."""
        return passes.table_sums(*tables, self.expected_log(hyper), y, starts)

    def moments(self, each: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return expected counts (K, V)."""
        size = self.prior.shape[1]
        return np.array([np.bincount(y + 1, weights, size + 1)[1:] for weights in each.T])

    def log_pairs(self, hyper: np.ndarray, params: Values) -> np.ndarray:
        """Log Dirichlet densities."""
        if not self.is_free:
            return np.zeros((len(self.prior),) * 2)
        return dirichlet.log_density(np.asarray(params[self.name])[..., None, :, :], hyper[:, None])

    def log_evidence(self, paths: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log probability of the symbols."""
        K, V = self.prior.shape
        hot = np.eye(V + 1)[y + 1][:, 1:]
        return self.log_evidence_of(np.stack([(paths == k).astype(np.float64) @ hot for k in range(K)], axis=1))

    def next_mean(self, params: Values, next_state: np.ndarray) -> np.ndarray:
        """Return the probabilities of the symbols."""
        return np.sum(next_state[..., :, None] * self.of(params), axis=-2)

    def clusters(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a state for each symbol."""
        K, V = self.prior.shape
        return np.asarray(rng.integers(0, K, V))[y]
