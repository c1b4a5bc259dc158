"""Levels of a feature in effects, pictures, contrasts and on pages: against predictions and least squares."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import bayeszoo as bz
from bayeszoo.answers.effects import effects
from bayeszoo.cli.app import main
from bayeszoo.plots.families.effects import plot_effects
from bayeszoo.results.stored import Fit
from tests.refusals import raises
from tests.test_levels import cars

Linear = bz.find("linear_regression")


def fitted(method="exact", frame=None, **options):
    data = bz.read(Linear, cars() if frame is None else frame, target="mpg", **options)
    return bz.fit(Linear.weak(data), data, method, seed=1)


@pytest.fixture(scope="module")
def crossed():
    return fitted(interactions="weight:origin")


@pytest.fixture(scope="module")
def path(crossed, tmp_path_factory):
    path = tmp_path_factory.mktemp("levels") / "cars.nc"
    bz.save(crossed, path)
    return path


def test_the_effect_of_a_level_is_the_mean_prediction_over_the_rows_with_that_level():
    """Without interactions, predictions of all rows moved to a level differ by the effect only."""
    tree, frame = fitted("mle"), cars()
    found = effects(Fit(tree)).loc["origin"]["mean"]
    assert found.index.tolist() == ["europe", "japan", "usa"]
    for level in found.index:
        assert found[level] == pytest.approx(bz.predict(tree, frame.assign(origin=level))["mean"].mean(), rel=1e-9)


def test_an_interaction_has_no_effect_of_its_own_and_goes_along(crossed):
    found = effects(Fit(crossed))
    assert list(dict.fromkeys(found.index.get_level_values("feature"))) == ["weight", "origin", "gears"]
    frame, heaviest = cars(), found.loc["weight"].index[-1]
    weighted = [
        (frame["origin"] == level).mean() * predicted_at(crossed, frame, level, heaviest)
        for level in ("europe", "japan", "usa")
    ]
    width = np.ptp(found.loc["weight"].iloc[-1][["q025", "q975"]])
    assert found.loc["weight"]["mean"].iloc[-1] == pytest.approx(sum(weighted), abs=0.05 * width)


def test_levels_of_a_regression_with_a_log_link_are_compared_in_ratios_too():
    counts = bz.find("negative_binomial_regression")
    tree = bz.fit(counts(), bz.example(counts), "mle", seed=1)
    frame = bz.contrasts(tree).set_index(["quantity", "group"])
    w = tree.posterior["w"][0, 0].to_series()
    assert frame.loc[("sex", "M"), "ratio"].item() == pytest.approx(np.exp(w["sex[M]"]), rel=1e-12)
    assert "ratios of the mean" in frame.attrs["of"]
    probit = bz.find("probit_regression")
    table = {"y": ["no", "yes"] * 10, "arm": ["a"] * 9 + ["b"] * 11}
    plain = bz.fit(probit(), bz.read(probit, table, target="y", positive="yes"), "map", seed=1)
    assert bz.contrasts(plain)["ratio"].isna().all()  # exp of a probit's difference is no ratio


def predicted_at(tree, frame, level, weight):
    row = pd.DataFrame({"origin": [level], "weight": [weight], "gears": [frame["gears"].mean()]})
    return bz.predict(tree, row)["mean"].iloc[0]


def test_the_picture_has_a_point_a_level_with_its_name(crossed):
    panels = {axes.get_xlabel(): axes for axes in plot_effects(crossed).axes if axes.axison}
    assert [text.get_text() for text in panels["origin"].get_xticklabels()] == ["europe", "japan", "usa"]
    assert len(panels["origin"].lines) == 3  # at low, middle and high weights
    for points in panels["origin"].lines:
        assert (points.get_linestyle(), points.get_marker(), len(points.get_xdata())) == ("None", "o", 3)
    assert panels["weight"].lines[0].get_linestyle() == "-"


def test_contrasts_are_differences_of_weights_by_joint_draws(crossed):
    found = bz.contrasts(crossed).set_index(["group", "against"])
    assert found.index.tolist() == [("japan", "europe"), ("usa", "europe"), ("usa", "japan")]
    w = crossed["posterior"]["w"]
    usa, japan = (w.sel(term=f"origin[{level}]").values.ravel() for level in ("usa", "japan"))
    row = found.loc[("usa", "japan")]
    assert row["p_greater"] == (usa > japan).mean()
    low, high = np.quantile(usa - japan, [0.025, 0.975])
    assert (row["difference_q025"], row["difference_q975"]) == (pytest.approx(low), pytest.approx(high))
    mean = crossed["exact"]["w"].sel(statistic="mean")
    exact = mean.sel(term="origin[usa]") - mean.sel(term="origin[japan]")
    assert row["difference"] == pytest.approx(exact.item(), rel=1e-10)
    assert row["difference_mcse"] == 0
    assert found["ratio"].isna().all()
    assert found.attrs["of"] == "mean outcome"


def test_contrasts_do_not_depend_on_the_reference_at_the_mle_and_are_least_squares():
    frame = cars()
    design = np.column_stack([np.ones(200), pd.get_dummies(frame["origin"], dtype=float).iloc[:, 1:], frame["weight"]])
    europe_is_0 = np.linalg.lstsq(design, frame["mpg"], rcond=None)[0]
    for levels in (None, "origin=japan,usa,europe"):
        found = bz.contrasts(fitted("mle", frame, features="origin,weight", levels=levels), "europe")
        found = found.set_index("group")["difference"]
        assert [found["japan"], found["usa"]] == pytest.approx(europe_is_0[1:3], rel=1e-8)


def test_of_a_logistic_regression_log_odds_are_compared_as_by_scikit_learn():
    frame = cars(300)
    frame["mpg"] = np.where(frame["mpg"] + np.random.default_rng(1).normal(0, 15, 300) > 22, "yes", "no")
    Logistic = bz.find("logistic_regression")
    data = bz.read(Logistic, frame, target="mpg", positive="yes", levels="origin=usa,europe,japan")
    found = bz.contrasts(bz.fit(Logistic.weak(data), data, "mle", seed=1), "usa")
    sklearn = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10)
    sklearn.fit((data["X"] - data["X"].mean(axis=0)) / data["X"].std(axis=0), data["y"])
    weights = dict(zip(data["feature"].tolist(), sklearn.coef_[0] / data["X"].std(axis=0), strict=True))
    expected = [weights["origin[europe]"], weights["origin[japan]"]]
    assert found["difference"].tolist() == pytest.approx(expected, rel=1e-5)
    assert found.attrs["of"] == "log odds; ratios of the odds"
    np.testing.assert_allclose(found["ratio"], np.exp(expected), rtol=1e-5)


def test_of_many_levels_each_is_compared_with_the_reference():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"mpg": rng.normal(size=80), "make": rng.choice(list("abcdefgh"), 80), "a": rng.normal(size=80)}
    )
    found = bz.contrasts(fitted("map", frame))
    assert found["against"].unique().tolist() == ["a"]
    assert found.attrs["notes"] == ["the levels of make are each compared with a, the reference"]
    with raises(bz.InputError, "unknown_name", "'z'", "levels", "make", "'b'"):
        bz.contrasts(fitted("map", frame), "z")


def test_rows_of_a_saved_fit_are_coded_as_it_was(path, crossed):
    tree, rows = bz.load(path), cars(seed=9).head(5)
    assert Fit(tree).data.reading["coding"]["levels"] == {"origin": ["europe", "japan", "usa"]}
    assert bz.predict(tree, rows)["mean"].tolist() == bz.predict(crossed, rows)["mean"].tolist()


def test_the_command_line_contrasts_levels_and_says_the_reference(path, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["contrasts", str(path), "--against", "usa", "--json", "--plot", str(tmp_path / "c.png")])
    assert stop.value.code == 0
    rows = json.loads(capsys.readouterr().out)["contrasts"]
    assert [(row["group"], row["against"]) for row in rows] == [("europe", "usa"), ("japan", "usa")]
    assert (tmp_path / "c.png").stat().st_size > 5000
    cars(40).to_csv(tmp_path / "cars.csv", index=False)
    options = ["--target", "mpg", "--method", "exact", "--seed", "1", "--levels", "origin=usa,japan,europe"]
    with pytest.raises(SystemExit) as stop:
        main(["fit", "linear_regression", str(tmp_path / "cars.csv"), *options, "--levels", "gears=3,4,5"])
    said = capsys.readouterr()
    assert stop.value.code == 0
    assert "column 'origin': levels usa, japan, europe; usa is the reference" in said.err
    assert "w[gears[5]]" in said.out


def test_statistics_of_chunks_know_the_levels(tmp_path):
    path = tmp_path / "cars.csv"
    cars(60).to_csv(path, index=False)
    levels = {"origin": ["usa", "europe", "japan"]}
    model = Linear.weak(bz.read(Linear, path, target="mpg", levels=levels))
    tree = bz.fit(model, bz.accumulate(model, path, 20, target="mpg", levels=levels), "exact", seed=1)
    bz.save(tree, tmp_path / "fit.nc")
    rows = cars(5, seed=2)
    whole = bz.fit(model, bz.read(Linear, path, target="mpg", levels=levels), "exact", seed=1)
    predicted = bz.predict(bz.load(tmp_path / "fit.nc"), rows)["mean"]
    assert predicted.to_numpy() == pytest.approx(bz.predict(whole, rows)["mean"].to_numpy(), rel=1e-9)


def test_levels_of_many_files_must_be_the_same_and_are_kept(tmp_path):
    frame, model = cars(120), bz.find("ridge")()
    for number, part in enumerate((frame[:60], frame[60:])):
        part.to_csv(tmp_path / f"{number}.csv", index=False)
    levels = {"origin": ["usa", "europe", "japan"]}
    total = bz.accumulate(model, tmp_path / "*.csv", target="mpg", levels=levels)
    rows = cars(5, seed=2)
    whole = bz.fit(model, bz.read(model, frame, target="mpg", levels=levels), "exact", seed=1)
    predicted = bz.predict(bz.fit(model, total, "exact", seed=1), rows)["mean"]
    assert predicted.to_numpy() == pytest.approx(bz.predict(whole, rows)["mean"].to_numpy(), rel=1e-9)
    for number, origin in enumerate(("usa", "japan")):  # of which neither has a column
        frame[frame["origin"] == origin].to_csv(tmp_path / f"{number}.csv", index=False)
    with raises(bz.InputError, "labels_differ", "1", "0"):
        bz.accumulate(model, tmp_path / "*.csv", target="mpg")
    with raises(bz.InputError, "needs_rows"):
        bz.accumulate(model, tmp_path / "*.csv", formula="mpg ~ weight")


def test_batches_need_levels_beforehand_and_update_to_what_all_rows_give():
    frame, levels = cars(120), {"origin": ["usa", "europe", "japan"]}
    model = Linear(V0=10.0)
    with raises(bz.InputError, "labels_must_be_given", "levels", "'origin'"):
        bz.update(model, frame[:60], target="mpg")
    for rows in (frame[:60], frame[60:]):
        model = bz.update(model, rows, target="mpg", levels=levels)
    whole = bz.update(Linear(V0=10.0), frame, target="mpg", levels=levels)
    assert np.allclose(model.w0, whole.w0, rtol=1e-8)


@pytest.mark.slow
def test_the_contract_holds_of_levels_and_interactions():
    data = bz.read(Linear, cars(60), target="mpg", interactions="weight:origin,weight:gears")
    checks = bz.check(Linear, data, sampler=False)
    assert [check.name for check in checks if not check.passed] == []


def test_rows_that_are_asked_for_are_named_by_the_columns_of_the_table(crossed):
    with pytest.raises(bz.InputError) as error:
        bz.predict(crossed)
    assert error.value.hint == "give a table with the columns weight, origin, gears"
