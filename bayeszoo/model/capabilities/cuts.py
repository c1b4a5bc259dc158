"""Models of a step function of features: trees of binary cuts with a constant value on each leaf."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.capabilities.function import OfFunction


@dataclass(frozen=True)
class Part:
    """A node of a tree: a leaf, on which the function is constant, or a node that is cut in two.

    Attributes
    ----------
    rows : int
        Number of rows in it.
    mean, sd : float
        Posterior mean and sd of the function's value if the node were a leaf.
    feature, cut : int, float
        The feature that is cut, -1 for a leaf, and the threshold: rows at or below it are on the first side.
    sides : tuple of Part
        The two sides; empty for a leaf.
    """

    rows: int
    mean: float
    sd: float
    feature: int = -1
    cut: float = np.nan
    sides: tuple[Part, ...] = ()

    def nodes(self) -> Iterator[Part]:
        """Iterate over all nodes, each before its sides."""
        yield self
        for side in self.sides:
            yield from side.nodes()

    def leaves(self) -> Iterator[Part]:
        """Iterate over the leaves from left to right."""
        if not self.sides:
            yield self
        for side in self.sides:
            yield from side.leaves()


@dataclass(frozen=True, eq=False)
class CutTrees:
    """Posterior summaries of the trees at P values of the noise.

    Attributes
    ----------
    feature, cut : numpy.ndarray
        The feature's number and the threshold of each possible cut, shape (C,).
    first, anywhere : numpy.ndarray
        Posterior probability of each cut as the first one, and of being anywhere in the tree, (P, C).
    leaves : numpy.ndarray
        Posterior probability of each number of leaves (P, L), from 0.
    tree : Part
        The most probable tree found, on average over the P points.
    tree_probability, most_probable : numpy.ndarray
        Posterior probability of ``tree`` (P,), and of the most probable tree found at each point.
    """

    feature: np.ndarray
    cut: np.ndarray
    first: np.ndarray
    anywhere: np.ndarray
    leaves: np.ndarray
    tree: Part
    tree_probability: np.ndarray
    most_probable: np.ndarray


class OfCuts(OfFunction, family=True):
    """The function is constant on the leaves of a tree of cuts of the features."""

    beyond = "the function stays at its last step"

    @abstractmethod
    def cut_trees(self, params: Params, weights: np.ndarray, seen: Arrays) -> CutTrees:
        """Return the posterior of trees given the rows seen, averaged by weights over P points of the parameters."""

    @abstractmethod
    def cut_places(self, data: Arrays) -> tuple[np.ndarray, ...]:
        """Return the possible thresholds of each feature, ascending."""
