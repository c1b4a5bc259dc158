"""Steps shared by models of trees of cuts: sums over all trees given the noise, and the function."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Regression
from bayeszoo.distributions import frozen
from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.scale import POSITIVE
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import InputError
from bayeszoo.families.partitions.boxes import Boxes
from bayeszoo.families.partitions.cuts import read_cuts, rectangle
from bayeszoo.families.partitions.rows import RowsOfCells, cells_of, mixture
from bayeszoo.families.partitions.summary import summarized
from bayeszoo.families.partitions.sums import TreePrior, TreeSums
from bayeszoo.foundation.named import Arrays, Params, Statistics
from bayeszoo.model.capabilities.conditional import Conditional
from bayeszoo.model.capabilities.cuts import CutTrees, OfCuts
from bayeszoo.model.fields import whole
from bayeszoo.model.types import DeclaredModel

ours = lazy_loader.load("bayeszoo.families.partitions.declaration", suppress_warning=True)

GUESSES = np.logspace(-4, 0.3, 16)
"""Candidate noise variances, in units of the outcome's: the best is the guess."""


@dataclass(frozen=True)
class PartitionModel(Conditional, OfCuts, family=True):
    """Outcomes about a function that is constant on the boxes of a tree of cuts; trees are summed out.

    Given the noise variance ``sigma2``, the sum over all trees is exact, with the leaves' values integrated out. The
    tree and its values are no parameters: a model declares their prior by `tree_prior`.

    Parameters
    ----------
    depth : int
        Most cuts on the way to a leaf; at most 2 with several features.
    cuts : tuple of float, or one for each feature
        The possible cuts of features, ascending; rows at a cut are on its left. Shorter tuples repeat their last cut.
    """

    depth: int = whole(5, "depth", kw_only=True)
    cuts: tuple[Any, ...] = field(default=(-1.0, -0.5, 0.0, 0.5, 1.0), kw_only=True)

    inputs = Regression("y")
    outer = {"sigma2": POSITIVE}  # noqa: RUF012
    nonnegative, usual_method = ("sigma2", "sigma"), "exact"
    _kept: ClassVar[dict[str, Any]]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "cuts", rectangle(read_cuts(self.cuts)))
        object.__setattr__(self, "_kept", {})

    @property
    @abstractmethod
    def tree_prior(self) -> TreePrior:
        """The prior of trees and of the values of their leaves."""

    # Rows and cells

    def cut_places(self, data: Arrays) -> tuple[np.ndarray, ...]:
        """Return the cuts of each feature of the data."""
        cuts, count = read_cuts(self.cuts), len(data["feature"])
        if len(cuts) not in (1, count):
            raise InputError(f"cuts are of {len(cuts)} features, and the data have {count}", "wrong_shape")
        return cuts * count if len(cuts) == 1 else cuts

    def relabelled(self, axis: str, permutation: np.ndarray) -> Any:
        """Return the model for data whose features are in another order."""
        cuts = read_cuts(self.cuts)
        if axis != "feature" or len(cuts) == 1:
            return super().relabelled(axis, permutation)
        return super().relabelled(axis, permutation).replaced(cuts=rectangle(tuple(cuts[i] for i in permutation)))

    def sums(self, data: Arrays) -> TreeSums:
        """Return the sums over trees for the rows; boxes are computed once per data set."""
        if self._kept.get("data") is not data:
            cuts = self.cut_places(data)
            boxes = Boxes.of(tuple(len(of_feature) + 1 for of_feature in cuts), self.depth)
            moments = boxes.moments(cells_of(data["X"], cuts), np.asarray(data["y"], dtype=np.float64))
            self._kept.clear()
            self._kept.update(data=data, sums=TreeSums(boxes, self.tree_prior, moments))
        sums: TreeSums = self._kept["sums"]
        return sums

    # Steps

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the noise, and the density of the rows summed over all trees, as trees have no gradient."""
        import pymc as pm

        with pm.Model() as model:
            pm.Potential("y", ours.summed(self.sums(data), **self.declared_outer()))
        return model

    def marginalized(self, data: Arrays) -> DeclaredModel:
        """Declare the same density by compiled loops, with its gradient."""
        import pymc as pm

        with pm.Model() as model:
            pm.Potential("y", ours.compiled(self.sums(data), **self.declared_outer()))
        return model

    def outer_guess(self, data: Arrays) -> dict[str, tuple[float, float]]:
        """Guess the noise variance by the highest of several shares of the outcome's variance."""
        points = GUESSES * (Moments.of(data["y"]).sd ** 2 if len(data["y"]) else 1.0)
        heights = self.log_outer_prior({"sigma2": points}) + self.log_marginal({"sigma2": points}, data)
        return {"sigma2": (float(points[np.argmax(heights)]), 1.0)}

    def log_marginal(self, outer: Params, data: Arrays) -> Any:
        """Return the log density of the rows, summed over all trees."""
        variance = np.asarray(outer["sigma2"], dtype=np.float64)
        return self.sums(data).log_density(np.ravel(variance)).reshape(variance.shape)[()]

    def marginal_slopes(self, outer: Params, data: Arrays) -> dict[str, float]:
        """Return the derivative of the log density of the rows at one point."""
        return {"sigma2": self.sums(data).slope(float(outer["sigma2"]))}

    def function(self, params: Params, seen: Arrays, new: Arrays) -> RowLaw:
        """Return the function at each new row: a mixture of normals over the leaves that may contain the row."""
        return self._mixtures(params, seen, new, False)

    def law(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator | None = None) -> RowLaw:
        """Return the distribution of each new row: that of the function plus noise."""
        return self._mixtures(params, seen, new, True)

    def _mixtures(self, params: Params, seen: Arrays, new: Arrays, is_noisy: bool) -> RowLaw:
        sums, variance = self.sums(seen), np.asarray(params["sigma2"], dtype=np.float64)
        column = np.reshape(variance, (-1, 1))
        leaves = sums.passes(column[:, 0]).leaves
        value = sums.prior.leaves(column[:, 0]).updated(sums.moments)
        sd = np.sqrt(column / value.kappa + (column if is_noisy else 0.0))
        cells, group = np.unique(cells_of(new["X"], self.cut_places(new)), axis=0, return_inverse=True)
        laws = []
        for cell in cells:
            boxes = np.flatnonzero(sums.boxes.containing(cell[None], np.arange(len(sums.boxes.low)))[0])
            laws.append(mixture(leaves[:, boxes], value.m[:, boxes], sd[:, boxes], variance.shape))
        law: RowLaw = RowsOfCells(laws, np.ravel(group))
        return law

    def held_out(self, params: Params, seen: Arrays, places: np.ndarray) -> RowLaw:
        """Return the distribution of each row given all others, at the same cuts.

        The probability of a tree without a row is proportional to its probability with the row, divided by the density
        of the row given the others in its leaf.
        """
        sums, variance = self.sums(seen), np.asarray(params["sigma2"], dtype=np.float64)
        column = np.reshape(variance, (-1, 1))
        leaves, prior = sums.passes(column[:, 0]).leaves, sums.prior.leaves(column[:, 0])
        cells, laws = cells_of(seen["X"], self.cut_places(seen)), []
        for i in places:
            boxes = np.flatnonzero(sums.boxes.containing(cells[i : i + 1], np.arange(len(sums.boxes.low)))[0])
            value = prior.updated(sums.moments[boxes] - Moments(1.0, seen["y"][i], 0.0, 0.0))
            sd = np.sqrt(column + column / value.kappa)
            with np.errstate(divide="ignore"):
                log_weights = np.log(leaves[:, boxes]) - frozen.norm(value.m, sd).logpdf(seen["y"][i])
            weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
            laws.append(mixture(weights, value.m, sd, variance.shape))
        law: RowLaw = RowsOfCells(laws, np.arange(len(places)))
        return law

    def remarks(self, stats: Statistics, data: Arrays) -> tuple[str, ...]:
        """Say how to show the trees, and which features are cut at a selection of places only."""
        lines = ["the function and its trees are no parameters: bayeszoo steps shows them, of a fit saved with -o"]
        for name, column, cuts in zip(data["feature"], data["X"].T, self.cut_places(data), strict=True):
            if len(cuts) < (count := len(np.unique(column)) - 1):
                lines.append(f"{name} is cut at {len(cuts):,} of {count:,} places between its values")
        return tuple(lines)

    def cut_trees(self, params: Params, weights: np.ndarray, seen: Arrays) -> CutTrees:
        """Return the posterior of cuts and trees, averaged over values of the noise (P,) with weights (P,)."""
        return summarized(self.sums(seen), self.cut_places(seen), np.asarray(params["sigma2"]), weights)

    def share_of_prior(self, draws: Params, seen: Arrays, new: Arrays) -> np.ndarray:
        """Return the posterior variance of the function at new rows as a share of the prior's, at mean draws."""
        mean = {name: np.asarray(values.mean(axis=0)) for name, values in draws.items()}
        return np.asarray(self.function(mean, seen, new).var() / self.tree_prior.sd**2)

    def drawn_function(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw a tree and its leaves' values for each draw of the noise, and return the function at all new rows."""
        sums, variance = self.sums(seen), np.asarray(params["sigma2"], dtype=np.float64)
        cells = cells_of(new["X"], self.cut_places(new))
        value = sums.prior.leaves(np.ravel(variance)).updated(sums.moments)
        drawn = np.empty((variance.size, len(cells)))
        for p, tree in enumerate(sums.drawn(np.ravel(variance), rng)):
            boxes = np.array(list(tree.leaves()))
            noise = rng.standard_normal(len(boxes))
            values = value.m[p, boxes] + np.sqrt(variance.flat[p] / value.kappa[p, boxes]) * noise
            drawn[p] = values[np.argmax(sums.boxes.containing(cells, boxes), axis=1)]
        return drawn.reshape(*variance.shape, len(cells))

    def drawn_rows(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw functions, and new rows about them."""
        return np.asarray(rng.normal(self.drawn_function(params, seen, new, rng), np.sqrt(params["sigma2"])[..., None]))

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return sigma, the standard deviation of one observation."""
        return {"sigma": np.sqrt(np.asarray(params["sigma2"]))}

    # Simulation

    def simulated_places(self, rng: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        """Draw random places around the cuts of each feature."""
        cuts = read_cuts(self.cuts)
        ends = np.array([(of_feature[0], of_feature[-1]) for of_feature in cuts])
        margin = np.maximum(np.ptp(ends, axis=1), 1.0) / 4
        X = rng.uniform(ends[:, 0] - margin, ends[:, 1] + margin, (size, len(cuts)))
        return {"X": X, "feature": np.array([f"x{j + 1}" for j in range(len(cuts))], dtype=str)}

    def simulated_function(self, rng: np.random.Generator, data: Arrays) -> np.ndarray:
        """Draw a tree from its prior, cut by cut, and its leaves' values; return the function at the rows."""
        cuts = self.cut_places(data)
        values = np.empty(len(data["X"]))
        for rows in self._cut_at_random(rng, np.arange(len(values)), data["X"], cuts, 0):
            values[rows] = rng.normal(self.tree_prior.mean, self.tree_prior.sd)
        return values

    def _cut_at_random(self, rng: Any, rows: np.ndarray, X: np.ndarray, cuts: Any, d: int) -> Any:
        """Draw a tree; yield the rows of each leaf."""
        features = [j for j, of_feature in enumerate(cuts) if len(of_feature)]
        prior = self.tree_prior
        if d == self.depth or not features or rng.random() >= prior.alpha * (1.0 + d) ** -prior.beta:
            yield rows
            return
        j = features[rng.integers(len(features))]
        k = rng.integers(len(cuts[j]))
        is_left = X[rows, j] <= cuts[j][k]
        for side, left in ((is_left, cuts[j][:k]), (~is_left, cuts[j][k + 1 :])):
            yield from self._cut_at_random(rng, rows[side], X, (*cuts[:j], left, *cuts[j + 1 :]), d + 1)
