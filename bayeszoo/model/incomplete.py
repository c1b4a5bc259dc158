"""Rows of a regression whose features have empty cells, which a fit draws: made by `read_incomplete`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from bayeszoo.data.by import grouped_table
from bayeszoo.data.inputs import BinaryRegression, ClassRegression, Regression
from bayeszoo.data.inputs.features.holes import DROP
from bayeszoo.data.inputs.labels import refuse_other_labels
from bayeszoo.data.inputs.regression import WithFeatures
from bayeszoo.data.read import Data, data_of, example_table, reading_of
from bayeszoo.data.table.read import read_table
from bayeszoo.data.table.table import shown
from bayeszoo.errors import InputError
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Latent, PointMasses, Sufficient
from bayeszoo.model.capabilities.linear_predictor import LinearPredictor
from bayeszoo.model.parts.accumulated import Accumulated

INCOMPLETE = "incomplete rows"
"""The name of the data in a fit of completed tables."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Incomplete(Accumulated):
    """Rows with empty cells of features, for a linear model: made by `read_incomplete`, fitted by `fit`.

    It is an `Accumulated` without statistics, as those of cells that are not known: whatever needs complete rows is
    refused.
    """

    holed: Data  # all rows, with NaN in empty cells
    sample: Data  # the complete rows, to which priors are scaled

    which = "the rows without empty cells"
    """The name of the sample in messages."""
    why_no_rows = "some of their cells are empty"
    hint = "leave rows with empty cells out with --missing drop"

    @classmethod
    def of(cls, model: Model | type[Model], holed: Data) -> Self:
        """Return the rows of a model's data with NaN in empty cells; refuse arrays that are not such data."""
        inputs = inputs_of(model)
        whole = ~np.isnan(holed[inputs.features]).any(axis=1)
        complete, none = (inputs.reordered(holed.arrays, np.flatnonzero(mask)) for mask in (whole, 0 & whole))
        origin: dict[str, Any] = {"source": holed.source, "columns": holed.columns, "reading": holed.reading}
        sample = Data(inputs.canonical(complete).arrays, checked_for=(inputs, False), **origin)
        like = Data(none, checked_for=(inputs, False), **origin)
        known = {"rows": len(whole), "digest": holed.digest, "notes": holed.notes, **origin}
        return cls(model=model, stats=None, like=like, **known, holed=holed, sample=sample)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        """Name the number of rows and empty cells, the file and the model."""
        return (
            f"Incomplete({self.rows} rows, {len(self.places)} empty cells; from {self.source}; for {self.model.name})"
        )

    @property
    def inputs(self) -> WithFeatures:
        """The inputs of the model."""
        return inputs_of(self.model)

    @property
    def places(self) -> np.ndarray:
        """The row and the column in the array of features of each empty cell, (cells, 2)."""
        return np.argwhere(np.isnan(self.holed[self.inputs.features]))

    def require(self, model: Model) -> None:
        """Raise `InputError` unless ``model`` is linear in these features."""
        if inputs_of(model) != self.inputs:
            problem = f"the rows were read for {self.model.name}, not for {model.name}"
            raise InputError(problem, "wrong_statistics", hint="read them again")
        refuse_other_labels(model.labels, self.like)
        features, halves = self.inputs.features, self.sample[self.inputs.features] / 2
        design = [_design(model, {**self.sample, features: x}) for x in (2 * halves, halves + halves[::-1])]
        if not np.allclose(design[1], (design[0] + design[0][::-1]) / 2, rtol=1e-6, atol=1e-9):
            raise InputError(
                f"{model.name} has powers or products of features, which are not jointly Gaussian with them",
                "not_linear",
                hint="set degree to 1, or use --missing drop",
            )

    def of_rows(self, places: np.ndarray) -> Incomplete | Data:
        """Return some of the rows; as `Data`, where none of their cells is empty."""
        arrays = self.inputs.reordered(self.holed.arrays, places)
        part = replace(self.holed, arrays=arrays, row_numbers=self.holed.numbers[places], notes=())
        if not np.isnan(part[self.inputs.features]).any():
            return part
        incomplete = Incomplete.of(self.model, part)
        return replace(incomplete, notes=(incomplete.note,))

    def joint(self) -> np.ndarray:
        """Return outcome and features as columns of numbers, (rows, columns), NaN in empty cells.

        The outcome of classes has a column of 0 and 1 for each but the first.
        """
        outcome, inputs = self.inputs.outcome(self.holed), self.inputs
        if isinstance(inputs, ClassRegression):
            outcome = outcome[:, None] == np.unique(outcome)[1:]
        return np.column_stack([outcome.astype(np.float64), self.holed[inputs.features]])

    def completed(self, cells: np.ndarray) -> Data:
        """Return the rows with values (cells,) in the empty cells."""
        name = self.inputs.features
        values = self.holed[name].copy()
        values[tuple(self.places.T)] = cells
        return replace(self.holed, arrays={**self.holed, name: values}, checked_for=(self.inputs, False))

    @property
    def note(self) -> str:
        """The number of drawn cells of each column, and the assumptions about them."""
        row, column = self.places.T
        names = self.holed[self.inputs.axis]
        counts = ", ".join(f"{names[j]} {count}" for j, count in enumerate(np.bincount(column)) if count)
        cells, rows = f"{len(row)} empty cell{'s' * (len(row) != 1)}", f"{len(set(row.tolist()))} of {self.rows} rows"
        return (
            f"drawn: {cells} in {rows} ({counts}), given the other features and the outcome, as jointly Gaussian with "
            "them and missing at random: whether a cell is empty must not depend on its value"
        )


