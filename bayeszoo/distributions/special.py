"""Logarithms of Gamma functions and binomial coefficients, without cancellation at large arguments.

SciPy's ``gammaln``, ``betaln`` and log masses are off by 1e-6 nats at arguments of 1e9, and by 1e-2 at 1e12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from bayeszoo.foundation.numerics.constants import TINY

Function = Callable[[np.ndarray], np.ndarray]

_TINY = 1e-100
"""The square of a smaller number would underflow."""
_FEW = 1e4
"""Largest counts at which differences of log Gamma functions keep 11 digits."""
_FAR = 300.0
"""Largest log odds whose exponential, times a count, neither underflows nor overflows."""
_LARGE = 64.0
"""From this number on, three terms of Stirling's series are exact to double precision."""


def _by_size(x: npt.ArrayLike, limit: float, below: Function, above: Function) -> np.ndarray:
    """Return one function below a limit and another above; each is called only if needed, to save time."""
    x = np.asarray(x, dtype=np.float64)
    if x.max(initial=-math.inf) < limit:
        return np.asarray(below(x))
    if x.min() >= limit:
        return np.asarray(above(x))
    return np.where(x < limit, below(np.minimum(x, limit)), above(np.maximum(x, limit)))


def _stirling_remainder(x: np.ndarray) -> np.ndarray:
    """Return log Gamma(x) minus the leading terms (x - 1/2) log x - x + log(2 pi)/2, for large x."""
    inverse = (1 / x) ** 2  # underflows to 0 where the square of x would overflow
    return (1 / 12 - inverse * (1 / 360 - inverse / 1260)) / x


def log_rising(a: npt.ArrayLike, n: npt.ArrayLike) -> np.ndarray:
    """Log of the rising factorial, log Gamma(a + n) - log Gamma(a), for a > 0 and n >= 0."""
    a, n = np.asarray(a, dtype=np.float64), np.asarray(n, dtype=np.float64)
    direct = scipy.special.gammaln(a + n) - scipy.special.gammaln(a)
    if a.max(initial=0.0) < _LARGE:
        return np.asarray(direct)
    base = np.maximum(a, _LARGE)
    leading = (base - 0.5) * np.log1p(n / base) + n * np.log(base + n) - n
    return np.where(a < _LARGE, direct, leading + _stirling_remainder(base + n) - _stirling_remainder(base))


def log_peak(x: Any) -> np.ndarray:
    """Return x log x - x - log Gamma(x + 1): the log mass at x of a Poisson distribution whose mean is x."""
    return _by_size(x, _LARGE, _log_peak_of_few, lambda x: -_stirling_remainder(x) - 0.5 * np.log(2 * np.pi * x))


def _log_peak_of_few(x: np.ndarray) -> np.ndarray:
    return np.asarray(scipy.special.xlogy(x, x) - x - scipy.special.gammaln(x + 1))


def deviance(x: npt.ArrayLike, mean: npt.ArrayLike, difference: object = None) -> np.ndarray:
    """Return x log(x / mean) - (x - mean) of numbers >= 0, without cancellation for x near the mean.

    ``difference`` is x - mean, if known to more digits than the difference of the two. Loader (2000), Fast and accurate
    computation of binomial probabilities: log masses become sums of terms of their own size, instead of terms as large
    as the counts.
    """
    x, mean = np.asarray(x, dtype=np.float64), np.asarray(mean, dtype=np.float64)
    difference = x - mean if difference is None else np.asarray(difference, dtype=np.float64)
    v = difference / np.maximum(x + mean, TINY)
    square = v * v
    is_near = square < 0.01
    if not is_near.any():
        return np.asarray(scipy.special.rel_entr(x, mean) - difference)
    series = square / 19
    for j in range(8, 0, -1):
        series += 1 / (2 * j + 1)
        series *= square
    series_value = difference * v + 2 * x * v * series
    if is_near.all():
        return np.asarray(series_value)
    return np.where(is_near, series_value, scipy.special.rel_entr(x, mean) - difference)


def log_poisson(k: npt.ArrayLike, log_mean: object) -> np.ndarray:
    """Return Poisson log masses at counts from the logs of the means, however small or large."""
    k, log_mean = np.asarray(k, dtype=np.float64), np.asarray(log_mean, dtype=np.float64)
    with np.errstate(over="ignore"):
        mean = np.exp(log_mean)
    inside = np.isfinite(mean) & (mean > 0)
    direct = log_peak(k) - deviance(k, np.where(inside, mean, 1.0))
    return np.where(inside, direct, k * log_mean - mean - scipy.special.gammaln(k + 1))


