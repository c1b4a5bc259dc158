"""Bias and variance: enumeration of pairs, the hat matrix, scikit-learn's ridge on its own training sets, pictures."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge as Penalized
from sklearn.preprocessing import PolynomialFeatures

import bayeszoo as bz
from bayeszoo.comparison.bias_variance import COLUMNS, spread, squared_bias

RIDGE, LINEAR = bz.find("ridge"), bz.find("linear_regression")
POINTS = np.linspace(-1, 1, 21)
SIGMA, TAU, S0 = 0.4, 0.7, 3.0
MODEL = RIDGE(sigma=SIGMA, tau=TAU, s0=S0)


def truth(x):
    return np.sin(3 * x)


def powers(x, degree):
    return np.vander(x, degree + 1, increasing=True)


def z(found, column, expected):
    return (found[column] - expected) / found[f"{column}_mcse"]


@pytest.fixture(scope="module")
def fixed():
    """Polynomials on the same twelve points in every training set."""
    design = np.linspace(-1, 1, 12)
    models = bz.polynomials(MODEL, [0, 1, 3, 6])
    found = bz.bias_variance(truth, models, POINTS, sigma=SIGMA, rows=design, seed=3, repeats=400)
    return design, found.set_index(["model", "estimate"])


# Estimates from predictions


def test_squared_bias_is_the_mean_over_pairs():
    errors = np.random.default_rng(1).normal(0.3, 1.0, (7, 3))
    pairs = [np.mean(errors[r] * errors[s]) for r in range(7) for s in range(7) if r != s]
    assert squared_bias(errors)[0] == pytest.approx(np.mean(pairs), rel=1e-12)


def test_its_error_is_the_jackknife_s():
    errors = np.random.default_rng(2).normal(0.3, 1.0, (9, 4))
    without = [squared_bias(np.delete(errors, r, axis=0))[0] for r in range(9)]
    expected = math.sqrt(8 / 9 * np.sum(np.square(without - np.mean(without))))
    assert squared_bias(errors)[1] == pytest.approx(expected, rel=1e-12)


def test_bias_and_variance_add_up_to_the_squared_error():
    errors = np.random.default_rng(3).normal(0.3, 1.0, (20, 4))
    assert squared_bias(errors)[0] + spread(errors)[0] == pytest.approx(np.mean(np.square(errors)), rel=1e-12)


@pytest.mark.parametrize(("bias", "too_large"), [(0.0, math.sqrt(2)), (5.0, 1.0)])
def test_both_are_unbiased_with_errors_that_are_right(bias, too_large):
    rng = np.random.default_rng(4)
    root = rng.normal(size=(3, 3))
    draws = [bias + rng.standard_normal((20, 3)) @ root for _ in range(2000)]
    variance = np.trace(root.T @ root) / 3
    for estimate, expected, inflation in ((squared_bias, bias**2, too_large), (spread, variance, 1.0)):
        values, errors = np.array([estimate(one) for one in draws]).T
        assert abs(values.mean() - expected) < 4 * values.std() / math.sqrt(len(draws))
        assert math.sqrt(np.mean(np.square(errors))) == pytest.approx(values.std() * inflation, rel=0.15)


def test_the_squared_error_of_the_mean_prediction_is_seen_to_be_biased():
    """A seeded bug: not to subtract the variance of the mean."""
    rng = np.random.default_rng(5)
    plain = np.array([np.mean(np.square(rng.standard_normal((20, 3)).mean(axis=0))) for _ in range(2000)])
    assert plain.mean() > 8 * plain.std() / math.sqrt(len(plain))


# Closed forms and other people's code


def test_fixed_design_is_the_hat_matrix(fixed):
    design, found = fixed
    for degree in (0, 1, 3, 6):
        phi, new = powers(design, degree), powers(POINTS, degree)
        prior = np.diag(SIGMA**2 / np.array([S0**2] + [TAU**2] * degree))
        for estimate, penalty in (("mle", 0 * prior), ("map", prior), ("posterior mean", prior)):
            smoother = new @ np.linalg.solve(phi.T @ phi + penalty, phi.T)
            bias2 = np.mean(np.square(smoother @ truth(design) - truth(POINTS)))
            variance = SIGMA**2 * np.mean(np.sum(np.square(smoother), axis=1))
            row = found.loc[(f"degree {degree}", estimate)]
            assert row["from"] == "simulation"
            assert abs(z(row, "bias2", bias2)) < 4
            assert abs(z(row, "variance", variance)) < 4
            assert abs(z(row, "expected_error", bias2 + variance + SIGMA**2)) < 4
            assert abs(z(row, "test_error", bias2 + variance + SIGMA**2)) < 4


def test_the_oracle_sees_a_wrong_penalty(fixed):
    design, found = fixed
    phi, new = powers(design, 6), powers(POINTS, 6)
    smoother = new @ np.linalg.solve(phi.T @ phi + SIGMA / TAU * np.eye(7), phi.T)  # not squared
    bias2 = np.mean(np.square(smoother @ truth(design) - truth(POINTS)))
    assert abs(z(found.loc[("degree 6", "map")], "bias2", bias2)) > 10


def test_the_parts_add_up_to_the_measured_test_error(fixed):
    _, found = fixed
    total = found["bias2"] + found["variance"] + found["noise"]
    assert found["expected_error"].to_numpy() == pytest.approx(total.to_numpy(), rel=1e-12)
    assert found["noise"].to_numpy() == pytest.approx(SIGMA**2)
    assert (np.abs(found["test_error"] - total) < 4 * found["test_error_mcse"]).all()
    without = found["bias2"] + found["variance"]  # a seeded bug: the noise is forgotten
    assert (np.abs(found["test_error"] - without) > 20 * found["test_error_mcse"]).all()


def test_mode_and_mean_of_a_gaussian_posterior_predict_alike(fixed):
    _, found = fixed
    numbers = [name for name in found.columns if name != "from"]
    modes, means = (found.xs(name, level="estimate")[numbers] for name in ("map", "posterior mean"))
    assert modes.to_numpy() == pytest.approx(means.to_numpy(), rel=1e-9)


def test_more_flexible_models_have_less_bias_and_more_variance(fixed):
    _, found = fixed
    least_squares = found.xs("mle", level="estimate")
    assert least_squares["bias2"].is_monotonic_decreasing
    assert least_squares["variance"].is_monotonic_increasing


def test_random_designs_agree_with_scikit_learn():
    degree, rows, repeats = 3, 15, 400
    model = RIDGE(sigma=SIGMA, tau=TAU, intercept=False, degree=degree)
    found = bz.bias_variance(truth, model, POINTS, sigma=SIGMA, rows=rows, seed=5, repeats=repeats)
    row = found.set_index("estimate").loc["map"]
    rng = np.random.default_rng(6)
    basis = PolynomialFeatures(degree, include_bias=False)
    predictions = []
    for _ in range(repeats):
        x = rng.choice(POINTS, rows)
        peer = Penalized(alpha=(SIGMA / TAU) ** 2, fit_intercept=False)
        peer.fit(basis.fit_transform(x[:, None]), truth(x) + SIGMA * rng.standard_normal(rows))
        predictions.append(peer.predict(basis.fit_transform(POINTS[:, None])))
    errors = np.array(predictions) - truth(POINTS)
    variance = np.mean(np.var(errors, axis=0, ddof=1))
    assert abs(row["variance"] - variance) < 4 * math.sqrt(2) * row["variance_mcse"]
    bias2 = np.mean(np.square(errors.mean(axis=0))) - variance / repeats
    assert abs(row["bias2"] - bias2) < 4 * math.sqrt(2) * row["bias2_mcse"]
    assert (found["model"] == str(model)).all()


def test_several_features_and_unknown_noise():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(30, 2))
    plane = lambda x: 1 + x @ [2.0, -1.0]  # noqa: E731
    models = {"both": LINEAR(), "one": LINEAR(features=("x1",))}
    found = bz.bias_variance(plane, models, x, sigma=1.0, rows=x, seed=8, repeats=200)
    found = found[found["estimate"] == "mle"].set_index("model")
    assert abs(z(found.loc["both"], "bias2", 0.0)) < 4
    assert abs(z(found.loc["both"], "variance", 3 / 30)) < 4  # the trace of the hat matrix over n
    assert abs(z(found.loc["one"], "variance", 2 / 30)) < 4
    phi = np.column_stack([np.ones(30), x[:, 0]])
    rest = plane(x) - phi @ np.linalg.lstsq(phi, plane(x))[0]
    assert abs(z(found.loc["one"], "bias2", np.mean(np.square(rest)))) < 4


def test_the_seed_is_the_only_source_of_randomness():
    first, again, other = (
        bz.bias_variance(truth, MODEL, POINTS, sigma=SIGMA, rows=9, seed=seed, repeats=200) for seed in (1, 1, 2)
    )
    assert first.equals(again)
    assert not first["variance"].equals(other["variance"])


# What is withheld


def test_estimates_that_do_not_exist_are_withheld():
    models = {"cubic": RIDGE(degree=3)}
    found = bz.bias_variance(truth, models, POINTS, sigma=SIGMA, rows=4, seed=1, repeats=200).set_index("estimate")
    assert found.loc["mle", "from"].startswith("withheld: no unique maximum-likelihood estimate")
    assert found.loc["mle", ["bias2", "variance", "expected_error", "test_error", "noise"]].isna().all()
    assert found.loc["map", "from"] == "simulation"


def test_errors_without_a_mean_are_withheld():
    x = np.random.default_rng(1).standard_normal(500)
    found = bz.bias_variance(truth, RIDGE(degree=5), x, sigma=SIGMA, rows=7, seed=1, repeats=400).set_index("estimate")
    assert found.loc["mle", "k_hat"] > 0.7
    assert found.loc["mle", "from"].startswith("withheld: k-hat ")
    assert np.isnan(found.loc["mle", "variance"])


def test_models_without_closed_forms_are_withheld():
    class Bare(LINEAR):
        map = None

    found = bz.bias_variance(truth, Bare(), POINTS, sigma=SIGMA, rows=9, seed=1, repeats=200).set_index("estimate")
    assert found.loc[["mle", "map"], "from"].tolist() == ["withheld: no closed form"] * 2
    assert found.loc["posterior mean", "from"] == "simulation"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"models": bz.find("beta_bernoulli")()}, "a model of an outcome and features is needed, got BetaBernoulli"),
        ({"models": [RIDGE]}, "a model of an outcome and features is needed, got the class Ridge"),
        ({"models": []}, "there are no models"),
        ({"models": RIDGE(features=("z",))}, "there is no feature 'z'; the data have 'x'"),
        ({"x": "points"}, "x must be an array of numbers, got str"),
        ({"x": [[[1.0]]]}, "x must have shape (points,) or (points, D) and finite entries, got (1, 1, 1)"),
        ({"x": [1.0, math.nan]}, "x must have shape (points,) or (points, D) and finite entries"),
        ({"truth": lambda x: 1.0}, "truth must return a finite number for each of the 21 points, got shape ()"),
        ({"truth": lambda x: np.full(len(x), np.inf)}, "truth must return a finite number for each of the 21 points"),
        ({"sigma": 0}, "sigma must be a finite number > 0, got 0"),
        ({"rows": 0}, "rows must be 1 or more, got 0"),
        ({"rows": np.ones((4, 2))}, "rows have 2 features, x has 1"),
        ({"repeats": 100}, "repeats must be a whole number >= 200, got 100"),
        ({"seed": None}, "seed must be a whole number >= 0, got None"),
    ],
)
def test_refusals(changed, message):
    given = {"truth": truth, "models": MODEL, "x": POINTS, "sigma": SIGMA, "rows": 9, "seed": 1, **changed}
    with pytest.raises(bz.InputError) as refused:
        bz.bias_variance(given.pop("truth"), given.pop("models"), given.pop("x"), **given)
    assert message in str(refused.value)


# Picture


def test_picture_against_a_penalty():
    penalties = [0.01, 1.0, 100.0]
    models = {penalty: RIDGE(degree=5, sigma=SIGMA, tau=SIGMA / math.sqrt(penalty)) for penalty in penalties}
    found = bz.bias_variance(truth, models, POINTS, sigma=SIGMA, rows=np.linspace(-1, 1, 9), seed=1, repeats=200)
    figure = bz.plot_bias_variance(found, label="lambda", log=True)
    assert [panel.get_title() for panel in figure.axes] == ["mle", "map", "posterior mean"]
    panel = figure.axes[1]
    assert (panel.get_xlabel(), panel.get_xscale()) == ("lambda", "log")
    drawn = {group.get_label(): group.lines[0] for group in panel.containers}
    assert drawn.keys() == {"squared bias", "variance", "expected error"}
    part = found[found["estimate"] == "map"]
    assert drawn["variance"].get_xdata().tolist() == penalties
    assert drawn["variance"].get_ydata() == pytest.approx(part["variance"].to_numpy())
    assert part["variance"].is_monotonic_decreasing
    assert part["bias2"].is_monotonic_increasing
    assert {text.get_text() for text in figure.legends[0].get_texts()} >= {"squared bias", "noise", "test error"}


def test_picture_marks_what_is_withheld_and_leaves_out_what_cannot_be():
    blank = dict.fromkeys(COLUMNS, math.nan)
    good = dict.fromkeys(COLUMNS, 0.1) | {"from": "simulation"}
    result = pd.DataFrame(
        [
            blank | {"model": "a", "estimate": "mle", "from": "withheld: k-hat 2"},
            good | {"model": "b", "estimate": "mle"},
            blank | {"model": "a", "estimate": "map", "from": "withheld: no closed form"},
            blank | {"model": "b", "estimate": "map", "from": "withheld: no closed form"},
        ]
    )
    (panel,) = bz.plot_bias_variance(result).axes
    assert [label.get_text() for label in panel.get_xticklabels()] == ["a", "b"]
    (lost,) = [line for line in panel.lines if line.get_label() == "withheld"]
    assert lost.get_xdata().tolist() == [0.0]
    figure = bz.plot_bias_variance(result, against={"a": 3, "b": 1}, label="degree")
    (lost,) = [line for line in figure.axes[0].lines if line.get_label() == "withheld"]
    assert lost.get_xdata().tolist() == [3.0]
    with pytest.raises(bz.InputError, match="against has no place for 'b'"):
        bz.plot_bias_variance(result, against={"a": 3})
    with pytest.raises(bz.InputError, match="a logarithmic axis needs places > 0"):
        bz.plot_bias_variance(result, log=True)
    with pytest.raises(bz.InputError, match="not one that bias_variance returned"):
        bz.plot_bias_variance(result.head(0))
