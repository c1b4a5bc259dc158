"""The Bayesian bootstrap against SciPy's distributions, quadrature, the binomial law, and NumPy's weighted moments."""

import doctest
import importlib
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy
from scipy import stats

import bayeszoo as bz
from bayeszoo.distributions.weighted import WeightedMean, WeightedQuantile
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.tools.resampling import functionals
from bayeszoo.tools.resampling.bayesian import ABOUT
from tests.refusals import raises

LAW_SCHOOL = Path(__file__).parents[1] / "models" / "data" / "law_school.csv"
TIED = np.array([1.0, 2.0, 2.0, 5.0, 9.0, 9.5])


def inverted(values, at):
    """P(mean <= at) by the inversion of Gil-Pelaez: the sum of (x_i - at) E_i of exponential variables is negative."""
    shifts = np.asarray(values) - at

    def integrand(u):
        return np.imag(np.prod(1 / (1 - 1j * u * shifts))) / u

    scale = 1 / np.abs(shifts).max()
    head = scipy.integrate.quad(integrand, 0, scale, limit=400)[0]
    return 0.5 - (head + scipy.integrate.quad(integrand, scale, np.inf, limit=400)[0]) / np.pi


# Laws in closed form


@pytest.mark.parametrize(
    ("values", "law"),
    [
        ([0.0, 1.0], stats.uniform()),
        ([0.0, 0.0, 0.0, 1.0], stats.beta(1, 3)),
        ([0.0, 0.0, 1.0, 1.0, 1.0], stats.beta(3, 2)),
        ([0.0, 0.5, 1.0], stats.triang(0.5)),
    ],
)
def test_the_mean_of_known_values_has_scipys_law(values, law):
    ours = WeightedMean(np.array(values))
    at = np.linspace(0.01, 0.99, 21)
    np.testing.assert_allclose(ours.cdf(at), law.cdf(at), atol=1e-13)
    np.testing.assert_allclose(ours.pdf(at), law.pdf(at), rtol=1e-12)
    assert [ours.ppf(q) for q in (0.025, 0.5, 0.975)] == pytest.approx(law.ppf([0.025, 0.5, 0.975]), rel=1e-10)
    assert (ours.mean(), ours.std()) == pytest.approx((law.mean(), law.std()), rel=1e-13)


@pytest.mark.parametrize("scale", [1.0, 1e-7, 1e9])
@pytest.mark.parametrize("rows", [6, 60, 600])
def test_the_law_of_a_mean_is_that_of_exponential_weights(rows, scale):
    values = scale * (3 + np.random.default_rng(rows).gamma(2.0, size=rows).round(2 if rows > 6 else 9))
    ours = WeightedMean(values)
    for level in (0.025, 0.5, 0.975):
        assert inverted(values / scale, ours.ppf(level) / scale) == pytest.approx(level, abs=1e-7)
    variance = np.var(values) / (rows + 1)
    assert ours.std() ** 2 == pytest.approx(variance, rel=1e-9)
    other = WeightedMean(np.append(values, values[:1]))  # what a row that is counted twice would change
    assert abs(inverted(values / scale, other.ppf(0.025) / scale) - 0.025) > 1e-5


def test_the_density_of_a_mean_integrates_to_its_moments():
    ours = WeightedMean(TIED)
    moments = [scipy.integrate.quad(lambda x, p=p: x**p * ours.pdf(x), 1, 9.5, points=[2, 5, 9])[0] for p in range(3)]
    assert moments[0] == pytest.approx(1, abs=1e-12)
    assert moments[1] == pytest.approx(ours.mean(), rel=1e-12)
    assert moments[2] - moments[1] ** 2 == pytest.approx(np.var(TIED) / 7, rel=1e-11)
    assert (ours.pdf(0.99), ours.pdf(9.51), ours.cdf(0.0), ours.cdf(10.0)) == (0, 0, 0, 1)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_a_quantile_has_the_binomial_law(p):
    """P(Beta(k, n - k) > p) is that of fewer than k of n - 1 uniform variables below p."""
    values = np.arange(8.0)
    expected = stats.binom.cdf(np.arange(8), 7, p)
    ours = WeightedQuantile(values, p)
    np.testing.assert_allclose(ours.cdf(values), expected, atol=1e-14)
    assert ours.mean() == pytest.approx(7 * p, rel=1e-12)
    assert ours.std() == pytest.approx(np.sqrt(7 * p * (1 - p)), rel=1e-12)
    assert [ours.ppf(q) for q in (0.025, 0.5, 0.975)] == stats.binom.ppf([0.025, 0.5, 0.975], 7, p).tolist()


