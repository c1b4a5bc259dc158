"""Distributions of counts and of their probabilities, and their log Gammas: against SciPy, mpmath and simulation."""

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from bayeszoo.distributions.bases import stacked
from bayeszoo.distributions.conjugate.categorical import Categorical as Dirichlet
from bayeszoo.distributions.conjugate.dirichlet import log_dirichlet_ratio
from bayeszoo.distributions.discrete import (
    BetaBinomial,
    Categorical,
    DirichletMultinomial,
    Multinomial,
    NegativeBinomial,
)
from bayeszoo.distributions.special import (
    deviance,
    log_beta_ratio,
    log_binomial,
    log_peak,
    log_rising,
    sum_of_others,
    sum_or_nan,
)
from bayeszoo.errors import NumericalError
from tests.refusals import raises

QUANTILES = (0.025, 0.5, 0.975)
P = np.array([[0.2, 0.5, 0.3], [0.0, 1.0, 0.0], [0.05, 0.05, 0.9]])
RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(60):
        yield


def exact_ratio(alpha, counts):
    """Log of B(alpha + counts) / B(alpha)."""

    def log_b(x):
        return mp.fsum(mp.loggamma(v) for v in x) - mp.loggamma(mp.fsum(x))

    alpha = [mp.mpf(float(a)) for a in alpha]
    return log_b([a + int(x) for a, x in zip(alpha, counts, strict=True)]) - log_b(alpha)


def exact_log_mass(alpha, counts):
    """Log mass of counts whose probabilities are drawn from Dirichlet(alpha)."""
    orders = mp.loggamma(sum(counts) + 1) - mp.fsum(mp.loggamma(x + 1) for x in counts)
    return float(exact_ratio(alpha, counts) + orders)


@pytest.mark.parametrize("a", [1e-3, 0.5, 1.0, 63.9, 64.0, 1e3, 1e9, 1e15])
@pytest.mark.parametrize("n", [0, 1, 7, 12345, 10**7])
def test_log_rising(a, n):
    exact = mp.loggamma(mp.mpf(a) + n) - mp.loggamma(mp.mpf(a))
    assert log_rising(a, n) == pytest.approx(float(exact), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (0.5, 0.5), (2, 5), (1e-3, 1e3), (1e9, 1e9), (1e12, 3)])
