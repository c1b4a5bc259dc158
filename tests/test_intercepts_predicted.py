"""Rows of groups by a point estimate of random intercepts: averages over the intercepts, by SciPy's quadrature."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import bayeszoo as bz
from bayeszoo.answers.effects import effects
from bayeszoo.results.stored import Fit
from tests.refusals import raises
from tests.test_random_intercepts import COUNTS, MODEL, Logistic, Poisson, density_of_intercept, integral, read

NEW = {
    "x": [0.0, 1.0, 0.3, -1.0, 2.0, 0.1],
    "trials": [1, 1, 6, 3, 1, 2],
    "group": ["d", "z", "c", "y", "b", "z"],
    "successes": [1, 0, 4, 2, 1, 0],
}


@pytest.fixture(scope="module")
def tree():
    return bz.fit(MODEL, read(), "mle", seed=1)


def estimate(tree):
    w, sd = (np.asarray(Fit(tree).draws()[name])[0, 0] for name in ("w", "sd"))
    return w, float(sd)


def expected(tree, function):
    """Average a function of the linear predictor over the intercept of each new row's group."""
    (w, sd), values = estimate(tree), []
    for i, (x, group) in enumerate(zip(NEW["x"], NEW["group"], strict=True)):
        eta = w[0] + w[1] * x
        of = density_of_intercept(read(), group, w, sd) if group in "abcd" else stats.norm(0, sd).pdf
        mass = integral(of, sd)
        values.append(integral(lambda u, of=of, eta=eta, i=i: of(u) * function(eta + u, i), sd) / mass)
    return np.array(values)


def test_rows_of_known_and_new_groups_are_averaged_over_their_intercepts(tree):
    n, y = np.array(NEW["trials"]), np.array(NEW["successes"])
    frame = bz.predict(tree, NEW)
    np.testing.assert_allclose(frame["mean"], n * expected(tree, lambda eta, _: expit(eta)), rtol=1e-7)
    square = expected(tree, lambda eta, i: stats.binom.var(n[i], expit(eta)) + (n[i] * expit(eta)) ** 2)
    np.testing.assert_allclose(frame["sd"], np.sqrt(square - frame["mean"] ** 2), rtol=1e-6)
    score = np.log(expected(tree, lambda eta, i: stats.binom.pmf(y[i], n[i], expit(eta))))
    np.testing.assert_allclose(frame["log_score"], score, atol=1e-7)
    for name, level in (("q025", 0.025), ("median", 0.5), ("q975", 0.975)):
        at = frame[name].to_numpy()
        up_to = expected(tree, lambda eta, i, at=at: stats.binom.cdf(at[i], n[i], expit(eta)))
        below = expected(tree, lambda eta, i, at=at: stats.binom.cdf(at[i] - 1, n[i], expit(eta)))
        assert ((below < level) & (up_to >= level)).all()
    assert frame.attrs["new_groups"] == ["z", "y"]
    assert "withheld" not in frame


def test_a_weak_model_of_these_groups_predicts_others_as_its_saved_fit_does(tmp_path):
    """The model has the labels of its groups; a file has them in its data alone."""
    fitted = bz.fit(Logistic.weak(read()), read(), "map", seed=1)
    loaded = bz.load(bz.save(fitted, tmp_path / "fit.nc"))
    np.testing.assert_allclose(bz.predict(fitted, NEW)["mean"], bz.predict(loaded, NEW)["mean"], rtol=1e-12)


def test_an_intercept_is_averaged_over_and_not_plugged_in(tree):
    """The mean intercept of a group of one row gives a chance that is a third too low."""
    w, _ = estimate(tree)
    u = Fit(tree).draws()["u"][0, 0]
    plugged = expit(w[0] + w[1] * 2.0 + u[1])
    assert bz.predict(tree, NEW)["mean"][5] > 1.2 * plugged


def test_decisions_have_the_probabilities_of_predictions(tree):
    frame = bz.classify(tree, NEW)
    np.testing.assert_allclose(frame["p[1]"], expected(tree, lambda eta, _: expit(eta)), rtol=1e-7)


def test_decisions_on_a_new_group_by_draws_average_over_its_intercept(tree):
    own = drawn(tree)
    own.attrs |= {"kind": "sampled", "method": "nuts"}
    draws = Fit(own).pooled()
    frame = bz.classify(own, {"x": [0.0, 1.0], "group": ["d", "z"]})
    known, new = frame["p[1]"]
    assert known == pytest.approx(expit(draws["w"][:, 0] + draws["u"][:, 3]).mean())
    means = [
        integral(lambda u, eta=eta, sd=sd: stats.norm.pdf(u, 0, sd) * expit(eta + u), sd)
        for eta, sd in zip(draws["w"].sum(axis=1), draws["sd"], strict=True)
    ]
    error = frame["mcse[1]"].iloc[1]
    assert 0 < error < 0.05
    assert new == pytest.approx(np.mean(means), abs=4 * error)


