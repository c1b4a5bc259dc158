"""The graph of a model as in a textbook: roots at the top, plates as boxes, data shaded."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.data.read import example
from bayeszoo.errors import InputError
from bayeszoo.foundation.process import writing
from bayeszoo.model.capabilities import simulates
from bayeszoo.plots import style

if TYPE_CHECKING:
    import networkx as nx
    import pymc as pm
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    from bayeszoo.foundation.named import Arrays
    from bayeszoo.model.base import Model

_DOWN, _GAP, _HEIGHT, _LETTER = 1.15, 0.45, 0.62, 0.075
"""Inches between layers, between nodes of a layer, and of the height of a node and the width of a letter."""
_INK, _SHADE, _PLATE = "#30343b", "#d5dae1", "#8a8f98"


def declared(model: Model, data: Arrays | None = None) -> pm.Model:
    """Declare the textbook's model for the data, by default for a few simulated rows, or else its first example."""
    if data is None:
        data = model.simulate(np.random.default_rng(0), 3)[1] if simulates(type(model)) else example(model)
    return model.declare(data)


def model_svg(model: Model, data: Arrays | None = None) -> bytes:
    """Return the graph of a model as SVG; plates have the sizes of the data, by default a few simulated rows."""
    pymc_model = declared(model, data)
    return style.svg(lambda: draw(pymc_model))


def write_graph(model: Model, path: Path, overwrite: bool) -> Path:
    """Write the graph of a model as SVG, PNG or PDF, whole or not at all."""
    path = writing.probe_figure(path, overwrite)
    with style.styled("white"):
        return writing.write_figure(draw(declared(model)), path, overwrite)


def _of_a_draw(graph_of: Callable[[pm.Model], object], pymc_model: pm.Model, attempts: int = 20) -> Any:
    """Return a graph by PyMC, which draws from the prior for sizes; try again if NumPy refuses a draw."""
    from pymc.pytensorf import find_rng_nodes, reseed_rngs

    from bayeszoo.compile.function import without_c

    generators = find_rng_nodes(pymc_model.basic_RVs)
    for seed in range(attempts):
        reseed_rngs(generators, seed)  # otherwise each attempt would draw the same numbers
        try:
            with without_c():
                return graph_of(pymc_model)
        except NotImplementedError as error:
            raise InputError(f"PyMC draws no graph of an improper prior: {error}", "improper_prior") from None
        except ValueError as error:
            refused = error
    raise refused


def textbook(pymc_model: pm.Model) -> nx.DiGraph:
    """Return PyMC's graph of a model without the numbers of the prior and the copies of observed variables.

    PyMC stores the numbers of the prior as data without axes. Nodes are in order of declaration and have ``words``,
    ``plate``, ``observed`` and ``random``.
    """
    import networkx as nx
    import pymc as pm

    graph_of_pymc = _of_a_draw(pm.model_to_networkx, pymc_model)
    variables = {_key(variable): variable for variable in pymc_model.named_vars.values()}
    observed = {_key(variable) for variable in pymc_model.observed_RVs}
    left_out = {_key(v) for v in pymc_model.data_vars if v.name not in pymc_model.named_vars_to_dims}
    left_out |= {
        name
        for name in graph_of_pymc.nodes - observed
        if not list(graph_of_pymc.successors(name)) and observed & set(graph_of_pymc.predecessors(name))
    }
    fixed = observed | {_key(variable) for variable in (*pymc_model.potentials, *pymc_model.data_vars)}
    graph = nx.DiGraph()
    for name in [name for name in variables if name in graph_of_pymc.nodes - left_out]:
        is_random = graph_of_pymc.nodes[name].get("shape", "ellipse") == "ellipse"
        plate = str(graph_of_pymc.nodes[name].get("cluster") or "").removeprefix("cluster")
        words = _words(variables[name], pymc_model)
        graph.add_node(name, words=words, plate=plate, observed=name in fixed, random=is_random)
    graph.add_edges_from(
        sorted((parent, child) for parent, child in graph_of_pymc.edges if parent in graph and child in graph)
    )
    return graph


def _key(variable: Any) -> str:
    """Return the name of a variable in PyMC's graphs."""
    return str(variable.name).replace(":", "&")


def _words(variable: Any, pymc_model: pm.Model) -> str:
    """Return the name of a variable, and the distribution of a random one."""
    kind = getattr(variable.owner.op, "_print_name", [""])[0] if variable in pymc_model.basic_RVs else ""
    return str(variable.name) if not kind or kind.startswith("CustomDist") else f"{variable.name}\n~ {kind}"


def as_mermaid(pymc_model: pm.Model) -> str:
    """Return a model in Mermaid's language."""
    import pymc as pm

    return str(_of_a_draw(pm.model_to_mermaid, pymc_model))


