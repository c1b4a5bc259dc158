"""Entropy, divergence and mutual information against draws, quadrature, SciPy and scikit-learn; of tables and fits."""

import numpy as np
import pandas as pd
import pytest
import scipy
from scipy import stats
from sklearn.metrics import mutual_info_score

import bayeszoo as bz
from bayeszoo.distributions import information
from bayeszoo.distributions.special import trigamma_excess
from bayeszoo.results.stored import Fit
from tests.entropies import plain_information
from tests.refusals import raises

WORDS = bz.find("naive_bayes_text")
TABLES = {
    "weak": np.array([[0.3, 2.0, 5.0], [1.0, 7.0, 0.5]]),
    "sparse": np.array([[0.05, 0.1], [0.4, 0.2]]),
    "strong": np.array([[210.0, 120.0], [80.0, 190.0], [30.0, 30.0]]),
}
SIGMAS, DRAWS = 5.0, 250_000


def drawn(alpha, seed=1):
    """Draw tables by NumPy's own Dirichlet."""
    return np.random.default_rng(seed).dirichlet(alpha.ravel(), DRAWS).reshape(-1, *alpha.shape)


def off(values, claimed):
    """Return by how many Monte Carlo errors the mean of draws differs from a claim."""
    return abs(values.mean() - claimed) / (values.std(ddof=1) / np.sqrt(len(values)))


# Closed forms of Dirichlet tables


@pytest.mark.parametrize("name", TABLES)
def test_closed_forms_are_means_of_draws(name):
    alpha = TABLES[name]
    p, flat = drawn(alpha), alpha.ravel()
    entropies = stats.entropy(p.reshape(len(p), -1), axis=1)
    assert off(plain_information(p), information.mean_information(alpha)) < SIGMAS
    assert off(entropies, information.mean_entropy(flat)) < SIGMAS
    squares = np.square(entropies - information.mean_entropy(flat))
    assert off(squares, information.sd_entropy(flat) ** 2) < SIGMAS
    other = flat[::-1] + 1.0
    q = drawn(other, seed=2)
    assert off(stats.entropy(p.reshape(q.shape), q, axis=1), information.mean_divergence(flat, other)) < SIGMAS


def test_these_draws_tell_wrong_formulas():
    """Digammas of a and not of a + 1, a table that is forgotten, the variance of independent cells."""
    alpha = TABLES["weak"]
    p, flat, psi = drawn(alpha), alpha.ravel(), scipy.special.digamma
    share, total = flat / flat.sum(), flat.sum()
    assert off(stats.entropy(p.reshape(len(p), -1), axis=1), psi(total) - share @ psi(flat)) > 4 * SIGMAS
    rows = information.mean_entropy(alpha.sum(1)) - information.mean_entropy(flat)
    assert off(plain_information(p), rows + stats.entropy(alpha.sum(0))) > 2 * SIGMAS
    squares = np.square(stats.entropy(p.reshape(len(p), -1), axis=1) - information.mean_entropy(flat))
    assert off(squares, share @ trigamma_excess(flat + 1) / (total + 1)) > 2 * SIGMAS


@pytest.mark.parametrize(("a", "b"), [(0.4, 0.7), (3.0, 1.2), (70.0, 31.0)])
def test_two_cells_are_quadrature(a, b):
    law = stats.beta(a, b)

    def mean(function):
        return law.expect(function, epsabs=1e-12, epsrel=1e-10, limit=500)

    def entropy(p):
        return stats.entropy([p, 1 - p])

    first, second = mean(entropy), mean(lambda p: entropy(p) ** 2)
    alpha = np.array([a, b])
    assert information.mean_entropy(alpha) == pytest.approx(first, rel=1e-7)
    assert information.sd_entropy(alpha) == pytest.approx(np.sqrt(second - first**2), rel=1e-5)


