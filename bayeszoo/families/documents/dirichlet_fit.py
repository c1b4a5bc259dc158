"""The prior of rows of probabilities that are known by Dirichlet distributions: its concentration of largest bound.

Minka 2000 (revised 2012), "Estimating a Dirichlet distribution", sections 1 and 3: the sum over rows of
E[log Dirichlet(p; alpha)] is concave in alpha, and Newton's step costs no more than the gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from scipy.special import digamma, gammaln, polygamma

from bayeszoo.distributions import dirichlet
from bayeszoo.model.fields import plain

SMALLEST, LARGEST = 1e-6, 1e6
"""Between which a concentration is looked for; at either the bound has no maximum that could be told."""
_STEPS = 200


def best(rows: np.ndarray, start: Any) -> Any:
    """Return the concentration of a prior common to all rows that makes their expected log density largest.

    Parameters
    ----------
    rows : ndarray of shape (rows, K)
        Concentrations of the Dirichlet distributions by which the rows are known.
    start : float or sequence of K floats
        Where to begin; one number stands for all entries and stays one number.

    Returns
    -------
    float or tuple of float
        Each between 1e-6 and 1e6.
    """
    expected = dirichlet.expected_log(rows)
    if np.ndim(start) == 0:
        return np.float64(_symmetric(float(expected.sum()), *expected.shape))
    return plain(_vector(expected.sum(axis=0), len(rows), np.asarray(start, dtype=np.float64)))


def _symmetric(total: float, rows: int, K: int) -> float:
    """Return the root of the slope in the one number; of one category any number does."""
    if K == 1:
        return 1.0

    def slope(log_a: float) -> float:
        a = np.exp(log_a)
        return float(rows * K * (digamma(K * a) - digamma(a)) + total)

    low, high = np.log(SMALLEST), np.log(LARGEST)
    if slope(high) >= 0 or slope(low) <= 0:
        return LARGEST if slope(high) >= 0 else SMALLEST
    return float(np.exp(scipy.optimize.brentq(slope, low, high, xtol=1e-14, rtol=1e-14)))


def _vector(totals: np.ndarray, rows: int, alpha: np.ndarray) -> np.ndarray:
    """Return the maximum by Newton's steps, each shortened until it is inside and climbs."""
    height = _height(alpha, totals, rows)
    for _ in range(_STEPS):
        step, decrement = _newton(alpha, totals, rows)
        if decrement <= 1e-20 * max(1.0, abs(height)):
            break
        size, moved = 1.0, alpha
        while size > 1e-12:
            moved = np.clip(alpha + size * step, alpha / 10, LARGEST)
            moved = np.maximum(moved, SMALLEST)
            if (higher := _height(moved, totals, rows)) > height:
                break
            size /= 2
        else:
            break  # nothing but rounding is left to gain
        alpha, height = moved, higher
    return alpha


def _height(alpha: np.ndarray, totals: np.ndarray, rows: int) -> float:
    return float(rows * (gammaln(alpha.sum()) - gammaln(alpha).sum()) + totals @ (alpha - 1))


def _newton(alpha: np.ndarray, totals: np.ndarray, rows: int) -> tuple[np.ndarray, float]:
    """Return Newton's step and twice the gain that it promises; the Hessian is diagonal but for one direction."""
    slope = rows * (digamma(alpha.sum()) - digamma(alpha)) + totals
    diagonal, all_alike = -rows * polygamma(1, alpha), rows * polygamma(1, alpha.sum())
    common = np.sum(slope / diagonal) / (1 / all_alike + np.sum(1 / diagonal))
    step = -(slope - common) / diagonal
    return step, float(slope @ step)
