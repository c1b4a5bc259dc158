"""A change decomposed, as a waterfall: from the total before to the total after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.plots.style import COLOURS, panels, short, wrapped
from bayeszoo.tools.decomposition.due_to import CHANGE, DueTo

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_LETTERS = 14
"""Most characters in a line below a bar."""


def plot_due_to(answer: DueTo) -> Figure:
    """Draw a decomposed change as a waterfall between the totals before and after.

    Parameters
    ----------
    answer : DueTo
        Result of `due_to` or `kitagawa`.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot. Bars are the means of the summary; whiskers are 95% intervals about the ends of bars; P is
        the probability that a part is greater than 0. Plain numbers have only bars.
    """
    summary = answer.summary.drop(index=CHANGE)
    figure, (panel,) = panels(1, max(4.2, 1.1 * len(summary)), 3.2)
    means = summary["mean"].to_numpy()
    starts = np.concatenate([[0.0], means[0] + np.cumsum(np.append(0.0, means[1:-2])), [0.0]])
    places = np.arange(len(summary))
    is_end = np.isin(places, [0, places[-1]])
    colours = np.where(is_end, COLOURS[7], np.where(means >= 0, COLOURS[2], COLOURS[4]))
    panel.bar(places, means, 0.6, bottom=starts, color=colours.tolist())
    ends = starts + means
    panel.hlines(ends[:-1], places[:-1] + 0.3, places[1:] - 0.3, color="0.6", lw=0.8)
    if "q025" in summary:
        panel.vlines(places, starts + summary["q025"], starts + summary["q975"], color="0.2", lw=1.2)
    panel.axhline(0, color="0.6", lw=0.8, zorder=0)
    panel.set_xticks(places, _names(summary), parse_math=False)
    panel.set_title(short(answer.formula), fontsize="medium", parse_math=False)
    panel.tick_params(labelsize="small")
    return figure


def _names(summary: pd.DataFrame) -> list[str]:
    """Return the names of the bars, with the probability that a part is positive."""
    names, _ = wrapped(summary.index, _LETTERS)
    shares: Any = summary.get("p_positive", np.full(len(summary), np.nan))
    return [name if p != p else f"{name}\nP {_probability(p)}" for name, p in zip(names, shares, strict=True)]


def _probability(p: float) -> str:
    return "< 0.001" if p < 0.001 else "> 0.999" if p > 0.999 else f"{p:.3f}"
