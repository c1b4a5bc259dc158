"""Automatic relevance determination: a prior sd for each weight, chosen by the evidence or integrated out.

The oracles are scikit-learn's ARD regression, dense Gaussians of SciPy, and its quadrature and optimizer.
"""

import json

import numpy as np
import pytest
import scipy
from bayeszoo.models.logistic_regression import LogisticRegression
from bayeszoo.models.ridge import Ridge
from sklearn.linear_model import ARDRegression

import bayeszoo as bz
from bayeszoo.errors import InputError

NAMES = ("signal", "weak", "noise", "other")


@pytest.fixture(scope="module")
def data():
    """Centred features of which two matter, and a centred outcome."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 4))
    y = X @ [2.0, 0.7, 0.0, 1.0] + rng.normal(size=30)
    columns = dict(zip(NAMES, (X - X.mean(axis=0)).T, strict=True))
    return bz.read(Ridge, {**columns, "y": y - y.mean()}, target="y")


def log_evidence(data, tau, sigma):
    """Return the log density of the outcomes by a dense covariance, without an intercept."""
    X = data["X"]
    cov = sigma**2 * np.eye(len(X)) + X @ np.diag(np.square(tau)) @ X.T
    return scipy.stats.multivariate_normal(np.zeros(len(X)), cov).logpdf(data["y"])


def test_the_evidence_of_each_point_is_that_of_a_dense_gaussian(data):
    taus = np.random.default_rng(0).uniform(0.1, 5, (5, 4))
    outer = bz.over(Ridge(intercept=False, tau=(1, 1, 1, 1), sigma=1.2), {"tau": "HalfNormal(1)"})
    expected = [log_evidence(data, tau, 1.2) for tau in taus]
    np.testing.assert_allclose(outer.log_marginal({"tau": taus}, data), expected, rtol=1e-12)
    each = [Ridge(intercept=False, tau=tuple(tau), sigma=1.2) for tau in taus]
    means = [model.posterior(model.statistics(data))["w"].mean() for model in each]
    np.testing.assert_allclose(outer.posterior_given({"tau": taus}, data)["w"].mean(), means, rtol=1e-12)


def test_empirical_bayes_is_scikit_learns_relevance_determination(data):
    theirs = ARDRegression(
        alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, threshold_lambda=1e12, tol=1e-12, max_iter=10_000,
        fit_intercept=False,
    ).fit(data["X"], data["y"])  # fmt: skip
    model = Ridge(intercept=False, tau=(1, 1, 1, 1))
    chosen = bz.empirical_bayes(model, data, over=("tau", "sigma"))
    kept = theirs.lambda_ < 1e6
    np.testing.assert_allclose(np.array(chosen.model.tau)[kept], theirs.lambda_[kept] ** -0.5, rtol=1e-4)
    assert chosen.model.sigma == pytest.approx(theirs.alpha_**-0.5, rel=1e-5)
    pruned = {f"tau[{name}]" for name, is_kept in zip(NAMES, kept, strict=True) if not is_kept}
    assert set(chosen.boundary) == pruned == {"tau[noise]"}
    assert (chosen.status, chosen.limits) == ("in the limit", {"tau[noise]": 0.0})
    np.testing.assert_allclose(np.array(chosen.model.tau)[~kept], 0, atol=1e-6)


def test_the_map_of_four_prior_sds_is_the_highest_of_a_dense_density(data):
    model = bz.over(Ridge(intercept=False, tau=(1, 1, 1, 1)), {"tau": "Gamma(2, 1)"})
    tree = bz.fit(model, data, method="map", seed=1)

    def depth(tau):
        return -log_evidence(data, tau, 1.0) - scipy.stats.gamma(2).logpdf(tau).sum()

    best = scipy.optimize.minimize(depth, np.ones(4), bounds=[(1e-3, 50)] * 4, options={"ftol": 1e-15, "gtol": 1e-9})
    np.testing.assert_allclose(tree["posterior"]["tau"].values[0, 0], best.x, rtol=1e-4)
    assert list(tree["posterior"]["slope"].values) == list(NAMES)


def test_two_prior_sds_are_integrated_out(data):
    model = Ridge(intercept=False, features=NAMES[:2], tau=(1, 1))
    fitted = bz.fit(bz.over(model, {"tau": "HalfNormal(2)"}), data, method="exact", seed=1)
    two = {**data, "X": data["X"][:, :2]}

    places, steps = np.polynomial.legendre.leggauss(96)
    places, steps = 7 * (places + 1), 7 * steps  # from 0 to 14, seven scales of the prior
    prior = scipy.stats.halfnorm(scale=2).logpdf(places)
    heights = np.array([[log_evidence(two, (a, b), 1.0) for b in places] for a in places]) + prior + prior[:, None]
    mass = np.exp(heights - np.max(heights)) * np.outer(steps, steps)
    assert json.loads(fitted.attrs["facts"])["log_evidence"] == pytest.approx(
        np.log(mass.sum()) + np.max(heights), abs=1e-6
    )
    assert bz.summarize(fitted)["tau"]["mean"][0] == pytest.approx(places @ mass.sum(axis=1) / mass.sum(), rel=1e-6)


@pytest.mark.parametrize("model", [Ridge(tau=(1, 2)), Ridge(tau=(1, 2), s0=3.0)])
def test_another_number_of_prior_sds_is_refused(data, model):
    with pytest.raises(InputError) as refused:
        bz.fit(model, data, method="exact")
    assert refused.value.code == "wrong_shape"


def test_a_prior_sd_for_each_weight_of_a_log_odds():
    rows = {"x": [0.0, 1.0, 2.0, 3.0, 4.0], "z": [1.0, 0.0, 1.0, 0.0, 1.0], "y": [0, 0, 1, 0, 1]}
    tight = LogisticRegression(tau=(10.0, 1e-6), s0=10.0)
    without = LogisticRegression(tau=10.0, s0=10.0, features=("x",))
    data = bz.read(LogisticRegression, rows, target="y")
    weights = [bz.fit(model, data, method="map")["posterior"]["w"].values[0, 0] for model in (tight, without)]
    np.testing.assert_allclose(weights[0], [*weights[1], 0.0], atol=1e-6)  # a prior sd of 0 leaves the feature out