def test_counts_of_a_new_group_have_the_moments_of_a_lognormal_mean():
    rows = {**COUNTS, "y": np.asarray(COUNTS["y"]) * (1 + 3 * (COUNTS["group"] == "a"))}
    data = bz.read(Poisson, rows)
    tree = bz.fit(Poisson(t0=0.8), data, "map", seed=1)
    (w, sd), new = estimate(tree), {"x": [0.5, -0.2], "exposure": [2.0, 1.0], "group": ["new", "d"]}
    frame = bz.predict(tree, new)
    mean = 2 * np.exp(w[0] + 0.5 * w[1] + sd**2 / 2)
    assert frame["mean"][1] == pytest.approx(mean, rel=1e-8)
    assert frame["sd"][1] == pytest.approx(np.sqrt(mean + mean**2 * np.expm1(sd**2)), rel=1e-7)
    own, (y, x, t) = COUNTS["group"] == "d", (np.asarray(rows[name]) for name in ("y", "x", "exposure"))
    means = t[own] * np.exp(w[0] + w[1] * x[own])
    of = lambda u: stats.norm.pdf(u, 0, sd) * np.prod(stats.poisson.pmf(y[own], means * np.exp(u)))  # noqa: E731
    rate = integral(lambda u: of(u) * np.exp(w[0] - 0.2 * w[1] + u), sd) / integral(of, sd)
    assert frame["mean"][2] == pytest.approx(rate, rel=1e-7)


def test_groups_that_do_not_differ_and_those_that_differ_by_very_much():
    same = {"y": [0, 1] * 6, "group": [name for name in "abcdef" for _ in range(2)]}
    tree = bz.fit(Logistic(), same, "mle", seed=1)
    np.testing.assert_allclose(bz.predict(tree, {"group": ["a", "new"]})["mean"], 0.5, atol=1e-9)
    apart = {"y": [0] * 6 + [1] * 6, "group": same["group"]}
    wide = bz.fit(Logistic(t0=40.0), apart, "map", seed=1)
    w, sd = estimate(wide)
    assert sd > 10
    data = bz.read(Logistic, apart)
    outcomes = data["y"][data["group_code"] == 0]
    of = lambda u: stats.norm.pdf(u, 0, sd) * np.prod(expit((2 * outcomes - 1) * (w[0] + u)))  # noqa: E731
    p = integral(lambda u: of(u) * expit(w[0] + u), sd, 40) / integral(of, sd, 40)
    frame = bz.predict(wide, {"group": ["a", "new"]})
    assert frame["mean"][1] == pytest.approx(p, abs=1e-6)
    assert frame["mean"][2] == pytest.approx(
        integral(lambda u: stats.norm.pdf(u, 0, sd) * expit(w[0] + u), sd), abs=1e-7
    )


def test_predictions_of_an_estimate_say_that_its_uncertainty_is_ignored(tree, run, tmp_path):
    said = "Parameter uncertainty is ignored (point estimate)."
    rows = tmp_path / "new.csv"
    rows.write_text("x,trials,group\n0,1,d\n1,1,z\n")
    bz.save(tree, tmp_path / "fit.nc")
    assert run("predict", tmp_path / "fit.nc", rows)[1].count(said) == 1
    kind = bz.find("gaussian_process")
    data = bz.example(kind)
    bz.save(bz.fit(kind.weak(data), data, "map", seed=1), tmp_path / "process.nc")
    rows.write_text("milliseconds\n20\n")
    for option in ((), ("--function",), ("--derivative", "milliseconds")):
        assert run("predict", tmp_path / "process.nc", rows, *option)[1].count(said) == 1


@pytest.mark.parametrize("method", ["mle", "draws"])
def test_effects_in_a_group_are_predictions_of_its_rows(tree, method):
    """By draws each has its own intercept; by an estimate the mean is that of SciPy's integrals, held to above."""
    own = tree if method == "mle" else drawn(tree)
    frame = effects(Fit(own), "d").loc["x"]
    at = frame.index.to_numpy()
    rows = {"x": at, "trials": np.ones(len(at), dtype=int), "group": ["d"] * len(at)}
    np.testing.assert_allclose(frame["mean"], bz.predict(own, rows)["mean"], rtol=1e-8)
    if method == "mle":
        assert frame[["q025", "q975"]].isna().all(axis=None)
        return
    draws = Fit(own).pooled()
    x = np.quantile(expit(draws["w"] @ [1, at[0]] + draws["u"][:, 3]), [0.025, 0.975])
    np.testing.assert_allclose(frame.iloc[0][["q025", "q975"]].astype(float), x)


def drawn(tree):
    """Return the estimate as if it were an approximation of a few draws about it: nothing is compiled."""
    own, rng = tree.copy(deep=True), np.random.default_rng(1)
    draws = own["posterior"].to_dataset()
    shape = {"chain": 4, "draw": 50}
    moved = {
        name: (("chain", "draw", *v.dims[2:]), v.to_numpy()[0, 0] * rng.uniform(0.8, 1.2, (4, 50, *v.shape[2:])))
        for name, v in draws.data_vars.items()
    }
    labels = {name: each for name, each in draws.coords.items() if name not in shape}
    own["posterior"] = own["posterior"].__class__(draws.__class__(moved, coords=labels))
    own.attrs |= {"kind": "approximate", "method": "laplace"}
    return own


def test_effects_are_drawn_in_a_colour_for_each_group(tree):
    figure = bz.plot_effects(tree, groups=["a", "c"])
    (axes,) = [axes for axes in figure.axes if axes.axison]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "c"]
    first, second = axes.lines
    assert (second.get_ydata() > first.get_ydata()).all()  # of group c all outcomes are successes
    assert len(bz.plot_effects(tree).axes[0].lines) == 1
    with raises(bz.InputError, "unknown_name", "'q'"):
        bz.plot_effects(tree, groups=["q"])
    plain = bz.find("logistic_regression")
    point = bz.fit(plain(), {"y": [0, 1, 1, 1], "x": [1.0, 2.0, 3.0, 4.0]}, "map", seed=1)
    with raises(bz.InputError, "no_groups"):
        bz.plot_effects(point, groups=["a"])
