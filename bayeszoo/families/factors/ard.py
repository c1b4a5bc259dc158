"""Bayesian PCA: its prior, EM, variational Bayes, and quantities that do not depend on the order of the factors.

The factorized posterior is q(coefficients of each column) q(alpha) q(variance). Bishop 1999b has q(W) q(mean); here the
mean and the loadings of a column are one Gaussian, which bounds the evidence at least as tightly. There are D columns
and q factors; the coefficients of column d are (mean_d, W_d1, ..., W_dq).
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.special import gamma_divergence, log_gamma
from bayeszoo.errors import NumericalError
from bayeszoo.families.factors import steps
from bayeszoo.families.factors.base import FactorModel
from bayeszoo.families.factors.steps import Coefficients, Complete
from bayeszoo.families.statistics.patterns import Patterns, as_patterns
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.model.capabilities import Symmetric, Variational
from bayeszoo.model.capabilities.steps import Expectation
from bayeszoo.model.parts.accumulated import Accumulated

MOST_COPIES = 4
"""Most factors for which q(theta) is averaged over their 2^q q! orders and signs."""
ALL_ENTRIES = 6
"""Most columns for which every entry of the covariance is checked; with more, the diagonal and its neighbours."""


@dataclass(frozen=True, eq=False)
class Factored:
    """q of the parameters: coefficients of each column Gaussian, alpha Gamma, variance inverse gamma.

    ``mean`` (D, q + 1) and ``covariance`` (D, q + 1, q + 1) are those of the coefficients; ``relevance`` are the shape
    and the rates (q,) of alpha, ``precision`` the shape and the rate of 1 / variance.
    """

    mean: np.ndarray
    covariance: np.ndarray
    relevance: tuple[float, np.ndarray]
    precision: tuple[float, float]

    @property
    def expected(self) -> Coefficients:
        """The expectations that the E-step needs."""
        (a, b), (c, d) = self.relevance, self.precision
        return Coefficients(self.mean, self.covariance, c / d, float(scipy.special.digamma(c)) - math.log(d), a / b)

    @property
    def squares(self) -> tuple[np.ndarray, np.ndarray]:
        """Sums over columns of the squared mean and of the variance of W_dk, each of shape (q,)."""
        return np.square(self.mean[:, 1:]).sum(axis=0), np.einsum("dkk->k", self.covariance)[1:]


def factored_posterior(q: Factored) -> Posterior:
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
        coefficients = q.mean + (factor @ rng.standard_normal((*size, *q.mean.shape, 1)))[..., 0]
        alpha, variance = rng.gamma(a, 1 / b, (*size, len(b))), d / rng.gamma(c, 1.0, size)
        return {"mean": coefficients[..., 0], "loadings": coefficients[..., 1:], "alpha": alpha, "variance": variance}

    return Posterior(marginals, draw, lambda params: turned_log_density(q, params, [np.eye(len(b))]))


def turned_log_density(q: Factored, params: Mapping[str, np.ndarray], turns: Sequence[np.ndarray]) -> np.ndarray:
    """Log density of q(theta), averaged over copies with the factors' orders and signs changed.

    ``turns`` are signed permutation matrices R (q, q): a copy has the loadings W R, and alpha permuted alike.
    """
    (a, b), (c, d) = q.relevance, q.precision
    x = np.concatenate([np.asarray(params["mean"])[..., None], params["loadings"]], axis=-1)
    x[..., 0] -= q.mean[:, 0]  # the mean is the same in all copies
    alpha, variance = np.asarray(params["alpha"]), np.asarray(params["variance"])
    size, D = len(turns), len(q.mean)
    copies = np.zeros((size, *[q.mean.shape[1]] * 2))
    copies[:, 0, 0], copies[:, 1:, 1:] = 1.0, turns
    precision = np.linalg.inv(q.covariance)
    pull = (precision[:, :, 1:] @ q.mean[:, 1:, None])[..., 0]
    quadratic = copies[:, None].mT @ precision @ copies[:, None]  # (copies, D, q + 1, q + 1)
    linear, rates = np.einsum("gij,di->gdj", copies, pull), np.abs(np.stack(turns)).mT @ b
    features = np.concatenate([_flat(x[..., :, None] * x[..., None, :], 3), _flat(x, 2), alpha], axis=-1)
    weights = np.concatenate([-quadratic.reshape(size, -1) / 2, linear.reshape(size, -1), -rates], axis=1)
    averaged = np.logaddexp.reduce(features @ weights.T, axis=-1) - math.log(size)
    constant = -(np.linalg.slogdet(q.covariance)[1].sum() + x.shape[-1] * D * LOG_2_PI) / 2
    constant -= np.einsum("di,di->", pull[:, 1:], q.mean[:, 1:]) / 2
    constant += a * np.log(b).sum() - len(b) * scipy.special.gammaln(a) + c * math.log(d) - scipy.special.gammaln(c)
    of_alpha = (a - 1) * np.log(alpha).sum(axis=-1)
    return np.asarray(averaged + constant + of_alpha - (c + 1) * np.log(variance) - d / variance)


def _flat(values: np.ndarray, axes: int) -> np.ndarray:
    """Flatten the last ``axes`` axes into one."""
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

    def log_density(self, params: Mapping[str, object]) -> np.ndarray:
        """Log density of mean, loadings, alpha and variance; leading axes are draws."""
        (a, b), (c, d) = self.relevance, self.precision
        mean, loadings, alpha, variance = (np.asarray(params[k]) for k in ("mean", "loadings", "alpha", "variance"))
        of_mean = -np.square((mean - self.centre) / self.width) / 2 - math.log(self.width) - LOG_2_PI / 2
        squares = alpha * np.square(loadings).sum(axis=-2)
        of_loadings = (loadings.shape[-2] * (np.log(alpha) - LOG_2_PI) - squares) / 2 + log_gamma(alpha, a, b)
        of_variance = log_gamma(1 / variance, c, d) - 2 * np.log(variance)
        return np.asarray(of_mean.sum(axis=-1) + of_loadings.sum(axis=-1) + of_variance)

    def divergence(self, q: Factored) -> float:
        """Return KL(q || prior) in nats; that of the loadings given alpha is averaged over q(alpha)."""
        D, size = q.mean.shape
        (a, b), (c, d) = q.relevance, q.precision
        entropy = np.linalg.slogdet(q.covariance)[1].sum() / 2 + D * size * (1 + LOG_2_PI) / 2
        away = np.square(q.mean[:, 0] - self.centre) + q.covariance[:, 0, 0]
        of_mean = D * (LOG_2_PI / 2 + math.log(self.width)) + away.sum() / (2 * self.width**2)
        log_alpha = scipy.special.digamma(a) - np.log(b)
        of_loadings = np.sum(D * (LOG_2_PI - log_alpha) + a / b * sum(q.squares)) / 2
        of_alpha = np.sum(gamma_divergence(a, b, *self.relevance))
        return float(of_mean + of_loadings - entropy + of_alpha + gamma_divergence(c, d, *self.precision))

    def coefficients(self, stats: Complete) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (D, q + 1) and precision (D, q + 1, q + 1) of the columns' coefficients given alpha, variance."""
        prior_precision = np.append(self.width**-2, stats.relevance)
        precision = stats.precision * stats.gram + np.diag(prior_precision)
        right = stats.precision * stats.cross
        right[:, 0] += prior_precision[0] * (self.centre - stats.centre)
        mean = np.linalg.solve(precision, right[..., None])[..., 0]
        mean[:, 0] += stats.centre
        return mean, precision

    def mode(self, stats: Complete) -> dict[str, np.ndarray]:
        """Return the best coefficients given alpha and variance, then the best alpha and variance given these."""
        mean, _ = self.coefficients(stats)
        nothing = np.zeros((*mean.shape, mean.shape[1]))
        (a, b), (c, d) = self.relevance, self.precision
        error, power = self._error(mean, nothing, stats), len(mean) + 2 * a - 2
        turn, lengths = self._turn(mean, nothing, stats, stats.latent[0, 0], power)
        mean = mean @ turn
        variance = (d + error / 2) / (c + 1 + stats.cells.sum() / 2)
        return {"mean": mean[:, 0], "loadings": mean[:, 1:], "alpha": power / (lengths + 2 * b), "variance": variance}

    def updated(self, stats: Complete) -> Factored:
        """Return the best q of the coefficients, then the best q of alpha and of the variance given it."""
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
        """Return the matrix (q + 1, q + 1) that multiplies coefficients from the right, and E[|w_k|^2] after it, (q,).

        The likelihood does not change when the factors get another mean, another rotation or other variances and the
        coefficients are transformed inversely. The best transformation never lowers the objective, and saves thousands
        of steps (parameter expansion: Liu, Rubin and Wu 1998; Qi and Jaakkola 2006). The prior of rotated loadings, at
        the best alpha for each rotation, is largest for orthogonal columns: the sum of log(|w_k|^2 + 2 b) is smallest
        when the |w_k|^2 are eigenvalues (Schur 1923).
        """
        deviation, weight = mean - np.eye(1, mean.shape[1]) * self.centre[:, None], self.width**-2
        second = covariance.sum(axis=0) + deviation.T @ deviation
        total, count = stats.latent[0, 1:], stats.latent[0, 0]
        shift = np.zeros(len(total))
        if count:
            curvature = count * np.eye(len(total)) + weight * second[1:, 1:]
            shift = np.linalg.solve(curvature, total - weight * second[1:, 0])
        moved = np.outer(shift, total)
        factors = stats.latent[1:, 1:] - moved - moved.T + count * np.outer(shift, shift)
        bases = [np.eye(len(total))]
        if count:
            bases.append(np.linalg.cholesky(factors / count))
        b = self.relevance[1]
        candidates = [_rescaled(base, second[1:, 1:], factors, rows, power, b) for base in bases]
        _, loadings, lengths = max(candidates, key=lambda candidate: candidate[0])
        turn = np.eye(mean.shape[1])
        turn[1:, 0], turn[1:, 1:] = shift, loadings
        return turn, lengths


