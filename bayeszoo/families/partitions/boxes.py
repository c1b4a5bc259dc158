"""Boxes that trees of cuts can reach: their rows, and the ways to cut each in two.

A feature with K cuts has K + 1 cells; the cell of a row at ``x`` is the number of cuts below ``x``. A box is a range of
cells of each feature. Boxes of one feature are intervals, which many trees share; boxes of several features are reached
by at most two cuts, and all are listed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import InputError

MOST_SPLITS = 1_500_000
"""Most ways to cut a box, over all boxes, in a sum at one value of the noise: some 30 MB and 10 ms."""
MOST_DEPTH = 2
"""Most cuts on the way to a leaf, in trees of several features."""
PARTS = ("n", "mean", "scatter", "rest")
INSTEAD = "gradient boosting (scikit-learn), or a sum of trees by sampling (stochtree), take more"


class Splits(NamedTuple):
    """Ways to cut boxes in two, as flat arrays (S,); ``first`` is the first split of each of the ``parents`` (B,).

    ``share`` is the prior probability of a split given that its box is cut, and ``log_share`` its log. The boxes that a
    tree may cut at depth d are the parents from ``begin[d]`` to ``end[d]``.
    """

    parents: np.ndarray
    first: np.ndarray
    left: np.ndarray
    right: np.ndarray
    share: np.ndarray
    log_share: np.ndarray
    begin: np.ndarray
    end: np.ndarray


class Cuts(NamedTuple):
    """Cuts of boxes: the index of each cut's box, its feature, and the first cell of the right side."""

    owner: np.ndarray
    feature: np.ndarray
    cell: np.ndarray
    log_share: np.ndarray

    @classmethod
    def of(cls, low: np.ndarray, high: np.ndarray) -> Self:
        """Return all cuts of boxes (B, F): the feature is uniform among those with a cut inside, then the cut."""
        inner = high - low - 1
        counts = np.ravel(inner)
        pair = np.repeat(np.arange(len(counts)), counts)  # of box and feature
        owner, feature = np.divmod(pair, low.shape[1])
        step = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
        columns = np.sum(inner > 0, axis=1)
        log_share = -np.log(columns[owner] * inner[owner, feature].astype(np.float64))
        return cls(owner, feature, low[owner, feature] + 1 + step, log_share)


