"""The path of a lasso: where each coefficient leaves zero."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bayeszoo.plots.style import panels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_LINES = ("-", "--", ":", "-.")
"""Styles of lines, in turn, after all colours are used."""


def plot_lasso_path(path: pd.DataFrame) -> Figure:
    """Draw each weight along a path, relative to its largest size: where it leaves 0, and how it grows.

    Parameters
    ----------
    path : pandas.DataFrame
        Result of `lasso_path`.

    Returns
    -------
    matplotlib.figure.Figure
        Each weight divided by its largest size on the path, so that weights of different units can be compared.
    """
    from matplotlib import rcParams

    figure, (axes,) = panels(1, 8, 5)
    terms = [name for name in path.columns if name not in ("alpha", "violation", "(intercept)")]
    colours = len(rcParams["axes.prop_cycle"])
    for i, name in enumerate(terms):
        size = float(path[name].abs().max())
        share = path[name] / (size if size > 0 and math.isfinite(size) else 1.0)
        axes.plot(path.index, share, _LINES[i // colours % len(_LINES)], label=name)
    axes.set(xscale="log", xlabel="prior scale b", ylabel="weight over its largest on the path")
    axes.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
    return figure
