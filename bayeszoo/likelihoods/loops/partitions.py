"""Sums over trees of cuts. Numba. Upwards: log densities; downwards: probabilities of leaves.

N boxes have log densities as leaves (N,), and `Trees` has their possible cuts. The prior is that of Chipman, George and
McCulloch 1998.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.likelihoods.compiling import loop

COST, SMALLEST = 3.0, 1e-250
"""Nats subtracted for a leaf in the tilt, and the smallest reliable tilted density of all rows."""
NEGLIGIBLE = -50.0
"""Nats below the best cut of a box at which a cut is negligible in a sum of a million."""
RARE = 1e-17
"""Probability below which a cut, or a box at a depth, is negligible."""


class Trees(NamedTuple):
    """Boxes and their possible cuts.

    Boxes that can be cut at depth d are ``parents[begin[d]:end[d]]``; the cuts of the b-th are from ``first[b]`` to
    ``first[b + 1]``, with sides ``left`` and ``right`` and a prior probability ``share`` each. A box that can be cut,
    ``has_cuts`` 1, is cut at depth d with log probability ``log_split[d]``, else ``log_stop[d]``; at the last depth,
    and without cuts, it is a leaf. Intervals of one feature are from cells ``low`` to before ``high``, and ``order`` is
    their order by ends; for several features it is empty.
    """

    order: np.ndarray
    low: np.ndarray
    high: np.ndarray
    parents: np.ndarray
    first: np.ndarray
    left: np.ndarray
    right: np.ndarray
    share: np.ndarray
    log_share: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    log_stop: np.ndarray
    log_split: np.ndarray
    has_cuts: np.ndarray


class RowsOfBoxes(NamedTuple):
    """Counts, scatters, means minus the prior mean of the rows in each box (N,), and the prior variance of a leaf."""

    n: np.ndarray
    scatter: np.ndarray
    deviation: np.ndarray
    spread: float


@loop
def upward(leaf, trees, is_highest, up):  # type: ignore[no-untyped-def]
    """Fill in log densities (D + 1, N) of the rows of boxes from each depth on: summed over trees, or of the best."""
    left, right, log_share, depth = trees.left, trees.right, trees.log_share, len(trees.begin)
    for d in range(depth + 1):
        up[d] = leaf
    for d in range(depth - 1, -1, -1):
        below = up[d + 1]
        for b in range(trees.begin[d], trees.end[d]):
            box, cuts = trees.parents[b], range(trees.first[b], trees.first[b + 1])
            highest = -np.inf
            for s in cuts:
                highest = max(highest, below[left[s]] + below[right[s]] + log_share[s])
            stop, split = trees.log_stop[d] + leaf[box], trees.log_split[d] + highest
            if is_highest:
                up[d, box] = max(stop, split)
                continue
            total = 0.0
            for s in cuts:
                lower = below[left[s]] + below[right[s]] + log_share[s] - highest
                if lower > NEGLIGIBLE:
                    total += math.exp(lower)
            split += math.log(total)
            top = max(stop, split)
            up[d, box] = top + math.log(math.exp(stop - top) + math.exp(split - top))


@loop
def downward(leaf, trees, up, leaves, cuts):  # type: ignore[no-untyped-def]
    """Fill in posterior probabilities: of each box to be a leaf, (N,), and of each cut to be made, (S,)."""
    left, right, depth, reach = trees.left, trees.right, len(trees.begin), np.zeros_like(up)
    reach[0, 0] = 1.0
    cuts[:] = 0.0
    leaves[:] = 0.0
    for d in range(depth + 1):
        for n in range(len(leaf)):
            if d == depth or trees.has_cuts[n] == 0:
                leaves[n] += reach[d, n]
        if d == depth:
            break
        for b in range(trees.begin[d], trees.end[d]):
            box = trees.parents[b]
            box_reach = reach[d, box]
            if box_reach == 0.0:
                continue
            for s in range(trees.first[b], trees.first[b + 1]):
                sides = up[d + 1, left[s]] + up[d + 1, right[s]]
                flow = box_reach * math.exp(trees.log_split[d] + trees.log_share[s] + sides - up[d, box])
                reach[d + 1, left[s]] += flow
                reach[d + 1, right[s]] += flow
                cuts[s] += flow
            leaves[box] += box_reach * math.exp(trees.log_stop[d] + leaf[box] - up[d, box])


@loop
def tilted(leaf, trees, tilt):  # type: ignore[no-untyped-def]
    """Fill in a number for each interval (N,), additive over cuts, close to its log density over all trees.

    It is the best sum over leaves between its start and end.
    """
    low, high, best = trees.low, trees.high, np.full(len(leaf) + 1, -np.inf)
    best[0] = 0.0
    for b in trees.order:
        best[high[b]] = max(best[high[b]], best[low[b]] + leaf[b] - COST)
    for b in trees.order:
        tilt[b] = best[high[b]] - best[low[b]]


@loop
def summed(leaf, trees, tilt, up):  # type: ignore[no-untyped-def]
    """Fill in densities over exp(tilt) of intervals from each depth on, (D + 1, N); return the log density of all rows.

    They are sums of products without logarithms; those that underflow are negligible. The result is -inf if the density
    of all rows is too small; then use `upward`.
    """
    left, right, share = trees.left, trees.right, trees.share
    stop, split = np.exp(trees.log_stop), np.exp(trees.log_split)
    tilted(leaf, trees, tilt)
    as_leaf = np.exp(leaf - tilt)
    depth = len(trees.begin)
    for d in range(depth, -1, -1):
        up[d] = as_leaf
        if d < depth:
            below = up[d + 1]
            for b in range(trees.begin[d], trees.end[d]):
                total = 0.0
                for s in range(trees.first[b], trees.first[b + 1]):
                    total += below[left[s]] * below[right[s]] * share[s]
                up[d, trees.parents[b]] = stop[d] * as_leaf[trees.parents[b]] + split[d] * total
    return math.log(up[0, 0]) + tilt[0] if up[0, 0] > SMALLEST else -np.inf


@loop
def log_densities(leaf, trees, up):  # type: ignore[no-untyped-def]
    """Fill in the result of `upward` over all trees; -inf where a density is negligible."""
    tilt = np.empty(len(leaf))
    if len(trees.order) and summed(leaf, trees, tilt, up) > -np.inf:
        for d in range(len(up)):
            up[d] = np.log(up[d]) + tilt
    else:
        upward(leaf, trees, False, up)


@loop
def downward_of_sums(trees, up, leaves, cuts):  # type: ignore[no-untyped-def]
    """Fill in the result of `downward`, from densities of `summed`."""
    left, right, depth, reach = trees.left, trees.right, len(trees.begin), np.zeros_like(up)
    split = np.exp(trees.log_split)
    reach[0, 0] = 1.0
    cuts[:] = 0.0
    leaves[:] = 0.0
    for d in range(depth + 1):
        for n in range(len(leaves)):
            if d == depth or trees.has_cuts[n] == 0:
                leaves[n] += reach[d, n]
        if d == depth:
            break
        for b in range(trees.begin[d], trees.end[d]):
            box = trees.parents[b]
            if reach[d, box] == 0.0:
                continue
            leaves[box] += reach[d, box] * up[depth, box] / up[d, box] * (1.0 - split[d])
            rate = reach[d, box] / up[d, box] * split[d]
            for s in range(trees.first[b], trees.first[b + 1]):
                flow = rate * up[d + 1, left[s]] * up[d + 1, right[s]] * trees.share[s]
                reach[d + 1, left[s]] += flow
                reach[d + 1, right[s]] += flow
                cuts[s] += flow


@loop
def passed(leaf, trees, leaves, cuts):  # type: ignore[no-untyped-def]
    """Fill in the probabilities of leaves (N,) and cuts (S,); return the log density of all rows."""
    up = np.empty((len(trees.begin) + 1, len(leaf)))
    if len(trees.order):
        value = summed(leaf, trees, np.empty(len(leaf)), up)
        if value > -np.inf:
            downward_of_sums(trees, up, leaves, cuts)
            return value
    upward(leaf, trees, False, up)
    downward(leaf, trees, up, leaves, cuts)
    return up[0, 0]


@loop
def log_density(leaf, trees):  # type: ignore[no-untyped-def]
    """Return the log density of all rows, summed over all trees."""
    up = np.empty((len(trees.begin) + 1, len(leaf)))
    if len(trees.order):
        value = summed(leaf, trees, np.empty(len(leaf)), up)
        if value > -np.inf:
            return value
    upward(leaf, trees, False, up)
    return up[0, 0]


@loop
def with_slope(v, rows, trees):  # type: ignore[no-untyped-def]
    """Return the log density of all rows at a noise variance, and its derivative, from the probabilities of leaves."""
    n, scatter, count = rows.n, rows.scatter, len(rows.n)
    leaf, leaves, cuts = np.empty(count), np.empty(count), np.empty(len(trees.left))
    for i in range(count):
        total, squares = v + n[i] * rows.spread, n[i] * rows.deviation[i] * rows.deviation[i]
        leaf[i] = -0.5 * (
            n[i] * LOG_2_PI + (n[i] - 1.0) * math.log(v) + math.log(total) + scatter[i] / v + squares / total
        )
    value = passed(leaf, trees, leaves, cuts)
    slope = 0.0
    for i in range(count):
        total, squares = v + n[i] * rows.spread, n[i] * rows.deviation[i] * rows.deviation[i]
        slope += 0.5 * leaves[i] * ((scatter[i] / v - (n[i] - 1.0)) / v + (squares / total - 1.0) / total)
    return value, slope


@loop
def generating(leaf, trees, up, points, values):  # type: ignore[no-untyped-def]
    """Fill in E[z ** leaves] of each box from each depth on, (D + 1, N, R), at points z (R,).

    ``up`` are the log densities of `upward`. Boxes that are improbable at a depth are skipped.
    """
    left, right, depth, reach = trees.left, trees.right, len(trees.begin), np.zeros_like(up)
    reach[0, 0] = 1.0
    flow = np.zeros((depth, len(left)))
    for d in range(depth):
        for b in range(trees.begin[d], trees.end[d]):
            box = trees.parents[b]
            if reach[d, box] < RARE:
                continue
            for s in range(trees.first[b], trees.first[b + 1]):
                sides = up[d + 1, left[s]] + up[d + 1, right[s]]
                flow[d, s] = math.exp(trees.log_split[d] + trees.log_share[s] + sides - up[d, box])
                reach[d + 1, left[s]] += reach[d, box] * flow[d, s]
                reach[d + 1, right[s]] += reach[d, box] * flow[d, s]
    for d in range(depth, -1, -1):
        values[d] = points
        if d == depth:
            continue
        for b in range(trees.begin[d], trees.end[d]):
            box = trees.parents[b]
            if reach[d, box] < RARE:
                continue
            values[d, box] = points * math.exp(trees.log_stop[d] + leaf[box] - up[d, box])
            for s in range(trees.first[b], trees.first[b + 1]):
                if reach[d, box] * flow[d, s] > RARE:
                    for r in range(len(points)):
                        values[d, box, r] += flow[d, s] * values[d + 1, left[s], r] * values[d + 1, right[s], r]
