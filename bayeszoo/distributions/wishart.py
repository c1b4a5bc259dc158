"""The normal-inverse-Wishart distribution, its marginals, and the rows of vectors that it predicts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.covariance import CovarianceMarginals
from bayeszoo.distributions.discrete import ByMarginals
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.special import deviance, log_peak, log_rising
from bayeszoo.errors import NumericalError


def log_multigamma_ratio(half_nu_after: Any, half_nu_before: Any, d: int) -> np.ndarray:
    """Log of the ratio of multivariate Gamma functions, log Gamma_d(after) - log Gamma_d(before).

    Parameters
    ----------
    half_nu_after, half_nu_before : array_like
        after >= before > (d - 1) / 2.
    d : int
        Dimension.
    """
    after, before = np.asarray(half_nu_after, dtype=np.float64), np.asarray(half_nu_before, dtype=np.float64)
    steps = [log_rising(before - j / 2, after - before) for j in range(d)]
    return np.sum(steps, axis=0)


def log_wishart_ratio(nu: float, psi: np.ndarray, n: float, growth: np.ndarray) -> float:
    """Log of the ratio of the normalizing constants of InvWishart(nu + n, psi + growth) and InvWishart(nu, psi).

    Parameters
    ----------
    nu, n : float
        Degrees of freedom before, and how many are added.
    psi, growth : ndarray of shape (D, D)
        Scale matrix before, positive definite, and what is added to it, positive semidefinite.

    Notes
    -----
    With psi = L L', |psi + growth| = |psi| |I + L^-1 growth L^-T|: little growth is not lost beside a large psi. The
    powers of 2 in the constants cancel those of the Gaussian rows, and are left out.
    """
    factor = np.linalg.cholesky(psi)
    half = scipy.linalg.solve_triangular(factor, growth, lower=True)
    relative = scipy.linalg.solve_triangular(factor, half.T, lower=True)
    eigenvalues = np.maximum(np.linalg.eigvalsh((relative + relative.T) / 2), 0.0)  # rounding takes some below
    log_growth = float(np.sum(np.log1p(eigenvalues)))
    log_psi = 2 * float(np.sum(np.log(np.diag(factor))))
    gammas = float(log_multigamma_ratio((nu + n) / 2, nu / 2, len(psi)))
    return gammas - (n * log_psi + (nu + n) * log_growth) / 2


def is_singular(covariance: np.ndarray) -> bool:
    """Say whether a covariance matrix has a direction without spread, up to rounding and whatever the units."""
    spread = np.sqrt(np.diag(covariance))
    return not spread.all() or bool(np.linalg.eigvalsh(covariance / np.outer(spread, spread))[0] < 1e-12)


class NormalInverseWishart:
    """Mean and covariance of vectors: Sigma ~ InvWishart(nu, Psi), mu given Sigma ~ N(m, Sigma / kappa).

    Parameters
    ----------
    m : array_like
        Shape (D,).
    kappa : float
        How many observations the mean is worth, > 0.
    nu : float
        Degrees of freedom, > D - 1.
    Psi : array_like
        Scale matrix, positive definite, of shape (D, D): the mean of Sigma times nu - D - 1, as SciPy's.

    Attributes
    ----------
    mu : frozen SciPy distribution
        Student-t marginals, of shape (D,).
    Sigma : CovarianceMarginals
        Of shape (D, D).
    """

    def __init__(self, m: Any, kappa: float, nu: float, Psi: Any) -> None:
        self.m, self.Psi = np.asarray(m, dtype=np.float64), np.asarray(Psi, dtype=np.float64)
        self.kappa, self.nu = float(kappa), float(nu)
        self._factor = np.linalg.cholesky(self.Psi)
        df = self.nu - len(self.m) + 1
        self.mu = frozen.t(df, loc=self.m, scale=np.sqrt(np.diagonal(self.Psi) / self.kappa / df))
        self.Sigma = CovarianceMarginals(self.nu, self.Psi)

    def posterior(self) -> Posterior:
        """Return the distribution of the parameters ``mu`` and ``Sigma``."""
        return Posterior({"mu": self.mu, "Sigma": self.Sigma}, self.rvs, self.logpdf)

    def rvs(self, size: int | tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw jointly: ``mu`` of shape (*size, D) and ``Sigma`` of shape (*size, D, D).

        Notes
        -----
        By Bartlett's decomposition: A A' of the lower triangle A is Wishart, and Sigma = C C' with C' = inv(A) L',
        where Psi = L L'.

        Raises
        ------
        NumericalError
            When nu is so near to D - 1 that draws are beyond the largest float.
        """
        size = (size,) if isinstance(size, int) else tuple(size)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            root = solve_lower(self._bartlett(size, rng), np.broadcast_to(self._factor.T, size + self.Psi.shape))
            Sigma = root.mT @ root
        mu = self.m + np.einsum("...ij,...i->...j", root, rng.standard_normal(size + self.m.shape)) / self.kappa**0.5
        if not (np.all(np.isfinite(Sigma)) and np.all(np.isfinite(mu))):
            raise NumericalError(f"Sigma cannot be drawn: nu = {self.nu:g} is too near to D - 1 = {len(self.m) - 1}")
        return {"mu": mu, "Sigma": (Sigma + Sigma.mT) / 2}

    def _bartlett(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        d = len(self.m)
        factor = np.tril(rng.standard_normal((*size, d, d)), -1)
        factor[..., range(d), range(d)] = np.sqrt(2 * rng.standard_gamma((self.nu - np.arange(d)) / 2, (*size, d)))
        return factor

    def logpdf(self, params: Mapping[str, Any]) -> float:
        """Joint log density at ``mu`` (D,) and ``Sigma`` (D, D); -inf where Sigma is not positive definite."""
        try:
            factor = np.linalg.cholesky(np.asarray(params["Sigma"], dtype=np.float64))
        except np.linalg.LinAlgError:
            return -math.inf
        d = len(self.m)
        z = solve_lower(factor, (np.asarray(params["mu"], dtype=np.float64) - self.m)[:, None])
        log_det = np.sum(np.log(np.diagonal(factor)))
        of_mu = d / 2 * math.log(self.kappa / (2 * math.pi)) - log_det - self.kappa / 2 * np.sum(z * z)
        return float(self._log_inverse_wishart(factor) + of_mu)

    def _log_inverse_wishart(self, factor: np.ndarray) -> float:
        """Log density at the matrix with this Cholesky factor.

        B = inv(factor) L is triangular, so det(BB') and tr(BB') split into its entries; the terms of size nu log nu
        of the textbook's formula cancel inside `deviance` and `log_peak`.
        """
        d, half = len(self.m), self.nu / 2
        B = solve_lower(factor, self._factor)
        shape = np.sum(deviance(half, np.diagonal(B) ** 2 / 2)) + np.sum(np.tril(B, -1) ** 2) / 2
        gammas = d * (log_peak(half) + math.log(half)) + sum(log_rising(half - j / 2, j / 2) for j in range(d))
        log_det = np.sum(np.log(np.diagonal(factor)))
        return float(gammas - d * (d - 1) / 4 * math.log(math.pi) - shape - (d + 1) * log_det)


def solve_lower(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve factor @ x = right for lower triangular factors (..., D, D) and right sides (..., D, n)."""
    x = np.empty(np.broadcast_shapes(factor.shape[:-2], right.shape[:-2]) + right.shape[-2:])
    for i in range(right.shape[-2]):
        known = factor[..., i : i + 1, :i] @ x[..., :i, :]
        x[..., i, :] = (right[..., i, :] - known[..., 0, :]) / factor[..., i, i, None]
    return x


class MultivariateT(ByMarginals):
    """Rows of new vectors, each of the same multivariate Student-t distribution.

    Parameters
    ----------
    df : float
        Degrees of freedom.
    loc : array_like
        Shape (D,).
    shape : array_like
        Shape (D, D): the covariance times (df - 2) / df.
    rows : int
        How many.
    """

    def __init__(self, df: float, loc: Any, shape: Any, rows: int) -> None:
        self.df, self.loc, self.shape = (
            float(df),
            np.asarray(loc, dtype=np.float64),
            np.asarray(shape, dtype=np.float64),
        )
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


class GaussianRows:
    """Rows of vectors given their mean and covariance; leading axes are draws of these.

    Parameters
    ----------
    mean : array_like
        Shape (..., D).
    cov : array_like
        Shape (..., D, D), positive definite.
    rows : int
        How many.
    """

    def __init__(self, mean: Any, cov: Any, rows: int) -> None:
        self._mean, self._cov = np.asarray(mean, dtype=np.float64), np.asarray(cov, dtype=np.float64)
        self._rows, self._factor = rows, np.linalg.cholesky(self._cov)

    def _tile(self, values: np.ndarray) -> np.ndarray:
        return np.repeat(values[..., None, :], self._rows, axis=-2)

    def mean(self) -> np.ndarray:
        """Return the mean of each entry, of shape (..., rows, D)."""
        return self._tile(self._mean)

    def var(self) -> np.ndarray:
        """Return the variance of each entry, of shape (..., rows, D)."""
        return self._tile(np.diagonal(self._cov, axis1=-2, axis2=-1))

    def std(self) -> np.ndarray:
        """Return the standard deviation of each entry, of shape (..., rows, D)."""
        return np.sqrt(self.var())

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantile of each entry, of shape (..., rows, D)."""
        return self.mean() + self.std() * scipy.special.ndtri(q)

    def logpdf(self, Y: Any) -> np.ndarray:
        """Joint log density of each row of ``Y``, of shape (rows, D); of shape (..., rows)."""
        z = solve_lower(self._factor, (np.asarray(Y, dtype=np.float64) - self._mean[..., None, :]).mT)
        log_det = np.sum(np.log(np.diagonal(self._factor, axis1=-2, axis2=-1)), axis=-1)
        return -np.sum(z * z, axis=-2) / 2 - (log_det + z.shape[-2] / 2 * math.log(2 * math.pi))[..., None]

    def rvs(self, size: tuple[int, ...], random_state: Any = None) -> np.ndarray:
        """Draw rows, correlated within themselves, of shape ``size``, which is (..., rows, D)."""
        z = np.random.default_rng(random_state).standard_normal(size)
        return self._mean[..., None, :] + z @ self._factor.mT
