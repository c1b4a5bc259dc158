"""The model of a level with a slope and seasons: its limits, modes, gaps, forecasts, and what it refuses."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo import models
from bayeszoo.answers.checks import leave_out
from bayeszoo.distributions.averages.averaged import Averaged
from bayeszoo.fit import usual_method
from bayeszoo.model.outer.integration import exact_evidence, integrate
from bayeszoo.results.stored import Fit
from tests.refusals import raises

Series, Level = bz.find("structural_series"), bz.find("local_level")
SEASON = np.array([2.0, -1.0, 0.5, -1.5])
Y = 5 + np.cumsum([0.3, -0.2, 0.5, 0.1, 0.4, -0.1, 0.2, 0.3, -0.3, 0.6, 0.2, 0.1, -0.2, 0.4]) + np.resize(SEASON, 14)
Y += np.array([0.2, -0.3, 0.1, 0.4, -0.2, -0.1, 0.3, 0.1, -0.4, 0.2, 0.1, -0.2, 0.3, -0.1])
NOISY = np.array([1.0, -1.2, 0.9, -0.8, 1.1, -1.0, 0.7, -0.9])
QUARTERS = Series(components="level + season", period=4, m0=5.0, s0=3.0, s_season=2.0)


def series(y, sequence=None, **features):
    sequence = np.zeros(len(y), dtype=int) if sequence is None else sequence
    X = np.array([*features.values()], dtype=float).T if features else np.empty((len(y), 0))
    return {"y": np.asarray(y), "sequence": sequence, "X": X, "feature": np.array([*features], dtype=str)}


def read(y):
    return bz.read(Series, series(y), missing="mask")


@cache
def of_quarters(method):
    return bz.fit(QUARTERS, read(np.where(np.arange(14) == 5, np.nan, Y)), method, seed=1)


def test_without_slope_and_season_it_is_local_level():
    names = {"m0": 6.0, "s0": 4.0, "t_q": 1.5, "t_r": 2.0}
    own, level = Series(components="level", **names), Level(**names)
    at, data = {"q": np.array([0.3, 2.0]), "r": np.array([1.0, 0.2])}, series(Y, np.repeat([0, 1], 7))
    assert own.log_marginal(at, data) == pytest.approx(level.log_marginal(at, data), rel=1e-12)
    assert own.rows_ahead(at, data, 3).std() == pytest.approx(level.rows_ahead(at, data, 3).std(), rel=1e-12)
    assert exact_evidence(own, data) == pytest.approx(exact_evidence(level, data), abs=1e-8)


@pytest.mark.parametrize("method", ["exact", "map"])
def test_the_level_of_rows_without_noise_is_the_row(method):
    """Its standard deviation is 0, and a gap is filled by what is between its neighbours."""
    y = np.where(np.arange(8) == 3, np.nan, NOISY)
    frame = bz.decode(bz.fit(Series(components="level", variances="level"), read(y), method, seed=1))
    seen = ~np.isnan(y)
    for name in ("level", "q025", "median", "q975"):
        assert frame[name][seen].to_numpy() == pytest.approx(y[seen], abs=1e-12)
    assert np.max(frame["sd"][seen]) < 1e-12
    assert frame["level"][4] == pytest.approx((y[2] + y[4]) / 2, abs=1e-9)
    assert frame["sd"][4] > 0.1


def test_differences_of_likelihoods_are_those_of_a_diffuse_start():
    """With first states that may be anything statsmodels' likelihood is another by a constant."""
    from statsmodels.tsa.statespace.structural import UnobservedComponents  # takes a second

    wide = Series(period=4, variances="noise + level + season", s0=1e4, s_slope=1e4, s_season=1e4)
    peer = UnobservedComponents(Y, "lltrend", seasonal=4, use_exact_diffuse=True)
    points = [{"q": 0.3, "q_season": 0.1, "r": 0.2}, {"q": 0.1, "q_season": 0.4, "r": 0.5}]
    ours = [float(wide.log_marginal(at, series(Y))) for at in points]
    theirs = [peer.loglike([at["r"] ** 2, at["q"] ** 2, 0.0, at["q_season"] ** 2]) for at in points]
    assert ours[1] - ours[0] == pytest.approx(theirs[1] - theirs[0], abs=1e-4)