def inputs_of(model: Model | type[Model]) -> WithFeatures:
    """Return the inputs of a model whose empty cells can be drawn; refuse other models."""
    kind = model if isinstance(model, type) else type(model)
    is_linear = issubclass(kind, LinearPredictor) and not issubclass(kind, Latent | PointMasses)
    is_gaussian = type(kind.inputs) is Regression and issubclass(kind, Sufficient)
    is_known = is_gaussian or type(kind.inputs) in (BinaryRegression, ClassRegression)
    if isinstance(kind.inputs, WithFeatures) and is_linear and is_known:
        return kind.inputs
    raise InputError(
        f"{kind.name} is no linear model of a Gaussian or yes/no outcome, or of classes: a joint Gaussian of its "
        "features and outcome would not fit it",
        "no_capability",
        hint="leave rows with empty cells out with --missing drop",
    )


@contextmanager
def naming_impute(model: type[Model]) -> Iterator[None]:
    """Name ``--missing impute`` where a fit refuses empty cells, and a linear model could draw those of features."""
    try:
        yield
    except InputError as error:
        if error.code != "missing_values" or not _is_drawn(model):
            raise
        hint = f"{error.hint}; or --missing impute, which draws the empty cells of features"
        raise InputError(error.message, error.code, column=error.column, rows=error.rows, hint=hint) from None


def _is_drawn(model: type[Model]) -> bool:
    try:
        inputs_of(model)
    except InputError:
        return False
    return True


def _design(model: Model, data: Any) -> np.ndarray:
    assert isinstance(model, LinearPredictor)  # as `inputs_of` has found
    return model.design(data)


def read_incomplete(
    model: Model | type[Model],
    source: Any = None,
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
    **options: Any,
) -> Incomplete:
    """Read a table for a linear model whose features have empty cells, which `fit` draws.

    Parameters
    ----------
    model : Model or class
        A linear model of a Gaussian outcome, of yes/no outcomes or of classes.
    source, delimiter, decimal, encoding, header
        As for `read`; None for the model's first example.
    **options
        Options of `read` that name columns, levels and classes.

    Returns
    -------
    Incomplete
        The rows that have an outcome; a note gives the number of empty cells of each column. Each fit of it draws the
        empty cells anew.

    Raises
    ------
    InputError
        When a feature with empty cells holds levels, two values, or few whole numbers; when no cell is empty; and where
        `read` raises it.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> table = {"y": [1.0, 2.1, 2.9, 4.2, 5.1, 5.8], "x": [1.5, 2.0, None, 4.5, 4.0, 6.5]}
    >>> bz.read_incomplete(bz.find("linear_regression"), table)
    Incomplete(6 rows, 1 empty cells; from dict; for linear_regression)
    """
    inputs = inputs_of(model)
    form: dict[str, Any] = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding, "header": header}
    reading = reading_of(inputs, source, {**form, "missing": "impute", **options})
    if source is None:
        table, of_example = example_table(model)
        options = {**of_example, **options}
    else:
        table = inputs.own_table(source, decimal) or read_table(source, **form)
    parsed = inputs.parse_with_holes(table, **options)
    if inputs.companion in parsed.arrays:
        raise InputError(f"rows with {inputs.companion} are not drawn", "conflicting_options", hint=DROP)
    data = data_of(parsed, table.name or type(source).__name__, inputs, False, reading)
    incomplete = Incomplete.of(model, data)
    if not len(incomplete.places):
        raise InputError("no cell of a feature is empty", "no_data", hint="leave out --missing impute; or use bz.read")
    return replace(incomplete, notes=(*data.notes, incomplete.note))


def read_incomplete_by(
    model: Model | type[Model], source: Any, by: str, **options: Any
) -> tuple[Incomplete, dict[str, Incomplete | Data]]:
    """Read a table whose features have empty cells, and the rows of each group, whose cells are drawn by themselves.

    Parameters
    ----------
    model, source, **options
        As for `read_incomplete`.
    by : str
        The column that names the group of each row.

    Returns
    -------
    whole : Incomplete
        All rows.
    parts : dict of str to Incomplete or Data
        The rows of each group, with the levels of the whole; `Data` where none of their cells is empty.

    Raises
    ------
    InputError
        When the column does not exist or names one group; and where `read_incomplete` raises it.
    """
    grouped = grouped_table(model, source, by, **options)
    whole = read_incomplete(model, grouped.rows, **grouped.options)
    kept = whole.holed.numbers - 1
    parts = {label: whole.of_rows(np.flatnonzero(np.isin(kept, rows))) for label, rows in grouped.places.items()}
    if empty := [label for label, part in parts.items() if not part.rows]:
        raise InputError(f"group {shown(empty[0])} has no row with an outcome", "no_data", hint="leave it out")
    return replace(whole, notes=(*whole.notes, *grouped.notes)), parts
