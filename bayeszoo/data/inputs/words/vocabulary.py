"""Which words of documents are kept: those of a fit, those that are named, or those that occur in enough documents."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from bayeszoo.data.inputs.labels import Alphabet, joined
from bayeszoo.data.inputs.words.cells import Cells, ReadCells
from bayeszoo.data.inputs.words.tokens import stop_words
from bayeszoo.data.table.numbers import number
from bayeszoo.data.table.table import shown
from bayeszoo.errors import InputError

OPTIONS = frozenset({"vocabulary", "stop_words", "min_documents", "max_share"})


def chosen(corpus: ReadCells, options: Mapping[str, Any], fitted: np.ndarray | None) -> ReadCells:
    """Leave out the words that are not of the vocabulary, and say how many they are.

    Parameters
    ----------
    corpus : ReadCells
        What a table holds.
    options : mapping
        ``vocabulary``, the words in order; or ``min_documents`` and ``max_share``: left out are words in fewer
        documents, and in more than that share of them. With any, the words of the list ``stop_words``.
    fitted : ndarray of shape (words,) or None
        The vocabulary of a fit, in place of all these but the stop words.

    Raises
    ------
    InputError
        When none of the words is left; or fewer than two, where the vocabulary is not that of a fit.
    """
    known = Alphabet.of("word", "vocabulary", options.get("vocabulary"), fitted).labels
    if known is not None and fitted is None and options.keys() & {"min_documents", "max_share"}:
        raise InputError("min_documents and max_share do not apply to a given vocabulary", hint="leave them out")
    cells, notes = corpus.cells, list(corpus.notes)
    for why, without in _reasons(cells, options, known is not None).items():
        kept = cells.among([word for word in cells.word if word not in without])
        notes += _left_out(why, cells, kept)
        cells = kept
    if known is not None:
        kept = cells.among(known)
        notes += _unknown(cells.words, kept.words, "the vocabulary" + " of the fit" * (fitted is not None))
        cells = kept
    if fitted is None:
        _refuse_few(cells)
        notes += never([cells.word[v] for v in np.flatnonzero(cells.documents_of_words() == 0)])
    return ReadCells(cells, corpus.columns, (*notes, *empty(cells)))


def _reasons(cells: Cells, options: Mapping[str, Any], known: bool) -> dict[str, Collection[str]]:
    """Return the words to be left out, for each of the reasons that the options give."""
    reasons = {"stop words": stop_words(options.get("stop_words"))}
    if known:
        return reasons
    least, most = _least(options.get("min_documents")), _most(options.get("max_share"))
    words, spread = np.array(cells.word, dtype=object), cells.documents_of_words()
    reasons[f"words in fewer than {least} documents"] = frozenset(words[spread < least] if least > 1 else ())
    reasons[f"words in more than {100 * most:g}% of the documents"] = frozenset(
        words[spread > most * len(cells.document)]
    )
    return reasons


def _left_out(why: str, before: Cells, after: Cells) -> tuple[str, ...]:
    fewer = len(before.word) - len(after.word)
    if not fewer:
        return ()
    said = f"{why}: {fewer} of {len(before.word)} distinct words left out"
    return (f"{said}, {_part(before.words - after.words, before.words)}; {len(after.word)} are left",)


def _part(some: int, of_all: int) -> str:
    return f"{some} of {of_all} words ({100 * some / max(of_all, 1):.1f}%)"


def _unknown(before: int, after: int, vocabulary: str) -> tuple[str, ...]:
    """Say how many words are not in the vocabulary; refuse to go on with nothing."""
    if before and not after:
        raise InputError(f"none of the {before} words is in {vocabulary}")
    is_single, share = before - after == 1, 100 * (before - after) / max(before, 1)
    said = (
        f"{'is' if is_single else 'are'} not in {vocabulary} and {'is' if is_single else 'are'} left out ({share:.1f}%)"
    )
    return (f"{before - after} of {before} words {said}",) if before > after else ()


def _refuse_few(cells: Cells) -> None:
    if not cells.words:
        raise InputError("the counts add up to 0: there are no words in the documents")
    if len(cells.word) < 2:
        raise InputError(f"only the word {shown(cells.word[0])}, at least two are needed", hint="keep more of them")


def never(words: Sequence[str]) -> tuple[str, ...]:
    """Name the words that no document has."""
    if not words:
        return ()
    return (f"words {joined(words)} never occur" if len(words) > 1 else f"word {joined(words)} never occurs",)


def empty(cells: Cells) -> tuple[str, ...]:
    """Name the documents without words."""
    lengths = np.bincount(cells.doc, minlength=len(cells.document))
    names = [cells.document[d] for d in np.flatnonzero(lengths == 0)]
    if not names:
        return ()
    return (f"{len(names)} empty document{'s' if len(names) > 1 else ''}: {joined(names)}",)


def _least(text: str | None) -> int:
    value = 1.0 if text is None else number(text)
    if value is None or not (value >= 1 and value == np.floor(value)):
        raise InputError(f"min_documents must be a whole number >= 1, got {shown(text)}")
    return int(value)


def _most(text: str | None) -> float:
    value = 1.0 if text is None else number(text)
    if value is None or not 0 < value <= 1:
        raise InputError(f"max_share must be a share > 0 and <= 1, got {shown(text)}")
    return value
