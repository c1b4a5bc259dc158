"""Sequences of symbols in order, of which some may be unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Parsed, every_code
from bayeszoo.data.inputs.labels import Alphabet, checked_codes, checked_labels, in_order, label_array
from bayeszoo.data.inputs.sequences.series import MASKED, SEQUENCE, Converted, Series, unmasked
from bayeszoo.data.table.read import to_column
from bayeszoo.data.table.table import Column, Table


@dataclass(frozen=True)
class SymbolSeries(Series):
    """Symbols in order: text, or numbers that stand for nothing but themselves.

    The canonical arrays of `Series` hold codes; their labels are the coordinate `axis`.

    Parameters
    ----------
    name : str
        The model's name of the observations.
    axis : str
        The model's name of the axis of symbols.
    """

    name: str = "y"
    axis: str = "symbol"
    options = Series.options | {"symbols"}
    lists = frozenset({"symbols"})

    @property
    def coords(self) -> tuple[str, ...]:
        """The labels of the symbols."""
        return (self.axis,)

    @property
    def coded(self) -> Mapping[str, str]:
        """The observations are codes."""
        return {self.name: self.axis}

    @property
    def forms(self) -> tuple[frozenset[str], ...]:
        """Codes, their sequences and labels."""
        return (frozenset({self.name, SEQUENCE, self.axis}),)

    def _converted(self, column: Column, options: Mapping[str, Any], like: Arrays | None) -> Converted:
        known = None if like is None else like[self.axis]
        alphabet = Alphabet.of("symbol", "symbols", options.get("symbols"), known)
        coded = alphabet.coded(column)
        notes: tuple[str, ...] = ()
        if not np.isnan(coded.codes).all():  # which is refused, for another reason than too few symbols
            coded, notes = alphabet.finished(str(column), coded)
        return Converted(coded.codes, {self.axis: label_array(coded.labels)}, notes)

    def canonical(self, arrays: Mapping[str, Any], missing: str = "mask") -> Parsed:
        """Check codes, sequences and labels as strictly as a table, where -1 is masked; anything else, as a table."""
        if not self.is_canonical(arrays):
            return super().canonical(arrays, missing)
        labels = checked_labels(self.axis, arrays[self.axis], least=2)
        columns = Table("", {name: to_column(name, arrays[name]) for name in (self.name, SEQUENCE)}).columns
        return self._arrays(columns, missing, lambda column: self._as_codes(unmasked(column), labels))

    def _as_codes(self, column: Column, labels: np.ndarray) -> Converted:
        return Converted(checked_codes(self.name, column.values, labels)[1], {self.axis: labels}, ())

    def _written(self, arrays: Arrays) -> np.ndarray:
        return arrays[self.axis][arrays[self.name]]

    def reading(self, arrays: Arrays) -> dict[str, Any]:
        """Name the symbols where they are not those that occur, in order; ask for masks where there are any."""
        symbols = arrays[self.axis].tolist()
        occur = in_order(set(self._written(arrays)[~self.masked(arrays)].tolist()))
        return super().reading(arrays) | ({} if symbols == occur else {"symbols": symbols})

    def possible(self, arrays: Arrays | None = None) -> Iterator[dict[str, np.ndarray]]:
        """Go through every sequence of four symbols, or of fewer where there are many symbols."""
        symbols = np.array(["a", "b", "c"]) if arrays is None else arrays[self.axis]
        for codes in every_code(len(symbols)):
            yield {self.name: codes, SEQUENCE: np.zeros(len(codes), dtype=np.int64), self.axis: symbols}

    def relabelled(self, arrays: Arrays, axis: str, permutation: np.ndarray) -> dict[str, np.ndarray]:
        """Put the symbols in the order of `permutation`; what is masked stays so."""
        moved = super().relabelled(arrays, axis, permutation)
        return {**moved, self.name: np.where(self.masked(arrays), MASKED, moved[self.name])}

    def describe(self) -> str:
        """Say in one line what the table must hold."""
        return self._described("symbols")
