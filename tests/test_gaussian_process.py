"""A Gaussian process: densities and predictions by scikit-learn and dense Gaussians, integrals by plain sums."""

import math

import numpy as np
import pytest
import scipy
from bayeszoo.models.gaussian_process import GaussianProcess
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.kernel_ridge import KernelRidge

import bayeszoo as bz
from bayeszoo.answers.checks import leave_out
from bayeszoo.compile.density import Density
from bayeszoo.contract.case import Case
from bayeszoo.contract.conditional import marginalized_density
from bayeszoo.data.read import Data
from bayeszoo.families.processes.kernels import KERNELS, Expression, Shape
from bayeszoo.families.processes.slopes import Values
from bayeszoo.families.processes.spectrum import Rows
from bayeszoo.fit import usual_method
from bayeszoo.model.outer.integration import exact_evidence, integrate
from bayeszoo.results.stored import Fit
from tests.quick import quick_where
from tests.refusals import raises

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0.1, 4.0, 12))[:, None]
X2 = RNG.normal(size=(12, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=12)
SHAPE = Shape(period=1.7, alpha=0.6)
OUTER = {"amplitude": np.array([1.3, 0.4]), "length": np.array([0.7, 2.0]), "sigma": np.array([0.3, 0.9])}
POINTS = [dict(zip(OUTER, values, strict=True)) for values in zip(*OUTER.values(), strict=True)]
OF_SKLEARN = {
    "rbf": kernels.RBF,
    "matern12": lambda length: kernels.Matern(length, nu=0.5),
    "matern32": lambda length: kernels.Matern(length, nu=1.5),
    "matern52": lambda length: kernels.Matern(length, nu=2.5),
    "rational_quadratic": lambda length: kernels.RationalQuadratic(length, alpha=SHAPE.alpha),
    "periodic": lambda length: kernels.ExpSineSquared(length, periodicity=SHAPE.period),
}
SUMS = {"linear + rbf", "periodic * matern32", "brownian + rational_quadratic * periodic"}


def data_of(X, y):
    return Data({"X": X, "y": y, "feature": np.array([f"x{j}" for j in range(X.shape[1])])})


DATA = data_of(X, Y)
MODEL = GaussianProcess(m0=0.2)


def dense(point, X=X, model=MODEL):
    kernel = model.expression
    own = kernel.correlations(kernel.tables(X, X), point["length"])
    return point["amplitude"] ** 2 * own + point["sigma"] ** 2 * np.eye(len(X))


@pytest.mark.parametrize("name", OF_SKLEARN)
def test_kernels_are_those_of_scikit_learn(name):
    kernel = Expression.read(name, SHAPE)
    for places, others in ((X, X[:5] + 0.1), (X2, X2[:3] - 1)):
        for length in (0.3, 2.0):
            ours = kernel.correlations(kernel.tables(places, others), length)
            np.testing.assert_allclose(ours, OF_SKLEARN[name](length)(places, others), rtol=1e-12, atol=1e-15)
            np.testing.assert_allclose(kernel.diagonal(places, length), 1.0, rtol=1e-12)


def test_other_kernels_are_products_of_places_and_the_covariance_of_a_random_walk():
    linear, brownian = (Expression.read(name, SHAPE) for name in ("linear", "brownian"))
    ours = linear.correlations(linear.tables(X2, X2), 2.0)
    np.testing.assert_allclose(ours, kernels.DotProduct(0.0)(X2) / 4, rtol=1e-12, atol=1e-15)
    steps = np.tril(np.ones((6, 6)))  # a walk of six steps of variance 1/2, at times 1 to 6
    times = np.arange(1.0, 7.0)[:, None]
    ours = brownian.correlations(brownian.tables(times, times), 2.0)
    np.testing.assert_allclose(ours, steps @ steps.T / 2, rtol=1e-12)
    both = Expression.read("linear + periodic * rbf", SHAPE)
    parts = [Expression.read(name, SHAPE) for name in ("linear", "periodic", "rbf")]
    a, b, c = (each.correlations(each.tables(X2, X2), 1.5) for each in parts)
    np.testing.assert_allclose(both.correlations(both.tables(X2, X2), 1.5), a + b * c, rtol=1e-12)
    expected = np.diag(both.correlations(both.tables(X2, X2), 1.5))
    np.testing.assert_allclose(both.diagonal(X2, 1.5), expected, rtol=1e-12)


def test_evidence_given_three_numbers_is_scipys_and_that_of_scikit_learn():
    ours = MODEL.log_marginal(OUTER, DATA)
    for i, point in enumerate(POINTS):
        expected = scipy.stats.multivariate_normal(np.full(12, 0.2), dense(point)).logpdf(Y)
        np.testing.assert_allclose(ours[i], expected, rtol=1e-12)
        np.testing.assert_allclose(MODEL.log_marginal(point, DATA), expected, rtol=1e-12)
        kernel = kernels.ConstantKernel(point["amplitude"] ** 2) * kernels.RBF(point["length"])
        peer = GaussianProcessRegressor(kernel, alpha=point["sigma"] ** 2, optimizer=None).fit(X, Y - 0.2)
        np.testing.assert_allclose(ours[i], peer.log_marginal_likelihood(), rtol=1e-12)
        new = np.linspace(-1, 6, 5)[:, None]
        mean, sd = peer.predict(new, return_std=True)
        law = MODEL.law(point, DATA, data_of(new, np.zeros(5)))
        np.testing.assert_allclose(law.mean(), 0.2 + mean, rtol=1e-10)
        np.testing.assert_allclose(law.std(), np.hypot(sd, point["sigma"]), rtol=1e-9)
        _, covariance = peer.predict(new, return_cov=True)
        np.testing.assert_allclose(
            MODEL.rows(DATA).covariance(point, Values(MODEL.expression, new)), covariance, atol=1e-12
        )


def test_mean_is_kernel_ridge():
    for point in POINTS:
        penalty = (point["sigma"] / point["amplitude"]) ** 2
        ridge = KernelRidge(alpha=penalty, kernel="rbf", gamma=1 / (2 * point["length"] ** 2)).fit(X, Y - 0.2)
        new = np.linspace(-1, 6, 5)[:, None]
        law = MODEL.law(point, DATA, data_of(new, np.zeros(5)))
        np.testing.assert_allclose(law.mean(), 0.2 + ridge.predict(new), rtol=1e-10)


def test_linear_kernel_has_the_evidence_of_ridge():
    linear, data = GaussianProcess(kernel="linear"), data_of(X2, Y)
    for point in POINTS:
        ridge = bz.find("ridge")(tau=point["amplitude"] / point["length"], sigma=point["sigma"], intercept=False)
        np.testing.assert_allclose(
            linear.log_marginal(point, data), ridge.log_evidence(ridge.statistics(data)), rtol=1e-11
        )


def test_rows_in_turn_have_the_density_of_all():
    total = 0.0
    for i in range(12):
        seen, new = (MODEL.inputs.reordered(DATA, rows) for rows in (np.arange(i), np.array([i])))
        total = total + MODEL.law(OUTER, seen, new).logpdf(Y[i : i + 1])[..., 0]
    np.testing.assert_allclose(total, MODEL.log_marginal(OUTER, DATA), rtol=1e-12)


def test_rows_left_out_have_the_law_of_a_fit_without_them():
    law = MODEL.held_out(OUTER, DATA, np.arange(12))
    for i in range(12):
        rest, row = (MODEL.inputs.reordered(DATA, rows) for rows in (np.delete(np.arange(12), i), np.array([i])))
        alone = MODEL.law(OUTER, rest, row)
        np.testing.assert_allclose(law.mean()[:, i], alone.mean()[:, 0], rtol=1e-9)
        np.testing.assert_allclose(law.std()[:, i], alone.std()[:, 0], rtol=1e-9)


QUICK_KERNELS = (*SUMS, "matern52")  # the sums are made of the others


@pytest.mark.parametrize("name", quick_where(sorted({*KERNELS, *SUMS}), QUICK_KERNELS.__contains__))
def test_pymc_and_the_operation_have_the_density_of_the_eigenvectors(name):
    model = GaussianProcess(kernel=name, period=1.7, alpha=0.6, scale=1.3, m0=0.2, t_sigma=2.0)
    declared, marginal = (
        Density(each, mode="FAST_COMPILE") for each in (model.declare(DATA), model.marginalized(DATA))
    )
    for point in POINTS:
        expected = float(model.log_marginal(point, DATA) + model.log_outer_prior(point))
        for density in (declared, marginal):
            x = density.unconstrain(point)
            np.testing.assert_allclose(density.heights(x).constrained, expected, rtol=1e-10)
            slope = scipy.optimize.approx_fprime(x, lambda x, f=density.joint: f(x)[0], 1e-6)
            np.testing.assert_allclose(density.joint(x)[1], slope, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", sorted({*KERNELS, *SUMS}))
def test_slopes_are_those_of_differences(name):
    model = GaussianProcess(kernel=name, period=1.7, alpha=0.6, scale=1.3, m0=0.2)
    for point in POINTS:
        slopes = model.marginal_slopes(point, DATA)
        for own, x in point.items():
            above, below = (model.log_marginal({**point, own: x * (1 + step)}, DATA) for step in (1e-6, -1e-6))
            difference = float(above - below) / (2e-6 * x)
            np.testing.assert_allclose(slopes[own], difference, rtol=1e-5, atol=1e-5)


def test_slopes_are_those_of_scikit_learn():
    for point in POINTS:
        kernel = kernels.ConstantKernel(point["amplitude"] ** 2) * kernels.RBF(point["length"])
        kernel += kernels.WhiteKernel(point["sigma"] ** 2)
        peer = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, Y - 0.2)
        value, slopes = peer.log_marginal_likelihood(peer.kernel_.theta, eval_gradient=True)
        ours = MODEL.marginal_slopes(point, DATA)
        in_logs = [point[name] * ours[name] / power for name, power in (("amplitude", 2), ("length", 1), ("sigma", 2))]
        np.testing.assert_allclose(in_logs, slopes, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(MODEL.log_marginal(point, DATA), value, rtol=1e-12)


def test_compiled_gradient_is_that_of_differences():
    density = Density(MODEL.marginalized(DATA))
    x = density.unconstrain(POINTS[0])
    value, slope = density.joint(x)
    np.testing.assert_allclose(value, Density(MODEL.declare(DATA), mode="FAST_COMPILE").joint(x)[0], rtol=1e-11)
    np.testing.assert_allclose(
        slope, scipy.optimize.approx_fprime(x, lambda x: density.joint(x)[0], 1e-6), rtol=1e-5, atol=1e-5
    )


def test_exact_answers_are_plain_sums():
    few = data_of(X[::2], Y[::2])
    # priors that leave no long tails, so that plain sums do
    priors = {"amplitude": "InvGamma(3, 2)", "sigma": "InvGamma(3, 1)", "length": "InvGamma(3, 2)"}
    model = GaussianProcess(m0=0.2, priors=priors)
    axes = [np.linspace(-3.5, 4.5, 49) for _ in range(3)]
    steps = math.prod(axis[1] - axis[0] for axis in axes)
    names, total, of_length = ("amplitude", "length", "sigma"), [], []
    laws = [scipy.stats.invgamma(3, scale=scale) for scale in (2, 2, 1)]
    kernel = model.expression
    for log_length in axes[1]:
        own = kernel.correlations(kernel.tables(X[::2], X[::2]), math.exp(log_length))
        a, s = (each.ravel() for each in np.meshgrid(np.exp(axes[0]), np.exp(axes[2]), indexing="ij"))
        covariance = a[:, None, None] ** 2 * own + s[:, None, None] ** 2 * np.eye(6)
        factor = np.linalg.cholesky(covariance)
        z = np.linalg.solve(factor, np.broadcast_to(few["y"] - 0.2, (len(a), 6))[..., None])[..., 0]
        height = -np.sum(z**2, axis=1) / 2 - np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        values = (a, math.exp(log_length), s)
        height = (
            height
            - 3 * math.log(2 * math.pi)
            + sum(law.logpdf(x) + np.log(x) for law, x in zip(laws, values, strict=True))
        )
        total.append(scipy.special.logsumexp(height))
        of_length.append(total[-1] + log_length)
    evidence = scipy.special.logsumexp(total) + math.log(steps)
    known = integrate(model, few)
    assert all(check.passed for check in known.checks), known.checks
    assert abs(known.log_evidence - evidence) < 1e-5
    mean = math.exp(scipy.special.logsumexp(of_length) + math.log(steps) - evidence)
    np.testing.assert_allclose(known.posterior["length"].mean(), mean, rtol=1e-3)
    assert list(known.posterior) == list(names)


def test_a_wrong_row_left_out_is_seen(monkeypatch):
    case = Case(MODEL, DATA)
    assert marginalized_density(case).passed
    right = Rows.held_out
    monkeypatch.setattr(Rows, "held_out", lambda self, outer, rows: right(self, outer, rows[::-1] - 1))
    assert not marginalized_density(case).passed


@pytest.mark.slow  # a quadrature without each row
def test_rows_left_out_of_an_exact_fit_are_ratios_of_evidences():
    rows = data_of(X[:8], Y[:8])
    model = GaussianProcess.weak(rows)
    score = leave_out.of_fit(Fit(bz.fit(model, rows, "exact", seed=1)))
    whole, inputs = exact_evidence(model, rows), model.inputs
    without = [exact_evidence(model, inputs.reordered(rows, np.delete(np.arange(8), i))) for i in range(8)]
    np.testing.assert_allclose(sorted(score.terms), sorted(whole - np.array(without)), rtol=1e-8)


@pytest.mark.slow  # on the finest grid of three numbers
def test_two_modes_are_integrated_over():
    rng, x = np.random.default_rng(1), np.sort(np.random.default_rng(2).uniform(0, 6, 25))
    rng.normal(size=25)
    data = data_of(x[:, None], 1 + 2 * x + rng.normal(size=25))  # a line, or a wave of little noise
    assert all(check.passed for check in integrate(GaussianProcess.weak(data), data).checks)


# Refusals


def test_what_is_no_kernel_is_refused():
    for name in ("gauss", "rbf +", "", "rbf ** 2", 3):
        with raises(bz.InputError, "unknown_name"):
            GaussianProcess(kernel=name)
    for fields in ({"b_length": -1.0}, {"period": 0.0}, {"scale": 0.0}, {"t_sigma": -2}):
        with raises(bz.InputError, "out_of_range"):
            GaussianProcess(**fields)
    with raises(bz.InputError, "out_of_range"):
        GaussianProcess(priors={"length": "Normal(0, 1)"})
    with raises(bz.InputError, "wrong_shape"):
        GaussianProcess(kernel="brownian").log_marginal(POINTS[0], data_of(X2, Y))
    with raises(bz.InputError, "out_of_range"):
        GaussianProcess(kernel="brownian", center=1.0).log_marginal(POINTS[0], DATA)


def test_a_random_walk_begins_at_the_first_row():
    model = GaussianProcess.weak_with(DATA, {"kernel": "brownian"})
    assert model.center == (X.min(),)
    assert np.isfinite(model.log_marginal(POINTS[0], DATA))
    assert GaussianProcess.weak_with(DATA, {"kernel": "brownian", "center": 0.0}).center == 0.0


def test_data_that_leave_no_noise_are_refused():
    smooth = data_of(X, np.sin(X[:, 0]))
    twice = data_of(np.vstack([X[:6], X[:6]]), np.tile(Y[:6], 2))
    for data, code in ((smooth, "singular_kernel"), (twice, "duplicate_rows"), (data_of(X, 0 * Y), "no_noise")):
        for method in ("exact", "mle", "nuts"):
            with raises(bz.NumericalError, code):
                bz.fit(GaussianProcess.weak(data), data, method, seed=1)
    # with a prior that vanishes there they have a posterior
    sure = GaussianProcess(priors={"sigma": "InvGamma(3, 1)", "amplitude": "InvGamma(3, 2)"})
    for data in (twice, data_of(X, 0 * Y)):
        assert all(check.passed for check in integrate(sure, data).checks)
    rough = GaussianProcess(kernel="matern12")
    assert np.isfinite(rough.log_marginal({**POINTS[0], "sigma": 1e-3}, smooth))


def test_a_density_that_rounding_decides_is_nowhere():
    assert MODEL.log_marginal({"amplitude": 1.0, "length": 5.0, "sigma": 1e-9}, DATA) == -np.inf
    apart = data_of(100 * X, Y)
    tiny = {"amplitude": 1.0, "length": 1e-3, "sigma": 1e-9}
    np.testing.assert_allclose(MODEL.log_marginal(tiny, apart), scipy.stats.norm(0.2, 1).logpdf(Y).sum(), rtol=1e-9)


def test_too_many_rows_are_refused_with_the_next_step():
    many = {"y": np.arange(2001.0), "x": np.arange(2001.0)}
    with raises(bz.InputError, "too_many_rows"):
        bz.fit(GaussianProcess, many, "mle", seed=1)


def many_rows():
    rng, x = np.random.default_rng(3), np.linspace(0, 30, 601)
    return {"x": x, "y": np.sin(x) + 0.3 * rng.normal(size=601)}


def test_many_rows_are_sampled_where_no_method_is_named():
    model, rows = GaussianProcess(), bz.read(GaussianProcess, many_rows())
    method, why = usual_method(model, rows)
    assert method == "nuts"
    assert "600" in why
    assert usual_method(model, DATA) == ("exact", "")


def test_many_rows_have_no_quadrature():
    with raises(bz.NumericalError, "too_large"):
        bz.fit(GaussianProcess, many_rows(), "exact", seed=1)


@pytest.mark.slow  # each of some hundred heights factors a matrix of 601 rows
def test_many_rows_have_a_maximum():
    rows = many_rows()
    tree = bz.fit(GaussianProcess, rows, "mle", seed=1)
    assert tree.attrs["status"] == "ok"
    assert abs(tree["posterior"]["sigma"].item() - 0.3) < 0.05


def test_no_rows_say_nothing():
    nothing, _ = MODEL.inputs.split(DATA, 0)
    np.testing.assert_array_equal(MODEL.log_marginal(OUTER, nothing), 0.0)
    law = MODEL.law(POINTS[0], nothing, DATA)
    np.testing.assert_allclose(law.std(), math.hypot(1.3, 0.3), rtol=1e-12)
    np.testing.assert_allclose(law.mean(), 0.2, rtol=1e-12)
