"""The exact posterior under a Laplace prior: closed forms in many digits, and SciPy in the limits."""

import functools

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.lasso.coefficient import LaplaceGaussian
from tests.quick import quick_first
from tests.refusals import raises

REGIMES = [10.0**k for k in range(-12, 13, 3)]
"""Precision times squared scale: from a likelihood that says nothing to a prior that says nothing."""

CENTRES = [0.0, 1e-14, 1e-6, 0.2, 0.26, 0.999999, 1.0, 1 + 1e-9, 1.5, 10.0, 1e3, 1e6]
"""Times the scale, or times 1 / (precision * scale), at which the data's pull at zero equals the prior's."""

GRID = [
    (1.2345 * regime / scale**2, sign * (f * scale * 1.1 if near else f * scale / (1.2345 * regime)), scale)
    for regime in REGIMES
    for scale in (1e-3, 37.0)
    for near in (True, False)
    for f in CENTRES
    for sign in (1, -1)
]
GRID = [(a, c, b) for a, c, b in GRID if min(1 / (b * a**0.5), abs(c) * a**0.5) <= 1e6]


class Closed:
    """The mixture of two truncated normals, in as many digits as cancellation takes."""

    def __init__(self, a, c, b):
        self.a, self.c, self.b = mp.mpf(a), mp.mpf(c), mp.mpf(b)
        self.root = mp.sqrt(self.a)
        self.t = {s: (1 / self.b - s * self.a * self.c) / self.root for s in (1, -1)}
        self.mass = {s: self.beyond(s, mp.mpf(0)) for s in (1, -1)}
        self.total = self.mass[1] + self.mass[-1]

    def beyond(self, side, x):
        t, at = self.t[side], self.root * abs(x)
        return mp.sqrt(mp.pi / 2) * mp.exp(t * t / 2) * mp.erfc((at + t) / mp.sqrt(2)) / self.root

    def log_normalizer(self):
        return mp.log(self.total) - self.a * self.c**2 / 2

    def moments(self):
        first = {s: 1 / self.a - self.t[s] / self.root * self.mass[s] for s in (1, -1)}
        second = {s: self.mass[s] / self.a - self.t[s] / self.root * first[s] for s in (1, -1)}
        mean = (first[1] - first[-1]) / self.total
        return mean, mp.sqrt((second[1] + second[-1]) / self.total - mean**2)

    def tails(self, x):
        x = mp.mpf(float(x))
        tail = self.beyond(1 if x >= 0 else -1, x) / self.total
        return (1 - tail, tail) if x >= 0 else (tail, 1 - tail)

    def logpdf(self, x):
        x = mp.mpf(float(x))
        return -self.a / 2 * (x - self.c) ** 2 - abs(x) / self.b - self.log_normalizer()


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(400):
        yield


@functools.cache
def closed(a, c, b):
    with mp.workdps(400):
        return Closed(a, c, b)


@pytest.mark.parametrize("part", quick_first(range(4)))
def test_moments_in_all_regimes(part):
    a, c, b = np.array(GRID[part::4]).T
    ours = LaplaceGaussian(a, c, b)
    moments = np.stack([ours.mean(), ours.std(), ours.log_normalizer])
    for parameters, (mean, std, log_normalizer) in zip(GRID[part::4], moments.T, strict=True):
        exact = closed(*parameters)
        exact_mean, exact_std = exact.moments()
        assert abs(mean - exact_mean) < 1e-9 * exact_std + 2 * np.spacing(abs(mean)), parameters
        assert abs(std / exact_std - 1) < 1e-9, parameters
        assert abs(log_normalizer - exact.log_normalizer()) < 1e-9 * max(1, abs(exact.log_normalizer())), parameters


QUANTILES = np.array([1e-12, 1e-6, 1e-3, 0.025, 0.3, 0.5, 0.7, 0.975, 0.999, 1 - 1e-6, 1 - 1e-12])


@pytest.mark.parametrize("part", quick_first(range(4)))
def test_quantiles_invert_the_distribution_function(part):
    """As far as the float next to a quantile allows, which is a millionth of a standard deviation off at worst."""
    for parameters in GRID[part::4]:
        ours = LaplaceGaussian(*parameters)
        x = ours.ppf(QUANTILES)
        assert np.all(np.diff(x) >= 0)
        next_float = np.exp(ours.logpdf(x)) * np.spacing(np.abs(x))
        assert np.all(np.abs(ours.cdf(x) - QUANTILES) <= 1e-9 + 2 * next_float), parameters


@pytest.mark.parametrize("parameters", GRID[::11])
def test_distribution_function_and_density_in_all_regimes(parameters):
    ours, exact = LaplaceGaussian(*parameters), closed(*parameters)
    for x in ours.ppf(QUANTILES[[0, 2, 4, 5, 9]]):
        assert abs(ours.cdf(x) - exact.tails(x)[0]) < 1e-9
        assert abs(ours.logpdf(x) - exact.logpdf(x)) < 1e-7


def no_data(b):
    return LaplaceGaussian(0.0, 3.0, b), stats.laplace(scale=b), np.sqrt(2) * b, np.log(2 * b)


