"""Distribution functions of Beta distributions whose counts are so large that SciPy's lose their digits.

From counts of 1e11 on SciPy's quantiles are off by up to 1e-2 in probability, or by factors. Where both counts are
large these are of the uniform expansion of Temme (1992, Asymptotic inversion of the incomplete beta function), where
one is not, of the Gamma distribution that -log(1 - x) then has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions.special import deviance

LARGE, FEW = 1e10, 1e6
"""Sum of the counts from which they are large, and the smaller count up to which it is few."""
STEPS = 8
"""Newton steps to a quantile: each takes away all but a thousandth of the error."""


def beta_cdf(x: object, a: object, b: object) -> np.ndarray:
    """Return the probability of at most x under Beta(a, b); of b = 0, as of one category alone, all is at 1."""
    x, a, b = np.broadcast_arrays(*(np.asarray(each, dtype=np.float64) for each in (x, a, b)))
    within = np.clip(x, 0.0, 1.0)
    is_large = a + b > LARGE
    if (b == 0).any():  # all mass is at 1
        return np.where(b > 0, beta_cdf(x, a, np.where(b > 0, b, 1.0)), (x >= 1) * 1.0)
    if not is_large.any():
        return np.asarray(scipy.special.betainc(a, b, within))
    few_a, few_b = is_large & (a <= FEW), is_large & (a > FEW) & (b <= FEW)
    branches: tuple[tuple[np.ndarray, Callable[..., Any]], ...] = (
        (~is_large, lambda x, a, b: scipy.special.betainc(a, b, x)),
        (few_a, lambda x, a, b: scipy.special.gammainc(a, -(b + (a - 1) / 2) * np.log1p(-x))),
        (few_b, lambda x, a, b: scipy.special.gammaincc(b, -(a + (b - 1) / 2) * np.log(x))),
        (is_large & ~few_a & ~few_b, _within_both_large),
    )
    values = np.empty(within.shape)
    with np.errstate(all="ignore"):  # of log(0)
        for which, branch in branches:  # each where it is taken, as SciPy's takes long where counts are large
            values[which] = branch(within[which], a[which], b[which])
    return values


def beta_ppf(q: object, a: object, b: object) -> np.ndarray:
    """Return the quantile of a level under Beta(a, b)."""
    q, a, b = np.broadcast_arrays(*(np.asarray(each, dtype=np.float64) for each in (q, a, b)))
    is_large = a + b > LARGE
    if (b == 0).any():
        return np.where(b > 0, beta_ppf(q, a, np.where(b > 0, b, 1.0)), 1.0)
    if not is_large.any():
        return np.asarray(scipy.stats.beta.ppf(q, a, b))
    with np.errstate(all="ignore"):
        parts = [
            scipy.stats.beta.ppf(q, np.where(is_large, 1.0, a), np.where(is_large, 1.0, b)),
            -np.expm1(-scipy.special.gammaincinv(a, q) / (b + (a - 1) / 2)),
            np.exp(-scipy.special.gammainccinv(b, q) / (a + (b - 1) / 2)),
        ]
        both = _quantile_of_both_large(q, a, b)
    return np.select([~is_large, a <= FEW, b <= FEW], parts, both)


def _within_both_large(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(x <= 0, 0.0, np.where(x >= 1, 1.0, _both_large(x, a, b)))


def _both_large(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return Temme's expansion to its first term, whose error is of the order of the smaller count to the -3/2."""
    total = a + b
    mean, rest = a / total, b / total
    difference = x - mean
    half = deviance(mean, x, -difference) + deviance(rest, 1 - x, difference)
    eta = np.copysign(np.sqrt(2 * np.maximum(half, 0.0)), difference)
    spread = np.sqrt(mean * rest)
    at_mean = (rest - mean) / (3 * spread)
    term = np.where(np.abs(difference) > 1e-3 * spread, 1 / eta - spread / difference, at_mean)
    density = np.exp(-total * half) / np.sqrt(2 * np.pi * total)
    return np.asarray(np.clip(scipy.special.ndtr(eta * np.sqrt(total)) + density * term, 0.0, 1.0))


def _quantile_of_both_large(q: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Take Newton steps from the normal distribution's quantile, with its density."""
    total = a + b
    mean = a / total
    sd = np.sqrt(mean) * np.sqrt(b / total) / np.sqrt(total)
    score = scipy.special.ndtri(q)
    x = mean + sd * score
    for _ in range(STEPS):
        x = x + sd * (score - scipy.special.ndtri(_both_large(x, a, b)))
    return np.where(np.isfinite(score), x, np.where(q > 0, 1.0, 0.0))
