"""A Dirichlet process mixture whose concentration alpha is a parameter: full Bayes.

Escobar and West 1995, JASA 90, 577-588: alpha depends on the rows through their clusters alone. Gibbs sampling draws it
given these, a sum over the partitions of few rows integrates over it, and in variational Bayes it has a Gamma q.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.conjugate.mixture import MixturePrior
from bayeszoo.distributions.conjugate.product import Expected
from bayeszoo.distributions.posterior import Marginal, Posterior
from bayeszoo.distributions.priors import Gamma, Prior
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.errors import InputError
from bayeszoo.families.mixtures.concentration import Concentrated, Concentration, concentration_of
from bayeszoo.families.mixtures.dirichlet_process import (
    MAX_ERROR,
    DirichletProcessMixture,
    SplitMergeChain,
    by_size,
    distinct_sizes,
    log_partitions,
    sticks_for,
    truncation_error,
)
from bayeszoo.families.mixtures.sticks import Sticks, log_density_at
from bayeszoo.families.statistics.assignments import log_evidence_of
from bayeszoo.foundation.named import Arrays, Coords, Params, Statistics
from bayeszoo.foundation.numerics.slices import sliced
from bayeszoo.model.base import Axes
from bayeszoo.model.capabilities import Enumerable, PriorDensity, Symmetric, Variational
from bayeszoo.model.capabilities.observable import Observable
from bayeszoo.model.capabilities.steps import Expectation
from bayeszoo.model.outer.over_draws import OverDrawn, made_over

HIGH = 0.99
"""Level of the quantile of alpha's prior at which the truncation error is reported."""
_DRAWN = 10_000
SWEEPS = 5
"""Sweeps over the rows per draw of alpha, which costs as much as several."""