def test_ties_share_their_probability():
    ours = WeightedQuantile(TIED, 0.5)
    single = stats.binom.pmf(np.arange(6), 5, 0.5)
    assert ours.values.tolist() == [1, 2, 5, 9, 9.5]
    np.testing.assert_allclose(ours.probabilities, [single[0], single[1] + single[2], *single[3:]], atol=1e-15)


# Draws


@pytest.mark.parametrize(("name", "level"), [("mean", None), ("median", 0.5), ("quantile:0.9", 0.9)])
def test_the_draws_have_the_exact_law(name, level):
    answer = bz.bootstrap(TIED, name, seed=3)
    assert answer.kind == "exact"
    if level is None:
        assert stats.kstest(answer.draws, answer.law.cdf).pvalue > 1e-3
        narrower = WeightedMean(np.append(TIED, [2.0, 5.0]))
        assert stats.kstest(answer.draws, narrower.cdf).pvalue < 1e-6
    else:
        counts = [np.sum(answer.draws == value) for value in answer.law.values]
        assert stats.chisquare(counts, len(answer.draws) * answer.law.probabilities).pvalue > 1e-3
        other = WeightedQuantile(TIED, level - 0.05)
        assert stats.chisquare(counts, len(answer.draws) * other.probabilities).pvalue < 1e-6


def test_draws_of_a_correlation_are_numpys_weighted_ones():
    """Drawn by another route: gamma weights, and NumPy's covariance with weights."""
    table, rng = pd.read_csv(LAW_SCHOOL).to_numpy(), np.random.default_rng(8)
    assert len(table) == 15
    expected = []
    for weights in rng.dirichlet(np.ones(15), 4000):
        cov = np.cov(table.T, aweights=weights)
        expected.append(cov[0, 1] / np.sqrt(cov[0, 0] * cov[1, 1]))
    answer = bz.bootstrap(str(LAW_SCHOOL), "correlation", seed=1)
    assert stats.ks_2samp(answer.draws, expected).pvalue > 1e-3
    doubled = [np.cov(table.T, aweights=w) for w in rng.dirichlet(np.full(15, 2.0), 4000)]
    wrong = [cov[0, 1] / np.sqrt(cov[0, 0] * cov[1, 1]) for cov in doubled]
    assert stats.ks_2samp(answer.draws, wrong).pvalue < 1e-6


def test_the_law_school_of_efron():
    answer = bz.bootstrap(str(LAW_SCHOOL), "correlation", draws=100_000, seed=1)
    row = answer.summary.loc["correlation"]
    assert row["of_rows"] == pytest.approx(np.corrcoef(*pd.read_csv(LAW_SCHOOL).to_numpy().T)[0, 1], rel=1e-12)
    assert round(row["of_rows"], 3) == 0.776
    assert row["mean"] == pytest.approx(0.772, abs=5e-4 + 4 * row["mcse_mean"])
    assert row["sd"] == pytest.approx(0.118, abs=5e-4 + 4 * row["mcse_sd"])
    assert 0 < row["mcse_mean"] < 6e-4


def test_the_squares_of_an_sd_have_their_mean():
    answer = bz.bootstrap(TIED, "sd", seed=2)
    squares = answer.draws**2
    error = squares.std() / np.sqrt(len(squares))
    expected = np.var(TIED) * 6 / 7  # the mean variance less that of the mean
    assert abs(squares.mean() - expected) < 4 * error
    assert abs(squares.mean() - np.var(TIED)) > 10 * error
    assert answer.of_rows == pytest.approx(np.std(TIED), rel=1e-13)


