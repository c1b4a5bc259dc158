"""Predictions far from the data: exact ones by dense grids of SciPy's densities, others withheld with the reason."""

import json

import numpy as np
import pytest
import scipy
from scipy import stats

import bayeszoo as bz
from bayeszoo.distributions.averages.averaged import LARGEST, Averaged
from bayeszoo.distributions.discrete import BetaBinomial, LogMeanPoisson
from bayeszoo.foundation.numerics.levels import reached
from tests.quick import quick_where

COUNTS, AT = np.array([1, 0, 2, 1, 3]), np.arange(5.0)
TABLE = {"y": COUNTS, "x": AT}
CENTER, M0, PRIOR_SDS = 2.0, 0.4, (2.5, 1.6)


@pytest.fixture(scope="module")
def tree():
    M = bz.find("poisson_regression")
    return bz.fit(
        M(center=[CENTER], scale=[1.0], m0=M0, s0=2.5, tau=1.6), bz.read(M, TABLE, target="y"), "exact", seed=3
    )


def joint(intercept, slope):
    """Return the log joint density of both weights, the intercept at the center, and the counts, up to a constant."""
    heights = stats.norm.logpdf(intercept, M0, PRIOR_SDS[0]) + stats.norm.logpdf(slope, 0, PRIOR_SDS[1])
    for y, x in zip(COUNTS, AT, strict=True):
        eta = intercept + slope * (x - CENTER)
        heights += y * eta - np.exp(eta)
    return heights


def dense(low, high, size=1201):
    """Return log weights of a grid of both weights, and the grid: intercept at the center, and slope."""
    intercept, slope = np.meshgrid(*(np.linspace(*ends, size) for ends in zip(low, high, strict=True)), indexing="ij")
    return joint(intercept, slope), intercept, slope


def log_sum(power, x):
    """Return the log of the sum of density times exp(power eta) on a grid of 12 prior sds about its maximum."""

    def product(intercept, slope):
        return joint(intercept, slope) + power * (intercept + slope * (x - CENTER))

    top = scipy.optimize.minimize(lambda at: -product(*at), np.zeros(2), method="Nelder-Mead")
    reach = 12 * np.array(PRIOR_SDS)
    return scipy.special.logsumexp(product(*dense(top.x - reach, top.x + reach)[1:]))


def log_expected(power, x):
    """Return the log of E exp(power eta)."""
    return log_sum(power, x) - log_sum(0, x)


@pytest.mark.parametrize("x", quick_where([2, 10, 12, 13, 14, -16, -20], (2, 14, -20).__contains__))
def test_an_exact_fit_has_the_moments_of_a_dense_grid(tree, x):
    row = bz.predict(tree, {"x": [x]}).iloc[0]
    mean, square = (np.exp(log_expected(power, x)) for power in (1, 2))
    assert row["mean"] == pytest.approx(mean, rel=1e-4)
    assert row["sd"] == pytest.approx(np.sqrt(mean + square - mean**2), rel=1e-3)
    assert "withheld" not in row


@pytest.mark.parametrize("x", [2, 12])
def test_its_quantiles_and_scores_are_those_of_the_mixture(tree, x):
    row = bz.predict(tree, {"x": [x], "y": [3]}).iloc[0]
    heights, intercept, slope = dense((-8.0, -2.5), (3.0, 4.0), 401)
    share, rate = scipy.special.softmax(heights), np.exp(intercept + slope * (x - CENTER))
    for name, level in (("q025", 0.025), ("median", 0.5), ("q975", 0.975)):
        reaches, short = (np.sum(share * stats.poisson.cdf(row[name] - less, rate)) for less in (0, 1))
        assert short - 3e-5 < level < reaches + 3e-5
    assert row["log_score"] == pytest.approx(np.log(np.sum(share * stats.poisson.pmf(3, rate))), abs=1e-6)


def test_moments_above_the_doubles_are_withheld_and_quantiles_stay(tree):
    frame = bz.predict(tree, {"x": [50, 2, 1000]})
    assert np.isnan(frame.loc[[1, 3], ["mean", "sd"]]).all(axis=None)
    assert np.isfinite(frame.loc[[1, 2], ["q025", "median", "q975"]]).all(axis=None)
    assert frame["median"][1] > 1e6
    assert np.isnan(frame["q975"][3])  # above 1e300
    assert frame.loc[2, "withheld"] == ""
    assert frame.attrs["withheld"][0].startswith("mean, sd of row 1: ")


def test_by_draws_they_are_withheld_for_their_tails(tree):
    """As of a sampler: at 12 the draws gave a mean of 2000 +- 240 where 6400 is right, and at 50 a traceback."""
    sampled = tree.copy(deep=True)
    sampled.attrs |= {"kind": "sampled", "method": "nuts"}
    frame, exact = (bz.predict(each, {"x": [2, 12, 50]}) for each in (sampled, tree))
    assert np.isnan(frame.loc[[2, 3], ["mean", "sd", "mcse_mean", "mcse_sd"]]).all(axis=None)
    assert np.isfinite(frame[["q025", "median", "q975"]]).all(axis=None)
    for key in ("mean", "sd"):
        assert abs(frame[key][1] - exact[key][1]) < 4.5 * frame[f"mcse_{key}"][1]
    assert (np.abs(np.log1p(frame["median"]) - np.log1p(exact["median"])) < 1).all()


