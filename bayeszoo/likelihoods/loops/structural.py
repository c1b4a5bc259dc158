"""Filter of a level, a slope, seasons and weights of features, and the gradient of its log likelihood. Numba.

The state of a row is its level, slope, the effects of its season and of all earlier ones but the last, and the
weights: d numbers. Its covariance matrix is stored as U diag(D) U' with U unit upper triangular, so that all variances
are sums of positive numbers, at any ratio of the variances; for one number they equal those of
`bayeszoo.likelihoods.loops.kalman`. A row updates it as in Bierman (1977), V.3, and from one row to the next it is
brought into this form by rotations of weighted columns (Thornton and Bierman 1980). The backward sums are de Jong's
(1988), the gradient is Koopman and Shephard's (1992).

Throughout: T rows; B points along the last axis, over which the innermost loops run; ``sizes`` is (1, whether there is
a slope, seasons minus one or 0, number of weights). ``q2`` (3, B) are the variances of the steps of level, slope and
season, ``r2`` (B,) the noise variances; ``first`` (d, d) and ``spread`` (d,) are U and D of the first state. A missing
row is NaN.
"""

from __future__ import annotations

import math

import numba
import numpy as np

_loops = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=False)

LOG_2PI = math.log(2.0 * math.pi)
LANES = 32
"""Points computed together."""


@_loops
def observe(U, D, h, noise, f, p, gain, total):  # type: ignore[no-untyped-def]
    """Condition on a number h'x + N(0, noise): update U and D, and fill in its total variance and covariance with x."""
    d, lanes = D.shape
    for j in range(d):
        for k in range(lanes):
            f[j, k] = h[j]
        for i in range(j):
            if h[i] != 0.0:
                for k in range(lanes):
                    f[j, k] += h[i] * U[i, j, k]
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
                u = U[i, j, k]
                U[i, j, k] = u + gain[i, k] * p[0, k]
                gain[i, k] += u * gain[j, k]


@_loops
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
                u = U[i, j, k]
                U[i, j, k] = u * room[1, k] + v[i, k] * room[2, k]
                v[i, k] -= v[j, k] * u
        for k in range(lanes):
            w[k] *= room[1, k]
        for k in range(lanes):
            D[j, k] = room[0, k]


@_loops
def step(U, D, a, sizes, q2, room):  # type: ignore[no-untyped-def]
    """Move the state to the next row."""
    lanes, slope, seasons, d = D.shape[1], sizes[1], sizes[2], len(D)
    if slope:
        for k in range(lanes):
            a[0, k] += a[1, k]
        for j in range(1, d):
            for k in range(lanes):
                U[0, j, k] += U[1, j, k]
    if seasons:
        _turn(U, D, a, 1 + slope, seasons, room, room[3])
        _add(U, D, q2[2], 1 + slope, room)
    if slope:
        _add(U, D, q2[1], 1, room)
    for k in range(lanes):
        D[0, k] += q2[0, k]


@_loops
def _add(U, D, variance, place, room):  # type: ignore[no-untyped-def]
    """Add a variance to the entry at ``place``."""
    w, v = room[3], room[4:]
    for k in range(len(w)):
        w[k] = variance[k]
        for i in range(place):
            v[i, k] = 0.0
        v[place, k] = 1.0
    absorb(U, D, v, w, place, room)


@_loops
def _turn(U, D, a, at, n, v, w):  # type: ignore[no-untyped-def]
    """Move seasons on by one: the next effect is minus the sum of the others, which shift back by one.

    Rows of U then have an entry before the diagonal, which rotations of neighbouring columns remove.
    """
    d, lanes = D.shape
    for j in range(at - 1, d):
        for k in range(lanes):
            total = a[at, k] if j < at else U[at, j, k]
            for i in range(at + 1, at + n):
                total += a[i, k] if j < at else U[i, j, k]
            w[k] = -total
        for i in range(at + n - 1, at, -1):
            for k in range(lanes):
                if j < at:
                    a[i, k] = a[i - 1, k]
                else:
                    U[i, j, k] = U[i - 1, j, k]
        for k in range(lanes):
            if j < at:
                a[at, k] = w[k]
            else:
                U[at, j, k] = w[k]
    for i in range(at + n - 1, at, -1):
        for k in range(lanes):
            w[k] = D[i - 1, k] + U[i, i, k] * U[i, i, k] * D[i, k]
        for k in range(lanes):
            v[0, k] = D[i - 1, k] / w[k] if w[k] > 0.0 else 0.0
        for k in range(lanes):
            v[1, k] = D[i, k] / w[k] if w[k] > 0.0 else 0.0
        for k in range(lanes):
            v[2, k] = U[i, i, k] if w[k] > 0.0 or D[i, k] == 0.0 else 0.0
        for k in range(lanes):
            D[i - 1, k] = D[i - 1, k] * v[1, k] if w[k] > 0.0 or D[i, k] == 0.0 else D[i, k]
        for k in range(lanes):
            v[1, k] *= U[i, i, k]
        for k in range(lanes):
            D[i, k] = w[k]
        for r in range(i):
            for k in range(lanes):
                left, right = U[r, i - 1, k], U[r, i, k]
                U[r, i, k] = left * v[0, k] + right * v[1, k]
                U[r, i - 1, k] = v[2, k] * left - right
        for k in range(lanes):
            U[i, i - 1, k], U[i, i, k] = 0.0, 1.0
    for k in range(lanes):
        side = U[at, at, k]
        D[at, k] *= side * side
        for r in range(at + 1):
            U[r, at, k] /= side


