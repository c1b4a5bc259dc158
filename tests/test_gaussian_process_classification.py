"""Gaussian process classification: scikit-learn's evidence, dense Gaussians, quadrature and the regression it is."""

from functools import partial

import numpy as np
import pytest
import scipy
from bayeszoo.models.gaussian_process_classification import GaussianProcessClassification
from bayeszoo.models.logistic_regression import LogisticRegression
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessClassifier, kernels

import bayeszoo as bz
from bayeszoo.answers.checks import leave_out
from bayeszoo.data.read import Data
from bayeszoo.distributions.logistic_normal import log_odds_of_mean
from bayeszoo.families.processes.root import Root
from bayeszoo.inference.methods import vb
from bayeszoo.report.families.profile import profiles
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import document
from tests.refusals import raises

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (14, 1))
Y = (np.sin(2 * X[:, 0]) + 0.5 * RNG.normal(size=14) > 0).astype(np.int64)
NEW = np.linspace(-3, 3, 7)[:, None]
DOSES = {"X": np.array([[0.0], [0.7]]), "y": np.array([1, 4]), "trials": np.array([5, 5])}


def data_of(X, y, **more):
    return Data({"X": X, "y": y, "feature": np.array([f"x{j}" for j in range(X.shape[1])]), **more})


DATA = data_of(X, Y)
TWO = data_of(**DOSES)
MODEL = GaussianProcessClassification(amplitude=1.7, length=0.6, m0=0.3, kernel="matern52")


# The factor, and probabilities of normal log odds


@pytest.mark.parametrize(("length", "is_full"), [(0.02, True), (1.5, False), (5.0, False)])
def test_factor_is_exact_whether_or_not_the_kernel_is_singular(length, is_full):
    places = RNG.normal(size=(60, 2))
    kernel = kernels.RBF(length)
    root, new = Root.of(kernel(places)), RNG.normal(size=(5, 2))
    assert (root.factor.shape[1] == 60) is is_full
    np.testing.assert_allclose(root.factor @ root.factor.T, kernel(places), atol=2e-13)
    rows, left = root.elsewhere(kernel(places[root.taken], places), np.ones(60))
    np.testing.assert_allclose(rows, root.factor, atol=1e-6)  # an inverse of next to no digits
    assert not left.any()
    rows, left = root.elsewhere(kernel(places[root.taken], new), np.ones(5))
    if is_full:
        np.testing.assert_allclose(left, variance_given(kernel, places)(new), atol=1e-12)
    np.testing.assert_allclose(rows @ root.factor.T, kernel(new, places), atol=1e-6)


def variance_given(kernel, places):
    """Return the variance of a process given its values at places, by a dense inverse."""
    inverse = np.linalg.inv(kernel(places))
    return lambda new: 1 - np.einsum("ij,jk,ik->i", kernel(new, places), inverse, kernel(new, places))


def test_equal_rows_have_one_parameter():
    twice = data_of(np.repeat(X, 2, axis=0), np.repeat(Y, 2))
    assert MODEL.concave(twice).size == len(X)
    point = {"z": RNG.normal(size=len(X))}
    own = np.repeat(MODEL.likelihood(point, DATA).logpmf(Y), 2)
    np.testing.assert_allclose(MODEL.likelihood(point, twice).logpmf(twice["y"]), own, rtol=1e-12)


@pytest.mark.parametrize(
    ("mean", "sd"), [(0.3, 0.1), (1.0, 0.99), (1.0, 1.01), (-4.0, 10.0), (30.0, 2.0), (-40.0, 2.0)]
)
def test_mean_probabilities_are_those_by_quadrature(mean, sd):
    def integral(of):
        density = lambda x: of(x) * scipy.stats.norm.pdf(x, mean, sd)  # noqa: E731
        top = mean + sd * sd * (1 if of is expit else -1) * (abs(mean) > 20)
        return scipy.integrate.quad(density, top - 12 * sd, top + 12 * sd, points=[top], limit=400, epsabs=0)[0]

    expected = np.log(integral(expit)) - np.log(integral(lambda x: expit(-x)))
    assert log_odds_of_mean(np.array([mean]), np.array([sd]))[0] == pytest.approx(expected, abs=1e-9)
    assert log_odds_of_mean(np.array([mean]), np.zeros(1))[0] == mean