@dataclass(frozen=True)
class OverProcess(OverDrawn, Enumerable, Variational, PriorDensity, Observable, Symmetric, family=True):
    """A Dirichlet process mixture with its concentration as a parameter; made by `bz.over`.

    Parameters
    ----------
    base : DirichletProcessMixture
        The model; its other fields stay.
    priors : mapping of str to Prior
        The prior of ``alpha``.
    """

    of: ClassVar[type[DirichletProcessMixture]]
    unread, prior_orders_labels = DirichletProcessMixture.unread, True
    gibbs_options: ClassVar[Mapping[str, int]] = DirichletProcessMixture.gibbs_options

    def __post_init__(self) -> None:
        super().__post_init__()
        if tuple(self.priors) != ("alpha",):
            raise InputError("only alpha of a Dirichlet process can be a parameter", "unknown_field")
        object.__setattr__(self, "K", self.base.K)

    def dims_of_others(self) -> Axes:
        """Return the axes of weights, means and covariances."""
        dims: Axes = self.base.dims
        return dims

    def coords(self, data: Arrays) -> Coords:
        """Return the labels along the axes of the parameters."""
        coords: dict[str, Any] = self.base.coords(data)
        return coords

    def gibbs(self, data: Arrays, rng: np.random.Generator) -> ConcentrationChain:
        """Return a chain over alpha and the clusters of the rows, the other parameters integrated out."""
        return ConcentrationChain(self.base, self.priors["alpha"], data, rng)

    # Few rows

    def _concentration(self, data: Arrays) -> Concentration:
        return concentration_of(self.priors["alpha"], self.K, len(data["Y"]))

    def log_joint(self, assignments: np.ndarray, data: Arrays) -> np.ndarray:
        """Return log p(y, z), alpha and the other parameters integrated out, of assignments (M, rows); (M,)."""
        of_alpha, law = self._concentration(data), self.base.prior(data).law
        counts = np.stack([np.sum(assignments == k, axis=1) for k in range(self.K)], axis=1)
        distinct, index = np.unique(counts, axis=0, return_inverse=True)
        of_counts = np.array([of_alpha.on_sticks(row).log_integral for row in distinct.astype(np.float64)])
        return np.asarray(of_counts[index.ravel()] + log_evidence_of(law, data, assignments))

    def log_partitions(self, partitions: np.ndarray, data: Arrays) -> np.ndarray:
        """Return log p(y, partition), alpha integrated out too, (M,)."""
        of_alpha, law = self._concentration(data), self.base.prior(data).law
        return log_partitions(law, partitions, data, lambda sizes: of_alpha.of_clusters(sizes).log_integral)

    def with_labels(self, partition: np.ndarray, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw the stick of each cluster of a partition."""
        sizes, cluster = by_size(partition)
        return self._concentration(data).labels(sizes, rng).draw(rng)[cluster]

    def posterior_given(self, assignment: np.ndarray, data: Arrays) -> Posterior:
        """Return the posterior of all parameters given the stick of each row."""
        stats = self.base.expected_statistics(np.eye(self.K)[assignment], data)
        counts, of_rows = stats.stats.parts
        law = stats.prior.law.updated(of_rows)
        return Posterior.product(self._concentration(data).posterior(counts.counts), law.posterior())

    def marginals_over(self, partitions: np.ndarray, probabilities: np.ndarray, data: Arrays) -> dict[str, Marginal]:
        """Return the exact posterior of alpha."""
        distinct, index = distinct_sizes(partitions)
        shares = np.bincount(index, probabilities)
        return {"alpha": self._concentration(data).mixed(dict(zip(distinct, shares.tolist(), strict=True)))}

    def one_component(self) -> Self:
        """Return the model with one stick."""
        return self.replaced(base=self.base.replaced(K=1))

    # Variational Bayes

    def _gamma(self) -> Gamma:
        if not isinstance(prior := self.priors["alpha"], Gamma):
            raise InputError(
                f"q(alpha) has a closed form under a Gamma prior alone, not alpha ~ {prior}",
                "method_unavailable",
                hint="use --method gibbs, or give alpha a Gamma prior",
            )
        return prior

    def log_prior(self, params: Params, data: Arrays) -> np.ndarray:
        """Log density of the prior; leading axes of the parameters are draws."""
        alpha, weights = (np.asarray(params[name], dtype=np.float64) for name in ("alpha", "weights"))
        of_weights = self.priors["alpha"].logpdf(alpha) + log_density_at(alpha, weights)
        return np.asarray(of_weights + self.base.prior(data).law.logpdf(params))

    def vb_start(self, data: Arrays, rng: np.random.Generator) -> Concentrated:
        """Return a random q to climb from."""
        prior, q = self._gamma(), self.base.vb_start(data, rng)
        return Concentrated.best(prior, self.base.vb_e_step(q, data).stats)

    def vb_e_step(self, q: Concentrated, data: Arrays) -> Expectation:
        """Return expected statistics under the best q(z), and the sum of its log normalizers."""
        expectation: Expectation = self.base.vb_e_step(q.others, data)
        return expectation

    def vb_row_terms(self, q: Concentrated, data: Arrays) -> np.ndarray:
        """Return the log normalizer of each row, (rows,)."""
        return np.asarray(self.base.vb_row_terms(q.others, data))

    def vb_m_step(self, stats: Expected[MixturePrior]) -> Concentrated:
        """Return the best q."""
        return Concentrated.best(self._gamma(), stats)

    def divergence(self, q: Concentrated) -> float:
        """Return KL(q || prior) in nats."""
        return q.divergence(self._gamma())

    def vb_posterior(self, q: Concentrated) -> Posterior:
        """Return q as a distribution of the parameters."""
        return q.posterior

    def vb_log_density(self, q: Concentrated, params: Params) -> np.ndarray:
        """Log density of q; sticks are not exchangeable."""
        return np.asarray(q.posterior.logpdf(params))

    def occupied(self, q: Concentrated) -> int:
        """Return the number of sticks with an expected number of rows of at least one under q(z)."""
        return int(self.base.occupied(q.others))

    def remarks(self, stats: Statistics, data: Arrays) -> tuple[str, ...]:
        """State the truncation error, and that the number of clusters estimates no true number."""
        drawn = np.random.default_rng(0)
        alpha = float(np.quantile([self.priors["alpha"].rvs(drawn) for _ in range(_DRAWN)], HIGH))
        error = truncation_error(alpha, self.K, len(data["Y"]))
        truncation = f"{self.K} sticks stand for infinitely many: at alpha {alpha:.3g}, the {HIGH:.0%} quantile of its "
        truncation += f"prior, the distribution of the rows is off by at most {error:.1g}"
        if error > MAX_ERROR:
            truncation += f"; a model with K={sticks_for(alpha, len(data['Y']))} takes it below {MAX_ERROR:g}"
        return (truncation, *self.base.remarks(stats, data)[1:])

    # Rows, given the parameters

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's mixture; parameters with leading axes (...) give (..., rows)."""
        law: RowLaw = self.base.likelihood(params, data)
        return law

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return the derived quantities of the base model."""
        derived: dict[str, np.ndarray] = self.base.derived(params)
        return derived

    def component_probabilities(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the probability of each stick for each row, (..., rows, K)."""
        return np.asarray(self.base.component_probabilities(params, data))

    def exchangeable_axis(self) -> str | None:
        """Return the exchangeable axis."""
        axis: str | None = self.base.exchangeable_axis()
        return axis

    def invariants(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return quantities that do not depend on the labels, and alpha."""
        of_base: dict[str, np.ndarray] = self.base.invariants(params, data)
        return {**of_base, "alpha": np.asarray(params["alpha"])}


class ConcentrationChain(SplitMergeChain):
    """Clusters given alpha, in turn with alpha given the clusters, by slice sampling of its coordinate."""

    def __init__(self, base: DirichletProcessMixture, prior: Prior, data: Arrays, rng: np.random.Generator) -> None:
        self._of_alpha, self._alpha, self._swept = prior, float(base.alpha), 0
        super().__init__(base.prior(data), data, base.vb_start(data, rng).q, rng)

    def sweep(self, times: int, power: float = 1.0) -> None:
        """Draw the clusters of the rows in N sweeps, and alpha after every fifth."""
        while times > 0:
            ahead = min(SWEEPS - self._swept, times)
            super().sweep(ahead, power)
            self._swept, times = (self._swept + ahead) % SWEEPS, times - ahead
            if not self._swept:
                self._draw_alpha()

    def _draw_alpha(self) -> None:
        K = len(self._prior.weights.alpha)
        counts, scale = Counts(np.bincount(self._component, minlength=K).astype(np.float64)), self._of_alpha.scale

        def height(x: float) -> float:
            alpha = float(scale.value(x))
            log_prior = float(self._of_alpha.logpdf(alpha)) + float(scale.log_slope(np.asarray(x)))
            if not math.isfinite(log_prior):
                return -math.inf
            total = log_prior + float(Sticks.of(alpha, K).log_evidence(counts))
            return total if math.isfinite(total) else -math.inf

        x = float(scale.place(self._alpha))
        self._alpha = float(scale.value(sliced(height, x, height(x), self._rng)[0]))
        self._prior = MixturePrior((Sticks.of(self._alpha, K), self._prior.law))

    def draw(self) -> dict[str, np.ndarray]:
        """Draw the parameters given the clusters and alpha."""
        return {"alpha": np.asarray(self._alpha), **super().draw()}


@cache
def kind_over(of: type[DirichletProcessMixture]) -> type[OverDrawn]:
    """Return the class of mixtures of a class with alpha as a parameter."""
    return made_over(of, OverProcess)
