"""Where features may be cut: as a field of a model has it, and as data suggest it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.model.fields import plain

MOST_CUTS, MOST_CUTS_OF_ALL = 100, 150
"""Cuts of one feature alone, and of several features together, that are chosen from data."""


def read_cuts(value: Any) -> tuple[np.ndarray, ...]:
    """Return the different cuts of each feature, ascending, of a list of them or one list for each feature."""
    several = bool(len(value)) and all(isinstance(own, list | tuple | np.ndarray) for own in value)
    return tuple(_ascending(own) for own in (value if several else [value]))


def _ascending(cuts: Any) -> np.ndarray:
    """Return different numbers, ascending; refuse what is none."""
    problem = f"cuts must be numbers, or a list of numbers for each feature, got {cuts!r}"
    if not isinstance(cuts, list | tuple | np.ndarray) or not len(cuts):
        raise InputError(problem, "wrong_type")
    for each in cuts:
        if isinstance(each, bool) or not isinstance(each, int | float | np.number) or not math.isfinite(each):
            raise InputError(problem, "wrong_type")
    return np.unique(np.asarray(cuts, dtype=np.float64))


def rectangle(cuts: tuple[np.ndarray, ...]) -> tuple[Any, ...]:
    """Return the field of a model: cuts of one feature as they are, of several as rows of one length."""
    if len(cuts) == 1:
        return tuple(plain(cuts[0]))
    longest = max(map(len, cuts))
    return tuple(plain(np.pad(own, (0, longest - len(own)), mode="edge")) for own in cuts)


def cuts_between(X: np.ndarray) -> tuple[Any, ...]:
    """Return cuts half way between neighbouring values of each feature (n, F); of many values about evenly by rows."""
    features = X.shape[1]
    most = MOST_CUTS if features == 1 else max(1, MOST_CUTS_OF_ALL // max(features, 1))
    return rectangle(tuple(_between(column, most) for column in X.T))


def _between(column: np.ndarray, most: int) -> np.ndarray:
    values = np.unique(column)
    if len(values) < 2:
        return values if len(values) else np.zeros(1)
    between = values[:-1] + np.diff(values) / 2
    if len(between) <= most:
        return between
    levels = np.quantile(column, np.arange(1, most + 1) / (most + 1))
    return between[np.unique(np.clip(np.searchsorted(between, levels), 0, len(between) - 1))]
