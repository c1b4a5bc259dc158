"""Posterior probabilities of cuts, numbers of leaves and single trees, averaged over the noise."""

from __future__ import annotations

import numpy as np

from bayeszoo.families.partitions.sums import Tree, TreeSums
from bayeszoo.model.capabilities.cuts import CutTrees, Part


def summarized(sums: TreeSums, cuts: tuple[np.ndarray, ...], variance: np.ndarray, weights: np.ndarray) -> CutTrees:
    """Return the posterior of cuts and leaves at noise variances (P,) with weights (P,), and the most probable tree.

    The candidates are the trees that are the most probable at one of the variances.
    """
    passes = sums.passes(variance)
    best = [(tree, sums.log_probability(tree, variance, passes.log_density)) for tree in set(sums.highest(variance))]
    at_each = np.exp(np.array([log_p for _, log_p in best]))
    chosen = int(np.argmax(at_each @ weights))
    tree, probability = best[chosen][0], at_each[chosen]
    splits = slice(0, passes.first_cuts.shape[1])
    feature, cell = sums.boxes.feature[splits], sums.boxes.cell[splits]
    return CutTrees(
        feature=feature,
        cut=np.array([cuts[j][k - 1] for j, k in zip(feature, cell, strict=True)]),
        first=passes.first_cuts,
        anywhere=passes.places,
        leaves=sums.number_of_leaves(variance),
        tree=_part(sums, cuts, tree, variance, weights * probability),
        tree_probability=probability,
        most_probable=at_each.max(axis=0),
    )


def _part(sums: TreeSums, cuts: tuple[np.ndarray, ...], tree: Tree, variance: np.ndarray, weights: np.ndarray) -> Part:
    """Return the nodes of a tree, with values averaged over the noise given the tree."""
    value, share = sums.prior.leaves(variance).updated(sums.moments[[tree.box]]), weights / weights.sum()
    means = value.m[:, 0]
    mean = share @ means
    spread = share @ (variance / value.kappa[:, 0] + np.square(means - mean))
    rows = round(float(sums.moments.n[tree.box]))
    sides = tuple(_part(sums, cuts, side, variance, weights) for side in tree.sides)
    if not sides:
        return Part(rows, float(mean), float(np.sqrt(spread)))
    feature, cell = int(sums.boxes.feature[tree.split]), int(sums.boxes.cell[tree.split])
    return Part(rows, float(mean), float(np.sqrt(spread)), feature, float(cuts[feature][cell - 1]), sides)
