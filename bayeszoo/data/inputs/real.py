"""Real numbers: one column of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Inputs, Parsed
from bayeszoo.data.table.numbers import choose, complete, subnormal, to_reals
from bayeszoo.data.table.table import Table


class Measured(Inputs):
    """Real numbers, which have a unit and an origin; the outcome is the array `name`."""

    name: str

    def in_units(self, arrays: Arrays, factor: float, shift: float = 0.0) -> dict[str, np.ndarray]:
        """Return the data with every outcome y as ``factor * y + shift``."""
        return {**arrays, self.name: factor * arrays[self.name] + shift}


@dataclass(frozen=True)
class Real(Measured):
    """One column of real numbers.

    Parameters
    ----------
    name : str
        The model's name of the outcome.
    """

    name: str = "y"
    options = frozenset({"column"})

    def _parse(self, table: Table, missing: str, options: dict[str, Any], like: Arrays | None) -> Parsed:
        column = choose(table, options.get("column"), self.name)
        (values,), dropped = complete([column], [to_reals(column)], missing)
        notes = (*table.notes, *dropped, *subnormal(column, values))
        return Parsed({self.name: values}, {self.name: column.name}, notes)

    def unseen(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Return further observations."""
        return {self.name: np.zeros(rows)}

    def describe(self) -> str:
        """Say in one line what the table must hold."""
        return f"one column of real numbers ({self.name})"