@pytest.mark.parametrize(
    ("successes", "failures"),
    [(0, 0), (1, 0), (3, 2), (251527, 241945), (10**7, 10**6), (1, 10**15 - 1), (0, 10**12), (5 * 10**14, 5 * 10**14)],
)
def test_log_beta_ratio(a, b, successes, failures):
    exact = float(exact_ratio([a, b], [successes, failures]))
    assert log_beta_ratio(a, b, successes, failures) == pytest.approx(exact, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(
    ("n", "k"),
    [(0, 0), (4, 4), (980, 437), (493472, 251527), (10**15, 1), (10**15, 5 * 10**14), (10**12, 0), (130, 64)],
)
def test_log_binomial(n, k):
    assert float(log_binomial(n, k)) == pytest.approx(float(mp.log(mp.binomial(n, k))), rel=1e-12, abs=1e-13)


def test_a_sum_that_cancels_is_withheld_and_one_of_others_keeps_the_small_ones():
    assert sum_of_others([1e12, 1e-3], -1).tolist() == [1e-3, 1e12]
    assert sum_of_others([[1.0, 2.0, 4.0], [1e16, 1.0, 1.0]], -1).tolist() == [[6, 5, 3], [2, 1e16, 1e16]]
    assert sum_or_nan(-3.0, 1.0, 2.0) == 0.0
    assert sum_or_nan(-3.0, -6.9e14, 6.9e14) == -3.0  # opposites: nothing is lost
    assert np.isnan(sum_or_nan(-3.0, -6.9e14, 6.9e14 + 1))


@pytest.mark.parametrize(("x", "mean"), [(5, 5.0), (1e9, 1e9 + 3), (1.0, 1.22), (1e12, 1e12 - 1e6), (3, 1e-300)])
def test_deviance(x, mean):
    exact = mp.mpf(x) * mp.log(mp.mpf(x) / mp.mpf(mean)) - (mp.mpf(x) - mp.mpf(mean))
    assert deviance(x, mean) == pytest.approx(float(exact), rel=1e-13)
    assert deviance([0.0, 0.0, 2.0], [0.0, 3.0, 0.0]).tolist() == [0, 3, np.inf]


@pytest.mark.parametrize("x", [1e-300, 0.5, 63.9, 64.1, 1e9])
def test_log_peak(x):
    x = mp.mpf(x)
    assert log_peak(float(x)) == pytest.approx(float(x * mp.log(x) - x - mp.loggamma(x + 1)), rel=1e-13, abs=1e-13)


TRIALS, ALPHA, EXPOSURE = np.array([10, 1, 100]), np.array([0.5, 2.0, 3.5]), np.array([1.0, 0.3, 20.0])
COUNTS = np.array([[1, 6, 3], [0, 1, 0], [0, 0, 100]])
SCIPYS = {
    "beta-binomial": (BetaBinomial(TRIALS, 3.5, 2.0), stats.betabinom(TRIALS, 3.5, 2.0)),
    "negative binomial": (NegativeBinomial(2.5, 0.7, EXPOSURE), stats.nbinom(2.5, 0.7 / (0.7 + EXPOSURE))),
    "categorical": (Categorical(P), stats.binom(1, P)),
    "multinomial": (Multinomial(TRIALS, P), stats.binom(TRIALS[:, None], P)),
    "multivariate Polya": (DirichletMultinomial(ALPHA, TRIALS), stats.betabinom(TRIALS[:, None], ALPHA, 6.0 - ALPHA)),
}


@pytest.mark.parametrize(("ours", "marginals"), SCIPYS.values(), ids=SCIPYS)
def test_marginals_are_scipys(ours, marginals):
    for method in ("mean", "var", "std"):
        assert np.allclose(getattr(ours, method)(), getattr(marginals, method)(), rtol=1e-12)
    for q in QUANTILES:
        assert ours.ppf(q).tolist() == marginals.ppf(q).tolist()
    for k in (-1, 0, 1, 3.5, 40, 100):
        assert np.allclose(ours.cdf(k), marginals.cdf(k), rtol=1e-11, atol=1e-13)
    if not isinstance(ours, Categorical | Multinomial | DirichletMultinomial):
        for k in ([5, 1, 40], [11, -1, 100], [2.5, 0, 0]):
            assert np.allclose(ours.logpmf(k), marginals.logpmf(k), rtol=1e-11, atol=1e-11)


def test_masses_of_rows_are_scipys():
    outside, codes = [[1, 6, 2], [1, 3, 0], [-1, 1, 100]], np.array([1, 1, 2])
    assert np.allclose(Multinomial(TRIALS, P).logpmf(COUNTS), stats.multinomial(TRIALS, P).logpmf(COUNTS), rtol=1e-13)
    ours, scipys = DirichletMultinomial(ALPHA, TRIALS), stats.dirichlet_multinomial(ALPHA, TRIALS)
    assert np.allclose(ours.logpmf(COUNTS), scipys.logpmf(COUNTS), rtol=1e-12)
    for law in (Multinomial(TRIALS, P), ours):
        assert law.logpmf(outside).tolist() == [-np.inf] * 3
    assert Categorical(P).logpmf(codes) == pytest.approx(stats.multinomial(1, P).logpmf(np.eye(3)[codes]), rel=1e-13)
    assert Categorical(P).logpmf(np.array([0, 0, 3])).tolist() == [np.log(0.2), -np.inf, -np.inf]
    assert np.isnan(Categorical([[np.nan, 0.5]]).logpmf([0])).all()


def test_rows_of_draws():
    """Probabilities have the axes of draws first, and those of a multinomial may have one row for all."""
    found = Categorical(np.stack([P, P[::-1]])[:, None]).logpmf(np.array([1, 1, 2]))
    assert found[1, 0].tolist() == [np.log(0.05), 0, np.log(0.3)]
    trials, p = np.array([10, 4, 1]), np.broadcast_to([0.2, 0.5, 0.3], (2, 5000, 1, 3))
    expected = stats.multinomial(trials, [0.2, 0.5, 0.3]).logpmf([[1, 6, 3], [0, 4, 0], [1, 0, 0]])
    found = Multinomial(trials, p).logpmf([[1, 6, 3], [0, 4, 0], [1, 0, 0]])
    assert np.allclose(found, np.broadcast_to(expected, (2, 5000, 3)))
    for law, sums in ((Multinomial(trials, p), trials), (Categorical(np.broadcast_to(P, (2, 5000, 3, 3))), [1, 1, 1])):
        rows = law.rvs(size=law.mean().shape, random_state=np.random.default_rng(0))
        assert rows.shape == law.std().shape == (2, 5000, 3, 3)
        assert np.all(rows.sum(-1) == sums)
        assert np.all(np.abs(rows.mean((0, 1)) - law.mean()[0, 0]) <= 4 * law.std()[0, 0] / 100)


def test_beta_binomial_of_a_known_coin_is_binomial():
    """SciPy's says that every quantile is 10."""
    coin = BetaBinomial(np.array([10]), 5e14, 5e14)
    assert [float(coin.ppf(q)[0]) for q in QUANTILES] == [2, 5, 8]
    assert coin.logpmf([5])[0] == pytest.approx(stats.binom(10, 0.5).logpmf(5), rel=1e-12)


def test_quantiles_of_very_many_trials_are_those_of_the_chance():
    trials = np.array([10**9, 10**12])
    for q in QUANTILES:
        share = BetaBinomial(trials, 3.0, 2.0).ppf(q) / trials
        assert share == pytest.approx(stats.beta(3.0, 2.0).ppf(q), rel=1e-8)


def test_quantiles_of_many_trials_are_sums_of_masses(monkeypatch):
    """By the distribution function and by adding up, where both are to be had."""
    laws = [(3000, 3.5, 2.0), (5000, 0.4, 0.3), (5000, 70.0, 900.0), (4000, 1.0, 1.0), (4000, 1e-3, 5.0)]
    trials, a, b = np.array(laws).T
    summed = [BetaBinomial(trials, a, b).ppf(q) for q in QUANTILES]
    monkeypatch.setattr(BetaBinomial, "MAX_SUMMED", 10)
    for q, expected in zip(QUANTILES, summed, strict=True):
        assert BetaBinomial(trials, a, b).ppf(q).tolist() == expected.tolist()


def test_distributions_side_by_side_are_each_by_itself():
    k = np.array([1, 0, 40])
    pairs = [(3.5, 2.0), (0.2, 9.0)]
    laws = [
        ([BetaBinomial(TRIALS, *pair) for pair in pairs], k),
        ([NegativeBinomial(*pair, EXPOSURE) for pair in pairs], k),
        ([DirichletMultinomial(alpha, TRIALS) for alpha in (ALPHA, ALPHA[::-1])], COUNTS),
        ([Categorical(p) for p in (P, P[::-1])], np.array([1, 1, 2])),
    ]
    for each, outcome in laws:
        together = stacked(each, (2,))
        for name in ("mean", "var", "std"):
            assert np.array_equal(getattr(together, name)(), [getattr(law, name)() for law in each])
        assert np.allclose(together.logpmf(outcome), [law.logpmf(outcome) for law in each], rtol=1e-13)
        assert np.allclose(together.cdf(2), [law.cdf(2) for law in each], rtol=1e-13)


LARGE = [(1e12, 2e11, 1.0, 7), (1e12, 2e11, 1.0, 0), (1e12, 1e3, 1.0, 10**9 + 40_000), (3.0, 1e-3, 1e6, 10**9)]


@pytest.mark.parametrize(("a", "b", "exposure", "k"), [*LARGE, (1e-300, 1.0, 1.0, 3), (0.5, 2.0, 1e-9, 1)])
def test_negative_binomial_where_scipy_is_not(a, b, exposure, k):
    A, B, E = mp.mpf(a), mp.mpf(b), mp.mpf(exposure)
    exact = mp.loggamma(A + k) - mp.loggamma(A) - mp.loggamma(k + 1) + A * mp.log(B / (B + E)) + k * mp.log(E / (B + E))
    assert NegativeBinomial(a, b, [exposure]).logpmf([k])[0] == pytest.approx(float(exact), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("a", "b", "exposure"), [(2.5, 0.7, 20.0), (0.01, 1e-6, 100.0), (1e9, 1e8, 1.0), (1, 1, 1)])
def test_negative_binomial_quantiles_bracket_the_level(a, b, exposure):
    for q in (1e-6, *QUANTILES):
        k = int(NegativeBinomial(a, b, np.array([exposure])).ppf(q)[0])
        share = mp.mpf(exposure) / (mp.mpf(b) + mp.mpf(exposure))
        below, upto = (1 - mp.betainc(j, a, 0, share, regularized=True) if j else 0 for j in (k, k + 1))
        assert below < q <= upto * (1 + mp.mpf(1e-13))
    for a, mean in ((1e8, 4e15), (3e9, 1.7e16)):  # SciPy's says that it does not end, and does not end
        assert np.isnan(NegativeBinomial(a, 4.0, np.array([4 * mean / a])).ppf(0.025)).all()
    for b in (1e-20, 1e12):  # beyond 2**53, and an exposure of which SciPy's loses digits
        assert np.isnan(NegativeBinomial(1.0, b, np.array([1.0])).ppf(0.5)).all()


def test_multinomial_of_large_counts():
    p, counts = [0.25, 0.5, 0.25], [250_010_000, 499_980_000, 250_010_000]
    each = (x * mp.log(mp.mpf(q)) - mp.loggamma(x + 1) for x, q in zip(counts, p, strict=True))
    exact = mp.loggamma(10**9 + 1) + sum(each)
    assert Multinomial([10**9], [p]).logpmf([counts])[0] == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize(
    ("alpha", "counts"),
    [
        ([1, 1], [5 * 10**8] * 2),
        ([1e12, 1e-3], [10**9, 0]),
        ([5e11, 5e11], [5 * 10**8 + 7, 5 * 10**8 - 7]),
        ([1e-300, 1], [7, 0]),
        ([1e12, 1e-3, 2e12], [3, 0, 9]),
        ([1e-3, 1e-3, 1e-300], [10**9, 4, 1]),
        ([1.0, 1.0, 1.0], [10**8, 2 * 10**8, 7 * 10**8]),
        ([1e9, 2e9, 3e9], [10**8, 2 * 10**8, 3 * 10**8]),
    ],
)
def test_masses_of_large_and_small_numbers(alpha, counts):
    exact = pytest.approx(exact_log_mass(alpha, counts), rel=1e-12, abs=1e-11)
    assert DirichletMultinomial(alpha, [sum(counts)]).logpmf([counts])[0] == exact
    if len(alpha) == 2:
        assert BetaBinomial([sum(counts)], *alpha).logpmf(counts[:1])[0] == exact


@pytest.mark.parametrize(
    ("alpha", "counts"),
    [
        *(([1.0, 1.0, 1.0], [3, 0, 5]), ([0.5, 2.0, 3.5], [0, 0, 0]), ([1e12, 1e12, 1e12], [1, 2, 0])),
        *(([1e12, 1e-3], [10**9, 0]), ([1e12, 1e-3], [10**9, 1]), ([1e-3, 1e-3, 1e-3], [10**9, 10**9, 1])),
        *(([1e-300, 1e-300, 1.0], [1, 0, 10**9]), ([1e9, 2e9, 3e9], [10**9] * 3), ([65.0, 1e12, 64.0], [0, 10**9, 3])),
        *((np.full(1000, alpha), RNG.integers(0, 5, 1000)) for alpha in (1e-3, 1e12)),
        (10.0 ** RNG.uniform(-3, 12, 1000), RNG.integers(0, 10**6, 1000)),
        *((np.full(5, 1e-200), counts) for counts in ([3, 0, 0, 0, 0], [0, 0, 0, 0, 2], [1, 0, 10**9, 0, 2], [0] * 5)),
    ],
)
def test_log_dirichlet_ratio(alpha, counts):
    assert log_dirichlet_ratio(alpha, counts) == pytest.approx(float(exact_ratio(alpha, counts)), rel=1e-11, abs=1e-11)


def dirichlet(alpha):
    return Dirichlet(("p",), "y", np.array(alpha))


def test_marginals_and_density_are_scipys():
    alpha, p = np.array([0.5, 2.0, 30.0]), np.array([0.1, 0.2, 0.7])
    ours, scipys = dirichlet(alpha), stats.dirichlet(alpha)
    assert ours.logpdf({"p": p}) == pytest.approx(scipys.logpdf(p), rel=1e-13)
    assert isinstance(ours.logpdf({"p": p}), float)
    assert np.allclose(ours.marginals()["p"].mean(), scipys.mean())
    assert np.allclose(ours.marginals()["p"].var(), scipys.var())
    rows = dirichlet(np.stack([alpha, alpha + 1]))
    both = scipys.logpdf(p) + stats.dirichlet(alpha + 1).logpdf(p[::-1])
    assert rows.logpdf({"p": np.stack([p, p[::-1]])}) == pytest.approx(both, rel=1e-13)
    assert rows.marginals()["p"].mean().shape == (2, 3)


def test_density_on_the_edge():
    assert dirichlet([1.0, 2.0, 1.0]).logpdf({"p": [0.0, 0.4, 0.6]}) == pytest.approx(np.log(6 * 0.4), rel=1e-13)
    assert dirichlet([1.0, 1.0]).logpdf({"p": [0.0, 1.0]}) == pytest.approx(0.0, abs=1e-13)
    assert dirichlet([1.0, 2.0, 1.0]).logpdf({"p": [0.4, 0.0, 0.6]}) == -np.inf
    assert dirichlet([0.5, 1.0, 1.0]).logpdf({"p": [0.0, 0.4, 0.6]}) == np.inf
    assert np.isnan(dirichlet([0.5, 2.0, 1.0]).logpdf({"p": [0.0, 0.0, 1.0]}))
    assert np.isnan(dirichlet([0.5, 2.0]).logpdf({"p": [np.nan, 1.0]}))


@pytest.mark.parametrize("alpha", [[1e12, 3e12], [1e9, 1.0], [1e-300, 1e-3], [1e12, 1e-3]])
def test_density_of_strong_and_weak_priors(alpha):
    p = np.array([0.25, 0.75]) if min(alpha) != 1 else np.array([1 - 2.0**-30, 2.0**-30])
    a, b = mp.mpf(alpha[0]), mp.mpf(alpha[1])
    exact = (a - 1) * mp.log(p[0]) + (b - 1) * mp.log(p[1]) - mp.log(mp.beta(a, b))
    assert dirichlet(alpha).logpdf({"p": p}) == pytest.approx(float(exact), rel=1e-12, abs=1e-12)


def test_draws_have_the_marginals():
    alpha = np.array([[0.05, 0.6, 2.0], [5.0, 1.0, 40.0]])
    ours = dirichlet(alpha)
    draws = ours.rvs((2, 4000), np.random.default_rng(0))["p"]
    assert draws.shape == (2, 4000, 2, 3)
    assert np.allclose(draws.sum(-1), 1.0)
    flat = draws.reshape(-1, 2, 3)
    for i, j in np.ndindex(2, 3):
        assert stats.kstest(flat[:, i, j], stats.beta(alpha[i, j], alpha[i].sum() - alpha[i, j]).cdf).pvalue > 1e-3
    correlation = np.corrcoef(flat[:, 1, 0], flat[:, 1, 2])[0, 1]
    assert correlation == pytest.approx(-np.sqrt(5 * 40 / (41 * 6)), abs=0.03)
    assert ours.rvs((7,), np.random.default_rng(0))["p"].shape == (7, 2, 3)


@pytest.mark.parametrize("scale", [1e-3, 1e-12, 1e-300, 1e-310])
def test_draws_of_tiny_alpha_are_corners(scale):
    draws = dirichlet(scale * np.array([1.0, 3.0])).rvs((4000,), np.random.default_rng(1))["p"]
    assert np.all(np.isfinite(draws))
    assert np.allclose(draws.sum(-1), 1)
    assert np.mean(draws[:, 1] > 0.5) == pytest.approx(0.75, abs=0.03)


def test_mode_is_the_highest_point():
    alpha = np.array([[3.0, 1.0, 2.0], [1.5, 1.5, 4.0]])
    mode = dirichlet(alpha).mode()["p"]
    assert np.allclose(mode, [[2 / 3, 0, 1 / 3], [0.125, 0.125, 0.75]], rtol=1e-13)
    for other in np.random.default_rng(0).dirichlet([50.0, 1.0, 25.0], size=50):
        assert dirichlet(alpha[0]).logpdf({"p": other}) <= dirichlet(alpha[0]).logpdf({"p": mode[0]})


def test_no_mode():
    with raises(NumericalError, "no_maximum"):
        dirichlet([0.5, 3.0]).mode()
    with raises(NumericalError, "no_maximum"):
        dirichlet([1.0, 1.0, 1.0]).mode()
    with raises(NumericalError, "no_maximum", "p", "2"):
        dirichlet([[2.0, 1.0], [1.0, 1.0]]).mode()
    with raises(NumericalError, "no_maximum", "p", "1"):
        dirichlet([[2.0, 0.9], [1.0, 3.0]]).mode()
