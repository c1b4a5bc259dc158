"""Support vector regression: the mode by scikit-learn, least absolute errors, and exact answers of one weight."""

import math

import numpy as np
import pytest
import scipy
import sklearn.linear_model
import sklearn.svm
from scipy.stats import norm

import bayeszoo as bz
from bayeszoo.answers.checks import leave_out
from bayeszoo.contract import concave
from bayeszoo.contract.case import Case
from bayeszoo.families.support_vectors import rows as rows_of
from bayeszoo.families.support_vectors.mode import Tube, mode
from bayeszoo.families.support_vectors.noise import Insensitive, InsensitiveNoise
from bayeszoo.foundation.gate import failures, passed
from bayeszoo.inference.methods.modes.concave import highest
from bayeszoo.results.stored import Fit
from tests.refusals import raises

SVR = bz.find("support_vector_regression")


def rows(n=60, terms=3, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, terms))
    return X, 0.5 + X @ np.linspace(1.5, -0.8, terms) + rng.laplace(0, 0.7, n)


def estimate(model, data, method="map"):
    """Return the weights at the mode alone: a fit integrates over the posterior too, which takes much longer."""
    mode = highest(model, bz.read(model, data), flat=method == "mle")
    assert passed(mode.checks), failures(mode.checks)
    return mode.params["w"]


# The noise


@pytest.mark.parametrize(("eps", "rate"), [(0.0, 1.0), (0.7, 2.0), (3.0, 0.4)])
def test_noise_is_its_density_integrated(eps, rate):
    noise, points = InsensitiveNoise(0.0, eps, rate), np.array([-4.0, -0.8, -0.2, 0.0, 0.3, 0.7, 5.0])
    density = lambda x: np.exp(noise.logpdf(x))  # noqa: E731
    corners = [-eps, 0.0, eps]
    below = [
        scipy.integrate.quad(density, -60 / rate - eps, x, points=[c for c in corners if c < x])[0] for x in points
    ]
    np.testing.assert_allclose(noise.cdf(points), below, atol=1e-9)
    np.testing.assert_allclose(noise.sf(points), 1 - np.array(below), atol=1e-9)
    np.testing.assert_allclose(noise.logpdf(points), noise.logpdf(0) - rate * np.maximum(np.abs(points) - eps, 0))
    square = scipy.integrate.quad(lambda x: x * x * density(x), -80 / rate - eps, 80 / rate + eps, points=corners)[0]
    assert noise.var() == pytest.approx(square, rel=1e-8)
    levels = np.array([1e-9, 0.1, 0.4, 0.5, 0.75, 1 - 1e-6])
    np.testing.assert_allclose(noise.cdf(noise.ppf(levels)), levels, rtol=1e-9)
    assert noise.ppf(0) == -np.inf
    assert noise.ppf(1) == np.inf
    assert np.isnan(noise.ppf(1.5))


def test_noise_of_eps_0_is_laplace_and_keeps_its_digits_far_out():
    noise, laplace = InsensitiveNoise(1.0, 0.0, 2.0), scipy.stats.laplace(1.0, 0.5)
    points = np.array([-300.0, -2.0, 1.0, 3.0, 300.0])
    for name in ("logpdf", "logcdf", "logsf"):
        np.testing.assert_allclose(
            getattr(noise, name)(points), getattr(laplace, name)(points), rtol=1e-12, atol=1e-300
        )


def test_draws_have_the_distribution():
    draws = InsensitiveNoise(np.full(4000, 2.0), 0.5, 1.5).rvs(random_state=1)
    assert scipy.stats.kstest(draws, InsensitiveNoise(2.0, 0.5, 1.5).cdf).pvalue > 1e-3
    assert scipy.stats.kstest(draws, InsensitiveNoise(2.0, 0.6, 1.5).cdf).pvalue < 0.2  # power: a wider tube


# Modes


@pytest.mark.parametrize(("eps", "tau"), [(0.3, 0.5), (1.0, 3.0), (0.0, 1.0)])
def test_map_is_that_of_scikit_learn(eps, tau):
    """The intercept's flat prior is the limit of a wide one."""
    X, y = rows()
    model = SVR(tau=tau, eps=eps, rate=1.7, s0=1e5)
    svr = sklearn.svm.SVR(C=model.rate * tau**2, epsilon=eps, kernel="linear", tol=1e-10).fit(X, y)
    expected = [svr.intercept_[0], *svr.coef_[0]]
    np.testing.assert_allclose(estimate(model, (X, y)), expected, atol=2e-6)


