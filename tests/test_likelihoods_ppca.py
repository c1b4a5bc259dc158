"""The compiled likelihood of probabilistic PCA against SciPy, PyMC and finite differences."""

import mpmath
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import scipy

from bayeszoo.families.factors.steps import Coefficients, e_step
from bayeszoo.families.statistics.patterns import Patterns
from bayeszoo.likelihoods.loops.factors import ppca_value_and_gradient
from bayeszoo.likelihoods.ops import factors as ppca

SHAPES = [(4, 2, 30), (6, 1, 4), (3, 5, 8), (1, 1, 5), (5, 0, 10), (4, 3, 50)]


def example(D, q, N, missing, seed=0):
    rng = np.random.default_rng(seed)
    Y = rng.normal(5.0, 3.0, (N, D))
    Y = np.where(rng.random((N, D)) < 0.3, np.nan, Y) if missing else Y
    return rng.normal(5.0, 1.0, D), rng.normal(size=(D, q)), 0.7, Y


def arrays_of(Y):
    stats = Patterns.of(Y)
    return stats.observed.astype(float), stats.n, stats.mean, stats.scatter


def by_scipy(mean, W, variance, Y):
    C, total = W @ W.T + variance * np.eye(len(mean)), 0.0
    for y in Y:
        seen = ~np.isnan(y)
        if seen.any():
            total += scipy.stats.multivariate_normal(mean[seen], C[np.ix_(seen, seen)]).logpdf(y[seen])
    return total


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("D", "q", "N"), SHAPES)
def test_value_is_scipys_row_by_row_and_gradient_that_of_finite_differences_by_both_routes(D, q, N, missing):
    mean, W, variance, Y = example(D, q, N, missing)
    arrays, x = arrays_of(Y), np.concatenate([mean, W.ravel(), [variance]])

    def evaluated(x):
        return ppca_value_and_gradient(x[:D], x[D:-1].reshape(D, q), x[-1], *arrays)

    slopes = [(evaluated(x + h)[0] - evaluated(x - h)[0]) / 2e-5 for h in 1e-5 * np.eye(len(x))]
    by_loops, by_numpy = evaluated(x), ppca._by_covariances(mean, W, np.array([variance]), *arrays)
    for value, *_ in (by_loops, by_numpy):
        assert value == pytest.approx(by_scipy(mean, W, variance, Y), rel=1e-12)
    gradient, other = (np.concatenate([np.ravel(part) for part in parts]) for _, *parts in (by_loops, by_numpy))
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(gradient, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("missing", [False, True])
def test_the_operation_is_the_same_by_numba_and_by_numpy_and_pytensors_of_a_multivariate_normal(missing):
    mean, W, variance, Y = example(4, 2, 20, missing)
    inputs = [pt.vector("mean", shape=(4,)), pt.matrix("W", shape=(4, 2)), pt.scalar("variance")]
    declared = pm.MvNormal.dist(inputs[0], pt.dot(inputs[1], inputs[1].T) + inputs[2] * np.eye(4))
    ours = ppca.ppca_log_likelihood(*inputs, *(pytensor.shared(array) for array in arrays_of(Y)))
    ways = [(ours, "NUMBA"), (ours, "FAST_COMPILE")]
    if not missing:
        ways += [(pt.sum(pm.logp(declared, Y)), "FAST_COMPILE")]
    graphs = [([value, *pt.grad(value, inputs)], mode) for value, mode in ways]
    expected, *others = (pytensor.function(inputs, graph, mode=mode)(mean, W, variance) for graph, mode in graphs)
    for other in others:
        for first, second in zip(expected, other, strict=True):
            np.testing.assert_allclose(first, second, rtol=1e-10, atol=1e-10)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        pt.grad(graphs[0][0][1].sum(), inputs)


@pytest.mark.parametrize("variance", [0.0, -1.0, np.nan])
def test_no_variance_has_no_density(variance):
    mean, W, _, Y = example(4, 2, 20, missing=False)
    assert np.isnan(ppca_value_and_gradient(mean, W, variance, *arrays_of(Y))[0])
    assert np.isnan(ppca_value_and_gradient(mean, W, variance, *arrays_of(Y))[3])
    assert np.isnan(ppca._by_covariances(mean, W, np.array([variance]), *arrays_of(Y))[0])
    at = Coefficients.known({"mean": mean, "loadings": W, "variance": variance})
    assert np.isnan(e_step(at, Patterns.of(Y)).value)


def test_no_rows_and_empty_rows_add_nothing():
    mean, W, variance, Y = example(4, 2, 20, missing=True)
    assert ppca_value_and_gradient(mean, W, variance, *arrays_of(Y[:0]))[0] == 0.0
    more = np.concatenate([Y, np.full((3, 4), np.nan)])
    one, other = (ppca_value_and_gradient(mean, W, variance, *arrays_of(rows)) for rows in (Y, more))
    for first, second in zip(one, other, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-13)


def test_what_stands_where_nothing_was_observed_does_not_matter():
    mean, W, variance, Y = example(4, 2, 20, missing=True)
    observed, n, means, scatters = arrays_of(Y)
    spoilt = np.where(observed[:, :, None] * observed[:, None, :] == 0, 7.0, scatters)
    one = ppca_value_and_gradient(mean, W, variance, observed, n, means, scatters)
    other = ppca_value_and_gradient(mean, W, variance, observed, n, np.where(observed == 0, 9.0, means), spoilt)
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("wrong", [0, 3, 5])
def test_shapes_that_do_not_agree_are_refused(wrong):
    mean, W, variance, Y = example(4, 2, 20, missing=True)
    given = [mean, W, variance, *arrays_of(Y)]
    given[wrong] = given[wrong][:-1]
    with pytest.raises(ValueError, match="differ in D"):
        ppca_value_and_gradient(*given)


def test_little_noise_beside_long_loadings_loses_few_digits():
    mean, W, _, Y = example(4, 2, 20, missing=False)
    Y = mean + np.random.default_rng(1).normal(size=(20, 2)) @ (1e3 * W).T
    Y = Y + 1e-2 * np.random.default_rng(2).normal(size=Y.shape)
    mpmath.mp.dps = 50
    C = mpmath.matrix((1e3 * W).tolist()) * mpmath.matrix((1e3 * W).tolist()).T + mpmath.mpf(1e-4) * mpmath.eye(4)
    inverse, log_det = C**-1, mpmath.log(mpmath.det(C))
    rows = [mpmath.matrix([mpmath.mpf(y) - mpmath.mpf(m) for y, m in zip(row, mean, strict=True)]) for row in Y]
    squares = sum((row.T * inverse * row)[0] for row in rows)
    expected = float(-(20 * (4 * mpmath.log(2 * mpmath.pi) + log_det) + squares) / 2)
    found = ppca_value_and_gradient(mean, 1e3 * W, 1e-4, *arrays_of(Y))[0]
    assert found == pytest.approx(expected, rel=1e-5)  # of ten digits of W W' / sigma2


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("D", "q", "N"), [(4, 2, 30), (3, 3, 8), (5, 0, 10)])
def test_expected_sums_are_those_of_the_rows_one_by_one(D, q, N, missing):
    mean, W, variance, Y = example(D, q, N, missing)
    gram, cross, squares = np.zeros((D, q + 1, q + 1)), np.zeros((D, q + 1)), np.zeros(D)
    for y in Y - mean:
        seen = ~np.isnan(y)
        precision = np.eye(q) + W[seen].T @ W[seen] / variance  # Bishop 2006, 12.42
        z = np.linalg.solve(precision, W[seen].T @ y[seen] / variance)
        x = np.concatenate([[1.0], z])
        second = np.outer(x, x)
        second[1:, 1:] += np.linalg.inv(precision)
        gram[seen] += second
        cross[seen] += y[seen, None] * x
        squares[seen] += y[seen] ** 2
    at = Coefficients.known({"mean": mean, "loadings": W, "variance": variance})
    expectation = e_step(at, Patterns.of(Y))
    found = expectation.stats
    assert expectation.value == pytest.approx(by_scipy(mean, W, variance, Y), rel=1e-12)
    for one, other in zip((found.gram, found.cross, found.squares), (gram, cross, squares), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)
