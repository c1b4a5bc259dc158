"""The inverse-Wishart distribution for PyMC, which has none, and Gaussians with such a covariance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt
import scipy
from pymc.distributions.transforms import Transform

from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.likelihoods.ops.covariances import GaussianTerms


def InverseWishart(name: str, nu: npt.ArrayLike, psi: np.ndarray, dims: Any = None) -> pt.TensorVariable:
    """Declare Sigma ~ InvWishart(nu, Psi), or K independent ones, sampled by their Cholesky factors.

    Parameters
    ----------
    name : str
        Name of the variable.
    nu : float, or ndarray of shape (K,)
        Degrees of freedom, > D - 1.
    psi : ndarray of shape (D, D) or (K, D, D)
        Scale matrix of each; the mean is Psi / (nu - D - 1).
    dims : tuple of str, optional
        Names of the axes.
    """
    nu = np.asarray(nu, dtype=np.float64)
    start = psi / (nu[..., None, None] + psi.shape[-1] + 1)
    return pm.CustomDist(
        name,
        *as_data(name, nu=nu, scale=psi, log_constant=_log_constant(nu, psi)),
        logp=_log_density,
        random=_draw_covariance,
        signature="(),(d,d),()->(d,d)",
        class_name="InverseWishart",
        shape=start.shape,
        dims=dims,
        transform=Cholesky(psi.shape[-1]),
        initval=start,
    )


def ScaledNormal(
    name: str,
    mean: np.ndarray,
    kappa: npt.ArrayLike,
    sigma: pt.TensorVariable,
    count: int | None = None,
    dims: Any = None,
) -> pt.TensorVariable:
    """Declare mu ~ N(mean, Sigma / kappa), or K of them; it compiles in a tenth of ``pm.MvNormal``'s time.

    Parameters
    ----------
    name : str
        Name of the variable.
    mean : ndarray of shape (D,) or (K, D)
        The mean of mu.
    kappa : float, or ndarray of shape (K,)
        Divisor of the covariance.
    sigma : variable of shape (D, D) or (K, D, D)
        The covariance.
    count : int, optional
        K, if K means share one covariance and ``dims`` do not give K.
    dims : str or tuple of str, optional
        Names of the axes.
    """
    return pm.CustomDist(
        name,
        *as_data(name, mean=mean, kappa=np.asarray(kappa, dtype=np.float64)),
        sigma,
        logp=_log_density_of_normal,
        random=_draw_normal,
        signature="(d),(),(d,d)->(d)",
        shape=None if count is None else (count, mean.shape[-1]),
        dims=dims,
    )


def as_data(name: str, **values: Any) -> list[Any]:
    """Pass a prior's numbers as data, so that code compiled for one prior serves all."""
    return [pm.Data(f"{name}_{key}", value) for key, value in values.items()]


def gaussian_log_likelihood(
    mu: pt.TensorVariable,
    sigma: pt.TensorVariable,
    n: pt.TensorVariable,
    mean: pt.TensorVariable,
    scatter: pt.TensorVariable,
) -> pt.TensorVariable:
    """Log density of n rows N(mu, Sigma), from their mean and the scatter about it; or of each of K sets (K,)."""
    n, shift = pt.as_tensor_variable(n), mean - mu
    about_mu = scatter + n[..., None, None] * shift[..., :, None] * shift[..., None, :]
    return _gaussian_terms(sigma, about_mu, n) - n * mean.shape[-1] * (LOG_2_PI / 2)


def _gaussian_terms(sigma: pt.TensorVariable, scatter: pt.TensorVariable, n: Any) -> pt.TensorVariable:
    """Return -(n log|Sigma| + tr(Sigma^-1 S)) / 2 of one matrix (D, D), or of each of (K, D, D)."""
    if sigma.type.ndim == 2:
        return GaussianTerms()(sigma[None], scatter[None], pt.atleast_1d(n))[0][0]
    return GaussianTerms()(sigma, scatter, pt.atleast_1d(n))[0]


def _log_constant(nu: np.ndarray, psi: np.ndarray) -> np.ndarray:
    size, log_det = psi.shape[-1], np.linalg.slogdet(psi)[1]
    return np.asarray(nu / 2 * (log_det - size * math.log(2)) - scipy.special.multigammaln(nu / 2, size))


