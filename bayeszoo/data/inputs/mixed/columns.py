"""Columns of features of mixed kinds: reading, treatment of missing values, checks and notes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bayeszoo.data.inputs.base import Arrays, listing, names_in
from bayeszoo.data.inputs.features.levels import Feature, asked_levels
from bayeszoo.data.inputs.labels import joined, repeated, spelled_alike
from bayeszoo.data.inputs.matrix import about_holes
from bayeszoo.data.inputs.mixed.arrays import AXES, COUNTS, LEVELS, coordinates, level_labels, levels_by_feature, stack
from bayeszoo.data.table.table import (
    DROP,
    Column,
    Dropped,
    complete,
    refuse_large_sum,
    shown,
    to_counts,
    to_reals,
)
from bayeszoo.errors import InputError

_LEFT_OUT = "left out of the likelihood, none imputed"
_MASK = "use --missing mask, which leaves out the cell and keeps the row, or drop"


class Cell(NamedTuple):
    """A feature with its kind."""

    kind: str
    feature: Feature

    @property
    def column(self) -> Column:
        """The column of the table."""
        return self.feature.column

    @property
    def is_constant(self) -> bool:
        """Whether all present values are equal; a feature of levels is constant only if it has one level."""
        if self.kind == LEVELS:
            return len(self.feature.levels or ()) == 1
        present = self.feature.values[~np.isnan(self.feature.values)]
        return bool(len(present)) and not np.ptp(present)

    @property
    def key(self) -> object:
        """A key that is equal for columns of equal values."""
        digest = hashlib.sha256(np.ascontiguousarray(self.feature.values)).digest()  # values would take memory
        return self.kind, tuple(self.feature.levels or ()), digest


def named_levels(value: object) -> dict[str, list[str] | None]:
    """Return the columns of levels, from ``"a,b"``, and their levels if listed, from ``"colour=red,green"``."""
    if isinstance(value, Mapping) or not isinstance(value, str | list | tuple | np.ndarray):
        return dict(asked_levels(value))
    items = [value] if isinstance(value, str) else [*value]
    plain = [item for item in items if isinstance(item, str) and "=" not in item]
    names = [name for item in plain for name in names_in(LEVELS, item)]
    asked = asked_levels([item for item in items if item not in plain])
    if twice := repeated([*names, *asked]):
        raise InputError(f"levels of {shown(twice)} are given twice", "duplicate_name", column=twice)
    return {**dict.fromkeys(names), **asked}


def read_feature(
    column: Column, kind: str, levels: Mapping[str, list[str] | None], fitted: Mapping[str, list[str]] | None
) -> Feature:
    """Read a column as a feature of its kind, with the levels of the fit if there is one."""
    if kind == LEVELS:
        if fitted is not None:
            return Feature.read_new(column, fitted)
        return Feature.of_levels(column, levels.get(column.name))
    values = to_counts(column) if kind == COUNTS else to_reals(column)
    if kind == COUNTS:
        refuse_large_sum(column, values[~np.isnan(values)])
    return Feature(column, values)


UNLABELLED = "leave the column out to classify all rows, or use --missing drop"
"""Hint for new rows when some have no class."""


def kept_rows(
    others: list[Column], numbers: list[np.ndarray], cells: Sequence[Cell], missing: str, new: bool, maskable: bool
) -> tuple[list[np.ndarray], list[np.ndarray], tuple[str, ...]]:
    """Refuse, drop or keep rows with missing values; return kept values of other columns and features, and notes."""
    columns, values = [cell.column for cell in cells], [cell.feature.values for cell in cells]
    if missing != "mask":
        all_columns = [*others, *columns]
        if new and missing == "refuse" and maskable:
            _refuse_holes(cells)
        kept, notes = (
            complete(all_columns, [*numbers, *values], missing, _MASK if maskable else DROP)
            if all_columns
            else ([], ())
        )
        return kept[: len(others)], kept[len(others) :], notes
    kept, _ = complete(others, numbers, "refuse") if others else ([], ())
    holes, before = np.isnan(values).T, columns[0].before if columns else None
    empty = [column for column, hole in zip(columns, holes.T, strict=True) if hole.all()]
    if empty and before is None and not new:
        raise InputError(f"{empty[0]} has no values", "no_data", column=empty[0].name, hint="leave it out")
    rows, row = (
        "without any value tell nothing about the features",
        "without any value tells nothing about the features",
    )
    return kept, values, about_holes(holes, before or 0, _LEFT_OUT, rows, row) if values else ()


def _refuse_holes(cells: Sequence[Cell]) -> None:
    """Refuse missing cells of new rows, even if a column has no value, as there may be one row."""
    for cell in cells:
        if len(rows := np.flatnonzero(np.isnan(cell.feature.values))):
            raise cell.column.lacks(rows, _MASK)


def unplaced(note: str) -> str:
    """Return the note on dropped rows without row numbers, as rows are repeated afterwards."""
    if isinstance(note, Dropped):
        note.kept = None
    return note


def arrays_of_cells(
    kinds: Sequence[str], cells: Sequence[Cell], like: Arrays | None, rows: int
) -> dict[str, np.ndarray]:
    """Stack features of each kind; levels are places along their axis, that of the fit if there is one."""
    levels = [cell.feature for cell in cells if cell.kind == LEVELS]
    coords = {axis: like[axis] for axis in coordinates(kinds)} if like is not None else {}
    if like is None:
        names = {AXES[kind]: np.array([c.column.name for c in cells if c.kind == kind], str) for kind in kinds}
        coords = names | level_labels({feature.column.name: feature.levels or [] for feature in levels}, kinds)
        coords = {axis: coords[axis] for axis in coordinates(kinds)}
    codes = levels_by_feature(coords)
    values = [_placed(cell.feature, codes) if cell.kind == LEVELS else cell.feature.values for cell in cells]
    return {kind: stack(kind, of_kind(cells, values, kind), rows) for kind in kinds} | coords


def _placed(feature: Feature, codes: Mapping[str, Mapping[str, int]]) -> np.ndarray:
    """Return the places of the levels of a feature, NaN where missing."""
    of_feature = codes[feature.column.name]
    places = np.array([*(of_feature[level] for level in feature.levels or ()), np.nan])
    return places[np.where(np.isnan(feature.values), -1, feature.values).astype(np.int64)]


def of_kind(cells: Sequence[Cell], values: Sequence[np.ndarray], kind: str) -> list[np.ndarray]:
    """Return the values of the features of one kind."""
    return [array for cell, array in zip(cells, values, strict=True) if cell.kind == kind]


def refuse_feature(column: Column, problem: str, code: str, features: list[str], is_named: bool) -> list[str]:
    """Refuse a feature that the user did not name; return a note on a named one."""
    if not is_named:
        others = [name for name in features if name != column.name]
        raise column.error(problem, code, hint=f"leave it out: --features {listing(others)}" if others else None)
    return [f"{column} {problem}"]


def about_levels(feature: Feature) -> list[str]:
    """Return notes on the levels of a feature, and on those that no row has."""
    column, levels = feature.column, feature.levels or []
    present, is_part = set(np.unique(feature.values).tolist()), column.before is not None
    never = [level for code, level in enumerate(levels) if code not in present and not is_part]
    notes = [f"{column}: levels {joined(levels)}"]
    notes += [f"{column}: {joined(never)} never occur{'s' * (len(never) == 1)}"] if never else []
    return notes + spelled_alike(column, levels, "levels")


def are_whole(values: np.ndarray) -> bool:
    """Say whether all values are whole numbers >= 0."""
    present = values[~np.isnan(values)]
    return len(present) > 0 and bool(np.all(present == np.floor(present)) and present.min() >= 0)
