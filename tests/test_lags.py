"""Lags of the outcome as features: against hand-made columns, statsmodels' AutoReg, and dense Gaussian forecasts."""

import json

import numpy as np
import pytest
import scipy
import statsmodels.api as sm
from statsmodels.tsa.ar_model import AutoReg

import bayeszoo as bz
from bayeszoo.answers.series.lags import companion
from bayeszoo.data.inputs.sequences.lags import of_data
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.report.families.levels import next_of_lags
from bayeszoo.results.stored import Fit
from tests.refusals import raises

MODEL = bz.find("linear_regression")
ALL = sm.datasets.sunspots.load_pandas().data
SUNSPOTS = ALL[(ALL["YEAR"] >= 1749) & (ALL["YEAR"] <= 1924)].astype({"YEAR": int})
TABLE = {"year": SUNSPOTS["YEAR"].to_numpy(), "y": SUNSPOTS["SUNACTIVITY"].to_numpy()}
LYNX = [
    269, 321, 585, 871, 1475, 2821, 3928, 5943, 4950, 2577, 523, 98, 184, 279, 409, 2285, 2685, 3409, 1824, 409, 151,
    45, 68, 213, 546, 1033, 2129, 2536, 957, 361, 377, 225, 360, 731, 1638, 2725, 2871, 2119, 684, 299, 236, 245, 552,
    1623, 3311, 6721, 4254, 687, 255, 473, 358, 784, 1594, 1676, 2251, 1426, 756, 299, 201, 229, 469, 736, 2042, 2811,
    4431, 2511, 389, 73, 39, 49, 59, 188, 377, 1292, 4031, 3495, 587, 105, 153, 387, 758, 1307, 3465, 6991, 6313,
    3794, 1836, 345, 382, 808, 1388, 2713, 3800, 3091, 2985, 3790, 674, 81, 80, 108, 229, 399, 1132, 2432, 3574, 2935,
    1537, 529, 485, 662, 1000, 1590, 2657, 3396,
]  # fmt: skip
"""Lynx trapped in the Mackenzie River district of Canada a year, 1821-1934 (Elton and Nicholson 1942)."""


def by_hand(y, order):
    """Return outcomes and columns of lags."""
    columns = {f"lag {k}": y[order - k : -k] for k in range(1, order + 1)}
    return {"y": y[order:], **columns}


@pytest.fixture(scope="module")
def fit():
    data = bz.read(MODEL, TABLE, lags=2)
    return bz.fit(MODEL.weak(data), data, "exact", seed=1)


def test_lags_are_columns_made_by_hand():
    data, own = bz.read(MODEL, TABLE, lags=3), bz.read(MODEL, by_hand(TABLE["y"], 3))
    model = MODEL.weak(own)
    assert data == own
    evidence = model.log_evidence(model.statistics(own))
    assert np.isclose(model.log_evidence(model.statistics(data)), evidence, rtol=1e-12)
    assert data.numbers.tolist() == list(range(4, 177))


def test_least_squares_are_statsmodels_and_published():
    for y, published in ((TABLE["y"], (1.336, -0.650)), (np.log10(LYNX), (1.0576, 1.3842, -0.7478))):
        model, data = MODEL(center=0.0), bz.read(MODEL, {"y": y}, lags=2)
        w, peer = model.mle(model.statistics(data))["w"], AutoReg(y, 2).fit()
        assert np.allclose(w, peer.params, rtol=1e-8)
        assert np.allclose(w[-len(published) :], published, atol=6e-4)


def test_sequences_are_never_glued():
    y = np.array([1.0, 2, 4, 3, 10, 12, 15, 11])
    data = bz.read(MODEL, {"y": y, "sequence": [*"aaaabbbb"]}, lags=2)
    assert data["y"].tolist() == [4, 3, 15, 11]
    assert data["X"].tolist() == [[2, 1], [4, 2], [12, 10], [15, 12]]
    assert data.numbers.tolist() == [3, 4, 7, 8]
    assert [(end.name, end.last) for end in of_data(data).ends] == [("a", [3, 4]), ("b", [11, 15])]


