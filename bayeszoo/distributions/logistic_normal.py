"""Probabilities with normal log odds: the mean probability, returned as accurate log odds."""

from __future__ import annotations

import math

import numpy as np
import scipy

REACH = 8.5
"""Standard deviations beyond which a normal density is negligible in double precision."""
STEP = 0.7
"""Step of the sum in standard deviations, divided by the standard deviation if above 1: the logistic function
has poles at a distance of pi over the standard deviation, hence the sum's error is at most e^-23."""
COARSE = 8
"""Numbers of terms are rounded up to a multiple of this, so that many rows are summed together."""


def log_odds_of_mean(mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Return the log odds of E[1 / (1 + exp(-x))], x ~ N(mean, sd^2), by the trapezoidal rule.

    ``mean`` has shape (..., rows), ``sd`` (rows,).
    """
    odds = np.array(mean, dtype=np.float64)
    counts = np.ceil(REACH / STEP * np.maximum(sd, 1.0) / COARSE).astype(np.int64) * COARSE
    for count in np.unique(counts[sd > 0]).tolist():
        rows = (counts == count) & (sd > 0)
        odds[..., rows] = _summed(odds[..., rows], sd[rows], count)
    return odds


def _summed(mean: np.ndarray, sd: np.ndarray, count: int) -> np.ndarray:
    nodes = np.linspace(-REACH, REACH, 2 * count + 1)
    weights = np.exp(-np.square(nodes) / 2)
    success, failure = np.zeros(mean.shape), np.zeros(mean.shape)
    for node, weight in zip(nodes, weights / math.fsum(weights), strict=True):
        eta = mean + sd * node
        success += weight * scipy.special.expit(eta)
        failure += weight * scipy.special.expit(-eta)
    with np.errstate(divide="ignore"):  # for means hundreds of nats from 0
        return np.asarray(np.log(success) - np.log(failure))