def test_the_terminal_json_and_csv_say_what_is_withheld(run, tree, tmp_path):
    bz.save(tree, tmp_path / "p.nc")
    (tmp_path / "far.csv").write_text("x\n2\n50\n")
    command = ("predict", str(tmp_path / "p.nc"), str(tmp_path / "far.csv"))
    code, out, _ = run(*command, "-o", str(tmp_path / "o.csv"))
    assert code == 0
    assert "Withheld: mean, sd of row 2: " in out
    answer = json.loads(run(*command, "--json")[1])
    assert [row["mean"] is None for row in answer["rows"]] == [False, True]
    assert answer["rows"][1]["withheld"].startswith("mean, sd: ")
    assert len(answer["withheld"]) == 1
    head, first, second = (tmp_path / "o.csv").read_text().splitlines()
    assert head.endswith(",withheld")
    assert first.endswith(",")
    assert "mean, sd: " in second


LAWS = {
    "normal": (stats.norm, (np.random.default_rng(1).normal(size=(40, 3)), 0.3)),
    "logistic": (stats.logistic, (np.random.default_rng(1).normal(size=(40, 3)) * 1e6, 1.0)),
    "poisson": (stats.poisson, (np.exp(np.random.default_rng(2).normal(size=(40, 3)) * 3),)),
    "poisson, of 0": (stats.poisson, (np.exp(np.random.default_rng(2).normal(size=(40, 3)) - 30),)),
    "negative binomial": (stats.nbinom, (0.5, np.random.default_rng(3).beta(1, 3, size=(40, 3)))),
}


@pytest.mark.parametrize(("law", "params"), LAWS.values(), ids=LAWS)
def test_quantiles_of_a_mixture_reach_their_level_and_no_less(law, params):
    weights = np.random.default_rng(4).dirichlet(np.ones(40))
    mixture = Averaged(law(*params), weights)
    for level in (0.025, 0.5, 0.975):
        quantile = mixture.ppf(level)
        at = weights @ law.cdf(quantile, *params)
        if hasattr(law, "pmf"):
            assert np.all(at >= level - 1e-10)
            assert np.all(weights @ law.cdf(quantile - 1, *params) < level)
        else:
            np.testing.assert_allclose(at, level, atol=1e-9)


@pytest.mark.parametrize("most", [30, 0], ids=["summed", "bisected"])
def test_quantiles_of_few_trials_are_sums_of_masses(monkeypatch, most):
    monkeypatch.setattr("bayeszoo.distributions.averages.averaged.MOST_SUMMED", most)
    rng = np.random.default_rng(5)
    weights, a, b, trials = rng.dirichlet(np.ones(20)), *rng.gamma(2, size=(2, 20, 3)), np.array([5, 12, 30])
    mixture = Averaged(BetaBinomial(trials, a, b), weights)
    masses = np.array([weights @ stats.betabinom.pmf(k, trials, a, b) for k in range(31)])
    for level in (0.025, 0.5, 0.975):
        assert mixture.ppf(level).tolist() == np.sum(np.cumsum(masses, axis=0) < level, axis=0).tolist()


def test_quantiles_of_a_distribution_without_masses_are_not_known():
    mixture = Averaged(BetaBinomial(np.array([5, 9]), np.array([[1.0, np.nan], [2.0, 3.0]]), np.ones((2, 2))))
    assert np.isnan(mixture.ppf(0.5)).tolist() == [False, True]


def test_a_quantile_that_no_point_of_finite_mean_reaches_is_not_known():
    rates = np.where(np.arange(10) < 6, 1.0, 800.0)[:, None]
    mixture = Averaged(LogMeanPoisson(np.ones(1), rates))
    assert mixture.ppf(0.5)[0] == stats.poisson.ppf(0.5 / 0.6, np.e)
    assert np.isnan(mixture.ppf(0.9)[0])


def test_brackets_of_any_width_close():
    def cdf(x):
        return stats.norm.cdf(np.log(x), [0, 500, -500], 2)

    found = reached(cdf, 0.3, np.full(3, 1e-300), np.full(3, LARGEST))
    np.testing.assert_allclose(np.log(found), stats.norm.ppf(0.3, [0, 500, -500], 2), rtol=1e-9)


def test_equal_rows_far_out_are_one_quadrature(tree, monkeypatch):
    monkeypatch.setattr("bayeszoo.answers.law.MOST_FAR", 2)
    at = [12.0] * 5 + [11.5] * 3 + [12.5]
    frame = bz.predict(tree, {"x": at})
    assert frame["mean"].notna().tolist() == [True] * 8 + [False]
    assert frame["mean"].nunique() == 2
    assert "different rows" in frame["withheld"].iloc[-1]
