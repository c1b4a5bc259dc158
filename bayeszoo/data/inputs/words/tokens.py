"""Raw text as words: a tokenizer that can be said in one line, and a list of English words that carry no topic."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

from bayeszoo.data.table.table import shown
from bayeszoo.errors import InputError

_WORD = re.compile(r"\b\w\w+\b")

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


def words_of(text: str) -> list[str]:
    r"""Split text into words: lower case, every run of two or more letters, digits or underscores (``\b\w\w+\b``).

    It is the rule of scikit-learn's ``CountVectorizer`` with its defaults: ``Don't!`` is ``don``, a single letter is
    no word, and accents stay.
    """
    return _WORD.findall(text.lower())


def counted(texts: Iterable[str]) -> list[Counter[str]]:
    """Count the words of each text."""
    return [Counter(words_of(text)) for text in texts]


def stop_words(name: str | None) -> Collection[str]:
    """Return the stop words of a language; none at all for None.

    Raises
    ------
    InputError
        When there is no such list.
    """
    if name is None:
        return frozenset()
    if name not in STOP_WORDS:
        known = " or ".join(map(shown, STOP_WORDS))
        raise InputError(f"there are no stop words called {shown(name)}", hint=f"use {known}, or none at all")
    return STOP_WORDS[name]
