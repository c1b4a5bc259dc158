"""Logistic regression: published figures, scikit-learn; and where there is no maximum of the likelihood."""

import json

import numpy as np
import pytest
import scipy
from sklearn.linear_model import LogisticRegression as SklearnRegression
from sklearn.metrics import log_loss

import bayeszoo as bz
from bayeszoo.families.glm.existence import recession
from bayeszoo.families.glm.links import Logit
from bayeszoo.foundation.numerics import newton
from bayeszoo.likelihoods.ops.glm import glm_log_likelihood
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import document
from tests.refusals import raises

LOGISTIC = bz.find("logistic_regression")
DOSE, DEATHS = np.array([-0.86, -0.30, -0.05, 0.73]), [0, 1, 3, 5]
BIOASSAY = (np.repeat(DOSE, 5)[:, None], np.concatenate([[1] * k + [0] * (5 - k) for k in DEATHS]))


def rows(n=200, terms=3, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, terms))
    return X, rng.binomial(1, scipy.special.expit(0.3 + X @ rng.standard_normal(terms)))


def estimate(data, method="map", model=None):
    tree = bz.fit(model or LOGISTIC(), data, method, seed=1)
    assert tree.attrs["status"] == "ok", tree.attrs["gate"]
    return tree.posterior["w"].to_numpy()[0, 0]


def curvature_sd(data, w):
    """Standard errors by the expected information, by hand."""
    X = np.column_stack([np.ones(len(data[0])), data[0]])
    p = scipy.special.expit(X @ w)
    return np.sqrt(np.diag(np.linalg.inv(X.T @ (X * (p * (1 - p))[:, None]))))


def test_mle_of_the_bioassay_is_as_published():
    w = estimate(BIOASSAY, "mle")
    np.testing.assert_allclose(np.round(w, 1), [0.8, 7.7])
    np.testing.assert_allclose(np.round(curvature_sd(BIOASSAY, w), 1), [1.0, 4.9])


def test_mle_of_the_challenger_is_as_published():
    data = bz.example(LOGISTIC, "challenger")
    w = estimate(data, "mle")
    np.testing.assert_allclose(w, [15.0429, -0.2322], atol=5e-5)
    np.testing.assert_allclose(curvature_sd((data["X"], data["y"]), w), [7.379, 0.108], atol=5e-4)


def test_mle_is_that_of_scikit_learn():
    X, y = rows()
    oracle = SklearnRegression(C=np.inf, tol=1e-12, max_iter=1000, solver="newton-cholesky").fit(X, y)
    tree = bz.fit(LOGISTIC(), (X, y), "mle", seed=1)
    w, facts = tree.posterior["w"].to_numpy()[0, 0], json.loads(tree.attrs["facts"])
    np.testing.assert_allclose(w, np.append(oracle.intercept_, oracle.coef_), rtol=1e-7)
    np.testing.assert_allclose(facts["log_likelihood"], -log_loss(y, oracle.predict_proba(X), normalize=False))


@pytest.mark.parametrize("tau", [0.3, 3.0])
def test_map_is_ridge_regression_of_scikit_learn(tau):
    X, y = rows()
    oracle = SklearnRegression(C=tau**2, tol=1e-12, max_iter=1000, solver="newton-cholesky").fit(X, y)
    w = estimate((X, y), model=LOGISTIC(tau=tau, s0=1e6))
    np.testing.assert_allclose(w, np.append(oracle.intercept_, oracle.coef_), rtol=1e-6)


def test_priors_are_on_standardized_terms_and_weights_in_units_of_the_table():
    X, y = rows()
    plain = estimate((X, y), model=LOGISTIC(tau=0.5, s0=3))
    far = LOGISTIC(tau=0.5, s0=3, center=(100.0,) * 3, scale=(10.0, 0.1, 5.0))
    w = estimate((100 + X * far.scale, y), model=far)
    np.testing.assert_allclose(w * [1, *far.scale], plain, rtol=1e-9)


def trials(**more):
    return {"dose": DOSE, "deaths": DEATHS, "animals": [5] * 4, **more}


def read(table, **options):
    return bz.read(LOGISTIC, table, **options)


