"""Distribution functions of Beta distributions with counts so large that SciPy loses digits.

From counts of 1e11 on, SciPy's quantiles are off by up to 1e-2 in probability, or by factors. If both counts are
large, the uniform expansion of Temme (1992, Asymptotic inversion of the incomplete beta function) is used; if
one is not, the Gamma distribution that -log(1 - x) then has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions.special import deviance

LARGE, FEW = 1e10, 1e6
"""Sum above which counts are large, and the largest smaller count that is few."""
STEPS = 8
"""Newton steps to a quantile; each reduces the error to a thousandth."""


def beta_cdf(x: object, a: object, b: object) -> np.ndarray:
    """Return P(X <= x) under Beta(a, b); for b = 0, as with a single category, all mass is at 1."""
    x, a, b = np.broadcast_arrays(*(np.asarray(values, dtype=np.float64) for values in (x, a, b)))
    inside = np.clip(x, 0.0, 1.0)
    is_large = a + b > LARGE
    if (b == 0).any():  # all mass is at 1
        return np.where(b > 0, beta_cdf(x, a, np.where(b > 0, b, 1.0)), (x >= 1) * 1.0)
    if not is_large.any():
        return np.asarray(scipy.special.betainc(a, b, inside))
    few_a, few_b = is_large & (a <= FEW), is_large & (a > FEW) & (b <= FEW)
    branches: tuple[tuple[np.ndarray, Callable[..., Any]], ...] = (
        (~is_large, lambda x, a, b: scipy.special.betainc(a, b, x)),
        (few_a, lambda x, a, b: scipy.special.gammainc(a, -(b + (a - 1) / 2) * np.log1p(-x))),
        (few_b, lambda x, a, b: scipy.special.gammaincc(b, -(a + (b - 1) / 2) * np.log(x))),
        (is_large & ~few_a & ~few_b, _within_both_large),
    )
    values = np.empty(inside.shape)
    with np.errstate(all="ignore"):  # of log(0)
        for is_branch, branch in branches:  # each on its own entries, as SciPy is slow for large counts
            values[is_branch] = branch(inside[is_branch], a[is_branch], b[is_branch])
    return values


def beta_ppf(q: object, a: object, b: object) -> np.ndarray:
    """Return the quantile of a level under Beta(a, b)."""
    q, a, b = np.broadcast_arrays(*(np.asarray(values, dtype=np.float64) for values in (q, a, b)))
    is_large = a + b > LARGE
    if (b == 0).any():
        return np.where(b > 0, beta_ppf(q, a, np.where(b > 0, b, 1.0)), 1.0)
    if not is_large.any():
        return np.asarray(scipy.stats.beta.ppf(q, a, b))
    with np.errstate(all="ignore"):
        simple = [
            scipy.stats.beta.ppf(q, np.where(is_large, 1.0, a), np.where(is_large, 1.0, b)),
            -np.expm1(-scipy.special.gammaincinv(a, q) / (b + (a - 1) / 2)),
            np.exp(-scipy.special.gammainccinv(b, q) / (a + (b - 1) / 2)),
        ]
        both_large = _quantile_of_both_large(q, a, b)
    return np.select([~is_large, a <= FEW, b <= FEW], simple, both_large)


def _within_both_large(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(x <= 0, 0.0, np.where(x >= 1, 1.0, _both_large(x, a, b)))


def _both_large(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return Temme's expansion to its first term, with an error of the order of (smaller count)^(-3/2)."""
    total = a + b
    mean, complement = a / total, b / total
    difference = x - mean
    half = deviance(mean, x, -difference) + deviance(complement, 1 - x, difference)
    eta = np.copysign(np.sqrt(2 * np.maximum(half, 0.0)), difference)
    spread = np.sqrt(mean * complement)
    at_mean = (complement - mean) / (3 * spread)
    term = np.where(np.abs(difference) > 1e-3 * spread, 1 / eta - spread / difference, at_mean)
    density = np.exp(-total * half) / np.sqrt(2 * np.pi * total)
    return np.asarray(np.clip(scipy.special.ndtr(eta * np.sqrt(total)) + density * term, 0.0, 1.0))


def _quantile_of_both_large(q: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Find a quantile by Newton steps from that of the normal approximation, with its density."""
    total = a + b
    mean = a / total
    sd = np.sqrt(mean) * np.sqrt(b / total) / np.sqrt(total)
    score = scipy.special.ndtri(q)
    x = mean + sd * score
    for _ in range(STEPS):
        x = x + sd * (score - scipy.special.ndtri(_both_large(x, a, b)))
    return np.where(np.isfinite(score), x, np.where(q > 0, 1.0, 0.0))
