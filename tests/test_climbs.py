"""Climbs to a maximum of the likelihood: quasi-Newton steps, and which climbs are given up."""

import itertools

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.inference.engine import ascent, maxima
from bayeszoo.inference.engine.acceleration import QuasiNewton
from bayeszoo.inference.engine.ascent import Effort
from bayeszoo.model.capabilities.steps import Chart, Expectation

GAUSSIAN = bz.find("gaussian_mixture")


def on_a_ridge(turn=1.0):
    """Return a climber of -(x - top)' A (x - top) / 2, a long ridge, whose slopes a seeded bug may turn; and the top.

    Its plain steps are a hundredth of the slope.
    """
    rng = np.random.default_rng(1)
    basis, top = np.linalg.qr(rng.standard_normal((5, 5)))[0], rng.standard_normal(5)
    curvature = basis @ np.diag([100.0, 30.0, 3.0, 0.1, 0.01]) @ basis.T

    def evaluate(x):
        slope = curvature @ (top - x)
        return -(top - x) @ slope / 2, Expectation((x, slope), 0.0)

    def chart_at(x, stats):
        return Chart(5, lambda u: x + u, lambda u, at, stats: turn * stats[1])

    return QuasiNewton(evaluate, lambda stats: stats[0] + 0.01 * stats[1], chart_at), top


def test_quasi_newton_steps_reach_the_top_of_a_ridge():
    climber, top = on_a_ridge()
    end = ascent.climb(np.zeros(5), climber.evaluated, climber.longer_step)
    np.testing.assert_allclose(end.state, top, atol=1e-6)
    assert len(end.trace) < 40  # plain steps take a ten thousandth of what is left along the ridge


def test_where_slopes_are_wrong_plain_steps_are_taken_which_never_fall():
    climber, _ = on_a_ridge(turn=-1.0)
    end = ascent.climb(np.zeros(5), climber.evaluated, climber.longer_step, Effort(steps=50))
    plain, x = [], np.zeros(5)
    for _ in end.trace:
        plain.append(climber._evaluate(x)[0])
        x = climber._update(climber._evaluate(x)[1].stats)
    np.testing.assert_allclose(end.trace, plain)


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("covariance", ["full", "tied", "diagonal", "spherical"])
def test_the_chart_s_slope_is_that_of_the_objective_by_differences(covariance, flat):
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)) + 2 * (np.arange(60) < 30)[:, None]
    data = {"Y": Y, "column": np.array(list("abc"))}
    model = GAUSSIAN.weak_with(data, {"K": 3, "covariance": covariance, "alpha": 2.0})

    def objective(params):
        expectation = model.e_step(params, data)
        return expectation.value + (0.0 if flat else float(model.log_prior(params, data))), expectation.stats

    params = model.start(data, rng)
    chart = model.chart(params, objective(params)[1], flat)
    for name, values in chart.params(np.zeros(chart.size)).items():
        np.testing.assert_allclose(values, params[name], rtol=1e-12)
    x = 0.3 * rng.standard_normal(chart.size)
    there, steps = chart.params(x), 1e-5 * np.eye(chart.size)
    heights = np.array([[objective(chart.params(x + sign * step))[0] for step in steps] for sign in (1, -1)])
    slope = chart.slope(x, there, objective(there)[1])
    np.testing.assert_allclose(slope, (heights[0] - heights[1]) / 2e-5, atol=1e-6 * np.abs(slope).max())


def search_of_a_late_climb():
    """Search where one climb in eight goes at once to 0, and the others from -50 by a nat a step to 30, where they end.

    All lose a third of their distance to the top at each step once they are within 3 nats.
    """
    tops = itertools.cycle([0.0, *[30.0] * 7])

    def begin(rng):
        top = next(tops)
        return top, -2.0 if top == 0 else -50.0

    def step(state):
        top, height = state
        return top, height + min(1.0, (top - height) / 3)

    def evaluate(state):
        return state[1], Expectation(state, 0.0)

    rng = np.random.default_rng(0)
    return ascent.search(ascent.Ascent(begin, (evaluate, step)), rng, Reporter(), effort=Effort(gives_up=True))


def test_a_climb_far_below_the_best_goes_on_while_it_gains(monkeypatch):
    assert search_of_a_late_climb().best.objective == pytest.approx(30.0)
    monkeypatch.setattr(ascent, "PATIENCE", 5)  # a seeded bug: it is given up, and the best maximum with it
    assert search_of_a_late_climb().best.objective == pytest.approx(0.0, abs=1e-6)


def test_what_is_not_a_number_in_both_does_not_tell_two_maxima_apart():
    one, other = (maxima.Climb(q, -10.0, Expectation(None, -10.0), np.array([-11.0, -10.0]), 0.0) for q in (0.0, 1.0))
    rows = {0.0: np.array([1.0, np.nan, -np.inf]), 1.0: np.array([1.0, np.nan, -np.inf])}
    assert len(maxima.Search([one, other], 0, rows.get).distinct) == 1
    rows[1.0] = np.array([1.0, np.nan, 0.0])
    assert len(maxima.Search([one, other], 0, rows.get).distinct) == 2
