"""The normal-inverse-Wishart distribution, its marginals, and the rows of vectors that it predicts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bayeszoo.distributions import frozen
from bayeszoo.distributions.covariance import CovarianceMarginals
from bayeszoo.distributions.discrete import ByMarginals
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.special import log_rising
from bayeszoo.distributions.structures import Matrices, solve_lower
from bayeszoo.errors import NumericalError


def is_singular(covariance: np.ndarray) -> bool:
    """Say whether a covariance matrix has a direction without spread, up to rounding and whatever the units."""
    spread = np.sqrt(np.diag(covariance))
    return not spread.all() or bool(np.linalg.eigvalsh(covariance / np.outer(spread, spread))[0] < 1e-12)


class NormalInverseWishart:
    """Mean and covariance of vectors: Sigma ~ InvWishart(nu, Psi), mu given Sigma ~ N(m, Sigma / kappa).

    m (D,) is worth ``kappa`` observations; nu > D - 1, and the mean of Sigma is Psi / (nu - D - 1), as SciPy's.
    """

    def __init__(self, m: Any, kappa: float, nu: float, Psi: Any) -> None:
        self.m, self.Psi = np.asarray(m, dtype=np.float64), np.asarray(Psi, dtype=np.float64)
        self.kappa, self.nu, self._matrices = float(kappa), float(nu), Matrices(len(self.m))
        df = self.nu - len(self.m) + 1
        self.mu = frozen.t(df, loc=self.m, scale=np.sqrt(np.diagonal(self.Psi) / self.kappa / df))
        self.Sigma = CovarianceMarginals(self.nu, self.Psi)

    def posterior(self) -> Posterior:
        """Return the distribution of the parameters ``mu`` and ``Sigma``."""
        within = {"mu": self._covariance_of_mean, "Sigma": self._covariance_of_entries}
        return Posterior({"mu": self.mu, "Sigma": self.Sigma}, self.rvs, self.logpdf, within)

    def _covariance_of_mean(self) -> np.ndarray:
        """Return Psi / (kappa (nu - D - 1)); infinite variances where nu <= D + 1."""
        free = self.nu - len(self.m) - 1
        return self.Psi / (self.kappa * free) if free > 0 else np.full(self.Psi.shape, np.inf)

    def _covariance_of_entries(self) -> np.ndarray:
        """Return the covariances of the entries of Sigma, shape (D^2, D^2), for nu > D + 3 (Press 1982, 5.2)."""
        Psi, free = self.Psi, self.nu - len(self.m)
        if free <= 3:
            return np.diag(np.ravel(self.Sigma.var()))
        pairs = np.einsum("ik,jl->ijkl", Psi, Psi) + np.einsum("il,jk->ijkl", Psi, Psi)
        together = 2 * np.einsum("ij,kl->ijkl", Psi, Psi) + (free - 1) * pairs
        return (together / (free * (free - 1) ** 2 * (free - 3))).reshape(Psi.size, Psi.size)

    def rvs(self, size: int | tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw jointly: ``mu`` of shape (*size, D) and ``Sigma`` of shape (*size, D, D)."""
        size = (size,) if isinstance(size, int) else tuple(size)
        root = self._matrices.draw_root(self.nu, self.Psi, size, rng)[..., 0, :, :]
        z = rng.standard_normal(size + self.m.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            Sigma, mu = root.mT @ root, self.m + np.einsum("...ij,...i->...j", root, z) / self.kappa**0.5
        if not (np.all(np.isfinite(Sigma)) and np.all(np.isfinite(mu))):
            raise NumericalError(f"Sigma cannot be drawn: nu = {self.nu:g} is too near to D - 1 = {len(self.m) - 1}")
        return {"mu": mu, "Sigma": (Sigma + Sigma.mT) / 2}

    def logpdf(self, params: Mapping[str, Any]) -> Any:
        """Joint log density at ``mu`` (..., D) and ``Sigma`` (..., D, D); -inf where one is not positive definite."""
        mu, Sigma = (np.asarray(params[name], dtype=np.float64) for name in ("mu", "Sigma"))
        try:
            factor = self._matrices.factor(Sigma)
        except NumericalError:
            if mu.ndim == 1:
                return -math.inf
            return np.array([self.logpdf({"mu": a, "Sigma": b}) for a, b in zip(mu, Sigma, strict=True)])
        squares = self._matrices.scaled(factor, (mu - self.m)[..., None, :])[..., 0]
        of_mu = (len(self.m) * math.log(self.kappa / (2 * math.pi)) - self._matrices.log_det(factor)) / 2
        of_sigma = self._matrices.log_inverse_wishart(factor, self.nu, self.Psi)
        return of_sigma + of_mu - self.kappa / 2 * squares


class MultivariateT(ByMarginals):
    """So many ``rows`` of new vectors, each of the same multivariate Student-t distribution.

    ``loc`` (D,) is its centre, and ``shape`` (D, D) its covariance times (df - 2) / df.
    """

    def __init__(self, df: float, loc: Any, shape: Any, rows: int) -> None:
        self.df, self.loc = float(df), np.asarray(loc, dtype=np.float64)
        self.shape = np.asarray(shape, dtype=np.float64)
        scale = np.sqrt(np.diagonal(self.shape))
        self._marginals = frozen.t(self.df, loc=np.tile(self.loc, (rows, 1)), scale=scale)

    def cdf(self, x: Any) -> np.ndarray:
        """Cumulative probability of each entry, of shape (rows, D)."""
        return self._marginals.cdf(x)

    def logpdf(self, Y: Any) -> np.ndarray:
        """Joint log density of each row of ``Y``, of shape (rows, D); of shape (rows,)."""
        d, factor = len(self.loc), np.linalg.cholesky(self.shape)
        z = solve_lower(factor, (np.asarray(Y, dtype=np.float64) - self.loc).T)
        constant = log_rising(self.df / 2, d / 2) - d / 2 * math.log(self.df * math.pi)
        log_det = np.sum(np.log(np.diagonal(factor)))
        return constant - log_det - (self.df + d) / 2 * np.log1p(np.sum(z * z, axis=0) / self.df)


class GaussianRows(ByMarginals):
    """So many rows of vectors given their ``mean`` (..., D) and ``cov`` (..., D, D), whose leading axes are draws."""

    def __init__(self, mean: Any, cov: Any, rows: int) -> None:
        self._mean, self._factor = np.asarray(mean, dtype=np.float64), np.linalg.cholesky(cov)
        sd = np.sqrt(np.diagonal(cov, axis1=-2, axis2=-1))
        self._marginals = frozen.norm(*(np.repeat(values[..., None, :], rows, axis=-2) for values in (self._mean, sd)))

    def logpdf(self, Y: Any) -> np.ndarray:
        """Joint log density of each row of ``Y``, of shape (rows, D); of shape (..., rows)."""
        z = solve_lower(self._factor, (np.asarray(Y, dtype=np.float64) - self._mean[..., None, :]).mT)
        log_det = np.sum(np.log(np.diagonal(self._factor, axis1=-2, axis2=-1)), axis=-1)
        return -np.sum(z * z, axis=-2) / 2 - (log_det + z.shape[-2] / 2 * math.log(2 * math.pi))[..., None]

    def rvs(self, size: tuple[int, ...], random_state: Any = None) -> np.ndarray:
        """Draw rows, correlated within themselves, of shape ``size``, which is (..., rows, D)."""
        z = np.random.default_rng(random_state).standard_normal(size)
        return self._mean[..., None, :] + z @ self._factor.mT