def test_wolpert_and_wolf_print_the_same_variance():
    a = TABLES["weak"].ravel()
    psi, psi1, A = scipy.special.digamma, lambda x: scipy.special.polygamma(1, x), a.sum()
    v = psi(a + 1) - psi(A + 2)
    pairs = np.outer(a, a) / (A * (A + 1)) * (np.outer(v, v) - psi1(A + 2))
    own = a * (a + 1) / (A * (A + 1)) * ((psi(a + 2) - psi(A + 2)) ** 2 + psi1(a + 2) - psi1(A + 2))
    second = pairs.sum() - np.trace(pairs) + own.sum()
    expected = second - information.mean_entropy(a) ** 2
    assert information.sd_entropy(a) ** 2 == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("size", [1e6, 1e9, 1e12])
def test_large_tables_keep_their_digits(size):
    """The delta method is exact to a part in the number of rows; (K - 1) (L - 1) / (2 N) where all is independent."""
    p = np.array([0.2, 0.3, 0.5])
    sd = np.sqrt((p @ np.log(p) ** 2 - (p @ np.log(p)) ** 2) / size)
    assert information.sd_entropy(size * p) == pytest.approx(sd, rel=5e-6)
    assert information.sd_entropy(size * np.full(4, 0.25)) == pytest.approx(np.sqrt(3 / 2) / size, rel=1e-5)
    independent = size * np.outer([0.3, 0.7], p)
    assert information.mean_information(independent) * size == pytest.approx(1.0, rel=1e-4)


def test_trigamma_is_continuous_where_its_series_begins():
    x = np.array([0.5, 3.0, 31.9, 32.0, 40.0, 1e5])
    np.testing.assert_allclose(trigamma_excess(x), x * scipy.special.polygamma(1, x) - 1, rtol=1e-9)


# Tables


COUNTS = np.array([[20, 5, 0], [4, 21, 2]])


def test_plug_in_estimates_are_scipys_and_scikit_learns():
    rows, columns = np.repeat(np.indices(COUNTS.shape).reshape(2, -1), COUNTS.ravel(), axis=1)
    row = bz.mutual_information(pd.crosstab(rows, columns)).iloc[0]
    assert row["plug_in"] == pytest.approx(mutual_info_score(rows, columns), rel=1e-12)
    counts, other = COUNTS.sum(0) + 1, np.array([9, 3, 4])
    assert bz.entropy(counts)["plug_in"].item() == pytest.approx(stats.entropy(counts), rel=1e-12)
    assert bz.kl(counts, other)["plug_in"].item() == pytest.approx(stats.entropy(counts, other), rel=1e-12)
    assert bz.kl([3, 4], [0, 5])["plug_in"].item() == np.inf


def test_the_bias_is_that_of_the_plug_in():
    p, size = np.array([[0.2, 0.1, 0.2], [0.1, 0.3, 0.1]]), 300
    tables = np.random.default_rng(3).multinomial(size, p.ravel(), 40_000).reshape(-1, 2, 3)
    over = plain_information(tables / size) - plain_information(p[None])
    bias = bz.mutual_information(np.round(300 * p).astype(int))["bias"].item()
    assert over.mean() == pytest.approx(bias, rel=0.05)
    under = stats.entropy(tables.reshape(len(tables), -1), axis=1) - stats.entropy(p.ravel())
    assert under.mean() == pytest.approx(bz.entropy(np.round(300 * p).ravel())["bias"].item(), rel=0.05)


def test_moments_and_quantiles_of_a_table():
    frame = bz.mutual_information(COUNTS, draws=20_000, alpha=0.5)
    row, values = frame.iloc[0], plain_information(drawn(COUNTS + 0.5))
    assert row["mcse_mean"] == 0
    assert row["mean"] == information.mean_information(COUNTS + 0.5)
    assert row["sd"] == pytest.approx(values.std(), abs=SIGMAS * row["mcse_sd"])
    for name, level in {"q025": 0.025, "median": 0.5, "q975": 0.975}.items():
        assert row[name] == pytest.approx(np.quantile(values, level), abs=SIGMAS * row[f"mcse_{name}"])
    of_entropy = bz.entropy(COUNTS.ravel()).iloc[0]
    assert (of_entropy[["mcse_mean", "mcse_sd"]] == 0).all()
    assert of_entropy["q025"] < of_entropy["mean"] < of_entropy["q975"]


