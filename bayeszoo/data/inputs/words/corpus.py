"""Documents as bags of words: a corpus holds the counts that are not zero, a table of documents all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Inputs, Layout, Parsed, columns_of
from bayeszoo.data.inputs.labels import checked_codes, checked_labels, in_order, joined, label_array
from bayeszoo.data.inputs.matrix import in_order_of
from bayeszoo.data.inputs.words import vocabulary
from bayeszoo.data.inputs.words.cells import (
    DOCUMENT,
    Cells,
    dense_columns,
    from_columns,
    is_dense,
    matrix_table,
    read_cells,
)
from bayeszoo.data.table.numbers import complete, to_counts
from bayeszoo.data.table.read import to_column
from bayeszoo.data.table.table import Column, Table, shown
from bayeszoo.errors import InputError

COUNTS, DOC, TERM, WORD = "counts", "doc", "term", "word"

MOST_CELLS = 20_000_000
"""Counts, zeros and all, that a sparse table is expanded to, at most."""


class Bags(Inputs):
    """Counts of words in documents, under the name `name`, of the words of the coordinate `axis`."""

    axis: str
    options = vocabulary.OPTIONS | {"columns", "text", DOCUMENT, WORD, "count"}
    lists = frozenset({"columns", "vocabulary"})

    def own_table(self, source: Any, decimal: str) -> Table | None:
        """Read a sparse matrix, or a matrix with its labels."""
        return matrix_table(source, self.name, self.axis)

    def _read(
        self, table: Table, missing: str, options: dict[str, Any], like: Arrays | None
    ) -> tuple[Cells, dict[str, str], tuple[str, ...]]:
        fitted = None if like is None else like[self.axis]
        return vocabulary.chosen(read_cells(table, options, missing, self.name), options, fitted)


@dataclass(frozen=True)
class Corpus(Bags):
    r"""Documents of any length over a vocabulary of any size; memory goes with the cells that are not zero.

    The table holds one of these:

    - triplets: columns ``document``, ``word`` and perhaps ``count``, or others by the options of these names. Without
      counts each row is one word. A row that repeats its document and word adds to the count.
    - raw text: a column ``text``, each row a document, or another by that option; or one column that is not of numbers.
      A column ``document``, or the option, has their names, else they are numbered. Words are what ``\b\w\w+\b`` finds
      in lower case, in alphabetical order: the rule of scikit-learn's ``CountVectorizer``.
    - counts: each row a document and each column a word (``columns``: only these), but for one named by ``document``.

    In Python also: a list of strings, a SciPy sparse matrix or array of shape (documents, words), and a mapping of
    ``counts``, such a matrix or an array of two dimensions, and of ``word`` and perhaps ``document``, the labels:
    ``{"counts": X, "word": vectorizer.get_feature_names_out()}``.

    The vocabulary is the words that occur, but for those that options leave out: ``stop_words`` (``"english"``),
    ``min_documents`` (words in fewer), ``max_share`` (words in a larger share of the documents); or ``vocabulary``
    gives it. New documents have that of the fit; other words are counted and left out.

    The canonical arrays are the cells, sorted by document and then by word: ``counts`` (cells,) >= 1, and the codes
    ``doc`` and ``term`` (cells,) into the coordinates ``document`` (documents,) and ``word`` (words,). A row is a
    document, which may be empty.
    """

    name, axis = COUNTS, WORD
    row_names = DOCUMENT
    layout = Layout((DOCUMENT, WORD), coded={DOC: DOCUMENT, TERM: WORD}, forms=({COUNTS, DOC, TERM, DOCUMENT, WORD},))
    holds = (
        "columns document, word and count, or a column of raw text (--text), each row a document, "
        "or a column of counts for each word (--columns)"
    )

    def _parse(self, table: Table, missing: str, options: dict[str, Any], like: Arrays | None) -> Parsed:
        cells, columns, notes = self._read(table, missing, options, like)
        return Parsed(arrays_of(cells), columns, notes)

    # Canonical arrays

    def _canonical(self, arrays: Mapping[str, Any], missing: str) -> Parsed:
        labels = {DOCUMENT: checked_labels(DOCUMENT, arrays[DOCUMENT], 1), WORD: checked_labels(WORD, arrays[WORD], 2)}
        if not len(arrays[COUNTS]):
            raise InputError("there are no words in the documents")
        column = to_column(COUNTS, arrays[COUNTS])
        checked = {COUNTS: (column, to_counts(column))}
        checked |= {name: checked_codes(name, arrays[name], labels[axis]) for name, axis in self.coded.items()}
        columns = Table("", {name: column for name, (column, _) in checked.items()}).columns
        values, dropped = complete(list(columns.values()), [found for _, found in checked.values()], missing)
        counts, doc, term = (found.astype(np.int64) for found in values)
        _refuse_disorder(columns, counts, doc, term)
        cells = Cells.of(labels[DOCUMENT].tolist(), labels[WORD].tolist(), doc, term, counts)
        return Parsed(arrays_of(cells), {}, (*dropped, *vocabulary.never(cells), *vocabulary.empty(cells)))

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return triplets, with a count of 0 where a document has no words, or a word is in no document."""
        if not self.is_canonical(arrays):
            return dict(arrays)  # data made by hand, which are still to be checked
        documents, words = (np.arange(len(arrays[axis])) for axis in self.coords)
        without = np.setdiff1d(documents, arrays[DOC])
        never = np.setdiff1d(words, arrays[TERM])[: len(words) * len(documents)]
        doc = np.concatenate([arrays[DOC], without, np.zeros(len(never), dtype=np.int64)])
        term = np.concatenate([arrays[TERM], np.full(len(without), np.argsort(arrays[WORD])[0]), never])
        counts = np.append(arrays[COUNTS], np.zeros(len(doc) - len(arrays[COUNTS]), dtype=np.int64))
        order = np.lexsort((arrays[WORD][term], doc))  # the same, whatever the codes of the words
        return {DOCUMENT: arrays[DOCUMENT][doc[order]], WORD: arrays[WORD][term[order]], "count": counts[order]}

    def reading(self, arrays: Arrays) -> dict[str, Any]:
        """Give the vocabulary where it is not in order."""
        words = arrays[WORD].tolist()
        return {} if words == in_order(words) else {"vocabulary": words}

    # Documents as rows

    def size(self, arrays: Arrays) -> int:
        """Return the number of documents."""
        return len(arrays[DOCUMENT])

    def reordered(self, arrays: Arrays, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Take the documents of `permutation`, an array of indices, in its order."""
        rows = np.arange(self.size(arrays))[permutation]
        starts = np.searchsorted(arrays[DOC], np.arange(self.size(arrays) + 1))
        lengths = np.diff(starts)[rows]
        firsts = np.append(0, np.cumsum(lengths))[:-1]  # where each document starts in the new order
        cells = np.repeat(starts[rows] - firsts, lengths) + np.arange(lengths.sum())
        moved = {name: arrays[name][cells] for name in (COUNTS, TERM)}
        doc = np.repeat(np.arange(len(rows)), lengths)
        return {**arrays, **moved, DOC: doc, DOCUMENT: arrays[DOCUMENT][rows]}

    def relabelled(self, arrays: Arrays, axis: str, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Put the labels of `axis` in the order of `permutation`; of documents, that is to reorder the rows."""
        if axis == DOCUMENT:
            return self.reordered(arrays, permutation)
        moved = super().relabelled(arrays, axis, permutation)
        order = np.lexsort((moved[TERM], moved[DOC]))
        return {**moved, COUNTS: moved[COUNTS][order], TERM: moved[TERM][order]}

    def unseen(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Return further documents, which are empty."""
        none = np.zeros(0, dtype=np.int64)
        names = np.array([str(i + 1) for i in range(rows)])
        return {COUNTS: none, DOC: none, TERM: none, DOCUMENT: names, WORD: arrays[WORD]}


@dataclass(frozen=True)
class Documents(Bags):
    """Counts of words, each row one document and each column one word.

    The canonical arrays are the counts `name`, shape (documents, words), and the coordinate `axis` of words. The order
    of the words within a document is not kept, and the density that a model gives is that of the words in an order: the
    density of the counts times the multinomial coefficient.

    The table has a column for each word; or it is anything that a `Corpus` may be, with the same options, of which the
    zeros are then held too, and the names of the documents are not.
    """

    name: str = "counts"
    axis: str = "word"
    holds = (
        "columns of counts, one a word, with a document a row: all those of the table or some (--columns); "
        "or columns document, word and count, or raw text (--text)"
    )

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """The counts have a column a word."""
        return Layout((self.axis,), dims={self.name: (self.axis,)}, forms=({self.name, self.axis},))

    def _parse(self, table: Table, missing: str, options: dict[str, Any], like: Arrays | None) -> Parsed:
        same = like is not None and not options and table.columns.keys() == set(like[self.axis].tolist())
        if not (same or is_dense(table, options)):
            return self._as_corpus(table, missing, options, like)
        names: list[str] = options.get("columns") or [column.name for column in dense_columns(table, options)]
        notes = (f"every column is a word: {joined(names)}",) * ("columns" not in options and like is None)
        if like is not None:
            names = in_order_of(like[self.axis].tolist(), names)
        if len(names) < 2:
            raise InputError(f"only the word {shown(names[0])}, at least two are needed", hint="give a column a word")
        parsed = self._dense([table[name] for name in names], missing, like is None)
        return replace(parsed, notes=notes + parsed.notes)

    def _as_corpus(self, table: Table, missing: str, options: dict[str, Any], like: Arrays | None) -> Parsed:
        """Read what a `Corpus` may be, and fill in the zeros."""
        cells, columns, notes = self._read(table, missing, options, like)
        size = len(cells.document) * len(cells.word)
        if size > MOST_CELLS:
            shape = f"{len(cells.document)} documents x {len(cells.word)} words"
            hint = "leave words out, as with --min-documents"
            raise InputError(f"{shape} are {size} counts with their zeros, more than {MOST_CELLS}", hint=hint)
        return Parsed({self.name: cells.dense(), self.axis: label_array(cells.word)}, columns, notes)

    def _canonical(self, arrays: Mapping[str, Any], missing: str) -> Parsed:
        if hasattr(arrays[self.name], "tocoo"):
            return self.parse(cast(Table, self.own_table(arrays, ".")), missing)
        labels = checked_labels(self.axis, arrays[self.axis], least=2)
        columns = columns_of(self.name, arrays[self.name], self.axis, labels)
        return replace(self._dense(columns, missing, True), columns={})

    def _dense(self, columns: list[Column], missing: str, fitted: bool) -> Parsed:
        """Read a column of counts for each word; documents of a fit, but for a part of a table, must hold a word."""
        cells, used, notes = from_columns(columns, None, missing, self.name)
        whole = fitted and columns[0].before is None
        if whole and not cells.words:
            raise InputError("the counts add up to 0: there are no words in the documents")
        never = vocabulary.never(cells) if whole else ()
        arrays = {self.name: cells.dense(), self.axis: label_array(cells.word)}
        return Parsed(arrays, used, (*notes, *vocabulary.empty(cells), *never))

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return a column of counts for each word."""
        return dict(zip(arrays[self.axis].tolist(), arrays[self.name].T, strict=True))

    def reading(self, arrays: Arrays) -> dict[str, Any]:
        """Name the columns where they might be taken for those of triplets or raw text."""
        columns = {name: Column(name, values) for name, values in self.table(arrays).items()}
        return {} if is_dense(Table("", columns), {}) else {"columns": list(columns)}


def arrays_of(cells: Cells) -> dict[str, np.ndarray]:
    """Return the canonical arrays."""
    codes = {DOC: cells.doc, TERM: cells.term}
    return {COUNTS: cells.counts, **codes, DOCUMENT: label_array(cells.document), WORD: label_array(cells.word)}


def _refuse_disorder(columns: Mapping[str, Column], counts: np.ndarray, doc: np.ndarray, term: np.ndarray) -> None:
    """Refuse counts of 0, and cells that are not sorted by document and then by word, each once."""
    columns[COUNTS].refuse(counts == 0, "is not >= 1; cells without words are left out")
    back, again = np.diff(doc) < 0, (np.diff(doc) == 0) & (np.diff(term) <= 0)
    columns[DOC].refuse(np.append(False, back), "is below the document before; cells are sorted by document")
    problem = "does not exceed the word before; those of a document are sorted, each once"
    columns[TERM].refuse(np.append(False, again), problem)
