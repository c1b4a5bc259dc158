"""Logarithms of Gamma functions and of binomial coefficients, without cancellation where their arguments are large.

SciPy's ``gammaln``, ``betaln`` and log masses are off by 1e-6 nats at arguments of 1e9, and by 1e-2 at 1e12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

Function = Callable[[np.ndarray], np.ndarray]

_TINY = 1e-100
"""The square of a smaller number would lose digits or vanish."""
_FEW = 1e4
"""Counts up to which logarithms of Gamma functions have so few digits that their differences keep 11 of them."""
_FAR = 300.0
"""Log odds whose exponential, times a count, neither vanishes nor overflows."""
_LARGE = 64.0
"""From here on three terms of Stirling's series are exact to double precision."""


def _by_size(x: npt.ArrayLike, limit: float, below: Function, above: Function) -> np.ndarray:
    """Return a function of numbers below a limit and another above, neither called without need, which takes time."""
    x = np.asarray(x, dtype=np.float64)
    if x.max(initial=-math.inf) < limit:
        return np.asarray(below(x))
    if x.min() >= limit:
        return np.asarray(above(x))
    return np.where(x < limit, below(np.minimum(x, limit)), above(np.maximum(x, limit)))


def _stirling_remainder(x: np.ndarray) -> np.ndarray:
    """Return log Gamma(x) less the leading terms (x - 1/2) log x - x + log(2 pi)/2, for large x."""
    inverse = (1 / x) ** 2  # which vanishes where the square of x would overflow
    return (1 / 12 - inverse * (1 / 360 - inverse / 1260)) / x


def log_rising(a: npt.ArrayLike, n: npt.ArrayLike) -> np.ndarray:
    """Log of the rising factorial, log Gamma(a + n) - log Gamma(a), for a > 0 and n >= 0."""
    a, n = np.asarray(a, dtype=np.float64), np.asarray(n, dtype=np.float64)
    small = scipy.special.gammaln(a + n) - scipy.special.gammaln(a)
    if a.max(initial=0.0) < _LARGE:
        return np.asarray(small)
    base = np.maximum(a, _LARGE)
    leading = (base - 0.5) * np.log1p(n / base) + n * np.log(base + n) - n
    return np.where(a < _LARGE, small, leading + _stirling_remainder(base + n) - _stirling_remainder(base))


def log_peak(x: Any) -> np.ndarray:
    """Return x log x - x - log Gamma(x + 1): the log mass at x of a Poisson distribution whose mean is x."""
    return _by_size(x, _LARGE, _log_peak_of_few, lambda x: -_stirling_remainder(x) - 0.5 * np.log(2 * np.pi * x))


def _log_peak_of_few(x: np.ndarray) -> np.ndarray:
    return np.asarray(scipy.special.xlogy(x, x) - x - scipy.special.gammaln(x + 1))


def deviance(x: npt.ArrayLike, mean: npt.ArrayLike, difference: object = None) -> np.ndarray:
    """Return x log(x / mean) - (x - mean) of numbers >= 0, without cancellation where x is near the mean.

    ``difference`` is x - mean, where it is known to more digits than the two. Loader (2000), Fast and accurate
    computation of binomial probabilities: with it the logarithm of a mass is the sum of terms of its own size, and not
    of terms as large as the counts.
    """
    x, mean = np.asarray(x, dtype=np.float64), np.asarray(mean, dtype=np.float64)
    difference = x - mean if difference is None else np.asarray(difference, dtype=np.float64)
    v = difference / np.maximum(x + mean, np.finfo(np.float64).tiny)
    square = v * v
    is_near = square < 0.01
    if not is_near.any():
        return np.asarray(scipy.special.rel_entr(x, mean) - difference)
    series = square / 19
    for j in range(8, 0, -1):
        series += 1 / (2 * j + 1)
        series *= square
    near = difference * v + 2 * x * v * series
    if is_near.all():
        return np.asarray(near)
    return np.where(is_near, near, scipy.special.rel_entr(x, mean) - difference)


def log_poisson(k: npt.ArrayLike, log_mean: object) -> np.ndarray:
    """Return the log mass at counts of Poisson distributions by the logs of their means, however small or large."""
    k, log_mean = np.asarray(k, dtype=np.float64), np.asarray(log_mean, dtype=np.float64)
    with np.errstate(over="ignore"):
        mean = np.exp(log_mean)
    inside = np.isfinite(mean) & (mean > 0)
    near = log_peak(k) - deviance(k, np.where(inside, mean, 1.0))
    return np.where(inside, near, k * log_mean - mean - scipy.special.gammaln(k + 1))


