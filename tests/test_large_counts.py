"""Beta distributions of large counts, and of none, against mpmath's integrals."""

import mpmath as mp
import numpy as np
import pytest
from bayeszoo.models.beta_bernoulli import BetaBernoulli
from bayeszoo.models.dirichlet_multinomial import DirichletMultinomial
from scipy import stats

import bayeszoo as bz
from bayeszoo.distributions import frozen

LEVELS = (0.025, 0.5, 0.975)


def below(x, a, b):
    """Integrate the density up to x, from 14 standard deviations below the mean on."""
    with mp.workdps(60):
        a, b, x = mp.mpf(a), mp.mpf(b), mp.mpf(float(x))
        mean = a / (a + b)
        first = max(mean - 14 * mp.sqrt(a * b / (a + b) ** 2 / (a + b + 1)), mp.mpf(0))
        constant = mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)
        return float(
            mp.quad(
                lambda t: mp.exp((a - 1) * mp.log(t) + (b - 1) * mp.log(1 - t) + constant), mp.linspace(first, x, 9)
            )
        )


@pytest.mark.parametrize(
    ("a", "b", "error"),
    [
        (1e15, 1e15, 1e-9),
        (2e10, 5e9, 1e-9),
        (1e14, 9e14, 1e-9),
        (1.1e6, 1e12, 1e-7),
        (9e5, 2e10, 2e-7),
        (1e3, 1e15, 1e-12),
        (3.5, 1e15, 1e-12),
        (2e10, 1e5, 1e-8),
        (30.0, 5.0, 1e-12),
    ],
)
def test_quantiles_of_large_counts(a, b, error):
    law = frozen.beta(a, b)
    for level in LEVELS:
        quantile = law.ppf(level)
        assert below(quantile, a, b) == pytest.approx(level, abs=error)
        assert law.cdf(quantile) == pytest.approx(level, abs=error)


def test_arrays_of_small_and_large_counts_take_each_its_way():
    a, b = np.array([2.0, 1e12, 4.0, 1e12]), np.array([3.0, 2e12, 1e13, 1e4])
    law = frozen.beta(a, b)
    assert law.ppf(0.3)[0] == stats.beta(2, 3).ppf(0.3)
    assert law.cdf(law.ppf(0.3))[:3] == pytest.approx(np.full(3, 0.3), abs=1e-8)
    near_one = np.spacing(1.0) / law.std()[3]  # the digits that a double next to 1 has, in sd
    assert law.cdf(law.ppf(0.3))[3] == pytest.approx(0.3, abs=near_one)
    assert (law.cdf(0.0).tolist(), law.cdf(1.0).tolist()) == ([0.0] * 4, [1.0] * 4)


def test_of_one_category_alone_all_is_at_one():
    law = frozen.beta(np.array([3.0, 2.0]), np.array([0.0, 2.0]))
    assert (law.mean().tolist(), law.std()[0]) == ([1.0, 0.5], 0.0)
    assert (law.ppf(0.025)[0], law.cdf(0.999)[0], law.cdf(1.0)[0]) == (1.0, 0.0, 1.0)
    assert law.cdf(0.3)[1] == stats.beta(2, 2).cdf(0.3)


@pytest.mark.parametrize("successes", [10**15, 10**14])
def test_counts_of_a_quadrillion_are_shown(successes):
    model = BetaBernoulli()
    rows = {"successes": [successes], "trials": [2 * 10**15]}
    tree = bz.fit(model, bz.read(model, rows), "exact", seed=1, groups=())
    assert tree.attrs["status"] == "ok"
    summary = bz.summarize(tree)["theta"]
    normal = stats.norm(summary["mean"], summary["sd"])
    for name, level in zip(("q025", "median", "q975"), LEVELS, strict=True):
        assert normal.cdf(summary[name]) == pytest.approx(level, abs=1e-6)


def test_shares_of_few_among_a_quadrillion_are_shown():
    model = DirichletMultinomial()
    rows = bz.read(model, {"label": ["a", "b", "c"], "n": [10**15, 9 * 10**14, 3]}, column="label", count="n")
    tree = bz.fit(model, rows, "exact", seed=1, groups=())
    assert tree.attrs["status"] == "ok"
    few = bz.summarize(tree)["p"]["q975"][2]
    assert few == pytest.approx(stats.gamma(4).ppf(0.975) / 1.9e15, rel=1e-9)
