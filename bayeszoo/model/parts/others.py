"""Leave-one-out statistics: for each row, the sufficient statistics of all other rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bayeszoo.foundation.named import Arrays
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Sufficient


def equal_rows(model: Model, data: Arrays) -> list[np.ndarray]:
    """Return the row numbers of each group of equal rows, ascending."""
    group_of_row = model.inputs.alike(data)
    return np.split(np.argsort(group_of_row, kind="stable"), np.cumsum(np.bincount(group_of_row))[:-1])


def all_but_one(
    model: Sufficient[Any], data: Arrays, groups: Sequence[np.ndarray], base_stats: object
) -> Iterator[tuple[int, Any]]:
    """Yield a row number of each group of equal rows, and ``base_stats`` plus the statistics of all other rows.

    Statistics are added by recursive halving, never subtracted: subtracting an outlier would lose digits.
    """
    if len(groups) == 1:
        yield int(groups[0][0]), base_stats + statistics_of(model, data, groups[0][1:])
        return
    middle = len(groups) // 2
    for inside, outside in ((groups[:middle], groups[middle:]), (groups[middle:], groups[:middle])):
        yield from all_but_one(model, data, inside, base_stats + statistics_of(model, data, np.concatenate(outside)))


def statistics_of(model: Sufficient[Any], data: Arrays, places: np.ndarray) -> Any:
    """Return the statistics of the rows numbered ``places``, which may repeat."""
    return model.statistics(model.inputs.reordered(data, places))
