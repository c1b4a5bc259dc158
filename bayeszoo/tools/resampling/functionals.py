"""Functionals of weighted rows, such as a mean or a correlation: a number for each vector of weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.data.table.table import shown
from bayeszoo.distributions.weighted import WeightedMean, WeightedQuantile
from bayeszoo.errors import InputError, NumericalError

MOST_EXACT = 2000
"""Most rows for which the posterior quantiles of a mean are computed from its B-spline; twice as many take a second."""

_ROUNDED = 1e-12
Weighted = Callable[[np.ndarray, np.ndarray], Any]
"""``f(values, weights)`` of one vector of weights, shape (n,), which add up to 1."""


@dataclass(frozen=True)
class Functional:
    """A function of weighted rows that returns a number.

    Attributes
    ----------
    name : str
        The name of the functional.
    of : callable
        ``of(values, weights) -> (draws,)``: values of shape (n,) or (n, columns), weights of shape (draws, n).
    columns : int, optional
        Number of columns; None for any.
    law : callable, optional
        ``law(values)`` is the exact posterior under Dirichlet(1, ..., 1) weights.
    level : float, optional
        The level of a quantile.
    """

    name: str
    of: Callable[[np.ndarray, np.ndarray], np.ndarray]
    columns: int | None = 1
    law: Callable[[np.ndarray], Any] | None = None
    level: float | None = None

    def of_rows(self, values: np.ndarray) -> float:
        """Return the functional of rows of equal weight."""
        if self.level is not None:
            place = math.ceil(len(values) * self.level * (1 - _ROUNDED)) - 1  # 25 * 0.28 is more than 7 by rounding
            return float(np.sort(values)[place])
        return float(self.of(values, np.full((1, len(values)), 1 / len(values)))[0])


def functional_of(functional: str | Weighted) -> Functional:
    """Return the functional with a name, or that of a callable of one vector of weights."""
    if not isinstance(functional, str):
        return Functional(getattr(functional, "__name__", "functional"), _over_draws(functional), None)
    name, colon, level = functional.partition(":")
    if name == "quantile" and colon:
        return _quantile(functional, _level(functional, level))
    functionals = {
        "mean": Functional("mean", weighted_mean, law=_law_of_mean),
        "median": _quantile("median", 0.5),
        "sd": Functional("sd", weighted_sd),
        "correlation": Functional("correlation", weighted_correlation, 2),
    }
    if functional not in functionals:
        problem = f"there is no functional {shown(functional)}"
        raise InputError(
            problem, "unknown_name", hint=f"there are {', '.join(functionals)} and quantile:P, such as quantile:0.9"
        )
    return functionals[functional]


def _level(functional: str, text: str) -> float:
    """Read the level of a quantile."""
    try:
        level = float(text)
    except ValueError:
        level = math.nan
    if not 0 < level < 1:
        raise InputError(
            f"{shown(functional)} has no level between 0 and 1", "out_of_range", hint="write it as quantile:0.9"
        )
    return level


def _quantile(name: str, level: float) -> Functional:
    """Return the quantile functional: the smallest value up to which the weights add up to the level."""

    def of(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        order = np.argsort(values, kind="stable")
        below = np.cumsum(weights[:, order], axis=1)[:, :-1] < level
        return values[order][below.sum(axis=1)]

    return Functional(name, of, law=lambda values: WeightedQuantile(values, level), level=level)


def _law_of_mean(values: np.ndarray) -> Any:
    """Return the posterior of the mean: a B-spline, or a point mass where all rows are equal."""
    return WeightedMean(values) if np.ptp(values) > 0 else WeightedQuantile(values, 0.5)


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the mean under each vector of weights, clipped to the range of the values against rounding."""
    first = values[0]
    return np.clip(first + weights @ (values - first), values.min(), values.max())


def weighted_sd(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the standard deviation under each vector of weights, which add up to 1."""
    unit = float(np.ptp(values)) or 1.0  # squares of small numbers would vanish
    centred = (values - weighted_mean(values, weights)[:, None]) / unit
    return unit * np.sqrt(np.sum(weights * np.square(centred), axis=1))


def weighted_correlation(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the correlation of two columns under each vector of weights."""
    units = np.where(np.ptp(values, axis=0) > 0, np.ptp(values, axis=0), 1.0)
    first, second = (
        (column - weighted_mean(column, weights)[:, None]) / unit for column, unit in zip(values.T, units, strict=True)
    )
    covariance = np.sum(weights * first * second, axis=1)
    variances = [np.sum(weights * np.square(column), axis=1) for column in (first, second)]
    with np.errstate(divide="ignore", invalid="ignore"):  # where only one row has weight
        return np.clip(covariance / np.sqrt(variances[0]) / np.sqrt(variances[1]), -1.0, 1.0)


def _over_draws(function: Weighted) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return a function of (draws, n) weights that calls a user's function on each vector and checks its result."""

    def of(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return np.array([_number(function(values, row)) for row in weights])

    return of


def _number(value: float) -> float:
    if np.ndim(value) != 0:
        raise InputError(
            f"the functional returned an array of shape {np.shape(value)}", "wrong_shape", hint="return one number"
        )
    if not math.isfinite(number := float(value)):
        raise NumericalError(f"the functional returned {number}: it must be finite for all weights > 0", "not_finite")
    return number
