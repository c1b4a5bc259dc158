"""Longer steps of a climb, which never fall: along what its last steps have in common, or along the last two.

EM converges linearly, and slowly where the latent variables say much about the parameters that the data do not: the
loadings of a factor with little noise take thousands of steps. Walker and Ni 2011; Varadhan and Roland 2008.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from bayeszoo.errors import NumericalError
from bayeszoo.model.steps import Coordinates, Expectation

LEVEL = 1e-12
"""Share of the objective's size below which a longer step has gained nothing, so that a plain one is next."""
RIDGE = 1e-8
"""Share by which squares of changes are made larger, so that steps that are nearly parallel can be solved for."""

Evaluate = Callable[[Any], tuple[float, Expectation]]
Update = Callable[[Any], Any]
Steps = tuple[Evaluate, Update]


def accelerated(evaluate: Evaluate, update: Update, coordinates: Coordinates) -> Steps:
    """Return longer steps: by Anderson's acceleration where the coordinates say of how many steps, else by SQUAREM."""
    if not coordinates.memory:
        return _squared(evaluate, update, coordinates)
    climber = _Climber(evaluate, update, coordinates)
    return climber.evaluated, climber.longer_step


class _Climber:
    """Where a climb is, and its last steps: in free coordinates, points and where the plain step leads from each."""

    def __init__(self, evaluate: Evaluate, update: Update, coordinates: Coordinates) -> None:
        self._evaluate, self._update, self._coordinates = evaluate, update, coordinates
        self._state: Any = None
        self._reached: Any = None  # the height and the E-step at the state
        self._points = deque[np.ndarray](maxlen=coordinates.memory)
        self._steps = deque[np.ndarray](maxlen=coordinates.memory)

    def evaluated(self, state: Any) -> tuple[float, Expectation]:
        """Evaluate a state, unless the climb is there."""
        if state is not self._state:
            self._forget()
            self._state, self._reached = state, self._evaluate(state)
        reached: tuple[float, Expectation] = self._reached
        return reached

    def longer_step(self, stats: Any) -> Any:
        """Return a state at least as high as this one, whose E-step is known then."""
        height, plain = self._reached[0], self._update(stats)
        here, there = map(self._coordinates.to_vector, (self._state, plain))
        self._points.append(here)
        self._steps.append(there - here)
        farther = extrapolated(np.array(self._points), np.array(self._steps))
        if farther is not None:
            # where the density is not defined, or numbers are too large
            with contextlib.suppress(NumericalError), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                jump = self._coordinates.from_vector(farther)
                if (reached := self._evaluate(jump))[0] >= height:  # NaN is not
                    self._state, self._reached = jump, reached
                    if reached[0] - height <= LEVEL * max(1.0, abs(height)):
                        self._forget()
                    return jump
            self._forget()
        self._state, self._reached = plain, self._evaluate(plain)
        return plain

    def _forget(self) -> None:
        self._points.clear()
        self._steps.clear()


def extrapolated(points: np.ndarray, steps: np.ndarray) -> np.ndarray | None:
    """Return where steps (M, D) from points (M, D) vanish, if they are linear in them; None where that is not known."""
    if len(points) < 2:
        return None
    bends = np.diff(steps, axis=0)
    products = bends @ bends.T
    products[np.diag_indices(len(products))] *= 1 + RIDGE
    try:
        back = np.linalg.solve(products, bends @ steps[-1])
    except np.linalg.LinAlgError:
        return None
    return np.asarray(points[-1] + steps[-1] - back @ (np.diff(points, axis=0) + bends))


def _squared(evaluate: Evaluate, update: Update, coordinates: Coordinates) -> Steps:
    """Return steps that go two at a time, and jump along their direction where that climbs higher: they never fall.

    Varadhan and Roland 2008, scheme S3.
    """
    state: Any = None
    reached: Any = None  # the height and the E-step at ``state``, from where the next step is

    def remembered(here: Any) -> tuple[float, Expectation]:
        nonlocal state, reached
        if here is not state:
            state, reached = here, evaluate(here)
        return reached

    def two_steps_or_a_jump(stats: Any) -> Any:
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
