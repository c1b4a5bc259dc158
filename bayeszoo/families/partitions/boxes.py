"""Boxes that trees of cuts can reach: their rows, and how each may be cut in two.

A feature with K cuts has K + 1 cells; a row at ``x`` lies in the cell whose number is how many cuts are below ``x``. A
box is a range of cells of each feature. Boxes of one feature are intervals, which many trees share; those of several
features are reached by at most two cuts, and each is listed.
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
"""Ways to cut a box, over all boxes, that are summed over at each value of the noise: some 30 MB and 10 ms."""
MOST_DEPTH = 2
"""Cuts on the way to a leaf of trees of several features."""
PARTS = ("n", "mean", "scatter", "rest")
INSTEAD = "gradient boosting (scikit-learn), or a sum of trees by sampling (stochtree), take more"


class Splits(NamedTuple):
    """Ways to cut boxes in two, as flat arrays: the ``first`` of each of the ``parents``, (B,).

    ``share`` is the prior probability of a split given that its box is cut, and ``log_share`` its log. Boxes
    that a tree may cut at depth d are the parents from ``begin[d]`` to ``end[d]``.
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
    """Boxes in two: the place of each in those given, the feature, and the cell that the right side begins with."""

    owner: np.ndarray
    feature: np.ndarray
    cell: np.ndarray
    log_share: np.ndarray

    @classmethod
    def of(cls, low: np.ndarray, high: np.ndarray) -> Self:
        """Return all cuts of boxes (B, F): the feature uniform among those with a cut inside, then the cut."""
        inner = high - low - 1
        counts = np.ravel(inner)
        which = np.repeat(np.arange(len(counts)), counts)
        owner, feature = np.divmod(which, low.shape[1])
        step = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        columns = np.sum(inner > 0, axis=1)
        log_share = -np.log(columns[owner] * inner[owner, feature].astype(np.float64))
        return cls(owner, feature, low[owner, feature] + 1 + step, log_share)


