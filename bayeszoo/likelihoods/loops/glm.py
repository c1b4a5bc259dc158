"""Log likelihood of rows given their linear predictor, for several links. Numba.

Cost O(n T) for n rows of T terms; BLAS computes the products of matrix and vector.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayeszoo.likelihoods.compiling import loop

LOGIT, LOG, PROBIT = 0, 1, 2
"""Codes of the links: log odds or normal quantile of a success, or log mean of a count per exposure."""
TAIL = -25.0
"""Below this the normal distribution function is computed by its asymptotic series, exact to double precision there."""
_ROOT, _LOG_ROOT = math.sqrt(2 * math.pi), math.log(2 * math.pi) / 2


@loop
def _logit(eta: float, outcome: float, size: float) -> Any:
    """Return log density and slope of successes in ordered trials with probability 1 / (1 + exp(-eta))."""
    tail = math.exp(-abs(eta))
    less_likely = tail / (1 + tail)
    if eta < 0:
        return outcome * eta - size * math.log1p(tail), outcome - size * less_likely
    failures = size - outcome
    return -failures * eta - size * math.log1p(tail), size * less_likely - failures


@loop
def _log(eta: float, outcome: float, size: float) -> Any:
    """Return log density and slope of a count with mean size * exp(eta)."""
    mean = size * math.exp(eta)
    return outcome * (eta + math.log(size)) - mean - math.lgamma(outcome + 1), outcome - mean


@loop
def _log_cdf(eta: float) -> Any:
    """Return log Phi(eta) and its slope."""
    if eta < TAIL:
        v = 1 / (eta * eta)
        series = 1 - v * (1 - 3 * v * (1 - 5 * v * (1 - 7 * v * (1 - 9 * v * (1 - 11 * v)))))
        return -0.5 * eta * eta - math.log(-eta) - _LOG_ROOT + math.log(series), -eta / series
    probability = 0.5 * math.erfc(-eta / math.sqrt(2.0))
    value = math.log(probability) if eta < 0 else math.log1p(-0.5 * math.erfc(eta / math.sqrt(2.0)))
    return value, math.exp(-0.5 * eta * eta) / (_ROOT * probability)


@loop
def _probit(eta: float, outcome: float, size: float) -> Any:
    """Return log density and slope of successes in ordered trials with probability Phi(eta)."""
    value, slope = 0.0, 0.0
    if outcome > 0:
        log_cdf, hazard = _log_cdf(eta)
        value, slope = outcome * log_cdf, outcome * hazard
    if outcome < size:
        log_cdf, hazard = _log_cdf(-eta)
        value, slope = value + (size - outcome) * log_cdf, slope - (size - outcome) * hazard
    return value, slope


@loop
def glm_value_and_gradient(w: np.ndarray, design: np.ndarray, outcome: np.ndarray, size: np.ndarray, link: int) -> Any:
    """Return the log likelihood of rows (n, T), outcomes and sizes (n,), and its derivatives in the weights (T,)."""
    if design.shape != (len(outcome), len(w)) or len(size) != len(outcome):
        raise ValueError("weights, rows, outcomes and sizes have different lengths")
    design = np.ascontiguousarray(design)
    eta, value = design @ np.ascontiguousarray(w), 0.0
    slopes = np.empty_like(eta)
    for i in range(len(eta)):
        if link == LOGIT:
            term, slopes[i] = _logit(eta[i], outcome[i], size[i])
        elif link == LOG:
            term, slopes[i] = _log(eta[i], outcome[i], size[i])
        elif link == PROBIT:
            term, slopes[i] = _probit(eta[i], outcome[i], size[i])
        else:
            raise ValueError("unknown code of a link")
        value += term
    return value, design.T @ slopes


@loop
def softmax_value_and_gradient(w: np.ndarray, design: np.ndarray, codes: np.ndarray) -> Any:
    """Return the log likelihood of rows (n, T) and classes (n,), and its derivatives in the weights (K, T)."""
    if design.shape != (len(codes), w.shape[1]):
        raise ValueError("weights, rows and classes have different lengths")
    design = np.ascontiguousarray(design)
    eta, value = design @ np.ascontiguousarray(w.T), 0.0
    for i in range(len(eta)):
        chosen, highest, total = eta[i, codes[i]], np.max(eta[i]), 0.0
        for k in range(eta.shape[1]):
            eta[i, k] = math.exp(eta[i, k] - highest)
            total += eta[i, k]
        value += chosen - highest - math.log(total)
        other_classes = 0.0
        for k in range(eta.shape[1]):
            eta[i, k] /= -total
            other_classes -= eta[i, k] if k != codes[i] else 0.0
        eta[i, codes[i]] = other_classes  # 1 - p would lose digits
    return value, eta.T @ design
