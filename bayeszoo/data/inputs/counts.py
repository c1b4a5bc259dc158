"""Counted outcomes: zeros and ones, or events, perhaps with the time or space in which they happened."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from bayeszoo.data.inputs.base import (
    Arrays,
    Inputs,
    Parsed,
    distinct_pairs,
    every_code,
    further_rows_need,
    group_starts,
)
from bayeszoo.data.inputs.labels import texts_of
from bayeszoo.data.table.cells import MISSING, Numbers, is_code, number
from bayeszoo.data.table.table import (
    Column,
    Table,
    choose,
    complete,
    escaped,
    refuse_large_sum,
    refuse_sum,
    repeats,
    shown,
    to_counts,
    to_numbers,
    to_positive,
)
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

EXPOSURE = "exposure"
_POSITIVE_WORDS = frozenset({"true", "yes", "t", "y"})


class Outcomes(NamedTuple):
    """Zeros and ones, NaN where missing; notes on labels; and the labels that are 0 and 1."""

    values: np.ndarray
    notes: tuple[str, ...] = ()
    labels: tuple[str, str] | None = None


@dataclass(frozen=True)
class Binary(Inputs):
    """Outcomes that are 0 or 1, as a column or as counts.

    The table holds one column of 0 and 1 (or of two labels, with ``positive``); or columns ``successes`` and
    ``trials``; or a column of labels and a column ``count`` of their counts.
    """

    name: str = "y"
    options = frozenset({"column", "positive", "count", "successes", "trials"})
    holds = (
        "one column of 0 and 1 ({0.name}; or two labels, with --positive), or columns successes and trials, "
        "or a column of labels and a column of counts (--count)"
    )

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        counts = {"successes", "trials"}
        if options.keys() & counts:
            if options.keys() != counts:
                raise InputError("successes and trials go together, and with no other option", "options_go_together")
            return _parse_successes(table[options["successes"]], table[options["trials"]], missing)
        if not options and counts <= table.columns.keys():
            return _parse_successes(table["successes"], table["trials"], missing)
        taken = {options["count"]: "their counts"} if "count" in options else {}
        try:
            column = choose(table, options.get("column"), self.name, taken)
        except InputError as error:
            if options or not (pair := _successes_and_trials(table)):
                raise
            hint = f"{error.hint}; of counts, --successes {pair[0]} --trials {pair[1]}"
            raise InputError(error.message, error.code, hint=hint) from None
        read = read_outcomes(column, options.get("positive"), getattr(like, "reading", {}).get("outcomes", ()))
        if "count" in options:
            return _parse_counted(column, read, table[options["count"]], missing)
        values, notes, labels = read
        (outcomes,), dropped = complete([column], [values], missing)
        notes = (*notes, *dropped)
        return Parsed({self.name: outcomes.astype(np.int64)}, {self.name: column.name}, notes, labels)

    def outcome(self, arrays: Arrays) -> np.ndarray:
        """Return the zeros and ones, or the numbers of successes; shape (rows,)."""
        return arrays["successes" if "successes" in arrays else self.name]

    def _parse_new(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        """Parse a table of only ``trials``, whose successes are to be predicted, or any other table as for a fit."""
        has_only_trials = not options and "trials" in table.columns and "successes" not in table.columns
        if not (options.keys() == {"trials"} or has_only_trials):
            return self._parse(table, missing, options, like)
        trials = table[options.get("trials", "trials")]
        (counts,), dropped = complete([trials], [to_counts(trials)], missing)
        return Parsed({"trials": counts.astype(np.int64)}, {"trials": trials.name}, dropped)

    def has_outcome(self, arrays: Arrays) -> bool:
        """Say whether the rows hold more than trials."""
        return set(arrays) != {"trials"}

    def other_forms(self, arrays: Arrays) -> list[dict[str, np.ndarray]]:
        """Return the counts of groups of one, two, three, ... rows."""
        if "trials" in arrays:
            return []
        starts = group_starts(self.size(arrays))
        trials = np.diff(np.append(starts, self.size(arrays)))
        return [{"successes": np.add.reduceat(self.outcome(arrays), starts), "trials": trials}]

    def possible(self, arrays: Arrays | None = None) -> Iterator[dict[str, np.ndarray]]:
        """Yield every sequence of four outcomes."""
        return ({self.name: outcomes} for outcomes in every_code(2))

    def observations(self, arrays: Arrays) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return a failure and a success as rows, and their counts in the data."""
        outcome = self.outcome(arrays)
        successes = int(outcome.sum())
        trials = int(arrays["trials"].sum()) if "trials" in arrays else len(outcome)
        return {self.name: np.array([0, 1])}, np.array([trials - successes, successes])


