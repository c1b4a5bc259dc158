"""Expectation-maximization: climbs, restarts, what is refused, against optimizers that somebody else wrote."""

from dataclasses import replace

import numpy as np
import pytest
import scipy
import sklearn.mixture

import bayeszoo as bz
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.progress import Reporter
from bayeszoo.inference.engine import ascent
from bayeszoo.inference.methods import em
from bayeszoo.model.capabilities import Expectation
from bayeszoo.results.stored import Fit

GAUSSIAN, UNIGRAMS = bz.find("gaussian_mixture"), bz.find("multinomial_mixture")
FAITHFUL = bz.example(GAUSSIAN)


def climbs(model, data, flat=False, restarts=20):
    return em.climbs(model, data, np.random.default_rng(0), flat, restarts)


def sklearn_mle(Y, start, covariance):
    """scikit-learn's EM from the same start, unregularized, until a step gains less than 1e-13 a row: 100 roundings."""
    precisions = (np.linalg.inv if covariance in ("full", "tied") else np.reciprocal)(start["covariances"])
    begin = {"weights_init": start["weights"], "means_init": start["means"], "precisions_init": precisions}
    options = {"covariance_type": covariance, "reg_covar": 0.0, "tol": 1e-13, "max_iter": 5000}
    return sklearn.mixture.GaussianMixture(len(start["weights"]), **options, **begin).fit(Y)


@pytest.mark.parametrize(
    ("covariance", "theirs"), [("full", "full"), ("tied", "tied"), ("diagonal", "diag"), ("spherical", "spherical")]
)
@pytest.mark.parametrize(("name", "K"), [("faithful", 2), ("iris", 3)])
def test_mle_is_that_of_scikit_learn_from_the_same_start(name, K, covariance, theirs):
    data = bz.example(GAUSSIAN, name)
    model = GAUSSIAN.weak_given(data, {"K": K, "covariance": covariance})
    start = model.start(data, np.random.default_rng(3))

    def evaluate(params):
        expectation = model.e_step(params, data)
        return expectation.value, expectation

    found = ascent.climb(start, evaluate, lambda stats: model.m_step(stats, True))
    expected = sklearn_mle(data["Y"], start, theirs)
    assert found.objective == pytest.approx(expected.score(data["Y"]) * len(data["Y"]), rel=1e-9)
    assert np.sort(found.state["weights"]) == pytest.approx(np.sort(expected.weights_), abs=1e-5)


def test_best_of_restarts_on_old_faithful_is_the_known_maximum():
    found = climbs(GAUSSIAN.weak_given(FAITHFUL, {"K": 2}), FAITHFUL, flat=True)
    assert found.best.objective == pytest.approx(-1130.264, abs=1e-3)
    assert found.reached == 20


def test_two_rows_that_are_almost_one_make_a_higher_maximum_that_is_not_the_answer():
    rows = np.concatenate([np.random.default_rng(0).normal(size=30), [0.5, 0.5 + 1e-9]])
    data = bz.read(GAUSSIAN, {"Y": rows[:, None], "column": ["y"]})
    model = GAUSSIAN.weak_given(data, {"K": 2})
    spike = {"weights": np.array([0.9, 0.1]), "means": np.array([[0.0], [0.5]])}
    spike["covariances"] = np.array([[[1.0]], [[1e-16]]])
    assert model.e_step(spike, data).value > climbs(model, data, flat=True).best.objective
    assert "collapsed" in model.degenerate(spike, data)


def test_all_climbs_degenerate_is_an_error_that_says_so():
    data = bz.read(GAUSSIAN, {"Y": [[0.0], [0.0], [1.0], [1.0]], "column": ["y"]})
    with pytest.raises(NumericalError, match=r"none of \d+ starts led to a maximum"):
        bz.fit(GAUSSIAN.weak_given(data, {"K": 2}), data, "mle", seed=1)


def test_map_exists_where_the_mle_is_degenerate():
    data = bz.read(GAUSSIAN, {"Y": [[0.0], [0.0], [1.0], [1.0]], "column": ["y"]})
    tree = bz.fit(GAUSSIAN(K=2, m0=0.5, kappa0=0.1), data, "map", seed=1)
    assert tree.attrs["status"] == "ok"
    assert np.sort(tree["posterior"]["means"].to_numpy().ravel()) == pytest.approx([0.0, 1.0], abs=0.1)


def test_map_is_the_maximum_of_scipy_densities_by_nelder_mead():
    data = bz.read(UNIGRAMS, {"counts": [[3, 1, 0], [4, 0, 1], [0, 2, 5], [1, 1, 6]], "word": list("abc")})
    model = UNIGRAMS(K=2, alpha=2.0, eta=1.5)

    def negative(x):
        weights = scipy.special.softmax([0.0, x[0]])
        topics = scipy.special.softmax(np.insert(x[1:].reshape(2, 2), 0, 0.0, axis=1), axis=1)
        prior = scipy.stats.dirichlet.logpdf(weights, [2.0, 2.0])
        prior += sum(scipy.stats.dirichlet.logpdf(topic, [1.5] * 3) for topic in topics)
        each = [
            [np.log(w) + np.sum(c * np.log(t)) for w, t in zip(weights, topics, strict=True)] for c in data["counts"]
        ]
        return -prior - np.sum(scipy.special.logsumexp(each, axis=1))

    options = {"xatol": 1e-10, "fatol": 1e-13, "maxiter": 20_000, "maxfev": 20_000}
    starts = np.random.default_rng(0).normal(size=(6, 5))
    highest = -min(scipy.optimize.minimize(negative, x, method="Nelder-Mead", options=options).fun for x in starts)
    assert climbs(model, data).best.objective == pytest.approx(highest, abs=1e-9)


