"""Importance sampling of the evidence of a function behind binary outcomes, with fields that have priors.

Fields are drawn from a Student t about the draws of a fit, and the function given them mostly from the Gaussian at its
mode, some from its prior, so that no weight is without bound. The mean weight is the evidence (Pitt and others 2012,
for likelihoods that are estimated; Owen and Zhou 2000 for the mixture).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy

from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.model.capabilities.steps import ConcaveLikelihood

FREEDOM = 5
"""Degrees of freedom of the Student t that fields are drawn from."""
ABOUT_MODE, OF_PRIOR = 14, 2
"""Functions drawn at each value of the fields, from the Gaussian at the mode and from the prior."""


def log_weights(
    log_prior: Callable[[np.ndarray], float],
    rows_at: Callable[[np.ndarray], ConcaveLikelihood],
    places: np.ndarray,
    rng: np.random.Generator,
    count: int,
) -> np.ndarray:
    """Return logs of ``count`` independent weights.

    ``places`` (n, D) are the coordinates of the fields at draws of a fit; ``log_prior`` is the log density of
    coordinates, and ``rows_at`` the likelihood of the function given them.
    """
    law = scipy.stats.multivariate_t(places.mean(axis=0), np.atleast_2d(np.cov(places.T)), FREEDOM)
    drawn = np.reshape(law.rvs(count, random_state=rng), (count, -1))
    heights = [log_prior(x) + log_evidence_at(rows_at(x), rng) for x in drawn]
    return np.array(heights) - np.reshape(law.logpdf(drawn), count)


def log_evidence_at(rows: ConcaveLikelihood, rng: np.random.Generator) -> float:
    """Return the log of an unbiased estimate of the evidence given the fields."""
    peak, d = rows.highest(), rows.size
    root = scipy.linalg.cholesky(peak.there.curvature, lower=True)
    z = rng.standard_normal((ABOUT_MODE + OF_PRIOR, d))
    about = peak.x + scipy.linalg.solve_triangular(root, z[:ABOUT_MODE].T, lower=True, trans="T").T
    u = np.concatenate([about, z[ABOUT_MODE:]])
    constant, share = -d / 2 * LOG_2_PI, ABOUT_MODE / len(u)
    at_mode = float(np.sum(np.log(np.diag(root)))) - np.sum(np.square((u - peak.x) @ root), axis=1) / 2
    mixture = np.logaddexp(math.log(share) + at_mode, math.log1p(-share) - np.sum(np.square(u), axis=1) / 2)
    return float(scipy.special.logsumexp(rows.joint_values(u) - mixture - constant)) - math.log(len(u))
