"""The loops of `bayeszoo.likelihoods.loops.kalman` in NumPy: row by row, for all points at once.

Short series at many points take a few milliseconds, and exact answers do not need numba. Formulas and arguments are
those of the loops.
"""

from __future__ import annotations

import numpy as np

from bayeszoo.foundation.numerics.constants import LOG_2_PI

Array = np.ndarray


def _ratio(part: np.ndarray, total: np.ndarray, default: float) -> np.ndarray:
    """Return part / total, or the default for 0 / 0."""
    return np.where(total > 0, part / np.where(total > 0, total, 1.0), default)


def filtered(y: Array, opens: Array, variance_0: float, q2: Array, r2: Array, *filled: Array) -> None:
    """Fill in the moments of each level given the rows up to it, and the prediction error of each row."""
    ahead, mean, variance, error, total = filled
    m, v = np.zeros_like(q2), np.full_like(q2, variance_0)
    for t in range(len(y)):
        if opens[t]:
            m, v = np.zeros_like(q2), np.full_like(q2, variance_0)
        ahead[:, t] = v
        if np.isnan(y[t]):
            error[:, t], total[:, t] = 0.0, np.inf
        else:
            error[:, t], total[:, t] = y[t] - m, v + r2
            m = m + _ratio(v, total[:, t], 0.0) * error[:, t]
            v = v * _ratio(r2, total[:, t], 0.0)
        mean[:, t], variance[:, t] = m, v
        v = v + q2


def log_likelihoods(y: Array, opens: Array, variance_0: float, q2: Array, r2: Array, values: Array) -> None:
    """Fill in the log density of all rows at each point; -inf if a row has no variance."""
    m, v, heights = np.zeros_like(q2), np.full_like(q2, variance_0), np.zeros_like(q2)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for t in range(len(y)):
            if opens[t]:
                m, v = np.zeros_like(q2), np.full_like(q2, variance_0)
            if not np.isnan(y[t]):
                e, s = y[t] - m, v + r2
                heights -= 0.5 * (LOG_2_PI + np.log(s) + e * (e / s))
                m = m + v / s * e
                v = v * (r2 / s)
            v = v + q2
    values[:] = np.where(np.isnan(heights) | np.isposinf(heights), -np.inf, heights)


def disturbances(
    opens: Array, r2: Array, ahead: Array, error: Array, total: Array, pull: Array, precision: Array
) -> None:
    """Fill in C^-1 y and the diagonal of C^-1, with C the covariance matrix of the rows; 0 for missing rows."""
    later, weight = np.zeros_like(r2), np.zeros_like(r2)
    for t in range(len(opens) - 1, -1, -1):
        variance = total[:, t]
        seen = variance < np.inf
        gain, left = np.where(seen, ahead[:, t] / variance, 0.0), np.where(seen, r2 / variance, 1.0)
        scaled = error[:, t] / variance
        pull[:, t] = np.where(seen, scaled - gain * later, 0.0)
        precision[:, t] = 1 / variance + gain * gain * weight
        later, weight = scaled + left * later, 1 / variance + left * left * weight
        if opens[t]:
            later, weight = np.zeros_like(r2), np.zeros_like(r2)


def smoothed(opens: Array, q2: Array, mean: Array, conditional: Array, gain: Array, variance: Array) -> None:
    """Turn filtered moments into smoothed moments, in place.

    ``conditional`` has filtered variances, and then the variances of each level given the next one.
    """
    for t in range(len(opens) - 1, -1, -1):
        if t == len(opens) - 1 or opens[t + 1]:
            gain[:, t], variance[:, t] = 0.0, conditional[:, t]
            continue
        ahead = conditional[:, t] + q2
        gain[:, t] = _ratio(conditional[:, t], ahead, 1.0)
        mean[:, t] += gain[:, t] * (mean[:, t + 1] - mean[:, t])
        conditional[:, t] *= _ratio(q2, ahead, 0.0)
        variance[:, t] = conditional[:, t] + np.square(gain[:, t]) * variance[:, t + 1]
