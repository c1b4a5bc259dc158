"""The graph of a model as a picture: by Graphviz where its program ``dot`` is installed, else drawn with Matplotlib."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayeszoo.foundation import writing
from bayeszoo.plots import style as pictures

if TYPE_CHECKING:
    import graphviz
    import networkx as nx
    import pymc as pm
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bayeszoo.model.base import Model, Values

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
        As `writing.probe_figure`.
    """
    path, made = writing.probe_figure(path, overwrite), declared(model)
    if not shutil.which("dot"):
        with pictures.styled("white"):
            return writing.write_figure(draw(made), path, overwrite)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.tmp-") as folder:
        whole = Path(folder) / "graph"
        whole.write_bytes(by_graphviz(made, path.suffix[1:].lower(), "white"))
        os.replace(whole, path)
    return path


def textbook(made: pm.Model) -> nx.DiGraph:
    """Return the graph of a PyMC model as a textbook draws it.

    Left out are the numbers of the prior, which PyMC holds as data without axes, and the copies of what is observed.
    """
    import pymc as pm

    graph = pm.model_to_networkx(made)
    observed = set(map(_key, made.observed_RVs))
    numbers = {_key(v) for v in made.data_vars if v.name not in made.named_vars_to_dims}
    copies = {
        name
        for name in graph
        if name not in observed and not list(graph.successors(name)) and observed & set(graph.predecessors(name))
    }
    graph.remove_nodes_from(numbers | copies)
    graph = _in_order(graph, [_key(variable) for variable in made.named_vars.values()])
    given = observed | set(map(_key, (*made.potentials, *made.data_vars)))
    words = {_key(variable): _words(variable, made) for variable in made.named_vars.values()}
    for name, node in graph.nodes.items():
        node |= {"words": words[name], "observed": name in given}
        node["random"] = node.get("shape", "ellipse") == "ellipse"
    return graph


def _in_order(graph: nx.DiGraph, names: Sequence[str]) -> nx.DiGraph:
    """Return the graph with its nodes in the order of declaration: PyMC's has that of a set."""
    import networkx as nx

    made = nx.DiGraph()
    made.add_nodes_from((name, graph.nodes[name]) for name in names if name in graph)
    made.add_edges_from(sorted(graph.edges))
    return made


def _key(variable: Any) -> str:
    """Return what PyMC's graphs call a variable."""
    return str(variable.name).replace(":", "&")


def _words(variable: Any, made: pm.Model) -> str:
    """Return a name and, of a random variable, its distribution."""
    if variable not in made.basic_RVs:
        return str(variable.name)
    kind = getattr(variable.owner.op, "_print_name", [""])[0]
    return str(variable.name) if not kind or kind.startswith("CustomDist") else f"{variable.name}\n~ {kind}"


def by_graphviz(made: pm.Model, form: str, background: str = "transparent") -> bytes:
    """Let Graphviz draw a PyMC model."""
    return bytes(in_dot(made, background).pipe(format=form))


def in_dot(made: pm.Model, background: str = "transparent") -> graphviz.Digraph:
    """Write the graph of a PyMC model in Graphviz's language."""
    import graphviz

    graph, font = textbook(made), {"fontname": "Helvetica,Arial,sans-serif", "fontsize": "11", "fontcolor": _INK}
    around = {"bgcolor": background, "pad": "0.1", "style": "rounded", "color": _PLATE, **font}
    node = {"color": _INK, "fillcolor": _SHADE, **font}
    whole = graphviz.Digraph(graph_attr=around, node_attr=node, edge_attr={"color": _INK, "arrowsize": "0.7"})
    ids = {name: f"n{i}" for i, name in enumerate(graph)}
    plates = _plates(graph)
    for i, (label, members) in enumerate(plates.items()):
        last = not any(graph.out_degree(name) for name in members)
        look = {"label": graphviz.escape(label), "labelloc": "b" if last else "t", "labeljust": "r" if last else "l"}
        with whole.subgraph(name=f"cluster{i}", graph_attr=look) as box:  # labelled where no edge passes
            for name in members:
                _add(box, ids[name], graph.nodes[name])
    for name in (name for name in graph if not _plate(graph, name)):
        _add(whole, ids[name], graph.nodes[name])
    whole.edges((ids[parent], ids[child]) for parent, child in graph.edges)
    return whole


def _add(graph: Any, identity: str, node: Mapping[str, Any]) -> None:
    """Add a variable: an ellipse if it is random, else a box; shaded if it is observed."""
    import graphviz

    style = ",".join(["rounded"] * (not node["random"]) + ["filled"] * node["observed"])
    words = "\\n".join(map(graphviz.escape, node["words"].split("\n")))
    graph.node(identity, words, shape="ellipse" if node["random"] else "box", style=style)


def draw(made: pm.Model) -> Figure:
    """Draw a PyMC model in layers: what depends on nothing above, plates as boxes, observed nodes shaded."""
    from matplotlib.figure import Figure

    graph = textbook(made)
    nodes = _nodes(graph)
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


_EDGES: tuple[Any, ...] = ((np.min, 1), (np.max, -1))


class Node(NamedTuple):
    """A variable on the page: its words, where its middle is in inches, and how it looks."""

    words: str
    x: float
    y: float
    width: float
    random: bool
    observed: bool


def _nodes(graph: nx.DiGraph) -> dict[str, Node]:
    """Place the variables: a layer is one step from its first child; members of a plate stand together."""
    import networkx as nx

    nodes: dict[str, Node] = {}
    for depth, layer in enumerate(reversed(list(nx.topological_generations(graph.reverse())))):
        names = sorted(layer, key=lambda name: (_above(graph, name, nodes), _plate(graph, name), name))
        words = [graph.nodes[name]["words"] for name in names]
        widths = [max(_WIDTH, 0.3 + _LETTER * max(map(len, one.split("\n")))) for one in words]
        rooms = [max(width, 0.062 * len(_plate(graph, name))) for name, width in zip(names, widths, strict=True)]
        x = -(sum(rooms) + _GAP * (len(rooms) - 1)) / 2
        for name, text, width, room in zip(names, words, widths, rooms, strict=True):
            node = graph.nodes[name]
            nodes[name] = Node(text, x + room / 2, -depth * _DOWN, width, node["random"], node["observed"])
            x += room + _GAP
    return nodes


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
        back = {"fc": "white", "ec": "none", "pad": 0.6}  # above the edges that pass
        place: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": 7, "zorder": 2.5, "bbox": back}
        axes.text(right - 0.02, bottom + 0.07, label, color=_INK, **place)


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
