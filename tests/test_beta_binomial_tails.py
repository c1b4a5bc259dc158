"""Tails of beta-binomial distributions of many trials, against sums of all their terms."""

import numpy as np
import pytest
import scipy
from bayeszoo.models.beta_binomial import BetaBinomial as Rats

import bayeszoo as bz
from bayeszoo.answers.checks.tails_of_rows import tails
from bayeszoo.distributions.beta_binomial_tails import log_tails
from bayeszoo.distributions.discrete import BetaBinomial

A = np.array([0.3, 0.5, 1.0, 3.0, 0.7, 20.0, 500.0, 1e4, 1e9, 5.0])
B = np.array([0.4, 2.0, 1.0, 5.0, 900.0, 30.0, 700.0, 3e4, 1e9, 1e-3])


def log_mass(trials, a, b):
    """Return the log mass at every count, up to a constant, by the ratios of neighbours."""
    k = np.arange(trials, dtype=np.float64)
    steps = np.log(trials - k) - np.log(k + 1) + np.log(k + a) - np.log(trials - k - 1 + b)
    heights = np.append(0.0, np.cumsum(steps))
    return heights - scipy.special.logsumexp(heights)


@pytest.mark.parametrize("trials", [40, 2000, 100_000])
def test_tails_are_sums_of_the_mass_function(trials):
    for a, b in zip(A, B, strict=True):
        mass = log_mass(trials, a, b)
        for k in (0, 1, int(0.01 * trials), int(0.3 * trials), int(0.503 * trials), trials - 3, trials):
            parts = [each[0] for each in log_tails(k, trials, np.array([a]), np.array([b]))]
            for part, terms in zip(parts, (mass[:k], mass[k : k + 1], mass[k + 1 :]), strict=True):
                expected = scipy.special.logsumexp(terms) if len(terms) else -np.inf
                assert part == pytest.approx(expected, abs=1e-6) or max(part, expected) < -600


def test_of_very_many_trials_shares_are_as_the_chance_itself():
    a, b = np.array([0.5, 3.0, 40.0, 700.0]), np.array([2.0, 5.0, 30.0, 900.0])
    for share in (0.1, 0.45, 0.6):
        below, _, above = log_tails(int(share * 10**12), 10**12, a, b)
        assert np.exp(below) == pytest.approx(scipy.stats.beta(a, b).cdf(share), rel=1e-6, abs=1e-12)
        assert np.exp(above) == pytest.approx(scipy.stats.beta(a, b).sf(share), rel=1e-6, abs=1e-12)


def test_tails_of_draws_and_rows_are_those_of_each():
    rng = np.random.default_rng(0)
    trials, y = np.array([3000, 3000, 12]), np.array([40, 40, 7])
    a, b = rng.gamma(2.0, 3.0, (5, 1)), rng.gamma(2.0, 3.0, (5, 1))
    below, at, above = tails(BetaBinomial(trials, a, b), y)
    for i in range(5):
        for j in range(3):
            mass = log_mass(trials[j], a[i, 0], b[i, 0])
            parts = [scipy.special.logsumexp(part) for part in np.split(mass, [y[j], y[j] + 1])]
            assert [below[i, j], at[i, j], above[i, j]] == pytest.approx(parts, abs=1e-6)


def test_residuals_of_groups_of_a_million_trials_are_computed():
    trials = np.full(3, 1_000_000)
    rows = {"successes": np.array([500_000, 510_000, 520_000]), "trials": trials, "group": np.array(["a", "b", "c"])}
    tree = bz.fit(Rats(), bz.read(Rats(), rows), "exact", seed=1, draws=100, groups=())
    frame = bz.residuals(tree, seed=1)
    assert frame["mean"].to_numpy() == pytest.approx(5.1e5, rel=0.05)
    assert np.isfinite(frame.loc[frame["basis"] != "withheld: k-hat", "log_tail"]).all()


def test_distribution_functions_are_the_tails_and_end_where_counts_do():
    law, k = BetaBinomial(np.full(6, 3000), 3.0, 5.0), np.array([-1, 0, 40, 2400.5, 2999, 3000])
    mass = np.exp(log_mass(3000, 3.0, 5.0))
    upto = [mass[: max(int(np.floor(each)) + 1, 0)].sum() for each in k]
    more = [mass[max(int(np.floor(each)) + 1, 0) :].sum() for each in k]
    np.testing.assert_allclose(np.exp(law.logcdf(k)), upto, rtol=1e-9)
    np.testing.assert_allclose(np.exp(law.logsf(k)), more, rtol=1e-9)
