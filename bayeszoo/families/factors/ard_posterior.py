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
from bayeszoo.families.factors.steps import LOG_2_PI, Coefficients, Complete


@dataclass(frozen=True, eq=False)
class Factored:
    """q of the parameters: coefficients of each column Gaussian, alpha Gamma, variance inverse gamma.

    Means (D, q + 1) and covariances (D, q + 1, q + 1) of the coefficients; shape and rates (q,) of alpha; shape and
    rate of 1 / variance.
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

    ``turns`` are signed permutation matrices R (q, q): the copy has the loadings W R and the alpha of W's columns.
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
    constant = -(np.linalg.slogdet(q.covariance)[1].sum() + x.shape[-1] * D * LOG_2_PI) / 2
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


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior of D columns: mean_d ~ N(centre_d, width^2); alpha_k and 1 / variance ~ Gamma(shape, rate)."""

    centre: np.ndarray
    width: float
    relevance: tuple[float, float]
    precision: tuple[float, float]

    def log_density(self, params: Mapping[str, Any]) -> np.ndarray:
        """Log density of mean, loadings, alpha and variance; leading axes are draws."""
        (a, b), (c, d) = self.relevance, self.precision
        mean, loadings, alpha, variance = (np.asarray(params[k]) for k in ("mean", "loadings", "alpha", "variance"))
        of_mean = -np.square((mean - self.centre) / self.width) / 2 - math.log(self.width) - LOG_2_PI / 2
        log_alpha = np.log(alpha)
        of_loadings = (loadings.shape[-2] * (log_alpha - LOG_2_PI) - alpha * np.square(loadings).sum(axis=-2)) / 2
        of_alpha = a * math.log(b) - gammaln(a) + (a - 1) * log_alpha - b * alpha
        of_variance = c * math.log(d) - gammaln(c) - (c + 1) * np.log(variance) - d / variance
        return np.asarray(of_mean.sum(axis=-1) + (of_loadings + of_alpha).sum(axis=-1) + of_variance)

    def divergence(self, q: Factored) -> float:
        """Return KL(q || prior) in nats: of the loadings given alpha, in expectation, and of all others."""
        D, size = q.mean.shape
        (a, b), (c, d) = q.relevance, q.precision
        entropy = np.linalg.slogdet(q.covariance)[1].sum() / 2 + D * size * (1 + LOG_2_PI) / 2
        away = np.square(q.mean[:, 0] - self.centre) + q.covariance[:, 0, 0]
        of_mean = D * (LOG_2_PI / 2 + math.log(self.width)) + away.sum() / (2 * self.width**2)
        log_alpha = digamma(a) - np.log(b)
        of_loadings = np.sum(D * (LOG_2_PI - log_alpha) + a / b * q.loading_squares) / 2
        of_alpha = np.sum(gamma_divergence((a, b), self.relevance))
        return float(of_mean + of_loadings - entropy + of_alpha + gamma_divergence((c, d), self.precision))

    def coefficients(self, stats: Complete) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (D, q + 1) and precision (D, q + 1, q + 1) of each column's coefficients given the rest."""
        own = np.append(self.width**-2, stats.relevance)
        precision = stats.precision * stats.gram + np.diag(own)
        right = stats.precision * stats.cross
        right[:, 0] += own[0] * (self.centre - stats.centre)
        mean = np.linalg.solve(precision, right[..., None])[..., 0]
        mean[:, 0] += stats.centre
        return mean, precision

    def mode(self, stats: Complete) -> dict[str, Any]:
        """Return coefficients given alpha and variance, and these given the coefficients, each where it is best."""
        mean, _ = self.coefficients(stats)
        nothing = np.zeros((*mean.shape, mean.shape[1]))
        (a, b), (c, d) = self.relevance, self.precision
        error, power = self._error(mean, nothing, stats), len(mean) + 2 * a - 2
        turn, lengths = self._turn(mean, nothing, stats, stats.latent[0, 0], power)
        mean = mean @ turn
        variance = (d + error / 2) / (c + 1 + stats.cells.sum() / 2)
        return {"mean": mean[:, 0], "loadings": mean[:, 1:], "alpha": power / (lengths + 2 * b), "variance": variance}

    def updated(self, stats: Complete) -> Factored:
        """Return the best q of the coefficients, then those of alpha and of the variance given it."""
        mean, precision = self.coefficients(stats)
        covariance = np.linalg.inv(precision)
        (a, b), (c, d) = self.relevance, self.precision
        error, D = self._error(mean, covariance, stats), len(mean)
        # scaled loadings have more entropy as well
        turn, lengths = self._turn(mean, covariance, stats, stats.latent[0, 0] - D, D + 2 * a)
        of_alpha = (a + D / 2, b + lengths / 2)
        return Factored(mean @ turn, turn.T @ covariance @ turn, of_alpha, (c + stats.cells.sum() / 2, d + error / 2))

    def _error(self, mean: np.ndarray, covariance: np.ndarray, stats: Complete) -> float:
        return stats.squared_error(mean - np.eye(1, mean.shape[1]) * stats.centre[:, None], covariance)

    def _turn(
        self, mean: np.ndarray, covariance: np.ndarray, stats: Complete, rows: float, power: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what coefficients are multiplied by from the right for other factors, and the E[|w_k|^2] then.

        The likelihood is the same with factors that have another mean, are rotated or have other variances, if the
        coefficients make up for it. Each is taken where it is best, and no step loses by it, but thousands are saved
        (parameter expansion: Liu, Rubin and Wu 1998; Qi and Jaakkola 2006). The prior of rotated loadings, at the best
        alpha for each, is largest where the columns are orthogonal: the sum of log(|w_k|^2 + 2 b) is least where these
        are eigenvalues (Schur 1923).
        """
        own, weight = mean - np.eye(1, mean.shape[1]) * self.centre[:, None], self.width**-2
        second = covariance.sum(axis=0) + own.T @ own
        total, count = stats.latent[0, 1:], stats.latent[0, 0]
        shift = np.zeros(len(total))
        if count:
            shift = np.linalg.solve(
                count * np.eye(len(total)) + weight * second[1:, 1:], total - weight * second[1:, 0]
            )
        moved = np.outer(shift, total)
        factors = stats.latent[1:, 1:] - moved - moved.T + count * np.outer(shift, shift)
        bases = [np.eye(len(total))]
        if count:
            bases.append(np.linalg.cholesky(factors / count))
        b = self.relevance[1]
        found = [_rescaled(base, second[1:, 1:], factors, rows, power, b) for base in bases]
        _, loadings, lengths = max(found, key=lambda one: one[0])
        turn = np.eye(mean.shape[1])
        turn[1:, 0], turn[1:, 1:] = shift, loadings
        return turn, lengths


def _rescaled(
    base: np.ndarray, second: np.ndarray, factors: np.ndarray, rows: float, power: float, b: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Change factors by ``base``, rotate the loadings to orthogonal columns, and scale each: gain, matrix, E[|w_k|^2].

    ``base`` is I, or what makes factors uncorrelated, which is best or nearly so; the gain says which.
    """
    lengths, axes = np.linalg.eigh(base.T @ second @ base)
    lengths = np.maximum(lengths[::-1], 0.0)
    turn = base @ axes[:, ::-1]
    back = np.linalg.solve(turn, np.linalg.solve(turn, factors).T)
    squares = np.diag(back)
    u = _stretches(lengths, squares, rows, power, b)
    gain = -np.sum(squares / u + rows * np.log(u) + power * np.log(2 * b + lengths * u)) / 2
    return gain - rows * np.linalg.slogdet(base)[1], turn * np.sqrt(u), lengths * u


def _stretches(lengths: np.ndarray, squares: np.ndarray, rows: float, power: float, b: float) -> np.ndarray:
    """Return the best variances u of factors z_k whose loadings are multiplied by u^(1/2).

    With Z the sum of E[z_k^2] and L = E[|w_k|^2] they maximize -Z / 2u - (rows / 2) log u - (power / 2) log(2 b + L u),
    and are roots of parabolas; without rows they are 1.
    """
    if not squares.any():
        return np.ones(len(lengths))
    lead, linear, constant = (rows + power) * lengths, squares * lengths - 2 * b * rows, 2 * b * squares
    root = np.sqrt(linear**2 + 4 * lead * constant)
    # of the two forms of the root the one in which nothing cancels
    return np.where(linear > 0, (linear + root) / np.where(lead > 0, 2 * lead, 1.0), 2 * constant / (root - linear))