def test_rows_next_to_a_gap_are_left_out_and_no_neighbours_joined():
    rows = {"y": [1.0, 2.0, np.nan, 3.0, 5.0, 4.0], "x": [0.0, 1, 0, 1, 0, 1]}
    with raises(InputError, "missing_values", "row 3"):
        bz.read(MODEL, rows, lags=1)
    data = bz.read(MODEL, rows, lags=1, features=["x"], missing="drop")
    assert data["y"].tolist() == [2, 5, 4]
    assert data["X"].tolist() == [[1, 1], [3, 0], [5, 1]]
    assert data.numbers.tolist() == [2, 5, 6]


@pytest.mark.parametrize(
    ("table", "options", "code"),
    [
        ({"y": [1.0, 2.0]}, {"lags": 2}, "too_few_rows"),
        ({"y": [1.0, 2.0]}, {"lags": 0}, "wrong_type"),
        ({"y": [1.0, 2.0]}, {"lags": "1-2"}, "wrong_type"),
        ({"y": [1.0, 2, 3], "t": [1, 3, 2]}, {"lags": 1, "time": "t"}, "unsorted_times"),
        ({"y": [1.0, 2, 3], "t": [1, 1, 2]}, {"lags": 1, "time": "t"}, "repeated_times"),
        ({"y": [1.0, 2, 3], "t": [1, 2, 4]}, {"lags": 1, "time": "t"}, "uneven_times"),
        ({"y": [1.0, 2, 3], "x": [1, 2, 4]}, {"time": "x"}, "option_needs_data"),
        ({"y": [1.0, 2, 3], "s": [1, 2, 1]}, {"lags": 1, "sequence": "s"}, "split_sequence"),
        ({"y": [1.0, 2, 3], "lag 1": [1, 2, 4]}, {"lags": 1, "features": ["lag 1"]}, "duplicate_name"),
        ({"y": [1.0, 2, 3], "x": [1, 2, 4]}, {"lags": 1, "formula": "y ~ x"}, "conflicting_options"),
        ({"y": [1.0, 2, np.nan, 3, np.nan]}, {"lags": 1, "missing": "drop"}, None),
        ({"y": [1.0, np.nan, 3]}, {"lags": 1, "missing": "drop"}, "no_data"),
    ],
)
def test_tables_without_such_lags_are_refused(table, options, code):
    if code is None:
        assert bz.read(MODEL, table, **options).rows == 1
        return
    with raises(InputError, code):
        bz.read(MODEL, table, **options)


def test_groups_and_chunks_have_no_lags(tmp_path):
    with raises(InputError, "conflicting_options"):
        bz.fit_by(MODEL, {"y": [1.0, 2, 3, 4], "g": [*"aabb"]}, by="g", reading={"lags": 1})
    (tmp_path / "rows.csv").write_text("y\n1\n2\n3\n4\n")
    with raises(InputError, "needs_rows"):
        list(bz.read_chunks(MODEL(), tmp_path / "rows.csv", 2, lags=1))


def test_orders_are_compared_on_common_rows():
    data = bz.read(MODEL, TABLE, lags=4)
    model = MODEL.weak(data)
    candidates = bz.orders(model, data, range(5))
    frame = bz.select(candidates, data, loo=False, seed=1).set_index("model")
    assert frame["log_evidence"].idxmax() == "2 lags"
    y = TABLE["y"]
    two = bz.read(MODEL, {name: values[2:] for name, values in by_hand(y, 2).items()})
    own = MODEL(**{**vars_of(model), "center": model.center[:2], "scale": model.scale[:2]})
    assert np.isclose(frame.loc["2 lags", "log_evidence"], own.log_evidence(own.statistics(two)), rtol=1e-12)
    with raises(InputError, "no_lags"):
        bz.orders(model, two, [1])
    with raises(InputError, "out_of_range"):
        bz.orders(model, data, [5])


def vars_of(model):
    return {"m0": model.m0, "w0": model.w0, "V0": model.V0, "a0": model.a0, "b0": model.b0}


def test_fits_of_different_orders_are_not_comparable(fit):
    data = bz.read(MODEL, TABLE, lags=1)
    other = bz.fit(MODEL.weak(data), data, "exact", seed=1)
    with raises(InputError, "not_comparable"):
        bz.select({"one": other, "two": fit})