def test_a_callable_is_given_each_vector_of_weights():
    seen = []

    def slope(values, weights):
        seen.append(weights)
        return np.cov(values.T, aweights=weights)[0, 1]

    answer = bz.bootstrap(str(LAW_SCHOOL), slope, draws=100, seed=1)
    assert (answer.functional, answer.kind, len(seen)) == ("slope", "sampled", 101)
    assert np.sum(seen, axis=1) == pytest.approx(1, rel=1e-12)
    single = bz.bootstrap(TIED, lambda values, weights: values @ weights, draws=400, seed=1)
    assert abs(single.draws.mean() - TIED.mean()) < 4 * np.std(TIED) / np.sqrt(7 * 400)
    columns = bz.bootstrap(str(LAW_SCHOOL), lambda values, weights: values @ weights, draws=100, seed=1, column="GPA")
    assert columns.of_rows == pytest.approx(pd.read_csv(LAW_SCHOOL)["GPA"].mean(), rel=1e-12)


@pytest.mark.parametrize("functional", ["mean", "median", "quantile:0.01", "quantile:0.99", "sd"])
def test_no_draw_goes_beyond_the_rows(functional):
    values = 1e9 + TIED
    answer = bz.bootstrap(values, functional, draws=2000, seed=1)
    low, high = (0, np.ptp(values)) if functional == "sd" else (values.min(), values.max())
    assert low <= answer.draws.min() <= answer.draws.max() <= high
    row = answer.summary.iloc[0]
    assert low <= row["q025"] <= row["median"] <= row["q975"] <= high
    assert ABOUT in answer.notes


def test_one_row_and_equal_rows_are_said():
    for functional in ("mean", "median", "sd"):
        row = bz.bootstrap([5.0], functional, seed=1)
        assert any("one row" in note for note in row.notes)
        assert set(row.draws) == {0.0 if functional == "sd" else 5.0}
    equal = bz.bootstrap([5.0, 5.0, 7.0], "mean", seed=1)
    assert any("3 rows have 2 distinct values" in note for note in equal.notes)
    assert bz.bootstrap([5.0, 5.0], "mean", seed=1).summary.iloc[0][["mean", "sd", "q975"]].tolist() == [5, 0, 5]
    assert not any("distinct" in note for note in bz.bootstrap([5.0, 6.0], "mean", seed=1).notes)


def test_quantiles_of_the_mean_of_many_rows_are_sampled_and_say_so(monkeypatch):
    monkeypatch.setattr("bayeszoo.tools.resampling.bayesian.MOST_EXACT", 5)
    answer = bz.bootstrap(TIED, "mean", seed=1)
    row = answer.summary.iloc[0]
    assert answer.kind == "mean and sd exact, quantiles sampled"
    assert (row["mcse_mean"], row["mcse_sd"]) == (0, 0)
    assert 0 < row["mcse_q025"] < 0.2
    assert abs(row["q025"] - answer.law.ppf(0.025)) < 5 * row["mcse_q025"]


def test_the_seed_and_the_rows_make_the_draws(monkeypatch):
    first, again, other = (bz.bootstrap(TIED, "mean", seed=seed).draws for seed in (1, 1, 2))
    assert (first == again).all()
    assert not np.isin(first, other).any()
    assert not np.isin(first, bz.bootstrap(TIED + 1, "mean", seed=1).draws - 1).any()
    monkeypatch.setattr("bayeszoo.tools.resampling.bayesian.AT_ONCE", 60)
    parts = bz.bootstrap(TIED, "mean", seed=1).draws
    np.testing.assert_allclose(first, parts, rtol=1e-14)


def test_a_quantile_of_the_rows_is_not_lost_by_rounding():
    """25 times 0.28 is more than 7 in floating point, and NumPy takes the eighth row."""
    for rows in (1, 10, 25, 50):
        for percent in range(1, 100):
            asked = functionals.functional_of(f"quantile:{percent / 100}")
            assert asked.of_rows(np.arange(float(rows))) == math.ceil(Fraction(percent, 100) * rows) - 1
    assert np.quantile(np.arange(25.0), 0.28, method="inverted_cdf") == 7


def test_the_median_of_a_median_of_an_even_number_of_rows_is_the_lower():
    for rows in range(2, 60, 2):
        assert WeightedQuantile(np.arange(float(rows)), 0.5).ppf(0.5) == rows / 2 - 1


