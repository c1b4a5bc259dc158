"""Models of a step function whose places are cut in two, and their parts again: the trees of these cuts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.function import OfFunction


@dataclass(frozen=True)
class Part:
    """A part of the places of features: a leaf, where the function is constant, or cut in two.

    Attributes
    ----------
    rows : int
        How many rows lie in it.
    mean, sd : float
        Of the function's value were it a leaf, given the tree.
    feature, cut : int, float
        The feature that it is cut along, -1 of a leaf, and where: rows at the cut or below are on its first side.
    sides : tuple of Part
        Both sides, or none of a leaf.
    """

    rows: int
    mean: float
    sd: float
    feature: int = -1
    cut: float = np.nan
    sides: tuple[Part, ...] = ()

    def leaves(self) -> Iterator[Part]:
        """Go through the leaves, from left to right."""
        if not self.sides:
            yield self
        for side in self.sides:
            yield from side.leaves()


@dataclass(frozen=True, eq=False)
class CutTrees:
    """What the posterior says of the trees at points (P,) of the noise.

    Attributes
    ----------
    feature, cut : numpy.ndarray
        Of each place that may be cut (C,): the feature's number, and where it is.
    first, anywhere : numpy.ndarray
        The posterior probability that the first cut is there (P, C), and that any cut is.
    leaves : numpy.ndarray
        Posterior probability of each number of leaves (P, L), from 0.
    tree : Part
        The most probable tree found, by the average over the points.
    tree_probability, most_probable : numpy.ndarray
        Its posterior probability (P,), and that of the most probable tree at each point among those found.
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
        """Return what rows seen say of the trees, averaged over points of the parameters (P,) by their weights."""

    @abstractmethod
    def cut_places(self, data: Arrays) -> tuple[np.ndarray, ...]:
        """Return where each feature may be cut, ascending."""
