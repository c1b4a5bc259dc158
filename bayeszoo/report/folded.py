"""Long tables of estimates made short: a range in the place of many entries, and symmetric matrices once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bayeszoo.report.numbers import digits_for, number

_FEW = 5
"""Entries of a parameter that are printed however many rows stand above."""


def folded(
    names: Sequence[str], cells: Sequence[list[list[Any]]], means: Sequence[object], most: int
) -> list[list[Any]]:
    """Keep the first rows of all parameters; of the further ones of each say how many there are, and the range.

    Parameters
    ----------
    names, means
        Of each parameter its name and all its means, or None where they are withheld.
    cells
        The rows of each parameter.
    most
        How many rows are kept.
    """
    rows, left = list[list[Any]](), most
    for name, own, mean in zip(names, cells, means, strict=True):
        kept = len(own) if len(own) <= max(left, _FEW) else max(left, 0)
        rows += own[:kept]
        left -= kept
        if rest := len(own) - kept:
            others = [None] * (len(own[0]) - 2)
            rows.append([f"{name}: {rest}{' more' * bool(kept)}, see -o", _range(mean), *others])
    return rows


def _range(means: object) -> str | None:
    """Return the least and the greatest of some estimates, to the digits that tell them apart, at least two."""
    known = np.empty(0) if means is None else np.asarray(means, dtype=np.float64)
    known = known[np.isfinite(known)]
    if not known.size:
        return None
    digits = digits_for(float(known[np.argmax(np.abs(known))]), float(np.ptp(known)), 2)
    return f"{number(float(known.min()), digits)} to {number(float(known.max()), digits)}"


def below_diagonal(dims: Sequence[str], means: object) -> Callable[[tuple[int, ...]], bool]:
    """Return what says of an index whether its entry of a symmetric matrix stands below the diagonal."""
    values = np.asarray(means)
    if means is None or values.ndim < 2 or dims[-1] != f"{dims[-2]}_2":
        return lambda index: False
    if not np.allclose(values, np.swapaxes(values, -1, -2), 1e-9, 0.0, equal_nan=True):
        return lambda index: False
    return lambda index: index[-2] > index[-1]