def dense_forecast(y, phi, constant, sd, steps):
    """Return mean and sd of rows to come by their joint Gaussian given the last rows, through its precision."""
    K = len(phi)
    A = np.eye(steps)
    b = np.full(steps, constant)
    for t in range(steps):
        for k in range(1, K + 1):
            if t - k >= 0:
                A[t, t - k] = -phi[k - 1]
            else:
                b[t] += phi[k - 1] * y[t - k]
    covariance = sd**2 * np.linalg.inv(A.T @ A)
    return np.linalg.solve(A, b), np.sqrt(np.diag(covariance))


def test_forecasts_at_an_estimate_are_dense_ones_and_statsmodels():
    data = bz.read(MODEL, TABLE, lags=3)
    tree = bz.fit(MODEL.weak(data), data, "mle", seed=1)
    frame = bz.forecast(tree, 8)
    peer = AutoReg(TABLE["y"], 3).fit()
    ahead = peer.get_prediction(len(TABLE["y"]), len(TABLE["y"]) + 7)
    assert np.allclose(frame["mean"], ahead.predicted_mean, rtol=1e-6)
    mean, sd = dense_forecast(TABLE["y"], peer.params[1:], peer.params[0], np.sqrt(peer.sigma2), 8)
    assert np.allclose(frame["mean"], mean, rtol=1e-6)
    assert np.allclose(frame["sd"], sd, rtol=1e-6)
    assert frame.attrs["stationary"] == float(np.all(np.abs(peer.roots) > 1))


def test_one_step_ahead_is_the_exact_prediction(fit):
    frame = bz.predict(fit, 2)
    stats, model = Fit(fit).stats, Fit(fit).model
    rows = {"X": TABLE["y"][[-1, -2]][None], "feature": np.array(["lag 1", "lag 2"])}
    law, first = model.predictive(stats, rows), frame.iloc[0]
    assert abs(first["mean"] - law.mean()[0]) < 4 * first["mcse_mean"]
    assert abs(first["sd"] - law.std()[0]) < 4 * first["mcse_sd"]
    assert frame["year"].tolist() == ["1925", "1926"]


def test_paths_have_the_distribution_of_forecasts(fit):
    frame = bz.forecast(fit, 3, paths=4000, seed=1)
    paths = frame.filter(like="path[").to_numpy()
    assert np.allclose(paths.mean(axis=1), frame["mean"], atol=4.5 * frame["sd"] / np.sqrt(4000))
    assert np.allclose(paths.std(axis=1), frame["sd"], rtol=0.06)
    below = np.mean(paths <= frame[["q025"]].to_numpy(), axis=1)
    assert np.allclose(below, 0.025, atol=0.01)


def test_moments_of_distant_rows_that_do_not_exist_are_withheld():
    data = bz.read(MODEL, {"y": TABLE["y"][:12]}, lags=1)  # 11 rows, 12 degrees of freedom
    tree = bz.fit(MODEL.weak(data), data, "exact", seed=1)
    frame = bz.forecast(tree, 13)
    assert frame["sd"].iloc[5:].isna().all()
    assert frame["mean"].iloc[11:].isna().all()
    assert frame[["q025", "median", "q975"]].notna().all(axis=None)


def test_whether_the_process_is_stationary_of_one_lag_is_a_student_t():
    y = np.cumsum(np.random.default_rng(3).normal(size=60))
    data = bz.read(MODEL, {"y": y}, lags=1)
    model = MODEL.weak(data)
    tree = bz.fit(model, data, "exact", seed=1)
    known = bz.forecast(tree, 1).attrs
    posterior = model.posterior(model.statistics(data))["w"]
    exact = np.diff(posterior.cdf(np.array([[0.0, -1.0], [0.0, 1.0]]))[:, 1])[0]
    assert 0.01 < exact < 0.999
    assert abs(known["stationary"] - exact) < 4 * known["mcse_stationary"]


