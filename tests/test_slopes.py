"""Derivatives of a function: kernels by differences, and posteriors by differences of scikit-learn's."""

import numpy as np
import pytest
import scipy
from bayeszoo.models.gaussian_process import GaussianProcess
from bayeszoo.models.ridge import Ridge
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

import bayeszoo as bz
from bayeszoo.data.read import Data
from bayeszoo.families.processes.kernels import Expression, Shape
from bayeszoo.families.processes.slopes import jet_of
from tests.refusals import raises

RNG = np.random.default_rng(8)
X = np.sort(RNG.uniform(0, 6, 25))
TABLE = {"y": 3 + np.sin(X) + 0.2 * RNG.normal(size=25)}
PLACES = np.array([0.5, 2.0, 2.2, 5.5])
STEP = 1e-3
SMOOTH = [
    "rbf",
    "matern32",
    "matern52",
    "rational_quadratic",
    "periodic",
    "linear",
    "linear * rbf + periodic * matern52",
]


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_of_kernels_are_differences(name):
    kernel, length = Expression.read(name, Shape(1.7, 0.8)), 1.3
    x, z = RNG.normal(size=(2, 9, 2))
    x[0] = z[0] + 1e-4  # the series
    step = np.array([0.0, STEP])

    def value(a, b):
        return jet_of(kernel, a, b, 1, length).value

    jet = jet_of(kernel, x, z, 1, length)
    pairs = kernel.correlations(kernel.tables(x, z), length)
    np.testing.assert_allclose(jet.value, np.diag(pairs), rtol=1e-12)
    np.testing.assert_allclose(jet.x, (value(x + step, z) - value(x - step, z)) / (2 * STEP), atol=2e-5)
    np.testing.assert_allclose(jet.z, (value(x, z + step) - value(x, z - step)) / (2 * STEP), atol=2e-5)
    up = value(x + step, z + step) + value(x - step, z - step)
    down = value(x + step, z - step) + value(x - step, z + step)
    rough = 0.02 if name == "matern32" else 2e-4  # its third derivative jumps
    np.testing.assert_allclose(jet.xz, (up - down) / (4 * STEP**2), atol=rough)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("rbf", 1), ("matern32", 3), ("matern52", 5 / 3), ("rational_quadratic", 1), ("periodic", (2 * np.pi / 1.7) ** 2)],
)
def test_variance_of_a_derivative_is_the_curvature_of_the_kernel_at_0(name, expected):
    at = RNG.normal(size=(3, 2))
    jet = jet_of(Expression.read(name, Shape(1.7, 0.8)), at, at, 0, 0.5)
    np.testing.assert_allclose(jet.xz, expected / 0.25, rtol=1e-10)
    np.testing.assert_array_equal(jet.z, 0)


POINT = {"amplitude": np.float64(1.1), "length": np.float64(1.4), "sigma": np.float64(0.25)}
SEEN = Data({"X": X[:, None], "y": TABLE["y"], "feature": np.array(["x"])})
NEW = Data({"X": PLACES[:, None], "y": np.zeros(4), "feature": np.array(["x"])})


def differences(step=0.01):
    """Return mean and covariance of differences about places, by scikit-learn."""
    peer = GaussianProcessRegressor(1.1**2 * kernels.RBF(1.4), alpha=0.25**2, optimizer=None)
    peer.fit(X[:, None], TABLE["y"] - 3)
    mean, covariance = peer.predict(np.concatenate([PLACES + step, PLACES - step])[:, None], return_cov=True)
    apart = np.hstack([np.eye(4), -np.eye(4)]) / (2 * step)
    return apart @ mean, apart @ covariance @ apart.T


def test_derivatives_are_differences_of_scikit_learns_process():
    mean, covariance = differences()
    model = GaussianProcess(m0=3.0)
    law = model.function(POINT, SEEN, NEW, along="x")
    np.testing.assert_allclose(law.mean(), mean, atol=1e-4)
    np.testing.assert_allclose(law.std(), np.sqrt(np.diag(covariance)), rtol=1e-3)
    share = model.share_of_prior({name: value[None] for name, value in POINT.items()}, SEEN, NEW, along="x")
    np.testing.assert_allclose(share, np.diag(covariance) / (1.1 / 1.4) ** 2, rtol=2e-3)


def test_derivatives_are_drawn_at_all_places_together():
    mean, covariance = differences()
    many = {name: np.full(2000, value) for name, value in POINT.items()}
    drawn = GaussianProcess(m0=3.0).drawn_function(many, SEEN, NEW, np.random.default_rng(1), along="x")
    z = np.linalg.solve(np.linalg.cholesky(covariance), (drawn - mean).T)
    assert scipy.stats.kstest(np.sum(z**2, axis=0), scipy.stats.chi2(4).cdf).pvalue > 1e-4


def test_derivatives_are_by_the_units_of_each_feature():
    places = RNG.normal(size=(12, 2)) * [1.0, 100.0]
    seen = Data({"X": places, "y": RNG.normal(size=12), "feature": np.array(["a", "b"])})
    model, point = GaussianProcess.weak(seen), {"amplitude": 1.2, "length": 0.9, "sigma": 0.3}
    point = {name: np.float64(value) for name, value in point.items()}
    for j, name in enumerate(("a", "b")):
        step = np.zeros(2)
        step[j] = 1e-3 * [1, 100][j]
        up, down = (Data({**seen, "X": places + sign * step}) for sign in (1, -1))
        rise = model.function(point, seen, up).mean() - model.function(point, seen, down).mean()
        np.testing.assert_allclose(
            model.function(point, seen, seen, along=name).mean(), rise / (2 * step[j]), rtol=1e-4
        )


def test_the_slope_of_a_linear_kernel_is_the_weight_of_a_ridge():
    seen = Data({"X": X[:, None], "y": TABLE["y"] - 3, "feature": np.array(["x"])})
    model = GaussianProcess(kernel="linear")
    point = {"amplitude": np.float64(1.5), "length": np.float64(2.0), "sigma": np.float64(0.3)}
    law = model.function(point, seen, seen, along="x")
    own = Ridge(tau=0.75, sigma=0.3, intercept=False, center=0.0, scale=1.0)
    weight = own.posterior(own.statistics(seen))["w"]
    np.testing.assert_allclose(law.mean(), np.full(25, weight.mean()[0]), rtol=1e-8)
    np.testing.assert_allclose(law.std(), np.full(25, weight.std()[0]), rtol=1e-6)


def test_functions_without_a_derivative_are_refused():
    with raises(bz.InputError, "no_capability", "matern32"):
        GaussianProcess(kernel="matern12").function(POINT, SEEN, NEW, along="x")
    with raises(bz.InputError, "missing_column", "'z'"):
        GaussianProcess().function(POINT, SEEN, NEW, along="z")
