"""Sums over trees of cuts, compiled: upwards their log densities, downwards the probabilities of their leaves.

N boxes have log densities as leaves (N,). Boxes that a tree may cut at depth d are ``parents[begin[d]:end[d]]``; the
cuts of the b-th are from ``first[b]`` to ``first[b + 1]``, with sides ``left`` and ``right`` and a log prior
probability each. A box that can be cut is cut at depth d with log probability ``log_split[d]``, else ``log_stop[d]``;
at the last depth, and without cuts, it is a leaf. Chipman, George and McCulloch 1998 have the prior.
"""

from __future__ import annotations

import math

import numba
import numpy as np

LOG_2PI = math.log(2.0 * math.pi)
COST, SMALLEST = 3.0, 1e-250
"""Nats that a leaf costs in the tilt, and the smallest tilted density of all rows that is believed."""
NEGLIGIBLE = -50.0
"""Nats below the best cut of a box at which another adds nothing to a sum of a million."""

_loops = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=False)


@_loops
def upward(  # type: ignore[no-untyped-def]
    leaf, parents, first, left, right, log_share, begin, end, log_stop, log_split, is_highest, up
):
    """Fill in the log density of the rows of each box from each depth on, (D + 1, N): over all trees, or the best."""
    depth = len(begin)
    for d in range(depth + 1):
        up[d] = leaf
    for d in range(depth - 1, -1, -1):
        below = up[d + 1]
        for b in range(begin[d], end[d]):
            highest = -np.inf
            for s in range(first[b], first[b + 1]):
                highest = max(highest, below[left[s]] + below[right[s]] + log_share[s])
            stop, split = log_stop[d] + leaf[parents[b]], log_split[d] + highest
            if is_highest:
                up[d, parents[b]] = max(stop, split)
                continue
            total = 0.0
            for s in range(first[b], first[b + 1]):
                lower = below[left[s]] + below[right[s]] + log_share[s] - highest
                if lower > NEGLIGIBLE:
                    total += math.exp(lower)
            split += math.log(total)
            top = max(stop, split)
            up[d, parents[b]] = top + math.log(math.exp(stop - top) + math.exp(split - top))


@_loops
def downward(  # type: ignore[no-untyped-def]
    leaf, parents, first, left, right, log_share, begin, end, log_stop, log_split, has_cuts, up, leaves
):
    """Fill in the posterior probability that each box is a leaf, (N,), and return those of the first cuts, (S_0,)."""
    depth, reach = len(begin), np.zeros_like(up)
    reach[0, 0] = 1.0
    cuts = np.zeros(first[end[0]] if depth > 0 and end[0] > 0 else 0)
    leaves[:] = 0.0
    for d in range(depth + 1):
        for n in range(len(leaf)):
            if d == depth or has_cuts[n] == 0:
                leaves[n] += reach[d, n]
        if d == depth:
            break
        for b in range(begin[d], end[d]):
            box = parents[b]
            own = reach[d, box]
            if own == 0.0:
                continue
            for s in range(first[b], first[b + 1]):
                sides = up[d + 1, left[s]] + up[d + 1, right[s]]
                flow = math.exp(log_split[d] + log_share[s] + sides - up[d, box])
                reach[d + 1, left[s]] += own * flow
                reach[d + 1, right[s]] += own * flow
                if d == 0:
                    cuts[s] = flow
            leaves[box] += own * math.exp(log_stop[d] + leaf[box] - up[d, box])
    return cuts


@_loops
def tilted(leaf, order, low, high, tilt):  # type: ignore[no-untyped-def]
    """Fill in a number for each interval (N,) that adds up over cuts, near its log density over all trees.

    ``order`` are the intervals by their ends; the number is the best sum over leaves from its start to its end.
    """
    best = np.full(len(leaf) + 1, -np.inf)
    best[0] = 0.0
    for b in order:
        best[high[b]] = max(best[high[b]], best[low[b]] + leaf[b] - COST)
    for b in order:
        tilt[b] = best[high[b]] - best[low[b]]


@_loops
def summed(  # type: ignore[no-untyped-def]
    leaf, order, low, high, parents, first, left, right, share, begin, end, stop, split, up
):
    """Fill in densities of intervals over exp(tilt) from each depth on, (D + 1, N); return the log of that of all rows.

    They are sums of products, without a logarithm: those too small for a number decide nothing. Returned is -inf where
    that of all rows is too small itself; then `upward` has it.
    """
    tilt = np.empty(len(leaf))
    tilted(leaf, order, low, high, tilt)
    own = np.exp(leaf - tilt)
    depth = len(begin)
    for d in range(depth, -1, -1):
        up[d] = own
        if d < depth:
            below = up[d + 1]
            for b in range(begin[d], end[d]):
                total = 0.0
                for s in range(first[b], first[b + 1]):
                    total += below[left[s]] * below[right[s]] * share[s]
                up[d, parents[b]] = stop[d] * own[parents[b]] + split[d] * total
    return math.log(up[0, 0]) + tilt[0] if up[0, 0] > SMALLEST else -np.inf


