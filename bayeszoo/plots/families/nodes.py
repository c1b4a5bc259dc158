"""Pictures of a graph with labels: the probability of a label at each node, and the nodes with known labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.answers.classes.classify import classify
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Arrays
from bayeszoo.model.capabilities import Classifies
from bayeszoo.model.views import View
from bayeszoo.plots.style import panels, short
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

MOST_NODES, MOST_NAMED = 400, 60
"""Most nodes of a graph that is drawn, and of one whose nodes have names in the picture."""


def plot_nodes(tree: xr.DataTree) -> Figure:
    """Draw a graph with the probability of a label at each node; nodes with known labels have a thick edge.

    Parameters
    ----------
    tree : xarray.DataTree
        A fit of a model of labels on a graph, such as ``graph_process``.

    Returns
    -------
    matplotlib.figure.Figure
        Nodes with an edge are placed near each other; places have no other meaning. Nodes whose probability is withheld
        are grey.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate.
    InputError
        When the model has no graph, or the graph has more than 400 nodes.
    """
    fit = Fit(tree)
    model, data = fit.model, fit.data
    if View.NODES not in model.views() or not isinstance(model, Classifies):
        raise InputError(f"{model.name} has no graph", "no_capability", hint="give a fit of graph_process")
    if (count := len(data["node"])) > MOST_NODES:
        raise InputError(f"{count:,} nodes are too many for a picture, at most {MOST_NODES}", "too_large")
    label = model.classes(data)[1]
    probability = classify(tree, {"node": data["node"]})[f"p[{label}]"].to_numpy()
    figure, (axes,) = panels(1, 7.0, 5.0)
    places = _layout(data)
    for ends in zip(data["first"], data["second"], strict=True):
        axes.plot(*places[list(ends)].T, color="0.8", lw=0.8, zorder=1)
    edges = np.where(np.isin(np.arange(count), data["place"]), 2.5, 0.4)
    has_names = count <= MOST_NAMED
    style: Any = {"s": 260 if has_names else 40, "edgecolors": "0.2", "linewidths": edges, "plotnonfinite": True}
    shades = np.ma.masked_invalid(probability)
    nodes = axes.scatter(places[:, 0], places[:, 1], c=shades, cmap="coolwarm", vmin=0, vmax=1, zorder=2, **style)
    for (x, y), name in zip(places, data["node"], strict=True) if has_names else ():
        axes.text(x, y, short(str(name)), ha="center", va="center", fontsize=7, parse_math=False, zorder=3)
    figure.colorbar(nodes, ax=axes, shrink=0.7).set_label(short(f"probability of {label}"), parse_math=False)
    axes.set_axis_off()
    return figure


def _layout(data: Arrays) -> np.ndarray:
    """Return places (n, 2) of the nodes, with nodes that share an edge near each other."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(len(data["node"])))
    graph.add_edges_from(zip(data["first"].tolist(), data["second"].tolist(), strict=True))
    places = nx.spring_layout(graph, seed=1)
    return np.array([places[i] for i in graph])