def _log_density(
    sigma: pt.TensorVariable, nu: pt.TensorVariable, psi: pt.TensorVariable, constant: pt.TensorVariable
) -> pt.TensorVariable:
    """Log density of each matrix as SciPy's ``invwishart(df=nu, scale=psi)``."""
    return constant + _gaussian_terms(sigma, psi + pt.zeros_like(sigma), nu + sigma.shape[-1] + np.float64(1))


def _log_density_of_normal(
    value: pt.TensorVariable, mean: pt.TensorVariable, kappa: pt.TensorVariable, sigma: pt.TensorVariable
) -> pt.TensorVariable:
    if value.type.ndim == 2 and sigma.type.shape[0] == 1:
        sigma = pt.broadcast_to(sigma, (value.shape[0], *sigma.shape[1:]))
    shift, size = value - mean, value.shape[-1]
    scaled = kappa[..., None, None] * shift[..., :, None] * shift[..., None, :]
    terms = _gaussian_terms(sigma, scaled, np.float64(1))
    return terms + size * (pt.log(kappa) / 2 - LOG_2_PI / 2)


def _draw_covariance(nu: Any, psi: Any, constant: Any, rng: np.random.Generator, size: Any = None) -> np.ndarray:
    shape, matrix_shape = size or np.shape(nu), np.shape(psi)[-2:]
    parameters = zip(
        np.broadcast_to(nu, shape).ravel(),
        np.broadcast_to(psi, (*shape, *matrix_shape)).reshape(-1, *matrix_shape),
        strict=True,
    )
    drawn = [scipy.stats.invwishart.rvs(float(freedom), scale, random_state=rng) for freedom, scale in parameters]
    return np.reshape(drawn, (*shape, *matrix_shape))


def _draw_normal(mean: Any, kappa: Any, sigma: Any, rng: np.random.Generator, size: Any = None) -> np.ndarray:
    factor = np.linalg.cholesky(sigma / np.asarray(kappa)[..., None, None])
    size = np.broadcast_shapes(mean.shape[:-1], factor.shape[:-2]) if size is None else size
    z = rng.standard_normal((*size, mean.shape[-1]))
    return mean + (factor @ z[..., None])[..., 0]


class Cholesky(Transform):
    """A covariance matrix as its Cholesky factor L with the log of the diagonal, packed by rows.

    Every real vector of length D (D + 1) / 2, D the ``size``, is a covariance matrix, so a sampler cannot leave the
    cone. A leading axis is one of several matrices.
    """

    name = "cholesky"

    def __init__(self, size: int) -> None:
        self.rows, self.columns = np.tril_indices(size)
        self.diagonal, self.size = self.rows == self.columns, size

    def forward(self, value: Any, *inputs: Any) -> pt.TensorVariable:
        """Map Sigma, shape (D, D) or (K, D, D), to the packed factor."""
        packed = pt.linalg.cholesky(value)[..., self.rows, self.columns]
        return pt.switch(self.diagonal, pt.log(pt.switch(self.diagonal, packed, np.float64(1))), packed)

    def backward(self, value: pt.TensorVariable, *inputs: Any) -> pt.TensorVariable:
        """Map the packed factor to Sigma = L L', by a sum of products, which numba compiles faster than ``@``."""
        index = np.zeros((self.size, self.size), dtype=np.int64)
        index[self.rows, self.columns] = np.arange(len(self.rows))
        packed = pt.switch(self.diagonal, pt.exp(pt.switch(self.diagonal, value, np.float64(0))), value)
        factor = packed[..., index] * np.tri(self.size)
        return pt.sum(factor[..., :, None, :] * factor[..., None, :, :], axis=-1)

    def log_jac_det(self, value: pt.TensorVariable, *inputs: Any) -> pt.TensorVariable:
        """Log of |d Sigma / d value| = 2^D prod L_ii^(D - i + 2), with i = 1..D, of each matrix.

        The lower triangle of L L' has derivative 2^D prod L_ii^(D - i + 1) in that of L (Muirhead 1982, theorem
        2.1.9), and each L_ii is the exponential of its coordinate.
        """
        powers = np.where(self.diagonal, self.size + 1.0 - self.rows, 0.0)
        return np.float64(self.size * np.log(2.0)) + pt.sum(powers * value, axis=-1)
