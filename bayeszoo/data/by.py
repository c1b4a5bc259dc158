"""A table split by the groups that a column names; each part is read like the whole table."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayeszoo.data.inputs import Groups
from bayeszoo.data.inputs.groups.rows import GROUP
from bayeszoo.data.inputs.labels import spelled_alike, texts_of
from bayeszoo.data.inputs.sequences.lags import LAGS
from bayeszoo.data.inputs.sequences.times import LABELS_OF_ROWS, TIME
from bayeszoo.data.read import Data, HasInputs, example_table, read
from bayeszoo.data.table.cells import MISSING
from bayeszoo.data.table.read import read_table
from bayeszoo.data.table.table import Column, Table, quoted, shown
from bayeszoo.errors import InputError, NumericalError, Untrustworthy
from bayeszoo.foundation.named import Options

if TYPE_CHECKING:
    import pandas as pd

FORM = ("delimiter", "decimal", "encoding", "header")
"""The options of reading that describe the format of a file."""


def read_by(model: HasInputs, source: Any, by: str, **options: Any) -> tuple[Data, dict[str, Data]]:
    """Read a table, and the rows of each group that a column names, with shared labels and codes.

    Parameters
    ----------
    model : Model or class
        The model that the table is for.
    source : anything that `read` takes, except arrays without names
        The table; None for the model's first example.
    by : str
        The column that names the group of each row; it has no other use.
    **options
        Options of `read`.

    Returns
    -------
    whole : Data
        All rows.
    parts : dict of str to Data
        The rows of each group, in the order of first occurrence, with their row numbers in the whole table.

    Raises
    ------
    InputError
        When the column does not exist, a row has no group, or all rows have the same; and where `read` raises it.
    """
    grouped = grouped_table(model, source, by, **options)
    rows, of_whole = _without_times(grouped.rows, grouped.options)
    whole = read(model, rows, **of_whole)
    table, parts = _named(grouped.table, whole), {}
    for label, places in grouped.places.items():
        part = _part(model, table, by, label, places, whole, grouped.options)  # with the codes of the whole
        checked = (model.inputs, False)  # all its rows were checked, with outcomes, in the whole
        of_rows = {name: part.reading[name] for name in LABELS_OF_ROWS if name in part.reading}
        reading = {name: value for name, value in whole.reading.items() if name not in LABELS_OF_ROWS}
        parts[label] = replace(part, checked_for=checked, reading=reading | of_rows)
    return replace(whole, notes=(*whole.notes, *grouped.notes)), parts


class Grouped(NamedTuple):
    """A table with a column of groups, its ``rows`` without that column, and the places of the rows of each group."""

    table: Table
    rows: Table
    places: dict[str, np.ndarray]
    options: dict[str, Any]  # of reading, without those of the file
    notes: list[str]


def grouped_table(model: HasInputs, source: Any, by: str, **options: Any) -> Grouped:
    """Read a table, or the model's example, and find the rows of each group, in the order of first occurrence."""
    form = {name: options.pop(name) for name in FORM if name in options}
    table, defaults = example_table(model) if source is None else (read_table(source, **form), {})
    options = defaults | options
    if options.get(LAGS) is not None:
        hint = f"give sequences that share their weights: --sequence {shlex.quote(by)}; or a table of each group"
        raise InputError("rows of groups do not follow each other, as lags do", "conflicting_options", hint=hint)
    column = table[by]
    places = _rows_by_label(column)
    if len(places) < 2:
        raise column.error(f"names only one group, {quoted(places)}", "one_group", hint="fit without --by")
    return Grouped(table, _without(table, by), places, options, spelled_alike(column, places))