def digamma_less_log(x: npt.ArrayLike) -> np.ndarray:
    """Return digamma(x) - log(x): the expected logarithm under Gamma(x, rate) less that of the mean.

    From 16 on by its series (Abramowitz and Stegun 1964, 6.3.18), as both are large and alike.
    """
    return _by_size(x, 16.0, lambda x: scipy.special.digamma(x) - np.log(x), _digamma_less_log_of_many)


def _digamma_less_log_of_many(x: np.ndarray) -> np.ndarray:
    inverse = x**-2
    terms = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))))
    return -0.5 / x - terms


def trigamma_excess(x: npt.ArrayLike) -> np.ndarray:
    """Return x trigamma(x) - 1, from 32 on by its series (Abramowitz and Stegun 1964, 6.4.12): both are near 1."""
    return _by_size(x, 32.0, lambda x: x * scipy.special.polygamma(1, x) - 1, _trigamma_excess_of_many)


def _trigamma_excess_of_many(x: np.ndarray) -> np.ndarray:
    inverse = x**-2
    return 0.5 / x + inverse * (1 / 6 - inverse * (1 / 30 - inverse * (1 / 42 - inverse / 30)))


def gamma_divergence(shape: Any, rate: Any, other_shape: Any, other_rate: Any) -> np.ndarray:
    """Return KL(Gamma(shape, rate) || Gamma(other_shape, other_rate)) in nats."""
    of_shapes = (shape - other_shape) * digamma_less_log(shape) + log_peak(shape) - log_peak(other_shape)
    ratio = other_rate / rate * (shape / other_shape)  # of the means, which by themselves may vanish
    return np.asarray(of_shapes + np.log(shape / other_shape) + other_shape * deviance(1.0, ratio))


def log_gamma(x: npt.ArrayLike, shape: npt.ArrayLike, rate: npt.ArrayLike) -> np.ndarray:
    """Log Gamma density, without cancellation where x is near shape / rate and these are large; at 0 its limit."""
    x, shape, rate = (np.asarray(value, dtype=np.float64) for value in (x, shape, rate))
    inside = x > 0
    safe = np.where(inside, x, 1.0)
    density = log_peak(shape) + np.log(shape / safe) - deviance(shape, rate * safe)
    if inside.all():
        return density
    edge = np.where(shape > 1, -np.inf, np.where(shape < 1, np.inf, np.log(rate)))
    return np.where(inside, density, np.where(np.isnan(x), x, np.where(x < 0, -np.inf, edge)))


def log_beta(x: object, a: object, b: object) -> np.ndarray:
    """Log Beta density, without cancellation where x is near a / (a + b) and these are large; at 0 and 1 its limits."""
    x, a, b = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (x, a, b)))
    total, inside = a + b, (x > 0) & (x < 1)
    p = np.where(inside, x, 0.5)
    difference = a * (1 - p) - b * p  # of a from its share of the total; b is off by as much the other way
    peaks = log_peak(a) + log_peak(b) - log_peak(total) + np.log(a) - np.log(p) + np.log(b / total) - np.log1p(-p)
    density = peaks - deviance(a, total * p, difference) - deviance(b, total * (1 - p), -difference)
    if inside.all():
        return np.asarray(density)
    own, other = np.where(x == 0, a, b), np.where(x == 0, b, a)
    edge = np.where(own > 1, -np.inf, np.where(own < 1, np.inf, np.log(other)))
    return np.where(inside, density, np.where(np.isnan(x), x, np.where((x == 0) | (x == 1), edge, -np.inf)))


def log_normal(x: Any, mean: Any, variance: Any) -> np.ndarray:
    """Log density of normal distributions."""
    return np.asarray(-np.log(2 * math.pi * variance) / 2 - ((x - mean) / np.sqrt(2 * variance)) ** 2)


def log_negative_binomial(k: Any, a: Any, rate: Any, exposure: Any) -> np.ndarray:
    """Log mass at ``k`` of a Poisson of mean g * exposure, g ~ Gamma(a, rate): a quotient of three Poisson masses."""
    total = a + k
    p, q = rate / (rate + exposure), exposure / (rate + exposure)
    difference = k * p - a * q  # of k from its mean given the total; a is off by as much the other way
    peaks = log_peak(k) + log_peak(a) - log_peak(total) + np.log(a) - np.log(total)
    return peaks - deviance(k, total * q, difference) - deviance(a, total * p, -difference)