def test_bits_are_nats_by_log_two():
    nats, bits = bz.mutual_information(COUNTS), bz.mutual_information(COUNTS, bits=True)
    np.testing.assert_allclose(nats.to_numpy(), bits.to_numpy() * np.log(2), rtol=1e-12)
    assert (nats.attrs["unit"], bits.attrs["unit"]) == ("nats", "bits")


def test_a_table_and_its_transpose_tell_the_same():
    one, other = (bz.mutual_information(table)[["mean", "plug_in", "bias"]] for table in (COUNTS, COUNTS.T))
    np.testing.assert_allclose(one, other, rtol=1e-12)


def test_tables_of_nullable_integers_are_tables():
    table = pd.DataFrame([[20, 5], [4, 21]])
    expected = bz.mutual_information(table)
    pd.testing.assert_frame_equal(bz.mutual_information(table.astype("Int64")), expected)
    with raises(bz.InputError, "wrong_type"):
        bz.mutual_information(table.astype(object).replace(5, "5"))


def test_labels_are_matched():
    first, second = {"a": 3, "b": 9, "c": 1}, {"c": 4, "a": 2, "b": 2}
    expected = bz.kl([3, 9, 1], [2, 2, 4])
    pd.testing.assert_frame_equal(bz.kl(first, second), expected)
    pd.testing.assert_frame_equal(bz.kl(pd.Series(first), pd.Series(second)), expected)


@pytest.mark.parametrize(
    ("code", "ask", "tables", "options"),
    [
        ("not_a_count", bz.entropy, [[0.2, 0.8]], {}),
        ("not_a_count", bz.entropy, [[-1, 3]], {}),
        ("not_a_count", bz.mutual_information, [[[1, np.nan], [2, 3]]], {}),
        ("not_a_count", bz.entropy, [[np.inf, 1]], {}),
        ("wrong_shape", bz.entropy, [[[1, 2], [3, 4]]], {}),
        ("wrong_shape", bz.entropy, [[4]], {}),
        ("wrong_shape", bz.entropy, [[]], {}),
        ("wrong_shape", bz.mutual_information, [[1, 2]], {}),
        ("wrong_shape", bz.mutual_information, [[[1, 2]]], {}),
        ("wrong_type", bz.mutual_information, [pd.DataFrame({"a": list("xy"), "b": list("uv")})], {}),
        ("wrong_type", bz.entropy, [None], {}),
        ("wrong_type", bz.entropy, [[True, False, True]], {}),
        ("wrong_shape", bz.mutual_information, [pd.crosstab([0, 0, 1], [0, 1, 1], margins=True)], {}),
        ("ragged", bz.mutual_information, [[[1, 2], [3]]], {}),
        ("wrong_shape", bz.kl, [[1, 2], [1, 2, 3]], {}),
        ("labels_differ", bz.kl, [{"a": 1, "b": 2}, {"a": 1, "c": 2}], {}),
        ("not_a_count", bz.kl, [[1, 2], [1, 0.5]], {}),
        ("out_of_range", bz.entropy, [[1, 2]], {"alpha": 0}),
        ("out_of_range", bz.entropy, [[1, 2]], {"alpha": np.nan}),
        ("wrong_shape", bz.entropy, [[1, 2]], {"alpha": [1, 2, 3]}),
        ("wrong_shape", bz.entropy, [[1, 2]], {"alpha": "x"}),
        ("out_of_range", bz.entropy, [[1, 2]], {"alpha": [1, -1]}),
        ("out_of_range", bz.entropy, [[1, 2]], {"draws": 10}),
        ("out_of_range", bz.entropy, [[1, 2]], {"seed": -1}),
        ("not_a_fit", bz.plot_information, [bz.entropy([1, 2])], {}),
    ],
)
def test_bad_tables_are_refused(code, ask, tables, options):
    with raises(bz.InputError, code):
        ask(*tables, **options)


def test_draws_that_underflow_tell_nothing_and_the_mean_stays():
    row = bz.kl([1, 0], [0, 4], alpha=1e-3).iloc[0]
    assert row["mean"] == pytest.approx(information.mean_divergence(np.array([1.001, 1e-3]), np.array([1e-3, 4.001])))
    assert row[["sd", "q025", "median", "q975"]].isna().all()