def test_the_examples_of_the_docstrings_print_what_they_show():
    for module in ("resampling.bayesian", "resampling.bayesbag", "decomposition.due_to", "decomposition.kitagawa"):
        failed, tried = doctest.testmod(importlib.import_module(f"bayeszoo.tools.{module}"))
        assert (failed, tried > 0) == (0, True)


# Bad input


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (TIED, {"functional": "mode"}, ("unknown_name", "functional", "'mode'", "mean")),
        (TIED, {"functional": "quantile:1"}, ("out_of_range", "'quantile:1'", "level", "0")),
        (TIED, {"functional": "quantile:x"}, ("out_of_range", "'quantile:x'", "level")),
        (TIED, {"draws": 99}, ("out_of_range", "100", "99")),
        ([1.0, np.nan], {}, ("missing_values", "'y'", "1", "2")),
        (["a", "b"], {}, ("not_a_number", "1")),
        ({"a": [1, 2], "b": [3, 4]}, {}, ("missing_column",)),
        ({"a": [1, 2], "b": [3, 4]}, {"columns": "a,b"}, ("wrong_columns", "mean")),
        ({"a": [1, 2], "b": [3, 4], "c": [3, 5]}, {"functional": "correlation"}, ("wrong_columns", "3")),
        ({"a": [1, 2], "b": [3, 3]}, {"functional": "correlation"}, ("wrong_columns", "'b'")),
        ({"a": [1], "b": [3]}, {"functional": "correlation"}, ("wrong_columns",)),
        ({"a": [1]}, {"functional": "correlation"}, ("wrong_columns", "1")),
        (TIED, {"functional": lambda values, weights: weights}, ("wrong_shape", "6")),
    ],
)
def test_what_cannot_be_used_is_refused(data, options, message):
    with raises(bz.InputError, *message):
        bz.bootstrap(data, **options, seed=1)


def test_a_functional_without_a_finite_value_is_refused():
    with raises(bz.NumericalError, "not_finite"):
        bz.bootstrap(TIED, lambda values, weights: np.nan, seed=1)


# The command line


def test_the_command_prints_each_number_with_its_error(run, tmp_path):
    code, out, err = run("bootstrap", LAW_SCHOOL, "--functional", "correlation", "--draws", 400_000, "--seed", 1)
    assert (code, err) == (0, "")
    words = [line.split() for line in out.splitlines()]
    assert words[0][:5] == ["correlation", "by", "the", "Bayesian", "bootstrap,"]
    rows = {line[0]: line[1:] for line in words if len(line) > 2}
    assert rows["of"] == ["the", "rows", "0.77637", "exact"]
    assert (rows["mean"][0][:5], rows["sd"][0][:5]) == ("0.772", "0.118")
    assert 0 < float(rows["mean"][1]) < 3e-4
    assert "sampled: 400000 draws of the weights" in out
    assert ABOUT in out


def test_the_command_writes_draws_and_json(run, tmp_path):
    command = ["bootstrap", LAW_SCHOOL, "--column", "LSAT", "--seed", 1, "-o", tmp_path / "draws.csv"]
    code, out, _ = run(*command, "--json")
    document = json.loads(out)
    assert code == 0
    assert (document["kind"], document["draws"], document["seed"], document["data"]["rows"]) == ("exact", 4000, 1, 15)
    values = pd.read_csv(LAW_SCHOOL)["LSAT"]
    (row,) = document["rows"]
    assert row["mean"] == pytest.approx(values.mean(), rel=1e-13)
    assert row["sd"] == pytest.approx(np.std(values) / 4, rel=1e-13)
    draws = pd.read_csv(tmp_path / "draws.csv")
    assert list(draws) == ["draw", "mean"]
    assert abs(draws["mean"].mean() - values.mean()) < 5 * row["sd"] / np.sqrt(4000)
    code, out, err = run(*command)
    assert (code, out) == (2, "")
    assert "--overwrite" in err


