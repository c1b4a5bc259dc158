"""Documents as bags of words: a corpus has the non-zero counts, a table of documents all counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Inputs, Layout, Parsed, columns_of
from bayeszoo.data.inputs.labels import Alphabet, checked_codes, checked_labels, in_order, joined, label_array
from bayeszoo.data.inputs.matrix import in_order_of
from bayeszoo.data.inputs.words.cells import (
    DOCUMENT,
    Cells,
    ReadCells,
    dense_columns,
    is_dense,
    matrix_table,
    read_cells,
)
from bayeszoo.data.table.cells import number
from bayeszoo.data.table.read import to_column
from bayeszoo.data.table.table import Column, Table, complete, shown, to_counts
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options

COUNTS, DOC, TERM, WORD = "counts", "doc", "term", "word"

MOST_CELLS = 20_000_000
"""Most counts, including zeros, to which a sparse table is expanded."""

_OPTIONS = frozenset({"vocabulary", "stop_words", "min_documents", "max_share"})

_ENGLISH = """
a an the i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her
hers herself it its itself they them their theirs themselves one ones oneself this that these those who whom whose
which what whoever whomever whatever whichever all any anyone anything both each either every everyone everything few
fewer less many more most much neither no nobody none nothing other others another same several some someone something
such about above across after against along amid among amongst around as at before behind below beneath beside besides
between betwixt beyond by concerning despite down during except for from in inside into like near of off on onto out
outside over past per since through throughout till to toward towards under underneath until unto up upon via with
within without and but or nor so yet if unless because although though lest than then therefore thus hence else
whereas whereby wherein whereof whereupon while whilst whether when whenever where wherever why how however am is are
was were be been being have has had having do does did doing done can could cannot may might must shall should will
would ought need dare let not never ever also too very only just even still already again once always often sometimes
perhaps rather quite almost here there herein hereby thereby therein thereof thereto hither thither now today soon
later first next last further furthermore moreover nevertheless otherwise instead indeed don doesn didn isn aren wasn
weren hasn haven hadn won wouldn couldn shouldn mustn ll ve re
"""

STOP_WORDS = {"english": frozenset(_ENGLISH.split())}
"""The lists for the option ``stop_words``: English articles, pronouns, prepositions, conjunctions, auxiliaries, common
adverbs, and remnants of contractions after tokenizing."""


class Bags(Inputs):
    """Counts of words in documents, under the name `name`, of the words of the coordinate `axis`."""

    axis: str
    options = _OPTIONS | {"columns", "text", DOCUMENT, WORD, "count"}
    lists = frozenset({"columns", "vocabulary"})

    def own_table(self, source: Any, decimal: str) -> Table | None:
        """Read a sparse matrix, or a matrix with its labels."""
        return matrix_table(source, self.name, self.axis)

    def _read(self, table: Table, missing: str, options: Options, like: Arrays | None) -> ReadCells:
        fitted = None if like is None else like[self.axis]
        return chosen(read_cells(table, options, missing, self.name), options, fitted)


@dataclass(frozen=True)
class Corpus(Bags):
    r"""Documents of any length over a vocabulary of any size; memory grows with the non-zero counts.

    The table has one of these forms:

    - triplets: columns ``document``, ``word`` and perhaps ``count``, or others named by these options. Without counts
      each row is one word. A row that repeats its document and word adds to the count.
    - raw text: a column ``text``, or one named by that option, or a single column of text; each row is a document. A
      column ``document``, or one named by that option, has the names of documents; by default they are numbered. Words
      are the matches of ``\b\w\w+\b`` in lower case, in alphabetical order, as for scikit-learn's ``CountVectorizer``.
    - counts: each row a document and each column (or those in ``columns``) a word, except one named by ``document``.

    In Python also: a list of strings, a SciPy sparse matrix or array of shape (documents, words), and a mapping of
    ``counts``, such a matrix or an array of two dimensions, and of ``word`` and perhaps ``document``, the labels:
    ``{"counts": X, "word": vectorizer.get_feature_names_out()}``.

    The vocabulary has the occurring words, without those removed by options: ``stop_words`` (``"english"``),
    ``min_documents`` (words in fewer documents), ``max_share`` (words in a larger share of documents); or the option
    ``vocabulary`` lists it. New documents have the vocabulary of the fit; other words are counted and left out.

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

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        read = self._read(table, missing, options, like)
        return Parsed(arrays_of(read.cells), read.columns, read.notes)

    # Canonical arrays

    def _canonical(self, arrays: Mapping[str, Any], missing: str) -> Parsed:
        labels = {DOCUMENT: checked_labels(DOCUMENT, arrays[DOCUMENT], 1), WORD: checked_labels(WORD, arrays[WORD], 2)}
        if not len(arrays[COUNTS]):
            raise InputError("there are no words in the documents", "no_data")
        column = to_column(COUNTS, arrays[COUNTS])
        checked = {COUNTS: (column, to_counts(column))}
        checked |= {name: checked_codes(name, arrays[name], labels[axis]) for name, axis in self.coded.items()}
        columns = Table("", {name: column for name, (column, _) in checked.items()}).columns
        values, dropped = complete(list(columns.values()), [array for _, array in checked.values()], missing)
        counts, doc, term = (array.astype(np.int64) for array in values)
        cells = Cells.of(labels[DOCUMENT].tolist(), labels[WORD].tolist(), doc, term, counts)
        return Parsed(arrays_of(cells), {}, (*dropped, *cells.added(counts), *_never(cells), *_empty(cells)))

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return triplets, with a count of 0 where a document has no words, or a word is in no document."""
        if not self.is_canonical(arrays):
            return dict(arrays)  # data made by hand, not yet checked
        doc, word, counts = triplets(arrays, self.size(arrays))
        return {DOCUMENT: arrays[DOCUMENT][doc], WORD: word, "count": counts}

    def reading(self, arrays: Arrays) -> Options:
        """Return the option that lists the vocabulary, if it is not in order."""
        words = arrays[WORD].tolist()
        return {} if words == in_order(words) else {"vocabulary": words}

    # Documents as rows

    def size(self, arrays: Arrays) -> int:
        """Return the number of documents."""
        return len(arrays[DOCUMENT])

    def reordered(self, arrays: Arrays, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Return the documents at the indices `permutation`, in its order."""
        rows = np.arange(self.size(arrays))[permutation]
        return {**arrays, **cells_of_rows(arrays, self.size(arrays), rows), DOCUMENT: arrays[DOCUMENT][rows]}

    def relabelled(self, arrays: Arrays, axis: str, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Put the labels of `axis` in the order of `permutation`; for documents this reorders the rows."""
        if axis == DOCUMENT:
            return self.reordered(arrays, permutation)
        return in_order_of_words(super().relabelled(arrays, axis, permutation))

    def unseen(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Return further, empty documents."""
        empty = np.zeros(0, dtype=np.int64)
        names = np.array([str(i + 1) for i in range(rows)])
        return {COUNTS: empty, DOC: empty, TERM: empty, DOCUMENT: names, WORD: arrays[WORD]}


@dataclass(frozen=True)
class Documents(Bags):
    """Counts of words, each row one document and each column one word.

    The canonical arrays are the counts `name`, shape (documents, words), and the coordinate `axis` of words. The order
    of the words within a document is not kept, and the density that a model gives is that of the words in an order: the
    density of the counts times the multinomial coefficient.

    The table has a column for each word, or any form of a `Corpus`, with the same options. Zeros are then stored, and
    names of documents are not.
    """

    name: str = "counts"
    axis: str = "word"
    holds = (
        "columns of counts, one a word, with a document a row: all those of the table or some (--columns); "
        "or columns document, word and count, or raw text (--text)"
    )

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """The counts have a column for each word."""
        return Layout((self.axis,), dims={self.name: (self.axis,)}, forms=({self.name, self.axis},))

    def _parse(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        dense, words = is_dense(table, options), None if like is None else like[self.axis].tolist()
        if words is not None and not options and table.columns.keys() == set(words):
            options = {"columns": words}  # even if they look like columns of triplets
        elif words is not None and dense:
            names = options.get("columns") or [column.name for column in dense_columns(table, options)]
            options = {"columns": in_order_of(words, names)}
        read = self._read(table, missing, options, like)
        cells = read.cells
        size = len(cells.document) * len(cells.word)
        if size > MOST_CELLS and not dense:
            shape = f"{len(cells.document)} documents x {len(cells.word)} words"
            hint = "leave words out, for example with --min-documents"
            raise InputError(
                f"{shape} are {size} counts with their zeros, more than {MOST_CELLS}", "too_large", hint=hint
            )
        return Parsed({self.name: cells.dense(), self.axis: label_array(cells.word)}, read.columns, read.notes)

    def _canonical(self, arrays: Mapping[str, Any], missing: str) -> Parsed:
        if hasattr(arrays[self.name], "tocoo"):
            return self.parse(cast(Table, self.own_table(arrays, ".")), missing)
        labels = checked_labels(self.axis, arrays[self.axis], least=2)
        columns = columns_of(self.name, arrays[self.name], self.axis, labels)
        table = Table("", {column.name: column for column in columns})
        return replace(self._parse(table, missing, {"columns": labels.tolist()}, None), columns={})

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return a column of counts for each word."""
        return dict(zip(arrays[self.axis].tolist(), arrays[self.name].T, strict=True))

    def reading(self, arrays: Arrays) -> Options:
        """Return the option that names the columns, if they look like triplets or raw text."""
        columns = {name: Column(name, values) for name, values in self.table(arrays).items()}
        return {} if is_dense(Table("", columns), {}) else {"columns": list(columns)}


def arrays_of(cells: Cells) -> dict[str, np.ndarray]:
    """Return the canonical arrays."""
    codes = {DOC: cells.doc, TERM: cells.term}
    return {COUNTS: cells.counts, **codes, DOCUMENT: label_array(cells.document), WORD: label_array(cells.word)}


def triplets(arrays: Arrays, documents: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return codes of documents, words and counts, with a count of 0 for documents and words without counts."""
    words = np.arange(len(arrays[WORD]))
    without = np.setdiff1d(np.arange(documents), arrays[DOC])
    never = np.setdiff1d(words, arrays[TERM])[: len(words) * documents]
    doc = np.concatenate([arrays[DOC], without, np.zeros(len(never), dtype=np.int64)])
    term = np.concatenate([arrays[TERM], np.full(len(without), np.argsort(arrays[WORD])[0]), never])
    counts = np.append(arrays[COUNTS], np.zeros(len(doc) - len(arrays[COUNTS]), dtype=np.int64))
    order = np.lexsort((arrays[WORD][term], doc))  # the same, whatever the codes of the words
    return doc[order], arrays[WORD][term[order]], counts[order]


def cells_of_rows(arrays: Arrays, documents: int, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return the cells of the documents at ``rows``, in their order."""
    starts = np.searchsorted(arrays[DOC], np.arange(documents + 1))
    lengths = np.diff(starts)[rows]
    firsts = np.append(0, np.cumsum(lengths))[:-1]  # where each document starts in the new order
    cells = np.repeat(starts[rows] - firsts, lengths) + np.arange(lengths.sum())
    moved = {name: arrays[name][cells] for name in (COUNTS, TERM)}
    return {**moved, DOC: np.repeat(np.arange(len(rows)), lengths)}


def in_order_of_words(arrays: Arrays) -> dict[str, np.ndarray]:
    """Sort the cells by document, then by word, after codes of words changed."""
    order = np.lexsort((arrays[TERM], arrays[DOC]))
    return {**arrays, COUNTS: arrays[COUNTS][order], TERM: arrays[TERM][order]}


# The vocabulary: the words of a fit, named words, or words in enough documents


def chosen(corpus: ReadCells, options: Options, fitted: np.ndarray | None) -> ReadCells:
    """Leave out the words that are not in the vocabulary, with notes on their number."""
    vocabulary = Alphabet.of("word", "vocabulary", options.get("vocabulary"), fitted).labels
    if vocabulary is not None and fitted is None and options.keys() & {"min_documents", "max_share"}:
        raise InputError(
            "min_documents and max_share do not apply to a given vocabulary",
            "conflicting_options",
            hint="leave them out",
        )
    cells, notes = corpus.cells, list(corpus.notes)
    for why, without in _reasons(cells, options, vocabulary is not None).items():
        kept = cells.among([word for word in cells.word if word not in without])
        notes += _left_out(why, cells, kept)
        cells = kept
    if vocabulary is not None:
        kept = cells.among(vocabulary)
        notes += _unknown(cells.words, kept.words, "the vocabulary" + " of the fit" * (fitted is not None))
        cells = kept
    if fitted is None:
        _refuse_few(cells)
        notes += _never(cells)
    return corpus._replace(cells=cells, notes=(*notes, *_empty(cells)))


def _reasons(cells: Cells, options: Options, has_vocabulary: bool) -> dict[str, Collection[str]]:
    """Return the words to be left out, for each of the reasons that the options give."""
    if (language := options.get("stop_words")) not in (None, *STOP_WORDS):
        known_lists = " or ".join(map(shown, STOP_WORDS))
        raise InputError(
            f"there are no stop words called {shown(language)}",
            "unknown_name",
            hint=f"use {known_lists}, or none at all",
        )
    reasons: dict[str, Collection[str]] = {"stop words": STOP_WORDS[language] if language else ()}
    if has_vocabulary:
        return reasons
    least, most = (number(options.get(name, "1")) for name in ("min_documents", "max_share"))
    if least is None or not (least >= 1 and least == np.floor(least)):
        raise InputError(
            f"min_documents must be a whole number >= 1, got {shown(options['min_documents'])}", "wrong_type"
        )
    if most is None or not 0 < most <= 1:
        raise InputError(f"max_share must be a share > 0 and <= 1, got {shown(options['max_share'])}", "out_of_range")
    words, spread = np.array(cells.word, dtype=object), np.bincount(cells.term, minlength=len(cells.word))
    is_rare, is_common = (spread < least) & (least > 1), spread > most * len(cells.document)
    reasons[f"words in fewer than {int(least)} documents"] = frozenset(words[is_rare])
    reasons[f"words in more than {100 * most:g}% of the documents"] = frozenset(words[is_common])
    return reasons


def _left_out(why: str, before: Cells, after: Cells) -> tuple[str, ...]:
    fewer = len(before.word) - len(after.word)
    if not fewer:
        return ()
    removed, distinct = before.words - after.words, f"{why}: {fewer} of {len(before.word)} distinct words left out"
    share = f"{removed} of {before.words} words ({100 * removed / max(before.words, 1):.1f}%)"
    return (f"{distinct}, {share}; {len(after.word)} are left",)


def _unknown(before: int, after: int, vocabulary: str) -> tuple[str, ...]:
    """Return a note on words that are not in the vocabulary; refuse documents without any word of it."""
    if before and not after:
        raise InputError(f"none of the {before} words is in {vocabulary}", "unknown_label")
    are, share = "is" if before - after == 1 else "are", 100 * (before - after) / max(before, 1)
    note = f"{before - after} of {before} words {are} not in {vocabulary} and {are} left out ({share:.1f}%)"
    return (note,) if before > after else ()


def _refuse_few(cells: Cells) -> None:
    if not cells.words:
        raise InputError("the counts add up to 0: there are no words in the documents", "no_data")
    if len(cells.word) < 2:
        raise InputError(
            f"only the word {shown(cells.word[0])}, at least two are needed", "no_data", hint="give or keep more"
        )


def _never(cells: Cells) -> tuple[str, ...]:
    """Name the words that no document has."""
    words = [cells.word[v] for v in np.flatnonzero(np.bincount(cells.term, minlength=len(cells.word)) == 0)]
    if not words:
        return ()
    return (f"words {joined(words)} never occur" if len(words) > 1 else f"word {joined(words)} never occurs",)


def _empty(cells: Cells) -> tuple[str, ...]:
    """Name the documents without words."""
    names = [cells.document[d] for d in np.flatnonzero(np.bincount(cells.doc, minlength=len(cells.document)) == 0)]
    if not names:
        return ()
    return (f"{len(names)} empty document{'s' if len(names) > 1 else ''}: {joined(names)}",)
