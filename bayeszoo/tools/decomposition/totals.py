"""The change of a total from a table of two periods, with a row for each period or for each part of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayeszoo.data.by import FORM
from bayeszoo.data.table.read import read_table
from bayeszoo.data.table.table import Table, quoted, shown, to_reals
from bayeszoo.errors import InputError
from bayeszoo.tools.decomposition.due_to import DueTo, due_to
from bayeszoo.tools.decomposition.formula import Formula


def due_to_of_table(
    data: Any,
    formula: str,
    *,
    by: str,
    within: str | None = None,
    before: str | None = None,
    after: str | None = None,
    **options: Any,
) -> DueTo:
    """Decompose the change of a total whose factors are columns of a table of plain numbers.

    Parameters
    ----------
    data : anything that `read_table` takes
        A table with a row for each period, or with ``within`` for each part of each period.
    formula : str
        The total, as for `due_to`, of columns. A factor outside ``sum(...)`` has one number in a period.
    by : str
        The column that names the periods or groups.
    within : str, optional
        The column that names the parts that ``sum(...)`` adds up.
    before, after : str, optional
        The periods; by default in order of occurrence.
    **options
        The format of a text file.

    Returns
    -------
    DueTo
        The exact decomposition.

    Raises
    ------
    InputError
        When a column is missing, a cell is no number, a period does not exist or repeats a part, or a factor outside
        ``sum(...)`` differs between the rows of a period.

    Examples
    --------
    >>> table = {"year": ["2023", "2024"], "volume": [1000.0, 1500.0], "rate": [0.02, 0.01], "price": [3.0, 4.0]}
    >>> answer = due_to_of_table(table, "volume * rate * price", by="year")
    >>> answer.summary["mean"].round(3).to_dict()
    {'year 2023': 60.0, 'volume': 25.833, 'rate': -44.167, 'price': 18.333, 'change': 0.0, 'year 2024': 60.0}
    """
    total = Formula.of(formula)
    table = read_table(data, **{name: value for name, value in options.items() if name in FORM and value is not None})
    groups = [str(cell) for cell in table[by].values]
    names = _periods(groups, by, before, after)
    rows = [[i for i, group in enumerate(groups) if group == name] for name in names]
    first, second = (_factors(table, total, places, within, name) for places, name in zip(rows, names, strict=True))
    return due_to(first, second, formula).called(f"{by} {names[0]}", f"{by} {names[1]}")


def _periods(groups: list[str], by: str, before: str | None, after: str | None) -> tuple[str, str]:
    """Return the names of the two periods that are compared."""
    periods = list(dict.fromkeys(groups))
    if before is None and after is None and len(periods) != 2:
        hint = "name two with --before and --after"
        line = f"column {shown(by)} names {len(periods)} periods: {quoted(periods)}"
        raise InputError(line, "wrong_columns", column=by, hint=hint)
    others = [name for name in periods if name not in (before, after)]
    chosen = (before or others[0], after or others[-1])
    for name in chosen:
        if name not in periods:
            hint = f"the periods are {quoted(periods)}"
            raise InputError(f"there is no period {shown(name)}", "unknown_name", column=by, hint=hint)
    return chosen


def _factors(table: Table, total: Formula, rows: list[int], within: str | None, period: str) -> dict[str, Any]:
    """Return the factors of a period: numbers by part inside a sum, else one number."""
    labels = (
        [str(row + 1) for row in range(len(rows))] if within is None else [str(table[within].values[i]) for i in rows]
    )
    if within is None and len(rows) > 1:
        hint = "name the column of its parts with --within, or add the rows up"
        raise InputError(f"period {shown(period)} has {len(rows)} rows", "repeated_rows", hint=hint)
    if len({*labels}) < len(labels):
        raise InputError(f"period {shown(period)} has two rows of one part", "repeated_rows", column=within)
    values: dict[str, Any] = {}
    for name in total.names:
        numbers = np.asarray(to_reals(table[name]), dtype=np.float64)[rows]
        if name in total.summed:
            values[name] = dict(zip(labels, numbers.tolist(), strict=True))
        elif np.ptp(numbers) == 0:
            values[name] = float(numbers[0])
        else:
            hint = f"put it into sum(...), or give the same number in each row of {shown(period)}"
            raise InputError(f"column {shown(name)} differs between the parts", "bad_formula", column=name, hint=hint)
    return values
