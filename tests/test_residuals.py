"""Residuals, PITs and the QQ band: against dense refits, other people's code, and models that are known to be wrong."""

import json
import math
import re
import sys

import numpy as np
import pytest
from scipy import special, stats
from sklearn.linear_model import LinearRegression as LeastSquares
from sklearn.metrics import mean_poisson_deviance

import bayeszoo as bz
from bayeszoo.answers.averages import Average
from bayeszoo.answers.checks.normal_scores import pointwise_level, quantiles
from bayeszoo.answers.checks.tails_of_rows import mixture, tails
from bayeszoo.distributions import frozen
from bayeszoo.distributions.discrete import BetaBinomial, NegativeBinomial, Poisson
from tests.quick import quick_where
from tests.refusals import raises
from tests.test_predictive_check import regression
from tests.test_predictive_check import sampled as as_draws

Linear, Ridge, GaussianMean = bz.find("linear_regression"), bz.find("ridge"), bz.find("gaussian_mean")
NormalGamma, GammaPoisson, BetaBernoulli = map(bz.find, ("normal_gamma", "gamma_poisson", "beta_bernoulli"))
residuals_module = sys.modules["bayeszoo.answers.checks.residuals"]


def design(rng, n=40, k=3):
    X = rng.normal(size=(n, k)) * [1, 5, 0.2] + [0, 100, 3]
    X[0] = [9, 180, 1]  # a row of high leverage
    return X, 2 + X @ [1.0, -0.3, 4.0] + rng.normal(0, 1.5, n)


# Left out: dense refits


def studentized(X, y):
    """Externally studentized residuals, leverage and sd without the row, by fitting n times without a row."""
    found, dense = [], np.insert(X, 0, 1, axis=1)
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        fit = LeastSquares().fit(X[rest], y[rest])
        squares = np.sum((y[rest] - fit.predict(X[rest])) ** 2)
        h = dense[i] @ np.linalg.solve(dense[rest].T @ dense[rest], dense[i])
        error = y[i] - fit.predict(X[[i]])[0]
        s = math.sqrt(squares / (rest.sum() - X.shape[1] - 1))
        found.append((error / (s * math.sqrt(1 + h)), error, squares, h))
    return np.array(found).T


def test_flat_priors_give_externally_studentized_residuals():
    X, y = design(np.random.default_rng(1))
    n, p = len(y), X.shape[1] + 1
    t, error, squares, h = studentized(X, y)
    center, scale = tuple(X.mean(0)), tuple(X.std(0))
    flat = Linear(V0=1e12, a0=1e-10, b0=1e-10, center=center, scale=scale)
    frame = bz.residuals(bz.fit(flat, (X, y), "exact", seed=1))
    assert (frame["observed"] - frame["mean_without"]).to_numpy() == pytest.approx(error, rel=1e-7)
    # n - 1 degrees of freedom: that prior is no prior on sigma2 but a flat one on the weights of *standardized* terms
    assert frame["sd_without"].to_numpy() == pytest.approx(np.sqrt(squares / (n - 3) * (1 + h)), rel=1e-7)
    assert frame["standardized"].to_numpy() == pytest.approx(t * math.sqrt((n - 3) / (n - 1 - p)), rel=1e-7)
    pit = stats.t(n - 1).cdf(t * math.sqrt((n - 1) / (n - 1 - p)))
    assert frame["pit"].to_numpy() == pytest.approx(pit, rel=1e-6, abs=1e-9)
    sigma = 1.5
    known = bz.residuals(bz.fit(Ridge(1e6, sigma, 1e6, center=center, scale=scale), (X, y), "exact", seed=1))
    assert known["standardized"].to_numpy() == pytest.approx(error / (sigma * np.sqrt(1 + h)), rel=1e-6)
    assert known["pit"].to_numpy() == pytest.approx(stats.norm.cdf(known["standardized"]), rel=1e-12)
    assert known["normal_score"].to_numpy() == pytest.approx(known["standardized"].to_numpy(), rel=1e-10)
    assert set(known["basis"]) == {"leave-one-out, closed form"}


