"""The mutual information of features with the class, which shows how well they separate classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.plots.style import COLOURS, panels, short
from bayeszoo.tools.information import CLASS_ENTROPY

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_FEATURES = 30
"""Most features drawn, those with the most information."""


def plot_information(frame: pd.DataFrame) -> Figure:
    """Draw the mutual information of each feature and the class, the highest on top.

    Parameters
    ----------
    frame : pandas.DataFrame
        Result of `mutual_information` for a fit.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: points are means with 95% intervals, crosses are plug-in estimates, and the dashed line is
        the entropy of the class, an upper bound, if it is near. Of many features only the `MOST_FEATURES` highest are
        drawn.

    Raises
    ------
    InputError
        When the table is not such a result.
    """
    if "unit" not in frame.attrs or frame.index.name not in ("feature", "columns"):
        hint = "give the result of bz.mutual_information(fit)"
        raise InputError("the table has no mutual information from a fit", "not_a_fit", hint=hint)
    shown = frame.head(MOST_FEATURES)
    figure, (panel,) = panels(1, 5.6, float(np.clip(1.2 + 0.24 * len(shown), 2.2, 8.6)))
    places = np.arange(len(shown))
    panel.hlines(places, shown["q025"], shown["q975"], color=COLOURS[0], lw=1.4)
    panel.plot(shown["mean"], places, "o", ms=4.5, color=COLOURS[0], label="posterior mean, 95%")
    if "plug_in" in shown and shown["plug_in"].notna().any():
        panel.plot(shown["plug_in"], places, "x", ms=5, color=COLOURS[1], label="plug-in")
    limit = frame.attrs.get(CLASS_ENTROPY)
    reach = np.nanmax(shown[["mean", "q975"]].to_numpy(dtype=float), initial=0.0)
    if limit is not None and limit < 2 * reach:
        panel.axvline(limit, color="0.5", lw=1, ls="--", label="entropy of the class")
    panel.set_yticks(places, [short(name, 28) for name in shown.index], parse_math=False)
    panel.set_ylim(len(shown) - 0.5, -0.5)
    panel.set_xlim(left=0)
    more = f", the {len(shown)} highest of {len(frame)}" if len(shown) < len(frame) else ""
    quantity = "mutual information with the class" if limit is not None else "mutual information of columns"
    panel.set_xlabel(f"{quantity}, {frame.attrs['unit']}{more}")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure
