"""Pictures of a series with its level: the rows, the smoothed level with its band, missing rows, and a forecast.

Figures are Matplotlib's, made without pyplot: ``figure.savefig("levels.png")``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers.series.decode import decode
from bayeszoo.answers.series.forecast import forecast
from bayeszoo.answers.series.levels import coming
from bayeszoo.data.inputs import starts
from bayeszoo.data.read import Data, read
from bayeszoo.errors import Untrustworthy
from bayeszoo.foundation.named import Options
from bayeszoo.model.base import Model
from bayeszoo.plots.style import panels, short
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_STEPS = 12
"""Most rows that are forecast by default, which is a tenth of the series."""
NO_PANEL = ("sd_filtered", "sd_signal")
"""Columns without a panel of their own."""
_DARK, _PALE, _NEXT = "#1f4e79", "#9dbbd8", "#b5651d"


def plot_levels(
    tree: xr.DataTree | Model,
    new_data: object = None,
    *,
    steps: int | None = None,
    truth: Any = None,
    **options: Any,
) -> Figure:
    """Draw a series, its level given all rows with a 95% band, and for a single sequence a forecast.

    Parameters
    ----------
    tree, new_data, **options
        As for `decode`, where the hidden state is a number, such as for `local_level`; or as for `forecast`.
    steps : int, optional
        Number of rows to forecast; by default a tenth of the series, at most 12, or none with features.
    truth : array_like of shape (rows,), optional
        The true level of each row, if known.

    Returns
    -------
    matplotlib.figure.Figure
        Missing rows and forecast rows have 95% intervals of their predictions; what is withheld is left out. Dotted
        lines mark starts of sequences. Other components, such as slope and season, have a panel each.

    Raises
    ------
    Untrustworthy, InputError, NumericalError
        As for `decode` and `forecast`.
    """
    ahead = None if isinstance(tree, Model) else coming(Fit(tree), new_data, options)
    new_data, future = (None, ahead) if ahead is not None else (new_data, new_data)
    steps = steps or (None if ahead is None else ahead.rows)
    frame = decode(tree, new_data, **options)
    data, title = _described(tree, new_data, options)
    others = [name[3:] for name in map(str, frame) if name.startswith("sd_") and name not in NO_PANEL]
    figure, (axes, *below) = panels(1 + len(others), 10, 3.6 if not others else 2.6, 1)
    rows, first = frame.index.to_numpy(), starts(data["sequence"])
    for begin, end in zip(first, np.append(first[1:], len(rows)), strict=True):
        _draw_level(axes, frame.iloc[begin:end], rows[begin:end])
        for part, panel in zip(others, below, strict=True):
            _draw_part(panel, part, frame.iloc[begin:end], rows[begin:end])
        for panel in (axes, *below) if begin else ():
            panel.axvline(begin + 0.5, color="0.4", lw=0.8, ls=":")
    _draw_rows(axes, frame, data)
    if truth is not None:
        axes.plot(rows, np.asarray(truth), color="0.2", lw=1, ls="--", label="true level")
    last = len(rows)
    if len(first) == 1 and (steps or "features" not in frame):  # features of future rows are unknown
        with suppress(*() if steps else (Untrustworthy,)):  # the picture of the rows needs no forecast
            table = forecast(tree, steps or min(MOST_STEPS, max(1, last // 10)), future, **options)
            _draw_next(axes, table, last + table.index.to_numpy())
            last += len(table)
    axes.set(xlim=(0.5, last + 0.5))
    axes.set_ylabel(short(data.columns.get("y", "y")), parse_math=False)
    for panel in (axes, *below):
        panel.tick_params(labelsize="small")
        panel.set_xlim(0.5, last + 0.5)
        name_rows(panel, data)
    handles = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    axes.legend(
        handles.values(), handles, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=5, frameon=False
    )
    figure.suptitle(title, fontsize="medium", x=0.99, ha="right")
    return figure


def _described(source: xr.DataTree | Model, new_data: object, options: Options) -> tuple[Data, str]:
    """Return the rows that are drawn, and the title: the model, and the method of the fit."""
    if isinstance(source, Model):
        return read(source, new_data, **options), f"{source.name}, known tables (exact)"
    fit = Fit(source)
    data = fit.data if new_data is None else read(fit.model, new_data, new=True, like=fit.like, **options)
    return data, f"{fit.model.name}, {fit.method} ({fit.kind})"


def _draw_level(axes: Axes, frame: pd.DataFrame, rows: np.ndarray) -> None:
    axes.fill_between(rows, frame["q025"], frame["q975"], color=_PALE, lw=0, alpha=0.6, label="level, 95%")
    axes.plot(rows, frame["level"], color=_DARK, lw=1.5, label="level, mean")


def _draw_part(axes: Axes, part: str, frame: pd.DataFrame, rows: np.ndarray) -> None:
    axes.fill_between(rows, frame[f"{part}_q025"], frame[f"{part}_q975"], color=_PALE, lw=0, alpha=0.6)
    axes.plot(rows, frame[part], color=_DARK, lw=1)
    axes.set_ylabel(part)


def _draw_rows(axes: Axes, frame: pd.DataFrame, data: Data) -> None:
    """Draw the rows, and intervals in place of missing rows."""
    rows, missing = frame.index.to_numpy(), np.isnan(data["y"])
    axes.plot(rows[~missing], data["y"][~missing], "o", color="0.3", ms=3, label="rows")
    if missing.any():
        ends = frame.loc[missing, ["filled_q025", "filled_q975"]].to_numpy().T
        axes.vlines(rows[missing], *ends, color="0.6", lw=1.2, label="missing rows, 95%")


def _draw_next(axes: Axes, table: pd.DataFrame, rows: np.ndarray) -> None:
    axes.fill_between(rows, table["q025"], table["q975"], color=_NEXT, lw=0, alpha=0.25, label="next rows, 95%")
    axes.plot(rows, table["mean"], ".-", color=_NEXT, lw=1, ms=4, label="next rows, mean")


def name_rows(axes: Axes, data: Data) -> None:
    """Label the ticks with the times of rows, if the table has them, or with row numbers."""
    from matplotlib.ticker import MaxNLocator

    times = data.reading.get("times", {"column": "row", "values": []})
    by_place = {i: times["values"][row - 1] for i, row in enumerate(data.numbers.tolist(), 1) if times["values"]}
    axes.set_xlabel(short(times["column"]), parse_math=False)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    if by_place:
        axes.xaxis.set_major_formatter(lambda row, _: short(by_place.get(round(row), "")))