def test_the_command_refuses_in_one_line(run, written):
    table = written("name,x\na,1\nb,\n")
    for options, message in [
        (["--column", "name"], "column 'name', row 1: 'a' is not a number"),
        (["--column", "x"], "column 'x': 1 missing value (row 2); use --missing drop"),
        (["--column", "x", "--positive", "a"], "there is no option 'positive' for these data; use --column"),
    ]:
        code, out, err = run("bootstrap", table, *options)
        assert (code, out) == (2, "")
        assert err.startswith(f"error: {message}")
        assert len(err.splitlines()) == 1
    code, out, err = run("bootstrap", table, "--column", "x", "--missing", "drop", "--seed", 1)
    assert code == 0
    assert "dropped (row 2)" in err
    assert "one row" in out


def test_the_classical_bootstrap_of_four_rows_is_its_256_resamples():
    values = [1.0, 2.0, 4.0, 9.0]
    every = np.array([np.mean(each) for each in itertools.product(values, repeat=4)])
    answer = bz.bootstrap(values, "mean", weights="multinomial", draws=20_000, seed=1)
    assert answer.law is None
    means, counts = np.unique(np.round(every, 9), return_counts=True)
    seen = np.array([np.sum(np.isclose(answer.draws, mean)) for mean in means])
    assert seen.sum() == 20_000
    assert scipy.stats.chisquare(seen, counts / 256 * 20_000).pvalue > 1e-5
    assert answer.summary["sd"].iloc[0] == pytest.approx(np.std(every), rel=0.03)


def test_a_share_of_one_over_e_of_the_rows_is_missing_from_a_resample():
    def missing(values, weights):
        return float(np.mean(weights == 0))

    answer = bz.bootstrap(np.arange(1000.0), missing, weights="multinomial", draws=200, seed=1, column=None)
    assert answer.draws.mean() == pytest.approx(np.exp(-1), abs=0.005)


def test_other_weights_are_refused_by_name():
    with raises(InputError, "unknown_name", "poisson"):
        bz.bootstrap([1.0, 2.0], weights="poisson")


def test_resampled_estimates_of_four_rows_are_those_of_all_256():
    values, normal = np.array([1.0, 2.0, 4.0, 9.0]), bz.find("gaussian_mean")(sigma=2.0)
    answer = bz.bootstrap_mle(normal, values, draws=10_000, seed=1)
    every = np.array([np.mean(each) for each in itertools.product(values, repeat=4)])
    means, counts = np.unique(np.round(every, 9), return_counts=True)
    seen = np.array([np.sum(np.isclose(answer.draws["mu"], mean)) for mean in means])
    assert stats.chisquare(seen, counts / 256 * 10_000).pvalue > 1e-5
    assert float(answer.mle["mu"]) == pytest.approx(4.0)


def test_resampled_least_squares_are_refitted():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 2))
    y = X @ [1.0, -1.0] + rng.normal(size=40) * (1 + np.abs(X[:, 0]))
    lines = bz.find("linear_regression")
    answer = bz.bootstrap_mle(lines, (X, y), draws=500, seed=3)
    places = [np.random.default_rng(i).integers(0, 40, 40) for i in range(500)]
    designs = [np.column_stack([np.ones(40), X[some]]) for some in places]
    by_hand = np.array([np.linalg.lstsq(D, y[some], rcond=None)[0] for D, some in zip(designs, places, strict=True)])
    summary = answer.summary
    assert summary["sd"].iloc[1:3].to_numpy() == pytest.approx(by_hand[:, 1:].std(axis=0), rel=0.15)
    assert summary.index.tolist()[0] == "w[(intercept)]"


def test_trials_are_resampled_one_by_one_and_dependent_rows_not_at_all():
    coin = bz.find("beta_bernoulli")
    answer = bz.bootstrap_mle(coin, bz.read(coin, [0] * 30 + [1] * 70), draws=2000, seed=1)
    assert answer.summary["sd"].iloc[0] == pytest.approx(np.sqrt(0.7 * 0.3 / 100), rel=0.1)
    for name in ("markov_chain", "gaussian_mixture"):
        with raises(InputError, "not_conjugate", name):
            bz.bootstrap_mle(bz.find(name))
    with raises(NumericalError, "not_finite"):
        bz.bootstrap_mle(bz.find("normal_gamma"), [1.0, 2.0], draws=200, seed=1)
