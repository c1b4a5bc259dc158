"""MAP and MLE of the fields that a closed-form model is `over`; the latter is empirical Bayes.

L-BFGS-B from several starts, in the logarithms of positive fields and in real fields in units that change the evidence
by about a nat; then Newton steps. A maximum is one only where the curvature is that of one, and when no field can be
moved far out to either side, the others following, with the evidence as high as before.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy

from bayeszoo.foundation.gate import Check, at_least, at_most
from bayeszoo.foundation.optimize import MAX_DISTANCE
from bayeszoo.foundation.threads import one_thread
from bayeszoo.inference.methods.em import SPACE
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.base import Values
from bayeszoo.model.capabilities import ClosedForm
from bayeszoo.model.outer import OuterCoordinates
from bayeszoo.model.over import Over

STARTS = 8
"""Climbs of a fit."""
SAME = 1e-6
"""Two climbs reached the same maximum when their log evidences differ by less, in nats."""
REACH = 1e6
"""How far beyond the model's own fields and the weak ones to look."""
FURTHER = 1e3
"""How much further out the evidence must be lower for a maximum to be one."""
FALL = 1e-9
"""By how much it must be lower there, relative to its size."""
SPREAD = 1e2
"""How far around the known places to begin."""
STEP = 2.0**-10
"""Step of the finite differences. A power of two, as the units of real fields are: so 1e9 + STEP is exact."""
_POWERS = range(-200, 200)
"""Powers of two among which the units of real fields are looked for."""
WORST = 1e250
"""Stands for the depth of a place without an evidence; the line search cannot reckon with infinity."""


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
    """The fields where a search ended, the height there, what is wrong with it as a maximum, and the climbs."""

    outer: dict[str, np.ndarray]
    height: float
    boundary: dict[str, str]
    reached: int
    checks: list[Check]


def highest(model: Over, data: Values, flat: bool, starts: int, rng: np.random.Generator) -> Mode:
    """Climb from several places to the highest one, and look far out on every side of it."""
    surface = Surface(SearchCoordinates.search(model, data), data, flat).in_its_units()
    with one_thread():
        ends = [surface.climb(start) for start in surface.coordinates.starts(starts, rng)]
        heights = [surface.value(end) for end in ends]
        best, boundary = _outward(surface, surface.peak(ends[int(np.argmax(heights))]))
    reached = sum(abs(height - best.value) <= SAME for height in heights)
    checks = [
        at_most("log evidences that are not finite", int(not math.isfinite(best.value)), 0),
        at_most(": ".join(["fields at the boundary", *boundary.values()]), len(boundary), 0),
        at_most("distance to a stationary point in sd", best.distance, MAX_DISTANCE),
        at_least("starts that reached the maximum", reached, 2),
    ]
    return Mode(surface.coordinates.outer(best.x), best.value, boundary, reached, checks)


def differences(function: Callable[[np.ndarray], Any], x: np.ndarray, step: float = STEP) -> np.ndarray:
    """Return central differences of a function along each of the D entries of x, as a new last axis."""
    return np.stack([(function(x + h) - function(x - h)) / (2 * step) for h in step * np.eye(len(x))], axis=-1)


@dataclass(frozen=True, eq=False)
class SearchCoordinates(OuterCoordinates):
    """Coordinates that are 0 at the model's own fields, and ``weak`` at the weakly informative ones."""

    model: Over
    weak: np.ndarray

    @classmethod
    def search(cls, model: Over, data: Values | None = None) -> Self:
        """Lay coordinates about the model's own fields; the weak ones have the scale of the data, if there are any."""
        at, own = cls.of(model, tuple(model.outer), model=model, weak=np.empty(0)), model.own_values
        at = replace(at, origin=at.places(own))
        weak = model.base if data is None else model.of.weak(data)
        there = {name: _alike(getattr(weak, name), value) for name, value in own.items()}
        return replace(at, weak=at.places(there))

    def model_at(self, x: np.ndarray) -> ClosedForm[Any]:
        """Return the model with the fields at x."""
        return self.model.at(self.outer(x))

    @property
    def logarithmic(self) -> np.ndarray:
        """Which entries are positive, or exceed an end of their own."""
        return np.array([math.isfinite(scale.low) for scale in self.scales])

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the edges of the search, each of shape (D,)."""
        reach = self.stretch(REACH)
        return np.minimum(self.weak, 0.0) - reach, np.maximum(self.weak, 0.0) + reach

    def stretch(self, factor: float) -> np.ndarray:
        """Return how far a positive entry moves when it is multiplied by ``factor``; a real one moves so many units."""
        return np.where(self.logarithmic, math.log(factor), factor)

    def starts(self, count: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Yield the model's own fields, then places around the weak ones and around its own, in turn."""
        size = len(self.origin)
        yield np.zeros(size)
        for i in range(1, count):
            away = np.where(self.logarithmic, rng.uniform(-1, 1, size), rng.normal(size=size)) * self.stretch(SPREAD)
            yield away + (self.weak if i % 2 else 0.0)


