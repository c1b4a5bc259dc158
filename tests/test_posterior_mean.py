"""The posterior mean plugged in, next to the mode and to the parameters integrated out: CS725, 11.2."""

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.answers.checks.leave_out import of_fit
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.fit import methods_for
from bayeszoo.results.stored import Fit
from tests.refusals import raises

LINES, COIN, NORMAL = (bz.find(name) for name in ("linear_regression", "beta_bernoulli", "normal_gamma"))


def lines(n=12):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 2))
    return X, X @ [1.0, -2.0] + 0.5 * rng.normal(size=n)


def test_integrating_keeps_the_mean_of_a_line_and_widens_it():
    data = bz.read(LINES, lines())
    model = LINES.weak(data)
    plugged, integrated = (bz.predict(bz.fit(model, data, how, seed=1), data) for how in ("mean", "exact"))
    assert plugged["mean"].to_numpy() == pytest.approx(integrated["mean"].to_numpy(), abs=1e-9)
    assert (plugged["sd"] < integrated["sd"]).all()
    assert np.ptp(plugged["sd"]) < 1e-12 < 1e-3 < np.ptp(integrated["sd"])


def test_four_rows_of_compare_and_their_scores():
    frame = bz.compare(COIN(a=1, b=1), [1, 1, 0, 1], methods=["mle", "map", "mean", "exact"], seed=1)
    assert frame["fit"].tolist() == ["mle", "map", "mean", "exact"]
    assert frame["mean"].tolist() == pytest.approx([3 / 4, 3 / 4, 4 / 6, 4 / 6])
    # one trial is linear in the parameter: plugging in the mean is the exact prediction, and the mode is infinitely bad
    left_out = (3 * np.log(3 / 5) + np.log(1 / 5)) / 4
    assert frame["loo_score"].tolist() == pytest.approx([-np.inf, -np.inf, left_out, left_out])


def test_leaving_a_row_out_refits_the_mean():
    y = np.array([1.0, 2.0, 4.0, 9.0, 2.5])
    model = NORMAL.weak(bz.read(NORMAL, y))
    tree = bz.fit(model, y, "mean", seed=1)
    by_hand = []
    for i in range(len(y)):
        rest = bz.fit(model, np.delete(y, i), "mean", seed=1)["posterior"]
        mean, precision = float(rest["mu"].squeeze()), float(rest["lam"].squeeze())
        by_hand.append(scipy.stats.norm(mean, precision**-0.5).logpdf(y[i]))
    assert of_fit(Fit(tree)).mean == pytest.approx(np.mean(by_hand), abs=1e-10)


def test_a_model_without_an_exact_mean_or_with_atoms_has_no_such_method():
    for name in ("spike_slab_regression", "gaussian_mixture", "gaussian_process"):
        assert "mean" not in methods_for(bz.find(name))
    with raises(InputError, "method_unavailable", "mean"):
        bz.fit(bz.find("gaussian_mixture"), [1.0, 2.0, 5.0], "mean")


def test_a_mean_that_is_infinite_is_refused_by_name():
    """One number, and a prior shape of a fourth: the variance has the posterior shape .75, and no mean."""
    one = bz.read(LINES, (np.array([[1.0]]), np.array([2.0])))
    with raises(NumericalError, "not_finite", "sigma2"):
        bz.fit(LINES(a0=0.25, center=(0.0,), scale=(1.0,)), one, "mean")