def test_a_row_is_predicted_as_a_fit_without_it_predicts_it_and_an_outlier_leaves_the_others_their_digits():
    y = np.append(np.random.default_rng(3).normal(0, 1, 30), 1e9)
    last = bz.residuals(bz.fit(NormalGamma(0, 1, 1, 1), y, "exact", seed=1)).iloc[-1]
    alone = bz.predict(bz.fit(NormalGamma(0, 1, 1, 1), y[:-1], "exact", seed=1)).iloc[0]
    assert last[["sd_without", "mean_without"]].tolist() == pytest.approx([alone["sd"], alone["mean"]], rel=1e-12)
    X, z = design(np.random.default_rng(3))
    z[5] = 1e9
    for model in (Linear(V0=3.0, a0=2.0, b0=5.0), Ridge(2.0, 1.5, 7.0, m0=1.0)):
        tree = bz.fit(model, (X, z), "exact", seed=1)
        frame, whole = bz.residuals(tree), bz.predict(tree, (X, z))
        alone = bz.predict(bz.fit(model, (np.delete(X, 5, 0), np.delete(z, 5)), "exact", seed=1), X[[5]]).iloc[0]
        without = frame[["mean_without", "sd_without"]].iloc[5].tolist()
        assert without == pytest.approx(alone[["mean", "sd"]].tolist(), rel=1e-8)
        assert frame["mean"].tolist() == whole["mean"].tolist()
        assert frame["residual"].tolist() == (z - whole["mean"].to_numpy()).tolist()


@pytest.mark.parametrize("features", [3, 60])
def test_leverage_is_the_diagonal_of_the_hat_matrix(features):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, features)) * rng.uniform(0.1, 10, features)
    y = rng.normal(size=40)
    dense, tau, sigma, s0 = np.insert(X, 0, 1, axis=1), 0.7, 1.3, 4.0
    penalty = np.diag([sigma**2 / s0**2, *[sigma**2 / tau**2] * features])
    for model, added in ((Ridge(tau, sigma, s0), penalty), (Linear(V0=6.0), np.eye(features + 1) / 6)):
        hat = dense @ np.linalg.solve(dense.T @ dense + added, dense.T)
        frame = bz.residuals(bz.fit(model, (X, y), "exact", seed=1))
        assert frame["leverage"].to_numpy() == pytest.approx(np.diag(hat), rel=1e-8)


# Tails


TRIALS, EXPOSURE, RATES = [7, 30, 30, 1], np.array([1.0, 2.0, 0.1]), [2.0, 0.3, 50.0]


@pytest.mark.parametrize(
    ("ours", "theirs", "counts"),
    [
        (BetaBinomial(TRIALS, 2.5, 0.7), stats.betabinom(TRIALS, 2.5, 0.7), [3, 0, 30, 1]),
        (NegativeBinomial(2.5, 0.7, EXPOSURE), stats.nbinom(2.5, 0.7 / (0.7 + EXPOSURE)), [3, 0, 9]),
        (Poisson(RATES), stats.poisson(RATES), [3, 0, 90]),
        (stats.binom([7, 30], 0.3), stats.binom([7, 30], 0.3), [7, 11]),
    ],
)
def test_tails_of_counts_are_scipys(ours, theirs, counts):
    k = np.array(counts)
    below, at, above = tails(ours, k)
    assert np.exp(below) == pytest.approx(theirs.cdf(k - 1), rel=1e-10)
    assert np.exp(at) == pytest.approx(theirs.pmf(k), rel=1e-10)
    assert np.exp(above) == pytest.approx(theirs.sf(k), rel=1e-10)
    assert np.exp(below) + np.exp(at) + np.exp(above) == pytest.approx(1, abs=1e-12)


def test_far_outcomes_keep_their_score():
    frame = bz.residuals(bz.fit(GaussianMean(0, 1e-6, 1), [30.0, -30.0, 0.3], "exact", seed=1))
    assert frame["normal_score"].tolist() == pytest.approx([30, -30, 0.3], rel=1e-6)
    counts = bz.residuals(bz.fit(GammaPoisson(1e9, 1e9), [60, 1, 0, 2], "exact", seed=1))  # a rate of 1, known
    expected = stats.norm.isf(stats.poisson.sf(60, 1)), stats.norm.isf(stats.poisson.sf(59, 1))
    assert expected[1] <= counts["normal_score"].iloc[0] <= expected[0]
    assert counts["normal_score"].iloc[0] > 15


# Uniform if and only if the model is right


def pits(model, y, seed=0):
    return bz.residuals(bz.fit(model, y, "exact", seed=1, draws=4), seed=seed)["pit"]


