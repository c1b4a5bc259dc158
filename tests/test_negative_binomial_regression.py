"""Negative binomial regression: published figures, SciPy's masses, and where the counts are Poisson's."""

import mpmath as mp
import numpy as np
import pytest
import scipy
from scipy.stats import nbinom, poisson

import bayeszoo as bz
from bayeszoo.distributions.discrete import LogMeanNegativeBinomial
from bayeszoo.distributions.special import log_negative_binomial_of_odds
from bayeszoo.families.glm.negative_binomial import NegativeBinomial
from tests.refusals import raises

COUNTS = bz.find("negative_binomial_regression")


def rows(n=60, phi=1.5, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 1))
    return X, rng.poisson(rng.gamma(phi, 1 / phi, n) * np.exp(1.0 + 0.6 * X[:, 0]))


def estimate(data, method="map", model=None):
    tree = bz.fit(model or COUNTS(), data, method, seed=1)
    assert tree.attrs["status"] == "ok", tree.attrs["gate"]
    return tree.posterior["w"].to_numpy()[0, 0], tree.posterior["phi"].item()


def refused(data):
    with pytest.raises(bz.NumericalError) as error:
        bz.fit(COUNTS(), data, "mle", seed=1)
    return str(error.value)


def by_scipy(X, y, penalty=lambda w, phi: 0.0, exposure=1.0):
    """Maximize SciPy's log mass, less a penalty, over two weights and log phi."""

    def loss(at):
        mean, phi = exposure * np.exp(at[0] + at[1] * X[:, 0]), np.exp(at[2])
        return -nbinom.logpmf(y, phi, phi / (phi + mean)).sum() + penalty(at[:2], phi)

    tight = {"xatol": 1e-9, "fatol": 1e-13, "maxiter": 10_000, "maxfev": 10_000}
    at = scipy.optimize.minimize(loss, [0.5, 0.0, 0.0], method="Nelder-Mead", options=tight).x
    return at[:2], np.exp(at[2])


# Estimates


def test_mle_of_days_absent_from_school_is_as_published():
    tree = bz.fit(COUNTS(), bz.example(COUNTS), "mle", seed=1)
    assert tree.attrs["status"] == "ok"
    names = tree.posterior["term"].to_numpy().tolist()
    assert names == ["(intercept)", "ethnicity[N]", "sex[M]", "age[F1]", "age[F2]", "age[F3]", "learner[SL]"]
    published = [2.89458, -0.56937, 0.08232, -0.44843, 0.08808, 0.35690, 0.29211]
    np.testing.assert_allclose(tree.posterior["w"].to_numpy()[0, 0], published, atol=6e-6)
    assert tree.posterior["phi"].item() == pytest.approx(1.275, abs=5e-4)
    assert '"log_likelihood": -546.5755' in tree.attrs["facts"]  # of which twice is -1093.151


def test_mle_is_the_maximum_by_scipy():
    w, phi = estimate(rows(), "mle")
    known, known_phi = by_scipy(*rows())
    np.testing.assert_allclose(w, known, atol=1e-6)
    assert phi == pytest.approx(known_phi, rel=1e-6)


def test_map_is_the_maximum_by_scipy():
    def penalty(w, phi):
        return (w[0] - 0.2) ** 2 / 2 + w[1] ** 2 / (2 * 0.3**2) - 2 * np.log(phi) + 1.5 * phi

    w, phi = estimate(rows(), model=COUNTS(a0=3.0, b0=1.5, tau=0.3, s0=1.0, m0=0.2))
    known, known_phi = by_scipy(*rows(), penalty)
    np.testing.assert_allclose(w, known, atol=1e-6)
    assert phi == pytest.approx(known_phi, rel=1e-6)


def test_exposure_multiplies_the_mean():
    X, y = rows()
    exposure = np.exp(np.random.default_rng(2).normal(0, 1, len(y)))
    w, phi = estimate({"X": X, "y": y, "exposure": exposure}, "mle")
    known, known_phi = by_scipy(X, y, exposure=exposure)
    np.testing.assert_allclose(w, known, atol=1e-6)
    assert phi == pytest.approx(known_phi, rel=1e-6)


def test_profile_is_highest_where_a_grid_says():
    y = np.array([0] * 12 + [1] * 3 + [40])
    data = {"y": y, "x": np.linspace(-1, 1, 16)}
    _, phi = estimate(data, "mle", COUNTS(degree=0))
    grid = np.logspace(-3, 3, 2001)
    heights = nbinom.logpmf(y[:, None], grid, grid / (grid + y.mean())).sum(axis=0)  # the mean is the MLE for each phi
    assert phi == pytest.approx(grid[np.argmax(heights)], rel=5e-3)


