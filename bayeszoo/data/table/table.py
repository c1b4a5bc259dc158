"""Read a user's table, from a file or from memory, without guessing, converting or dropping anything.

Cells of text files stay text: what a cell means depends on the model and is settled in `bayeszoo.data.inputs`.
``pandas.read_csv`` is not used because it shifts columns, renames duplicates, turns ``NA`` into a hole and opens URLs
without saying so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from bayeszoo.errors import InputError


def shown(value: object) -> str:
    """Quote a user's value for a message: numbers bare; text in quotes, escaped, at most 40 characters."""
    value = value.item() if isinstance(value, np.generic) else value
    text = value if isinstance(value, str) else repr(value)
    text = text if len(text) <= 40 else text[:37] + "..."
    return repr(text) if isinstance(value, str) else escaped(text)


def quoted(names: Iterable[str]) -> str:
    """Write names in a row for a message, at most 20 of them."""
    return ", ".join(map(shown, islice(names, 20)))


def escaped(text: object) -> str:
    """Write control characters visibly, so that a file name cannot drive the user's terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def listed(rows: Sequence[int] | np.ndarray, most: int = 5, before: int = 0) -> str:
    """Write row indices (from 0) as the row numbers (from 1) that a user counts: ``row 2``, ``rows 2, 9``.

    ``before`` rows of the table come before those that are indexed.
    """
    numbers = ", ".join(str(before + int(row) + 1) for row in rows[:most])
    return f"row{'s' if len(rows) > 1 else ''} {numbers}{', ...' if len(rows) > most else ''}"


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a user's table."""

    name: str
    values: list[str] | np.ndarray
    """Text, where an empty cell is missing; or an array of shape (n,), where NaN, None and NaT are."""
    decimal: str = "."
    """The decimal mark of numbers written as text."""
    before: int | None = None
    """How many rows of the table come before a part of it: messages count them. A part need not hold a value at all."""

    def __len__(self) -> int:
        return len(self.values)

    def __str__(self) -> str:
        return f"column {shown(self.name)}"

    def error(
        self, problem: str, rows: Sequence[int] | np.ndarray = (), hint: str | None = None, noun: str = ""
    ) -> InputError:
        """Make the error that says where `problem` is: the first row, its value, and how many more."""
        if not len(rows):
            return InputError(f"{self} {problem}", column=self.name, hint=hint)
        before = self.before or 0
        more = f" (and {len(rows) - 1} more: {listed(rows[1:], 4, before)})" if len(rows) > 1 else ""
        value = f"{noun} {shown(self.values[rows[0]])}".lstrip()
        message = f"{self}, row {before + int(rows[0]) + 1}: {value} {problem}{more}"
        return InputError(message, column=self.name, rows=[before + int(row) + 1 for row in rows[:5]], hint=hint)

    def refuse(self, rows: np.ndarray, problem: str, hint: str | None = None) -> None:
        """Raise `error` when the mask marks any of the rows."""
        if rows.any():
            raise self.error(problem, np.flatnonzero(rows), hint)


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length, in order."""

    name: str
    """What messages call it: the base name of a file, or empty for a table in memory."""
    columns: dict[str, Column]
    notes: tuple[str, ...] = ()
    """What the user should know about how the table was read."""

    def __post_init__(self) -> None:
        first, *others = self.columns.values() or [Column("", [])]
        for other in others:
            if len(other) != len(first):
                sizes = f"{escaped(first.name)} has {len(first)} rows, {escaped(other.name)} has {len(other)}"
                raise InputError(sizes, column=other.name)

    def __getitem__(self, name: str) -> Column:
        if name not in self.columns:
            problem = f"{self.name or 'the table'} has no column {shown(name)}"
            raise InputError(problem, column=name, hint=f"its columns are {quoted(self.columns)}")
        return self.columns[name]

    @property
    def rows(self) -> int:
        """The number of data rows."""
        return len(next(iter(self.columns.values()), ()))


def refuse_duplicates(names: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    seen: dict[str, int] = {}
    for position, label in enumerate(names, 1):
        if label in seen:
            where = f"(columns {seen[label]} and {position})"
            raise InputError(f"column name {shown(label)} appears twice {where}", column=label)
        seen[label] = position
