"""The Dirichlet distribution against SciPy, mpmath and simulation."""

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from bayeszoo.distributions.dirichlet import Dirichlet, log_dirichlet_ratio
from bayeszoo.errors import NumericalError


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(60):
        yield


def exact_ratio(alpha, counts):
    def log_b(x):
        return sum(mp.loggamma(v) for v in x) - mp.loggamma(sum(x))

    alpha = [mp.mpf(float(a)) for a in alpha]
    return float(log_b([a + int(x) for a, x in zip(alpha, counts, strict=True)]) - log_b(alpha))


RNG = np.random.default_rng(3)


@pytest.mark.parametrize(
    ("alpha", "counts"),
    [
        ([1.0, 1.0, 1.0], [3, 0, 5]),
        ([0.5, 2.0, 3.5], [0, 0, 0]),
        ([1e12, 1e12, 1e12], [1, 2, 0]),
        ([1e12, 1e-3], [10**9, 0]),
        ([1e12, 1e-3], [10**9, 1]),
        ([1e-3, 1e-3, 1e-3], [10**9, 10**9, 1]),
        ([1e-300, 1e-300, 1.0], [1, 0, 10**9]),
        ([1e9, 2e9, 3e9], [10**9, 10**9, 10**9]),
        ([65.0, 1e12, 64.0], [0, 10**9, 3]),
        (np.full(1000, 1e-3), RNG.integers(0, 5, 1000)),
        (np.full(1000, 1e12), RNG.integers(0, 5, 1000)),
        (10.0 ** RNG.uniform(-3, 12, 1000), RNG.integers(0, 10**6, 1000)),
    ],
)
def test_log_dirichlet_ratio(alpha, counts):
    assert log_dirichlet_ratio(alpha, counts) == pytest.approx(exact_ratio(alpha, counts), rel=1e-11, abs=1e-11)


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
