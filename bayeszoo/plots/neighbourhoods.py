"""Pictures of Parzen windows and of nearest neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayeszoo.plots.style import COLOURS, panels, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bayeszoo.tools.neighbourhoods.density import Densities
    from bayeszoo.tools.neighbourhoods.neighbours import Neighbours

_POINTS = 400


def plot_density(answer: Densities) -> Figure:
    """Draw densities of one column with their rows, and the pseudo-posterior of each bandwidth.

    Parameters
    ----------
    answer : Densities
        Result of `density`.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot. For several columns only the bandwidths are drawn.
    """
    is_one = len(answer.scale) == 1
    figure, axes = panels(2 if is_one else 1, 4.4, 3.2)
    if is_one:
        _draw_densities(answer, axes[0])
    for (name, density), colour in zip(answer.each.items(), _colours(len(answer.each)), strict=True):
        bandwidths, weights = density.pseudo
        step = np.gradient(bandwidths)
        axes[-1].plot(bandwidths, weights / step, color=colour, label=short(name))
        axes[-1].axvline(density.bandwidth, color=colour, linestyle=":")
    axes[-1].set(xlabel="bandwidth", ylabel="pseudo-posterior density")
    if len(answer.each) > 1:
        axes[0].legend()
    return figure


def _draw_densities(answer: Densities, panel: Axes) -> None:
    center, scale = float(answer.center[0]), float(answer.scale[0])
    rows = np.concatenate([density.rows for density in answer.each.values()])
    margin = 3 * max(density.bandwidth for density in answer.each.values())
    x = np.linspace(rows.min() - margin, rows.max() + margin, _POINTS)
    for (name, density), colour in zip(answer.each.items(), _colours(len(answer.each)), strict=True):
        share = len(density.rows) / len(rows)
        panel.plot(center + scale * x, share * np.exp(density.at(x[:, None])) / scale, color=colour, label=short(name))
        averaged = share * np.exp(density.averaged(x[:, None])) / scale
        panel.plot(center + scale * x, averaged, color=colour, linestyle="--", linewidth=0.8)
        places = center + scale * density.rows[:, 0]
        panel.plot(places, np.zeros(len(places)), "|", color=colour, markersize=6, alpha=0.6)
    panel.set(xlabel="value", ylabel="density (dashed: averaged over bandwidths)")


def _colours(count: int) -> list[str]:
    return [COLOURS[i % len(COLOURS)] for i in range(count)]


def plot_neighbours(answer: Neighbours) -> Figure:
    """Draw the pseudo-posterior of the number of neighbours and of their weight.

    Parameters
    ----------
    answer : Neighbours
        Result of `knn`.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot.
    """
    figure, (left, right) = panels(2, 4.4, 3.2)
    left.bar(np.arange(1, len(answer.weights) + 1), answer.weights.sum(axis=1), color=COLOURS[0])
    left.set(xlabel="neighbours k", ylabel="pseudo-posterior probability")
    right.plot(answer.betas, answer.weights.sum(axis=0) / np.gradient(answer.betas), color=COLOURS[0])
    right.set(xlabel="beta", ylabel="pseudo-posterior density")
    return figure
