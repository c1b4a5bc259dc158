"""What the table of a model must hold, and the arrays that become of it."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.numeric import (
    LARGEST_COUNT,
    MISSING,
    choose,
    complete,
    number,
    subnormal,
    to_counts,
    to_numbers,
    to_reals,
)
from bayeszoo.sources import read_table
from bayeszoo.table import Column, Table, escaped, shown

Arrays = Mapping[str, np.ndarray]


_POSITIVE_WORDS = frozenset({"true", "yes", "t", "y"})


@dataclass(frozen=True, eq=False)
class Parsed:
    """The arrays a model computes with, and what became of the user's columns.

    Parameters
    ----------
    arrays : dict of str to ndarray
        Arrays with one row per data row.
    columns : dict of str to str
        The user's column for each role.
    notes : tuple of str
        Everything that was done to the data or is remarkable about them.
    """

    arrays: dict[str, np.ndarray]
    columns: dict[str, str]
    notes: tuple[str, ...] = ()


class Inputs(ABC):
    """What the table of a model must hold.

    Every array is indexed by data row along its first axis, and every method is a pure function.
    """

    options: frozenset[str]
    """The names of the options that `parse` accepts."""

    support: tuple[int, ...] | None
    """The values that one observation may take, or None when there are infinitely many."""

    def parse(self, table: Table, missing: str = "refuse", **options: str | None) -> Parsed:
        """Check a table and turn it into arrays.

        Parameters
        ----------
        table : Table
            The user's table.
        missing : {"refuse", "drop"}
            What to do with rows in which a column that is used has no value.
        **options
            Which columns to use and what their values mean; None is the same as not given.

        Returns
        -------
        Parsed

        Raises
        ------
        InputError
            When the table does not hold what the model needs, or the options do not fit it.
        """
        given = {name: str(value) for name, value in options.items() if value is not None}
        for name in sorted(given.keys() - self.options):
            raise InputError(f"unknown option {shown(name)}", hint=f"accepted are {', '.join(sorted(self.options))}")
        if missing not in ("refuse", "drop"):
            raise InputError(f"missing must be 'refuse' or 'drop', got {shown(missing)}")
        if not table.rows:
            raise InputError(f"no data rows in {table.name}" if table.name else "no data rows")
        return self._parse(table, missing, given)

    def coerce(self, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Check data that already have canonical names, such as ``{"y": [0, 1]}``, as strictly as a file.

        Raises
        ------
        InputError
            When `arrays` has no rows, or does not hold what the model needs.
        """
        return self.parse(read_table(arrays)).arrays

    def parse_new(self, table: Table, missing: str = "refuse", **options: str | None) -> Parsed:
        """Parse rows to be predicted: as `parse`, but where the model can do without it the outcome may be absent."""
        return self.parse(table, missing, **options)

    def has_outcome(self, arrays: Arrays) -> bool:
        """Say whether rows to be predicted hold their outcome."""
        return True

    @abstractmethod
    def unseen(self, rows: int) -> dict[str, np.ndarray]:
        """Return `rows` further single observations whose outcome is not known; the values stand for nothing."""

    def other_forms(self, arrays: Arrays) -> list[dict[str, np.ndarray]]:
        """Return the same observations in the other forms that a table may take, for the checks of a model."""
        return []

    def size(self, arrays: Arrays) -> int:
        """Return the number of rows."""
        return len(self.outcome(arrays))

    def split(self, arrays: Arrays, at: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Split the rows into those before index `at` and the rest."""
        return {k: v[:at] for k, v in arrays.items()}, {k: v[at:] for k, v in arrays.items()}

    def reordered(self, arrays: Arrays, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Put the rows in the order given by `permutation`, an array of row indices."""
        return {name: values[permutation] for name, values in arrays.items()}

    @abstractmethod
    def _parse(self, table: Table, missing: str, options: dict[str, str]) -> Parsed: ...

    @abstractmethod
    def outcome(self, arrays: Arrays) -> np.ndarray:
        """Return the array, shape (rows,), whose distribution the model describes."""

    @abstractmethod
    def observations(self, arrays: Arrays) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the distinct single observations as rows, and how many times each occurs."""

    @abstractmethod
    def empty(self) -> dict[str, np.ndarray]:
        """Return data with no rows."""

    @abstractmethod
    def describe(self) -> str:
        """Say in one line what the table must hold."""


@dataclass(frozen=True)
class Binary(Inputs):
    """Outcomes that are 0 or 1: a column of them, or counts of them.

    The table holds one column of 0 and 1 (or of two labels, with ``positive``); or columns ``successes`` and
    ``trials``; or a column of labels and a column ``count`` of how often each occurs.

    Parameters
    ----------
    name : str
        The model's name of the outcome.
    """

    name: str = "y"
    options = frozenset({"column", "positive", "count", "successes", "trials"})
    support = (0, 1)

    def _parse(self, table: Table, missing: str, options: dict[str, str]) -> Parsed:
        counts = {"successes", "trials"}
        if options.keys() & counts:
            if options.keys() != counts:
                raise InputError("successes and trials go together, and with no other option")
            return _parse_successes(table[options["successes"]], table[options["trials"]], table, missing)
        if not options and counts <= table.columns.keys():
            return _parse_successes(table["successes"], table["trials"], table, missing)
        column = choose(table, options.get("column"), self.name, other=options.get("count"))
        if "count" in options:
            return _parse_counted(column, table[options["count"]], options.get("positive"), table, missing)
        outcomes, notes = _outcomes(column, options.get("positive"))
        (outcomes,), dropped = complete([column], [outcomes], missing)
        return Parsed(
            {self.name: outcomes.astype(np.int64)}, {self.name: column.name}, (*table.notes, *notes, *dropped)
        )

    def outcome(self, arrays: Arrays) -> np.ndarray:
        """Return the zeros and ones, or the numbers of successes; shape (rows,)."""
        return arrays["successes" if "successes" in arrays else self.name]

    def parse_new(self, table: Table, missing: str = "refuse", **options: str | None) -> Parsed:
        """Parse rows to be predicted; a table of ``trials`` alone asks for the number of successes."""
        given = {name: value for name, value in options.items() if value is not None}
        if not (
            given.keys() == {"trials"} or (not given and "trials" in table.columns and "successes" not in table.columns)
        ):
            return self.parse(table, missing, **options)
        trials = table[str(given.get("trials", "trials"))]
        (counts,), dropped = complete([trials], [to_counts(trials)], missing)
        return Parsed({"trials": counts.astype(np.int64)}, {"trials": trials.name}, (*table.notes, *dropped))

    def has_outcome(self, arrays: Arrays) -> bool:
        """Say whether the rows hold more than trials."""
        return set(arrays) != {"trials"}

    def other_forms(self, arrays: Arrays) -> list[dict[str, np.ndarray]]:
        """Return counts of one, two, three, ... of the rows at a time."""
        if "trials" in arrays:
            return []
        starts = np.arange(self.size(arrays))
        starts = starts * (starts + 1) // 2
        starts = starts[starts < self.size(arrays)]
        trials = np.diff(np.append(starts, self.size(arrays)))
        return [{"successes": np.add.reduceat(self.outcome(arrays), starts), "trials": trials}]

    def unseen(self, rows: int) -> dict[str, np.ndarray]:
        """Return further observations."""
        return {self.name: np.zeros(rows, dtype=np.int64)}

    def observations(self, arrays: Arrays) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return a failure and a success as rows, and how many of each the data hold."""
        outcome = self.outcome(arrays)
        successes = int(outcome.sum())
        trials = int(arrays["trials"].sum()) if "trials" in arrays else len(outcome)
        return {self.name: np.array([0, 1])}, np.array([trials - successes, successes])

    def empty(self) -> dict[str, np.ndarray]:
        """Return data with no outcomes."""
        return {self.name: np.empty(0, dtype=np.int64)}

    def describe(self) -> str:
        """Say in one line what the table must hold."""
        return (
            f"one column of 0 and 1 ({self.name}; or two labels, with --positive), or columns successes and trials, "
            "or a column of labels and a column of counts (--count)"
        )


@dataclass(frozen=True)
class Real(Inputs):
    """One column of real numbers.

    Parameters
    ----------
    name : str
        The model's name of the outcome.
    """

    name: str = "y"
    options = frozenset({"column"})
    support = None

    def _parse(self, table: Table, missing: str, options: dict[str, str]) -> Parsed:
        column = choose(table, options.get("column"), self.name)
        (values,), dropped = complete([column], [to_reals(column)], missing)
        notes = (*table.notes, *dropped, *subnormal(column, values))
        return Parsed({self.name: values}, {self.name: column.name}, notes)

    def outcome(self, arrays: Arrays) -> np.ndarray:
        """Return the numbers, shape (rows,)."""
        return arrays[self.name]

    def unseen(self, rows: int) -> dict[str, np.ndarray]:
        """Return further observations."""
        return {self.name: np.zeros(rows)}

    def observations(self, arrays: Arrays) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return every row, with weight one."""
        return dict(arrays), np.ones(self.size(arrays), dtype=np.int64)

    def empty(self) -> dict[str, np.ndarray]:
        """Return data with no numbers."""
        return {self.name: np.empty(0)}

    def describe(self) -> str:
        """Say in one line what the table must hold."""
        return f"one column of real numbers ({self.name})"


# Binary outcomes


def _outcomes(column: Column, positive: str | None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Convert a column to 0 and 1, NaN where missing, and say how labels were read."""
    if positive is not None:
        return _from_labels(column, positive)
    values = column.values
    if isinstance(values, np.ndarray):
        if values.dtype.kind == "b":
            return values.astype(np.float64), ()
        if values.dtype.kind == "O" and {type(cell) for cell in values.tolist()} <= {bool, np.bool_, type(None)}:
            return np.array([np.nan if cell is None else cell for cell in values.tolist()], dtype=np.float64), ()
    _refuse_labels(column)
    outcomes = to_numbers(column)
    other = np.flatnonzero((outcomes != 0) & (outcomes != 1) & ~np.isnan(outcomes))
    if len(other):
        shown_as_number = Column(column.name, outcomes) if isinstance(values, list) else column
        raise shown_as_number.error("is neither 0 nor 1", other)
    return outcomes, ()


def _refuse_labels(column: Column) -> None:
    """Refuse text that is not numbers, with the option to use when it looks like two labels."""
    if not isinstance(column.values, list):
        return
    labels = {label for label in set(column.values) if label.strip().lower() not in MISSING}
    words = sorted(label for label in labels if number(label, column.decimal) is None)
    if words and len(labels) == len(words) <= 2:
        words.sort(key=lambda label: label.lower() not in _POSITIVE_WORDS)
        clear = len(words) == 1 or words[0].lower() in _POSITIVE_WORDS
        short = [escaped(word[:40]) for word in words]
        choices = " or ".join(f"--positive {shlex.quote(word)}" for word in (short[:1] if clear else short))
        raise column.error(f"holds {'/'.join(short)}: use {choices}")
    if words:
        others = set(words)
        rows = [row for row, label in enumerate(column.values) if label in others]
        raise column.error("is neither 0 nor 1", rows)


def _from_labels(column: Column, positive: str) -> tuple[np.ndarray, tuple[str, ...]]:
    labels = _labels(column)
    distinct = sorted(set(labels) - {""})
    listing = ", ".join(map(shown, distinct[:5])) + ", ..." * (len(distinct) > 5)
    if not distinct:
        return np.full(len(labels), np.nan), ()
    if positive not in distinct:
        raise column.error(f"has no {shown(positive)}", hint=f"it holds {listing}")
    if len(distinct) > 2:
        raise column.error(f"holds {len(distinct)} labels, not two: {listing}")
    code = {"": np.nan, **dict.fromkeys(distinct, 0.0), positive: 1.0}
    outcomes = np.fromiter(map(code.__getitem__, labels), np.float64, len(labels))
    return outcomes, (f"{column}: " + ", ".join(f"{shown(label)} is {code[label]:.0f}" for label in distinct),)


def _labels(column: Column) -> list[str]:
    """Write every value as text, the missing ones as ''; a whole number has no decimal point."""
    if isinstance(column.values, list):
        return column.values
    cells = column.values.tolist()
    if column.values.dtype.kind == "f":
        return ["" if cell != cell else f"{cell:.0f}" if cell.is_integer() else str(cell) for cell in cells]
    return ["" if cell is None else str(cell) for cell in cells]


def _parse_successes(successes: Column, trials: Column, table: Table, missing: str) -> Parsed:
    columns = [successes, trials]
    counts = [to_counts(column) for column in columns]
    above = np.flatnonzero(counts[0] > counts[1])
    if len(above):
        row = above[0]
        raise successes.error(f"successes are more than {shown(trials.values[row])} trials", above)
    (first, second), dropped = complete(columns, counts, missing)
    _refuse_sum(trials, second)
    arrays = {"successes": first.astype(np.int64), "trials": second.astype(np.int64)}
    return Parsed(arrays, {"successes": successes.name, "trials": trials.name}, (*table.notes, *dropped))


def _parse_counted(column: Column, count: Column, positive: str | None, table: Table, missing: str) -> Parsed:
    outcomes, notes = _outcomes(column, positive)
    (outcomes, counts), dropped = complete([column, count], [outcomes, to_counts(count)], missing)
    _refuse_sum(count, counts)
    totals = counts[outcomes == 1].sum(), counts.sum()
    arrays = {
        name: np.array([total], dtype=np.int64) for name, total in zip(("successes", "trials"), totals, strict=True)
    }
    return Parsed(arrays, {"column": column.name, "count": count.name}, (*table.notes, *notes, *dropped))


def _refuse_sum(column: Column, counts: np.ndarray) -> None:
    """Refuse counts that add up to nothing, or to more than float64 can count."""
    fits = len(counts) * counts.max(initial=0) < 2**62  # or else the sum of int64 could wrap
    total = int(counts.astype(np.int64).sum()) if fits else sum(map(int, counts))
    if total == 0:
        raise column.error("adds up to 0: there are no observations")
    if not 0 < total <= LARGEST_COUNT:
        raise column.error("has a sum above 2**53")
