"""Log likelihood of rows given their linear predictor, for several links. Numba.

Cost O(n T) for n rows of T terms, of which the products of matrix and vector are BLAS's.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

LOGIT, LOG = 0, 1
"""The codes of the links: successes of trials by log odds; counts of an exposure by the log of their mean."""

_loops = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=False)


@_loops
def _logit(eta: float, outcome: float, size: float) -> Any:
    """Return log density and slope of successes of ordered trials, of probability 1 / (1 + exp(-eta))."""
    tail = math.exp(-abs(eta))
    less_likely = tail / (1 + tail)
    if eta < 0:
        return outcome * eta - size * math.log1p(tail), outcome - size * less_likely
    failures = size - outcome
    return -failures * eta - size * math.log1p(tail), size * less_likely - failures


@_loops
def _log(eta: float, outcome: float, size: float) -> Any:
    """Return log density and slope of a count of mean size * exp(eta)."""
    mean = size * math.exp(eta)
    return outcome * (eta + math.log(size)) - mean - math.lgamma(outcome + 1), outcome - mean


@_loops
def glm_value_and_gradient(w: Any, design: Any, outcome: Any, size: Any, link: int) -> Any:
    """Return log likelihood and its derivatives in the weights (T,), of rows (n, T), outcomes and sizes (n,)."""
    if design.shape != (len(outcome), len(w)) or len(size) != len(outcome):
        raise ValueError("weights, rows, outcomes and sizes differ in how many there are")
    eta, value = design @ w, 0.0
    slopes = np.empty_like(eta)
    for i in range(len(eta)):
        if link == LOGIT:
            term, slopes[i] = _logit(eta[i], outcome[i], size[i])
        elif link == LOG:
            term, slopes[i] = _log(eta[i], outcome[i], size[i])
        else:
            raise ValueError("there is no link of this code")
        value += term
    return value, design.T @ slopes
