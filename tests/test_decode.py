"""States and forecasts of hidden Markov models, against sums over every path, hmmlearn, and powers of matrices."""

import inspect
import itertools
import json
import textwrap

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import special, stats

import bayeszoo as bz
from bayeszoo.answers.columns import NOT_UPDATED
from bayeszoo.errors import InputError, NumericalError, Untrustworthy
from bayeszoo.families.hmm import model as module
from bayeszoo.families.hmm import passes
from bayeszoo.foundation.gate import at_most
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.plots.families import latent
from bayeszoo.plots.families.latent import plot_states
from bayeszoo.results.assemble import assemble
from tests.refusals import raises
from tests.test_hidden_markov import enumerated

SYMBOLS, COUNTS, NUMBERS = (bz.find(f"hmm_{name}") for name in ("categorical", "poisson", "gaussian"))
TRANSITION = [[0.9, 0.1], [0.3, 0.7]]
DICE = SYMBOLS(initial=[0.5, 0.5], transition=[[0.95, 0.05], [0.1, 0.9]], emission=[[1 / 6] * 6, [0.1] * 5 + [0.5]])
ROWS = {"sequence": ["u"] * 4 + ["v"] * 2, "y": ["a", "b", None, "b", "c", "a"]}
CODES, STARTS = np.array([0, 1, -1, 1, 2, 0]), (0, 4)


def tree_of(model, data, params, kind="exact"):
    problem = Problem(model, data, np.random.default_rng(0))
    outcome = Outcome(params, "by hand", [at_most("nothing", 0, 0)])
    return assemble(problem, outcome, {"method": "by hand", "kind": kind, "seed": 0}, {})


@pytest.fixture(scope="module")
def symbols():
    """A fit of two short sequences with a gap; the transitions are known, so that labels mean something."""
    rng, shape = np.random.default_rng(1), (2, 30)
    model = SYMBOLS(K=2, alpha=2, eta=1.5, transition=TRANSITION)
    params = {"initial": rng.dirichlet([3, 2], shape), "emission": rng.dirichlet([1.0, 2.0, 3.0], (*shape, 2))}
    return tree_of(model, bz.read(model, ROWS, missing="mask"), params), params


def densities(emission, codes):
    """Log densities of the rows (T, K)."""
    return np.where(codes[:, None] < 0, 0.0, np.log(emission[:, codes].T))


def occupied(initial, transition, log_b, starts=(0,)):
    """Probabilities of the states (T, K)."""
    paths, joint = enumerated(initial, transition, log_b, starts)
    weights = special.softmax(joint)
    return np.stack([weights @ (paths == k) for k in range(len(initial))], axis=1)


def every(params):
    return zip(params["initial"].reshape(-1, 2), params["emission"].reshape(-1, 2, 3), strict=True)


def states_of(params, codes=CODES, starts=STARTS):
    """Probabilities of the states by each draw (draw, T, K)."""
    return np.array([occupied(pi, np.array(TRANSITION), densities(e, codes), starts) for pi, e in every(params)])


def columns(frame, name):
    return frame[[f"{name}[1]", f"{name}[2]"]].to_numpy()


def smoothed_by_enumeration(symbols):
    tree, params = symbols
    found, each = bz.decode(tree), states_of(params)
    np.testing.assert_allclose(columns(found, "smoothed"), np.mean(each, axis=0), rtol=1e-10)
    np.testing.assert_allclose(columns(found, "mcse"), np.std(each, axis=0, ddof=1) / np.sqrt(60), rtol=0.5)
    assert found["state"].tolist() == (np.argmax(np.mean(each, axis=0), axis=1) + 1).tolist()
    assert found.attrs["expected_errors"] == pytest.approx(np.mean(each, axis=0).min(axis=1).sum())


def filtered_by_enumeration(symbols):
    tree, params = symbols
    found = columns(bz.decode(tree), "filtered")
    for t in range(6):
        np.testing.assert_allclose(found[t], states_of(params, CODES[: t + 1])[:, -1].mean(axis=0), rtol=1e-10)


