"""Statistics of all rows but each one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bayeszoo.foundation.named import Arrays
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Sufficient


def equal_rows(model: Model, data: Arrays) -> list[np.ndarray]:
    """Return the places of each group of equal rows, the first of each group first."""
    place = model.inputs.alike(data)
    return np.split(np.argsort(place, kind="stable"), np.cumsum(np.bincount(place))[:-1])


def all_but_one(
    model: Sufficient[Any], data: Arrays, groups: Sequence[np.ndarray], rest: object
) -> Iterator[tuple[int, Any]]:
    """Yield a row of each group of equal rows, and the statistics of ``rest`` and of all other rows.

    They are added up, from halves of halves: subtracting an outlier would lose digits.
    """
    if len(groups) == 1:
        yield int(groups[0][0]), rest + statistics_of(model, data, groups[0][1:])
        return
    middle = len(groups) // 2
    for part, others in ((groups[:middle], groups[middle:]), (groups[middle:], groups[:middle])):
        yield from all_but_one(model, data, part, rest + statistics_of(model, data, np.concatenate(others)))


def statistics_of(model: Sufficient[Any], data: Arrays, places: np.ndarray) -> Any:
    """Return the statistics of the rows at ``places``, which may repeat."""
    return model.statistics(model.inputs.reordered(data, places))
