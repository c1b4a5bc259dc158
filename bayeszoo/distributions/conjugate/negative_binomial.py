"""Overdispersed counts: negative binomial with known size, and a Beta prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions.conjugate.bernoulli import Chance
from bayeszoo.distributions.special import log_rising
from bayeszoo.distributions.statistics.counts import Failures
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Arrays, Params


@dataclass(frozen=True, eq=False)
class NegativeBinomial(Chance[Failures]):
    """Counts (n,), -1: missing, ~ NegativeBinomial(size * exposure, p); p ~ Beta(a, b), both (*axes).

    They are failures before size * exposure successes with chance p; or Poisson counts whose rate, drawn anew for
    each unit of exposure, is Gamma(size, rate p / (1 - p)). ``exposure`` names the column of exposures, by default
    1. The posterior is Beta(a + size * exposure, b + events).
    """

    size: Any = 1.0
    exposure: str = ""

    def _trials(self, rows: Arrays, ndim: int) -> tuple[np.ndarray, np.ndarray]:
        """Return size times exposure and the count of each row, with N axes."""
        y = np.asarray(rows[self.column], dtype=np.float64)
        is_observed = y >= 0
        exposure = np.asarray(rows[self.exposure]) if self.exposure else np.ones(len(y))
        if np.any(impossible := (y > 0) & ~(exposure > 0)):
            problem = f"row {np.argmax(impossible) + 1} has events but no exposure"
            raise InputError(problem, "events_without_exposure", hint="give it an exposure > 0")
        shape = (len(y), *(1,) * (ndim - 1))
        return np.where(is_observed, exposure, 0.0).reshape(shape) * self.size, np.where(is_observed, y, 0.0).reshape(
            shape
        )

    def _of_trials(self, rows: Arrays, ndim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return `_trials` and the log number of orders of the failures, each with N axes."""
        size, counts = self._trials(rows, ndim)
        orders = log_rising(np.where(counts > 0, size, 1.0), counts) - scipy.special.gammaln(counts + 1)
        return size, counts, orders

    def statistics(self, rows: Arrays, weights: np.ndarray) -> Failures:
        """Sum sizes, counts and the log numbers of their orders."""
        return Failures(*(np.sum(weights * values, axis=0) for values in self._of_trials(rows, weights.ndim)))

    def each(self, rows: Arrays) -> Failures:
        """Return the size, the count and the log number of orders of each row."""
        return Failures(*np.broadcast_arrays(*self._of_trials(rows, 1 + len(self.axes))))

    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log negative binomial mass, (..., n, *axes)."""
        return super().log_density(params, rows) + self._of_trials(rows, 1 + len(self.axes))[2]

    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return the mean of `log_density` over the chances, (n, *axes)."""
        return super().expected_log_density(rows) + self._of_trials(rows, 1 + len(self.axes))[2]

    def log_evidence(self, stats: Failures) -> np.ndarray:
        """Log marginal likelihood of the ordered counts, (..., *axes)."""
        return super().log_evidence(stats) + stats.log_orders

    def row_mean(self, params: Params) -> np.ndarray:
        """Return the mean of a count with exposure 1."""
        p = np.asarray(params[self.names[0]])
        return np.asarray(self.size * (1 - p) / p)
