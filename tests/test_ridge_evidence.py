"""The evidence of ridge regression over tau and sigma, and effective parameters: dense algebra and scikit-learn."""

import json
import math

import numpy as np
import pytest
import scipy
from bayeszoo.models.ridge import Ridge
from sklearn.linear_model import BayesianRidge

import bayeszoo as bz

DIABETES = bz.example(Ridge)
WEAK = Ridge.weak(DIABETES)


def rows(n=30, k=4):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, k)) @ (np.eye(k) + 0.3) + 0.5
    return X, 2.0 + X @ np.arange(1, k + 1) + rng.standard_normal(n)


def dense(model, X, y):
    """The evidence as SciPy's multivariate normal density of the rows."""
    X = (X - model.center) / model.scale
    cov = model.sigma**2 * np.eye(len(y)) + model.tau**2 * X @ X.T + model.s0**2
    return scipy.stats.multivariate_normal(np.full(len(y), model.m0), cov).logpdf(y)


def hat(model, X):
    """The matrix that takes outcomes to fitted values, by the normal equations."""
    X = np.column_stack([np.ones(len(X)), (X - model.center) / model.scale])
    sd = np.array([model.s0, *np.full(X.shape[1] - 1, model.tau)])
    return X @ np.linalg.inv(X.T @ X + np.diag(model.sigma**2 / sd**2)) @ X.T


# The effective number of parameters


def test_what_rounding_hides_is_withheld():
    X, y = rows()
    model = Ridge(tau=1e12, sigma=1e-9)
    stats = model.statistics(bz.read(model, (np.column_stack([X, X[:, 0] + 1e-9 * X[:, 1]]), y)))
    assert math.isnan(model.figures(stats)["effective_parameters"])


def test_the_effective_parameters_are_the_trace_of_the_hat_matrix():
    for model in (Ridge(tau=0.7, sigma=1.3, s0=2.0), Ridge(tau=3.0, sigma=0.2, s0=0.1, center=0.5, scale=2.0)):
        for data in (bz.read(model, rows(*size)) for size in ((30, 4), (3, 6), (1, 1))):
            figures = model.figures(model.statistics(data))
            assert figures["effective_parameters"] == pytest.approx(np.trace(hat(model, data["X"])), rel=1e-10)


def test_an_exact_fit_shows_them(run):
    shown = run("fit", "ridge", "--method", "exact")[1].splitlines()
    assert f"effective parameters {np.trace(hat(WEAK, DIABETES['X'])):.5g}" in shown


# Its maximum


def test_the_grid_is_highest_where_the_search_ends():
    best = bz.empirical_bayes(WEAK, DIABETES, ["tau", "sigma"])
    bounds = {name: (getattr(best.model, name) / 1.2, getattr(best.model, name) * 1.2) for name in ("tau", "sigma")}
    grid = bz.evidence_grid(WEAK, DIABETES, bounds, points=21).log_evidence
    top = grid.argmax(...)
    assert (int(top["tau"]), int(top["sigma"])) == (10, 10)  # of 21, at equal ratios: the middle is the maximum
    assert float(grid.max()) == pytest.approx(dense(best.model, DIABETES["X"], DIABETES["y"]), abs=1e-8)


def oracle(X, y, intercept):
    """MacKay's fixed point, by scikit-learn."""
    regression = BayesianRidge(max_iter=10_000, tol=1e-13, alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0)
    return regression.set_params(fit_intercept=intercept).fit(X, y)


@pytest.mark.parametrize("data", [rows(), (DIABETES["X"] / DIABETES["X"].std(axis=0), DIABETES["y"])])
@pytest.mark.parametrize("intercept", ["none", "known", "flat"])
def test_the_maximum_is_scikit_learns(data, intercept):
    """Its centring is an intercept known to be the mean; a flat one leaves n - 1 contrasts of n rows.

    That is Patterson and Thompson's restricted likelihood.
    """
    X, y = data
    centred, about, contrasts = (X - X.mean(axis=0), y - y.mean()), tuple(X.mean(axis=0)), scipy.linalg.helmert(len(y))
    model, fitted, intercept_too = {
        "none": (Ridge(intercept=False), centred, False),
        "known": (Ridge(center=about, m0=y.mean(), s0=1e-6 * y.std()), data, True),
        "flat": (Ridge(center=about, s0=1e6 * y.std()), data, False),
    }[intercept]
    theirs = oracle(*((contrasts @ X, contrasts @ y) if intercept == "flat" else fitted), intercept_too)
    ours = bz.empirical_bayes(model.replaced(sigma=y.std()), fitted, ["tau", "sigma"])
    assert ours.status == "ok"
    assert ours.model.tau == pytest.approx(theirs.lambda_**-0.5, rel=1e-6)
    assert ours.model.sigma == pytest.approx(theirs.alpha_**-0.5, rel=1e-6)


# The command


def test_the_command_prints_the_maximum_and_the_effective_parameters(run):
    out = run("empirical", "ridge", "--over", "tau,sigma")[1]
    assert ["tau", "77.093", "14.0639"] in [line.split() for line in out.splitlines()]
    assert "effective parameters 9.5776" in out
    answer = json.loads(run("empirical", "ridge", "--over", "tau,sigma", "--json")[1])
    assert (answer["warnings"], answer["full_bayes"]) == ([], None)
    best = Ridge(**answer["fields"])
    trace = np.trace(hat(best, DIABETES["X"]))
    assert answer["figures"]["effective_parameters"] == pytest.approx(trace, rel=1e-6)


def test_a_field_that_goes_to_0_is_printed_as_0(run, written):
    X, _ = rows()
    y = np.random.default_rng(0).standard_normal(len(X))
    lines = [",".join(map(repr, row)) for row in np.column_stack([y, X]).tolist()]
    noise = written("\n".join(["y,a,b,c,d", *lines]))
    code, out, err = run("empirical", "ridge", noise, "--over", "tau,sigma", "--full")
    assert (code, [line.split()[-1] for line in out.splitlines() if line.startswith(" tau ")]) == (3, ["0"])
    assert "status in the limit" in out
    assert "full Bayes is withheld" in err
    answer = json.loads(run("empirical", "ridge", noise, "--over", "tau,sigma", "--json")[1])
    assert (answer["fields"]["tau"], answer["limits"]) == (0, {"tau": 0})
    assert "-> 0, sigma" in repr(bz.empirical_bayes(Ridge.weak(bz.read(Ridge, (X, y))), (X, y), ["tau", "sigma"]))
