"""Normal scores of outcomes under their predictions, and the band that contains all with probability `BAND`.

Aldor-Noiman, Brown, Buja, Rolke and Stine 2013, The American Statistician 67.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy

BAND = 0.95
"""Probability that independent normal scores all lie within the band of a QQ plot."""
SIMULATED = 5000
"""Number of simulated samples that determine the level of the band."""
_RANKS = 600
"""Largest number of ranks compared with the band; with more rows, ranks are dense towards both ends."""


class Predicted(NamedTuple):
    """Moments of the predictive distributions of rows, and tail probabilities of their outcomes; shape (rows,).

    ``below``, ``at`` and ``above`` are logs of the probabilities of values less than, equal to and more than the
    outcome; ``k_hat`` is the Pareto shape of the importance weights, NaN without any. The Monte Carlo errors are of
    mean, sd, standardized outcome and PIT, NaN if there are none.
    """

    mean: np.ndarray
    sd: np.ndarray
    below: np.ndarray
    at: np.ndarray
    above: np.ndarray
    k_hat: np.ndarray
    mean_error: np.ndarray
    sd_error: np.ndarray
    standardized_error: np.ndarray
    pit_error: np.ndarray


def scored(used: Predicted, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return PITs and their normal quantiles; a jump is divided at random between the two tails.

    The quantile is taken from the smaller tail, which is the accurate one.
    """
    share = rng.uniform(size=len(used.at))
    with np.errstate(divide="ignore", invalid="ignore"):  # rows without a prediction
        lower = np.logaddexp(used.below, np.log(share) + used.at)
        upper = np.logaddexp(used.above, np.log1p(-share) + used.at)
    quantile = scipy.special.ndtri_exp(np.minimum(lower, upper))
    return np.exp(lower), np.where(lower < upper, quantile, -quantile)


def quantiles(score: np.ndarray) -> dict[str, np.ndarray]:
    """Return expected normal scores by rank, the band and which scores are outside; NaN for unknown scores (rows,)."""
    indices = np.flatnonzero(~np.isnan(score))
    order = indices[np.argsort(score[indices], kind="stable")]
    n, unknown = len(order), np.full(len(score), np.nan)
    columns = {name: unknown.copy() for name in ("theoretical", "band_lower", "band_upper")}
    if n:
        lower = _lower_bounds(np.arange(1, n + 1), n, pointwise_level(n))
        columns["theoretical"][order] = scipy.special.ndtri((np.arange(1, n + 1) - 3 / 8) / (n + 1 / 4))
        columns["band_lower"][order], columns["band_upper"][order] = lower, -lower[::-1]
    return {**columns, "outside": (score < columns["band_lower"]) | (score > columns["band_upper"])}


def _lower_bounds(ranks: np.ndarray, n: int, level: float) -> np.ndarray:
    """Return the normal scores that the order statistics of n exceed with probability ``1 - level / 2``."""
    return np.asarray(scipy.special.ndtri(scipy.special.betaincinv(ranks, n + 1.0 - ranks, level / 2)))


@lru_cache(maxsize=64)
def pointwise_level(n: int) -> float:
    """Return the level of each order statistic's interval at which all n lie within theirs with probability `BAND`.

    It is found by simulation with a fixed seed; the simultaneous probability is known to 0.003. With more than 600 rows
    at most 600 ranks are compared, dense towards both ends, so that slightly more samples leave the band.
    """
    half = np.unique(np.round(np.geomspace(1, max(n / 2, 1), _RANKS // 2))).astype(int)
    ranks = np.arange(1, n + 1) if n <= _RANKS else np.unique(np.concatenate([half, n + 1 - half]))
    gaps = np.diff(np.concatenate([[0], ranks, [n + 1]]))
    sums = np.cumsum(np.random.default_rng(0).standard_gamma(gaps, size=(SIMULATED, len(gaps))), axis=1)
    scores = scipy.special.ndtri(sums[:, :-1] / sums[:, -1:])  # order statistics of n uniform numbers, jointly
    low, high = math.log((1 - BAND) / n), math.log(1 - BAND)
    for _ in range(30):
        middle = (low + high) / 2
        bounds = _lower_bounds(ranks, n, math.exp(middle)), -_lower_bounds(n + 1 - ranks, n, math.exp(middle))
        within = np.mean(np.all((scores >= bounds[0]) & (scores <= bounds[1]), axis=1))
        low, high = (middle, high) if within >= BAND else (low, middle)
    return math.exp(low)