def as_text(pymc_model: pm.Model) -> list[str]:
    """Return a PyMC model as lines of text: a variable is indented more than its parents, which follow an arrow.

    The axes of a variable are in brackets.
    """
    import networkx as nx

    graph = textbook(pymc_model)
    lines = []
    for depth, layer in enumerate(nx.topological_generations(graph)):
        for name in layer:
            node = graph.nodes[name]
            plate = f" [{re.sub(r' \(\d+\)', '', node['plate'])}]" if node["plate"] else ""
            data = ", observed" if node["observed"] and node["random"] else ", data" if node["observed"] else ""
            parents = ", ".join(sorted(graph.predecessors(name)))
            arrow = f" <- {parents}" if parents else ""
            lines.append(f"{'  ' * depth}{' '.join(node['words'].split())}{plate}{data}{arrow}")
    return lines


def draw(pymc_model: pm.Model) -> Figure:
    """Draw a PyMC model in layers: random variables as ellipses, others as boxes, observed ones shaded.

    A variable with axes has a frame (a plate) that names them.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyArrowPatch

    graph = textbook(pymc_model)
    widths = [_LETTER * len(line) for node in graph.nodes.values() for line in node["words"].split("\n")]
    width = max([1.2, *(0.3 + width for width in widths), *(0.8 * _LETTER * len(p) for _, p in graph.nodes("plate"))])
    places = _places(graph, width + _GAP)
    middles = np.array(list(places.values()))
    margin = np.array([width / 2 + _GAP, 0.85])
    low, high = middles.min(axis=0) - margin, middles.max(axis=0) + margin
    figure = Figure(figsize=tuple(high - low))
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes.set_axis_off()
    drawn = {name: _draw_node(axes, node, places[name], width) for name, node in graph.nodes.items()}
    for parent, child in graph.edges:
        (x, y), (below_x, below_y) = places[parent], places[child]
        passes = y - below_y > 1.5 * _DOWN and abs(x - below_x) < width  # through the nodes between
        look: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "lw": 0.9, "color": _INK, "shrinkA": 0}
        look |= {"connectionstyle": f"arc3,rad={0.45 if passes else 0.0}", "shrinkB": 0}
        axes.add_patch(FancyArrowPatch((x, y), (below_x, below_y), patchA=drawn[parent], patchB=drawn[child], **look))
    return figure


def _places(graph: nx.DiGraph, across: float) -> dict[str, tuple[float, float]]:
    """Return the middle of each node in inches; a node is one layer above its first child, and below its parents."""
    import networkx as nx

    places: dict[str, tuple[float, float]] = {}

    def above(name: str) -> float:  # mean place of its parents, to reduce crossings of edges
        parents = [places[parent][0] for parent in graph.predecessors(name)]
        return sum(parents) / max(len(parents), 1)

    for depth, layer in enumerate(reversed(list(nx.topological_generations(graph.reverse())))):
        names = sorted(layer, key=lambda name: (above(name), graph.nodes[name]["plate"], name))
        places |= {name: (across * (i - (len(names) - 1) / 2), -depth * _DOWN) for i, name in enumerate(names)}
    return places


def _draw_node(axes: Axes, node: Mapping[str, Any], middle: tuple[float, float], width: float) -> Patch:
    """Draw a variable and its frame; return the patch at which its edges end."""
    from matplotlib.patches import Ellipse, FancyBboxPatch

    x, y = middle
    look: dict[str, Any] = {"fc": _SHADE if node["observed"] else "white", "ec": _INK, "lw": 0.9, "zorder": 3}
    if node["random"]:
        shape: Patch = Ellipse(middle, width, _HEIGHT, **look)
    else:
        corner = (x - width / 2 + 0.05, y - _HEIGHT / 2 + 0.05)
        shape = FancyBboxPatch(corner, width - 0.1, _HEIGHT - 0.1, "round,pad=0.05", **look)
    axes.add_patch(shape)
    axes.text(x, y, node["words"], ha="center", va="center", fontsize=8, color=_INK, zorder=4, parse_math=False)
    if node["plate"]:
        left, bottom, height = x - width / 2 - 0.07, y - _HEIGHT / 2 - 0.24, _HEIGHT + 0.3
        style = "round,pad=0.05,rounding_size=0.1"
        axes.add_patch(FancyBboxPatch((left, bottom), width + 0.14, height, style, fill=False, ec=_PLATE, lw=0.8))
        back = {"fc": "white", "ec": "none", "pad": 0.6}  # over passing edges
        words = axes.text(x + width / 2 + 0.05, bottom + 0.07, node["plate"], color=_INK, fontsize=7, zorder=2.5)
        words.set(ha="right", va="center", bbox=back, parse_math=False)
    return shape