def forecast_by_enumeration(symbols):
    """Later rows are rows whose observation is unknown."""
    tree, params = symbols
    found = bz.forecast(tree, 3)
    assert found["sequence"].tolist() == ["u", "u", "u", "v", "v", "v"]
    assert found.index.tolist() == [1, 2, 3, 1, 2, 3]
    codes = np.array([*CODES[:4], -1, -1, -1, *CODES[4:], -1, -1, -1])
    states = states_of(params, codes, (0, 7))[:, [4, 5, 6, 9, 10, 11]]
    seen = [state @ e for state, (_, e) in zip(states, every(params), strict=True)]
    np.testing.assert_allclose(columns(found, "state"), np.mean(states, axis=0), rtol=1e-10)
    np.testing.assert_allclose(found[["p[a]", "p[b]", "p[c]"]], np.mean(seen, axis=0), rtol=1e-10)
    np.testing.assert_allclose(found["mcse_p[b]"], np.std(seen, axis=0, ddof=1)[:, 1] / np.sqrt(60), rtol=0.6)


CHECKS = [smoothed_by_enumeration, filtered_by_enumeration, forecast_by_enumeration]


@pytest.mark.parametrize("check", CHECKS)
def test_averages_over_draws_agree_with_sums_over_every_path(symbols, check):
    check(symbols)


def test_the_viterbi_path_is_that_of_the_most_probable_draw(symbols):
    tree, params = symbols
    by_draw = []
    for pi, e in every(params):
        paths, joint = enumerated(pi, np.array(TRANSITION), densities(e, CODES), STARTS)
        prior = stats.dirichlet.logpdf(pi, [2, 2]) + sum(stats.dirichlet.logpdf(row, [1.5] * 3) for row in e)
        rows = special.logsumexp(joint)
        by_draw.append((prior + rows, joint.max(), rows, paths[joint.argmax()] + 1))
    _, joint, rows, path = max(by_draw, key=lambda found: found[0])
    found = bz.decode(tree)
    assert found["viterbi"].tolist() == path.tolist()
    assert found.attrs["viterbi_log_joint"] == pytest.approx(joint, rel=1e-12)
    assert found.attrs["log_likelihood"] == pytest.approx(rows, rel=1e-12)


@pytest.mark.slow
def test_paths_are_drawn_from_the_posterior(symbols):
    tree, _ = symbols
    found = bz.decode(tree, paths=2000, seed=3)
    share = np.mean([found[f"path[{i}]"] == 2 for i in range(1, 2001)], axis=0)
    expected = found["smoothed[2]"].to_numpy()
    assert np.all(np.abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / 2000))
    pd.testing.assert_frame_equal(bz.decode(tree, paths=3, seed=5), bz.decode(tree, paths=3, seed=5))


def test_other_rows_are_decoded_with_the_codes_of_the_fit(symbols):
    tree, params = symbols
    found = bz.decode(tree, ["c", "c"])
    expected = states_of(params, np.array([2, 2]), (0,)).mean(axis=0)
    np.testing.assert_allclose(columns(found, "smoothed"), expected, rtol=1e-10)
    assert "sequence" not in found
    later = columns(bz.forecast(tree, 1, ["c", "c"]), "state")
    np.testing.assert_allclose(later, expected[-1:] @ TRANSITION, rtol=1e-10)


def test_answers_about_other_rows_say_that_they_do_not_update_the_parameters(symbols):
    tree, _ = symbols
    for answer in (bz.decode(tree, ["c", "c"]), bz.forecast(tree, 1, ["c", "c"]), bz.assign(tree, ["c", "c"])):
        assert answer.attrs["remarks"] == [NOT_UPDATED]
    for answer in (bz.decode(tree), bz.forecast(tree, 1), bz.assign(tree)):
        assert "remarks" not in answer.attrs


