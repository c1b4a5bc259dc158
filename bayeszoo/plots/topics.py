"""The picture of a topic model: the most probable words of each topic, with their posterior intervals.

Figures are Matplotlib's, made without pyplot: ``figure.savefig("topics.png")``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers.topics import topics
from bayeszoo.plots.style import panels

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 5
"""Topics in a row of the picture."""
_DARK, _PALE = "#1f4e79", "#9dbbd8"


def plot_topics(tree: xr.DataTree, top: int = 10, *, untrusted: bool = False) -> Figure:
    """Draw the most probable words of each topic: the mean as a bar, the 95% interval as a line.

    Parameters
    ----------
    tree, top, untrusted
        As of `topics`.

    Returns
    -------
    matplotlib.figure.Figure
        One panel a topic, titled with its share of all documents.

    Raises
    ------
    Untrustworthy, InputError
        As `topics`.
    """
    frame = topics(tree, top, untrusted=untrusted)
    labels, shares = frame.index.unique("topic"), frame.attrs["shares"]
    figure, axes = panels(len(labels), 2.6, 0.24 * top + 1.0, ACROSS)
    for i, (panel, label) in enumerate(zip(axes, labels, strict=True)):
        _draw(panel, frame.loc[label], f"topic {label}" + (f": {shares[i]:.0%}" if shares else ""))
    caveat = " - NOT TO BE TRUSTED, the gate did not pass" if "caveat" in frame.attrs else ""
    figure.suptitle(f"{tree.attrs['model']}, {tree.attrs['method']} ({tree.attrs['kind']}){caveat}", fontsize="medium")
    return figure


def _draw(panel: Axes, rows: Any, title: str) -> None:
    places = np.arange(len(rows))
    panel.barh(places, rows["mean"], color=_PALE)
    if rows["q025"].notna().all():
        panel.hlines(places, rows["q025"], rows["q975"], color=_DARK, lw=1.5)
    panel.set_yticks(places, rows["word"].tolist(), fontsize="small", parse_math=False)
    panel.tick_params(axis="x", labelsize=7)
    panel.locator_params(axis="x", nbins=3)
    panel.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, None))
    panel.set_title(title, fontsize="medium")