def digamma_less_log(x: npt.ArrayLike) -> np.ndarray:
    """Return digamma(x) - log(x): E[log g] - log E[g] for g ~ Gamma(x, rate).

    From 16 on by its series (Abramowitz and Stegun 1964, 6.3.18), because the two terms nearly cancel.
    """
    return _by_size(x, 16.0, lambda x: scipy.special.digamma(x) - np.log(x), _digamma_less_log_of_many)


def _digamma_less_log_of_many(x: np.ndarray) -> np.ndarray:
    inverse = x**-2
    terms = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))))
    return -0.5 / x - terms


def trigamma_excess(x: npt.ArrayLike) -> np.ndarray:
    """Return x trigamma(x) - 1, from 32 on by its series (Abramowitz and Stegun 1964, 6.4.12) against cancellation."""
    return _by_size(x, 32.0, lambda x: x * scipy.special.polygamma(1, x) - 1, _trigamma_excess_of_many)


def _trigamma_excess_of_many(x: np.ndarray) -> np.ndarray:
    inverse = x**-2
    return 0.5 / x + inverse * (1 / 6 - inverse * (1 / 30 - inverse * (1 / 42 - inverse / 30)))


def gamma_divergence(shape: Any, rate: Any, other_shape: Any, other_rate: Any) -> np.ndarray:
    """Return KL(Gamma(shape, rate) || Gamma(other_shape, other_rate)) in nats."""
    of_shapes = (shape - other_shape) * digamma_less_log(shape) + log_peak(shape) - log_peak(other_shape)
    ratio = other_rate / rate * (shape / other_shape)  # of the means, each of which may underflow
    return np.asarray(of_shapes + np.log(shape / other_shape) + other_shape * deviance(1.0, ratio))


def log_gamma(x: npt.ArrayLike, shape: npt.ArrayLike, rate: npt.ArrayLike) -> np.ndarray:
    """Log Gamma density, without cancellation for x near shape / rate with large parameters; at 0 its limit."""
    x, shape, rate = (np.asarray(value, dtype=np.float64) for value in (x, shape, rate))
    inside = x > 0
    safe = np.where(inside, x, 1.0)
    density = log_peak(shape) + np.log(shape / safe) - deviance(shape, rate * safe)
    if inside.all():
        return density
    edge = np.where(shape > 1, -np.inf, np.where(shape < 1, np.inf, np.log(rate)))
    return np.where(inside, density, np.where(np.isnan(x), x, np.where(x < 0, -np.inf, edge)))


def log_beta(x: object, a: object, b: object) -> np.ndarray:
    """Log Beta density, without cancellation near a / (a + b) with large parameters; at 0 and 1 its limits."""
    x, a, b = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (x, a, b)))
    total, inside = a + b, (x > 0) & (x < 1)
    p = np.where(inside, x, 0.5)
    difference = a * (1 - p) - b * p  # of a from p * total; b differs by the opposite
    peaks = log_peak(a) + log_peak(b) - log_peak(total) + np.log(a) - np.log(p) + np.log(b / total) - np.log1p(-p)
    density = peaks - deviance(a, total * p, difference) - deviance(b, total * (1 - p), -difference)
    if inside.all():
        return np.asarray(density)
    near_power, far_power = np.where(x == 0, a, b), np.where(x == 0, b, a)
    edge = np.where(near_power > 1, -np.inf, np.where(near_power < 1, np.inf, np.log(far_power)))
    return np.where(inside, density, np.where(np.isnan(x), x, np.where((x == 0) | (x == 1), edge, -np.inf)))


def log_normal(x: Any, mean: Any, variance: Any) -> np.ndarray:
    """Log density of normal distributions."""
    return np.asarray(-np.log(2 * math.pi * variance) / 2 - ((x - mean) / np.sqrt(2 * variance)) ** 2)


def log_negative_binomial(k: Any, a: Any, rate: Any, exposure: Any) -> np.ndarray:
    """Log mass at ``k`` of a Poisson of mean g * exposure, g ~ Gamma(a, rate): a ratio of three Poisson masses."""
    total = a + k
    p, q = rate / (rate + exposure), exposure / (rate + exposure)
    difference = k * p - a * q  # of k from its mean given the total; a differs by the opposite
    peaks = log_peak(k) + log_peak(a) - log_peak(total) + np.log(a) - np.log(total)
    return peaks - deviance(k, total * q, difference) - deviance(a, total * p, -difference)


