"""Labels on a graph: label propagation, matrix exponentials, the karate club, and graphs that are refused."""

import networkx as nx
import numpy as np
import pytest
import scipy
from bayeszoo.models.graph_process import GraphProcess
from sklearn.semi_supervised import LabelPropagation

import bayeszoo as bz
from bayeszoo.families.latent_functions.graphs import Graph
from tests.refusals import raises

CLUB = nx.karate_club_graph()
CLUBS = np.array([CLUB.nodes[i]["club"] != "Mr. Hi" for i in CLUB], dtype=int)
DATA = bz.example(GraphProcess)
SMALL = nx.Graph()
SMALL.add_weighted_edges_from([("a", "b", 2.0), ("b", "c", 0.5), ("c", "a", 1.0), ("c", "d", 1.0), ("e", "f", 3.0)])
SMALL.add_node("g")


def read(graph, labels, **options):
    return bz.read(GraphProcess, (graph, labels), **options)


def test_data_are_those_of_networkx():
    edges = {
        (int(DATA["node"][i]) - 1, int(DATA["node"][j]) - 1) for i, j in zip(DATA["first"], DATA["second"], strict=True)
    }
    assert {tuple(sorted(edge)) for edge in edges} == {tuple(sorted(edge)) for edge in CLUB.edges()}
    truth = np.loadtxt("models/data/karate_clubs.csv", delimiter=",", skiprows=1, dtype=int)
    np.testing.assert_array_equal(truth, np.column_stack([np.arange(1, 35), CLUBS]))


@pytest.mark.parametrize("kernel", ["diffusion", "laplacian"])
def test_kernels_are_those_of_dense_matrices_and_parts_are_independent(kernel):
    data = read(SMALL, {"a": 0, "e": 1})
    laplacian = nx.laplacian_matrix(SMALL, nodelist=data["node"].tolist()).toarray()
    whole = scipy.linalg.expm(-0.7 * laplacian) if kernel == "diffusion" else np.linalg.inv(np.eye(7) + 0.7 * laplacian)
    root = np.sqrt(np.diag(whole))
    ours = Graph.of(data).correlations(kernel, 0.7)
    np.testing.assert_allclose(ours, whole / np.outer(root, root), atol=1e-13)
    assert np.all(ours[np.ix_([0, 1, 2, 3], [4, 5, 6])] == 0)
    assert data["node"][Graph.of(data).unreached(data["place"])].tolist() == ["g"]


@pytest.mark.parametrize("kernel", ["diffusion", "laplacian"])
@pytest.mark.parametrize("spread", [0.1, 1.0])
def test_told_the_two_heads_of_the_karate_club_person_9_alone_is_wrong(kernel, spread):
    tree = bz.fit(GraphProcess(kernel=kernel, spread=spread), DATA, "map", seed=1)
    decisions = bz.classify(tree, {"node": [str(i + 1) for i in range(34)]})["decision"].astype(int)
    assert (np.flatnonzero(decisions.to_numpy() != CLUBS) + 1).tolist() == [9]


def test_function_in_the_limit_is_harmonic_as_of_label_propagation():
    told = {0: 0, 33: 1, 5: 0}
    data = read(CLUB, told)
    weights = nx.to_numpy_array(CLUB, nodelist=[int(node) for node in data["node"]])
    labels = np.array([told.get(int(node), -1) for node in data["node"]])
    theirs = LabelPropagation(kernel=lambda x, z: weights, max_iter=100_000, tol=1e-12)
    theirs.fit(np.arange(34)[:, None], labels)
    model = GraphProcess(kernel="laplacian", spread=1e7, amplitude=1.0)
    root = model.root(data)
    z = np.linalg.solve(root.factor[root.taken], 2.0 * data["y"][root.taken] - 1)
    new = bz.read(model, {"node": data["node"]}, new=True, like=data)
    mean, _ = model.function_at({"z": z}, data, new)
    np.testing.assert_allclose(mean, 2 * theirs.label_distributions_[:, 1] - 1, atol=2e-6)
    other = GraphProcess(kernel="laplacian", spread=10.0, amplitude=1.0)  # far from the limit it is another function
    z = np.linalg.solve(other.root(data).factor[other.root(data).taken], 2.0 * data["y"][other.root(data).taken] - 1)
    assert np.max(np.abs(other.function_at({"z": z}, data, new)[0] - mean)) > 0.01


def test_nodes_that_no_label_reaches_are_said_and_have_the_prior():
    data = read(SMALL, {"a": 0, "b": 1})
    tree = bz.fit(GraphProcess(), data, "map", seed=1)
    assert any("e, f, g" in note for note in GraphProcess().remarks(None, data))
    asked = bz.classify(tree, {"node": ["e", "g", "a"]})
    np.testing.assert_allclose(asked["p[1]"].to_numpy()[:2], 0.5)
    assert bz.function_values(tree, {"node": ["e", "g"]})["prior_share"].tolist() == [1, 1]
    assert not GraphProcess().remarks(None, DATA)


