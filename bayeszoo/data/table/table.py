"""A user's table, read without guessing, converting or dropping anything; and its columns as numbers on request.

Cells of text files stay text: their meaning depends on the model and is decided in `bayeszoo.data.inputs`.
``pandas.read_csv`` is not used because it silently shifts columns, renames duplicates, turns ``NA`` into a missing
value and opens URLs.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Self

import numpy as np

from bayeszoo.data.table.cells import (
    Numbers,
    are_codes,
    has_code,
    hint_for,
    is_code,
    is_hole,
    is_lost,
    is_word,
    number_of,
    numbers_in,
    plain_text,
    rounded,
)
from bayeszoo.data.table.hints import by_group
from bayeszoo.data.table.kept import Kept
from bayeszoo.errors import InputError
from bayeszoo.foundation.process.printable import escaped as escaped

LARGEST_COUNT = 2**53 - 1
"""Above it, float64 misses whole numbers."""
MOST_ROWS = 10_000_000
"""Most rows to which a table of counts is expanded."""

LARGEST_REAL = 1e150
"""Above it, the square of a number, or a sum of squares, overflows."""
SMALLEST_REAL = float(np.finfo(np.float64).tiny)
"""Below it, float64 has fewer digits."""

DROP = "use --missing drop"
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


def shown(value: object) -> str:
    """Quote a user's value for a message: numbers and dates bare; text in quotes, escaped, at most 40 characters."""
    text = plain_text(value, DATES)
    text = text if len(text) <= 40 else text[:37] + "..."
    return repr(text) if isinstance(value, str) else escaped(text)


def quoted(names: Iterable[str]) -> str:
    """Return names in a line for a message, at most 20 of them."""
    return ", ".join(map(shown, islice(names, 20)))