def wide_prior(c):
    return LaplaceGaussian(4.0, c, 1e17), stats.norm(c, 0.5), 0.5, np.log(0.5 * np.sqrt(2 * np.pi))


@pytest.mark.parametrize("case", [*map(wide_prior, (0.0, -3.0)), *map(no_data, (1e-200, 1.0, 1e200))])
def test_in_the_limits_it_is_the_normal_distribution_or_the_prior(case):
    ours, limit, sd, log_normalizer = case
    found = [float(value) for value in (ours.mean(), ours.std(), ours.log_normalizer)]
    assert found == pytest.approx([limit.mean(), sd, log_normalizer], rel=1e-13, abs=0)
    q = np.array([1e-6, 0.2, 0.5, 0.9, 1 - 1e-6])
    x = np.array([limit.ppf(1e-7), 0.0, limit.mean() + 1.4 * sd])
    assert ours.ppf(q) == pytest.approx(limit.ppf(q), rel=1e-11, abs=1e-13 * sd)
    assert ours.cdf(x) == pytest.approx(limit.cdf(x), rel=1e-12)
    assert ours.logpdf(x) == pytest.approx(limit.logpdf(x), rel=1e-12)


@pytest.mark.parametrize("parameters", [(2.0, 0.7, 0.5), (2.0, -0.3, 1.5), (1e-8, 1.0, 2.0), (1e8, -3e-4, 2e-5)])
def test_draws(parameters):
    ours = LaplaceGaussian(*parameters)
    draws = ours.rvs(20_000, np.random.default_rng(0))
    assert stats.kstest(draws, ours.cdf).pvalue > 1e-3
    assert abs(np.mean(draws) - ours.mean()) < 4 * ours.std() / np.sqrt(20_000)
    wider = ours.mean() + 1.1 * (draws - ours.mean())
    assert stats.kstest(wider, ours.cdf).pvalue < 1e-5


def test_shapes():
    ours = LaplaceGaussian(np.array([0.0, 1.0, 2.0]), 0.3, np.array([[1.0], [2.0]]))
    for values in (ours.mean(), ours.std(), ours.ppf(0.3), ours.cdf(0.1), ours.log_normalizer, ours.rvs()):
        assert values.shape == (2, 3)
    assert ours.rvs((5, 2, 3)).shape == (5, 2, 3)
    assert ours.logpdf(np.zeros((4, 1, 1))).shape == (4, 2, 3)
    one, moved = LaplaceGaussian(1.0, 2.0, 3.0), LaplaceGaussian(1.0, 2.0, 3.0, loc=7.0)
    assert (moved.mean(), moved.ppf(0.3)) == pytest.approx((7 + one.mean(), 7 + one.ppf(0.3)), rel=1e-14)
    assert (moved.cdf(8.0), moved.logpdf(8.0)) == (one.cdf(1.0), one.logpdf(1.0))


def test_no_number_is_missing_however_far_the_parameters_are_apart():
    rng = np.random.default_rng(0)
    a, c, b = 10.0 ** rng.uniform(-45, 45, (3, 4000))
    a[::5], c[::7], c[1::7] = 0.0, 0.0, -c[1::7]
    known = np.minimum(1 / (b * np.sqrt(np.maximum(a, 1e-300))), np.abs(c) * np.sqrt(a)) <= 1e6
    ours = LaplaceGaussian(a[known], c[known], b[known])
    x = [ours.ppf(q) for q in (1e-6, 0.1, 0.5, 0.9, 1 - 1e-6)]
    values = [ours.mean(), ours.std(), ours.log_normalizer, *x, *(f(at) for at in x for f in (ours.cdf, ours.logpdf))]
    assert np.all(np.isfinite(values))
    assert np.all(np.diff(x, axis=0) >= 0)
    assert not np.isnan([f(np.array(end)) for end in (-1e300, 0.0, 1e300) for f in (ours.cdf, ours.logpdf)]).any()
    ours = LaplaceGaussian(1.0, [2.0, -2.0], 3.0)
    assert np.isnan([ours.ppf(1.5), ours.ppf(np.nan), ours.cdf(np.nan)]).all()
    ends = [ours.ppf(0.0), ours.ppf(1.0), ours.cdf(np.inf), ours.cdf(-np.inf), ours.logpdf(-np.inf)]
    assert np.transpose(ends).tolist() == [[-np.inf, np.inf, 1.0, 0.0, -np.inf]] * 2


@pytest.mark.parametrize(
    ("parameters", "error", "code", "name"),
    [
        *(((precision, 0.0, 1.0), InputError, "out_of_range", "precision") for precision in (-1.0, np.nan, np.inf)),
        ((1.0, np.inf, 1.0), InputError, "out_of_range", "centre"),
        ((1.0, 0.0, [1.0, 0.0]), InputError, "out_of_range", "scale"),
        ((1e200, 1e200, 1e-300), InputError, "too_large", ""),
        ((1.0, 1.1e6, 0.9e-6), NumericalError, "too_precise", ""),  # each known to less than their distance
    ],
)
def test_refused(parameters, error, code, name):
    LaplaceGaussian(1.0, 1.1e6, 1.1e-6)
    with raises(error, code, name):
        LaplaceGaussian(*parameters)
