"""Filter of a level, a slope, seasons and weights of features, and the gradient of its log likelihood. Numba.

The backward sums are de Jong's (1988), the gradient is Koopman and Shephard's (1992).

Throughout: T rows; B points along the last axis, over which the innermost loops run; ``form`` says what the state is.
``q2`` (3, B) are the variances of the steps of level, slope and season, ``r2`` (B,) the noise variances; ``first``
(d, d) and ``spread`` (d,) are U and D of the first state. A missing row is NaN.
"""

from __future__ import annotations

import math

import numpy as np

from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.likelihoods.compiling import loop
from bayeszoo.likelihoods.loops.structural_states import back, back_twice, begin, inlined, observe, row_of, step

LANES = 64
"""Points computed together."""


@inlined
def error_of(y, h, a, error):  # type: ignore[no-untyped-def]
    """Fill in the prediction error of a number."""
    for k in range(len(error)):
        error[k] = y
    for i in range(len(h)):
        if h[i] != 0.0:
            for k in range(len(error)):
                error[k] -= h[i] * a[i, k]


@loop
def scratch(d, lanes):  # type: ignore[no-untyped-def]
    """Return work arrays of `take`: coefficients of the state, error and variance of a row, covariances, scratch."""
    error, total, gain = np.empty(lanes), np.empty(lanes), np.zeros((d, lanes))
    return np.empty(d), error, total, gain, np.empty((d, lanes)), np.empty((7, lanes))


@inlined
def take(t, y, X, opens, form, first, spread, q2, r2, U, D, a, room):  # type: ignore[no-untyped-def]
    """Move the state to row t and condition it on the row, whose error and variance are 0 and infinite if missing.

    Covariances divided by the variance are gains.
    """
    h, error, total, gain, f, work = room
    if opens[t]:
        begin(U, D, a, form, first, spread, t == 0)
    else:
        step(U, D, a, form, q2, work)
    row_of(h, X, t, form)
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


@loop
def log_likelihoods(y, X, opens, form, first, spread, q2, r2, values):  # type: ignore[no-untyped-def]
    """Fill in the log density of all rows at each of P points of q2 (3, P) and r2 (P,); -inf without variance."""
    d = len(spread)
    for low in range(0, len(r2), LANES):
        lanes = min(LANES, len(r2) - low)
        block_q2, block_r2 = q2[:, low : low + lanes].copy(), r2[low : low + lanes].copy()
        U, D, a, room = np.empty((d, d, lanes)), np.empty((d, lanes)), np.empty((d, lanes)), scratch(d, lanes)
        height, error, total = np.zeros(lanes), room[1], room[2]
        for t in range(len(y)):
            take(t, y, X, opens, form, first, spread, block_q2, block_r2, U, D, a, room)
            if not math.isnan(y[t]):
                for k in range(lanes):
                    height[k] -= 0.5 * (LOG_2_PI + math.log(total[k]) + error[k] * (error[k] / total[k]))
        for k in range(lanes):
            values[low + k] = height[k] if math.isfinite(height[k]) else -np.inf


@loop
def _included(N, r, h, gain, scaled, inverse, g):  # type: ignore[no-untyped-def]
    """Add a row to the backward sums; return its entry u of C^-1 y and its precision."""
    d, u, weight = len(h), scaled, inverse
    g[:] = 0.0
    for j in range(d):
        for i in range(d):
            g[i] += N[j, i] * gain[j]
    for i in range(d):
        u -= gain[i] * r[i, 0]
        weight += gain[i] * g[i]
    for i in range(d):
        if h[i] != 0.0:
            r[i, 0] += h[i] * u
            for j in range(d):
                N[i, j] += h[i] * (h[j] * weight - g[j])
            for j in range(d):
                N[j, i] -= h[i] * g[j]
    return u, weight


@loop
def backward(y, X, opens, form, first, spread, q2, r2, values, of_q2, of_r2, pull, precision):  # type: ignore[no-untyped-def]
    """Fill in log densities (P,), their derivatives in q2 and r2, and the rows' ``pull`` and ``precision``.

    ``pull`` (P, T) is C^-1 y and ``precision`` the diagonal of C^-1, C the covariance of the rows; both are 0 for
    a missing row. They are not filled in if they have no entries.
    """
    d, rows, first_weight = len(spread), len(y), len(spread) - form.sizes[3]
    gains, scaled, inverse = np.empty((rows, d)), np.empty(rows), np.empty(rows)
    U, D, a, room = np.empty((d, d, 1)), np.empty((d, 1)), np.empty((d, 1)), scratch(d, 1)
    h, error, total, gain = room[0], room[1], room[2], room[3]
    for point in range(len(r2)):
        q, noise, log_density = q2[:, point : point + 1].copy(), r2[point : point + 1].copy(), 0.0
        for t in range(rows):
            take(t, y, X, opens, form, first, spread, q, noise, U, D, a, room)
            gains[t], scaled[t], inverse[t] = gain[:, 0], error[0] / total[0], 1.0 / total[0]
            if not math.isnan(y[t]):
                log_density -= 0.5 * (LOG_2_PI + math.log(total[0]) + error[0] * scaled[t])
        values[point] = log_density if math.isfinite(log_density) else -np.inf
        N, r, g = np.zeros((d, d)), np.zeros((d, 1)), np.empty(d)
        of_q2[:, point], of_r2[point] = 0.0, 0.0
        for t in range(rows - 1, -1, -1):
            u, weight = 0.0, 0.0
            if not math.isnan(y[t]):
                row_of(h, X, t, form)
                u, weight = _included(N, r, h, gains[t], scaled[t], inverse[t], g)
                of_r2[point] += 0.5 * (u * u - weight)
            if len(pull):
                pull[point, t], precision[point, t] = u, weight
            if opens[t]:
                r[:first_weight], N[:first_weight], N[:, :first_weight] = 0.0, 0.0, 0.0
                continue
            for entry in range(len(form.noise)):
                of_q2[0, point] += 0.5 * form.noise[entry] * (r[entry, 0] * r[entry, 0] - N[entry, entry])
            for part in range(0 if len(form.matrix) else 3):
                if part == 0 or form.sizes[part]:
                    entry = 1 + form.sizes[1] if part == 2 else part
                    of_q2[part, point] += 0.5 * (r[entry, 0] * r[entry, 0] - N[entry, entry])
            back_twice(N, form)
            back(r, form)


@loop
def derivatives(y, X, opens, form, first, spread, q2, r2):  # type: ignore[no-untyped-def]
    """Return the log density of all rows at one point, and its derivatives in q2 (3,) and in r2."""
    value, of_q2, of_r2, no_rows = np.empty(1), np.empty((3, 1)), np.empty(1), np.empty((0, 0))
    step_variances, noise = q2.copy().reshape((3, 1)), np.full(1, r2)
    backward(y, X, opens, form, first, spread, step_variances, noise, value, of_q2, of_r2, no_rows, no_rows)
    return value[0], of_q2[:, 0].copy(), of_r2[0]
