"""Pictures of a step function: the probabilities of its jumps."""

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
    """Draw the probability that a step function jumps at each possible cut.

    Parameters
    ----------
    tree : xarray.DataTree
        A fit of ``regression_tree``.

    Returns
    -------
    matplotlib.figure.Figure
        With one feature the function with its 95% bands above the probabilities; otherwise a panel of probabilities for
        each of the first six features.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When the model has no steps.
    """
    fit = Fit(tree)
    jumps, names = steps(tree).jumps, [str(name) for name in fit.data["feature"]]
    is_single = len(names) == 1
    figure, axes = panels(
        2 if is_single else min(len(names), MOST_FEATURES), 8 if is_single else 4.4, 3.2, across=1 if is_single else 3
    )
    if is_single:
        draw_along(axes[0], fit, 0, 0)
        axes[0].legend(loc="best", fontsize="small")
        axes[1].sharex(axes[0])
    for axis, name in zip(axes[is_single:], names, strict=False):
        of_feature = jumps[jumps["feature"] == name]
        axis.vlines(of_feature["cut"], np.zeros(len(of_feature)), of_feature["probability"], color=COLOURS[0], lw=2)
        axis.set_ylim(0, 1)
        axis.set_xlabel(short(name), parse_math=False)
        axis.set_ylabel("probability of a jump")
    return figure
