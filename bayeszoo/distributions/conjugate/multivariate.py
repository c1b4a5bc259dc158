"""Gaussian rows with a conjugate prior of mean and covariance, for all covariance structures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy

from bayeszoo.distributions import frozen, information
from bayeszoo.distributions.conjugate.law import Block
from bayeszoo.distributions.covariance import covariance_of_entries
from bayeszoo.distributions.posterior import Marginal
from bayeszoo.distributions.statistics.base import along
from bayeszoo.distributions.statistics.moments import Moments, squared
from bayeszoo.distributions.structures import Structure
from bayeszoo.distributions.wishart import MultivariateT
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.numerics.constants import LOG_2_PI


@dataclass(frozen=True, eq=False)
class MultivariateNormal(Block[Moments]):
    """Complete rows (n, D); covariance ~ InvWishart(nu, psi), mean ~ N(m, covariance / kappa), nu > D - 1.

    m (*axes, D) is the prior mean of each mean, kappa (*axes,) its weight in rows; nu (*axes,) and psi
    (*axes, *structure.shape) are degrees of freedom and scale matrix, the mean of the covariance psi / (nu - D - 1).
    Diagonal: psi (*axes, D), each variance ~ InvGamma(nu / 2, psi / 2). Spherical: psi (*axes,), likewise. Tied: nu,
    psi and the covariance lack the last of ``axes``, which shares them. Murphy 2012, section 4.6.3.

    The posterior has the same form: kappa and nu grow by the number of rows, m moves towards their mean, and
    psi grows by their scatter and by the distance of their mean from m.
    """

    m: np.ndarray
    kappa: np.ndarray
    nu: np.ndarray
    psi: np.ndarray
    structure: Structure

    @property
    def own(self) -> tuple[int, ...]:
        """Means have an axis of columns, covariances the axes of their structure."""
        return 1, len(self.structure.shape)

    @property
    def columns(self) -> int:
        """D."""
        return int(self.m.shape[-1])

    @property
    def tied(self) -> bool:
        """Whether laws along the last axis share the covariance."""
        return self.nu.ndim < self.kappa.ndim

    @property
    def shared(self) -> tuple[str, ...]:
        """The covariance and its prior, if tied."""
        return (self.names[1], "nu", "psi") if self.tied else ()

    @property
    def free_parameters(self) -> int:
        """The number of entries of means and covariances."""
        entries = self.structure.blocks * self.structure.block * (self.structure.block + 1) // 2
        return self.m.size + self.nu.size * entries

    @property
    def moments_below(self) -> float:
        """The smallest nu - D + 1: the degrees of freedom of a new row, which is Student t."""
        return float(np.min(self.nu) - self.structure.block + 1)

    def spread_out(self, covariance: npt.ArrayLike) -> np.ndarray:
        """Give tied covariances, or arrays of their shape, an axis of length 1 in place of the last of ``axes``."""
        return self._expanded(covariance, len(self.structure.shape))

    def _expanded(self, values: npt.ArrayLike, own: int) -> np.ndarray:
        values = np.asarray(values, dtype=np.float64)
        return np.expand_dims(values, -1 - own) if self.tied else values

    @property
    def nu_each(self) -> np.ndarray:
        """Degrees of freedom with all axes."""
        return self._expanded(self.nu, 0)

    @property
    def psi_each(self) -> np.ndarray:
        """Scale matrices with all axes."""
        return self.spread_out(self.psi)

    def factors(self, covariance: npt.ArrayLike) -> np.ndarray:
        """Return the Cholesky factors of covariances, with all axes."""
        return self.structure.factor(self.spread_out(covariance))

    def statistics(self, rows: Arrays, weights: np.ndarray) -> Moments:
        """Return counts, means and scatters."""
        return Moments.weighted(rows[self.column], weights, self.structure)

    def each(self, rows: Arrays) -> Moments:
        """Return the statistics of each row alone."""
        Y = np.asarray(rows[self.column], dtype=np.float64)
        Y = Y.reshape(len(Y), *(1,) * len(self.axes), self.columns)
        zeros = np.zeros(Y.shape)
        return Moments(np.ones(Y.shape[:-1]), Y, self.structure.outer(zeros), zeros)

    def _densities(self, rows: Arrays, mean: np.ndarray, factor: np.ndarray) -> np.ndarray:
        squares = self.structure.scaled(factor, rows[self.column] - mean[..., None, :])  # (..., *axes, n)
        constant = self.columns * LOG_2_PI + self.structure.repeat * self.structure.log_det(factor)
        return np.moveaxis(-(constant[..., None] + squares) / 2, -1, -1 - len(self.axes))

    def log_density(self, params: Params, rows: Arrays) -> np.ndarray:
        """Log Gaussian density of each row, (..., n, *axes)."""
        mean, covariance = (params[name] for name in self.names)
        return self._densities(rows, np.asarray(mean, dtype=np.float64), self.factors(covariance))

    def expected_gap(self) -> np.ndarray:
        """Return the mean of the log density over parameters minus its value at `typical` ones, (*axes)."""
        gap = self.structure.repeat * self.structure.expected_log_det_gap(self.nu_each)
        return np.asarray(-(gap + self.columns / self.kappa) / 2)

    def expected_log_density(self, rows: Arrays) -> np.ndarray:
        """Return the mean of the log density over the parameters, (n, *axes); Bishop, PRML, equation 10.64."""
        return self.log_density(self.typical(), rows) + self.expected_gap()

    def _growth(self, stats: Moments) -> tuple[np.ndarray, np.ndarray]:
        """Return the growth of psi by rows, and their number; summed over the last axis if tied."""
        weight = self.kappa * stats.n / (self.kappa + stats.n)
        scatter = stats.scatter + along(weight, stats.scatter) * squared(stats.less(self.m), stats.scatter)
        return self.together(scatter, stats.n + np.zeros(self.axes))

    def together(self, scatter: np.ndarray, n: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return scatters and numbers of rows, summed over the last axis if tied."""
        return (scatter.sum(axis=-1 - len(self.structure.shape)), n.sum(axis=-1)) if self.tied else (scatter, n)

    def updated(self, stats: Moments) -> Self:
        """Return the posterior."""
        kappa, (growth, n) = self.kappa + stats.n, self._growth(stats)
        m = self.m + along(stats.n / kappa, stats.mean) * stats.less(self.m)
        return replace(self, m=m, kappa=kappa, nu=self.nu + self.structure.repeat * n, psi=self.psi + growth)

    def log_evidence(self, stats: Moments) -> np.ndarray:
        """Log marginal likelihood, (..., *axes); the term of a tied covariance is spread evenly."""
        growth, n = self._growth(stats)
        of_means = -self.columns / 2 * (stats.n * math.log(math.pi) + np.log1p(stats.n / self.kappa))
        ratio = self.structure.log_ratio(self.nu, self.psi, n, growth)
        return np.asarray(of_means + (ratio[..., None] / self.axes[-1] if self.tied else ratio))

    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Log predictive density of each row alone, (n, *axes): Student t, or for diagonal structures a product."""
        of_mean = -self.columns / 2 * (math.log(math.pi) + np.log1p(1 / self.kappa))
        Y, share = np.asarray(rows[self.column], dtype=np.float64), self.kappa / (1 + self.kappa)
        ratio = self.structure.log_ratio_of_rows(self.nu_each, self.psi_each, Y, self.m, share)
        return np.moveaxis(of_mean[..., None] + ratio, -1, -1 - len(self.axes))

    def entropy(self, params: Params) -> np.ndarray:
        """Return the differential entropy of a row, (..., *axes)."""
        log_det = self.structure.repeat * self.structure.log_det(self.factors(params[self.names[1]]))
        return information.entropy_of_normals(log_det, self.columns)

    def row_divergence(self, params: Params, other: Self, others: Params) -> np.ndarray:
        """Return KL of a row, (..., *axes)."""
        (mean, covariance), (m, v) = (
            (values[block.names[0]], block.structure.matrix(block.spread_out(values[block.names[1]])))
            for block, values in ((self, params), (other, others))
        )
        return information.divergence_of_normals(mean, covariance, m, v)

    def typical(self) -> dict[str, np.ndarray]:
        """Return means, and inverse mean precisions."""
        return dict(zip(self.names, (self.m, self.psi / along(self.nu, self.psi)), strict=True))

    @property
    def power(self) -> np.ndarray:
        """Twice the power of the determinant of the covariance in the density, to which each mean adds repeat."""
        means = self.axes[-1] if self.tied else 1
        return np.asarray(self.nu + self.structure.block + 1 + self.structure.repeat * means)

    def mode(self) -> dict[str, np.ndarray]:
        """Return the joint mode: means at m, covariances at psi over `power`."""
        return dict(zip(self.names, (self.m, self.psi / along(self.power, self.psi)), strict=True))

    def covariance_of_rows(self, stats: Moments) -> np.ndarray:
        """Return the covariances of the rows, in this structure."""
        scatter, n = self.together(stats.scatter, stats.n)
        return np.asarray(scatter / along(self.structure.repeat * n, scatter))

    def mle(self, stats: Moments) -> dict[str, np.ndarray]:
        """Return means and covariances of the rows."""
        self._require_observed(np.asarray(stats.n))
        covariance = self.covariance_of_rows(stats)
        if np.any(singular := self.structure.is_singular(covariance)):
            where = f" {np.argmax(singular) + 1}" if np.ndim(singular) else ""
            few = f"do not fill {self.columns} dimensions" if self.columns > 1 else "are all equal"
            line = f"the rows of {self.names[1]}{where} {few}"
            raise NumericalError(f"no maximum-likelihood estimate: {line}", "no_maximum")
        return dict(zip(self.names, (stats.mean, covariance), strict=True))

    def log_each(self, params: Params) -> np.ndarray:
        """Log density of means and covariances, (..., *axes); the term of a tied covariance is spread evenly."""
        mean, covariance = (np.asarray(params[name], dtype=np.float64) for name in self.names)
        factor = self.factors(covariance)
        squares = self.structure.scaled(factor, (mean - self.m)[..., None, :])[..., 0]
        log_det = self.structure.repeat * self.structure.log_det(factor)
        of_mean = (self.columns * np.log(self.kappa / (2 * math.pi)) - log_det - self.kappa * squares) / 2
        of_covariance = self.structure.log_inverse_wishart(factor, self.nu_each, self.psi_each)
        return np.asarray(of_mean + of_covariance / (mean.shape[-2] if self.tied else 1))

    def log_pairs_of(self, several: Sequence[Self], params: Params) -> np.ndarray:
        """Return `log_pairs` of Q priors of K laws, (Q, draws, K, K), at draws with one leading axis.

        By one matrix product: rounding errors have the size of its terms, nu and distances from the common centre.
        """
        centre, K = np.mean([block.m.mean(axis=0) for block in several], axis=0), self.axes[-1]
        mean, covariance = (np.asarray(params[name], dtype=np.float64) for name in self.names)
        statistics = self.structure.natural(self.spread_out(covariance), mean - centre)
        coefficients = np.stack([block._natural(centre) for block in several])
        flat = coefficients.reshape(-1, coefficients.shape[-1]) @ statistics.reshape(-1, coefficients.shape[-1]).T
        return np.moveaxis(flat.reshape(len(several), K, -1, K), 1, 2)

    def _natural(self, centre: np.ndarray) -> np.ndarray:
        of_covariances = self.structure.natural_of_wishart(self.nu_each, self.psi_each)
        of_means = self.structure.natural_of_means(self.kappa, self.m - centre)
        return np.asarray(of_means + of_covariances / (self.axes[-1] if self.tied else 1))

    def logpdf(self, params: Params) -> Any:
        """Joint log density of all means and covariances; -inf if a covariance is not positive definite."""
        try:
            return super().logpdf(params)
        except NumericalError:
            if np.ndim(params[self.names[0]]) == 1 + len(self.axes):
                return -math.inf
            draws = zip(*(params[name] for name in self.names), strict=True)
            return np.array([self.logpdf(dict(zip(self.names, draw, strict=True))) for draw in draws])

    def divergence(self, prior: Self) -> float:
        """Return KL(self || prior) in nats."""
        ratio, factor = prior.kappa / self.kappa, self.structure.factor(self.psi)
        shift = (self.m - prior.m)[..., None, :]
        squares = self.nu_each * self.structure.scaled(self._expanded(factor, 3), shift)[..., 0]
        of_means = (self.columns * (ratio - 1 - np.log(ratio)) + prior.kappa * squares) / 2
        of_covariances = self.structure.divergence(self.nu, factor, prior.nu, prior.psi)
        return float(np.sum(of_means) + np.sum(of_covariances))

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw covariances, and means given them."""
        root = self.structure.draw_root(self.nu, self.psi, size, rng)
        z = rng.standard_normal((*size, *self.m.shape)) / np.sqrt(self.kappa)[..., None]
        with np.errstate(over="ignore", invalid="ignore"):
            covariance = self.structure.from_root(root)
            mean = self.m + self.structure.coloured((root[..., None, :, :, :] if self.tied else root).mT, z)
        if not (np.all(np.isfinite(covariance)) and np.all(np.isfinite(mean))):
            bound = f"D - 1 = {self.structure.block - 1}"
            raise NumericalError(
                f"{self.names[1]} cannot be drawn: nu = {np.min(self.nu):g} is too close to {bound}", "cannot_be_drawn"
            )
        return dict(zip(self.names, (mean, covariance), strict=True))

    def marginals(self) -> dict[str, Marginal]:
        """Return the marginals of the means (Student t) and of the covariances."""
        df = self.nu_each[..., None] - self.structure.block + 1
        scale = self.structure.variances(self.psi_each) / self.kappa[..., None] / df
        mean = frozen.t(np.broadcast_to(df, self.m.shape), loc=self.m, scale=np.sqrt(scale))
        return dict(zip(self.names, (mean, self.structure.marginals(self.nu, self.psi)), strict=True))

    def within(self) -> dict[str, Callable[[], np.ndarray]]:
        """Return the covariance matrices of the means, and of the entries of full covariances."""
        of_entries = {self.names[1]: self._covariance_of_entries} if len(self.structure.shape) == 2 else {}
        return {self.names[0]: self._covariance_of_means, **of_entries}

    def _covariance_of_means(self) -> np.ndarray:
        """Return mean covariances over kappa; infinite where the mean does not exist."""
        free = self.nu_each - self.structure.block - 1
        with np.errstate(divide="ignore"):
            covariance = self.psi_each / along(np.where(free > 0, free, 0.0), self.psi_each)
        blocks = self.structure.matrix(covariance) / self.kappa[..., None, None]
        blocks = np.where(np.isnan(blocks), np.inf, blocks)
        return np.asarray(scipy.linalg.block_diag(*blocks.reshape(-1, self.columns, self.columns)))

    def _covariance_of_entries(self) -> np.ndarray:
        flat = zip(np.ravel(self.nu), self.psi.reshape(-1, *self.structure.shape), strict=True)
        return np.asarray(scipy.linalg.block_diag(*(covariance_of_entries(nu, psi) for nu, psi in flat)))

    def predictive(self, rows: int) -> MultivariateT:
        """Return the distribution of new rows of one law with full covariance: multivariate Student t."""
        df = self.nu - self.columns + 1
        return MultivariateT(float(df), self.m, self.psi * ((self.kappa + 1) / (self.kappa * df)), rows)