def test_no_rows_leave_the_prior():
    row = bz.mutual_information([[0, 0], [0, 0]]).iloc[0]
    assert row["mean"] == information.mean_information(np.ones((2, 2)))
    assert np.isnan(row["plug_in"])


# Columns of normal rows


def test_correlated_columns_have_their_closed_form_mean():
    """-log det R / 2 is half of the logs of the variances less that of the determinant: all are of Wishart matrices."""
    Rows = bz.find("normal_inverse_wishart")
    data = bz.example(Rows)
    fit = bz.fit(Rows.weak(data), data, "exact", seed=1, draws=5000)
    frame, block = bz.mutual_information(fit), Rows.weak(data)
    later = block.block().updated(block.statistics(data))
    psi, nu, D = later.psi, float(later.nu), len(later.psi)
    digamma = scipy.special.digamma

    def log_det(places):
        k = len(places)
        degrees = nu - D + k
        own = psi[np.ix_(places, places)]
        return np.linalg.slogdet(own)[1] - k * np.log(2) - digamma((degrees - np.arange(k)) / 2).sum()

    names = list(data["column"])
    for label, row in frame.iterrows():
        places = [names.index(name) for name in label.split(", ")]
        expected = (sum(log_det([j]) for j in places) - log_det(places)) / 2
        assert row["mean"] == pytest.approx(expected, abs=SIGMAS * row["mcse_mean"]), label
    assert len(frame) == 7


# Entropies and divergences of rows


def exact(name, data=None, **fields):
    kind = bz.find(name)
    return bz.fit(kind(**fields), bz.example(kind) if data is None else bz.read(kind, data), "exact", seed=1)


@pytest.mark.parametrize("name", ["beta_bernoulli", "dirichlet_multinomial", "normal_gamma", "gaussian_precision"])
def test_exact_entropies_are_those_of_the_draws(name):
    tree = exact(name)
    model, row = Fit(tree).model, bz.entropy(tree).iloc[0]
    values = model.entropies(Fit(tree).draws(), Fit(tree).like)["entropy"].ravel()
    assert (row[["mcse_mean", "mcse_sd"]] == 0).all()
    assert off(values, row["mean"]) < SIGMAS
    assert off(np.square(values - row["mean"]), row["sd"] ** 2) < SIGMAS


LAWS = {
    "beta_bernoulli": lambda theta: stats.bernoulli(theta),
    "gamma_poisson": lambda rate: stats.poisson(rate),
    "normal_gamma": lambda mu, lam: stats.norm(mu, lam**-0.5),
    "normal_inverse_wishart": lambda mu, Sigma: stats.multivariate_normal(mu, Sigma),
}


@pytest.mark.parametrize("name", LAWS)
def test_entropies_of_rows_are_scipys(name):
    kind = bz.find(name)
    fit = Fit(bz.fit(kind, bz.example(kind), "exact", seed=1))
    at = {key: values[1, 2] for key, values in fit.draws().items()}
    told = fit.model.entropies(fit.draws(), fit.like)["entropy"]
    assert told[1, 2] == pytest.approx(LAWS[name](**at).entropy(), rel=1e-9)
    assert (told[1, 2] < 0) == (name == "normal_inverse_wishart")  # which a differential entropy may be


def test_the_entropy_rate_is_that_of_a_step_in_the_long_run():
    tree = exact("markov_chain")
    p = Fit(tree).pooled()["P"]
    a, b = p[:, 0, 1], p[:, 1, 0]
    expected = (b * stats.entropy(p[:, 0], axis=1) + a * stats.entropy(p[:, 1], axis=1)) / (a + b)
    frame = bz.entropy(tree)
    assert frame.index.tolist() == ["entropy rate"]
    assert frame["mean"].item() == pytest.approx(expected.mean(), rel=1e-10)


