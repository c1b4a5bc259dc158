"""What distributions of rows share: moments from variances or from entries, and several of them as one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

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
    """A distribution of categories whose moments and draws are those of an indicator of each."""

    @abstractmethod
    def mean(self) -> np.ndarray:
        """Return the probability of each category, (..., rows, K)."""

    def var(self) -> np.ndarray:
        """Return the variance of each indicator."""
        p = self.mean()
        return np.asarray(p * (1 - p))

    def cdf(self, k: npt.ArrayLike) -> np.ndarray:
        """Return the probability that each indicator is at most ``k``."""
        k = np.asarray(k, dtype=np.float64)
        return np.where(k < 0, 0.0, np.where(k < 1, 1 - self.mean(), 1.0))

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantile of each indicator, 0 or 1."""
        return np.where(1 - self.mean() >= q * TIE, 0.0, 1.0)

    @abstractmethod
    def rvs(self, size: tuple[int, ...], random_state: Any = None) -> np.ndarray:
        """Draw indicators of shape ``size``, which ends in (rows, K)."""

    @abstractmethod
    def codes(self, drawn: np.ndarray) -> np.ndarray:
        """Return the categories of indicators (..., rows, K) as rows of data have them."""


class ByMarginals:
    """Moments, distribution functions and quantiles of each entry, by the entries' distributions, `_marginals`."""

    _marginals: Any

    def mean(self) -> np.ndarray:
        """Return the mean of each entry; without one as SciPy says it."""
        return np.asarray(self._marginals.mean())

    def var(self) -> np.ndarray:
        """Return the variance of each entry; without one as SciPy says it."""
        return np.asarray(self._marginals.var())

    def std(self) -> np.ndarray:
        """Return the standard deviation of each entry; without one as SciPy says it."""
        return np.asarray(self._marginals.std())

    def cdf(self, k: npt.ArrayLike) -> np.ndarray:
        """Return the probability of at most ``k`` of each entry."""
        return np.asarray(self._marginals.cdf(k))

    def logcdf(self, k: npt.ArrayLike) -> np.ndarray:
        """Return the log probability of at most ``k`` of each entry."""
        return np.asarray(self._marginals.logcdf(k))

    def logsf(self, k: npt.ArrayLike) -> np.ndarray:
        """Return the log probability of more than ``k`` of each entry."""
        return np.asarray(self._marginals.logsf(k))

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantile of each entry; NaN where it is not known."""
        return np.asarray(self._marginals.ppf(q))


class Stackable(ABC):
    """A distribution whose parameters take leading axes, so that several become one."""

    def is_of_kind(self, other: object) -> bool:
        """Return whether both differ in their parameters alone."""
        return type(other) is type(self)

    @abstractmethod
    def beside(self, each: Sequence[Self], axes: tuple[int, ...]) -> Self:
        """Return distributions of this kind and shape, this one among them, as one of shape (*axes, *own shape)."""


class SideBySide:
    """Distributions at P points, of the same own shape, as one of shape (P, *own shape), with the methods of each."""

    def __init__(self, each: Sequence[object], axes: tuple[int, ...]) -> None:
        self._each, self._axes = each, axes

    def __getattr__(self, name: str) -> Callable[..., np.ndarray]:
        if name.startswith("_"):  # what copying and pickling ask for before there are any
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
    """Distributions of one row each, (..., 1), as those of all rows, (..., rows), with the methods of each.

    ``axis`` is that of the rows in what the methods return.
    """

    def __init__(self, each: Sequence[object], axis: int) -> None:
        self._each, self._axis = each, axis

    def __getattr__(self, name: str) -> Callable[..., np.ndarray]:
        if name.startswith("_"):  # what copying and pickling ask for before there are any
            raise AttributeError(name)
        methods = [getattr(law, name) for law in self._each]

        def of_all(*y: np.ndarray) -> np.ndarray:
            rows = [np.asarray(method(*(each[[i]] for each in y))) for i, method in enumerate(methods)]
            return np.concatenate(rows, axis=self._axis)

        return of_all


def stacked(each: Sequence[Any], axes: tuple[int, ...]) -> Any:
    """Return distributions at points as one, which computes at all points at once where they are of one kind."""
    first = each[0]
    if isinstance(first, Stackable) and all(first.is_of_kind(law) for law in each):
        return first.beside(each, axes)
    return SideBySide(each, axes)