@_loops
def leaves_of(  # type: ignore[no-untyped-def]
    parents, first, left, right, share, begin, end, split, has_cuts, up, leaves
):
    """Fill in probabilities of leaves (N,) and return those of first cuts, as `downward`, by densities of `summed`."""
    depth, reach = len(begin), np.zeros_like(up)
    reach[0, 0] = 1.0
    cuts = np.zeros(first[end[0]] if depth > 0 and end[0] > 0 else 0)
    leaves[:] = 0.0
    for d in range(depth + 1):
        for n in range(len(leaves)):
            if d == depth or has_cuts[n] == 0:
                leaves[n] += reach[d, n]
        if d == depth:
            break
        for b in range(begin[d], end[d]):
            box = parents[b]
            if reach[d, box] == 0.0:
                continue
            leaves[box] += reach[d, box] * up[depth, box] / up[d, box] * (1.0 - split[d])
            own = reach[d, box] / up[d, box] * split[d]
            for s in range(first[b], first[b + 1]):
                flow = own * up[d + 1, left[s]] * up[d + 1, right[s]] * share[s]
                reach[d + 1, left[s]] += flow
                reach[d + 1, right[s]] += flow
                if d == 0:
                    cuts[s] = flow
    return cuts


@_loops
def passed(  # type: ignore[no-untyped-def]
    leaf,
    order,
    low,
    high,
    parents,
    first,
    left,
    right,
    share,
    log_share,
    begin,
    end,
    log_stop,
    log_split,
    has_cuts,
    leaves,
):
    """Fill in the probabilities of leaves (N,); return the log density of all rows, and those of the first cuts."""
    up = np.empty((len(begin) + 1, len(leaf)))
    if len(order):
        stop, split = np.exp(log_stop), np.exp(log_split)
        value = summed(leaf, order, low, high, parents, first, left, right, share, begin, end, stop, split, up)
        if value > -np.inf:
            return value, leaves_of(parents, first, left, right, share, begin, end, split, has_cuts, up, leaves)
    upward(leaf, parents, first, left, right, log_share, begin, end, log_stop, log_split, False, up)
    cuts = downward(leaf, parents, first, left, right, log_share, begin, end, log_stop, log_split, has_cuts, up, leaves)
    return up[0, 0], cuts


@_loops
def log_density(  # type: ignore[no-untyped-def]
    leaf, order, low, high, parents, first, left, right, share, log_share, begin, end, log_stop, log_split
):
    """Return the log density of all rows, summed over all trees."""
    up = np.empty((len(begin) + 1, len(leaf)))
    if len(order):
        stop, split = np.exp(log_stop), np.exp(log_split)
        value = summed(leaf, order, low, high, parents, first, left, right, share, begin, end, stop, split, up)
        if value > -np.inf:
            return value
    upward(leaf, parents, first, left, right, log_share, begin, end, log_stop, log_split, False, up)
    return up[0, 0]


@_loops
def with_slope(  # type: ignore[no-untyped-def]
    v,
    n,
    scatter,
    deviation,
    spread,
    order,
    low,
    high,
    parents,
    first,
    left,
    right,
    share,
    log_share,
    begin,
    end,
    log_stop,
    log_split,
    has_cuts,
):
    """Return the log density of all rows at a noise variance, and its derivative: the leaves' mean over all trees."""
    count = len(n)
    leaf, leaves = np.empty(count), np.empty(count)
    for i in range(count):
        total, squares = v + n[i] * spread, n[i] * deviation[i] * deviation[i]
        leaf[i] = -0.5 * (
            n[i] * LOG_2PI + (n[i] - 1.0) * math.log(v) + math.log(total) + scatter[i] / v + squares / total
        )
    of_trees = parents, first, left, right, share, log_share, begin, end, log_stop, log_split, has_cuts, leaves
    value, _ = passed(leaf, order, low, high, *of_trees)
    slope = 0.0
    for i in range(count):
        total, squares = v + n[i] * spread, n[i] * deviation[i] * deviation[i]
        slope += 0.5 * leaves[i] * ((scatter[i] / v - (n[i] - 1.0)) / v + (squares / total - 1.0) / total)
    return value, slope


@_loops
def generating(  # type: ignore[no-untyped-def]
    leaf, parents, first, left, right, log_share, begin, end, log_stop, log_split, up, points, values
):
    """Fill in the mean of z to the number of leaves of each box from each depth on, (D + 1, N, R), at points z (R,).

    ``up`` are the log densities of `upward`.
    """
    depth = len(begin)
    for d in range(depth, -1, -1):
        values[d] = points
        if d < depth:
            for b in range(begin[d], end[d]):
                box = parents[b]
                values[d, box] = points * math.exp(log_stop[d] + leaf[box] - up[d, box])
                for s in range(first[b], first[b + 1]):
                    sides = up[d + 1, left[s]] + up[d + 1, right[s]]
                    flow = log_split[d] + log_share[s] + sides - up[d, box]
                    if flow > NEGLIGIBLE:
                        values[d, box] += math.exp(flow) * values[d + 1, left[s]] * values[d + 1, right[s]]
