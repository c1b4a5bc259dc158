"""The content of a table that is read for an answer without a model."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType

from bayeszoo.data.inputs import Inputs
from bayeszoo.data.read import Example


@dataclass(frozen=True)
class TableOf:
    """The stand-in for a model in `read`: the content of a table, without examples."""

    inputs: Inputs
    examples: tuple[Example, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    on_groups: str = ""
    """What to do about a column that may name groups of rows, a format string for the column."""

    def __post_init__(self) -> None:
        """Let the notes on the table give this advice, and not that for fits of a model."""
        inputs = copy(self.inputs)
        object.__setattr__(inputs, "on_groups", self.on_groups)
        object.__setattr__(self, "inputs", inputs)