# Evidence


@pytest.mark.parametrize(("name", "kernel"), [("rbf", kernels.RBF), ("matern32", partial(kernels.Matern, nu=1.5))])
@pytest.mark.parametrize(("amplitude", "length"), [(2.5, 1.6), (5.0, 0.3), (1.0, 0.05)])
def test_laplace_evidence_is_that_of_scikit_learn(name, kernel, amplitude, length):
    data = bz.example(GaussianProcessClassification)
    model = GaussianProcessClassification.weak(data).replaced(amplitude=amplitude, length=length, kernel=name)
    theirs = GaussianProcessClassifier(kernels.ConstantKernel(amplitude**2) * kernel(length), optimizer=None)
    theirs.fit(model.places(data), data["y"])
    assert model.concave(data).laplace_evidence() == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-10)


def by_quadrature(model, data):
    """Return the log evidence of two places, and the posterior means of their log odds, by a grid of 400 x 400."""
    kernel = model.amplitude**2 * model.covariance(data, data)
    nodes = np.linspace(-8, 8, 400)
    u = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    f = model.m0 + u @ np.linalg.cholesky(kernel).T
    heights = scipy.stats.norm.logpdf(u).sum(axis=1)
    heights += (data["y"] * np.log(expit(f)) + (data["trials"] - data["y"]) * np.log(expit(-f))).sum(axis=1)
    weights = np.exp(heights - heights.max())
    evidence = heights.max() + np.log(weights.sum()) + 2 * np.log(nodes[1] - nodes[0])
    return evidence, weights / weights.sum() @ f


def test_evidence_of_two_places_by_quadrature_is_near_laplaces_and_above_the_bound():
    exact, _ = by_quadrature(MODEL, TWO)
    laplace = MODEL.concave(TWO).laplace_evidence()
    assert 1e-4 < abs(laplace - exact) < 0.1
    bound = vb.climbs(MODEL, TWO, np.random.default_rng(0), restarts=2).best.objective
    assert exact - 0.2 < bound < exact


@pytest.mark.slow  # compiles and samples
@pytest.mark.parametrize("method", ["nuts", "gibbs"])
def test_samplers_have_the_means_of_the_quadrature(method):
    _, means = by_quadrature(MODEL, TWO)
    tree = bz.fit(MODEL, TWO, method, seed=1)
    z = tree.posterior["z"].to_numpy().reshape(-1, 2)
    f = MODEL.m0 + MODEL.amplitude * z @ MODEL.root(TWO).factor.T
    np.testing.assert_allclose(f.mean(axis=0), means, atol=0.1)


@pytest.mark.slow  # compiles and samples
@pytest.mark.parametrize("method", ["nuts", "gibbs"])
def test_trials_left_out_are_ratios_of_evidences(method):
    def evidence(won, trials):
        return by_quadrature(MODEL, Data({**TWO, "y": np.array(won), "trials": np.array(trials)}))[0]

    whole = evidence([1, 4], [5, 5])
    without = {-4: ([1, 4], [4, 5]), -1: ([0, 4], [4, 5]), 4: ([1, 3], [5, 4]), 1: ([1, 4], [5, 4])}
    expected = sum(abs(count) * (whole - evidence(*rest)) for count, rest in without.items())
    score = leave_out.of_fit(Fit(bz.fit(MODEL, TWO, method, seed=1)))
    assert sorted(score.weights.tolist()) == [1, 1, 4, 4]
    assert abs(score.mean * score.total - expected) < 4.5 * score.mcse * score.total


def test_linear_kernel_is_logistic_regression():
    linear = GaussianProcessClassification(amplitude=1.7, length=0.6, m0=0.0, kernel="linear")
    weights = LogisticRegression(tau=1.7 / 0.6, intercept=False)
    assert linear.concave(DATA).size == 1
    assert linear.concave(DATA).laplace_evidence() == pytest.approx(weights.concave(DATA).laplace_evidence(), abs=1e-12)


# New rows


