"""Regression in a structural series: interventions and covariates, whose weights the filter integrates out."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo import models
from bayeszoo.distributions.averages.averaged import Averaged
from bayeszoo.model.outer.integration import exact_evidence, integrate
from bayeszoo.results.stored import Fit
from tests.refusals import raises

Series = bz.find("structural_series")
RNG = np.random.default_rng(5)
T, NEXT = 36, 4
PRICE, LAW = RNG.normal(2.0, 0.3, size=T + NEXT), (np.arange(T + NEXT) >= 25).astype(float)
LEVEL = 3 + 0.2 * np.cumsum(RNG.standard_normal(T + NEXT))
Y = LEVEL + np.resize([0.5, -0.2, 0.1, -0.4], T + NEXT) - 1.5 * PRICE - 0.8 * LAW + 0.1 * RNG.standard_normal(T + NEXT)
TABLE = {"t": np.arange(T), "y": Y[:T], "price": PRICE[:T], "law": LAW[:T]}
LATER = {"t": np.arange(T, T + NEXT), "law": LAW[T:], "price": PRICE[T:], "extra": np.ones(NEXT)}


def read(table=TABLE, **options):
    return bz.read(Series, table, **{"time": "t", "features": "price,law", **options})


def weak(data, **fields):
    return Series.weak_with(data, {"components": "level + season", "period": 4, **fields})


def weights(tree):
    """Return the means of the weights."""
    return np.array(bz.summarize(tree, ["w"])["w"]["mean"])


@cache
def fitted(method):
    return bz.fit(weak(read()), read(), method, seed=1)


def test_the_density_is_that_of_statsmodels_with_weights_as_states():
    """Regression coefficients that are constant states with a known first variance, and a known first state."""
    from statsmodels.tsa.statespace.structural import UnobservedComponents  # takes a second

    data = read()
    model = weak(data, center=[0, 0], scale=[1, 1], tau=[0.7, 2.0])
    peer = UnobservedComponents(
        Y[:T], "llevel", seasonal=4, stochastic_seasonal=False, exog=data["X"], mle_regression=False
    )
    first = np.zeros((6, 6))  # level, three effects of seasons, two weights
    first[0, 0], first[[4, 5], [4, 5]] = model.s0**2, np.square([0.7, 2.0])
    first[1:4, 1:4] = model.s_season**2 * (4 * np.eye(3) - 1) / 3
    peer.ssm.initialize_known(np.array([model.m0, 0, 0, 0, 0, 0]), first)
    peer.ssm.loglikelihood_burn = 0
    at = {"q": np.array([0.3, 1e-3]), "r": np.array([0.2, 0.5])}
    theirs = [peer.loglike([at["r"][p] ** 2, at["q"][p] ** 2]) for p in range(2)]
    assert model.log_marginal(at, data) == pytest.approx(theirs, rel=1e-11)
    smoothed = peer.smooth([at["r"][0] ** 2, at["q"][0] ** 2])
    weights = model.posterior_given({name: values[0] for name, values in at.items()}, data)
    assert weights["w"].mean() == pytest.approx(smoothed.smoothed_state[4:, -1], rel=1e-8)
    assert weights.covariance() == pytest.approx(smoothed.smoothed_state_cov[4:, 4:, -1], rel=1e-8)


def test_a_level_that_never_moves_with_features_is_ridge():
    """The intercept is the level."""
    data = read()
    model = weak(data, components="level", variances="noise")
    names = {"tau": model.tau, "center": model.center, "scale": model.scale, "m0": model.m0, "s0": model.s0}
    ridge = bz.find("ridge")(**names, sigma=0.3)
    rows = {name: data[name] for name in ("y", "X", "feature")}
    marginal = float(model.log_marginal({"r": 0.3}, data))
    assert marginal == pytest.approx(ridge.log_evidence(ridge.statistics(rows)), rel=1e-11)
    w = ridge.posterior(ridge.statistics(rows))["w"]
    assert model.posterior_given({"r": 0.3}, data)["w"].mean() == pytest.approx(w.mean()[1:], rel=1e-9)


def test_weights_hold_for_all_sequences():
    sequence = np.repeat([1, 2], [20, 16])
    data = read({**TABLE, "t": np.arange(T) - 20 * (sequence == 2), "sequence": sequence})
    model, at = weak(data, components="level"), {"q": 0.3, "r": 0.2}
    alike = np.repeat([True, False], [20, 16])
    X = (data["X"] - model.center) * np.array(model.weight_sds(data))
    place = np.concatenate([np.arange(20), np.arange(16)])
    own = np.where(alike[:, None] == alike, model.s0**2 + 0.09 * np.minimum(place[:, None], place), 0.0)
    C = own + X @ X.T + 0.04 * np.eye(T)
    u = np.linalg.solve(C, Y[:T] - model.m0)
    expected = -0.5 * ((Y[:T] - model.m0) @ u + np.linalg.slogdet(2 * np.pi * C)[1])
    assert float(model.log_marginal(at, data)) == pytest.approx(expected, rel=1e-11)
    with raises(bz.InputError, "new_rows_unknown"):
        bz.decode(tree := bz.fit(model, data, "map", seed=1), {name: values[:9] for name, values in TABLE.items()})
    with raises(bz.InputError, "new_rows_unknown"):  # which of the sequences they follow is not known
        bz.forecast(tree, 2, LATER)


SLOWLY = pytest.param("em", marks=pytest.mark.slow)  # thousands of steps


@pytest.mark.parametrize("method", ["exact", "map", "mle", SLOWLY])
def test_weights_are_found(method):
    """The price costs 1.5 a unit and the law .8."""
    assert fitted(method).attrs["status"] == "ok"
    assert np.abs(weights(fitted(method)) - [-1.5, -0.8]).max() < 0.6


def test_predictions_are_ratios_of_evidences():
    data = read()
    model = weak(data)
    known = integrate(model, data)
    first = read({name: values[:1] for name, values in LATER.items()}, new=True, like=data)
    law = Averaged(model.law(known.points, data, first), known.mass)
    more = {name: np.append(TABLE[name], LATER.get(name, Y[T:])[0]) for name in TABLE}
    evidence = exact_evidence(model, read(more)) - exact_evidence(model, data)
    assert law.logpdf(Y[T : T + 1])[0] == pytest.approx(evidence, abs=1e-6)


def test_rows_to_come_need_their_features():
    frame = bz.predict(fitted("exact"), LATER)
    inside = (frame["q025"] < Y[T:]) & (Y[T:] < frame["q975"])
    assert inside.sum() >= 3
    with raises(bz.InputError, "new_rows_unknown"):
        bz.predict(fitted("exact"), 2)
    with raises(bz.InputError, "new_rows_unknown"):
        bz.forecast(fitted("exact"), 2)
    with raises(bz.InputError, "missing_column"):
        bz.predict(fitted("exact"), {"price": PRICE[T:]})


def test_forecasts_with_features_of_rows_to_come_are_the_predictions(run, written, tmp_path):
    tree = fitted("exact")
    frame, rows = bz.forecast(tree, NEXT, LATER), bz.predict(tree, LATER)
    assert np.allclose(frame[["mean", "sd", "q025"]], rows[["mean", "sd", "q025"]], rtol=1e-10)
    assert np.allclose(frame[["level", "season", "features"]].sum(axis=1), frame["mean"], rtol=1e-10)
    first = bz.forecast(tree, 2, LATER)
    assert np.allclose(first["mean"], frame["mean"].iloc[:2])
    assert len(bz.plot_levels(tree, LATER, steps=3).axes) == 3
    with raises(bz.InputError, "new_rows_unknown"):
        bz.forecast(tree, NEXT + 1, LATER)
    bz.save(tree, tmp_path / "fit.nc")
    table = written("price,law\n2.0,1\n2.1,0\n", "later.csv")
    code, out, _ = run("decode", tmp_path / "fit.nc", table, "--steps", "2")
    assert code == 0
    assert "features" in out


def test_parts_of_a_row_add_up_and_features_have_their_own():
    frame, model, data = bz.decode(fitted("exact")), Fit(fitted("exact")).model, read()
    assert np.allclose(frame["level"] + frame["season"] + frame["features"], frame["signal"])
    expected = (data["X"] - model.center) @ weights(fitted("exact"))
    assert frame["features"].to_numpy() == pytest.approx(expected, abs=1e-3)
    assert [axes.get_ylabel() for axes in bz.plot_levels(fitted("exact")).axes][1:] == ["season", "features"]


def test_the_page_says_how_to_predict(tmp_path, no_pictures):
    bz.report([fitted("map")], tmp_path / "page.html")
    assert "bayeszoo predict" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("table", "options", "code"),
    [
        ({}, {"features": "y"}, "duplicate_name"),
        ({}, {"features": "cost"}, "missing_column"),
        ({"law": np.ones(T)}, {}, "no_spread"),
        ({"price": np.where(np.arange(T) == 3, np.nan, PRICE[:T])}, {"missing": "mask"}, "missing_values"),
        ({"price": ["dear", *PRICE[1:T].astype(str)]}, {}, "not_a_number"),
    ],
)
def test_what_is_no_feature_is_refused(table, options, code):
    with raises(bz.InputError, code):
        read({**TABLE, **table}, **options)


def test_rows_that_features_explain_exactly_are_refused():
    data = read({**TABLE, "y": 2 - PRICE[:T] + 3 * LAW[:T] + np.resize([1.0, -1.0, 2.0, -2.0], T)})
    with raises(bz.NumericalError, "no_spread"):
        bz.fit(weak(data), data, "exact", seed=1)


def test_an_intervention_is_measured_from_before_it():
    model = weak(read())
    assert model.center[1] == 0
    assert model.center[0] == pytest.approx(PRICE[:T].mean())
    assert model.scale[1] == 0.5


@pytest.mark.slow  # samples
def test_nuts_agrees_with_quadrature():
    exact, sampled = (bz.summarize(fitted(method)) for method in ("exact", "nuts"))
    for name in ("q", "r", "w"):
        apart = (np.array(sampled[name]["mean"]) - exact[name]["mean"]) / sampled[name]["mcse_mean"]
        assert np.abs(apart).max() < 4.5


@pytest.mark.slow  # quadrature of 192 rows with two weights takes 15 s
def test_weights_of_seat_belts_are_near_those_of_statsmodels():
    """Its maximum-likelihood estimates: -.236 of the law and -.282 of the price of petrol, in logarithms."""
    path = Path(models.__file__).parent / "data" / "seat_belts.csv"
    data = bz.read(Series, path, column="log_drivers", features="log_petrol,law")
    tree = bz.fit(Series.weak_with(data, {"components": "level + season"}), data, "exact", seed=1)
    from statsmodels.tsa.statespace.structural import UnobservedComponents  # takes a second

    peer = UnobservedComponents(data["y"], "local level", seasonal=12, stochastic_seasonal=False, exog=data["X"])
    found = peer.fit(disp=0, method="nm", maxiter=4000).params
    assert found[-2:] == pytest.approx([-0.2816, -0.2360], abs=1e-3)
    assert weights(tree) == pytest.approx(found[-2:], abs=0.02)  # a fifth and two fifths of the posterior's sds
