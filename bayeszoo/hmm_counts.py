"""Poisson counts as the emissions of hidden Markov models, with Gamma priors."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy
from scipy.special import digamma, gammaln

from bayeszoo import kmeans
from bayeszoo.errors import NumericalError
from bayeszoo.families import Posterior, log_rising
from bayeszoo.hmm_emissions import Emissions, Sums, table_sums
from bayeszoo.hmm_tables import Pair
from bayeszoo.model import Values


class Counts(Emissions):
    """Poisson(rates_k), rates_k ~ Gamma(a, rate b).

    Hyperparameters are the shapes and rates of Gamma distributions, each (K,); statistics the expected sums of the
    counts and of the rows.
    """

    own: ClassVar[tuple[str, ...]] = ("rates",)  # type: ignore[misc]

    def __init__(self, K: int, a: float, b: float) -> None:
        self.K, self.a, self.b = K, float(a), float(b)

    @property
    def free(self) -> int:
        """Return K."""
        return self.K

    @property
    def unbounded(self) -> str:
        """Say so where the shape is below 1."""
        return "a < 1: it grows without bound as a rate goes to 0" if self.a < 1 and self.K > 1 else ""

    def seen(self, y: np.ndarray) -> np.ndarray:
        """Say which counts are no masks."""
        return np.asarray(y) >= 0

    def _log_mass(self, log_rates: np.ndarray, rates: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log mass, with the expectations of the logarithm and of the rate."""
        k = np.maximum(y, 0).astype(np.float64)[:, None]
        log_power = np.where(k > 0, k * log_rates, 0.0)
        return np.where(self.seen(y)[:, None], log_power - rates - gammaln(k + 1), 0.0)

    def log_density(self, params: Values, y: np.ndarray) -> np.ndarray:
        """Log Poisson mass."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._log_mass(np.log(params["rates"]), np.asarray(params["rates"]), y)

    def expected_log_density(self, hyper: tuple[np.ndarray, np.ndarray], y: np.ndarray) -> np.ndarray:
        """Return its expectation under Gamma distributions."""
        shape, rate = hyper
        return self._log_mass(digamma(shape) - np.log(rate), shape / rate, y)

    def sums(self, tables: Pair, params: Values, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Add up in one compiled pass over the distinct counts."""
        return self._distinct_sums(tables, lambda values: self.log_density(params, values), y, starts)

    def expected_sums(self, tables: Pair, hyper: Any, y: np.ndarray, starts: np.ndarray) -> Sums:
        """Add up in one compiled pass over the distinct counts."""
        return self._distinct_sums(tables, lambda values: self.expected_log_density(hyper, values), y, starts)

    def _distinct_sums(self, tables: Pair, log_mass: Any, y: np.ndarray, starts: np.ndarray) -> Sums:
        values, codes = distinct(y)
        found = table_sums(tables, log_mass(values).T, codes, starts)
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
        of_shapes = (shape - self.a) * digamma(shape) - gammaln(shape) + gammaln(self.a)
        return float(np.sum(of_shapes + self.a * np.log(rate / self.b) + shape * (self.b - rate) / rate))

    def posterior(self, hyper: tuple[np.ndarray, np.ndarray]) -> list[Posterior]:
        """Return Gamma distributions."""
        return [Posterior({"rates": scipy.stats.gamma(hyper[0], scale=1 / hyper[1])})]

    def log_pairs(self, hyper: tuple[np.ndarray, np.ndarray], params: Values) -> np.ndarray:
        """Log Gamma densities."""
        rates = np.asarray(params["rates"])[..., None, :]
        return np.asarray(scipy.stats.gamma.logpdf(rates, hyper[0][:, None], scale=1 / hyper[1][:, None]))

    def log_evidence(self, paths: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log mass of the counts: negative binomial."""
        seen = self.seen(y)
        k, each = y[seen].astype(np.float64), paths[:, seen] == np.arange(self.K)[:, None, None]
        total, rows = each @ k, each.sum(axis=-1)
        of_states = log_rising(self.a, total) - self.a * np.log1p(rows / self.b) - total * np.log(self.b + rows)
        return np.asarray(of_states.sum(axis=0) - gammaln(k + 1).sum())

    def next_mean(self, params: Values, next_state: np.ndarray) -> np.ndarray:
        """Return the mean."""
        return np.sum(next_state * params["rates"], axis=-1)

    def ordered(self, params: Values) -> dict[str, np.ndarray]:
        """Return the rates in order."""
        return {"sorted_rates": np.sort(params["rates"], axis=-1)}

    def clusters(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the nearest of K rows, chosen by k-means++."""
        return kmeans.clusters(y[:, None].astype(np.float64), self.K, rng)


def distinct(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct counts of a series, and the code of each row, -1 where it is masked."""
    seen = y >= 0
    values, where = np.unique(y[seen], return_inverse=True)
    codes = np.full(len(y), -1, dtype=np.int64)
    codes[seen] = where
    return values, codes