def test_a_gap_is_filled_by_the_row_given_all_others():
    tree = of_quarters("exact")
    frame, known = bz.decode(tree), Fit(tree).integrated
    assert (frame["filled"].drop(6) == np.delete(Y, 5)).all()
    law = Averaged(QUARTERS.held_out(known.points, series(Y), np.array([5])), known.mass, known.halved)
    assert frame["filled"].iloc[5] == pytest.approx(law.mean()[0], abs=1e-6)
    ends = frame.loc[6, ["filled_q025", "filled_q975"]].to_numpy(dtype=float)
    assert [law.cdf(np.array([end]))[0] for end in ends] == pytest.approx([0.025, 0.975], abs=1e-4)
    assert np.allclose(frame["level"] + frame["season"], frame["signal"])
    season = frame["season"].to_numpy()
    assert np.ptp([season[i : i + 4].sum() for i in range(11)]) < 1e-10  # which does not move
    assert (frame["season_q025"] < frame["season_q975"]).all()


def test_predictions_and_forecasts_are_one():
    rows, steps = bz.predict(of_quarters("exact"), 6), bz.forecast(of_quarters("exact"), 6)
    for name in ("mean", "sd", "q025", "median", "q975"):
        assert rows[name].to_numpy() == pytest.approx(steps[name].to_numpy(), abs=1e-4)
    own = steps["season"].to_numpy()
    assert own[4:] == pytest.approx(own[:2], abs=1e-9)
    assert np.corrcoef(own[:4], np.roll(SEASON, -2))[0, 1] > 0.9


def test_the_next_row_and_a_row_left_out_are_ratios_of_evidences():
    data, before = series(Y), series(Y[:-1])
    known = integrate(QUARTERS, before)
    law = Averaged(QUARTERS.law(known.points, before, QUARTERS.inputs.unseen(before, 1)), known.mass)
    whole = exact_evidence(QUARTERS, data)
    assert law.logpdf(Y[-1:])[0] == pytest.approx(whole - exact_evidence(QUARTERS, before), abs=1e-6)
    score = leave_out.of_fit(Fit(bz.fit(QUARTERS, read(Y), "exact", seed=1)))
    left = series(np.where(np.arange(14) == 7, np.nan, Y))
    assert score.terms[7] == pytest.approx(whole - exact_evidence(QUARTERS, left), abs=1e-6)


def test_a_mode_where_nothing_moves_is_said():
    model = Series.weak_with(series(NOISY), {"components": "level"})
    tree = bz.fit(model, read(NOISY), "mle", seed=1)
    assert tree.attrs["status"] == "ok"
    assert Fit(tree).facts["at_edge"] == ["q"]
    assert any("edge" in note for note in json.loads(tree.attrs["notes"]))


@pytest.mark.parametrize("estimate", ["map", "mle"])
@pytest.mark.parametrize("y", [Y, np.append(NOISY, [1.2, -0.7, 0.8, -1.1])])
def test_em_ends_where_the_climb_of_the_likelihood_does(y, estimate):
    model = Series.weak_with(series(y), {"components": "level + season", "period": 4})
    by_climb, by_em = (
        Fit(bz.fit(model, read(y), method, seed=1, **options)).draws()
        for method, options in ((estimate, {}), ("em", {"estimate": estimate}))
    )
    for name in ("q", "r"):
        assert by_em[name][0, 0] == pytest.approx(by_climb[name][0, 0], rel=1e-3, abs=1e-6)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"period": 1}, "out_of_range"),
        ({"components": "slope + season"}, "missing_name"),
        ({"components": "level + cycle"}, "unknown_name"),
        ({"components": "level + level"}, "unknown_name"),
        ({"components": "level", "variances": "noise + season"}, "unknown_name"),
        ({"variances": ""}, "out_of_range"),
        ({"variances": "noise + level + slope + season"}, "out_of_range"),
    ],
)
def test_what_is_no_structure_is_refused(fields, code):
    with raises(bz.InputError, code):
        Series(**fields)


@pytest.mark.parametrize("method", ["exact", "map", "nuts", "em"])
def test_fewer_rows_than_seasons_are_refused(method):
    with raises(bz.InputError, "too_few_rows"):
        bz.fit(Series.weak(series(Y[:8])), read(Y[:8]), method, seed=1)


@pytest.mark.parametrize("y", [np.full(14, 3.0), np.resize(SEASON, 14), np.arange(14) + np.resize(SEASON, 14)])
def test_rows_that_constant_parts_explain_exactly_are_refused(y):
    model = Series.weak_with(series(y), {"period": 4})
    with raises(bz.NumericalError, "no_spread"):
        bz.fit(model, read(y), "exact", seed=1)


