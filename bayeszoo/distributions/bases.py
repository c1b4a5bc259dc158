"""Bases of distributions of rows: moments from variances or from entries, and stacks of distributions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bayeszoo.foundation.named import RandomState

TIE = 1 - 1e-12
"""A cumulative mass that reaches a level up to rounding has reached it."""


class ByVariance(ABC):
    """A distribution whose standard deviations follow from its variances."""

    @abstractmethod
    def var(self) -> np.ndarray:
        """Return the variance of each entry."""

    def std(self) -> np.ndarray:
        """Return the standard deviation of each entry."""
        return np.sqrt(self.var())


class OfIndicators(ByVariance):
    """A distribution of categories, whose moments and draws are those of their indicators."""

    @abstractmethod
    def mean(self) -> np.ndarray:
        """Return the probability of each category, (..., rows, K)."""

    def var(self) -> np.ndarray:
        """Return the variance of each indicator."""
        p = self.mean()
        return np.asarray(p * (1 - p))

    def support(self) -> tuple[float, float]:
        """Return the ends of the support."""
        return 0.0, 1.0

    def cdf(self, k: npt.ArrayLike) -> np.ndarray:
        """Return the probability that each indicator is at most ``k``."""
        k = np.asarray(k, dtype=np.float64)
        return np.where(k < 0, 0.0, np.where(k < 1, 1 - self.mean(), 1.0))

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantile of each indicator, 0 or 1."""
        return np.where(1 - self.mean() >= q * TIE, 0.0, 1.0)

    @abstractmethod
    def rvs(self, size: tuple[int, ...], random_state: RandomState = None) -> np.ndarray:
        """Draw indicators of shape ``size``, which ends in (rows, K)."""

    @abstractmethod
    def codes(self, drawn: np.ndarray) -> np.ndarray:
        """Return category codes, as in data, from indicators (..., rows, K)."""


class ByMarginals:
    """Moments, distribution functions and quantiles of each entry, from the entries' distributions, `_marginals`."""

    _marginals: Any

    def mean(self) -> np.ndarray:
        """Return the mean of each entry; as SciPy returns it if undefined."""
        return np.asarray(self._marginals.mean())

    def var(self) -> np.ndarray:
        """Return the variance of each entry; as SciPy returns it if undefined."""
        return np.asarray(self._marginals.var())

    def std(self) -> np.ndarray:
        """Return the standard deviation of each entry; as SciPy returns it if undefined."""
        return np.asarray(self._marginals.std())

    def support(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the support of each entry."""
        low, high = self._marginals.support()
        return np.asarray(low), np.asarray(high)

    def cdf(self, k: npt.ArrayLike) -> np.ndarray:
        """Return P(entry <= k) for each entry."""
        return np.asarray(self._marginals.cdf(k))

    def logcdf(self, k: npt.ArrayLike) -> np.ndarray:
        """Return log P(entry <= k) for each entry."""
        return np.asarray(self._marginals.logcdf(k))

    def logsf(self, k: npt.ArrayLike) -> np.ndarray:
        """Return log P(entry > k) for each entry."""
        return np.asarray(self._marginals.logsf(k))

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantile of each entry; NaN where it is not known."""
        return np.asarray(self._marginals.ppf(q))


class Stackable(ABC):
    """A distribution whose parameters may have leading axes, so that several can be stacked into one."""

    def is_of_kind(self, other: object) -> bool:
        """Say whether two distributions differ only in their parameters."""
        return type(other) is type(self)

    @abstractmethod
    def beside(self, laws: Sequence[Self], axes: tuple[int, ...]) -> Self:
        """Stack distributions of this kind and shape, this one included, to shape (*axes, *own shape)."""


class SideBySide:
    """A stack of distributions at P points, shape (P, *own shape), that calls the methods of each."""

    def __init__(self, laws: Sequence[object], axes: tuple[int, ...]) -> None:
        self._each, self._axes = laws, axes

    def __getattr__(self, name: str) -> Callable[..., np.ndarray]:
        if name.startswith("_"):  # copying and pickling look these up before __init__ has run
            raise AttributeError(name)
        methods = [getattr(law, name) for law in self._each]

        def at_all(*values: object) -> np.ndarray:
            stacked = np.stack([np.asarray(method(*values)) for method in methods])
            return stacked.reshape(*self._axes, *stacked.shape[1:])

        return at_all

    def support(self) -> tuple[float, float]:
        """Return the ends of the support."""
        ends = [law.support() if hasattr(law, "support") else (-np.inf, np.inf) for law in self._each]
        return float(np.min([low for low, _ in ends])), float(np.max([high for _, high in ends]))


class RowByRow:
    """Distributions of single rows (..., 1) as one of all rows (..., rows), that calls the methods of each.

    ``axis`` is the axis of rows in the methods' results.
    """

    def __init__(self, laws: Sequence[object], axis: int) -> None:
        self._each, self._axis = laws, axis

    def __getattr__(self, name: str) -> Callable[..., np.ndarray]:
        if name.startswith("_"):  # copying and pickling look these up before __init__ has run
            raise AttributeError(name)
        methods = [getattr(law, name) for law in self._each]

        def of_all(*y: np.ndarray) -> np.ndarray:
            rows = [np.asarray(method(*(values[[i]] for values in y))) for i, method in enumerate(methods)]
            return np.concatenate(rows, axis=self._axis)

        return of_all


def stacked(laws: Sequence[Any], axes: tuple[int, ...]) -> Any:
    """Stack distributions at points into one; if all are of one kind, it computes at all points at once."""
    first = laws[0]
    if isinstance(first, Stackable) and all(first.is_of_kind(law) for law in laws):
        return first.beside(laws, axes)
    return SideBySide(laws, axes)
