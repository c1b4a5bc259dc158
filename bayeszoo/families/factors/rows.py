"""Factors of Gaussian rows: where a row lies along them, what it looks like seen through them, and how they compare.

Rows are N(mean, W W' + variance I), W of shape (D, q), and those with missing numbers (NaN) count with what they have.
Parameters are a mapping of ``mean`` (..., D), ``loadings`` (..., D, q) and ``variance`` (...,): leading axes are draws.
Tipping and Bishop 1999; PRML, section 12.2.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy

from bayeszoo.model.base import Values

_CELLS = 2**22
"""Numbers that are held at once."""
_LOG_2_PI = math.log(2 * math.pi)


class Factors(NamedTuple):
    """The factors of each row given what was observed of it: Gaussian, of means (..., rows, q) and covariances.

    Covariances (..., rows, q, q) are the same for all rows with the same numbers missing.
    """

    mean: np.ndarray
    covariance: np.ndarray


class _Given(NamedTuple):
    """Factors given rows of one pattern, by Woodbury's identity: M = W'W + variance I."""

    residual: np.ndarray
    factors: np.ndarray
    inverse: np.ndarray
    log_det: np.ndarray


def latent_posterior(params: Values, Y: Any) -> Factors:
    """Return mean and covariance of the factors of rows (rows, D): M^-1 W'(y - mean) and variance M^-1.

    A row with no number at all has those of the prior, 0 and I.
    """
    Y, q = np.asarray(Y, dtype=np.float64), np.shape(params["loadings"])[-1]
    leading = np.shape(params["variance"])
    mean, covariance = np.zeros((*leading, len(Y), q)), np.zeros((*leading, len(Y), q, q))
    for seen, rows in _patterns(Y):
        found = _given(params, Y[rows], seen)
        mean[..., rows, :] = found.factors
        covariance[..., rows, :, :] = (_column(params["variance"], 2) * found.inverse)[..., None, :, :]
    return Factors(mean, covariance)


def row_log_likelihood(params: Values, Y: Any) -> np.ndarray:
    """Return the log density of what was observed of each row, shape (..., rows); of nothing it is 0.

    Of rows N(mean, C): y' C^-1 y is |y - W z|^2 / variance + |z|^2 at the mean z of the factors, and nothing cancels.
    """
    Y = np.asarray(Y, dtype=np.float64)
    out = np.zeros((*np.shape(params["variance"]), len(Y)))
    for seen, rows in _patterns(Y):
        found, variance = _given(params, Y[rows], seen), _column(params["variance"], 1)
        free = seen.sum() - np.shape(params["loadings"])[-1]
        squares = np.sum(found.residual**2, axis=-1) / variance + np.sum(found.factors**2, axis=-1)
        log_det = free * np.log(variance) + found.log_det[..., None]
        out[..., rows] = -(seen.sum() * _LOG_2_PI + log_det + squares) / 2
    return out


def reconstruction(params: Values, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each number of rows (rows, D) given what was observed of its row.

    Both have shape (..., rows, D). Where a number was observed they are of mean + W z, which is the row without its
    noise; where it is missing, of the number itself, noise and all: a prediction.
    """
    Y, found = np.asarray(Y, dtype=np.float64), latent_posterior(params, Y)
    W = np.asarray(params["loadings"], dtype=np.float64)[..., None, :, :]
    mean = np.asarray(params["mean"])[..., None, :] + (W @ found.mean[..., None])[..., 0]
    variance = np.sum((W @ found.covariance) * W, axis=-1)
    return mean, np.sqrt(variance + np.isnan(Y) * _column(params["variance"], 2))


