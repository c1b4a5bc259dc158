"""Closed-form pieces against mpmath, which somebody else wrote and which has as many digits as one asks for."""

import mpmath
import numpy as np
import pytest
from scipy import stats

from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.special import log_beta_ratio, log_binomial, log_rising, sum_or_nan


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(60):
        yield


@pytest.mark.parametrize("a", [1e-3, 0.5, 1.0, 63.9, 64.0, 1e3, 1e9, 1e15])
@pytest.mark.parametrize("n", [0, 1, 7, 12345, 10**7])
def test_log_rising(a, n):
    exact = mpmath.loggamma(mpmath.mpf(a) + n) - mpmath.loggamma(mpmath.mpf(a))
    assert log_rising(a, n) == pytest.approx(float(exact), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (0.5, 0.5), (2, 5), (1e-3, 1e3), (1e9, 1e9), (1e12, 3)])
@pytest.mark.parametrize(
    ("successes", "failures"),
    [(0, 0), (1, 0), (3, 2), (251527, 241945), (10**7, 10**6), (1, 10**15 - 1), (0, 10**12), (5 * 10**14, 5 * 10**14)],
)
def test_log_beta_ratio(a, b, successes, failures):
    exact = mpmath.log(mpmath.beta(mpmath.mpf(a) + successes, mpmath.mpf(b) + failures)) - mpmath.log(
        mpmath.beta(mpmath.mpf(a), mpmath.mpf(b))
    )
    assert log_beta_ratio(a, b, successes, failures) == pytest.approx(float(exact), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(
    ("n", "k"),
    [(0, 0), (4, 4), (980, 437), (493472, 251527), (10**15, 1), (10**15, 5 * 10**14), (10**12, 0), (130, 64)],
)
def test_log_binomial(n, k):
    assert float(log_binomial(n, k)) == pytest.approx(float(mpmath.log(mpmath.binomial(n, k))), rel=1e-12, abs=1e-13)


def test_a_sum_that_cancels_is_withheld():
    assert sum_or_nan(-3.0, 1.0, 2.0) == 0.0
    assert sum_or_nan(-3.0, -6.9e14, 6.9e14) == -3.0  # opposites: nothing is lost
    assert np.isnan(sum_or_nan(-3.0, -6.9e14, 6.9e14 + 1))


def test_posterior_of_vectors():
    posterior = Posterior({"w": stats.norm(np.array([0.0, 1.0, 2.0]), 1.0), "s": stats.gamma(2.0)})
    draws = posterior.rvs((4, 500), np.random.default_rng(0))
    assert {name: values.shape for name, values in draws.items()} == {"w": (4, 500, 3), "s": (4, 500)}
    point = {"w": np.array([0.1, 0.2, 0.3]), "s": 1.5}
    expected = stats.norm([0.0, 1.0, 2.0], 1.0).logpdf(point["w"]).sum() + stats.gamma(2.0).logpdf(1.5)
    assert posterior.logpdf(point) == pytest.approx(expected, rel=1e-13)
    assert set(posterior) == {"w", "s"}


def test_posterior_may_be_joint():
    joint = stats.multivariate_normal([0.0, 1.0], [[1.0, 0.9], [0.9, 1.0]])

    def draw(size, rng):
        return {"w": joint.rvs(size=size, random_state=rng)}

    posterior = Posterior({"w": stats.norm([0.0, 1.0], 1.0)}, draw, lambda params: joint.logpdf(params["w"]))
    draws = posterior.rvs(2000, np.random.default_rng(0))["w"]
    assert np.corrcoef(draws.T)[0, 1] == pytest.approx(0.9, abs=0.03)
    assert posterior.logpdf({"w": [0.3, 0.4]}) == joint.logpdf([0.3, 0.4])