@dataclass(frozen=True, eq=False)
class Boxes:
    """N boxes, the first of all rows, as cells from ``low`` to before ``high`` (N, F), and their splits.

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
        """Return the boxes that trees of at most ``depth`` cuts on the way to a leaf reach; refuse too many."""
        if len(cells) == 1:
            return _intervals(cells[0], depth)
        if depth > MOST_DEPTH:
            problem = f"trees of several features are summed over up to depth {MOST_DEPTH}, got {depth}"
            raise InputError(problem, "out_of_range", hint=f"set depth={MOST_DEPTH}, or name one feature; {INSTEAD}")
        return _listed(cells, depth)

    @cached_property
    def has_cuts(self) -> np.ndarray:
        """Which boxes can be cut, (N,)."""
        can = np.zeros(len(self.low), dtype=np.bool_)
        can[self.splits.parents] = True
        return can

    @cached_property
    def by_end(self) -> np.ndarray:
        """The intervals of one feature by where they end, (N,), then where they begin; of several features none."""
        if self.low.shape[1] > 1:
            return np.zeros(0, dtype=np.int64)
        return np.lexsort((self.low[:, 0], self.high[:, 0]))

    @cached_property
    def parent_of(self) -> np.ndarray:
        """The place of each box among those that can be cut, (N,), -1 of others."""
        places = np.full(len(self.low), -1)
        places[self.splits.parents] = np.arange(len(self.splits.parents))
        return places

    @cached_property
    def first_cuts(self) -> int:
        """How many ways there are to cut all rows in two: C, one for each place that may be cut."""
        return int(self.splits.first[self.splits.end[0]]) if self.depth else 0

    @cached_property
    def _place(self) -> np.ndarray:
        """The place of each split among the first cuts, (S,)."""
        first = np.searchsorted(self.feature[: self.first_cuts], np.arange(self.low.shape[1]))
        return np.asarray(first[self.feature] + self.cell - 1)

    @cached_property
    def _pairs(self) -> np.ndarray:
        """Numbers of those splits of several features that may be at one place, both after one first cut, (pairs, 3).

        The first cut, and the cuts of its left and of its right side.
        """
        C, owner = self.first_cuts, np.repeat(self.splits.parents, np.diff(self.splits.first))
        number = np.full((2, C, C), -1)
        for side, boxes in enumerate((self.splits.left[:C], self.splits.right[:C])):
            after = np.full(len(self.low), -1)
            after[boxes] = np.arange(C)
            own = np.flatnonzero(after[owner] >= 0)
            number[side, after[owner[own]], self._place[own]] = own
        first, place = np.nonzero(np.all(number >= 0, axis=0))
        return np.column_stack([first, *number[:, first, place]])

    def of_places(self, splits: np.ndarray) -> np.ndarray:
        """Return the probability that a tree cuts at each place, (C,), by that of each split, (S,).

        A tree cuts one feature once at a place. Of several both sides of the first cut may be cut there, each with a
        probability given this first cut.
        """
        total = np.bincount(self._place, splits, self.first_cuts)
        if self.low.shape[1] == 1 or not len(self._pairs):
            return total
        first, left, right = (splits[some] for some in self._pairs.T)
        both = np.divide(left * right, first, out=np.zeros_like(first), where=first > 0)
        return np.asarray(total - np.bincount(self._place[self._pairs[:, 1]], both, self.first_cuts))

    def containing(self, cells: np.ndarray, some: np.ndarray) -> np.ndarray:
        """Say which of ``some`` boxes (M,) contain rows at cells (R, F), as (R, M)."""
        inside = (cells[:, None, :] >= self.low[some]) & (cells[:, None, :] < self.high[some])
        return np.asarray(inside.all(axis=-1))

    def moments(self, cells: np.ndarray, y: np.ndarray) -> Moments:
        """Return count, mean and scatter of the outcomes (n,) of the rows at cells (n, F) in each box, (N,)."""
        if self.low.shape[1] == 1:
            ends = _moments_from_each(_of_cells(np.zeros(len(y), dtype=int), cells[:, 0], y, 1, int(self.high[0, 0])))
            return ends[self.high[:, 0], self.low[:, 0]]
        alone = _of_cells(np.zeros(len(y), dtype=int), np.zeros(len(y), dtype=int), y, 1, 1)[0]
        levels = zip(self.splits.begin.tolist(), self.splits.end.tolist(), strict=True)
        return _joined([alone, *(side for level in levels for side in self._sides(level, cells, y))])

    def _sides(self, level: tuple[int, int], cells: np.ndarray, y: np.ndarray) -> list[Moments]:
        """Return the moments of both sides of each cut of the boxes that can be cut at a depth."""
        first = self.splits.first[level[0] : level[1] + 1]
        parents, some = self.splits.parents[slice(*level)], slice(first[0], first[-1])
        owner, feature, cell = np.repeat(np.arange(len(parents)), np.diff(first)), self.feature[some], self.cell[some]
        row, box = np.nonzero(self.containing(cells, parents))
        sides = [Moments(*(np.zeros(len(owner)) for _ in range(4))) for _ in range(2)]
        for j in np.unique(feature):
            own = np.flatnonzero(feature == j)
            each = _of_cells(box, cells[row, j], y[row], len(parents), int(self.high[0, j]))
            for side, sums in zip(sides, (_running(each), _running(each, is_backward=True)), strict=True):
                for name in PARTS:
                    getattr(side, name)[own] = getattr(sums, name)[owner[own], cell[own]]
        return sides


def _intervals(cells: int, depth: int) -> Boxes:
    """Return all intervals of cells: that of all, then those at an end, then the others."""
    if (total := math.comb(cells + 1, 3)) > MOST_SPLITS:
        problem = f"{cells - 1:,} cuts have {total:,} ways to cut an interval, and {MOST_SPLITS:,} are summed over"
        raise InputError(problem, "too_many_rows", hint=f"give fewer cuts, as of a rounded feature; {INSTEAD}")
    i, j = np.triu_indices(cells + 1, 1)
    inner = (i > 0).astype(int) + (j < cells)
    order = np.argsort(inner, kind="stable")
    i, j, inner = i[order], j[order], inner[order]
    number = np.zeros((cells + 1, cells + 1), dtype=np.int64)
    number[i, j] = np.arange(len(i))
    cuts = Cuts.of(i[:, None], j[:, None])
    ends = np.searchsorted(inner[j - i > 1], [0, 1, 2], side="right")  # an interval has one inner end more a cut
    begin, end = np.full(depth, ends[0]), np.full(depth, ends[2])
    begin[0], end[:2] = 0, ends[: min(depth, 2)]
    sides = number[i[cuts.owner], cuts.cell], number[cuts.cell, j[cuts.owner]]
    return _boxes(i[:, None], j[:, None], cuts, sides, (begin, end))


def _listed(cells: tuple[int, ...], depth: int) -> Boxes:
    """Return the box of all cells, those after one cut, and those after two."""
    total = sum(cells) - len(cells)
    if (work := 2 * total * total if depth > 1 else total) > MOST_SPLITS:
        problem = f"{total:,} cuts have {work:,} trees of depth {depth}, and {MOST_SPLITS:,} are summed over"
        raise InputError(problem, "too_many_rows", hint=f"give fewer cuts or features; {INSTEAD}")
    low, high = np.zeros((1, len(cells)), dtype=np.int64), np.array([cells], dtype=np.int64)
    levels: list[tuple[Cuts, np.ndarray, np.ndarray]] = []
    ends = [0, 1]
    for _ in range(depth):
        first = ends[-2]
        cuts = Cuts.of(low[first:], high[first:])
        left, right = _sides_of(low[first:], high[first:], cuts)
        count = len(low) + np.arange(len(cuts.owner))
        levels.append((cuts._replace(owner=cuts.owner + first), count, count + len(count)))
        low, high = np.vstack([low, left[0], right[0]]), np.vstack([high, left[1], right[1]])
        ends.append(len(low))
    joined = Cuts(*map(np.concatenate, zip(*(cuts for cuts, _, _ in levels), strict=True)))
    sides = tuple(np.concatenate([level[side] for level in levels]) for side in (1, 2))
    parents = np.searchsorted(np.unique(joined.owner), ends)
    return _boxes(low, high, joined, sides, (parents[:-2], parents[1:-1]))


def _sides_of(low: np.ndarray, high: np.ndarray, cuts: Cuts) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Return low and high of the left and of the right side of each cut."""
    ends_left, starts_right = high[cuts.owner], low[cuts.owner]
    at = np.arange(len(cuts.owner)), cuts.feature
    ends_left[at], starts_right[at] = cuts.cell, cuts.cell
    return (low[cuts.owner], ends_left), (starts_right, high[cuts.owner])