@pytest.mark.slow
def test_pits_of_the_true_model_are_uniform_and_of_another_noise_are_not():
    y = np.random.default_rng(5).normal(3, 1, 400)  # for noise 1.5 times too small 200 rows give p = 0.001
    assert stats.kstest(pits(GaussianMean(1, 2, 1.0), y), "uniform").pvalue > 0.05
    assert stats.kstest(pits(NormalGamma(1, 0.1, 1, 1), y), "uniform").pvalue > 0.05
    assert stats.kstest(pits(GaussianMean(1, 2, 1.5), y), "uniform").pvalue < 1e-3
    assert stats.kstest(pits(GaussianMean(1, 2, 1 / 1.5), y), "uniform").pvalue < 1e-3


def test_pits_of_counts_are_uniform_only_if_randomized():
    y = np.random.default_rng(6).poisson(1.3, 400)
    found = pits(GammaPoisson(2.0, 1.0), y)
    assert stats.kstest(found, "uniform").pvalue > 0.05
    assert found.equals(pits(GammaPoisson(2.0, 1.0), y))  # the seed settles them
    assert not found.equals(pits(GammaPoisson(2.0, 1.0), y, seed=1))
    coins = {"successes": np.random.default_rng(6).binomial(6, 0.3, 400), "trials": [6] * 400}
    assert stats.kstest(pits(BetaBernoulli(), coins), "uniform").pvalue > 0.05
    spread = np.random.default_rng(6).negative_binomial(1.3, 0.5, 400)  # twice the variance
    assert stats.kstest(pits(GammaPoisson(2.0, 1.0), spread), "uniform").pvalue < 1e-3
    law = stats.nbinom(2.0 + y.sum(), 401 / 402)  # the bug: the distribution function itself
    assert stats.kstest(law.cdf(y), "uniform").pvalue < 1e-6


@pytest.mark.parametrize(
    ("errors", "flagged"),
    [
        (lambda rng, n: rng.normal(size=n), False),
        (lambda rng, n: 1.5 * rng.normal(size=n), True),
        (lambda rng, n: stats.t(3).rvs(n, random_state=rng) / math.sqrt(3), True),
    ],
)
def test_the_band_flags_noise_and_tails_that_are_wrong(errors, flagged):
    tree = bz.fit(Ridge(10.0, 1.0, 10.0), regression(errors, seed=7, n=300), "exact", seed=1)
    assert (bz.residuals(tree).attrs["outside"] > 0) == flagged


# The band


def test_the_band_holds_all_scores_of_a_true_model_95_times_in_100():
    for n in (1, 7, 200, 3000):
        rng, band = np.random.default_rng(8), quantiles(np.arange(n, dtype=float))
        scores = np.sort(rng.normal(size=(1000, n)), axis=1)
        inside = [np.all((z >= band["band_lower"]) & (z <= band["band_upper"]), axis=1) for z in (scores, 1.5 * scores)]
        assert abs(np.mean(inside[0]) - 0.95) < 3.5 * math.sqrt(0.05 * 0.95 / 1000)
        assert n < 200 or np.mean(inside[1]) < 0.05


def test_the_level_is_that_of_the_exact_crossing_probability():
    """Noe's recursion in the form of Steck's determinant, for few rows."""
    for n in (1, 2, 5, 8):
        level = pointwise_level(n)
        ranks = np.arange(1, n + 1)
        low, high = stats.beta.ppf(level / 2, ranks, n + 1 - ranks), stats.beta.isf(level / 2, ranks, n + 1 - ranks)
        steck = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                if j - i + 1 >= 0:
                    steck[i, j] = max(high[i] - low[j], 0) ** (j - i + 1) / math.factorial(j - i + 1)
        assert math.factorial(n) * np.linalg.det(steck) == pytest.approx(0.95, abs=0.011)


def test_plotting_positions_are_bloms():
    score = np.array([0.3, -1.0, np.nan, 2.0, -np.inf])
    found = quantiles(score)
    known = [special.ndtri((rank - 0.375) / 4.25) for rank in (3, 2, 4, 1)]
    assert found["theoretical"][[0, 1, 3, 4]] == pytest.approx(known)
    assert np.isnan(found["theoretical"][2])
    assert found["outside"].tolist() == [False, False, False, False, True]


