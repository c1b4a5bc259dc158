"""The answer of a model with a real-valued hidden state: the forecast with its interval."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from bayeszoo.answers.series.decode import decode
from bayeszoo.answers.series.forecast import forecast
from bayeszoo.answers.series.lags import about_stationary, has_lags
from bayeszoo.errors import InputError
from bayeszoo.plots.families.levels import plot_levels
from bayeszoo.report.blocks import Block, TableBlock, Words, picture, table
from bayeszoo.report.text.numbers import with_interval, written
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd

STEPS = 3
"""Number of rows to come that the page lists."""


def next_rows(fit: Fit) -> list[Block]:
    """Return the current level and the next rows of each sequence, as a line and a table."""
    now = decode(fit.tree).iloc[-1]
    if "features" in now:
        how = "future rows need their features: `bayeszoo predict FIT NEW.csv` with a table of them"
        return [Words(f"The level is now {with_interval(now, 'level')}, by {fit.method}; {how}.")]
    ahead = forecast(fit.tree, STEPS)
    first = ahead.iloc[-STEPS]
    by, several = fit.method, "sequence" in ahead
    which = "the next row of the last sequence" if several else "the next row"
    line = f"Forecast: {which} is {with_interval(first)}"
    line += f"; its level is now {with_interval(now, 'level')}"
    return [Words(f"{line}, by {by}."), _table(ahead)]


def next_of_lags(fit: Fit) -> list[Block]:
    """Return the next rows of a regression on its lags, and whether the process is stationary; nothing for others."""
    if not has_lags(fit):
        return []
    try:
        ahead = forecast(fit.tree, STEPS)
    except InputError:  # further features, or the last rows, are unknown
        return []
    which = "the next row of the last sequence" if "sequence" in ahead else "the next row"
    line = f"Forecast: {which} is {with_interval(ahead.iloc[-STEPS])}, by {fit.method}."
    return [Words(f"{line} {about_stationary(ahead.attrs)}"), _table(ahead)]


def _table(ahead: pd.DataFrame) -> TableBlock:
    several = "sequence" in ahead
    names = ahead["sequence"].astype(str).to_numpy()[:, None].tolist() if several else [[]] * len(ahead)
    rows = [[str(step), *name, *_cells(row)] for name, (step, row) in zip(names, ahead.iterrows(), strict=True)]
    return table(["rows ahead", *["sequence"] * several, "mean", "q025", "q975"], rows, sortable=False)


def _cells(row: Any) -> list[str]:
    return [written(row, name) for name in ("mean", "q025", "q975")]


def levels(fit: Fit) -> Block:
    """Draw the series with its level and the forecast."""
    caption = "Rows, their level given all rows, and the next rows; missing rows have an interval."
    return picture(partial(plot_levels, fit.tree), "level over time, and the forecast", caption, wide=True)
