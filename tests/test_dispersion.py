"""The dispersion of counts: Pearson's chi-square against statsmodels and SciPy, and the next model to try."""

import json

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

import bayeszoo as bz
from bayeszoo.answers.checks import replicated_statistics
from bayeszoo.answers.checks.replicated_statistics import DISPERSION
from bayeszoo.report.next_model import conclusion

POISSON, LOGISTIC = bz.find("poisson_regression"), bz.find("logistic_regression")
RNG = np.random.default_rng(8)
X, HOURS = RNG.normal(size=150), RNG.uniform(0.5, 3, 150)
MEANS = HOURS * np.exp(1 + 0.4 * X)
OVER = pd.DataFrame({"y": RNG.negative_binomial(2, 2 / (2 + MEANS)), "x": X, "hours": HOURS})
RIGHT = OVER.assign(y=RNG.poisson(MEANS))
UNDER = OVER.assign(y=RNG.binomial(40, MEANS / MEANS.max() * 0.9))


def fitted(table, method="mle", model=POISSON, **how):
    data = bz.read(model, table, **(how or {"target": "y", "exposure": "hours"}))
    return bz.fit(model.weak(data), data, method, seed=1, groups=())


def observed(tree):
    return bz.predictive_check(tree, [DISPERSION], replicates=100).loc[DISPERSION, "observed"]


def by_statsmodels(table):
    design = sm.add_constant(table[["x"]])
    result = sm.GLM(table["y"], design, family=sm.families.Poisson(), exposure=table["hours"]).fit()
    return result.pearson_chi2 / len(table)


@pytest.mark.parametrize("table", [OVER, RIGHT, UNDER])
def test_at_the_mle_it_is_the_chi_square_of_statsmodels(table, monkeypatch):
    tree = fitted(table)
    assert observed(tree) == pytest.approx(by_statsmodels(table), rel=1e-6)
    of_sd = replicated_statistics._standardized  # a seeded bug: residuals in variances
    monkeypatch.setattr(replicated_statistics, "_standardized", lambda sets: of_sd(sets) / sets.sd)
    assert observed(tree) != pytest.approx(by_statsmodels(table), rel=1e-2)


def test_of_trials_it_is_the_chi_square_of_statsmodels():
    n = RNG.integers(5, 30, 80)
    mean = 1 / (1 + np.exp(-X[:80]))
    good = stats.betabinom(n, 2 * mean, 2 * (1 - mean)).rvs(random_state=RNG)
    table = pd.DataFrame({"good": good, "n": n, "x": X[:80]})
    tree = fitted(table, model=LOGISTIC, successes="good", trials="n")
    outcome = np.column_stack([table["good"], n - table["good"]])
    result = sm.GLM(outcome, sm.add_constant(table[["x"]]), family=sm.families.Binomial()).fit()
    assert observed(tree) == pytest.approx(result.pearson_chi2 / 80, rel=1e-6)
    checks = bz.predictive_check(tree)
    lines = conclusion(checks, LOGISTIC.inputs, "logistic_regression")
    assert "logistic_intercepts" in lines[-1]


def test_replicates_are_those_of_simulated_counts():
    """Parameters from the conjugate posterior, counts, and their chi-squares, by NumPy alone."""
    y = np.array([3, 0, 7, 2, 9, 1, 4, 12, 0, 5])
    tree = bz.fit(bz.find("gamma_poisson")(a=2.0, b=1.0), y, "exact", seed=1, draws=4000)
    row = bz.predictive_check(tree, [DISPERSION], replicates=4000).loc[DISPERSION]
    rng = np.random.default_rng(0)
    rate = rng.gamma(2 + y.sum(), 1 / (1 + len(y)), (200_000, 1))
    simulated = (np.square(rng.poisson(rate, (200_000, len(y))) - rate) / rate).mean(axis=1)
    of_data = (np.square(y - rate) / rate).mean(axis=1)
    p = np.mean(simulated > of_data)
    assert abs(row["p_value"] - p) < 4.5 * row["mcse"]
    assert abs(row["mean"] - 1) < 4.5 * row["mcse_mean"]
    assert abs(row["q975"] - np.quantile(simulated, 0.975)) < 4.5 * row["mcse_q975"]
    assert abs(row["observed"] - of_data.mean()) < 4.5 * row["mcse_observed"]
    assert abs(row["p_value"] - stats.chi2(9).sf(of_data.mean() * 10)) < 0.03  # as if at the estimate


def sentences(table):
    return conclusion(bz.predictive_check(fitted(table, "map")), POISSON.inputs, "poisson_regression")


def test_the_sentences_name_the_next_model_only_where_counts_vary_more():
    over, right, under = (sentences(table) for table in (OVER, RIGHT, UNDER))
    assert over[1].startswith("Counts vary more than the model says: dispersion ")
    assert over[-1].startswith("Next, try negative_binomial_regression")
    assert right[1].startswith("Counts vary as the model says")
    assert right[0].startswith("The model fits")
    assert under[1].startswith("Counts vary less than the model says")
    assert not any("negative_binomial" in line for line in under)


def test_the_proposed_model_has_the_dispersion_of_the_data():
    model = bz.find("negative_binomial_regression")
    checks = bz.predictive_check(fitted(OVER, "map", model, target="y", exposure="hours"))
    assert 0.02 < checks.loc[DISPERSION, "p_value"] < 0.98
    assert conclusion(checks, model.inputs, model.name)[1].startswith("Counts vary as the model says")


def test_the_command_ends_in_the_dispersion_and_the_next_model(run, tmp_path):
    table, fit = tmp_path / "counts.csv", tmp_path / "fit.nc"
    OVER.to_csv(table, index=False)
    how = ("--target", "y", "--exposure", "hours", "--method", "mle", "-o", fit)
    assert run("fit", "poisson_regression", table, *how)[0] == 0
    code, out, _ = run("residuals", fit)
    assert code == 0
    last = " ".join(out.split()[-60:])
    assert f"dispersion {by_statsmodels(OVER):.3g}" in last
    assert "Next, try negative_binomial_regression" in last
    checks = json.loads(run("residuals", fit, "--json")[1])["checks"]
    (row,) = [row for row in checks if row["statistic"] == DISPERSION]
    assert row["p_value"] == 0
