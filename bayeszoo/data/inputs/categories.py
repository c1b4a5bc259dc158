"""Categories: a column of labels, or counts of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Inputs, Layout, Parsed, columns_of, every_code, group_starts, listing
from bayeszoo.data.inputs.labels import Alphabet, Coded, checked_codes, checked_labels, in_order, label_array
from bayeszoo.data.table.table import (
    LARGEST_COUNT,
    Column,
    Table,
    are_numbers,
    choose,
    complete,
    listed,
    refuse_sum,
    stacked,
    to_counts,
)
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

COUNTS = "counts"


@dataclass(frozen=True)
class Categories(Inputs):
    """Outcomes in one of several categories: a column of labels, or counts.

    The table holds one column of labels; or a column of labels and a column ``count`` of their counts; or one column of
    counts for each category, where each row is a multinomial observation. The canonical arrays are the codes `name`,
    shape (rows,), or ``counts``, shape (rows, categories), and the coordinate `axis` of labels.
    """

    name: str = "y"
    axis: str = "category"
    options = frozenset({"column", "count", "columns", "categories"})
    lists = frozenset({"columns", "categories"})

    holds = (
        "one column of labels ({0.name}), perhaps with a column of counts (--count), "
        "or one column of counts a category (--columns)"
    )

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """Codes, or a column of counts for each category, and the labels."""
        forms = {self.name, self.axis}, {COUNTS, self.axis}
        return Layout((self.axis,), {COUNTS: (self.axis,)}, {self.name: self.axis}, forms)

    # Tables

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        if "columns" in options and options.keys() & {"column", "count"}:
            raise InputError(
                "columns of counts and a column of labels do not go together",
                "conflicting_options",
                hint="leave one out",
            )
        fitted = None if like is None else like[self.axis]
        alphabet = Alphabet.of("category", "categories", options.get("categories"), fitted)
        if "columns" in options or (not options.keys() & {"column", "count"} and self._holds_counts(table, alphabet)):
            columns = [table[name] for name in options.get("columns", table.columns)]
            return self._from_counts(columns, missing, alphabet)
        taken = {options["count"]: "their counts"} if "count" in options else {}
        column = choose(table, options.get("column"), self.name, taken)
        if "count" in options:
            return self._from_counted(column, table[options["count"]], missing, alphabet)
        coded = alphabet.coded(column)
        (codes,), dropped = complete([column], [coded.codes], missing)
        coded, notes = alphabet.finished(str(column), Coded(coded.labels, codes))
        arrays = {self.name: coded.codes.astype(np.int64), self.axis: label_array(coded.labels)}
        return Parsed(arrays, {self.name: column.name}, (*notes, *dropped))

    def _holds_counts(self, table: Table, alphabet: Alphabet) -> bool:
        """Say whether there are at least two columns, all of numbers, which must then be categories."""
        if alphabet.fitted and set(alphabet.labels or ()) == table.columns.keys():
            return True
        if len(table.columns) < 2 or not all(map(are_numbers, table.columns.values())):
            return False
        unclear = next((name for name in (self.name, "count") if name in table.columns), None)
        if unclear is None:
            return True
        hint = f"give --columns {listing(table.columns)} if it is, else --column or --count"
        raise table[unclear].error("may be a category or not", "unclear_labels", hint=hint)

    def _from_counted(self, column: Column, count: Column, missing: str, alphabet: Alphabet) -> Parsed:
        coded = alphabet.coded(column)
        (codes, counts), dropped = complete([column, count], [coded.codes, to_counts(count)], missing)
        refuse_sum(count, counts)
        coded, notes = alphabet.finished(str(column), Coded(coded.labels, codes))
        sums = np.bincount(coded.codes.astype(np.int64), counts, len(coded.labels))  # below 2**53, so exact
        arrays = {COUNTS: sums.astype(np.int64)[None], self.axis: label_array(coded.labels)}
        return Parsed(arrays, {"column": column.name, "count": count.name}, (*notes, *dropped))

    def _from_counts(self, columns: list[Column], missing: str, alphabet: Alphabet) -> Parsed:
        names = [column.name for column in columns]
        labels, places = alphabet.places(names)
        matrix, dropped = stacked(columns, to_counts, missing)
        counts = np.zeros((len(matrix), len(labels)), dtype=np.int64)
        counts[:, places] = matrix
        notes = (*alphabet.notes("the table", labels, names), *dropped, *_about_sums(counts))
        arrays = {COUNTS: counts, self.axis: label_array(labels)}
        return Parsed(arrays, {COUNTS: ", ".join(names)}, notes)

    # Canonical arrays

    def _canonical(self, arrays: Mapping[str, object], missing: str) -> Parsed:
        labels = checked_labels(self.axis, arrays[self.axis], least=2)
        if self.name in arrays:
            column, codes = checked_codes(self.name, arrays[self.name], labels)
            (codes,), dropped = complete([column], [codes], missing)
            return Parsed({self.name: codes.astype(np.int64), self.axis: labels}, {}, dropped)
        matrix, dropped = stacked(columns_of(COUNTS, arrays[COUNTS], self.axis, labels), to_counts, missing)
        counts = matrix.astype(np.int64)
        return Parsed({COUNTS: counts, self.axis: labels}, {}, (*dropped, *_about_sums(counts)))

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return a column of labels, or a column of counts for each label."""
        labels = arrays[self.axis]
        if self.name in arrays:
            return {self.name: labels[arrays[self.name]]}
        return dict(zip(labels.tolist(), arrays[COUNTS].T, strict=True))

    def reading(self, arrays: Arrays) -> Options:
        """Return the option that names the categories, unless they are the occurring ones, in order."""
        labels = arrays[self.axis].tolist()
        if self.name in arrays:
            occur = in_order(arrays[self.axis][np.unique(arrays[self.name])].tolist())
            return {} if labels == occur else {"categories": labels}
        return {"columns": labels} if {self.name, "count"} & set(labels) else {}

    def other_forms(self, arrays: Arrays) -> list[dict[str, np.ndarray]]:
        """Return the counts of groups of one, two, three, ... rows."""
        if COUNTS in arrays:
            return []
        starts = group_starts(self.size(arrays))
        indicators = np.eye(len(arrays[self.axis]), dtype=np.int64)[arrays[self.name]]
        return [{COUNTS: np.add.reduceat(indicators, starts), self.axis: arrays[self.axis]}]

    def possible(self, arrays: Arrays | None = None) -> Iterator[dict[str, np.ndarray]]:
        """Yield every sequence of four outcomes, or fewer with many categories."""
        labels = np.array(["a", "b", "c"]) if arrays is None else arrays[self.axis]
        return ({self.name: outcomes, self.axis: labels} for outcomes in every_code(len(labels)))

    def outcome(self, arrays: Arrays) -> np.ndarray:
        """Return the codes, shape (rows,), or the counts, shape (rows, categories)."""
        return arrays[self.name if self.name in arrays else COUNTS]

    def has_outcome(self, arrays: Arrays) -> bool:
        """Say that rows hold their outcome."""
        return True

    def observations(self, arrays: Arrays) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return one row for each category, and its count."""
        labels = arrays[self.axis]
        rows = {self.name: np.arange(len(labels)), self.axis: labels}
        if COUNTS in arrays:
            return rows, arrays[COUNTS].sum(axis=0)
        return rows, np.bincount(arrays[self.name], minlength=len(labels))


def _about_sums(counts: np.ndarray) -> tuple[str, ...]:
    """Refuse counts whose sum is 0 or too large for float64; return a note on rows that are all 0."""
    total = math.fsum(counts.ravel())
    if total == 0:
        raise InputError("the counts add up to 0: there are no observations", "no_data")
    if total > LARGEST_COUNT:
        raise InputError("the counts have a sum of 2**53 or more", "too_large")
    zeros = np.flatnonzero(~counts.any(axis=1))
    if not len(zeros):
        return ()
    return (f"{len(zeros)} row{'s' if len(zeros) > 1 else ''} without observations ({listed(zeros)})",)
