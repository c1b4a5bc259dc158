"""Longer steps of a climb, which never fall: quasi-Newton steps where slopes are known, else along the last two.

EM converges linearly, and slowly where the latent variables say much about the parameters that the data do not: the
loadings of a factor with little noise take thousands of steps, and so do components that overlap. Jamshidian and
Jennrich 1997; Varadhan and Roland 2008.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from bayeszoo.errors import NumericalError
from bayeszoo.model.steps import Chart, Coordinates, Expectation

ENOUGH = 1e-4
"""Share of the gain predicted by the slope that a step must reach; 0 for a gain that rounding may hide."""
NOISE = 1e-12  # share of the objective's size below which rounding may hide a gain
LENGTHS = (1.0, 0.25, 0.06)
"""Shares of a quasi-Newton step that are tried before a plain one is taken."""
MOST_COORDINATES = 2000
"""Most coordinates with a matrix of curvature, 32 MB."""

Evaluate = Callable[[Any], tuple[float, Expectation]]
Update = Callable[[Any], Any]
Steps = tuple[Evaluate, Update]
ChartAt = Callable[[Any, Any], Chart | None]


class QuasiNewton:
    """Where a climb by the steps of Broyden, Fletcher, Goldfarb and Shanno is, in coordinates about where it began.

    As the coordinates have the curvature of complete data, the first step is about one of EM. Where a step does not
    climb, a plain one is taken, and others begin there.
    """

    def __init__(self, evaluate: Evaluate, update: Update, chart_at: ChartAt) -> None:
        self._evaluate, self._update, self._chart_at = evaluate, update, chart_at
        self._state: Any = None
        self._reached: Any = None  # the height and the E-step at the state
        self._chart: Chart | None = None

    def evaluated(self, state: object) -> tuple[float, Expectation]:
        """Evaluate a state, unless the climb is there."""
        if state is not self._state:
            self._move(state, self._evaluate(state))
        reached: tuple[float, Expectation] = self._reached
        return reached

    def longer_step(self, stats: object) -> Any:
        """Return a state at least as high as this one, whose E-step is known then."""
        if chart := self._chart or self._begun(stats):
            step = self._inverse @ self._slope
            # where the density is not defined, or numbers are too large
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                if any(self._climbs(chart, length * step) for length in LENGTHS):
                    return self._state
        plain = self._update(stats)
        self._move(plain, self._evaluate(plain))
        return plain

    def _move(self, state: object, reached: tuple[float, Expectation]) -> None:
        self._state, self._reached, self._chart = state, reached, None

    def _begun(self, stats: object) -> Chart | None:
        """Return new coordinates centred at the state, without learned curvature; None if it has none or too many."""
        chart = self._chart_at(self._state, stats)
        if chart is None or chart.size > MOST_COORDINATES:
            return None
        self._chart, self._x, self._inverse = chart, np.zeros(chart.size), np.eye(chart.size)
        self._slope = chart.slope(self._x, self._state, stats)
        return chart

    def _climbs(self, chart: Chart, step: np.ndarray) -> bool:
        """Take a step if it gains enough of the increase that the slope predicts; learn the curvature from slopes."""
        promised, height, x = float(step @ self._slope), self._reached[0], self._x + step
        with contextlib.suppress(NumericalError, np.linalg.LinAlgError):
            state = chart.params(x)
            reached = self._evaluate(state)
            enough = ENOUGH * promised if promised > NOISE * max(1.0, abs(height)) else 0.0
            if reached[0] - height >= enough:  # NaN is not
                slope = chart.slope(x, state, reached[1].stats)
                self._inverse = bent(self._inverse, step, self._slope - slope)
                self._x, self._slope, self._state, self._reached = x, slope, state, reached
                return True
        return False


def bent(inverse: np.ndarray, step: np.ndarray, bend: np.ndarray) -> np.ndarray:
    """Return the inverse (D, D) of a curvature that takes ``step`` to ``bend``, near one that did not (BFGS).

    It stays positive definite: where the objective is not concave along the step, it stays as it is.
    """
    along = float(step @ bend)
    taken = inverse @ bend
    if not along > 1e-10 * float(bend @ taken):
        return inverse
    change = np.outer(step, (1 + float(bend @ taken) / along) / (2 * along) * step - taken / along)
    return np.asarray(inverse + change + change.T)


def squared(evaluate: Evaluate, update: Update, coordinates: Coordinates) -> Steps:
    """Return steps that go two at a time, and jump along their direction where that climbs higher: they never fall.

    Varadhan and Roland 2008, scheme S3.
    """
    state: Any = None
    reached: Any = None  # the height and the E-step at ``state``, from where the next step is

    def remembered(here: object) -> tuple[float, Expectation]:
        nonlocal state, reached
        if here is not state:
            state, reached = here, evaluate(here)
        return reached

    def two_steps_or_a_jump(stats: object) -> Any:
        nonlocal state, reached
        first = update(stats)
        second = update(evaluate(first)[1].stats)
        farther = _twice_extrapolated(*map(coordinates.to_vector, (state, first, second)))
        state, reached = second, evaluate(second)
        if farther is not None:
            # where the density is not defined, or numbers are too large
            with contextlib.suppress(NumericalError), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                jump = coordinates.from_vector(farther)
                if (there := evaluate(jump))[0] > reached[0]:  # NaN is not
                    state, reached = jump, there
        return state

    return remembered, two_steps_or_a_jump


def _twice_extrapolated(start: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray | None:
    """Return where the steps between three points lead; None where they do not bend."""
    step, bend = first - start, second - 2 * first + start
    size = np.linalg.norm(bend)
    if not size > 0:
        return None
    length = max(np.linalg.norm(step) / size, 1.0)
    return start + 2 * length * step + length**2 * bend
