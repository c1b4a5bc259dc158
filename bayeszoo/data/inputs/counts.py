"""Counts of events: one number a row, perhaps with the time or the space in which they were counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Inputs, Parsed
from bayeszoo.data.table.numbers import (
    choose,
    complete,
    distinct_pairs,
    refuse_large_sum,
    repeats,
    subnormal,
    to_counts,
    to_positive,
)
from bayeszoo.data.table.table import Column, Table, shown
from bayeszoo.errors import InputError

EXPOSURE = "exposure"


@dataclass(frozen=True)
class Counts(Inputs):
    """One column of counts, with an ``exposure`` where the rows were not observed for equally long.

    The canonical arrays are the counts and, where there is one, ``exposure``. A column of the table that is called so
    is used when no option is given. A column ``count`` says how many rows each row stands for.
    """

    name: str = "y"
    options = frozenset({"column", "exposure", "count"})
    holds = (
        "one column of counts ({0.name}), perhaps a column of how long each row was observed (--exposure) "
        "and one of how many rows it stands for (--count)"
    )

    def _parse(self, table: Table, missing: str, options: dict[str, Any], like: Arrays | None) -> Parsed:
        options, notes = self._with_exposure(table, options, like)
        roles = {"exposure": "the exposure", "count": "their counts"}
        taken = {options[option]: role for option, role in roles.items() if option in options}
        if len(taken) < len(options.keys() & roles):
            raise InputError(f"column {shown(options['count'])} cannot hold both the exposure and the counts")
        columns = {self.name: choose(table, options.get("column"), self.name, taken)}
        columns |= {option: table[options[option]] for option in roles if option in options}
        return self._arrays(columns, missing, notes)

    def _with_exposure(
        self, table: Table, options: dict[str, Any], like: Arrays | None
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Add the column called ``exposure`` to no options, and compare with the fit."""
        notes: tuple[str, ...] = ()
        if not options and EXPOSURE in table.columns and len(table.columns) > 1:
            options, notes = {EXPOSURE: EXPOSURE}, (f"{table[EXPOSURE]}: how long or how much each row was observed",)
        if like is not None and (EXPOSURE in like) != (EXPOSURE in options):
            if EXPOSURE in options:
                raise InputError("the fit has no exposure, these rows do", hint="leave it out with --column")
            raise InputError("the fit has an exposure, these rows have none", hint="give its column with --exposure")
        return options, notes

    def _arrays(self, columns: dict[str, Column], missing: str, notes: tuple[str, ...]) -> Parsed:
        numbers = [(to_positive if name == EXPOSURE else to_counts)(column) for name, column in columns.items()]
        complete_rows, dropped = complete(list(columns.values()), numbers, missing)
        values = dict(zip(columns, complete_rows, strict=True))
        if "count" in values:
            times = repeats(columns["count"], values.pop("count"))
            values = {name: np.repeat(array, times) for name, array in values.items()}
        notes = (*notes, *dropped)
        if self.name in values:
            refuse_large_sum(columns[self.name], values[self.name])
            values[self.name] = values[self.name].astype(np.int64)
        if EXPOSURE in values:
            notes = (*notes, *subnormal(columns[EXPOSURE], values[EXPOSURE]))
        return Parsed(values, {name: column.name for name, column in columns.items()}, notes)

    def _parse_new(self, table: Table, missing: str, options: dict[str, Any], like: Arrays | None) -> Parsed:
        """Parse a table of the exposure alone, which asks for the counts, or any other as for a fit."""
        exposure = options.get(EXPOSURE, EXPOSURE)
        if not (options.keys() <= {EXPOSURE} and set(table.columns) == {exposure}):
            return self._parse(table, missing, options, like)
        self._with_exposure(table, {EXPOSURE: exposure}, like)
        return self._arrays({EXPOSURE: table[exposure]}, missing, ())

    def has_outcome(self, arrays: Arrays) -> bool:
        """Say whether the rows hold more than their exposure."""
        return self.name in arrays

    def other_forms(self, arrays: Arrays) -> list[dict[str, np.ndarray]]:
        """Return the same counts, made in unequal times."""
        if EXPOSURE in arrays:
            return []
        return [{**arrays, EXPOSURE: 0.5 + np.arange(self.size(arrays)) % 4}]

    def possible(self, arrays: Arrays | None = None) -> Iterator[dict[str, np.ndarray]]:
        """Go through the single counts below 5000: what is left out is the far tail."""
        return ({self.name: np.array([count])} for count in range(5000))

    def unseen(self, arrays: Arrays, rows: int) -> dict[str, np.ndarray]:
        """Return further observations."""
        if EXPOSURE in arrays:
            raise InputError("the exposure of further rows is not known", hint="give a table with a column exposure")
        return super().unseen(arrays, rows)

    def observations(self, arrays: Arrays) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the distinct counts, or pairs of count and exposure, and how many rows hold each."""
        if EXPOSURE not in arrays:
            values, times = np.unique(arrays[self.name], return_counts=True)
            return {self.name: values}, times
        values, exposures, times = distinct_pairs(arrays[self.name], arrays[EXPOSURE])
        return {self.name: values, EXPOSURE: exposures}, times
