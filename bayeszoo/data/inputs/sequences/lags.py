"""Lags: outcomes of earlier rows as features, which make a regression an autoregression."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from bayeszoo.data.inputs.base import Inputs, Parsed, names_in
from bayeszoo.data.inputs.sequences.series import numbered, starts
from bayeszoo.data.inputs.sequences.times import SEQUENCE, checked_times, times_of
from bayeszoo.data.table.kept import Kept, rows_kept
from bayeszoo.data.table.table import Column, Table, listed, shown, to_reals
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

LAGS, TIME = "lags", "time"
OPTIONS = frozenset({LAGS, TIME, SEQUENCE})
MOST_LAGS = 100
_SHOWN_TIMES = 3
"""Times kept from the end of each sequence, enough to determine the step."""


class End(NamedTuple):
    """The end of a sequence: its name, its last outcomes (latest first, None where missing), and its times."""

    name: str
    last: list[float | None]
    times: list[str]


@dataclass(frozen=True)
class Lags:
    """The number of lags of a regression, and the end of each sequence; ``time`` is the column of times, if any."""

    order: int
    ends: tuple[End, ...]
    time: str = ""

    @classmethod
    def kept(cls, reading: Options) -> Lags | None:
        """Return the lags kept in `Data.reading`; None for a regression without lags."""
        stored = reading.get(LAGS)
        if stored is None:
            return None
        try:
            ends = [End(str(end["name"]), list(map(_number, end["last"])), [*map(str, end["times"])]) for end in
                    stored["ends"]]  # fmt: skip
            order, time = int(stored["order"]), str(stored["time"])
        except (TypeError, KeyError, ValueError):
            ends, order, time = [], 0, ""
        if not ends or any(len(end.last) != order for end in ends):
            raise InputError("the lags stored with the fit are incomplete", "not_writable", hint="fit again")
        return cls(order, tuple(ends), time)

    @property
    def names(self) -> list[str]:
        """The names of the lagged features."""
        return [f"lag {k}" for k in range(1, self.order + 1)]

    @property
    def plain(self) -> dict[str, Any]:
        """The fields for `Data.reading`, ready for JSON."""
        return {"order": self.order, "ends": [end._asdict() for end in self.ends], "time": self.time}


def of_data(data: object) -> Lags | None:
    """Return the lags of the data of a fit; None if it has none."""
    return Lags.kept(getattr(data, "reading", {}))


def _number(value: object) -> float | None:
    return None if value is None else float(value)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class LaggedTable:
    """A table with the columns of lags, and the options to read it.

    The first rows of each sequence have too few rows before them. They are left out after reading, so that rows keep
    the numbers of the user's table; ``place`` (rows,) is the number of earlier rows of the same sequence.
    """

    table: Table
    options: dict[str, Any]
    place: np.ndarray
    lags: Lags
    notes: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, target: str, order: int, options: Options) -> Self:
        """Add the columns of lags; the features are lags and named features."""
        column, sequence, named = (
            table[target],
            np.zeros(table.rows, dtype=np.int64),
            _sequences(table, target, options),
        )
        if column.before is not None:
            raise InputError("--lags needs all rows together", "needs_rows", hint="read the file at once")
        if named is not None:
            sequence = numbered(table[named])
        y, first = to_reals(column), starts(sequence)
        notes = checked_times(table, options.get(TIME), sequence, target)
        place = np.arange(len(y)) - first[sequence]
        if len(place) and order > place.max():
            problem = f"{order} lags need {order + 1} rows of a sequence, the longest has {place.max() + 1}"
            raise InputError(problem, "too_few_rows", hint="use fewer lags")
        asked = names_in("features", options["features"]) if options.get("features") is not None else []
        lags = Lags(order, *_ends(table, y, sequence, order, options.get(TIME), (target, named, *asked)))
        if taken := next((name for name in lags.names if name in asked), None):
            raise InputError(f"a feature is called {shown(taken)}, as a lag is", "duplicate_name", hint="rename it")
        added = {name: Column(name, _moved(y, place, k)) for k, name in enumerate(lags.names, start=1)}
        used = {name: cells for name, cells in table.columns.items() if name in (target, *asked)}
        dropped = {*used, named, options.get(TIME)}
        others = {name: cells for name, cells in table.columns.items() if name not in dropped}
        of_regression = {name: value for name, value in options.items() if name not in OPTIONS}
        of_regression |= {"target": target, "features": [*lags.names, *asked]}
        return cls(replace(table, columns={**others, **used, **added}), of_regression, place, lags, notes)

    def without_first(self, inputs: Inputs, parsed: Parsed) -> Parsed:
        """Leave out the rows with too few rows before them, which are given and are no observations."""
        kept = rows_kept(parsed.notes)
        rows = np.arange(1, len(self.place) + 1) if kept is None else kept
        observed = np.flatnonzero(self.place[rows - 1] >= self.lags.order)
        if not len(observed):
            raise InputError("no row has a value, and one in each of its lags", "no_data", hint="use fewer lags")
        note = Kept(_about(self.place, self.lags.order))
        note.kept = rows[observed]
        notes = (note, *map(str, parsed.notes), *self.notes)
        return replace(parsed, arrays=inputs.reordered(parsed.arrays, observed), notes=notes, lags=self.lags.plain)


def _about(place: np.ndarray, order: int) -> str:
    """Return a note on the rows that are given, and on the scores."""
    first = np.flatnonzero(place < order)
    rows = f"{listed(first)} {'are' if len(first) > 1 else 'is'} given, and no observation{'s' * (len(first) > 1)}"
    return f"each row is predicted from the {order} before it: {rows}; scores of rows are one step ahead"


def _sequences(table: Table, target: str, options: Options) -> str | None:
    """Return the column that names the sequences; a column ``sequence`` is never ignored."""
    named: str | None = options.get(SEQUENCE)
    return SEQUENCE if named is None and SEQUENCE in table.columns and target != SEQUENCE else named


def _moved(y: np.ndarray, place: np.ndarray, lag: int) -> np.ndarray:
    """Return the outcome ``lag`` rows earlier, or 0 outside the sequence, as such rows are left out."""
    return np.where(place >= lag, np.roll(y, lag), 0.0)


def _ends(
    table: Table, y: np.ndarray, sequence: np.ndarray, order: int, time: str | None, used: tuple[str | None, ...]
) -> tuple[tuple[End, ...], str]:
    """Return the end of each sequence, and the column of times: the named one, or one that rises in all sequences."""
    columns = {name: column for name, column in table.columns.items() if name not in used and time in (None, name)}
    rising = times_of(Table("", columns), Parsed({SEQUENCE: sequence}, {})) if columns else {}
    times: dict[str, Any] = rising.get("times", {"column": "", "values": []})
    names = [str(table[used[1]].values[row]) for row in starts(sequence)] if used[1] else [""]
    ends = []
    for k, name in enumerate(names):
        rows = np.flatnonzero(sequence == k)
        last = [None if np.isnan(value) else float(value) for value in y[rows[::-1][:order]]]
        last += [None] * (order - len(last))  # for a sequence that is too short to continue
        ends.append(End(name, last, times["values"][rows[0] : rows[-1] + 1][-_SHOWN_TIMES:]))
    return tuple(ends), times["column"]


def asked(options: Options) -> int | None:
    """Return the number of lags in the options; None without one."""
    if (value := options.get(LAGS)) is None:
        if other := next((name for name in (TIME, SEQUENCE) if options.get(name) is not None), None):
            raise InputError(f"--{other} goes with --lags", "option_needs_data", hint="give --lags 2, or leave it out")
        return None
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_LAGS):
        hint = "`bayeszoo select` compares several: --lags 1-4"
        raise InputError(
            f"lags must be a whole number from 1 to {MOST_LAGS}, got {shown(text)}", "wrong_type", hint=hint
        )
    if options.get("formula") is not None:
        raise InputError("a formula names the features itself, and lags are some too", "conflicting_options",
                         hint="name the others with --features")  # fmt: skip
    return int(text)
