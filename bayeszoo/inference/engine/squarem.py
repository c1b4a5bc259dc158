"""Faster EM: squared extrapolation of its steps, where a model gives its parameters coordinates.

EM converges linearly, and slowly where the latent variables say much about the parameters that the data do not: the
loadings of a factor with little noise take thousands of steps. Two steps tell the direction and its rate; a jump along
it is taken where it climbs higher than the two steps, so that the objective never falls. Varadhan and Roland 2008,
scheme S3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayeszoo.inference.engine.ascent import Evaluate, Update
from bayeszoo.model.capabilities import Expectation


class Accelerated:
    """The steps of a climb, two at a time, with a jump; `ascent.search` takes its `evaluate` and `update`.

    ``to_vector(state)`` gives coordinates in which steps are of like size; ``from_vector`` None outside their space.
    """

    def __init__(
        self,
        evaluate: Evaluate,
        update: Update,
        to_vector: Callable[[Any], np.ndarray],
        from_vector: Callable[[np.ndarray], Any],
    ) -> None:
        self._evaluate, self._update, self._to, self._from = evaluate, update, to_vector, from_vector
        self._state: Any = None
        self._found: tuple[float, Expectation] | None = None

    def evaluate(self, state: Any) -> tuple[float, Expectation]:
        """Return the height and the E-step, and remember them: the next step is from here."""
        if self._found is None or state is not self._state:
            self._state, self._found = state, self._evaluate(state)
        return self._found

    def update(self, stats: Any) -> Any:
        """Return the better of two steps and of the jump that they suggest."""
        start, first = self._state, self._update(stats)
        second = self._update(self._evaluate(first)[1].stats)
        found = second, self._evaluate(second)
        jump = self._jump(*(self._to(state) for state in (start, first, second)))
        if jump is not None:
            reached = self._evaluate(jump)
            found = (jump, reached) if reached[0] > found[1][0] else found  # NaN is not
        self._state, self._found = found
        return self._state

    def _jump(self, start: np.ndarray, first: np.ndarray, second: np.ndarray) -> Any:
        step, bend = first - start, second - 2 * first + start
        size = np.linalg.norm(bend)
        if not size > 0:
            return None
        length = max(np.linalg.norm(step) / size, 1.0)
        return self._from(start + 2 * length * step + length**2 * bend)
