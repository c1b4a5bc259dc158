"""Graphlets: counts of each small connected subgraph of a graph, by which whole graphs are compared.

W4400, graph kernels; Shervashidze, Vishwanathan, Petri, Mehlhorn and Borgwardt 2009. The counts come from formulas in
degrees and common neighbours: the number of ways to place the edges of a small graph in the large one, minus those that
lie in a subgraph with more edges.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.data.table.table import shown
from bayeszoo.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

OF_THREE = ("path_3", "triangle")
OF_FOUR = ("star_4", "path_4", "paw", "cycle_4", "diamond", "clique_4")
MOST_NODES = 2000
"""Most nodes of a graph: counting their common neighbours takes 32 MB, and seconds."""


def graphlets(graphs: Iterable[Any], *, counts: bool = False) -> pd.DataFrame:
    """Describe whole graphs by the shares of small connected subgraphs in them, as features of any regression.

    The graph kernel of two graphs is the inner product of their rows: ``kernel="linear"`` of ``gaussian_process`` and
    ``gaussian_process_classification`` on these features.

    Parameters
    ----------
    graphs : iterable of networkx.Graph
        Undirected graphs without loops; weights are ignored.
    counts : bool
        Whether to return counts in place of shares.

    Returns
    -------
    pandas.DataFrame
        A row for each graph. Connected sets of three nodes are ``path_3`` or ``triangle``; those of four are
        ``star_4``, ``path_4``, ``paw`` (a triangle with one more node), ``cycle_4``, ``diamond`` (a cycle with a
        chord) or ``clique_4``. Shares sum to 1 over the sets of three, and over those of four; they are 0 where no set
        is connected.

    Raises
    ------
    InputError
        When there is no graph, or one is directed, has loops, several edges between two nodes or too many nodes.

    Examples
    --------
    >>> import networkx as nx
    >>> bz.graphlets([nx.cycle_graph(5), nx.complete_graph(5)])[["path_3", "path_4", "clique_4"]].to_numpy().tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    import pandas as pd

    rows = [_counted(_adjacency(graph, i)) for i, graph in enumerate(graphs, 1)]
    if not rows:
        raise InputError("there is no graph", "no_data")
    frame = pd.DataFrame(
        np.array(rows), columns=[*OF_THREE, *OF_FOUR], index=pd.RangeIndex(1, len(rows) + 1, name="graph")
    )
    if counts:
        return frame
    groups = [frame[list(names)] for names in (OF_THREE, OF_FOUR)]
    return pd.concat([group.div(group.sum(axis=1).clip(lower=1), axis=0) for group in groups], axis=1)


def _adjacency(graph: Any, number: int) -> np.ndarray:
    """Return the adjacency matrix of a graph; refuse other objects and unsuitable graphs."""
    if not callable(getattr(graph, "is_directed", None)):
        raise InputError(f"graph {number} is {shown(graph)}, and no networkx graph", "wrong_type")
    if graph.is_directed() or graph.is_multigraph():
        hint = "networkx.Graph(graph) joins them into single undirected edges"
        raise InputError(f"graph {number} is directed, or has several edges between two nodes", "directed", hint=hint)
    places = {node: i for i, node in enumerate(graph)}
    if (size := len(places)) > MOST_NODES:
        raise InputError(f"graph {number} has {size:,} nodes, more than {MOST_NODES:,}", "too_large")
    matrix = np.zeros((size, size))
    for first, second in graph.edges():
        if first == second:
            raise InputError(f"graph {number} has an edge from {shown(first)} to itself", "self_loop")
        matrix[places[first], places[second]] = matrix[places[second], places[first]] = 1.0
    return matrix


def _counted(matrix: np.ndarray) -> list[int]:
    """Count induced subgraphs, by subtracting those with further edges from all placements."""
    degrees, common = matrix.sum(axis=1), matrix @ matrix
    ends = np.argwhere(np.triu(matrix))
    shared = common[ends[:, 0], ends[:, 1]]  # triangles on each edge
    corners = (matrix * common).sum(axis=1) / 2  # triangles at each node
    triangles = corners.sum() / 3
    cliques = sum(_edges_within(matrix, a, b) for a, b in ends) / 6
    pairs = np.triu(common, 1)
    cycles, diamonds = np.sum(pairs * (pairs - 1)) / 4, np.sum(shared * (shared - 1)) / 2
    paws = np.sum(corners * (degrees - 2))
    paths = np.sum((degrees[ends[:, 0]] - 1) * (degrees[ends[:, 1]] - 1)) - 3 * triangles
    stars = np.sum(degrees * (degrees - 1) * (degrees - 2)) / 6
    diamonds -= 6 * cliques
    cycles -= diamonds + 3 * cliques
    paws -= 4 * diamonds + 12 * cliques
    paths -= 4 * cycles + 2 * paws + 6 * diamonds + 12 * cliques
    stars -= paws + 2 * diamonds + 4 * cliques
    open_paths = np.sum(degrees * (degrees - 1)) / 2 - 3 * triangles
    return [round(float(n)) for n in (open_paths, triangles, stars, paths, paws, cycles, diamonds, cliques)]


def _edges_within(matrix: np.ndarray, first: int, second: int) -> float:
    """Return the number of edges between common neighbours of two nodes."""
    common = np.flatnonzero(matrix[first] * matrix[second])
    return float(matrix[np.ix_(common, common)].sum() / 2)
