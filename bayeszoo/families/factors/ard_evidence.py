"""The evidence approximation of Bayesian PCA: relevance precisions chosen, not averaged over (type-II likelihood).

alpha is moved to where a bound of log p(Y | alpha) is largest, that of q(z) q(mean, W) q(variance): alpha_k is
gamma_k / |E w_k|^2, with gamma_k = D - alpha_k sum_d Var(W_dk) the effective number of parameters, those loadings of
factor k that the data and not the prior determine (MacKay 1992; Bishop 1999a, section 3; PRML, section 3.5.3). Bishop
takes gamma_k = D. Laplace's approximation is no way to the evidence here: rotations of the loadings are nearly free,
and about the mode as good as not curved.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma

from bayeszoo.families.factors import ard_posterior
from bayeszoo.families.factors.ard_posterior import Factored
from bayeszoo.inference.methods import vb

BROAD = 1e-6
"""Shape of the prior of alpha at which it plays no part any more."""


class Relevances(NamedTuple):
    """What the evidence approximation gives.

    Attributes
    ----------
    alpha : ndarray of shape (q,)
        Relevance precisions, in one over the squared unit of the data.
    effective : ndarray of shape (q,)
        Effective number of parameters gamma_k, between 0 and D.
    switched_on : ndarray of bool, shape (q,)
        Whether the loadings of a factor are larger than their uncertainty.
    log_evidence_bound : float
        Approximate, a lower bound of log p(Y | alpha) in nats, of which no order and no signs of the factors are
        counted but one; by how much it falls short is not known.
    """

    alpha: np.ndarray
    effective: np.ndarray
    switched_on: np.ndarray
    log_evidence_bound: float


def evidence_approximation(model: Any, data: Any, rng: np.random.Generator) -> Relevances:
    """Choose the relevance precisions of Bayesian PCA by the approximate evidence.

    Parameters
    ----------
    model : BayesianPca
        Its a0 and b0 play no part.
    data : mapping of str to ndarray
    rng : numpy.random.Generator
        Of the starts of the climbs.

    Raises
    ------
    NumericalError
        When no climb converged.
    """
    stats = model.statistics(data)
    variances = stats.column_variances()
    scale = float(np.mean(variances[np.isfinite(variances)])) if np.isfinite(variances).any() else 1.0
    broad = replace(model, a0=BROAD, b0=BROAD * scale)
    best = vb.climbs(broad, stats, rng, restarts=4).best
    q = best.state
    alpha = q.expected.relevance
    effective = len(q.mean) - alpha * np.einsum("dkk->k", q.covariance)[1:]
    return Relevances(alpha, effective, q.switched_on, bound_given(broad, q, stats))


def bound_given(model: Any, q: Factored, data: Any) -> float:
    """Return the bound of log p(Y | alpha) at alpha = E[alpha]: that of `vb`, without the part of alpha."""
    prior, (a, b) = model.prior(len(q.mean)), q.relevance
    of_alpha = float(np.sum(ard_posterior.gamma_divergence((a, b), prior.relevance)))
    spread = len(q.mean) / 2 * float(np.sum(digamma(a) - np.log(a))) * np.size(b)  # E[log alpha] - log E[alpha]
    divergence = ard_posterior.divergence(q, prior) - of_alpha + spread
    return float(model.vb_e_step(q, data).value - divergence)
