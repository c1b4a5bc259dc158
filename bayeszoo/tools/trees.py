"""The dependence of categorical features: the exact posterior over all trees of them.

Chow and Liu 1968; Meila and Jaakkola 2006; CS725, lectures 14 and 25.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Mixed
from bayeszoo.data.read import Data, read
from bayeszoo.data.without_model import TableOf
from bayeszoo.distributions.special import log_rising
from bayeszoo.errors import InputError
from bayeszoo.families.trees.layout import require_complete
from bayeszoo.families.trees.spanning import Edges, draw_trees, edge_probabilities, log_sum_over_trees
from bayeszoo.families.trees.structure import AllTrees
from bayeszoo.foundation.streams import stream

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy_loader.load("pandas")

MOST_FEATURES = 200
"""Most features whose trees are summed over; the time grows with their cube."""


LEVELS = TableOf(Mixed("levels", kinds=("levels",), fits_masked=False))
"""Features that are levels."""


@dataclass(frozen=True, eq=False)
class Trees:
    """The posterior over all trees of V features, under equal prior probabilities.

    Attributes
    ----------
    data : Data
        The rows.
    alpha : float
        Equivalent sample size of the prior of the tables (BDeu).
    """

    data: Data
    alpha: float
    _posterior: AllTrees

    @property
    def features(self) -> list[str]:
        """The names of the features."""
        return list(map(str, self.data["feature"]))

    @cached_property
    def summary(self) -> pd.DataFrame:
        """Pairs of features by decreasing probability of an edge between them.

        Columns: ``probability``; ``log_bayes_factor`` of dependence against independence of the pair, in nats;
        ``is_in_tree``, whether the edge is in the most probable tree.
        """
        probabilities = edge_probabilities(self._posterior.log_weights)
        first, second = np.triu_indices(len(self.features), 1)
        names = np.array(self.features, dtype=object)
        index = pd.MultiIndex.from_arrays([names[first], names[second]], names=["feature", "feature_2"])
        columns = {
            "probability": probabilities[first, second],
            "log_bayes_factor": self._posterior.log_weights[first, second],
            "is_in_tree": np.isin(
                first * len(names) + second, [u * len(names) + v for u, v in self._posterior.most_probable]
            ),
        }
        return pd.DataFrame(columns, index=index).sort_values("log_bayes_factor", ascending=False, kind="stable")

    @property
    def tree(self) -> list[tuple[str, str]]:
        """The most probable tree, as pairs of names of features: the field ``tree`` of ``tree_network``."""
        return self._named(self._posterior.most_probable)

    @property
    def tree_probability(self) -> float:
        """The posterior probability of the most probable tree."""
        weights, tree = self._posterior.log_weights, self._posterior.most_probable
        return math.exp(sum(weights[edge] for edge in tree) - log_sum_over_trees(weights))

    @property
    def log_evidence(self) -> float:
        """The log evidence of the ordered rows, averaged over all trees."""
        return self._posterior.log_evidence

    @property
    def log_evidence_of_tree(self) -> float:
        """The log evidence given the most probable tree."""
        return self._posterior.log_evidence_of(self._posterior.most_probable)

    @property
    def log_evidence_independent(self) -> float:
        """The log evidence of independent features."""
        return float(self._posterior.log_singles.sum())

    @cached_property
    def log_evidence_saturated(self) -> float:
        """The log evidence of a table of all combinations of levels, under a prior of the same sample size."""
        counts = np.unique(self.data["levels"], axis=0, return_counts=True)[1].astype(np.float64)
        cells = math.prod(float(len(levels)) for levels in self._posterior.levels)
        return float(np.sum(log_rising(self.alpha / cells, counts)) - log_rising(self.alpha, counts.sum()))

    def draw(self, count: int, *, seed: int = 0) -> list[list[tuple[str, str]]]:
        """Draw independent trees from their posterior.

        Parameters
        ----------
        count : int
            Number of trees.
        seed : int
            Seed of the draws.
        """
        if count < 1:
            raise InputError(f"count must be >= 1, got {count!r}", "out_of_range")
        rng = stream(seed, "trees", count, self.data.digest)
        return [self._named(tree) for tree in draw_trees(self._posterior.log_weights, count, rng)]

    def log_predictive(self, new_data: object, **options: Any) -> np.ndarray:
        """Return the log probability of each new row, shape (rows,), averaged over all trees and tables.

        Parameters
        ----------
        new_data : anything that `read` takes
            Rows without missing levels.
        **options
            Options of `read`.
        """
        rows = read(LEVELS, new_data, new=True, like=self.data, **options)
        require_complete(rows)
        return self._posterior.log_predictive(rows["levels"])

    def _named(self, tree: Edges) -> list[tuple[str, str]]:
        return [(self.features[u], self.features[v]) for u, v in tree]


def trees(data: object = None, *, alpha: float = 1.0, **options: Any) -> Trees:
    """Sum over all trees of the features of a table, for the probabilities of edges and the evidence.

    Parameters
    ----------
    data : Data or anything that `read` takes
        Rows of categorical features, without missing levels.
    alpha : float
        Equivalent sample size of the prior of the tables, > 0, divided evenly between the levels of each pair of
        features (BDeu, Heckerman, Geiger and Chickering 1995): the evidence then does not depend on the root, and so on
        the directions of the edges.
    **options
        Options of `read`.

    Returns
    -------
    Trees
        The exact posterior: tables are integrated out, and the V ** (V - 2) trees are summed over by the matrix-tree
        theorem.

    Raises
    ------
    InputError
        When levels are missing, there are more than 200 features, or alpha is not positive.

    Examples
    --------
    >>> rows = {"a": list("xxyyxy"), "b": list("uuvvuv"), "c": list("pqpqpq")}
    >>> answer = trees(rows)
    >>> answer.tree
    [('a', 'b'), ('a', 'c')]
    >>> round(answer.log_evidence, 4)
    -14.0391
    """
    if isinstance(alpha, bool) or not (isinstance(alpha, int | float) and math.isfinite(alpha) and alpha > 0):
        raise InputError(f"alpha must be > 0 and finite, got {alpha!r}", "out_of_range")
    rows = read(LEVELS, data, **options)
    require_complete(rows)
    if (count := len(rows["feature"])) > MOST_FEATURES:
        problem = f"trees of at most {MOST_FEATURES} features can be summed over, got {count}"
        raise InputError(problem, "too_many_columns", hint="choose some with --features")
    return Trees(rows, float(alpha), AllTrees.of(rows, float(alpha)))
