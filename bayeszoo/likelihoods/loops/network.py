"""Log density of a network's outcomes, output weights integrated out, and its gradient. Numba.

With the units Phi (n, T), a constant first, A = Phi'Phi + diag(precision), and e the residuals of the best fit, the
gradient in Phi is (a0 + n/2) / (b0 + misfit/2) e d' - Phi A^-1, d the best fit's weights: there the misfit
is stationary in them. A is factored by QR of the prior's rows on top of Phi, without forming products.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.likelihoods.compiling import loop


@loop
def network_value_and_gradient(
    w: np.ndarray, terms: np.ndarray, outcome: np.ndarray, precision: np.ndarray, a0: float, b0: float
) -> Any:
    """Return the log density of ``outcome`` (n,), minus its prior mean, and its gradient in ``w`` (F + 1, H).

    ``terms`` (n, F + 1) are the features with a constant, ``precision`` (H + 1,) is the prior precision of the weights
    of the constant and of the units, times the noise variance.
    """
    n, size = len(outcome), len(precision)
    root = np.sqrt(precision)
    phi = np.ones((n, size))
    phi[:, 1:] = np.tanh(terms @ w)
    Q, R = np.linalg.qr(np.concatenate((np.diag(root), phi)))
    inverse = np.linalg.inv(R)
    of_rows = np.ascontiguousarray(Q[size:])
    d = inverse @ (of_rows.T @ outcome)
    error = outcome - phi @ d
    scale = b0 + (np.sum(error * error) + np.sum(precision * d * d)) / 2
    power = a0 + n / 2
    value = math.lgamma(power) - math.lgamma(a0) + a0 * math.log(b0) - power * math.log(scale)
    value += np.sum(np.log(root)) - np.sum(np.log(np.abs(np.diag(R)))) - n / 2 * LOG_2_PI
    slopes = power / scale * np.outer(error, d) - of_rows @ inverse.T
    slopes = np.ascontiguousarray(slopes[:, 1:] * (1 - phi[:, 1:] ** 2))
    return value, terms.T @ slopes
