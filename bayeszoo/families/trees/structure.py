"""The posterior of the tree itself: log weights of edges, and the most probable tree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Self

import numpy as np

from bayeszoo.data.inputs import tables_of
from bayeszoo.distributions.conjugate.dirichlet import log_dirichlet_ratio
from bayeszoo.families.trees.layout import even_pairs, pair_counts
from bayeszoo.families.trees.spanning import Edges, heaviest_tree, log_sum_over_trees
from bayeszoo.foundation.named import Arrays


@dataclass(frozen=True, eq=False)
class AllTrees:
    """The posterior over all trees of V features, equally probable a priori, with tables integrated out.

    ``counts`` (L, L) are those of pairs of levels, with single levels on the diagonal; ``alpha`` is the equivalent
    sample size, shared evenly by the levels of every two features.
    """

    levels: tuple[tuple[int, ...], ...]
    alpha: float
    counts: np.ndarray

    @classmethod
    def of(cls, data: Arrays, alpha: float = 1.0) -> Self:
        """Return the posterior given rows without missing levels."""
        return cls(tables_of(data), alpha, pair_counts(data))

    @cached_property
    def _prior(self) -> np.ndarray:
        return even_pairs(self.alpha, self.levels)

    def _of_features(self, values: np.ndarray, *features: int) -> np.ndarray:
        """Return the entries of one feature's levels, or of two features' pairs of levels, flat."""
        places = [list(self.levels[v]) for v in features]
        return values[places[0], places[0]] if len(places) == 1 else values[np.ix_(*places)].ravel()

    def _log_evidence(self, *features: int) -> float:
        return float(
            log_dirichlet_ratio(*(self._of_features(values, *features) for values in (self._prior, self.counts)))
        )

    @cached_property
    def log_singles(self) -> np.ndarray:
        """The log evidence of each single feature, (V,)."""
        return np.array([self._log_evidence(v) for v in range(len(self.levels))])

    @cached_property
    def log_weights(self) -> np.ndarray:
        """The log Bayes factor (V, V) of a dependence between every two features."""
        weights = np.full(2 * (len(self.levels),), -np.inf)
        for u, v in combinations(range(len(self.levels)), 2):
            weights[u, v] = weights[v, u] = self._log_evidence(u, v) - self.log_singles[u] - self.log_singles[v]
        return weights

    @property
    def log_evidence(self) -> float:
        """The log evidence of the ordered rows, averaged over all trees."""
        V = len(self.levels)
        return float(self.log_singles.sum()) + log_sum_over_trees(self.log_weights) - (V - 2) * math.log(V)

    def log_evidence_of(self, tree: Edges) -> float:
        """Return the log evidence of the ordered rows given a tree."""
        return float(self.log_singles.sum() + sum(self.log_weights[edge] for edge in tree))

    @cached_property
    def most_probable(self) -> Edges:
        """The tree of highest posterior probability."""
        return heaviest_tree(self.log_weights)

    def log_predictive(self, places: np.ndarray) -> np.ndarray:
        """Return the log probability of each new row (n, V), averaged over all trees and tables."""
        means = (self._prior + self.counts) / (self.alpha + self.counts.diagonal()[list(self.levels[0])].sum())
        log_p, before = np.log(means), log_sum_over_trees(self.log_weights)
        single = log_p[places, places]
        row_weights = log_p[places[:, :, None], places[:, None, :]] - single[:, :, None] - single[:, None, :]
        after = np.array([log_sum_over_trees(self.log_weights + weights) for weights in row_weights])
        return np.asarray(single.sum(axis=1) + after - before)


def most_probable_tree(data: Arrays, counts: np.ndarray | None = None) -> tuple[tuple[str, str], ...]:
    """Return the most probable tree by names, at an equivalent sample size of 1, of complete rows or `pair_counts`."""
    names = data["feature"].tolist()
    trees = AllTrees.of(data) if counts is None else AllTrees(tables_of(data), 1.0, counts)
    return tuple((names[u], names[v]) for u, v in trees.most_probable)
