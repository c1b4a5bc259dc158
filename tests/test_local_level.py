"""The model of a level that moves: its answers against evidences, dense Gaussians, and closed forms at the limits."""

import json
import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.answers.checks import leave_out
from bayeszoo.distributions.averages.averaged import Averaged
from bayeszoo.distributions.priors import HalfCauchy, InvGamma, Pareto, Uniform
from bayeszoo.model.outer.integration import exact_evidence, integrate
from bayeszoo.results.stored import Fit
from tests.quick import quick_first
from tests.refusals import raises

Level = bz.find("local_level")
WALK = np.array([5.2, 5.9, 4.4, 6.3, 7.0, 6.1, 7.7, 8.4, 7.2, 9.1])
SEQUENCE = np.repeat([0, 1], [6, 4])
MODEL = Level(m0=6.0, s0=4.0, t_q=1.5, t_r=2.0)


def series(y, sequence=None):
    return {"y": np.asarray(y), "sequence": np.zeros(len(y), dtype=int) if sequence is None else sequence}


def masked(data, i):
    return {**data, "y": np.where(np.arange(len(data["y"])) == i, np.nan, data["y"])}


@cache
def of_walk(method):
    return bz.fit(MODEL, bz.read(Level, series(WALK), missing="mask"), method, seed=1)


def fitted(method="exact", data=None, model=MODEL):
    """Fit the walk, once by each method, or other data."""
    if data is None and model is MODEL:
        return of_walk(method)
    return bz.fit(model, bz.read(Level, series(WALK) if data is None else data, missing="mask"), method, seed=1)


@pytest.fixture(scope="module")
def exact():
    return fitted(data=masked(series(WALK, SEQUENCE), 3))


def test_the_evidence_is_a_plain_sum_over_both_numbers():
    data = series(WALK, SEQUENCE)
    q, r = np.meshgrid(np.linspace(1e-3, 9, 700), np.linspace(1e-3, 12, 700), indexing="ij")
    at = {"q": q, "r": r}
    heights = MODEL.log_marginal(at, data) + MODEL.log_outer_prior(at)
    plain = math.log(np.trapezoid(np.trapezoid(np.exp(heights), r[0]), q[:, 0]))
    assert exact_evidence(MODEL, data) == pytest.approx(plain, abs=2e-3)


def test_a_level_that_never_moves_is_the_closed_form_of_a_mean():
    """As the prior of q shrinks to 0, rows are N(mu, r^2) about one mean: a quadrature over r alone."""
    still = MODEL.replaced(t_q=1e-9)
    r = np.linspace(1e-4, 25, 200_001)
    height = stats.halfnorm(scale=2.0).logpdf(r)
    n, mean, scatter = len(WALK), WALK.mean(), np.sum((WALK - WALK.mean()) ** 2)
    height += stats.norm.logpdf(mean, 6.0, np.sqrt(16.0 + r**2 / n)) - scatter / (2 * r**2)
    height -= (n - 1) * np.log(r * math.sqrt(2 * math.pi)) + 0.5 * math.log(n)
    assert exact_evidence(still, series(WALK)) == pytest.approx(math.log(np.trapezoid(np.exp(height), r)), abs=1e-6)


def test_decoded_levels_are_averages_over_both_numbers(exact):
    frame, fit = bz.decode(exact, paths=2, seed=1), Fit(exact)
    known, data = fit.integrated, fit.data
    mean = known.mass @ MODEL.smoothed(known.points, data).mean()
    sd = fit.integrated.posterior["level"].std()
    assert frame["level"].to_numpy() == pytest.approx(mean, rel=1e-9)
    assert frame["sd"].to_numpy() == pytest.approx(sd, rel=1e-6)
    assert (frame["q025"] < frame["median"]).all()
    assert (frame["median"] < frame["q975"]).all()
    smoothed = Averaged(MODEL.smoothed(known.points, data), known.mass, known.halved)
    assert smoothed.cdf(frame["q975"].to_numpy()) == pytest.approx(0.975, abs=1e-4)
    assert frame["sequence"].tolist() == SEQUENCE.astype(str).tolist()
    last = [5, 9]  # whose levels given the rows so far are those given all rows
    assert frame["filtered"].iloc[last].to_numpy() == pytest.approx(frame["level"].iloc[last].to_numpy())
    assert np.isnan(frame["log_score"].iloc[3])
    assert frame.attrs["log_score"] == pytest.approx(frame["log_score"].sum())
    assert {"path[1]", "path[2]"} <= {*frame}


