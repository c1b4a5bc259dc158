"""MAP and MLE of the fields that a closed-form model is `over`; the MLE is empirical Bayes.

L-BFGS-B from several starts, in the logarithms of positive fields and in real fields in units that change the evidence
by about a nat; then Newton steps. A maximum needs negative curvature; and when a field is moved far out to either side
and the other fields follow, the evidence must fall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from bayeszoo.foundation.gate import Check, at_least, at_most
from bayeszoo.foundation.named import Arrays
from bayeszoo.foundation.numerics import optimize
from bayeszoo.foundation.numerics.optimize import MAX_DISTANCE
from bayeszoo.foundation.process.threads import one_thread
from bayeszoo.inference.methods.em import SPACE
from bayeszoo.inference.methods.modes.surface import (
    FURTHER,
    SAME,
    Sides,
    Surface,
    SurfaceCoordinates,
    boundary_check,
    levels_off,
    outward,
    still_rises,
)
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import ClosedForm
from bayeszoo.model.fields import hyperparameters
from bayeszoo.model.outer.over import Over

STARTS = 8
"""Number of climbs in a fit."""


def run(problem: Problem, flat: bool) -> Outcome:
    """Maximize the density of the fields given the data, or with ``flat`` the evidence."""
    model = problem.model_as(Over)
    with problem.clock.phase("run"):
        mode = highest(model, problem.data, flat, STARTS, problem.rng)
        likelihood = float(model.log_marginal(mode.outer, problem.data))
        log_prior = float(model.log_outer_prior(mode.outer))
    facts = {"mode_space": SPACE, "log_likelihood": likelihood, "log_joint": likelihood + log_prior}
    draws = {name: np.asarray(value)[None, None] for name, value in mode.outer.items()}
    return Outcome(draws, "L-BFGS and Newton", mode.checks, facts)


class Mode(NamedTuple):
    """The fields where a search ended, their height, checks of the maximum, and the number of climbs that reached it.

    ``boundary`` says for each entry without a maximum how the density behaves. ``limits`` are the entries that go to an
    end of their range, if the other entries have a maximum in that limit.
    """

    outer: dict[str, np.ndarray]
    height: float
    boundary: dict[str, str]
    limits: dict[str, float]
    reached: int
    checks: list[Check]


def highest(model: Over, data: Arrays, flat: bool, starts: int, rng: np.random.Generator) -> Mode:
    """Climb from several starts, and look far out on every side of the highest point."""
    surface = Surface(SearchCoordinates.search(model, data), data, flat).in_its_units()
    with one_thread():
        ends = [surface.climb(start) for start in surface.coordinates.starts(starts, rng)]
        heights = [surface.value(end) for end in ends]
        peak = surface.peak(ends[int(np.argmax(heights))])
        x, sides = outward(surface, peak.x, lambda x: surface.peak(surface.climb(x)).x)
        best = peak if x is peak.x else surface.peak(x)
    boundary = _boundary(surface, best.x, sides)
    if limit := _in_the_limit(surface, best.x, sides):
        best, limits = limit
        caveat = f"in the limit {', '.join(f'{label} -> {end:g}' for label, end in limits.items())}"
    else:
        limits, caveat = {}, ""
    reached = sum(abs(height - best.value) <= SAME for height in heights)
    checks = [
        at_most("non_finite_evidence", int(not math.isfinite(best.value)), 0),
        boundary_check([*boundary.values()]).or_caveat(caveat),
        at_most("stationary_distance", best.distance, MAX_DISTANCE),
        at_least("starts", reached, 2),
    ]
    return Mode(surface.coordinates.outer(best.x), best.value, boundary, limits, reached, checks)


def _in_the_limit(surface: Surface, x: np.ndarray, sides: Sides) -> tuple[optimize.Mode, dict[str, float]] | None:
    """Return the maximum in the limit where some entries go to their lower end, if the other entries have one.

    An example is the prior sd of a weight that the data do not need: the density levels off as it goes to 0, and the
    other entries do not change.
    """
    coordinates = surface.coordinates
    ends = [i for i, level in enumerate(sides) if level == [-1] and coordinates.logarithmic[i]]
    others = [i for i in range(len(x)) if i not in ends]
    if not (ends and others) or any(sides[i] for i in others):
        return None
    beyond = x.copy()
    beyond[ends] -= coordinates.stretch(FURTHER)[ends]
    peak = surface.peak(beyond, others)
    beyond[others] = peak.x
    if not (peak.distance <= MAX_DISTANCE and abs(peak.value - surface.value(x)) <= SAME):
        return None
    return replace(peak, x=beyond), {coordinates.labels[i]: coordinates.scales[i].low for i in ends}


@dataclass(frozen=True, eq=False)
class SearchCoordinates(SurfaceCoordinates):
    """Coordinates that are 0 at the model's fields, and ``weak`` at the weakly informative fields."""

    model: Over

    @classmethod
    def search(cls, model: Over, data: Arrays | None = None) -> Self:
        """Return coordinates centred at the model's fields; weakly informative fields have the scale of the data."""
        fields = model.own_values
        coordinates = cls.of(model, tuple(model.outer), data, model=model, weak=np.empty(0))
        coordinates = replace(coordinates, origin=coordinates.places(fields))
        weak = model.base if data is None else model.of.weak(data)
        weak_fields = {name: _alike(_scales(weak, name), value) for name, value in fields.items()}
        return replace(coordinates, weak=coordinates.places(weak_fields))

    def model_at(self, x: np.ndarray) -> ClosedForm[Any]:
        """Return the model with the fields at x."""
        return self.model.at(self.outer(x))


def _scales(model: Model, name: str) -> np.ndarray:
    """Return a field, of a matrix the diagonal."""
    values = np.asarray(getattr(model, name))
    is_matrix = hyperparameters(model)[name].matrix and values.ndim
    return np.diagonal(values, axis1=-2, axis2=-1) if is_matrix else values


def _alike(values: np.ndarray, field: np.ndarray) -> np.ndarray:
    """Return a field of the weakly informative model in the shape of this model's field."""
    return np.broadcast_to(values if values.shape == field.shape else np.median(values), field.shape)


def _boundary(surface: Surface, x: np.ndarray, sides: Sides) -> dict[str, str]:
    """Describe, for each entry without a maximum, how the density behaves in it."""
    lines = (levels_off(surface, i, level) or _at_edge(surface, i, x) for i, level in enumerate(sides))
    return {label: line for label, line in zip(surface.coordinates.labels, lines, strict=True) if line}


def _at_edge(surface: Surface, entry: int, x: np.ndarray) -> str:
    """Say that the density still rises in an entry at the edge of the search; empty if it is not at the edge."""
    coordinates, (low, high) = surface.coordinates, surface.coordinates.bounds()
    if x[entry] not in (low[entry], high[entry]):
        return ""
    line = still_rises(surface.noun, coordinates.labels[entry], coordinates.entries(x)[entry])
    return f"{line}: begin nearer to its maximum"