TWO = {
    "beta_bernoulli": ([1, 0, 1, 1], [0, 0, 1, 0, 1]),
    "dirichlet_multinomial": (list("abcab"), list("ccabcc")),
    "gamma_poisson": ([3, 2, 5], [4, 4, 1, 2]),
    "normal_gamma": ([1.0, 2.0, 4.0, 2.5, 3.1, 0.2], [2.0, 2.2, 5.0, 1.1, 4.0, 3.3, 3.0]),
    "gaussian_mean": ([1.0, 2.0, 4.0], [2.0, 2.2]),
}


@pytest.mark.parametrize("name", TWO)
def test_divergences_of_rows_are_means_of_log_ratios(name):
    """By sums over all outcomes, or SciPy's quadrature, at one draw of each fit."""
    first, second = (Fit(exact(name, data)) for data in TWO[name])
    at, other = ({key: values[0, 0] for key, values in fit.draws().items()} for fit in (first, second))
    told = first.model.row_divergence(at, second.model, other, first.like)
    if name == "dirichlet_multinomial":
        expected = stats.entropy(at["p"], other["p"])
    elif name in ("beta_bernoulli", "gamma_poisson"):
        p, q = (float(next(iter(each.values()))) for each in (at, other))
        laws = [stats.bernoulli(x) if name == "beta_bernoulli" else stats.poisson(x) for x in (p, q)]
        outcomes = np.arange(2 if name == "beta_bernoulli" else 200)
        expected = scipy.special.rel_entr(*(law.pmf(outcomes) for law in laws)).sum()
    else:
        one = first.model.inputs.reordered(first.data, np.array([0]))
        laws = [first.model.likelihood(each, one) for each in (at, other)]
        p, q = (stats.norm(float(np.ravel(law.mean())[0]), float(np.ravel(law.std())[0])) for law in laws)
        expected = p.expect(lambda x: p.logpdf(x) - q.logpdf(x))
    assert np.ravel(told)[0] == pytest.approx(expected, rel=1e-7)
    frame = bz.kl(first.tree, second.tree)
    assert frame["median"].item() > 0


def test_divergence_of_several_columns_is_quadrature_of_their_difference():
    rng = np.random.default_rng(4)
    a, b = (np.cov(rng.normal(size=(3, 9))) for _ in range(2))
    m, mu = rng.normal(size=(2, 3))
    x = rng.multivariate_normal(m, a, DRAWS)
    p, q = stats.multivariate_normal(m, a), stats.multivariate_normal(mu, b)
    assert off(p.logpdf(x) - q.logpdf(x), information.divergence_of_normals(m, a, mu, b)) < SIGMAS


def test_moments_that_a_divergence_may_lack_are_withheld():
    """A variance of which one row is known has no mean where its prior has none."""
    frame = bz.kl(exact("normal_gamma", [1.0], alpha0=0.3), exact("normal_gamma", [5.0, 9.0]))
    assert frame["withheld"].item()
    assert np.isnan(frame["mean"].item())
    assert np.isnan(frame["sd"].item())
    assert frame["median"].item() > 0


def test_divergences_are_of_two_samples_of_one_model():
    one, other = exact("beta_bernoulli", [1, 0]), exact("gamma_poisson")
    with raises(bz.InputError, "same_data"):
        bz.kl(one, one)
    with raises(bz.InputError, "models_differ"):
        bz.kl(one, other)
    with raises(bz.InputError, "not_a_fit"):
        bz.kl(one, [1, 2])
    with raises(bz.InputError, "labels_differ"):
        bz.kl(exact("dirichlet_multinomial", list("ab")), exact("dirichlet_multinomial", list("cb")))


def test_the_maximum_of_the_likelihood_is_the_nearest_distribution():
    """MLE = argmin KL(shares of the rows || model): the shares of a Poisson's counts."""
    counts = bz.example(bz.find("gamma_poisson"))["y"]
    seen = np.bincount(counts.astype(int)) / len(counts)

    def distance(rate):
        return float(information.divergence(seen, stats.poisson.pmf(np.arange(len(seen)), rate)))

    model = bz.find("gamma_poisson")()
    best = scipy.optimize.minimize_scalar(distance, bounds=(1e-3, 9), method="bounded", options={"xatol": 1e-9}).x
    assert best == pytest.approx(model.mle(model.statistics(bz.example(type(model))))["rate"], rel=1e-5)
