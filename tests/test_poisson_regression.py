"""Poisson regression: published figures, scikit-learn, quadrature by hand; and rows whose counts are all 0."""

import json

import numpy as np
import pytest
import scipy
from sklearn.linear_model import PoissonRegressor

import bayeszoo as bz
from bayeszoo.distributions.discrete import LogMeanPoisson
from bayeszoo.families.glm.links import Log
from bayeszoo.likelihoods.ops.glm import glm_log_likelihood
from tests.refusals import raises

POISSON = bz.find("poisson_regression")


def rows(n=150, seed=1):
    rng = np.random.default_rng(seed)
    X, exposure = rng.standard_normal((n, 2)), rng.uniform(0.5, 4, n)
    return {"a": X[:, 0], "b": X[:, 1], "t": exposure, "y": rng.poisson(exposure * np.exp(0.4 + X @ [0.5, -0.8]))}


def estimate(data, method="map", model=None):
    tree = bz.fit(model or POISSON(), data, method, seed=1)
    assert tree.attrs["status"] == "ok", tree.attrs["gate"]
    return tree.posterior["w"].to_numpy()[0, 0]


def refused(data, **options):
    with pytest.raises(bz.NumericalError) as error:
        bz.fit(POISSON(), bz.read(POISSON, data, **options), "mle", seed=1)
    return str(error.value)


def test_deviance_and_dispersion_of_the_ships_are_as_published():
    data = bz.example(POISSON)
    w = estimate(data, "mle")
    mean, y = data["exposure"] * np.exp(POISSON().predictor({"w": w}, data)), data["y"]
    assert len(y) - len(w) == 25
    assert 2 * np.sum(scipy.special.xlogy(y, y / mean) - (y - mean)) == pytest.approx(38.70, abs=0.005)
    assert np.sum((y - mean) ** 2 / mean) / 25 == pytest.approx(1.69, abs=0.005)
    np.testing.assert_allclose(w[[0, 1, 8]], [-6.406, -0.543, 0.384], atol=6e-4)


@pytest.mark.parametrize("tau", [0.2, 2.0])
def test_map_is_that_of_scikit_learn(tau):
    table = rows()
    X, t = np.column_stack([table["a"], table["b"]]), table["t"]
    oracle = PoissonRegressor(alpha=1 / (t.sum() * tau**2), tol=1e-12, max_iter=1000)
    oracle.fit(X, table["y"] / t, sample_weight=t)
    w = estimate(bz.read(POISSON, table, exposure="t"), model=POISSON(tau=tau, s0=1e6))
    np.testing.assert_allclose(w, np.append(oracle.intercept_, oracle.coef_), rtol=1e-5)


def test_evidence_is_that_of_quadrature_by_hand():
    y, x, t = np.array([0, 3, 1, 7]), np.array([-1.0, 0, 0.5, 2]), np.array([1.0, 2, 0.5, 1])
    tree = bz.fit(POISSON(intercept=False, tau=0.8), {"y": y, "x": x, "exposure": t}, "exact", seed=1)

    def density(w):
        return np.prod(scipy.stats.poisson.pmf(y, t * np.exp(x * w))) * scipy.stats.norm.pdf(w, 0, 0.8)

    expected = scipy.integrate.quad(density, -8, 8, epsabs=0, epsrel=1e-11)[0]
    assert tree["exact"].attrs["log_evidence"] == pytest.approx(np.log(expected), abs=1e-8)
    mean = scipy.integrate.quad(lambda w: w * density(w), -8, 8, epsabs=0)[0] / expected
    assert float(tree["exact"]["w"].sel(statistic="mean")[0]) == pytest.approx(mean, abs=1e-6)


def test_rate_ratios_and_exposure_of_new_rows():
    tree = bz.fit(POISSON(), bz.read(POISSON, rows(), exposure="t"), "laplace", seed=1)
    np.testing.assert_allclose(tree["derived"]["rate_ratio"], np.exp(tree.posterior["w"][..., 1:]))
    one, ten = (bz.predict(tree, {"a": [0.0], "b": [0.0], "t": [t]})["mean"].to_numpy() for t in (1.0, 10.0))
    np.testing.assert_allclose(ten, 10 * one, rtol=0.05)


