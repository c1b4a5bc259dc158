"""Non-zero counts of words in documents, from triplets, raw text, dense tables and sparse matrices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, cast

import numpy as np

from bayeszoo.data.inputs.base import columns_of
from bayeszoo.data.inputs.labels import Coded, checked_labels, code, in_order, joined, repeated, texts_of
from bayeszoo.data.inputs.matrix import refuse_text
from bayeszoo.data.table.read import has_two_dimensions, to_column
from bayeszoo.data.table.table import LARGEST_COUNT, Column, Table, are_numbers, complete, shown, to_counts
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

DOCUMENT = "document"
_WORD = re.compile(r"\b\w\w+\b")


@dataclass(frozen=True, eq=False)
class Cells:
    """Non-zero counts of words in documents; memory grows with the cells and the labels."""

    document: list[str]
    word: list[str]
    """The labels, including those without cells."""
    doc: np.ndarray
    term: np.ndarray
    """The codes of each cell, shape (cells,), sorted by document, then by word, without repeated pairs."""
    counts: np.ndarray
    """Shape (cells,), >= 1."""

    @classmethod
    def of(cls, document: Sequence[str], word: Sequence[str], doc: Any, term: Any, counts: Any) -> Self:
        """Return sorted cells: counts of one document and word are added, and zeros left out."""
        from scipy import sparse  # not when `read` is imported

        counts = np.asarray(counts)
        if float(counts.sum(dtype=np.float64)) > LARGEST_COUNT:
            raise InputError("the counts have a sum of 2**53 or more", "too_large")
        shape = len(document), len(word)
        table = sparse.coo_array((counts, (doc, term)), shape=shape).tocsr()  # adds up and sorts
        table.eliminate_zeros()
        cells = table.tocoo()
        return cls(list(document), list(word), *(a.astype(np.int64) for a in (cells.row, cells.col, cells.data)))

    @property
    def words(self) -> int:
        """The total number of words in the documents."""
        return int(self.counts.sum())

    def added(self, counts: np.ndarray) -> tuple[str, ...]:
        """Return a note on counts that repeat a document and word."""
        repeats = int(np.sum(counts > 0)) - len(self.counts)
        cases = "rows repeat their documents and words" if repeats > 1 else "row repeats its document and word"
        return (f"{repeats} {cases}: the counts are added",) if repeats else ()

    def among(self, words: Sequence[str]) -> Self:
        """Return the cells of these words, with their codes among them; the documents stay."""
        place = {word: i for i, word in enumerate(words)}
        codes = np.array([place.get(word, -1) for word in self.word], dtype=np.int64)[self.term]
        kept = codes >= 0
        return self.of(self.document, words, self.doc[kept], codes[kept], self.counts[kept])

    def dense(self) -> np.ndarray:
        """Return the counts with all zeros, shape (documents, words)."""
        counts = np.zeros((len(self.document), len(self.word)), dtype=np.int64)
        counts[self.doc, self.term] = self.counts
        return counts


class ReadCells(NamedTuple):
    """Contents of a table: the cells, the user's column for each role, and notes.

    ``rows`` are the indices of the kept rows of the table, and ``document`` (rows,) the codes of their documents.
    """

    cells: Cells
    columns: dict[str, str]
    notes: tuple[str, ...]
    rows: np.ndarray
    document: np.ndarray


# Triplets


def from_triplets(columns: Mapping[str, Column], missing: str) -> ReadCells:
    """Read a row for each ``document`` and ``word``, and perhaps their ``count``; without counts, a row is one word.

    Documents are in order of occurrence, words in alphabetical order, or in numerical order if all are numbers. A count
    of 0 adds the document and the word to the labels.
    """
    codes = {name: code(columns[name]) for name in ("document", "word")}
    used = [columns[name] for name in (*codes, "count") if name in columns]
    arrays = [
        *(coded.codes for coded in codes.values()),
        *map(to_counts, used[2:]),
        np.arange(len(used[0]), dtype=float),
    ]
    (doc, term, *count_columns, rows), dropped = complete([*used, used[0]], arrays, missing)
    documents = Coded(codes["document"].labels, doc).trimmed()
    by_occurrence = np.argsort(np.unique(documents.codes, return_index=True)[1])
    documents = documents.among([documents.labels[i] for i in by_occurrence])
    words = Coded(codes["word"].labels, term).trimmed()
    counts = count_columns[0] if count_columns else np.ones(len(doc))
    cells = Cells.of(documents.labels, words.labels, documents.codes, words.codes, counts)
    notes = (*dropped, *(cells.added(counts) if count_columns else ()))
    roles = {role: column.name for role, column in columns.items()}
    return ReadCells(cells, roles, notes, rows.astype(np.int64), documents.codes.astype(np.int64))


# A document a row


def from_text(text: Column, names: Column | None, missing: str) -> ReadCells:
    """Count the words of a column of raw text; each row is a document, named by its number or a column of names."""
    texts = texts_of(text)
    (_, rows), dropped = complete([text, names or text], [_present(texts), _named_rows(names, text)], missing)
    document = _labels(names, rows, text)
    documents = [words_of(texts[int(row)]) for row in rows]
    word = in_order(set().union(*documents))
    place = {label: i for i, label in enumerate(word)}
    term = np.array([place[label] for words in documents for label in words], dtype=np.int64)
    doc = np.repeat(np.arange(len(documents)), list(map(len, documents)))
    cells = Cells.of(document, word, doc, term, np.ones(len(term)))
    note = f"{text}: {len(document)} documents of {cells.words} words, {len(word)} of them distinct"
    return _of_rows(cells, {"text": text.name} | _role(names), (*dropped, note), rows)


def words_of(text: str) -> list[str]:
    r"""Split text into words: lower case, every run of two or more letters, digits or underscores (``\b\w\w+\b``).

    This is the default rule of scikit-learn's ``CountVectorizer``: ``Don't!`` gives ``don``, a single letter is no
    word, and accents stay.
    """
    return _WORD.findall(text.lower())


def from_columns(columns: Sequence[Column], names: Column | None, missing: str, name: str = "counts") -> ReadCells:
    """Read a dense table of counts, with a column for each word."""
    arrays = [*map(to_counts, columns), _named_rows(names, columns[0])]
    (*kept, rows), dropped = complete([*columns, names or columns[0]], arrays, missing)
    counts = np.column_stack(kept)
    doc, term = np.nonzero(counts)
    words = [column.name for column in columns]
    cells = Cells.of(_labels(names, rows, columns[0]), words, doc, term, counts[doc, term])
    return _of_rows(cells, {name: ", ".join(words)} | _role(names), dropped, rows)


def _of_rows(cells: Cells, columns: dict[str, str], notes: tuple[str, ...], rows: np.ndarray) -> ReadCells:
    """Return the contents of a table with a document in each row."""
    return ReadCells(cells, columns, notes, rows.astype(np.int64), np.arange(len(rows)))


def _present(texts: Sequence[str]) -> np.ndarray:
    return np.where([bool(cell) for cell in texts], 0.0, np.nan)


def _named_rows(names: Column | None, like: Column) -> np.ndarray:
    """Return the index of each row, NaN where its name is missing."""
    rows = np.arange(len(like), dtype=np.float64)
    return rows if names is None else rows + _present(texts_of(names))


def _labels(names: Column | None, rows: np.ndarray, like: Column) -> list[str]:
    """Return the names of these rows, or their numbers in the user's table."""
    if names is None:
        return [str(int(row) + 1) for row in rows]
    texts = texts_of(names)
    labels = [texts[int(row)] for row in rows]
    twice = repeated(labels)
    if twice is not None:
        same_name = [int(row) for row, label in zip(rows, labels, strict=True) if label == twice]
        raise names.error("is the name of an earlier document too", "duplicate_name", same_name[1:])
    return labels


