"""Counts of small connected subgraphs, by enumeration of all sets of nodes of networkx's atlas of graphs."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from bayeszoo.models.gaussian_process_classification import GaussianProcessClassification

import bayeszoo as bz
from tests.refusals import raises

SHAPES = {
    "path_3": nx.path_graph(3),
    "triangle": nx.complete_graph(3),
    "star_4": nx.star_graph(3),
    "path_4": nx.path_graph(4),
    "paw": nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3)]),
    "cycle_4": nx.cycle_graph(4),
    "diamond": nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3), (3, 1)]),
    "clique_4": nx.complete_graph(4),
}


def enumerated(graph):
    """Count the sets of three and four nodes whose subgraph is each shape: they are told by their sorted degrees."""
    by_degrees = {tuple(sorted(dict(shape.degree()).values())): name for name, shape in SHAPES.items()}
    counts = dict.fromkeys(SHAPES, 0)
    for size in (3, 4):
        for nodes in combinations(graph, size):
            own = graph.subgraph(nodes)
            if name := by_degrees.get(tuple(sorted(d for _, d in own.degree()))) if nx.is_connected(own) else None:
                counts[name] += 1
    return list(counts.values())


def test_shapes_are_told_by_their_degrees():
    assert len({tuple(sorted(dict(shape.degree()).values())) for shape in SHAPES.values()}) == len(SHAPES)


def test_counts_are_those_of_enumeration():
    graphs = nx.graph_atlas_g()[1:1253:40] + [nx.gnp_random_graph(9, p, seed=1) for p in (0.3, 0.6, 0.9)]
    frame = bz.graphlets(graphs, counts=True)
    assert list(frame.columns) == list(SHAPES)
    np.testing.assert_array_equal(frame.to_numpy(), [enumerated(graph) for graph in graphs])


def test_shares_sum_to_one_where_anything_hangs_together():
    graphs = [nx.karate_club_graph(), nx.empty_graph(5), nx.path_graph(3), nx.Graph()]
    frame = bz.graphlets(graphs)
    np.testing.assert_allclose(frame[["path_3", "triangle"]].sum(axis=1), [1, 0, 1, 0])
    np.testing.assert_allclose(frame.iloc[:, 2:].sum(axis=1), [1, 0, 0, 0])
    renamed = nx.relabel_nodes(nx.karate_club_graph(), {i: f"n{33 - i}" for i in range(34)})
    assert bz.graphlets([renamed]).iloc[0].tolist() == frame.iloc[0].tolist()
    triangles = sum(nx.triangles(nx.karate_club_graph()).values()) / 3
    assert bz.graphlets(graphs, counts=True)["triangle"].iloc[0] == triangles


def test_a_linear_kernel_of_shares_is_the_kernel_of_graphs():
    graphs = [nx.gnp_random_graph(12, 0.3, seed=i) for i in range(4)]
    features = bz.graphlets(graphs)
    data = bz.read(GaussianProcessClassification, {**features.to_dict("list"), "y": [0, 1, 0, 1]})
    model = GaussianProcessClassification(kernel="linear")
    np.testing.assert_allclose(model.covariance(data, data), features.to_numpy() @ features.to_numpy().T, rtol=1e-12)


@pytest.mark.parametrize(
    ("graphs", "code"),
    [
        ([], "no_data"),
        ([nx.path_graph(3), nx.DiGraph([(0, 1)])], "directed"),
        ([nx.MultiGraph([(0, 1)])], "directed"),
        ([nx.Graph([(0, 0)])], "self_loop"),
        ([[(0, 1)]], "wrong_type"),
        ([nx.empty_graph(2001)], "too_large"),
    ],
)
def test_what_is_no_simple_graph_is_refused(graphs, code):
    with raises(bz.InputError, code):
        bz.graphlets(graphs)
