"""States and levels by approximations whose parameters are withheld, against sums over paths and exact answers."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.answers import judged
from bayeszoo.answers.series.decode import _decoded, _judged, decodable
from bayeszoo.errors import Caution, Untrustworthy
from bayeszoo.inference import reference
from bayeszoo.inference.methods import vb
from bayeszoo.report.families.judged import most_probable
from bayeszoo.report.families.profile import _stays, profiles
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import document
from tests.refusals import raises
from tests.test_judged import as_approximation, changed, rng, scaled

Y = np.array([0.1, -0.4, 0.3, 2.1, 4.2, 3.8, 4.1, 2.2, 0.2, -0.1, 0.4, 4.0])


@pytest.fixture(scope="module")
def chain():
    """A fit of two states measured against its own draws, of which the means are spread out: nothing is compiled."""

    def known(problem):
        draws = problem.model.vb_posterior(vb.searched(problem, 2).best.state).rvs((4, 500), rng())
        means = draws["means"]
        wide = {**draws, "means": means + 0.2 * (means - means.mean(axis=(0, 1)))}
        return reference.Reference("draws of the test", wide)

    model = bz.find("hmm_gaussian")
    data = bz.read(model, Y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "reference", known)
        with pytest.warns(Caution):
            tree = bz.fit(model.weak(data), data, "vb", seed=1, restarts=2, groups=())
    return as_approximation(tree, "means[1]")


def by_all_paths(draws):
    """Return the probability of each row's states averaged over draws, (rows, 2)."""
    return at_draws_by_all_paths(draws).mean(0)


def ahead_by_all_paths(draws, steps):
    """Return the probabilities of states that many steps ahead, and the mean of the row, averaged over draws."""
    transition, means = (draws[name].to_numpy().reshape(-1, *draws[name].shape[2:]) for name in ("transition", "means"))
    p = at_draws_by_all_paths(draws)[:, -1]
    for _ in range(steps):
        p = np.einsum("di,dij->dj", p, transition)
    return p.mean(0), (p * means).sum(1).mean()


def at_draws_by_all_paths(draws):
    """Return the probability of each row's states at each draw: the sum over every path, (draws, rows, 2)."""
    paths = np.array(list(itertools.product((0, 1), repeat=len(Y))))
    initial, transition, means, variances = (
        draws[name].to_numpy().reshape(-1, *draws[name].shape[2:])
        for name in ("initial", "transition", "means", "variances")
    )
    emitted = scipy.stats.norm(means[:, None], np.sqrt(variances[:, None])).logpdf(Y[:, None])  # (draws, rows, 2)
    total = np.zeros((len(means), len(Y), 2))
    for i in range(len(means)):
        log_p = np.log(initial[i])[paths[:, 0]] + np.log(transition[i])[paths[:, :-1], paths[:, 1:]].sum(1)
        log_p += emitted[i][np.arange(len(Y)), paths].sum(1)
        p = np.exp(log_p - log_p.max())
        p /= p.sum()
        total[i] = np.stack([p @ (paths == k) for k in (0, 1)], axis=1)
    return total


def shifted(m, by):
    """Move the mean of the lower state, whichever number it has."""
    return m + by * (m.mean((0, 1)) < 2)


def test_states_are_shown_in_the_rows_where_they_are_those_of_the_posterior(chain):
    tree = changed(chain, means=lambda m: shifted(m, 0.5))
    frame = bz.decode(tree)
    far = frame["smoothed[1]"].isna().to_numpy()
    assert 0 < far.sum() < len(Y)
    names = ["smoothed[1]", "smoothed[2]"]
    true = by_all_paths(tree["reference_draws"].to_dataset())
    shown = frame.loc[~far, names].to_numpy()
    apart = np.abs(shown - true[~far]) / np.sqrt(true[~far] * (1 - true[~far]))
    assert apart.max() < 0.1
    assert frame.loc[far, ["mcse[1]", *names]].isna().all(axis=None)
    assert (frame["withheld"].str.startswith("smoothed") == far).all()
    assert (
        frame["state"].astype(int).tolist() == (1 + true.argmax(1)).tolist()
    )  # which is right where the chance is off
    assert np.isnan([frame.attrs[name] for name in ("expected_errors", "log_likelihood")]).all()  # of all rows
    assert f"{far.sum()} of 12 rows are too far from it; try --method" in frame.attrs["judged"]


def test_states_do_not_pass_by_others_of_their_numbers(chain):
    with raises(Untrustworthy, "withheld"):
        bz.decode(changed(chain, means=lambda m: m + 8.0))