def test_successes_of_trials_are_the_ordered_rows():
    one_by_one, counted = read(BIOASSAY), read(trials(), successes="deaths", trials="animals")
    model = LOGISTIC()
    fits = [bz.fit(model, data, "exact", seed=1) for data in (one_by_one, counted)]
    evidence = [fit["exact"].attrs["log_evidence"] for fit in fits]
    assert evidence == pytest.approx([-9.79716] * 2, abs=5e-6)
    np.testing.assert_allclose(fits[0]["exact"]["w"], fits[1]["exact"]["w"], rtol=1e-5)
    points = [
        float(json.loads(bz.fit(model, d, "map", seed=1).attrs["facts"])["log_joint"]) for d in (one_by_one, counted)
    ]
    assert points[0] == pytest.approx(points[1], rel=1e-12)
    laplace = json.loads(bz.fit(model, counted, "laplace", seed=1, draws=10).attrs["facts"])["log_evidence"]
    assert laplace == pytest.approx(-9.8447, abs=5e-5)


def test_exact_moments_are_those_of_a_plain_grid():
    tree = bz.fit(LOGISTIC(), BIOASSAY, "exact", seed=1)
    grid = np.stack(np.meshgrid(np.linspace(-10, 12, 700), np.linspace(-15, 60, 900), indexing="ij"), -1).reshape(-1, 2)
    eta = grid[:, :1] + grid[:, 1:] * DOSE
    heights = np.sum(np.array(DEATHS) * eta - 5 * np.logaddexp(0, eta), axis=1) - np.sum(grid**2, axis=1) / 200
    weight = scipy.special.softmax(heights)
    mean = weight @ grid
    sd = np.sqrt(weight @ (grid - mean) ** 2)
    np.testing.assert_allclose(tree["exact"]["w"].sel(statistic=["mean", "sd"]), [mean, sd], rtol=1e-4)
    draws = tree.posterior["w"].to_numpy().reshape(-1, 2)
    expected = weight @ ((grid[:, 0] - mean[0]) * (grid[:, 1] - mean[1])) / np.prod(sd)
    assert np.corrcoef(draws.T)[0, 1] == pytest.approx(expected, abs=0.05)


def test_exact_answers_are_of_one_or_two_weights():
    with raises(bz.NumericalError, "integration_failed", "2", "4"):
        bz.fit(LOGISTIC(), rows(), "exact", seed=1)
    slope = bz.fit(LOGISTIC(intercept=False, tau=2.0), (BIOASSAY[0], BIOASSAY[1]), "exact", seed=1)
    x, y = BIOASSAY[0][:, 0], BIOASSAY[1]

    def density(w):
        return np.exp(np.sum(y * x * w - np.logaddexp(0, x * w)) + scipy.stats.norm.logpdf(w, 0, 2))

    assert slope["exact"].attrs["log_evidence"] == pytest.approx(np.log(scipy.integrate.quad(density, -25, 25)[0]))


@pytest.mark.parametrize(
    ("table", "options", "line"),
    [
        (
            trials(animals=[5, 5, 2, 5]),
            {"successes": "deaths", "trials": "animals"},
            ("successes_above_trials", "2"),
        ),
        (trials(), {"successes": "deaths"}, ("options_go_together",)),
        (trials(), {"target": "deaths", "features": ["dose"]}, ("not_binary", "0", "1")),
        (trials(animals=[5, 5.5, 5, 5]), {"successes": "deaths", "trials": "animals"}, ("not_whole",)),
        (trials(), {"successes": "deaths", "trials": "animals", "positive": "1"}, ("conflicting_options", "positive")),
    ],
)
def test_trials_that_are_refused(table, options, line):
    with raises(bz.InputError, *line):
        read(table, **options)


def test_trials_are_recognized_dropped_with_their_rows_and_kept_in_a_table():
    data = read({"x": [1.0, np.nan, 3], "successes": [1, 2, 3], "trials": [4, 5, 6]}, missing="drop")
    assert (data["y"].tolist(), data["trials"].tolist(), data["feature"].tolist()) == ([1, 3], [4, 6], ["x"])
    inputs = LOGISTIC.inputs
    again = read(inputs.table(data), **inputs.reading(data))
    assert all(np.array_equal(again[name], data[name]) for name in data)


def test_new_rows_are_predicted_with_their_trials_or_one():
    tree = bz.fit(LOGISTIC(), read(trials(), successes="deaths", trials="animals"), "exact", seed=1)
    chance = bz.predict(tree, {"dose": [0.73]})["mean"].to_numpy()
    ten = bz.predict(tree, {"dose": [0.73], "animals": [10]})["mean"].to_numpy()
    assert 0.9 < chance[0] < 1
    np.testing.assert_allclose(ten, 10 * chance, rtol=0.02)


