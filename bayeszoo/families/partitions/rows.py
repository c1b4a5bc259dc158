"""Rows at places of features: the cells they are in, and their distribution as a mixture over the boxes of leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions.bases import ByVariance
from bayeszoo.distributions.mixture_rows import RealRows
from bayeszoo.distributions.special import log_normal

NEGLIGIBLE = 1e-14
"""Probability of a leaf, at every value of the noise, below which it is left out of a mixture."""


def cells_of(X: np.ndarray, cuts: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the cell (n, F) of each row along each feature: how many of its cuts are below the value."""
    columns = [np.searchsorted(own, column, side="left") for own, column in zip(cuts, X.T, strict=True)]
    return np.column_stack(columns) if columns else np.zeros((len(X), 0), dtype=np.int64)


class _Normals:
    """Normal distributions, without the checks of SciPy's: quantiles of a mixture ask for each of them many times."""

    def __init__(self, mean: np.ndarray, sd: np.ndarray) -> None:
        self._mean, self._sd = mean, sd

    def mean(self) -> np.ndarray:
        """Return the means."""
        return self._mean

    def var(self) -> np.ndarray:
        """Return the variances."""
        return np.square(self._sd)

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantiles of a level."""
        return np.asarray(self._mean + self._sd * scipy.special.ndtri(q))

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """Return the probabilities of at most ``y``."""
        return np.asarray(scipy.special.ndtr((y - self._mean) / self._sd))

    def logcdf(self, y: np.ndarray) -> np.ndarray:
        """Return the log probabilities of at most ``y``."""
        return np.asarray(scipy.special.log_ndtr((y - self._mean) / self._sd))

    def logsf(self, y: np.ndarray) -> np.ndarray:
        """Return the log probabilities of more than ``y``."""
        return np.asarray(scipy.special.log_ndtr((self._mean - y) / self._sd))

    def logpdf(self, y: np.ndarray) -> np.ndarray:
        """Return the log densities."""
        return log_normal(y, self._mean, np.square(self._sd))

    def rvs(self, size: tuple[int, ...], random_state: np.random.Generator) -> np.ndarray:
        """Draw from each."""
        return np.asarray(self._mean + self._sd * random_state.standard_normal(size))


def mixture(weights: np.ndarray, mean: np.ndarray, sd: np.ndarray, shape: tuple[int, ...]) -> RealRows:
    """Return a mixture (*shape, 1) of normals by weights, which need not add up to 1, means and sds (points, B)."""
    kept = np.max(weights, axis=0) > NEGLIGIBLE * np.max(weights)
    own, loc, scale = (np.reshape(each[:, kept], (*shape, 1, -1)) for each in (weights, mean, sd))
    return RealRows(own / own.sum(axis=-1, keepdims=True), _Normals(loc, scale))


class RowsOfCells(ByVariance):
    """Rows (..., R) in groups, all rows of a group with the distribution (..., 1) of its cell."""

    def __init__(self, laws: Iterable[RealRows], group: np.ndarray) -> None:
        self._laws, self._group = list(laws), group

    def _of_each(self, values: Callable[[RealRows], np.ndarray]) -> np.ndarray:
        """Put a number (..., 1) of each cell where its rows are."""
        return np.concatenate([values(law) for law in self._laws], axis=-1)[..., self._group]

    def _of_rows(self, name: str, y: Any) -> np.ndarray:
        """Return a function of the rows' values."""
        y = np.asarray(y)[..., None] if np.ndim(y) == 0 else np.asarray(y)
        y = np.broadcast_to(y, (*y.shape[:-1], len(self._group)))
        result = np.empty(np.broadcast_shapes(y.shape, (*self._laws[0].mean().shape[:-1], len(self._group))))
        for k, law in enumerate(self._laws):
            own = self._group == k
            result[..., own] = getattr(law, name)(y[..., own])
        return result

    def mean(self) -> np.ndarray:
        """Return the means."""
        return self._of_each(lambda law: law.mean())

    def var(self) -> np.ndarray:
        """Return the variances."""
        return self._of_each(lambda law: law.var())

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantiles of a level."""
        return self._of_each(lambda law: law.ppf(q))

    def cdf(self, y: Any) -> np.ndarray:
        """Return the probabilities of at most ``y``."""
        return self._of_rows("cdf", y)

    def logcdf(self, y: Any) -> np.ndarray:
        """Return the log probabilities of at most ``y``."""
        return self._of_rows("logcdf", y)

    def logsf(self, y: Any) -> np.ndarray:
        """Return the log probabilities of more than ``y``."""
        return self._of_rows("logsf", y)

    def logpdf(self, y: Any) -> np.ndarray:
        """Return the log densities."""
        return self._of_rows("logpdf", y)

    def rvs(self, size: tuple[int, ...], random_state: Any = None) -> np.ndarray:
        """Draw rows, each by itself, of shape ``size``, which ends in the rows."""
        rng = np.random.default_rng(random_state)
        drawn = np.empty(size)
        for k, law in enumerate(self._laws):
            own = np.flatnonzero(self._group == k)
            drawn[..., own] = law.rvs((*size[:-1], len(own)), rng)
        return drawn