def test_mean_and_sd_of_later_numbers_are_those_of_the_mixture():
    rng, shape = np.random.default_rng(2), (2, 20)
    data = {"y": [1e6 + 1, 1e6 + 2, 1e6 - 1]}
    means, variances = 1e6 + rng.normal(size=(*shape, 2)), rng.gamma(3, size=(*shape, 2))
    model = NUMBERS(K=2, initial=[0.5, 0.5], transition=TRANSITION)
    tree = tree_of(model, bz.read(model, data), {"means": means, "variances": variances})
    b = stats.norm.logpdf(np.array(data["y"])[:, None], means[..., None, :], np.sqrt(variances)[..., None, :])
    last = [occupied(np.array([0.5, 0.5]), np.array(TRANSITION), rows)[-1] for rows in b.reshape(-1, 3, 2)]
    found = bz.forecast(tree, 2)
    for steps in (1, 2):
        p = np.reshape(last @ np.linalg.matrix_power(TRANSITION, steps), (*shape, 2))
        mean = (p * means).sum(axis=-1).mean()
        squares = (p * (variances + (means - mean) ** 2)).sum(axis=-1).mean()
        assert found["mean"][steps] == pytest.approx(mean, rel=1e-13)
        assert found["sd"][steps] == pytest.approx(np.sqrt(squares), rel=1e-6)


FOUR = {"y": [0.1, 0.2, 5.0, 0.3]}


@pytest.mark.parametrize(("a0", "lacking"), [(0.8, ["sd", "mcse_sd"]), (0.4, ["mean", "sd", "mcse_mean", "mcse_sd"])])
def test_moments_of_a_forecast_that_do_not_exist_are_withheld(run, tmp_path, a0, lacking):
    """A state without rows has a precision of shape a0: of the next row the variance is infinite, at .4 the mean."""
    model = bz.find("hmm_gaussian")(a0=a0, b0=0.72, m0=1.4, kappa0=0.01)
    tree = bz.fit(model, bz.read(model, FOUR, column="y"), "enumerate", seed=1)
    frame = bz.forecast(tree, 1)
    assert np.isnan(frame[lacking]).all(axis=None)
    assert all(name in frame["withheld"][1] for name in lacking)
    assert " of step 1: " in frame.attrs["withheld"][0]
    bz.save(tree, tmp_path / "h.nc")
    code, out, _ = run("decode", str(tmp_path / "h.nc"), "--steps", "1")
    assert code == 0
    assert "Withheld: " in out
    assert json.loads(run("decode", str(tmp_path / "h.nc"), "--steps", "1", "--json")[1])["rows"][0]["sd"] is None


def test_the_sd_of_a_forecast_has_its_error():
    """Of a chain that is always in its one state, whose precision and mean are those of a normal-gamma draw."""
    rng, shape = np.random.default_rng(8), (4, 1000)
    variances, model = 1 / rng.gamma(12, 1 / 11, size=(*shape, 1)), NUMBERS(K=1, initial=[1.0], transition=[[1.0]])
    tree = tree_of(model, bz.read(model, FOUR), {"means": rng.normal(size=(*shape, 1)), "variances": variances})
    row = bz.forecast(tree, 1).iloc[0]
    assert 0 < row["mcse_sd"] < 0.03
    assert abs(row["sd"] - np.sqrt(2)) < 4.5 * row["mcse_sd"]  # E variance is 1, and the variance of the mean


def test_known_tables_are_decoded_without_a_fit():
    found = bz.decode(DICE)
    data = bz.example(SYMBOLS)
    tables = np.array(DICE.initial), np.array(DICE.transition), np.log(np.array(DICE.emission))[:, data["y"]].T
    np.testing.assert_allclose(columns(found, "smoothed"), passes.smooth(*tables).emitted, rtol=1e-12)
    assert found[["mcse[1]", "mcse_filtered[2]"]].isna().all(axis=None)
    rolls, symbols = {"y": ["6", "6", "1", "6"]}, list("123456")
    few, b = bz.decode(DICE, rolls, symbols=symbols), densities(np.array(DICE.emission), np.array([5, 5, 0, 5]))
    paths, joint = enumerated(*tables[:2], b, (0,))
    np.testing.assert_allclose(columns(few, "smoothed"), occupied(*tables[:2], b), rtol=1e-12)
    assert few["viterbi"].tolist() == (paths[joint.argmax()] + 1).tolist()
    later = bz.forecast(DICE, 500, rolls, symbols=symbols)
    np.testing.assert_allclose(columns(later, "state")[-1], [2 / 3, 1 / 3], rtol=1e-9)


