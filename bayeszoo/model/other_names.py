"""Common names of models and tasks, each with its model or command of the zoo, or another library."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import NamedTuple

MOST = 6
"""Largest number of suggestions."""
NEAR = 0.75
"""Smallest similarity ratio of `difflib` at which two names are similar."""
COMMAND = "bayeszoo "
"""The beginning of commands of the zoo in the table."""


class Suggestion(NamedTuple):
    """A name of a task, the model, command or library to take, and why or how."""

    name: str
    take: str
    why: str
    is_here: bool

    @property
    def answer(self) -> str:
        """The model, command or library to use."""
        return self.take if self.is_here else f"not in bayeszoo; {self.take} has it"


@cache
def table(models: tuple[str, ...]) -> tuple[Suggestion, ...]:
    """Return the names of the models, then those of the table ``other_names.csv``."""
    text = resources.files("bayeszoo.models").joinpath("other_names.csv").read_text(encoding="utf-8")
    model_names = [Suggestion(name, name, "", True) for name in models]
    return tuple(
        model_names
        + [
            Suggestion(
                name.strip(), row["take"], row["why"] or "", row["take"] in models or row["take"].startswith(COMMAND)
            )
            for row in csv.DictReader(text.splitlines())
            for name in row["name"].split(";")
        ]
    )


def called(words: str, models: Iterable[str]) -> list[Suggestion]:
    """Return the entries with exactly this name, ignoring case, hyphens and spaces."""
    return [entry for entry in table(tuple(models)) if _letters(entry.name) == _letters(words)]


def suggestions(words: str, models: Iterable[str]) -> list[Suggestion]:
    """Return suggestions for a name or task, at most six, those in the zoo first.

    They have exactly this name; else words that start with each of the given words; else a similar name.
    """
    names = table(tuple(models))
    if exact := called(words, models):
        return exact
    prefixes = [part.removesuffix("s") for part in _words(words)]
    matches = [
        entry for entry in names if all(any(word.startswith(p) for word in _words(entry.name)) for p in prefixes)
    ]
    if not matches:
        by_letters = {_letters(entry.name): entry for entry in names}
        matches = [by_letters[key] for key in get_close_matches(_letters(words), by_letters, n=MOST, cutoff=NEAR)]
    by_answer = {entry.take: entry for entry in reversed(matches)}  # keeps the first name of each answer
    return sorted(reversed(by_answer.values()), key=lambda entry: not entry.is_here)[:MOST]


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _letters(text: str) -> str:
    return "".join(_words(text))