def test_missing_rows_repeated_times_and_no_steps_are_refused():
    with raises(bz.InputError, "no_data"):
        read(np.full(5, np.nan))
    with raises(bz.InputError, "repeated_times"):
        bz.read(Series, {"when": [1, 2, 2, 3], "y": Y[:4]}, time="when")
    with raises(bz.InputError, "out_of_range"):
        bz.forecast(of_quarters("exact"), 0)


def test_few_rows_have_an_answer():
    for y in ([3.0], [3.0, 4.0], [np.nan, 3.0, np.nan]):
        model = Series.weak_with(series(y), {"components": "level + slope"})
        tree = bz.fit(model, read(y), "exact", seed=1)
        assert tree.attrs["status"] == "ok"
        assert np.isfinite(bz.forecast(tree, 1)["sd"]).all()


def test_three_standard_deviations_of_many_rows_have_estimates_and_no_quadrature():
    y = np.resize(Y, 310) + np.random.default_rng(0).normal(size=310)
    model = Series.weak_with(series(y), {"period": 4, "variances": "noise + level + season"})
    with raises(bz.NumericalError, "too_large"):
        bz.fit(model, read(y), "exact", seed=1)
    assert bz.fit(model, read(y), "map", seed=1).attrs["status"] == "ok"


def test_the_picture_has_a_panel_for_each_component():
    figure = bz.plot_levels(of_quarters("exact"), steps=4)
    assert [axes.get_ylabel() for axes in figure.axes][1:] == ["season"]


def test_the_page_says_what_comes_next(tmp_path, no_pictures):
    bz.report([of_quarters("exact")], tmp_path / "page.html")
    assert "Forecast: " in (tmp_path / "page.html").read_text()


def test_the_command_line_decodes_and_forecasts(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    bz.save(of_quarters("map"), "quarters.nc")
    rows = json.loads(run("decode", "quarters.nc", "--json")[1])["rows"]
    assert {"level", "season", "signal"} <= rows[0].keys()
    assert len(json.loads(run("decode", "quarters.nc", "--steps", "2", "--json")[1])["rows"]) == 2
    assert run("decode", "quarters.nc")[0] == 0


def test_published_variances_of_the_airline_series():
    """Of level, season and rows with a diffuse start; the slope does not move (Harvey 1989, section 4.5)."""
    data = bz.read(Series, Path(models.__file__).parent / "data" / "airline.csv", column="log_passengers")
    model = Series.weak_with(data, {"variances": "noise + level + season"})
    at = {"q": 6.99e-4**0.5, "q_season": 6.41e-5**0.5, "r": 1.295e-4**0.5}
    slopes = model.marginal_slopes(at, data)
    assert all(abs(at[name] * slope) < 0.5 for name, slope in slopes.items())


@pytest.mark.slow
def test_forecasts_hold_as_often_as_they_say():
    """On 100 simulated series 90% intervals of the rows to come, by draws of prior and data that share nothing."""
    rng, inside = np.random.default_rng(0), []
    for _ in range(100):
        q, season = np.exp(rng.normal(-1.0, 0.7)), rng.normal(0, 2, size=4)
        level = 10 + np.cumsum(0.1 + q * rng.standard_normal(35))
        y = level + np.resize(season - season.mean(), 35) + rng.standard_normal(35)
        data = series(y[:32])
        model = Series.weak_with(data, {"period": 4})
        known = integrate(model, data)
        heavy = known.mass > 1e-6
        points = {name: values[heavy] for name, values in known.points.items()}
        law = Averaged(model.rows_ahead(points, data, 3), known.mass[heavy] / known.mass[heavy].sum())
        inside.append(np.abs(law.cdf(y[32:]) - 0.5) < 0.45)
    assert 0.86 <= np.mean(inside) <= 0.94


def test_the_usual_method_is_exact_where_the_quadrature_takes_the_rows():
    rows = bz.read(Series, {"y": np.sin(np.arange(310.0))})
    two, three = Series(), Series(variances="noise + level + season")
    assert usual_method(two, rows) == ("exact", "")
    assert usual_method(three, rows)[0] == "nuts"
    assert usual_method(bz.find("local_level")(), bz.example(bz.find("local_level"))) == ("exact", "")