KNOWN = {
    "gaussian": NUMBERS(initial=[0.5, 0.5], transition=TRANSITION, means=[0, 3], variances=[1, 4]),
    "poisson": COUNTS(initial=[0.5, 0.5], transition=TRANSITION, rates=[1, 4]),
}
GIVEN = {"gaussian": stats.norm([[0.0], [3.0]], [[1.0], [2.0]]).logpdf, "poisson": stats.poisson([[1], [4]]).logpmf}


@pytest.mark.parametrize("kind", KNOWN)
def test_what_the_states_emit_may_be_known_as_well(kind):
    model, y = KNOWN[kind], [0, 1, 5, 4, 0]
    b, tables = GIVEN[kind](y).T, (np.array(model.initial), np.array(model.transition))
    found = bz.decode(model, y)
    np.testing.assert_allclose(columns(found, "smoothed"), occupied(*tables, b), rtol=1e-12)
    assert found.attrs["log_likelihood"] == pytest.approx(special.logsumexp(enumerated(*tables, b, (0,))[1]))
    last = columns(found, "smoothed")[-1] @ tables[1]
    later, means = bz.forecast(model, 1, y), np.array([0, 3] if kind == "gaussian" else [1, 4])
    squares = np.array([1, 4]) + means**2
    assert later["mean"].item() == pytest.approx(last @ means)
    assert later["sd"].item() == pytest.approx(np.sqrt(last @ squares - (last @ means) ** 2))
    assert bz.fit(model.replaced(transition=None), y, "enumerate", seed=1).attrs["status"] == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KNOWN)
def test_models_of_known_emissions_keep_the_contract(kind):
    model = KNOWN[kind].replaced(initial=None, transition=None)
    assert [str(each) for each in bz.check(model, [0, 1, 5, 4, 0, 7, 2, 0]) if not each.passed] == []


def ahead(before, after):
    """`ahead` with a seeded bug."""
    source, names = textwrap.dedent(inspect.getsource(SYMBOLS.ahead)), dict(vars(module))
    assert before in source
    exec(source.replace(before, after), names)
    return names["ahead"]


@pytest.mark.parametrize(
    ("name", "wrong", "check"),
    [
        ("component_probabilities", lambda self, *args: self.filtered(*args), smoothed_by_enumeration),
        ("filtered", lambda self, *args: self.component_probabilities(*args), filtered_by_enumeration),
        ("ahead", ahead("@ transition", "@ transition.mT"), forecast_by_enumeration),
        ("ahead", ahead("states[1:]", "states[:-1]"), forecast_by_enumeration),
    ],
    ids=["filter for smoother", "smoother for filter", "transposed", "one step short"],
)
def test_seeded_bugs_are_caught(symbols, monkeypatch, name, wrong, check):
    monkeypatch.setattr(SYMBOLS, name, wrong)
    with pytest.raises(AssertionError):
        check(symbols)


def with_attrs(tree, **attrs):
    changed = tree.copy()
    changed.attrs |= attrs
    return changed


def test_a_fit_that_is_not_ok_is_withheld_and_states_that_draws_do_not_agree_about(symbols):
    tree, bad = symbols[0], with_attrs(symbols[0], status="failed")
    unsure = with_attrs(tree, facts=json.dumps({"components_withheld": "draws do not agree"}))
    for function in (bz.decode, bz.forecast, plot_states):
        with raises(Untrustworthy, "withheld", "failed"):
            function(bad)
    for function in (bz.decode, plot_states):
        with raises(Untrustworthy, "withheld", "withheld"):
            function(unsure)
    found, expected = bz.forecast(unsure, 2), bz.forecast(tree, 2)
    assert found.filter(like="state").isna().all(axis=None)
    assert found.attrs["states_withheld"] == "draws do not agree"
    pd.testing.assert_frame_equal(found.filter(regex="^p|sequence"), expected.filter(regex="^p|sequence"))


