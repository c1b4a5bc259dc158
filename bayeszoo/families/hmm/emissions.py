"""What the states of hidden Markov models emit: what EM, variational Bayes and enumeration need to know of it.

Each kind of emission has a conjugate prior, K states and T rows. Rows whose observation is missing say nothing: their
log density is 0 in every state.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from bayeszoo.families.hmm import passes
from bayeszoo.families.hmm.passes import Sums
from bayeszoo.families.hmm.tables import Pair, Part
from bayeszoo.model.base import Values


class Emissions(Part):
    """The prior of what K states emit: parameters of shape (..., K) or (..., K, V), whose leading axes are draws.

    Statistics are what `moments` returns; hyperparameters, of q(theta) and of posteriors, what `updated` does.
    """

    @abstractmethod
    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which rows have an observation, (T,)."""

    @abstractmethod
    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log density of each row in each state, (T, K), at one point."""

    @abstractmethod
    def expected_log_density(self, hyper: Any, y: np.ndarray) -> np.ndarray:
        """Return its expectation when the parameters are random, (T, K)."""

    def sums(self, tables: Pair, params: Values, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Return expected statistics of rows in their states at one point, and the log likelihood."""
        return self.smoothed(tables, self.log_density(params, y), y, starts)

    def expected_sums(self, tables: Pair, hyper: Any, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Return the same of variational Bayes, and the log normalizer of q(z)."""
        return self.smoothed(tables, self.expected_log_density(hyper, y), y, starts)

    def smoothed(self, tables: Pair, log_b: np.ndarray, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Return expected statistics given log densities (T, K), and the log likelihood."""
        found = passes.smooth(*tables, log_b, starts)
        return Sums(found.initial, found.transition, self.moments(found.probabilities, y), found.value)

    @abstractmethod
    def moments(self, each: np.ndarray, y: np.ndarray) -> Any:
        """Return expected statistics under probabilities of the states (T, K)."""

    @abstractmethod
    def log_pairs(self, hyper: Any, params: Values) -> np.ndarray:
        """Log density of the parameters of state k under the distribution of state j, (..., K, K) as [j, k]."""

    @abstractmethod
    def log_evidence(self, paths: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log density of the rows given paths of states (M, T), parameters integrated out, (M,)."""

    @abstractmethod
    def next_mean(self, params: Values, next_state: np.ndarray) -> np.ndarray:
        """Return the mean of a row, or the probabilities of its symbols, whose state has probabilities (..., K)."""

    def ordered(self, params: Values) -> dict[str, np.ndarray]:
        """Return each parameter in order of size, which labels of the states do not change."""
        return {f"sorted_{name}": np.sort(params[name], axis=self.state_axis) for name in self.own}

    state_axis = -1
    """Axis of the states in the parameters."""

    @abstractmethod
    def clusters(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a state for each observed row, (rows,), by what was observed, at random."""

    def degenerate(self, params: Values, y: np.ndarray) -> str:
        """Say why a fitted point is a degenerate maximum; nothing where it is not."""
        return ""


class OfParts(NamedTuple):
    """Expected statistics, or hyperparameters of q(theta), of each part of a model, and the prior of its emissions.

    Of `initial` (K,) and `transition` (K, K) statistics are expected counts, and hyperparameters concentrations.
    """

    initial: np.ndarray
    transition: np.ndarray
    emitted: Any
    emissions: Emissions