def _patterns(Y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return what was observed, and the indices of the rows of which it was."""
    observed, which = np.unique(~np.isnan(Y), axis=0, return_inverse=True)
    return [(seen, np.flatnonzero(np.ravel(which) == p)) for p, seen in enumerate(observed)]


def _given(params: Values, rows: np.ndarray, seen: np.ndarray) -> _Given:
    W = np.asarray(params["loadings"], dtype=np.float64)[..., seen, :]
    M = W.mT @ W + _column(params["variance"], 2) * np.eye(W.shape[-1])
    deviation = rows[:, seen] - np.asarray(params["mean"], dtype=np.float64)[..., None, seen]
    inverse = np.linalg.inv(M)
    factors = deviation @ W @ inverse
    return _Given(deviation - factors @ W.mT, factors, inverse, np.linalg.slogdet(M)[1])


def _column(values: Any, axes: int) -> np.ndarray:
    """Add so many axes at the end."""
    return np.reshape(values, (*np.shape(values), *[1] * axes))


class FactorRows:
    """The distribution of ``rows`` rows N(mean, W W' + variance I), all alike, with SciPy's methods.

    Mean (..., D), loadings (..., D, q) and variance (...,) have draws as leading axes.
    """

    def __init__(self, mean: Any, loadings: Any, variance: Any, rows: int) -> None:
        values = zip(("mean", "loadings", "variance"), (mean, loadings, variance), strict=True)
        self._params = {name: np.asarray(value, dtype=np.float64) for name, value in values}
        self._rows = rows

    def _tile(self, values: np.ndarray) -> np.ndarray:
        return np.broadcast_to(values[..., None, :], (*values.shape[:-1], self._rows, values.shape[-1]))

    def mean(self) -> np.ndarray:
        """Return the mean of each entry, shape (..., rows, D)."""
        return self._tile(self._params["mean"])

    def var(self) -> np.ndarray:
        """Return the variance of each entry, shape (..., rows, D)."""
        return self._tile(np.sum(self._params["loadings"] ** 2, axis=-1) + self._params["variance"][..., None])

    def std(self) -> np.ndarray:
        """Return the standard deviation of each entry, shape (..., rows, D)."""
        return np.sqrt(self.var())

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantile of each entry, shape (..., rows, D)."""
        return self.mean() + self.std() * scipy.special.ndtri(q)

    def logpdf(self, Y: Any) -> np.ndarray:
        """Joint log density of what was observed of each row of ``Y`` (rows, D), shape (..., rows)."""
        Y, leading = np.asarray(Y, dtype=np.float64), np.shape(self._params["variance"])
        flat, step = one_axis_of_draws(self._params), max(1, _CELLS // max(Y.size, 1))
        pieces = range(0, len(flat["variance"]), step)
        found = [row_log_likelihood({name: v[i : i + step] for name, v in flat.items()}, Y) for i in pieces]
        return np.concatenate(found).reshape(*leading, len(Y))

    def rvs(self, size: tuple[int, ...], random_state: Any = None) -> np.ndarray:
        """Draw rows of shape ``size``, which is (..., rows, D)."""
        rng = np.random.default_rng(random_state)
        W, variance = self._params["loadings"], self._params["variance"]
        z = rng.standard_normal((*size[:-1], W.shape[-1]))
        return self.mean() + z @ W.mT + np.sqrt(_column(variance, 2)) * rng.standard_normal(size)


def one_axis_of_draws(params: Values) -> dict[str, np.ndarray]:
    """Make the leading axes of parameters one; ``variance`` has no other axis."""
    leading = np.ndim(params["variance"])
    return {name: np.reshape(v, (-1, *np.shape(v)[leading:])) for name, v in params.items()}


def procrustes(loadings: Any, reference: Any) -> np.ndarray:
    """Return the rotations R, shape (..., q, q), that bring loadings W R nearest to a reference (D, q).

    R is orthogonal and may reflect. W R R' is W again, so nothing is lost: factors z of W are z R of W R. Schonemann
    1966; as `scipy.linalg.orthogonal_procrustes`, of many draws at once.
    """
    left, _, right = np.linalg.svd(np.asarray(loadings, dtype=np.float64).mT @ np.asarray(reference))
    return np.asarray(left @ right)


def principal_axes(loadings: Any) -> np.ndarray:
    """Return loadings (D, q) of the same W W' with orthogonal columns, longest first, largest entry positive.

    Leading axes are draws, over which W W' is averaged; of it the q largest axes are taken.
    """
    W = np.asarray(loadings, dtype=np.float64)
    D, q = W.shape[-2:]
    draws = W.reshape(-1, D, q)
    stacked = np.swapaxes(draws, 0, 1).reshape(D, -1) / math.sqrt(len(draws))
    vectors, lengths, _ = np.linalg.svd(stacked, full_matrices=False)
    axes = vectors[:, :q] * lengths[:q]
    largest = axes[np.argmax(np.abs(axes), axis=0), np.arange(axes.shape[1])]
    return np.asarray(axes * np.where(largest < 0, -1.0, 1.0))
