"""Groups of a hierarchy: raw, partially pooled and fully pooled estimates, in order of precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.answers.group_estimates import group_estimates, sizes_of_groups
from bayeszoo.data.inputs import Groups
from bayeszoo.plots.style import COLOURS, panels, short
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_GROUPS = 300
"""Most groups drawn."""
_MOST_NAMED, _SIZES_NAMED = 20, 9
"""Most groups that all have a name under the axis; with more, the number of groups with a size there."""


def plot_pooling(tree: xr.DataTree) -> Figure:
    """Draw the raw, the partially pooled and the fully pooled estimates of the groups of a hierarchy.

    Parameters
    ----------
    tree : xarray.DataTree
        A fit of a model with a parameter for each group, such as ``normal_means``.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot: groups in order from the least to the most precise, with their sizes (standard error,
        trials or exposure) under the axis; circles are raw estimates, points with 95% intervals the partially pooled
        ones, and the line is the fully pooled one. The numbers are those of `group_estimates`; withheld ones have no
        mark. Of many groups only the `MOST_GROUPS` most precise are drawn.

    Raises
    ------
    InputError
        When the model does not have a parameter for each group.
    Untrustworthy
        When the fit failed its gate.
    """
    frame, fit = group_estimates(tree), Fit(tree)
    inputs, (size, sizes) = fit.model.inputs, sizes_of_groups(fit)
    precisions = inputs.raw(fit.data)[1] if isinstance(inputs, Groups) else sizes
    shown = frame.iloc[np.argsort(precisions, kind="stable")[-MOST_GROUPS:]]
    figure, (panel,) = panels(1, float(np.clip(2.5 + 0.25 * len(shown), 6.4, 11)), 3.8)
    places = np.arange(len(shown))
    panel.axhline(shown["pooled"].iloc[0], color="0.55", lw=1, ls="--", label="fully pooled", zorder=0)
    panel.vlines(places, shown["q025"], shown["q975"], color=COLOURS[0], lw=1.4)
    panel.plot(places, shown["mean"], "o", ms=4, color=COLOURS[0], label="partially pooled")
    if shown["raw"].notna().any():
        panel.plot(places, shown["raw"], "o", ms=5, mfc="none", mec=COLOURS[1], label="raw")
    _name(panel, list(map(str, shown.index)), shown[size].to_numpy())
    selection = f": the {len(shown)} of {len(frame)} most precise groups" if len(shown) < len(frame) else ""
    panel.set_xlabel(f"groups, with their {size}, from the least to the most precise{selection}", parse_math=False)
    panel.set_ylabel(str(frame.attrs["quantity"]), parse_math=False)
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, 1.14), ncols=3, frameon=False)
    return figure


def _name(panel: Axes, names: list[str], sizes: np.ndarray) -> None:
    """Put the size of each group under the axis, and its name if there is room; of many groups only some sizes."""
    has_room = len(names) <= _MOST_NAMED
    places = np.arange(len(names)) if has_room else np.unique(np.linspace(0, len(names) - 1, _SIZES_NAMED).astype(int))
    texts = [f"{short(names[i], 12)}\n{sizes[i]:.4g}" if has_room else f"{sizes[i]:.4g}" for i in places]
    panel.set_xticks(places, texts, parse_math=False)
    panel.set_xlim(-0.7, len(names) - 0.3)
    longest = max((min(len(name), 12) for name in names), default=0)
    if has_room and longest * len(names) > 90:
        panel.tick_params(axis="x", labelrotation=90)