def read_new_by(
    model: HasInputs, source: Any, by: str, likes: Mapping[str, Data], **options: Any
) -> tuple[Data, dict[str, Data]]:
    """Read new rows, those of each group like the data of the fit of that group.

    Parameters
    ----------
    model, source, by, **options
        As for `read_by`.
    likes : mapping of str to Data
        The data of the fit of each group.

    Returns
    -------
    whole : Data
        All rows.
    parts : dict of str to Data
        The rows of each group that occurs, with their row numbers in the table.

    Raises
    ------
    InputError
        When the column does not exist, or a row has no group or a group without a fit; and where `read` raises it.
    """
    form = {name: options.pop(name) for name in FORM if name in options}
    table = read_table(source, **form)
    rows = _rows_by_label(column := table[by])
    if unknown := [label for label in rows if label not in likes]:
        places = np.sort(np.concatenate([rows[label] for label in unknown]))
        raise column.error("is a group without a fit", "unknown_group", places, f"the fits are of {quoted(likes)}")
    whole_rows, of_whole = _without_times(_without(table, by), options)
    whole = read(model, whole_rows, new=True, like=next(iter(likes.values())), **of_whole)
    parts = {label: _part(model, table, by, label, rows[label], likes[label], options) for label in rows}
    return whole, parts


@contextmanager
def named_in_errors(label: str) -> Iterator[None]:
    """Add the name of the group to errors."""
    try:
        yield
    except InputError as error:
        message = f"group {shown(label)}: {error.message}"
        raise InputError(message, error.code, column=error.column, rows=error.rows, hint=error.hint) from None
    except (NumericalError, Untrustworthy) as error:
        raise type(error)(f"group {shown(label)}: {error}", error.code) from None


def together(frames: Mapping[str, pd.DataFrame], by: str) -> pd.DataFrame:
    """Join the tables of groups into one, with the group of each row in the first column."""
    import pandas as pd

    first = next(iter(frames.values()))
    name = by if by not in {*first.columns, *first.index.names} else "group"
    frame = pd.concat(frames.values())
    frame.insert(0, name, np.repeat(list(frames), [len(part) for part in frames.values()]))
    if withheld := [f"{label}: {line}" for label, part in frames.items() for line in part.attrs.get("withheld", [])]:
        frame["withheld"] = frame["withheld"].fillna("")
        frame.attrs["withheld"] = withheld
    return frame


def _without(table: Table, by: str, rows: np.ndarray | None = None) -> Table:
    """Return a table without the column ``by``, with all rows or those at the places ``rows``."""
    others = {name: column for name, column in table.columns.items() if name != by}
    if not others:
        problem = f"the table has no column but those that name groups, such as {quoted([by])}"
        raise InputError(problem, "missing_column", column=by, hint="add the columns that the model takes")
    if rows is None:
        return replace(table, columns=others)
    return Table(table.name, {name: other.of_rows(rows) for name, other in others.items()}, table.notes)


def _without_times(rows: Table, options: Options) -> tuple[Table, Options]:
    """Return the rows without their column of times: times rise in each group, not from one group to the next."""
    name = options.get(TIME)
    if name is None:
        return rows, options
    others = {other: column for other, column in rows.columns.items() if other != name}
    return replace(rows, columns=others), {key: value for key, value in options.items() if key != TIME}


def _named(table: Table, whole: Data) -> Table:
    """Add numbers as names to rows that are unnamed groups, so that whole and parts have the same names."""
    if whole.checked_for is None or not isinstance(whole.checked_for[0], Groups) or GROUP in whole.columns:
        return table
    numbers = Column(GROUP, [str(row + 1) for row in range(table.rows)])
    return replace(table, columns={**table.columns, GROUP: numbers})


def _part(model: HasInputs, table: Table, by: str, label: str, rows: np.ndarray, like: Data, options: Options) -> Data:
    """Read the rows of a group, with their row numbers in the whole table."""
    with named_in_errors(label):
        data = read(model, _without(table, by, rows), new=True, like=like, **options)
    return replace(data, row_numbers=rows[data.numbers - 1] + 1 if len(data.numbers) <= len(rows) else None)


def _rows_by_label(column: Column) -> dict[str, np.ndarray]:
    """Return the indices of the rows of each group."""
    rows = defaultdict[str, list[int]](list)
    for row, text in enumerate(texts_of(column)):
        rows[text.strip()].append(row)
    if missing := sorted(row for label, places in rows.items() if label.lower() in MISSING for row in places):
        raise column.lacks(np.array(missing), "give every row a group, by a name that does not mean a missing value")
    return {label: np.array(places) for label, places in rows.items()}
