"""The graph of a model as a picture, with Graphviz and without."""

import itertools
import os
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pymc as pm
import pytest

import bayeszoo as bz
from bayeszoo.plots import graph as model_graph
from bayeszoo.plots import style as pictures

SHADE = np.array([0xD5, 0xDA, 0xE1]) / 255


@pytest.fixture
def no_dot(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)


@pytest.fixture(scope="module")
def schools():
    with pm.Model(coords={"school": ["a", "b", "c"]}) as made:
        mu = pm.Normal("mu", 0.0, 5.0)
        tau = pm.HalfNormal("tau", 5.0)
        theta = pm.Normal("theta", mu, tau, dims="school")
        pm.Normal("y", theta, 1.0, observed=np.array([1.0, 2.0, 3.0]), dims="school")
    return made


@pytest.fixture(scope="module")
def drawn(schools):
    return model_graph.draw(schools).axes[0]


def words(axes):
    return {text.get_text(): text.get_position() for text in axes.texts}


def test_every_variable_is_drawn_below_its_parents(drawn):
    found = words(drawn)
    assert {"mu\n~ Normal", "tau\n~ HalfNormal", "theta\n~ Normal", "y\n~ Normal"} <= found.keys()
    height = {name.partition("\n")[0]: place[1] for name, place in found.items()}
    assert height["mu"] == height["tau"] > height["theta"] > height["y"]


def test_plates_are_boxes_around_their_members(drawn):
    plates = [place for text, place in words(drawn).items() if text == "school (3)"]
    assert plates
    boxes = [p for p in drawn.patches if type(p).__name__ == "FancyBboxPatch" and not p.get_fill()]
    inside = {
        name.partition("\n")[0]
        for name, (x, y) in words(drawn).items()
        for box in boxes
        if box.get_x() < x < box.get_x() + box.get_width() and box.get_y() < y < box.get_y() + box.get_height()
    }
    assert inside == {"theta", "y", "school (3)"}


def test_only_what_is_observed_is_shaded(drawn):
    shaded = {
        tuple(np.round(p.get_center(), 6))
        for p in drawn.patches
        if np.allclose(p.get_facecolor()[:3], SHADE, atol=0.01)
    }
    found = {name.partition("\n")[0]: tuple(np.round(place, 6)) for name, place in words(drawn).items()}
    assert shaded == {found["y"]}


def test_every_edge_is_an_arrow(drawn):
    assert sum(type(patch).__name__ == "FancyArrowPatch" for patch in drawn.patches) == 3


def test_nodes_of_a_layer_do_not_overlap():
    model = bz.find("gaussian_mixture")()
    axes = model_graph.draw(model_graph.declared(model)).axes[0]
    spans = {}
    for patch in axes.patches:
        if type(patch).__name__ == "Ellipse":
            x, y = patch.get_center()
            spans.setdefault(round(y, 6), []).append((x - patch.width / 2, x + patch.width / 2))
    assert spans
    for row in spans.values():
        row.sort()
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(row))


def test_numbers_of_the_prior_and_copies_of_the_data_are_left_out():
    graph = model_graph.textbook(model_graph.declared(bz.find("gaussian_mixture")()))
    assert set(graph) == {"weights", "covariances", "means", "Y"}
    assert graph.nodes["covariances"]["words"] == "covariances\n~ InverseWishart"
    assert {name for name, node in graph.nodes.items() if node["observed"]} == {"Y"}


def test_data_that_a_likelihood_is_made_of_stay():
    graph = model_graph.textbook(model_graph.declared(bz.find("hmm_poisson")()))
    assert {"y", "y_data"} == {name for name, node in graph.nodes.items() if node["observed"]}
    assert graph.nodes["y"]["words"] == "y"


@pytest.mark.slow
def test_the_graph_is_the_same_in_every_process():
    code = "import bayeszoo as bz; from bayeszoo.plots import graph as g; k = bz.find('gaussian_mixture')()"
    code += "; print(g.in_dot(g.declared(k)).source)"
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1


def test_graphviz_is_given_the_same_graph_and_names_that_mean_nothing_to_it():
    with pm.Model(coords={"a\\nb": [1, 2]}) as made:
        x = pm.Normal('x"];evil', 0.0, 1.0)
        pm.Normal("y:port", x, 1.0, observed=np.zeros(2), dims="a\\nb")
    source = model_graph.in_dot(made).source
    assert 'label="x\\"];evil\\n~ Normal" shape=ellipse style=""' in source
    assert 'label="y:port\\n~ Normal" shape=ellipse style=filled' in source
    assert 'label="a\\\\nb (2)"' in source
    assert "n0 -> n1" in source


@pytest.mark.parametrize("name", bz.names())
def test_every_model_has_a_picture_without_graphviz(name, no_dot):
    image = model_graph.model_svg(bz.find(name)())
    assert ElementTree.fromstring(image).tag.endswith("svg")


def test_the_picture_is_the_same_each_time(no_dot):
    model = bz.find("normal_gamma")()
    assert model_graph.model_svg(model) == model_graph.model_svg(model)


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_show_writes_the_graph(run, tmp_path, no_dot, suffix):
    path = tmp_path / f"graph.{suffix}"
    code, out, err = run("show", "normal_gamma", "--plot", path)
    assert (code, "mu --> y" in out, f"wrote {path}" in err) == (0, True, True)
    start = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(start)
    code, _, err = run("show", "normal_gamma", "--plot", path)
    assert (code, "exists" in err) == (2, True)


def test_show_refuses_other_kinds_of_files_first(run, tmp_path):
    code, out, err = run("show", "normal_gamma", "--plot", tmp_path / "graph.gif")
    assert (code, out) == (2, "")
    assert "PNG, SVG or PDF" in err


def test_graphviz_is_asked_where_it_is_installed(monkeypatch):
    asked = []
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(model_graph, "by_graphviz", lambda made, form: asked.append(form) or b"<svg/>")
    assert model_graph.model_svg(bz.find("normal_gamma")()) == b"<svg/>"
    assert asked == ["svg"]


def test_our_style_is_left_behind(drawn):
    import matplotlib

    before = dict(matplotlib.rcParams)
    pictures.svg(lambda: drawn.figure)
    assert dict(matplotlib.rcParams) == before