def test_posterior_without_a_maximum_is_refused():
    for field in ("alpha", "eta"):
        with pytest.raises(NumericalError, match=f"no maximum: {field} < 1"):
            bz.fit(UNIGRAMS(**{field: 0.5}), bz.example(UNIGRAMS), "map", seed=1)


def test_a_fit_has_its_trace_its_restarts_and_components_numbered_by_weight():
    tree = bz.fit(GAUSSIAN.weak(FAITHFUL), FAITHFUL, "em", seed=1, estimate="mle", restarts=7)
    trace = tree["optimization"]["objective"].to_numpy()
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[1:])).all()
    assert trace[-1] == pytest.approx(Fit(tree).facts["log_likelihood"])
    assert Fit(tree).facts["restarts"] == Fit(tree).facts["reached_the_best"] == 7
    weights, raw = (tree[group]["weights"].to_numpy()[0, 0] for group in ("posterior", "unaligned"))
    assert weights[0] > weights[1]
    assert np.array_equal(raw[tree["labels"]["permutation"].to_numpy()[0, 0]], weights)


@pytest.mark.parametrize(
    ("options", "message"), [({"estimate": "mode"}, "no estimate 'mode'"), ({"restarts": 0}, "restarts must be")]
)
def test_options_are_checked(options, message):
    with pytest.raises(InputError, match=message):
        bz.fit(GAUSSIAN.weak(FAITHFUL), FAITHFUL, "em", seed=1, **options)


# A wrong step must be seen


class DividesByLess(GAUSSIAN):
    """The M-step divides scatters by one row too few."""

    name = "gaussian_mixture"

    def m_step(self, stats, flat=False):
        found = super().m_step(stats, flat)
        return {**found, "covariances": found["covariances"] * 1.05}


class ForgetsToNormalize(GAUSSIAN):
    """The responsibilities are not normalized."""

    name = "gaussian_mixture"

    def e_step(self, params, data):
        terms = self.log_terms(params, data)
        each = np.exp(terms - terms.max())
        return Expectation(self.moments(each, data), float(np.logaddexp.reduce(terms, axis=1).sum()))


@pytest.mark.parametrize("bug", [DividesByLess, ForgetsToNormalize])
def test_a_wrong_step_makes_the_objective_fall(bug):
    model = bug(**{f: getattr(GAUSSIAN.weak(FAITHFUL), f) for f in ("K", "m0", "kappa0", "nu0", "Psi0")})
    with pytest.raises(ascent.AscentError, match="the objective fell"):
        climbs(model, FAITHFUL, flat=True)


# The engine by itself


def scalar(value, rate):
    """A climb to 1 whose distance shrinks by `rate` a step; the state is the distance."""
    return lambda x: (value - x, Expectation(x, 0.0)), lambda x: rate * x


@pytest.mark.parametrize("rate", [0.1, 0.9, 0.99])
def test_slow_climbs_do_not_stop_early(rate):
    found = ascent.climb(1.0, *scalar(5.0, rate))
    assert found.is_sound
    assert found.objective == pytest.approx(5.0, abs=1e-11)


def test_a_climb_cut_short_is_not_sound(monkeypatch):
    monkeypatch.setattr(ascent, "MAX_STEPS", 50)
    assert not ascent.climb(1.0, *scalar(5.0, 0.99)).is_sound


def level(begin, restarts, suspect=lambda state: ""):
    """Search where the height is the start, and no step moves."""
    evaluate, rng = lambda x: (x, Expectation(x, 0.0)), np.random.default_rng(0)
    return ascent.search(begin, evaluate, lambda x: x, rng, Reporter(), suspect, restarts)


def test_more_restarts_are_made_until_two_reach_the_best():
    heights = iter([1.0, 2.0, 3.0, 4.0, 4.0, 5.0])
    found = level(lambda rng: next(heights), 3)
    assert (found.best.objective, found.reached, found.facts["restarts"]) == (4.0, 2, 5)


def test_degenerate_maxima_are_reported_and_though_higher_not_the_answer():
    heights = iter([1.0, 9.0, 2.0, 2.0])
    found = level(lambda rng: next(heights), 4, lambda height: "collapsed" if height == 9 else "")
    assert [climb.objective for climb in found.sound] == [2.0, 2.0, 1.0]
    degenerate = {"degenerate": 1, "highest_degenerate": 9.0, "degenerate_because": "collapsed"}
    assert degenerate.items() <= found.facts.items()


def test_a_best_that_one_climb_reached_does_not_pass():
    assert [check.passed for check in level(lambda rng: rng.random(), 3).checks] == [True, False]


def test_infinite_objective_is_an_error():
    with pytest.raises(NumericalError, match="not finite"):
        ascent.climb(1.0, lambda x: (np.inf, Expectation(x, 0.0)), lambda x: x)


def test_restarts_that_collapse_are_counted():
    def begin(rng):
        if rng.random() < 0.5:
            raise NumericalError("empty")
        return 1.0

    found = level(begin, 20)
    assert 0 < found.collapsed < 20
    assert found.facts["degenerate"] == found.collapsed


def test_more_components_than_rows_are_refused():
    with pytest.raises(InputError, match="K=5 components but only 3 rows"):
        bz.fit(GAUSSIAN(K=5), {"Y": [[0.0], [1.0], [2.0]], "column": ["y"]}, "map", seed=1)


@pytest.mark.parametrize(
    ("K", "message"), [(0, "must be at least 1"), (1.5, "must be a whole number"), (True, "whole")]
)
def test_number_of_components_is_checked(K, message):
    with pytest.raises(InputError, match=message):
        replace(GAUSSIAN(), K=K)
