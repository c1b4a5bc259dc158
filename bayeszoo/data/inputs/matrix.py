"""Real numbers in one column, or in several whose rows are vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Layout, Measured, Parsed, columns_of, listing
from bayeszoo.data.inputs.labels import checked_labels, label_array
from bayeszoo.data.table.table import (
    DROP,
    Column,
    Table,
    are_numbers,
    choose,
    complete,
    escaped,
    is_text,
    listed,
    quoted,
    shown,
    stacked,
    to_numbers,
    to_positive,
    to_reals,
)
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

SCALES = "scales"
"""The name under which `Data.reading` keeps the divisors of columns."""
MOST_UNEQUAL = 10
"""Ratio of the standard deviations of two columns above which a note says that they are not scaled."""


@dataclass(frozen=True)
class Real(Measured):
    """One column of real numbers.

    If they are ``positive``, such as durations, zero and negative values are refused, and units have the same zero.
    """

    name: str = "y"
    positive: bool = False
    options = frozenset({"column"})
    holds = "one column of {0._numbers} ({0.name})"

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        column = choose(table, options.get("column"), self.name)
        numbers = (to_positive if self.positive else to_reals)(column)
        (values,), notes = complete([column], [numbers], missing)
        is_whole = like is None and column.before is None  # neither new rows nor part of a table
        if is_whole and len(values) and not np.ptp(values):
            notes = (*notes, f"{column} has only one value: a prior that is scaled to it takes 1 for its spread")
        return Parsed({self.name: values}, {self.name: column.name}, notes)

    def in_units(self, arrays: Arrays, factor: float, shift: float = 0.0) -> dict[str, np.ndarray]:
        """Return the data with every outcome y as ``factor * y + shift``; positive numbers are not shifted."""
        return super().in_units(arrays, factor, 0.0 if self.positive else shift)

    @property
    def _numbers(self) -> str:
        return "numbers > 0" if self.positive else "real numbers"


@dataclass(frozen=True)
class RealWithError(Measured):
    """One column of real numbers, and one of the standard error of each, > 0.

    The canonical arrays are `name` and `error`, both of shape (rows,). The column `error` of the table is used unless
    the option ``se`` names another. Rows to be predicted may have only their standard errors.
    """

    name: str = "y"
    error: str = "se"
    options, needs = frozenset({"column", "se"}), ("their standard errors", "a column {0.error}")
    holds = "one column of real numbers ({0.name}) and one of the standard error of each ({0.error}, or say with --se)"

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        error = options.get("se", self.error)
        if error not in table.columns:
            problem = f"{table} and none called {shown(error)}"
            raise InputError(problem, "not_a_number", hint="name the column of standard errors with --se")
        has_only_errors = like is not None and set(table.columns) == {error}
        value = (
            [] if has_only_errors else [choose(table, options.get("column"), self.name, {error: "the standard errors"})]
        )
        columns = [*value, table[error]]
        values, dropped = complete(columns, [*map(to_reals, value), to_positive(table[error])], missing)
        names = [self.error] if has_only_errors else [self.name, self.error]
        roles = dict(zip(names, (column.name for column in columns), strict=True))
        return Parsed(dict(zip(names, values, strict=True)), roles, dropped)

    def in_units(self, arrays: Arrays, factor: float, shift: float = 0.0) -> dict[str, np.ndarray]:
        """Return the data with every outcome y as ``factor * y + shift``."""
        return {**super().in_units(arrays, factor, shift), self.error: abs(factor) * arrays[self.error]}

    def size(self, arrays: Arrays) -> int:
        """Return the number of rows."""
        return len(arrays[self.error])


@dataclass(frozen=True)
class Matrix(Measured):
    """Columns of real numbers, each row one observation.

    The canonical arrays are `name`, shape (rows, columns), and the coordinate `axis` of the names of the columns.
    `maskable` models take rows with missing numbers, NaN with ``missing="mask"``. For `scalable` models the option
    ``scale`` divides each column by its standard deviation; columns of rows to be predicted are divided by those of
    the fit.
    """

    name: str = "Y"
    axis: str = "column"
    maskable: bool = False
    scalable: bool = field(default=False, repr=False)
    scales: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)  # for part of a table
    lists = frozenset({"columns"})
    holds = "columns of real numbers, all those of the table or some of them (--columns)"

    @property
    def options(self) -> frozenset[str]:  # type: ignore[override]
        """The names of the options."""
        return frozenset({"columns", "scale"} if self.scalable else {"columns"})

    @property
    def treatments(self) -> tuple[str, ...]:  # type: ignore[override]
        """The treatments of missing values."""
        return ("refuse", "drop", "mask") if self.maskable else ("refuse", "drop")

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """The outcome has named columns."""
        return Layout((self.axis,), dims={self.name: (self.axis,)}, forms=({self.name, self.axis},))

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        names, unused = options.get("columns"), list[str]()
        if like is not None:
            names, unused = _as_fitted(like[self.axis].tolist(), names, table)
        elif names is None:
            refuse_text(table)
            names = list(table.columns)
        columns = [table[name] for name in names]
        values, holes = self._values(columns, missing, new=like is not None)
        scales = scales_of(like)
        if options.get("scale", str(bool(scales))) == "True":
            scales = scales or dict(self.scales) or scales_by(names, np.nanstd(values, axis=0))
            values = values / np.array([scales[name] for name in names])
        notes_of_scale = _about_scale(columns, values, scales) if self.scalable and like is None else ()
        arrays = {self.name: values, self.axis: label_array(names)}
        constant = [column for column, cells in zip(columns, values.T, strict=True) if not np.ptp(cells)]
        notes = (*holes, *(f"{column} is constant" for column in constant if like is None and len(values) > 1))
        not_used = [f"not used, as the fit has no such column: {quoted(unused)}"] * bool(unused)
        return Parsed(arrays, {self.name: ", ".join(names)}, (*not_used, *notes, *notes_of_scale), scales=scales)

    def _values(self, columns: list[Column], missing: str, new: bool = False) -> tuple[np.ndarray, tuple[str, ...]]:
        if missing == "mask":
            return _with_holes(columns, new)
        hint = "use --missing mask, which integrates them out, or drop" if self.maskable else DROP
        return stacked(columns, to_reals, missing, hint)

    def _canonical(self, arrays: Mapping[str, object], missing: str) -> Parsed:
        labels = checked_labels(self.axis, arrays[self.axis], least=1)
        columns = columns_of(self.name, arrays[self.name], self.axis, labels)
        values, holes = self._values(columns, missing)
        return Parsed({self.name: values, self.axis: labels}, {}, holes)

    def reading(self, arrays: Arrays) -> Options:
        """Return the option for masks, if values are missing."""
        return {"missing": "mask"} if np.isnan(arrays[self.name]).any() else {}

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return the columns under their names."""
        return dict(zip(arrays[self.axis].tolist(), arrays[self.name].T, strict=True))


