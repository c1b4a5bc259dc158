"""A graph compiled as loops computes what NumPy, and of a model what PyTensor's own interpreter computes."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pymc.logprob.utils import CheckParameterValue, ParameterValueError
from pytensor.compile.builders import OpFromGraph
from scipy import special

import bayeszoo as bz
from bayeszoo.compile.compiled import compiled
from bayeszoo.compile.density import Density, strict
from bayeszoo.contract.case import off_default
from bayeszoo.inference.problem import Problem
from bayeszoo.model.capabilities import PointMasses
from tests.quick import quick_where

QUICK = ("beta_bernoulli", "dirichlet_multinomial", "student_t")
NAMES = [name for name in bz.names() if not issubclass(bz.find(name), PointMasses)]
X = np.array([0.5, -1.25, 2.0, 0.0, 3.5, -0.75])
M = X.reshape(2, 3)
DATA = np.arange(12.0).reshape(4, 3) - 5


def values(*graphs, x=X):
    """Compile functions of a vector, and return their values at one."""
    flat = pt.vector("flat", shape=(len(X),))
    outputs = [graph(flat) for graph in graphs]
    with strict():
        return compiled(flat, outputs, "NUMBA")(x)


def assert_all(*pairs):
    """Compare functions with what NumPy says of them, compiled as one."""
    for value, (graph, expected) in zip(values(*(graph for graph, _ in pairs)), pairs, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-13, atol=1e-15, err_msg=str(graph))
        assert np.shape(value) == np.shape(expected)


def test_elementwise_operations_broadcast_and_have_numpy_s_types():
    assert_all(
        (lambda x: pt.exp(x) / (1 + x**2), np.exp(X) / (1 + X**2)),
        (lambda x: x.reshape((2, 3)) * x[:3] - x[:2][:, None], M * X[:3] - X[:2, None]),
        (lambda x: pt.switch(x > 0, pt.log(x), -np.inf), np.log(X, out=np.full(6, -np.inf), where=X > 0)),
        (lambda x: pt.or_(x > 2, pt.lt(x, 0)), (X > 2) | (X < 0)),
        (lambda x: ((x > 0) + (x > -1)) * x, ((X > 0) | (X > -1)) * X),
        (lambda x: ((x > 0) * (x > 1)) * x, ((X > 0) & (X > 1)) * X),
        (lambda x: pt.cast(x, "int64") // 2, X.astype(int) // 2),
        (lambda x: pt.maximum(x, -x) + pt.minimum(x, 1.0), np.maximum(X, -X) + np.minimum(X, 1)),
        (lambda x: pt.gammaln(pt.abs(x) + 1) + pt.psi(x + 9), special.gammaln(np.abs(X) + 1) + special.psi(X + 9)),
        (
            lambda x: pt.sigmoid(x) + pt.softplus(x) + pt.log1p(x * x),
            special.expit(X) + np.logaddexp(0, X) + np.log1p(X**2),
        ),
        (lambda x: x[0] * np.float64(0.3), X[0] * 0.3),
    )


def test_reductions_are_numpy_s_along_any_axes():
    cube = X[:, None, None] * np.arange(1.0, 5)[:, None] + np.arange(2.0)
    assert_all(
        (lambda x: x.sum(), X.sum()),
        (lambda x: x.reshape((2, 3)).sum(axis=0), M.sum(axis=0)),
        (lambda x: (x.reshape((2, 3)) * 2).prod(axis=-1), (M * 2).prod(axis=-1)),
        (lambda x: x.reshape((2, 3)).max(axis=1), M.max(axis=1)),
        (lambda x: x.reshape((2, 3)).min(axis=0), M.min(axis=0)),
        (lambda x: (x.reshape((2, 3)) > 0).any(axis=1), (M > 0).any(axis=1)),
        (lambda x: (x.reshape((2, 3)) > -1).all(axis=0), (M > -1).all(axis=0)),
        (lambda x: (x > 0).sum(), (X > 0).sum()),
        (lambda x: pt.cast(x - 9, "int64").max(), int(np.max(np.trunc(X - 9)))),
        (lambda x: pt.cast(x + 9, "int8").reshape((2, 3)).min(axis=0), (M + 9).astype("int8").min(axis=0)),
        (lambda x: (x[:, None, None] * np.arange(1.0, 5)[:, None] + np.arange(2.0)).sum(axis=(0, 2)), cube.sum((0, 2))),
        (lambda x: pt.logsumexp(x.reshape((2, 3)), axis=1), special.logsumexp(M, axis=1)),
    )


def test_nan_goes_through_extremes_and_an_empty_sum_is_0():
    x = np.array([1.0, np.nan, 2.0, 3.0, 4.0, 5.0])
    largest, smallest, larger, total = values(
        pt.max, pt.min, lambda x: pt.maximum(x, 2.5), lambda x: (x[:0] * 2).sum(), x=x
    )
    assert np.isnan([largest, smallest]).all()
    assert total == 0
    np.testing.assert_array_equal(larger, np.maximum(x, 2.5))


def test_parts_of_arrays_are_numpy_s():
    rows, changed, added, repeated = np.array([2, 0, 2, 1]), X.copy(), M.copy(), np.zeros(6)
    changed[1:5:2] = X[0]
    added[:, 1] += X[:2]
    np.add.at(repeated, [1, 1, 4], X[:3])
    assert_all(
        (lambda x: x[1:5:2], X[1:5:2]),
        (lambda x: x[::-1], X[::-1]),
        (lambda x: x[-2], X[-2]),
        (lambda x: x.reshape((2, 3))[1, ::-2], M[1, ::-2]),
        (lambda x: x.reshape((3, 2))[1:, 0], X.reshape(3, 2)[1:, 0]),
        (lambda x: x.reshape((3, 2))[::-1, 1], X.reshape(3, 2)[::-1, 1]),
        (lambda x: x[1:].reshape((1, 5))[:, ::2] * 1.0, X[None, 1:][:, ::2]),
        (lambda x: x.reshape((2, 3)).T.ravel(), M.T.ravel()),
        (lambda x: x.reshape((2, 3)).T.reshape((2, 3)), M.T.reshape(2, 3)),
        (lambda x: x[:4].reshape((2, 2)).T, X[:4].reshape(2, 2).T),
        (lambda x: pt.split(x.reshape((2, 3)), [1, 2], axis=-1)[1] + 0.0, M[:, 1:]),
        (lambda x: x.reshape((3, -1)), X.reshape(3, 2)),
        (lambda x: pt.concatenate([x, x[:2], [7.0]]), np.r_[X, X[:2], 7.0]),
        (lambda x: pt.concatenate([x.reshape((2, 3)), x[:2, None]], axis=1), np.c_[M, X[:2]]),
        (lambda x: pt.split(x.reshape((2, 3)), [1, 2], axis=1)[1] + 0.0, M[:, 1:]),
        (lambda x: pt.stack([x[0], x[3]]), X[[0, 3]]),
        (lambda x: pt.alloc(x[:3], 2, 3) * 1.0, np.broadcast_to(X[:3], (2, 3))),
        (lambda x: x[rows], X[rows]),
        (lambda x: x.reshape((2, 3))[:, rows], M[:, rows]),
        (lambda x: x[rows.reshape(2, 2)], X[rows.reshape(2, 2)]),
        (lambda x: pt.set_subtensor(x[1:5:2], x[0]), changed),
        (lambda x: pt.inc_subtensor(x.reshape((2, 3))[:, 1], x[:2]), added),
        (lambda x: pt.inc_subtensor(pt.zeros(6)[np.array([1, 1, 4])], x[:3]), repeated),
    )


def test_parts_from_a_place_that_is_computed_are_numpy_s():
    place = lambda x: pt.cast(x[2], "int64")  # noqa: E731  2
    changed = X.copy()
    changed[2:] = X[:1]
    assert_all(
        (lambda x: x[place(x)], X[2]),
        (lambda x: x[place(x) :], X[2:]),
        (lambda x: pt.set_subtensor(x[place(x) :], x[0]), changed),
        (lambda x: pt.grad((x[place(x) :] ** 2).sum(), x), 2 * X * (np.arange(6) >= 2)),
    )


def test_products_and_operations_of_pytensor_s_own_are_numpy_s():
    inner = pt.vector()
    halved = OpFromGraph([inner], [inner / 2 + inner.sum()])
    assert_all(
        (lambda x: pt.dot(DATA, x[:3]), DATA @ X[:3]),
        (lambda x: pt.dot(x[:4], DATA), X[:4] @ DATA),
        (lambda x: pt.dot(DATA, x.reshape((3, 2))), DATA @ X.reshape(3, 2)),
        (lambda x: pt.dot(x, x), X @ X),
        (halved, X / 2 + X.sum()),
        (lambda x: pt.sort(x), np.sort(X)),
        (lambda x: pt.cumsum(x), np.cumsum(X)),
    )


def test_gradients_are_those_of_finite_differences():
    def density(x):
        shares = pt.special.softmax(x.reshape((2, 3)), axis=1)
        return (pt.log(shares)[:, [0, 2]] * DATA[:2, :2]).sum() + pt.logsumexp(x[::2]) * x[1]

    (gradient,) = values(lambda x: pt.grad(density(x), x))
    steps = np.eye(6) * 1e-6
    slopes = [(values(density, x=X + h)[0] - values(density, x=X - h)[0]) / 2e-6 for h in steps]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-7, atol=1e-8)


def test_what_is_returned_is_not_the_point_itself():
    whole, part = values(lambda x: x, lambda x: x[:2])
    assert not np.shares_memory(whole, X)
    assert not np.shares_memory(part, X)
    np.testing.assert_array_equal(whole, X)


def test_a_point_of_another_size_is_refused():
    with pytest.raises(ValueError, match="lengths of axes differ"):
        values(lambda x: x + 1, x=X[:5])


def test_data_of_lengths_that_do_not_go_together_are_refused():
    graphs = [lambda x: x[0] * pt.as_tensor(DATA[:, 0]) + pt.as_tensor(np.arange(3.0) + 0.1)]
    with pytest.raises(ValueError, match=r"[Ll]ength|shape|broadcast"):
        values(*graphs)


def test_a_parameter_beside_its_range_raises():
    check = CheckParameterValue("x < 1")
    graph = lambda x: check(x[0] * 2, pt.lt(x[0], 1.0))  # noqa: E731
    assert values(graph)[0] == 1
    with pytest.raises(ParameterValueError, match="x < 1"):
        values(graph, x=X + 1)


@pytest.mark.parametrize("name", quick_where(NAMES, QUICK.__contains__))
def test_value_gradient_and_parameters_are_those_of_pytensor_s_interpreter(name):
    model = off_default(bz.find(name))
    data = bz.read(model, model.simulate(np.random.default_rng(1), 20)[1])
    declared = Problem(model, data, np.random.default_rng(0)).declared
    ours, theirs = Density(declared), Density(declared, "FAST_COMPILE")
    x = ours.start + np.random.default_rng(2).normal(0, 0.3, ours.size)
    (value, gradient), (expected, slopes) = ours.joint(x), theirs.joint(x)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-12, atol=1e-12 * np.abs(slopes).max())
    for parameter, numbers in theirs.constrain(x).items():
        np.testing.assert_allclose(ours.constrain(x)[parameter], numbers, rtol=1e-12, atol=1e-15)