# Where there is no maximum


def test_counts_that_vary_no_more_than_poisson_are_refused_and_poisson_is_named():
    rng = np.random.default_rng(1)
    line = refused((rng.standard_normal((50, 1)), rng.binomial(8, 0.5, 50)))
    assert "vary no more than Poisson's, and phi runs to infinity; use poisson_regression" in line


def test_a_level_of_zeros_alone_is_refused_by_name():
    data = {"y": [0, 0, 0, 0, 3, 9, 1, 7], "ward": ["b"] * 4 + ["a"] * 4}
    line = refused(data)
    assert "ward[b] tells rows whose counts are all 0" in line
    w, phi = estimate(data)
    assert np.isfinite(w).all()
    assert phi > 0


def test_a_count_that_is_no_whole_number_is_refused():
    with raises(bz.InputError, "not_whole", "2.5"):
        bz.read(COUNTS, {"y": [1.0, 2.5, 3.0], "x": [1.0, 2.0, 3.0]})


# Masses and derivatives


@pytest.mark.parametrize("phi", [0.3, 4.0, 60.0])
def test_log_mass_is_that_of_scipy(phi):
    eta, y = np.linspace(-4, 6, 21), np.arange(21) * 3
    known = nbinom.logpmf(y, phi, phi / (phi + 2.0 * np.exp(eta)))
    ours = NegativeBinomial(phi).log_density(eta, y, np.full(21, 2.0))
    np.testing.assert_allclose(ours, known, rtol=1e-10)
    row = LogMeanNegativeBinomial(eta + np.log(2), phi)
    np.testing.assert_allclose(row.logpmf(y), known, rtol=1e-10)
    np.testing.assert_allclose(row.mean(), 2 * np.exp(eta))
    np.testing.assert_allclose(row.var(), 2 * np.exp(eta) + 4 * np.exp(2 * eta) / phi)
    assert row.logpmf(0.5 + y).max() == -np.inf


@pytest.mark.parametrize("phi", [0.1, 3.0, 1e4, 1e9])
@pytest.mark.parametrize("count", [0.0, 1.0, 70.0, 1e9, 1e12])
@pytest.mark.parametrize("log_ratio", [-800.0, -2.0, -1e-3, 0.0, 0.1, 800.0])
def test_log_mass_keeps_its_digits_at_large_counts(phi, count, log_ratio):
    """Of the mean over the count plus phi; ``log Gamma(phi + y) - log Gamma(y + 1)`` is 1e-6 off at 1e9."""
    log_odds = log_ratio + np.log(count / phi + 1)
    with mp.workdps(60):
        a, k, odds = mp.mpf(phi), mp.mpf(count), mp.exp(mp.mpf(float(log_odds)))
        constant = mp.loggamma(a + k) - mp.loggamma(a) - mp.loggamma(k + 1)
        expected = float(constant - a * mp.log1p(odds) + k * (mp.log(odds) - mp.log1p(odds)))
    own = log_negative_binomial_of_odds(count, phi, log_odds)
    np.testing.assert_allclose(own, expected, rtol=1e-12, atol=1e-10 + 1e-12 * count * abs(log_ratio))


def test_limit_of_large_phi_is_poisson():
    eta, y = np.linspace(-2, 4, 13), np.arange(13)
    heights = NegativeBinomial(1e9).log_density(eta, y, np.ones(13))
    np.testing.assert_allclose(heights, poisson.logpmf(y, np.exp(eta)), rtol=1e-5)
    closer = NegativeBinomial(1e11).log_density(eta, y, np.ones(13)) - poisson.logpmf(y, np.exp(eta))
    assert np.max(np.abs(closer)) < np.max(np.abs(heights - poisson.logpmf(y, np.exp(eta)))) / 10


def test_derivatives_are_those_of_finite_differences_and_nothing_overflows():
    link, size, step = NegativeBinomial(0.7), np.full(9, 1.5), 1e-5
    eta, y = np.linspace(-5, 5, 9), np.array([0, 3, 1, 0, 7, 2, 40, 0, 100])
    at, above, below = (link.terms(eta + move, y, size) for move in (0.0, step, -step))
    np.testing.assert_allclose(at.slope, (above.value - below.value) / (2 * step), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(at.curvature, (below.slope - above.slope) / (2 * step), rtol=1e-6)
    far = link.terms(np.array([-1e4, -800.0, 800.0, 1e4]), np.array([3, 0, 3, 0]), np.ones(4))
    assert all(np.isfinite(each).all() for each in far)
    np.testing.assert_allclose(far.value[[1, 3]], [0.0, -0.7 * (1e4 - np.log(0.7))], atol=1e-9)
