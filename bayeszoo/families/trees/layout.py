"""The tables of a tree of features: where their cells are, and their prior from that of all pairs of levels."""

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
from bayeszoo.foundation.named import Arrays

CELLS = "cells"


@dataclass(frozen=True)
class Layout:
    """A tree of V features with a root, and one axis of cells: probabilities of levels given the parent's.

    ``levels`` are the places of each feature's levels along their axis. A feature has a table for each level of its
    parent, one after the other; the root has one.
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
        reached, rest, down = [self.root], list(self.edges), list[tuple[int, int]]()
        for parent in reached:  # which grows
            for edge in [edge for edge in rest if parent in edge]:
                rest.remove(edge)
                child = edge[0] + edge[1] - parent
                reached.append(child)
                down.append((parent, child))
        return down

    @cached_property
    def shapes(self) -> list[tuple[int, int]]:
        """How many tables each feature has, and its levels."""
        return [(len(self.levels[self.parents[v]]) if v in self.parents else 1, len(own)) for v, own in self._each]

    @property
    def _each(self) -> list[tuple[int, tuple[int, ...]]]:
        return list(enumerate(self.levels))

    @cached_property
    def starts(self) -> np.ndarray:
        """The first cell of each feature, and the number of all."""
        return np.cumsum([0, *(tables * levels for tables, levels in self.shapes)])

    @cached_property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The cells of each table, whose probabilities add up to 1."""
        of_each = zip(self.starts, self.shapes, strict=False)
        return tuple(
            tuple(range(start + i * levels, start + (i + 1) * levels))
            for start, (tables, levels) in of_each
            for i in range(tables)
        )

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The places of the parent's level and of its own of each cell; of the root both are its own."""
        each = list[tuple[int, int]]()
        for v, own in self._each:
            of_parent = self.levels[self.parents[v]] if v in self.parents else ()
            each += [(a, b) for a in of_parent for b in own] or [(b, b) for b in own]
        first, second = np.array(each).T
        return first, second

    def labels(self, levels: Sequence[str]) -> np.ndarray:
        """Return the label of each cell, ``child=level | parent=level``."""
        pairs = zip(*self.pairs, strict=True)
        return np.array([str(levels[b]) if a == b else f"{levels[b]} | {levels[a]}" for a, b in pairs], dtype=str)

    def codes(self, places: np.ndarray) -> np.ndarray:
        """Return the code of each level within its feature (n, V), -1 where it is missing, by its place."""
        own = np.full(sum(map(len, self.levels)) + 1, -1)  # the last entry is that of a missing level, -1
        for table in self.levels:
            own[list(table)] = np.arange(len(table))
        return own[np.asarray(places)]

    def cells(self, places: np.ndarray) -> np.ndarray:
        """Return the cell of each level of rows (n, V) without missing levels."""
        codes = self.codes(places)
        above = np.zeros_like(codes)
        for v, parent in self.parents.items():
            above[:, v] = codes[:, parent]
        return self.starts[:-1] + above * [len(own) for own in self.levels] + codes


def as_edges(tree: Any, features: Sequence[str]) -> Edges | str:
    """Return a tree, given by pairs of names, as pairs of places; where it is none, say why.

    Without a tree the features are a chain, in the order of their names: that of the columns means nothing.
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

    A cell has that of its level with its parent's; those of the root are on the diagonal. The posterior adds the
    counts of the pairs, whatever the tree. Where concentrations of pairs add up to those of single levels, the prior is
    hyper-Dirichlet (Dawid and Lauritzen 1993), and the evidence does not depend on the root.
    """

    pairs: np.ndarray
    layout: Layout

    @property
    def block(self) -> Tables:
        """The prior of all tables."""
        return Tables(("theta",), CELLS, self.pairs[self.layout.pairs], self.layout.tables)

    @property
    def free_parameters(self) -> int:
        """How many numbers the likelihood is maximized over."""
        return self.block.free_parameters

    @property
    def moments_below(self) -> float:
        """The order below which moments of a new row exist."""
        return self.block.moments_below

    def counts(self, stats: Any) -> Counts:
        """Return the counts of the cells from those of all pairs."""
        return Counts(stats.parts[0].counts[self.layout.pairs])

    def updated(self, stats: Any) -> Self:
        """Return the posterior given statistics."""
        return type(self)(self.pairs + stats.parts[0].counts, self.layout)

    def log_evidence(self, stats: Any) -> np.ndarray:
        """Log density of the ordered rows, parameters integrated out."""
        return self.block.log_evidence(self.counts(stats))

    def posterior(self) -> Posterior:
        """Return the distribution of all parameters."""
        return self.block.posterior()

    def mode(self) -> dict[str, np.ndarray]:
        """Return where the density is highest."""
        return self.block.mode()

    def mle(self, stats: Any) -> dict[str, np.ndarray]:
        """Return the maximum of the likelihood."""
        return self.block.mle(self.counts(stats))


def even_pairs(total: float, levels: Sequence[Sequence[int]]) -> np.ndarray:
    """Return concentrations (L, L) of pairs of levels that share an equivalent sample size evenly (BDeu)."""
    size = np.empty(sum(map(len, levels)))
    for own in levels:
        size[list(own)] = len(own)
    pairs = total / (size[:, None] * size)
    np.fill_diagonal(pairs, total / size)
    return pairs


def require_complete(data: Arrays) -> None:
    """Refuse rows in which a level is missing."""
    if (data["levels"] < 0).any():
        problem = "some cells are missing, and a tree is learnt from complete rows"
        raise InputError(problem, "missing_values", hint="leave such rows out with --missing drop")


def pair_counts(places: np.ndarray, size: int) -> np.ndarray:
    """Return how often each two of L levels occur in one row, (L, L), on the diagonal each level."""
    import scipy

    n, features = places.shape
    shape, ends = (n, size), np.arange(0, n * features + 1, features)
    rows = scipy.sparse.csr_array((np.ones(places.size), places.ravel(), ends), shape=shape)
    return np.asarray((rows.T @ rows).toarray())