def test_the_command_predicts_by_the_exposure_of_new_rows_and_does_not_take_it_to_be_1(run, written, tmp_path):
    table = written("n,a,t\n" + "".join(f"{n},{n % 3},{n + 1}\n" for n in range(12)), "counts.csv")
    asked = ("--target", "n", "--exposure", "t", "--method", "map", "-o", tmp_path / "fit.nc")
    assert run("fit", "poisson_regression", table, *asked)[0] == 0
    new = {"few": "a,t\n1,1\n", "many": "a,t\n1,10\n", "none": "a\n1\n"}
    few, many, none = (
        run("predict", tmp_path / "fit.nc", written(rows, f"{name}.csv"), "--json") for name, rows in new.items()
    )
    means = [json.loads(out)["rows"][0]["mean"] for _, out, _ in (few, many)]
    assert means[1] == pytest.approx(10 * means[0])
    assert none[0] == 2
    assert "the fit has an exposure, these rows have none; give its column with --exposure" in none[2]


# Where there is no maximum


def test_a_level_with_only_zeros_is_named():
    table = {"y": [3, 2, 4, 0, 0, 5], "site": ["a", "a", "b", "c", "c", "b"]}
    line = refused(table)
    assert "- site[c] is constant but where all counts are 0" in line
    assert np.isfinite(estimate(table)).all()


def test_counts_that_are_all_0():
    assert "all counts are 0" in refused({"y": [0, 0, 0], "x": [1.0, 2, 4]})
    assert estimate({"y": [0, 0, 0], "x": [1.0, 2, 4]})[0] < 0


def test_counts_above_0_of_a_whole_range_have_a_maximum():
    assert np.isfinite(estimate({"y": [0, 1, 0, 2, 1], "x": [1.0, 2, 3, 4, 5]}, "mle")).all()


# Bad input, and what is said


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"y": [1, 2.5, 3]}, ("not_whole", "2.5")),
        ({"y": [1, -2, 3]}, ("out_of_range",)),
        ({"t": [1.0, 0.0, 2.0]}, ("out_of_range", "2", "0.0")),
        ({"t": [1.0, -1.0, 2.0]}, ("out_of_range", "0")),
    ],
)
def test_what_is_no_count_or_no_exposure_is_refused(change, line):
    with raises(bz.InputError, *line):
        bz.read(POISSON, {"y": [1, 2, 3], "x": [1.0, 2, 4], "t": [1.0, 1, 2], **change}, exposure="t")


def test_a_forgotten_exposure_is_said():
    rng = np.random.default_rng(1)
    time = np.exp(rng.uniform(0, 4, 60))
    table = {"x": rng.standard_normal(60), "hours": time, "y": rng.poisson(time)}
    forgotten = bz.read(POISSON, table)
    assert any("use --exposure hours" in note for note in POISSON().remarks(None, forgotten))
    used = bz.read(POISSON, table, exposure="hours")
    assert used["feature"].tolist() == ["x"]
    assert not any("--exposure" in note for note in POISSON().remarks(None, used))
    assert not any("--exposure" in note for note in POISSON().remarks(None, bz.read(POISSON, rows(), features=["a"])))


def test_no_mean_overflows_or_vanishes():
    eta = np.array([-1e3, -40.0, 0.0, 5.0])
    law = LogMeanPoisson(np.ones(4), eta)
    np.testing.assert_allclose(law.logpmf(np.array([2, 2, 2, 2])), 2 * eta - np.exp(eta) - np.log(2))
    assert Log().log_density(np.array([1e4]), np.ones(1), np.ones(1))[0] == -np.inf
    table = rows()
    table["a"] = np.where(np.arange(150) == 0, 1e3, table["a"])  # a thousand standard deviations out
    assert np.isfinite(estimate(bz.read(POISSON, table, exposure="t"), model=POISSON(tau=2.0))).all()


def test_large_counts_have_their_maximum():
    x = np.array([0.0, 1, 2, 3])
    y = np.round(np.exp(12 + x)).astype(int)
    np.testing.assert_allclose(estimate({"y": y, "x": x}, "mle"), [12, 1], atol=1e-5)


def test_compiled_likelihood_is_the_sum_over_rows_and_its_gradient():
    rng = np.random.default_rng(1)
    X, w, exposure = rng.standard_normal((30, 3)), rng.standard_normal(3), rng.uniform(0.5, 2, 30)
    y = rng.poisson(2.0, 30)
    op = glm_log_likelihood(w, X, y, exposure, Log.code).owner.op
    value, gradient = op.interpreted(w, X, y.astype(float), exposure, np.array([Log.code]))
    np.testing.assert_allclose(value, scipy.stats.poisson.logpmf(y, exposure * np.exp(X @ w)).sum(), rtol=1e-12)
    np.testing.assert_allclose(gradient, X.T @ (y - exposure * np.exp(X @ w)), rtol=1e-10)
