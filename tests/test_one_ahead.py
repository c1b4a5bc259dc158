"""Residuals of series one step ahead: against statsmodels, dense Gaussians, sums over states, and known misfits."""

import numpy as np
import pytest
import scipy
import statsmodels.api as sm
from statsmodels.stats.diagnostic import acorr_ljungbox
from statsmodels.tsa.statespace.structural import UnobservedComponents

import bayeszoo as bz
from bayeszoo.answers.averages import Average
from bayeszoo.answers.checks.one_ahead import MISSING, ONE_AHEAD_PLUG_IN, START, autocorrelation
from bayeszoo.answers.checks.tails_of_rows import mixture
from bayeszoo.report.text.series import conclusion_of_series, misfits
from bayeszoo.results.stored import Fit

LEVEL, STRUCTURE = bz.find("local_level"), bz.find("structural_series")
NILE = bz.example(LEVEL)["y"]


def known(peer, m0, s0):
    """Give statsmodels' filter the first state of the zoo's prior."""
    size = peer.k_states
    peer.ssm.initialize_known(np.r_[m0, np.zeros(size - 1)], np.diag(np.r_[s0**2, np.ones(size - 1)]))
    return peer


@pytest.fixture(scope="module")
def mode():
    data = bz.read(LEVEL, {"y": np.where(np.arange(100) % 17 == 5, np.nan, NILE)}, missing="mask")
    model = LEVEL.weak(data)
    return model, data, bz.fit(model, data, "em", seed=1)


def test_residuals_at_a_mode_are_statsmodels_standardized_innovations(mode):
    model, data, tree = mode
    at = {name: float(np.ravel(values)[0]) for name, values in Fit(tree).draws().items()}
    peer = known(UnobservedComponents(data["y"], "llevel"), model.m0, model.s0)
    smoothed = peer.smooth([at["r"] ** 2, at["q"] ** 2])
    frame = bz.residuals(tree)
    own, seen = frame["standardized"].to_numpy(), (frame["basis"] == ONE_AHEAD_PLUG_IN).to_numpy()
    assert np.allclose(own[seen], smoothed.filter_results.standardized_forecasts_error[0][seen], rtol=1e-7)
    assert np.allclose(frame["normal_score"].to_numpy()[seen], own[seen], rtol=1e-7)
    assert frame["basis"].iloc[0] == START
    assert (frame["basis"][np.isnan(data["y"])] == MISSING).all()
    assert frame.loc[~seen, ["standardized", "pit", "normal_score"]].isna().all(axis=None)


def test_residuals_of_an_exact_fit_are_averaged_over_the_quadrature():
    data = bz.read(LEVEL, {"y": NILE[:12], "sequence": [*"aaaaaabbbbbb"]})
    model = LEVEL.weak(data)
    tree = bz.fit(model, data, "exact", seed=1)
    frame, grid = bz.residuals(tree), Fit(tree).integrated
    q, r = grid.points["q"][:, None], grid.points["r"][:, None]
    for row in (2, 8):  # by a dense Gaussian of the rows of its sequence before it
        first = 6 * (row // 6)
        y, size = NILE[first : row + 1] - model.m0, row + 1 - first
        i = np.arange(size)
        mean, sd = np.empty(len(q)), np.empty(len(q))
        for p in range(len(q)):
            K = model.s0**2 + q[p] ** 2 * np.minimum.outer(i, i) + r[p] ** 2 * np.eye(size)
            w = np.linalg.solve(K[:-1, :-1], K[:-1, -1])
            mean[p], sd[p] = w @ y[:-1], np.sqrt(K[-1, -1] - w @ K[:-1, -1])
        pit = grid.mass @ scipy.stats.norm.cdf((y[-1] - mean) / sd)
        assert np.isclose(frame["pit"].iloc[row], pit, rtol=1e-8)
        assert np.isclose(frame["mean"].iloc[row], model.m0 + grid.mass @ mean, rtol=1e-8)
    assert frame["basis"].iloc[[0, 6]].tolist() == [START, START]


def test_residuals_of_a_structure_are_statsmodels():
    rng = np.random.default_rng(2)
    y = np.cumsum(rng.normal(size=48)) + np.tile([3.0, -1, 0, -2], 12) + rng.normal(size=48)
    data = bz.read(STRUCTURE, {"y": y})
    model = STRUCTURE.weak(data).replaced(period=4, components="level + season", variances="noise + level")
    params = {"q": np.array([0.9]), "r": np.array([0.7])}
    law = model.rows_one_ahead(params, data, np.arange(4, 48))
    peer = UnobservedComponents(y, "llevel", seasonal=4, stochastic_seasonal=False)
    covariance = model.s_season**2 * (4 * np.eye(4) - 1) / 3
    first = scipy.linalg.block_diag(model.s0**2, covariance[:3, :3])
    peer.ssm.initialize_known(np.r_[model.m0, 0, 0, 0], first)
    known = peer.smooth([0.7**2, 0.9**2]).filter_results
    assert np.allclose(law.mean()[0], known.forecasts[0][4:], rtol=1e-8)
    assert np.allclose(np.square(law.std()[0]), known.forecasts_error_cov[0, 0][4:], rtol=1e-8)
    assert model.numbers_at_start(data) == 4


def test_rows_of_a_hidden_chain_are_predicted_by_the_states_before():
    model = bz.find("hmm_gaussian")(K=2)
    A, first = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0.4, 0.6])
    params = {"initial": first, "transition": A, "means": np.array([-1.0, 2.0]), "variances": np.array([0.5, 3.0])}
    data = {"y": np.array([-1.0, 0.3, 2.5, -0.4]), "sequence": np.array([0, 0, 0, 1])}
    p = first
    for row in range(4):
        p = first if row == 3 else p
        assert np.allclose(model.predicted(params, data)[row], p)
        law = model.rows_one_ahead(params, data, np.array([row]))
        density = scipy.stats.norm(params["means"], np.sqrt(params["variances"])).pdf(data["y"][row])
        assert np.isclose(np.exp(law.logpdf(data["y"][[row]]))[0], p @ density)
        assert np.isclose(np.exp(law.logcdf(data["y"][[row]]))[0] + np.exp(law.logsf(data["y"][[row]]))[0], 1)
        p = (p * density / (p @ density)) @ A


