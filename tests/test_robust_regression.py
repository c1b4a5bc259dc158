"""Robust regression against SciPy and quadrature: its density, and what an outlier does to it."""

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
        value = density.constrained_joint(density.unconstrain({"w": np.array(w), "sigma": sigma}))[0]
        assert np.isclose(value, log_joint(model, data, np.array(w), sigma), rtol=1e-11)
    wrong = log_joint(replace(model, nu=nu + 1e-4), data, np.array([1.0, 2.0]), 0.5)
    assert abs(wrong / log_joint(model, data, np.array([1.0, 2.0]), 0.5) - 1) > 1e-9


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

    def moved(family):
        fits = (bz.fit(family.weak(clean), bz.read(family, data), "map") for data in (clean, spoilt))
        before, after = (bz.summarize(tree)["w"]["mean"][1] for tree in fits)
        return abs(after - before)

    assert moved(ROBUST) < 0.2
    assert moved(RIDGE) > 1.0


def test_it_has_no_closed_forms_and_says_so():
    data = table()
    with pytest.raises(bz.InputError, match="robust_regression cannot be fitted with 'exact': it lacks ClosedForm"):
        bz.fit(ROBUST.weak(data), data, "exact")


def test_more_degrees_of_freedom_than_pymc_can_take_are_refused():
    with pytest.raises(bz.InputError, match="nu must be at most 1e6 in PyMC, got 1e"):
        ROBUST(nu=1e8).declare(bz.example(ROBUST))
