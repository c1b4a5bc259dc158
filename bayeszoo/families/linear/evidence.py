"""How the evidence of ridge regression depends on its prior: slopes, and the effective numbers of parameters.

With weights of prior variance sd_j**2, posterior mean m about the prior mean and posterior covariance S,

    d log p(y) / d log sd_j   =  m_j**2 / sd_j**2 - (1 - S_jj / sd_j**2)
    d log p(y) / d log sigma  =  |y - X m|**2 / sigma**2 - n + gamma

where gamma is the trace of the hat matrix. What S and m change by does not matter: m minimizes the penalized squared
error, and the derivative of a log determinant is a trace. MacKay 1992, section 4; Bishop, PRML, section 3.5.2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayeszoo.families.linear.least_squares import MAX_ROUNDING, Solution


def effective_parameters(found: Solution) -> float:
    """Return how many directions the data determine, the trace of the hat matrix; NaN where rounding could change it.

    Directions that the data determine better than the prior count nearly 1, the others nearly 0.
    """
    return math.fsum(found.gains) + _lost(found)


def determined(found: Solution, intercept: bool) -> float:
    """Return the part of the effective parameters that the weights other than the intercept stand for.

    It is the sum of the shares of their prior variances that the data have removed, and so does not count the
    intercept, whose prior is another one. NaN where rounding could change it.
    """
    return math.fsum(found.determined()[int(intercept) :]) + _lost(found)


def gradient(model: Any, found: Solution, n: float) -> dict[str, float]:
    """Return the derivatives of the log evidence of ridge regression with respect to tau, sigma, s0 and m0.

    Parameters
    ----------
    model : Ridge
        Its ``tau``, ``sigma``, ``s0`` and ``intercept`` are read.
    found : Solution
        Posterior of the standardized weights, about the prior mean, of rows divided by sigma.
    n : float
        How many rows there are.

    Returns
    -------
    dict of str to float
        In nats per unit of each field; NaN where rounding could change the log evidence.
    """
    first, shares = int(model.intercept), found.determined()
    weight, share = (found.mean[0], shares[0]) if model.intercept else (0.0, 0.0)
    slopes = {
        "tau": (float(np.sum(np.square(found.mean[first:] / model.tau))) - determined(found, first > 0)) / model.tau,
        "sigma": (found.squared_error - n + effective_parameters(found)) / model.sigma,
        "s0": ((weight / model.s0) ** 2 - share) / model.s0,
        "m0": weight / model.s0**2,
    }
    return {name: float(slope) + _lost(found) for name, slope in slopes.items()}


def _lost(found: Solution) -> float:
    """Return 0, or NaN where rounding could change the log evidence: none of its sums is known better."""
    return 0.0 if found.rounding <= MAX_ROUNDING else math.nan
