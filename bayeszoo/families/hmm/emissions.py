"""What the states of hidden Markov models emit: what EM, variational Bayes and enumeration need to know of it.

Each kind of emission has a conjugate prior, K states and T rows. Rows whose observation is missing say nothing: their
log density is 0 in every state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayeszoo.distributions.posterior import Posterior
from bayeszoo.families.hmm import passes as hidden_markov
from bayeszoo.families.hmm.tables import Pair
from bayeszoo.model.base import Values


class Sums(NamedTuple):
    """Expected numbers of first states (K,) and transitions (K, K), expected statistics, and the log likelihood."""

    initial: np.ndarray
    transition: np.ndarray
    emitted: Any
    value: float


class Emissions(ABC):
    """The prior of what K states emit.

    Statistics are what `moments` returns; hyperparameters, of q(theta) and of posteriors, what `updated` does.

    Attributes
    ----------
    own : tuple of str
        The parameters, of shape (..., K) or (..., K, V); leading axes are draws. None where they are known.
    K : int
    """

    own: tuple[str, ...]
    K: int

    @property
    @abstractmethod
    def free(self) -> int:
        """How many numbers they add to those that the likelihood is maximized over."""

    @property
    @abstractmethod
    def unbounded(self) -> str:
        """Why the prior density has no maximum, if it has none."""

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
        found = hidden_markov.smooth(*tables, log_b, starts)
        return Sums(found.initial, found.transition, self.moments(found.probabilities, y), found.value)

    @abstractmethod
    def moments(self, each: np.ndarray, y: np.ndarray) -> Any:
        """Return expected statistics under probabilities of the states (T, K)."""

    @abstractmethod
    def updated(self, stats: Any) -> Any:
        """Return the posterior given expected statistics."""

    @abstractmethod
    def mode(self, stats: Any, flat: bool) -> dict[str, np.ndarray]:
        """Return the mode of the posterior given expected statistics or, with ``flat``, of the likelihood."""

    @abstractmethod
    def middle(self, hyper: Any) -> dict[str, np.ndarray]:
        """Return a point in the middle of a distribution, never on the edge."""

    @abstractmethod
    def log_prior(self, params: Values) -> Any:
        """Log density of the prior, (...,)."""

    @abstractmethod
    def divergence(self, hyper: Any) -> float:
        """Return KL(q || prior) in nats."""

    @abstractmethod
    def posterior(self, hyper: Any) -> list[Posterior]:
        """Return the distribution of the parameters, if there are any."""

    @abstractmethod
    def log_pairs(self, hyper: Any, params: Values) -> np.ndarray:
        """Log density of the parameters of state k under the distribution of state j, (..., K, K) as [j, k]."""

    @abstractmethod
    def log_evidence(self, paths: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log density of the rows given paths of states (M, T), parameters integrated out, (M,)."""

    @abstractmethod
    def next_mean(self, params: Values, next_state: np.ndarray) -> np.ndarray:
        """Return the mean of a row, or the probabilities of its symbols, whose state has probabilities (..., K)."""

    @abstractmethod
    def ordered(self, params: Values) -> dict[str, np.ndarray]:
        """Return parameters in order of size where they have one, which do not depend on labels."""

    @abstractmethod
    def clusters(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a state for each row with an observation, chosen by its value, at random."""

    @abstractmethod
    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which rows have an observation, (T,)."""

    def degenerate(self, params: Values, y: np.ndarray) -> str:
        """Say why a fitted point is a degenerate maximum; nothing where it is not."""
        return ""


@dataclass(frozen=True, eq=False)
class PathStatistics:
    """Expected counts of the states, and what they emitted.

    Attributes
    ----------
    initial, transition : ndarray of shape (K,), (K, K)
        Expected numbers of first states, and of transitions.
    emitted : Any
        Expected statistics of the observations.
    emissions : Emissions
        Their prior.
    """

    initial: np.ndarray
    transition: np.ndarray
    emitted: Any
    emissions: Emissions


@dataclass(frozen=True, eq=False)
class Approximation:
    """q(theta): independent posteriors of the tables and of the emissions.

    Attributes
    ----------
    initial, transition : ndarray of shape (K,), (K, K)
        Concentrations of Dirichlet distributions.
    hyper : Any
        Of the emissions.
    emissions : Emissions
        Their prior.
    """

    initial: np.ndarray
    transition: np.ndarray
    hyper: Any
    emissions: Emissions


def table_sums(tables: Pair, log_table: np.ndarray, codes: np.ndarray, starts: np.ndarray) -> Sums:
    """Return expected statistics where few observations are distinct: how often each state gave each of them, (K, V).

    Parameters
    ----------
    tables : tuple of ndarray
        Initial (K,) and transition (K, K).
    log_table : ndarray of shape (K, V)
        Log density in each state of each distinct observation.
    codes : ndarray of int, shape (T,)
        The column of each row, -1 where the observation is missing.
    starts : ndarray of int
        Index of the first row of each sequence.
    """
    found = hidden_markov.table_sums(*tables, log_table, codes, starts)
    return Sums(found.initial, found.transition, found.observations, found.value)