def test_refuses_in_one_line(symbols):
    tree, coin = symbols[0], bz.fit(bz.find("beta_bernoulli")(), [1, 0, 1], "exact")
    for call, code, *names in (
        (lambda: bz.decode(coin), "no_states", "beta_bernoulli"),
        (lambda: bz.decode(tree, paths=-1), "out_of_range", "paths", ">= 0", -1),
        (lambda: bz.decode(tree, column="y"), "option_needs_data", "column"),
        (lambda: bz.decode(tree, ["a", "d"]), "unknown_label", "'d'"),
        (lambda: bz.decode(tree, bz.read(SYMBOLS, ["a", "d"])), "unknown_label", "'d'"),
        (lambda: bz.forecast(tree, 0), "out_of_range", "steps", ">= 1"),
        (lambda: bz.decode(SYMBOLS()), "unknown_field", "initial, transition, emission", "hmm_categorical"),
        (lambda: bz.decode(COUNTS(initial=[1, 0], transition=TRANSITION)), "unknown_field", "rates", "hmm_poisson"),
        (lambda: bz.decode(NUMBERS(means=[1, 2])), "unknown_field", "initial, transition, variances", "hmm_gaussian"),
        (lambda: NUMBERS(means=[1, 2], variances=[1, 0]), "out_of_range", "variances", "> 0", [1, 0]),
        (lambda: COUNTS(rates=[1, 2, 3]), "wrong_shape", "rates", 3, "K=2"),
        (lambda: COUNTS(rates=["a", 1]), "wrong_type", "rates"),
        (lambda: plot_states(tree, state=3), "unknown_label", 3),
        (lambda: plot_states(tree, truth=["a"]), "wrong_shape", "truth"),
    ):
        with raises(InputError, code, *names) as error:
            call()
        assert "\n" not in str(error.value)
    never = SYMBOLS(initial=[1, 0], transition=np.eye(2).tolist(), emission=[[1, 0], [0, 1]])
    with raises(NumericalError, "impossible_data", "impossible"):
        bz.decode(never, ["a", "b"])


def test_the_picture_shows_the_numbers_of_the_table(symbols, monkeypatch):
    tree, params = symbols
    truth = ["x", "x", "y", "y", "x", "y"]
    figure, frame = plot_states(tree, truth=truth, state=2), bz.decode(tree)
    probability, path = figure.axes
    (line,) = (one for one in probability.lines if one.get_label() == "state 2")
    assert line.get_ydata().tolist() == frame["smoothed[2]"].tolist()
    shaded, band = probability.collections
    name = max("xy", key=lambda one: frame["smoothed[2]"][np.array(truth) == one].mean())
    inside = [any(p.get_extents().x0 <= row <= p.get_extents().x1 for p in shaded.get_paths()) for row in frame.index]
    assert inside == [one == name for one in truth]
    low, high = np.quantile(states_of(params), [0.05, 0.95], axis=0)[:, :, 1]
    assert band.get_paths()[0].get_extents().y0 == pytest.approx(low.min(), rel=1e-9)
    assert band.get_paths()[0].get_extents().y1 == pytest.approx(high.max(), rel=1e-9)
    lanes = [[p.get_extents() for p in lane.get_paths()] for lane in path.collections]
    found = [next(k + 1 for k, lane in enumerate(lanes) if any(e.x0 <= t <= e.x1 for e in lane)) for t in frame.index]
    assert found == frame["viterbi"].tolist()
    monkeypatch.setattr("bayeszoo.plots.families.latent._MOST", 60)  # of more, an even selection of the draws
    assert len(plot_states(tree).axes) == 2


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([1871, 1872, 1880], ["1871", "1872", "1880"]),
        (["2020-01-30", "2020-02-01", "2021-01-01"], ["2020-01-30", "2020-02-01", "2021-01-01"]),
        ([3, 1, 2], ["1", "2", "3"]),
        (["a", "b", "c"], ["1", "2", "3"]),
    ],
)
def test_rows_are_named_by_a_column_that_rises_as_times_do(times, said, tmp_path):
    model = NUMBERS(K=2, initial=[0.5, 0.5], transition=TRANSITION)
    data = bz.read(model, pd.DataFrame({"when": times, "flow": [1.0, 2.0, 3.0]}), column="flow")
    point = {"means": np.array([[[1.0, 3.0]]]), "variances": np.ones((1, 1, 2))}
    tree = tree_of(model, data, point, kind="point estimate")
    for each in (tree, bz.load(bz.save(tree, tmp_path / "fit.nc"))):
        axes = plot_states(each).axes[-1]
        axes.set_xticks([1, 2, 3])
        axes.figure.draw_without_rendering()
        assert [label.get_text() for label in axes.get_xticklabels()] == said
        assert axes.get_xlabel() == ("when" if said[0] != "1" else "row")


