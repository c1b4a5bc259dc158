"""Distributions at fixed parameters against SciPy's own frozen ones, and posteriors made of them."""

import copy
import pickle

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.distributions import frozen
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.foundation.numerics.levels import solved
from bayeszoo.plots import drawable
from bayeszoo.results.stored import Fit

AT = [("t", (4.0,), {"loc": np.array([0.0, 3.0])}), ("beta", ([2.0, 0.5], 3.0), {}), ("poisson", (3.5,), {})]


@pytest.mark.parametrize(("name", "args", "kwds"), AT)
def test_methods_are_those_of_scipys_frozen(name, args, kwds):
    ours, theirs = getattr(frozen, name)(*args, **kwds), getattr(stats, name)(*args, **kwds)
    density = "logpmf" if name == "poisson" else "logpdf"
    for method, values in ((density, (2,)), ("cdf", (0.7,)), ("ppf", (0.3,)), ("interval", (0.9,))):
        assert np.array_equal(getattr(ours, method)(*values), getattr(theirs, method)(*values))
    for method in ("mean", "std", "var", "median", "support", "entropy"):
        assert np.allclose(getattr(ours, method)(), getattr(theirs, method)(), rtol=1e-14, atol=0)
    assert np.array_equal(ours.stats(moments="sk"), theirs.stats(moments="sk"))
    draws = [law.rvs(size=(3, 2), random_state=np.random.default_rng(1)) for law in (ours, theirs)]
    assert np.array_equal(*draws)
    assert hasattr(ours, "logpmf") == hasattr(theirs, "logpmf")  # by which discrete ones are known
    assert not hasattr(frozen, "nonesuch")
    for again in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert np.array_equal(again.mean(), theirs.mean())


def test_a_normal_distribution_of_sd_0_is_at_its_mean():
    """SciPy has none: the others of an array keep its figures."""
    ours, theirs = frozen.norm(np.array([1.0, 2.0]), np.array([0.0, 3.0])), stats.norm(2.0, 3.0)
    assert ours.mean().tolist() == [1, 2]
    assert ours.var().tolist() == [0, 9]
    assert ours.cdf(np.array([1.0, 0.5])).tolist() == [1, theirs.cdf(0.5)]
    assert frozen.norm(1.0, 0.0).cdf(np.array([0.9, 1.0, 1.1])).tolist() == [0, 1, 1]
    assert ours.ppf(0.3) == pytest.approx([1, theirs.ppf(0.3)], rel=1e-15)
    assert np.isnan(frozen.norm(1.0, np.nan).mean())


@pytest.mark.parametrize("scale", [np.array([0.1, 2.0, 1e5]), np.array([1.0, 2.0, np.nan])])
def test_log_densities_and_log_tails_of_normals_are_scipys(scale):
    loc, x = np.array([0.0, -3.0, 1e9]), np.array([[0.3, -2.0, 1e9], [40.0, 90.0, 0.0]])
    ours, theirs = frozen.norm(loc, scale), stats.norm(loc, scale)
    for method in ("logpdf", "logcdf", "logsf"):
        np.testing.assert_allclose(getattr(ours, method)(x), getattr(theirs, method)(x), rtol=1e-15)


@pytest.mark.parametrize("is_positive", [False, True])
def test_quantiles_by_newton_steps_are_scipys_from_any_start(is_positive):
    """Of Gamma variables with shapes from 0.01 to 1e4, from starts at the bounds, where the density may be 0."""
    law, q = stats.gamma(np.array([0.01, 0.5, 1.0, 30.0, 1e4])), 0.025
    low, high = np.zeros(5), law.ppf(0.999)
    exact = law.ppf(q)
    for start in (high, law.mean(), exact):
        solution = solved(law.cdf, law.pdf, q, low, high, start, is_positive)
        np.testing.assert_allclose(law.cdf(solution), q, atol=2e-12)
        np.testing.assert_allclose(solution, exact, rtol=1e-9)


@pytest.mark.parametrize(("a", "b"), [(1e-200, 3.0), (1e180, 1e150), (1e15, 1e15), (7.0, 1e-100)])
def test_moments_of_beta_neither_overflow_nor_vanish(a, b):
    with mp.workdps(400):
        total = mp.mpf(a) + mp.mpf(b)
        mean, sd = mp.mpf(a) / total, mp.sqrt(mp.mpf(a) * mp.mpf(b) / total**2 / (total + 1))
    ours = frozen.beta(a, b)
    assert (float(ours.mean()), float(ours.std())) == pytest.approx((float(mean), float(sd)), rel=1e-14, abs=0)


def test_drawing_leaves_scipys_own_generator_alone():
    before = stats.norm.random_state
    frozen.norm(0.0, 1.0).rvs(size=2, random_state=np.random.default_rng(0))
    assert stats.norm.random_state is before


def test_posterior_of_vectors():
    posterior = Posterior({"w": stats.norm(np.array([0.0, 1.0, 2.0]), 1.0), "s": stats.gamma(2.0)})
    draws = posterior.rvs((4, 500), np.random.default_rng(0))
    assert {name: values.shape for name, values in draws.items()} == {"w": (4, 500, 3), "s": (4, 500)}
    expected = stats.norm([0.0, 1.0, 2.0], 1.0).logpdf([0.1, 0.2, 0.3]).sum() + stats.gamma(2.0).logpdf(1.5)
    assert posterior.logpdf({"w": np.array([0.1, 0.2, 0.3]), "s": 1.5}) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("name", ["linear_regression", "ridge"])
def test_regressions_make_no_distribution_anew_for_each_row_that_is_left_out(name, monkeypatch):
    model = bz.find(name)()
    params, data = model.simulate(np.random.default_rng(0), 5)
    rows = bz.read(model, data)
    summed = model.statistics(rows)

    def densities():
        laws = model.predictive(summed, rows), model.likelihood(params, rows)
        return [law.logpdf(rows["y"]) for law in laws]

    expected = densities()
    monkeypatch.setattr(stats.rv_continuous, "freeze", lambda *args, **kwds: pytest.fail("SciPy builds it anew"))
    np.testing.assert_array_equal(densities(), expected)


def test_the_kind_of_a_row_s_distribution_is_told_of_our_frozen_ones_too(monkeypatch):
    tree = bz.fit(bz.find("ridge")(), (np.arange(4.0)[:, None], [0.1, 1.2, 1.9, 3.2]), "exact", seed=1)
    assert drawable._law(Fit(tree)) == "norm"
    monkeypatch.setattr("bayeszoo.families.linear.model.frozen.norm", frozen.laplace, raising=False)
    assert drawable._law(Fit(tree)) == "laplace"
