"""The path of the lasso against scikit-learn's, and its picture."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import lasso_path as sklearn_path

import bayeszoo as bz

LASSO = bz.find("bayesian_lasso")
DIABETES = bz.example(LASSO)
MODEL = LASSO.weak(DIABETES)
TERMS = DIABETES["feature"].tolist()


def test_the_path_is_scikit_learns():
    path = bz.lasso_path(MODEL, DIABETES, points=25)
    standard = (DIABETES["X"] - DIABETES["X"].mean(axis=0)) / DIABETES["X"].std(axis=0, ddof=1)
    alphas = path["alpha"].to_numpy()
    _, weights, _ = sklearn_path(
        standard, DIABETES["y"] - DIABETES["y"].mean(), alphas=alphas, tol=1e-13, max_iter=10**6
    )
    assert np.allclose(path[TERMS].to_numpy() * MODEL.scale, weights.T, atol=1e-6)
    assert (path["violation"] <= 1e-6).all()
    assert np.allclose(path["(intercept)"], DIABETES["y"].mean())


def test_it_begins_where_the_first_weight_leaves_zero():
    path = bz.lasso_path(MODEL, DIABETES, points=10)
    assert (path[TERMS].iloc[0] == 0).all()
    beyond = bz.lasso_path(MODEL, DIABETES, b=[path.index[0] * 1.001])
    assert (beyond[TERMS].to_numpy() != 0).sum() == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bz.lasso_path(bz.find("ridge")()), "a path needs a bayesian_lasso with known noise"),
        (lambda: bz.lasso_path(replace(MODEL, learn_sigma=True)), "a path needs a bayesian_lasso with known noise"),
        (lambda: bz.lasso_path(MODEL, b=[1.0, 0.0]), "prior scales b must be positive numbers"),
        (lambda: bz.lasso_path(MODEL, points=1), "points must be a whole number >= 2, got 1"),
    ],
)
def test_wrong_calls_are_named(call, message):
    with pytest.raises(bz.InputError, match=message):
        call()


def test_an_outcome_without_features_has_no_path():
    data = bz.read(LASSO, {"y": [1.0, 1.0, 1.0], "x": [1.0, 2.0, 4.0]})
    with pytest.raises(bz.NumericalError, match="all weights are 0 at any prior scale"):
        bz.lasso_path(LASSO.weak(data), data)


def test_the_picture_has_a_line_for_each_weight():
    figure = bz.plot_lasso_path(bz.lasso_path(MODEL, DIABETES, points=5))
    (axes,) = figure.axes
    assert [line.get_label() for line in axes.get_lines()[:10]] == TERMS
    assert axes.get_xscale() == "log"
    assert axes.get_xlabel() == "prior scale b"