def log_negative_binomial_of_odds(k: npt.ArrayLike, a: npt.ArrayLike, log_odds: npt.ArrayLike) -> np.ndarray:
    """Log mass at ``k`` of a negative binomial of mean a exp(log_odds) and size ``a``, for any log odds."""
    k, a, log_odds = (np.asarray(value, dtype=np.float64) for value in (k, a, log_odds))
    inside = np.abs(log_odds) < _FAR
    direct = log_negative_binomial(k, a, 1.0, np.exp(np.where(inside, log_odds, 0.0)))
    if inside.all():
        return direct
    powers = -a * np.logaddexp(0.0, log_odds) - k * np.logaddexp(0.0, -log_odds)
    return np.where(inside, direct, log_rising(a, k) - scipy.special.gammaln(k + 1) + powers)


def log_beta_binomial(k: Any, n: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Log mass at ``k`` of n trials whose probability is drawn from Beta(a, b).

    Two negative binomial counts with one rate are beta-binomial given their sum, for any rate; at this rate they are
    near their means.
    """
    total = a + b
    joint = log_negative_binomial(k, a, total, n) + log_negative_binomial(n - k, b, total, n)
    return np.minimum(joint - log_negative_binomial(n, total, total, n), 0.0)


def log_beta_ratio(a: npt.ArrayLike, b: npt.ArrayLike, successes: npt.ArrayLike, failures: object) -> np.ndarray:
    """Log of B(a + successes, b + failures) / B(a, b): the evidence of a Beta prior and ordered binary data.

    Computed as evidence of the counts over the number of orders: both logarithms are negative, and do not cancel. For
    tiny a and b it is the limit: the first trial succeeds with chance a / (a + b), which decides the rest.
    """
    a, b, s, f = (np.asarray(value, dtype=np.float64) for value in (a, b, successes, failures))
    tiny = np.maximum(a, b) < _TINY
    if not tiny.any() and np.all(a + b + s + f < _FEW):
        return log_rising(a, s) + log_rising(b, f) - log_rising(a + b, s + f)
    orders = log_binomial(s + f, s)
    ratio = log_beta_binomial(s, s + f, np.where(tiny, 1.0, a), np.where(tiny, 1.0, b)) - orders
    return np.where(tiny, _limit_of_beta_ratio(a, b, s, f) - np.where((s > 0) & (f > 0), orders, 0.0), ratio)


def _limit_of_beta_ratio(a: np.ndarray, b: np.ndarray, s: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return the log of B(a + s, b + f) / B(a, b) for tiny a and b, times the number of orders if both occur."""
    first = np.log(np.where(s > 0, a, b)) - np.log(a + b)
    has_both = (s > 0) & (f > 0)
    counts = [np.where(has_both, count, 1.0) for count in (s, f)]
    other_trials = np.where(
        has_both, np.log(b) + np.log(counts[0] + counts[1]) - np.log(counts[0]) - np.log(counts[1]), 0.0
    )
    return np.where(s + f > 0, first + other_trials, 0.0)


def log_binomial(n: npt.ArrayLike, k: npt.ArrayLike) -> np.ndarray:
    """Log binomial coefficients, log C(n, k): the number of orders with the same counts."""
    n, k = np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64)
    smaller, larger = np.minimum(k, n - k), np.maximum(k, n - k)
    share = smaller / np.where(n > 0, n, 1.0)
    entropy = -scipy.special.xlogy(smaller, share) - larger * np.log1p(-share)
    return np.maximum(log_peak(smaller) + log_peak(larger) - log_peak(n) + entropy, 0.0)


def sum_or_nan(value: float, first: float, second: float) -> float:
    """Return value + first + second, which may cancel; NaN if rounding may exceed 1e-9 max(1, |sum|)."""
    total = value + (first + second)
    rounding = 0.0 if first == -second else 4 * np.finfo(np.float64).eps * max(abs(first), abs(second))
    return total if rounding <= 1e-9 * max(1.0, abs(total)) else math.nan


def sum_of_others(values: npt.ArrayLike, axis: int) -> np.ndarray:
    """Return the sum of all other entries along an axis; total minus entry would lose small ones."""
    values = np.asarray(values, dtype=np.float64)
    entries = np.moveaxis(values, axis, -1)
    zero = np.zeros_like(entries[..., :1])
    before = np.cumsum(np.concatenate([zero, entries[..., :-1]], axis=-1), axis=-1)
    after = np.cumsum(np.concatenate([zero, entries[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    return np.moveaxis(before + after, -1, axis)