def test_known_means_are_drawn():
    known = {"initial": [0.5, 0.5], "transition": TRANSITION, "means": [850.0, 1100.0], "variances": [15e3, 15e3]}
    figure = plot_states(NUMBERS(K=2, **known), bz.example(NUMBERS))
    assert set(figure.axes[0].lines[0].get_ydata()) == {850.0, 1100.0}
    lines = [line.get_label() for line in figure.axes[1].lines]
    assert lines == ["state 1", "state 2"]
    colours = {line.get_color() for line in figure.axes[1].lines}
    assert len(colours) == 2  # each state has its own


def test_the_years_of_the_nile_are_kept():
    for data in (bz.read(NUMBERS), bz.example(NUMBERS)):
        assert data.reading["times"]["column"] == "year"
        assert data.reading["times"]["values"][0] == "1871"


def test_a_band_holds_its_mean_and_says_where_few_draws_pull_it_out():
    figure = Figure()
    axes = figure.subplots()
    rows, mean, band = np.arange(2), np.array([0.5, 0.3]), np.array([[0.4, 0.0], [0.6, 0.1]])
    latent._draw_band(axes, rows, mean, band, "0.5")
    assert axes.collections[0].get_paths()[0].get_extents().y1 == 0.6
    assert axes.collections[0].get_paths()[0].contains_point((0.999, 0.29))
    latent._draw_band(axes, rows, np.array([0.5, 0.05]), band, "0.5")
    said = ["few draws differ, or change labels" in drawn.get_label() for drawn in axes.collections]
    assert said == [True, False]


def test_numbers_are_drawn_where_they_are_known():
    model = NUMBERS(K=2, initial=[0.5, 0.5], transition=TRANSITION)
    data = bz.read(model, {"flow": [1.0, None, 3.0]}, missing="mask")
    point = {"means": np.array([[[1.0, 3.0]]]), "variances": np.ones((1, 1, 2))}
    figure = plot_states(tree_of(model, data, point, kind="point estimate"), truth=[True, False, False])
    (means,), (points,) = figure.axes[0].lines, figure.axes[0].collections
    assert points.get_offsets().tolist() == [[1, 1], [3, 3]]
    path = bz.decode(tree_of(model, data, point, kind="point estimate"))["viterbi"]
    assert means.get_ydata().tolist() == [{1: 1.0, 2: 3.0}[k] for k in path]
    assert figure.axes[0].get_ylabel() == "flow"
    assert len(figure.axes[1].collections) == 1  # no band


@pytest.fixture
def saved(symbols, tmp_path):
    return bz.save(symbols[0], tmp_path / "fit.nc")


def test_the_command_prints_and_writes_the_same(run, saved, symbols, tmp_path, monkeypatch):
    code, out, err = run("decode", saved, "--json", "-o", tmp_path / "s.csv", "--plot", tmp_path / "s.png")
    expected, found = bz.decode(symbols[0]), json.loads(out)
    assert (code, found["model"], found["method"]) == (0, "hmm_categorical", "by hand")
    assert err == f"wrote {tmp_path / 's.csv'}\nwrote {tmp_path / 's.png'}\n"
    assert found["viterbi_log_joint"] == expected.attrs["viterbi_log_joint"]
    pd.testing.assert_frame_equal(pd.DataFrame(found["rows"]).set_index("row"), expected)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "s.csv", index_col="row"), expected)
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
    assert run("decode", saved, "-o", tmp_path / "s.csv")[:2] == (2, "")
    monkeypatch.setattr("bayeszoo.cli.saved.MAX_ROWS", 4)
    out = run("decode", saved)[1]
    assert "Log joint density of the Viterbi path" in out
    assert "The first 4 of 6 rows; all of them: --json or -o." in out
    assert f" {expected.filter(like='smoothed').iloc[0, 0]:.9g}" in run("decode", saved, "--digits", 9)[1]