def test_the_median_lethal_dose_has_quantiles_and_no_mean():
    tree = bz.fit(LOGISTIC(), BIOASSAY, "exact", seed=1)
    shown = document(Fit(tree))["derived"]["even_odds"]
    assert shown["mean"] is None or np.isnan(shown["mean"])
    assert -0.4 < shown["q025"] < shown["median"] < shown["q975"] < 0.3
    w = tree.posterior["w"].to_numpy()
    np.testing.assert_allclose(tree["derived"]["even_odds"], -w[..., 0] / w[..., 1])
    centred = LOGISTIC(center=5.0)
    np.testing.assert_allclose(centred.derived({"w": np.array([1.0, 2.0])})["even_odds"], 4.5)


def test_without_any_slope_there_is_no_place_of_even_odds():
    assert list(LOGISTIC().derived({"w": np.zeros(2)})) == ["odds_ratio"]


# Where there is no maximum of the likelihood


def iris(species):
    table = np.genfromtxt("models/data/iris.csv", delimiter=",", skip_header=1, usecols=range(4))
    return {
        "y": (np.repeat(["setosa", "versicolor", "virginica"], 50) == species).astype(int),
        **dict(zip(["sl", "sw", "pl", "pw"], table.T, strict=True)),
    }


def refused(data, method="mle"):
    with pytest.raises(bz.NumericalError) as error:
        bz.fit(LOGISTIC(), data, method, seed=1)
    return str(error.value)


def test_complete_separation_is_refused_with_the_combination_that_separates():
    data = iris("setosa")
    line = refused(data)
    assert "separates the outcomes completely" in line
    assert "map and nuts" in line
    named = line.split("estimate: ")[1].split(" separates")[0].split()
    weights, sign = {}, 1.0
    for word in named:
        if word in "+-":
            sign = -1.0 if word == "-" else 1.0
        elif word in data:
            weights[word], sign = sign, 1.0
        else:
            sign *= float(word)
    score = sum(weight * np.asarray(data[name]) for name, weight in weights.items())
    assert score[:50].min() > score[50:].max()
    estimate(data)  # a prior keeps the weights finite


def test_quasi_separation_is_refused_and_told_from_the_complete():
    y, x = [0, 0, 0, 1, 0, 1, 1], [1.0, 2, 3, 3, 3, 4, 5]
    assert "x separates the outcomes but for ties" in refused({"y": y, "x": x})
    assert np.isfinite(estimate({"y": y, "x": x})).all()


def test_overlapping_classes_have_a_maximum():
    assert np.isfinite(estimate(iris("versicolor"), "mle")).all()


def test_linear_program_agrees_with_whether_newton_runs_away():
    rng, seen = np.random.default_rng(3), set()
    for _ in range(60):
        X = np.column_stack([np.ones(8), rng.integers(-2, 3, (8, 2))])
        y = rng.integers(0, 2, 8)
        direction = recession(X, *Logit().recedes(y, np.ones(8)))
        if direction is not None:
            moved = np.where(y == 1, 1, -1) * (X @ direction.direction)
            assert moved.min() > -1e-8
            assert moved.max() > 1e-4
            assert not direction.is_complete or is_separable(X, y)
            seen.add(direction.is_complete)
        else:  # a point where the slope is 0 and the curvature is not
            gradient = lambda w: X.T @ (y - scipy.special.expit(X @ w))  # noqa: B023, E731
            root = scipy.optimize.root(gradient, np.zeros(3), tol=1e-12)
            if np.linalg.matrix_rank(X) == 3:
                assert np.max(np.abs(gradient(root.x))) < 1e-9
            seen.add(None)
    assert seen == {True, False, None}


def is_separable(X, y):
    signed = np.where(y == 1, 1, -1)[:, None] * X
    return scipy.optimize.linprog(np.zeros(3), -signed, -np.ones(len(X)), bounds=[(None, None)] * 3).status == 0


def test_aliased_columns_have_no_single_maximum_but_a_mode_and_identified_sums():
    X, y = rows()
    twice = {"y": y, "a": X[:, 0], "b": 2 * X[:, 0]}
    assert "identify 2 of 3 combinations of weights; bz.identified names them" in refused(twice)
    w = estimate(twice)
    np.testing.assert_allclose(w[2], 2 * w[1], rtol=1e-9)
    assert list(bz.identified(LOGISTIC(), twice).index) == ["w[(intercept)]", "w[a] + 2 w[b]"]


def test_outcomes_that_are_all_alike():
    data = {"y": [1, 1, 1, 1], "x": [1.0, 2, 3, 4]}
    assert "all outcomes are alike" in refused(data)
    assert estimate(data)[0] > 0