def _role(names: Column | None) -> dict[str, str]:
    return {} if names is None else {"document": names.name}


# Matrices


@dataclass(frozen=True, eq=False)
class MatrixTable(Table):
    """A matrix of documents and words, already read; its single column numbers the documents."""

    content: ReadCells | None = None


def matrix_table(source: Any, name: str, axis: str) -> MatrixTable | None:
    """Read a sparse matrix, or a mapping of a matrix and the labels of its axes; return None for anything else."""
    labels = dict(source) if isinstance(source, Mapping) else {name: source}
    matrix = labels.pop(name, None)
    is_sparse = hasattr(matrix, "tocoo") and np.ndim(matrix) in (0, 2)  # pandas has a `tocoo` elsewhere
    if not labels.keys() <= {DOCUMENT, axis} or not (is_sparse or (labels and has_two_dimensions(matrix))):
        return None
    shape = matrix.shape if is_sparse else np.shape(matrix)
    if not all(shape):
        raise InputError("no data rows" if not shape[0] else f"{name} has no columns", "missing_column")
    document, word = (_axis(labels, which, size) for which, size in zip((DOCUMENT, axis), shape, strict=True))
    if is_sparse:
        cells = _sparse(name, matrix, document, word)
    else:
        numbered = from_columns(columns_of(name, matrix, axis, word), None, "refuse").cells
        cells = replace(numbered, document=document.tolist())
    return MatrixTable(
        "", {name: Column(name, np.arange(shape[0]))}, content=_of_rows(cells, {}, (), np.arange(shape[0]))
    )


