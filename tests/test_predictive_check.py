"""Posterior predictive checks: against exact distributions of replicated quantities, and models that are wrong."""

import math
import sys

import numpy as np
import pytest
from scipy import integrate, stats

import bayeszoo as bz
from bayeszoo.answers.checks import predictive_check as module
from bayeszoo.answers.checks.predictive_check import p_value, replicate
from bayeszoo.answers.checks.replicated_statistics import STATISTICS, Sets
from bayeszoo.results.stored import Fit
from tests.refusals import raises

GaussianMean, BetaBernoulli = bz.find("gaussian_mean"), bz.find("beta_bernoulli")
GammaPoisson, Ridge, NormalGamma = map(bz.find, ("gamma_poisson", "ridge", "normal_gamma"))
LARGEST = "largest absolute standardized residual"
Y = np.array([1.2, -0.4, 2.9, 0.3, 1.1, 0.8, -1.3, 3.4])


@pytest.fixture(scope="module")
def gaussian():
    """mu ~ N(m, s^2) given `Y`, and 4000 independent draws of it."""
    tree = bz.fit(GaussianMean(0.5, 2.0, 1.0), Y, "exact", seed=1)
    precision = 1 / 4 + len(Y)
    return tree, (0.5 / 4 + Y.sum()) / precision, precision**-0.5


def sampled(tree):
    """The same fit, its independent draws taken for those of a sampler."""
    again = tree.copy()
    again.attrs |= {"kind": "sampled", "method": "nuts"}
    return again


# Exact distributions


@pytest.mark.parametrize("name", ["mean", "maximum", "minimum", LARGEST, "standard deviation"])
def test_p_values_are_integrals_over_mu(gaussian, name):
    tree, m, s = gaussian
    n = len(Y)
    above = {  # P(replicate exceeds the data | mu)
        "mean": lambda mu: stats.norm.sf((Y.mean() - mu) * math.sqrt(n)),
        "maximum": lambda mu: 1 - stats.norm.cdf(Y.max() - mu) ** n,
        "minimum": lambda mu: stats.norm.sf(Y.min() - mu) ** n,
        "standard deviation": lambda mu: stats.chi2(n - 1).sf((n - 1) * Y.var(ddof=1)),
        LARGEST: lambda mu: 1 - (1 - 2 * stats.norm.sf(np.abs(Y - mu).max())) ** n,
    }[name]
    exact = integrate.quad(lambda mu: above(mu) * stats.norm(m, s).pdf(mu), m - 10 * s, m + 10 * s)[0]
    row = bz.predictive_check(tree, [name], replicates=4000, seed=4).loc[name]
    assert abs(row["p_value"] - exact) < 4 * row["mcse"]
    assert row["mcse"] == pytest.approx(math.sqrt(exact * (1 - exact) / 4000), rel=0.15)
    assert (row["observed_sd"] > 0) == name.startswith("largest")
    plugged = above(Y.mean())  # the bug: all replicates from one mu
    if name.startswith("largest"):
        assert abs(row["p_value"] - plugged) > 4 * row["mcse"]
    if name == "mean":
        law = stats.norm(m, math.sqrt(s**2 + 1 / n))
        error = np.sqrt(0.025 * 0.975 / 4000) / law.pdf(law.ppf([0.025, 0.975]))
        assert (np.abs(row[["q025", "q975"]].to_numpy(float) - law.ppf([0.025, 0.975])) < 4 * error).all()
        expected = {"observed": (Y.mean(), 1e-13), "mean": (m, 4 * law.std() / math.sqrt(4000))}
        assert all(row[key] == pytest.approx(value, abs=off) for key, (value, off) in expected.items())


def test_ties_count_half():
    y = [1, 0, 0, 1, 1, 0, 1, 1, 0, 1]
    tree = bz.fit(BetaBernoulli(1.0, 2.0), y, "exact", seed=1)
    row = bz.predictive_check(tree, ["mean"], replicates=4000, seed=1).loc["mean"]
    law = stats.betabinom(10, 1 + 6, 2 + 4)
    exact = law.sf(6) + law.pmf(6) / 2
    assert abs(row["p_value"] - exact) < 4 * row["mcse"]
    assert abs(row["p_value"] - law.sf(5)) > 4 * row["mcse"]  # ties counted as beyond


