"""Times of rows in order: found in a table, and checked to rise by equal steps along each sequence."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from bayeszoo.data.inputs.base import Parsed
from bayeszoo.data.table.table import Column, Table, to_numbers
from bayeszoo.errors import InputError

SEQUENCE, NAMES = "sequence", "sequences"
MOST_TIMES = 10_000
TIMES = ("time", "date", "year")
"""Names of columns that are checked as times if no column is named; they are not used."""
EVEN = 1e-6
"""Largest difference of steps, relative to the shortest."""


SHORTEST_MONTH = 28
"""Days in the shortest month."""


def labels_of_rows(table: Table, parsed: Parsed) -> dict[str, Any]:
    """Return the times of rows and the names of sequences, if the table has them."""
    return {**times_of(table, parsed), **names_of_sequences(table, parsed)}


def times_of(table: Table, parsed: Parsed) -> dict[str, Any]:
    """Return name and values, as text, of the first unused column that rises in every sequence, as times do.

    Times are numbers or ISO dates. Empty if no column has times, or there are more than `MOST_TIMES` rows.
    """
    within = np.diff(parsed.arrays[SEQUENCE]) == 0
    used = set(parsed.columns.values())
    for name, column in table.columns.items():
        if name not in used and within.any() and len(column) <= MOST_TIMES:
            steps = np.diff(_as_times(column))[within]
            if np.all(steps > 0):
                return {"times": {"column": name, "values": [str(value) for value in column.values]}}
    return {}


def names_of_sequences(table: Table, parsed: Parsed) -> dict[str, Any]:
    """Return the names of the sequences in order, as text; empty for one sequence, for many, or for names 1, 2, ..."""
    sequence = parsed.arrays[SEQUENCE]
    column = table.columns.get(parsed.columns.get(SEQUENCE, ""))
    if column is None or not sequence.any() or sequence[-1] >= MOST_TIMES:
        return {}
    firsts = np.flatnonzero(np.diff(sequence, prepend=-1))
    names = [str(column.values[first]) for first in firsts.tolist()]
    return {} if names == [str(i + 1) for i in range(len(names))] else {NAMES: names}


def checked_times(table: Table, name: str | None, sequence: np.ndarray, value: str) -> tuple[str, ...]:
    """Refuse times in the column ``name`` that do not rise by equal steps; return a note if no column is named.

    ``value`` is the column of the observations.
    """
    if name is not None:
        require_even(table[name], sequence)
        return ()
    for usual in TIMES:
        if usual in table.columns and usual != value:
            try:
                require_even(table[usual], sequence)
            except InputError as error:
                return (f"{error}; rows are taken in the order of the table, a step apart",)
    return ()


def require_even(column: Column, sequence: np.ndarray) -> None:
    """Refuse times that do not rise by equal steps in each sequence, as a row is one step of time."""
    times, within = _as_times(column), np.diff(sequence) == 0
    column.refuse(np.isnan(times), "is no time: a number, or a date as 2026-01-31", "not_a_time")
    if not within.any():
        return
    months = np.diff(_months(column))
    steps = np.diff(times) if np.isnan(months).any() else months
    repeats, falls = within & (steps == 0), within & (steps < 0)
    column.refuse(_marks(repeats), "is the time of the row before too", "repeated_times", "keep one row for each time")
    column.refuse(_marks(falls), "is before the time of the row before", "unsorted_times", "sort the rows by it")
    least = np.min(steps[within])
    wide = within & (steps > (1 + EVEN) * least)
    line = f"is {steps[np.argmax(wide)] / least:.3g} times as far from the row before as others are"
    hint = "keep a row for each time that has no value, and use --missing mask"
    column.refuse(_marks(wide), line, "uneven_times", hint)


def _marks(of_steps: np.ndarray) -> np.ndarray:
    """Return marks of the rows at which the marked steps end."""
    return np.append(False, of_steps)


def _as_times(column: Column) -> np.ndarray:
    """Return numbers or dates as numbers; all NaN if the column has neither."""
    with suppress(InputError):
        return to_numbers(column)
    with suppress(ValueError, TypeError):
        return np.asarray(column.values, dtype="datetime64[s]").astype(np.float64)
    return np.full(len(column), np.nan)


def _months(column: Column) -> np.ndarray:
    """Return dates on one day of the month as numbers of months; NaN for other dates and for numbers."""
    with suppress(InputError):
        return np.full(len(to_numbers(column)), np.nan)
    with suppress(ValueError, TypeError):
        days = np.asarray(column.values, dtype="datetime64[D]")
        months = days.astype("datetime64[M]")
        if len(np.unique(days - months)) == 1 or np.all(days == _ends(months)):
            return months.astype(np.float64)
    return np.full(len(column), np.nan)


def times_after(values: Sequence[str], steps: int) -> list[str]:
    """Return the next times after numbers or ISO dates that rise by equal steps; empty for other values.

    Dates on one day of the month, or on ends of months, continue by months.
    """
    if len(values) < 3:  # two times do not show equal steps
        return []
    with suppress(ValueError):
        return [f"{number:.12g}" for number in _ahead(np.array([float(value) for value in values]), steps)]
    with suppress(ValueError):
        if all(len(value) == len("2026-01") for value in values):
            return _dates_ahead(np.asarray([*values], dtype="datetime64[M]"), steps)
        return _days_ahead(np.asarray([*values], dtype="datetime64[D]"), steps)
    return []


def _days_ahead(days: np.ndarray, steps: int) -> list[str]:
    months, one_day = days.astype("datetime64[M]"), np.timedelta64(1, "D")
    if np.all(days == _ends(months)):
        return [str(day) for day in _ends(np.asarray(_dates_ahead(months, steps), dtype="datetime64[M]"))]
    within = (days - months.astype("datetime64[D]")) // one_day
    if len(np.unique(within)) == 1 and within[0] < SHORTEST_MONTH:
        after = np.asarray(_dates_ahead(months, steps), dtype="datetime64[M]").astype("datetime64[D]")
        return [str(day) for day in after + within[0] * one_day]
    return _dates_ahead(days, steps)


def _ends(months: np.ndarray) -> np.ndarray:
    """Return the last day of each month."""
    return (months + np.timedelta64(1, "M")).astype("datetime64[D]") - np.timedelta64(1, "D")


def _dates_ahead(dates: np.ndarray, steps: int) -> list[str]:
    """Return the next dates after such that rise by equal steps of their own unit."""
    return [str(date) for date in _ahead(dates.astype(np.int64), steps).astype(np.int64).astype(dates.dtype)]


def _ahead(numbers: np.ndarray, steps: int) -> np.ndarray:
    """Return the next numbers after such that rise by equal steps; raises `ValueError` where they do not."""
    gaps = np.diff(numbers)
    if not (gaps[-1] > 0 and np.allclose(gaps, gaps[-1], rtol=EVEN, atol=0)):
        raise ValueError("no equal steps")
    return numbers[-1] + gaps[-1] * np.arange(1, steps + 1)
