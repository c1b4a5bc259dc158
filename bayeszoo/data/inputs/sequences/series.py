"""Sequences of observations in order, some perhaps unknown: real numbers, counts and symbols."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Inputs, Layout, Measured, Parsed
from bayeszoo.data.inputs.labels import Alphabet, checked_codes, checked_labels, code, in_order, label_array
from bayeszoo.data.inputs.sequences.times import SEQUENCE, checked_times
from bayeszoo.data.table.read import read_table, to_column
from bayeszoo.data.table.table import (
    Column,
    Table,
    choose,
    listed,
    refuse_large_sum,
    shown,
    to_counts,
    to_reals,
)
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

MASKED = -1
"""The mark of an unknown code or count; an unknown real number is NaN."""

_HOLDS = "one column of {} in order, perhaps with a column that names sequences (--sequence)"


class Converted(NamedTuple):
    """A column as numbers, NaN where a value is missing; the coordinates; and notes."""

    values: np.ndarray
    coords: dict[str, np.ndarray]
    notes: tuple[str, ...]


class Series(Inputs):
    """Observations in order, in one sequence or in several independent ones.

    The table has one column of observations, perhaps with a column ``sequence``, or one named by that option, which
    names the sequence of each row; the rows of a sequence are adjacent. The column that ``time`` names must rise by
    equal steps in each sequence. A Python list of lists has one sequence in each list. A row without a value is never
    dropped, as its neighbours would become adjacent; with ``missing="mask"`` it is kept with an unknown observation.

    The canonical arrays are the observations `name`, shape (rows,), unknown where they are -1, or NaN if they are real;
    and ``sequence``, shape (rows,), whose numbers 0, 1, 2, ... are in the order of the rows.
    """

    name: str
    options = frozenset({"column", SEQUENCE, "time"})
    treatments = ("refuse", "mask")
    is_in_order = True

    def own_table(self, source: Any, decimal: str) -> Table | None:
        """Read a list of sequences."""
        return table_of(source, decimal, self.name)

    def _checked_options(self, table: Table, missing: str, options: Options) -> Options:
        if missing == "drop":
            hint = "use --missing mask, which keeps the row with an unknown observation"
            raise InputError(
                "to drop a row would join its neighbours, which are not adjacent", "row_order_matters", hint=hint
            )
        return super()._checked_options(table, missing, options)

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        columns = columns_in_order(table, options, self.name)
        parsed = self._arrays(columns, missing, lambda column: self._converted(column, options, like))
        notes = checked_times(table, options.get("time"), parsed.arrays[SEQUENCE], columns[self.name].name)
        return replace(parsed, notes=(*parsed.notes, *notes))

    def _arrays(self, columns: Mapping[str, Column], missing: str, convert: Callable[[Column], Converted]) -> Parsed:
        """Convert the observations, and number their sequences."""
        column, names = columns[self.name], columns.get(SEQUENCE)
        sequence = np.zeros(len(column), dtype=np.int64) if names is None else numbered(names)
        try:
            converted = convert(column)
            holes = _refuse_holes(column, converted.values, missing)
        except InputError as error:
            raise _placed(error, names, sequence) from None
        about = () if names is None else _lengths(names, sequence)
        arrays = {self.name: self._stored(converted.values), SEQUENCE: sequence, **converted.coords}
        used = {role: column.name for role, column in columns.items()}
        return Parsed(arrays, used, (*converted.notes, *holes, *about))

    @abstractmethod
    def _converted(self, column: Column, options: Options, like: Arrays | None) -> Converted: ...

    def _stored(self, values: np.ndarray) -> np.ndarray:
        """Return observations in canonical form."""
        return np.where(np.isnan(values), MASKED, values).astype(np.int64)

    def masked(self, arrays: Arrays) -> np.ndarray:
        """Return which observations are unknown, bool (rows,)."""
        values = arrays[self.name]
        return np.isnan(values) if values.dtype.kind == "f" else values < 0

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return the observations, missing where unknown; and for several sequences their numbers, from 1."""
        names = {self.name, SEQUENCE}
        if not {*names, *self.coords} <= arrays.keys() or any(arrays[name].dtype.kind not in "if" for name in names):
            return dict(arrays)  # data made by hand, not yet checked
        values, masked, sequence = self._written(arrays), self.masked(arrays), arrays[SEQUENCE]
        column = np.where(masked, "" if values.dtype.kind == "U" else np.nan, values) if masked.any() else values
        return {self.name: column} | ({SEQUENCE: sequence + 1} if sequence.any() else {})

    def _written(self, arrays: Arrays) -> np.ndarray:
        """Return the observations in the user's form; masked ones have any value."""
        return arrays[self.name]

    def reading(self, arrays: Arrays) -> Options:
        """Return the option for masks, if values are missing."""
        return {"missing": "mask"} if self.masked(arrays).any() else {}

    def unseen(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Return a further sequence with unknown observations."""
        of_rows = {self.name: self._stored(np.full(rows, np.nan)), SEQUENCE: np.zeros(rows, dtype=np.int64)}
        return {**of_rows, **{axis: arrays[axis] for axis in self.coords}}

    def observations(self, arrays: Arrays) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the rows with counts of 1, or 0 where the observation is unknown."""
        return dict(arrays), (~self.masked(arrays)).astype(np.int64)

    def following(self, arrays: Arrays, rows: Arrays) -> dict[str, np.ndarray]:
        """Return the rows as a continuation of the last sequence."""
        last = arrays[SEQUENCE][-1] if len(arrays[SEQUENCE]) else 0
        return {**rows, SEQUENCE: np.full(self.size(rows), last)}

    def without(self, arrays: Arrays, row: int) -> dict[str, np.ndarray]:
        """Return all rows with one observation unknown, as without the row its neighbours would be adjacent."""
        values = arrays[self.name].copy()
        values[row] = self._stored(np.full(1, np.nan))[0]
        return {**arrays, self.name: values}

    def reordered(self, arrays: Arrays, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Return the rows at the indices `permutation`; a new sequence starts where the sequence number changes.

        Whole sequences in another order are the same data. Rows of one sequence that become neighbours are adjacent in
        time, even if there were rows between them.
        """
        moved = super().reordered(arrays, permutation)
        return {**moved, SEQUENCE: _renumbered(moved[SEQUENCE])}


@dataclass(frozen=True)
class RealSeries(Series, Measured):
    """Real numbers in order."""

    name: str = "y"
    holds = _HOLDS.format("real numbers ({0.name})")

    def _converted(self, column: Column, options: Options, like: Arrays | None) -> Converted:
        return Converted(to_reals(column), {}, ())

    def _stored(self, values: np.ndarray) -> np.ndarray:
        return values


@dataclass(frozen=True)
class CountSeries(Series):
    """Counts of events in order."""

    name: str = "y"
    holds = _HOLDS.format("counts ({0.name})")

    def _converted(self, column: Column, options: Options, like: Arrays | None) -> Converted:
        values = to_counts(column)
        refuse_large_sum(column, values[~np.isnan(values)])
        return Converted(values, {}, ())

    def canonical(self, arrays: Mapping[str, object], missing: str = "mask") -> Parsed:
        """Check counts as strictly as a table; -1 is masked."""
        table = read_table(arrays)
        columns = {name: unmasked(column) if name == self.name else column for name, column in table.columns.items()}
        return self.parse(Table("", columns, table.notes), missing)


@dataclass(frozen=True)
class SymbolSeries(Series):
    """Symbols in order: text, or numbers that are only labels.

    The canonical arrays of `Series` hold codes; their labels are the coordinate `axis`.
    """

    name: str = "y"
    axis: str = "symbol"
    options = Series.options | {"symbols"}
    lists = frozenset({"symbols"})

    holds = _HOLDS.format("symbols")

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """The observations are codes, whose labels are the symbols."""
        return Layout((self.axis,), coded={self.name: self.axis}, forms=({self.name, SEQUENCE, self.axis},))

    def _converted(self, column: Column, options: Options, like: Arrays | None) -> Converted:
        fitted = None if like is None else like[self.axis]
        alphabet = Alphabet.of("symbol", "symbols", options.get("symbols"), fitted)
        coded = alphabet.coded(column)
        notes: tuple[str, ...] = ()
        if not np.isnan(coded.codes).all():  # a column without values is refused later
            coded, notes = alphabet.finished(str(column), coded)
        return Converted(coded.codes, {self.axis: label_array(coded.labels)}, notes)

    def _canonical(self, arrays: Mapping[str, object], missing: str) -> Parsed:
        labels = checked_labels(self.axis, arrays[self.axis], least=2)
        columns = Table("", {name: to_column(name, arrays[name]) for name in (self.name, SEQUENCE)}).columns

        def convert(column: Column) -> Converted:
            return Converted(checked_codes(self.name, unmasked(column).values, labels)[1], {self.axis: labels}, ())

        return self._arrays(columns, missing, convert)

    def _written(self, arrays: Arrays) -> np.ndarray:
        return arrays[self.axis][arrays[self.name]]

    def reading(self, arrays: Arrays) -> Options:
        """Return options that list the symbols, unless they are the occurring ones, in order; and for masks."""
        symbols = arrays[self.axis].tolist()
        occur = in_order(set(self._written(arrays)[~self.masked(arrays)].tolist()))
        return super().reading(arrays) | ({} if symbols == occur else {"symbols": symbols})

    def relabelled(self, arrays: Arrays, axis: str, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Put the symbols in the order of `permutation`; masks stay."""
        moved = super().relabelled(arrays, axis, permutation)
        return {**moved, self.name: np.where(self.masked(arrays), MASKED, moved[self.name])}


def starts(sequence: np.ndarray) -> np.ndarray:
    """Return the index of the first row of each sequence, int64, from the sequence numbers (rows,)."""
    inside = np.flatnonzero(sequence[1:] != sequence[:-1])
    return np.concatenate([np.arange(min(len(sequence), 1)), inside + 1])


def first_rows(sequence: np.ndarray) -> np.ndarray:
    """Return marks of the first row of each sequence, bool (rows,)."""
    marks = np.zeros(len(sequence), dtype=bool)
    marks[starts(sequence)] = True
    return marks


def unmasked(column: Column) -> Column:
    """Return a column of codes or counts with NaN in place of masks."""
    values = column.values
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "if":
        return column
    masked = values == MASKED
    return Column(column.name, np.where(masked, np.nan, values)) if masked.any() else column


def _renumbered(sequence: np.ndarray) -> np.ndarray:
    """Return the numbers 0, 1, 2, ... of runs of equal numbers."""
    return np.cumsum(np.diff(sequence, prepend=sequence[:1]) != 0)


def numbered(names: Column) -> np.ndarray:
    """Return the numbers 0, 1, 2, ... of sequences in the order of rows; refuse a sequence that is split."""
    codes = names_of(names)
    first = starts(codes)
    _, index = np.unique(codes[first], return_index=True)
    split = np.setdiff1d(np.arange(len(first)), index)
    if len(split):
        ended = first[1 + np.flatnonzero(codes[first[: split[0]]] == codes[first[split[0]]])[-1]]
        hint = "put the rows of each sequence together, in their order"
        raise names.error(f"names a sequence that ended in row {ended}", "split_sequence", first[split], hint=hint)
    return _renumbered(codes)


def _refuse_holes(column: Column, values: np.ndarray, missing: str) -> tuple[str, ...]:
    """Refuse missing values, or return a note that they are masked; refuse a column without values."""
    rows = np.flatnonzero(np.isnan(values))
    if len(rows) == len(values):
        raise InputError(
            f"{column} has no values", "no_data", column=column.name, hint="leave it out, or name other columns"
        )
    if not len(rows):
        return ()
    if missing == "refuse":
        raise column.lacks(rows, "use --missing mask")
    return (f"{column}: {len(rows)} missing value{'s' if len(rows) > 1 else ''} masked ({listed(rows)})",)


def _placed(error: InputError, names: Column | None, sequence: np.ndarray) -> InputError:
    """Add the sequence and the position of the first offending row, if there are several sequences."""
    if names is None or not error.rows or not sequence.any():
        return error
    row = error.rows[0] - 1
    position = row - int(starts(sequence)[sequence[row]]) + 1
    return error.also(f"; row {row + 1} is position {position} of sequence {shown(names.values[row])}")


def _lengths(names: Column, sequence: np.ndarray) -> tuple[str, ...]:
    """Return a note on the number and the lengths of sequences."""
    lengths = np.bincount(sequence).tolist()
    shortest, longest = min(lengths), max(lengths)
    sizes = f"{shortest} to {longest} rows" if shortest < longest else f"{longest} row{'s' * (longest > 1)} each"
    return (f"{names} names {len(lengths)} sequences, of {sizes}",) if len(lengths) > 1 else ()


# Columns and sequences, of transitions too


def table_of(source: object, decimal: str, name: str = "symbol") -> Table | None:
    """Make a table with columns ``sequence`` and `name` from a list of sequences; None from anything else."""
    if not isinstance(source, list | tuple) or set(map(type, source)) <= {str, int, float}:
        return None  # before slower checks
    columns = [_cells(item) for item in source]
    items = [cells for cells in columns if cells is not None]
    if not items:
        return None
    if len(items) < len(columns):
        other = columns.index(None)
        raise InputError(
            f"item {other + 1} is a {type(source[other]).__name__}, the others are sequences", "mixed_types"
        )
    empty = sum(not item for item in items)
    notes = (f"{empty} empty sequence{'s' if empty > 1 else ''}",) if empty else ()
    names = np.repeat(np.arange(1, len(items) + 1), [len(item) for item in items])
    symbols = to_column(name, [symbol for item in items for symbol in item], decimal)
    return Table("", {"sequence": Column("sequence", names), name: symbols}, notes)


def _cells(item: object) -> list[Any] | None:
    """Return the values of one sequence, which may be a series of a data frame; None of a single value."""
    if isinstance(item, list | tuple):
        return list(item)
    if isinstance(item, np.ndarray):
        return cast(list[Any], item.tolist()) if item.ndim else None
    return cast(list[Any], item.to_list()) if hasattr(item, "to_list") else None


def columns_in_order(table: Table, options: Options, name: str) -> dict[str, Column]:
    """Find the column `name` of values in order, and that of sequences: one called ``sequence`` is never ignored."""
    named = "sequence" in table.columns and len(table.columns) > 1 and options.get("column") != "sequence"
    names = options.get("sequence", "sequence" if named else None)
    others = {options[role]: f"their {role}s" for role in ("time",) if role in options}
    others |= {} if names is None else {names: "their sequences"}
    column = choose(table, options.get("column"), name, others)
    return {name: column} | ({} if names is None else {"sequence": table[names]})


def names_of(sequence: Column) -> np.ndarray:
    """Code the names of sequences, which no row may lack."""
    codes = code(sequence).codes
    holes = np.flatnonzero(np.isnan(codes))
    if len(holes):  # to leave the row out would join its neighbours
        raise sequence.lacks(holes, "name its sequence, or take the row out of the table")
    return codes
