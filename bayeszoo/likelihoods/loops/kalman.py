"""Filter and smoother of a level that moves in time, and the gradient of its log likelihood. Numba.

level_1 ~ N(0, first), level_t ~ N(level_(t-1), q2) and y_t ~ N(level_t, r2), starting again in each sequence; a missing
row is NaN. All variances are products and sums of positive numbers, so that nothing cancels at any ratio of q2 and r2:
given y_t the level has variance v r2 / (v + r2), not computed as v - v^2 / (v + r2). Kalman 1960; Rauch, Tung and
Striebel 1965; the backward sums are de Jong's (1988), and the gradient is Koopman and Shephard's (1992).

Throughout: T rows; ``opens`` (T,) marks the first row of each sequence; P points have variances q2 and r2 of shape
(P,), and arrays that are filled in have shape (P, T).
"""

from __future__ import annotations

import math

import numpy as np

from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.likelihoods.compiling import loop


@loop
def filtered(y, opens, first, q2, r2, ahead, mean, rest, error, total):  # type: ignore[no-untyped-def]
    """Fill in the variance of each level given earlier rows, and its mean and variance given its own row too.

    ``error`` is the prediction error of the row and ``total`` its variance; 0 and infinite if the row is missing.
    """
    for p in range(len(q2)):
        m, v = 0.0, first
        for t in range(len(y)):
            if opens[t]:
                m, v = 0.0, first
            ahead[p, t] = v
            if math.isnan(y[t]):
                error[p, t], total[p, t] = 0.0, np.inf
            else:
                error[p, t], total[p, t] = y[t] - m, v + r2[p]
                m += _ratio(v, total[p, t], 0.0) * error[p, t]
                v = v * _ratio(r2[p], total[p, t], 0.0)
            mean[p, t], rest[p, t] = m, v
            v += q2[p]


@loop
def _ratio(part: float, whole: float, other: float) -> float:
    """Return part / whole, or ``other`` for 0 / 0."""
    return part / whole if whole > 0.0 else other


@loop
def log_likelihoods(y, opens, first, q2, r2, values):  # type: ignore[no-untyped-def]
    """Fill in the log density of all rows at each point, (P,); -inf if a row has variance 0."""
    for p in range(len(q2)):
        m, v, value = 0.0, first, 0.0
        for t in range(len(y)):
            if opens[t]:
                m, v = 0.0, first
            if not math.isnan(y[t]):
                e, s = y[t] - m, v + r2[p]
                if s <= 0.0:
                    value = -np.inf
                    break
                value -= 0.5 * (LOG_2_PI + math.log(s) + e * (e / s))
                m += v / s * e
                v = v * (r2[p] / s)
            v += q2[p]
        values[p] = value


@loop
def derivatives(y, opens, first, q2, r2):  # type: ignore[no-untyped-def]
    """Return the log density of all rows at one point, and its derivatives in q2 and in r2.

    With u = C^-1 y, C the covariance matrix of the rows, the latter is the sum of (u_t^2 - (C^-1)_tt) / 2.
    """
    rows = len(y)
    scaled, inverse, gain, keep = np.empty(rows), np.empty(rows), np.empty(rows), np.empty(rows)
    m, v, value = 0.0, first, 0.0
    for t in range(rows):
        if opens[t]:
            m, v = 0.0, first
        if math.isnan(y[t]):
            scaled[t], inverse[t], gain[t], keep[t] = 0.0, 0.0, 0.0, 1.0
        else:
            e, s = y[t] - m, v + r2
            if s <= 0.0:
                return -np.inf, 0.0, 0.0
            value -= 0.5 * (LOG_2_PI + math.log(s) + e * (e / s))
            scaled[t], inverse[t], gain[t], keep[t] = e / s, 1.0 / s, v / s, r2 / s
            m += gain[t] * e
            v = v * keep[t]
        v += q2
    later, weight, of_q2, of_r2 = 0.0, 0.0, 0.0, 0.0
    for t in range(rows - 1, -1, -1):
        if inverse[t] > 0.0:
            pull = scaled[t] - gain[t] * later
            of_r2 += 0.5 * (pull * pull - inverse[t] - gain[t] * gain[t] * weight)
        later, weight = scaled[t] + keep[t] * later, inverse[t] + keep[t] * keep[t] * weight
        if opens[t]:
            later, weight = 0.0, 0.0
        else:
            of_q2 += 0.5 * (later * later - weight)
    return value, of_q2, of_r2


@loop
def disturbances(opens, r2, ahead, error, total, pull, precision):  # type: ignore[no-untyped-def]
    """Fill in C^-1 y and the diagonal of C^-1, C the covariance matrix of the rows; both are 0 for a missing row."""
    for p in range(len(r2)):
        later, weight = 0.0, 0.0
        for t in range(len(opens) - 1, -1, -1):
            variance = total[p, t]
            is_observed = variance < np.inf
            gain, keep = (ahead[p, t] / variance, r2[p] / variance) if is_observed else (0.0, 1.0)
            scaled = error[p, t] / variance
            pull[p, t] = scaled - gain * later if is_observed else 0.0
            precision[p, t] = 1.0 / variance + gain * gain * weight
            later, weight = scaled + keep * later, 1.0 / variance + keep * keep * weight
            if opens[t]:
                later, weight = 0.0, 0.0


@loop
def smoothed(opens, q2, mean, rest, gain, variance):  # type: ignore[no-untyped-def]
    """Turn filtered moments into smoothed moments, in place.

    ``mean`` and ``rest`` are those of `filtered`; ``rest`` becomes the variance given the next level too, on which the
    mean depends with slope ``gain``. ``variance`` is filled in.
    """
    rows = len(opens)
    for p in range(len(q2)):
        for t in range(rows - 1, -1, -1):
            if t == rows - 1 or opens[t + 1]:
                gain[p, t], variance[p, t] = 0.0, rest[p, t]
            else:
                total = rest[p, t] + q2[p]
                gain[p, t] = _ratio(rest[p, t], total, 1.0)
                mean[p, t] += gain[p, t] * (mean[p, t + 1] - mean[p, t])
                rest[p, t] *= _ratio(q2[p], total, 0.0)
                variance[p, t] = rest[p, t] + gain[p, t] * gain[p, t] * variance[p, t + 1]