@_loops
def begin(U, D, a, sizes, first, spread, is_first):  # type: ignore[no-untyped-def]
    """Set the state to that of a first row; weights, which sequences share, are reset only with ``is_first``."""
    d, lanes = D.shape
    entries = d if is_first else d - sizes[3]
    for i in range(entries):
        for k in range(lanes):
            a[i, k], D[i, k] = 0.0, spread[i]
        for j in range(d):
            for k in range(lanes):
                U[i, j, k] = first[i, j]
    if is_first:
        for i in range(d):
            for k in range(lanes):
                U[i, i, k] = 1.0


@_loops
def row_of(h, X, t, sizes):  # type: ignore[no-untyped-def]
    """Fill in the coefficients of the state in the mean of row t."""
    h[:] = 0.0
    h[0] = 1.0
    if sizes[2]:
        h[1 + sizes[1]] = 1.0
    first_weight = len(h) - sizes[3]
    for j in range(sizes[3]):
        h[first_weight + j] = X[t, j]


@_loops
def error_of(y, h, a, error):  # type: ignore[no-untyped-def]
    """Fill in the prediction error of a number."""
    for k in range(len(error)):
        error[k] = y
    for i in range(len(h)):
        if h[i] != 0.0:
            for k in range(len(error)):
                error[k] -= h[i] * a[i, k]


@_loops
def scratch(d, lanes):  # type: ignore[no-untyped-def]
    """Return work arrays of `take`: coefficients of the state, error and variance of a row, covariances, scratch."""
    error, total, gain = np.empty(lanes), np.empty(lanes), np.zeros((d, lanes))
    return np.empty(d), error, total, gain, np.empty((d, lanes)), np.empty((7, lanes))


@_loops
def take(t, y, X, opens, sizes, first, spread, q2, r2, U, D, a, room):  # type: ignore[no-untyped-def]
    """Move the state to row t and condition it on the row, whose error and variance are 0 and infinite if missing.

    Covariances divided by the variance are gains.
    """
    h, error, total, gain, f, work = room
    if opens[t]:
        begin(U, D, a, sizes, first, spread, t == 0)
    else:
        step(U, D, a, sizes, q2, work)
    row_of(h, X, t, sizes)
    if math.isnan(y[t]):
        error[:], total[:], gain[:] = 0.0, np.inf, 0.0
        return
    error_of(y[t], h, a, error)
    observe(U, D, h, r2, f, work, gain, total)
    for k in range(len(total)):
        work[0, k] = 1.0 / total[k] if total[k] > 0.0 else 0.0
    for i in range(len(D)):
        for k in range(len(total)):
            gain[i, k] *= work[0, k]
        for k in range(len(total)):
            a[i, k] += gain[i, k] * error[k]


@_loops
def log_likelihoods(y, X, opens, sizes, first, spread, q2, r2, values):  # type: ignore[no-untyped-def]
    """Fill in the log density of all rows at each of P points of q2 (3, P) and r2 (P,); -inf without variance."""
    d = len(spread)
    for low in range(0, len(r2), LANES):
        lanes = min(LANES, len(r2) - low)
        block_q2, block_r2 = q2[:, low : low + lanes].copy(), r2[low : low + lanes].copy()
        U, D, a, room = np.empty((d, d, lanes)), np.empty((d, lanes)), np.empty((d, lanes)), scratch(d, lanes)
        height, error, total = np.zeros(lanes), room[1], room[2]
        for t in range(len(y)):
            take(t, y, X, opens, sizes, first, spread, block_q2, block_r2, U, D, a, room)
            if not math.isnan(y[t]):
                for k in range(lanes):
                    height[k] -= 0.5 * (LOG_2PI + math.log(total[k]) + error[k] * (error[k] / total[k]))
        for k in range(lanes):
            values[low + k] = height[k] if math.isfinite(height[k]) else -np.inf


