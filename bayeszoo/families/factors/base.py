"""Factor models with isotropic noise: their statistics, and the factors of rows.

Rows are N(mean, W W' + variance I), W of shape (D, q); rows with missing numbers (NaN) count with their observed ones.
Parameters are a mapping of ``mean`` (..., D), ``loadings`` (..., D, q) and ``variance`` (...,): leading axes are draws.
Tipping and Bishop 1999; PRML, section 12.2.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import lazy_loader
import numpy as np
import numpy.typing as npt

from bayeszoo.distributions import frozen
from bayeszoo.distributions.bases import ByMarginals
from bayeszoo.families.factors import loadings_shape, steps
from bayeszoo.families.statistics.patterns import Patterns, as_patterns
from bayeszoo.foundation.named import Arrays, Coords, Params, RandomState
from bayeszoo.model.base import Axes
from bayeszoo.model.capabilities import EM, Observable, Sufficient
from bayeszoo.model.capabilities.steps import Expectation
from bayeszoo.model.types import DeclaredModel
from bayeszoo.model.views import View

pm, likelihoods = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.likelihoods.ops.factors", suppress_warning=True)

_CELLS = 2**22
"""Most numbers held at once."""


class Factors(NamedTuple):
    """The Gaussian of each row's factors given its observed numbers: means (..., rows, q) and covariances.

    Covariances (..., rows, q, q) are equal for rows with the same numbers missing.
    """

    mean: np.ndarray
    covariance: np.ndarray


def latent_posterior(params: Params, Y: npt.ArrayLike) -> Factors:
    """Return mean and covariance of the factors of rows (rows, D): M^-1 W'(y - mean) and variance M^-1.

    A row without any number has those of the prior, 0 and I.
    """
    Y, q = np.asarray(Y, dtype=np.float64), np.shape(params["loadings"])[-1]
    leading = np.shape(params["variance"])
    mean, covariance = np.zeros((*leading, len(Y), q)), np.zeros((*leading, len(Y), q, q))
    for seen, rows in _patterns(Y):
        mean[..., rows, :], inverse, *_ = _factors_of_pattern(params, Y[rows], seen)
        covariance[..., rows, :, :] = (_column(params["variance"], 2) * inverse)[..., None, :, :]
    return Factors(mean, covariance)


def row_log_likelihood(params: Params, Y: npt.ArrayLike) -> np.ndarray:
    """Return the log density of the observed numbers of each row, shape (..., rows); 0 for a row without any.

    For rows N(0, C), y' C^-1 y = |y - W z|^2 / variance + |z|^2 at the mean z of the factors: no terms cancel.
    """
    Y = np.asarray(Y, dtype=np.float64)
    out = np.zeros((*np.shape(params["variance"]), len(Y)))
    for seen, rows in _patterns(Y):
        z, _, residual, log_det = _factors_of_pattern(params, Y[rows], seen)
        variance, free = _column(params["variance"], 1), seen.sum() - z.shape[-1]
        squares = np.sum(residual**2, axis=-1) / variance + np.sum(z**2, axis=-1)
        log_dets = free * np.log(variance) + log_det[..., None]
        out[..., rows] = -(seen.sum() * steps.LOG_2_PI + log_dets + squares) / 2
    return out


def reconstruction(params: Params, Y: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each number of rows (rows, D) given the observed numbers of its row.

    Both have shape (..., rows, D). For an observed number they are those of mean + W z, the number without noise; for a
    missing number, those of its prediction, noise included.
    """
    Y, latent = np.asarray(Y, dtype=np.float64), latent_posterior(params, Y)
    W = np.asarray(params["loadings"], dtype=np.float64)[..., None, :, :]
    mean = np.asarray(params["mean"])[..., None, :] + (W @ latent.mean[..., None])[..., 0]
    variance = np.sum((W @ latent.covariance) * W, axis=-1)
    return mean, np.sqrt(variance + np.isnan(Y) * _column(params["variance"], 2))


