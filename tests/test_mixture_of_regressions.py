"""Mixtures of regressions: against linear_regression, SciPy's Student t, sums over all assignments, and known lines."""

import itertools

import numpy as np
import pymc as pm
import pytest
from scipy import integrate, optimize, stats

import bayeszoo as bz
from bayeszoo.inference.methods.enumeration import enumerate_posterior
from bayeszoo.results.stored import Fit
from tests.refusals import raises

Mixture, Linear = bz.find("mixture_of_regressions"), bz.find("linear_regression")
FIELDS = {"m0": 0.4, "w0": 0.2, "V0": 3.0, "a0": 1.3, "b0": 0.7, "center": (1.0,), "scale": (2.0,)}
ROWS = {"y": [1.0, 3.1, 0.8, 2.2, -1.5, 0.3], "x": [0.5, 2.0, 1.1, 3.0, 2.2, 0.1]}
ETHANOL = bz.example(Mixture)
LEAN = ETHANOL["y"] < 0.93
"""Above an equivalence ratio of .93 nitrogen oxides fall as it grows."""
POINT = {"weights": np.array([0.3, 0.7]), "w": np.array([[1.0, 2.0], [0.5, -1.0]]), "sigma2": np.array([0.2, 1.5])}


def log_evidence_of(rows):
    """Log density of a set of rows under one regression, by SciPy's multivariate Student t."""
    if not len(rows):
        return 0.0
    y, x = np.take(ROWS["y"], rows), np.take(ROWS["x"], rows)
    design = np.column_stack([np.ones(len(y)), (x - 1.0) / 2.0])
    shape = (FIELDS["b0"] / FIELDS["a0"]) * (np.eye(len(y)) + 3.0 * design @ design.T)
    return stats.multivariate_t(design @ [0.4, 0.2], shape, df=2 * FIELDS["a0"]).logpdf(y)


def test_one_component_is_linear_regression():
    data, line = bz.read(Mixture, ROWS), Linear(**FIELDS)
    model, sums = Mixture(K=1, **FIELDS), line.statistics(bz.read(Linear, ROWS))
    none = np.zeros(6, dtype=int)
    assert model.log_joint(none[None], data)[0] == pytest.approx(line.log_evidence(sums), abs=1e-10)
    posterior, exact = model.posterior_given(none, data), line.posterior(sums)
    for name in ("w", "sigma2"):
        for of in ("mean", "std"):
            ours, expected = (np.squeeze(getattr(law[name], of)()) for law in (posterior, exact))
            np.testing.assert_allclose(ours, expected, rtol=1e-10)
    np.testing.assert_allclose(posterior.covariance()[1:, 1:], exact.covariance(), rtol=1e-10)


def test_evidence_is_the_sum_over_all_assignments():
    model, data = Mixture(K=2, alpha=0.8, **FIELDS), bz.read(Mixture, ROWS)
    total = -np.inf
    for z in itertools.product(range(2), repeat=6):
        of_weights = stats.dirichlet_multinomial([0.8, 0.8], 6).logpmf(np.bincount(z, minlength=2))
        of_weights -= np.log(len([*itertools.combinations(range(6), sum(z))]))
        parts = [log_evidence_of(np.flatnonzero(np.array(z) == k)) for k in range(2)]
        total = np.logaddexp(total, of_weights + sum(parts))
    assert enumerate_posterior(model, data).log_evidence == pytest.approx(total, abs=1e-9)


def test_a_row_is_a_mixture_of_normals():
    data = bz.read(Mixture, ROWS)
    law = Mixture(K=2, **FIELDS).likelihood(POINT, data)
    means, x = law.mean(), np.array(ROWS["x"]) - 1.0
    each = [stats.norm(w[0] + w[1] * x, np.sqrt(v)) for w, v in zip(POINT["w"], POINT["sigma2"], strict=True)]
    np.testing.assert_allclose(means, 0.3 * each[0].mean() + 0.7 * each[1].mean())
    y = np.array(ROWS["y"])
    np.testing.assert_allclose(np.exp(law.logpdf(y)), 0.3 * each[0].pdf(y) + 0.7 * each[1].pdf(y))
    np.testing.assert_allclose(np.exp(law.logsf(y)), 0.3 * each[0].sf(y) + 0.7 * each[1].sf(y))
    np.testing.assert_allclose(law.cdf(law.ppf(0.3)), 0.3)
    first = integrate.quad(lambda y: (y - means[0]) ** 2 * np.exp(law.logpdf(np.full(6, y))[0]), -20, 20)[0]
    assert law.var()[0] == pytest.approx(first)