def listed(rows: Sequence[int] | np.ndarray, most: int = 5, before: int = 0) -> str:
    """Return row indices (from 0) as row numbers (from 1) for a message: ``row 2``, ``rows 2, 9``.

    ``before`` rows of the table come before the indexed ones.
    """
    numbers = ", ".join(str(before + int(row) + 1) for row in rows[:most])
    return f"row{'s' if len(rows) > 1 else ''} {numbers}{', ...' if len(rows) > most else ''}"


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a user's table."""

    name: str
    cells: list[str] | np.ndarray | Numbers
    """Text, missing where empty; or an array of shape (n,), missing where NaN, None or NaT; or text that was already
    converted to numbers."""
    decimal: str = "."
    """The decimal mark of numbers written as text."""
    before: int | None = None
    """Rows of the table before this part, None for a whole table; messages count them. A part may have no values."""
    is_categorical: bool = False
    """Whether the table declares that the values are labels."""
    if_marked: str = ""  # what to do if marks of missing values, as NA, are labels

    @property
    def values(self) -> list[str] | np.ndarray:
        """The cells as text or as an array; converted text is read again."""
        return self.cells.texts if isinstance(self.cells, Numbers) else self.cells

    def of_rows(self, rows: np.ndarray) -> Column:
        """Take the rows of an array of indices."""
        if isinstance(cells := self.cells, Numbers):
            return replace(self, cells=cells.of_rows(rows))
        return replace(self, cells=[cells[row] for row in rows] if isinstance(cells, list) else cells[rows])

    def __len__(self) -> int:
        return len(self.cells)

    def __str__(self) -> str:
        return f"column {shown(self.name)}"

    def error(
        self, problem: str, code: str, rows: Sequence[int] | np.ndarray = (), hint: str | None = None, noun: str = ""
    ) -> InputError:
        """Return the error of a `problem`, with the first row, its value, and the number of further rows."""
        if not len(rows):
            return InputError(f"{self} {problem}", code, column=self.name, hint=hint)
        before = self.before or 0
        more = f" (and {len(rows) - 1} more: {listed(rows[1:], 4, before)})" if len(rows) > 1 else ""
        value = f"{noun} {shown(self.values[rows[0]])}".lstrip()
        message = f"{self}, row {before + int(rows[0]) + 1}: {value} {problem}{more}"
        return InputError(message, code, column=self.name, rows=[before + int(row) + 1 for row in rows[:5]], hint=hint)

    def lacks(self, rows: np.ndarray, hint: str) -> InputError:
        """Return the error of missing values in these rows."""
        before = self.before or 0
        count = f"{len(rows)} missing value{'s' if len(rows) > 1 else ''} ({listed(rows, before=before)})"
        where, hint = (before + 1 + rows).tolist(), "; ".join(filter(None, [hint, self.if_marked]))
        return InputError(f"{self}: {count}", "missing_values", column=self.name, rows=where, hint=hint)

    def refuse(self, rows: np.ndarray, problem: str, code: str, hint: str | None = None) -> None:
        """Raise `error` if the mask marks any rows."""
        if rows.any():
            raise self.error(problem, code, np.flatnonzero(rows), hint)


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length, in order."""

    name: str
    """The name in messages: the base name of a file, or empty for a table in memory."""
    columns: dict[str, Column]
    notes: tuple[str, ...] = ()
    """Notes for the user on how the table was read."""

    def __post_init__(self) -> None:
        first, *others = self.columns.values() or [Column("", [])]
        for other in others:
            if len(other) != len(first):
                sizes = f"{escaped(first.name)} has {len(first)} rows, {escaped(other.name)} has {len(other)}"
                raise InputError(sizes, "ragged", column=other.name)

    def __str__(self) -> str:
        return f"{self.name or 'the table'} has columns {quoted(self.columns)}"

    def __getitem__(self, name: object) -> Column:
        if not isinstance(name, str) or name not in self.columns:
            problem, hint = f"{self.name or 'the table'} has no column {shown(name)}", quoted(self.columns)
            raise InputError(problem, "missing_column", column=str(name), hint=f"its columns are {hint}")
        return self.columns[name]

    @property
    def rows(self) -> int:
        """The number of data rows."""
        return len(next(iter(self.columns.values()), ()))


def refuse_duplicates(names: Sequence[str]) -> None:
    """Refuse two columns with the same name."""
    seen: dict[str, int] = {}
    for position, label in enumerate(names, 1):
        if label in seen:
            where = f"(columns {seen[label]} and {position})"
            raise InputError(f"column name {shown(label)} appears twice {where}", "duplicate_name", column=label)
        seen[label] = position


class Dropped(Kept):
    """The note on rows with missing values that were left out: the first few, and their number."""

    first: tuple[int, ...]
    total: int

    @classmethod
    def of(cls, first: Sequence[int], total: int) -> Self:
        """Return the note; ``first`` has at most five rows."""
        places = listed([row - 1 for row in first]).removesuffix(", ...") + ", ..." * (total > len(first))
        note = cls(f"{total} row{'s' if total > 1 else ''} with missing values dropped ({places})")
        note.first, note.total = tuple(first), total
        return note


# Columns: which one, and which of its rows


def choose(table: Table, column: str | None, name: str, taken: Mapping[str, str] | None = None) -> Column:
    """Return the column to use: the requested one, else the column `name`, else the only one that is not taken."""
    taken = taken or {}
    if column is not None:
        if column in taken:
            problem = f"column {shown(column)} cannot hold both the outcomes and {taken[column]}"
            raise InputError(problem, "duplicate_name", column=column)
        return table[column]
    candidates = {label: table[label] for label in table.columns if label not in taken}
    if name in candidates or len(candidates) == 1:
        return candidates[name if name in candidates else next(iter(candidates))]
    hint = by_group({label: candidate.values for label, candidate in candidates.items()})
    raise InputError(str(table), "missing_column", hint=f"say which with --column{hint}")


def complete(
    columns: list[Column], arrays: Iterable[np.ndarray], missing: str, hint: str = DROP
) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """Refuse, or drop, the rows in which a column has no value, NaN in its array.

    Also refuse a table without a complete row; a part of a table may have none.
    """
    arrays = list(arrays)
    holes, notes = _incomplete(columns, arrays, missing, hint)
    return [values[~holes] for values in arrays] if notes else arrays, notes


def _incomplete(
    columns: list[Column], arrays: list[np.ndarray], missing: str, hint: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return marks of the rows in which a column has no value, and a note on dropping them, unless refused."""
    before, whole = columns[0].before or 0, columns[0].before is None
    holes = np.zeros(len(arrays[0]), dtype=bool)
    for column, mask in zip(columns, map(np.isnan, arrays), strict=True):
        rows = np.flatnonzero(mask)
        if len(rows) == len(mask) and whole:
            why, hint = f"{column} has no values", "leave it out, or name other columns"
            raise InputError(why, "no_data", column=column.name, hint=hint)
        if len(rows) and missing == "refuse":
            raise column.lacks(rows, hint)
        holes |= mask
    rows = np.flatnonzero(holes)
    if not len(rows):
        return holes, ()
    if len(rows) == len(holes) and whole:
        raise InputError("no row has a value in every column that is used", "no_data")
    note = Dropped.of([before + int(row) + 1 for row in rows[:5]], len(rows))
    note.kept = before + np.flatnonzero(~holes) + 1
    return holes, (note,)