@_loops
def _back(v, sizes):  # type: ignore[no-untyped-def]
    """Replace v by F'v, with F the transition matrix of the state."""
    first_season, n = 1 + sizes[1], sizes[2]
    if sizes[1]:
        v[1] += v[0]
    if n:
        new = v[first_season]
        for i in range(first_season, first_season + n - 1):
            v[i] = v[i + 1] - new
        v[first_season + n - 1] = -new


@_loops
def _included(N, r, h, gain, scaled, inverse, g):  # type: ignore[no-untyped-def]
    """Add a row to the backward sums; return its entry u of C^-1 y and its precision."""
    d, u, weight = len(h), scaled, inverse
    for i in range(d):
        g[i] = 0.0
        for j in range(d):
            g[i] += N[i, j] * gain[j]
    for i in range(d):
        u -= gain[i] * r[i]
        weight += gain[i] * g[i]
    for i in range(d):
        r[i] += h[i] * u
        for j in range(d):
            N[i, j] += h[i] * h[j] * weight - h[i] * g[j] - g[i] * h[j]
    return u, weight


@_loops
def backward(y, X, opens, sizes, first, spread, q2, r2, values, of_q2, of_r2, pull, precision):  # type: ignore[no-untyped-def]
    """Fill in log densities (P,), their derivatives in q2 and r2, and the rows' ``pull`` and ``precision``.

    ``pull`` (P, T) is C^-1 y and ``precision`` the diagonal of C^-1, C the covariance of the rows; both are 0 for
    a missing row. They are not filled in if they have no entries.
    """
    d, rows, first_weight = len(spread), len(y), len(spread) - sizes[3]
    gains, scaled, inverse = np.empty((rows, d)), np.empty(rows), np.empty(rows)
    U, D, a, room = np.empty((d, d, 1)), np.empty((d, 1)), np.empty((d, 1)), scratch(d, 1)
    h, error, total, gain = room[0], room[1], room[2], room[3]
    for point in range(len(r2)):
        q, noise, log_density = q2[:, point : point + 1].copy(), r2[point : point + 1].copy(), 0.0
        for t in range(rows):
            take(t, y, X, opens, sizes, first, spread, q, noise, U, D, a, room)
            gains[t], scaled[t], inverse[t] = gain[:, 0], error[0] / total[0], 1.0 / total[0]
            if not math.isnan(y[t]):
                log_density -= 0.5 * (LOG_2PI + math.log(total[0]) + error[0] * scaled[t])
        values[point] = log_density if math.isfinite(log_density) else -np.inf
        N, r, g = np.zeros((d, d)), np.zeros(d), np.empty(d)
        of_q2[:, point], of_r2[point] = 0.0, 0.0
        for t in range(rows - 1, -1, -1):
            u, weight = 0.0, 0.0
            if not math.isnan(y[t]):
                row_of(h, X, t, sizes)
                u, weight = _included(N, r, h, gains[t], scaled[t], inverse[t], g)
                of_r2[point] += 0.5 * (u * u - weight)
            if len(pull):
                pull[point, t], precision[point, t] = u, weight
            if opens[t]:
                r[:first_weight], N[:first_weight], N[:, :first_weight] = 0.0, 0.0, 0.0
                continue
            for part in range(3):
                if part == 0 or sizes[part]:
                    entry = 1 + sizes[1] if part == 2 else part
                    of_q2[part, point] += 0.5 * (r[entry] * r[entry] - N[entry, entry])
            for j in range(d):
                _back(N[j], sizes)
            for j in range(d):
                _back(N[:, j], sizes)
            _back(r, sizes)


@_loops
def derivatives(y, X, opens, sizes, first, spread, q2, r2):  # type: ignore[no-untyped-def]
    """Return the log density of all rows at one point, and its derivatives in q2 (3,) and in r2."""
    value, of_q2, of_r2, no_rows = np.empty(1), np.empty((3, 1)), np.empty(1), np.empty((0, 0))
    step_variances, noise = q2.copy().reshape((3, 1)), np.full(1, r2)
    backward(y, X, opens, sizes, first, spread, step_variances, noise, value, of_q2, of_r2, no_rows, no_rows)
    return value[0], of_q2[:, 0].copy(), of_r2[0]