def test_deviances_are_scikit_learns_and_rank_rows_whatever_the_seed():
    y = np.array([0, 3, 1, 12, 2, 0, 1])
    frame = bz.residuals(bz.fit(GammaPoisson(2.0, 1.0), y, "exact", seed=1))
    squares = [mean_poisson_deviance([seen], [mean]) for seen, mean in zip(y, frame["mean"], strict=True)]
    assert np.square(frame["deviance"]).tolist() == pytest.approx(squares)
    assert frame["deviance"].abs().idxmax() == 4
    coins = {"successes": [3, 0, 9, 2], "trials": [10, 5, 12, 4]}
    frame = bz.residuals(bz.fit(BetaBernoulli(), coins, "exact", seed=1))
    (k, n), p = coins.values(), frame["mean"] / coins["trials"]
    saturated, fitted = (stats.binom.logpmf(k, n, share) for share in (np.divide(k, n), p))
    assert np.square(frame["deviance"]).tolist() == pytest.approx((2 * (saturated - fitted)).tolist())
    assert bz.residuals(bz.fit(NormalGamma(), y.astype(float), "exact", seed=1))["deviance"].isna().all()


# Draws, point estimates, many rows


def test_weighted_draws_agree_with_the_closed_form():
    X, y = design(np.random.default_rng(9), 60)
    for model, data in (
        (Linear(V0=100.0, a0=1.0, b0=1.0), (X, y)),
        (GammaPoisson(2.0, 1.0), np.random.default_rng(9).poisson(3, 60)),
        (BetaBernoulli(2.0, 1.0), {"successes": [3, 0, 9, 2] * 3, "trials": [10, 5, 12, 4] * 3}),
    ):
        tree = bz.fit(model, data, "exact", seed=1)
        exact, drawn = (bz.residuals(fit, seed=np.random.default_rng(1)) for fit in (tree, as_draws(tree)))
        kept = drawn["basis"] == "leave-one-out, PSIS"
        assert kept.mean() > 0.9
        assert (drawn["k_hat"][kept] <= 0.5).all()
        assert (drawn["k_hat"][~kept] > 0.5).all()
        assert (drawn["pit"] - exact["pit"])[kept].abs().max() < 0.02
        assert ((drawn["mean_without"] - exact["mean_without"]) / exact["sd"])[kept].abs().max() < 0.06
        assert (drawn["sd_without"] / exact["sd_without"])[kept].sub(1).abs().max() < 0.06
        assert ((drawn["mean"] - exact["mean"]) / exact["sd"]).abs().max() < 0.03
        wrong = ((drawn["mean"] - exact["mean_without"]) / exact["sd"]).abs().max()  # had the row not been left out
        assert wrong > 0.04


def test_rows_whose_weights_fail_are_withheld():
    y = np.append(np.random.default_rng(10).normal(size=20), 40.0)
    frame = bz.residuals(as_draws(bz.fit(NormalGamma(0, 0.01, 1, 1), y, "exact", seed=1)))
    last = frame.iloc[-1]
    assert last["basis"] == "withheld: k-hat"
    assert last["k_hat"] > 0.5
    assert last[["standardized", "pit", "normal_score", "mean_without", "theoretical"]].isna().all()
    assert not last[["mean", "sd", "residual"]].isna().any()
    assert not frame.iloc[:-1]["pit"].isna().any()
    assert frame.attrs["basis"] == {"leave-one-out, PSIS": 20, "withheld: k-hat": 1}


def test_point_estimates_are_plugged_in_and_say_so():
    X, y = design(np.random.default_rng(11))
    tree = bz.fit(Linear(), (X, y), "mle", seed=1)
    frame = bz.residuals(tree)
    fit = LeastSquares().fit(X, y)
    rest = y - fit.predict(X)
    assert set(frame["basis"]) == {"in sample, plug-in"}
    assert frame["standardized"].to_numpy() == pytest.approx(rest / math.sqrt(np.mean(rest**2)), rel=1e-8)
    assert frame[["mean_without", "sd_without", "leverage"]].isna().all(axis=None)


def test_many_rows_are_predicted_in_sample_and_say_so(monkeypatch):
    monkeypatch.setattr(residuals_module, "MAX_DISTINCT", 30)
    X, y = design(np.random.default_rng(12))
    tree = bz.fit(Linear(), (X, y), "exact", seed=1)
    frame = bz.residuals(tree)
    assert frame["standardized"].tolist() == ((frame["observed"] - frame["mean"]) / frame["sd"]).tolist()
    drawn = bz.residuals(as_draws(tree))
    for each in (frame, drawn):
        assert set(each["basis"]) == {"in sample"}
        assert each["mean_without"].isna().all()
    assert (drawn["pit"] - frame["pit"]).abs().max() < 0.03
    equal = bz.residuals(bz.fit(BetaBernoulli(), [0, 1, 1] * 20, "exact", seed=1))  # 60 rows, two of them distinct
    assert set(equal["basis"]) == {"leave-one-out, closed form"}
    assert equal["mean_without"].iloc[:2].tolist() == pytest.approx([41 / 61, 40 / 61])


