"""What `bayeszoo.likelihoods.loops.kalman` computes, by NumPy: all points at once, row by row.

Short series by many points take it a few milliseconds, and exact answers do not wait for numba. Formulas and arguments
are those of the loops.
"""

from __future__ import annotations

import numpy as np

LOG_2PI = np.log(2 * np.pi)
Array = np.ndarray


def _ratio(part: np.ndarray, whole: np.ndarray, other: float) -> np.ndarray:
    """Return part / whole, but of 0 in 0 another number."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), other)


def filtered(y: Array, opens: Array, first: float, q2: Array, r2: Array, *filled: Array) -> None:
    """Fill in what each row and those before it say of its level, and the error of its prediction."""
    ahead, mean, rest, error, total = filled
    m, v = np.zeros_like(q2), np.full_like(q2, first)
    for t in range(len(y)):
        if opens[t]:
            m, v = np.zeros_like(q2), np.full_like(q2, first)
        ahead[:, t] = v
        if np.isnan(y[t]):
            error[:, t], total[:, t] = 0.0, np.inf
        else:
            error[:, t], total[:, t] = y[t] - m, v + r2
            m = m + _ratio(v, total[:, t], 0.0) * error[:, t]
            v = v * _ratio(r2, total[:, t], 0.0)
        mean[:, t], rest[:, t] = m, v
        v = v + q2


def log_likelihoods(y: Array, opens: Array, first: float, q2: Array, r2: Array, values: Array) -> None:
    """Fill in the log density of all rows at each point; -inf where a row has no variance left."""
    m, v, heights = np.zeros_like(q2), np.full_like(q2, first), np.zeros_like(q2)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for t in range(len(y)):
            if opens[t]:
                m, v = np.zeros_like(q2), np.full_like(q2, first)
            if not np.isnan(y[t]):
                e, s = y[t] - m, v + r2
                heights -= 0.5 * (LOG_2PI + np.log(s) + e * (e / s))
                m = m + v / s * e
                v = v * (r2 / s)
            v = v + q2
    values[:] = np.where(np.isnan(heights) | np.isposinf(heights), -np.inf, heights)


def disturbances(
    opens: Array, r2: Array, ahead: Array, error: Array, total: Array, pull: Array, precision: Array
) -> None:
    """Fill in C^-1 y and the diagonal of C^-1, C the covariance matrix of the rows: of a missing row both are 0."""
    later, weight = np.zeros_like(r2), np.zeros_like(r2)
    for t in range(len(opens) - 1, -1, -1):
        whole = total[:, t]
        seen = whole < np.inf
        gain, left = np.where(seen, ahead[:, t] / whole, 0.0), np.where(seen, r2 / whole, 1.0)
        scaled = error[:, t] / whole
        pull[:, t] = np.where(seen, scaled - gain * later, 0.0)
        precision[:, t] = 1 / whole + gain * gain * weight
        later, weight = scaled + left * later, 1 / whole + left * left * weight
        if opens[t]:
            later, weight = np.zeros_like(r2), np.zeros_like(r2)


def smoothed(opens: Array, q2: Array, mean: Array, rest: Array, gain: Array, variance: Array) -> None:
    """Turn filtered moments into smoothed moments, in place."""
    for t in range(len(opens) - 1, -1, -1):
        if t == len(opens) - 1 or opens[t + 1]:
            gain[:, t], variance[:, t] = 0.0, rest[:, t]
            continue
        both = rest[:, t] + q2
        gain[:, t] = _ratio(rest[:, t], both, 1.0)
        mean[:, t] += gain[:, t] * (mean[:, t + 1] - mean[:, t])
        rest[:, t] *= _ratio(q2, both, 0.0)
        variance[:, t] = rest[:, t] + np.square(gain[:, t]) * variance[:, t + 1]
