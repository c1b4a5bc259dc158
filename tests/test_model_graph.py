"""The graph of a model as a picture."""

import os
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pymc as pm
import pytest
from matplotlib.patches import Ellipse, FancyArrowPatch, FancyBboxPatch
from pymc.pytensorf import find_rng_nodes, reseed_rngs

import bayeszoo as bz
from bayeszoo.plots import graph as model_graph

SHADE = np.array([0xD5, 0xDA, 0xE1]) / 255


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


def places(axes):
    return {text.get_text(): text.get_position() for text in axes.texts if "~" in text.get_text()}


def test_every_variable_is_drawn_below_its_parents_with_an_arrow_from_each(drawn):
    found = places(drawn)
    assert found.keys() == {"mu\n~ Normal", "tau\n~ HalfNormal", "theta\n~ Normal", "y\n~ Normal"}
    height = {name.partition("\n")[0]: place[1] for name, place in found.items()}
    assert height["mu"] == height["tau"] > height["theta"] > height["y"]
    assert sum(isinstance(patch, FancyArrowPatch) for patch in drawn.patches) == 3


def test_as_text_a_variable_is_below_its_parents_which_it_names(schools):
    assert model_graph.as_text(schools) == [
        "mu ~ Normal",
        "tau ~ HalfNormal",
        "  theta ~ Normal [school] <- mu, tau",
        "    y ~ Normal [school], observed <- theta",
    ]


def test_what_there_is_one_of_each_has_a_frame_and_only_what_is_observed_is_shaded(drawn):
    frames = [p for p in drawn.patches if isinstance(p, FancyBboxPatch) and not p.get_fill()]
    framed = [name for name, place in places(drawn).items() if any(f.get_bbox().contains(*place) for f in frames)]
    assert {name.partition("\n")[0] for name in framed} == {"theta", "y"}
    assert [text.get_text() for text in drawn.texts].count("school (3)") == 2
    ellipses = [patch for patch in drawn.patches if isinstance(patch, Ellipse)]
    shaded = [p.get_center() for p in ellipses if np.allclose(p.get_facecolor()[:3], SHADE, atol=0.01)]
    assert shaded == [places(drawn)["y\n~ Normal"]]


@pytest.mark.parametrize(
    ("name", "words", "observed"),
    [
        ("gaussian_mixture", {"weights", "covariances\n~ InverseWishart", "means", "Y"}, {"Y"}),
        ("hmm_poisson", {"initial", "transition", "rates", "y", "y_data"}, {"y", "y_data"}),  # of which y is made
    ],
)
def test_numbers_of_the_prior_and_copies_of_the_data_are_left_out(name, words, observed):
    graph = model_graph.textbook(model_graph.declared(bz.find(name)()))
    assert set(graph) == {text.partition("\n")[0] for text in words}
    assert {node["words"] for node in graph.nodes.values()} >= {text for text in words if "~" in text}
    assert {name for name, node in graph.nodes.items() if node["observed"]} == observed


def test_a_model_is_drawn_where_most_draws_from_its_prior_have_no_data():
    with pm.Model() as model:  # NumPy draws from Poisson distributions with means below exp(43.7)
        pm.Poisson("y", pm.math.exp(pm.Normal("log_rate", 44.0, 1.0)), observed=np.array([1, 2]))
    generators = find_rng_nodes(model.basic_RVs)
    for seed in range(100):
        reseed_rngs(generators, seed)
        try:
            pm.model_to_networkx(model)
        except ValueError:
            break  # and another attempt with the same generators would draw the same again
    else:
        pytest.fail("every draw has data")
    assert set(model_graph.textbook(model)) == {"log_rate", "y"}
    reseed_rngs(generators, seed)
    assert "log_rate" in model_graph.as_mermaid(model)


@pytest.mark.slow
def test_the_picture_is_the_same_in_every_process():
    code = "import bayeszoo as bz; from bayeszoo.plots import graph as g; k = bz.find('gaussian_mixture')()"
    code += "; print(g.model_svg(k))"
    environments = ({**os.environ, "PYTHONHASHSEED": seed} for seed in "123")
    assert len({subprocess.check_output([sys.executable, "-c", code], env=one) for one in environments}) == 1


@pytest.mark.parametrize("name", bz.names())
def test_every_model_has_a_picture(name):
    image = model_graph.model_svg(bz.find(name)())
    assert ElementTree.fromstring(image).tag.endswith("svg")


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_show_writes_the_graph(run, tmp_path, suffix, start):
    path = tmp_path / f"graph.{suffix}"
    code, out, err = run("show", "normal_gamma", "--plot", path)
    assert (code, "y ~ Normal [row], observed <- lam, mu" in out, f"wrote {path}" in err) == (0, True, True)
    assert path.read_bytes().startswith(start)
    for other, why in ((path, "exists"), (tmp_path / "graph.gif", "PNG, SVG or PDF")):
        code, out, err = run("show", "normal_gamma", "--plot", other)
        assert (code, out, why in err) == (2, "", True)
