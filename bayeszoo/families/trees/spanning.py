"""Sums over all spanning trees of a graph with weighted edges, probabilities of edges, and draws of trees.

The weight of a tree is the product of the weights of its edges. The matrix-tree theorem gives the sum as a determinant,
which is singular in floats if log weights differ by hundreds. Here vertices are eliminated one by one instead, star to
mesh: the edges w_i of a vertex become edges w_i w_j / S between its neighbours, where S = sum of the w_i is a factor of
the sum. Nothing is subtracted. Meila and Jaakkola 2006; Rosen 1924 for the star-mesh transformation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

Edges = tuple[tuple[int, int], ...]
"""Sorted pairs of vertices, the smaller first."""


def _without(log_weights: np.ndarray, vertex: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Eliminate a vertex: return log weights between the others, those of its edges minus log S, and log S."""
    others = np.delete(np.arange(len(log_weights)), vertex)
    star = log_weights[vertex, others]
    total = np.logaddexp.reduce(star)
    mesh = np.logaddexp(log_weights[np.ix_(others, others)], star[:, None] + star - total)
    np.fill_diagonal(mesh, -np.inf)
    return mesh, star - total, float(total)


def log_sum_over_trees(log_weights: np.ndarray) -> float:
    """Return the log of the sum of the weights of all spanning trees.

    Parameters
    ----------
    log_weights : ndarray of shape (V, V)
        Log weights of the edges, symmetric, finite off the diagonal.
    """
    graph, total = _without_loops(log_weights), 0.0
    while len(graph) > 1:
        graph, _, factor = _without(graph, len(graph) - 1)
        total += factor
    return total


def edge_probabilities(log_weights: np.ndarray) -> np.ndarray:
    """Return the probability (V, V) that each edge is in a tree drawn by its weight; 0 on the diagonal.

    It is the weight of the edge divided by the conductance between its ends, all other vertices eliminated.
    """
    weights = _without_loops(log_weights)
    conductances = np.full_like(weights, np.inf)
    _fill_conductances(weights, np.arange(len(weights)), conductances)
    return np.exp(np.minimum(weights - conductances, 0.0))


def _fill_conductances(log_weights: np.ndarray, vertices: np.ndarray, conductances: np.ndarray) -> None:
    """Write the log conductance between every two of the remaining ``vertices``, recursively for two thirds of them."""
    if len(vertices) == 2:
        conductances[*vertices] = conductances[*vertices[::-1]] = log_weights[0, 1]
    parts = np.array_split(np.arange(len(vertices)), 3) if len(vertices) > 2 else []
    for left_out in parts:
        graph = log_weights
        for vertex in left_out[::-1]:
            graph = _without(graph, int(vertex))[0]
        _fill_conductances(graph, np.delete(vertices, left_out), conductances)


def draw_trees(log_weights: np.ndarray, count: int, rng: np.random.Generator) -> Iterator[Edges]:
    """Draw independent spanning trees with probabilities proportional to their weights.

    A tree of the graph without one vertex is drawn first. Each of its edges went through the vertex with probability
    w_i w_j / S divided by its total weight, and is then removed; the vertex is joined to one neighbour in each
    remaining part, with probabilities proportional to the weights.
    """
    graph, steps = _without_loops(log_weights), list[tuple[np.ndarray, np.ndarray]]()
    while len(graph) > 1:
        mesh, star, _ = _without(graph, len(graph) - 1)
        direct = np.exp(np.minimum(graph[:-1, :-1] - np.where(np.isfinite(mesh), mesh, np.inf), 0.0))
        steps.append((direct, star))
        graph = mesh
    for _ in range(count):
        edges = list[tuple[int, int]]()
        for vertex, (direct, star) in enumerate(reversed(steps), 1):
            edges = [edge for edge in edges if rng.random() < direct[edge]]
            for part in parts_of(vertex, edges):
                shares = np.exp(star[part] - np.logaddexp.reduce(star[part]))
                edges.append((int(part[np.sum(rng.random() > np.cumsum(shares)[:-1])]), vertex))
        yield tuple(sorted(edges))


def parts_of(N: int, edges: Sequence[tuple[int, int]]) -> list[np.ndarray]:
    """Return the vertices of each connected part of a graph of N vertices."""
    part = np.arange(N)
    for start, end in edges:
        part[part == part[end]] = part[start]
    return [np.flatnonzero(part == label) for label in np.unique(part)]


def _without_loops(log_weights: np.ndarray) -> np.ndarray:
    weights = np.array(log_weights, dtype=np.float64)
    np.fill_diagonal(weights, -np.inf)
    return weights


def heaviest_tree(log_weights: np.ndarray) -> Edges:
    """Return the spanning tree with the largest weight (Chow and Liu 1968)."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(len(log_weights)))
    graph.add_weighted_edges_from((i, j, log_weights[i, j]) for j in range(len(log_weights)) for i in range(j))
    return tuple(sorted((min(edge), max(edge)) for edge in nx.maximum_spanning_edges(graph, data=False)))
