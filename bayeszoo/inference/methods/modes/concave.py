"""MAP and MLE of a log-concave model by Newton's method, which certifies that the maximum is the only one.

If a model is log-concave given a positive parameter, MAP and MLE are the highest point of the profile: the maximum over
the other parameters as a function of that parameter. The profile may have several maxima: it is computed on a grid that
spans all values that matter, and refined about the highest point.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.numerics.newton import Peak, climb
from bayeszoo.foundation.numerics.optimize import require_few
from bayeszoo.inference.methods.em import SPACE
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.capabilities import LogConcave
from bayeszoo.model.capabilities.steps import ConcaveLikelihood

STEP = 1e-3
"""Step in the log of the profiled parameter that tests the maximum of the profile."""


def run(problem: Problem, flat: bool) -> Outcome:
    """Maximize the log joint density, or with ``flat`` the likelihood.

    Raises
    ------
    NumericalError
        When the likelihood has no maximum, or not at a single point.
    """
    model = problem.model_as(LogConcave)
    with problem.clock.phase("run"):
        mode = highest(model, problem.data, flat)
        likelihood = float(mode.rows.values(mode.peak.x[None])[0])
        log_prior = float(mode.rows.log_prior(mode.params)) + _log_prior_of_profiled(model, mode.params)
    slope = float(np.max(np.abs(mode.peak.there.gradient), initial=0.0))
    facts = {"mode_space": SPACE, "log_likelihood": likelihood, "log_joint": likelihood + log_prior}
    facts |= {"at_edge": at_edge} if (at_edge := [name for name in model.profiled if mode.params[name] == 0]) else {}
    draws = {name: np.asarray(value)[None, None] for name, value in mode.params.items()}
    sampler = "profile by Newton's method" if model.profiled else mode.peak.method
    trace = {} if model.profiled else {"objective": mode.peak.trace}
    return Outcome(draws, sampler, mode.checks, {**facts, "gradient_norm": slope}, optimization=trace)


class Mode(NamedTuple):
    """The highest point: the log-concave problem there, its maximum, all parameters, and checks."""

    rows: ConcaveLikelihood
    peak: Peak
    params: dict[str, np.ndarray]
    checks: list[Check]


def highest(model: LogConcave, data: Arrays, flat: bool) -> Mode:
    """Find the highest point of the log joint density, or with ``flat`` of the likelihood.

    Raises
    ------
    NumericalError
        When there is no highest point, or more than one.
    """
    if model.profiled:
        return _Profile(model, data, flat).mode()
    rows = _bounded(model.concave(data), flat)
    peak = rows.highest(flat)
    return Mode(rows, peak, rows.params(peak.x), peak.certificate())


def _bounded(rows: ConcaveLikelihood, flat: bool) -> ConcaveLikelihood:
    """Refuse problems with too many parameters, and with ``flat`` a likelihood without a maximum."""
    require_few(rows.size, "Newton's method")
    if flat:
        rows.refuse_unbounded()
    return rows


def _log_prior_of_profiled(model: LogConcave, params: Params) -> float:
    return sum(float(prior.logpdf(params[name])) for name, prior in model.profiled.items())


class _Profile:
    """The maximum over the other parameters, by the log of the profiled one; a climb begins at the end of the last."""

    def __init__(self, model: LogConcave, data: Arrays, flat: bool) -> None:
        self._data, self._model, self._flat = data, model, flat
        (self._name,) = model.profiled
        self._start = _bounded(self.rows(0.0), flat).start()

    def rows(self, place: float) -> ConcaveLikelihood:
        """Return the likelihood of the other parameters."""
        return self._model.concave(self._data, **{self._name: float(np.exp(place))})

    def peak(self, place: float) -> Peak:
        """Climb to the maximum over the other parameters."""
        rows = self.rows(place)
        peak = climb(rows.derivatives if self._flat else rows.joint, self._start)
        self._start = peak.x
        return peak

    def height(self, place: float) -> float:
        """Return the height of the maximum."""
        log_prior = 0.0 if self._flat else _log_prior_of_profiled(self._model, {self._name: np.exp(place)})
        return self.peak(place).there.value + log_prior

    def mode(self) -> Mode:
        """Return the highest point, and check that no small step along the profile improves it."""
        place = self._highest()
        rows, peak = self.rows(place), self.peak(place)
        near = [place - STEP, place + STEP] if np.isfinite(place) else [2 * self._grid[1], self._grid[1]]
        gain = max(map(self.height, near)) - self.height(place)
        checks = [*peak.certificate(), at_most(f"small_step_gain: {self._name}", max(gain, 0.0), 0.0)]
        return Mode(rows, peak, {**rows.params(peak.x), self._name: np.asarray(np.exp(place))}, checks)

    @cached_property
    def _grid(self) -> np.ndarray:
        with np.errstate(divide="ignore"):  # the log of 0, if the parameter may be 0
            return np.log(self._model.profile_grid)

    def _highest(self) -> float:
        """Return the place of the profile's maximum, -inf for 0; raise if the profile rises to an end of the grid."""
        grid = self._grid
        heights = [self.height(place) for place in grid]
        best = int(np.argmax(heights))
        if best == 0 and np.isneginf(grid[0]):
            return float(grid[0])
        if best in (0, len(grid) - 1):
            raise NumericalError(self._model.profile_runs_away(best > 0), "no_maximum")
        low = grid[best - 1] if np.isfinite(grid[best - 1]) else 2 * grid[best]
        options = {"bounds": (low, grid[best + 1]), "method": "bounded", "options": {"xatol": 1e-9}}
        return float(scipy.optimize.minimize_scalar(lambda place: -self.height(place), **options).x)
