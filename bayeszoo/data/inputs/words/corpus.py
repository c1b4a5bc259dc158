"""A corpus: documents as bags of words, held as the counts that are not zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Inputs, Parsed
from bayeszoo.data.inputs.labels import checked_codes, checked_labels, in_order, label_array
from bayeszoo.data.inputs.words import vocabulary
from bayeszoo.data.inputs.words.cells import DOCUMENT, Cells, matrix_table, read_cells
from bayeszoo.data.table.numbers import complete, to_counts
from bayeszoo.data.table.read import to_column
from bayeszoo.data.table.table import Column, Table
from bayeszoo.errors import InputError

COUNTS, DOC, TERM, WORD = "counts", "doc", "term", "word"


@dataclass(frozen=True)
class Corpus(Inputs):
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

    options = vocabulary.OPTIONS | {"columns", "text", DOCUMENT, WORD, "count"}
    lists = frozenset({"columns", "vocabulary"})
    row_names = DOCUMENT

    @property
    def coords(self) -> tuple[str, ...]:
        """The names of the documents and the words."""
        return DOCUMENT, WORD

    @property
    def coded(self) -> Mapping[str, str]:
        """The cells have codes of both."""
        return {DOC: DOCUMENT, TERM: WORD}

    @property
    def forms(self) -> tuple[frozenset[str], ...]:
        """Cells and labels."""
        return (frozenset({COUNTS, DOC, TERM, DOCUMENT, WORD}),)

    def own_table(self, source: Any, decimal: str) -> Table | None:
        """Read a sparse matrix, or a matrix with its labels."""
        return matrix_table(source, COUNTS, WORD)

    def _parse(self, table: Table, missing: str, options: dict[str, Any], like: Arrays | None) -> Parsed:
        corpus = read_cells(table, options, missing, COUNTS)
        corpus = vocabulary.chosen(corpus, options, None if like is None else like[WORD])
        return Parsed(arrays_of(corpus.cells), corpus.columns, corpus.notes)

    # Canonical arrays

    def canonical(self, arrays: Mapping[str, Any], missing: str = "refuse") -> Parsed:
        """Check cells and labels as strictly as a file; anything else, as a table."""
        if not self.is_canonical(arrays):
            return super().canonical(arrays, missing)
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
        words = labels[WORD][cells.documents_of_words() == 0].tolist()
        return Parsed(arrays_of(cells), {}, (*dropped, *vocabulary.never(words), *vocabulary.empty(cells)))

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

    def split(self, arrays: Arrays, at: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Split the documents into those before index `at` and the rest."""
        rows = np.arange(self.size(arrays))
        return self.reordered(arrays, rows[:at]), self.reordered(arrays, rows[at:])

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

    def outcome(self, arrays: Arrays) -> np.ndarray:
        """Return the counts, shape (cells,)."""
        return arrays[COUNTS]

    def describe(self) -> str:
        """Say in one line what the table must hold."""
        return (
            "columns document, word and count, or a column of raw text (--text), each row a document, "
            "or a column of counts for each word (--columns)"
        )


def arrays_of(cells: Cells) -> dict[str, np.ndarray]:
    """Return the canonical arrays."""
    codes = {DOC: cells.doc, TERM: cells.term}
    return {COUNTS: cells.counts, **codes, DOCUMENT: label_array(cells.document), WORD: label_array(cells.word)}


def _refuse_disorder(columns: Mapping[str, Column], counts: np.ndarray, doc: np.ndarray, term: np.ndarray) -> None:
    """Refuse counts of 0, and cells that are not sorted by document and then by word, each once."""
    zeros = np.flatnonzero(counts == 0)
    if len(zeros):
        raise columns[COUNTS].error("is not >= 1; cells without words are left out", zeros)
    back = np.flatnonzero(np.diff(doc) < 0) + 1
    if len(back):
        raise columns[DOC].error("is below the document before; cells are sorted by document", back)
    again = np.flatnonzero((np.diff(doc) == 0) & (np.diff(term) <= 0)) + 1
    if len(again):
        raise columns[TERM].error("does not exceed the word before; those of a document are sorted, each once", again)
