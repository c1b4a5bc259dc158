"""The graph of a model as a picture: by Graphviz where its program ``dot`` is installed, else drawn with Matplotlib."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayeszoo import figures, pictures

if TYPE_CHECKING:
    import networkx as nx
    import pymc as pm
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bayeszoo.model import Model, Values

_GAP, _DOWN = 0.45, 1.15
"""Inches between nodes of a layer, and from layer to layer."""
_WIDTH, _HEIGHT, _LETTER = 1.2, 0.62, 0.075
"""Inches of a node, and of a letter in it."""
_INK, _SHADE, _PLATE = "#30343b", "#d5dae1", "#8a8f98"


def declared(model: Model, data: Values | None = None) -> pm.Model:
    """Declare a model as the textbook does, for the data or else for a few simulated rows."""
    return model.declare(model.simulate(np.random.default_rng(0), 3)[1] if data is None else data)


def model_svg(model: Model, data: Values | None = None) -> bytes:
    """Return the graph of a model as SVG.

    Parameters
    ----------
    model : Model
        An instance.
    data : mapping of str to ndarray, optional
        Data, whose sizes stand on the plates; by default a few simulated rows.
    """
    made = declared(model, data)
    return by_graphviz(made, "svg") if shutil.which("dot") else pictures.svg(lambda: draw(made))


def write_graph(model: Model, path: Path, overwrite: bool = False) -> Path:
    """Write the graph of a model as SVG, PNG or PDF, whole or not at all.

    Raises
    ------
    InputError
        As `figures.probe`.
    """
    path, made = figures.probe(path, overwrite), declared(model)
    if not shutil.which("dot"):
        with pictures.styled("white"):
            return figures.write(draw(made), path, overwrite)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.tmp-") as folder:
        whole = Path(folder) / "graph"
        whole.write_bytes(by_graphviz(made, path.suffix[1:].lower(), "white"))
        os.replace(whole, path)
    return path


def by_graphviz(made: pm.Model, form: str, background: str = "transparent") -> bytes:
    """Let Graphviz draw a PyMC model."""
    import pymc as pm

    graph = pm.model_to_graphviz(made)
    font = 'fontname="Helvetica,Arial,sans-serif" fontsize=11'
    defaults = (
        f'graph [bgcolor={background} pad=0.1 {font} color="{_PLATE}" fontcolor="{_INK}"]',
        f'node [{font} color="{_INK}" fontcolor="{_INK}" fillcolor="{_SHADE}"]',
        f'edge [color="{_INK}" arrowsize=0.7]',
    )
    graph.body[:0] = [f"\t{line}\n" for line in defaults]  # which what follows them takes
    return bytes(graph.pipe(format=form))


def draw(made: pm.Model) -> Figure:
    """Draw a PyMC model in layers: what depends on nothing above, plates as boxes, observed nodes shaded."""
    import pymc as pm
    from matplotlib.figure import Figure

    graph = pm.model_to_networkx(made)
    graph.remove_nodes_from([name for name in list(graph) if _is_copy(graph, name, made)])
    nodes = _nodes(graph, {str(v.name) for v in (*made.observed_RVs, *made.potentials, *made.data_vars)})
    low, high = (np.array(f([(n.x - s * n.width / 2, n.y) for n in nodes.values()], axis=0)) for f, s in _EDGES)
    margin = np.array([0.4, _HEIGHT / 2 + 0.45])
    size = high - low + 2 * margin
    figure = Figure(figsize=(float(size[0]), float(size[1])))
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    for label, members in _plates(graph).items():
        _draw_plate(axes, label, [nodes[name] for name in members])
    for parent, child in graph.edges:
        _draw_edge(axes, nodes[parent], nodes[child])
    for node in nodes.values():
        _draw_node(axes, node)
    (left, bottom), (right, top) = low - margin, high + margin
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    axes.set_axis_off()
    return figure


def _is_copy(graph: nx.DiGraph, name: str, made: pm.Model) -> bool:
    """Say whether a node is the data that an observed variable holds, which its shade says already."""
    observed = {str(variable.name) for variable in made.observed_RVs}
    parents = set(graph.predecessors(name))
    return bool(parents) and parents <= observed and not list(graph.successors(name)) and name not in observed


_EDGES: tuple[Any, ...] = ((np.min, 1), (np.max, -1))


class Node(NamedTuple):
    """A variable on the page: its words, where its middle is in inches, and how it looks."""

    words: str
    x: float
    y: float
    width: float
    random: bool
    observed: bool


def _nodes(graph: nx.DiGraph, observed: Collection[str]) -> dict[str, Node]:
    """Place the variables: a layer is one step from its last parent; members of a plate stand together."""
    import networkx as nx

    nodes: dict[str, Node] = {}
    for depth, layer in enumerate(nx.topological_generations(graph)):
        names = sorted(layer, key=lambda name: (_above(graph, name, nodes), _plate(graph, name), name))
        words = [_words(graph.nodes[name]) for name in names]
        widths = [max(_WIDTH, 0.3 + _LETTER * max(map(len, one.split("\n")))) for one in words]
        rooms = [max(width, 0.062 * len(_plate(graph, name))) for name, width in zip(names, widths, strict=True)]
        x = -(sum(rooms) + _GAP * (len(rooms) - 1)) / 2
        for name, text, width, room in zip(names, words, widths, rooms, strict=True):
            is_random = graph.nodes[name].get("shape", "ellipse") == "ellipse"
            nodes[name] = Node(text, x + room / 2, -depth * _DOWN, width, is_random, name in observed)
            x += room + _GAP
    return nodes


def _words(node: Mapping[str, Any]) -> str:
    name, *rest = [line.strip() for line in str(node["label"]).split("\n") if line.strip() not in ("", "~")]
    kind = " ".join(rest).removeprefix("CustomDist_")  # of ours, which PyMC names after the variable
    return f"{name}\n~ {kind}" if kind and kind != name else name


def _above(graph: nx.DiGraph, name: str, nodes: Mapping[str, Node]) -> float:
    """Return the middle of a node's parents, so that edges cross little."""
    parents = [nodes[parent].x for parent in graph.predecessors(name)]
    return sum(parents) / len(parents) if parents else 0.0