def test_one_row_in_a_class():
    rng = np.random.default_rng(1)
    data = {"y": [1] + [0] * 30, "x": [0.0, *rng.standard_normal(30)]}
    assert np.isfinite(estimate(data, "mle")).all()


def test_more_features_than_rows():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((15, 40)), np.arange(15) % 2
    oracle = SklearnRegression(C=1.0, tol=1e-12, max_iter=5000).fit(X, y)
    w = estimate((X, y), model=LOGISTIC(tau=1.0, s0=1e5))
    np.testing.assert_allclose(w[1:], oracle.coef_[0], atol=2e-5)


def test_no_number_overflows_a_thousand_standard_deviations_out():
    X, y = rows()
    X = X.copy()
    X[0] = 1e3
    model, w = LOGISTIC(), np.array([0.5, 3.0, 3.0, 3.0])
    data = bz.read(model, (X, 1 - y))
    heights = model.likelihood({"w": w}, data).logpmf(data["y"])
    assert heights[0] == pytest.approx(-(0.5 + 9e3) if data["y"][0] == 0 else 0.0)
    assert np.isfinite(estimate(data)).all()
    eta = np.array([-1e4, -800.0, -40.0, 0.0, 40.0, 800.0, 1e4])
    one, zero = (Logit().terms(eta, np.full(7, k), np.ones(7)) for k in (1.0, 0.0))
    np.testing.assert_allclose(one.value, -np.logaddexp(0, -eta))
    np.testing.assert_allclose(zero.value, -np.logaddexp(0, eta))
    assert all(np.isfinite(each).all() for each in (*one, *zero))


# The engine, and the compiled likelihood


def test_derivatives_are_those_of_finite_differences():
    model = LOGISTIC(tau=2.0)
    concave = model.concave(bz.read(model, rows(40)))
    u, step = np.array([0.3, -0.2, 0.5, 0.1]), 1e-5
    there = concave.joint(u)
    moved = [(concave.joint(u + h), concave.joint(u - h)) for h in step * np.eye(4)]
    np.testing.assert_allclose(there.gradient, [(a.value - b.value) / (2 * step) for a, b in moved], rtol=1e-7)
    np.testing.assert_allclose(there.curvature, [(b.gradient - a.gradient) / (2 * step) for a, b in moved], rtol=1e-7)


def test_newton_says_that_a_flat_density_has_no_single_maximum():
    flat = newton.Derivatives(0.0, np.array([1.0, 0.0]), np.diag([1.0, 0.0]))
    with raises(bz.NumericalError, "no_maximum"):
        newton.climb(lambda u: flat, np.zeros(2))


def test_certificate_fails_off_the_maximum_and_where_the_curvature_is_none():
    hill = lambda u: newton.Derivatives(-float(u @ u) / 2, -u, np.eye(2))  # noqa: E731
    assert all(check.passed for check in newton.climb(hill, np.ones(2)).certificate())
    off = newton.Peak(np.full(2, 1e-6), hill(np.full(2, 1e-6)), np.zeros(1))
    ridge = newton.Peak(np.zeros(2), newton.Derivatives(0.0, np.zeros(2), np.ones((2, 2))), np.zeros(1))
    assert [check.passed for check in off.certificate()] == [False, True]
    assert [check.passed for check in ridge.certificate()] == [True, False]


def test_newton_halves_steps_that_overshoot():
    """log cosh is concave with a minus; from 3 a full step lands a hundred times as far on the other side."""
    steep = lambda u: newton.Derivatives(  # noqa: E731
        -float(np.log(np.cosh(u[0]))), -np.tanh(u), np.array([[1 / np.cosh(u[0]) ** 2]])
    )
    assert newton.climb(steep, np.array([3.0])).x == pytest.approx(0.0, abs=1e-9)


def test_compiled_likelihood_is_the_sum_over_rows_and_its_gradient():
    rng = np.random.default_rng(1)
    X, w, trials = rng.standard_normal((30, 3)), rng.standard_normal(3) * 5, rng.integers(1, 6, 30)
    y = rng.binomial(trials, 0.5)
    op = glm_log_likelihood(w, X, y, trials, Logit.code).owner.op
    value, gradient = op.interpreted(w, X, y.astype(float), trials.astype(float), np.array([Logit.code]))
    terms = Logit().terms(X @ w, y, trials)
    np.testing.assert_allclose(value, terms.value.sum(), rtol=1e-13)
    np.testing.assert_allclose(gradient, X.T @ terms.slope, rtol=1e-11)
