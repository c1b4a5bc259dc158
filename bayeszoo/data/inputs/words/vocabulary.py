"""Which words of documents are kept: those of a fit, those that are named, or those that occur in enough documents."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from bayeszoo.data.inputs.labels import Alphabet, joined
from bayeszoo.data.inputs.words.cells import Cells, ReadCells
from bayeszoo.data.table.numbers import number
from bayeszoo.data.table.table import shown
from bayeszoo.errors import InputError

OPTIONS = frozenset({"vocabulary", "stop_words", "min_documents", "max_share"})

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
"""The lists that the option ``stop_words`` knows: of English the articles, pronouns, prepositions, conjunctions and
auxiliaries, the commonest adverbs, and what the tokenizer leaves of contractions."""


def chosen(corpus: ReadCells, options: Mapping[str, Any], fitted: np.ndarray | None) -> ReadCells:
    """Leave out the words that are not of the vocabulary, and say how many they are."""
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
        notes += never(cells)
    return ReadCells(cells, corpus.columns, (*notes, *empty(cells)))


def _reasons(cells: Cells, options: Mapping[str, Any], known: bool) -> dict[str, Collection[str]]:
    """Return the words to be left out, for each of the reasons that the options give."""
    reasons = {"stop words": _stop_words(options.get("stop_words"))}
    if known:
        return reasons
    least, most = _least(options.get("min_documents")), _most(options.get("max_share"))
    words, spread = np.array(cells.word, dtype=object), cells.documents_of_words()
    reasons[f"words in fewer than {least} documents"] = frozenset(words[spread < least] if least > 1 else ())
    reasons[f"words in more than {100 * most:g}% of the documents"] = frozenset(
        words[spread > most * len(cells.document)]
    )
    return reasons


def _stop_words(name: str | None) -> Collection[str]:
    """Return the stop words of a language; none at all for None."""
    if name is None:
        return frozenset()
    if name not in STOP_WORDS:
        known = " or ".join(map(shown, STOP_WORDS))
        raise InputError(f"there are no stop words called {shown(name)}", hint=f"use {known}, or none at all")
    return STOP_WORDS[name]


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
    are, share = "is" if before - after == 1 else "are", 100 * (before - after) / max(before, 1)
    said = f"{before - after} of {before} words {are} not in {vocabulary} and {are} left out ({share:.1f}%)"
    return (said,) if before > after else ()


def _refuse_few(cells: Cells) -> None:
    if not cells.words:
        raise InputError("the counts add up to 0: there are no words in the documents")
    if len(cells.word) < 2:
        raise InputError(f"only the word {shown(cells.word[0])}, at least two are needed", hint="keep more of them")


def never(cells: Cells) -> tuple[str, ...]:
    """Name the words that no document has."""
    words = [cells.word[v] for v in np.flatnonzero(cells.documents_of_words() == 0)]
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
