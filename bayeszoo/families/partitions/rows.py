"""Rows at places of features: their cells, and their distribution as a mixture over the boxes of leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bayeszoo.distributions import frozen
from bayeszoo.distributions.averages.mixture_rows import RealRows
from bayeszoo.distributions.bases import ByVariance
from bayeszoo.foundation.named import RandomState

NEGLIGIBLE = 1e-14
"""Relative probability below which a leaf is left out of a mixture, if it is so at every value of the noise."""


def cells_of(X: np.ndarray, cuts: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the cell (n, F) of each row along each feature: the number of cuts below the value."""
    columns = [np.searchsorted(of_feature, column, side="left") for of_feature, column in zip(cuts, X.T, strict=True)]
    return np.column_stack(columns) if columns else np.zeros((len(X), 0), dtype=np.int64)


def mixture(weights: np.ndarray, mean: np.ndarray, sd: np.ndarray, shape: tuple[int, ...]) -> RealRows:
    """Return a mixture (*shape, 1) of normals with unnormalized weights, means and sds (points, B)."""
    kept = np.max(weights, axis=0) > NEGLIGIBLE * np.max(weights)
    share, loc, scale = (np.reshape(values[:, kept], (*shape, 1, -1)) for values in (weights, mean, sd))
    return RealRows(share / share.sum(axis=-1, keepdims=True), frozen.norm(loc, scale))


class RowsOfCells(ByVariance):
    """Rows (..., R) in groups, where all rows of a group have the distribution (..., 1) of its cell."""

    def __init__(self, laws: Iterable[RealRows], group: np.ndarray) -> None:
        self._laws, self._group = list(laws), group

    def _by_row(self, values: Callable[[RealRows], np.ndarray]) -> np.ndarray:
        """Repeat a number (..., 1) of each cell for its rows, (..., R)."""
        return np.concatenate([values(law) for law in self._laws], axis=-1)[..., self._group]

    def _of_rows(self, name: str, y: Any) -> np.ndarray:
        """Return a method of the rows' distributions at their values, (..., R)."""
        y = np.asarray(y)[..., None] if np.ndim(y) == 0 else np.asarray(y)
        y = np.broadcast_to(y, (*y.shape[:-1], len(self._group)))
        result = np.empty(np.broadcast_shapes(y.shape, (*self._laws[0].mean().shape[:-1], len(self._group))))
        for k, law in enumerate(self._laws):
            rows = self._group == k
            result[..., rows] = getattr(law, name)(y[..., rows])
        return result

    def mean(self) -> np.ndarray:
        """Return the means."""
        return self._by_row(lambda law: law.mean())

    def var(self) -> np.ndarray:
        """Return the variances."""
        return self._by_row(lambda law: law.var())

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantiles at level q."""
        return self._by_row(lambda law: law.ppf(q))

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

    def rvs(self, size: tuple[int, ...], random_state: RandomState = None) -> np.ndarray:
        """Draw rows independently, of shape ``size``, which ends in the rows."""
        rng = np.random.default_rng(random_state)
        drawn = np.empty(size)
        for k, law in enumerate(self._laws):
            rows = np.flatnonzero(self._group == k)
            drawn[..., rows] = law.rvs((*size[:-1], len(rows)), rng)
        return drawn
