"""Pictures of mixtures that do not depend on labels: the density with its band, and which rows share a component."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.answers.latent.clusters import clusters, row_density
from bayeszoo.data.read import Data
from bayeszoo.plots.style import COLOURS, panels, short
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 250


def plot_clusters(tree: xr.DataTree) -> Figure:
    """Draw the density of one column with its 95% band, and the probability that two rows share a component.

    Parameters
    ----------
    tree : xarray.DataTree
        A fit of a mixture.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot. For several columns there is only the panel of pairs. Rows are sorted by `Clusters.groups`,
        within a group in the order of the table.

    Raises
    ------
    Untrustworthy, InputError
        As for `clusters`.
    """
    answer = clusters(tree)
    column = answer.data.get("column")
    is_one = column is not None and len(column) == 1
    figure, axes = panels(2 if is_one else 1, 4.4, 3.6)
    if is_one:
        _draw_density(Fit(tree), answer.data, axes[0])
    order = np.argsort(answer.groups, kind="stable")
    picture = axes[-1].imshow(answer.together[np.ix_(order, order)], vmin=0, vmax=1, cmap="Blues", rasterized=True)
    ends = np.flatnonzero(np.diff(answer.groups[order])) + 0.5
    for end in ends:
        axes[-1].axhline(end, color=COLOURS[1], linewidth=0.6)
        axes[-1].axvline(end, color=COLOURS[1], linewidth=0.6)
    axes[-1].set(xlabel="row, sorted by group", ylabel="row", title="together")
    figure.colorbar(picture, ax=axes[-1], label="probability")
    return figure


def _draw_density(fit: Fit, data: Data, panel: Axes) -> None:
    """Draw mean and band of the density, with the rows as ticks."""
    rows = data["Y"][:, 0]
    margin = 0.1 * np.ptp(rows) or 1.0
    x = np.linspace(rows.min() - margin, rows.max() + margin, _POINTS)
    band = row_density(fit.tree, {str(data["column"][0]): x})
    panel.fill_between(x, band["q025"], band["q975"], color=COLOURS[0], alpha=0.25, lw=0, label="95% interval")
    panel.plot(x, band["density"], color=COLOURS[0], label="density of a new row")
    panel.plot(rows, np.zeros(len(rows)), "|", color="0.3", markersize=6, alpha=0.6)
    panel.set(xlabel=short(str(data["column"][0])), ylabel="density", ylim=(0, None))
    panel.legend()
