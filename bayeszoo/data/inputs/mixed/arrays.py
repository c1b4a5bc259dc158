"""Canonical arrays of features of mixed kinds: an array and an axis for each kind, and one axis of all levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayeszoo.data.inputs.base import Arrays, columns_of
from bayeszoo.data.inputs.labels import checked_labels, label_array, repeated
from bayeszoo.data.table.table import Column, shown, to_counts, to_numbers, to_reals
from bayeszoo.errors import InputError

LEVELS, COUNTS, REALS = KINDS = ("levels", "counts", "reals")
FEATURE, LEVEL = "feature", "level"
AXES = {LEVELS: FEATURE, COUNTS: "count", REALS: "real"}
"""The axis that names the features of each kind."""


def coordinates(kinds: Sequence[str]) -> tuple[str, ...]:
    """Return the coordinates of the arrays of these kinds."""
    return tuple(axis for kind in kinds for axis in ((FEATURE, LEVEL) if kind == LEVELS else (AXES[kind],)))


def level_labels(levels: Mapping[str, Sequence[str]], kinds: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the axis of all levels of all features, labels ``feature=level``."""
    labels = [f"{name}={level}" for name, of_feature in levels.items() for level in of_feature]
    return {LEVEL: label_array(labels)} if LEVELS in kinds else {}


def levels_by_feature(arrays: Arrays) -> dict[str, dict[str, int]]:
    """Return the code of each level of each feature, which is its place on the axis ``level``.

    Examples
    --------
    >>> axes = {"feature": np.array(["colour", "sex"]), "level": np.array(["colour=blue", "colour=red", "sex=f"])}
    >>> levels_by_feature(axes)
    {'colour': {'blue': 0, 'red': 1}, 'sex': {'f': 2}}
    """
    if FEATURE not in arrays:
        return {}
    codes: dict[str, dict[str, int]] = {name: {} for name in arrays[FEATURE].tolist()}
    for code, label in enumerate(arrays[LEVEL].tolist()):
        ends = [i for i, character in enumerate(label) if character == "=" and label[:i] in codes]
        if len(ends) != 1:
            problem = f"level {shown(label)} is of {'two features' if ends else 'no feature'}"
            raise InputError(problem, "duplicate_name" if ends else "unknown_label", hint="rename a feature")
        codes[label[: ends[0]]][label[ends[0] + 1 :]] = code
    return codes


def tables_of(arrays: Arrays) -> tuple[tuple[int, ...], ...]:
    """Return the places along the axis ``level`` of the levels of each feature, in order.

    Examples
    --------
    >>> axes = {"feature": np.array(["colour", "sex"]), "level": np.array(["colour=blue", "colour=red", "sex=f"])}
    >>> tables_of(axes)
    ((0, 1), (2,))
    """
    return tuple(tuple(codes.values()) for codes in levels_by_feature(arrays).values())


def stack(kind: str, values: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Return features of one kind as an array of shape (rows, features); codes of missing levels are -1."""
    stacked = np.column_stack(values) if values else np.empty((rows, 0))
    return np.where(np.isnan(stacked), -1, stacked).astype(np.int64) if kind == LEVELS else stacked


def checked_cells(
    arrays: Mapping[str, object], kinds: Sequence[str]
) -> tuple[list[tuple[str, Column, np.ndarray]], dict[str, np.ndarray]]:
    """Check arrays from the user; return kind, column and values (NaN where missing) of features, and coordinates."""
    coords = {axis: checked_labels(axis, arrays[axis], least=0) for axis in coordinates(kinds)}
    names = [name for kind in kinds for name in coords[AXES[kind]].tolist()]
    if twice := repeated(names):
        raise InputError(f"two features are called {shown(twice)}", "duplicate_name", column=twice)
    tables = dict(zip(levels_by_feature(coords), tables_of(coords), strict=True))
    cells = list[tuple[str, Column, np.ndarray]]()
    for kind in kinds:
        for column in _columns(kind, arrays[kind], coords[AXES[kind]]):
            cells.append((kind, column, _values(kind, column, tables)))
    return cells, coords


def _columns(kind: str, values: Any, labels: np.ndarray) -> list[Column]:
    if len(labels):
        return columns_of(kind, values, AXES[kind], labels)
    shape = np.shape(values)
    if len(shape) != 2 or shape[1]:
        raise InputError(f"{kind} has shape {shape}, and {AXES[kind]} has no label", "wrong_shape")
    return []


def _values(kind: str, column: Column, tables: Mapping[str, tuple[int, ...]]) -> np.ndarray:
    if kind != LEVELS:
        return to_counts(column) if kind == COUNTS else to_reals(column)
    codes = to_numbers(column)
    codes = np.where(codes == -1, np.nan, codes)
    other = ~np.isnan(codes) & ~np.isin(codes, tables[column.name])
    column.refuse(other, "is the code of no level of this feature, nor -1", "unknown_label")
    return codes
