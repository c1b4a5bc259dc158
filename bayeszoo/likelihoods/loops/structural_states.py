"""States of series: how they move from one row to the next, and what a row says of them. Numba.

The state of a row is its level, slope, the effects of its season and of all earlier ones but the last, and the
weights: d numbers. Its covariance matrix is U diag(D) U' with U unit upper triangular, so that all variances
are sums of positive numbers, at any ratio of the variances; for one number they equal those of
`bayeszoo.likelihoods.loops.kalman`. A row updates it as in Bierman (1977), V.3, and from one row to the next it is
brought into this form by rotations of weighted columns (Thornton and Bierman 1980).

Arrays have points along the last axis, over which the innermost loops run. U is stored by columns: ``U[j, i]`` is its
entry in row i and column j. Rotations of neighbouring columns then read and write separate memory, and are vectorized.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from bayeszoo.likelihoods.compiling import loop

inlined = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=False, forceinline=True)
"""For functions of loops over points, which LLVM leaves out where the caller has a single point."""


class Form(NamedTuple):
    """The meaning of the entries of a state: a level with slope, seasons and weights, or entries moved by a matrix.

    Parameters
    ----------
    sizes : ndarray
        Whole numbers (4,): 1, whether there is a slope, seasons minus one or 0, and the number of weights; of a matrix
        d and zeros.
    start : ndarray
        Mean of the first state, (d,).
    matrix, noise : ndarray
        Transition matrix (d, d), and the variances (d,) of independent noises of the entries, in units of the first
        of ``q2``; without entries for levels.
    parts : ndarray
        Coefficients of the state in the parts that are asked for, (n, d), that of the mean of a row last; only with
        a matrix.
    """

    sizes: np.ndarray
    start: np.ndarray
    matrix: np.ndarray
    noise: np.ndarray
    parts: np.ndarray


@inlined
def observe(U, D, h, noise, f, p, gain, total):  # type: ignore[no-untyped-def]
    """Condition on a number h'x + N(0, noise): update U and D, and fill in its total variance and covariance with x."""
    d, lanes = D.shape
    for j in range(d):
        for k in range(lanes):
            f[j, k] = h[j]
    for i in range(d):
        if h[i] != 0.0:
            for j in range(i + 1, d):
                for k in range(lanes):
                    f[j, k] += h[i] * U[j, i, k]
    for k in range(lanes):
        total[k] = noise[k]
    for j in range(d):
        for k in range(lanes):
            gain[j, k] = D[j, k] * f[j, k]
        for k in range(lanes):
            p[0, k] = -f[j, k] / total[k] if total[k] > 0.0 else 0.0
        for k in range(lanes):
            p[1, k] = total[k] + f[j, k] * gain[j, k]
        for k in range(lanes):
            D[j, k] *= total[k] / p[1, k] if p[1, k] > 0.0 else 1.0
        for k in range(lanes):
            total[k] = p[1, k]
        for i in range(j):
            for k in range(lanes):
                u = U[j, i, k]
                U[j, i, k] = u + gain[i, k] * p[0, k]
                gain[i, k] += u * gain[j, k]


@inlined
def absorb(U, D, v, w, top, room):  # type: ignore[no-untyped-def]
    """Add w v v' for a vector v without entries below ``top``; v and w are overwritten."""
    lanes = len(w)
    for j in range(top, -1, -1):
        for k in range(lanes):
            room[0, k] = D[j, k] + v[j, k] * v[j, k] * w[k]
        for k in range(lanes):
            room[1, k] = D[j, k] / room[0, k] if room[0, k] > 0.0 else 0.0
        for k in range(lanes):
            room[2, k] = v[j, k] * w[k] / room[0, k] if room[0, k] > 0.0 else 0.0
        for i in range(j):
            for k in range(lanes):
                u = U[j, i, k]
                U[j, i, k] = u * room[1, k] + v[i, k] * room[2, k]
                v[i, k] -= v[j, k] * u
        for k in range(lanes):
            w[k] *= room[1, k]
        for k in range(lanes):
            D[j, k] = room[0, k]