def test_least_absolute_errors_of_the_stack_loss_are_the_published_ones():
    """Koenker and Bassett's quantile regression at 1/2, as R's quantreg prints it; least squares by Brownlee."""
    data = bz.example(SVR, "stackloss")
    design = np.column_stack([np.ones(21), data["X"]])
    squares = np.linalg.lstsq(design, data["y"], rcond=None)[0]
    np.testing.assert_allclose(squares, [-39.9197, 0.7156, 1.2953, -0.1521], atol=5e-5)
    w = estimate(SVR(eps=0.0), data, "mle")
    np.testing.assert_allclose(w, [-39.68986, 0.83188, 0.57391, -0.06087], atol=5e-6)


@pytest.mark.parametrize("eps", [0.0, 0.4])
def test_mle_is_as_high_as_that_of_a_linear_program(eps):
    X, y = rows(n=41)
    program = sklearn.linear_model.QuantileRegressor(quantile=0.5, alpha=0, solver="highs").fit(X, y)
    w = estimate(SVR(eps=eps, rate=2.0), (X, y), "mle")
    loss = lambda w: np.maximum(np.abs(y - w[0] - X @ w[1:]) - eps, 0).sum()  # noqa: E731
    reference = np.array([program.intercept_, *program.coef_])
    assert loss(w) <= loss(reference) + 1e-9
    if eps == 0:
        np.testing.assert_allclose(w, reference, atol=1e-7)
    steps = 1e-3 * np.random.default_rng(0).standard_normal((200, len(w)))
    assert min(loss(w + step) for step in steps) > loss(w)


def test_a_maximum_that_is_not_the_only_one_is_refused():
    even = {"y": [0.0, 1.0, 2.0, 4.0]}
    data = bz.read(SVR, {**even, "x": [0.0, 0.0, 1.0, 1.0]}, target="y")
    with raises(bz.NumericalError, "no_maximum"):
        bz.fit(SVR(eps=0.0), data, "mle", seed=1)
    inside = bz.read(SVR, {"y": [0.0, 1.1, 1.9, 3.0], "x": [0.0, 1.0, 2.0, 3.0]}, target="y")
    with raises(bz.NumericalError, "no_maximum"):
        bz.fit(SVR(eps=5.0), inside, "mle", seed=1)
    w = estimate(SVR(eps=0.0), data)
    assert np.isfinite(w).all()


@pytest.mark.parametrize("moved", [1e-3, -1e-3])
def test_the_certificate_sees_a_point_off_the_mode(moved):
    inner = SVR(tau=1.0, eps=0.3).concave(bz.read(SVR, rows()))
    peak = inner.highest()
    assert all(check.passed for check in peak.certificate())
    off = inner.tube().violation(peak.x + moved)
    assert off > 1e-3


def test_ties_at_the_corners_and_repeated_rows_have_a_certified_mode():
    x = np.repeat(np.arange(6.0), 8)
    y = np.round(x + np.tile([-2.0, -1, -1, 0, 0, 1, 1, 2], 6))
    for eps in (0.0, 1.0, 2.0):
        w = estimate(SVR(eps=eps, tau=5.0), (x[:, None], y))
        np.testing.assert_allclose(w, [0, 1], atol=0.2)


def test_counts_on_a_lattice_have_a_certified_mode():
    """Of these, two had none while steps were halved: the curvature jumps where rows leave their corners."""
    for seed in (*range(40), 88):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 3, (200, 3)).astype(float), rng.integers(0, 5, 200).astype(float)
        data = bz.read(SVR, (X, y))
        assert all(check.passed for check in SVR.weak(data).concave(data).highest().certificate()), seed


def test_units_of_the_outcome_move_the_mode_along():
    X, y = rows()
    w = estimate(SVR.weak(bz.read(SVR, (X, y))), (X, y))
    far = estimate(SVR.weak(bz.read(SVR, (X, 1e6 * y))), (X, 1e6 * y))
    np.testing.assert_allclose(far, 1e6 * w, rtol=1e-7)


def test_a_great_table_takes_seconds():
    X, y = rows(n=10_000, terms=10)
    w = estimate(SVR(tau=100.0, s0=100.0, eps=0.5), (X, y))
    np.testing.assert_allclose(w, estimate(SVR(eps=0.5), (X, y), "mle"), atol=1e-4)


# Exact answers