def test_the_path_is_withheld_where_that_of_the_posterior_is_another(chain):
    """States of rows agree, and so do the paths but in one row; the density of the path is of all rows."""
    own = _decoded(decodable(Fit(chain), None, {}), 0, 0)
    path = own.frame["viterbi"].where(own.frame.index != 8, 2)
    known = own._replace(frame=own.frame.assign(viterbi=path))
    frame = _judged(Fit(chain), own, known)
    assert frame["viterbi"].isna().tolist() == [row == 8 for row in range(1, 13)]
    assert frame["state"].notna().all()
    assert np.isnan(frame.attrs["viterbi_log_joint"])
    assert np.isfinite([frame.attrs["log_likelihood"], frame.attrs["expected_errors"]]).all()
    same = _judged(Fit(chain), own, own)
    assert np.isfinite(same.attrs["viterbi_log_joint"])


def test_a_state_is_withheld_where_the_posterior_has_another(chain):
    """Chances of 0.52 and 0.48 are near, and the states are two."""
    own = _decoded(decodable(Fit(chain), None, {}), 0, 0)
    p = own.smoothed.probability.copy()
    p[3], q = [0.52, 0.48], p.copy()
    q[3] = [0.48, 0.52]
    both = [own._replace(smoothed=replace(own.smoothed, probability=each)) for each in (p, q)]
    frame = _judged(Fit(chain), *both)
    assert frame["state"].isna().tolist() == [row == 4 for row in range(1, 13)]
    assert np.isfinite(frame.loc[4, "smoothed[1]"])


def test_paths_of_all_rows_are_refused_where_parameters_are_withheld(chain):
    with raises(Untrustworthy, "withheld", "leave paths out", "--method"):
        bz.decode(chain, paths=1)


def test_states_are_printed_and_so_is_the_fit(chain, run, tmp_path):
    bz.save(chain, tmp_path / "fit.nc")
    out = run("decode", tmp_path / "fit.nc")[1]
    assert "nan" not in out
    assert out.count("judged by itself") == 1
    assert "most probable states" in out
    off = changed(chain, means=lambda m: shifted(m, 0.5))
    bz.save(off, tmp_path / "off.nc")
    out = run("decode", tmp_path / "off.nc")[1]
    assert "nan" not in out
    assert "Withheld: smoothed" in out
    assert "Expected number" not in out
    fitted = "\n".join(f"{profile.title} {profile.rows}" for profile in profiles(Fit(off), document(Fit(off))))
    assert "states; stay" in fitted


