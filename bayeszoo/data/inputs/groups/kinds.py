"""Estimates of groups with their standard errors, successes of trials, and events with their exposure."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Inputs, Layout, Measured, Parsed
from bayeszoo.data.inputs.counts import EXPOSURE, read_outcomes
from bayeszoo.data.inputs.groups.rows import GROUP, Request, Rows, grouped, named_by, names_groups, require_named
from bayeszoo.data.inputs.labels import joined, label_array
from bayeszoo.data.table.table import (
    Column,
    Table,
    choose,
    refuse_large_sum,
    refuse_sum,
    shown,
    to_counts,
    to_positive,
    to_reals,
)
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

SE, SUCCESSES, TRIALS = "se", "successes", "trials"


class Groups(Inputs):
    """Rows are groups, named by the coordinate ``group``; each has the outcome `name` and the array `companion`.

    The column of the option ``group``, the column of this name, or the first column of text names the groups; otherwise
    their names are row numbers. Rows to be predicted may lack the outcome. A row whose name is not in the fit is a new
    group.
    """

    row_names = GROUP
    layout = Layout((GROUP,))
    needs = ("their {0.companion}", "a column {0.companion}")
    companion: str
    """The array that gives the precision of the outcome: standard errors, trials or exposures."""
    unknown: float = 0
    """Its value in a group without observations."""

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        return self._read(Request(table, missing, options))

    def _parse_new(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        return self._read(Request(table, missing, self._as_in(like, table, options), new=True, like=like))

    def _as_in(self, like: Arrays | None, table: Table, options: Options) -> Options:
        """Add the columns of the fit to the options, where rows to be predicted have them too."""
        options_of = {
            name: role if role in self.options else "column" for role, name in getattr(like, "columns", {}).items()
        }
        present = {option: name for name, option in options_of.items() if name in table.columns}
        of_trials, of_counts = {"column", "positive"} & options.keys(), {SUCCESSES, TRIALS} & options.keys()
        other_form = {SUCCESSES, TRIALS} if of_trials else {"column"} if of_counts else set[str]()
        return {option: name for option, name in present.items() if option not in other_form} | options

    @abstractmethod
    def _read(self, request: Request) -> Parsed: ...

    def size(self, arrays: Arrays) -> int:
        """Return the number of groups."""
        return len(arrays[GROUP])

    def reordered(self, arrays: Arrays, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Return the groups at the indices `permutation`, in its order."""
        return {name: values[permutation] for name, values in arrays.items()}

    def relabelled(self, arrays: Arrays, axis: str, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Put the groups in the order of `permutation`."""
        return self.reordered(arrays, permutation)

    def uninformed(self, groups: np.ndarray) -> dict[str, np.ndarray]:
        """Return groups with these names and no observations, whose parameters have the population's law."""
        companions = np.full(len(groups), self.unknown)
        return {self.name: np.zeros(len(groups), dtype=companions.dtype), self.companion: companions, GROUP: groups}

    @abstractmethod
    def raw(self, arrays: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Return the separate estimate of each group, NaN without observations, and its weight in the pooled one."""

    def _outcome(self, request: Request, taken: Mapping[str, str]) -> dict[str, Column]:
        """Return the column of the outcome; none if rows to be predicted have no further column of numbers."""
        option, columns = request.options.get("column"), request.table.columns.items()
        is_present = option or self.name in request.table.columns
        is_in_fit = self.name in getattr(request.like, "columns", {})  # a present column is then in the options
        has_numbers = any(not names_groups(column) for name, column in columns if name not in taken)
        if request.new and not is_present and (is_in_fit or not has_numbers):
            return {}
        return {self.name: choose(request.table, option, self.name, taken)}


def _finished(
    rows: Rows, columns: Mapping[str, Column], arrays: dict[str, np.ndarray], *notes: str, **more: Any
) -> Parsed:
    """Return the arrays and columns with the names of the groups."""
    roles = {role: column.name for role, column in columns.items()}
    roles |= {} if rows.naming.column is None else {GROUP: rows.naming.column.name}
    return Parsed({**arrays, GROUP: label_array(rows.groups)}, roles, (*rows.notes, *notes), **more)


@dataclass(frozen=True)
class GroupMeans(Groups, Measured):
    """An estimate for each group, and its standard error.

    The table has a row for each group: the estimate (``column``), and the standard error, in the column ``se`` or that
    of this option. Or it has no standard errors and several rows for each group, which the column ``group`` or that of
    this option names: the estimates are then means, and the standard errors sd / sqrt(n), with the variance of divisor
    n - 1.

    The canonical arrays are `name` and ``se`` > 0, both of shape (groups,), and the coordinate ``group``.
    """

    name: str = "y"
    companion = SE
    unknown = math.inf
    options = frozenset({"column", SE, GROUP})
    holds = (
        "a row a group, with an estimate ({0.name}, or --column) and its standard error (se, or --se); or several "
        "rows a group (--group) of one column of numbers (--column), whose means are taken"
    )

    def _read(self, request: Request) -> Parsed:
        error = request.options.get(SE, SE)
        if error not in request.table.columns and SE not in request.options:
            return self._of_rows(request)
        errors, contents = request.table[error], {error: "the standard errors"}
        naming = named_by(request, contents)
        outcome = self._outcome(request, contents | naming.taken)
        numbers = [*map(to_reals, outcome.values()), to_positive(errors)]
        columns = {**outcome, SE: errors}
        rows = grouped(request, naming, [*columns.values()], numbers)
        rows.refuse_repeated("give one estimate and standard error a group")
        return _finished(rows, columns, dict(zip(columns, rows.values, strict=True)))

    def _of_rows(self, request: Request) -> Parsed:
        """Read the mean of the rows of each group, and its standard error."""
        hint = "name the column of standard errors with --se, or of the group of each row with --group"
        naming = require_named(request, hint)
        column = choose(request.table, request.options.get("column"), self.name, naming.taken)
        rows = grouped(request, naming, [column], [to_reals(column)])
        self._refuse_few(rows)
        means, errors = rows.means(rows.values[0])
        constant = [rows.groups[i] for i in np.flatnonzero(~(errors > 0))]
        if constant:
            problem = f"{column}: all rows of a group are equal, and the standard error is 0: {joined(constant)}"
            raise InputError(
                problem, "bad_group_column", column=column.name, hint="leave such groups out, or give --se"
            )
        note = f"{column}: the mean of the n rows of each group ({rows.counted}, least n {rows.sizes.min()}), and its "
        note += "standard error sd/sqrt(n), which is taken as known"
        return _finished(rows, {self.name: column}, {self.name: means, SE: errors}, note)

    def _refuse_few(self, rows: Rows) -> None:
        """Refuse groups of a single row, whose standard error is unknown."""
        single = np.flatnonzero(rows.sizes < 2)
        if not len(single):
            return
        names = joined([rows.groups[i] for i in single])
        hint = "leave them out, or name the column of standard errors with --se"
        problem = f"{rows.naming.column}: groups of one row (a standard error needs two): {names}"
        raise InputError(
            problem, "bad_group_column", rows=(rows.places[np.isin(rows.codes, single)] + 1).tolist(), hint=hint
        )

    def raw(self, arrays: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimates, and their weights 1/se^2."""
        return arrays[self.name], np.square(1 / arrays[SE])

    def in_units(self, arrays: Arrays, factor: float, shift: float = 0.0) -> dict[str, np.ndarray]:
        """Return the data with every estimate y as ``factor * y + shift``."""
        return {**super().in_units(arrays, factor, shift), SE: abs(factor) * arrays[SE]}


@dataclass(frozen=True)
class GroupTrials(Groups):
    """Successes and trials of each group, which may have no trials.

    The table has columns `name` and ``trials``, or others named by the options ``successes`` and ``trials``; rows of
    one group, if a column is named for groups, are added up. Or each row is a trial: its outcome (``column``) is 0 or
    1, or one of two labels (``positive``), and the column ``group`` or that of this option names its group.

    The canonical arrays are the counts `name` and ``trials``, both of shape (groups,), and the coordinate ``group``.
    """

    name: str = SUCCESSES
    companion = TRIALS
    options = frozenset({"column", "positive", SUCCESSES, TRIALS, GROUP})
    holds = (
        "a row a group, with columns {0.name} and trials (or --successes and --trials); or a row a trial, with one "
        "column of 0 and 1 (--column; or two labels, with --positive) and the group of each (--group)"
    )

    def _read(self, request: Request) -> Parsed:
        columns = {self.name: request.options.get(SUCCESSES), TRIALS: request.options.get(TRIALS)}
        of_counts, table = any(columns.values()), request.table
        of_trials = bool(request.options.keys() & {"column", "positive"})
        if of_counts and of_trials:
            raise InputError(
                "successes and trials go together, and with neither column nor positive", "options_go_together"
            )
        columns = {role: name or (role if role in table.columns else None) for role, name in columns.items()}
        if of_trials or not (of_counts or columns[TRIALS]):
            return self._of_trials(request)
        if request.new and not columns[self.name]:
            del columns[self.name]
        absent = [SUCCESSES if role == self.name else TRIALS for role, name in columns.items() if not name]
        if absent:
            hint = f"name the column of {absent[0]} with --{absent[0]}"
            raise InputError(str(table), "bad_group_column", hint=hint)
        return self._of_counts(request, {role: table[str(name)] for role, name in columns.items()})

    def _of_counts(self, request: Request, columns: dict[str, Column]) -> Parsed:
        """Read the counts of each group."""
        numbers = {role: to_counts(column) for role, column in columns.items()}
        if self.name in columns:
            _refuse_more(columns[self.name], numbers[self.name], columns[TRIALS], numbers[TRIALS])
        naming = named_by(request, {column.name: f"the {role}" for role, column in columns.items()})
        rows = grouped(request, naming, list(columns.values()), list(numbers.values()))
        (refuse_large_sum if request.new else refuse_sum)(columns[TRIALS], rows.values[-1])
        added = rows.added()
        arrays = {role: rows.total(v).astype(np.int64) for role, v in zip(columns, rows.values, strict=True)}
        never = [] if request.new else [rows.groups[i] for i in np.flatnonzero(arrays[TRIALS] == 0)]
        without = [f"groups without trials, estimated from the other groups: {joined(never)}"] * bool(never)
        roles = {
            SUCCESSES if role == self.name else role: column for role, column in columns.items()
        }  # named as the options
        return _finished(rows, roles, arrays, *added, *without)

    def _of_trials(self, request: Request) -> Parsed:
        """Count the trials of each group, and the successes among them."""
        hint = "name the columns of counts with --successes and --trials; or of the group of each trial with --group"
        naming = require_named(request, hint)
        column = choose(request.table, request.options.get("column"), self.name, naming.taken)
        fitted = getattr(request.like, "reading", {}).get("outcomes", ())
        outcomes, notes, labels = read_outcomes(column, request.options.get("positive"), fitted)
        rows = grouped(request, naming, [column], [outcomes])
        arrays = {self.name: rows.total(rows.values[0]).astype(np.int64), TRIALS: rows.sizes.astype(np.int64)}
        note = f"each row is a trial, counted by group: {rows.counted}"
        return _finished(rows, {"column": column}, arrays, *notes, note, outcomes=labels)

    def raw(self, arrays: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Return the shares of successes, and the trials as their weights."""
        return _per(arrays[self.name], arrays[TRIALS]), arrays[TRIALS]

    def possible(self, arrays: Arrays | None = None) -> Iterator[dict[str, np.ndarray]]:
        """Yield every outcome of two trials in each of the first two groups, and no trials in the others."""
        groups = label_array(["1", "2"]) if arrays is None else arrays[GROUP]
        trials = np.where(np.arange(len(groups)) < 2, 2, 0)
        for first_two in itertools.product(range(3), repeat=min(2, len(groups))):
            successes = np.append(first_two, np.zeros(len(groups) - len(first_two), dtype=np.int64))
            yield {self.name: successes, TRIALS: trials, GROUP: groups}


def _per(counts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    return np.divide(counts, sizes, out=np.full(len(counts), np.nan), where=sizes > 0)


def _refuse_more(successes: Column, counts: np.ndarray, trials: Column, totals: np.ndarray) -> None:
    """Refuse more successes than trials."""
    above = np.flatnonzero(counts > totals)
    if len(above):
        raise successes.error(
            f"successes are more than {shown(trials.values[above[0]])} trials", "successes_above_trials", above
        )


@dataclass(frozen=True)
class GroupEvents(Groups):
    """Counts of the events of each group, and the exposure, the time or amount of observation.

    The table has a column of counts (``column``), and a column ``exposure`` or that of this option; without it each row
    has exposure 1. Rows of one group, if a column is named for groups, are added up.

    The canonical arrays are the counts `name` and ``exposure`` > 0, both of shape (groups,), and the coordinate
    ``group``.
    """

    name: str = "y"
    companion = EXPOSURE
    options = frozenset({"column", EXPOSURE, GROUP})
    holds = (
        "a row a group, with a count ({0.name}, or --column) and how long or how much it was observed (exposure, or "
        "--exposure; else each row counts as 1); rows of one group (--group) are added up"
    )

    def _read(self, request: Request) -> Parsed:
        exposure = request.options.get(EXPOSURE, EXPOSURE if EXPOSURE in request.table.columns else None)
        exposures = {} if exposure is None else {EXPOSURE: request.table[exposure]}
        contents = {column.name: "the exposure" for column in exposures.values()}
        naming = named_by(request, contents)
        outcome = self._outcome(request, contents | naming.taken)
        columns = {**outcome, **exposures}
        numbers = [*map(to_counts, outcome.values()), *map(to_positive, exposures.values())]
        rows = grouped(request, naming, list(columns.values()), numbers)
        added = rows.added()
        values = dict(zip(columns, rows.values, strict=True))
        arrays = {EXPOSURE: rows.total(values.get(EXPOSURE, np.ones(len(rows.codes))))}
        if outcome:
            refuse_large_sum(outcome[self.name], values[self.name])
            arrays = {self.name: rows.total(values[self.name]).astype(np.int64), **arrays}
        ones = ["no exposure is given: each row of the table counts as 1 (--exposure)"] * (not exposures)
        return _finished(rows, columns, arrays, *added, *ones)

    def raw(self, arrays: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Return the events per exposure, and the exposures as their weights."""
        return _per(arrays[self.name], arrays[EXPOSURE]), arrays[EXPOSURE]