@loop
def join(U, D, G, V, S, W, w, share):  # type: ignore[no-untyped-def]
    """Write the factors of U diag(D) U' + G V diag(S) V' G' to V and S, by weighted Gram-Schmidt."""
    d, lanes = D.shape
    for i in range(d):
        for j in range(d):
            for k in range(lanes):
                W[i, j, k], W[i, d + j, k] = U[j, i, k] if j >= i else 0.0, G[i, j, k]
            for r in range(j):
                for k in range(lanes):
                    W[i, d + j, k] += G[i, r, k] * V[j, r, k]
    for j in range(d):
        for k in range(lanes):
            w[j, k], w[d + j, k] = D[j, k], S[j, k]
    for j in range(d - 1, -1, -1):
        for k in range(lanes):
            S[j, k] = 0.0
        for c in range(2 * d):
            for k in range(lanes):
                S[j, k] += w[c, k] * W[j, c, k] * W[j, c, k]
        for i in range(j):
            for k in range(lanes):
                share[k] = 0.0
            for c in range(2 * d):
                for k in range(lanes):
                    share[k] += w[c, k] * W[i, c, k] * W[j, c, k]
            for k in range(lanes):
                share[k] = share[k] / S[j, k] if S[j, k] > 0.0 else 0.0
                V[j, i, k] = share[k]
            for c in range(2 * d):
                for k in range(lanes):
                    W[i, c, k] -= share[k] * W[j, c, k]


@loop
def _multiply(U, D, a, form, variance):  # type: ignore[no-untyped-def]
    """Move a state by its matrix, with noises of these variances (B,) times those of the form."""
    d, lanes = D.shape
    before, G, identity, noise = a.copy(), np.empty((d, d, lanes)), np.zeros((d, d, lanes)), np.empty((d, lanes))
    a[:] = 0.0
    for i in range(d):
        identity[i, i] = 1.0
        for j in range(d):
            G[i, j] = form.matrix[i, j]
            for k in range(lanes):
                a[i, k] += form.matrix[i, j] * before[j, k]
        for k in range(lanes):
            noise[i, k] = form.noise[i] * variance[k]
    join(identity, noise, G, U, D, np.empty((d, 2 * d, lanes)), np.empty((2 * d, lanes)), np.empty(lanes))


@inlined
def step(U, D, a, form, q2, room):  # type: ignore[no-untyped-def]
    """Move the state to the next row."""
    if len(form.matrix):
        _multiply(U, D, a, form, q2[0])
        return
    lanes, slope, seasons, d = D.shape[1], form.sizes[1], form.sizes[2], len(D)
    if slope:
        for k in range(lanes):
            a[0, k] += a[1, k]
        for j in range(1, d):
            for k in range(lanes):
                U[j, 0, k] += U[j, 1, k]
    if seasons:
        _turn(U, D, a, 1 + slope, seasons, room, room[3])
        _add(U, D, q2[2], 1 + slope, room)
    if slope:
        _add(U, D, q2[1], 1, room)
    for k in range(lanes):
        D[0, k] += q2[0, k]


@inlined
def _add(U, D, variance, place, room):  # type: ignore[no-untyped-def]
    """Add a variance to the entry at ``place``."""
    w, v = room[3], room[4:]
    for k in range(len(w)):
        w[k] = variance[k]
        for i in range(place):
            v[i, k] = 0.0
        v[place, k] = 1.0
    absorb(U, D, v, w, place, room)


@inlined
def _shift(v, first, last, filled, total):  # type: ignore[no-untyped-def]
    """Move entries from first to last of a vector on by one; the first becomes minus their sum. 0 after ``filled``."""
    lanes = len(total)
    for k in range(lanes):
        total[k] = -v[first, k]
    for i in range(first + 1, filled + 1):
        for k in range(lanes):
            total[k] -= v[i, k]
    for i in range(min(filled + 1, last), first, -1):
        for k in range(lanes):
            v[i, k] = v[i - 1, k]
    for k in range(lanes):
        v[first, k] = total[k]


