"""What the states of hidden Markov models emit: what EM, variational Bayes and enumeration need to know of it.

Each kind of emission has a conjugate prior, K states and T rows. Rows whose observation is missing say nothing: their
log density is 0 in every state.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy

from bayeszoo.distributions import dirichlet, frozen
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.special import deviance, digamma_less_log, gamma_divergence, log_peak
from bayeszoo.errors import NumericalError
from bayeszoo.families.hmm import passes
from bayeszoo.families.hmm.passes import Sums
from bayeszoo.families.hmm.tables import Pair, Part, ProbabilityTable
from bayeszoo.families.mixtures.base import clusters
from bayeszoo.model.base import Values

OfRows = Callable[[np.ndarray], np.ndarray]
"""Rows, (T,), to the log density of each in each state, (T, K)."""


class Emissions(Part):
    """The prior of what K states emit: parameters of shape (..., K) or (..., K, V), whose leading axes are draws.

    Statistics are what `moments` returns; hyperparameters, of q(theta) and of posteriors, what `updated` does.
    """

    state_axis = -1
    """Axis of the states in the parameters."""

    @abstractmethod
    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which rows have an observation, (T,)."""

    @abstractmethod
    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log density of each row in each state, (..., T, K); leading axes of the parameters are draws."""

    @abstractmethod
    def expected_log_density(self, hyper: Any, y: np.ndarray) -> np.ndarray:
        """Return its expectation when the parameters are random, (T, K)."""

    def sums(self, tables: Pair, params: Values, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Return expected statistics of rows in their states at one point, and the log likelihood."""
        return self.smoothed(tables, partial(self.log_density, params), y, starts)

    def expected_sums(self, tables: Pair, hyper: Any, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Return the same of variational Bayes, and the log normalizer of q(z)."""
        return self.smoothed(tables, partial(self.expected_log_density, hyper), y, starts)

    def smoothed(self, tables: Pair, log_density: OfRows, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Return expected statistics given the log density, and the log likelihood."""
        smoothed = passes.smooth(*tables, log_density(y), starts)
        return smoothed._replace(emitted=self.moments(smoothed.emitted, y))

    @abstractmethod
    def moments(self, each: np.ndarray, y: np.ndarray) -> Any:
        """Return expected statistics under probabilities of the states (T, K)."""

    @abstractmethod
    def pooled(self, stats: Any, other: Any) -> Any:
        """Return the expected statistics of two sets of rows."""

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

    @abstractmethod
    def clusters(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a state for each observed row, (rows,), by what was observed, at random."""

    def degenerate(self, params: Values, stats: Any) -> str:
        """Say by expected statistics why a fitted point is a degenerate maximum; nothing where it is not."""
        return ""


class OfParts(NamedTuple):
    """Expected statistics, or hyperparameters of q(theta), of each part of a model, and the prior of its emissions.

    Of `initial` (K,) and `transition` (K, K) statistics are expected counts, and hyperparameters concentrations.
    """

    initial: np.ndarray
    transition: np.ndarray
    emitted: Any
    emissions: Emissions


class Symbols(ProbabilityTable, Emissions):
    """Categorical(emission_k): a table of shape (K, V), with a Dirichlet prior or known; statistics are counts."""

    state_axis = -2

    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which codes are no masks."""
        return np.asarray(y) >= 0

    def _rows(self, log_table: np.ndarray, y: np.ndarray) -> np.ndarray:
        of_mask = np.zeros((*log_table.shape[:-1], 1))  # the mask, -1, is the last symbol
        return np.take(np.swapaxes(np.concatenate([log_table, of_mask], axis=-1), -1, -2), y, axis=-2)

    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log probability of each symbol."""
        with np.errstate(divide="ignore"):
            return self._rows(np.log(self.of(params)), y)

    def expected_log_density(self, hyper: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return expected log probabilities."""
        return self._rows(self.expected_log(hyper), y)

    def smoothed(self, tables: Pair, log_density: OfRows, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Count symbols in one compiled pass."""
        return passes.table_sums(*tables, log_density(np.arange(self.prior.shape[1])).T, y, starts)

    def moments(self, each: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return expected counts (K, V)."""
        size = self.prior.shape[1]
        return np.array([np.bincount(y + 1, weights, size + 1)[1:] for weights in each.T])

    def pooled(self, stats: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return the counts of both."""
        return stats + other

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


class PoissonCounts(Emissions):
    """Poisson(rates_k), rates_k ~ Gamma(a_k, rate b_k); a and b are of all states, or of each.

    Hyperparameters are the shapes and rates of Gamma distributions, each (K,); statistics the expected sums of the
    counts and of the rows. Densities are distances from their largest value: of a count of 1e12 the terms of
    k log(rate) - rate - log(k!) are near 3e13, and their sum would be off by hundredths.
    """

    own = ("rates",)

    def __init__(self, K: int, a: Any, b: Any) -> None:
        self.K, self.free = K, K
        self.a, self.b = (np.broadcast_to(np.asarray(value, dtype=np.float64), K) for value in (a, b))
        self.unbounded = "a < 1: it grows without bound as a rate goes to 0" if np.any(self.a < 1) and K > 1 else ""

    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which counts are no masks."""
        return np.asarray(y) >= 0

    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log Poisson mass."""
        k, rates = np.maximum(y, 0).astype(np.float64)[:, None], np.asarray(params["rates"])[..., None, :]
        return np.where(self.seen(y)[:, None], log_peak(k) - deviance(k, rates), 0.0)

    def expected_log_density(self, hyper: tuple[np.ndarray, np.ndarray], y: np.ndarray) -> np.ndarray:
        """Return its expectation under Gamma distributions."""
        shape, rate = hyper
        k = np.maximum(y, 0).astype(np.float64)[:, None]
        of_means = log_peak(k) - deviance(k, shape / rate)
        return np.where(self.seen(y)[:, None], of_means + k * digamma_less_log(shape), 0.0)

    def smoothed(self, tables: Pair, log_density: OfRows, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Add up in one compiled pass over the distinct counts."""
        values, codes = distinct(y)
        smoothed = passes.table_sums(*tables, log_density(values).T, codes, starts)
        return smoothed._replace(emitted=(smoothed.emitted @ values, smoothed.emitted.sum(axis=1)))

    def moments(self, each: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return expected sums (K,) of the counts, and numbers of rows."""
        seen = self.seen(y)
        return each[seen].T @ y[seen].astype(np.float64), each[seen].sum(axis=0)

    def pooled(
        self, stats: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of both."""
        return stats[0] + other[0], stats[1] + other[1]

    def updated(self, stats: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return Gamma distributions."""
        return self.a + stats[0], self.b + stats[1]

    def mode(self, stats: tuple[np.ndarray, np.ndarray], flat: bool) -> dict[str, np.ndarray]:
        """Return counts over rows, with those of the prior unless ``flat``."""
        above, below = stats if flat else (stats[0] + self.a - 1, stats[1] + self.b)
        if not (np.all(above >= 0) and np.all(below > 0)):
            raise NumericalError("a state has too few expected rows for the mode of its rate")
        return {"rates": above / below}

    def middle(self, hyper: tuple[np.ndarray, np.ndarray]) -> dict[str, np.ndarray]:
        """Return means."""
        return {"rates": hyper[0] / hyper[1]}

    def log_prior(self, params: Values) -> Any:
        """Log Gamma density."""
        return scipy.stats.gamma.logpdf(params["rates"], self.a, scale=1 / self.b).sum(axis=-1)

    def divergence(self, hyper: tuple[np.ndarray, np.ndarray]) -> float:
        """Return that of Gamma distributions."""
        return float(np.sum(gamma_divergence(*hyper, self.a, self.b)))

    def posterior(self, hyper: tuple[np.ndarray, np.ndarray]) -> list[Posterior]:
        """Return Gamma distributions."""
        return [Posterior({"rates": frozen.gamma(hyper[0], scale=1 / hyper[1])})]

    def log_pairs(self, hyper: tuple[np.ndarray, np.ndarray], params: Values) -> np.ndarray:
        """Log Gamma densities."""
        return log_gamma(np.asarray(params["rates"])[..., None, :], hyper[0][:, None], hyper[1][:, None])

    def log_evidence(self, paths: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log mass of the counts: at the posterior mean of a rate, likelihood times prior over posterior."""
        k, each = y[self.seen(y)].astype(np.float64), paths[:, self.seen(y)] == np.arange(self.K)[:, None, None]
        prior = self.a[:, None], self.b[:, None]
        shape, rate = prior[0] + each @ k, prior[1] + each.sum(axis=-1)
        mean = shape / rate
        means, which = np.unique(mean, return_inverse=True)  # few paths differ in them
        of_rows = np.sum(deviance(k, means[:, None])[which.reshape(mean.shape)], axis=-1, where=each)
        of_states = log_gamma(mean, *prior) - log_gamma(mean, shape, rate) - of_rows
        return np.asarray(of_states.sum(axis=0) + log_peak(k).sum())

    def next_mean(self, params: Values, next_state: np.ndarray) -> np.ndarray:
        """Return the mean."""
        return np.sum(next_state * params["rates"], axis=-1)

    def clusters(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the nearest of K rows, chosen by k-means++."""
        return clusters(y[:, None].astype(np.float64), self.K, rng)


def distinct(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct counts of a series, and the code of each row, -1 where it is masked."""
    seen = y >= 0
    values, where = np.unique(y[seen], return_inverse=True)
    codes = np.full(len(y), -1, dtype=np.int64)
    codes[seen] = where
    return values, codes


def log_gamma(x: Any, shape: Any, rate: Any) -> np.ndarray:
    """Log Gamma density at x > 0."""
    return np.asarray(log_peak(shape) + np.log(shape / x) - deviance(shape, rate * x))
