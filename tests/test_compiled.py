"""A log density is compiled once for all data of one shape, and is PyMC's own at each."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.conditional.op import ifelse

import bayeszoo as bz
from bayeszoo.compile import compiled
from bayeszoo.compile.density import Density
from bayeszoo.contract.case import off_default
from bayeszoo.inference.problem import Problem
from bayeszoo.model.capabilities import PointMasses
from tests.quick import quick_where

# of counts up to a largest, of which counts are 0
OTHER_SHAPES = {"hmm_poisson", "gamma_poisson_groups", "gaussian_process_classification"}
QUICK = ("beta_bernoulli", "gamma_poisson", "linear_regression", "markov_chain", "tree_network")


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


WITH_DENSITY = [name for name in bz.names() if not issubclass(bz.find(name), PointMasses)]


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


def test_constants_of_any_operation_are_those_of_a_compiled_function():
    # a branch, which has no code of its own, a loop, a replaced part and linear algebra
    numbers, data = pt.constant(np.arange(4.0)), pytensor.shared(np.array([1.0, 2.0, 3.0]))
    replaced = pt.set_subtensor(numbers[1:3], np.float64(9))
    branch = ifelse(pt.gt(data.sum(), 2), 2 * data, -data)
    start = pt.constant(np.float64(0), dtype="float64")
    loop = pytensor.scan(lambda x, total: total + x, [data], [start], return_updates=False)
    root = pt.linalg.cholesky(pt.outer(data, data) + pt.eye(3))
    variables = [replaced, branch, loop, root, numbers, data]
    expected = pytensor.function([], variables, mode="FAST_COMPILE")()
    for _ in range(2):  # nothing is left changed by the first time
        for value, other in zip(compiled._evaluated(variables), expected, strict=True):
            assert np.array_equal(value, other)
