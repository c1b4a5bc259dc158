"""Gibbs sweeps over the inclusion of terms in a regression, weights and noise integrated out. Numba.

The log density of each subset is computed from scratch, from Cholesky factors of its rows and
columns: no errors accumulate, and a subset of k terms costs k^3 / 3.
"""

from __future__ import annotations

import math

import numpy as np

from bayeszoo.likelihoods.compiling import loop


@loop
def _factor(matrix, index, size, root):  # type: ignore[no-untyped-def]
    """Write the lower Cholesky factor of the chosen rows and columns into ``root``; return the log of its diagonal."""
    log_size = 0.0
    for i in range(size):
        for j in range(i + 1):
            value = matrix[index[i], index[j]]
            for k in range(j):
                value -= root[i, k] * root[j, k]
            root[i, j] = math.sqrt(value) if i == j else value / root[j, j]
        log_size += math.log(root[i, i])
    return log_size


@loop
def log_height(members, gram, precision, products, total, fixed, shape, b0, log_prior):  # type: ignore[no-untyped-def]
    """Return log p(y, subset), up to a constant.

    ``members`` (T,) marks the included terms; ``gram`` (T, T) is the posterior precision of all weights over the noise
    variance, ``precision`` (T, T) the prior's, ``products`` (T,) are those of columns and outcome, ``total`` its
    sum of squares. The noise variance has the posterior ``shape`` and the prior scale ``b0``.
    """
    index = np.flatnonzero(members)
    size = len(index)
    root = np.empty((size, size))
    before = _factor(precision, index, size, root)
    learned = _factor(gram, index, size, root)
    misfit = total
    solved = np.empty(size)
    for i in range(size):
        value = products[index[i]]
        for k in range(i):
            value -= root[i, k] * solved[k]
        solved[i] = value / root[i, i]
        misfit -= solved[i] * solved[i]
    return before - learned - shape * math.log(b0 + max(misfit, 0.0) / 2) + log_prior[size - fixed]


@loop
def sweep(members, gram, precision, products, total, fixed, shape, b0, log_prior, power, rng):  # type: ignore[no-untyped-def]
    """Draw the inclusion of each term after the ``fixed`` first, in place, then propose swaps of terms."""
    T = len(members)
    current = log_height(members, gram, precision, products, total, fixed, shape, b0, log_prior)
    for j in range(fixed, T):
        members[j] = not members[j]
        proposed = log_height(members, gram, precision, products, total, fixed, shape, b0, log_prior)
        if rng.random() * (1.0 + math.exp(-power * (proposed - current))) < 1.0:
            current = proposed
        else:
            members[j] = not members[j]
    for _ in range(members[fixed:].sum()):
        inside, outside = np.flatnonzero(members[fixed:]), np.flatnonzero(~members[fixed:])
        if len(outside) == 0:
            break
        i, j = inside[int(rng.random() * len(inside))], outside[int(rng.random() * len(outside))]
        members[fixed + i], members[fixed + j] = False, True
        proposed = log_height(members, gram, precision, products, total, fixed, shape, b0, log_prior)
        if math.log(1.0 - rng.random()) < power * (proposed - current):
            current = proposed
        else:
            members[fixed + i], members[fixed + j] = True, False
