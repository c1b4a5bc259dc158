"""Probit regression: the normal distribution however far out, orthant probabilities, and where no maximum exists."""

import mpmath as mp
import numpy as np
import pytest
import scipy
from scipy.stats import multivariate_normal, norm

import bayeszoo as bz
from bayeszoo.families.glm.probit import Probit
from bayeszoo.likelihoods.ops.glm import glm_log_likelihood
from tests.refusals import raises

PROBIT = bz.find("probit_regression")


def rows(n=80, terms=2, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, terms))
    return X, (0.3 + X @ np.linspace(1.5, -0.8, terms) + rng.standard_normal(n) > 0).astype(int)


def estimate(data, method="map", model=None):
    tree = bz.fit(model or PROBIT(), data, method, seed=1)
    assert tree.attrs["status"] == "ok", tree.attrs["gate"]
    return tree.posterior["w"].to_numpy()[0, 0]


def by_scipy(X, y, tau=np.inf, s0=np.inf):
    """Maximize SciPy's log joint density from 0 by its own optimizer."""
    signed = (2 * np.asarray(y) - 1)[:, None] * np.column_stack([np.ones(len(X)), X])
    precision = 1 / np.square([s0, *[tau] * (signed.shape[1] - 1)])
    loss = lambda w: -norm.logcdf(signed @ w).sum() + precision @ w**2 / 2  # noqa: E731
    return scipy.optimize.minimize(loss, np.zeros(signed.shape[1]), method="Nelder-Mead", options=TIGHT).x


TIGHT = {"xatol": 1e-8, "fatol": 1e-12, "maxiter": 10_000, "maxfev": 10_000}


# Estimates


def test_data_are_those_of_which_pregibon_published_the_logistic_fit():
    data = bz.example(PROBIT)
    table = np.genfromtxt("models/data/vasoconstriction.csv", delimiter=",", names=True)
    np.testing.assert_allclose(np.column_stack([table["log_volume"], table["log_rate"]]), data["X"])
    np.testing.assert_allclose(np.log(np.column_stack([table["volume"], table["rate"]])), data["X"], atol=1e-9)
    logistic = bz.fit(bz.find("logistic_regression")(), (data["X"], data["y"]), "mle", seed=1)
    np.testing.assert_allclose(logistic.posterior["w"].to_numpy()[0, 0], [-2.875, 5.179, 4.562], atol=5e-4)


@pytest.mark.parametrize("tau", [0.5, 3.0])
def test_map_is_the_maximum_by_scipy(tau):
    X, y = rows()
    np.testing.assert_allclose(estimate((X, y), model=PROBIT(tau=tau, s0=2.0)), by_scipy(X, y, tau, 2.0), atol=1e-6)


def test_mle_is_the_maximum_by_scipy():
    data = bz.example(PROBIT)
    np.testing.assert_allclose(estimate(data, "mle"), by_scipy(data["X"], data["y"]), atol=1e-6)


def test_separation_is_refused_and_a_prior_keeps_the_weights_finite():
    data = {"y": [0, 0, 0, 1, 1], "x": [1.0, 2, 3, 4, 5]}
    with raises(bz.NumericalError, "no_maximum", "x"):
        bz.fit(PROBIT(), data, "mle", seed=1)
    assert np.isfinite(estimate(data)).all()


# The evidence


def orthant(model, data):
    """Return the log probability that all n noisy predictors lie on their sides: Durante 2019, by SciPy."""
    sign = 2 * data["y"] - 1
    design = model.design(data)
    mean, sd = model.prior(data)
    covariance = np.eye(len(sign)) + (design * sd**2) @ design.T
    limits = sign * (design @ mean)
    oracle = multivariate_normal(np.zeros(len(sign)), sign[:, None] * covariance * sign, maxpts=10**6, abseps=1e-9)
    return np.log(oracle.cdf(limits, rng=np.random.default_rng(1)))


