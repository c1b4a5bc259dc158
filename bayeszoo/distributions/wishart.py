"""Laws of rows of D numbers: Gaussian given parameters, and Student t with parameters integrated out."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from bayeszoo.distributions import frozen
from bayeszoo.distributions.bases import ByMarginals
from bayeszoo.distributions.special import log_rising
from bayeszoo.distributions.structures import solve_lower
from bayeszoo.foundation.named import RandomState
from bayeszoo.foundation.numerics.constants import LOG_2_PI


class MultivariateT(ByMarginals):
    """New ``rows`` that are independent, each with the same multivariate Student-t distribution.

    ``loc`` (D,) is its centre, and ``shape`` (D, D) its covariance times (df - 2) / df.
    """

    def __init__(self, df: float, loc: npt.ArrayLike, shape: npt.ArrayLike, rows: int) -> None:
        self.df, self.loc = float(df), np.asarray(loc, dtype=np.float64)
        self.shape = np.asarray(shape, dtype=np.float64)
        scale = np.sqrt(np.diagonal(self.shape))
        self._marginals = frozen.t(self.df, loc=np.tile(self.loc, (rows, 1)), scale=scale)

    def cdf(self, x: npt.ArrayLike) -> np.ndarray:
        """Cumulative probability of each entry, of shape (rows, D)."""
        return self._marginals.cdf(x)

    def logpdf(self, Y: npt.ArrayLike) -> np.ndarray:
        """Joint log density of each row of ``Y``, of shape (rows, D); of shape (rows,)."""
        d, factor = len(self.loc), np.linalg.cholesky(self.shape)
        z = solve_lower(factor, (np.asarray(Y, dtype=np.float64) - self.loc).T)
        constant = log_rising(self.df / 2, d / 2) - d / 2 * math.log(self.df * math.pi)
        log_det = np.sum(np.log(np.diagonal(factor)))
        return constant - log_det - (self.df + d) / 2 * np.log1p(np.sum(z * z, axis=0) / self.df)


class GaussianRows(ByMarginals):
    """Independent Gaussian rows with ``mean`` (..., D) and ``cov`` (..., D, D); leading axes are draws."""

    def __init__(self, mean: np.ndarray, cov: np.ndarray, rows: int) -> None:
        self._mean, self._factor = np.asarray(mean, dtype=np.float64), np.linalg.cholesky(cov)
        sd = np.sqrt(np.diagonal(cov, axis1=-2, axis2=-1))
        self._marginals = frozen.norm(*(np.repeat(values[..., None, :], rows, axis=-2) for values in (self._mean, sd)))

    def logpdf(self, Y: npt.ArrayLike) -> np.ndarray:
        """Joint log density of each row of ``Y``, of shape (rows, D); of shape (..., rows)."""
        z = solve_lower(self._factor, (np.asarray(Y, dtype=np.float64) - self._mean[..., None, :]).mT)
        log_det = np.sum(np.log(np.diagonal(self._factor, axis1=-2, axis2=-1)), axis=-1)
        return -np.sum(z * z, axis=-2) / 2 - (log_det + z.shape[-2] / 2 * LOG_2_PI)[..., None]

    def rvs(self, size: tuple[int, ...], random_state: RandomState = None) -> np.ndarray:
        """Draw rows of shape ``size``, (..., rows, D); entries of a row are correlated."""
        z = np.random.default_rng(random_state).standard_normal(size)
        return self._mean[..., None, :] + z @ self._factor.mT
