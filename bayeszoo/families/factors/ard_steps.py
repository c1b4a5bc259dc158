"""Bayesian PCA with automatic relevance determination: the steps of EM and variational Bayes.

Given the factors each column is a regression on them, with an intercept; given the columns' coefficients the factors
of a row are Gaussian, and alike but for the mean in all rows that lack the same entries. So both steps go by the count,
mean and scatter of each pattern of missing entries, and cost the same however many rows there are. Missing entries are
integrated out, not imputed. Bishop 1999a, b; PRML, section 12.2.3; Ilin and Raiko 2010 on missing entries.

Throughout D columns, q factors, and the coefficients of column d are its mean and its loadings, (mean_d, W_d1..W_dq).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln

from bayeszoo.families.factors.ard_posterior import Coefficients, Factored, gamma_divergence
from bayeszoo.families.statistics.patterns import Patterns
from bayeszoo.model.capabilities import Expectation

_LOG_2_PI = math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Complete:
    """Expected statistics of the data with their factors, and where the E-step was.

    Attributes
    ----------
    cells : ndarray of shape (D,)
        Entries observed in each column.
    gram : ndarray of shape (D, q + 1, q + 1)
        Sum over these of E[x x'], with x = (1, z_1, ..., z_q) of the entry's row.
    cross : ndarray of shape (D, q + 1)
        Sum of E[x] (y - centre).
    squares : ndarray of shape (D,)
        Sum of (y - centre)^2.
    centre : ndarray of shape (D,)
        The mean at which the E-step was, so that sums of large numbers do not cancel.
    precision : float
        E[1 / variance] there.
    relevance : ndarray of shape (q,)
        E[alpha] there.
    latent : ndarray of shape (q + 1, q + 1)
        Sum over all rows of E[x x'].
    """

    cells: np.ndarray
    gram: np.ndarray
    cross: np.ndarray
    squares: np.ndarray
    centre: np.ndarray
    precision: float
    relevance: np.ndarray
    latent: np.ndarray


def e_step(at: Coefficients, patterns: Patterns) -> Expectation:
    """Return expected statistics under the best q(z), and the sum of its log normalizers.

    Parameters
    ----------
    at : Coefficients
        Of known parameters the value is their log likelihood.
    patterns : Patterns
        Count, mean and scatter of the rows of each pattern of missing entries.
    """
    moments, centre, tau = at.moments, at.mean[:, 0], at.precision
    seen = np.asarray(patterns.observed, dtype=np.float64)  # (P, D)
    n, scatter = np.asarray(patterns.n, dtype=np.float64), patterns.scatter
    offset = np.where(seen > 0, patterns.mean - centre, 0.0)
    q = at.mean.shape[1] - 1
    inner = np.eye(q) + tau * np.einsum("pd,dij->pij", seen, moments[:, 1:, 1:])
    covariance = np.linalg.inv(inner)  # of the factors of a row, (P, q, q)
    slopes = tau * covariance @ (seen[:, :, None] * at.mean[:, 1:]).swapaxes(1, 2)  # their mean on y, (P, q, D)
    pull = np.einsum("pd,di->pi", seen, moments[:, 0, 1:])
    z = np.einsum("pid,pd->pi", slopes, offset) - tau * np.einsum("pij,pj->pi", covariance, pull)
    spread = slopes @ scatter  # (P, q, D)
    zz = spread @ slopes.swapaxes(1, 2) + n[:, None, None] * z[:, :, None] * z[:, None, :]
    squares = np.diagonal(scatter, axis1=1, axis2=2) + n[:, None] * offset**2
    stats = _summed(seen, n, z, zz + n[:, None, None] * covariance, spread, offset, squares, at)
    cells = stats.cells.sum()
    value = cells * (at.log_precision - _LOG_2_PI) - tau * (stats.squares.sum() + stats.cells @ moments[:, 0, 0])
    value += np.sum(zz * inner) - n @ np.linalg.slogdet(inner)[1]
    return Expectation(stats, float(value) / 2)


def _summed(
    seen: np.ndarray,
    n: np.ndarray,
    z: np.ndarray,
    zz: np.ndarray,
    spread: np.ndarray,
    offset: np.ndarray,
    squares: np.ndarray,
    at: Coefficients,
) -> Complete:
    """Sum over the patterns in which each column is observed."""
    D, q = seen.shape[1], z.shape[1]
    cells = n @ seen
    gram, cross = np.zeros((D, q + 1, q + 1)), np.zeros((D, q + 1))
    gram[:, 0, 0] = cells
    gram[:, 0, 1:] = gram[:, 1:, 0] = np.einsum("p,pd,pi->di", n, seen, z)
    gram[:, 1:, 1:] = np.einsum("pd,pij->dij", seen, zz)
    cross[:, 0] = n @ offset
    cross[:, 1:] = np.einsum("pd,pid->di", seen, spread) + np.einsum("p,pd,pi->di", n, offset, z)
    latent = np.empty((q + 1, q + 1))
    latent[0, 0], latent[1:, 1:] = n.sum(), zz.sum(axis=0)
    latent[0, 1:] = latent[1:, 0] = n @ z
    own = np.einsum("pd,pd->d", seen, squares)
    return Complete(cells, gram, cross, own, at.mean[:, 0], at.precision, at.relevance, latent)


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior of data with D columns.

    Attributes
    ----------
    centre : ndarray of shape (D,)
        Of the mean.
    width : float
        Its standard deviation.
    relevance : tuple of two floats
        Shape and rate of each alpha_k.
    precision : tuple of two floats
        Shape and rate of 1 / variance.
    """

    centre: np.ndarray
    width: float
    relevance: tuple[float, float]
    precision: tuple[float, float]

    def log_density(self, params: Mapping[str, Any]) -> np.ndarray:
        """Log density of mean, loadings, alpha and variance; leading axes are draws."""
        (a, b), (c, d) = self.relevance, self.precision
        mean, loadings, alpha, variance = (np.asarray(params[k]) for k in ("mean", "loadings", "alpha", "variance"))
        of_mean = -np.square((mean - self.centre) / self.width) / 2 - math.log(self.width) - _LOG_2_PI / 2
        log_alpha = np.log(alpha)
        of_loadings = (loadings.shape[-2] * (log_alpha - _LOG_2_PI) - alpha * np.square(loadings).sum(axis=-2)) / 2
        of_alpha = a * math.log(b) - gammaln(a) + (a - 1) * log_alpha - b * alpha
        of_variance = c * math.log(d) - gammaln(c) - (c + 1) * np.log(variance) - d / variance
        return np.asarray(of_mean.sum(axis=-1) + (of_loadings + of_alpha).sum(axis=-1) + of_variance)

    def divergence(self, q: Factored) -> float:
        """Return KL(q || prior) in nats: of the loadings given alpha, in expectation, and of all others."""
        D, size = q.mean.shape
        (a, b), (c, d) = q.relevance, q.precision
        entropy = np.linalg.slogdet(q.covariance)[1].sum() / 2 + D * size * (1 + _LOG_2_PI) / 2
        away = np.square(q.mean[:, 0] - self.centre) + q.covariance[:, 0, 0]
        of_mean = D * (_LOG_2_PI / 2 + math.log(self.width)) + away.sum() / (2 * self.width**2)
        log_alpha = digamma(a) - np.log(b)
        of_loadings = np.sum(D * (_LOG_2_PI - log_alpha) + a / b * q.loading_squares) / 2
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
        error, power = squared_error(mean, nothing, stats), len(mean) + 2 * a - 2
        turn, lengths = self._turn(mean, nothing, stats, stats.latent[0, 0], power)
        mean = mean @ turn
        variance = (d + error / 2) / (c + 1 + stats.cells.sum() / 2)
        return {"mean": mean[:, 0], "loadings": mean[:, 1:], "alpha": power / (lengths + 2 * b), "variance": variance}

    def updated(self, stats: Complete) -> Factored:
        """Return the best q of the coefficients, then those of alpha and of the variance given it."""
        mean, precision = self.coefficients(stats)
        covariance = np.linalg.inv(precision)
        (a, b), (c, d) = self.relevance, self.precision
        error, D = squared_error(mean, covariance, stats), len(mean)
        # scaled loadings have more entropy as well
        turn, lengths = self._turn(mean, covariance, stats, stats.latent[0, 0] - D, D + 2 * a)
        of_alpha = (a + D / 2, b + lengths / 2)
        return Factored(mean @ turn, turn.T @ covariance @ turn, of_alpha, (c + stats.cells.sum() / 2, d + error / 2))

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


def squared_error(mean: np.ndarray, covariance: np.ndarray, stats: Complete) -> float:
    """Return the expected squared error of the entries given coefficients with this mean and covariance."""
    own = mean.copy()
    own[:, 0] -= stats.centre
    second = covariance + own[:, :, None] * own[:, None, :]
    return float(stats.squares.sum() - 2 * np.sum(own * stats.cross) + np.sum(second * stats.gram))


def pairwise_covariance(stats: Patterns) -> np.ndarray:
    """Return the covariance of the rows about their mean, divisor N, shape (D, D).

    Where numbers are missing, each entry is that of the rows in which both were observed.
    """
    seen, (_, mean, _) = stats.observed.astype(np.float64), stats.each_column()
    shift = np.where(stats.observed, stats.mean - mean, 0.0)
    scatter = stats.scatter.sum(axis=0) + (stats.n[:, None] * shift).T @ shift
    return np.asarray(scatter / np.maximum((stats.n[:, None] * seen).T @ seen, 1.0))


def leading_axes(stats: Patterns, count: int) -> np.ndarray:
    """Return the leading eigenvectors of the covariance of the rows, shape (D, count)."""
    return np.linalg.eigh(pairwise_covariance(stats))[1][:, ::-1][:, :count]
