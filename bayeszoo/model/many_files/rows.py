"""Rows of many files, each kept where it was read: E-steps go there, and what they give is added up here."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from bayeszoo.data.inputs.labels import refuse_other_labels
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.model.accumulated import Accumulated
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Sufficient, rows_have_parameters
from bayeszoo.model.many_files.additive import Additive
from bayeszoo.model.steps import Expectation

Step = Callable[[Any, Any, Any], Any]
"""A function of a module, of a model, what it is asked at, and rows: ``step(model, at, rows)``."""


METHODS = ("em", "vb", "map", "mle")
"""Those that take rows in files."""


class Held(Protocol):
    """The rows of files, on this machine or on others."""

    def each(self, step: Step, model: Model, ats: Iterable[object]) -> list[Any]:
        """Return what a step gives of each file, in the order of the files; ``ats`` has an entry for each."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FileRows(Accumulated):
    """The rows of files for a model that is `Additive`, each where it was read: `read_files` makes it.

    Of `Accumulated` it has all but statistics, which the model has none of.
    """

    sample: Data  # rows of all files drawn at random, or all of them where they are few; of sequences whole ones
    held: Held
    drawn: np.ndarray  # which rows, or sequences, the sample is of
    ends: np.ndarray  # how many rows there are up to the end of each file

    def __repr__(self) -> str:
        """Say what the rows are of."""
        return f"FileRows({self.rows} rows; from {self.source}; for {self.model.name})"

    @property
    def stream(self) -> str:
        """What random numbers are derived from: it does not depend on how the rows are divided into files.

        Where the sample is all rows, they are those of a fit to the rows at once.
        """
        if self.sample.rows == self.rows:
            return self.sample.digest
        return hashlib.sha256(f"rows in files\0{self.rows}\0{self.sample.digest}".encode()).hexdigest()

    @property
    def which(self) -> str:
        """What to call the sample."""
        few = self.sample.rows
        return "the data" if few == self.rows else f"a sample of {few} of the {self.rows} rows"

    def require(self, model: Model) -> None:
        """Raise `InputError` unless ``model`` can be fitted to these rows."""
        refuse_other_labels(model.labels, self.like)
        if additive(model).inputs != self.model.inputs:
            raise InputError(
                f"the rows were read for {self.model.name}, not for {model.name}",
                "wrong_statistics",
                hint="read them again",
            )


def additive(model: Model) -> Additive:
    """Return a model whose E-steps of files add up, or raise the `InputError` that says why they do not."""
    if isinstance(model, Additive):
        return model
    if isinstance(model, Sufficient):
        raise InputError(
            f"{model.name} needs no rows, only their statistics", "needs_statistics", hint="use bz.accumulate"
        )
    why = f"{model.name} has no E-step that adds up over files"
    if rows_have_parameters(model):
        why += f": each {model.inputs.row_names} has parameters of its own, which are in no sum"
    raise InputError(why, "rows_differ", hint="use bz.read: it needs the rows at once")


def some_of(data: object) -> Any:
    """Return data as they are, or of rows in files the sample: for starts, and where only labels or sizes matter."""
    return data.sample if isinstance(data, FileRows) else data


def of_each(step: Step, model: Model, at: object, data: object) -> list[Any]:
    """Return what a step gives of the data, a list of one; or of each file, in the order of their names."""
    return (
        data.held.each(step, model, _at_files(model, at, data))
        if isinstance(data, FileRows)
        else [step(model, at, data)]
    )


def _at_files(model: Model, at: object, data: FileRows) -> Iterator[Any]:
    """Yield the arguments of a step for each file: shared parameters, and the row parameters of its rows."""
    return (restricted(model, at, slice(first, last)) for first, last in pairwise([0, *data.ends]))


def restricted(model: Model, at: Any, rows: Any) -> Any:
    """Return parameters, or q(theta), for some of the rows."""
    return additive(model).of_rows(at, lambda own: own[..., rows, :])


def of_sample(model: Model, at: object, data: object) -> Any:
    """Return parameters, or q(theta), for what `some_of` gives."""
    return restricted(model, at, data.drawn) if isinstance(data, FileRows) else at


def from_sample(model: Model, at: Any, data: Any) -> Any:
    """Return parameters, or q(theta), for all rows: those that the sample lacks have what its rows have on average."""

    def of_all(own: np.ndarray) -> np.ndarray:
        each = np.repeat(own.mean(axis=-2, keepdims=True), data.rows, axis=-2)
        each[..., data.drawn, :] = own
        return each

    return additive(model).of_rows(at, of_all) if isinstance(data, FileRows) else at


def expected(step: Step, model: Model, at: object, data: object) -> Expectation:
    """Return an E-step of the data; of rows in files the sum of the files' in the order of their names."""
    return together(model, of_each(step, model, at, data))


def together(model: Model, parts: Sequence[Expectation]) -> Expectation:
    """Return the E-step of all rows, of those of their parts in order."""
    if len(parts) == 1:
        return parts[0]
    stats = reduce(additive(model).pooled, [part.stats for part in parts])
    return Expectation(stats, math.fsum(part.value for part in parts))
