"""Bayesian PCA: its prior, EM, variational Bayes, and quantities that no rotation changes.

The factorized posterior is q(coefficients of each column) q(alpha) q(variance). Bishop 1999b has q(W) q(mean); here the
mean and the loadings of a column are one Gaussian, which bounds the evidence at least as well. The coefficients of
column d are (mean_d, W_d1, ..., W_dq), of D columns and q factors.
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
from bayeszoo.families.factors.steps import LOG_2_PI, Coefficients, Complete
from bayeszoo.families.statistics.patterns import Patterns, as_patterns
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.accumulated import Accumulated
from bayeszoo.model.capabilities import Symmetric, Variational
from bayeszoo.model.steps import Expectation

MOST_COPIES = 4
"""Factors up to which q(theta) is averaged over their 2^q q! orders and signs."""
ALL_ENTRIES = 6
"""Columns up to which every entry of the covariance is checked; of more, the diagonal and its neighbours."""


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
        both = q.mean + (factor @ rng.standard_normal((*size, *q.mean.shape, 1)))[..., 0]
        alpha, variance = rng.gamma(a, 1 / b, (*size, len(b))), d / rng.gamma(c, 1.0, size)
        return {"mean": both[..., 0], "loadings": both[..., 1:], "alpha": alpha, "variance": variance}

    return Posterior(marginals, draw, lambda params: turned_log_density(q, params, [np.eye(len(b))]))


def turned_log_density(q: Factored, params: Mapping[str, np.ndarray], turns: Sequence[np.ndarray]) -> np.ndarray:
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
    constant += a * np.log(b).sum() - len(b) * scipy.special.gammaln(a) + c * math.log(d) - scipy.special.gammaln(c)
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
        """Return KL(q || prior) in nats: of the loadings given alpha, in expectation, and of all others."""
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
        """Return mean (D, q + 1) and precision (D, q + 1, q + 1) of each column's coefficients given the rest."""
        own = np.append(self.width**-2, stats.relevance)
        precision = stats.precision * stats.gram + np.diag(own)
        right = stats.precision * stats.cross
        right[:, 0] += own[0] * (self.centre - stats.centre)
        mean = np.linalg.solve(precision, right[..., None])[..., 0]
        mean[:, 0] += stats.centre
        return mean, precision

    def mode(self, stats: Complete) -> dict[str, np.ndarray]:
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


class ArdModel(FactorModel, Variational, Symmetric, family=True):
    """Rows N(mean, W W' + variance I), each column of W with a relevance precision of its own.

    Parameters are ``mean`` (D,), ``loadings`` (D, q), ``alpha`` (q,) and ``variance``. The likelihood does not see
    rotations of the loadings; the prior does, but not the order of the factors, nor their signs. The steps take
    statistics as well as rows. q(theta) is a `Factored`.
    """

    signed = ("loadings",)

    @abstractmethod
    def prior(self, columns: int) -> Prior:
        """Return the prior of the parameters for rows of D numbers, which must be more than the factors."""

    def start(self, data: Any, rng: np.random.Generator) -> dict[str, Any]:
        """Return parameters to climb from: loadings at random, as long as the data are wide."""
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
        """Return q(theta) about parameters at random."""
        at = self.start(data, rng)
        mean = np.column_stack([at["mean"], at["loadings"]])
        spread = 0.01 * at["variance"] * np.eye(self.q + 1)
        return Factored(mean, np.tile(spread, (len(mean), 1, 1)), (1.0, 1 / at["alpha"]), (1.0, at["variance"]))

    def vb_e_step(self, q: Factored, data: Any) -> Expectation:
        """Return expected statistics under the best q(z), and the sum of its log normalizers."""
        return steps.e_step(q.expected, as_patterns(data))

    def vb_m_step(self, stats: Complete) -> Factored:
        """Return a better q(theta): each of its factors in turn."""
        return self.prior(len(stats.centre)).updated(stats)

    def divergence(self, q: Factored) -> float:
        """Return KL(q(theta) || prior) in nats."""
        return self.prior(len(q.mean)).divergence(q)

    def vb_posterior(self, q: Factored) -> Posterior:
        """Return q(theta): each column's coefficients Gaussian, alpha Gamma, the variance inverse gamma."""
        return factored_posterior(q)

    def vb_log_density(self, q: Factored, params: Params) -> np.ndarray:
        """Log density of q(theta), of up to 4 factors averaged over their orders and signs; leading axes are draws."""
        turns = signed_permutations(self.q) if self.q <= MOST_COPIES else [np.eye(self.q)]
        return turned_log_density(q, params, turns)

    def occupied(self, q: Factored) -> int:
        """Return how many factors are switched on: their loadings are larger than the uncertainty of these."""
        squares, spread = q.squares
        return int(np.sum(squares > spread))

    def live(self, params: Params) -> np.ndarray:
        """Return how many factors have more variance than the noise of a column, whatever their rotation."""
        squares = np.square(np.linalg.svd(np.asarray(params["loadings"]), compute_uv=False))
        return np.asarray(np.sum(squares > np.asarray(params["variance"])[..., None], axis=-1))

    def exchangeable_axis(self) -> str:
        """Return the axis whose labels mean nothing; the signs of the loadings mean nothing either."""
        return "factor"

    def invariants(self, params: Params, data: Any) -> dict[str, np.ndarray]:
        """Return quantities that depend neither on the order of the factors nor on their signs; leading axes are draws.

        The cosines are of the principal angles between the loadings and the q leading eigenvectors of the rows'
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
        """Say so where there is one row, or a column is constant."""
        variances = stats.column_variances()
        still = [str(name) for name, variance in zip(data["column"], variances, strict=True) if np.isnan(variance)]
        if stats.rows == 1:
            return ("there is one row only: the prior says how rows vary",)
        return (f"column {', '.join(still)} does not vary",) if still and stats.rows else ()
