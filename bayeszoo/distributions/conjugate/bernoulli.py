"""Beta priors of a chance: Bernoulli and binomial trials, and other rows with the same likelihood."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy

from bayeszoo.distributions import frozen, information
from bayeszoo.distributions.conjugate import dirichlet
from bayeszoo.distributions.conjugate.categorical import normalized_length
from bayeszoo.distributions.conjugate.law import Block
from bayeszoo.distributions.posterior import Marginal
from bayeszoo.distributions.special import log_beta_ratio
from bayeszoo.distributions.statistics.counts import Trials
from bayeszoo.foundation.named import Arrays, Params


@dataclass(frozen=True, eq=False)
class Chance[S: Trials](Block[S]):
    """Rows with numbers of successes and failures; the chance of success ~ Beta(a, b), both (*axes).

    The posterior is Beta(a + successes, b + failures).
    """

    a: np.ndarray
    b: np.ndarray
    own: ClassVar[Any] = (0,)

    @property
    def unbounded(self) -> str:
        """The reason if a or b is below 1."""
        return self._grows(np.minimum(self.a, self.b) < 1, "a or b", f"{self.names[0]} goes to 0 or 1")

    @abstractmethod
    def _trials(self, rows: Arrays, ndim: int) -> tuple[np.ndarray, np.ndarray]:
        """Return successes and failures of each row, with N axes."""

    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log probability of the trials of each row, (..., n, *axes)."""
        (p,), (successes, failures) = self._at_rows(params), self._trials(rows, 1 + len(self.axes))
        return scipy.special.xlogy(successes, p) + scipy.special.xlog1py(failures, -p)

    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return the mean of `log_density` over the chances, (n, *axes)."""
        successes, failures = self._trials(rows, 1 + len(self.axes))
        total = scipy.special.digamma(self.a + self.b)
        of_yes, of_no = (scipy.special.digamma(count) - total for count in (self.a, self.b))
        return successes * of_yes + failures * of_no

    def updated(self, stats: S) -> Self:
        """Return Beta(a + successes, b + failures)."""
        return replace(self, a=self.a + stats.successes, b=self.b + stats.failures)

    def log_evidence(self, stats: S) -> np.ndarray:
        """Return log B(a + successes, b + failures) - log B(a, b), (..., *axes)."""
        return log_beta_ratio(self.a, self.b, stats.successes, stats.failures)

    def typical(self) -> dict[str, np.ndarray]:
        """Return the means."""
        return {self.names[0]: self.a / (self.a + self.b)}

    def mode(self) -> dict[str, np.ndarray]:
        """Return (a - 1) / (a + b - 2), which may lie on an edge."""
        self._refuse((self.a < 1) | (self.b < 1), f"is unbounded at {0 if np.any(self.a < 1) else 1}")
        self._refuse((self.a == 1) & (self.b == 1), "is flat")
        return {self.names[0]: (self.a - 1) / ((self.a - 1) + (self.b - 1))}

    def mle(self, stats: S) -> dict[str, np.ndarray]:
        """Return the observed shares of successes."""
        total = np.asarray(stats.successes + stats.failures)
        self._require_observed(total)
        return {self.names[0]: stats.successes / total}

    def log_each(self, params: Params) -> np.ndarray:
        """Log Beta density, (..., *axes)."""
        return np.asarray(frozen.beta(self.a, self.b).logpdf(params[self.names[0]]))

    def divergence(self, prior: Self) -> float:
        """Return KL(self || prior) in nats."""
        counts, prior_counts = (np.stack([block.a, block.b], axis=-1) for block in (self, prior))
        return dirichlet.divergence(counts, prior_counts)

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw chances, (*size, *axes)."""
        return {self.names[0]: rng.beta(self.a, self.b, (*size, *self.axes))}

    def marginals(self) -> dict[str, Marginal]:
        """Return Beta distributions."""
        return {self.names[0]: frozen.beta(self.a, self.b)}


@dataclass(frozen=True, eq=False)
class Bernoulli(Chance[Trials]):
    """Binary outcomes 1 or 0 (-1: missing), or successes of trials; the chance ~ Beta(a, b), both (*axes).

    ``trials`` names the column of numbers of trials, by default one for each row. Densities are of the ordered trials.
    """

    trials: str = ""

    def normalized_length(self, stats: Trials) -> float | None:
        """Return the code length of the ordered trials by normalized maximum likelihood; None for several chances."""
        return None if np.ndim(self.a) else normalized_length(np.array([stats.successes, stats.failures]))

    def _trials(self, rows: Arrays, ndim: int) -> tuple[np.ndarray, np.ndarray]:
        """Return successes and failures of each row, with N axes."""
        y = np.asarray(rows[self.column], dtype=np.float64)
        is_observed = y >= 0
        trials = np.asarray(rows[self.trials], dtype=np.float64) if self.trials else 1.0
        shape = (len(y), *(1,) * (ndim - 1))
        return np.where(is_observed, y, 0.0).reshape(shape), np.where(is_observed, trials - y, 0.0).reshape(shape)

    def statistics(self, rows: Arrays, weights: np.ndarray) -> Trials:
        """Count successes and failures."""
        return Trials(*(np.sum(weights * counts, axis=0) for counts in self._trials(rows, weights.ndim)))

    def each(self, rows: Arrays) -> Trials:
        """Return the successes and failures of each row."""
        return Trials(*self._trials(rows, 1 + len(self.axes)))

    def entropy(self, params: Params) -> np.ndarray:
        """Return the entropy of a trial, (..., *axes)."""
        return information.entropy(_success_and_failure(params[self.names[0]]))

    def entropy_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and sd of the entropy, (*axes)."""
        alpha = np.stack([self.a, self.b], axis=-1)
        return information.mean_entropy(alpha), information.sd_entropy(alpha)

    def row_divergence(self, params: Params, other: Self, others: Params) -> np.ndarray:
        """Return KL of a trial, (..., *axes)."""
        return information.divergence(
            _success_and_failure(params[self.names[0]]), _success_and_failure(others[other.names[0]])
        )


def _success_and_failure(success: np.ndarray) -> np.ndarray:
    """Return the chances of yes and no, (..., 2)."""
    return np.stack([success, 1 - np.asarray(success)], axis=-1)