def _plate(graph: nx.DiGraph, name: str) -> str:
    return str(graph.nodes[name].get("cluster") or "").removeprefix("cluster")


def _plates(graph: nx.DiGraph) -> dict[str, list[str]]:
    """Return the members of each plate by its label."""
    found: dict[str, list[str]] = {}
    for name in graph.nodes:
        if label := _plate(graph, name):
            found.setdefault(label, []).append(name)
    return found


def _draw_plate(axes: Axes, label: str, nodes: Sequence[Node]) -> None:
    """Draw a box around the members of each layer: one around all would hold strangers between them."""
    from matplotlib.patches import FancyBboxPatch

    for y in sorted({node.y for node in nodes}):
        layer = [node for node in nodes if node.y == y]
        left, right = min(n.x - n.width / 2 for n in layer) - 0.07, max(n.x + n.width / 2 for n in layer) + 0.07
        short = max(0.0, 0.062 * len(label) - (right - left)) / 2  # of room for the label
        left, right = left - short, right + short
        bottom, height = y - _HEIGHT / 2 - 0.24, _HEIGHT + 0.3
        style = "round,pad=0.05,rounding_size=0.1"
        axes.add_patch(FancyBboxPatch((left, bottom), right - left, height, style, fill=False, ec=_PLATE, lw=0.8))
        axes.text(right - 0.02, bottom + 0.07, label, ha="right", va="center", fontsize=7, color=_INK)


def _draw_node(axes: Axes, node: Node) -> None:
    """Draw a variable: an ellipse if it is random, else a box; shaded if it is observed."""
    from matplotlib.patches import Ellipse, FancyBboxPatch

    look: dict[str, Any] = {"fc": _SHADE if node.observed else "white", "ec": _INK, "lw": 0.9, "zorder": 3}
    if node.random:
        axes.add_patch(Ellipse((node.x, node.y), node.width, _HEIGHT, **look))
    else:
        corner = (node.x - node.width / 2 + 0.05, node.y - _HEIGHT / 2 + 0.05)
        axes.add_patch(FancyBboxPatch(corner, node.width - 0.1, _HEIGHT - 0.1, "round,pad=0.05", **look))
    axes.text(node.x, node.y, node.words, ha="center", va="center", fontsize=8, color=_INK, zorder=4, parse_math=False)


def _draw_edge(axes: Axes, parent: Node, child: Node) -> None:
    from matplotlib.patches import FancyArrowPatch

    start, end = _border(parent, child), _border(child, parent)
    passes = parent.y - child.y > 1.5 * _DOWN and abs(parent.x - child.x) < _WIDTH  # through what is between
    bent = f"arc3,rad={0.45 if passes else 0.0}"
    axes.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, lw=0.9, color=_INK, connectionstyle=bent)
    )


def _border(node: Node, other: Node) -> tuple[float, float]:
    """Return where the line from a node to another leaves its ellipse."""
    x, y = other.x - node.x, other.y - node.y
    reach = 1 / float(np.hypot(x / (node.width / 2), y / (_HEIGHT / 2)))
    return node.x + reach * x, node.y + reach * y
