"""Pictures of a function of steps: where it probably jumps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.answers.steps import steps
from bayeszoo.plots.families.function import MOST_FEATURES, draw_along
from bayeszoo.plots.style import COLOURS, panels, short
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


def plot_steps(tree: xr.DataTree) -> Figure:
    """Draw the probability that a function of steps jumps, at each place that may be cut.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned of ``regression_tree``.

    Returns
    -------
    matplotlib.figure.Figure
        With one feature the function with its 95% bands, and below it the probabilities; else a panel of these for
        each of the first six features.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When the model has no steps.
    """
    jumps, names = steps(tree).jumps, [str(name) for name in Fit(tree).data["feature"]]
    is_alone = len(names) == 1
    figure, axes = panels(
        2 if is_alone else min(len(names), MOST_FEATURES), 8 if is_alone else 4.4, 3.2, across=1 if is_alone else 3
    )
    if is_alone:
        draw_along(axes[0], tree, 0, 0)
        axes[0].legend(loc="best", fontsize="small")
        axes[1].sharex(axes[0])
    for axis, name in zip(axes[is_alone:], names, strict=False):
        own = jumps[jumps["feature"] == name]
        axis.vlines(own["cut"], np.zeros(len(own)), own["probability"], color=COLOURS[0], lw=2)
        axis.set_ylim(0, 1)
        axis.set_xlabel(short(name), parse_math=False)
        axis.set_ylabel("probability of a jump")
    return figure
