"""Sums over trees of cuts, compiled: upwards their log densities, downwards the probabilities of their leaves.

N boxes have log densities as leaves (N,), and `Trees` says how each may be cut. Chipman, George and McCulloch 1998 have
the prior.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

LOG_2PI = math.log(2.0 * math.pi)
COST, SMALLEST = 3.0, 1e-250
"""Nats that a leaf costs in the tilt, and the smallest tilted density of all rows that is believed."""
NEGLIGIBLE = -50.0
"""Nats below the best cut of a box at which another adds nothing to a sum of a million."""
RARE = 1e-17
"""Probability of a cut, or of a box at a depth, that adds nothing to a probability."""


class Trees(NamedTuple):
    """Boxes and how a tree may cut them.

    Boxes that a tree may cut at depth d are ``parents[begin[d]:end[d]]``; the cuts of the b-th are from ``first[b]`` to
    ``first[b + 1]``, with sides ``left`` and ``right`` and a prior probability ``share`` each. A box that can be cut,
    ``has_cuts`` 1, is cut at depth d with log probability ``log_split[d]``, else ``log_stop[d]``; at the last depth,
    and without cuts, it is a leaf. Intervals of one feature are from cells ``low`` to before ``high``, and ``order`` is
    theirs by their ends; of several features it is empty.
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
    """Counts, scatters, means less the prior mean of the rows in each box (N,), and the prior variance of a leaf."""

    n: np.ndarray
    scatter: np.ndarray
    deviation: np.ndarray
    spread: float


_loops = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=False)


@_loops
def upward(leaf, trees, is_highest, up):  # type: ignore[no-untyped-def]
    """Fill in the log density of the rows of each box from each depth on, (D + 1, N): over all trees, or the best."""
    left, right, log_share, depth = trees.left, trees.right, trees.log_share, len(trees.begin)
    for d in range(depth + 1):
        up[d] = leaf
    for d in range(depth - 1, -1, -1):
        below = up[d + 1]
        for b in range(trees.begin[d], trees.end[d]):
            box, some = trees.parents[b], range(trees.first[b], trees.first[b + 1])
            highest = -np.inf
            for s in some:
                highest = max(highest, below[left[s]] + below[right[s]] + log_share[s])
            stop, split = trees.log_stop[d] + leaf[box], trees.log_split[d] + highest
            if is_highest:
                up[d, box] = max(stop, split)
                continue
            total = 0.0
            for s in some:
                lower = below[left[s]] + below[right[s]] + log_share[s] - highest
                if lower > NEGLIGIBLE:
                    total += math.exp(lower)
            split += math.log(total)
            top = max(stop, split)
            up[d, box] = top + math.log(math.exp(stop - top) + math.exp(split - top))


@_loops
def downward(leaf, trees, up, leaves, cuts):  # type: ignore[no-untyped-def]
    """Fill in posterior probabilities: of each box that it is a leaf, (N,), and of each cut that it is made, (S,)."""
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
            own = reach[d, box]
            if own == 0.0:
                continue
            for s in range(trees.first[b], trees.first[b + 1]):
                sides = up[d + 1, left[s]] + up[d + 1, right[s]]
                flow = own * math.exp(trees.log_split[d] + trees.log_share[s] + sides - up[d, box])
                reach[d + 1, left[s]] += flow
                reach[d + 1, right[s]] += flow
                cuts[s] += flow
            leaves[box] += own * math.exp(trees.log_stop[d] + leaf[box] - up[d, box])


@_loops
def tilted(leaf, trees, tilt):  # type: ignore[no-untyped-def]
    """Fill in a number for each interval (N,) that adds up over cuts, near its log density over all trees.

    It is the best sum over leaves from its start to its end.
    """
    low, high, best = trees.low, trees.high, np.full(len(leaf) + 1, -np.inf)
    best[0] = 0.0
    for b in trees.order:
        best[high[b]] = max(best[high[b]], best[low[b]] + leaf[b] - COST)
    for b in trees.order:
        tilt[b] = best[high[b]] - best[low[b]]