def test_moments_that_do_not_exist_are_withheld():
    frame = bz.residuals(bz.fit(NormalGamma(0, 1, 1, 1), [3.0], "exact", seed=1))
    assert np.isinf(frame["sd_without"].item())
    assert np.isnan(frame["standardized"].item())
    law = stats.t(2, 0, math.sqrt(2))
    assert frame["pit"].item() == pytest.approx(law.cdf(3))


# Every model

REFUSED = ("dirichlet_multinomial", "markov_chain", "normal_inverse_wishart", "gaussian_mixture", "ppca", "lda")
MANY = 100
OF_COLUMNS = ("gaussian_mean_vector", "normal_inverse_wishart", "gaussian_mixture", "dp_mixture", "ppca")
OF_COLUMNS += ("bayesian_pca",)
"""Whose predictive checks are of each column."""
REFUSED += ("bayesian_pca", "multinomial_mixture", "hmm_categorical")
SERIES = ("hmm_gaussian", "hmm_poisson", "local_level", "structural_series", "linear_gaussian")
"""Whose rows are predicted from those before, and not drawn anew: tests/test_one_ahead.py."""
REFUSED += ("softmax_regression", "naive_bayes", "gaussian_discriminant", "latent_class", "naive_bayes_text")
REFUSED += ("tree_network", "dp_mixture", "gaussian_mean_vector")
REFUSED += ("dawid_skene",)


LONG = ("robust_", "hmm_", "gaussian_process")


@pytest.mark.parametrize("name", quick_where(bz.names(), lambda name: not name.startswith(LONG)))
def test_every_model_works_or_is_refused_in_one_line(name):
    M = bz.find(name)
    data = bz.example(M) if name != "lda" else bz.read(M, {"counts": [[2, 1], [1, 2]], "word": ["a", "b"]})
    if name == "dp_mixture":  # whose partitions are summed over
        data = bz.read(M, M.inputs.split(data, 6)[0])
    if name not in REFUSED and data.rows > MANY:  # each row is left out
        data = bz.read(M, M.inputs.split(data, MANY)[0])
    try:
        tree = bz.fit(M.weak(data), data, "enumerate" if name in ("lda", "dp_mixture") else "exact", seed=1)
    except (bz.InputError, bz.NumericalError):  # without a closed form, or without one for these data
        tree = bz.fit(M.weak(data), data, "map", seed=1)
    if name in REFUSED:
        for function in (bz.residuals, *[bz.predictive_check] * (name not in OF_COLUMNS)):
            with pytest.raises(bz.InputError) as error:
                function(tree)
            assert error.value.code in ("not_one_number", "dependent_rows", "no_row_law")
            assert name in str(error.value)
            assert "\n" not in str(error.value)
        return
    frame = bz.residuals(tree)
    assert len(frame) == data.rows
    if name in SERIES:
        with raises(bz.InputError, "no_row_law"):
            bz.predictive_check(tree)
        return
    checks = bz.predictive_check(tree, replicates=8)
    assert np.isfinite(frame[["observed", "mean", "sd"]]).all(axis=None)
    shown = frame[~frame["basis"].str.startswith("withheld")]  # few trials may hang on one row
    assert np.isfinite(shown[["pit", "normal_score", "theoretical"]]).all(axis=None)
    assert ((shown["pit"] > 0) & (shown["pit"] < 1)).all()
    assert checks["withheld"].eq("").any()
    assert len(bz.plot_residuals(frame).axes) >= 3


def test_fits_that_failed_are_refused():
    tree = bz.fit(GaussianMean(), [1.0, 2.0], "exact", seed=1)
    tree.attrs["status"] = "failed"
    for function in (bz.residuals, bz.predictive_check, bz.plot_residuals, bz.plot_predictive_check):
        with raises(bz.Untrustworthy, "withheld", "failed", "withheld"):
            function(tree)
    tree.attrs["status"] = "ok"
    with raises(bz.InputError, "not_a_fit"):
        bz.plot_residuals(bz.predictive_check(tree))


