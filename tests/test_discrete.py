"""Distributions of counts and of their probabilities, and their log Gammas: against SciPy, mpmath and simulation."""

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from bayeszoo.distributions.dirichlet import Dirichlet, log_dirichlet_ratio
from bayeszoo.distributions.discrete import (
    BetaBinomial,
    Categorical,
    DirichletMultinomial,
    Multinomial,
    NegativeBinomial,
    sum_of_others,
)
from bayeszoo.distributions.special import deviance, log_beta_ratio, log_binomial, log_peak, log_rising, sum_or_nan
from bayeszoo.errors import NumericalError

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
    assert sum_of_others([1e12, 1e-3]).tolist() == [1e-3, 1e12]
    assert sum_of_others([[1.0, 2.0, 4.0], [1e16, 1.0, 1.0]]).tolist() == [[6, 5, 3], [2, 1e16, 1e16]]
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


def test_beta_binomial_is_scipys_where_scipy_is_right():
    trials = np.array([10, 1, 100, 0])
    ours, scipys = BetaBinomial(trials, 3.5, 2.0), stats.betabinom(trials, 3.5, 2.0)
    for k in (np.array([5, 1, 40, 0]), np.array([11, -1, 100, 0]), np.array([2.5, 0, 0, 0])):
        assert np.allclose(ours.logpmf(k), scipys.logpmf(k), rtol=1e-11, atol=1e-11)
    assert np.allclose(ours.mean(), scipys.mean(), rtol=1e-13)
    assert np.allclose(ours.std(), scipys.std(), rtol=1e-12)
    for q in QUANTILES:
        assert ours.ppf(q).tolist() == scipys.ppf(q).tolist()


def test_beta_binomial_of_a_known_coin_is_binomial():
    """SciPy's says that every quantile is 10."""
    coin = BetaBinomial(np.array([10]), 5e14, 5e14)
    assert [float(coin.ppf(q)[0]) for q in QUANTILES] == [2, 5, 8]
    assert coin.logpmf([5])[0] == pytest.approx(stats.binom(10, 0.5).logpmf(5), rel=1e-12)
    assert np.isnan(BetaBinomial([10**9], 3.0, 2.0).ppf(0.5)).all()


@pytest.mark.parametrize(
    ("n", "a", "b", "k"),
    [(10**9, 1, 1, 5 * 10**8), (10**9, 1e12, 1e-3, 10**9), (10**9, 5e11, 5e11, 5 * 10**8 + 7), (7, 1e-300, 1, 7)],
)
def test_beta_binomial_of_large_counts(n, a, b, k):
    found = BetaBinomial([n], a, b).logpmf([k])[0]
    assert found == pytest.approx(exact_log_mass([a, b], [k, n - k]), rel=1e-12, abs=1e-12)


def test_negative_binomial_is_scipys_where_scipy_is_right():
    a, b, exposure = 2.5, 0.7, np.array([1.0, 0.3, 20.0, 1.0])
    ours, scipys = NegativeBinomial(a, b, exposure), stats.nbinom(a, b / (b + exposure))
    for k in (np.array([3, 0, 100, 2]), np.array([-1, 2, 0, 2.5])):
        assert np.allclose(ours.logpmf(k), scipys.logpmf(k), rtol=1e-12, atol=1e-12)
    for method in ("mean", "var", "std"):
        assert np.allclose(getattr(ours, method)(), getattr(scipys, method)(), rtol=1e-12)


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
    for b in (1e-20, 1e12):  # beyond 2**53, and an exposure of which SciPy's loses digits
        assert np.isnan(NegativeBinomial(1.0, b, np.array([1.0])).ppf(0.5)).all()


def test_categorical_is_a_multinomial_of_one_trial():
    ours, codes = Categorical(P), np.array([1, 1, 2])
    assert ours.logpmf(codes) == pytest.approx(stats.multinomial(1, P).logpmf(np.eye(3)[codes]), rel=1e-13)
    assert ours.logpmf(np.array([0, 0, 3])).tolist() == [np.log(0.2), -np.inf, -np.inf]
    assert np.allclose(ours.std(), stats.binom(1, P).std())
    assert np.array_equal(ours.mean(), P)
    for q in (0.025, 0.5, 0.75, 0.975):
        assert np.array_equal(ours.ppf(q), stats.binom(1, P).ppf(q))


def test_categorical_of_draws():
    found = Categorical(np.stack([P, P[::-1]])[:, None]).logpmf(np.array([1, 1, 2]))
    assert found[1, 0].tolist() == [np.log(0.05), 0, np.log(0.3)]
    assert np.isnan(Categorical([[np.nan, 0.5]]).logpmf([0])).all()
    many = Categorical(np.broadcast_to(P, (20_000, 3, 3)))
    rows = many.rvs(size=many.mean().shape, random_state=np.random.default_rng(0))
    assert rows.shape == (20_000, 3, 3)
    assert set(np.unique(rows)) == {0, 1}
    assert np.all(rows.sum(-1) == 1)
    assert np.all(np.abs(rows.mean(0) - P) <= 4 * np.sqrt(P * (1 - P) / 20_000))


