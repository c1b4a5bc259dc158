"""The support vector machine's pseudo-posterior: mode by scikit-learn, draws by quadrature, what is withheld."""

import json

import numpy as np
import pytest
import scipy
import sklearn.svm

import bayeszoo as bz
from bayeszoo.tools import svm as machine
from tests.refusals import raises

ROWS = {"y": [0, 0, 1, 0, 1, 1], "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}


def overlapping(n=100, terms=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, terms))
    return X, (X @ np.ones(terms) + rng.standard_normal(n) > 0).astype(int)


def objective(X, y, weights, tau):
    margins = (2 * y - 1) * (weights[0] + X @ weights[1:])
    return weights[1:] @ weights[1:] / (2 * tau**2) + 2 * np.maximum(1 - margins, 0).sum()


@pytest.mark.parametrize("tau", [0.3, 1.0, 5.0])
def test_mode_is_the_machine_of_scikit_learn(tau, monkeypatch):
    X, y = overlapping()
    monkeypatch.setattr(machine, "_chain", lambda signed, precision, start, length, rng: rng.standard_normal((400, 4)))
    answer = bz.svm((X, y), tau, standardize=False, draws=400, seed=1)
    svc = sklearn.svm.SVC(C=2 * tau**2, kernel="linear", tol=1e-10).fit(X, y)
    expected = np.append(svc.intercept_, svc.coef_[0])
    assert answer.objective == pytest.approx(objective(X, y, answer.mode, tau), rel=1e-12)
    assert answer.objective == pytest.approx(objective(X, y, expected, tau), rel=1e-6)
    assert answer.objective <= objective(X, y, expected, tau) + 1e-9
    np.testing.assert_allclose(answer.mode, expected, atol=1e-4)
    assert answer.errors == int(np.sum(svc.predict(X) != y))
    assert answer.gap <= 1e-6


def test_the_gap_bounds_what_a_worse_point_loses():
    X, y = overlapping()
    signed = (2 * y - 1)[:, None] * np.column_stack([np.ones(len(y)), X])
    precision = np.array([0.0, 1, 1, 1])
    best, gap = machine._mode(signed, precision)
    assert gap <= 1e-6
    pull = np.clip(np.random.default_rng(0).uniform(-0.5, 2.5, len(y)), 0, 2)
    assert machine._dual(signed, precision, pull) <= machine._objective(signed, precision, best)
    of_one_class = np.where(signed[:, 0] > 0, pull, 0.0)
    assert machine._dual(signed, precision, of_one_class) == 0  # no weights meet the conditions but none at all


def by_quadrature(tau):
    """Return mean and sd of intercept and slope under the pseudo-posterior of the six rows."""
    slope, intercept = np.meshgrid(np.linspace(-2, 6, 801), np.linspace(-30, 15, 1801), indexing="ij")
    x, side = np.array(ROWS["x"]), 2 * np.array(ROWS["y"]) - 1
    loss = sum(2 * np.maximum(1 - s * (intercept + slope * at), 0) for at, s in zip(x, side, strict=True))
    mass = np.exp(-loss - slope**2 / (2 * tau**2))
    mass /= mass.sum()
    means = np.array([(mass * intercept).sum(), (mass * slope).sum()])
    squares = np.array([(mass * intercept**2).sum(), (mass * slope**2).sum()])
    return means, np.sqrt(squares - means**2)


def off(answer):
    means, sds = by_quadrature(1.0)
    summary = answer.summary
    of_means = (summary["mean"].to_numpy() - means) / summary["mcse_mean"].to_numpy()
    of_sds = (summary["sd"].to_numpy() - sds) / summary["mcse_sd"].to_numpy()
    return np.max(np.abs([of_means, of_sds]))


@pytest.mark.slow
def test_draws_have_the_moments_by_quadrature(monkeypatch):
    asked = {"standardize": False, "draws": 2000, "thin": 5, "seed": 1, "target": "y"}
    assert off(bz.svm(ROWS, 1.0, **asked)) < 4.5
    right = machine.inverse_gaussian
    monkeypatch.setattr(machine, "inverse_gaussian", lambda m, rng: 1.3 * right(m, rng))
    assert off(bz.svm(ROWS, 1.0, **asked)) > 4.5


def test_inverse_gaussian_numbers_have_their_distribution_and_none_overflows():
    rng = np.random.default_rng(1)
    for mean in (0.2, 3.0, 1e3):
        draws = machine.inverse_gaussian(np.full(4000, 1 / mean), rng)
        assert scipy.stats.kstest(draws, scipy.stats.invgauss(mean).cdf).pvalue > 1e-3
    assert (
        scipy.stats.kstest(machine.inverse_gaussian(np.full(4000, 0.5), rng), scipy.stats.invgauss(3).cdf).pvalue < 1e-3
    )
    levy = machine.inverse_gaussian(np.zeros(4000), rng)  # the limit of an infinite mean
    assert np.isfinite(levy).all()
    assert scipy.stats.kstest(levy, scipy.stats.levy.cdf).pvalue > 1e-3


def test_standardized_features_move_along_with_their_units():
    X, y = overlapping(60, 2)
    asked = {"draws": 400, "thin": 5, "seed": 1}
    there = bz.svm((X, y), 0.5, **asked)
    far = bz.svm((1e3 * X + 7, y), 0.5, **asked)
    np.testing.assert_allclose(far.mode[1:], there.mode[1:] / 1e3, rtol=1e-6)
    assert far.objective == pytest.approx(there.objective, rel=1e-9)


def test_bad_input_is_refused_in_one_line():
    with raises(bz.InputError, "one_class"):
        bz.svm({"y": [1, 1, 1], "x": [1.0, 2.0, 3.0]}, target="y")
    with raises(bz.InputError, "wrong_columns"):
        bz.svm({"successes": [1, 2], "trials": [3, 3], "x": [1.0, 2.0]})
    with raises(bz.InputError, "out_of_range", "tau", "0"):
        bz.svm(ROWS, 0.0, target="y")
    with raises(bz.InputError, "out_of_range", "400"):
        bz.svm(ROWS, draws=10, target="y")


def test_chains_that_do_not_agree_are_no_answer():
    with raises(bz.Untrustworthy, "not_converged"):
        bz.svm(overlapping(1000, 6), 3.0, draws=400, thin=1, seed=1)


def test_the_command_prints_that_it_is_no_posterior(run, written):
    path = written("y,x\n" + "".join(f"{y},{x}\n" for y, x in zip(*ROWS.values(), strict=True)))
    code, out, _ = run("svm", path, "--target", "y", "--tau", "1", "--seed", "1", "--draws", "400", "--thin", "5")
    assert code == 0
    assert "pseudo-posterior" in out
    assert "log evidence is withheld" in out
    code, out, _ = run(
        "svm", path, "--target", "y", "--tau", "1", "--seed", "1", "--draws", "400", "--thin", "5", "--json"
    )
    known = json.loads(out)
    assert known["kind"] == "pseudo-posterior"
    assert "log_evidence" not in out
