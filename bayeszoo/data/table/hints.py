"""Hints on the likely meaning of a table that cannot be read."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from bayeszoo.data.table.cells import number_of

_ROWS = 1000
"""Rows that are checked."""


def by_group(columns: Mapping[str, Iterable[object]]) -> str:
    """Return the hint to fit groups separately, if a column of few labels stands next to another column.

    Parameters
    ----------
    columns : mapping of str to iterable
        The cells of the columns that may hold the outcome.

    Returns
    -------
    str
        The end of a hint; empty where no column names groups.
    """
    cells = {name: [str(cell) for cell in islice(values, _ROWS)] for name, values in columns.items()}
    groups = [name for name, values in cells.items() if _names_groups(values)]
    others = [name for name in columns if name not in groups]
    if not groups or not others:
        return ""
    column = others[0] if len(others) == 1 else "COLUMN"  # which of several holds the outcome is not known
    options = f"--column {shlex.quote(column)} --by {shlex.quote(groups[0])}"
    return f"; {options} fits each {groups[0]} by itself and compares them"


def _names_groups(cells: Sequence[str]) -> bool:
    """Say whether cells are labels that occur several times each."""
    labels = {*cells}
    return 2 <= len(labels) <= len(cells) / 2 and all(number_of(label, ".") is None for label in labels)
