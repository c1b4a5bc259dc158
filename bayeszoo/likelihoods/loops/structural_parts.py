"""Level, slope, season and features' sum of rows: filtered, smoothed, predicted, drawn. Numba.

Arguments are those of `bayeszoo.likelihoods.loops.structural`. ``parts`` (n,) are codes of parts: 0 the level, 1 the
slope, 2 the season, 3 the features, 4 the mean of the row, or of a form with a matrix their places in it; ``mean`` and
``variance`` (P, n, rows) are filled in.
"""

from __future__ import annotations

import math

import numpy as np

from bayeszoo.likelihoods.compiling import loop
from bayeszoo.likelihoods.loops.structural import LANES, scratch, take
from bayeszoo.likelihoods.loops.structural_states import join, observe, row_of, step

LARGEST = 2**23
"""Most numbers in the states of all rows of a block of points; larger states need fewer points."""


@loop
def part_of(h, part, X, t, form):  # type: ignore[no-untyped-def]
    """Fill in the coefficients of the state in a part of row t."""
    if len(form.parts):
        h[:] = form.parts[part]
        return
    if part == 4:
        row_of(h, X, t, form)
        return
    h[:] = 0.0
    if part == 3:
        first_weight = len(h) - form.sizes[3]
        for j in range(form.sizes[3]):
            h[first_weight + j] = X[t, j]
    else:
        h[1 + form.sizes[1] if part == 2 else part] = 1.0


@loop
def _moments(U, D, h, a, mean, variance):  # type: ignore[no-untyped-def]
    """Fill in mean and variance of h'x, (B,)."""
    d, lanes = D.shape
    for k in range(lanes):
        mean[k], variance[k] = 0.0, 0.0
        for j in range(d):
            coefficient = h[j]
            for i in range(j):
                coefficient += h[i] * U[j, i, k]
            mean[k] += h[j] * a[j, k]
            variance[k] += D[j, k] * coefficient * coefficient


@loop
def filtered(y, X, opens, form, first, spread, q2, r2, parts, mean, variance, error, total):  # type: ignore[no-untyped-def]
    """Fill in moments given the rows so far; prediction errors of rows and their variances, 0 and inf if missing."""
    d = len(spread)
    for low in range(0, len(r2), LANES):
        lanes = min(LANES, len(r2) - low)
        block_q2, block_r2 = q2[:, low : low + lanes].copy(), r2[low : low + lanes].copy()
        U, D, a, room = np.empty((d, d, lanes)), np.empty((d, lanes)), np.empty((d, lanes)), scratch(d, lanes)
        h, m, v = np.empty(d), np.empty(lanes), np.empty(lanes)
        for t in range(len(y)):
            take(t, y, X, opens, form, first, spread, block_q2, block_r2, U, D, a, room)
            error[low : low + lanes, t], total[low : low + lanes, t] = room[1], room[2]
            for n in range(len(parts)):
                part_of(h, parts[n], X, t, form)
                _moments(U, D, h, a, m, v)
                mean[low : low + lanes, n, t], variance[low : low + lanes, n, t] = m, v


@loop
def _forward(y, X, opens, form, first, spread, q2, r2, U, D, a):  # type: ignore[no-untyped-def]
    """Fill in the states of all rows given the rows so far: U (T, d, d, B), D and a (T, d, B)."""
    room = scratch(len(spread), len(r2))
    for t in range(len(y)):
        if t:
            U[t], D[t], a[t] = U[t - 1], D[t - 1], a[t - 1]
        take(t, y, X, opens, form, first, spread, q2, r2, U[t], D[t], a[t], room)


@loop
def _next_of(h, i, form, q2, noise):  # type: ignore[no-untyped-def]
    """Fill in coefficients of the state in the i-th entry of the next one, and the variance of its noise (B,)."""
    slope, first_season, n = form.sizes[1], 1 + form.sizes[1], form.sizes[2]
    h[:], noise[:] = 0.0, 0.0
    if len(form.matrix):
        h[:] = form.matrix[i]
        for k in range(len(noise)):
            noise[k] = form.noise[i] * q2[0, k]
    elif n and i == first_season:
        h[first_season : first_season + n] = -1.0
        noise[:] = q2[2]
    elif n and first_season < i < first_season + n:
        h[i - 1] = 1.0
    else:
        h[i] = 1.0
        if i == 0 and slope:
            h[1] = 1.0
        if i < first_season:
            noise[:] = q2[i]


@loop
def _given_next(U, D, a, G, ahead, form, q2, begins):  # type: ignore[no-untyped-def]
    """Condition a state on the next one; fill in gains G of its mean by the next entries, and their predictions."""
    d, lanes = D.shape
    f, gain, p, h = np.empty((d, lanes)), np.empty((d, lanes)), np.empty((2, lanes)), np.empty(d)
    total, noise, coefficient = np.empty(lanes), np.empty(lanes), np.empty(lanes)
    G[:] = 0.0
    for i in range(d - form.sizes[3] if begins else 0, d):
        _next_of(h, i, form, q2, noise)
        for k in range(lanes):
            ahead[i, k] = 0.0
        for j in range(d):
            if h[j] != 0.0:
                for k in range(lanes):
                    ahead[i, k] += h[j] * a[j, k]
        observe(U, D, h, noise, f, p, gain, total)
        for k in range(lanes):
            total[k] = 1.0 / total[k] if total[k] > 0.0 else 0.0
        for r in range(d):
            for k in range(lanes):
                gain[r, k] *= total[k]
        for j in range(i):
            for k in range(lanes):
                coefficient[k] = 0.0
            for r in range(d):
                if h[r] != 0.0:
                    for k in range(lanes):
                        coefficient[k] += h[r] * G[r, j, k]
            for r in range(d):
                for k in range(lanes):
                    G[r, j, k] -= gain[r, k] * coefficient[k]
        for r in range(d):
            for k in range(lanes):
                G[r, i, k] += gain[r, k]