def _alike(value: Any, own: np.ndarray) -> np.ndarray:
    """Return a field of another model in the shape that it has in this one."""
    values = np.asarray(value)
    return np.broadcast_to(values if values.shape == own.shape else np.median(values), own.shape)


class Peak(NamedTuple):
    """Where a climb ended: x, the log evidence there, its gradient, and its negative Hessian, shape (D, D).

    The distance is the Newton decrement, sqrt(g' H^-1 g); infinite where the curvature is not that of a maximum.
    """

    x: np.ndarray
    value: float
    slope: np.ndarray
    precision: np.ndarray
    distance: float


@dataclass(frozen=True, eq=False)
class Surface:
    """The log evidence over coordinates of the fields, or with a prior of these the log joint density."""

    coordinates: SearchCoordinates
    data: Values
    flat: bool

    def value(self, x: np.ndarray) -> float:
        """Return the height at x; minus infinity where it cannot be computed."""
        outer = self.coordinates.outer(x)
        with np.errstate(all="ignore"):
            height = float(self.coordinates.model.log_marginal(outer, self.data))
            height += 0.0 if self.flat else float(self.coordinates.model.log_outer_prior(outer))
        return -math.inf if math.isnan(height) else height

    def in_its_units(self) -> Surface:
        """Return the surface with real entries in units that change the evidence by about a nat.

        The curvature at the better of the weak fields and the model's own tells the unit: data may be of any size.
        """
        at = self.coordinates
        unit = np.ones_like(at.weak)
        for i in np.flatnonzero(~at.logarithmic):
            unit[i] = 2.0 ** self._doublings(np.eye(len(unit))[i])
        weak = np.where(at.logarithmic, at.weak, at.weak * at.unit / unit)
        return replace(self, coordinates=replace(at, unit=unit, weak=weak))

    def _doublings(self, direction: np.ndarray) -> int:
        """Return the exponent of the smallest power of two that bends the evidence by a nat, the last if none does."""
        centre = max(self.coordinates.weak, np.zeros_like(direction), key=self.value)
        middle = self.value(centre)
        least = max(1.0, 1e-8 * abs(middle))  # above its rounding

        def bends(power: int) -> bool:
            step = 2.0**power * direction
            return not abs(self.value(centre + step) + self.value(centre - step) - 2 * middle) < least

        return bisect.bisect_left(_POWERS, True, key=bends) + _POWERS.start

    def slope(self, x: np.ndarray, rough: bool = False) -> np.ndarray:
        """Return the gradient at x, shape (D,), by differences: good to STEP**4, or roughly STEP**2."""
        with np.errstate(all="ignore"):
            near = differences(self.value, x)
            return near if rough else (4 * near - differences(self.value, x, 2 * STEP)) / 3

    def climb(self, start: np.ndarray, bounds: tuple[np.ndarray, np.ndarray] | None = None) -> np.ndarray:
        """Climb by L-BFGS-B within bounds, and return where that ends."""
        low, high = bounds or self.coordinates.bounds()
        start = np.clip(start, low, high)
        options = {"gtol": 1e-8, "ftol": 1e-14, "maxiter": 500}
        box = np.column_stack([low, high])
        x = scipy.optimize.minimize(self._descend, start, jac=True, method="L-BFGS-B", bounds=box, options=options).x
        return x if self.value(x) > self.value(start) else start

    def _descend(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        value = self.value(x)
        if not math.isfinite(value):
            return math.copysign(WORST, -value), np.zeros_like(x)
        return -value, -np.nan_to_num(self.slope(x, rough=True), posinf=0.0, neginf=0.0)

    def peak(self, x: np.ndarray) -> Peak:
        """Go on from x by Newton steps as long as they help, and describe the place."""
        best = self._described(x)
        low, high = self.coordinates.bounds()
        for _ in range(5):
            if best.distance < 1e-3 * MAX_DISTANCE or not math.isfinite(best.distance):
                break
            moved = np.clip(best.x + np.linalg.solve(best.precision, best.slope), low, high)
            further = self._described(moved)
            if not further.distance < best.distance or further.value < best.value - 1e-12 * abs(best.value):
                break
            best = further
        return best

    def _described(self, x: np.ndarray) -> Peak:
        slope = self.slope(x)
        with np.errstate(all="ignore"):
            bend = differences(lambda x: self.slope(x, rough=True), x)
        precision, distance = -(bend + bend.T) / 2, math.inf
        if np.isfinite(precision).all() and np.linalg.eigvalsh(precision)[0] > 0:
            distance = math.sqrt(np.maximum(slope @ np.linalg.solve(precision, slope), 0.0))
        return Peak(x, self.value(x), slope, precision, distance)

    def further(self, peak: Peak, entry: int, side: int) -> np.ndarray:
        """Move one entry far out to a side, let the others follow, and return the highest place found."""
        low, high = self.coordinates.bounds()
        further = self.coordinates.stretch(FURTHER)
        low, high, out = low - further, high + further, side * further
        low[entry] = high[entry] = peak.x[entry] + out[entry]
        together = np.where(self.coordinates.logarithmic, out, 0.0)  # at a constant ratio, often all there is to it
        highest = max((np.clip(peak.x + move, low, high) for move in (together, 0.0)), key=self.value)
        return highest if self.value(highest) >= self.allowed(peak) else self.climb(highest, (low, high))

    @staticmethod
    def allowed(peak: Peak) -> float:
        """Return how high the evidence may be far out if the peak is to be a maximum."""
        return peak.value - FALL * max(1.0, abs(peak.value))


def _outward(surface: Surface, best: Peak) -> tuple[Peak, dict[str, str]]:
    """Look far out on every side; return the best place after that, and what is wrong with it as a maximum."""
    ways = list(itertools.product(range(len(best.x)), (-1, 1)))
    for climbs_left in (3, 2, 1, 0):
        far = {way: surface.further(best, *way) for way in ways}
        higher = max(far.values(), key=surface.value)
        if not (climbs_left and surface.value(higher) > best.value + SAME):
            break
        peak = surface.peak(surface.climb(higher))
        if not peak.value > best.value + SAME:
            break  # only beyond the edge of the search
        best = peak
    level = {way for way, x in far.items() if surface.value(x) >= surface.allowed(best)}
    said = [_said(surface.coordinates, entry, level, best) for entry in range(len(best.x))]
    return best, {label: line for label, line in zip(surface.coordinates.labels, said, strict=True) if line}


def _said(coordinates: SearchCoordinates, entry: int, level: set[tuple[int, int]], best: Peak) -> str:
    """Say what the evidence does in an entry without a maximum; nothing where there is one."""
    label, (low, high) = coordinates.labels[entry], coordinates.bounds()
    sides = [side for side in (-1, 1) if (entry, side) in level]
    if len(sides) == 2:
        return f"the evidence does not depend on {label}"
    if sides:
        limit = "infinity" if sides[0] > 0 else "0" if coordinates.logarithmic[entry] else "-infinity"
        return f"no maximum in {label}: the evidence does not fall as {label} -> {limit}"
    if best.x[entry] in (low[entry], high[entry]):
        value = coordinates.entries(best.x)[entry]
        return f"the evidence still rises at {label} = {value:g}, the edge of the search: begin nearer to its maximum"
    return ""