def test_the_monte_carlo_error_is_that_of_repeated_checks(gaussian):
    tree, _, _ = gaussian
    found = [bz.predictive_check(tree, ["maximum"], replicates=100, seed=seed).loc["maximum"] for seed in range(60)]
    spread = np.std([row["p_value"] for row in found], ddof=1)  # of the replicates given the draws of mu
    assert 0.6 < spread / np.mean([row["mcse"] for row in found]) < 1.25
    sure = p_value(np.zeros(1000), np.ones(1000))
    assert sure[0] == 1
    assert 5e-4 < sure[1] < 2e-3
    values = np.random.default_rng(0).exponential(size=1000)  # sums in another order are ties
    assert p_value(np.full(4, values.mean()), np.full(4, values[::-1].mean()))[0] == 0.5
    expected, _ = p_value(np.full(1000, 0.5), values)
    for offset in (1e6, 1e9):  # a large offset makes none
        found, _ = p_value(np.full(1000, offset + 0.5e-3), offset + 1e-3 * values)
        assert found == pytest.approx(expected, abs=5e-3)


def test_dependent_draws_have_larger_errors():
    rng = np.random.default_rng(1)
    walk = np.zeros((4, 500))
    for i in range(1, 500):
        walk[:, i] = 0.95 * walk[:, i - 1] + rng.normal(size=4)
    p, mcse = p_value(np.zeros(2000), walk.ravel(), chains=4)
    independent = p_value(np.zeros(2000), walk.ravel())
    assert p == independent[0]
    assert mcse > 3 * independent[1]


# Models that are wrong


def regression(errors, seed=3, n=200):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, 1 + X @ [2.0, -1.0] + errors(rng, n)


def autoregressive(rng, n):
    e = rng.normal(size=n)
    for i in range(1, n):
        e[i] = 0.5 * e[i - 1] + math.sqrt(0.75) * e[i]
    return e


@pytest.mark.parametrize(
    ("errors", "name"),
    [
        (autoregressive, "lag-1 autocorrelation of residuals"),
        (lambda rng, n: stats.t(3).rvs(n, random_state=rng) / math.sqrt(3), LARGEST),
        (lambda rng, n: 1.5 * rng.normal(size=n), LARGEST),
        (lambda rng, n: rng.exponential(size=n) - 1, LARGEST),
        (lambda rng, n: rng.normal(size=n), None),
    ],
)
def test_a_wrong_model_is_flagged_by_the_quantity_that_shows_it(errors, name):
    p = bz.predictive_check(bz.fit(Ridge(10.0, 1.0, 10.0), regression(errors), "exact", seed=1))["p_value"]
    assert p.between(0.02, 0.98).all() if name is None else p[name] < 0.01


def test_too_many_zeros_are_flagged():
    rng = np.random.default_rng(4)
    y = np.where(rng.uniform(size=200) < 0.3, 0, rng.poisson(3, 200))
    checks = bz.predictive_check(bz.fit(GammaPoisson(), y, "exact", seed=1))
    assert list(checks.index)[:4] == ["mean", "standard deviation", "maximum", "share of zeros"]
    assert checks.loc["share of zeros", "p_value"] == 0
    runs = bz.predictive_check(bz.fit(BetaBernoulli(), [0] * 20 + [1] * 20, "exact", seed=1))
    assert list(runs.index) == ["mean", "changes", "longest run"]
    assert runs.loc["changes", ["observed", "p_value"]].tolist() == [1, 1]
    assert runs.loc["longest run", ["observed", "p_value"]].tolist() == [20, 0]


# Quantities


def test_quantities_are_other_peoples():
    rng = np.random.default_rng(5)
    y, mean, sd = rng.gamma(2, size=(3, 50)), rng.normal(size=(3, 50)), rng.uniform(0.5, 2, (3, 50))
    sets = Sets(y, mean, sd, {}, {})
    assert STATISTICS["skewness"](sets) == pytest.approx(stats.skew(y, axis=1), rel=1e-12)
    assert STATISTICS["standard deviation"](sets) == pytest.approx(np.std(y, axis=1, ddof=1), rel=1e-12)
    z = (y - mean) / sd
    expected = [np.correlate(row[1:], row[:-1])[0] / np.dot(row, row) for row in z]
    assert STATISTICS["lag-1 autocorrelation of residuals"](sets) == pytest.approx(expected, rel=1e-12)
    assert STATISTICS[LARGEST](sets) == pytest.approx(np.abs(z).max(1), rel=1e-13)
    bits = Sets(np.array([[0, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]]), mean, sd, {}, {})
    assert STATISTICS["longest run"](bits).tolist() == [3, 6]
    assert STATISTICS["changes"](bits).tolist() == [2, 0]
    far = Sets(1e9 + rng.normal(size=(1, 1000)), mean, sd, {}, {})
    assert STATISTICS["skewness"](far).item() == pytest.approx(stats.skew(far.y[0] - 1e9), rel=1e-5)


