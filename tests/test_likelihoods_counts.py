"""Compiled likelihoods of mixed documents and of probabilistic PCA, against dense arrays, SciPy, PyMC and mpmath."""

import math

import mpmath
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy
from scipy.special import gammaln

from bayeszoo.families.factors.steps import Coefficients, e_step
from bayeszoo.families.statistics.patterns import Patterns
from bayeszoo.likelihoods.loops.factors import ppca_value_and_gradient
from bayeszoo.likelihoods.loops.topics import (
    cell_sums,
    dirichlet_table,
    gamma_functions,
    log_documents,
    variational_pass,
)
from bayeszoo.likelihoods.ops.topics import lda_log_likelihood

D, K, V = 6, 3, 7


def problem(seed=0, scale=3.0):
    """Return non-negative arrays that are no probabilities, and the cells of a sparse table."""
    rng = np.random.default_rng(seed)
    table = rng.poisson(scale, (D, V)) * (rng.random((D, V)) < 0.6)
    table[2] = 0  # an empty document
    doc, term = np.nonzero(table)
    return rng.gamma(1.0, size=(D, K)), rng.gamma(1.0, size=(K, V)), table, (table[doc, term].astype(float), doc, term)


@pytest.fixture(scope="module")
def by():
    theta, phi, parts = pt.dmatrix(), pt.dmatrix(), (pt.dvector(), pt.lvector(), pt.lvector())
    value = lda_log_likelihood(theta, phi, parts)
    graph = [value, *pt.grad(value, [theta, phi])]
    return {mode: pytensor.function([theta, phi, *parts], graph, mode=mode) for mode in ("NUMBA", "FAST_COMPILE")}


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
def test_value_and_gradient_are_those_of_dense_tables(by, mode):
    for seed in range(3):
        theta, phi, table, cells = problem(seed)
        shares = table / (theta @ phi)
        expected = np.sum(table * np.log(theta @ phi)), shares @ phi.T, theta.T @ shares
        for one, other in zip(by[mode](theta, phi, *cells), expected, strict=True):
            assert one == pytest.approx(other, rel=1e-12, abs=1e-12)


def test_densities_of_documents_are_those_of_scipys_multinomials():
    theta, phi, table, cells = problem()
    theta, phi = theta / theta.sum(axis=1, keepdims=True), phi / phi.sum(axis=1, keepdims=True)
    lengths = table.sum(axis=1)
    coefficients = gammaln(lengths + 1) - gammaln(table + 1).sum(axis=1)
    expected = scipy.stats.multinomial.logpmf(table, lengths, theta @ phi) - coefficients
    assert log_documents(theta[None], phi[None], *cells)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
def test_a_word_that_no_topic_can_give_makes_the_value_minus_infinity(by, mode):
    theta, phi, table, cells = problem()
    word = int(np.flatnonzero(table.sum(axis=0))[0])
    phi[:, word] = 0.0
    value, *gradients = by[mode](theta, phi, *cells)
    assert value == -math.inf
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    assert not gradients[1][:, word].any()


def test_a_corpus_whose_dense_table_would_not_fit_takes_little():
    size, rng = 200_000, np.random.default_rng(0)  # 320 GB
    doc, term = np.sort(rng.integers(0, size, 1000)), rng.integers(0, size, 1000)
    theta, words = np.full((size, 2), 0.5), np.full((size, 2), 1 / size)
    value, of_theta, of_words = cell_sums(theta, words, np.ones(1000), doc, term)
    assert value == pytest.approx(-1000 * math.log(size), rel=1e-12)
    assert (theta * of_theta).sum() == pytest.approx(1000)
    assert (words * of_words).sum() == pytest.approx(1000)


@pytest.mark.parametrize(("doc", "term"), [(6, 0), (-1, 0), (0, 7), (0, -1)])
def test_a_cell_outside_the_tables_gives_no_number(doc, term):
    theta, phi, _, _ = problem()
    assert math.isnan(cell_sums(theta, phi.T.copy(), np.ones(1), np.array([doc]), np.array([term]))[0])
    assert np.isnan(log_documents(theta[None], phi[None], np.ones(1), np.array([doc]), np.array([term]))).all()


def test_gamma_functions_are_mpmaths():
    for x in [*10 ** np.linspace(-8, 8, 60), *np.linspace(9.5, 10.5, 11)]:
        log_gamma, digamma = gamma_functions(float(x))
        assert log_gamma == pytest.approx(float(mpmath.loggamma(x)), rel=1e-13, abs=1e-13)
        assert digamma == pytest.approx(float(mpmath.digamma(x)), rel=1e-13, abs=1e-13)


def variational(alpha, eta, passes=0):
    _, _, _, cells = problem()
    rng = np.random.default_rng(1)
    documents, words = alpha + rng.gamma(1.0, size=(D, K)), eta + rng.gamma(eta, size=(V, K))
    table = dirichlet_table(words, np.full(V, eta))[0]
    return documents, words, cells, variational_pass(np.full(K, alpha), documents, words, table, *cells, passes, 0.0)