def scales_of(like: Arrays | None) -> dict[str, float]:
    """Return the divisors of the columns of a fit; empty if they were not scaled."""
    return dict(getattr(like, "reading", {}).get(SCALES, {}))


def refuse_other_scales(scales: Mapping[str, float], data: Arrays) -> None:
    """Refuse rows whose columns were not divided by the divisors of the fit."""
    if scales_of(data) != scales:
        problem = "the columns of these rows and of the fit were not divided by the same numbers"
        raise InputError(problem, "not_a_number", hint="give the table, which is then read like that of the fit")


def scales_by(names: list[str], deviations: np.ndarray) -> dict[str, float]:
    """Return the standard deviation (divisor N) of each column, which becomes its divisor."""
    for name, deviation in zip(names, deviations, strict=True):
        if not deviation > 0:
            problem = f"column {shown(name)} is constant and cannot be scaled"
            raise InputError(problem, "not_a_number", column=name, hint="leave it out")
    return dict(zip(names, deviations.tolist(), strict=True))


def _about_scale(columns: list[Column], values: np.ndarray, scales: Mapping[str, float]) -> tuple[str, ...]:
    """Return a note on the divisors of columns, or on columns of very different scale."""
    if scales:
        divisors = ", ".join(f"{escaped(name)} by {scale:.4g}" for name, scale in scales.items())
        return (f"columns were divided by their standard deviations, and all is in these: {divisors}",)
    if len(columns) < 2 or columns[0].before is not None:
        return ()
    sds = np.array([np.nanstd(cells) for cells in values.T])  # one by one, to save copies of the array
    if not 0 < MOST_UNEQUAL * sds.min() < sds.max():
        return ()
    large, small = columns[int(np.argmax(sds))], columns[int(np.argmin(sds))]
    ratio = f"{large} has {sds.max() / sds.min():.3g} times the sd of {small}"
    return (f"{ratio}, and dominates the factors; --scale divides each column by its sd",)


