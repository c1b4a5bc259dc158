"""MAP and MLE of the fields that a closed-form model is `over`; the latter is empirical Bayes.

L-BFGS-B from several starts, in the logarithms of positive fields and in real fields in units that change the evidence
by about a nat; then Newton steps. A maximum is one only where the curvature is that of one, and when no field can be
moved far out to either side, the others following, with the evidence as high as before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from bayeszoo.foundation import optimize
from bayeszoo.foundation.gate import Check, at_least, at_most
from bayeszoo.foundation.named import Arrays
from bayeszoo.foundation.optimize import MAX_DISTANCE
from bayeszoo.foundation.threads import one_thread
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
from bayeszoo.model.capabilities import ClosedForm
from bayeszoo.model.over import Over

STARTS = 8
"""Climbs of a fit."""


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
    """The fields where a search ended, the height there, checks of the maximum, and the climbs.

    ``limits`` are the entries that go to an end of theirs, where the others have a maximum in that limit.
    """

    outer: dict[str, np.ndarray]
    height: float
    boundary: dict[str, str]
    limits: dict[str, float]
    reached: int
    checks: list[Check]


def highest(model: Over, data: Arrays, flat: bool, starts: int, rng: np.random.Generator) -> Mode:
    """Climb from several places to the highest one, and look far out on every side of it."""
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
    """Return the maximum in the limit where some entries go to their lower end, if the others have one there.

    So does a prior sd of a weight that the data do not need: the density levels off, and the others do not change.
    """
    at = surface.coordinates
    ends = [i for i, own in enumerate(sides) if own == [-1] and at.logarithmic[i]]
    others = [i for i in range(len(x)) if i not in ends]
    if not (ends and others) or any(sides[i] for i in others):
        return None
    beyond = x.copy()
    beyond[ends] -= at.stretch(FURTHER)[ends]
    peak = surface.peak(beyond, others)
    beyond[others] = peak.x
    if not (peak.distance <= MAX_DISTANCE and abs(peak.value - surface.value(x)) <= SAME):
        return None
    return replace(peak, x=beyond), {at.labels[i]: at.scales[i].low for i in ends}


@dataclass(frozen=True, eq=False)
class SearchCoordinates(SurfaceCoordinates):
    """Coordinates that are 0 at the model's own fields, and ``weak`` at the weakly informative ones."""

    model: Over

    @classmethod
    def search(cls, model: Over, data: Arrays | None = None) -> Self:
        """Lay coordinates about the model's own fields; the weak ones have the scale of the data, if there are any."""
        own = model.own_values
        at = cls.of(model, tuple(model.outer), data, model=model, weak=np.empty(0))
        at = replace(at, origin=at.places(own))
        weak = model.base if data is None else model.of.weak(data)
        there = {name: _alike(getattr(weak, name), value) for name, value in own.items()}
        return replace(at, weak=at.places(there))

    def model_at(self, x: np.ndarray) -> ClosedForm[Any]:
        """Return the model with the fields at x."""
        return self.model.at(self.outer(x))


def _alike(value: object, own: np.ndarray) -> np.ndarray:
    """Return a field of another model in the shape that it has in this one."""
    values = np.asarray(value)
    return np.broadcast_to(values if values.shape == own.shape else np.median(values), own.shape)


def _boundary(surface: Surface, x: np.ndarray, sides: Sides) -> dict[str, str]:
    """Say of each entry in which there is no maximum what the density does there."""
    each = (levels_off(surface, i, own) or _at_edge(surface, i, x) for i, own in enumerate(sides))
    return {label: line for label, line in zip(surface.coordinates.labels, each, strict=True) if line}


def _at_edge(surface: Surface, entry: int, x: np.ndarray) -> str:
    """Say that the density still rises where the search ended in an entry; nothing where it does not."""
    at, (low, high) = surface.coordinates, surface.coordinates.bounds()
    if x[entry] not in (low[entry], high[entry]):
        return ""
    return f"{still_rises(surface.noun, at.labels[entry], at.entries(x)[entry])}: begin nearer to its maximum"
