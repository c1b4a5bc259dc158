"""Slopes, effects and R2 of linear models: against predictions of the same rows, and ArviZ; and overlaid pictures."""

import re

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from arviz_stats import bayesian_r2

import bayeszoo as bz
from bayeszoo.answers.effects import effects
from bayeszoo.plots import drawable
from bayeszoo.plots.families.effects import explained, plot_effects, plot_slopes, slopes
from bayeszoo.report import provenance
from bayeszoo.report.families import screens
from bayeszoo.results.stored import Fit
from tests.refusals import raises

LINEAR = bz.find("linear_regression")


@pytest.fixture(scope="module")
def linear():
    rng = np.random.default_rng(0)
    table = {"age": rng.normal(50, 10, 40), "$sex": np.repeat([1.0, 2.0], 20), "dose": rng.uniform(0, 0.01, 40)}
    outcome = 20 + 0.1 * table["age"] + 3 * table["$sex"] + 500 * table["dose"] + rng.normal(0, 1, 40)
    data = bz.read(LINEAR, {**table, "pain": outcome}, target="pain")
    return bz.fit(LINEAR.weak(data), data, "exact", seed=1)


def test_slopes_are_of_one_standard_deviation_or_between_two_values_and_the_largest_comes_first(linear):
    found, data = slopes(Fit(linear)), Fit(linear).data
    weights = linear["exact"]["w"].sel(term=list(found.index))
    sd = {name: data["X"][:, i].std() for i, name in enumerate(data["feature"])} | {"$sex": 1.0}
    for statistic in ("mean", "q025", "q975"):
        expected = [sd[term] * weights.sel(term=term, statistic=statistic).item() for term in found.index]
        assert found[statistic].tolist() == pytest.approx(expected, rel=1e-12)
    assert set(found.index) == set(sd)  # the intercept is no slope
    assert found["mean"].abs().is_monotonic_decreasing
    point = slopes(Fit(bz.fit(LINEAR.weak(data), data, "map", seed=1)))
    assert point["mean"].notna().all()
    assert point[["q025", "q975"]].isna().all(axis=None)


def test_effects_are_predictions_with_the_other_features_at_their_means(linear):
    found, data = effects(Fit(linear)), Fit(linear).data
    assert found.loc["$sex"].index.tolist() == [1.0, 2.0]
    for i, name in enumerate(data["feature"]):
        effect = found.loc[name]
        rows = np.tile(data["X"].mean(axis=0), (len(effect), 1))
        rows[:, i] = effect.index
        predicted = bz.predict(linear, {"X": rows, "feature": data["feature"]})["mean"].to_numpy()
        width = (effect["q975"] - effect["q025"]).to_numpy()
        assert np.all(np.abs(effect["mean"].to_numpy() - predicted) < 0.05 * width)
        assert np.all((effect["q025"] < predicted) & (predicted < effect["q975"]))


def test_effects_of_a_link_are_probabilities_and_slopes_are_of_the_log_odds():
    logistic = bz.find("logistic_regression")
    tree = bz.fit(logistic(), bz.example(logistic, "challenger"), "mle", seed=1)  # 15.0429 - 0.2322 temperature
    found = effects(Fit(tree)).loc["temperature"]
    expected = 1 / (1 + np.exp(-(15.042902 - 0.232163 * found.index.to_numpy())))
    np.testing.assert_allclose(found["mean"], expected, atol=1e-5)
    figure = plot_effects(tree)
    assert figure.get_supylabel() == "probability of distress"
    (axes,) = plot_slopes([tree]).axes
    assert axes.get_xlabel() == "log odds of distress, for one sd or between two values"
    sd = Fit(tree).data["X"].std()
    assert slopes(Fit(tree)).loc["temperature", "mean"] == pytest.approx(-0.232163 * sd, abs=1e-5)


def test_the_share_explained_is_arvizs(linear):
    tree, data = linear.copy(), Fit(linear).data
    w, sigma2 = (linear["posterior"][name] for name in ("w", "sigma2"))
    mu = np.asarray(w) @ Fit(linear).model.design(data).T
    tree["posterior"] = tree["posterior"].to_dataset().assign(mu=(("chain", "draw", "row"), mu), variance=sigma2)
    drawn = bayesian_r2(tree, "mu", "variance", scale_kind="var", summary=False)
    found = explained(Fit(linear))
    assert found["mean"] == pytest.approx(drawn.mean(), rel=1e-10)
    assert [found["q025"], found["q975"]] == pytest.approx(np.quantile(drawn, [0.025, 0.975]).tolist(), rel=1e-10)


def test_the_pictures_show_the_tables_with_names_as_they_are(linear):
    figure = plot_slopes([linear, linear])
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == slopes(Fit(linear)).index.tolist()
    assert axes.get_xlabel() == "pain, for one sd or between two values"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["exact", "exact (2)"]
    panels = [axes for axes in plot_effects(linear).axes if axes.axison]
    assert {axes.get_xlabel() for axes in panels} == {"age", "$sex", "dose"}
    assert len({axes.get_ylim() for axes in panels}) == 1


