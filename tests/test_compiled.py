"""A log density is compiled once for all data of one shape, and is PyMC's own at each."""

import numpy as np
import pytensor
import pytest

import bayeszoo as bz
from bayeszoo.contract.case import off_default
from bayeszoo.inference.engine import compiled
from bayeszoo.inference.engine.density import Density
from bayeszoo.inference.problem import Problem
from bayeszoo.model.capabilities import Atoms
from tests.quick import quick_where

# of counts up to a largest, of pairs of states that occur, of which counts are 0
OTHER_SHAPES = {"hmm_poisson", "markov_chain", "gamma_poisson_groups"}
QUICK = ("beta_bernoulli", "gamma_poisson", "linear_regression")


@pytest.fixture
def compilations(monkeypatch):
    """Return a list that gets the structure of each graph that is compiled; none was compiled before."""
    monkeypatch.setattr(compiled, "_KEPT", type(compiled._KEPT)())
    return compiled._KEPT


def densities(name):
    """Yield the model's log density at two data sets, each by what is compiled and by PyMC."""
    model = off_default(bz.find(name))
    for seed in (1, 2):
        data = bz.read(model, model.simulate(np.random.default_rng(seed), 20)[1])
        density = Density(Problem(model, data, np.random.default_rng(0)).declared, "FAST_COMPILE")
        (expected,) = compiled.clone_replace([density.model.logp()], density._parts)
        peer = pytensor.function([density._flat], expected, mode="FAST_COMPILE")
        yield density.joint(density.start + 0.1)[0], float(peer(density.start + 0.1))


WITH_DENSITY = [name for name in bz.names() if not issubclass(bz.find(name), Atoms)]


@pytest.mark.parametrize("name", quick_where(WITH_DENSITY, QUICK.__contains__))
def test_other_data_of_the_same_shape_meet_what_is_compiled_and_their_own_density(name, compilations):
    (first, by_pymc), (second, of_other_data) = densities(name)
    assert first == pytest.approx(by_pymc, rel=1e-12)
    assert second == pytest.approx(of_other_data, rel=1e-12)
    assert first != pytest.approx(second, rel=1e-6)
    assert len(compilations) == (2 if name in OTHER_SHAPES else 1)


def test_numbers_that_simplify_a_graph_are_part_of_its_structure(compilations):
    model = bz.find("gamma_poisson")
    data = bz.read(model, {"count": [3, 1, 4]})
    for shape in (1.0, 2.0, 3.0, 1.7, 2.9):  # x ** (1 - 1) is simplified away, and x ** (3 - 1) a product
        density = Density(Problem(model(a=shape, b=0.3), data, np.random.default_rng(0)).declared, "FAST_COMPILE")
        expected = float(density.model.compile_logp(mode="FAST_COMPILE")({density.model.value_vars[0].name: 0.5}))
        assert density.joint(np.array([0.5]))[0] == pytest.approx(expected, rel=1e-12)
    assert len(compilations) == 4  # one for each of the first three, and one for the others
