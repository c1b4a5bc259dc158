"""The function of a fit: its values by scikit-learn, functions drawn jointly, and notes on places far from the rows."""

import math

import numpy as np
import pytest
import scipy
from bayeszoo.models.gaussian_process import GaussianProcess
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

import bayeszoo as bz
from bayeszoo.answers.function import function_along
from bayeszoo.families.processes.model import ProcessModel
from bayeszoo.report.families.profile import profiles
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import document
from tests.quick import quick_first
from tests.refusals import raises

RNG = np.random.default_rng(2)
X = np.sort(RNG.uniform(0, 6, 25))
TABLE = {"x": X, "y": 3 + np.sin(X) + 0.2 * RNG.normal(size=25)}
PLACES = {"x": np.array([-30.0, 0.5, 2.0, 5.5])}


@pytest.fixture(scope="module")
def best():
    return bz.fit(GaussianProcess, TABLE, "mle", seed=1)


def peer_of(tree):
    """Return scikit-learn's process at the estimate, of outcomes less the mean of the process."""
    point = {name: tree["posterior"][name].item() for name in ("amplitude", "length", "sigma")}
    kernel = kernels.ConstantKernel(point["amplitude"] ** 2) * kernels.RBF(point["length"])
    peer = GaussianProcessRegressor(kernel, alpha=point["sigma"] ** 2, optimizer=None)
    return peer.fit(X[:, None], TABLE["y"] - TABLE["y"].mean()), point


def test_maximum_of_the_likelihood_is_that_of_scikit_learn(best):
    kernel = kernels.ConstantKernel(1.0) * kernels.RBF(1.0) + kernels.WhiteKernel(0.1)
    peer = GaussianProcessRegressor(kernel, n_restarts_optimizer=3, random_state=0)
    peer.fit(X[:, None], TABLE["y"] - TABLE["y"].mean())
    theta = np.exp(peer.kernel_.theta) ** np.array([0.5, 1.0, 0.5])
    ours = [best["posterior"][name].item() for name in ("amplitude", "length", "sigma")]
    np.testing.assert_allclose(ours, theta, rtol=1e-3)
    np.testing.assert_allclose(bz.facts(best)["log_likelihood"], peer.log_marginal_likelihood_value_, rtol=1e-6)


def test_values_are_those_of_scikit_learn(best):
    peer, point = peer_of(best)
    mean, sd = peer.predict(PLACES["x"][:, None], return_std=True)
    frame = bz.function_values(best, PLACES)
    np.testing.assert_allclose(frame["mean"], TABLE["y"].mean() + mean, rtol=1e-8)
    np.testing.assert_allclose(frame["sd"], sd, rtol=1e-6)
    np.testing.assert_allclose(frame["q975"], frame["mean"] + scipy.stats.norm.ppf(0.975) * sd, rtol=1e-8)
    np.testing.assert_allclose(frame["prior_share"], (sd / point["amplitude"]) ** 2, rtol=1e-6)
    rows = bz.predict(best, PLACES)
    np.testing.assert_allclose(rows["mean"], frame["mean"], rtol=1e-10)
    np.testing.assert_allclose(rows["sd"], np.hypot(sd, point["sigma"]), rtol=1e-6)
    assert rows.attrs["far_rows"] == [1]


def test_functions_are_drawn_at_all_places_together(best):
    peer, _ = peer_of(best)
    places = np.array([1.0, 1.1, 4.0])
    frame = bz.function_values(best, {"x": places}, draws=4000, seed=3)
    drawn = frame.filter(like="draw_").to_numpy()
    mean, covariance = peer.predict(places[:, None], return_cov=True)
    z = np.linalg.solve(np.linalg.cholesky(covariance), drawn - TABLE["y"].mean() - mean[:, None])
    assert scipy.stats.kstest(np.sum(z**2, axis=0), scipy.stats.chi2(3).cdf).pvalue > 1e-4
    assert frame.filter(like="draw_").equals(
        bz.function_values(best, {"x": places}, draws=4000, seed=3).filter(like="draw_")
    )


def test_derivatives_are_those_of_the_model(best, tmp_path, run):
    new = bz.read(GaussianProcess, {**PLACES, "y": np.zeros(4)})
    fit = Fit(best)
    law = fit.model.function(fit.pooled(), fit.data, new, along="x")
    frame = bz.function_values(best, PLACES, derivative="x", draws=2)
    np.testing.assert_allclose(frame["mean"], law.mean()[0], rtol=1e-10)
    np.testing.assert_allclose(frame["sd"], law.std()[0], rtol=1e-10)
    assert "draw_2" in frame
    bz.save(best, tmp_path / "fit.nc")
    (tmp_path / "new.csv").write_text("x\n0.5\n2\n", encoding="utf-8")
    code, out, _ = run("predict", tmp_path / "fit.nc", tmp_path / "new.csv", "--derivative", "x")
    assert code == 0
    assert f"{frame['mean'].iloc[1]:.4f}" in out


def test_draws_of_places_apart_would_be_seen(best, monkeypatch):
    peer, _ = peer_of(best)
    places = np.array([1.0, 1.1, 4.0])

    def apart(self, params, seen, new, rng):
        law = self.function(params, seen, new)
        return rng.normal(law.mean(), law.std())

    monkeypatch.setattr(ProcessModel, "drawn_function", apart)
    drawn = bz.function_values(best, {"x": places}, draws=4000, seed=3).filter(like="draw_").to_numpy()
    mean, covariance = peer.predict(places[:, None], return_cov=True)
    z = np.linalg.solve(np.linalg.cholesky(covariance), drawn - TABLE["y"].mean() - mean[:, None])
    assert scipy.stats.kstest(np.sum(z**2, axis=0), scipy.stats.chi2(3).cdf).pvalue < 1e-10