def test_users_give_functions_of_the_outcome_or_of_data_and_parameters_too(gaussian):
    tree, _, _ = gaussian
    seen = []

    def distance(y, data, params):
        seen.append((set(data), {name: np.shape(value) for name, value in params.items()}))
        return np.sum((y - params["mu"]) ** 2)

    found = bz.predictive_check(tree, {"median": np.median, "distance": distance, "spread": np.ptp}, seed=1)
    assert list(found.index) == ["median", "distance", "spread"]
    assert found.loc["median", "observed"] == np.median(Y)
    assert seen[0] == ({"y"}, {"mu": ()})
    assert found.loc["distance", "observed_sd"] > 0
    assert abs(found.loc["distance", "mean"] - 8) < 4 * math.sqrt(16 / 1000)  # chi-square of 8
    same = bz.predictive_check(tree, [np.median, "mean"], seed=1)
    assert same.loc["median"].equals(found.loc["median"])


@pytest.mark.parametrize(
    ("statistics", "message"),
    [
        (["variance"], "there is no statistic 'variance'; use one of mean"),
        ([np.median, np.median], "two statistics are called 'median'"),
        ({"a": 3}, "statistic 'a' is not a function: 3"),
        ({"a": lambda y, data: 1.0}, "statistic 'a' must take y, or y, data and params, got a(y, data)"),
        ({"a": lambda y: y}, "statistic 'a' must return one number, returned ndarray"),
        ({"a": lambda y: "x"}, "statistic 'a' must return one number, returned str"),
    ],
)
def test_statistics_that_cannot_be_used_are_refused(gaussian, statistics, message):
    with pytest.raises(bz.InputError) as refused:
        bz.predictive_check(gaussian[0], statistics, replicates=8)
    assert str(refused.value).startswith(message)
    for replicates, code in ((0, "wrong_type"), (2.5, "wrong_type"), (True, "wrong_type"), (5000, "too_few_rows")):
        with raises(bz.InputError, code, "replicates", replicates):
            bz.predictive_check(gaussian[0], replicates=replicates)


def test_what_does_not_exist_is_withheld_with_its_reason():
    one = bz.predictive_check(bz.fit(GaussianMean(), [1.0], "exact", seed=1))
    assert one.loc["skewness", "withheld"] == "the data have none"
    assert one.loc[["skewness", "standard deviation"], ["observed", "p_value", "mcse"]].isna().all(axis=None)
    assert one.loc["mean", "withheld"] == ""
    rare = bz.fit(GammaPoisson(1.0, 1.0), [0, 0, 1, 0], "exact", seed=1)
    row = bz.predictive_check(rare, ["skewness"], seed=1).loc["skewness"]  # of a data set of zeros there is none
    assert row["withheld"].endswith("of 1000 replicated data sets have none")
    assert np.isnan(row["p_value"])
    assert row["observed"] == pytest.approx(stats.skew([0, 0, 1, 0]))
    two = bz.fit(NormalGamma(), [1.0, 2.0], "exact", seed=1)  # of two it would be 0, whatever they are
    assert np.isnan(bz.predictive_check(two, ["skewness"]).loc["skewness", "p_value"])


def test_a_mean_that_heavy_tails_do_not_tell_has_its_reason():
    heavy = stats.cauchy.rvs(size=1000, random_state=1)
    row = module._compared(module.Replicates({"T": np.zeros(1000)}, {"T": heavy}, 1), "T", "exact")
    assert np.isnan(row["mean"])
    assert row["withheld"].startswith("mean")
    assert row["p_value"] == pytest.approx(0.5, abs=0.1)


def test_the_mean_of_a_quantity_of_zeros_and_ones_is_never_withheld():
    """Of 20 rows the standard deviation has ten values, the least of which look like a tail: half were withheld."""
    tree = bz.fit(bz.find("beta_bernoulli")(a=1, b=1), [1] * 7 + [0] * 13, "exact", seed=1)
    for seed in range(8):
        row = bz.predictive_check(tree, ["standard deviation"], seed=seed).loc["standard deviation"]
        assert 0.3 < row["mean"] < 0.52
        assert row["withheld"] == ""


def test_counts_that_are_too_large_to_be_drawn_are_withheld_and_the_others_are_not():
    tree = bz.fit(GammaPoisson(1.0, 1.0), [3, 0, 2, 1], "exact", seed=1)
    far = tree.copy(deep=True)
    far["posterior"]["rate"][0, -40:] = 1e19
    found = replicate(Fit(far), ["mean", LARGEST], seed=1)
    for values in (*found.replicated.values(), found.observed[LARGEST]):
        assert np.flatnonzero(np.isnan(values)).tolist() == list(range(240, 250))  # every fourth of the first chain
    row = bz.predictive_check(far, ["mean"], seed=1).loc["mean"]
    assert (row["observed"], row["withheld"]) == (1.5, "10 of 1000 replicated data sets have none")


# Draws