@inlined
def _turn(U, D, a, at, n, v, w):  # type: ignore[no-untyped-def]
    """Move seasons on by one: the next effect is minus the sum of the others, which shift back by one.

    Rows of U then have an entry before the diagonal, which rotations of neighbouring columns remove.
    """
    d, lanes = D.shape
    _shift(a, at, at + n - 1, at + n - 1, w)
    for j in range(at, d):
        _shift(U[j], at, at + n - 1, min(j, at + n - 1), w)
    for i in range(at + n - 1, at, -1):
        for k in range(lanes):
            u, left, right = U[i, i, k], D[i - 1, k], D[i, k]
            total = left + u * u * right
            is_turned, share = (total > 0.0) | (right == 0.0), right / (total if total > 0.0 else 1.0)
            v[0, k], v[1, k], v[2, k] = left / (total if total > 0.0 else 1.0), u * share, u if is_turned else 0.0
            D[i - 1, k], D[i, k] = left * share if is_turned else right, total
        for r in range(i):
            for k in range(lanes):
                left, right = U[i - 1, r, k], U[i, r, k]
                U[i, r, k] = left * v[0, k] + right * v[1, k]
                U[i - 1, r, k] = v[2, k] * left - right
        for k in range(lanes):
            U[i - 1, i, k], U[i, i, k] = 0.0, 1.0
    for k in range(lanes):
        side = U[at, at, k]
        D[at, k] *= side * side
        for r in range(at + 1):
            U[at, r, k] /= side


@loop
def begin(U, D, a, form, first, spread, is_first):  # type: ignore[no-untyped-def]
    """Set the state to that of a first row; weights, which sequences share, are reset only with ``is_first``."""
    d, lanes = D.shape
    entries = d if is_first else d - form.sizes[3]
    for i in range(entries):
        for k in range(lanes):
            a[i, k], D[i, k] = form.start[i], spread[i]
        for j in range(d):
            for k in range(lanes):
                U[j, i, k] = first[i, j]
    if is_first:
        for i in range(d):
            for k in range(lanes):
                U[i, i, k] = 1.0


@inlined
def row_of(h, X, t, form):  # type: ignore[no-untyped-def]
    """Fill in the coefficients of the state in the mean of row t."""
    if len(form.parts):
        h[:] = form.parts[len(form.parts) - 1]
        return
    h[:] = 0.0
    h[0] = 1.0
    if form.sizes[2]:
        h[1 + form.sizes[1]] = 1.0
    first_weight = len(h) - form.sizes[3]
    for j in range(form.sizes[3]):
        h[first_weight + j] = X[t, j]


@loop
def back(V, form):  # type: ignore[no-untyped-def]
    """Replace V (d, m) by F'V, with F the transition matrix of the state."""
    d, m = V.shape
    if len(form.matrix):
        after = V.copy()
        V[:] = 0.0
        for i in range(d):
            for j in range(d):
                for c in range(m):
                    V[j, c] += form.matrix[i, j] * after[i, c]
        return
    first, n = 1 + form.sizes[1], form.sizes[2]
    if form.sizes[1]:
        for c in range(m):
            V[1, c] += V[0, c]
    if n:
        new = V[first].copy()
        for i in range(first, first + n - 1):
            for c in range(m):
                V[i, c] = V[i + 1, c] - new[c]
        for c in range(m):
            V[first + n - 1, c] = -new[c]


@loop
def back_twice(N, form):  # type: ignore[no-untyped-def]
    """Replace a symmetric N by F'N F, in two steps whose loops run over neighbours in memory."""
    back(N, form)
    for i in range(len(N)):
        for j in range(i):
            N[i, j], N[j, i] = N[j, i], N[i, j]
    back(N, form)