def test_replicated_rows_are_about_one_function(best):
    checks = bz.predictive_check(best, {"mean": np.mean}, replicates=2000)
    peer, point = peer_of(best)
    _, covariance = peer.predict(X[:, None], return_cov=True)
    sd = math.sqrt(covariance.mean() + point["sigma"] ** 2 / 25)
    width = float(checks["q975"].iloc[0] - checks["q025"].iloc[0])
    assert abs(width / (2 * 1.96 * sd) - 1) < 0.15  # of rows drawn apart it is .73


@pytest.mark.parametrize("method", quick_first(["exact", "nuts"]))
def test_averages_over_the_three_numbers_agree(method, best):
    known = bz.fit(GaussianProcess, TABLE, method, seed=1)
    frame = bz.function_values(known, PLACES)
    law, draws = known["posterior"], {}
    for name in ("amplitude", "length", "sigma"):
        draws[name] = law[name].values.ravel()[::5]
    model = GaussianProcess.weak(bz.read(GaussianProcess, TABLE))
    data, new = bz.read(GaussianProcess, TABLE), bz.read(GaussianProcess, {"x": PLACES["x"], "y": np.zeros(4)})
    mean = model.function(draws, data, new).mean()
    np.testing.assert_allclose(frame["mean"], mean.mean(axis=0), atol=5 * mean.std(axis=0).max() / 20)
    assert (frame["sd"] > 0.9 * bz.function_values(best, PLACES)["sd"]).all()


@pytest.mark.slow
def test_evidence_prefers_a_process_to_a_line_where_rows_are_curved():
    lines = bz.find("linear_regression")
    process, line = (bz.fit(kind, TABLE, "exact", seed=1) for kind in (GaussianProcess, lines))
    frame = bz.select([process, line])
    height = {
        str(row["model"]).removeprefix("exact ").split("(")[0]: row["log_evidence"] for _, row in frame.iterrows()
    }
    assert height["gaussian_process"] > height["linear_regression"] + 5


def test_pictures_show_the_function(best):
    figure = bz.plot_function(best)
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()][-1] == "rows"
    two = bz.fit(GaussianProcess, {"a": X, "b": X[::-1] ** 2, "y": TABLE["y"]}, "map", seed=1)
    assert len(bz.plot_function(two, draws=0).axes) == 2


@pytest.mark.slow  # a page draws every picture
def test_the_page_says_where_the_function_is_lowest(best, tmp_path):
    bz.report([best], tmp_path / "page.html")
    assert "the function is lowest at" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_fit_begins_with_the_function_along_the_range_of_the_rows(best):
    (profile,) = profiles(Fit(best), document(Fit(best)))
    at, mean, low, high = np.array([[float(cell) for cell in row[:4]] for row in profile.rows]).T
    peer, _ = peer_of(best)
    own, sd = peer.predict(at[:, None], return_std=True)
    np.testing.assert_allclose(at[[0, -1]], [X.min(), X.max()], atol=0.01)
    np.testing.assert_allclose(mean, own + TABLE["y"].mean(), atol=1e-3)
    np.testing.assert_allclose((high - low) / 2, 1.96 * sd, rtol=0.02)


def test_few_draws_have_errors_that_tell_how_far_off_they_are():
    tree = bz.fit(GaussianProcess, TABLE, "laplace", seed=1)
    frame = function_along(Fit(tree))
    known = bz.function_values(tree, {"x": frame["at"].to_numpy()})  # of all draws
    for name in ("mean", "q025", "q975"):
        off = np.abs(known[name].to_numpy() - frame[name].to_numpy())
        assert (off < 5 * frame[f"mcse_{name}"].to_numpy()).all()
        assert (off < 0.3 * known["sd"].to_numpy()).all()


def test_an_exact_fit_begins_with_exact_numbers():
    """An average over a few draws of its posterior was printed as if it were exact."""
    tree = bz.fit(GaussianProcess, TABLE, "exact", seed=1)
    frame = function_along(Fit(tree))
    known = bz.function_values(tree, {"x": frame["at"].to_numpy()})
    for name in ("mean", "q025", "q975"):
        np.testing.assert_allclose(frame[name], known[name], rtol=1e-10)
        assert frame[f"mcse_{name}"].isna().all()


def test_several_features_have_few_places_each():
    data = {"a": X, "b": (X > 2).astype(float), "y": TABLE["y"]}
    (profile,) = profiles(Fit(tree := bz.fit(GaussianProcess, data, "map", seed=1)), document(Fit(tree)))
    assert [row[:2] for row in profile.rows][-2:] == [["b", "0"], ["b", "1"]]
    assert len(profile.rows) == 5


def test_what_has_no_function_is_refused(best):
    line = bz.fit(bz.find("linear_regression"), TABLE, "exact", seed=1)
    with raises(bz.InputError, "no_capability"):
        bz.function_values(line, PLACES)
    points = bz.fit(bz.find("gaussian_process_classification"), {"x": X, "y": (X > 3).astype(int)}, "map", seed=1)
    with raises(bz.InputError, "no_capability", "gaussian_process"):
        bz.function_values(points, PLACES, derivative="x")
    for draws in (-1, 2.5, True):
        with raises(bz.InputError, "wrong_type"):
            bz.function_values(best, PLACES, draws=draws)
    with raises(bz.InputError, "missing_column"):
        bz.plot_function(best, features=["z"])
    with raises(bz.InputError, "missing_column"):
        bz.function_values(best, {"z": [1.0]})