@loop
def smoothed(y, X, opens, form, first, spread, q2, r2, parts, mean, variance):  # type: ignore[no-untyped-def]
    """Fill in moments given all rows."""
    d, rows = len(spread), len(y)
    block = max(1, min(LANES, LARGEST // (rows * d * d)))
    for low in range(0, len(r2), block):
        lanes = min(block, len(r2) - low)
        block_q2, block_r2 = q2[:, low : low + lanes].copy(), r2[low : low + lanes].copy()
        U, D, a = np.empty((rows, d, d, lanes)), np.empty((rows, d, lanes)), np.empty((rows, d, lanes))
        _forward(y, X, opens, form, first, spread, block_q2, block_r2, U, D, a)
        V, S, x = U[rows - 1].copy(), D[rows - 1].copy(), a[rows - 1].copy()
        G, ahead, h = np.empty((d, d, lanes)), np.zeros((d, lanes)), np.empty(d)
        W, w, share, e = np.empty((d, 2 * d, lanes)), np.empty((2 * d, lanes)), np.empty(lanes), np.empty(lanes)
        for t in range(rows - 1, -1, -1):
            if t < rows - 1:
                _given_next(U[t], D[t], a[t], G, ahead, form, block_q2, opens[t + 1])
                for j in range(d):
                    for k in range(lanes):
                        ahead[j, k] = x[j, k] - ahead[j, k]
                for i in range(d):
                    for k in range(lanes):
                        x[i, k] = a[t, i, k]
                    for j in range(d):
                        for k in range(lanes):
                            x[i, k] += G[i, j, k] * ahead[j, k]
                join(U[t], D[t], G, V, S, W, w, share)
            for n in range(len(parts)):
                part_of(h, parts[n], X, t, form)
                _moments(V, S, h, x, share, e)
                for k in range(lanes):
                    mean[low + k, n, t], variance[low + k, n, t] = share[k], e[k]


@loop
def drawn(y, X, opens, form, first, spread, q2, r2, z):  # type: ignore[no-untyped-def]
    """Turn normal draws (T, d), in place, into a path of states given all rows at one point, q2 (3, 1) and r2 (1,)."""
    d, rows = len(spread), len(y)
    U, D, a = np.empty((rows, d, d, 1)), np.empty((rows, d, 1)), np.empty((rows, d, 1))
    _forward(y, X, opens, form, first, spread, q2, r2, U, D, a)
    G, ahead, x = np.zeros((d, d, 1)), np.zeros((d, 1)), np.zeros(d)
    for t in range(rows - 1, -1, -1):
        if t < rows - 1:
            _given_next(U[t], D[t], a[t], G, ahead, form, q2, opens[t + 1])
        for i in range(d):
            x[i] = a[t, i, 0] + math.sqrt(D[t, i, 0]) * z[t, i]
            for j in range(i + 1, d):
                x[i] += U[t, j, i, 0] * math.sqrt(D[t, j, 0]) * z[t, j]
            if t < rows - 1:
                for j in range(d):
                    x[i] += G[i, j, 0] * (z[t + 1, j] - ahead[j, 0])
        z[t] = x


@loop
def ahead(y, X, opens, form, first, spread, q2, r2, new, parts, mean, variance, weights, factors, scales):  # type: ignore[no-untyped-def]
    """Fill in moments after the last row, for features ``new`` (steps, p), and mean, U and D of the weights."""
    d, first_weight = len(spread), len(spread) - form.sizes[3]
    for low in range(0, len(r2), LANES):
        lanes = min(LANES, len(r2) - low)
        block_q2, block_r2 = q2[:, low : low + lanes].copy(), r2[low : low + lanes].copy()
        U, D, a, room = np.empty((d, d, lanes)), np.empty((d, lanes)), np.empty((d, lanes)), scratch(d, lanes)
        h, m, v = np.empty(d), np.empty(lanes), np.empty(lanes)
        for t in range(len(y)):
            take(t, y, X, opens, form, first, spread, block_q2, block_r2, U, D, a, room)
        for k in range(lanes):
            weights[low + k], scales[low + k] = a[first_weight:, k], D[first_weight:, k]
            factors[low + k] = U[first_weight:, first_weight:, k].T
        for t in range(len(new)):
            step(U, D, a, form, block_q2, room[5])
            for n in range(len(parts)):
                part_of(h, parts[n], new, t, form)
                _moments(U, D, h, a, m, v)
                mean[low : low + lanes, n, t], variance[low : low + lanes, n, t] = m, v
