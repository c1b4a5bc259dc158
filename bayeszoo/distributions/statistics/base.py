"""The base of sufficient statistics: they can be added and subtracted."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np


@dataclass(frozen=True)
class Stats:
    """Additive sufficient statistics: a subclass names them as fields, ``+`` adds and ``-`` removes data.

    Attributes
    ----------
    log_coefficient : float
        Log of the number of *ordered* data sets that a table of counts stands for; 0 for a table of single
        observations. Sufficient statistics do not depend on order, so every density computed from them is of ordered
        data, and adding this constant gives the log density of the counts.
    """

    log_coefficient: float = field(default=0.0, kw_only=True)

    def __add__(self, other: Self) -> Self:
        return type(self)(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def __sub__(self, other: Self) -> Self:
        return type(self)(**{f.name: getattr(self, f.name) - getattr(other, f.name) for f in fields(self)})

    def __getitem__(self, index: object) -> Self:
        """Index the leading axes of all statistics, as in an array."""
        arrays = {f.name: getattr(self, f.name)[index] for f in fields(self) if f.name != "log_coefficient"}
        return replace(self, **arrays)

    def discounted(self, factor: float) -> Self:
        """Return the statistics of data with weight ``factor``, as for older batches in a stream."""
        return type(self)(**{f.name: factor * getattr(self, f.name) for f in fields(self)})


def along(values: Any, like: Any) -> np.ndarray:
    """Append axes of length 1 to an array, so that it broadcasts with the leading axes of ``like``."""
    values = np.asarray(values)
    return values.reshape(values.shape + (1,) * (np.ndim(like) - values.ndim))


def positive_or_one(values: Any) -> Any:
    """Return values, with 1 where they are not positive, as a safe divisor."""
    return np.where(np.asarray(values) > 0, values, 1.0)[()]
