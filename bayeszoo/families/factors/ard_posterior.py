"""The factorized posterior of Bayesian PCA: q(coefficients of each column) q(alpha) q(variance).

Bishop 1999b has q(W) q(mean); here the mean and the loadings of a column are one Gaussian, which bounds the evidence at
least as well. The coefficients of column d are (mean_d, W_d1, ..., W_dq), of D columns and q factors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln

from bayeszoo.distributions import frozen
from bayeszoo.distributions.posterior import Posterior

_LOG_2_PI = math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Coefficients:
    """What the E-step needs of the parameters: known, or their distribution.

    Attributes
    ----------
    mean : ndarray of shape (D, q + 1)
        E of each column's mean and loadings.
    covariance : ndarray of shape (D, q + 1, q + 1)
        Of these; 0 where they are known.
    precision, log_precision : float
        E[1 / variance], and E of its log.
    relevance : ndarray of shape (q,)
        E[alpha].
    """

    mean: np.ndarray
    covariance: np.ndarray
    precision: float
    log_precision: float
    relevance: np.ndarray

    @classmethod
    def known(cls, params: Mapping[str, Any]) -> Coefficients:
        """Return those of given parameters."""
        mean = np.column_stack([params["mean"], params["loadings"]])
        precision = 1 / float(params["variance"])
        nothing = np.zeros((*mean.shape, mean.shape[1]))
        return cls(mean, nothing, precision, math.log(precision), np.asarray(params["alpha"]))

    @property
    def moments(self) -> np.ndarray:
        """Second moments about the mean of the first coefficient and about 0 of the others, (D, q + 1, q + 1)."""
        loadings = np.column_stack([np.zeros(len(self.mean)), self.mean[:, 1:]])
        return self.covariance + loadings[:, :, None] * loadings[:, None, :]


@dataclass(frozen=True, eq=False)
class Factored:
    """q of the parameters: coefficients of each column Gaussian, alpha Gamma, variance inverse gamma.

    Attributes
    ----------
    mean : ndarray of shape (D, q + 1)
    covariance : ndarray of shape (D, q + 1, q + 1)
    relevance : tuple of a float and an ndarray of shape (q,)
        Shape and rates of alpha.
    precision : tuple of two floats
        Shape and rate of 1 / variance.
    """

    mean: np.ndarray
    covariance: np.ndarray
    relevance: tuple[float, np.ndarray]
    precision: tuple[float, float]

    @property
    def expected(self) -> Coefficients:
        """What the E-step needs of it."""
        (a, b), (c, d) = self.relevance, self.precision
        return Coefficients(self.mean, self.covariance, c / d, float(digamma(c)) - math.log(d), a / b)

    @property
    def loading_squares(self) -> np.ndarray:
        """E[sum over columns of W_dk^2], shape (q,)."""
        return np.square(self.mean[:, 1:]).sum(axis=0) + self._spread

    @property
    def _spread(self) -> np.ndarray:
        """Sum over columns of the variance of W_dk, shape (q,)."""
        return np.asarray(np.einsum("dkk->k", self.covariance)[1:])

    @property
    def switched_on(self) -> np.ndarray:
        """Which factors have loadings that are larger than their own uncertainty, shape (q,)."""
        return np.square(self.mean[:, 1:]).sum(axis=0) > self._spread


def gamma_divergence(one: tuple[Any, Any], other: tuple[float, float]) -> Any:
    """Return KL(Gamma(one) || Gamma(other)) in nats; each is shape and rate."""
    (a, b), (a0, b0) = one, other
    of_shapes = (a - a0) * digamma(a) - gammaln(a) + gammaln(a0)
    return of_shapes + a0 * (np.log(b) - math.log(b0)) + a * (b0 - b) / b


def posterior(q: Factored) -> Posterior:
    """Return q(theta) as a distribution of ``mean``, ``loadings``, ``alpha`` and ``variance``."""
    (a, b), (c, d) = q.relevance, q.precision
    sd = np.sqrt(np.diagonal(q.covariance, axis1=1, axis2=2))
    factor = np.linalg.cholesky(q.covariance)
    marginals = {
        "mean": frozen.norm(q.mean[:, 0], sd[:, 0]),
        "loadings": frozen.norm(q.mean[:, 1:], sd[:, 1:]),
        "alpha": frozen.gamma(a, scale=1 / b),
        "variance": frozen.invgamma(c, scale=d),
    }

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        both = q.mean + (factor @ rng.standard_normal((*size, *q.mean.shape, 1)))[..., 0]
        alpha, variance = rng.gamma(a, 1 / b, (*size, len(b))), d / rng.gamma(c, 1.0, size)
        return {"mean": both[..., 0], "loadings": both[..., 1:], "alpha": alpha, "variance": variance}

    return Posterior(marginals, draw, lambda params: float(log_density(q, params, [np.eye(len(b))])))


def log_density(q: Factored, params: Mapping[str, Any], turns: Sequence[np.ndarray]) -> np.ndarray:
    """Log density of q(theta), averaged over copies of it with factors in other orders and with other signs.

    Parameters
    ----------
    q : Factored
    params : mapping of str to ndarray
        Leading axes are draws.
    turns : sequence of ndarray of shape (q, q)
        Signed permutation matrices R: the copy has the loadings W R and the alpha of W's columns.
    """
    (a, b), (c, d) = q.relevance, q.precision
    x = np.concatenate([np.asarray(params["mean"])[..., None], params["loadings"]], axis=-1)
    x[..., 0] -= q.mean[:, 0]  # no copy has another mean
    alpha, variance = np.asarray(params["alpha"]), np.asarray(params["variance"])
    size, D = len(turns), len(q.mean)
    copies = np.zeros((size, *[q.mean.shape[1]] * 2))
    copies[:, 0, 0], copies[:, 1:, 1:] = 1.0, turns
    precision = np.linalg.inv(q.covariance)
    pull = (precision[:, :, 1:] @ q.mean[:, 1:, None])[..., 0]
    quadratic = copies[:, None].mT @ precision @ copies[:, None]  # of each copy and column
    linear, rates = np.einsum("gij,di->gdj", copies, pull), np.abs(np.stack(turns)).mT @ b
    features = np.concatenate([_flat(x[..., :, None] * x[..., None, :], 3), _flat(x, 2), alpha], axis=-1)
    weights = np.concatenate([-quadratic.reshape(size, -1) / 2, linear.reshape(size, -1), -rates], axis=1)
    own = np.logaddexp.reduce(features @ weights.T, axis=-1) - math.log(size)
    constant = -(np.linalg.slogdet(q.covariance)[1].sum() + x.shape[-1] * D * _LOG_2_PI) / 2
    constant -= np.einsum("di,di->", pull[:, 1:], q.mean[:, 1:]) / 2
    constant += a * np.log(b).sum() - len(b) * gammaln(a) + c * math.log(d) - gammaln(c)
    return np.asarray(own + constant + (a - 1) * np.log(alpha).sum(axis=-1) - (c + 1) * np.log(variance) - d / variance)


def _flat(values: np.ndarray, axes: int) -> np.ndarray:
    """Make the last axes one."""
    return values.reshape(*values.shape[:-axes], -1)


def signed_permutations(size: int) -> list[np.ndarray]:
    """Return the 2^q q! matrices that permute q factors and change their signs."""
    orders, signs = itertools.permutations(range(size)), list(itertools.product((1.0, -1.0), repeat=size))
    return [np.eye(size)[:, order] * sign for order in orders for sign in map(np.array, signs)]
