"""What sufficient statistics of every law have in common: they pool, and are taken away again."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np


@dataclass(frozen=True)
class Stats:
    """Additive sufficient statistics: a subclass names them as fields, ``+`` pools and ``-`` takes away data.

    Attributes
    ----------
    log_coefficient : float
        Log of the number of *ordered* data sets that a table of counts stands for; 0 for a table of single
        observations. Sufficient statistics do not depend on order, so every density computed from them is of ordered
        data, and this is the constant that turns it into the density of the counts.
    """

    log_coefficient: float = field(default=0.0, kw_only=True)

    def __add__(self, other: Self) -> Self:
        return type(self)(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def __sub__(self, other: Self) -> Self:
        return type(self)(**{f.name: getattr(self, f.name) - getattr(other, f.name) for f in fields(self)})

    def __getitem__(self, index: object) -> Self:
        """Index the leading axes of all statistics, as of an array."""
        arrays = {f.name: getattr(self, f.name)[index] for f in fields(self) if f.name != "log_coefficient"}
        return replace(self, **arrays)

    def discounted(self, factor: float) -> Self:
        """Return the statistics of data that count ``factor`` times, as when older batches are forgotten."""
        return type(self)(**{f.name: factor * getattr(self, f.name) for f in fields(self)})


def along(values: Any, like: Any) -> np.ndarray:
    """Give an array trailing axes of length 1, so that it broadcasts with ``like``, with whose axes its own begin."""
    values = np.asarray(values)
    return values.reshape(values.shape + (1,) * (np.ndim(like) - values.ndim))


def positive_or(values: Any, other: float = 1.0) -> Any:
    """Return values, with another number where they are not positive: a divisor that divides nothing by 0."""
    return np.where(np.asarray(values) > 0, values, other)[()]
