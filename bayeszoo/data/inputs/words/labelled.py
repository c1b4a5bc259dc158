"""Documents with classes: the counts of words, the class and the length of each document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Layout, Parsed, every_code, listing
from bayeszoo.data.inputs.classed import (
    CLASS,
    CLASSES,
    alphabet_of,
    classes_of,
    named_classes,
    refuse_unclear_counts,
    trimmed,
)
from bayeszoo.data.inputs.labels import checked_codes, checked_labels, joined, label_array
from bayeszoo.data.inputs.regression import free_name
from bayeszoo.data.inputs.words.cells import DOCUMENT, Cells, MatrixTable, ReadCells, matrix_table, read_cells, roles_of
from bayeszoo.data.inputs.words.corpus import (
    COUNTS,
    DOC,
    TERM,
    WORD,
    Bags,
    cells_of_rows,
    chosen,
    in_order_of_words,
    triplets,
)
from bayeszoo.data.table.read import is_frame, read_table, to_column
from bayeszoo.data.table.table import (
    Column,
    Dropped,
    Table,
    are_numbers,
    complete,
    shown,
    to_counts,
    to_reals,
)
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

LENGTH = "length"
_NUMBERED = 8
"""Fewest rows in which an increasing column counts as row numbers; counts increase in at most one of 8! orders."""


@dataclass(frozen=True)
class LabelledDocuments(Bags):
    """One column of labels, the class of each document, and its words, in any form of a `Corpus`.

    The class is in the column `name`, or the one that the option ``target`` names; in triplets all rows of a document
    have the same class. The option ``classes`` lists the classes in order, also those without documents. New documents
    may lack the class; they have the words of the fit, and other words are counted and left out. The option ``length``
    names a column of lengths of documents, >= 0, in any unit; by default the number of words, including those that are
    left out.

    In Python also a pair of texts, counts or a sparse matrix, and of classes, and a mapping of ``counts`` and ``word``
    as for a `Corpus` with the classes under `name`.

    The canonical arrays are codes, `name`, and ``length``, shape (documents,); the cells ``counts``, ``doc`` and
    ``term``, sorted by document and then by word; and the coordinates ``word`` and ``class``. A row is a document.
    """

    name: str = "y"
    axis = WORD
    options = Bags.options | {"target", CLASSES, LENGTH}
    needs = ("their words", "a text or counts of words a row")
    lists = Bags.lists | {CLASSES}
    entries = (COUNTS, DOC, TERM)
    holds = (
        "one column of labels ({0.name}, or say which with --target), the class of each document, and "
        "a column of raw text (--text), each row a document, or columns of counts, one a word (--columns), "
        "or columns document, word and count"
    )

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """Codes of the classes, lengths, and cells."""
        unknown = {LENGTH, COUNTS, DOC, TERM, WORD, CLASS}
        return Layout((WORD, CLASS), coded={self.name: CLASS, TERM: WORD}, forms=(unknown | {self.name}, unknown))

    # Tables

    def own_table(self, source: Any, decimal: str) -> Table | None:
        """Read a sparse matrix or a matrix with labels; also texts or a matrix together with classes."""
        is_pair = isinstance(source, tuple) and len(source) == 2 and not isinstance(source[0], str)
        X, y = source if is_pair else (source, None)
        if isinstance(source, Mapping) and {COUNTS, self.name} <= source.keys():
            X, y = {name: values for name, values in source.items() if name != self.name}, source[self.name]
        if is_pair and isinstance(X, np.ndarray) and X.ndim == 2:
            X = {COUNTS: X, WORD: [str(i + 1) for i in range(X.shape[1])]}
        table: Table | None = matrix_table(X, COUNTS, WORD)
        if table is None and is_pair:
            table = read_table(X if is_frame(X) else {"text": X})
        if table is None or y is None:
            return table
        return replace(table, columns={**table.columns, self.name: to_column(self.name, y, decimal)})

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        target = options.get("target", self.name)
        if target not in table.columns and "target" not in options:
            problem = f"{table} and none called {shown(target)}"
            raise InputError(problem, "missing_column", hint="name the column of the class with --target")
        return self._documents(table, missing, options, None, {self.name: table[target]})

    def _parse_new(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        """Parse documents with the words of the fit, and perhaps the class, named as in the fit or by an option."""
        words = [] if like is None else like[WORD].tolist()
        usual = getattr(like, "columns", {}).get(self.name, free_name(self.name, words))
        target = options.get("target", usual if usual in table.columns else None)
        parsed = self._documents(table, missing, options, like, {} if target is None else {self.name: table[target]})
        labels = alphabet_of(options, like).labels
        coords = {} if labels is None else {CLASS: label_array(labels)}
        return replace(parsed, arrays={**parsed.arrays, **coords})

    def _documents(
        self, table: Table, missing: str, options: Options, like: Arrays | None, of_rows: dict[str, Column]
    ) -> Parsed:
        """Convert the words, and the class and the length in each row."""
        of_rows = of_rows | self._lengths(table, options, like, of_rows)
        used = {column.name for column in of_rows.values()}
        of_words = replace(table, columns={name: cells for name, cells in table.columns.items() if name not in used})
        read, notes = self._words(of_words, missing, options, like)
        totals = np.bincount(read.cells.doc, read.cells.counts, len(read.cells.document))
        read = chosen(read, options, None if like is None else like[WORD])
        alphabet = alphabet_of(options, like)
        convert = {self.name: lambda column: alphabet.coded(trimmed(column)).codes, LENGTH: _to_lengths}
        kept, arrays = _by_document(
            read, {name: (column, convert[name](column)) for name, column in of_rows.items()}, missing
        )
        classes = dict[str, np.ndarray]()
        if self.name in of_rows:
            coded, about = classes_of(of_rows[self.name], arrays[self.name][kept], alphabet)
            arrays[self.name], classes = _spread(coded.codes.astype(np.int64), kept), {CLASS: label_array(coded.labels)}
            notes += about
        cells = {COUNTS: read.cells.counts, DOC: read.cells.doc, TERM: read.cells.term}
        arrays = {**arrays, LENGTH: arrays.get(LENGTH, totals), **cells, WORD: label_array(read.cells.word), **classes}
        roles = {name: column.name for name, column in of_rows.items()} | read.columns
        return Parsed(self.reordered(arrays, kept), roles, (*notes, *_about_rows(table, read, kept)))

    def _lengths(
        self, table: Table, options: Options, like: Arrays | None, others: Mapping[str, Column]
    ) -> dict[str, Column]:
        """Return the column of lengths: that of the fit, the named one, or ``length`` if it cannot be a word."""
        fitted = getattr(like, "columns", {}).get(LENGTH)
        if LENGTH in options or fitted is not None:
            column = table[options.get(LENGTH, fitted or LENGTH)]
            if column.name in {other.name for other in others.values()}:
                raise InputError(f"{column} cannot be both class and length", "conflicting_options")
            return {LENGTH: column}
        names = table.columns.keys() - {other.name for other in others.values()} - {LENGTH}
        is_no_word = "text" in {*names, *options} or {WORD, "count"} & options.keys() or {DOCUMENT, WORD} <= names
        return {LENGTH: table[LENGTH]} if LENGTH in table.columns and is_no_word else {}

    def _words(
        self, table: Table, missing: str, options: Options, like: Arrays | None
    ) -> tuple[ReadCells, tuple[str, ...]]:
        """Read the words; for columns of counts only the words of the fit."""
        words, notes = None if like is None else like[WORD].tolist(), tuple[str, ...]()
        is_named = bool(options.keys() & {"text", "columns", WORD, "count"})
        if isinstance(table, MatrixTable) or (not is_named and roles_of(table, options) and not _holds(table, words)):
            return read_cells(table, options, missing, COUNTS), notes
        if words is not None and "columns" not in options and not is_named:
            if (absent := next((word for word in words if word not in table.columns), None)) is not None:
                raise InputError(
                    f"there is no column {shown(absent)}, a word of the fit", "missing_column", column=absent
                )
            unused = [name for name in table.columns if name not in {*words} and are_numbers(table[name])]
            notes = (f"no words of the fit, and not used: columns {joined(unused)}",) if unused else ()
            options = {**options, "columns": words}
        elif not is_named:
            self._refuse_numbers(table)
        return read_cells(table, options, missing, COUNTS), notes

    def _refuse_numbers(self, table: Table) -> None:
        """Refuse row numbers and counts of rows among columns that are all taken as words."""
        refuse_unclear_counts(table, table.columns, "repeat each row as often as it occurs")
        for column in table.columns.values():
            if column.before is None and len(column) >= _NUMBERED and are_numbers(column):
                values = to_reals(column)
                if (np.diff(values) > 0).all():
                    others = [name for name in table.columns if name != column.name]
                    hint = f"leave it out: --columns {listing(others)}"
                    raise column.error("increases from row to row, as numbers of rows do", "names_of_rows", hint=hint)

    # Canonical arrays

    def _canonical(self, arrays: Mapping[str, Any], missing: str) -> Parsed:
        labels = {axis: checked_labels(axis, arrays[axis], 2) for axis in (WORD, CLASS)}
        column = to_column(LENGTH, arrays[LENGTH])
        of_rows = {LENGTH: (column, _to_lengths(column))}
        if self.name in arrays:
            of_rows = {self.name: checked_codes(self.name, arrays[self.name], labels[CLASS]), **of_rows}
        columns, numbers = zip(*of_rows.values(), strict=True)
        values, _ = complete(list(columns), numbers, "refuse")
        rows = dict(zip(of_rows, values, strict=True))
        documents = label_array([str(i + 1) for i in range(len(column))])
        if len(rows.get(self.name, column)) != len(column):
            raise InputError("the arrays have different numbers of rows", "wrong_shape")
        cells = Cells.of(documents.tolist(), labels[WORD].tolist(), [], [], np.empty(0))
        if len(arrays[COUNTS]):
            counted = to_column(COUNTS, arrays[COUNTS])
            codes = {
                DOC: checked_codes(DOC, arrays[DOC], documents),
                TERM: checked_codes(TERM, arrays[TERM], labels[WORD]),
            }
            columns, numbers = zip(*codes.values(), (counted, to_counts(counted)), strict=True)
            (doc, term, counts), _ = complete(list(columns), numbers, "refuse")
            cells = Cells.of(documents.tolist(), labels[WORD].tolist(), doc.astype(int), term.astype(int), counts)
        if self.name in rows:
            rows[self.name] = rows[self.name].astype(np.int64)
        return Parsed({**rows, COUNTS: cells.counts, DOC: cells.doc, TERM: cells.term, **labels}, {})

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return triplets, with the length and the class of the document in each row."""
        doc, word, counts = triplets(arrays, self.size(arrays))
        columns = {DOCUMENT: (doc + 1).astype(str), WORD: word, "count": counts, LENGTH: arrays[LENGTH][doc]}
        if not self.has_outcome(arrays):
            return columns
        return {free_name(self.name, columns): arrays[CLASS][arrays[self.name][doc]], **columns}

    def reading(self, arrays: Arrays) -> Options:
        """Return options that name the class, the classes and the vocabulary, unless the table implies them."""
        target = free_name(self.name, (DOCUMENT, WORD, "count", LENGTH))
        named = {"target": target} if target != self.name and self.has_outcome(arrays) else {}
        words = arrays[WORD].tolist()
        named |= {} if words == sorted(words) else {"vocabulary": words}
        return named | (named_classes(arrays, self.name) if self.has_outcome(arrays) else {})

    def features_of(self, arrays: Arrays) -> dict[str, Any]:
        """Return the count of each word in the first document."""
        counts = np.zeros(len(arrays[WORD]), dtype=np.int64)
        first = arrays[DOC] == 0
        counts[arrays[TERM][first]] = arrays[COUNTS][first]
        return dict(zip(arrays[WORD].tolist(), counts.tolist(), strict=True))

    # Documents as rows

    def size(self, arrays: Arrays) -> int:
        """Return the number of documents."""
        return len(arrays[LENGTH])

    def reordered(self, arrays: Arrays, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Return the documents at the indices `permutation`, in its order."""
        rows = np.arange(self.size(arrays))[permutation]
        of_rows = {name: arrays[name][rows] for name in (self.name, LENGTH) if name in arrays}
        coords = {axis: arrays[axis] for axis in self.coords if axis in arrays}
        return {**of_rows, **cells_of_rows(arrays, self.size(arrays), rows), **coords}

    def relabelled(self, arrays: Arrays, axis: str, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Put the labels of `axis` in the order of `permutation`."""
        return in_order_of_words(super().relabelled(arrays, axis, permutation))

    def alike(self, arrays: Arrays) -> np.ndarray:
        """Return a number for each document, equal for equal documents."""
        ends = np.searchsorted(arrays[DOC], np.arange(self.size(arrays) + 1))
        of_rows = [arrays[name] for name in (self.name, LENGTH) if name in arrays]
        numbers = dict[tuple[object, ...], int]()
        for i, (start, end) in enumerate(pairwise(ends.tolist())):
            key = (*(values[i] for values in of_rows), *(arrays[name][start:end].tobytes() for name in (TERM, COUNTS)))
            numbers.setdefault(key, len(numbers))
            ends[i] = numbers[key]
        return ends[:-1]

    def possible(self, arrays: Arrays | None = None) -> Iterator[dict[str, np.ndarray]]:
        """Yield every few documents of one word."""
        coords = arrays or {WORD: np.array(["u", "v"]), CLASS: np.array(["a", "b", "c"])}
        codes = [(k, v) for k in range(len(coords[CLASS])) for v in range(len(coords[WORD]))]
        y, term = np.array(codes).T
        ones = np.ones(len(y), dtype=np.int64)
        rows = {self.name: y, LENGTH: ones * 1.0, COUNTS: ones, DOC: np.arange(len(y)), TERM: term}
        rows |= {axis: coords[axis] for axis in self.coords}
        return (self.reordered(rows, codes) for codes in every_code(len(y)))


def _holds(table: Table, words: list[str] | None) -> bool:
    """Say whether a table has a column for each word of the fit, even if it looks like another form."""
    return words is not None and {*words} <= table.columns.keys()


def _to_lengths(column: Column) -> np.ndarray:
    values = to_reals(column)
    column.refuse(values < 0, "is negative", "out_of_range", hint="lengths must be >= 0")
    return values


def _by_document(
    read: ReadCells, of_rows: Mapping[str, tuple[Column, np.ndarray]], missing: str
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the kept documents, and the values (documents,), which must agree in all rows of a document."""
    size = len(read.cells.document)
    is_kept, arrays = np.ones(size, dtype=bool), dict[str, np.ndarray]()
    for name, (column, values) in of_rows.items():
        complete([column], [values], missing)  # may refuse them
        first = np.full(size, np.nan)
        first[read.document[::-1]] = values[read.rows][::-1]
        differs = ~(np.isnan(values[read.rows]) | (values[read.rows] == first[read.document]))
        if differs.any():
            problem = "differs from an earlier row of its document"
            raise column.error(problem, "conflicting_options", read.rows[differs])
        arrays[name], is_kept = first, is_kept & ~np.isnan(first)
    if not is_kept.any():
        raise InputError("no row has a value in every column that is used", "no_data")
    return np.flatnonzero(is_kept), arrays


def _spread(values: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Return values of kept documents as an array of all documents, 0 for others."""
    spread = np.zeros(kept[-1] + 1, dtype=values.dtype)
    spread[kept] = values
    return spread


def _about_rows(table: Table, read: ReadCells, kept: np.ndarray) -> tuple[str, ...]:
    """Return the notes, with one on dropped rows; if each row is a document, it has the numbers of kept rows."""
    others = tuple(note for note in read.notes if not isinstance(note, Dropped))
    rows = np.sort(read.rows[np.isin(read.document, kept)])
    left_out = np.setdiff1d(np.arange(table.rows), rows)
    if not len(left_out):
        return others
    note = Dropped.of((left_out[:5] + 1).tolist(), len(left_out))
    note.kept = rows + 1 if len(read.rows) == len(read.cells.document) else None
    return (note, *others)