def _rescaled(
    base: np.ndarray, second: np.ndarray, factors: np.ndarray, rows: float, power: float, b: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Transform factors by ``base``, then make the loadings' columns orthogonal and scale them.

    Returns the gain of the objective, the matrix (q, q) of the transformation, and E[|w_k|^2] after it, (q,). ``base``
    is I, or a matrix that makes the factors uncorrelated, which is the best or nearly so; the caller compares gains.
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
    """Return the best variances u (q,) of factors z_k whose loadings are multiplied by u^(1/2).

    With Z the sum of E[z_k^2] and L = E[|w_k|^2], u maximizes -Z / 2u - (rows / 2) log u - (power / 2) log(2 b + L u):
    it is the root of a parabola; without rows it is 1.
    """
    if not squares.any():
        return np.ones(len(lengths))
    lead, linear, constant = (rows + power) * lengths, squares * lengths - 2 * b * rows, 2 * b * squares
    root = np.sqrt(linear**2 + 4 * lead * constant)
    # the root has two equivalent forms; take the one without cancellation
    return np.where(linear > 0, (linear + root) / np.where(lead > 0, 2 * lead, 1.0), 2 * constant / (root - linear))


class ArdModel(FactorModel, Variational, Symmetric, family=True):
    """Rows N(mean, W W' + variance I), with a relevance precision for each column of W.

    Parameters are ``mean`` (D,), ``loadings`` (D, q), ``alpha`` (q,) and ``variance``. The likelihood does not depend
    on rotations of the loadings; the prior does, but it does not depend on the factors' order and signs. The steps
    accept statistics as well as rows. q(theta) is a `Factored`.
    """

    signed = ("loadings",)

    @abstractmethod
    def prior(self, columns: int) -> Prior:
        """Return the prior of the parameters for rows of D numbers; D must exceed the number of factors."""

    def start(self, data: Any, rng: np.random.Generator) -> dict[str, Any]:
        """Return parameters to climb from: random loadings of the scale of the data."""
        stats = as_patterns(data)
        prior, variances = self.prior(stats.size), stats.column_variances()
        seen = np.isfinite(variances)
        scale = float(np.mean(variances[seen])) if seen.any() else prior.precision[1] / prior.precision[0]
        mean = np.where(stats.each_column()[0] > 0, stats.each_column()[1], prior.centre)
        loadings = rng.normal(0.0, np.sqrt(scale), (stats.size, self.q))
        return {"mean": mean, "loadings": loadings, "alpha": np.full(self.q, 1 / scale), "variance": scale}

    def m_step(self, stats: Complete, flat: bool = False) -> dict[str, np.ndarray]:
        """Return parameters with a higher expected log joint density."""
        if flat:
            why = "the likelihood depends neither on alpha nor on rotations of the loadings; use ppca"
            raise NumericalError(f"no maximum-likelihood estimate: {why}", "no_maximum")
        return self.prior(len(stats.centre)).mode(stats)

    def vb_start(self, data: Any, rng: np.random.Generator) -> Factored:
        """Return q(theta) about random parameters."""
        params = self.start(data, rng)
        mean = np.column_stack([params["mean"], params["loadings"]])
        spread = 0.01 * params["variance"] * np.eye(self.q + 1)
        relevance, precision = (1.0, 1 / params["alpha"]), (1.0, params["variance"])
        return Factored(mean, np.tile(spread, (len(mean), 1, 1)), relevance, precision)

    def vb_e_step(self, q: Factored, data: Any) -> Expectation:
        """Return expected statistics under the best q(z), and the sum of its log normalizers."""
        return steps.e_step(q.expected, as_patterns(data))

    def vb_m_step(self, stats: Complete) -> Factored:
        """Return a better q(theta), by updating each of its distributions in turn."""
        return self.prior(len(stats.centre)).updated(stats)

    def divergence(self, q: Factored) -> float:
        """Return KL(q(theta) || prior) in nats."""
        return self.prior(len(q.mean)).divergence(q)

    def vb_posterior(self, q: Factored) -> Posterior:
        """Return q(theta): each column's coefficients Gaussian, alpha Gamma, the variance inverse gamma."""
        return factored_posterior(q)

    def vb_log_density(self, q: Factored, params: Params) -> np.ndarray:
        """Log density of q(theta), averaged over orders and signs of up to 4 factors; leading axes are draws."""
        turns = signed_permutations(self.q) if self.q <= MOST_COPIES else [np.eye(self.q)]
        return turned_log_density(q, params, turns)

    def occupied(self, q: Factored) -> int:
        """Return the number of factors in use, whose loadings exceed their uncertainty."""
        squares, spread = q.squares
        return int(np.sum(squares > spread))

    def live(self, params: Params) -> np.ndarray:
        """Return the number of factors with more variance than the noise of a column, for any rotation, (...,)."""
        squares = np.square(np.linalg.svd(np.asarray(params["loadings"]), compute_uv=False))
        return np.asarray(np.sum(squares > np.asarray(params["variance"])[..., None], axis=-1))

    def exchangeable_axis(self) -> str:
        """Return the exchangeable axis; the signs of the loadings are arbitrary as well."""
        return "factor"

    def invariants(self, params: Params, data: Any) -> dict[str, np.ndarray]:
        """Return quantities that depend neither on the order of the factors nor on their signs; leading axes are draws.

        ``cosines`` are those of the principal angles between the loadings and the q leading eigenvectors of the rows'
        covariance, largest first.
        """
        stats = data.stats if isinstance(data, Accumulated) else as_patterns(data)
        W, variance = np.asarray(params["loadings"]), np.asarray(params["variance"])
        covariance = W @ W.mT + variance[..., None, None] * np.eye(stats.size)
        basis, (rows, columns) = np.linalg.svd(W, full_matrices=False)[0], np.triu_indices(stats.size)
        near = (columns - rows <= 1) | (stats.size <= ALL_ENTRIES)
        return {
            "mean": np.asarray(params["mean"]),
            "covariance": covariance[..., rows[near], columns[near]],
            "variance": variance,
            "sorted_log_alpha": np.sort(np.log(params["alpha"]), axis=-1),
            "log_likelihood": self.log_likelihood(stats, params),
            "cosines": np.linalg.svd(basis.mT @ steps.leading_axes(stats, self.q), compute_uv=False),
        }

    def remarks(self, stats: Patterns, data: Arrays) -> tuple[str, ...]:
        """Say that there is only one row, or that columns are constant."""
        variances = stats.column_variances()
        still = [str(name) for name, variance in zip(data["column"], variances, strict=True) if np.isnan(variance)]
        if stats.rows == 1:
            return ("there is only one row: the variation between rows comes from the prior",)
        return (f"column {', '.join(still)} does not vary",) if still and stats.rows else ()