def _axis(labels: Mapping[str, object], axis: str, size: int) -> np.ndarray:
    if axis not in labels:
        return np.array([str(i + 1) for i in range(size)])
    checked = checked_labels(axis, labels[axis], least=1)
    if len(checked) != size:
        raise InputError(f"{axis} holds {len(checked)} labels, but the matrix has {size}", "wrong_shape", column=axis)
    return checked


def _sparse(name: str, matrix: Any, document: np.ndarray, word: np.ndarray) -> Cells:
    cells = matrix.tocoo()
    column = to_column(name, cells.data)
    try:
        (counts,), _ = complete([column], [to_counts(column)], "refuse") if len(column) else ([cells.data], ())
    except InputError as error:
        if not error.rows:
            raise
        cell = error.rows[0] - 1
        where = f"{name}, document {shown(document[cells.row[cell]])}, word {shown(word[cells.col[cell]])}"
        hint, rows = "counts are whole numbers from 0 to 2**53 - 1", [int(cells.row[cell]) + 1]
        problem = f"{where}: {shown(cells.data[cell])} is not a count"
        raise InputError(problem, "bad_corpus", column=name, rows=rows, hint=hint) from None
    return Cells.of(document.tolist(), word.tolist(), cells.row, cells.col, counts)


# Which of these


def read_cells(table: Table, options: Options, missing: str, name: str) -> ReadCells:
    """Read a table that holds raw text, triplets, or a column of counts for each word."""
    if isinstance(table, MatrixTable):
        return cast(ReadCells, table.content)
    if any(column.before is not None for column in table.columns.values()):
        raise InputError("documents cannot be cut into chunks", "not_cuttable", hint="read the file at once")
    roles = roles_of(table, options)
    columns = {role: table[column] for role, column in roles.items()}
    if len(set(roles.values())) < len(roles):
        raise InputError(f"one column cannot be both {' and '.join(roles)}", "conflicting_options")
    if "text" in roles:
        corpus = from_text(columns["text"], columns.get(DOCUMENT), missing)
    elif "word" in roles:
        corpus = from_triplets(columns, missing)
    else:
        words = dense_columns(table, options)
        corpus = from_columns(words, columns.get(DOCUMENT), missing, name)
        note = f"every column is a word: {joined([column.name for column in words])}"
        corpus = corpus._replace(notes=(note,) * ("columns" not in options) + corpus.notes)
    return corpus


def is_dense(table: Table, options: Options) -> bool:
    """Say whether a table has only columns of words, and no option other than their names."""
    return not isinstance(table, MatrixTable) and options.keys() <= {"columns"} and not roles_of(table, options)


def roles_of(table: Table, options: Options) -> dict[str, str]:
    """Return the columns of text, document, word and count; a dense table has at most a column of documents."""
    roles = {role: options[role] for role in ("text", "word", "count", "columns") if role in options}
    if len(roles) > 1 and roles.keys() != {"word", "count"}:
        raise InputError(f"{' and '.join(roles)} do not go together", "options_go_together", hint="leave one out")
    document = options.get(DOCUMENT, DOCUMENT)
    names = table.columns.keys()
    of_names = {DOCUMENT: document} if DOCUMENT in options else {}
    triplets = {document, "word"} <= names <= {document, "word", "count"}
    if roles.keys() & {"word", "count"} or (not roles and triplets):
        count = options.get("count", "count" if "count" in names else None)
        return {DOCUMENT: document, "word": options.get("word", "word")} | ({"count": count} if count else {})
    others = [name for name in names if name != document] or [document]
    text = options.get("text")
    if not roles and ("text" in others or len(others) == 1):  # a column named text, or the only one besides names
        candidate = "text" if "text" in others else others[0]
        text = None if are_numbers(table[candidate]) else candidate
    if text is not None:
        return {"text": text} | ({DOCUMENT: document} if document in names else {})
    return of_names


def dense_columns(table: Table, options: Options) -> list[Column]:
    """Return the columns of counts: the named ones, or all except names of documents, which must be numbers."""
    names = options.get("columns")
    if names is not None:
        return [table[name] for name in names]
    columns = {name: column for name, column in table.columns.items() if name != options.get(DOCUMENT)}
    refuse_text(replace(table, columns=columns), or_text=True)
    return list(columns.values())