def refuse_text(table: Table, option: str = "columns", or_text: bool = False) -> None:
    """Refuse a column that is not numbers; name those that are, for `option`, and `or_text` the option for text."""
    usable = [column.name for column in table.columns.values() if are_numbers(column)]
    if not usable or len(usable) == len(table.columns):
        return
    numeric = set(usable)
    other = next(column for name, column in table.columns.items() if name not in numeric)
    try:
        to_numbers(other)
    except InputError as error:
        if error.hint:
            raise
        hint = f"choose columns of numbers: --{option} {listing(usable)}"
        if or_text and isinstance(other.values, list):
            words = [column.name for column in table.columns.values() if is_text(column)]
            hint += f"; of raw text, --text {listing([other.name])}"
            if len(words) == 2:
                hint += f"; of a word a row, --document {listing(words[:1])} --word {listing(words[1:])}"
        raise InputError(str(error), error.code, column=error.column, rows=error.rows, hint=hint) from None


def _as_fitted(fitted: list[str], names: list[str] | None, table: Table) -> tuple[list[str], list[str]]:
    """Return the columns of the fit in its order, and unused columns, neither requested nor in the fit.

    Columns with numbers for names may not be left unused, as they could not be told apart.
    """
    others = [name for name in table.columns if name not in {*fitted}]
    unused = [] if names is not None or all(map(str.isdecimal, table.columns)) else others
    return in_order_of(fitted, names or [name for name in table.columns if name not in unused]), unused


def in_order_of(fitted: list[str], names: list[str], option: str = "columns") -> list[str]:
    """Return the columns in the order of the fit; refuse other columns than its own, named by `option`."""
    present, allowed = set(names), set(fitted)
    missing = next((name for name in fitted if name not in present), None)
    if missing is not None:
        raise InputError(f"there is no column {shown(missing)}, which the fit has", "missing_column", column=missing)
    other = next((name for name in names if name not in allowed), None)
    if other is not None:
        hint = f"use --{option} {listing(fitted)}"
        raise InputError(
            f"column {shown(other)} is not among the {len(fitted)} of the fit", "unknown_label", column=other, hint=hint
        )
    return fitted


def _with_holes(columns: list[Column], new: bool) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return columns as an array (rows, columns), NaN where a value is missing, and notes on missing values.

    Every column must have a value, except in `new` rows, which are to be predicted.
    """
    values = np.column_stack([to_reals(column) for column in columns])
    holes, before = np.isnan(values), columns[0].before
    empty = [column for column, hole in zip(columns, holes.T, strict=True) if hole.all()]
    if empty and before is None and not new:
        raise InputError(f"{empty[0]} has no values", "no_data", column=empty[0].name)
    values[holes] = np.nan  # always the same NaN
    return values, about_holes(holes, before or 0)


def about_holes(
    holes: np.ndarray,
    before: int,
    treated: str = "integrated out, none imputed",
    rows_without: str = "without values were ignored",
    row_without: str = "without values was ignored",
) -> tuple[str, ...]:
    """Return notes on missing values, their treatment, and rows without any value."""
    if not holes.any():
        return ()
    count, rows, empty = int(holes.sum()), int(holes.any(axis=1).sum()), np.flatnonzero(holes.all(axis=1))
    notes = [f"{count} missing value{'s' * (count > 1)} in {rows} row{'s' * (rows > 1)} {treated}"]
    if len(empty):
        several, places = len(empty) > 1, listed(empty, before=before)
        notes.append(f"{len(empty)} row{'s' * several} ({places}) {rows_without if several else row_without}")
    return tuple(notes)