def test_scores_of_neighbours_are_tested_as_statsmodels_does():
    class Model:
        lags_checked = 10

    score = np.random.default_rng(4).normal(size=80)
    own = autocorrelation(score, np.zeros(80, dtype=int), Model())
    peer = acorr_ljungbox(score, lags=[10])
    assert np.isclose(own["ljung_box_p"], peer["lb_pvalue"].iloc[0])
    assert np.isclose(own["lag_1"], sm.tsa.acf(score, nlags=1)[1])
    apart = autocorrelation(np.r_[np.arange(6.0), -np.arange(6.0)], np.repeat([0, 1], 6), Model())
    assert apart["ljung_box_lags"] == 2
    pairs = np.r_[np.arange(5.0) * np.arange(1.0, 6), np.arange(5.0) * np.arange(1.0, 6)].sum()
    assert np.isclose(apart["lag_1"], pairs / (2 * np.sum(np.arange(6.0) ** 2)))


def facts_at(y, **params):
    """Return what is said of the normal scores of rows about a level at known standard deviations."""
    data = {"y": y, "sequence": np.zeros(len(y), dtype=int)}
    model = LEVEL.weak(data)
    law = model.rows_one_ahead({name: np.array([value]) for name, value in params.items()}, data, np.arange(len(y)))
    scores = ((y - law.mean()) / law.std())[0]
    pits = scipy.stats.kstest(scores, "norm").pvalue
    return {**autocorrelation(scores, data["sequence"], model), "ks_p": pits}


def test_a_series_with_seasons_and_a_row_far_out_are_no_local_level(mode):
    assert misfits(bz.residuals(mode[2]).attrs) == []
    y = 10 * np.sin(np.arange(72) * np.pi / 2) + np.random.default_rng(1).normal(size=72)
    facts = facts_at(y, q=5.0, r=3.0)
    assert "ljung_box_p" in misfits(facts)
    assert "structural_series" in conclusion_of_series(facts, "local_level")[-1]
    far = NILE.copy()
    far[50] += 2500
    facts = facts_at(far, q=38.0, r=123.0)
    assert "extreme_p" in misfits(facts)
    assert "--features" in conclusion_of_series(facts, "structural_series")[-1]


def test_means_of_a_local_level_are_averages_of_m0_and_the_rows_before():
    rng = np.random.default_rng(2)
    y = rng.normal(scale=50, size=40)
    y[[0, 7, 8, 30]] = np.nan
    model = LEVEL(m0=3.0, s0=2.0)
    assert model.means_are_averages
    assert not bz.find("structural_series")().means_are_averages
    params = {name: np.exp(rng.normal(scale=6, size=200)) for name in "qr"}
    data = {"y": y, "sequence": np.repeat([0, 1], 20)}
    means = model.rows_one_ahead(params, data, np.flatnonzero(~np.isnan(y))).mean()
    for i, t in enumerate(np.flatnonzero(~np.isnan(y))):
        before = [3.0, *(v for v in y[20 * (t // 20) : t] if not np.isnan(v))]
        assert means[:, i].min() >= min(before) - 1e-9
        assert means[:, i].max() <= max(before) + 1e-9


def test_a_mean_of_heavy_tails_is_withheld_unless_it_is_bounded():
    means = np.random.default_rng(3).pareto(0.8, size=(4000, 1))
    law, average = scipy.stats.norm(means, 1.0), Average("approximate")
    assert np.isnan(mixture(law, np.zeros(1), average).mean).all()
    known = mixture(law, np.zeros(1), average, None, True)
    np.testing.assert_allclose(known.mean, means.mean())
    assert np.isnan(known.sd).all()


def test_pits_of_the_true_model_are_uniform():
    rng, scores = np.random.default_rng(7), []
    model = LEVEL(m0=0.0, s0=1.0, t_q=1.0, t_r=1.0)
    for _ in range(40):
        params, rows = model.simulate(rng, 30)
        law = model.rows_one_ahead({name: np.array([params[name]]) for name in "qr"}, rows, np.arange(30))
        scores += law.cdf(rows["y"])[0].tolist()
    assert scipy.stats.kstest(scores, "uniform").pvalue > 1e-4


def test_the_command_says_what_to_try_next(mode, tmp_path, run):
    bz.save(mode[2], tmp_path / "nile.nc")
    code, out, _ = run("residuals", tmp_path / "nile.nc")
    assert code == 0
    assert "Ljung-Box" in out
    assert "The model fits" in out


@pytest.mark.slow  # variational Bayes, and draws of NUTS by which it is measured
def test_nothing_is_said_of_all_rows_where_an_approximation_is_off_in_some():
    chain = bz.find("hmm_gaussian")
    data = bz.read(chain, {"y": NILE})
    facts = bz.residuals(bz.fit(chain.weak(data), data, "vb", seed=1)).attrs
    if "judged" in facts and np.isnan(facts["ks_p"]):
        assert np.isnan(facts["ljung_box_p"])
        assert "not checked" in conclusion_of_series(facts, "hmm_gaussian")[0]