@pytest.mark.parametrize("concentration", [0.5, 1e-3, 1e-6])
def test_responsibilities_are_right_where_their_products_underflow(concentration):
    """At 1e-6 each factor is exp(-1e6)."""
    documents, words, (counts, doc, term), found = variational(concentration, concentration)
    digamma = scipy.special.digamma
    logs = [digamma(a) - digamma(a.sum(axis=axis, keepdims=True)) for a, axis in ((documents, 1), (words, 0))]
    joint = logs[0][doc] + logs[1][term]
    r = counts[:, None] * scipy.special.softmax(joint, axis=1)
    assert found[0] == pytest.approx(np.sum(counts * scipy.special.logsumexp(joint, axis=1)), rel=1e-10)
    for i, codes in enumerate((doc, term)):
        expected = np.zeros((D if i == 0 else V, K))
        np.add.at(expected, codes, r)
        assert found[1 + i] == pytest.approx(expected, abs=1e-8)


def test_more_passes_over_a_document_keep_the_value_and_all_words():
    one, other = variational(0.3, 0.4)[-1], variational(0.3, 0.4, passes=20)[-1]
    counts, doc, term = problem()[-1]
    assert other[0] == one[0]
    assert np.abs(other[1] - one[1]).max() > 0.01
    assert other[1].sum(axis=1) == pytest.approx(np.bincount(doc, counts, minlength=D))
    assert other[2].sum(axis=1) == pytest.approx(np.bincount(term, counts, minlength=V))


# Probabilistic PCA


SHAPES = [(4, 2, 30), (6, 1, 4), (3, 5, 8), (1, 1, 5), (5, 0, 10), (4, 3, 50)]


def rows_example(D, q, N, missing, seed=0):
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
def test_value_is_scipys_row_by_row_and_gradient_that_of_finite_differences(D, q, N, missing):
    mean, W, variance, Y = rows_example(D, q, N, missing)
    arrays, x = arrays_of(Y), np.concatenate([mean, W.ravel(), [variance]])

    def evaluated(x):
        return ppca_value_and_gradient(x[:D], x[D:-1].reshape(D, q), x[-1], *arrays)

    slopes = [(evaluated(x + h)[0] - evaluated(x - h)[0]) / 2e-5 for h in 1e-5 * np.eye(len(x))]
    value, *gradients = evaluated(x)
    assert value == pytest.approx(by_scipy(mean, W, variance, Y), rel=1e-12)
    np.testing.assert_allclose(np.concatenate(list(map(np.ravel, gradients))), slopes, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("variance", [0.0, -1.0, np.nan])
def test_no_variance_has_no_density(variance):
    mean, W, _, Y = rows_example(4, 2, 20, missing=False)
    assert np.isnan(ppca_value_and_gradient(mean, W, variance, *arrays_of(Y))[0])
    assert np.isnan(ppca_value_and_gradient(mean, W, variance, *arrays_of(Y))[3])
    at = Coefficients.known({"mean": mean, "loadings": W, "variance": variance})
    assert np.isnan(e_step(at, Patterns.of(Y)).value)


def test_no_rows_and_empty_rows_add_nothing():
    mean, W, variance, Y = rows_example(4, 2, 20, missing=True)
    assert ppca_value_and_gradient(mean, W, variance, *arrays_of(Y[:0]))[0] == 0.0
    more = np.concatenate([Y, np.full((3, 4), np.nan)])
    one, other = (ppca_value_and_gradient(mean, W, variance, *arrays_of(rows)) for rows in (Y, more))
    for first, second in zip(one, other, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-13)


def test_what_stands_where_nothing_was_observed_does_not_matter():
    mean, W, variance, Y = rows_example(4, 2, 20, missing=True)
    observed, n, means, scatters = arrays_of(Y)
    spoilt = np.where(observed[:, :, None] * observed[:, None, :] == 0, 7.0, scatters)
    one = ppca_value_and_gradient(mean, W, variance, observed, n, means, scatters)
    other = ppca_value_and_gradient(mean, W, variance, observed, n, np.where(observed == 0, 9.0, means), spoilt)
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("wrong", [0, 3, 5])
def test_shapes_that_do_not_agree_are_refused(wrong):
    mean, W, variance, Y = rows_example(4, 2, 20, missing=True)
    given = [mean, W, variance, *arrays_of(Y)]
    given[wrong] = given[wrong][:-1]
    with pytest.raises(ValueError, match="differ in D"):
        ppca_value_and_gradient(*given)


def test_little_noise_beside_long_loadings_loses_few_digits():
    mean, W, _, Y = rows_example(4, 2, 20, missing=False)
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
