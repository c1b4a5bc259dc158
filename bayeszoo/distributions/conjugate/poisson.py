"""Counts with a Gamma prior on their rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from bayeszoo.distributions import frozen, information
from bayeszoo.distributions.conjugate.law import Block
from bayeszoo.distributions.posterior import Marginal
from bayeszoo.distributions.special import (
    deviance,
    digamma_less_log,
    gamma_divergence,
    log_gamma,
    log_negative_binomial,
    log_peak,
)
from bayeszoo.distributions.statistics.events import Events
from bayeszoo.foundation.named import Arrays, Params


@dataclass(frozen=True, eq=False)
class Poisson(Block[Events]):
    """Counts (n,), -1: missing; the rate per unit of exposure ~ Gamma(a, rate b), both (*axes).

    ``exposure`` names the column of exposures, by default 1. The posterior
    is Gamma(a + events, rate b + exposure). Densities are distances from their maximum: for a count of 1e12 the
    terms of k log(rate) - rate - log(k!) are near 3e13, and their sum would have errors of 0.01.
    """

    a: np.ndarray
    b: np.ndarray
    exposure: str = ""
    own: ClassVar[Any] = (0,)

    @property
    def unbounded(self) -> str:
        """The reason if a is below 1."""
        return self._grows(self.a < 1, "a", f"{self.names[0]} goes to 0")

    def _counts(self, rows: Arrays, ndim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return counts, exposures and whether rows are observed, each with N axes."""
        y = np.asarray(rows[self.column])
        y = y.reshape(len(y), *(1,) * (ndim - 1))
        exposure, is_observed = np.asarray(rows[self.exposure]).reshape(y.shape) if self.exposure else 1.0, y >= 0
        return np.where(is_observed, y, 0.0), np.where(is_observed, exposure, 0.0), is_observed

    def statistics(self, rows: Arrays, weights: np.ndarray) -> Events:
        """Add up events and exposure."""
        y, exposure, _ = self._counts(rows, weights.ndim)
        return Events.weighted(y, exposure, weights)

    def each(self, rows: Arrays) -> Events:
        """Return the events and the exposure of each row."""
        y, exposure, _ = self._counts(rows, 1 + len(self.axes))
        return Events(y, exposure, log_peak(y), np.zeros(y.shape))

    def _masses(self, rates: object, rows: Arrays, gap: object = 0.0) -> np.ndarray:
        y, exposure, is_observed = self._counts(rows, 1 + len(self.axes))
        return np.where(is_observed, log_peak(y) - deviance(y, exposure * rates) + y * gap, 0.0)

    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log Poisson mass, (..., n, *axes)."""
        return self._masses(self._at_rows(params)[0], rows)

    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return the mean of `log_density` over the rates, (n, *axes)."""
        return self._masses(self.a / self.b, rows, digamma_less_log(self.a))

    def updated(self, stats: Events) -> Self:
        """Return Gamma(a + events, rate b + exposure)."""
        return replace(self, a=self.a + stats.events, b=self.b + stats.exposure)

    def log_evidence(self, stats: Events) -> np.ndarray:
        """Log marginal likelihood of the ordered counts: negative binomial for their sum, plus theirs given the sum."""
        pooled = log_negative_binomial(stats.events, self.a, self.b, stats.exposure)
        return pooled - log_peak(stats.events) + stats.peaks - stats.deviance

    def entropy(self, params: Params) -> np.ndarray:
        """Return the entropy of a count with exposure 1, (..., *axes)."""
        return information.entropy_of_rates(np.asarray(params[self.names[0]]))

    def row_divergence(self, params: Params, other: Self, others: Params) -> np.ndarray:
        """Return KL of a count with exposure 1, (..., *axes): the deviance."""
        return deviance(params[self.names[0]], others[other.names[0]])

    def typical(self) -> dict[str, np.ndarray]:
        """Return the means."""
        return {self.names[0]: self.a / self.b}

    def mode(self) -> dict[str, np.ndarray]:
        """Return (a - 1) / b, which may be the edge 0."""
        self._refuse(self.a < 1, "is unbounded at 0")
        return {self.names[0]: (self.a - 1) / self.b}

    def mle(self, stats: Events) -> dict[str, np.ndarray]:
        """Return events over exposure."""
        exposure = np.asarray(stats.exposure)
        self._require_observed(exposure)
        return {self.names[0]: stats.events / exposure}

    def log_each(self, params: Params) -> np.ndarray:
        """Log Gamma density, (..., *axes)."""
        return log_gamma(params[self.names[0]], self.a, self.b)

    def divergence(self, prior: Self) -> float:
        """Return KL(self || prior) in nats."""
        return float(np.sum(gamma_divergence(self.a, self.b, prior.a, prior.b)))

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw rates, (*size, *axes)."""
        return {self.names[0]: rng.standard_gamma(self.a, (*size, *self.axes)) / self.b}

    def marginals(self) -> dict[str, Marginal]:
        """Return Gamma distributions."""
        return {self.names[0]: frozen.gamma(self.a, scale=1 / self.b)}