def test_a_gap_is_filled_by_the_row_given_all_others(exact):
    frame, fit = bz.decode(exact), Fit(exact)
    known = fit.integrated
    assert (frame["filled"].drop(4) == np.delete(WALK, 3)).all()
    law = Averaged(MODEL.held_out(known.points, series(WALK, SEQUENCE), np.array([3])), known.mass, known.halved)
    assert frame["filled"].iloc[3] == pytest.approx(law.mean()[0], rel=1e-9)
    ends = frame.loc[4, ["filled_q025", "filled_q975"]].to_numpy(dtype=float)
    assert [law.cdf(np.array([end]))[0] for end in ends] == pytest.approx([0.025, 0.975], abs=1e-4)


def test_scores_one_step_ahead_add_up_to_the_likelihood():
    tree = fitted("map")
    frame, at = bz.decode(tree), {name: Fit(tree).draws()[name][0, 0] for name in ("q", "r")}
    assert frame.attrs["log_score"] == pytest.approx(float(MODEL.log_marginal(at, series(WALK))), rel=1e-12)


def test_a_forecast_goes_on_after_each_sequence(exact):
    steps = bz.forecast(exact, 3)
    known, data = Fit(exact).integrated, Fit(exact).data
    assert steps["sequence"].tolist() == ["0", "0", "0", "1", "1", "1"]
    for k in (0, 1):
        alone = {name: values[k == data["sequence"]] for name, values in data.items()}
        own = MODEL.levels(known.points, alone).ahead(3)
        assert steps["level"][3 * k : 3 * k + 3].to_numpy() == pytest.approx(known.mass @ own.mean(), rel=1e-9)
    assert np.all(np.diff(steps["sd"].iloc[:3]) > 0)
    with raises(bz.InputError, "new_rows_unknown"):
        bz.predict(exact, 2)


def test_predictions_and_forecasts_are_one():
    for method in ("exact", "map"):
        tree = fitted(method)
        rows, steps = bz.predict(tree, 3), bz.forecast(tree, 3)
        for name in ("mean", "sd", "q025", "median", "q975"):
            assert rows[name].to_numpy() == pytest.approx(steps[name].to_numpy(), rel=1e-6)


def test_the_next_row_is_a_ratio_of_evidences():
    """Which rows of a table that are known beforehand score; with the last row left out of the fit."""
    data, before = series(WALK), series(WALK[:-1])
    known = integrate(MODEL, before)
    law = Averaged(MODEL.law(known.points, before, MODEL.inputs.unseen(before, 1)), known.mass)
    ratio = exact_evidence(MODEL, data) - exact_evidence(MODEL, before)
    assert law.logpdf(WALK[-1:])[0] == pytest.approx(ratio, abs=1e-6)


def test_leaving_out_is_a_ratio_of_evidences_with_gaps():
    data = series(WALK, SEQUENCE)
    score = leave_out.of_fit(Fit(fitted(data=data)))
    for i in (0, 4, 6, 9):
        ratio = exact_evidence(MODEL, data) - exact_evidence(MODEL, masked(data, i))
        assert score.terms[i] == pytest.approx(ratio, abs=1e-6)


def test_a_row_left_out_is_no_row_taken_from_between_its_neighbours():
    """An outlier moves the posterior far: its score has a quadrature of its own, given a gap in its place."""
    data = series(np.append(WALK, [60.0, 8.8, 9.0]))
    score = leave_out.of_fit(Fit(fitted(data=data)))
    ratio = exact_evidence(MODEL, data) - exact_evidence(MODEL, masked(data, 10))
    assert score.terms[10] == pytest.approx(ratio, abs=min(0.5, score.mcse * 13))  # its error is said


@pytest.mark.quick
def test_draws_agree_with_the_quadrature():
    sampled, whole = bz.decode(fitted("nuts")), bz.decode(fitted())
    assert np.max(np.abs(sampled["level"] - whole["level"]) / sampled["mcse_level"]) < 5
    assert np.max(np.abs(sampled["sd"] / whole["sd"] - 1)) < 0.05
    assert np.max(np.abs(sampled["q975"] - whole["q975"]) / whole["sd"]) < 0.1


