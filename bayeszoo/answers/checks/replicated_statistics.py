"""Statistics of data sets that predictive checks compare: named ones, and functions of the user."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from bayeszoo.data.inputs import Binary, BinaryRegression, CountRegression, Counts, Matrix
from bayeszoo.data.table.table import shown
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Arrays
from bayeszoo.model.base import Model


class Sets(NamedTuple):
    """Data sets with the same rows, and the draws of the parameters under which they are compared.

    ``y`` are outcomes, shape (draws, rows), or (1, rows) if one data set is compared under all draws; ``mean`` and
    ``sd``, shape (draws, rows), are moments of an outcome given the parameters; ``data`` are the fit's, and ``params``
    have shape (draws, ...).
    """

    y: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    data: Arrays
    params: dict[str, np.ndarray]


Statistic = Callable[[Sets], np.ndarray]
"""A quantity of each data set, shape (draws,), or (1,) if neither data set nor parameters vary."""


def _standardized(sets: Sets) -> np.ndarray:
    """Return outcomes less their means, in standard deviations, both given the parameters."""
    residual = sets.y - sets.mean
    sd = np.broadcast_to(sets.sd, residual.shape)
    certain = np.where(residual == 0, 0.0, np.copysign(np.inf, residual))  # at the edge of a parameter the sd is 0
    return np.divide(residual, sd, out=certain, where=sd > 0)


def _sd(sets: Sets) -> np.ndarray:
    rows = sets.y.shape[1]
    return sets.y.std(axis=1) * math.sqrt(rows / (rows - 1)) if rows > 1 else np.full(len(sets.y), math.nan)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.full(np.shape(below), math.nan), where=below > 0)


def _skewness(sets: Sets) -> np.ndarray:
    if sets.y.shape[1] < 3:  # of two rows it is always 0
        return np.full(len(sets.y), math.nan)
    centred = sets.y - sets.y.mean(axis=1, keepdims=True)
    return _ratio(np.mean(centred**3, axis=1), np.mean(np.square(centred), axis=1) ** 1.5)


def _lag_1(sets: Sets) -> np.ndarray:
    z = _standardized(sets)
    if z.shape[1] < 2:
        return np.full(len(z), math.nan)
    with np.errstate(invalid="ignore"):  # NaN if residuals are infinite
        return _ratio(np.sum(z[:, 1:] * z[:, :-1], axis=1), np.sum(np.square(z), axis=1))


def _longest_run(sets: Sets) -> np.ndarray:
    ends = [np.flatnonzero(np.diff(row)) for row in sets.y]
    last = sets.y.shape[1] - 1
    return np.array([np.max(np.diff(np.concatenate([[-1], end, [last]]))) for end in ends], dtype=np.float64)


def _dispersion(sets: Sets) -> np.ndarray:
    """Return Pearson's chi-square over the number of rows: its mean over replicates is 1 (BDA3, section 6.3)."""
    return np.mean(np.square(_standardized(sets)), axis=1)


DISPERSION = "Pearson dispersion"
STATISTICS: dict[str, Statistic] = {
    "mean": lambda sets: sets.y.mean(axis=1),
    "standard deviation": _sd,
    "minimum": lambda sets: sets.y.min(axis=1),
    "maximum": lambda sets: sets.y.max(axis=1),
    "skewness": _skewness,
    "share of zeros": lambda sets: np.mean(sets.y == 0, axis=1),
    "changes": lambda sets: np.count_nonzero(np.diff(sets.y, axis=1), axis=1),
    "longest run": _longest_run,
    DISPERSION: _dispersion,
    "largest absolute standardized residual": lambda sets: np.max(np.abs(_standardized(sets)), axis=1),
    "lag-1 autocorrelation of residuals": _lag_1,
}
"""The named quantities. Residuals are taken given the draw that the data set comes from."""

_OF_RESIDUALS = ("largest absolute standardized residual", "lag-1 autocorrelation of residuals")
_REAL = ("mean", "standard deviation", "minimum", "maximum", "skewness", *_OF_RESIDUALS)
_OF_COLUMNS = _REAL[:5]
_COUNTED = ("mean", "standard deviation", "maximum", "share of zeros", DISPERSION, *_OF_RESIDUALS)
_BINARY = ("mean", "changes", "longest run")
BOUNDED = ("share of zeros", "changes", "longest run", "lag-1 autocorrelation of residuals")


def usual(model: Model, data: Arrays) -> tuple[str, ...]:
    """Return the names of the default quantities of an outcome."""
    if isinstance(model.inputs, Matrix):
        return _OF_COLUMNS
    of_trials = isinstance(model.inputs, Binary | BinaryRegression)
    if of_trials and "trials" not in data:
        return _BINARY
    return _COUNTED if of_trials or isinstance(model.inputs, Counts | CountRegression) else _REAL


def chosen_of(statistics: Any, model: Model, data: Arrays) -> dict[str, Statistic]:
    """Return the chosen quantities by name."""
    statistics = usual(model, data) if statistics is None else statistics
    if isinstance(statistics, Mapping):
        return {str(name): _of_user(str(name), function) for name, function in statistics.items()}
    several = isinstance(statistics, Iterable) and not isinstance(statistics, str)
    chosen: dict[str, Statistic] = {}
    for statistic in statistics if several else [statistics]:
        name = statistic if isinstance(statistic, str) else getattr(statistic, "__name__", type(statistic).__name__)
        if name in chosen:
            line = f"two statistics are called {shown(name)}"
            raise InputError(line, "duplicate_name", hint="name them by a mapping")
        if isinstance(statistic, str) and statistic not in STATISTICS:
            hint = f"use one of {', '.join(STATISTICS)}"
            raise InputError(f"there is no statistic {shown(name)}", "unknown_name", hint=hint)
        chosen[name] = STATISTICS[statistic] if isinstance(statistic, str) else _of_user(name, statistic)
    return chosen


def _of_user(name: str, function: object) -> Statistic:
    """Return a statistic that applies a user's T(y) or T(y, data, params) to each data set."""
    if not callable(function):
        raise InputError(f"statistic {shown(name)} is not a function: {function!r}", "wrong_type")
    takes_outcome_only = _takes_outcome_only(name, function)

    def statistic(sets: Sets) -> np.ndarray:
        if takes_outcome_only:
            return np.array([_number(name, function(y)) for y in sets.y])
        outcomes = enumerate(np.broadcast_to(sets.y, sets.mean.shape))
        draws = ((y, sets.data, {key: values[i] for key, values in sets.params.items()}) for i, y in outcomes)
        return np.array([_number(name, function(*arguments)) for arguments in draws])

    return statistic


def _takes_outcome_only(name: str, function: Callable[..., object]) -> bool:
    """Return whether a function is T(y), and not T(y, data, params)."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions in C have no signature
        return True
    for count in (1, 3):
        with suppress(TypeError):
            signature.bind(*[None] * count)
            return count == 1
    raise InputError(f"statistic {shown(name)} must take y, or y, data and params, got {name}{signature}", "wrong_type")


def _number(name: str, value: object) -> float:
    number = np.asarray(value)
    if number.size != 1 or number.dtype.kind not in "biuf":
        line = f"statistic {shown(name)} must return one number, returned {type(value).__name__}"
        raise InputError(line, "wrong_type")
    return float(number.reshape(()))
