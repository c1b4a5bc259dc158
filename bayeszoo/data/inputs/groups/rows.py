"""The rows of a table by group, and notes about the groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np

from bayeszoo.data.inputs.labels import Arrays, joined, spelled_alike, texts_of
from bayeszoo.data.table.cells import MISSING
from bayeszoo.data.table.table import DROP, Column, Table, complete, is_text, shown
from bayeszoo.errors import InputError

GROUP = "group"
_NAMES = "the names of the groups"


class Request(NamedTuple):
    """A table to be read, with options; ``like`` are the data of the fit that predicts the rows."""

    table: Table
    missing: str
    options: Mapping[str, Any]
    new: bool = False
    like: Arrays | None = None


class Naming(NamedTuple):
    """The column that names the group of each row, if any, and whether the user named it or its name is ``group``."""

    column: Column | None
    is_said: bool = False

    @property
    def taken(self) -> dict[str, str]:
        """The name of the column, and its content."""
        return {} if self.column is None else {self.column.name: _NAMES}


class Rows(NamedTuple):
    """The complete rows: distinct groups in order of occurrence, the code and values of each row, and notes."""

    groups: list[str]
    codes: np.ndarray
    values: list[np.ndarray]
    naming: Naming
    places: np.ndarray
    """The index of each row in the table."""
    notes: tuple[str, ...]

    @property
    def is_row_each(self) -> bool:
        """Whether each row is a group."""
        return len(self.groups) == len(self.codes)

    @property
    def sizes(self) -> np.ndarray:
        """The number of rows of each group."""
        return np.bincount(self.codes, minlength=len(self.groups))

    @property
    def counted(self) -> str:
        """The numbers of rows and groups, in words."""
        return f"{len(self.codes)} rows, {len(self.groups)} group{'s' * (len(self.groups) > 1)}"

    def total(self, values: np.ndarray) -> np.ndarray:
        """Add up the values of the rows of each group."""
        return np.bincount(self.codes, values, len(self.groups))

    def means(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean of each group and its standard error, which is exactly 0 if all values are equal."""
        _, first = np.unique(self.codes, return_index=True)
        deviations = values - values[first][self.codes]  # from the first value of the group, against cancellation
        shift = self.total(deviations) / self.sizes
        squares = self.total((deviations - shift[self.codes]) ** 2)
        return values[first] + shift, np.sqrt(squares / (self.sizes - 1) / self.sizes)

    def refuse_repeated(self, hint: str) -> None:
        """Refuse groups of several rows; the error lists the rows that repeat a group."""
        column, is_said = self.naming
        if column is None or self.is_row_each:
            return
        _, first = np.unique(self.codes, return_index=True)
        hint = hint if is_said else f"name the column of groups with --{GROUP}"
        raise column.error("is the name of an earlier group too", "duplicate_name", np.delete(self.places, first), hint)

    def added(self) -> tuple[str, ...]:
        """Return a note that the rows of each group are added up; refuse this if no column was named for groups."""
        if self.is_row_each:
            return ()
        if not self.naming.is_said:
            self.refuse_repeated("")
        return (f"the rows of each group are added up: {self.counted}",)


def named_by(request: Request, contents: Mapping[str, str]) -> Naming:
    """Return the column that names the groups: by its option, by its name, or the first column of text.

    ``contents`` describes other columns.
    """
    table, name = request.table, request.options.get(GROUP)
    if name is None and GROUP in table.columns and GROUP not in contents:
        name = GROUP
    if name is not None and name in contents:
        raise InputError(
            f"column {shown(name)} cannot hold both {_NAMES} and {contents[name]}", "duplicate_name", column=name
        )
    if name is not None:
        return Naming(table[name], is_said=True)
    others = (column for label, column in table.columns.items() if label not in contents)
    return Naming(next(filter(names_groups, others), None))


def require_named(request: Request, hint: str) -> Naming:
    """Return the column that names the groups of several rows, by its option or by its name; refuse others."""
    if GROUP not in request.options and GROUP not in request.table.columns:
        raise InputError(str(request.table), "bad_group_column", hint=hint)
    return named_by(request, {})


def names_groups(column: Column) -> bool:
    """Say whether a column has words, which may name groups."""
    return is_text(column) and (column.is_categorical or isinstance(column.values, list))


def grouped(request: Request, naming: Naming, columns: Sequence[Column], numbers: Sequence[np.ndarray]) -> Rows:
    """Return the complete rows of columns by group; ``numbers`` are their values, NaN where missing."""
    column, places = naming.column, np.arange(request.table.rows, dtype=np.float64)
    texts = [] if column is None else texts_of(column)
    if column is not None:
        places[[text.strip().lower() in MISSING for text in texts]] = np.nan
        absent = np.flatnonzero(np.isnan(places))
        if request.missing == "refuse" and any(texts[row].strip() for row in absent):
            raise column.lacks(absent, f"{DROP}, or write another name for such a group")
    (*values, kept), dropped = complete([*columns, column or columns[0]], [*numbers, places], request.missing)
    rows = kept.astype(np.int64)
    names = _numbered(request, rows) if column is None else [texts[row] for row in rows.tolist()]
    first: dict[str, int] = {}
    codes = np.fromiter((first.setdefault(name, len(first)) for name in names), np.int64, len(names))
    notes = (*_about_names(request, naming), *dropped, *about_groups(request, naming, list(first)))
    return Rows(list(first), codes, values, naming, rows, notes)


def places_of(groups: Iterable[str], fitted: np.ndarray) -> np.ndarray:
    """Return the index of each group among those of a fit, -1 if it is not in the fit."""
    places = {name: place for place, name in enumerate(fitted.tolist())}
    return np.array([places.get(str(name), -1) for name in groups], dtype=np.int64)


def _numbered(request: Request, places: np.ndarray) -> list[str]:
    """Return names of unnamed groups: row numbers from 1, or for rows to be predicted names that are not in the fit."""
    if request.like is None:
        return [str(place + 1) for place in places.tolist()]
    fitted = set(request.like[GROUP].tolist())
    return list(islice((name for i in count(1) if (name := f"new {i}") not in fitted), len(places)))


def _about_names(request: Request, naming: Naming) -> tuple[str, ...]:
    """Return a note on the names of groups, unless the user named their column."""
    if naming.column is not None:
        return () if naming.is_said else (f"{naming.column} names the groups",)
    if request.like is not None:
        return ("no column names the groups: each row is of a new group",)
    return ("no column names the groups: they are called by the numbers of their rows",)


def about_groups(request: Request, naming: Naming, groups: list[str]) -> list[str]:
    """Return notes on names that differ little, groups that are not in the fit, and a single group."""
    notes = [] if naming.column is None else spelled_alike(naming.column, groups)
    if request.like is not None:
        new = [name for name, place in zip(groups, places_of(groups, request.like[GROUP]), strict=True) if place < 0]
        new = [] if naming.column is None else new
        notes += [f"new groups, without rows in the fit: {joined(new)}"] * bool(new)
    elif len(groups) == 1:
        notes.append("there is one group only: how much groups differ is known from the prior alone")
    return notes