def integrated(model, data):
    """Return the log evidence of two weights by a grid of 400 x 400 points over eight prior standard deviations."""
    likelihood, (nodes, step) = model.concave(data), np.linspace(-8, 8, 400, retstep=True)
    points = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    return scipy.special.logsumexp(likelihood.values(points) + norm.logpdf(points).sum(axis=1)) + 2 * np.log(step)


@pytest.mark.parametrize("fields", [{}, {"m0": 0.7, "center": 0.4, "scale": 2.0}])
def test_evidence_of_few_rows_is_the_probability_of_an_orthant(fields):
    model = PROBIT(tau=1.5, s0=1.0, **fields)
    data = bz.read(PROBIT, rows(6, 1, seed=4))
    assert 0 < data["y"].sum() < 6
    assert integrated(model, data) == pytest.approx(orthant(model, data), abs=2e-6)
    other = {**data, "y": np.roll(data["y"], 1)}  # both tell outcomes from one another
    assert abs(integrated(model, data) - orthant(model, other)) > 0.1


# Far out, and compiled


FAR = np.array([-1e5, -1e3, -101.0, -99.0, -37.0, -25.5, -24.5, -3.0, 0.0, 3.0, 24.5, 37.0, 1e3, 1e5])


def exact(eta):
    """Return log Phi, its slope and minus its second derivative as mpmath computes them."""
    with mp.workdps(350):
        x = mp.mpf(float(eta))
        log_cdf = mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)
        hazard = mp.exp(-(x**2) / 2 - log_cdf) / mp.sqrt(2 * mp.pi)
        return [float(log_cdf), float(hazard), float(hazard * (hazard + x))]


def test_log_density_and_derivatives_are_exact_a_thousand_standard_deviations_out():
    known = np.array([exact(eta) for eta in FAR])
    for outcome, sign in ((1.0, 1), (0.0, -1)):
        terms = Probit().terms(sign * FAR, np.full(len(FAR), outcome), np.ones(len(FAR)))
        np.testing.assert_allclose(terms.value, known[:, 0], rtol=1e-13, atol=1e-140)
        np.testing.assert_allclose(sign * terms.slope, known[:, 1], rtol=2e-13, atol=1e-140)
        np.testing.assert_allclose(terms.curvature, known[:, 2], rtol=1e-11, atol=1e-140)


def test_distribution_of_a_row_keeps_its_digits_far_out():
    model, eta = PROBIT(intercept=False), np.array([-1e3, -20.0, 0.5, 20.0, 1e3])
    data = bz.read(PROBIT, (eta[:, None], [1, 1, 1, 0, 0]))
    of_rows = model.likelihood({"w": np.ones(1)}, data)
    sign = 2 * data["y"] - 1
    np.testing.assert_allclose(of_rows.logpmf(data["y"]), norm.logcdf(sign * eta), rtol=1e-13)
    np.testing.assert_allclose(of_rows.cdf(np.zeros(5)), norm.cdf(-eta), rtol=1e-12)


def test_compiled_likelihood_is_the_sum_over_rows_and_its_gradient():
    rng = np.random.default_rng(1)
    eta, trials = np.concatenate([FAR, rng.standard_normal(20) * 4]), rng.integers(1, 6, 34)
    X = np.column_stack([eta, rng.standard_normal(34)])
    y, w = rng.binomial(trials, 0.5), np.array([1.0, 0.0])
    op = glm_log_likelihood(w, X, y, trials, Probit.code).owner.op
    value, gradient = op.interpreted(w, X, y.astype(float), trials.astype(float), np.array([Probit.code]))
    each = y * norm.logcdf(eta) + (trials - y) * norm.logcdf(-eta)
    np.testing.assert_allclose(value, each.sum(), rtol=1e-13)
    np.testing.assert_allclose(gradient, X.T @ Probit().terms(eta, y, trials).slope, rtol=1e-12)
