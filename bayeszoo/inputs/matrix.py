"""Several columns of real numbers: vectors, one a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.inputs.base import Arrays, Parsed, columns_of, listing
from bayeszoo.inputs.labels import checked_labels, label_array
from bayeszoo.inputs.real import Measured
from bayeszoo.numeric import are_numbers, stacked, subnormal, to_numbers, to_reals
from bayeszoo.table import Column, Table, shown


@dataclass(frozen=True)
class Matrix(Measured):
    """Columns of real numbers, each row one observation.

    The canonical arrays are `name`, shape (rows, columns), and the coordinate `axis` of the names of the columns.

    Parameters
    ----------
    name : str
        The model's name of the outcome.
    axis : str
        The model's name of the axis of columns.
    """

    name: str = "Y"
    axis: str = "column"
    options = frozenset({"columns"})
    lists = frozenset({"columns"})

    @property
    def coords(self) -> tuple[str, ...]:
        """The names of the columns."""
        return (self.axis,)

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """The outcome has one column each."""
        return {self.name: (self.axis,)}

    @property
    def forms(self) -> tuple[frozenset[str], ...]:
        """The outcome and the names of its columns."""
        return (frozenset({self.name, self.axis}),)

    def _parse(self, table: Table, missing: str, options: dict[str, Any], like: Arrays | None) -> Parsed:
        names = options.get("columns")
        if names is None:
            refuse_text(table)
        names = list(table.columns) if names is None else names
        if like is not None:
            names = in_order_of(like[self.axis].tolist(), names)
        columns = [table[name] for name in names]
        values, dropped = stacked(columns, to_reals, missing)
        notes = (*table.notes, *dropped, *_subnormal(columns, values))
        return Parsed({self.name: values, self.axis: label_array(names)}, {self.name: ", ".join(names)}, notes)

    def canonical(self, arrays: Mapping[str, Any], missing: str = "refuse") -> Parsed:
        """Check numbers and the names of their columns as strictly as a file; without names, check them as a table."""
        if not self.is_canonical(arrays):
            return super().canonical(arrays, missing)
        labels = checked_labels(self.axis, arrays[self.axis], least=1)
        columns = columns_of(self.name, arrays[self.name], labels)
        values, dropped = stacked(columns, to_reals, missing)
        return Parsed({self.name: values, self.axis: labels}, {}, (*dropped, *_subnormal(columns, values)))

    def table(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return the columns under their names."""
        return dict(zip(arrays[self.axis].tolist(), arrays[self.name].T, strict=True))

    def unseen(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Return further observations."""
        return {self.name: np.zeros((rows, len(arrays[self.axis]))), self.axis: arrays[self.axis]}

    def describe(self) -> str:
        """Say in one line what the table must hold."""
        return "columns of real numbers, all those of the table or some of them (--columns)"


def refuse_text(table: Table, option: str = "columns") -> None:
    """Refuse a column that is not numbers, and say which are, to be chosen by `option`."""
    usable = [column.name for column in table.columns.values() if are_numbers(column)]
    if not usable or len(usable) == len(table.columns):
        return
    numeric = set(usable)
    other = next(column for name, column in table.columns.items() if name not in numeric)
    try:
        to_numbers(other)
    except InputError as error:
        if error.hint:
            raise
        hint = f"choose columns of numbers: --{option} {listing(usable)}"
        raise InputError(str(error), column=error.column, rows=error.rows, hint=hint) from None


def in_order_of(fitted: list[str], names: list[str], option: str = "columns") -> list[str]:
    """Put the columns in the order of the fit, which must have the same; they are chosen by `option`."""
    found, known = set(names), set(fitted)
    lacking = next((name for name in fitted if name not in found), None)
    if lacking is not None:
        raise InputError(f"there is no column {shown(lacking)}, which the fit has", column=lacking)
    more = next((name for name in names if name not in known), None)
    if more is not None:
        hint = f"use --{option} {listing(fitted)}"
        raise InputError(f"column {shown(more)} is not among the {len(fitted)} of the fit", column=more, hint=hint)
    return fitted


def _subnormal(columns: Iterable[Column], values: np.ndarray) -> tuple[str, ...]:
    return tuple(note for column, cells in zip(columns, values.T, strict=True) for note in subnormal(column, cells))
