"""Rows of probabilities under Dirichlet priors: what the steps of EM and variational Bayes need, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from scipy.special import digamma, gammaln

from bayeszoo.errors import NumericalError


def log_density(p: Any, alpha: Any) -> np.ndarray:
    """Log Dirichlet density of each row of ``p`` (..., K), every constant kept: shape (...).

    On the edge: -inf where an entry is 0 whose alpha is above 1, inf where it is below.
    """
    p, alpha = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(alpha, dtype=np.float64))
    constant = gammaln(alpha.sum(axis=-1)) - gammaln(alpha).sum(axis=-1)
    return constant + np.sum(scipy.special.xlogy(alpha - 1, p), axis=-1)


def expected_log(alpha: np.ndarray) -> np.ndarray:
    """Return E[log p] under p ~ Dirichlet(alpha) along the last axis (Bishop, PRML, B.21)."""
    return np.asarray(digamma(alpha) - digamma(alpha.sum(axis=-1, keepdims=True)))


def divergence(alpha: Any, prior: Any) -> float:
    """Return KL(Dirichlet(alpha) || Dirichlet(prior)), summed over rows."""
    alpha, prior = np.broadcast_arrays(np.asarray(alpha, dtype=np.float64), np.asarray(prior, dtype=np.float64))
    constants = [gammaln(a.sum(axis=-1)) - gammaln(a).sum(axis=-1) for a in (alpha, prior)]
    return float(np.sum(constants[0] - constants[1]) + np.sum((alpha - prior) * expected_log(alpha)))


def mode(counts: np.ndarray, prior: Any, what: str) -> np.ndarray:
    """Return the mode of each row's posterior Dirichlet(prior + counts): counts with pseudo-counts, normalized.

    A prior of 1 gives the maximum of the likelihood; ``what`` names the row in the message where a pseudo-count takes
    an entry below 0, where the density is unbounded, or a row has no counts at all.
    """
    above = counts + (np.asarray(prior, dtype=np.float64) - 1)
    total = above.sum(axis=-1, keepdims=True)
    if np.any(above < 0) or not np.all(total > 0):
        raise NumericalError(f"{what} has too few expected counts for a mode")
    return np.asarray(above / total)
