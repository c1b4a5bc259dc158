"""A table taken apart by the groups that one of its columns names, each part read as the whole is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bayeszoo.data.inputs.labels import texts_of
from bayeszoo.data.read import Data, HasInputs, example_table, read
from bayeszoo.data.table.read import read_table
from bayeszoo.data.table.table import MISSING, Column, Table, quoted


def read_by(model: HasInputs, source: Any, by: str, **options: Any) -> tuple[Data, dict[str, Data]]:
    """Read a table, and the rows of each group that a column names, with the same labels and codes.

    Parameters
    ----------
    model : Model or class
        What the table is for.
    source : anything that `read` takes but arrays without names
        The table; None for the model's first example.
    by : str
        The column that names the group of each row; no other use is made of it.
    **options
        Those of `read`.

    Returns
    -------
    whole : Data
        All rows.
    parts : dict of str to Data
        The rows of each group, in the order in which the groups first occur, under their numbers in the whole table.

    Raises
    ------
    InputError
        When there is no such column, a row has no group, or all rows have the same one; and as `read` does.
    """
    how = {name: options.pop(name) for name in ("delimiter", "decimal", "encoding", "header") if name in options}
    table, defaults = example_table(model) if source is None else (read_table(source, **how), {})
    options = defaults | options
    column = table[by]
    rows = _rows_by_label(column)
    others = {name: other for name, other in table.columns.items() if name != by}
    whole = read(model, replace(table, columns=others), **options)
    parts = {}
    for label, own in rows.items():
        part = Table(table.name, {name: _rows_of(other, own) for name, other in others.items()}, table.notes)
        read_part = read(model, part, new=True, like=whole, **options)  # for the codes of the whole
        numbers = own[read_part.numbers - 1] + 1 if len(read_part.numbers) <= len(own) else None
        checked = (model.inputs, False)  # every row of it was, with its outcome, as one of the whole
        parts[label] = replace(read_part, checked_for=checked, reading=whole.reading, row_numbers=numbers)
    return replace(whole, notes=(*whole.notes, *_alike(column, rows))), parts


def _rows_by_label(column: Column) -> dict[str, np.ndarray]:
    """Return the indices of the rows of each group."""
    rows = defaultdict[str, list[int]](list)
    for row, text in enumerate(texts_of(column)):
        rows[text.strip()].append(row)
    if lacking := sorted(row for label, own in rows.items() if label.lower() in MISSING for row in own):
        raise column.lacks(np.array(lacking), "give every row a group")
    if len(rows) < 2:
        raise column.error(f"names one group only, {quoted(rows)}", hint="fit without --by")
    return {label: np.array(own) for label, own in rows.items()}


def _rows_of(column: Column, rows: np.ndarray) -> Column:
    values = column.values
    return replace(column, values=[values[row] for row in rows] if isinstance(values, list) else values[rows])


def _alike(column: Column, labels: Mapping[str, Any]) -> list[str]:
    """Say which groups have names that differ in case or spaces only."""
    spelled = defaultdict[str, list[str]](list)
    for label in labels:
        spelled["".join(label.casefold().split())].append(label)
    return [f"{column}: {quoted(names)} are taken for different groups" for names in spelled.values() if len(names) > 1]
