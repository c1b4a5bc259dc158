"""Sums over all trees of cuts given the noise: density of rows, probabilities of leaves, and single trees.

A box at depth d that can be cut is cut with probability alpha (1 + d)^-beta, and never at the last depth; the feature
is uniform among those with a cut inside, then the cut is uniform. Rows in a leaf are normal about its value, a
conjugate block. Chipman, George and McCulloch 1998.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import lazy_loader
import numpy as np

from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.families.partitions.boxes import Boxes
from bayeszoo.foundation.blocks import blocks

Choice = Callable[[np.ndarray], int]

loops = lazy_loader.load("bayeszoo.likelihoods.loops.partitions", suppress_warning=True)


class TreePrior(NamedTuple):
    """The prior of a tree: ``alpha`` and ``beta`` of its cuts, ``mean`` and ``sd`` of the values of its leaves."""

    alpha: float
    beta: float
    mean: float
    sd: float

    def log_cut(self, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the log probabilities that a box at depth 0, 1, .. is not cut, and that it is cut, each (depth,)."""
        cut = self.alpha * (1.0 + np.arange(depth)) ** -self.beta
        return np.log1p(-cut), np.log(cut)

    def leaves(self, variance: np.ndarray) -> Normal:
        """Return the prior of leaves' values given variances (P,) of the noise, with axes (P, 1)."""
        column = np.reshape(variance, (-1, 1))
        ones = np.ones_like(column)
        kappa = column / self.sd**2
        return Normal(("value",), "y", self.mean * ones, kappa, ones, ones, variance=column)


class Passes(NamedTuple):
    """At P values of the noise: log densities (P,), probabilities of leaves (P, N), first cuts and places (P, C)."""

    log_density: np.ndarray
    leaves: np.ndarray
    first_cuts: np.ndarray
    places: np.ndarray


@dataclass(frozen=True)
class Tree:
    """A box that is a leaf, or is cut in two: ``split`` is the index of the cut, -1 for a leaf."""

    box: int
    split: int = -1
    sides: tuple[Tree, ...] = ()

    def leaves(self) -> Iterator[int]:
        """Yield the boxes of the leaves, from left to right."""
        if not self.sides:
            yield self.box
        for side in self.sides:
            yield from side.leaves()


