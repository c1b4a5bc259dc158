"""MacKay's fixed point and the effective parameters of ridge: against dense algebra and scikit-learn."""

import json
import math
import re
import sys

import numpy as np
import pytest
import scipy
from bayeszoo.models.gaussian_mean import GaussianMean
from bayeszoo.models.ridge import Ridge
from sklearn.linear_model import BayesianRidge

import bayeszoo as bz
from tests.refusals import raises

DIABETES = bz.example(Ridge)
WEAK = Ridge.weak(DIABETES)
mackay = sys.modules["bayeszoo.families.linear.mackay"]


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
    """The matrix that takes outcomes to fitted values, by the normal equations, and its part without the intercept."""
    X = np.column_stack([np.ones(len(X)), (X - model.center) / model.scale])
    sd = np.array([model.s0, *np.full(X.shape[1] - 1, model.tau)])
    inverse = np.linalg.inv(X.T @ X + np.diag(model.sigma**2 / sd**2))
    return X @ inverse @ X.T, np.sum((1 - model.sigma**2 * np.diag(inverse) / sd**2)[1:])


# The effective number of parameters


def test_what_rounding_hides_is_withheld():
    X, y = rows()
    model = Ridge(tau=1e12, sigma=1e-9)
    stats = model.statistics(bz.read(model, (np.column_stack([X, X[:, 0] + 1e-9 * X[:, 1]]), y)))
    assert math.isnan(model.figures(stats)["effective_parameters"])


def test_the_effective_parameters_are_the_trace_of_the_hat_matrix():
    for model in (Ridge(tau=0.7, sigma=1.3, s0=2.0), Ridge(tau=3.0, sigma=0.2, s0=0.1, center=0.5, scale=2.0)):
        for data in (bz.read(model, rows(*size)) for size in ((30, 4), (3, 6), (1, 1))):
            found = model.figures(model.statistics(data))["effective_parameters"]
            assert found == pytest.approx(np.trace(hat(model, data["X"])[0]), rel=1e-10)


def test_an_exact_fit_shows_them(run):
    shown = run("fit", "ridge", "--method", "exact")[1].splitlines()
    assert f"effective parameters {np.trace(hat(WEAK, DIABETES['X'])[0]):.5g}" in shown


# The fixed point


def reached(found, **tolerance):
    """Whether a fixed point is where the optimizer says, to 1e-6."""
    best = bz.empirical_bayes(WEAK, DIABETES, found.over)
    assert best.status == "ok"
    pairs = [(getattr(found.model, name), getattr(best.model, name)) for name in found.over]
    return found.converged and all(abs(there / here - 1) < 1e-6 for there, here in pairs)


@pytest.mark.parametrize("over", [("tau", "sigma"), ("tau",), "sigma"])
def test_it_is_where_the_optimizer_ends(over):
    found = bz.mackay(WEAK, DIABETES, over)
    assert (reached(found), found.reason) == (True, "")


def test_the_grid_is_highest_there_and_gamma_is_of_the_weights():
    found = bz.mackay(WEAK, DIABETES)
    bounds = {name: (getattr(found.model, name) / 1.2, getattr(found.model, name) * 1.2) for name in ("tau", "sigma")}
    grid = bz.evidence_grid(WEAK, DIABETES, bounds, points=21).log_evidence
    top = grid.argmax(...)
    assert (int(top["tau"]), int(top["sigma"])) == (10, 10)  # of 21, at equal ratios: the middle is the maximum
    assert float(grid.max()) == pytest.approx(dense(found.model, DIABETES["X"], DIABETES["y"]), abs=1e-8)
    matrix, alone = hat(found.model, DIABETES["X"])
    assert found.gamma == pytest.approx(alone, rel=1e-9)
    assert found.effective_parameters == pytest.approx(np.trace(matrix), rel=1e-9)
    assert found.gamma < found.effective_parameters - 0.99  # the intercept counts besides


def counted_with_intercept(model, weights, n):
    squares = float(np.sum(np.square(weights.mean[1:])))
    return {**NEXT_SQUARES(model, weights, n), "tau": squares / math.fsum(weights.shares)}


def no_parameters(model, weights, n):
    return {**NEXT_SQUARES(model, weights, n), "sigma": weights.squared_error * model.sigma**2 / n}


NEXT_SQUARES = mackay._next_squares


@pytest.mark.parametrize("bug", [counted_with_intercept, no_parameters])
def test_wrong_counts_of_parameters_are_seen(monkeypatch, run, bug):
    """Gamma with the intercept in tau, and the squared error over n instead of n - gamma in sigma."""
    monkeypatch.setattr(mackay, "_next_squares", bug)
    assert not reached(bz.mackay(WEAK, DIABETES))
    _, _, err = run("empirical", "ridge", "--over", "tau,sigma")
    assert "warning: MacKay's iteration ended at another stationary point: " in err


def test_the_iteration_is_close_only_where_every_field_is():
    """tau has settled and sigma has not: its steps of 0.1, 0.01, ... leave 0.0011 of its logarithm."""
    steps = np.exp(np.cumsum([[0.0, 0.0], [1e-13, 0.1], [1e-26, 0.01]], axis=0))
    assert not mackay._is_close(steps.tolist())
    assert not mackay._is_close(steps[:, ::-1].tolist())
    assert mackay._is_close(np.exp(np.cumsum([[0.0, 0.0], [1e-6, 1e-5], [1e-13, 1e-12]], axis=0)).tolist())


