"""The cuts of features: from a field of a model, or chosen from data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.model.fields import plain

MOST_CUTS, MOST_CUTS_OF_ALL = 100, 150
"""Cuts of one feature alone, and of several features together, that are chosen from data."""


def read_cuts(value: Any) -> tuple[np.ndarray, ...]:
    """Return the distinct cuts of each feature, ascending, from one list of cuts or a list for each feature."""
    several = bool(len(value)) and all(isinstance(cuts, list | tuple | np.ndarray) for cuts in value)
    return tuple(_ascending(cuts) for cuts in (value if several else [value]))


def _ascending(cuts: Any) -> np.ndarray:
    """Return distinct numbers, ascending; raise `InputError` for other values."""
    problem = f"cuts must be numbers, or a list of numbers for each feature, got {cuts!r}"
    if not isinstance(cuts, list | tuple | np.ndarray) or not len(cuts):
        raise InputError(problem, "wrong_type")
    for cut in cuts:
        if isinstance(cut, bool) or not isinstance(cut, int | float | np.number) or not math.isfinite(cut):
            raise InputError(problem, "wrong_type")
    return np.unique(np.asarray(cuts, dtype=np.float64))


def rectangle(cuts: tuple[np.ndarray, ...]) -> tuple[Any, ...]:
    """Return cuts as the field of a model: those of one feature flat, of several as rows of equal length."""
    if len(cuts) == 1:
        return tuple(plain(cuts[0]))
    longest = max(map(len, cuts))
    return tuple(plain(np.pad(row, (0, longest - len(row)), mode="edge")) for row in cuts)


def cuts_between(X: np.ndarray) -> tuple[Any, ...]:
    """Return cuts halfway between neighbouring values of each feature (n, F); of many, a selection even by rows."""
    features = X.shape[1]
    most = MOST_CUTS if features == 1 else max(1, MOST_CUTS_OF_ALL // max(features, 1))
    return rectangle(tuple(_between(column, most) for column in X.T))


def _between(column: np.ndarray, most: int) -> np.ndarray:
    values = np.unique(column)
    if len(values) < 2:
        return values if len(values) else np.zeros(1)
    midpoints = values[:-1] + np.diff(values) / 2
    if len(midpoints) <= most:
        return midpoints
    levels = np.quantile(column, np.arange(1, most + 1) / (most + 1))
    return midpoints[np.unique(np.clip(np.searchsorted(midpoints, levels), 0, len(midpoints) - 1))]
