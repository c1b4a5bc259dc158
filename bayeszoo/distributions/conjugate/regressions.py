"""Arrays of linear regressions, each with a conjugate prior of weights and noise variance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.conjugate.law import Block
from bayeszoo.distributions.posterior import Marginal
from bayeszoo.distributions.special import digamma_less_log, gamma_divergence, log_gamma, log_normal, log_rising
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.distributions.structures import Matrices
from bayeszoo.errors import NoRowLaw, NumericalError
from bayeszoo.foundation.named import Arrays, Params

DEPENDENT = 1e-10
"""Largest unexplained share of a column that counts as a linear combination of earlier ones."""
EXACT = 1e-12
"""Share of the outcome's squares below which a squared error may be rounding, in sums of products of 16 digits."""


@dataclass(frozen=True, eq=False)
class Regressions(Block[Moments]):
    """Numbers with noise about weighted sums of terms; sigma2 ~ InvGamma(a, scale b), w ~ N(m, sigma2 (R'R)^-1).

    ``m`` (*axes, T), the ``root`` R (*axes, T, T), upper triangular with a positive diagonal, ``a`` and ``b`` (*axes);
    ``design`` returns the terms (n, T) of rows. The posterior has the same form: R'R grows by the products of the
    terms, 2 a by the number of rows, and 2 b by the minimum of the squared errors plus the squared distance of the
    weights from m. All come from one triangular factor of rows of the prior and rows with the moments of the data, so
    that neither an outcome near 1e9 nor terms of different units lose digits. Murphy 2012, section 7.6.3; Golub and Van
    Loan 2013, section 5.3.
    """

    m: np.ndarray
    root: np.ndarray
    a: np.ndarray
    b: np.ndarray
    design: Callable[[Arrays], np.ndarray]

    own = (1, 0)

    @property
    def terms(self) -> int:
        """T."""
        return int(self.m.shape[-1])

    @property
    def free_parameters(self) -> int:
        """The number of weights, and one variance for each regression."""
        return self.m.size + self.a.size

    @property
    def moments_below(self) -> float:
        """Twice the smallest a: a new row is Student t with 2 a degrees of freedom."""
        return float(2 * np.min(self.a))

    def _joined(self, rows: Arrays) -> np.ndarray:
        return np.column_stack([self.design(rows), np.asarray(rows[self.column], dtype=np.float64)])

    def statistics(self, rows: Arrays, weights: np.ndarray) -> Moments:
        """Return counts, means and scatters of the terms and, last, the outcome."""
        return Moments.weighted(self._joined(rows), weights, Matrices(self.terms + 1))

    def each(self, rows: Arrays) -> Moments:
        """Return the statistics of each row alone."""
        joined = self._joined(rows)
        joined = joined.reshape(len(joined), *(1,) * len(self.axes), self.terms + 1)
        return Moments(np.ones(joined.shape[:-1]), joined, joined[..., None] * np.zeros(self.terms + 1), 0 * joined)

    def _rows(self, stats: Moments) -> np.ndarray:
        """Return T + 2 rows, of terms and of the outcome minus its prediction at m, with the data's products."""
        mean, rounding = stats.mean, np.broadcast_to(stats.rest, np.shape(stats.mean))
        mean_error = (mean[..., -1] - np.sum(mean[..., :-1] * self.m, axis=-1)) + (
            rounding[..., -1] - np.sum(rounding[..., :-1] * self.m, axis=-1)
        )
        factor = _root(np.asarray(stats.scatter))
        errors = factor[..., -1] - (factor[..., :-1] @ self.m[..., None])[..., 0]
        terms = np.broadcast_to(mean[..., :-1] + rounding[..., :-1], (*mean_error.shape, self.terms))
        factor = np.broadcast_to(factor[..., :-1], (*errors.shape, self.terms))
        rows = np.concatenate([factor, errors[..., None]], axis=-1)
        first = np.concatenate([terms, mean_error[..., None]], axis=-1) * np.sqrt(np.asarray(stats.n))[..., None]
        return np.concatenate([first[..., None, :], rows], axis=-2)

    def _solved(self, stats: Moments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the posterior's step from m, its root R, and its misfit."""
        rows = self._rows(stats)
        prior = np.concatenate([self.root, np.zeros((*self.m.shape, 1))], axis=-1)
        prior = np.broadcast_to(prior, (*rows.shape[:-2], *prior.shape[-2:]))
        factor = upper_root(np.concatenate([prior, rows], axis=-2))
        root = factor[..., :-1, :-1]
        return _times(np.linalg.inv(root), factor[..., :-1, -1]), root, np.square(factor[..., -1, -1])

    def updated(self, stats: Moments) -> Self:
        """Return the posterior."""
        step, root, misfit = self._solved(stats)
        return replace(self, m=self.m + step, root=root, a=self.a + stats.n / 2, b=self.b + misfit / 2)

    def log_evidence(self, stats: Moments) -> np.ndarray:
        """Log density of the ordered rows, (..., *axes): a multivariate Student t."""
        _, root, misfit = self._solved(stats)
        growth = 2 * (_log_det(root) - _log_det(self.root))
        return np.asarray(log_evidence_over_variance(misfit, growth, stats.n, self.a, self.b))

    def lines(self, w: Any, rows: Arrays) -> np.ndarray:
        """Return weighted sums of the terms of rows, (..., n, *axes), under weights (..., *axes, T)."""
        return np.moveaxis(np.asarray(w) @ self.design(rows).T, -1, -1 - len(self.axes))

    def _spread(self, rows: Arrays) -> np.ndarray:
        """Return the variance of the weighted sums over that of the noise, (n, *axes)."""
        whitened = np.swapaxes(np.linalg.inv(self.root), -1, -2) @ self.design(rows).T
        return np.moveaxis(np.sum(np.square(whitened), axis=-2), -1, 0)

    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log normal density, (..., n, *axes)."""
        w, variance = (params[name] for name in self.names)
        variance_of_rows = np.expand_dims(np.asarray(variance, dtype=np.float64), -1 - len(self.axes))
        return np.asarray(log_normal(self._column(rows), self.lines(w, rows), variance_of_rows))

    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return the mean of `log_density` over the parameters, (n, *axes)."""
        at_typical = log_normal(self._column(rows), self.lines(self.m, rows), self.b / self.a)
        return np.asarray(at_typical + (digamma_less_log(self.a) - self._spread(rows)) / 2)

    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Log predictive density of each row alone, (n, *axes): Student t."""
        scale = np.sqrt(self.b / self.a * (1 + self._spread(rows)))
        return np.asarray(frozen.t(2 * self.a, self.lines(self.m, rows), scale).logpdf(self._column(rows)))

    def row_mean(self, params: Params) -> np.ndarray:
        """Refuse: the mean of a row depends on its features."""
        raise NoRowLaw("the mean of a row of a regression depends on its features", "no_row_law")

    def typical(self) -> dict[str, np.ndarray]:
        """Return mean weights, and inverse mean precisions."""
        return dict(zip(self.names, (self.m, self.b / self.a), strict=True))

    def mode(self) -> dict[str, np.ndarray]:
        """Return the joint mode: T weights add T / 2 to the power of the precision."""
        return dict(zip(self.names, (self.m, self.b / (self.a + 1 + self.terms / 2)), strict=True))

    def mle(self, stats: Moments) -> dict[str, np.ndarray]:
        """Return least-squares weights, and mean squared errors."""
        self._require_observed(np.asarray(stats.n))
        rows = self._rows(stats)
        factor = np.linalg.qr(rows, mode="r")
        root, error = factor[..., :-1, :-1], np.square(factor[..., -1, -1])
        size = np.sqrt(np.sum(np.square(rows), axis=-2))
        is_dependent = np.abs(np.diagonal(root, axis1=-2, axis2=-1)) <= DEPENDENT * size[..., :-1]
        _refuse(np.any(is_dependent, axis=-1), "the terms of the rows", "are linearly dependent")
        _refuse(error <= EXACT * np.square(size[..., -1]), "the rows", "are fitted exactly")
        w = self.m + _times(np.linalg.inv(root), factor[..., :-1, -1])
        return dict(zip(self.names, (w, error / np.asarray(stats.n)), strict=True))

    def log_each(self, params: Params) -> np.ndarray:
        """Log density of weights and variances, (..., *axes)."""
        w, variance = (np.asarray(params[name], dtype=np.float64) for name in self.names)
        squares = np.sum(np.square(_times(self.root, w - self.m)), axis=-1)
        of_weights = _log_det(self.root) - (self.terms * np.log(2 * math.pi * variance) + squares / variance) / 2
        return np.asarray(of_weights + log_gamma(1 / variance, self.a, self.b) - 2 * np.log(variance))

    def divergence(self, prior: Self) -> float:
        """Return KL(self || prior) in nats."""
        ratio = np.sum(np.square(prior.root @ np.linalg.inv(self.root)), axis=(-1, -2))
        moved = np.sum(np.square(_times(prior.root, self.m - prior.m)), axis=-1) * self.a / self.b
        of_weights = (ratio - self.terms + moved) / 2 + _log_det(self.root) - _log_det(prior.root)
        return float(np.sum(gamma_divergence(self.a, self.b, prior.a, prior.b)) + np.sum(of_weights))

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw variances, and weights given them."""
        variance = self.b / rng.standard_gamma(self.a, (*size, *self.axes))
        noise = _times(np.linalg.inv(self.root), rng.standard_normal((*size, *self.m.shape)))
        return dict(zip(self.names, (self.m + np.sqrt(variance)[..., None] * noise, variance), strict=True))

    def marginals(self) -> dict[str, Marginal]:
        """Return the marginals: weights Student t, variances inverse gamma."""
        sd = np.sqrt(np.sum(np.square(np.linalg.inv(self.root)), axis=-1) * (self.b / self.a)[..., None])
        laws = frozen.t(2 * self.a[..., None], self.m, sd), frozen.invgamma(self.a, scale=self.b)
        return dict(zip(self.names, laws, strict=True))

    def within(self) -> dict[str, Callable[[], np.ndarray]]:
        """Return the covariance matrix of the weights; infinite if it does not exist."""
        return {self.names[0]: self._covariance_of_weights}

    def _covariance_of_weights(self) -> np.ndarray:
        inverse = np.linalg.inv(self.root)
        mean = np.divide(self.b, self.a - 1, out=np.full(self.axes, np.inf), where=self.a > 1)
        blocks = inverse @ np.swapaxes(inverse, -1, -2) * mean[..., None, None]
        return np.asarray(scipy.linalg.block_diag(*blocks.reshape(-1, self.terms, self.terms)))


def log_evidence_over_variance(misfit: Any, log_det: Any, n: float, a0: Any, b0: Any) -> Any:
    """Return the log density of n outcomes about weights ~ N(m0, variance V0), variance ~ InvGamma(a0, b0).

    ``misfit`` is the squared error of the posterior mean plus its squared distance from m0, and ``log_det`` the log
    of det(V0) over that of the posterior. Bishop, PRML, 3.5.1 and exercise 3.23; Murphy 2012, 7.6.3.
    """
    scale = b0 + misfit / 2
    powers = a0 * np.log1p(misfit / (2 * b0)) + n / 2 * np.log(2 * math.pi * scale)
    return log_rising(a0, n / 2) - powers - log_det / 2


def _refuse(is_bad: np.ndarray, quantity: str, why: str) -> None:
    """Raise `NumericalError` if a regression has no maximum-likelihood estimate."""
    if np.any(is_bad):
        where = f" of regression {np.flatnonzero(is_bad)[0] + 1}" if np.ndim(is_bad) else ""
        raise NumericalError(f"no maximum-likelihood estimate: {quantity}{where} {why}", "no_maximum")


def _times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return np.asarray((matrix @ vector[..., None])[..., 0])


def _log_det(root: np.ndarray) -> Any:
    return np.linalg.slogdet(root)[1]


def upper_root(rows: np.ndarray) -> np.ndarray:
    """Return the upper triangular R with R'R = rows' rows, (..., N, D), N >= D, with a nonnegative diagonal."""
    factor = np.linalg.qr(rows, mode="r")
    signs = np.copysign(1.0, np.diagonal(factor, axis1=-2, axis2=-1))  # else signs depend on rounding
    return np.asarray(signs[..., None] * factor)


def _root(scatter: np.ndarray) -> np.ndarray:
    """Return F with F'F = scatter (..., D, D), accurate for columns in any units."""
    size = np.sqrt(np.diagonal(scatter, axis1=-2, axis2=-1))
    size = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(scatter / (size[..., :, None] * size[..., None, :]))
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[..., None] * np.swapaxes(vectors, -1, -2) * size[..., None, :])