def test_a_mode_at_no_movement_is_said():
    """Rows alike in order but for noise: the likelihood is highest where the level does not move."""
    y = np.array([1.0, -1.2, 0.9, -0.8, 1.1, -1.0, 0.7, -0.9])
    tree = fitted("mle", series(y), Level.weak(series(y)))
    at = Fit(tree).draws()
    assert (at["q"] == 0).all()
    assert tree.attrs["status"] == "ok"
    assert Fit(tree).facts["at_edge"] == ["q"]
    assert any("edge" in note for note in json.loads(tree.attrs["notes"]))
    assert np.ptp(at["level"]) < 1e-12
    assert bz.forecast(tree, 5)["sd"].nunique() == 1


@pytest.mark.parametrize("estimate", ["map", "mle"])
@pytest.mark.parametrize(
    "y", [WALK, np.array([1.0, -1.2, 0.9, -0.8, 1.1, -1.0, 0.7, -0.9]), np.append(WALK, [np.nan, np.nan, 8.0])]
)
def test_em_ends_where_the_climb_of_the_likelihood_does(y, estimate):
    """At q = 0 too, which plain EM comes ever nearer to."""
    model = Level.weak(series(y))
    data = bz.read(Level, series(y), missing="mask")
    climbed, tree = bz.fit(model, data, estimate, seed=1), bz.fit(model, data, "em", seed=1, estimate=estimate)
    by_climb, by_em = Fit(climbed).draws(), Fit(tree).draws()
    assert tree.attrs["status"] == "ok"
    for name in ("q", "r"):
        assert by_em[name][0, 0] == pytest.approx(by_climb[name][0, 0], rel=1e-4)
    assert Fit(tree).facts.get("at_edge") == Fit(climbed).facts.get("at_edge")


OTHER_PRIORS = [
    {"q": HalfCauchy(1.0), "r": InvGamma(3.0, 2.0)},
    {"q": Uniform(0.0, 0.3)},
    {"q": HalfCauchy(0.1)},
    {"r": Pareto(2.0, 1.5)},
]


@pytest.mark.parametrize("priors", quick_first(OTHER_PRIORS, 2))
def test_em_under_another_prior_ends_at_its_mode(priors):
    """Also where it is at an end of a prior, or at q = 0."""
    model = MODEL.replaced(priors=priors)
    by_em, by_climb = (Fit(fitted(method, model=model)).draws() for method in ("em", "map"))
    for name in ("q", "r"):
        assert by_em[name] == pytest.approx(by_climb[name], rel=1e-4)


def test_the_gain_is_that_of_the_filter_after_many_rows():
    """And a forecast is then exponential smoothing."""
    at = {"q": np.array([0.3, 2.0, 0.0]), "r": np.array([1.0, 0.5, 1.0])}
    levels = MODEL.levels(at, series(np.zeros(400)))
    ahead = np.square(levels.filtered().std()[:2, -2]) + at["q"][:2] ** 2
    gain = MODEL.derived(at)["gain"]
    assert gain[:2] == pytest.approx(ahead / (ahead + at["r"][:2] ** 2), rel=1e-12)
    assert gain[2] == 0


@pytest.mark.parametrize("method", ["exact", "map", "mle", "nuts"])
def test_rows_that_are_all_alike_are_refused(method):
    data = series([3.0, 3.0, 3.0, np.nan, 8.0, 8.0], np.array([0, 0, 0, 0, 1, 1]))
    with raises(bz.NumericalError, "no_spread"):
        fitted(method, data)


def test_another_prior_keeps_the_noise_from_zero():
    model = MODEL.replaced(priors={"r": InvGamma(3.0, 1.0)})
    assert fitted("exact", series([3.0, 3.0, 3.0]), model).attrs["status"] == "ok"


def test_few_rows_have_an_answer():
    for y in ([3.0], [3.0, 4.0], [np.nan, 3.0, np.nan]):
        tree = fitted(data=series(y), model=Level.weak(series(y)))
        assert tree.attrs["status"] == "ok"
        assert np.isfinite(bz.forecast(tree, 1)["sd"]).all()


def test_long_series_have_estimates_and_no_exact_answer():
    rng = np.random.default_rng(0)
    data = series(np.cumsum(0.3 * rng.standard_normal(4000)) + rng.standard_normal(4000))
    model = Level.weak(data)
    tree = fitted("map", data, model)
    assert Fit(tree).draws()["r"][0, 0] == pytest.approx(1.0, rel=0.1)
    assert bz.decode(tree)["level"].shape == (4000,)
    with raises(bz.NumericalError, "too_large"):
        fitted("exact", data, model)
    with raises(bz.InputError, "not_writable"):
        bz.fit(model, bz.read(Level, data), "nuts", draws=20_000, seed=1)


