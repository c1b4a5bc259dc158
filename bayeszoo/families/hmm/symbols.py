"""Symbols as the emissions of hidden Markov models, with Dirichlet priors or known probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayeszoo.distributions import simplex
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.families.hmm.emissions import Emissions, Sums, table_sums
from bayeszoo.families.hmm.tables import Pair, Table
from bayeszoo.model.base import Values


class Symbols(Emissions):
    """Categorical(emission_k).

    Parameters
    ----------
    table : Table
        ``emission``, of shape (K, V).
    """

    def __init__(self, table: Table) -> None:
        self.table, self.K = table, len(table.prior)
        self.own = (table.name,) if table.is_free else ()

    @property
    def free(self) -> int:
        """Return K (V - 1)."""
        return self.table.free

    @property
    def unbounded(self) -> str:
        """Say so where a concentration is below 1."""
        if self.own and self.table.prior.shape[1] > 1 and np.any(self.table.prior < 1):
            return "eta < 1: it grows without bound as the probability of a symbol goes to 0"
        return ""

    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which codes are no masks."""
        return np.asarray(y) >= 0

    def _rows(self, log_table: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.vstack([log_table.T, np.zeros(self.K)])[y]  # the mask, -1, is the last row

    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log probability of each symbol."""
        with np.errstate(divide="ignore"):
            return self._rows(np.log(self.table.of(params)), y)

    def expected_log_density(self, hyper: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return expected log probabilities."""
        return self._rows(self.table.expected_log(hyper), y)

    def sums(self, tables: Pair, params: Values, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Count symbols in one compiled pass."""
        with np.errstate(divide="ignore"):
            return table_sums(tables, np.log(self.table.of(params)), y, starts)

    def expected_sums(self, tables: Pair, hyper: Any, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Count symbols in one compiled pass."""
        return table_sums(tables, self.table.expected_log(hyper), y, starts)

    def moments(self, each: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return expected counts (K, V)."""
        size = self.table.prior.shape[1]
        return np.array([np.bincount(y + 1, weights, size + 1)[1:] for weights in each.T])

    def updated(self, stats: np.ndarray) -> np.ndarray:
        """Return concentrations."""
        return self.table.updated(stats)

    def mode(self, stats: np.ndarray, flat: bool) -> dict[str, np.ndarray]:
        """Return shares of the counts, with pseudo-counts unless ``flat``."""
        return self.table.mode(stats, flat)

    def middle(self, hyper: np.ndarray) -> dict[str, np.ndarray]:
        """Return means."""
        return self.table.mean(hyper)

    def log_prior(self, params: Values) -> Any:
        """Log Dirichlet density."""
        return self.table.log_prior(params)

    def divergence(self, hyper: np.ndarray) -> float:
        """Return that of Dirichlet distributions."""
        return self.table.divergence(hyper)

    def posterior(self, hyper: np.ndarray) -> list[Posterior]:
        """Return Dirichlet distributions."""
        return self.table.posterior(hyper)

    def log_pairs(self, hyper: np.ndarray, params: Values) -> np.ndarray:
        """Log Dirichlet densities."""
        if not self.own:
            return np.zeros((self.K, self.K))
        return simplex.log_density(np.asarray(params[self.own[0]])[..., None, :, :], hyper[:, None])

    def log_evidence(self, paths: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log probability of the symbols."""
        hot = np.eye(self.table.prior.shape[1] + 1)[y + 1][:, 1:]
        counts = np.stack([(paths == k).astype(np.float64) @ hot for k in range(self.K)], axis=1)
        return self.table.log_evidence(counts)

    def next_mean(self, params: Values, next_state: np.ndarray) -> np.ndarray:
        """Return the probabilities of the symbols."""
        return np.sum(next_state[..., :, None] * self.table.of(params), axis=-2)

    def ordered(self, params: Values) -> dict[str, np.ndarray]:
        """Return the probabilities of each symbol in order of size."""
        return {f"sorted_{name}": np.sort(params[name], axis=-2) for name in self.own}

    def clusters(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a state for each symbol."""
        of_symbols = np.asarray(rng.integers(0, self.K, self.table.prior.shape[1]))
        return of_symbols[y]
