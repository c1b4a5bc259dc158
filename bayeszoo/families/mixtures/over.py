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
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.slices import sliced
from bayeszoo.model.base import Axes
from bayeszoo.model.capabilities import Symmetric
from bayeszoo.model.observable import Latent, Observable
from bayeszoo.model.over_draws import OverDrawn, made_over

HIGH = 0.99
"""Level of the quantile of alpha's prior at which the error of holding the process at K sticks is said."""
_DRAWN = 10_000
SWEEPS = 5
"""Sweeps over the rows, at most, for each draw of alpha, which costs as much as one of them."""


@dataclass(frozen=True)
class OverProcess(OverDrawn, Latent, Observable, Symmetric, family=True):
    """A Dirichlet process mixture with its concentration as a parameter; made by `bz.over`.

    Parameters
    ----------
    base : DirichletProcessMixture
        The model; its other fields stay.
    priors : mapping of str to Prior
        Of ``alpha``.
    """

    of: ClassVar[type[DirichletProcessMixture]]
    unread, prior_orders_labels = DirichletProcessMixture.unread, True
    gibbs_options: ClassVar[Mapping[str, int]] = DirichletProcessMixture.gibbs_options

    def __post_init__(self) -> None:
        super().__post_init__()
        if tuple(self.priors) != ("alpha",):
            raise InputError("of a Dirichlet process alpha alone can be a parameter", "unknown_field")
        object.__setattr__(self, "K", self.base.K)

    def dims_of_others(self) -> Axes:
        """Return the axes of weights, means and covariances."""
        dims: Axes = self.base.dims
        return dims

    def coords(self, data: Arrays) -> dict[str, Any]:
        """Return the labels along the axes of the parameters."""
        coords: dict[str, Any] = self.base.coords(data)
        return coords

    def gibbs(self, data: Arrays, rng: np.random.Generator) -> ConcentrationChain:
        """Return a chain over alpha and the clusters of the rows, the other parameters integrated out."""
        return ConcentrationChain(self.base, self.priors["alpha"], data, rng)

    def remarks(self, stats: Any, data: Arrays) -> tuple[str, ...]:
        """Say what holding the process at K sticks costs, and what the number of clusters is not."""
        drawn = np.random.default_rng(0)
        alpha = float(np.quantile([self.priors["alpha"].rvs(drawn) for _ in range(_DRAWN)], HIGH))
        error = truncation_error(alpha, self.K, len(data["Y"]))
        held = f"{self.K} sticks stand for infinitely many: at alpha {alpha:.3g}, the {HIGH:.0%} quantile of its "
        held += f"prior, the distribution of the rows is off by at most {error:.1g}"
        return (held, *self.base.remarks(stats, data)[1:])

    # Rows, given the parameters

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's mixture; parameters of shape (..., own shape) give (..., rows)."""
        law: RowLaw = self.base.likelihood(params, data)
        return law

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return what the model does."""
        derived: dict[str, np.ndarray] = self.base.derived(params)
        return derived

    def component_probabilities(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the probability of each stick for each row, (..., rows, K)."""
        return np.asarray(self.base.component_probabilities(params, data))

    def exchangeable_axis(self) -> str | None:
        """Return the axis whose labels mean nothing."""
        axis: str | None = self.base.exchangeable_axis()
        return axis

    def invariants(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return quantities that do not depend on the labels, and alpha."""
        own: dict[str, np.ndarray] = self.base.invariants(params, data)
        return {**own, "alpha": np.asarray(params["alpha"])}


class ConcentrationChain(SplitMergeChain):
    """Clusters given alpha, in turn with alpha given the clusters, by slice sampling of its coordinate."""

    def __init__(self, base: DirichletProcessMixture, prior: Prior, data: Arrays, rng: np.random.Generator) -> None:
        self._of_alpha, self._alpha = prior, float(base.alpha)
        super().__init__(base.prior(data), data, base.vb_start(data, rng).q, rng)

    def sweep(self, times: int, power: float = 1.0) -> None:
        """Draw the clusters of the rows, and alpha, in N sweeps."""
        for at in range(0, times, SWEEPS):
            super().sweep(min(SWEEPS, times - at), power)
            self._draw_alpha()

    def _draw_alpha(self) -> None:
        K = len(self._prior.weights.alpha)
        counts, scale = Counts(np.bincount(self._component, minlength=K).astype(np.float64)), self._of_alpha.scale

        def height(x: float) -> float:
            alpha = float(scale.value(x))
            own = float(self._of_alpha.logpdf(alpha)) + float(scale.log_slope(np.asarray(x)))
            total = own + float(Sticks.of(alpha, K).log_evidence(counts)) if math.isfinite(own) else -math.inf
            return total if math.isfinite(total) else -math.inf

        at = float(scale.place(self._alpha))
        self._alpha = float(scale.value(sliced(height, at, height(at), self._rng)[0]))
        self._prior = MixturePrior((Sticks.of(self._alpha, K), self._prior.law))

    def draw(self) -> dict[str, np.ndarray]:
        """Draw the parameters given the clusters and alpha."""
        return {"alpha": np.asarray(self._alpha), **super().draw()}


@cache
def kind_over(of: type[DirichletProcessMixture]) -> type[OverDrawn]:
    """Return the class of mixtures of a class with alpha as a parameter."""
    return made_over(of, OverProcess)
