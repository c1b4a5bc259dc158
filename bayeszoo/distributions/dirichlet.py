"""The Dirichlet distribution: evidence, marginals, draws, density and mode, for priors weak and strong.

The functions at the end are for rows of probabilities: what the steps of EM and variational Bayes need.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.discrete import sum_of_others
from bayeszoo.distributions.posterior import Posterior, sum_over
from bayeszoo.distributions.special import deviance, log_beta_ratio, log_binomial, log_peak
from bayeszoo.errors import NumericalError


def log_dirichlet_ratio(alpha: Any, counts: Any) -> np.ndarray:
    """Log of B(alpha + counts) / B(alpha), (..., K): the evidence of a Dirichlet prior and ordered categorical data.

    "The first category or a later one; if later, the second or a later one; ...": the ratio is a product of Beta
    ratios, each at most 1, so that their logarithms do not cancel.
    """
    alpha, counts = np.broadcast_arrays(np.asarray(alpha, dtype=np.float64), np.asarray(counts, dtype=np.float64))
    later = (np.cumsum(values[..., :0:-1], axis=-1)[..., ::-1] for values in (alpha, counts))
    return np.sum(log_beta_ratio(alpha[..., :-1], next(later), counts[..., :-1], next(later)), axis=-1)


def log_multinomial(counts: Any) -> np.ndarray:
    """Log multinomial coefficient of the last axis of ``counts``: the number of orders that give the same counts."""
    counts = np.asarray(counts, dtype=np.float64)
    # the categories one after the other, so that no term is larger than the sum
    return np.sum(log_binomial(np.cumsum(counts, axis=-1), counts), axis=-1)


def draw_dirichlet(alpha: np.ndarray, size: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draw Dirichlet vectors along the last axis, an array of shape ``(*size, *alpha.shape)``.

    A Gamma(a) variable is a Gamma(a + 1) variable times U ** (1 / a); in logarithms that never underflows. The
    largest power is divided out before dividing by ``a``, for a power of 1e-310 is infinite.
    """
    shape = ((size,) if isinstance(size, int) else tuple(size)) + alpha.shape
    log_gamma = np.log(rng.standard_gamma(alpha + 1, size=shape))
    smallest = alpha.min(axis=-1, keepdims=True)
    powers = rng.standard_exponential(size=shape) * (smallest / alpha)
    with np.errstate(over="ignore"):
        log_gamma -= (powers - powers.min(axis=-1, keepdims=True)) / smallest
    return scipy.special.softmax(log_gamma, axis=-1)