def test_roots_of_a_companion_are_those_of_the_characteristic_polynomial():
    phi = np.array([0.5, -0.3, 0.2])
    own = np.sort_complex(np.linalg.eigvals(companion(phi)))
    assert np.allclose(own, np.sort_complex(np.roots([1, *-phi])))


def test_new_rows_are_a_series_of_their_own(fit):
    new = {"y": [10.0, 12.0, 20.0, 30.0]}
    frame = bz.predict(fit, new)
    assert frame.index.tolist() == [3, 4]
    assert frame["observed"].tolist() == [20, 30]
    stored = Fit(fit)
    rows = {"X": np.array([[12.0, 10.0], [20.0, 12.0]]), "feature": np.array(["lag 1", "lag 2"])}
    law = stored.model.predictive(stored.stats, rows)
    assert np.allclose(frame["log_score"], law.logpdf(np.array([20.0, 30.0])), rtol=1e-12)
    with raises(InputError, "new_rows_unknown"):
        bz.predict(fit, {"x": [1.0]})
    with raises(InputError, "labels_differ"):
        bz.predict(fit, new, lags=3)
    with raises(InputError, "new_rows_unknown"):
        bz.forecast(fit, 2, new)


def test_forecasts_that_cannot_be_made_are_refused(fit, tmp_path):
    rows = {"y": TABLE["y"], "x": np.arange(len(TABLE["y"])) % 5}
    data = bz.read(MODEL, rows, lags=1, features=["x"])
    with raises(InputError, "new_rows_unknown"):
        bz.predict(bz.fit(MODEL.weak(data), data, "mle"), 2)
    data = bz.read(MODEL, {"y": [*TABLE["y"], np.nan]}, lags=1, missing="drop")
    with raises(InputError, "missing_values"):
        bz.predict(bz.fit(MODEL.weak(data), data, "mle"), 2)
    data = bz.read(MODEL, TABLE, lags=1)
    with raises(InputError, "not_linear"):
        bz.predict(bz.fit(MODEL.weak(data).replaced(degree=2), data, "mle"), 2)
    robust = bz.find("support_vector_regression")
    with raises(InputError, "not_linear"):
        bz.predict(bz.fit(robust.weak(data), data, "map", seed=1), 2)
    forged = fit.copy()
    reading = json.loads(forged.attrs["reading"])
    reading["lags"]["ends"][0]["last"] = [1.0]
    forged.attrs["reading"] = json.dumps(reading)
    with raises(InputError, "not_writable"):
        bz.predict(forged, 2)


def test_a_saved_fit_goes_on_as_before(fit, tmp_path):
    bz.save(fit, tmp_path / "fit.nc")
    again = bz.forecast(bz.load(tmp_path / "fit.nc"), 4)
    assert again.equals(bz.forecast(fit, 4))


def test_sequences_share_weights_and_go_on_by_themselves():
    rows = {"y": [1.0, 2, 4, 3, 5, 4, 10, 12, 15, 11, 13, 12], "sequence": [*"aaaaaabbbbbb"]}
    data = bz.read(MODEL, rows, lags=1)
    tree = bz.fit(MODEL.weak(data), data, "mle")
    frame = bz.forecast(tree, 2)
    w = scipy.linalg.lstsq(np.column_stack([np.ones(10), data["X"]]), data["y"])[0]
    assert frame["sequence"].tolist() == ["a", "a", "b", "b"]
    assert np.allclose(frame["mean"].iloc[[0, 2]], w[0] + w[1] * np.array([4.0, 12.0]))


def test_a_process_that_explodes_is_refused_far_ahead():
    y = [1.2**k + 0.1 * (k % 3) for k in range(20)]
    data = bz.read(MODEL, {"y": y}, lags=1)
    tree = bz.fit(MODEL.weak(data), data, "mle")
    assert bz.forecast(tree, 3).attrs["stationary"] == 0
    with raises(NumericalError, "too_large"):
        bz.forecast(tree, 5000)


def test_the_page_begins_with_what_comes_next(fit):
    words, rows = next_of_lags(Fit(fit))
    assert f"{bz.forecast(fit, 1)['mean'].iloc[0]:.4g}" in words.text
    assert "all of 4,000 draws" in words.text  # which is no probability of 1
    assert len(rows.rows) == 3
