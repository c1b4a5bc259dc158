"""Rows of many files, each kept where it was read: E-steps run there, and their results are added up here."""

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
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Sufficient, rows_have_parameters
from bayeszoo.model.capabilities.latent import Additive
from bayeszoo.model.capabilities.steps import Expectation
from bayeszoo.model.parts.accumulated import Accumulated

Step = Callable[[Any, Any, Any], Any]
"""A module-level function of a model, parameters or q(theta), and rows: ``step(model, point, rows)``."""


METHODS = ("em", "vb", "map", "mle")
"""Methods that take rows in files."""


class StoredRows(Protocol):
    """The rows of files, on this machine or on others."""

    def each(self, step: Step, model: Model, ats: Iterable[object]) -> list[Any]:
        """Return the result of a step for each file, in order; ``ats`` has parameters or q(theta) for each file."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FileRows(Accumulated):
    """The rows of files for an `Additive` model, each where it was read: made by `read_files`.

    It is an `Accumulated` without statistics: the model has none.
    """

    sample: Data  # a random sample of rows of all files, or all rows if few; sequences are drawn whole
    stored: StoredRows
    drawn: np.ndarray  # numbers of the rows, or sequences, in the sample
    ends: np.ndarray  # cumulative numbers of rows at the end of each file

    why_no_rows = "they are kept file by file"
    hint = "read all rows with bz.read"

    def __repr__(self) -> str:
        """Name the number of rows, the files and the model."""
        return f"FileRows({self.rows} rows; from {self.source}; for {self.model.name})"

    @property
    def stream(self) -> str:
        """The source of random seeds, independent of how the rows are divided into files.

        If the sample has all rows, seeds equal those of a fit to the rows in memory.
        """
        if self.sample.rows == self.rows:
            return self.sample.digest
        return hashlib.sha256(f"rows in files\0{self.rows}\0{self.sample.digest}".encode()).hexdigest()

    @property
    def which(self) -> str:
        """The name of the sample in messages."""
        size = self.sample.rows
        return "the data" if size == self.rows else f"a sample of {size} of the {self.rows} rows"

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
    """Return the model as `Additive`, or raise an `InputError` that says why its E-steps do not add up."""
    if isinstance(model, Additive):
        return model
    if isinstance(model, Sufficient):
        raise InputError(
            f"{model.name} needs no rows, only their statistics", "needs_statistics", hint="use bz.accumulate"
        )
    problem = f"{model.name} has no E-step that adds up over files"
    if rows_have_parameters(model):
        problem += f": each {model.inputs.row_names} has its own parameters, which cannot be summed"
    raise InputError(problem, "rows_differ", hint="use bz.read: it needs the rows at once")


def some_of(data: object) -> Any:
    """Return data, or the sample of rows in files: for starts, and where only labels or sizes matter."""
    return data.sample if isinstance(data, FileRows) else data


def of_each(step: Step, model: Model, point: object, data: object) -> list[Any]:
    """Return the results of a step: one for data in memory, or one for each file in the order of their names."""
    return (
        data.stored.each(step, model, _at_files(model, point, data))
        if isinstance(data, FileRows)
        else [step(model, point, data)]
    )


def _at_files(model: Model, point: object, data: FileRows) -> Iterator[Any]:
    """Yield parameters, or q(theta), for each file: the shared ones, and those of its rows."""
    return (restricted(model, point, slice(first, last)) for first, last in pairwise([0, *data.ends]))


def restricted(model: Model, point: Any, rows: Any) -> Any:
    """Return parameters, or q(theta), restricted to some rows."""
    return additive(model).of_rows(point, lambda of_rows: of_rows[..., rows, :])


def of_sample(model: Model, point: object, data: object) -> Any:
    """Return parameters, or q(theta), restricted to the rows of `some_of`."""
    return restricted(model, point, data.drawn) if isinstance(data, FileRows) else point


def from_sample(model: Model, point: Any, data: Any) -> Any:
    """Return parameters, or q(theta), for all rows: rows outside the sample get the sample's average."""

    def of_all(of_sample: np.ndarray) -> np.ndarray:
        of_all_rows = np.repeat(of_sample.mean(axis=-2, keepdims=True), data.rows, axis=-2)
        of_all_rows[..., data.drawn, :] = of_sample
        return of_all_rows

    return additive(model).of_rows(point, of_all) if isinstance(data, FileRows) else point


def expected(step: Step, model: Model, point: object, data: object) -> Expectation:
    """Return the E-step of the data; for rows in files the sum over files in the order of their names."""
    return together(model, of_each(step, model, point, data))


def together(model: Model, parts: Sequence[Expectation]) -> Expectation:
    """Return the E-step of all rows from those of their parts, in order."""
    if len(parts) == 1:
        return parts[0]
    stats = reduce(additive(model).pooled, [part.stats for part in parts])
    return Expectation(stats, math.fsum(part.value for part in parts))
