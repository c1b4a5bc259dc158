"""Robust regression against SciPy and quadrature: its density, its scale mixture, and what an outlier does to it."""

from dataclasses import replace

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.inference.engine.density import Density

ROBUST, RIDGE = bz.find("robust_regression"), bz.find("ridge")


def table(outlier=0.0, n=20):
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    y = 1 + 2 * x + rng.normal(0, 0.5, n)
    y[np.argmax(x)] += outlier
    return bz.read(ROBUST, {"x": x, "y": y})


def log_joint(model, data, w, sigma):
    """SciPy's log density of parameters and rows, with every constant."""
    units = np.array([1.0, *np.atleast_1d(model.scale)])
    prior = scipy.stats.norm([model.m0, 0.0], np.array([model.s0, model.tau]) / units).logpdf(w).sum()
    prior += scipy.stats.halfnorm(scale=model.sigma0).logpdf(sigma)
    location = w[0] + (data["X"][:, 0] - np.atleast_1d(model.center)[0]) * w[1]
    return prior + scipy.stats.t(model.nu, location, sigma).logpdf(data["y"]).sum()


@pytest.mark.parametrize("nu", [1.0, 4.0, 50.0])
def test_the_density_is_scipys(nu):
    data = table()
    model = replace(ROBUST.weak(data), nu=nu, sigma0=0.7)
    density = Density(model.declare(data), mode="FAST_COMPILE")
    for w, sigma in (([1.0, 2.0], 0.5), ([-3.0, 0.1], 4.0), ([1.2, 1.9], 0.01)):
        found = density.constrained_joint(density.unconstrain({"w": np.array(w), "sigma": sigma}))[0]
        assert np.isclose(found, log_joint(model, data, np.array(w), sigma), rtol=1e-11)
    wrong = log_joint(replace(model, nu=nu + 1e-4), data, np.array([1.0, 2.0]), 0.5)
    assert abs(wrong / log_joint(model, data, np.array([1.0, 2.0]), 0.5) - 1) > 1e-9


def test_the_gradient_is_that_of_differences():
    data = table()
    density = Density(ROBUST.weak(data).declare(data), mode="FAST_COMPILE")
    x = density.start + 0.3
    _, slope = density.joint(x)
    numeric = scipy.optimize.approx_fprime(x, lambda u: density.joint(u)[0], 1e-6)
    assert np.allclose(slope, numeric, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("y", [-7.0, 0.0, 0.4, 30.0])
def test_the_scale_mixture_integrates_to_the_likelihood(y):
    model, data = ROBUST(nu=3.0), bz.read(ROBUST, {"x": [0.5], "y": [y]})
    params = {"w": np.array([0.2, 1.0]), "sigma": np.array(1.4)}

    def mixed(lam):
        gamma = scipy.stats.gamma(1.5, scale=1 / 1.5)
        return gamma.pdf(lam) * scipy.stats.norm(0.7, 1.4 / np.sqrt(lam)).pdf(y)

    whole = scipy.integrate.quad(mixed, 0, np.inf, epsabs=0, epsrel=1e-10)[0]
    assert np.isclose(model.likelihood(params, data).pdf(y)[0], whole, rtol=1e-8)


def test_nuts_is_quadrature_with_one_weight():
    data = table(outlier=-15.0)
    model = ROBUST(intercept=False, tau=3.0, sigma0=1.0, nu=2.0)
    slopes, sigmas = np.linspace(-1, 5, 601), np.linspace(0.02, 5, 400)
    joint = scipy.stats.norm(0, 3).logpdf(slopes)[:, None] + scipy.stats.halfnorm(scale=1).logpdf(sigmas)
    for x, y in zip(data["X"][:, 0], data["y"], strict=True):
        joint = joint + scipy.stats.t(2.0, (x * slopes)[:, None], sigmas).logpdf(y)
    weight = np.exp(joint - joint.max())
    mean = np.sum(weight * slopes[:, None]) / weight.sum()
    scale = np.sum(weight * sigmas) / weight.sum()
    tree = bz.fit(model, data, "nuts", seed=1)
    w, sigma = (bz.summarize(tree)[name] for name in ("w", "sigma"))
    assert tree.attrs["status"] == "ok"
    assert abs(w["mean"][0] - mean) < 4.4 * w["mcse_mean"][0]
    assert abs(sigma["mean"] - scale) < 4.4 * sigma["mcse_mean"]


@pytest.mark.slow
def test_an_outlier_moves_ridge_and_not_this():
    clean, spoilt = table(), table(outlier=-40.0)
    robust = [bz.summarize(bz.fit(ROBUST.weak(clean), d, "map"))["w"]["mean"][1] for d in (clean, spoilt)]
    ridge = [bz.summarize(bz.fit(RIDGE.weak(clean), bz.read(RIDGE, d), "map"))["w"]["mean"][1] for d in (clean, spoilt)]
    assert abs(robust[1] - robust[0]) < 0.2
    assert abs(ridge[1] - ridge[0]) > 1.0


@pytest.mark.slow
def test_simulated_noise_has_the_tails_of_student_t():
    model = ROBUST(nu=3.0, tau=1e-9, s0=1e-9)
    rng = np.random.default_rng(1)
    ranks = []
    for _ in range(200):
        params, data = model.simulate(rng, 10)
        ranks.append(scipy.stats.t(3.0, 0.0, params["sigma"]).cdf(data["y"]))
    ranks = np.concatenate(ranks)
    assert scipy.stats.kstest(ranks, "uniform").pvalue > 1e-3
    gaussian = [scipy.stats.norm(0, 1).cdf(scipy.stats.t(3.0).ppf(rank)) for rank in ranks]
    assert scipy.stats.kstest(gaussian, "uniform").pvalue < 1e-3


def test_it_has_no_closed_forms_and_says_so():
    data = table()
    with pytest.raises(bz.InputError, match="robust_regression cannot be fitted with 'exact': it lacks ClosedForm"):
        bz.fit(ROBUST.weak(data), data, "exact")
    assert all(check.passed for check in bz.check(ROBUST))


def test_more_degrees_of_freedom_than_pymc_can_take_are_refused():
    with pytest.raises(bz.InputError, match="nu must be at most 1e6 in PyMC, got 1e"):
        ROBUST(nu=1e8).declare(bz.example(ROBUST))
