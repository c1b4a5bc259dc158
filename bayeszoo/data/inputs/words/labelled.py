"""Documents that belong to classes: columns of counts of words, and one of classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Parsed, every_code
from bayeszoo.data.inputs.labelled import Labelled
from bayeszoo.data.inputs.mixed import FEATURES
from bayeszoo.data.inputs.mixed_arrays import COUNTS
from bayeszoo.data.inputs.mixed_columns import Cell, refuse_feature
from bayeszoo.data.table.table import Table, listed, shown
from bayeszoo.errors import InputError

_NUMBERED = 8
"""Rows from which a column that increases from each to the next numbers them: counts do once in 8! orders at most."""


@dataclass(frozen=True)
class LabelledDocuments(Labelled):
    """One column of labels, the class of each document, and columns that count words, as of `Labelled`."""

    kinds: tuple[str, ...] = (COUNTS,)
    maskable: bool = False

    def _from_columns(
        self,
        table: Table,
        kinds: Mapping[str, str],
        missing: str,
        like: Arrays | None,
        options: Mapping[str, Any],
        target: str | None = None,
    ) -> Parsed:
        """Convert columns, and name the documents without words; refuse a table of none to be fitted."""
        parsed = super()._from_columns(table, kinds, missing, like, options, target)
        lengths, before = parsed.arrays[COUNTS].sum(axis=1), next(iter(table.columns.values())).before
        if like is None and before is None and not lengths.any():
            raise InputError("the counts add up to 0: there are no words in the documents", "no_data")
        if like is None and len(kinds) < 2:
            problem = f"only the word {shown(*kinds)}, at least two are needed"
            raise InputError(problem, "no_data", hint="give more columns")
        empty = np.flatnonzero(lengths == 0)
        if not empty.size:
            return parsed
        where = f" ({listed(empty, before=before or 0)})" if len(lengths) == table.rows else ""
        note = f"documents without words{where}: {empty.size}; their class probabilities are the shares of the classes"
        return replace(parsed, notes=(*parsed.notes, note))

    def _about(self, cells: Sequence[Cell], options: Mapping[str, Any], rows: int) -> tuple[str, ...]:
        """Refuse numbers of the documents; words may be as frequent as others, or equally often in all documents."""
        names = [cell.column.name for cell in cells]
        for cell in cells if FEATURES not in options and rows >= _NUMBERED else ():
            if (np.diff(cell.feature.values) > 0).all():
                refuse_feature(
                    cell.column, "increases from row to row, as numbers of rows do", "names_of_rows", names, False
                )
        return ()

    def possible(self, arrays: Arrays | None = None) -> Iterator[dict[str, np.ndarray]]:
        """Go through every few documents of one word."""
        coords = arrays or {**self._simplest, "count": np.array(["u", "v"])}
        codes = [(k, v) for k in range(len(coords["class"])) for v in range(len(coords["count"]))]
        y, word = np.array(codes).T
        rows = {self.name: y, COUNTS: np.eye(len(coords["count"]))[word]}
        rows |= {axis: coords[axis] for axis in self.coords}
        return (self.reordered(rows, chosen) for chosen in every_code(len(y)))
