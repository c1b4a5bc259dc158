"""Methods that work with D x D matrices refuse problems of many numbers, before anything is compiled."""

import re

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.comparison.compare import Withheld, fit_each, usual_methods
from bayeszoo.foundation import optimize
from bayeszoo.inference.engine.density import Density

MODEL = bz.find("robust_regression")


@pytest.fixture
def few(monkeypatch):
    """A limit that five coordinates exceed, and no way to compile."""

    def compiled(*_, **__):
        raise AssertionError("compiled")

    monkeypatch.setattr(optimize, "MOST_COORDINATES", 4)
    for name in ("joint", "constrained_joint"):
        monkeypatch.setattr(Density, name, property(compiled))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return bz.read(MODEL, (rng.normal(size=(20, 3)), rng.normal(size=20)))


@pytest.mark.parametrize("method", ["laplace", "advi", "fullrank_advi", "map"])
def test_too_many_coordinates_are_refused_in_one_line(few, data, method):
    with pytest.raises(bz.NumericalError, match=r"matrices of 5 x 5 numbers here, and 4 is the most: use vb, gibbs or"):
        bz.fit(MODEL.weak(data), data, method, seed=1)


def test_a_comparison_goes_on_without_them(few, data):
    (found,) = fit_each(MODEL.weak(data), data, ["advi"], seed=1)
    assert isinstance(found, Withheld)


def test_of_samplers_the_usual_one_is_that_made_for_the_model():
    assert usual_methods(bz.find("lda"))[-1] == "gibbs"
    assert "nuts" not in usual_methods(bz.find("lda"))
    assert usual_methods(bz.find("beta_bernoulli")) == ["exact", "map", "laplace", "advi", "nuts"]


def test_a_seed_that_was_drawn_is_said_and_gives_the_same_again(run, written):
    path = written("y\n1\n0\n1\n1\n", "y.csv")
    code, first, err = run("compare", "beta_bernoulli", path, "--methods", "map,laplace", "--json")
    assert (code, "seed" in err) == (0, False)  # it is in the document
    code, first, err = run("compare", "beta_bernoulli", path, "--methods", "map,laplace")
    seed = re.search(r"seed (\d+), which was drawn", err).group(1)
    code, again, err = run("compare", "beta_bernoulli", path, "--methods", "map,laplace", "--seed", seed)
    assert (code, "seed" in err) == (0, False)
    estimates = [[line for line in out.splitlines() if line.startswith(" theta")] for out in (first, again)]
    assert len(estimates[0]) == 2
    assert estimates[0] == estimates[1]