@_loops
def summed(leaf, trees, tilt, up):  # type: ignore[no-untyped-def]
    """Fill in densities of intervals over exp(tilt) from each depth on, (D + 1, N); return the log of that of all rows.

    They are sums of products, without a logarithm: those too small for a number decide nothing. Returned is -inf where
    that of all rows is too small itself; then `upward` has it.
    """
    left, right, share = trees.left, trees.right, trees.share
    stop, split = np.exp(trees.log_stop), np.exp(trees.log_split)
    tilted(leaf, trees, tilt)
    own = np.exp(leaf - tilt)
    depth = len(trees.begin)
    for d in range(depth, -1, -1):
        up[d] = own
        if d < depth:
            below = up[d + 1]
            for b in range(trees.begin[d], trees.end[d]):
                total = 0.0
                for s in range(trees.first[b], trees.first[b + 1]):
                    total += below[left[s]] * below[right[s]] * share[s]
                up[d, trees.parents[b]] = stop[d] * own[trees.parents[b]] + split[d] * total
    return math.log(up[0, 0]) + tilt[0] if up[0, 0] > SMALLEST else -np.inf


@_loops
def log_densities(leaf, trees, up):  # type: ignore[no-untyped-def]
    """Fill in the same as `upward` over all trees; -inf where a density decides nothing."""
    tilt = np.empty(len(leaf))
    if len(trees.order) and summed(leaf, trees, tilt, up) > -np.inf:
        for d in range(len(up)):
            up[d] = np.log(up[d]) + tilt
    else:
        upward(leaf, trees, False, up)


@_loops
def downward_of_sums(trees, up, leaves, cuts):  # type: ignore[no-untyped-def]
    """Fill in the same as `downward`, by densities of `summed`."""
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
            own = reach[d, box] / up[d, box] * split[d]
            for s in range(trees.first[b], trees.first[b + 1]):
                flow = own * up[d + 1, left[s]] * up[d + 1, right[s]] * trees.share[s]
                reach[d + 1, left[s]] += flow
                reach[d + 1, right[s]] += flow
                cuts[s] += flow


@_loops
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


@_loops
def log_density(leaf, trees):  # type: ignore[no-untyped-def]
    """Return the log density of all rows, summed over all trees."""
    up = np.empty((len(trees.begin) + 1, len(leaf)))
    if len(trees.order):
        value = summed(leaf, trees, np.empty(len(leaf)), up)
        if value > -np.inf:
            return value
    upward(leaf, trees, False, up)
    return up[0, 0]


@_loops
def with_slope(v, rows, trees):  # type: ignore[no-untyped-def]
    """Return the log density of all rows at a noise variance, and its derivative: the leaves' mean over all trees."""
    n, scatter, count = rows.n, rows.scatter, len(rows.n)
    leaf, leaves, cuts = np.empty(count), np.empty(count), np.empty(len(trees.left))
    for i in range(count):
        total, squares = v + n[i] * rows.spread, n[i] * rows.deviation[i] * rows.deviation[i]
        leaf[i] = -0.5 * (
            n[i] * LOG_2PI + (n[i] - 1.0) * math.log(v) + math.log(total) + scatter[i] / v + squares / total
        )
    value = passed(leaf, trees, leaves, cuts)
    slope = 0.0
    for i in range(count):
        total, squares = v + n[i] * rows.spread, n[i] * rows.deviation[i] * rows.deviation[i]
        slope += 0.5 * leaves[i] * ((scatter[i] / v - (n[i] - 1.0)) / v + (squares / total - 1.0) / total)
    return value, slope


@_loops
def generating(leaf, trees, up, points, values):  # type: ignore[no-untyped-def]
    """Fill in the mean of z to the number of leaves of each box from each depth on, (D + 1, N, R), at points z (R,).

    ``up`` are the log densities of `upward`. Boxes that hardly any tree has at a depth are passed over there.
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