@pytest.mark.parametrize("steps", [0, -1, True, 1.5])
def test_no_steps_are_refused(exact, steps):
    with raises(bz.InputError, "out_of_range"):
        bz.forecast(exact, steps)


def test_a_model_is_fitted_before_it_decodes():
    with raises(bz.InputError, "unknown_field"):
        bz.decode(MODEL, series(WALK))
    with raises(bz.InputError, "no_states"):
        bz.decode(bz.fit(bz.find("normal_gamma")(), {"y": WALK}, "exact", seed=1))


@pytest.mark.parametrize(
    ("times", "code"),
    [
        ([1, 2, 3, 5], "uneven_times"),
        ([1, 2, 2, 3], "repeated_times"),
        ([1, 3, 2, 4], "unsorted_times"),
        (["2020-01-01", "2020-02-01", "2020-04-01", "2020-05-01"], "uneven_times"),
        (["1", "two", "3", "4"], "not_a_time"),
    ],
)
def test_times_that_are_no_steps_are_refused(times, code):
    table = {"when": times, "y": WALK[:4]}
    with raises(bz.InputError, code):
        bz.read(Level, table, time="when")
    assert len(bz.read(Level, table, column="y")["y"]) == 4  # of which nobody says that they are times


@pytest.mark.parametrize(
    "times", [[1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4], ["2020-01-31", "2020-02-29", "2020-03-31", "2020-04-30"]]
)
def test_months_and_even_steps_are_times(times):
    assert bz.read(Level, {"when": times, "y": WALK[:4]}, time="when").notes == ()
    own = bz.read(Level, {"when": [7, 8, 7, 8], "s": list("aabb"), "y": WALK[:4]}, time="when", sequence="s")
    assert len(own["y"]) == 4


def test_levels_have_the_times_of_their_rows():
    months = [f"2024-{month:02}-01" for month in range(1, 7)]
    tree = bz.fit(Level, bz.read(Level, {"month": months, "y": WALK[:6]}, column="y", time="month"), "map", seed=1)
    assert bz.decode(tree)["month"].tolist() == months
    assert "month" not in bz.decode(bz.fit(Level, {"y": WALK[:6]}, "map", seed=1))
    assert bz.residuals(tree)["month"].tolist() == months
    ahead = bz.predict(tree, 3)
    assert ahead["month"].tolist() == ["2024-07-01", "2024-08-01", "2024-09-01"]
    assert "month" not in bz.predict(bz.fit(Level, {"y": WALK[:6]}, "map", seed=1), 3)


def test_a_year_that_is_left_out_is_said():
    notes = bz.read(Level, {"year": [1901, 1902, 1904, 1905], "y": WALK[:4]}, column="y").notes
    assert any("year" in note for note in notes)


def test_the_picture_has_rows_bands_gaps_and_what_comes_next(exact):
    figure = bz.plot_levels(fitted(data=masked(series(WALK), 3)), steps=4)
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert len(labels) == len({*labels}) == 6
    assert figure.axes[0].get_xlim()[1] == pytest.approx(14.5)
    of_two = bz.plot_levels(exact).axes[0]
    assert of_two.get_xlim()[1] == pytest.approx(10.5)  # where several go on, none is drawn


def test_the_page_says_what_comes_next(tmp_path, no_pictures):
    tree = fitted()
    bz.report([tree], tmp_path / "page.html")
    page, first = (tmp_path / "page.html").read_text(), bz.forecast(tree, 1).iloc[0]
    assert "Forecast: " in page
    assert f"{first['mean']:.4f}"[:5] in page


def test_the_command_line_decodes_and_forecasts(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    bz.save(fitted(), "walk.nc")
    code, out, _ = run("decode", "walk.nc", "--json", "--plot", "walk.png")
    rows = json.loads(out)["rows"]
    assert code == 0
    assert len(rows) == 10
    assert "level" in rows[0]
    assert len(json.loads(run("decode", "walk.nc", "--steps", "2", "--json")[1])["rows"]) == 2
    assert run("decode", "walk.nc", "--steps", "0")[0] == 2
    assert run("residuals", "walk.nc")[0] == 0  # each row from those before it