# The oracle: scikit-learn


def oracle(X, y, intercept):
    made = BayesianRidge(max_iter=10_000, tol=1e-13, alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0)
    return made.set_params(fit_intercept=intercept).fit(X, y)


@pytest.mark.parametrize("data", [rows(), (DIABETES["X"] / DIABETES["X"].std(axis=0), DIABETES["y"])])
@pytest.mark.parametrize("intercept", ["none", "known", "flat"])
def test_scikit_learn_finds_the_same(data, intercept):
    """Its centring is an intercept known to be the mean; a flat one leaves n - 1 contrasts of n rows.

    That is Patterson and Thompson's restricted likelihood.
    """
    X, y = data
    centred, about, contrasts = (X - X.mean(axis=0), y - y.mean()), tuple(X.mean(axis=0)), scipy.linalg.helmert(len(y))
    made, fitted, intercept_too = {
        "none": (Ridge(intercept=False), centred, False),
        "known": (Ridge(center=about, m0=y.mean(), s0=1e-6 * y.std()), data, True),
        "flat": (Ridge(center=about, s0=1e6 * y.std()), data, False),
    }[intercept]
    theirs = oracle(*((contrasts @ X, contrasts @ y) if intercept == "flat" else fitted), intercept_too)
    ours = bz.mackay(made.replaced(sigma=y.std()), fitted)
    assert ours.model.tau == pytest.approx(theirs.lambda_**-0.5, rel=1e-6)
    assert ours.model.sigma == pytest.approx(theirs.alpha_**-0.5, rel=1e-6)


def ended(model, data, over=("tau", "sigma")):
    found = bz.mackay(model, data, over)
    assert not found.converged
    assert found.reason in repr(found)
    return found.reason


def test_where_there_is_no_fixed_point_the_reason_is_said(monkeypatch):
    X, y = rows()
    noise = np.random.default_rng(0).standard_normal(len(X))
    assert "no fixed point: tau -> 0" in ended(Ridge(), (X, noise))
    assert "tau" in bz.empirical_bayes(Ridge(), (X, noise), ["tau", "sigma"]).boundary
    assert "no fixed point: sigma -> 0" in ended(Ridge(), (X, X @ [1.0, 2.0, 3.0, 4.0]))
    assert "no fixed point: sigma -> 0" in ended(Ridge(tau=100), rows(4, 7), "sigma")
    assert "does not depend on tau" in ended(Ridge(degree=0), rows())
    assert bz.mackay(Ridge(degree=0), rows(), "sigma").converged
    assert ended(Ridge(), (X, np.full_like(y, 5.0)))  # a constant outcome ends too
    assert ended(Ridge(), (X, np.zeros_like(y)))
    monkeypatch.setattr(mackay, "MAX_ITERATIONS", 3)
    assert ended(WEAK, DIABETES) == "not converged after 3 iterations"


@pytest.mark.parametrize(
    ("model", "over", "message"),
    [
        (GaussianMean(), "sigma", ("mackay_unavailable", "ridge", "gaussian_mean")),
        (Ridge(), ["s0"], ("mackay_unavailable", "tau", "sigma", "s0")),
        (Ridge(), [], ("mackay_unavailable",)),
        (Ridge(), ["tau", "tau"], ("mackay_unavailable", "tau")),
    ],
)
def test_what_it_is_not_for(model, over, message):
    with raises(bz.InputError, *message):
        bz.mackay(model, None, over)


# The command


@pytest.mark.slow
def test_the_command_prints_it_beside_the_optimizer(run):
    out = run("empirical", "ridge", "--over", "tau,sigma")[1]
    rows = [line.split() for line in out.splitlines()]
    assert ["field", "before", "after", "MacKay"] in rows
    assert ["tau", "77.093", "14.0639", "14.0639"] in rows
    assert "effective parameters 9.5776" in out
    assert "gamma 8.5776" in out
    exactly = run("empirical", "ridge", "--over", "tau,sigma", "--digits", 9)[1]
    assert re.search(r"^ tau +77\.09\d{5,} +14\.063\d{4,} ", exactly, re.M)
    found, point = json.loads(run("empirical", "ridge", "--over", "tau,sigma", "--json")[1]), bz.mackay(WEAK, DIABETES)
    assert (found["warnings"], found["full_bayes"]) == ([], None)
    assert found["mackay"]["fields"] == {"tau": point.model.tau, "sigma": point.model.sigma}
    assert found["figures"]["effective_parameters"] == pytest.approx(point.effective_parameters, rel=1e-6)
    for arguments in (["gaussian_mean", "--over", "sigma"], ["ridge", "--over", "tau,s0"]):  # where it does not apply
        assert json.loads(run("empirical", *arguments, "--json")[1])["mackay"] is None


def test_the_command_withholds_the_fixed_point_where_there_is_none(run, written):
    X, _ = rows()
    y = np.random.default_rng(0).standard_normal(len(X))
    lines = [",".join(map(repr, row)) for row in np.column_stack([y, X]).tolist()]
    noise = written("\n".join(["y,a,b,c,d", *lines]))
    code, out, err = run("empirical", "ridge", noise, "--over", "tau,sigma", "--full")
    assert (code, out.count("withheld")) == (3, 2)  # of tau and sigma; the evidence has a maximum in the limit
    assert "status in the limit" in out
    assert "MacKay: no fixed point: tau -> 0" in out
    assert "full Bayes is withheld" in err