@dataclass(frozen=True, eq=False)
class Boxes:
    """N boxes as ranges of cells from ``low`` to before ``high`` (N, F), the first with all rows, and their splits.

    ``feature`` and ``cell`` (S,) are those of the splits: the right side begins with the cell.
    """

    low: np.ndarray
    high: np.ndarray
    splits: Splits
    feature: np.ndarray
    cell: np.ndarray
    depth: int

    @classmethod
    def of(cls, cells: tuple[int, ...], depth: int) -> Boxes:
        """Return the boxes that trees with at most ``depth`` cuts on the way to a leaf can reach; refuse too many."""
        if len(cells) == 1:
            return _intervals(cells[0], depth)
        if depth > MOST_DEPTH:
            problem = f"trees of several features can be summed up to depth {MOST_DEPTH}, got {depth}"
            raise InputError(problem, "out_of_range", hint=f"set depth={MOST_DEPTH}, or name one feature; {INSTEAD}")
        return _listed(cells, depth)

    @cached_property
    def has_cuts(self) -> np.ndarray:
        """Whether each box can be cut, (N,)."""
        can = np.zeros(len(self.low), dtype=np.bool_)
        can[self.splits.parents] = True
        return can

    @cached_property
    def by_end(self) -> np.ndarray:
        """The intervals of one feature sorted by end, then by start, (N,); empty for several features."""
        if self.low.shape[1] > 1:
            return np.zeros(0, dtype=np.int64)
        return np.lexsort((self.low[:, 0], self.high[:, 0]))

    @cached_property
    def parent_of(self) -> np.ndarray:
        """The index of each box among those that can be cut, (N,), else -1."""
        places = np.full(len(self.low), -1)
        places[self.splits.parents] = np.arange(len(self.splits.parents))
        return places

    @cached_property
    def first_cuts(self) -> int:
        """The number of ways to cut all rows in two, C: one for each place that may be cut."""
        return int(self.splits.first[self.splits.end[0]]) if self.depth else 0

    @cached_property
    def _place(self) -> np.ndarray:
        """The index of each split's place among the first cuts, (S,)."""
        starts = np.searchsorted(self.feature[: self.first_cuts], np.arange(self.low.shape[1]))
        return np.asarray(starts[self.feature] + self.cell - 1)

    @cached_property
    def _pairs(self) -> np.ndarray:
        """Pairs of splits at one place on both sides of a first cut, (pairs, 3), with several features.

        Columns are the first cut, and the splits of its left and of its right side.
        """
        C, owner = self.first_cuts, np.repeat(self.splits.parents, np.diff(self.splits.first))
        number = np.full((2, C, C), -1)
        for side, boxes in enumerate((self.splits.left[:C], self.splits.right[:C])):
            after = np.full(len(self.low), -1)
            after[boxes] = np.arange(C)
            splits = np.flatnonzero(after[owner] >= 0)
            number[side, after[owner[splits]], self._place[splits]] = splits
        cut, place = np.nonzero(np.all(number >= 0, axis=0))
        return np.column_stack([cut, *number[:, cut, place]])

    def of_places(self, splits: np.ndarray) -> np.ndarray:
        """Return the probability that a tree cuts at each place, (C,), from the probability of each split, (S,).

        A tree of one feature cuts a place at most once. With several features, both sides of the first cut may be cut
        at a place, independently given the first cut.
        """
        total = np.bincount(self._place, splits, self.first_cuts)
        if self.low.shape[1] == 1 or not len(self._pairs):
            return total
        parent, left, right = (splits[column] for column in self._pairs.T)
        joint = np.divide(left * right, parent, out=np.zeros_like(parent), where=parent > 0)
        return np.asarray(total - np.bincount(self._place[self._pairs[:, 1]], joint, self.first_cuts))

    def containing(self, cells: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """Say for each of ``boxes`` (M,) whether it contains each row at cells (R, F), as (R, M)."""
        inside = (cells[:, None, :] >= self.low[boxes]) & (cells[:, None, :] < self.high[boxes])
        return np.asarray(inside.all(axis=-1))

    def moments(self, cells: np.ndarray, y: np.ndarray) -> Moments:
        """Return count, mean and scatter of the outcomes (n,) of the rows at cells (n, F) in each box, (N,)."""
        if self.low.shape[1] == 1:
            ends = _moments_of_ranges(_of_cells(np.zeros(len(y), dtype=int), cells[:, 0], y, 1, int(self.high[0, 0])))
            return ends[self.high[:, 0], self.low[:, 0]]
        all_rows = _of_cells(np.zeros(len(y), dtype=int), np.zeros(len(y), dtype=int), y, 1, 1)[0]
        levels = zip(self.splits.begin.tolist(), self.splits.end.tolist(), strict=True)
        return _joined([all_rows, *(side for level in levels for side in self._sides(level, cells, y))])

    def _sides(self, level: tuple[int, int], cells: np.ndarray, y: np.ndarray) -> list[Moments]:
        """Return the moments of both sides of each cut of the boxes that can be cut at a depth."""
        bounds = self.splits.first[level[0] : level[1] + 1]
        parents, splits = self.splits.parents[slice(*level)], slice(bounds[0], bounds[-1])
        owner = np.repeat(np.arange(len(parents)), np.diff(bounds))
        feature, cell = self.feature[splits], self.cell[splits]
        row, box = np.nonzero(self.containing(cells, parents))
        sides = [Moments(*(np.zeros(len(owner)) for _ in range(4))) for _ in range(2)]
        for j in np.unique(feature):
            cuts = np.flatnonzero(feature == j)
            by_cell = _of_cells(box, cells[row, j], y[row], len(parents), int(self.high[0, j]))
            for side, sums in zip(sides, (_running(by_cell), _running(by_cell, is_backward=True)), strict=True):
                for name in PARTS:
                    getattr(side, name)[cuts] = getattr(sums, name)[owner[cuts], cell[cuts]]
        return sides


def _intervals(cells: int, depth: int) -> Boxes:
    """Return all intervals of cells: first the interval of all cells, then those at an end, then the others."""
    if (total := math.comb(cells + 1, 3)) > MOST_SPLITS:
        problem = f"{cells - 1:,} cuts have {total:,} ways to cut an interval; the limit is {MOST_SPLITS:,}"
        raise InputError(problem, "too_many_rows", hint=f"give fewer cuts, as of a rounded feature; {INSTEAD}")
    i, j = np.triu_indices(cells + 1, 1)
    inner = (i > 0).astype(int) + (j < cells)
    order = np.argsort(inner, kind="stable")
    i, j, inner = i[order], j[order], inner[order]
    number = np.zeros((cells + 1, cells + 1), dtype=np.int64)
    number[i, j] = np.arange(len(i))
    cuts = Cuts.of(i[:, None], j[:, None])
    ends = np.searchsorted(inner[j - i > 1], [0, 1, 2], side="right")  # each cut adds one inner end
    begin, end = np.full(depth, ends[0]), np.full(depth, ends[2])
    begin[0], end[:2] = 0, ends[: min(depth, 2)]
    sides = number[i[cuts.owner], cuts.cell], number[cuts.cell, j[cuts.owner]]
    return _boxes(i[:, None], j[:, None], cuts, sides, (begin, end))


def _listed(cells: tuple[int, ...], depth: int) -> Boxes:
    """Return the box of all cells, the boxes after one cut, and those after two."""
    total = sum(cells) - len(cells)
    if (work := 2 * total * total if depth > 1 else total) > MOST_SPLITS:
        problem = f"{total:,} cuts have {work:,} trees of depth {depth}; the limit is {MOST_SPLITS:,}"
        raise InputError(problem, "too_many_rows", hint=f"give fewer cuts or features; {INSTEAD}")
    low, high = np.zeros((1, len(cells)), dtype=np.int64), np.array([cells], dtype=np.int64)
    levels: list[tuple[Cuts, np.ndarray, np.ndarray]] = []
    ends = [0, 1]
    for _ in range(depth):
        start = ends[-2]
        cuts = Cuts.of(low[start:], high[start:])
        left, right = _sides_of(low[start:], high[start:], cuts)
        number = len(low) + np.arange(len(cuts.owner))
        levels.append((cuts._replace(owner=cuts.owner + start), number, number + len(number)))
        low, high = np.vstack([low, left[0], right[0]]), np.vstack([high, left[1], right[1]])
        ends.append(len(low))
    joined = Cuts(*map(np.concatenate, zip(*(cuts for cuts, _, _ in levels), strict=True)))
    sides = tuple(np.concatenate([level[side] for level in levels]) for side in (1, 2))
    parents = np.searchsorted(np.unique(joined.owner), ends)
    return _boxes(low, high, joined, sides, (parents[:-2], parents[1:-1]))


def _sides_of(low: np.ndarray, high: np.ndarray, cuts: Cuts) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Return low and high of the left and of the right side of each cut."""
    ends_left, starts_right = high[cuts.owner], low[cuts.owner]
    entries = np.arange(len(cuts.owner)), cuts.feature
    ends_left[entries], starts_right[entries] = cuts.cell, cuts.cell
    return (low[cuts.owner], ends_left), (starts_right, high[cuts.owner])


def _boxes(
    low: np.ndarray,
    high: np.ndarray,
    cuts: Cuts,
    sides: tuple[np.ndarray, ...],
    levels: tuple[np.ndarray, np.ndarray],
) -> Boxes:
    parents, starts = np.unique(cuts.owner, return_index=True)
    bounds = np.append(starts, len(cuts.owner))
    arrays = (np.ascontiguousarray(array, dtype=np.int64) for array in (parents, bounds, *sides, *levels))
    parents, first, left, right, begin, end = arrays
    splits = Splits(parents, first, left, right, np.exp(cuts.log_share), cuts.log_share, begin, end)
    return Boxes(low, high, splits, cuts.feature, cuts.cell, len(levels[0]))


def _of_cells(box: np.ndarray, cell: np.ndarray, y: np.ndarray, boxes: int, cells: int) -> Moments:
    """Return the moments (boxes, cells) of rows by box and cell."""
    place, size = box * cells + cell, boxes * cells
    n = np.bincount(place, minlength=size).astype(np.float64)
    mean = np.bincount(place, y, size) / np.maximum(n, 1.0)
    scatter = np.bincount(place, np.square(y - mean[place]), size)
    return Moments(*(array.reshape(boxes, cells) for array in (n, mean, scatter, np.zeros(size))))


def _running(by_cell: Moments, is_backward: bool = False) -> Moments:
    """Return the pooled moments (B, K + 1) of the cells of B boxes before each cell, or from it on."""
    boxes, cells = by_cell.n.shape
    sums = [Moments(*(np.zeros(boxes) for _ in PARTS))]
    for k in range(cells)[::-1] if is_backward else range(cells):
        sums.append(sums[-1] + by_cell[:, k])
    return _stacked(sums[::-1] if is_backward else sums, 1)


def _moments_of_ranges(by_cell: Moments) -> Moments:
    """Return the pooled moments (K + 1, K) of ranges of cells, that end before one index and start at the other."""
    cells = by_cell.n.shape[1]
    sums = [Moments(*(np.zeros(cells) for _ in PARTS))]
    for k in range(cells):
        contains = np.arange(cells) <= k
        of_cell = Moments(*(np.where(contains, getattr(by_cell, name)[0, k], 0.0) for name in PARTS))
        sums.append(sums[-1] + of_cell)
    return _stacked(sums, 0)


def _stacked(sums: list[Moments], axis: int) -> Moments:
    return Moments(*(np.stack([getattr(moments, name) for moments in sums], axis) for name in PARTS))


def _joined(parts: list[Moments]) -> Moments:
    return Moments(*(np.concatenate([getattr(moments, name) for moments in parts]) for name in PARTS))
