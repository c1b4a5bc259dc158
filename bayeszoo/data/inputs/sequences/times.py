"""Times of rows in order: found in a table, and checked to rise by equal steps along each sequence."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np

from bayeszoo.data.inputs.base import Parsed
from bayeszoo.data.table.table import Column, Table, to_numbers
from bayeszoo.errors import InputError

SEQUENCE, NAMES, TIME = "sequence", "sequences", "time"
_OF_ROWS = "times"
LABELS_OF_ROWS = (_OF_ROWS, NAMES)
"""What `labels_of_rows` returns."""
MOST_TIMES = 10_000
TIMES = ("time", "date", "year")
"""Names of columns that are checked as times if no column is named; they are not used."""
EVEN = 1e-6
"""Largest difference of steps, relative to the shortest."""
DIGITS = 12
"""Digits of times to come, of numbers that are not whole, from the first digit of their step."""
_ZONE = re.compile(r":\d\d(\.\d+)?(?P<zone>Z|[+-]\d\d:?\d\d)$")
DATE, MONTH = len("2026-01-31"), len("2026-01")


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
                return {_OF_ROWS: {"column": name, "values": _texts(column.values)}}
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
    wide = within & (steps > (1 + EVEN) * least + _rounding(times))
    ratio = steps[np.argmax(wide)] / least
    line = f"is {ratio:.{3 if ratio > 1.005 else 7}g} times as far from the row before as others are"
    hint = "keep a row for each time that has no value, and use --missing mask"
    column.refuse(_marks(wide), line, "uneven_times", hint)


def _marks(of_steps: np.ndarray) -> np.ndarray:
    """Return marks of the rows at which the marked steps end."""
    return np.append(False, of_steps)


def _as_times(column: Column) -> np.ndarray:
    """Return numbers, or the time of dates since the first, as numbers; all NaN if the column has neither."""
    with suppress(InputError):
        return to_numbers(column)
    with suppress(ValueError, TypeError):
        clock = _clock_times(column.values)
        return (clock - clock.min(initial=clock[0])).astype(np.float64)  # float64 has too few digits for nanoseconds
    return np.full(len(column), np.nan)


def _clock_times(values: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Return dates and times by the clock of the zone if this shows one time of day, else in UTC to microseconds."""
    texts, zones = _without_zones(values)
    clock = _to_nanoseconds(texts)
    if len(set(zones)) < 2 or _have_one_time_of_day(clock):
        return clock
    moments = [datetime.fromisoformat(str(value)).astimezone(UTC).replace(tzinfo=None) for value in values]
    return np.asarray(moments, dtype="datetime64[us]")


def _to_nanoseconds(texts: Any) -> np.ndarray:
    """Return times to microseconds, or to nanoseconds if they have these."""
    clock, exact = np.asarray(texts, dtype="datetime64[us]"), np.asarray(texts, dtype="datetime64")
    is_finer = np.datetime_data(exact.dtype)[0] == "ns"
    return exact if is_finer and np.array_equal(exact.astype(clock.dtype), clock) else clock  # NumPy wraps far years


def _without_zones(values: Sequence[Any] | np.ndarray) -> tuple[Any, list[str]]:
    """Return times of day as text without what follows the seconds, as Z or +01:00, and this; others as they are."""
    array = np.asarray(values)
    if array.dtype.kind == "M":
        return array, []
    matches = [_ZONE.search(value) if isinstance(value, str) else None for value in array.tolist()]
    zones = [match.group("zone") if match else "" for match in matches]
    pairs = zip(array.tolist(), zones, strict=True)
    return [value.removesuffix(zone) if zone else value for value, zone in pairs], zones


def _have_one_time_of_day(times: np.ndarray) -> bool:
    return len(np.unique(times - times.astype("datetime64[D]"))) < 2


def _texts(values: Sequence[Any] | np.ndarray) -> list[str]:
    """Return values as text, dates without a time of day where that is midnight for all."""
    array = np.asarray(values)
    if array.dtype.kind != "M":
        return [str(value) for value in array.tolist()]
    days, seconds = array.astype("datetime64[D]"), array.astype("datetime64[s]")
    shortest = days if np.all(days == array) else seconds if np.all(seconds == array) else array
    return [str(value) for value in shortest]


def _months(column: Column) -> np.ndarray:
    """Return dates on one day of the month as numbers of months; NaN for other dates and for numbers."""
    with suppress(InputError):
        return np.full(len(to_numbers(column)), np.nan)
    with suppress(ValueError, TypeError):
        times = _clock_times(column.values)
        if _have_one_time_of_day(times) and _day_of_months(times.astype("datetime64[D]")) is not None:
            return times.astype("datetime64[M]").astype(np.float64)
    return np.full(len(column), np.nan)