class Dirichlet:
    """Probabilities of K categories, or independent rows of them: ``alpha`` > 0 has shape (K,) or (..., K).

    The Beta distributions of the entries, ``marginals``, are of its shape.
    """

    def __init__(self, alpha: Any) -> None:
        self.alpha = np.asarray(alpha, dtype=np.float64)
        self.marginals = frozen.beta(self.alpha, sum_of_others(self.alpha))

    def posterior(self, name: str) -> Posterior:
        """Return the distribution of a parameter called ``name``."""
        return Posterior(
            {name: self.marginals},
            lambda size, rng: {name: self.rvs(size, rng)},
            lambda params: self.logpdf(params[name]),
            {name: self._covariance},
        )

    def _covariance(self) -> np.ndarray:
        """Return the covariance matrix of all entries; rows are independent: (diag(m) - m m') / (sum alpha + 1)."""
        rows = self.alpha.reshape(-1, self.alpha.shape[-1])
        means = rows / rows.sum(axis=1, keepdims=True)
        each = ((np.diag(m) - np.outer(m, m)) / (1 + alpha.sum()) for m, alpha in zip(means, rows, strict=True))
        return scipy.linalg.block_diag(*each)

    def rvs(self, size: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw an array of shape ``(*size, *alpha.shape)``."""
        return draw_dirichlet(self.alpha, size, rng)

    def logpdf(self, p: Any) -> np.ndarray:
        """Log density at ``p`` (..., *alpha.shape): all rows together, with every constant.

        By Stirling's series around p = alpha / sum(alpha): the terms of the textbook's formula are as large as alpha,
        and would cancel. NaN where the density has no limit: one entry 0 with alpha < 1, another with alpha > 1.
        """
        p, axes = np.asarray(p, dtype=np.float64), self.alpha.ndim
        total = self.alpha.sum(axis=-1, keepdims=True)
        inner = ~(p <= 0)
        safe, edge = np.where(inner, p, 1.0), np.minimum(p, 0.0)
        smooth = np.log(self.alpha / safe) - deviance(self.alpha, total * safe)
        with np.errstate(invalid="ignore"):
            limit = scipy.special.xlogy(self.alpha - 1, edge) + np.log(self.alpha) + self.alpha
            limit = limit - self.alpha * np.log(self.alpha / total)
            each = sum_over(log_peak(self.alpha) + np.where(inner, smooth, limit), axes)
        whole = each - np.sum(log_peak(total) + np.log(total))
        return np.where(sum_over(p < 0, axes) > 0, -np.inf, whole)[()]

    def mode(self) -> np.ndarray:
        """Return the mode, (alpha - 1) / sum(alpha - 1), of the shape of ``alpha``; on the edge where an alpha is 1."""
        above = self.alpha - 1
        self._refuse(np.any(above < 0, axis=-1), "is unbounded, some alpha < 1")
        self._refuse(np.all(above == 0, axis=-1), "is flat, every alpha = 1")
        return above / above.sum(axis=-1, keepdims=True)

    def _refuse(self, bad: np.ndarray, why: str) -> None:
        if np.any(bad):
            where = "".join(f" of row {index}" for index in np.flatnonzero(bad)[:1]) if bad.ndim else ""
            raise NumericalError(f"no mode: the Dirichlet density{where} {why}")


def log_density(p: Any, alpha: Any) -> np.ndarray:
    """Log Dirichlet density of each row of ``p`` (..., K), every constant kept: shape (...).

    On the edge: -inf where an entry is 0 whose alpha is above 1, inf where it is below.
    """
    p, alpha = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(alpha, dtype=np.float64))
    constant = scipy.special.gammaln(alpha.sum(axis=-1)) - scipy.special.gammaln(alpha).sum(axis=-1)
    return constant + np.sum(scipy.special.xlogy(alpha - 1, p), axis=-1)


def expected_log(alpha: np.ndarray) -> np.ndarray:
    """Return E[log p] under p ~ Dirichlet(alpha) along the last axis (Bishop, PRML, B.21)."""
    return np.asarray(scipy.special.digamma(alpha) - scipy.special.digamma(alpha.sum(axis=-1, keepdims=True)))


def divergence(alpha: Any, prior: Any) -> float:
    """Return KL(Dirichlet(alpha) || Dirichlet(prior)), summed over rows."""
    alpha, prior = np.broadcast_arrays(np.asarray(alpha, dtype=np.float64), np.asarray(prior, dtype=np.float64))
    constants = [scipy.special.gammaln(a.sum(axis=-1)) - scipy.special.gammaln(a).sum(axis=-1) for a in (alpha, prior)]
    return float(np.sum(constants[0] - constants[1]) + np.sum((alpha - prior) * expected_log(alpha)))


def mode(counts: np.ndarray, prior: Any, label: str) -> np.ndarray:
    """Return the mode of each row's posterior Dirichlet(prior + counts): counts with pseudo-counts, normalized.

    A prior of 1 gives the maximum of the likelihood; ``label`` names the row in the message where a pseudo-count takes
    an entry below 0, where the density is unbounded, or a row has no counts at all.
    """
    above = counts + (np.asarray(prior, dtype=np.float64) - 1)
    total = above.sum(axis=-1, keepdims=True)
    if np.any(above < 0) or not np.all(total > 0):
        raise NumericalError(f"{label} has too few expected counts for a mode")
    return np.asarray(above / total)
