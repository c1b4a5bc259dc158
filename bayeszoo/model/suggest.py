"""What answers a question that is asked in other words than the zoo's."""

from __future__ import annotations

from bayeszoo.errors import InputError
from bayeszoo.model.find import names
from bayeszoo.model.other_names import Suggestion, suggestions


def suggest(words: str) -> list[Suggestion]:
    """Return what answers a question: models and commands of the zoo, or a library that has what the zoo lacks.

    Parameters
    ----------
    words : str
        The name of a model, a method or a task, such as ``"k-means"``, ``"t-test"`` or ``"survival"``.

    Returns
    -------
    list of Suggestion
        At most six, what is in the zoo first: ``name``, ``take``, ``why`` and ``is_here``. It is empty where nothing
        has a name like it.
    """
    if not isinstance(words, str) or not words.strip():
        raise InputError(f"words are needed, got {words!r}", "empty", hint="write what you look for, as 't-test'")
    return suggestions(words, names())
