"""Pictures of a fitted function: its band, the band of new rows, and a few drawn functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.answers.function import drawn_functions, function_bands, has_interval
from bayeszoo.answers.judged import has_withheld
from bayeszoo.errors import InputError
from bayeszoo.model.capabilities import Classifies
from bayeszoo.model.capabilities.function import OfFunction
from bayeszoo.model.views import View
from bayeszoo.plots.style import COLOURS, panels, short
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_FEATURES = 6
"""Most features with a panel each."""
POINTS, BEYOND = 81, 0.15
"""Number of places along a feature, and the share of its range by which they extend beyond the rows."""


def plot_function(tree: xr.DataTree, features: Sequence[str] | None = None, *, draws: int = 4, seed: int = 0) -> Figure:
    """Draw the function of a fit along each feature, with 95% bands of it and of new rows, and functions drawn.

    Parameters
    ----------
    tree : xarray.DataTree
        A fit of a model of a function, such as ``gaussian_process``.
    features : sequence of str, optional
        The features, by default the first six; the others are at their means.
    draws : int
        Number of functions to draw.
    seed : int
        Seed of these draws.

    Returns
    -------
    matplotlib.figure.Figure
        A panel for each feature; rows are shown if there is only one. Withheld parts are left out, and drawn functions
        too if parameters are withheld.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When the model has no function, or the feature does not exist.
    """
    fit = Fit(tree)
    model, data = fit.model, fit.data
    if not (isinstance(model, OfFunction) and View.FUNCTION in model.views()):
        raise InputError(f"{model.name} has no function of features", "no_capability")
    all_names = list(map(str, data["feature"]))
    names = all_names[:MOST_FEATURES] if features is None else list(features)
    for name in names:
        if name not in all_names:
            raise InputError(
                f"there is no feature {name!r}", "missing_column", hint=f"the data have {', '.join(all_names)}"
            )
    figure, axes = panels(len(names), 8 if len(names) == 1 else 4.4, 4.2 if len(names) == 1 else 3.2)
    for axis, name in zip(axes, names, strict=True):
        draw_along(axis, fit, all_names.index(name), draws, seed)
    axes[0].legend(loc="best", fontsize="small")
    return figure


def draw_along(axes: Axes, fit: Fit, j: int, draws: int, seed: int = 0) -> None:
    """Draw the function along the j-th feature, the others at their means, with bands and drawn functions."""
    data = fit.data
    X, columns = data["X"], getattr(data, "columns", {})
    beyond = BEYOND * np.ptp(X[:, j])
    x = np.linspace(X[:, j].min() - beyond, X[:, j].max() + beyond, POINTS)
    rows = np.tile(X.mean(axis=0), (POINTS, 1))
    rows[:, j] = x
    places = {"X": rows, "feature": data["feature"]}
    model = fit.model
    assert isinstance(model, OfFunction)  # otherwise its bands were refused
    draws = draws if has_interval(fit) and not has_withheld(fit) else 0
    function, drawn = (
        function_bands(fit, places),
        model.mean_outcome(drawn_functions(fit, places, draws, seed)),
    )
    colour = COLOURS[0]
    if "row_q025" in function:
        ends = function["row_q025"], function["row_q975"]
        axes.fill_between(x, *ends, color=colour, alpha=0.12, lw=0, label="95% of new rows")
    if has_interval(fit):
        ends = function["q025"], function["q975"]
        axes.fill_between(x, *ends, color=colour, alpha=0.3, lw=0, label="95% of the function")
    for i in range(draws):
        label = "drawn functions" if i == 0 else None
        axes.plot(x, drawn[i], color=COLOURS[1], lw=0.8, alpha=0.8, label=label)
    axes.plot(x, function["mean"], color=colour, lw=1.6, label="mean of the function")
    if X.shape[1] == 1:
        axes.plot(X[:, j], data["y"] / data.get("trials", 1), "o", color="0.25", ms=3, label="rows")
    for end in (X[:, j].min(), X[:, j].max()):
        axes.axvline(end, color="0.6", lw=0.8, ls=":")
    axes.set_xlabel(short(str(data["feature"][j])), parse_math=False)
    outcome = columns.get("y", "y")
    of_class = f"probability of {model.classes(data)[1]}" if isinstance(model, Classifies) else outcome
    axes.set_ylabel(short(of_class), parse_math=False)