def test_the_command_forecasts_and_decodes_other_rows_and_known_tables(run, saved, symbols, tmp_path):
    def rows(*asked):
        code, out, _ = run("decode", *asked, "--json")
        assert code == 0
        return pd.DataFrame(json.loads(out)["rows"])

    pd.testing.assert_frame_equal(rows(saved, "--steps", 2).set_index("step"), bz.forecast(symbols[0], 2))
    (tmp_path / "new.csv").write_text("y\nc\nc\n")
    new = rows(saved, tmp_path / "new.csv")["smoothed[1]"]
    assert new.tolist() == bz.decode(symbols[0], ["c", "c"])["smoothed[1]"].tolist()
    assert run("decode", saved, "--column", "y")[0] == 2
    (tmp_path / "rolls.csv").write_text("roll\n6\n6\n1\n6\n")
    tables = {name: np.array(getattr(DICE, name)).tolist() for name in ("initial", "transition", "emission")}
    given = [part for name, table in tables.items() for part in ("--set", f"{name}={json.dumps(table)}")]
    asked = ["hmm_categorical", tmp_path / "rolls.csv"]
    expected = bz.decode(DICE, {"y": ["6", "6", "1", "6"]}, symbols=list("123456"))
    found = rows(*asked, "--symbols", "1,2,3,4,5,6", *given)
    assert found["smoothed[1]"].tolist() == expected["smoothed[1]"].tolist()
    assert run("decode", *asked, *given[:2])[0] == 2


def test_the_command_says_what_is_withheld_and_what_is_plugged_in(run, symbols, tmp_path):
    bad = bz.save(with_attrs(symbols[0], status="failed"), tmp_path / "bad.nc")
    assert run("decode", bad) == (3, "", "error: the fit failed its gate: states by it are withheld\n")
    facts = json.dumps({"components_withheld": "draws do not agree"})
    unsure = bz.save(with_attrs(symbols[0], facts=facts, kind="point estimate"), tmp_path / "unsure.nc")
    code, out, _ = run("decode", unsure, "--steps", 1)
    assert (code, "withheld: draws do not agree." in out, "Parameter uncertainty is ignored" in out) == (0, True, True)


def test_errors_of_tiny_probabilities_reach_the_sum_over_all_paths():
    """States that swap their rates have probability 3e-10, which no draw shows: 7e-12 with an error of 2e-12."""
    y, rates, own = np.array([3, 0, 40, 38, 2, 1, 44]), ([1.5, 4.0], [0.5, 0.1]), 0.7
    a, b = np.array(rates)
    paths = np.array(list(itertools.product(range(2), repeat=len(y))))
    counts, moves = np.eye(2)[paths], np.zeros((len(paths), 2, 2))
    for step in range(len(y) - 1):
        np.add.at(moves, (np.arange(len(paths)), paths[:, step], paths[:, step + 1]), 1)
    totals, numbers = y @ counts, counts.sum(axis=1)
    of_rates = special.gammaln(a + totals) - (a + totals) * np.log(b + numbers)
    of_moves = special.gammaln(own + moves).sum(-1) - special.gammaln(2 * own + moves.sum(-1))
    weights = special.softmax((of_rates + of_moves).sum(-1))  # both states are as likely at first
    exact = np.einsum("p,ptk->tk", weights, counts)
    model = bz.find("hmm_poisson")(K=2, a=list(a), b=list(b), beta=own)
    for seed in range(3):
        frame = bz.decode(bz.fit(model, {"y": y}, "enumerate", seed=seed))
        smoothed, errors = (frame[[f"{name}[1]", f"{name}[2]"]].to_numpy() for name in ("smoothed", "mcse"))
        assert (np.abs(smoothed - exact) < 5 * errors).all()
        assert (errors < 0.01).all()