def _boxes(
    low: np.ndarray,
    high: np.ndarray,
    cuts: Cuts,
    sides: tuple[np.ndarray, ...],
    levels: tuple[np.ndarray, np.ndarray],
) -> Boxes:
    parents, first = np.unique(cuts.owner, return_index=True)
    ends = np.append(first, len(cuts.owner))
    whole = [np.ascontiguousarray(each, dtype=np.int64) for each in (parents, ends, *sides, *levels)]
    splits = Splits(whole[0], whole[1], whole[2], whole[3], np.exp(cuts.log_share), cuts.log_share, whole[4], whole[5])
    return Boxes(low, high, splits, cuts.feature, cuts.cell, len(levels[0]))


def _of_cells(box: np.ndarray, cell: np.ndarray, y: np.ndarray, boxes: int, cells: int) -> Moments:
    """Return the moments (boxes, cells) of rows by the box and the cell that each is in."""
    place, size = box * cells + cell, boxes * cells
    n = np.bincount(place, minlength=size).astype(np.float64)
    mean = np.bincount(place, y, size) / np.maximum(n, 1.0)
    scatter = np.bincount(place, np.square(y - mean[place]), size)
    return Moments(*(each.reshape(boxes, cells) for each in (n, mean, scatter, np.zeros(size))))


def _running(each: Moments, is_backward: bool = False) -> Moments:
    """Return the moments (B, K + 1) of the K cells of B boxes before each, or from it on."""
    boxes, cells = each.n.shape
    sums = [Moments(*(np.zeros(boxes) for _ in PARTS))]
    for k in range(cells)[::-1] if is_backward else range(cells):
        sums.append(sums[-1] + each[:, k])
    return _stacked(sums[::-1] if is_backward else sums, 1)


def _moments_from_each(each: Moments) -> Moments:
    """Return the moments (K + 1, K) of cells before the first index, from the second on."""
    cells = each.n.shape[1]
    sums = [Moments(*(np.zeros(cells) for _ in PARTS))]
    for k in range(cells):
        starts = np.arange(cells) <= k
        own = Moments(*(np.where(starts, getattr(each, name)[0, k], 0.0) for name in PARTS))
        sums.append(sums[-1] + own)
    return _stacked(sums, 0)


def _stacked(sums: list[Moments], axis: int) -> Moments:
    return Moments(*(np.stack([getattr(each, name) for each in sums], axis) for name in PARTS))


def _joined(parts: list[Moments]) -> Moments:
    return Moments(*(np.concatenate([getattr(each, name) for each in parts]) for name in PARTS))
