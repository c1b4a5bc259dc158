"""The probability tables of a tree of features: their cells, and their prior from concentrations of level pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from bayeszoo.distributions.conjugate.tables import Tables
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.errors import InputError
from bayeszoo.families.trees.spanning import Edges, parts_of
from bayeszoo.foundation.named import Arrays, Statistics

CELLS = "cells"


@dataclass(frozen=True)
class Layout:
    """A rooted tree of V features, and one axis of cells: probabilities of levels given the parent's level.

    ``levels`` are the places of each feature's levels on the axis of all levels. A feature has one table for each level
    of its parent, one after the other; the root has a single table.
    """

    levels: tuple[tuple[int, ...], ...]
    edges: Edges
    root: int = 0

    @cached_property
    def order(self) -> list[int]:
        """The features, each after its parent."""
        return [self.root, *(child for _, child in self._downward)]

    @cached_property
    def parents(self) -> dict[int, int]:
        """The parent of each feature but the root."""
        return {child: parent for parent, child in self._downward}

    @cached_property
    def _downward(self) -> list[tuple[int, int]]:
        reached, left, down = [self.root], list(self.edges), list[tuple[int, int]]()
        for parent in reached:  # grows during the loop
            for edge in [edge for edge in left if parent in edge]:
                left.remove(edge)
                child = edge[0] + edge[1] - parent
                reached.append(child)
                down.append((parent, child))
        return down

    @cached_property
    def shapes(self) -> list[tuple[int, int]]:
        """The number of tables of each feature, and of its levels."""
        sizes = [len(levels) for levels in self.levels]
        return [(sizes[self.parents[v]] if v in self.parents else 1, size) for v, size in enumerate(sizes)]

    @cached_property
    def starts(self) -> np.ndarray:
        """The first cell of each feature, and last the number of all cells, (V + 1,)."""
        return np.cumsum([0, *(tables * levels for tables, levels in self.shapes)])

    @cached_property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The cells of each table, whose probabilities add up to 1."""
        features = zip(self.starts, self.shapes, strict=False)
        return tuple(
            tuple(range(start + i * levels, start + (i + 1) * levels))
            for start, (tables, levels) in features
            for i in range(tables)
        )

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The places of each cell's parent level and child level, (cells,); a cell of the root has its level twice."""
        cells = list[tuple[int, int]]()
        for v, levels in enumerate(self.levels):
            of_parent = self.levels[self.parents[v]] if v in self.parents else ()
            cells += [(a, b) for a in of_parent for b in levels] or [(b, b) for b in levels]
        parents, children = np.array(cells).T
        return parents, children

    def labels(self, levels: Sequence[str]) -> np.ndarray:
        """Return the label of each cell, ``child=level | parent=level``."""
        pairs = zip(*self.pairs, strict=True)
        return np.array([str(levels[b]) if a == b else f"{levels[b]} | {levels[a]}" for a, b in pairs], dtype=str)

    def codes(self, places: np.ndarray) -> np.ndarray:
        """Return the code of each level within its feature (n, V), -1 if missing, from its place."""
        codes = np.full(sum(map(len, self.levels)) + 1, -1)  # the last entry, index -1, is for a missing level
        for levels in self.levels:
            codes[list(levels)] = np.arange(len(levels))
        return codes[np.asarray(places)]

    def cells(self, places: np.ndarray) -> np.ndarray:
        """Return the cell of each level (n, V) of rows without missing levels."""
        codes = self.codes(places)
        above = np.zeros_like(codes)
        for v, parent in self.parents.items():
            above[:, v] = codes[:, parent]
        return self.starts[:-1] + above * [len(levels) for levels in self.levels] + codes


def as_edges(tree: Any, features: Sequence[str]) -> Edges | str:
    """Return a tree, given as pairs of names, as pairs of places; if it is no tree, return the reason.

    Without a tree the features are a chain in the order of their names; the order of the columns is arbitrary.
    """
    places = {name: place for place, name in enumerate(features)}
    tree = [*pairwise(sorted(features))] if tree is None else tree
    for pair in tree:
        if unknown := [name for name in pair if name not in places]:
            return f"the tree has {unknown[0]!r}, and no feature has this name"
    edges = tuple(sorted((min(ends), max(ends)) for ends in ([places[name] for name in pair] for pair in tree)))
    if len(edges) != len(features) - 1 or len(parts_of(len(features), edges)) != 1:
        return f"a tree of {len(features)} features has {len(features) - 1} edges that join them all, got {len(edges)}"
    return edges


@dataclass(frozen=True, eq=False)
class TreePrior:
    """Independent Dirichlet priors of a tree's tables, from concentrations (L, L) of all pairs of levels.

    A cell has the concentration of its level paired with its parent's level; cells of the root have those on the
    diagonal. The posterior adds the counts of the pairs, for any tree. If the concentrations of pairs add up to those
    of single levels, the prior is hyper-Dirichlet (Dawid and Lauritzen 1993), and the evidence does not depend on the
    root.
    """

    pairs: np.ndarray
    layout: Layout

    @property
    def block(self) -> Tables:
        """The prior of all tables."""
        return Tables(("theta",), CELLS, self.pairs[self.layout.pairs], self.layout.tables)

    @property
    def free_parameters(self) -> int:
        """The number of free parameters of the likelihood."""
        return self.block.free_parameters

    @property
    def moments_below(self) -> float:
        """The order below which moments of a new row exist."""
        return self.block.moments_below

    def counts(self, stats: Statistics) -> Counts:
        """Return the counts of the cells from the counts of all pairs."""
        return Counts(stats.parts[0].counts[self.layout.pairs])

    def updated(self, stats: Statistics) -> Self:
        """Return the posterior given statistics."""
        return type(self)(self.pairs + stats.parts[0].counts, self.layout)

    def log_evidence(self, stats: Statistics) -> np.ndarray:
        """Return the log density of the ordered rows, parameters integrated out."""
        return self.block.log_evidence(self.counts(stats))

    def posterior(self) -> Posterior:
        """Return the distribution of all parameters."""
        return self.block.posterior()

    def mode(self) -> dict[str, np.ndarray]:
        """Return the mode of the parameters."""
        return self.block.mode()

    def mle(self, stats: Statistics) -> dict[str, np.ndarray]:
        """Return the parameters of maximum likelihood."""
        return self.block.mle(self.counts(stats))


def even_pairs(total: float, levels: Sequence[Sequence[int]]) -> np.ndarray:
    """Return concentrations (L, L) of pairs of levels that share an equivalent sample size evenly (BDeu)."""
    size = np.empty(sum(map(len, levels)))
    for places in levels:
        size[list(places)] = len(places)
    pairs = total / (size[:, None] * size)
    np.fill_diagonal(pairs, total / size)
    return pairs


def require_complete(data: Arrays) -> None:
    """Refuse rows with missing levels."""
    if (data["levels"] < 0).any():
        problem = "some cells are missing, and a tree is learnt from complete rows"
        raise InputError(problem, "missing_values", hint="leave such rows out with --missing drop")


def pair_counts(data: Arrays) -> np.ndarray:
    """Return the number of rows with each pair of L levels, (L, L), with single levels on the diagonal."""
    import scipy

    require_complete(data)  # SciPy would write outside its arrays
    places = data["levels"]
    n, features = places.shape
    shape, ends = (n, len(data["level"])), np.arange(0, n * features + 1, features)
    rows = scipy.sparse.csr_array((np.ones(places.size), places.ravel(), ends), shape=shape)
    return np.asarray((rows.T @ rows).toarray())