def test_multinomial_is_scipys():
    trials, counts = np.array([10, 4, 0]), np.array([[1, 6, 3], [0, 4, 0], [0, 0, 0]])
    ours, scipys = Multinomial(trials, P), stats.multinomial(trials, P)
    assert np.allclose(ours.logpmf(counts), scipys.logpmf(counts), rtol=1e-13, atol=1e-13)
    assert Multinomial(trials, P).logpmf([[1, 6, 2], [1, 3, 0], [-1, 1, 0]]).tolist() == [-np.inf] * 3
    assert np.allclose(ours.mean(), trials[:, None] * P)
    assert np.allclose(ours.var(), np.stack([np.diag(scipys.cov()[i]) for i in range(3)]))
    for q in QUANTILES:
        assert np.array_equal(ours.ppf(q), stats.binom(trials[:, None], P).ppf(q))


def test_multinomial_of_draws():
    trials, p = np.array([10, 4]), np.broadcast_to([0.2, 0.5, 0.3], (2, 5000, 1, 3))
    ours = Multinomial(trials, p)
    assert ours.mean().shape == ours.std().shape == (2, 5000, 2, 3)
    counts = np.array([[1, 6, 3], [0, 4, 0]])
    assert np.allclose(ours.logpmf(counts), stats.multinomial(trials, [0.2, 0.5, 0.3]).logpmf(counts))
    assert ours.logpmf(counts).shape == (2, 5000, 2)
    rows = ours.rvs(size=ours.mean().shape, random_state=np.random.default_rng(0))
    assert np.all(rows.sum(-1) == trials)
    assert np.all(np.abs(rows.mean((0, 1)) - ours.mean()[0, 0]) < 4 * ours.std()[0, 0] / 100)


def test_multinomial_of_large_counts():
    p, counts = [0.25, 0.5, 0.25], [250_010_000, 499_980_000, 250_010_000]
    each = (x * mp.log(mp.mpf(q)) - mp.loggamma(x + 1) for x, q in zip(counts, p, strict=True))
    exact = mp.loggamma(10**9 + 1) + sum(each)
    assert Multinomial([10**9], [p]).logpmf([counts])[0] == pytest.approx(float(exact), rel=1e-12)


def test_dirichlet_multinomial_is_scipys():
    alpha, trials, counts = np.array([0.5, 2.0, 3.5]), np.array([10, 1]), np.array([[1, 6, 3], [0, 0, 1]])
    ours, scipys = DirichletMultinomial(alpha, trials), stats.dirichlet_multinomial(alpha, trials)
    assert np.allclose(ours.logpmf(counts), scipys.logpmf(counts), rtol=1e-13)
    assert ours.logpmf([[1, 6, 2], [2, -1, 0]]).tolist() == [-np.inf] * 2
    assert np.allclose(ours.mean(), scipys.mean())
    assert np.allclose(ours.var(), np.stack([np.diag(c) for c in scipys.cov()]))
    for q in QUANTILES:
        assert np.array_equal(ours.ppf(q), stats.betabinom(trials[:, None], alpha, 6.0 - alpha).ppf(q))


@pytest.mark.parametrize(
    ("alpha", "counts"),
    [
        ([1e12, 1e-3, 2e12], [3, 0, 9]),
        ([1e-3, 1e-3, 1e-300], [10**9, 4, 1]),
        ([1.0, 1.0, 1.0], [10**8, 2 * 10**8, 7 * 10**8]),
        ([1e9, 2e9, 3e9], [10**8, 2 * 10**8, 3 * 10**8]),
    ],
)
def test_dirichlet_multinomial_at_the_corners(alpha, counts):
    ours = DirichletMultinomial(alpha, [sum(counts)]).logpmf([counts])
    assert ours[0] == pytest.approx(exact_log_mass(alpha, counts), rel=1e-12, abs=1e-11)


@pytest.mark.parametrize(
    ("alpha", "counts"),
    [
        *(([1.0, 1.0, 1.0], [3, 0, 5]), ([0.5, 2.0, 3.5], [0, 0, 0]), ([1e12, 1e12, 1e12], [1, 2, 0])),
        *(([1e12, 1e-3], [10**9, 0]), ([1e12, 1e-3], [10**9, 1]), ([1e-3, 1e-3, 1e-3], [10**9, 10**9, 1])),
        *(([1e-300, 1e-300, 1.0], [1, 0, 10**9]), ([1e9, 2e9, 3e9], [10**9] * 3), ([65.0, 1e12, 64.0], [0, 10**9, 3])),
        *((np.full(1000, alpha), RNG.integers(0, 5, 1000)) for alpha in (1e-3, 1e12)),
        (10.0 ** RNG.uniform(-3, 12, 1000), RNG.integers(0, 10**6, 1000)),
    ],
)
def test_log_dirichlet_ratio(alpha, counts):
    assert log_dirichlet_ratio(alpha, counts) == pytest.approx(float(exact_ratio(alpha, counts)), rel=1e-11, abs=1e-11)


