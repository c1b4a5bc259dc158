"""Bagged posteriors against sums over all ordered resamples, binomial sums, and resamples drawn by NumPy."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.model.capabilities import Conjugate
from bayeszoo.tools.resampling import bayesbag as engine
from tests.refusals import raises

EARTHQUAKES = Path(__file__).parents[1] / "models" / "data" / "earthquakes.csv"
FOUR = np.array([-1.0, 0.5, 1.0, 3.5])
PRIOR = {"m0": 2.0, "s0": 3.0, "sigma": 1.5}
CONJUGATE = [name for name in bz.names() if issubclass(bz.find(name), Conjugate) and name != "markov_chain"]


def gaussian(values, size, m0=2.0, s0=3.0, sigma=1.5):
    """Mean and variance of the bagged posterior of a Gaussian mean, as in the paper: V + k^2 s_n^2 / size."""
    variance = 1 / (1 / s0**2 + size / sigma**2)
    k = size * s0**2 / (sigma**2 + size * s0**2)
    return m0 + k * (np.mean(values) - m0), variance + k**2 * np.var(values) / size


def shown(answer, quantity="mu"):
    return answer.summary.loc[quantity]


# Exact answers


@pytest.mark.parametrize(
    ("values", "size", "note"),
    [
        (FOUR, None, "every different resample with its probability: 35"),
        (FOUR, 3, "every different resample with its probability: 20"),
        (np.random.default_rng(3).normal(size=40), None, "linear"),
        (np.random.default_rng(3).normal(size=40), 25, "linear"),
        (1e9 + np.random.default_rng(3).normal(size=70), None, "linear"),
        ([5.0], None, "probability: 1"),
    ],
    ids=["four", "three of four", "forty", "25 of 40", "far from 0", "one"],
)
def test_a_gaussian_mean_has_its_closed_form(values, size, note):
    answer = bz.bayesbag(bz.find("gaussian_mean")(**PRIOR), values, size=size, resamples=50, seed=1)
    mean, variance = gaussian(values, size or len(values))
    row = shown(answer)
    assert (answer.kind, answer.size, answer.observations) == ("exact", size or len(values), len(values))
    assert note in answer.notes[0]
    digits = 1e-6 if mean > 1e6 else 1e-12  # of a spread of 1 about 1e9
    assert row["mean"] == pytest.approx(mean, rel=1e-12)
    assert row["sd"] == pytest.approx(np.sqrt(variance), rel=digits)
    assert row[["mcse_mean", "mcse_sd", "mcse_ratio"]].tolist() == [0, 0, 0]
    own = stats.norm(gaussian(values, len(values))[0], (1 / 9 + len(values) / 2.25) ** -0.5)
    assert (row["posterior_mean"], row["posterior_sd"]) == pytest.approx((own.mean(), own.std()), rel=1e-12)
    assert row["ratio"] == pytest.approx(variance / own.var(), rel=2 * digits)


def test_four_rows_have_256_ordered_resamples():
    """Of any of them the posterior is Gaussian; the mixture is summed over all orders, not over what differs."""
    moments = []
    for resample in itertools.product(FOUR, repeat=4):
        precision = 1 / 9 + 4 / 2.25
        moments.append(((2 / 9 + np.sum(resample) / 2.25) / precision, 1 / precision))
    means, variances = np.transpose(moments)
    row = shown(bz.bayesbag(bz.find("gaussian_mean")(**PRIOR), FOUR, seed=1))
    assert row["mean"] == pytest.approx(means.mean(), rel=1e-13)
    assert row["sd"] ** 2 == pytest.approx(variances.mean() + means.var(), rel=1e-12)
    distinct = np.unique(means.round(12), return_index=True)[1]  # each multiset with the same weight is another answer
    assert abs(row["sd"] ** 2 / (variances.mean() + means[distinct].var()) - 1) > 0.05


def test_few_kinds_of_observations_are_summed_over():
    """Twelve trials, nine of them successes: a binomial sum of beta posteriors."""
    answer = bz.bayesbag(bz.find("beta_bernoulli")(a=2, b=3), {"y": [1] * 9 + [0] * 3}, seed=1)
    won = np.arange(13)
    weights, parts = stats.binom.pmf(won, 12, 0.75), stats.beta(2 + won, 3 + 12 - won)
    mean = weights @ parts.mean()
    row = shown(answer, "theta")
    assert answer.kind == "exact"
    assert row["mean"] == pytest.approx(mean, rel=1e-13)
    assert row["sd"] ** 2 == pytest.approx(weights @ (parts.var() + (parts.mean() - mean) ** 2), rel=1e-12)


def test_counts_of_events_have_a_linear_posterior():
    counts = np.random.default_rng(4).negative_binomial(3, 0.2, 80)
    row = shown(bz.bayesbag(bz.find("gamma_poisson")(a=2, b=0.5), counts, seed=1), "rate")
    shape, rate = 2 + counts.sum(), 80.5
    assert row["mean"] == pytest.approx(shape / rate, rel=1e-12)
    assert row["sd"] ** 2 == pytest.approx(shape / rate**2 + 80 * counts.var() / rate**2, rel=1e-11)
    assert row["mismatch"] == pytest.approx(1 - 2 * (shape / rate**2) / row["sd"] ** 2, rel=1e-10)
    assert row["mismatch"] > 0.5  # the counts vary five times as much as those of a Poisson distribution


def test_many_observations_are_resampled_one_resample_at_a_time():
    values = np.random.default_rng(1).normal(size=200_000)
    answer = bz.bayesbag(bz.find("gaussian_mean")(**PRIOR), values, resamples=10, seed=1)
    mean, variance = gaussian(values, len(values))
    assert answer.kind == "sampled"  # too many to look whether the posterior is linear
    assert abs(shown(answer)["mean"] - mean) < 6 * shown(answer)["mcse_mean"]
    assert shown(answer)["sd"] == pytest.approx(np.sqrt(variance), rel=0.5)


def test_what_is_not_linear_is_not_taken_for_it(monkeypatch):
    data, model = {"y": [1] * 300 + [0] * 100}, bz.find("beta_bernoulli")(a=2, b=3)
    monkeypatch.setattr(engine, "MOST_RESAMPLES", 1)
    answer = bz.bayesbag(model, data, seed=1)
    won = np.arange(401)
    weights, parts = stats.binom.pmf(won, 400, 0.75), stats.beta(2 + won, 3 + 400 - won)
    exact = np.sqrt(weights @ (parts.var() + (parts.mean() - weights @ parts.mean()) ** 2))
    row = shown(answer, "theta")
    assert answer.kind == "sampled"
    assert abs(row["sd"] - exact) < 4 * row["mcse_sd"]
    monkeypatch.setattr(engine, "LINEAR", np.inf)
    wrong = shown(bz.bayesbag(model, data, seed=1), "theta")
    assert abs(wrong["sd"] / exact - 1) > 0.1


# Sampled answers


def test_errors_of_sampled_moments_are_those_of_averages():
    """Of the variance, about the common mean, that of each posterior and of its place together."""
    means, variances = np.array([-2.0, 0.0, 2.0, 0.0]), np.array([4.0, 0.0, 4.0, 1.0])
    moments = engine.Moments(means[:, None], variances[:, None]).sampled()
    assert moments.variance == pytest.approx(np.mean(variances + means**2))
    assert moments.mean_error == pytest.approx(stats.sem(means))
    assert moments.variance_error == pytest.approx(stats.sem([8.0, 0.0, 8.0, 1.0]))


def normal_gamma(values, mu0=0.0, kappa0=1.0, alpha0=2.0, beta0=1.0):
    """Means and variances of mu and lam given the values."""
    n, mean = len(values), np.mean(values)
    kappa, shape = kappa0 + n, alpha0 + n / 2
    rate = beta0 + np.var(values) * n / 2 + kappa0 * n * (mean - mu0) ** 2 / (2 * kappa)
    spread = rate / (shape * kappa) * 2 * shape / (2 * shape - 2)  # of Student's t
    return ((kappa0 * mu0 + n * mean) / kappa, shape / rate), (spread, shape / rate**2)


def test_a_sampled_answer_is_that_of_resamples_drawn_by_numpy():
    values, rng = np.random.default_rng(5).normal(1, 2, 30), np.random.default_rng(6)
    prior = {"mu0": 0.0, "kappa0": 1.0, "alpha0": 2.0, "beta0": 1.0}
    answer = bz.bayesbag(bz.find("normal_gamma")(**prior), values, resamples=2000, seed=1)
    moments = np.array([normal_gamma(rng.choice(values, 30)) for _ in range(20_000)])
    means = moments[:, 0].mean(axis=0)
    deviations = np.sqrt(moments[:, 1].mean(axis=0) + moments[:, 0].var(axis=0))
    assert answer.kind == "sampled"
    for name, mean, deviation in zip(("mu", "lam"), means, deviations, strict=True):
        row = shown(answer, name)
        assert abs(row["mean"] - mean) < 4.5 * row["mcse_mean"]
        assert abs(row["sd"] - deviation) < 4.5 * row["mcse_sd"]
        assert row["mcse_sd"] < 0.05 * deviation
        assert abs(row["sd"] - np.sqrt(moments[:, 1, ("mu", "lam").index(name)].mean())) > 6 * row["mcse_sd"]


def test_the_monte_carlo_errors_are_those_of_repetitions(monkeypatch):
    monkeypatch.setattr(engine, "MOST_DISTINCT", 0)
    monkeypatch.setattr(engine, "MOST_RESAMPLES", 1)
    values = np.random.default_rng(7).normal(size=15)
    model = bz.find("gaussian_mean")(**PRIOR)
    rows = np.array([shown(bz.bayesbag(model, values, resamples=60, seed=seed)) for seed in range(80)])
    columns = list(bz.bayesbag(model, values, resamples=60, seed=1).summary)
    mean, variance = gaussian(values, 15)
    own = 1 / (1 / 9 + 15 / 2.25)
    for name, exact in (("mean", mean), ("sd", np.sqrt(variance)), ("ratio", variance / own)):
        errors = (rows[:, columns.index(name)] - exact) / rows[:, columns.index(f"mcse_{name}")]
        assert 0.75 < np.sqrt(np.mean(errors**2)) < 1.3


@pytest.mark.parametrize("name", CONJUGATE)
def test_every_conjugate_model_is_bagged_the_same_by_parts_and_by_rows(name, monkeypatch):
    kind = bz.find(name)
    if name == "linear_regression":
        rng = np.random.default_rng(1)
        data = bz.read(kind, {"x": rng.normal(size=12), "y": rng.normal(size=12)})
    else:
        data = bz.read(kind, kind().simulate(np.random.default_rng(1), 12)[1])
    answers = []
    for most in (64, 0):
        monkeypatch.setattr(engine, "_MOST_PARTS", most)
        answers.append(bz.bayesbag(kind.weak(data), data, resamples=20, seed=1))
    np.testing.assert_allclose(*(answer.summary.to_numpy() for answer in answers), rtol=1e-6)
    for parameter, draws in answers[0].draws.items():
        np.testing.assert_allclose(draws, answers[1].draws[parameter], rtol=1e-6)
        assert len(draws) == 20
    assert answers[0].summary.index.is_unique


def test_the_draws_are_of_the_bagged_posterior():
    answer = bz.bayesbag(bz.find("gaussian_mean")(**PRIOR), FOUR, resamples=3000, seed=1)
    mean, variance = gaussian(FOUR, 4)
    draws = answer.draws["mu"]
    assert abs(draws.mean() - mean) < 4 * np.sqrt(variance / 3000)
    assert abs(draws.var() / variance - 1) < 5 * np.sqrt(2 / 3000)
    assert abs(draws.var() / shown(answer)["posterior_sd"] ** 2 - 1) > 0.5
    assert np.array_equal(
        draws, bz.bayesbag(bz.find("gaussian_mean")(**PRIOR), FOUR, resamples=3000, seed=1).draws["mu"]
    )


# What is withheld, and what is refused


def test_the_mismatch_index_is_withheld_where_the_paper_has_none():
    rows = [[1.0, 2.0], [-1.0, -2.0], [1.1, -2.0]]
    answer = bz.bayesbag(bz.find("normal_inverse_wishart")(), rows, seed=1)
    narrow = answer.summary["ratio"] < 1
    assert narrow["Sigma[1, 1]"]
    assert not narrow["mu[1]"]
    assert (answer.summary["mismatch"].isna() == narrow).all()
    assert "no mismatch index of Sigma[1, 1]" in answer.notes[1]
    smaller = bz.bayesbag(bz.find("gaussian_mean")(**PRIOR), FOUR, size=2, seed=1)
    assert np.isnan(shown(smaller)["mismatch"])
    assert "resamples of the size of the data, 4" in smaller.notes[1]


def test_a_variance_that_does_not_exist_is_withheld():
    answer = bz.bayesbag(bz.find("normal_gamma")(alpha0=0.5), [1.0], seed=1)
    assert np.isnan(shown(answer)[["sd", "posterior_sd", "ratio"]].to_numpy(dtype=float)).all()
    assert shown(answer, "lam")["ratio"] == pytest.approx(1, rel=1e-12)
    assert "all observations are equal" in answer.notes[1]
    assert "mu has no finite mean or variance" in answer.notes[2]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("student_t", {}, ("no_capability", "student_t")),
        ("markov_chain", {}, ("no_capability",)),
        ("gaussian_mean", {"resamples": 9}, ("out_of_range", "resamples", "10", "9")),
        ("gaussian_mean", {"size": 0}, ("out_of_range", "1", "0")),
    ],
)
def test_what_cannot_be_bagged_is_refused(name, options, message):
    with raises(bz.InputError, *message):
        bz.bayesbag(bz.find(name)(), **options)


# The command line


def test_the_command_prints_the_criterion(run):
    command = ["bayesbag", "gamma_poisson", EARTHQUAKES, "--column", "count", "--seed", 1]
    code, out, err = run(*command)
    assert code == 0, err
    (row,) = (line.split() for line in out.splitlines() if line.startswith(" rate"))
    counts = np.loadtxt(EARTHQUAKES, delimiter=",", skiprows=1)[:, 1]
    assert float(row[-3]) == pytest.approx(1 + counts.var() / counts.mean(), rel=0.02)
    assert "exact, resamples of 107 observations" in out
    assert "1 - 2 / ratio" in out
    document = json.loads(run(*command, "--json")[1])
    assert document["rows"][0]["mismatch"] == pytest.approx(float(row[-1]), rel=1e-4)
    assert (document["kind"], document["size"]) == ("exact", 107)


def test_the_command_writes_all_rows_and_refuses_in_one_line(run, tmp_path):
    code, out, _ = run("bayesbag", "normal_gamma", "--resamples", 50, "--seed", 1, "-o", tmp_path / "bag.csv")
    assert code == 0
    assert "50 resamples drawn" in out
    assert (tmp_path / "bag.csv").read_text().splitlines()[0].startswith("quantity,mean,mcse_mean,sd")
    code, out, err = run("bayesbag", "student_t", "no_such_file.csv")
    assert (code, out) == (2, "")
    assert err.startswith("error: student_t is not conjugate; fit one of beta_bernoulli, ")
    assert err.count("\n") == 1
    assert "markov_chain" not in err  # which is refused itself, as its rows depend on each other
    code, _, err = run("bayesbag", "gaussian_mean", "--size", 0)
    assert code == 2
