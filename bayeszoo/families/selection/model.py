"""What a linear regression can do whose terms may be out: everything is summed over subsets, or drawn with them."""

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
    """A linear regression with unknown noise: each term but the intercept is in with probability ``pi``.

    That is known, or ~ Beta(a, b). Weights have prior covariance sigma2 V0, given that the excluded weights are 0.
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
        """Return the degrees of freedom of a row: it is a mixture of Student t, alike in these."""
        return float(2 * self.a0 + len(data["y"]))

    def precision(self, units: np.ndarray) -> np.ndarray:
        """Return the prior precision (T, T) of the weights, times the noise variance, by the units of the terms."""
        root = covariance_root("V0", self.V0, len(units))
        return np.asarray(np.linalg.inv(root @ root.T) * np.outer(units, units))

    def selection(self, stats: FactoredMoments) -> Selection:
        """Return data and prior, from which every subset follows."""
        rows, outcome = self.equations(stats)
        root, fixed = covariance_root("V0", self.V0, rows.shape[1]), int(self.intercept)
        log_prior = log_prior_of_sizes(rows.shape[1] - fixed, self.a, self.b, self.pi)
        return Selection(rows, outcome, root, fixed, stats.n, float(self.a0), float(self.b0), log_prior)

    def units_and_origin(self, stats: FactoredMoments) -> tuple[np.ndarray, np.ndarray]:
        """Return the units of the weights, and what they are measured from, each (T,)."""
        units = self.units(stats)
        return units, self.origin(len(units))

    @property
    def share(self) -> tuple[float, float] | None:
        """The numbers of the Beta prior of ``pi``; None where it is known."""
        return (self.a, self.b) if self.pi is None else None

    def augmented(self, params: Params, data: Arrays, rng: np.random.Generator) -> tuple[dict[str, Any], float]:
        """Return which terms are in, and the slab for the weights; terms that are out are drawn from the slab."""
        units, origin = self.units_and_origin(self.statistics(data))
        return slab(params, np.diag(self.precision(units)), origin, int(self.intercept), rng)

    def posterior(self, stats: FactoredMoments) -> Posterior:
        """Return weights and noise variance, and the share of terms that are in, averaged over all subsets."""
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
        """Return which terms are in, and sigma, the standard deviation of one observation."""
        is_in = np.asarray(params["w"])[..., int(self.intercept) :] != 0
        return {"included": is_in.astype(np.float64), "sigma": np.sqrt(np.asarray(params["sigma2"]))}

    def derived_marginals(self, stats: FactoredMoments) -> dict[str, Marginal]:
        """Return the probability of each term of being in, and the distribution of sigma."""
        return all_subsets(self.selection(stats)).derived()

    def remarks(self, stats: FactoredMoments | None, data: Arrays) -> tuple[str, ...]:
        """Say which subset is the most probable, where all can be gone through."""
        stats = self.statistics(data) if stats is None else stats
        names = self.coords(data)["slope"]
        best = [all_subsets(self.selection(stats)).best(names)] if 0 < len(names) <= MOST_TERMS else []
        return (*super().remarks(stats, data), *best)