@dataclass(frozen=True, eq=False)
class TreeSums:
    """Moments of the rows in boxes, and the prior of trees."""

    boxes: Boxes
    prior: TreePrior
    moments: Moments

    def log_leaves(self, variance: np.ndarray) -> np.ndarray:
        """Return the log density of the rows of each box as a leaf, (P, N)."""
        return self.prior.leaves(variance).log_evidence(self.moments)

    def _up(self, leaf: np.ndarray, is_highest: bool = False) -> np.ndarray:
        """Return the log density of each box's rows summed over all trees below each depth, (D + 1, N), or the best."""
        up = np.empty((self.boxes.depth + 1, len(leaf)))
        if is_highest:
            loops.upward(leaf, self.trees, True, up)
        else:
            loops.log_densities(leaf, self.trees, up)
        return up

    def log_density(self, variance: np.ndarray) -> np.ndarray:
        """Return the log density of all rows at variances (P,) of the noise, summed over all trees, (P,)."""
        return np.array([loops.log_density(leaf, self.trees) for leaf in self._leaves_by_variance(variance)])

    @cached_property
    def trees(self) -> Any:
        """The boxes and their cuts, as `bayeszoo.likelihoods.loops.partitions.Trees`."""
        boxes = self.boxes
        ends = (np.ascontiguousarray(end[:, 0]) for end in (boxes.low, boxes.high))
        cuts = self.prior.log_cut(boxes.depth)
        return loops.Trees(boxes.by_end, *ends, *boxes.splits, *cuts, boxes.has_cuts.astype(np.float64))

    def _leaves_by_variance(self, variance: np.ndarray) -> Iterator[np.ndarray]:
        for block in blocks(len(variance), len(self.boxes.low)):
            yield from self.log_leaves(variance[block])

    def passes(self, variance: np.ndarray) -> Passes:
        """Return densities, and probabilities of leaves and cuts, at variances (P,) of the noise."""
        cuts, count = np.empty(len(self.boxes.cell)), self.boxes.first_cuts
        density, leaves = np.empty(len(variance)), np.empty((len(variance), len(self.boxes.low)))
        first_cuts, places = np.empty((len(variance), count)), np.empty((len(variance), count))
        for p, leaf in enumerate(self._leaves_by_variance(variance)):
            density[p] = loops.passed(leaf, self.trees, leaves[p], cuts)
            first_cuts[p] = cuts[:count]
            places[p] = self.boxes.of_places(cuts)
        return Passes(density, leaves, first_cuts, places)

    def number_of_leaves(self, variance: np.ndarray) -> np.ndarray:
        """Return the posterior probability of each number of leaves, from 0, at variances (P,) of the noise.

        It is computed from its generating function at roots of unity, by the discrete Fourier transform.
        """
        most = int(min(2.0**self.boxes.depth, np.prod(self.boxes.high[0].astype(np.float64))))
        points = np.exp(-2j * np.pi * np.arange((most + 1) // 2 + 1) / (most + 1))
        values = np.empty((self.boxes.depth + 1, len(self.boxes.low), len(points)), dtype=np.complex128)
        probabilities = np.empty((len(variance), most + 1))
        for p, leaf in enumerate(self._leaves_by_variance(variance)):
            loops.generating(leaf, self.trees, self._up(leaf), points, values)
            probabilities[p] = np.fft.irfft(values[0, 0], most + 1)
        return np.maximum(probabilities, 0.0)

    def slope(self, variance: float) -> float:
        """Return the derivative of the log density in the variance: the posterior mean of the leaves' derivatives."""
        leaves = self.passes(np.array([variance])).leaves[0]
        n, total = self.moments.n, variance + self.moments.n * self.prior.sd**2
        squares = n * np.square(self.moments.less(self.prior.mean))
        slopes = (self.moments.scatter / variance - (n - 1)) / variance + (squares / total - 1) / total
        return float(leaves @ slopes) / 2

    def drawn(self, variance: np.ndarray, rng: np.random.Generator) -> Iterator[Tree]:
        """Draw a tree from its posterior at each of the variances (P,)."""
        for leaf in self._leaves_by_variance(variance):
            up = self._up(leaf)
            yield self._tree(leaf, up, lambda heights: int(np.argmax(heights + rng.gumbel(size=len(heights)))))

    def highest(self, variance: np.ndarray) -> Iterator[Tree]:
        """Return the most probable tree at each of the variances (P,)."""
        for leaf in self._leaves_by_variance(variance):
            yield self._tree(leaf, self._up(leaf, is_highest=True), lambda heights: int(np.argmax(heights)))

    def _tree(self, leaf: np.ndarray, up: np.ndarray, choose: Choice, box: int = 0, d: int = 0) -> Tree:
        """Return the tree by choosing at each box whether and where to cut it."""
        if d == self.boxes.depth or not self.boxes.has_cuts[box]:
            return Tree(box)
        splits, parent = self.boxes.splits, self.boxes.parent_of[box]
        log_stop, log_split = self.prior.log_cut(d + 1)
        cuts, below = slice(splits.first[parent], splits.first[parent + 1]), up[d + 1]
        heights = below[splits.left[cuts]] + below[splits.right[cuts]] + splits.log_share[cuts]
        chosen = choose(np.append(heights + log_split[d], log_stop[d] + leaf[box]))
        if chosen == len(heights):
            return Tree(box)
        s = int(splits.first[parent]) + chosen
        sides = (self._tree(leaf, up, choose, int(side[s]), d + 1) for side in (splits.left, splits.right))
        return Tree(box, s, tuple(sides))

    def log_probability(self, tree: Tree, variance: np.ndarray, log_density: np.ndarray) -> np.ndarray:
        """Return the log posterior probability of a tree at variances (P,), given log densities summed over trees."""
        places = list(tree.leaves())
        return (
            self.prior.leaves(variance).log_evidence(self.moments[places]).sum(axis=1)
            + self.log_prior(tree)
            - log_density
        )

    def log_prior(self, tree: Tree, d: int = 0) -> float:
        """Return the log prior probability of a tree."""
        if d == self.boxes.depth or not self.boxes.has_cuts[tree.box]:
            return 0.0
        log_stop, log_split = (log_p[d] for log_p in self.prior.log_cut(d + 1))
        if not tree.sides:
            return float(log_stop)
        return float(log_split + self.boxes.splits.log_share[tree.split]) + sum(
            self.log_prior(side, d + 1) for side in tree.sides
        )
