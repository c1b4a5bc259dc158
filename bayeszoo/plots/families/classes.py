"""Classes: the calibration of probabilities, and how well they separate the classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.answers.classes.scores import calibration, roc
from bayeszoo.plots.style import COLOURS, panels, short

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 4.4, 4.2


def plot_calibration(frame: pd.DataFrame, bins: int = 10) -> Figure:
    """Draw the observed share of a class against its probability, in bins.

    Parameters
    ----------
    frame : pandas.DataFrame
        Result of `classify` for rows with known outcomes.
    bins : int
        Number of bins between 0 and 1.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: a point for each bin, with the 95% interval of the share; points of calibrated
        probabilities are on the line. The numbers are those of `calibration`.

    Raises
    ------
    InputError
        When the outcomes are not known.
    """
    figure, (axes,) = panels(1, _WIDTH, _HEIGHT)
    _draw_calibration(axes, calibration(frame, bins))
    return figure


def plot_roc(frame: pd.DataFrame) -> Figure:
    """Draw the ROC curve; for several classes that of each against the others.

    Parameters
    ----------
    frame : pandas.DataFrame
        Result of `classify` for rows with known outcomes.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot. The numbers are those of `roc`; the area under each curve is in the legend.

    Raises
    ------
    InputError
        When the outcomes are not known.
    """
    figure, (axes,) = panels(1, _WIDTH, _HEIGHT)
    _draw_roc(axes, roc(frame), frame.attrs["auc"])
    return figure


def plot_classes(frame: pd.DataFrame) -> Figure:
    """Draw `plot_calibration` and `plot_roc` side by side."""
    figure, (left, right) = panels(2, _WIDTH, _HEIGHT)
    _draw_calibration(left, calibration(frame))
    _draw_roc(right, roc(frame), frame.attrs["auc"])
    return figure


def _draw_calibration(axes: Axes, table: pd.DataFrame) -> None:
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8, zorder=0)
    for i, (label, bins) in enumerate(table.groupby("class", sort=False)):
        colour, x = COLOURS[i % len(COLOURS)], bins["mean_probability"]
        axes.vlines(x, bins["q025"], bins["q975"], color=colour, lw=1.2)
        axes.plot(x, bins["share"], "o-", ms=4, lw=0.8, color=colour, label=short(label))
    axes.set(xlabel="mean probability of the bin", ylabel="share of trials, with 95% interval")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), title="calibration")
    axes.legend(title="class", loc="upper left", frameon=False)


def _draw_roc(axes: Axes, table: pd.DataFrame, areas: dict[str, float]) -> None:
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8, zorder=0)
    for i, (label, curve) in enumerate(table.groupby("class", sort=False)):
        area = areas[str(label)]
        named = f"{short(label)}: area {'not known' if np.isnan(area) else format(area, '.3f')}"
        x, y = curve["false_positive_rate"], curve["true_positive_rate"]
        axes.plot(x, y, color=COLOURS[i % len(COLOURS)], label=named)
    axes.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC curve")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.legend(title="class", loc="lower right", frameon=False)
