"""Short tables of estimates: a range in place of many entries, and symmetric matrices once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bayeszoo.report.text.numbers import digits_for, number

_FEW = 5
"""Entries of a parameter that are always printed."""


def folded(
    names: Sequence[str], cells: Sequence[list[list[Any]]], means: Sequence[object], most: int
) -> list[list[Any]]:
    """Return the first rows of all parameters, with one row for the further entries of each: their number and range.

    Parameters
    ----------
    names, means
        The name of each parameter, and all its means, or None if they are withheld.
    cells
        The rows of each parameter.
    most
        The number of rows that are kept.
    """
    rows, room = list[list[Any]](), most
    for name, entries, mean in zip(names, cells, means, strict=True):
        count = len(entries) if len(entries) <= max(room, _FEW) else max(room, 0)
        rows += entries[:count]
        room -= count
        if further := len(entries) - count:
            blank = [None] * (len(entries[0]) - 2)
            rows.append([f"{name}: {further}{' more' * bool(count)}, see -o", _range(mean), *blank])
    return rows


def _range(means: object) -> str | None:
    """Return the least and the greatest estimate, to the digits that tell them apart, at least two."""
    values = np.empty(0) if means is None else np.asarray(means, dtype=np.float64)
    values = values[np.isfinite(values)]
    if not values.size:
        return None
    digits = digits_for(float(values[np.argmax(np.abs(values))]), float(np.ptp(values)), 2)
    return f"{number(float(values.min()), digits)} to {number(float(values.max()), digits)}"


def below_diagonal(dims: Sequence[str], means: object) -> Callable[[tuple[int, ...]], bool]:
    """Return a function of an index: whether its entry is below the diagonal of a symmetric matrix."""
    values = np.asarray(means)
    if means is None or values.ndim < 2 or dims[-1] != f"{dims[-2]}_2":
        return lambda index: False
    if not np.allclose(values, np.swapaxes(values, -1, -2), 1e-9, 0.0, equal_nan=True):
        return lambda index: False
    return lambda index: index[-2] > index[-1]
