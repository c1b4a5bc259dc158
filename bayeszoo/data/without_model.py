"""The content of a table that is read for an answer without a model."""

from __future__ import annotations

from collections.abc import Mapping
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