def test_long_names_are_told_apart_and_effects_that_are_not_drawn_are_said():
    rng = np.random.default_rng(0)
    names = [f"share of households with attribute {j} in the municipality, per cent" for j in range(26)]
    table = dict(zip(names, rng.normal(size=(26, 40)), strict=True)) | {"y": rng.normal(size=40)}
    data = bz.read(LINEAR, table, target="y")
    tree = bz.fit(LINEAR.weak(data), data, "exact", seed=1)
    shown = [text.get_text() for text in plot_slopes([tree]).axes[0].get_yticklabels()]
    assert [" ".join(name.split()) for name in shown] == slopes(Fit(tree)).index[:24].tolist()
    (name, other) = names[3], names[20]
    assert [axes.get_xlabel().replace("\n", " ") for axes in plot_effects(tree, [name, other]).axes] == [name, other]
    with raises(bz.InputError, "unknown_name", "'age'"):
        plot_effects(tree, ["age"])
    assert provenance.data_line(Fit(tree)) == f"40 rows of dict; outcome y; features {names[0]} and 25 more"
    answer = screens.answer([Fit(tree)], [])
    assert "the 24 largest of 26" in answer.beside[0].caption
    assert "The 12 features of 26 with the greatest effects" in answer.below[0].caption


def test_the_answer_of_a_regression_is_its_slopes_effects_and_share(linear):
    answer = screens.answer([Fit(linear)], [])
    assert [block.kind for part in answer for block in part] == ["picture", "picture", "words"]
    assert re.fullmatch(r"R2, .*: 0\.\d\d \(95% interval .*\) by linear_regression\.", answer.under[0].text)
    failed, left_out = linear.copy(), []
    failed.attrs["status"] = "failed"
    assert [block.kind for block in screens.answer([Fit(failed)], left_out).beside] == ["skipped"]
    assert "slopes of all fits are withheld" in left_out[0].reason


def test_a_name_of_two_meanings_is_not_overlaid(linear):
    data = Fit(linear).data
    ridge = bz.fit(bz.find("ridge").weak(data), data, "exact", seed=1)
    assert drawable.with_quantities(fits := [Fit(linear), Fit(ridge)], ["w[age]"]) == fits
    y = [1.2, 0.3, 2.2, 1.9, 0.7, 1.1, 1.6, 0.2, 2.4, 1.0]
    gauss = bz.fit(bz.find("normal_gamma")(), y, "exact", seed=1)
    student, known = gauss.copy(), bz.fit(bz.find("gaussian_mean")(), y, "exact", seed=1)
    student.attrs |= {"model": "student_t", "fields": "{}"}  # whose sigma is a scale
    assert drawable.with_quantities(fits := [Fit(gauss), Fit(student)], ["sigma"]) == fits[:1]
    assert drawable.with_quantities(fits := [Fit(gauss), Fit(known)], ["mu"]) == fits


@pytest.fixture(scope="module")
def crossed():
    """Return a table whose slope of x differs between groups and with z."""
    rng = np.random.default_rng(5)
    g, x, z = rng.choice(list("abc"), 90, p=[0.5, 0.3, 0.2]), rng.normal(40, 10, 90), rng.gamma(3, 2, 90)
    y = 0.2 * x - 0.3 * (g == "b") * (x - 40) + 0.05 * (x - 40) * z + rng.normal(0, 2, 90)
    return pd.DataFrame({"y": y, "x": x, "z": z, "g": g})


FORMULA = "y ~ x * g + x * z"


def of_formula(table, method, formula=FORMULA):
    data = bz.read(LINEAR, table, formula=formula)
    return bz.fit(LINEAR.weak(data), data, method, seed=1, groups=())


def rows_of_curve(curve, table):
    """Return the rows of a table at which a curve is drawn: x and z at their means, g averaged by the caller."""
    (feature,), (by,) = curve["feature"].unique(), curve["by"].unique()
    rows = pd.DataFrame({"x": table["x"].mean(), "z": table["z"].mean(), "g": "a"}, index=range(len(curve)))
    rows[feature] = curve["value"].tolist()
    at = curve["at"].iloc[0]
    level = {"10%": 0.1, "50%": 0.5, "90%": 0.9}.get(at.partition("(")[2].rstrip(")"))
    rows[by] = at if level is None else np.quantile(table[by], level)
    return rows


def averaged(predict, rows, table, curve):
    """Return predictions with each level of g in its share of the rows, unless g is what varies or is held."""
    if "g" in (curve["feature"].iloc[0], curve["by"].iloc[0]):
        return predict(rows)
    shares = table["g"].value_counts(normalize=True)
    return sum(share * predict(rows.assign(g=level)) for level, share in shares.items())