def _patterns(Y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return each pattern of observed numbers (D,), and the indices of its rows."""
    observed, pattern = np.unique(~np.isnan(Y), axis=0, return_inverse=True)
    return [(seen, np.flatnonzero(np.ravel(pattern) == p)) for p, seen in enumerate(observed)]


def _factors_of_pattern(params: Params, rows: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return mean factors of rows of one pattern, the inverse of M = W'W + variance I, residuals, and log |M|."""
    W = np.asarray(params["loadings"], dtype=np.float64)[..., seen, :]
    M = W.mT @ W + _column(params["variance"], 2) * np.eye(W.shape[-1])
    deviation = rows[:, seen] - np.asarray(params["mean"], dtype=np.float64)[..., None, seen]
    inverse = np.linalg.inv(M)
    factors = deviation @ W @ inverse
    return factors, inverse, deviation - factors @ W.mT, np.linalg.slogdet(M)[1]


def _column(values: npt.ArrayLike, axes: int) -> np.ndarray:
    """Append ``axes`` axes of length 1."""
    return np.reshape(values, (*np.shape(values), *[1] * axes))


class FactorRows(ByMarginals):
    """The distribution of N independent rows N(mean, W W' + variance I), with methods named as in SciPy.

    Mean (..., D), loadings (..., D, q) and variance (...,) may have leading axes of draws.
    """

    def __init__(self, mean: npt.ArrayLike, loadings: npt.ArrayLike, variance: npt.ArrayLike, rows: int) -> None:
        pairs = zip(("mean", "loadings", "variance"), (mean, loadings, variance), strict=True)
        self._params = {name: np.asarray(value, dtype=np.float64) for name, value in pairs}
        centre, W = self._params["mean"], self._params["loadings"]
        sd = np.sqrt(np.sum(W**2, axis=-1) + _column(variance, 1))
        shape = (*sd.shape[:-1], rows, sd.shape[-1])
        self._marginals = frozen.norm(*(np.broadcast_to(values[..., None, :], shape) for values in (centre, sd)))

    def logpdf(self, Y: npt.ArrayLike) -> np.ndarray:
        """Joint log density of the observed numbers of each row of ``Y`` (rows, D), shape (..., rows)."""
        Y, leading = np.asarray(Y, dtype=np.float64), np.shape(self._params["variance"])
        flat, step = one_axis_of_draws(self._params), max(1, _CELLS // max(Y.size, 1))
        pieces = range(0, len(flat["variance"]), step)
        densities = [row_log_likelihood({name: v[i : i + step] for name, v in flat.items()}, Y) for i in pieces]
        return np.concatenate(densities).reshape(*leading, len(Y))

    def rvs(self, size: tuple[int, ...], random_state: RandomState = None) -> np.ndarray:
        """Draw rows of shape ``size``, which is (..., rows, D)."""
        rng = np.random.default_rng(random_state)
        W, variance = self._params["loadings"], self._params["variance"]
        z = rng.standard_normal((*size[:-1], W.shape[-1]))
        return self.mean() + z @ W.mT + np.sqrt(_column(variance, 2)) * rng.standard_normal(size)


def one_axis_of_draws(params: Params) -> dict[str, np.ndarray]:
    """Flatten the leading axes of parameters into one; they are all axes of ``variance``."""
    leading = np.ndim(params["variance"])
    return {name: np.reshape(v, (-1, *np.shape(v)[leading:])) for name, v in params.items()}


def procrustes(loadings: npt.ArrayLike, reference: object) -> np.ndarray:
    """Return the rotations R, shape (..., q, q), that bring loadings W R nearest to a reference (D, q).

    R is orthogonal and may reflect. It can be undone, as W R R' = W: factors z of W become z R of W R. Schonemann 1966;
    `scipy.linalg.orthogonal_procrustes` does it for one draw.
    """
    left, _, right = np.linalg.svd(np.asarray(loadings, dtype=np.float64).mT @ np.asarray(reference))
    return np.asarray(left @ right)


def principal_axes(loadings: npt.ArrayLike) -> np.ndarray:
    """Return loadings (D, q) of the same W W' with orthogonal columns, longest first, largest entry positive.

    Leading axes are draws, over which W W' is averaged; the q largest axes of the average are returned.
    """
    W = np.asarray(loadings, dtype=np.float64)
    D, q = W.shape[-2:]
    draws = W.reshape(-1, D, q)
    stacked = np.swapaxes(draws, 0, 1).reshape(D, -1) / math.sqrt(len(draws))
    vectors, lengths, _ = np.linalg.svd(stacked, full_matrices=False)
    axes = vectors[:, :q] * lengths[:q]
    largest = axes[np.argmax(np.abs(axes), axis=0), np.arange(axes.shape[1])]
    return np.asarray(axes * np.where(largest < 0, -1.0, 1.0))


class FactorModel(Sufficient[Patterns], EM, Observable, family=True):
    """Rows N(mean, W W' + variance I) of D numbers, where W has q < D columns; numbers may be missing.

    Parameters are at least ``mean`` (D,), ``loadings`` (D, q) and ``variance``.
    """

    q: int

    def views(self) -> frozenset[View]:
        """Return the views of all models, and that of rows and columns along the first factors."""
        return super().views() | {View.FACTORS}

    @abstractmethod
    def prior(self, columns: int) -> Any:
        """Return the prior of the parameters for rows of D numbers, which must be more than the factors."""

    @abstractmethod
    def parameters(self, columns: int, dims: Axes) -> tuple[Any, Any, Any]:
        """Declare the prior within a PyMC model, and return mean, loadings and variance."""

    def e_step(self, params: Params, data: Any) -> Expectation:
        """Return expected statistics and the log likelihood at the parameters; data are rows or their statistics."""
        return steps.e_step(steps.Coefficients.known(params), as_patterns(data))

    def compressed(self, stats: Patterns) -> DeclaredModel:
        """Declare the density of the rows from their moments by pattern of missing numbers."""
        with pm.Model() as model:
            parameters = self.parameters(stats.size, {})
            kept = {"observed": stats.observed.astype(np.float64), "n": stats.n}
            kept |= {"row_mean": stats.mean, "scatter": stats.scatter}
            shared = [pm.Data(name, value) for name, value in kept.items()]
            pm.Potential("Y", likelihoods.ppca_log_likelihood(*parameters, *shared))
        return model

    def coords(self, data: Arrays) -> Coords:
        """Return the names of the columns, and the numbers of the factors."""
        return {"column": data["column"], "factor": np.arange(1, self.q + 1)}

    def statistics(self, data: Arrays) -> Patterns:
        """Return count, mean and scatter of the rows of each pattern of missing numbers; raise unless D > q."""
        self.prior(data["Y"].shape[1])
        return Patterns.of(data["Y"])

    def log_prior(self, params: Params, data: Any) -> np.ndarray:
        """Log density of the prior; leading axes are draws."""
        density: np.ndarray = self.prior(np.shape(params["mean"])[-1]).log_density(params)
        return density

    def log_likelihood(self, stats: Patterns, params: Params) -> np.ndarray:
        """Return the log density of the rows; leading axes of the parameters are draws."""
        flat = one_axis_of_draws({name: params[name] for name in ("mean", "loadings", "variance")})
        draws = (dict(zip(flat, draw, strict=True)) for draw in zip(*flat.values(), strict=True))
        return np.reshape([steps.value_and_gradient(stats, draw)[0] for draw in draws], np.shape(params["variance"]))

    def free_parameters(self, stats: Patterns) -> int:
        """Return D means, D q - q (q - 1) / 2 loadings up to their rotation, and one variance."""
        return stats.size + loadings_shape.count(stats.size, self.q) + 1

    def likelihood(self, params: Params, data: Arrays) -> FactorRows:
        """Return each row's Gaussian distribution; parameters with leading axes (...) give (..., rows)."""
        return FactorRows(params["mean"], params["loadings"], params["variance"], len(data["Y"]))

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return the q largest eigenvalues of a row's covariance, and the share of variance that factors explain."""
        W, variance = np.asarray(params["loadings"]), np.asarray(params["variance"])
        squares = np.linalg.svd(W, compute_uv=False) ** 2
        of_factors = squares.sum(axis=-1)
        total = of_factors + W.shape[-2] * variance
        return {"eigenvalues": squares + variance[..., None], "explained": of_factors / total}