def test_a_state_whose_transition_is_withheld_does_not_stay_for_ever():
    table = np.array([[np.nan, 0.2, 0.1], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    known = SimpleNamespace(is_point=False, array=lambda *_: table)
    assert _stays(known, 3) == ["-", "2", "for ever"]


def test_the_most_probable_levels_are_not_said_to_be_all_where_one_is_withheld():
    levels, values = ["a", "b", "c"], np.array([0.2, np.nan, 0.3])
    assert most_probable(levels, values, np.argsort(-values)) == "c, a (1 withheld)"
    assert most_probable(levels, np.array([0.2, 0.5, 0.3]), np.array([1, 2])) == "b, c"


LEVEL = bz.find("local_level")
SERIES = {"y": [3.1, 3.4, 2.9, np.nan, 3.8, 4.4, 4.1, 5.0, 5.2, np.nan, 4.9, 5.5]}


@pytest.fixture(scope="module")
def exact_level():
    data = bz.read(LEVEL, SERIES, missing="mask")
    return bz.fit(LEVEL.weak(data), data, "exact", seed=1)


@pytest.fixture(scope="module")
def level(exact_level):
    return as_approximation(exact_level.copy(deep=True), "q")


def test_levels_that_agree_are_those_of_the_exact_fit(level, exact_level):
    frame, true = bz.decode(level), bz.decode(exact_level)
    assert "judged by itself" in frame.attrs["judged"]
    sd = true["sd"]
    for name in ("level", "filtered", "filled", "q025", "q975", "filled_q025"):
        assert not (np.abs(frame[name] - true[name]) > 0.15 * sd).any(), name


@pytest.mark.parametrize("by", [{"q": 0.8}, {"q": 1.25}, {"r": 0.8}, {"q": 0.2}], ids=str)
def test_levels_that_are_shown_of_a_fit_that_is_off_are_near(level, exact_level, by):
    """Missing rows see the drift, rows that are there the noise; each number is judged by itself."""
    frame, true = bz.decode(scaled(level, **by)), bz.decode(exact_level)
    assert judged.FAR in " ".join(frame.attrs["withheld"])
    assert np.isnan(frame.attrs["log_score"])
    pairs = {"level": "sd", "q025": "sd", "q975": "sd", "filtered": "sd_filtered"}
    for name, sd in pairs.items():
        limit = 0.13 if name in ("level", "filtered") else 0.52
        assert not (np.abs(frame[name] - true[name]) > limit * true[sd]).any(), name
        assert (frame[sd] / true[sd]).dropna().between(0.87, 1.13).all(), sd
    assert (np.abs(frame["log_score"] - true["log_score"]).dropna() < 0.12).all()
    assert frame[["level", "filtered", "log_score", "filled"]].isna().any(axis=None)


def test_what_is_known_of_a_row_does_not_pass_by_what_follows_it(level):
    """A drift that is too large: in some rows only the level given all agrees, in others that given those before."""
    frame = bz.decode(scaled(level, q=1.25))
    one, other = frame["q025"].notna(), frame["filtered"].notna()
    assert (one & ~other).any()
    assert (other & ~one).any()
    assert (frame["filled_q025"].notna() == ~frame["withheld"].str.contains("filled")).all()


def test_paths_of_levels_are_refused_where_parameters_are_withheld(level):
    with raises(Untrustworthy, "withheld", "leave paths out"):
        bz.decode(level, paths=1)


def test_forecasts_of_levels_that_agree_are_those_of_the_exact_fit(level, exact_level):
    frame, true = bz.forecast(level, 3), bz.forecast(exact_level, 3)
    assert "judged by itself" in frame.attrs["judged"]
    assert (np.abs(frame["mean"] - true["mean"]) < 0.13 * true["sd"]).all()
    assert (frame[["sd", "sd_level"]] / true[["sd", "sd_level"]]).stack().between(0.87, 1.13).all()
    for name in ("q025", "q975"):
        assert (np.abs(frame[name] - true[name]) < 0.52 * true["sd"]).all()


@pytest.mark.parametrize("by", [{"q": 1.6}, {"q": 0.6}, {"r": 1.5}, {"r": 0.5, "q": 1.2}], ids=str)
def test_forecasts_that_are_shown_of_a_fit_that_is_off_are_near(level, exact_level, by):
    """The level ahead depends on the drift, the row on the noise too: either may be withheld alone."""
    true = bz.forecast(exact_level, 3)
    try:
        frame = bz.forecast(scaled(level, **by), 3)
    except Untrustworthy:
        return
    assert judged.FAR in " ".join(frame.attrs["withheld"])
    for mean, sd in (("mean", "sd"), ("level", "sd_level")):
        assert not (np.abs(frame[mean] - true[mean]) > 0.13 * true[sd]).any()
        assert (frame[sd] / true[sd]).dropna().between(0.87, 1.13).all()
    assert (frame["mcse_mean"].isna() == frame["mean"].isna()).all()
    assert frame[["mean", "level"]].isna().any(axis=None)


def test_no_forecast_passes_where_none_agrees(level):
    with raises(Untrustworthy, "withheld", "--method"):
        bz.forecast(scaled(level, q=9.0, r=9.0), 3)


def test_forecasts_of_states_are_judged_step_by_step(chain):
    frame = bz.forecast(chain, 4)
    assert "judged by itself" in frame.attrs["judged"]
    p, mean = ahead_by_all_paths(chain["reference_draws"].to_dataset(), 3)
    assert np.abs(frame.loc[3, ["state[1]", "state[2]"]].to_numpy(float) - p).max() < 0.05
    assert abs(frame.loc[3, "mean"] - mean) < 0.11 * frame.loc[3, "sd"]
    off = bz.forecast(changed(chain, means=lambda m: shifted(m, -1.0)), 4)  # states are the same, and rows are not
    assert off[["mean", "sd", "mcse_mean"]].isna().all(axis=None)
    assert off["state[1]"].notna().all()
    assert off["withheld"].str.startswith("mean, sd").all()
    with raises(Untrustworthy, "withheld"):
        bz.forecast(changed(chain, means=lambda m: m + 8.0), 4)


def test_pictures_leave_out_what_is_withheld_of_a_row(chain, level):
    off = changed(chain, means=lambda m: shifted(m, 0.5))
    frame, (numbers, probability, _) = bz.decode(off), bz.plot_states(off).axes
    drawn = [line.get_ydata() for line in probability.lines]
    assert sorted(np.isnan(y).sum() for y in drawn) == [frame[f"smoothed[{k}]"].isna().sum() for k in (1, 2)]
    assert not numbers.lines  # means of states are of parameters that are withheld
    assert not probability.collections  # and so are bands over draws
    of_levels = bz.plot_levels(scaled(level, q=1.25)).axes[0]
    assert np.isnan(of_levels.lines[0].get_ydata()).any()