def test_rows_left_out_are_told_apart_and_residuals_are_of_told_nodes():
    assert sorted(GraphProcess.inputs.alike(DATA).tolist()) == [0, 1]
    tree = bz.fit(GraphProcess(), DATA, "map", seed=1)
    assert len(bz.residuals(tree)) == 2


def test_a_table_of_a_graph_is_read_back():
    data = read(SMALL, {"a": "no", "d": "yes"}, positive="yes")
    assert bz.read(GraphProcess, GraphProcess.inputs.table(data)).digest == data.digest
    twice = {"node": ["a", "b", "a"], "neighbour": ["b", "a", ""], "label": ["", "", 1]}
    read_twice = bz.read(GraphProcess, twice)
    assert len(read_twice["first"]) == 1
    assert any("both directions" in note for note in read_twice.notes)


BAD = {
    "self_loop": (["a", "b"], ["b", "b"], ["", ""], {}),
    "duplicate_rows": (["a", "a", "a"], ["b", "b", ""], ["", "", "1"], {}),
    "no_data": (["a", "b"], ["b", "c"], ["", ""], {}),
    "label_of_edge": (["a", "b", "a"], ["b", "c", ""], ["", "1", "0"], {}),
    "directed": (["a", "b", "a"], ["b", "a", ""], ["", "", "1"], {"weight": ["1", "2", ""]}),
    "out_of_range": (["a", "a"], ["b", ""], ["", "1"], {"weight": ["-1", ""]}),
    "missing_values": (["", "a"], ["b", ""], ["", "1"], {}),
    "not_binary": (["a", "a"], ["b", ""], ["", "2"], {}),
}


@pytest.mark.parametrize("code", BAD)
def test_bad_graphs_are_refused_by_row(code):
    node, neighbour, label, more = BAD[code]
    with raises(bz.InputError, code):
        bz.read(GraphProcess, {"node": node, "neighbour": neighbour, "label": label, **more})


def test_edges_without_a_reverse_next_to_others_and_labels_twice_are_refused():
    mixed = {"node": ["a", "b", "b", "a"], "neighbour": ["b", "a", "c", ""], "label": ["", "", "", "0"]}
    with raises(bz.InputError, "directed", "row 3"):
        bz.read(GraphProcess, mixed)
    with raises(bz.InputError, "duplicate_rows", "'a'"):
        bz.read(GraphProcess, {"node": ["a", "a", "a"], "neighbour": ["b", "", ""], "label": ["", "1", "0"]})
    for graph in (nx.DiGraph([(1, 2)]), nx.MultiGraph([(1, 2)])):
        with raises(bz.InputError, "directed"):
            read(graph, {1: 0})
    with raises(bz.InputError, "unknown_label"):
        read(SMALL, {"z": 0})


def test_what_cannot_be_asked_is_refused():
    tree = bz.fit(GraphProcess(), DATA, "map", seed=1)
    for asked, code in ((3, "no_data"), ({"node": ["zz"]}, "unknown_label")):
        with raises(bz.InputError, code):
            bz.predict(tree, asked)
    with raises(bz.InputError, "no_capability"):
        bz.plot_function(tree)
    points = bz.fit(bz.find("gaussian_process_classification"), {"x": [0.0, 1.0], "y": [0, 1]}, "map", seed=1)
    with raises(bz.InputError, "no_capability"):
        bz.plot_nodes(points)
    with raises(bz.InputError, "unknown_name"):
        GraphProcess(kernel="rbf")
    with raises(bz.InputError, "too_many_rows"):
        Graph.of({**DATA, "node": np.arange(3001).astype(str)})


def test_a_picture_has_the_probability_of_each_node_and_names_of_few():
    tree = bz.fit(GraphProcess(), DATA, "map", seed=1)
    axes = bz.plot_nodes(tree).axes[0]
    (nodes,) = [each for each in axes.collections if len(each.get_offsets()) == 34]
    expected = bz.classify(tree, {"node": DATA["node"]})["p[1]"]
    np.testing.assert_allclose(np.asarray(nodes.get_array()), expected)
    assert [text.get_text() for text in axes.texts] == DATA["node"].tolist()
    assert len(axes.lines) == len(DATA["first"])
    thick = np.asarray(nodes.get_linewidths()) > 1
    assert sorted(DATA["node"][thick].tolist()) == ["1", "34"]
    many = read(nx.path_graph(401), {0: 1})
    with raises(bz.InputError, "too_large"):
        bz.plot_nodes(bz.fit(GraphProcess(), many, "map", seed=1))


def test_a_list_of_edges_is_refused():
    with raises(bz.InputError, "wrong_type"):
        bz.read(GraphProcess, ([("a", "b")], {"a": 1}))