def read_outcomes(column: Column, positive: str | None, known: Sequence[str] = ()) -> Outcomes:
    """Convert a column to 0 and 1, NaN where missing; the labels ``known`` from a fit keep their meaning."""
    if positive is None and known and {*texts_of(column)} <= {"", *known}:
        positive = known[1]
    if positive is not None:
        return _from_labels(column, positive, known)
    column = replace(column, is_categorical=False)  # the labels 0 and 1 mean the numbers
    if isinstance(column.cells, Numbers):
        pass  # there are no labels
    elif isinstance(column.values, list):
        _refuse_labels(column, column.values, known)
    elif column.values.dtype.kind in "bO" and {*map(type, column.values.tolist())} <= {bool, np.bool_, type(None)}:
        return Outcomes(column.values.astype(np.float64))  # None is NaN
    outcomes = to_numbers(column)
    column.refuse((outcomes != 0) & (outcomes != 1) & ~np.isnan(outcomes), "is neither 0 nor 1", "not_binary")
    return Outcomes(outcomes)


def _refuse_labels(column: Column, cells: list[str], known: Sequence[str]) -> None:
    """Refuse text that is not numbers; name the option to use if there are at most two labels."""
    labels = {label for label in set(cells) if label.strip().lower() not in MISSING}
    words = sorted(label for label in labels if number(label, column.decimal) is None or is_code(label))
    if words and len(labels) == len(words) <= 2:
        words.sort(key=lambda label: label.lower() not in _POSITIVE_WORDS)
        is_clear = len(words) == 1 or words[0].lower() in _POSITIVE_WORDS
        short = [escaped(word[:40]) for word in words]
        chosen = known[1:] or (short[:1] if is_clear else short)
        choices = " or ".join(f"--positive {shlex.quote(word)}" for word in chosen)
        raise column.error(f"holds {'/'.join(short)}: use {choices}", "positive_needed")
    if words:
        raise column.error("is neither 0 nor 1", "not_binary", np.flatnonzero(np.isin(cells, words)))


def _from_labels(column: Column, positive: str, known: Sequence[str]) -> Outcomes:
    texts = texts_of(column)
    distinct = sorted({*texts} - {""})
    listing = ", ".join(map(shown, distinct[:5])) + ", ..." * (len(distinct) > 5)
    if not distinct:
        return Outcomes(np.full(len(texts), np.nan))
    if positive not in distinct and positive not in known[1:]:
        raise column.error(f"has no {shown(positive)}", "unknown_label", hint=f"it holds {listing}")
    others = [label for label in distinct if label != positive]
    if len(others) > 1:
        allowed = "two" if positive in distinct else f"one besides {shown(positive)}"
        raise column.error(f"holds {len(distinct)} labels, not {allowed}: {listing}", "not_binary")
    code = {"": np.nan, **dict.fromkeys(distinct, 0.0), positive: 1.0}
    outcomes = np.fromiter(map(code.__getitem__, texts), np.float64, len(texts))
    note = f"{column}: " + ", ".join(f"{shown(label)} is {code[label]:.0f}" for label in distinct)
    return Outcomes(outcomes, (note,), ((others or [""])[0], positive))


def _successes_and_trials(table: Table) -> tuple[str, ...]:
    """Return two columns that may be successes and trials, as a shell needs them; those of the fewest trials."""
    counts = dict[str, np.ndarray]()
    for name, column in table.columns.items():
        with suppress(InputError):
            counts[shlex.quote(escaped(name))] = to_counts(column)
    pairs = [(a, b) for a, b in permutations(counts, 2) if np.all(counts[a] <= counts[b]) and np.any(counts[b] > 1)]
    return min(pairs, key=lambda pair: float(np.sum(counts[pair[1]])), default=())


def _parse_successes(successes: Column, trials: Column, missing: str) -> Parsed:
    columns = [successes, trials]
    counts = [to_counts(column) for column in columns]
    above = np.flatnonzero(counts[0] > counts[1])
    if len(above):
        raise successes.error(
            f"successes are more than {shown(trials.values[above[0]])} trials", "successes_above_trials", above
        )
    (first, second), dropped = complete(columns, counts, missing)
    refuse_sum(trials, second)
    arrays = {"successes": first.astype(np.int64), "trials": second.astype(np.int64)}
    return Parsed(arrays, {"successes": successes.name, "trials": trials.name}, dropped)


