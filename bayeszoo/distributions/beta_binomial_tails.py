"""Tails of beta-binomial distributions with too many trials to add up all terms.

If a tail has more than `MOST_SUMMED` counts, those near its ends are added up, and between them the mass function,
which is smooth, is integrated by Gauss's rule on panels that widen away from the ends, with the first term of
Euler and Maclaurin's formula. Points are dense where the mass function may be steep: at 0, at the
trials and at the count itself. A tail that contains the mode is 1 minus the other two parts.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import scipy

from bayeszoo.distributions.special import log_beta_binomial

MOST_SUMMED, NEAR = 1024, 32
"""Most counts of a tail that are all added up, and counts added up at each end of a longer tail."""
MOST_LAWS = 4000
"""Number of distributions whose tails are computed together."""
GROWTH, POINTS = 1.8, 9
"""Growth factor of the panels, and points of each panel."""


def log_tails(k: int, trials: int, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return logs of the probabilities of less than, exactly and more than k successes; ``a`` and ``b`` are (P,)."""
    at = np.minimum(log_beta_binomial(float(k), float(trials), a, b), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mode = np.where((a > 1) & (b > 1), (a - 1) / (a + b - 2), np.where(a > b, 1.0, 0.0)) * trials
    is_edged = (a <= 1) & (b <= 1)  # the mass function is highest at both ends
    is_below = is_edged | (k <= mode) | (k <= MOST_SUMMED)
    is_above = is_edged | (k > mode) | (trials - k <= MOST_SUMMED)
    below, above = np.full(a.shape, -np.inf), np.full(a.shape, -np.inf)
    below[is_below] = _log_sum(0, k - 1, trials, a[is_below], b[is_below])
    above[is_above] = _log_sum(k + 1, trials, trials, a[is_above], b[is_above])
    return np.where(is_below, below, _log_rest(at, above)), at, np.where(is_above, above, _log_rest(at, below))


def log_tails_of_each(
    y: npt.ArrayLike, trials: npt.ArrayLike, a: npt.ArrayLike, b: npt.ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `log_tails` of arrays that broadcast, computed once for each distinct entry."""
    shape = np.broadcast_shapes(*(np.shape(values) for values in (y, trials, a, b)))
    columns = (np.broadcast_to(part, shape).ravel().astype(np.float64) for part in (y, trials, a, b))
    distinct, place = np.unique(np.stack([*columns], axis=1), axis=0, return_inverse=True)
    tails_of = np.empty((len(distinct), 3))
    starts = np.flatnonzero(np.any(np.diff(distinct[:, :2], axis=0, prepend=np.nan) != 0, axis=1))
    for rows in np.split(np.arange(len(distinct)), starts[1:]):  # rows with equal successes and trials
        k, size = distinct[rows[0], :2].astype(int).tolist()
        for chunk in np.array_split(rows, -(-len(rows) // MOST_LAWS)):
            tails_of[chunk] = np.stack(log_tails(k, size, *distinct[chunk, 2:].T), axis=1)
    below, at, above = (column.reshape(shape) for column in tails_of[np.ravel(place)].T)
    return below, at, above


def _log_rest(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return log(1 - p1 - p2) from two log probabilities."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(-np.expm1(np.minimum(np.logaddexp(first, second), 0.0)), 0.0))


def _log_sum(first: int, last: int, trials: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the log probability of counts from the first to the last."""
    if last < first:
        return np.full(a.shape, -np.inf)
    places, weights = _rule(last - first + 1)
    log_mass = log_beta_binomial(first + places, float(trials), a[:, None], b[:, None])
    return np.minimum(scipy.special.logsumexp(log_mass, b=weights, axis=1), 0.0)


@lru_cache(maxsize=256)
def _rule(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights whose weighted sum is that of a smooth function over 0..size - 1."""
    if size <= MOST_SUMMED:
        return np.arange(float(size)), np.ones(size)
    ends, weights = np.arange(float(NEAR)), np.ones(NEAR)
    weights[-1] -= 1 / 24  # the slope where the integral begins, half a count further, as a difference of two counts
    low = NEAR - 0.5
    steps = np.geomspace(low, (size - 1) / 2, max(2, int(np.ceil(np.log((size - 1) / 2 / low) / np.log(GROWTH))) + 1))
    x, w = np.polynomial.legendre.leggauss(POINTS)
    half = np.diff(steps) / 2
    inner = ((steps[1:] + steps[:-1]) / 2)[:, None] + half[:, None] * x
    places = np.concatenate([ends, [float(NEAR)], inner.ravel()])
    all_weights = np.concatenate([weights, [1 / 24], (half[:, None] * w).ravel()])
    return np.concatenate([places, size - 1 - places]), np.concatenate([all_weights, all_weights])
