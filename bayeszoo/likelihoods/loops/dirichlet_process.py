"""Collapsed Gibbs sampling of clusters of Gaussian rows, with splits and merges. Numba.

Parameters are integrated out; a cluster's posterior (normal-inverse-Wishart or -gamma) is updated row by row. Its
matrix psi is (D, D) for full covariances, (D, 1) for diagonal and (1, 1) for spherical ones.
"""

from __future__ import annotations

import math

import numpy as np

from bayeszoo.likelihoods.compiling import loop

FULL, DIAGONAL, SPHERICAL = 0, 1, 2


@loop
def _log_beta(a, b):  # type: ignore[no-untyped-def]
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@loop
def _log_of_one_and(x):  # type: ignore[no-untyped-def]
    """Return log(1 + exp(x)) without overflow."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@loop
def _log_of_sticks(counts, alpha, beta, first, last):  # type: ignore[no-untyped-def]
    """Return the log probability of counts (K,) under the sticks from first to last, up to a constant."""
    value, after = 0.0, counts[first:].sum()
    for k in range(first, min(last + 1, len(beta))):
        after -= counts[k]
        value += _log_beta(alpha[k] + counts[k], beta[k] + after)
    return value


@loop
def _refresh(kind, k, state):  # type: ignore[no-untyped-def]
    """Update the predictive density of cluster k; return False if psi has lost its digits."""
    size, mean, psi, root, constant, power, of_size, _ = state
    D, n = mean.shape[1], int(size[k])
    log_det = 0.0
    if kind == FULL:
        for i in range(D):
            for j in range(i + 1):
                value = psi[k, i, j]
                for m in range(j):
                    value -= root[k, i, m] * root[k, j, m]
                if i == j:
                    if not value > 0.0:
                        return False
                    root[k, i, i] = math.sqrt(value)
                    log_det += math.log(value)
                else:
                    root[k, i, j] = value / root[k, j, j]
    else:
        for i in range(psi.shape[1]):
            if not psi[k, i, 0] > 0.0:
                return False
            root[k, i, 0] = 1.0 / psi[k, i, 0]
            log_det += math.log(psi[k, i, 0]) * (D if kind == SPHERICAL else 1)
    power[k] = of_size[1, n]
    constant[k] = of_size[2, n] - log_det / 2
    return True


@loop
def _log_predictive(kind, k, y, state):  # type: ignore[no-untyped-def]
    """Return the Student-t log density of a row given the rows of cluster k."""
    size, mean, _, root, constant, power, of_size, z = state
    D, kappa = mean.shape[1], of_size[0, int(size[k])]
    share = kappa / (kappa + 1)
    if kind == FULL:
        squares = 0.0
        for i in range(D):
            value = y[i] - mean[k, i]
            for j in range(i):
                value -= root[k, i, j] * z[j]
            z[i] = value / root[k, i, i]
            squares += z[i] * z[i]
        return constant[k] - power[k] * math.log1p(share * squares)
    value, squares = constant[k], 0.0
    for i in range(D):
        if kind == DIAGONAL:
            value -= power[k] * math.log1p(share * (y[i] - mean[k, i]) ** 2 * root[k, i, 0])
        else:
            squares += (y[i] - mean[k, i]) ** 2 * root[k, 0, 0]
    return value - power[k] * math.log1p(share * squares) if kind == SPHERICAL else value


@loop
def _take(kind, k, y, sign, state):  # type: ignore[no-untyped-def]
    """Add a row to cluster k, or with sign -1 remove it; return False if digits are lost."""
    size, mean, psi, kappas = state[0], state[1], state[2], state[6][0]
    D, kappa = mean.shape[1], kappas[int(size[k])]
    ratio = kappa / (kappa + sign)
    for i in range(D):
        if kind == FULL:
            for j in range(i + 1):
                psi[k, i, j] += sign * ratio * (y[i] - mean[k, i]) * (y[j] - mean[k, j])
        else:
            psi[k, i if kind == DIAGONAL else 0, 0] += sign * ratio * (y[i] - mean[k, i]) ** 2
    size[k] += sign
    for i in range(D):
        mean[k, i] += sign * (y[i] - mean[k, i]) / (kappa + sign)
    return _refresh(kind, k, state)


@loop
def _empty(kind, k, prior, state):  # type: ignore[no-untyped-def]
    """Reset cluster k to no rows: its posterior is the prior."""
    size, mean, psi = state[:3]
    size[k] = 0.0
    mean[k], psi[k] = prior
    _refresh(kind, k, state)


@loop
def _fill(kind, k, component, Y, prior, state):  # type: ignore[no-untyped-def]
    """Rebuild cluster k from the rows of component k."""
    _empty(kind, k, prior, state)
    for n in range(len(Y)):
        if component[n] == k:
            _take(kind, k, Y[n], 1, state)


@loop
def _draw_components(kind, component, counts, order, Y, alpha, beta, prior, state, rng):  # type: ignore[no-untyped-def]
    """Draw the cluster of each row given those of all other rows."""
    K, logs = len(alpha), np.empty(len(alpha))
    _empty(kind, K, prior, state)  # a cluster without rows, for any empty stick
    for n in order:
        old = component[n]
        counts[old] -= 1.0
        if counts[old] == 0.0:
            _empty(kind, old, prior, state)
        elif not _take(kind, old, Y[n], -1, state):
            component[n] = -1
            _fill(kind, old, component, Y, prior, state)
        of_new, largest = _log_predictive(kind, K, Y[n], state), -math.inf
        for k in range(K):
            logs[k] = _log_predictive(kind, k, Y[n], state) if counts[k] > 0.0 else of_new
            largest = max(largest, logs[k])
        after, remaining, total, to_new = counts.sum(), 1.0, 0.0, math.exp(of_new - largest)
        for k in range(K):
            weight = remaining
            if k < K - 1:
                after -= counts[k]
                concentration = alpha[k] + beta[k] + counts[k] + after
                weight *= (alpha[k] + counts[k]) / concentration
                remaining *= (beta[k] + after) / concentration
            total += weight * (math.exp(logs[k] - largest) if counts[k] > 0.0 else to_new)
            logs[k] = total
        target, new = rng.random() * total, 0
        for k in range(K - 1):
            new += target >= logs[k]
        component[n] = new
        counts[new] += 1.0
        _take(kind, new, Y[n], 1, state)


@loop
def _split_or_merge(kind, component, counts, Y, alpha, beta, prior, state, rng):  # type: ignore[no-untyped-def]
    """Propose to split the cluster of two random rows, or to merge their clusters, by Dahl's sequential allocation.

    The other rows are allocated, in random order, to the first or the second row by their predictive densities; a merge
    is accepted with the probability of allocating the two clusters this way.
    """
    N, K = len(Y), len(alpha)
    i, j = rng.integers(0, N), rng.integers(0, N - 1)
    j += j >= i
    first, second = component[i], component[j]
    is_split, empty = first == second, 0
    for k in range(K):
        empty += counts[k] == 0.0
    if is_split and empty == 0:
        return
    if is_split:  # to any empty stick
        place = rng.integers(0, empty)
        for k in range(K):
            if counts[k] == 0.0:
                if place == 0:
                    second = k
                place -= 1
    else:
        empty += 1
    rows = np.flatnonzero((component == first) | (component == component[j]))
    rng.shuffle(rows)
    first_part, second_part, joint = K, K + 1, K + 2
    for k in (first_part, second_part, joint):
        _empty(kind, k, prior, state)
    log_apart = _log_predictive(kind, first_part, Y[i], state) + _log_predictive(kind, second_part, Y[j], state)
    log_together = _log_predictive(kind, joint, Y[i], state)
    _take(kind, first_part, Y[i], 1, state)
    _take(kind, second_part, Y[j], 1, state)
    _take(kind, joint, Y[i], 1, state)
    log_together += _log_predictive(kind, joint, Y[j], state)
    _take(kind, joint, Y[j], 1, state)
    in_first, in_second, log_q = 1.0, 1.0, 0.0
    proposed = component.copy()
    proposed[i], proposed[j] = first, second
    for n in rows:
        if n in (i, j):
            continue
        of_first, of_second = (
            _log_predictive(kind, first_part, Y[n], state),
            _log_predictive(kind, second_part, Y[n], state),
        )
        odds = math.log(in_first / in_second) + of_first - of_second
        goes_first = component[n] == first
        if is_split:
            goes_first = math.log(rng.random()) < -_log_of_one_and(-odds)
            proposed[n] = first if goes_first else second
        log_q -= _log_of_one_and(-odds if goes_first else odds)
        log_together += _log_predictive(kind, joint, Y[n], state)
        _take(kind, joint, Y[n], 1, state)
        if goes_first:
            log_apart += of_first
            in_first += 1.0
            _take(kind, first_part, Y[n], 1, state)
        else:
            log_apart += of_second
            in_second += 1.0
            _take(kind, second_part, Y[n], 1, state)
    split, merged = counts.copy(), counts.copy()
    split[first], split[second] = in_first, in_second
    merged[first], merged[second] = in_first + in_second, 0.0
    low, high = min(first, second), max(first, second)
    gain = _log_of_sticks(split, alpha, beta, low, high) - _log_of_sticks(merged, alpha, beta, low, high)
    gain += log_apart - log_together
    gain -= log_q - math.log(empty)
    if math.log(rng.random()) >= (gain if is_split else -gain):
        return
    if is_split:
        component[:], counts[:] = proposed, split
    else:
        component[component == second] = first
        counts[:] = merged
    _fill(kind, first, component, Y, prior, state)
    _fill(kind, second, component, Y, prior, state)


@loop
def _exchange_labels(component, counts, alpha, beta, times, rng):  # type: ignore[no-untyped-def]
    """Propose to exchange the sticks of two clusters, N times."""
    K = len(alpha)
    labels = np.arange(K)
    for _ in range(times):
        k, m = rng.integers(0, K), rng.integers(0, K)
        if counts[k] == counts[m] == 0.0 or k == m:
            continue
        low, high = min(k, m), max(k, m)
        old = _log_of_sticks(counts, alpha, beta, low, high)
        counts[k], counts[m] = counts[m], counts[k]
        if math.log(rng.random()) < _log_of_sticks(counts, alpha, beta, low, high) - old:
            labels[k], labels[m] = labels[m], labels[k]
        else:
            counts[k], counts[m] = counts[m], counts[k]
    places = np.empty(K, dtype=component.dtype)
    places[labels] = np.arange(K)
    component[:] = places[component]


@loop
def sweep(kind, component, orders, Y, alpha, beta, prior, state, splits, rng):  # type: ignore[no-untyped-def]
    """Draw the clusters of all rows, in place, once for each order in ``orders`` (M, rows).

    ``component`` (rows,) are numbers of K sticks, with the prior Beta(``alpha`` (K,), ``beta`` (K - 1,)). ``prior`` has
    the mean (D,) and psi of a cluster. ``state`` are arrays for K + 3 clusters: size, mean, psi, its root, constant and
    power of the predictive density; then, by size of a cluster, (3, rows + 1) kappa, power, and the constant without
    the determinant; and scratch (D,). ``splits`` is the number of split or merge proposals after each sweep; exchanges
    of sticks are proposed K times.
    """
    K = len(alpha)
    for order in orders:
        counts = np.zeros(K)
        for n in range(len(Y)):
            counts[component[n]] += 1.0
        for k in range(K):  # removes rounding errors of additions and removals
            _fill(kind, k, component, Y, prior, state)
        _draw_components(kind, component, counts, order, Y, alpha, beta, prior, state, rng)
        if len(Y) > 1 and K > 1:
            for _ in range(splits):
                _split_or_merge(kind, component, counts, Y, alpha, beta, prior, state, rng)
            _exchange_labels(component, counts, alpha, beta, K, rng)
