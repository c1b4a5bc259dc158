"""Sums over all spanning trees of a graph with weighted edges, their edges' probabilities, and draws of trees.

The weight of a tree is the product of those of its edges. The matrix-tree theorem gives the sum as a determinant, which
is singular in floats where log weights differ by hundreds. Here vertices are eliminated one by one instead, star to
mesh: the edges w_i of a vertex become edges w_i w_j / S between its neighbours, S = sum of the w_i, and S a factor of
the sum. Nothing is subtracted. Meila and Jaakkola 2006; Rosen 1924 for the star-mesh transformation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

Edges = tuple[tuple[int, int], ...]
"""Pairs of vertices, the smaller first, in order."""


def _without(log_weights: np.ndarray, vertex: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Eliminate a vertex: return log weights between the others, those of its own edges less log S, and log S."""
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
    rest, total = _without_loops(log_weights), 0.0
    while len(rest) > 1:
        rest, _, factor = _without(rest, len(rest) - 1)
        total += factor
    return total


def edge_probabilities(log_weights: np.ndarray) -> np.ndarray:
    """Return the probability (V, V) that each edge is in a tree drawn by its weight; 0 on the diagonal.

    It is the weight of the edge over the conductance between its ends, all other vertices eliminated.
    """
    weights = _without_loops(log_weights)
    together = np.full_like(weights, np.inf)
    _between(weights, np.arange(len(weights)), together)
    return np.exp(np.minimum(weights - together, 0.0))


def _between(log_weights: np.ndarray, vertices: np.ndarray, together: np.ndarray) -> None:
    """Write the log conductance between every two of the ``vertices`` that are left, two thirds of them at a time."""
    if len(vertices) == 2:
        together[*vertices] = together[*vertices[::-1]] = log_weights[0, 1]
    parts = np.array_split(np.arange(len(vertices)), 3) if len(vertices) > 2 else []
    for left_out in parts:
        rest = log_weights
        for vertex in left_out[::-1]:
            rest = _without(rest, int(vertex))[0]
        _between(rest, np.delete(vertices, left_out), together)


def draw_trees(log_weights: np.ndarray, count: int, rng: np.random.Generator) -> Iterator[Edges]:
    """Draw spanning trees by their weights, independent.

    A tree of the graph without a vertex is drawn first. Each of its edges came through the vertex by w_i w_j / S over
    the whole weight, and is taken out; of each part that is left, the vertex is joined to one neighbour by the weights.
    """
    rest, steps = _without_loops(log_weights), list[tuple[np.ndarray, np.ndarray]]()
    while len(rest) > 1:
        mesh, star, _ = _without(rest, len(rest) - 1)
        direct = np.exp(np.minimum(rest[:-1, :-1] - np.where(np.isfinite(mesh), mesh, np.inf), 0.0))
        steps.append((direct, star))
        rest = mesh
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
    for first, second in edges:
        part[part == part[second]] = part[first]
    return [np.flatnonzero(part == label) for label in np.unique(part)]


def _without_loops(log_weights: np.ndarray) -> np.ndarray:
    weights = np.array(log_weights, dtype=np.float64)
    np.fill_diagonal(weights, -np.inf)
    return weights


def heaviest_tree(log_weights: np.ndarray) -> Edges:
    """Return the spanning tree of the greatest weight (Chow and Liu 1968)."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(len(log_weights)))
    graph.add_weighted_edges_from((i, j, log_weights[i, j]) for j in range(len(log_weights)) for i in range(j))
    return tuple(sorted((min(edge), max(edge)) for edge in nx.maximum_spanning_edges(graph, data=False)))
