"""Linear regression with variable selection: exact sums over subsets of terms, or draws of subsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bayeszoo.distributions.posterior import Marginal, Posterior
from bayeszoo.families.linear.least_squares import covariance_root
from bayeszoo.families.linear.model import LinearModel
from bayeszoo.families.selection.chain import SelectionChain
from bayeszoo.families.selection.subsets import MOST_TERMS, Selection, all_subsets, averaged, log_prior_of_sizes, slab
from bayeszoo.families.statistics.factored import FactoredMoments
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.base import Axes
from bayeszoo.model.capabilities import Collapsed, PointMasses, Predictive


@dataclass(frozen=True)
class SelectionModel(LinearModel, Predictive[FactoredMoments], Collapsed, PointMasses, family=True):
    """A linear regression with unknown noise: each term except the intercept is included with probability ``pi``.

    ``pi`` is known, or ~ Beta(a, b). Weights have prior covariance sigma2 V0, given that excluded weights are 0.
    """

    dims: ClassVar[Axes] = {"w": ("term",), "included": ("slope",)}
    atoms = ("w", "included")

    if TYPE_CHECKING:
        V0: float = 1.0
        a0: float = 1.0
        b0: float = 1.0
        a: float = 1.0
        b: float = 1.0
        pi: float | None = None

    def moments_below(self, data: Arrays) -> float:
        """Return the degrees of freedom of a row, a mixture of Student t with the same degrees."""
        return float(2 * self.a0 + len(data["y"]))

    def precision(self, units: np.ndarray) -> np.ndarray:
        """Return the prior precision (T, T) of the weights, times the noise variance, from the units of the terms."""
        root = covariance_root(self.V0, len(units))
        return np.asarray(np.linalg.inv(root @ root.T) * np.outer(units, units))

    def selection(self, stats: FactoredMoments) -> Selection:
        """Return data and prior in the form that gives the posterior of any subset."""
        rows, outcome = self.equations(stats)
        root, fixed = covariance_root(self.V0, rows.shape[1]), int(self.intercept)
        log_prior = log_prior_of_sizes(rows.shape[1] - fixed, self.a, self.b, self.pi)
        return Selection(rows, outcome, root, fixed, stats.n, float(self.a0), float(self.b0), log_prior)

    def units_and_origin(self, stats: FactoredMoments) -> tuple[np.ndarray, np.ndarray]:
        """Return the units of the weights, and their prior means, each (T,)."""
        units = self.units(stats)
        return units, self.origin(len(units))

    @property
    def share(self) -> tuple[float, float] | None:
        """The parameters of the Beta prior of ``pi``; None if it is known."""
        return (self.a, self.b) if self.pi is None else None

    def augmented(self, params: Params, data: Arrays, rng: np.random.Generator) -> tuple[dict[str, Any], float]:
        """Return the inclusion of terms, and the slab for the weights; excluded weights are drawn from the slab."""
        units, origin = self.units_and_origin(self.statistics(data))
        return slab(params, np.diag(self.precision(units)), origin, int(self.intercept), rng)

    def posterior(self, stats: FactoredMoments) -> Posterior:
        """Return the posterior of weights, noise variance and share of included terms, averaged over all subsets."""
        return averaged(self.selection(stats), *self.units_and_origin(stats), self.share)

    def log_evidence(self, stats: FactoredMoments) -> float:
        """Return the log density of the outcomes, summed over all subsets."""
        return all_subsets(self.selection(stats)).log_evidence

    def predictive(self, stats: FactoredMoments, data: Arrays) -> Any:
        """Return each row's predictive: a mixture of the Student t distributions of all subsets."""
        return all_subsets(self.selection(stats)).predictive(self._with_intercept(self.slopes(data)[0]), self.m0)

    def gibbs(self, data: Arrays, rng: np.random.Generator) -> SelectionChain:
        """Return a chain over subsets of terms, weights and noise integrated out."""
        stats = self.statistics(data)
        return SelectionChain(self.selection(stats), *self.units_and_origin(stats), self.share, rng)

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return the inclusion of terms, and sigma, the standard deviation of one observation."""
        is_in = np.asarray(params["w"])[..., int(self.intercept) :] != 0
        return {"included": is_in.astype(np.float64), "sigma": np.sqrt(np.asarray(params["sigma2"]))}

    def derived_marginals(self, stats: FactoredMoments) -> dict[str, Marginal]:
        """Return the inclusion probability of each term, and the distribution of sigma."""
        return all_subsets(self.selection(stats)).derived()

    def remarks(self, stats: FactoredMoments | None, data: Arrays) -> tuple[str, ...]:
        """Name the most probable subset, if all can be enumerated."""
        stats = self.statistics(data) if stats is None else stats
        names = self.coords(data)["slope"]
        best = [all_subsets(self.selection(stats)).best(names)] if 0 < len(names) <= MOST_TERMS else []
        return (*super().remarks(stats, data), *best)
