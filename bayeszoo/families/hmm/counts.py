"""Poisson counts as the emissions of hidden Markov models, with Gamma priors.

Densities are written as distances from their largest value: of a count of 1e12 the terms of k log(rate) - rate -
log(k!) are near 3e13, and their sum would be off by hundredths.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from scipy.special import digamma, gammaln

from bayeszoo.distributions import frozen
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.special import deviance, log_peak
from bayeszoo.errors import NumericalError
from bayeszoo.families.hmm import passes
from bayeszoo.families.hmm.emissions import Emissions, OfRows
from bayeszoo.families.hmm.passes import Sums
from bayeszoo.families.hmm.tables import Pair
from bayeszoo.families.mixtures.base import clusters
from bayeszoo.model.base import Values


class PoissonCounts(Emissions):
    """Poisson(rates_k), rates_k ~ Gamma(a, rate b).

    Hyperparameters are the shapes and rates of Gamma distributions, each (K,); statistics the expected sums of the
    counts and of the rows.
    """

    own = ("rates",)

    def __init__(self, K: int, a: float, b: float) -> None:
        self.K, self.free, self.a, self.b = K, K, float(a), float(b)
        self.unbounded = "a < 1: it grows without bound as a rate goes to 0" if a < 1 and K > 1 else ""

    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which counts are no masks."""
        return np.asarray(y) >= 0

    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log Poisson mass."""
        k = np.maximum(y, 0).astype(np.float64)[:, None]
        return np.where(self.seen(y)[:, None], log_peak(k) - deviance(k, np.asarray(params["rates"])), 0.0)

    def expected_log_density(self, hyper: tuple[np.ndarray, np.ndarray], y: np.ndarray) -> np.ndarray:
        """Return its expectation under Gamma distributions."""
        shape, rate = hyper
        k = np.maximum(y, 0).astype(np.float64)[:, None]
        of_means = log_peak(k) - deviance(k, shape / rate)
        return np.where(self.seen(y)[:, None], of_means + k * digamma_less_log(shape), 0.0)

    def smoothed(self, tables: Pair, log_density: OfRows, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Add up in one compiled pass over the distinct counts."""
        values, codes = distinct(y)
        found = passes.table_sums(*tables, log_density(values).T, codes, starts)
        return found._replace(emitted=(found.emitted @ values, found.emitted.sum(axis=1)))

    def moments(self, each: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return expected sums (K,) of the counts, and numbers of rows."""
        seen = self.seen(y)
        return each[seen].T @ y[seen].astype(np.float64), each[seen].sum(axis=0)

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
        shape, rate = hyper
        events = self.b * shape / rate
        of_shapes = (shape - self.a) * digamma_less_log(shape) + np.log(shape) + log_peak(shape) + gammaln(self.a)
        return float(np.sum(of_shapes - self.a * np.log(events) + events))

    def posterior(self, hyper: tuple[np.ndarray, np.ndarray]) -> list[Posterior]:
        """Return Gamma distributions."""
        return [Posterior({"rates": frozen.gamma(hyper[0], scale=1 / hyper[1])})]

    def log_pairs(self, hyper: tuple[np.ndarray, np.ndarray], params: Values) -> np.ndarray:
        """Log Gamma densities."""
        return log_gamma(np.asarray(params["rates"])[..., None, :], hyper[0][:, None], hyper[1][:, None])

    def log_evidence(self, paths: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log mass of the counts: at the posterior mean of a rate, likelihood times prior over posterior."""
        k, each = y[self.seen(y)].astype(np.float64), paths[:, self.seen(y)] == np.arange(self.K)[:, None, None]
        shape, rate = self.a + each @ k, self.b + each.sum(axis=-1)
        mean = shape / rate
        means, which = np.unique(mean, return_inverse=True)  # few paths differ in them
        of_rows = np.sum(deviance(k, means[:, None])[which.reshape(mean.shape)], axis=-1, where=each)
        of_states = log_gamma(mean, self.a, self.b) - log_gamma(mean, shape, rate) - of_rows
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


def digamma_less_log(x: Any) -> np.ndarray:
    """Return digamma(x) - log(x): the expected logarithm under Gamma(x, rate) less that of the mean.

    From 16 on by its series (Abramowitz and Stegun 1964, 6.3.18), as both are large and alike.
    """
    large = np.maximum(np.asarray(x, dtype=np.float64), 16.0)
    inverse = large**-2
    terms = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))))
    return np.where(np.asarray(x) < 16.0, digamma(x) - np.log(x), -0.5 / large - terms)
