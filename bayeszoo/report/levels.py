"""The answer of a model whose hidden state is a number: what comes next, and how sure it is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from bayeszoo.answers.decode import decode, forecast
from bayeszoo.plots.families.levels import plot_levels
from bayeszoo.report.blocks import Words, picture, table
from bayeszoo.report.tables import number
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr

STEPS = 3
"""Rows to come that the page gives in numbers."""


def next_rows(tree: xr.DataTree) -> list[Any]:
    """Give the level now and the next rows of each sequence, in a line and a table."""
    now = decode(tree).iloc[-1]
    if "features" in now:
        how = "its features tell what comes next: `bayeszoo predict FIT NEW.csv` of a table that has them"
        return [Words(f"The level is now {_interval(now['level'], now)}, by {Fit(tree).method}; {how}.")]
    ahead = forecast(tree, STEPS)
    first = ahead.iloc[-STEPS]
    by, several = Fit(tree).method, "sequence" in ahead
    which = "the next row of the last sequence" if several else "the next row"
    line = f"What comes next: {which} is {_interval(first['mean'], first)}"
    line += f"; its level is now {_interval(now['level'], now)}"
    columns = ["sequence"] * several + ["mean", "q025", "q975"]
    rows = [[str(step), *(_cell(row[name]) for name in columns)] for step, row in ahead.iterrows()]
    return [Words(f"{line}, by {by}."), table(["rows ahead", *columns], rows, sortable=False)]


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else number(value)


def _interval(mean: float, row: Any) -> str:
    return f"{number(mean)} (95% interval {number(row['q025'])} to {number(row['q975'])})"


def levels(tree: xr.DataTree) -> Any:
    """Draw the series with its level and what comes next."""
    caption = "Rows, their level given all rows, and the next rows; an interval in the place of a missing row."
    return picture(partial(plot_levels, tree), "level over time, and what comes next", caption, wide=True)
