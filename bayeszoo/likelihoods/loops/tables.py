"""Sweeps of collapsed Gibbs sampling for mixtures of rows of levels: tables are integrated out. Numba."""

from __future__ import annotations

import math

import numpy as np

from bayeszoo.likelihoods.compiling import loop


@loop
def sweep(component, order, levels, table, alpha, eta, totals, rows_in, of_level, of_table, rng):  # type: ignore[no-untyped-def]
    """Draw the component of each row, (rows,), in place, given those of all other rows.

    ``order`` is the order of the rows, ``levels`` (rows, features) are indices on the axis of all levels,
    -1 if missing, ``table`` (L,) the feature of each level; ``alpha`` (K,), ``eta`` (K, L) and ``totals``
    (K, features) the concentrations of the priors and their sums. Counts are those of rows in each component (K,), of
    each level in it (K, L), and of its rows with each feature observed (K, features).
    """
    K, logs = len(alpha), np.empty(len(alpha))
    for n in order:
        old = component[n]
        rows_in[old] -= 1.0
        for level in levels[n]:
            if level >= 0:
                of_level[old, level] -= 1.0
                of_table[old, table[level]] -= 1.0
        largest = -math.inf
        for k in range(K):
            product, log_p = rows_in[k] + alpha[k], 0.0
            for level in levels[n]:
                if level >= 0:
                    j = table[level]
                    product *= (of_level[k, level] + eta[k, level]) / (of_table[k, j] + totals[k, j])
                    if product < 1e-200:  # far from underflow
                        log_p, product = log_p + math.log(product), 1.0
            logs[k] = log_p + math.log(product)
            largest = max(largest, logs[k])
        cumulative = 0.0
        for k in range(K):
            cumulative += math.exp(logs[k] - largest)
            logs[k] = cumulative
        target, new = rng.random() * cumulative, 0
        for k in range(K - 1):
            new += target >= logs[k]
        component[n] = new
        rows_in[new] += 1.0
        for level in levels[n]:
            if level >= 0:
                of_level[new, level] += 1.0
                of_table[new, table[level]] += 1.0
