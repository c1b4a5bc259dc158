"""A Dirichlet process mixture whose concentration alpha is a parameter: full Bayes, by Gibbs sampling.

Escobar and West 1995, JASA 90, 577-588; alpha is drawn given the clusters alone, its density in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from bayeszoo.distributions.averaged import RowLaw
from bayeszoo.distributions.conjugate.mixture import MixturePrior
from bayeszoo.distributions.priors import Prior
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.errors import InputError
from bayeszoo.families.mixtures.dirichlet_process import DirichletProcessMixture, SplitMergeChain, truncation_error
from bayeszoo.families.mixtures.sticks import Sticks
from bayeszoo.foundation.named import Arrays, Coords, Params, Statistics
from bayeszoo.foundation.slices import sliced
from bayeszoo.model.base import Axes
from bayeszoo.model.capabilities import Symmetric
from bayeszoo.model.observable import Latent, Observable
from bayeszoo.model.over_draws import OverDrawn, made_over

HIGH = 0.99
"""Level of the quantile of alpha's prior at which the truncation error is reported."""
_DRAWN = 10_000
SWEEPS = 5
"""Most sweeps over the rows per draw of alpha, which costs as much as one sweep."""


@dataclass(frozen=True)
class OverProcess(OverDrawn, Latent, Observable, Symmetric, family=True):
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

    def remarks(self, stats: Statistics, data: Arrays) -> tuple[str, ...]:
        """State the truncation error, and that the number of clusters estimates no true number."""
        drawn = np.random.default_rng(0)
        alpha = float(np.quantile([self.priors["alpha"].rvs(drawn) for _ in range(_DRAWN)], HIGH))
        error = truncation_error(alpha, self.K, len(data["Y"]))
        held = f"{self.K} sticks stand for infinitely many: at alpha {alpha:.3g}, the {HIGH:.0%} quantile of its "
        held += f"prior, the distribution of the rows is off by at most {error:.1g}"
        return (held, *self.base.remarks(stats, data)[1:])

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
        self._of_alpha, self._alpha = prior, float(base.alpha)
        super().__init__(base.prior(data), data, base.vb_start(data, rng).q, rng)

    def sweep(self, times: int, power: float = 1.0) -> None:
        """Draw the clusters of the rows, and alpha, in N sweeps."""
        for done in range(0, times, SWEEPS):
            super().sweep(min(SWEEPS, times - done), power)
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
