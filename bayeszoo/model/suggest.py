"""Find the model, command or library for a task that the user names in their own words."""

from __future__ import annotations

from bayeszoo.data.inputs import Inputs
from bayeszoo.errors import InputError
from bayeszoo.model.base import Model
from bayeszoo.model.find import builtin_names, find, names
from bayeszoo.model.other_names import Suggestion, suggestions


def suggest(words: str) -> list[Suggestion]:
    """Return models and commands of the zoo for a task, or a library for a task that the zoo lacks.

    Parameters
    ----------
    words : str
        The name of a model, a method or a task, such as ``"k-means"``, ``"t-test"`` or ``"survival"``.

    Returns
    -------
    list of Suggestion
        At most six, those in the zoo first: ``name``, ``take``, ``why`` and ``is_here``. Empty where no name is
        similar.
    """
    if not isinstance(words, str) or not words.strip():
        raise InputError(
            f"words must be a text that is not empty, got {words!r}",
            "empty",
            hint="write what you look for, as 't-test'",
        )
    return suggestions(words, names())


def models_with(*capabilities: type[Model], without: tuple[type[Inputs], ...] = ()) -> str:
    """Return a hint that names the models of the zoo with any of these capabilities, without those of some inputs."""
    kinds = {name: find(name) for name in builtin_names()}
    able = (n for n, kind in kinds.items() if issubclass(kind, capabilities) and not isinstance(kind.inputs, without))
    return f"fit one of {', '.join(able)}"
