"""What people call a model or a task, and what answers it: a model or a command of the zoo, or another library."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import NamedTuple

MOST = 6
"""Suggestions at most."""
NEAR = 0.75
"""Share of letters in common from which a name is near to another, as `difflib` counts them."""
COMMAND = "bayeszoo "
"""How a command of the zoo begins in the table."""


class Suggestion(NamedTuple):
    """A name of a task, the model, command or library to take, and why or how."""

    name: str
    take: str
    why: str
    is_here: bool

    @property
    def answer(self) -> str:
        """What to take."""
        return self.take if self.is_here else f"not in bayeszoo; {self.take} has it"


@cache
def table(models: tuple[str, ...]) -> tuple[Suggestion, ...]:
    """Return every name of the table that is shipped with the models, and the models' own names."""
    text = resources.files("bayeszoo.models").joinpath("other_names.csv").read_text(encoding="utf-8")
    own = [Suggestion(name, name, "", True) for name in models]
    return tuple(
        own
        + [
            Suggestion(
                name.strip(), row["take"], row["why"] or "", row["take"] in models or row["take"].startswith(COMMAND)
            )
            for row in csv.DictReader(text.splitlines())
            for name in row["name"].split(";")
        ]
    )


def called(words: str, models: Iterable[str]) -> list[Suggestion]:
    """Return what has exactly this name, whatever its case, hyphens and spaces."""
    return [each for each in table(tuple(models)) if _letters(each.name) == _letters(words)]


def suggestions(words: str, models: Iterable[str]) -> list[Suggestion]:
    """Return what answers to words, at most six and what is in the zoo first.

    It is what is called by these words; else names that hold words that begin with each of them; else near ones.
    """
    names = table(tuple(models))
    if exact := called(words, models):
        return exact
    parts = [part.removesuffix("s") for part in _words(words)]
    holding = [each for each in names if all(any(own.startswith(p) for own in _words(each.name)) for p in parts)]
    if not holding:
        by_letters = {_letters(each.name): each for each in names}
        holding = [by_letters[key] for key in get_close_matches(_letters(words), by_letters, n=MOST, cutoff=NEAR)]
    first = {each.take: each for each in reversed(holding)}  # the first name of each answer
    return sorted(reversed(first.values()), key=lambda each: not each.is_here)[:MOST]


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _letters(text: str) -> str:
    return "".join(_words(text))