def _day_of_months(days: np.ndarray) -> int | None:
    """Return the day of the month, from 0, on which all dates are, or else on the last of a shorter month."""
    months = days.astype("datetime64[M]")
    last, within = (_days_in(months, dates) for dates in (_ends(months), days))
    day = 30 if np.all(within == last) else int(within.max(initial=0))
    return day if np.all(within == np.minimum(day, last)) else None


def _days_in(months: np.ndarray, days: np.ndarray) -> np.ndarray:
    return np.asarray((days - months.astype("datetime64[D]")) // np.timedelta64(1, "D"))


def times_after(values: Sequence[str], steps: int) -> list[str]:
    """Return the next times after numbers, ISO dates or times of day that rise by equal steps; empty for other values.

    Dates on one day of the month, or on ends of months, continue by months. Numbers that may be dates, as 20240131,
    continue only if those to come may be too.
    """
    if len(values) < 3:  # two times do not show equal steps
        return []
    with suppress(ValueError):
        return _numbers_ahead(values, steps)
    with suppress(ValueError):
        if all(len(value) == MONTH for value in values):
            return _dates_ahead(np.asarray([*values], dtype="datetime64[M]"), steps)
        if all(len(value) == DATE for value in values):
            return _days_ahead(np.asarray([*values], dtype="datetime64[D]"), steps)
        texts, zones = _without_zones(values)
        if len({*map(len, texts)}) == len({*zones}) == 1:
            times = _dates_ahead(np.asarray(texts, dtype="datetime64"), steps)
            return [time.replace("T", texts[0][DATE]) + zones[0] for time in times]
    return []


def _numbers_ahead(values: Sequence[str], steps: int) -> list[str]:
    numbers = np.array([float(value) for value in values])
    ahead = _ahead(numbers, steps)
    every = np.concatenate([numbers, ahead])
    if np.all(every == np.round(every)):
        texts = [f"{number:.0f}" for number in ahead]
        return [] if all(map(_is_date, values)) and not all(map(_is_date, texts)) else texts
    by_step = DIGITS - 1 - math.floor(math.log10(ahead[0] - numbers[-1]))
    decimals = min(by_step, -math.ceil(math.log10(_rounding(numbers))))
    return [f"{np.round(number, decimals):.15g}" for number in ahead]


def _is_date(text: str) -> bool:
    """Say whether a whole number may be a month or a date of our times, as 202401 and 20240131."""
    if len(text) not in (6, 8) or not "1900" <= text[:4] < "2100":
        return False
    with suppress(ValueError):
        return bool(np.datetime64("-".join([text[:4], text[4:6], *([text[6:]] if text[6:] else [])])))
    return False


def _days_ahead(days: np.ndarray, steps: int) -> list[str]:
    if (day := _day_of_months(days)) is None:
        return _dates_ahead(days, steps)
    months = np.asarray(_dates_ahead(days.astype("datetime64[M]"), steps), dtype="datetime64[M]")
    within = np.minimum(day, _days_in(months, _ends(months)))
    return [str(date) for date in months.astype("datetime64[D]") + within * np.timedelta64(1, "D")]


def _ends(months: np.ndarray) -> np.ndarray:
    """Return the last day of each month."""
    return (months + np.timedelta64(1, "M")).astype("datetime64[D]") - np.timedelta64(1, "D")


def _dates_ahead(dates: np.ndarray, steps: int) -> list[str]:
    """Return the next dates after such that rise by equal steps of their own unit."""
    return [str(date) for date in _ahead(dates.astype(np.int64), steps).astype(np.int64).astype(dates.dtype)]


def _ahead(numbers: np.ndarray, steps: int) -> np.ndarray:
    """Return the next numbers after such that rise by equal steps; raises `ValueError` where they do not."""
    gaps = np.diff(numbers)
    rounding = 0.0 if numbers.dtype.kind == "i" else _rounding(numbers)
    if not (gaps[-1] > 0 and np.allclose(gaps, gaps[-1], rtol=EVEN, atol=rounding)):
        raise ValueError("no equal steps")
    step = gaps[-1] if numbers.dtype.kind == "i" else (numbers[-1] - numbers[0]) / len(gaps)
    return np.asarray(numbers[-1] + step * np.arange(1, steps + 1))


def _rounding(numbers: np.ndarray) -> float:
    """Return how far the steps of numbers may be off because float64 rounds the numbers."""
    return 2 * float(np.spacing(np.max(np.abs(numbers)).astype(np.float64)))