# Pictures


@pytest.mark.parametrize("n", [1, 10, 20_000])
def test_pictures_of_few_and_many_rows(n):
    y = np.random.default_rng(14).normal(size=n)
    y[0] = 1e6  # beyond every tail
    frame = bz.residuals(bz.fit(GaussianMean(0, 1, 1e-3 if n == 10 else 1), y, "exact", seed=1, draws=50))
    figure = bz.plot_residuals(frame)
    qq, rest, pits = figure.axes[:3]
    assert (qq.get_xlabel(), qq.get_ylabel()) == ("expected normal score (Blom)", "normal score of the PIT")
    assert rest.get_xlabel() == "row"  # all rows are predicted alike
    assert "residual" in rest.get_ylabel()
    assert pits.get_xlabel() == "probability integral transform"
    marks = [line for line in (*qq.lines, *rest.lines) if line.get_marker() == "o"]
    assert sum(len(line.get_xdata()) for line in marks) == 2 * n
    assert all(line.get_rasterized() == (n > 5000) for line in marks)
    figure.canvas.draw()


# The command


def test_the_command_prints_worst_rows_band_and_checks_as_tables_or_json_and_draws(run, tmp_path):
    data = bz.example(NormalGamma)
    newcomb = bz.save(bz.fit(NormalGamma.weak(data), data, "exact", seed=1), tmp_path / "newcomb.nc")
    code, out, err = run("residuals", newcomb, "--rows", 2)
    assert (code, err) == (0, "")
    lines, picture = out.splitlines(), tmp_path / "newcomb.png"
    assert lines[0] == "normal_gamma, exact: residuals leave-one-out, closed form (66 rows)"
    assert [line.split()[:2] for line in lines[5:7]] == [["2", "-44"], ["54", "-2"]]
    assert re.search(r"\b2 +-44 +\d\d\.\d{6,} ", run("residuals", newcomb, "--rows", 2, "--digits", 9)[1])
    assert "16 of 66 normal scores outside the simultaneous 95% band" in out
    assert "Kolmogorov-Smirnov p 0.00145 of uniform PITs (approximate" in out
    assert "largest absolute" in out  # the rest of the words may stand in the next line
    code, out, err = run("residuals", newcomb, "--json", "--plot", picture)
    found = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert (code, err, picture.read_bytes()[:4]) == (0, f"wrote {picture}\n", b"\x89PNG")
    assert (found["rows"], found["outside"], found["plot"]) == (66, 16, str(picture))
    assert [row["row"] for row in found["worst"]][:2] == [2, 54]
    assert {row["statistic"]: row["p_value"] for row in found["checks"]}["minimum"] == 1.0
    for name, why in (("newcomb.png", "exists; choose another name"), ("a.jpg", "must end in .png, .svg, .pdf")):
        code, out, err = run("residuals", newcomb, "--plot", tmp_path / name)
        assert (code, out, why in err) == (2, "", True)


def test_errors_of_residuals_are_those_that_other_draws_show():
    # rows about mu ~ N(0, 1), sd 1: given all, and given the others, all is normal
    y, rng, z = np.array([1.5, -0.2, 0.4, 0.9, -1.1, 0.3]), np.random.default_rng(3), []
    after, others = (y.sum() / 7, (1 / 7) ** 0.5), ((y.sum() - y) / 6, (1 / 6) ** 0.5)
    exact = np.array([0 * y + after[0], 0 * y + np.hypot(1, after[1]), (y - others[0]) / np.hypot(1, others[1])])
    exact = np.vstack([exact, stats.norm.cdf(exact[2])])
    for _ in range(60):
        draws = {"mu": rng.normal(*after, (4, 250))}
        average, law = Average("sampled", draws=draws), frozen.norm(np.ravel(draws["mu"])[:, None] + 0 * y, 1.0)
        whole = mixture(law, y, average)
        left = mixture(law, y, average, average.without(law.logpdf(y)[None]))
        known = [whole.mean, whole.sd, (y - left.mean) / left.sd, np.exp(left.below)]
        z.append((known - exact) / [whole.mean_error, whole.sd_error, left.standardized_error, left.pit_error])
    sizes = np.sqrt(np.nanmean(np.square(z), axis=0))  # some are withheld for their tails
    assert np.all((sizes > 0.7) & (sizes < 1.35)), sizes  # of 60: beyond these with a chance below 1e-3
