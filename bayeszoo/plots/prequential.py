"""Prediction row by row: the log loss of each row, and the regret against the best parameter in hindsight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.plots.style import COLOURS, panels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def plot_prequential(frame: pd.DataFrame) -> Figure:
    """Draw the log loss of each row with its mean so far, and the regret.

    Parameters
    ----------
    frame : pandas.DataFrame
        Result of `prequential`.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot. If there is no best parameter in hindsight, the right panel is empty.

    Raises
    ------
    InputError
        When the table is not from `prequential`.
    """
    if missing := {"log_loss", "cumulative_log_loss", "regret"} - {*frame.columns}:
        problem = f"the table has no column {min(missing)}"
        raise InputError(problem, "missing_column", hint="give a result of bz.prequential")
    places = np.arange(1, len(frame) + 1)
    figure, (left, right) = panels(2, 4.4, 3.2)
    left.plot(places, frame["log_loss"], ".", ms=2.5, color="0.65", label="of the row")
    left.plot(places, frame["cumulative_log_loss"] / places, color=COLOURS[0], label="mean so far")
    left.set(xlabel="row", ylabel="log loss, nats")
    left.legend(frameon=False)
    is_finite = np.isfinite(frame["regret"].to_numpy())
    right.plot(places[is_finite], frame["regret"][is_finite], color=COLOURS[1])
    right.set(xlabel="rows so far", ylabel="regret, nats")
    return figure