def _parse_counted(column: Column, read: Outcomes, count: Column, missing: str) -> Parsed:
    outcomes, notes, labels = read
    (outcomes, counts), dropped = complete([column, count], [outcomes, to_counts(count)], missing)
    refuse_sum(count, counts)
    totals = {"successes": counts[outcomes == 1].sum(), "trials": counts.sum()}
    arrays = {name: np.array([total], dtype=np.int64) for name, total in totals.items()}
    return Parsed(arrays, {"column": column.name, "count": count.name}, (*notes, *dropped), labels)


@dataclass(frozen=True)
class Counts(Inputs):
    """One column of counts, with an ``exposure`` if rows were not observed for equal times.

    The canonical arrays are the counts and, if there is one, ``exposure``. A column of this name is used if no option
    is given. A column ``count`` gives the number of rows that a row stands for.
    """

    name: str = "y"
    options = frozenset({"column", "exposure", "count"})
    holds = (
        "one column of counts ({0.name}), perhaps a column of how long each row was observed (--exposure) "
        "and one of how many rows it stands for (--count)"
    )

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        options, notes = self._with_exposure(table, options, like)
        roles = {"exposure": "the exposure", "count": "their counts"}
        taken = {options[option]: role for option, role in roles.items() if option in options}
        if len(taken) < len(options.keys() & roles):
            raise InputError(
                f"column {shown(options['count'])} cannot hold both the exposure and the counts", "duplicate_name"
            )
        columns = {self.name: choose(table, options.get("column"), self.name, taken)}
        columns |= {option: table[options[option]] for option in roles if option in options}
        return self._arrays(columns, missing, notes)

    def _with_exposure(
        self, table: Table, options: Options, like: Arrays | None
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Add the column ``exposure`` if there are no options, and refuse rows that differ from the fit in this."""
        notes: tuple[str, ...] = ()
        if not options and EXPOSURE in table.columns and len(table.columns) > 1:
            options, notes = {EXPOSURE: EXPOSURE}, (f"{table[EXPOSURE]}: the exposure of each row",)
        if like is not None and (EXPOSURE in like) != (EXPOSURE in options):
            if EXPOSURE in options:
                raise InputError(
                    "the fit has no exposure, these rows do", "exposure_differs", hint="leave it out with --column"
                )
            raise InputError(
                "the fit has an exposure, these rows have none",
                "exposure_differs",
                hint="give its column with --exposure",
            )
        return options, notes

    def _arrays(self, columns: dict[str, Column], missing: str, notes: tuple[str, ...]) -> Parsed:
        numbers = [(to_positive if name == EXPOSURE else to_counts)(column) for name, column in columns.items()]
        complete_rows, dropped = complete(list(columns.values()), numbers, missing)
        values = dict(zip(columns, complete_rows, strict=True))
        if "count" in values:
            times = repeats(columns["count"], values.pop("count"))
            values = {name: np.repeat(array, times) for name, array in values.items()}
        if self.name in values:
            refuse_large_sum(columns[self.name], values[self.name])
            values[self.name] = values[self.name].astype(np.int64)
        return Parsed(values, {name: column.name for name, column in columns.items()}, (*notes, *dropped))

    def _parse_new(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        """Parse a table of only the exposure, whose counts are to be predicted, or any other table as for a fit."""
        exposure = options.get(EXPOSURE, EXPOSURE)
        if not (options.keys() <= {EXPOSURE} and set(table.columns) == {exposure}):
            return self._parse(table, missing, options, like)
        self._with_exposure(table, {EXPOSURE: exposure}, like)
        return self._arrays({EXPOSURE: table[exposure]}, missing, ())

    def other_forms(self, arrays: Arrays) -> list[dict[str, np.ndarray]]:
        """Return the same counts with unequal exposures."""
        if EXPOSURE in arrays:
            return []
        return [{**arrays, EXPOSURE: 0.5 + np.arange(self.size(arrays)) % 4}]

    def possible(self, arrays: Arrays | None = None) -> Iterator[dict[str, np.ndarray]]:
        """Yield each single count below 5000, which leaves out only the far tail."""
        return ({self.name: np.array([count])} for count in range(5000))

    def unseen(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Return further observations."""
        if EXPOSURE in arrays:
            raise further_rows_need("their exposure", "a column exposure")
        return super().unseen(arrays, rows)

    def observations(self, arrays: Arrays) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the distinct counts, or pairs of count and exposure, and the number of rows with each."""
        if EXPOSURE not in arrays:
            values, times = np.unique(arrays[self.name], return_counts=True)
            return {self.name: values}, times
        values, exposures, times = distinct_pairs(arrays[self.name], arrays[EXPOSURE])
        return {self.name: values, EXPOSURE: exposures}, times