def test_maximum_likelihood_is_that_of_scipy():
    """Climbing from the two branches, which the fit is not told."""
    tree = bz.fit(Mixture.weak(ETHANOL), ETHANOL, "mle", seed=1)
    y, x = ETHANOL["y"], ETHANOL["X"][:, 0]

    def negative(p):
        weights = 1 / (1 + np.exp([-p[0], p[0]]))
        density = sum(w * stats.norm.pdf(y, p[1 + k] + p[3 + k] * x, np.exp(p[5 + k])) for k, w in enumerate(weights))
        return -np.sum(np.log(density))

    lines = [np.polyfit(x[some], y[some], 1) for some in (LEAN, ~LEAN)]
    start = [0.0, lines[0][1], lines[1][1], lines[0][0], lines[1][0], -3.0, -3.0]
    best = optimize.minimize(negative, start, method="BFGS")
    assert Fit(tree).facts["log_likelihood"] == pytest.approx(-best.fun, abs=1e-5)
    slopes = np.sort(tree["posterior"]["w"].to_numpy()[0, 0, :, 1])
    np.testing.assert_allclose(slopes, np.sort(best.x[3:5]), atol=1e-4)


def test_lean_and_rich_mixtures_are_told_apart():
    tree = bz.fit(Mixture.weak(ETHANOL), ETHANOL, "map", seed=1)
    labels = bz.assign(tree)["component"].to_numpy()
    wrong = np.sum((labels == labels[np.argmin(ETHANOL["y"])]) != LEAN)
    assert wrong <= 8  # those near the crossing of the lines


@pytest.mark.parametrize(("shift", "unit"), [(1e9, 1.0), (0.0, 1e9), (0.0, 1e-9)])
def test_far_outcomes_and_units_lose_no_digits(shift, unit):
    rows = {"y": np.array(ROWS["y"]) + shift, "x": np.array(ROWS["x"]) * unit}
    there = {**FIELDS, "m0": 0.4 + shift, "center": (unit,), "scale": (2.0 * unit,)}
    z = np.array([[0, 1, 1, 0, 1, 0], [0, 0, 0, 0, 0, 1]])
    far = Mixture(K=2, **there).log_joint(z, bz.read(Mixture, rows))
    near = Mixture(K=2, **FIELDS).log_joint(z, bz.read(Mixture, ROWS))
    np.testing.assert_allclose(far, near, atol=1e-5 if shift else 1e-9)


def test_components_that_collapse_are_refused():
    """A line through two rows has no noise: such maxima are counted, and are no answer."""
    few = {"y": [0.1, 1.9, 4.2, 5.9, 40.0], "x": [0.0, 1.0, 2.0, 3.0, 4.0]}
    with raises(bz.NumericalError, "not_converged"):
        bz.fit(Mixture(K=2), few, "mle", seed=1)
    x = np.linspace(0, 1, 30)
    y = np.where(np.arange(30) % 2, 2 * x, 1 - x) + 0.1 * np.random.default_rng(0).standard_normal(30)
    variances = bz.fit(Mixture(K=2), {"y": y, "x": x}, "mle", seed=1)["posterior"]["sigma2"]
    assert 0.001 < float(variances.min()) < float(variances.max()) < 0.1


def test_more_components_than_rows_are_refused():
    with raises(bz.InputError, "too_few_rows"):
        bz.fit(Mixture(K=7), ROWS, "map", seed=1)


def test_residuals_have_the_ranks_of_the_mixture():
    tree = bz.fit(Mixture.weak(ETHANOL), ETHANOL, "map", seed=1)
    frame = bz.residuals(tree)
    assert stats.kstest(frame["pit"], "uniform").pvalue > 1e-3


def test_weights_are_drawn_from_their_prior_for_each_component():
    """SMC begins with draws of the compiled declaration; those of several vectors at once were refused by NumPy."""
    model = Mixture.weak(ETHANOL)
    sds = []
    for declared in (model.compiled(ETHANOL), model.declare(ETHANOL)):  # of PyMC's own distributions
        w, sigma2 = pm.draw([declared["w"], declared["sigma2"]], 400, random_seed=1, mode="FAST_COMPILE")
        sds.append(np.std(w / np.sqrt(sigma2)[..., None], axis=0))
    np.testing.assert_allclose(*sds, rtol=0.3)  # 6 errors of the ratio of two sds