def test_effects_of_interactions_are_predictions_by_statsmodels(crossed):
    frame = bz.feature_effects(of_formula(crossed, "mle"))
    curves = dict(iter(frame.groupby(["feature", "by", "at"], sort=False)))
    assert {key[:2] for key in curves} == {("x", "g"), ("x", "z"), ("g", "x"), ("z", "x")}
    assert [at for feature, by, at in curves if (feature, by) == ("x", "g")] == ["a", "b", "c"]
    model = smf.ols(FORMULA, crossed).fit()
    for curve in curves.values():
        expected = averaged(model.predict, rows_of_curve(curve, crossed), crossed, curve)
        np.testing.assert_allclose(curve["mean"], expected, rtol=1e-6)
    swapped = averaged(model.predict, rows_of_curve(curves["x", "g", "a"], crossed), crossed, curves["x", "g", "a"])
    assert not np.allclose(curves["x", "g", "b"]["mean"], swapped, rtol=0.05)


def test_effects_of_interactions_are_predictions_within_their_errors(crossed):
    tree = of_formula(crossed, "exact")
    frame = bz.feature_effects(tree)
    for (_, by, _), curve in frame.groupby(["feature", "by", "at"], sort=False):
        if by == "g" or curve["feature"].iloc[0] == "g":
            predicted = bz.predict(tree, rows_of_curve(curve, crossed))["mean"].to_numpy()
            assert (abs(curve["mean"] - predicted) < 4.5 * curve["mcse_mean"]).all()
            assert ((curve["q025"] < predicted) & (predicted < curve["q975"])).all()


def test_the_picture_of_an_interaction_has_a_curve_for_each_level(crossed):
    tree = of_formula(crossed, "exact", "y ~ x * g + z")
    panels = {axes.get_xlabel(): axes for axes in plot_effects(tree).axes if axes.axison}
    assert set(panels) == {"x", "g", "z"}
    lines = panels["x"].lines
    assert [line.get_label() for line in lines] == ["a", "b", "c"]
    assert len({line.get_color() for line in lines}) == len(panels["x"].collections) == 3
    assert panels["x"].get_legend().get_title().get_text() == "g"
    frame = bz.feature_effects(tree)
    of_b = frame[(frame["feature"] == "x") & (frame["at"] == "b")]
    np.testing.assert_allclose(lines[1].get_ydata(), of_b["mean"])
    assert panels["z"].get_legend() is None
    assert [axes.get_xlabel() for axes in plot_effects(tree, ["g"]).axes if axes.axison] == ["g"]


def test_an_interaction_with_many_levels_has_curves_of_those_with_most_rows():
    rng = np.random.default_rng(1)
    g = np.repeat(list("abcdefghij"), [3, 9, 3, 9, 9, 3, 9, 9, 9, 3])
    table = pd.DataFrame({"y": rng.normal(size=66), "x": rng.normal(size=66), "g": g})
    frame = bz.feature_effects(of_formula(table, "mle", "y ~ x * g"))
    assert frame.loc[frame["feature"] == "x", "at"].unique().tolist() == list("bdeghi")


def test_the_command_prints_and_draws_effects_of_interactions(crossed, run, tmp_path):
    table, fit, rows, plot = (tmp_path / name for name in ("t.csv", "fit.nc", "rows.csv", "plot.svg"))
    crossed.to_csv(table, index=False)
    arguments = ("--formula", "y ~ x * g", "--method", "mle", "-o", fit)
    assert run("fit", "linear_regression", table, *arguments)[0] == 0
    code, out, _ = run("effects", fit, "-o", rows, "--plot", plot)
    assert code == 0
    assert "linear_regression, mle (mean y)" in out
    model = smf.ols("y ~ x * g", crossed).fit()
    least = next(line.split() for line in out.splitlines() if line.split()[:1] == ["x"])
    at = pd.DataFrame({"x": [crossed["x"].min()], "g": ["a"]})
    assert float(least[4]) == pytest.approx(model.predict(at)[0], rel=1e-3)
    assert len(pd.read_csv(rows)) == 3 * 41 + 3 * 3
    assert plot.read_text().startswith("<?xml")


@pytest.mark.parametrize(("values", "held"), [(5, 5), (6, 3)])
def test_an_interaction_is_held_at_each_of_five_values_or_at_three_quantiles(values, held):
    rng = np.random.default_rng(1)
    x, by = rng.normal(size=60), np.arange(60) % values
    rows = {"y": x * by + rng.normal(size=60), "x": x, "by": by.astype(float)}
    data = bz.read(bz.find("linear_regression"), rows, target="y", interactions="x:by")
    tree = bz.fit(bz.find("linear_regression"), data, "exact", seed=1, groups=[])
    curves = bz.feature_effects(tree)
    assert curves.loc[curves["feature"] == "x", "at"].nunique() == held
