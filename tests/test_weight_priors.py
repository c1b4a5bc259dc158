"""Priors of single weights, in the user's units, against the normal equations and SciPy."""

import json

import numpy as np
import pytest
from scipy import optimize

import bayeszoo as bz
from tests.refusals import raises

RIDGE, LOGISTIC = bz.find("ridge"), bz.find("logistic_regression")
RNG = np.random.default_rng(4)
X = np.column_stack([RNG.normal(50, 12, 30), RNG.normal(0, 0.1, 30)])
TABLE = {"age": X[:, 0], "dose": X[:, 1], "y": 0.2 * X[:, 0] + 5 * X[:, 1] + RNG.normal(0, 1, 30)}
PRIORS = {"w[age]": "Normal(0, 0.05)", "w[(intercept)]": "Normal(mean=3, sd=2)"}


def test_a_weight_of_ridge_has_the_prior_that_it_is_given():
    data = bz.read(RIDGE, TABLE, target="y")
    model = bz.weight_priors(RIDGE(center=0.0, scale=(12.0, 0.1), tau=2.0, sigma=1.5, m0=0.0, s0=10.0), data, PRIORS)
    posterior = bz.fit(model, data, "exact", seed=1, groups=[])
    design = np.column_stack([np.ones(30), X])
    precision = np.diag(1 / np.array([2.0, 0.05, 2.0 / 0.1]) ** 2)  # the dose keeps 2 for a step of 0.1
    covariance = np.linalg.inv(design.T @ design / 1.5**2 + precision)
    mean = covariance @ (design.T @ TABLE["y"] / 1.5**2 + precision @ np.array([3.0, 0, 0]))
    summary = bz.summarize(posterior)["w"]
    np.testing.assert_allclose(summary["mean"], mean, rtol=1e-8)
    np.testing.assert_allclose(summary["sd"], np.sqrt(np.diag(covariance)), rtol=1e-8)


def test_a_weight_of_a_regression_with_a_link_has_it_too():
    table = {**TABLE, "y": (TABLE["y"] > np.median(TABLE["y"])).astype(int)}
    data = bz.read(LOGISTIC, table, target="y")
    model = bz.weight_priors(LOGISTIC(center=(50.0, 0.0), scale=(12.0, 0.1), tau=2.5, s0=5.0), data, PRIORS)
    found = bz.summarize(bz.fit(model, data, "map", seed=1, groups=[]))["w"]["mean"]
    design, sign = np.column_stack([np.ones(30), X - [50.0, 0.0]]), 2 * table["y"] - 1
    sd, mean = np.array([2.0, 0.05, 25.0]), np.array([3.0, 0, 0])

    def loss(w):
        return np.sum(np.log1p(np.exp(-sign * (design @ w)))) + np.sum(((w - mean) / sd) ** 2) / 2

    np.testing.assert_allclose(found, optimize.minimize(loss, mean, tol=1e-12).x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("priors", "code"),
    [
        ({"w[weight]": "Normal(0, 1)"}, "unknown_name"),
        ({"age": "Normal(0, 1)"}, "unknown_name"),
        ({"w[age]": "Normal(1, 1)"}, "out_of_range"),
        ({"w[age]": "HalfNormal(1)"}, "wrong_type"),
    ],
)
def test_what_is_no_prior_of_a_weight_is_refused(priors, code):
    data = bz.read(RIDGE, TABLE, target="y")
    with raises(bz.InputError, code):
        bz.weight_priors(RIDGE(scale=1.0), data, priors)


def test_models_without_normal_weights_are_refused():
    data = bz.read(bz.find("bayesian_lasso"), TABLE, target="y")
    with raises(bz.InputError, "no_outer_parameters"):
        bz.weight_priors(bz.find("bayesian_lasso")(scale=1.0), data, PRIORS)


def test_the_command_names_weights_by_their_levels(run, written):
    file = written("colour,y\nred,1\nblue,3\nred,2\nblue,5\n", "colours.csv")
    options = ("--target", "y", "--levels", "colour=red,blue", "--method", "exact", "--seed", "1")
    code, out, err = run("fit", "ridge", file, *options, "--prior", "w[colour[blue]]=Normal(0, 1e-6)", "--json")
    assert code == 0, err
    assert abs(json.loads(out)["parameters"]["w"]["mean"][1]) < 1e-5
    assert run("fit", "ridge", file, *options, "--prior", "w[colour[green]]=Normal(0, 1)")[0] == 2
