"""Steps of models whose features depend on each other along a given tree."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from bayeszoo.data.inputs import tables_of
from bayeszoo.distributions.conjugate.product import LabelledStats
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.errors import InputError
from bayeszoo.families.trees.layout import Layout, TreePrior, as_edges, even_pairs, pair_counts
from bayeszoo.families.trees.rows import TreeRows
from bayeszoo.families.trees.structure import most_probable_tree
from bayeszoo.foundation.named import Arrays, Coords, Params
from bayeszoo.model.capabilities.closed import BlockModel
from bayeszoo.model.capabilities.observable import Completes
from bayeszoo.model.fields import plain


class TreeModel(BlockModel[LabelledStats], Completes, family=True):
    """Levels of features, each depending on its parent feature in a tree; a subclass declares it.

    Parameters are ``theta`` (cells,), the probabilities of the levels of each feature given each level of its parent.
    """

    alpha: Any
    tree: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        tree = self.tree
        if tree is None:
            return
        if isinstance(tree, str) or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in tree):
            raise InputError("tree must be pairs of names of features", "wrong_type", hint='such as [["a", "b"]]')
        object.__setattr__(self, "tree", tuple(sorted(tuple(sorted(map(str, pair))) for pair in tree)))

    def prior(self, labels: Arrays) -> TreePrior:
        """Return the prior of the tables, from the labels of the data's axes."""
        levels, features = tables_of(labels), list(map(str, labels["feature"]))
        edges, size = as_edges(self.tree, features), sum(map(len, levels))
        if isinstance(edges, str):
            raise InputError(edges, "wrong_tree", hint="name each edge by two features")
        is_total = np.ndim(self.alpha) == 0
        pairs = even_pairs(self.alpha, levels) if is_total else self.entries("alpha", (size, size))
        return TreePrior(pairs, Layout(levels, edges, features.index(min(features))))

    def coords(self, data: Arrays) -> Coords:
        """Return the labels of the cells, ``child=level | parent=level``."""
        return {**super().coords(data), "cell": self.prior(data).layout.labels(data["level"])}

    def sizes(self, data: Arrays) -> dict[str, int]:
        """Return the numbers of features, levels and cells."""
        return {**super().sizes(data), "cell": int(self.prior(data).layout.starts[-1])}

    def statistics(self, data: Arrays) -> LabelledStats:
        """Count each pair of levels; raise `InputError` if a level is missing."""
        return LabelledStats((Counts(pair_counts(data)),), labels={name: data[name] for name in self.inputs.coords})

    def remarks(self, stats: LabelledStats, data: Arrays) -> tuple[str, ...]:
        """Say so where the tree is the most probable one: its evidence is the highest of all trees, not their mean."""
        if np.ndim(self.alpha) or self.tree != type(self)(tree=most_probable_tree(data, stats.parts[0].counts)).tree:
            return ()
        line = "the tree is the most probable one given these rows, and its log evidence the highest of all trees"
        return (f"{line}: `bayeszoo trees` averages over them",)

    def block(self, stats: LabelledStats) -> TreePrior:
        """Return the prior for data with these statistics."""
        return self.prior(stats.labels)

    def from_block(self, block: TreePrior) -> Self:
        """Return the model whose prior is a block."""
        return self.replaced(alpha=plain(block.pairs))

    def likelihood(self, params: Params, data: Arrays) -> TreeRows:
        """Return the law of the levels of each row; parameters may carry leading axes of draws."""
        return TreeRows(params["theta"], self.prior(data).layout, self.inputs.size(data))

    def predictive(self, stats: LabelledStats, data: Arrays) -> TreeRows:
        """Return the law of each row, parameters integrated out: a row is linear in each, so posterior means do."""
        posterior = self.block(stats).updated(stats)
        return TreeRows(posterior.block.typical()["theta"], posterior.layout, self.inputs.size(data))
