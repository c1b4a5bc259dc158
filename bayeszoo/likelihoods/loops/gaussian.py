"""Log density of a Gaussian vector, and its gradient in the covariance matrix. Numba, on LAPACK's factors.

d log N(y | 0, C) / dC = (u u' - C^-1) / 2, u = C^-1 y. Rasmussen and Williams 2006, equation 5.9.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.likelihoods.compiling import loop


@loop
def gaussian_value_and_gradient(C: np.ndarray, y: np.ndarray) -> Any:
    """Return log N(y | 0, C) and its gradient in C; -inf and zeros if C is not positive definite."""
    n = len(y)
    impossible = -np.inf, np.zeros((n, n))
    if not np.all(np.isfinite(C)):
        return impossible
    try:
        L = np.linalg.cholesky(C)
    except Exception:  # not positive definite: in compiled code numba catches no narrower class
        return impossible
    log_det = 0.0
    for i in range(n):
        log_det += 2 * math.log(L[i, i])
    inverse = np.linalg.inv(C)
    u = inverse @ y
    value = -(np.sum(u * y) + log_det + n * LOG_2_PI) / 2
    return value, (np.outer(u, u) - inverse) / 2