def piecewise(x, y, model):
    """Return log evidence and mean of one weight: pieces of exponentials times a Gaussian, each in closed form."""
    eps, rate, tau = float(model.eps), float(model.rate), float(model.tau)
    kinks = np.unique(np.concatenate([(y - eps) / x, (y + eps) / x]))
    ends = np.concatenate([[-np.inf], kinks, [np.inf]])
    middles = np.concatenate([[kinks[0] - 1], (kinks[1:] + kinks[:-1]) / 2, [kinks[-1] + 1]])
    mass = moment = 0.0
    for low, high, middle in zip(ends[:-1], ends[1:], middles, strict=True):
        residual = y - x * middle
        side = np.sign(residual) * (np.abs(residual) > eps)
        centre = rate * (side @ x) * tau**2  # exp(slope w - w^2 / (2 tau^2)) is a Gaussian about it
        height = centre**2 / (2 * tau**2) - rate * np.sum(side * y - eps * np.abs(side))
        a, b = (low - centre) / tau, (high - centre) / tau
        share = math.exp(height) * (norm.cdf(b) - norm.cdf(a) if a < 0 else norm.sf(a) - norm.sf(b))
        mass += share
        moment += share * centre + math.exp(height) * tau * (norm.pdf(a) - norm.pdf(b))
    return math.log(mass) - len(y) * math.log(2 * (eps + 1 / rate)), moment / mass


@pytest.mark.parametrize("eps", [0.0, 0.4])
def test_one_weight_is_exact_by_its_pieces(eps):
    rng = np.random.default_rng(3)
    x = rng.uniform(0.5, 2.0, 7)
    y = 0.8 * x + rng.laplace(0, 0.5, 7)
    model = SVR(intercept=False, tau=1.5, eps=eps, rate=1.3)
    tree = bz.fit(model, (x[:, None], y), "exact", seed=1)
    log_evidence, mean = piecewise(x, y, model)
    assert tree.attrs["status"] == "ok"
    assert tree["exact"].attrs["log_evidence"] == pytest.approx(log_evidence, abs=1e-6)
    assert tree["exact"]["w"].sel(statistic="mean").item() == pytest.approx(mean, abs=1e-5)


def test_left_out_rows_of_an_exact_fit_are_ratios_of_evidences_by_pieces():
    x = np.random.default_rng(4).uniform(0.5, 2.0, 6)
    y = 0.8 * x + np.array([0.1, -0.4, 0.2, 2.0, -0.1, 0.5])
    model = SVR(intercept=False, tau=1.5, eps=0.3, rate=1.3)
    whole = piecewise(x, y, model)[0]
    left = [whole - piecewise(np.delete(x, i), np.delete(y, i), model)[0] for i in range(6)]
    score = leave_out.of_fit(Fit(bz.fit(model, bz.read(SVR, (x[:, None], y)), "exact", seed=1)))
    np.testing.assert_allclose(score.terms, left, atol=1e-5)
    assert abs(score.mean - np.mean(left)) <= max(4 * score.mcse, 1e-9)


def test_bad_fields_and_what_has_no_curvature_are_refused_in_one_line():
    with raises(bz.InputError, "out_of_range", "eps", "0"):
        SVR(eps=-0.1)
    with raises(bz.InputError, "out_of_range"):
        SVR(rate=0.0)
    with raises(bz.NumericalError, "no_curvature", "laplace"):
        bz.fit(SVR(), rows(), "laplace", seed=1)
    with raises(bz.NumericalError, "integration_failed", "2", "4"):
        bz.fit(SVR(), rows(), "exact", seed=1)


# What the contract sees


def test_a_wrong_mode_is_seen_by_its_certificate_and_by_pymc(monkeypatch):
    case = Case(SVR.weak(bz.example(SVR)), bz.example(SVR))
    assert concave.certified_mode(case).passed
    monkeypatch.setattr(rows_of, "mode", lambda tube: mode(tube) + 0.2 / np.sqrt(np.diag(tube.curvature)))
    assert not all(check.passed for check in case.model.concave(case.data).highest().certificate())
    monkeypatch.setattr(Tube, "violation", lambda self, u: 0.0)
    assert not concave.certified_mode(case).passed


def test_a_wrong_normalizer_is_seen(monkeypatch):
    data = bz.read(SVR, {"y": [0.1, 1.2, 1.9, 4.0], "x": [0.0, 1.0, 2.0, 3.0]}, target="y")
    case = Case(SVR(intercept=False, eps=0.3), data)
    assert concave.integrated_evidence(case).passed
    monkeypatch.setattr(Insensitive, "log_height", property(lambda self: math.log(self.rate / 2)))
    assert not concave.concave_density(case).passed