def test_replicates_are_evenly_spread_over_chains_and_repeat_with_the_seed_in_parts_too(gaussian, monkeypatch):
    tree, _, _ = gaussian
    found = replicate(Fit(tree), {"mu": lambda y, data, params: params["mu"]}, replicates=10, seed=1)
    draws = tree["posterior"]["mu"].to_numpy()
    assert found.replicated["mu"].tolist() == draws[:, [0, 333, 666]].ravel().tolist()  # 12: a multiple of 4
    first, second, other = (bz.predictive_check(tree, seed=seed) for seed in (1, 1, 2))
    assert first.equals(second)
    assert not first.equals(other)
    assert first.attrs["basis"] == "posterior draws"
    both = [bz.predictive_check(one, seed=np.random.default_rng(1)) for one in (tree, sampled(tree))]
    assert both[0]["p_value"].equals(both[1]["p_value"])
    assert ((both[1]["mcse"] / both[0]["mcse"]).between(0.95, 1.4)).all()  # independent draws, by their autocorrelation
    monkeypatch.setattr(sys.modules["bayeszoo.answers.checks.predictive_check"], "AT_ONCE", 20)
    assert bz.predictive_check(tree, seed=1).equals(first)


def test_a_point_estimate_is_plugged_in_and_says_so(gaussian):
    tree = bz.fit(GaussianMean(0.5, 2.0, 1.0), Y, "mle", seed=1)
    found = bz.predictive_check(tree, ["mean", "maximum"], replicates=2000, seed=1)
    assert found.attrs["basis"] == "plug-in"
    exact = 1 - stats.norm.cdf(Y.max() - Y.mean()) ** len(Y)
    assert abs(found.loc["maximum", "p_value"] - exact) < 4 * found.loc["maximum", "mcse"]
    assert (found["replicates"] == 2000).all()


# Pictures


MANY = np.random.default_rng(1).normal(size=50_000)
DRAWN = [(GaussianMean(), Y), (GaussianMean(), MANY), (NormalGamma(), [1.0]), (GammaPoisson(), [0, 1, 1, 4])]


@pytest.mark.parametrize(("model", "y"), [*DRAWN, (BetaBernoulli(), [0, 1, 1, 1])])
def test_pictures(model, y):
    tree = bz.fit(model, y, "exact", seed=1, draws=50)
    figure = bz.plot_predictive_check(tree, replicates=60)
    checks = bz.predictive_check(tree, replicates=60)
    drawn = [axes.get_xlabel() for axes in figure.axes if axes.axison]
    assert drawn == [*checks.index[checks["withheld"] == ""]]
    figure.canvas.draw()
    panel = figure.axes[0]
    assert panel.lines[0].get_xdata()[0] == checks["observed"].iloc[0]
    assert sum(patch.get_height() for patch in panel.patches) == 60


def test_each_column_of_several_numbers_is_checked_by_itself():
    rng = np.random.default_rng(0)
    model, table = bz.find("normal_inverse_wishart"), {"a": rng.normal(size=60), "b": rng.exponential(size=60) ** 2}
    data = bz.read(model, table)
    frame = bz.predictive_check(bz.fit(model.weak(data), data, "exact", seed=1))
    names = "mean", "standard deviation", "minimum", "maximum", "skewness"
    assert list(frame.index) == [f"{name} of {column}" for column in "ab" for name in names]
    assert frame.loc["minimum of b", "observed"] == min(table["b"])
    assert frame.loc["minimum of b", "p_value"] == 0
    assert frame.loc[[name for name in frame.index if name.endswith(" a")], "p_value"].between(0.01, 0.99).all()
    holes = bz.read(bz.find("ppca"), {"a": [1.0, np.nan, 2.0, 0.5], "b": [0.1, 2.0, 3.0, 1.0]}, missing="mask")
    with raises(bz.InputError, "missing_values"):
        bz.predictive_check(bz.fit(bz.find("ppca").weak_with(holes, {"q": 1}), holes, "map", seed=1))


def test_means_and_quantiles_of_replicates_have_the_errors_that_other_seeds_show():
    # with known sigma the mean of a replicated data set is normal
    fits = [bz.fit(GaussianMean(0.5, 2.0, 1.0), Y, "exact", seed=seed, chains=1, draws=1000) for seed in range(20)]
    after = bz.update(GaussianMean(0.5, 2.0, 1.0), Y)
    law = stats.norm(after.m0, np.hypot(after.s0, 1 / len(Y) ** 0.5))
    rows = [bz.predictive_check(fit, ["mean"], seed=seed).loc["mean"] for seed, fit in enumerate(fits)]
    assert rows[0]["mcse_observed"] == 0
    for name, known in (("mean", law.mean()), ("q025", law.ppf(0.025)), ("q975", law.ppf(0.975))):
        z = np.array([(row[name] - known) / row[f"mcse_{name}"] for row in rows])
        assert 0.55 < np.sqrt(np.mean(z**2)) < 1.6, (name, z)  # chi-square of 20: beyond these with a chance of 1e-3