def test_function_at_new_rows_is_that_of_a_dense_gaussian():
    new, f = data_of(NEW, Y[:7]), MODEL.m0 + RNG.normal(size=len(X))
    kernel = MODEL.amplitude**2 * MODEL.covariance(DATA, DATA)
    z = np.linalg.solve(MODEL.root(DATA).factor, (f - MODEL.m0) / MODEL.amplitude)
    cross = MODEL.amplitude**2 * MODEL.covariance(new, DATA)
    inverse = np.linalg.inv(kernel)
    law = MODEL.function({"z": z}, DATA, new)
    np.testing.assert_allclose(law.mean(), MODEL.m0 + cross @ inverse @ (f - MODEL.m0), atol=1e-8)
    variance = MODEL.amplitude**2 - np.einsum("ij,jk,ik->i", cross, inverse, cross)
    np.testing.assert_allclose(law.var(), variance, atol=1e-9)
    np.testing.assert_allclose(
        MODEL.share_of_prior({"z": z[None]}, DATA, new) * MODEL.amplitude**2, variance, atol=1e-9
    )
    drawn = MODEL.drawn_function({"z": np.tile(z, (20_000, 1))}, DATA, new, np.random.default_rng(1))
    np.testing.assert_allclose(drawn.mean(axis=0), law.mean(), atol=0.06)
    own = MODEL.amplitude**2 * MODEL.covariance(new, new)
    np.testing.assert_allclose(np.cov(drawn.T), own - cross @ inverse @ cross.T, atol=0.12)
    p = expit(drawn).mean(axis=0)
    np.testing.assert_allclose(MODEL.law({"z": z}, DATA, new).mean(), p, atol=0.015)
    np.testing.assert_allclose(np.exp(MODEL.log_class_probabilities({"z": z}, new, DATA))[:, 1], p, atol=0.015)


def test_class_probabilities_of_a_mode_are_those_of_scikit_learns_mode():
    data = bz.example(GaussianProcessClassification)
    model = GaussianProcessClassification.weak(data)
    tree = bz.fit(model, data, "map", seed=1)
    kernel = kernels.ConstantKernel(model.amplitude**2) * kernels.RBF(model.length)
    theirs = GaussianProcessClassifier(kernel, optimizer=None).fit(model.places(data), data["y"]).base_estimator_
    new = bz.read(model, {"xs": [-0.5, 0.1, 5.0], "ys": [0.2, 0.9, 5.0]}, new=True, like=data)
    expected = kernel(model.places(new), model.places(data)) @ (data["y"] - theirs.pi_)
    np.testing.assert_allclose(bz.function_values(tree, new)["mean"], expected, atol=1e-5)
    assert bz.classify(tree, new)["p[1]"].iloc[-1] == pytest.approx(0.5, abs=1e-6)
    assert bz.function_values(tree, new)["prior_share"].round(2).tolist()[2] == 1


def test_an_estimate_of_the_function_itself_has_no_interval(monkeypatch):
    """Its interval was printed from 0.18737 to 0.18737, given the function."""
    tree = bz.fit(MODEL, TWO, "map", seed=1)
    frame = bz.function_values(tree, {"x0": [0.0, 0.3]})
    assert frame[["sd", "q025", "q975"]].isna().all(axis=None)
    assert frame["mean"].notna().all()
    assert frame["withheld"].str.startswith("sd, q025, q975").all()
    (profile,) = profiles(Fit(tree), document(Fit(tree)))
    assert "interval" not in profile.title
    assert len(profile.rows[0]) == 3
    axes = bz.plot_function(tree).axes[0]
    assert not axes.collections
    approximate = bz.function_values(bz.fit(MODEL, TWO, "vb", seed=1), {"x0": [0.0, 0.3]})
    assert (approximate["sd"] > 0.3).all()


# Refusals


def test_what_cannot_be_is_refused():
    with raises(bz.NumericalError, "no_maximum", "map"):
        bz.fit(MODEL, DATA, "mle", seed=1)
    with raises(bz.InputError, "unknown_name", "rbf"):
        GaussianProcessClassification(kernel="tanh")
    with raises(bz.InputError, "too_many_rows", "2,000"):
        MODEL.root(data_of(np.zeros((2001, 1)), np.zeros(2001)))
    tree = bz.fit(MODEL, TWO, "map", seed=1)
    with raises(bz.InputError, "no_row_law", "nuts"):
        bz.predict(tree, {"x0": [0.3], "trials": [5]}, trials="trials")
    for name in ("amplitude", "length"):
        with raises(bz.InputError, "out_of_range", name):
            GaussianProcessClassification(**{name: -1.0})
