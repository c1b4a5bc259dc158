"""Faster climbs than EM's that never fall: quasi-Newton steps where gradients are known, else extrapolated steps.

EM converges linearly, and slowly where much of the information about the parameters is missing with the latent
variables: loadings of a factor with little noise, or overlapping components, take thousands of steps. Jamshidian and
Jennrich 1997; Varadhan and Roland 2008.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from bayeszoo.errors import NumericalError
from bayeszoo.model.capabilities.steps import Chart, Coordinates, Expectation

ENOUGH = 1e-4
"""Share of the gain predicted by the slope that a step must reach, unless rounding may hide that gain."""
NOISE = 1e-12  # share of the objective's size below which rounding may hide a gain
LENGTHS = (1.0, 0.25, 0.06)
"""Fractions of a quasi-Newton step that are tried before a plain step."""
MOST_COORDINATES = 2000
"""Most coordinates for which the matrix of curvature is kept, 32 MB."""

Evaluate = Callable[[Any], tuple[float, Expectation]]
Update = Callable[[Any], Any]
Steps = tuple[Evaluate, Update]
ChartAt = Callable[[Any, Any], Chart | None]


class QuasiNewton:
    """A climb by BFGS steps (Broyden, Fletcher, Goldfarb and Shanno), in coordinates centred where it began.

    The coordinates have the curvature of the complete data, so that the first step is close to an EM step. When no BFGS
    step climbs, a plain step is taken, and new coordinates are centred there.
    """

    def __init__(self, evaluate: Evaluate, update: Update, chart_at: ChartAt) -> None:
        self._evaluate, self._update, self._chart_at = evaluate, update, chart_at
        self._state: Any = None
        self._reached: Any = None  # the height and the E-step at the state
        self._chart: Chart | None = None

    def evaluated(self, state: object) -> tuple[float, Expectation]:
        """Return height and E-step at a state; they are known at the climb's current state."""
        if state is not self._state:
            self._move(state, self._evaluate(state))
        reached: tuple[float, Expectation] = self._reached
        return reached

    def longer_step(self, stats: object) -> Any:
        """Return a state at least as high as the current one, with its E-step cached."""
        if chart := self._chart or self._new_chart(stats):
            step = self._inverse @ self._slope
            # an extrapolated point may have no density, or overflow
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                if any(self._climbs(chart, length * step) for length in LENGTHS):
                    return self._state
        plain = self._update(stats)
        self._move(plain, self._evaluate(plain))
        return plain

    def _move(self, state: object, reached: tuple[float, Expectation]) -> None:
        self._state, self._reached, self._chart = state, reached, None

    def _new_chart(self, stats: object) -> Chart | None:
        """Return coordinates centred at the state, no curvature learned yet; None if there are none or too many."""
        chart = self._chart_at(self._state, stats)
        if chart is None or chart.size > MOST_COORDINATES:
            return None
        self._chart, self._x, self._inverse = chart, np.zeros(chart.size), np.eye(chart.size)
        self._slope = chart.slope(self._x, self._state, stats)
        return chart

    def _climbs(self, chart: Chart, step: np.ndarray) -> bool:
        """Take a step if it gains enough of the increase predicted by the slope; update the curvature."""
        promised, height, x = float(step @ self._slope), self._reached[0], self._x + step
        with contextlib.suppress(NumericalError, np.linalg.LinAlgError):
            state = chart.params(x)
            reached = self._evaluate(state)
            enough = ENOUGH * promised if promised > NOISE * max(1.0, abs(height)) else 0.0
            if reached[0] - height >= enough:  # False for NaN
                slope = chart.slope(x, state, reached[1].stats)
                self._inverse = bent(self._inverse, step, self._slope - slope)
                self._x, self._slope, self._state, self._reached = x, slope, state, reached
                return True
        return False


def bent(inverse: np.ndarray, step: np.ndarray, bend: np.ndarray) -> np.ndarray:
    """Return the BFGS update of an inverse curvature (D, D), which then maps the change of slope ``bend`` to ``step``.

    It stays positive definite: if the objective is not concave along the step, the inverse is not updated.
    """
    along = float(step @ bend)
    taken = inverse @ bend
    if not along > 1e-10 * float(bend @ taken):
        return inverse
    change = np.outer(step, (1 + float(bend @ taken) / along) / (2 * along) * step - taken / along)
    return np.asarray(inverse + change + change.T)


def squared(evaluate: Evaluate, update: Update, coordinates: Coordinates) -> Steps:
    """Return steps that take two plain steps each, and extrapolate them where that climbs higher: they never fall.

    Varadhan and Roland 2008, scheme S3.
    """
    state: Any = None
    reached: Any = None  # height and E-step at ``state``, where the next step begins

    def remembered(asked: object) -> tuple[float, Expectation]:
        nonlocal state, reached
        if asked is not state:
            state, reached = asked, evaluate(asked)
        return reached

    def two_steps_or_a_jump(stats: object) -> Any:
        nonlocal state, reached
        after_one = update(stats)
        after_two = update(evaluate(after_one)[1].stats)
        farther = _twice_extrapolated(*map(coordinates.to_vector, (state, after_one, after_two)))
        state, reached = after_two, evaluate(after_two)
        if farther is not None:
            # an extrapolated point may have no density, or overflow
            with contextlib.suppress(NumericalError), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                jump = coordinates.from_vector(farther)
                if (reached_by_jump := evaluate(jump))[0] > reached[0]:  # False for NaN
                    state, reached = jump, reached_by_jump
        return state

    return remembered, two_steps_or_a_jump


def _twice_extrapolated(start: np.ndarray, after_one: np.ndarray, after_two: np.ndarray) -> np.ndarray | None:
    """Extrapolate the two steps between three points; None when the steps are equal."""
    step, bend = after_one - start, after_two - 2 * after_one + start
    size = np.linalg.norm(bend)
    if not size > 0:
        return None
    length = max(np.linalg.norm(step) / size, 1.0)
    return start + 2 * length * step + length**2 * bend
