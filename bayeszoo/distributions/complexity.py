"""Parametric complexity of normalized maximum likelihood: the log of the sum of maximized likelihoods.

The sum is over all sequences of n observations, each at its own maximum likelihood (Shtarkov 1987, Problems of
Information Transmission 23, 3-17; Rissanen 1996, IEEE Transactions on Information Theory 42, 40-47).
"""

from __future__ import annotations

import math

import numpy as np

MOST_TERMS = 10**7
"""Most terms of the sum for two categories; about 9 sqrt(n) terms matter."""
LEAST = 1e-18
"""Share of the first term below which terms are negligible."""


def multinomial(observations: int, categories: int) -> float:
    """Return the log of the sum, over all sequences of n observations of K categories, of the largest likelihood.

    For two categories it is Ramanujan's sum over j of n! / ((n - j)! n^j); for more it follows by
    C(K + 2) = C(K + 1) + n C(K) / K (Kontkanen and Myllymaki 2007, Information Processing Letters 103, 227-233).

    Parameters
    ----------
    observations : int
        n, >= 0.
    categories : int
        K, >= 1.

    Returns
    -------
    float
        In nats; NaN if n is so large that the sum has too many terms.
    """
    if observations == 0 or categories == 1:
        return 0.0
    terms = min(observations, math.ceil(math.sqrt(-2 * math.log(LEAST) * observations)) + 1)
    if terms > MOST_TERMS:
        return math.nan
    factors = 1 - np.arange(terms) / observations
    before, last = 0.0, math.log1p(float(np.cumprod(factors).sum()))
    for k in range(1, categories - 1):
        before, last = last, float(np.logaddexp(last, before + math.log(observations / k)))
    return last