def log_negative_binomial_of_odds(k: npt.ArrayLike, a: npt.ArrayLike, log_odds: npt.ArrayLike) -> np.ndarray:
    """Log mass at ``k`` of a negative binomial of mean a exp(log_odds) and size ``a``, however far the odds are out."""
    k, a, log_odds = (np.asarray(value, dtype=np.float64) for value in (k, a, log_odds))
    inside = np.abs(log_odds) < _FAR
    near = log_negative_binomial(k, a, 1.0, np.exp(np.where(inside, log_odds, 0.0)))
    if inside.all():
        return near
    powers = -a * np.logaddexp(0.0, log_odds) - k * np.logaddexp(0.0, -log_odds)
    return np.where(inside, near, log_rising(a, k) - scipy.special.gammaln(k + 1) + powers)


def log_beta_binomial(k: Any, n: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Log mass at ``k`` of n trials whose probability is drawn from Beta(a, b).

    Two negative binomial counts of one rate, given their sum, are beta-binomial, whatever the rate; at this one they
    are near their means.
    """
    total = a + b
    each = log_negative_binomial(k, a, total, n) + log_negative_binomial(n - k, b, total, n)
    return np.minimum(each - log_negative_binomial(n, total, total, n), 0.0)


def log_beta_ratio(a: npt.ArrayLike, b: npt.ArrayLike, successes: npt.ArrayLike, failures: object) -> np.ndarray:
    """Log of B(a + successes, b + failures) / B(a, b): the evidence of a Beta prior and ordered binary data.

    The evidence of the counts, divided by the number of orders: both logarithms are negative, and do not cancel. Of a
    and b whose products underflow it is the limit: a first success has the chance a / (a + b), which decides the rest.
    """
    a, b, s, f = (np.asarray(value, dtype=np.float64) for value in (a, b, successes, failures))
    tiny = np.maximum(a, b) < _TINY
    if not tiny.any() and np.all(a + b + s + f < _FEW):
        return log_rising(a, s) + log_rising(b, f) - log_rising(a + b, s + f)
    orders = log_binomial(s + f, s)
    ratio = log_beta_binomial(s, s + f, np.where(tiny, 1.0, a), np.where(tiny, 1.0, b)) - orders
    return np.where(tiny, _limit_of_beta_ratio(a, b, s, f) - np.where((s > 0) & (f > 0), orders, 0.0), ratio)


def _limit_of_beta_ratio(a: np.ndarray, b: np.ndarray, s: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return the log of B(a + s, b + f) / B(a, b) for tiny a and b, times the number of orders where both occur."""
    first = np.log(np.where(s > 0, a, b)) - np.log(a + b)
    both = (s > 0) & (f > 0)
    some = [np.where(both, count, 1.0) for count in (s, f)]
    rest = np.where(both, np.log(b) + np.log(some[0] + some[1]) - np.log(some[0]) - np.log(some[1]), 0.0)
    return np.where(s + f > 0, first + rest, 0.0)


def log_binomial(n: npt.ArrayLike, k: npt.ArrayLike) -> np.ndarray:
    """Log binomial coefficients, log C(n, k): the number of orders that give the same counts."""
    n, k = np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64)
    few, many = np.minimum(k, n - k), np.maximum(k, n - k)
    share = few / np.where(n > 0, n, 1.0)
    entropy = -scipy.special.xlogy(few, share) - many * np.log1p(-share)
    return np.maximum(log_peak(few) + log_peak(many) - log_peak(n) + entropy, 0.0)


def sum_or_nan(value: float, first: float, second: float, tolerance: float = 1e-9) -> float:
    """Add to a value two numbers that may cancel; NaN where rounding could exceed ``tolerance`` of max(1, |sum|)."""
    total = value + (first + second)
    lost = 0.0 if first == -second else 4 * np.finfo(np.float64).eps * max(abs(first), abs(second))
    return total if lost <= tolerance * max(1.0, abs(total)) else math.nan


def sum_of_others(values: npt.ArrayLike, axis: int) -> np.ndarray:
    """Return the sum of the other entries along an axis; the total less the entry would lose the small ones."""
    values = np.asarray(values, dtype=np.float64)
    each = np.moveaxis(values, axis, -1)
    none = np.zeros_like(each[..., :1])
    before = np.cumsum(np.concatenate([none, each[..., :-1]], axis=-1), axis=-1)
    after = np.cumsum(np.concatenate([none, each[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    return np.moveaxis(before + after, -1, axis)
