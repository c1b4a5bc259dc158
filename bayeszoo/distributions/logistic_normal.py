"""Probabilities whose log odds are normal: the mean probability, as log odds that keep their digits."""

from __future__ import annotations

import math

import numpy as np
import scipy

REACH = 8.5
"""Standard deviations beyond which nothing is left of a normal distribution in double precision."""
STEP = 0.7
"""Steps of the sum in standard deviations, and over the standard deviation where that is above 1: the logistic function
has its poles at a distance of pi over the standard deviation, by which the sum's error is at most e^-23."""
COARSE = 8
"""Numbers of terms are rounded up to a multiple of it, so that many rows are summed at a time."""


def log_odds_of_mean(mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Return the log odds of E[1 / (1 + exp(-x))], x ~ N(mean, sd^2), by the trapezoidal rule.

    ``mean`` is of shape (..., rows), ``sd`` (rows,).
    """
    odds = np.array(mean, dtype=np.float64)
    counts = np.ceil(REACH / STEP * np.maximum(sd, 1.0) / COARSE).astype(np.int64) * COARSE
    for count in np.unique(counts[sd > 0]).tolist():
        some = (counts == count) & (sd > 0)
        odds[..., some] = _summed(odds[..., some], sd[some], count)
    return odds


def _summed(mean: np.ndarray, sd: np.ndarray, count: int) -> np.ndarray:
    nodes = np.linspace(-REACH, REACH, 2 * count + 1)
    weights = np.exp(-np.square(nodes) / 2)
    success, failure = np.zeros(mean.shape), np.zeros(mean.shape)
    for node, weight in zip(nodes, weights / math.fsum(weights), strict=True):
        eta = mean + sd * node
        success += weight * scipy.special.expit(eta)
        failure += weight * scipy.special.expit(-eta)
    with np.errstate(divide="ignore"):  # of a mean hundreds of nats out
        return np.asarray(np.log(success) - np.log(failure))
