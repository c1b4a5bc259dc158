"""The transitions of a text: how often each symbol follows each context, counted by hand by Markov.

Markov 1913, An example of statistical investigation of the text Eugene Onegin (translated in Science in Context 19,
2006); Shannon 1948; W4400, Markov models.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from bayeszoo.data.table.table import shown
from bayeszoo.errors import InputError

Unit = Literal["letter", "character", "word"]

_MAX_ORDER = 5


def ngrams(
    text: str | Sequence[str],
    order: int = 1,
    *,
    unit: Unit = "letter",
    classes: Mapping[str, str] | Callable[[str], str] | None = None,
) -> dict[str, list[Any]]:
    """Count the transitions of a text.

    Parameters
    ----------
    text : str or sequence of str
        One document or several. No transition goes from one document to the next.
    order : int
        Number of symbols in the context, 1 to 5.
    unit : {"letter", "character", "word"}
        The kind of symbol. ``letter``: a letter of any alphabet, case-folded; other characters are skipped, as by
        Markov, so that the last letter of a word is followed by the first of the next. ``character``: every character,
        with a run of white space as one space. ``word``: a run of letters and apostrophes, case-folded; apostrophes
        around a word are taken as quotation marks and dropped, and other characters separate words. Accents are
        composed (NFC) first; an accent without a composed letter belongs to its word, and is skipped among letters.
    classes : mapping or callable, optional
        The class of each symbol, as text; transitions are then between classes. See `vowel_or_consonant`.

    Returns
    -------
    dict of str to list
        Columns ``source``, ``target`` and ``count``, one row for each pair that occurs, sorted. A source is a context:
        letters, words and classes joined with spaces (``t h``, ``of the``), characters without. The counts sum to the
        number of symbols minus `order` for each document.

    Raises
    ------
    InputError
        When `order` or `unit` is not allowed, a document has at most `order` symbols, or a symbol has no class.

    Examples
    --------
    >>> ngrams("Banana")
    {'source': ['a', 'b', 'n'], 'target': ['n', 'a', 'a'], 'count': [2, 1, 2]}
    """
    if isinstance(order, float) or order not in range(1, _MAX_ORDER + 1):
        raise InputError(f"order must be a whole number from 1 to {_MAX_ORDER}, got {shown(order)}", "wrong_type")
    if unit not in get_args(Unit):
        raise InputError(f"unit must be one of {', '.join(get_args(Unit))}, got {shown(unit)}", "wrong_type")
    documents = [_symbols(document, unit) for document in _documents(text)]
    for number, symbols in enumerate(documents, 1):
        if len(symbols) <= order:
            which = f"document {number}" if len(documents) > 1 else "the text"
            length = f"{len(symbols) or 'no'} {unit}{'' if len(symbols) == 1 else 's'}"
            raise InputError(f"{which} has {length}; order {order} needs at least {order + 1}", "too_few_rows")
    if classes is not None:
        documents = _classified(documents, classes)
    between = "" if classes is None and unit == "character" else " "
    runs: Counter[tuple[str, ...]] = Counter()
    for symbols in documents:
        runs.update(zip(*(symbols[k:] for k in range(order + 1)), strict=False))  # each slice is one shorter
    rows = [(between.join(run[:-1]), run[-1], runs[run]) for run in sorted(runs)]
    return {name: [row[k] for row in rows] for k, name in enumerate(("source", "target", "count"))}


def vowel_or_consonant(letter: str) -> str:
    """Return ``vowel`` for a, e, i, o, u, with or without an accent, and ``consonant`` for the other Latin letters.

    The letter y is always a consonant.

    Raises
    ------
    InputError
        When it is not a letter from a to z, apart from accent and case.
    """
    parts = unicodedata.normalize("NFD", letter.lower())
    base, accents = parts[:1], parts[1:]
    if not "a" <= base <= "z" or not all(map(unicodedata.combining, accents)):
        raise InputError(f"{shown(letter)} is not a letter from a to z", "unknown_name", hint="give your own classes")
    return "vowel" if base in "aeiou" else "consonant"


def _documents(text: str | Sequence[str]) -> list[str]:
    documents = [text] if isinstance(text, str) else text
    if not isinstance(documents, list | tuple) or not all(isinstance(document, str) for document in documents):
        raise InputError("text must be a str or a list of str", "wrong_type", hint="one str for each document")
    if not documents:
        raise InputError("there are no documents", "no_data")
    return list(documents)


def _symbols(document: str, unit: Unit) -> Sequence[str]:
    composed = unicodedata.normalize("NFC", document)
    if unit == "character":
        return re.sub(r"\s+", " ", composed)
    folded = unicodedata.normalize("NFC", composed.casefold())
    if unit == "letter":
        return [character for character in folded if character.isalpha()]
    marks = {c for c in folded if not c.isalpha() and not unicodedata.category(c).startswith("M")} - {"'", "\u2019"}
    words = folded.translate({ord(mark): " " for mark in marks} | {0x2019: "'"}).split()
    return [word for word in (run.strip("'") for run in words) if word]


def _classified(
    documents: Sequence[Sequence[str]], classes: Mapping[str, str] | Callable[[str], str]
) -> list[Sequence[str]]:
    symbols = dict.fromkeys(symbol for document in documents for symbol in document)
    look_up = classes.get if isinstance(classes, Mapping) else classes
    labels = {symbol: look_up(symbol) for symbol in symbols}
    for symbol, label in labels.items():
        if not isinstance(label, str) or not label or " " in label:
            hint = "every symbol needs one, text without spaces"
            raise InputError(f"the class of {shown(symbol)} is {shown(label)}", "bad_symbol", hint=hint)
    return [[labels[symbol] or "" for symbol in document] for document in documents]
