"""MAP and MLE of a model that is log-concave given one positive number: the highest point of its profile.

The maximum over the other parameters as a function of the number, its profile, need not have one maximum: it is
computed on a grid that spans all that can matter, and refined about the highest point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.foundation.newton import Peak, climb
from bayeszoo.foundation.optimize import require_few
from bayeszoo.inference.methods.em import SPACE
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.base import Values
from bayeszoo.model.capabilities import Profiled
from bayeszoo.model.steps import ConcaveLikelihood

STEP = 1e-3
"""The step in the log of the number by which the maximum of the profile is tried."""


def run(problem: Problem, flat: bool) -> Outcome:
    """Maximize the log joint density, or with ``flat`` the likelihood.

    Raises
    ------
    NumericalError
        When the likelihood has no maximum, or none at a single point.
    """
    model = problem.model_as(Profiled)
    with problem.clock.phase("run"):
        mode = highest(model, problem.data, flat)
        likelihood = mode.rows.derivatives(mode.peak.x).value
        log_prior = float(mode.rows.log_prior(mode.params)) + model.log_profiled_prior(mode.value)
    slope = float(np.max(np.abs(mode.peak.there.gradient), initial=0.0))
    facts = {"mode_space": SPACE, "log_likelihood": likelihood, "log_joint": likelihood + log_prior}
    draws = {name: np.asarray(each)[None, None] for name, each in mode.params.items()}
    return Outcome(draws, "profile by Newton's method", mode.checks, {**facts, "gradient_norm": slope})


class Mode(NamedTuple):
    """The highest point of a profile: the number, what is concave given it, its maximum, the parameters, the checks."""

    value: float
    rows: ConcaveLikelihood
    peak: Peak
    params: dict[str, np.ndarray]
    checks: list[Check]


def highest(model: Profiled, data: Values, flat: bool) -> Mode:
    """Find the highest point of the profile of the log joint density, or with ``flat`` of the likelihood.

    Raises
    ------
    NumericalError
        When there is none, or none at a single point.
    """
    profile = _Profile(model, data, flat)
    place = profile.highest()
    value, rows, peak = float(np.exp(place)), profile.rows(place), profile.peak(place)
    gain = max(profile.height(place + step) for step in (-STEP, STEP)) - profile.height(place)
    checks = [*peak.certificate(), at_most(f"nats gained by a small step of {model.profiled}", max(gain, 0.0), 0.0)]
    return Mode(value, rows, peak, {**rows.params(peak.x), model.profiled: np.asarray(value)}, checks)


class _Profile:
    """The maximum over the other parameters at each log of the number; each climb begins where the last one ended."""

    def __init__(self, model: Profiled, data: Values, flat: bool) -> None:
        self._data, self._model, self._flat = data, model, flat
        rows = self.rows(0.0)
        require_few(rows.size, "Newton's method")
        if flat:
            rows.refuse_unbounded()
        self._start = rows.start()

    def rows(self, place: float) -> ConcaveLikelihood:
        """Return the log likelihood of the other parameters."""
        return self._model.concave_given(float(np.exp(place)), self._data)

    def peak(self, place: float) -> Peak:
        """Climb to the maximum."""
        rows = self.rows(place)
        peak = climb(rows.derivatives if self._flat else rows.joint, self._start)
        self._start = peak.x
        return peak

    def height(self, place: float) -> float:
        """Return the height of the maximum."""
        own = 0.0 if self._flat else self._model.log_profiled_prior(float(np.exp(place)))
        return self.peak(place).there.value + own

    def highest(self) -> float:
        """Return where the profile is highest; refuse one that rises to an end of the grid."""
        grid = np.log(self._model.profile_grid)
        heights = [self.height(place) for place in grid]
        best = int(np.argmax(heights))
        if best in (0, len(grid) - 1):
            raise NumericalError(self._model.profile_runs_away(best > 0))
        about = {"bounds": (grid[best - 1], grid[best + 1]), "method": "bounded", "options": {"xatol": 1e-9}}
        return float(scipy.optimize.minimize_scalar(lambda place: -self.height(place), **about).x)
