"""Documents: a table of how often each word occurs in each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Inputs, Parsed, columns_of
from bayeszoo.data.inputs.labels import checked_labels, joined, label_array
from bayeszoo.data.inputs.matrix import in_order_of
from bayeszoo.data.inputs.words import vocabulary
from bayeszoo.data.inputs.words.cells import DOCUMENT, dense_columns, is_dense, matrix_table, read_cells
from bayeszoo.data.table.numbers import LARGEST_COUNT, complete, to_counts
from bayeszoo.data.table.table import Column, Table, listed, shown
from bayeszoo.errors import InputError

MOST_CELLS = 20_000_000
"""Counts, zeros and all, that a sparse table is expanded to, at most."""


@dataclass(frozen=True)
class Documents(Inputs):
    """Counts of words, each row one document and each column one word.

    The canonical arrays are the counts `name`, shape (documents, words), and the coordinate `axis` of words. The order
    of the words within a document is not kept, and the density that a model gives is that of the words in an order: the
    density of the counts times the multinomial coefficient.

    The table has a column for each word; or it is anything that a `Corpus` may be, with the same options, of which the
    zeros are then held too, and the names of the documents are not.

    Parameters
    ----------
    name : str
        The model's name of the counts.
    axis : str
        The model's name of the axis of words.
    """

    name: str = "counts"
    axis: str = "word"
    options = vocabulary.OPTIONS | {"columns", "text", DOCUMENT, "word", "count"}
    lists = frozenset({"columns", "vocabulary"})

    @property
    def coords(self) -> tuple[str, ...]:
        """The words."""
        return (self.axis,)

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """The counts have one column a word."""
        return {self.name: (self.axis,)}

    @property
    def forms(self) -> tuple[frozenset[str], ...]:
        """The counts and the words."""
        return (frozenset({self.name, self.axis}),)

    def own_table(self, source: Any, decimal: str) -> Table | None:
        """Read a sparse matrix, or a matrix with its labels."""
        return matrix_table(source, self.name, self.axis)

    def _parse(self, table: Table, missing: str, options: dict[str, Any], like: Arrays | None) -> Parsed:
        same = like is not None and not options and table.columns.keys() == set(like[self.axis].tolist())
        if not (same or is_dense(table, options)):
            return self._as_corpus(table, missing, options, like)
        names, notes = options.get("columns"), table.notes
        if names is None:
            names = [column.name for column in dense_columns(table, options)]
            notes = (*notes, f"every column is a word: {joined(names)}") if like is None else notes
        if like is not None:
            names = in_order_of(like[self.axis].tolist(), names)
        if len(names) < 2:
            raise InputError(f"only the word {shown(names[0])}, at least two are needed", hint="give a column a word")
        counts, about = _counted([table[name] for name in names], missing, like is None)
        return Parsed({self.name: counts, self.axis: label_array(names)}, {self.name: ", ".join(names)}, notes + about)

    def _as_corpus(self, table: Table, missing: str, options: dict[str, Any], like: Arrays | None) -> Parsed:
        """Read what a `Corpus` may be, and fill in the zeros."""
        fitted = None if like is None else like[self.axis]
        cells, columns, notes = vocabulary.chosen(read_cells(table, options, missing, self.name), options, fitted)
        size = len(cells.document) * len(cells.word)
        if size > MOST_CELLS:
            shape = f"{len(cells.document)} documents x {len(cells.word)} words"
            hint = "leave words out, as with --min-documents"
            raise InputError(f"{shape} are {size} counts with their zeros, more than {MOST_CELLS}", hint=hint)
        return Parsed({self.name: cells.dense(), self.axis: label_array(cells.word)}, columns, notes)

    def canonical(self, arrays: Mapping[str, Any], missing: str = "refuse") -> Parsed:
        """Check counts and the words that they are of as strictly as a file; without words, check them as a table."""
        if not self.is_canonical(arrays):
            return super().canonical(arrays, missing)
        if hasattr(arrays[self.name], "tocoo"):
            return self.parse(cast(Table, self.own_table(arrays, ".")), missing)
        labels = checked_labels(self.axis, arrays[self.axis], least=2)
        counts, about = _counted(columns_of(self.name, arrays[self.name], labels), missing, True)
        return Parsed({self.name: counts, self.axis: labels}, {}, about)

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return a column of counts for each word."""
        return dict(zip(arrays[self.axis].tolist(), arrays[self.name].T, strict=True))

    def reading(self, arrays: Arrays) -> dict[str, Any]:
        """Name the columns where they might be taken for those of triplets or raw text."""
        columns = {name: Column(name, values) for name, values in self.table(arrays).items()}
        return {} if is_dense(Table("", columns), {}) else {"columns": list(columns)}

    def unseen(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Return further documents."""
        words = arrays[self.axis]
        return {self.name: np.zeros((rows, len(words)), dtype=np.int64), self.axis: words}

    def describe(self) -> str:
        """Say in one line what the table must hold."""
        return (
            "columns of counts, one a word, with a document a row: all those of the table or some (--columns); "
            "or columns document, word and count, or raw text (--text)"
        )


def _counted(columns: list[Column], missing: str, fitted: bool) -> tuple[np.ndarray, tuple[str, ...]]:
    """Convert columns to counts, shape (kept, words), and say which documents are empty and which words missing.

    Of documents to be fitted, at least one must hold a word; a part of a table need not.
    """
    arrays = list(map(to_counts, columns))
    kept, dropped = complete(columns, arrays, missing)
    values, before = np.column_stack(kept), columns[0].before
    total = _refuse_large_sum(values)
    whole = fitted and before is None
    if whole and total == 0:
        raise InputError("the counts add up to 0: there are no words in the documents")
    notes = (*dropped, *_empty(np.flatnonzero(sum(arrays) == 0), before or 0))
    if whole:
        used = values.any(axis=0)
        notes = (
            *notes,
            *vocabulary.never([column.name for column, is_used in zip(columns, used, strict=True) if not is_used]),
        )
    return values.astype(np.int64), notes


def _refuse_large_sum(values: np.ndarray) -> float:
    """Add up counts, and refuse a sum above what float64 can count; up to there each partial sum is exact."""
    total = float(values.sum())
    if total >= LARGEST_COUNT and sum(map(int, values.ravel())) > LARGEST_COUNT:
        raise InputError("the counts have a sum above 2**53")
    return total


def _empty(rows: np.ndarray, before: int) -> tuple[str, ...]:
    """Name the documents without words, by the rows of the user's table."""
    if not len(rows):
        return ()
    return (f"{len(rows)} empty document{'s' if len(rows) > 1 else ''} ({listed(rows, before=before)})",)