def stacked(
    columns: list[Column], convert: Callable[[Column], np.ndarray], missing: str, hint: str = DROP
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the complete rows of converted columns as one array (kept, columns), and the note of `complete`."""
    arrays = [convert(column) for column in columns]
    holes, notes = _incomplete(columns, arrays, missing, hint)
    values = np.empty((len(holes) - np.count_nonzero(holes), len(arrays)))
    for j, array in enumerate(arrays):  # column by column, to save a second copy
        values[:, j] = array[~holes]
    return values, notes


# Numbers


def to_numbers(column: Column) -> np.ndarray:
    """Convert a column to float64, shape (n,), with NaN where a value is missing."""
    converted = _converted(column)
    if isinstance(column.cells, Numbers):
        return converted
    column.refuse(np.isinf(converted), "is too large", "too_large")
    if len(rows := rounded(column.values, converted)):
        hint = "subtract a constant, or write a rounded number with an exponent, such as 1.5e16"
        raise column.error("is a whole number of more digits than float64 holds", "not_representable", rows, hint)
    zeros = np.flatnonzero(converted == 0).tolist() if np.asarray(column.values[:1]).dtype.kind not in "iuf" else []
    if lost := [row for row in zeros if is_lost(str(column.values[row]))]:
        raise column.error("is too small for all digits", "not_representable", lost, hint="rescale it, or write 0")
    return converted


def are_numbers(column: Column) -> bool:
    """Say whether every value is a number, however large, or missing."""
    with suppress(InputError):
        _converted(column)
        return True
    return False


def is_text(column: Column) -> bool:
    """Say whether a column has values and none is a number, so that all are labels.

    Whole numbers are labels in a categorical, and if some have leading zeros.
    """
    if isinstance(column.cells, Numbers):
        return False
    values = column.values
    if not isinstance(values, list) and values.dtype.kind not in "bO" and not column.is_categorical:
        return False
    cells = values if isinstance(values, list) else values.tolist()
    if column.is_categorical or (isinstance(values, list) and are_codes(set(cells))):
        return not all(map(is_hole, cells))
    first = next((cell for cell in cells if not is_hole(cell)), None)
    if first is None or not is_word(first, column.decimal):
        return False
    return all(is_word(cell, column.decimal) for cell in (set(cells) if isinstance(values, list) else cells))


def _converted(column: Column) -> np.ndarray:
    if column.is_categorical:
        hint = "make them numbers, where they measure something"
        raise column.error("is categorical: its values are labels", "not_a_number", hint=hint)
    if isinstance(column.cells, Numbers):
        return column.cells.values
    values = column.values
    if isinstance(values, list):
        return _from_text(column, values)
    if values.dtype.kind in "iuf":
        with np.errstate(over="ignore"):  # extended precision may overflow; `to_numbers` refuses infinity
            return values.astype(np.float64, copy=False)
    return _from_objects(column, values)


def to_reals(column: Column) -> np.ndarray:
    """Convert a column like `to_numbers`; refuse numbers whose square overflows or that have lost digits."""
    values = to_numbers(column)
    sizes = np.abs(values)
    column.refuse(sizes > LARGEST_REAL, "is too large to square", "too_large", hint="rescale the column")
    small, hint = (sizes > 0) & (sizes < SMALLEST_REAL), "rescale it, or write 0"
    column.refuse(small, "is too small for all digits", "not_representable", hint)
    return values


def to_counts(column: Column) -> np.ndarray:
    """Convert a column like `to_numbers`; refuse everything except whole numbers from 0 to 2**53 - 1."""
    values = to_numbers(column)
    column.refuse((values != np.floor(values)) & ~np.isnan(values), "is not a whole number", "not_whole")
    column.refuse(values < 0, "is negative", "out_of_range", hint="counts must be >= 0")
    column.refuse(values > LARGEST_COUNT, "is too large", "too_large", hint="counts must be < 2**53")
    return values


def to_positive(column: Column) -> np.ndarray:
    """Convert a column like `to_reals`; refuse everything except numbers above 0."""
    values = to_reals(column)
    column.refuse(values <= 0, "is not > 0", "out_of_range")
    return values


def refuse_large_sum(column: Column, counts: np.ndarray) -> int:
    """Return the sum of counts; refuse a sum that float64 cannot hold exactly."""
    total = math.fsum(counts)  # rounded once, so exact up to the limit
    if total > LARGEST_COUNT:
        raise column.error("has a sum of 2**53 or more", "too_large")
    return int(total)


def refuse_sum(column: Column, counts: np.ndarray) -> int:
    """Return the sum of counts; also refuse a sum of 0, except in a part of a table."""
    total = refuse_large_sum(column, counts)
    if total == 0 and column.before is None:
        raise column.error("adds up to 0: there are no observations", "no_data")
    return total


def repeats(column: Column, counts: np.ndarray) -> np.ndarray:
    """Return the number of repetitions of each row; refuse more than `MOST_ROWS` rows in total."""
    total = refuse_sum(column, counts)
    if total > MOST_ROWS:
        problem = f"adds up to {total} observations, at most {MOST_ROWS} are read"
        raise column.error(problem, "too_large", hint="give a part of them")
    return counts.astype(np.int64)


def _from_text(column: Column, values: list[str]) -> np.ndarray:
    converted, wrong = numbers_in(values, column.decimal)
    if wrong:
        raise _no_number(column, wrong)
    _refuse_codes(column, values)
    return converted


def _from_objects(column: Column, values: np.ndarray) -> np.ndarray:
    cells = values.tolist()
    present = [cell for cell in cells if cell is not None]
    if values.dtype.kind in "mM" or any(isinstance(cell, DATES) for cell in present):
        raise column.error("holds dates", "dates")
    if values.dtype.kind == "c" or any(isinstance(cell, complex | np.complexfloating) for cell in present):
        raise column.error("is complex", "not_a_number")
    if values.dtype.kind == "b" or (present and all(isinstance(cell, bool | np.bool_) for cell in present)):
        raise column.error("holds true/false, not numbers", "not_a_number")
    converted = [number_of(cell, column.decimal) for cell in cells]
    if None in converted:
        raise _no_number(column, [row for row, value in enumerate(converted) if value is None])
    _refuse_codes(column, cells)
    return np.array(converted, dtype=np.float64)


def _refuse_codes(column: Column, cells: Collection[object]) -> None:
    """Refuse whole numbers with leading zeros, which would be lost."""
    if has_code(cells):
        rows = [row for row, cell in enumerate(column.values) if is_code(cell)]
        hint = "write numbers without them; as labels they go to a column of labels or of groups"
        raise column.error("has leading zeros, as a code has", "leading_zeros", rows, hint)


def _no_number(column: Column, rows: list[int]) -> InputError:
    hint = hint_for(column.values[rows[0]], column.decimal)
    return column.error("is not a number", "not_a_number", rows, hint=hint)
