"""Rows sorted by group, and the groups' intercepts given the weights and the intercepts' standard deviation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import lazy_loader
import numpy as np
import scipy

from bayeszoo.families.glm.links import Link, Log
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.numerics.constants import TINY

loops = lazy_loader.load("bayeszoo.likelihoods.loops.intercepts", suppress_warning=True)


@dataclass(frozen=True, eq=False)
class SortedRows:
    """Outcomes and sizes (n,) sorted by group, those of group j from ``starts[j]`` on, as the compiled loops need them.

    ``order`` holds the rows of the data with the same terms, ``offset`` (n,) is added to the linear predictors, and
    ``constant`` to the log density.
    """

    link: Link
    order: np.ndarray
    outcome: np.ndarray
    sizes: np.ndarray
    offset: np.ndarray
    starts: np.ndarray
    constant: float

    @classmethod
    def of(
        cls, link: Link, design: np.ndarray, outcome: np.ndarray, sizes: np.ndarray, codes: np.ndarray, groups: int
    ) -> Self:
        """Sort rows by the codes of their groups; rows of one group with equal terms (T,) are merged."""
        keys = np.column_stack([codes, design])
        _, order, row = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        row = np.ravel(row)
        starts = np.concatenate([[0], np.cumsum(np.bincount(codes[order], minlength=groups))]).astype(np.int64)
        total, size = (np.bincount(row, values, len(order)) for values in (outcome, sizes))
        if not isinstance(link, Log):
            return cls(link, order, total, size, np.zeros(len(order)), starts, 0.0)
        constants = outcome * (np.log(sizes) - np.log(size[row])) - scipy.special.gammaln(outcome + 1)
        return cls(link, order, total, np.ones(len(order)), np.log(size), starts, math.fsum(constants))

    def _rows(self) -> tuple[Any, ...]:
        return self.outcome, self.sizes, self.starts, self.link.code

    def log_density(self, eta: np.ndarray, sd: np.ndarray) -> np.ndarray:
        """Return the log density of all rows, intercepts integrated out, (P,), at predictors (P, n) and sd (P,)."""
        by_group = loops.intercepts_values(np.ascontiguousarray(eta + self.offset), sd, *self._rows())
        return np.asarray(by_group.sum(axis=-1) + self.constant)

    def derivatives(
        self, w: np.ndarray, sd: float, design: np.ndarray, offset: np.ndarray
    ) -> tuple[float, np.ndarray, float, np.ndarray]:
        """Return the log density, its slopes in the weights and in sd, and minus the second derivatives (T, T)."""
        value, *slopes = loops.intercepts_derivatives(w, float(sd), design, offset, *self._rows(), True)
        return value + self.constant, *slopes

    def at(self, function: Callable[..., Any], eta: np.ndarray, sd: np.ndarray, *arguments: np.ndarray) -> Any:
        """Call a compiled loop with further arguments, predictors (P, n) and standard deviations (P,)."""
        return function(*arguments, np.ascontiguousarray(eta + self.offset), sd, *self._rows())


class GroupIntercepts:
    """The distribution of each group's intercept given its rows, weights (..., T) and standard deviation (...).

    The density is computed on a grid, and interpolated by polynomials of degree five: quantiles are accurate to 1e-8 in
    probability.
    """

    def __init__(self, rows: SortedRows, design: np.ndarray, w: Any, sd: Any) -> None:
        self._rows, self._design = rows, design
        self._w, self._sd = np.asarray(w, dtype=np.float64), np.maximum(np.asarray(sd, dtype=np.float64), TINY)
        self._shape = (*self._sd.shape, len(rows.starts) - 1)

    def _looped(self, function: Callable[..., Any], *arguments: Any) -> np.ndarray:
        """Call a compiled loop with arrays of the shape of all intercepts, in blocks of points."""
        sd, groups = self._sd.reshape(-1), self._shape[-1]
        w = self._w.reshape(len(sd), self._design.shape[1])
        arrays = [np.broadcast_to(values, self._shape).reshape(len(sd), groups) for values in arguments]
        parts = []
        for block in blocks(len(sd), max(len(self._design), groups)):
            inputs = [np.ascontiguousarray(values[block], dtype=np.float64) for values in arrays]
            parts.append(np.asarray(self._rows.at(function, w[block] @ self._design.T, sd[block], *inputs)))
        joined = np.concatenate(parts, axis=-2) if parts else np.zeros((0, groups))
        return joined.reshape(*joined.shape[:-2], *self._shape)

    def _of_units(self, z: np.ndarray) -> np.ndarray:
        return np.asarray(self._sd[..., None] * z)

    @cached_property
    def _moments(self) -> np.ndarray:
        return self._looped(loops.intercepts_moments)

    @cached_property
    def _values(self) -> np.ndarray:
        return self._looped(loops.intercepts_values)

    def mean(self) -> np.ndarray:
        """Return the means."""
        return self._of_units(self._moments[0])

    def std(self) -> np.ndarray:
        """Return the standard deviations."""
        return self._of_units(self._moments[1])

    def cdf(self, x: Any) -> np.ndarray:
        """Return the probability of at most x."""
        return self._looped(loops.intercepts_cdf, np.asarray(x) / self._sd[..., None])

    def ppf(self, q: Any) -> np.ndarray:
        """Return the quantiles at level q."""
        return self._of_units(self._looped(loops.intercepts_quantiles, q))

    def logpdf(self, x: Any) -> np.ndarray:
        """Return the log density."""
        heights = self._looped(loops.intercepts_heights, np.asarray(x) / self._sd[..., None])
        return np.asarray(heights - self._values - np.log(self._sd)[..., None])

    def pdf(self, x: Any) -> np.ndarray:
        """Return the density."""
        return np.exp(self.logpdf(x))

    def rvs(self, size: Any = None, random_state: Any = None) -> np.ndarray:
        """Draw by the quantiles of uniform numbers; leading axes of ``size`` are independent draws."""
        size = self._shape if size is None else size
        axes = size[: len(size) - len(self._shape)]
        draws = [self.ppf(random_state.uniform(size=self._shape)) for _ in range(math.prod(axes))]
        return np.reshape(draws, size)