def test_marginals_and_density_are_scipys():
    alpha, p = np.array([0.5, 2.0, 30.0]), np.array([0.1, 0.2, 0.7])
    ours, scipys = Dirichlet(alpha), stats.dirichlet(alpha)
    assert ours.logpdf(p) == pytest.approx(scipys.logpdf(p), rel=1e-13)
    assert isinstance(ours.logpdf(p), float)
    assert np.allclose(ours.marginals.mean(), scipys.mean())
    assert np.allclose(ours.marginals.var(), scipys.var())
    rows = Dirichlet(np.stack([alpha, alpha + 1]))
    both = scipys.logpdf(p) + stats.dirichlet(alpha + 1).logpdf(p[::-1])
    assert rows.logpdf(np.stack([p, p[::-1]])) == pytest.approx(both, rel=1e-13)
    assert rows.marginals.mean().shape == (2, 3)


def test_density_on_the_edge():
    assert Dirichlet([1.0, 2.0, 1.0]).logpdf([0.0, 0.4, 0.6]) == pytest.approx(np.log(6 * 0.4), rel=1e-13)
    assert Dirichlet([1.0, 1.0]).logpdf([0.0, 1.0]) == pytest.approx(0.0, abs=1e-13)
    assert Dirichlet([1.0, 2.0, 1.0]).logpdf([0.4, 0.0, 0.6]) == -np.inf
    assert Dirichlet([0.5, 1.0, 1.0]).logpdf([0.0, 0.4, 0.6]) == np.inf
    assert np.isnan(Dirichlet([0.5, 2.0, 1.0]).logpdf([0.0, 0.0, 1.0]))
    assert np.isnan(Dirichlet([0.5, 2.0]).logpdf([np.nan, 1.0]))


@pytest.mark.parametrize("alpha", [[1e12, 3e12], [1e9, 1.0], [1e-300, 1e-3], [1e12, 1e-3]])
def test_density_of_strong_and_weak_priors(alpha):
    p = np.array([0.25, 0.75]) if min(alpha) != 1 else np.array([1 - 2.0**-30, 2.0**-30])
    a, b = mp.mpf(alpha[0]), mp.mpf(alpha[1])
    exact = (a - 1) * mp.log(p[0]) + (b - 1) * mp.log(p[1]) - mp.log(mp.beta(a, b))
    assert Dirichlet(alpha).logpdf(p) == pytest.approx(float(exact), rel=1e-12, abs=1e-12)


def test_draws_have_the_marginals():
    alpha = np.array([[0.05, 0.6, 2.0], [5.0, 1.0, 40.0]])
    ours = Dirichlet(alpha)
    draws = ours.rvs((2, 4000), np.random.default_rng(0))
    assert draws.shape == (2, 4000, 2, 3)
    assert np.allclose(draws.sum(-1), 1.0)
    flat = draws.reshape(-1, 2, 3)
    for i, j in np.ndindex(2, 3):
        assert stats.kstest(flat[:, i, j], stats.beta(alpha[i, j], alpha[i].sum() - alpha[i, j]).cdf).pvalue > 1e-3
    correlation = np.corrcoef(flat[:, 1, 0], flat[:, 1, 2])[0, 1]
    assert correlation == pytest.approx(-np.sqrt(5 * 40 / (41 * 6)), abs=0.03)
    assert ours.rvs(7, np.random.default_rng(0)).shape == (7, 2, 3)


@pytest.mark.parametrize("scale", [1e-3, 1e-12, 1e-300, 1e-310])
def test_draws_of_tiny_alpha_are_corners(scale):
    draws = Dirichlet(scale * np.array([1.0, 3.0])).rvs(4000, np.random.default_rng(1))
    assert np.all(np.isfinite(draws))
    assert np.allclose(draws.sum(-1), 1)
    assert np.mean(draws[:, 1] > 0.5) == pytest.approx(0.75, abs=0.03)


def test_mode_is_the_highest_point():
    alpha = np.array([[3.0, 1.0, 2.0], [1.5, 1.5, 4.0]])
    mode = Dirichlet(alpha).mode()
    assert np.allclose(mode, [[2 / 3, 0, 1 / 3], [0.125, 0.125, 0.75]], rtol=1e-13)
    best = Dirichlet(alpha).logpdf(mode)
    for other in np.random.default_rng(0).dirichlet([50.0, 1.0, 25.0], size=(50, 1)):
        assert Dirichlet(alpha[0]).logpdf(other[0]) <= Dirichlet(alpha[0]).logpdf(mode[0])
        assert Dirichlet(alpha).logpdf(np.stack([mode[0], other[0]])) <= best


def test_no_mode():
    with pytest.raises(NumericalError, match="no mode: the Dirichlet density is unbounded"):
        Dirichlet([0.5, 3.0]).mode()
    with pytest.raises(NumericalError, match="density is flat"):
        Dirichlet([1.0, 1.0, 1.0]).mode()
    with pytest.raises(NumericalError, match="of row 1 is flat"):
        Dirichlet([[2.0, 1.0], [1.0, 1.0]]).mode()
    with pytest.raises(NumericalError, match="of row 0 is unbounded"):
        Dirichlet([[2.0, 0.9], [1.0, 3.0]]).mode()
