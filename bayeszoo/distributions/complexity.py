"""How much normalized maximum likelihood pays for not knowing the parameters: the log of the sum of all best fits.

Of all sequences of n observations, each with the highest likelihood that parameters give it (Shtarkov 1987, Problems of
Information Transmission 23, 3-17; Rissanen 1996, IEEE Transactions on Information Theory 42, 40-47).
"""

from __future__ import annotations

import math

import numpy as np

MOST_TERMS = 10**7
"""Terms of the sum of two categories at most; it has some 9 times the root of n that matter."""
LEAST = 1e-18
"""Terms below this share of the first one do not matter."""


def multinomial(observations: int, categories: int) -> float:
    """Return the log of the sum, over all sequences of n observations of K categories, of the largest likelihood.

    Of two categories it is the sum over j of n! / ((n - j)! n^j), Ramanujan's; of more it follows by
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
        In nats; NaN where n is so large that the sum has too many terms.
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
