"""The log density of outer parameters as a surface: climbs, curvature, and its fall far from a mode.

A mode is a maximum only if the density falls when any outer parameter is moved far out to a side and the others follow:
a density that levels off towards a supremum has no maximum.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.numerics.optimize import Mode, describe, polished
from bayeszoo.model.capabilities.conditional import Conditional
from bayeszoo.model.outer.coordinates import OuterCoordinates

REACH = 1e6
"""Extent of the search beyond the known places, as a factor."""
SPREAD = 1e2
"""Extent of the starts around the known places, as a factor."""
FURTHER = 1e3
"""Factor by which a parameter is moved out; the density must be lower there."""
FALL = 1e-9
"""Least fall of the density far out, relative to its size."""
STEP = 2.0**-10
"""Step of the finite differences: a power of two, as are the units of real numbers, so that 1e9 + STEP is exact."""
_POWERS = range(-200, 200)
"""Powers of two that may be units of real numbers."""
WORST = 1e250
"""Replaces an infinite objective, with which the line search cannot compute."""

SAME = 1e-6
"""Nats by which a place must be higher to be another maximum."""
MORE_CLIMBS = 3
"""Most climbs from higher places far out."""

Way = tuple[int, int]
"""The index of an entry, and the side to which it is moved, -1 or 1."""
Sides = list[list[int]]
"""For each entry, the sides (-1, 1) to which the density does not fall."""


@dataclass(frozen=True, eq=False)
class SurfaceCoordinates(OuterCoordinates):
    """Coordinates of all outer parameters of a model, with two known places: 0 and ``weak``."""

    model: Conditional
    weak: np.ndarray

    @property
    def logarithmic(self) -> np.ndarray:
        """Whether each entry has a lower end, and its coordinate is a logarithm, (D,)."""
        return np.array([math.isfinite(scale.low) for scale in self.scales])

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the edges of the search, each of shape (D,)."""
        reach = self.stretch(REACH)
        return np.minimum(self.weak, 0.0) - reach, np.maximum(self.weak, 0.0) + reach

    def stretch(self, factor: float) -> np.ndarray:
        """Return the step of each coordinate, (D,): positive entries times ``factor``, real ones by that many units."""
        return np.where(self.logarithmic, math.log(factor), factor)

    def starts(self, count: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Yield 0, then random places around ``weak`` and around 0 in turn."""
        size = len(self.weak)
        yield np.zeros(size)
        for i in range(1, count):
            away = np.where(self.logarithmic, rng.uniform(-1, 1, size), rng.normal(size=size)) * self.stretch(SPREAD)
            yield away + (self.weak if i % 2 else 0.0)


@dataclass(frozen=True, eq=False)
class Surface:
    """The log evidence over coordinates of the outer parameters, or with their prior the log joint density."""

    coordinates: SurfaceCoordinates
    data: Arrays
    flat: bool

    def value(self, x: np.ndarray) -> float:
        """Return the height at x; minus infinity where it cannot be computed."""
        return float(self.values(x))

    def values(self, points: np.ndarray) -> np.ndarray:
        """Return the heights at points (..., D)."""
        return self.heights(self.coordinates.outer(points))

    def heights(self, outer: Params) -> np.ndarray:
        """Return the heights at outer parameters; leading axes are points."""
        model = self.coordinates.model
        with np.errstate(all="ignore"):
            heights = np.asarray(model.log_marginal(outer, self.data))
            heights = heights if self.flat else heights + model.log_outer_prior(outer, self.data)
        return np.where(np.isnan(heights), -math.inf, heights)

    def in_its_units(self) -> Surface:
        """Return the surface with real entries in units that change the evidence by about a nat.

        The unit is chosen by the curvature at the higher of the two known places: data may be of any size.
        """
        old = self.coordinates
        unit = np.ones_like(old.weak)
        for i in np.flatnonzero(~old.logarithmic):
            unit[i] = 2.0 ** self._doublings(np.eye(len(unit))[i])
        weak = np.where(old.logarithmic, old.weak, old.weak * old.unit / unit)
        return replace(self, coordinates=replace(old, unit=unit, weak=weak))

    def _doublings(self, direction: np.ndarray) -> int:
        """Return the exponent of the smallest power of two over which the evidence bends by a nat, else the largest."""
        centre = max(self.coordinates.weak, np.zeros_like(direction), key=self.value)
        middle = self.value(centre)
        least = max(1.0, 1e-8 * abs(middle))  # larger than rounding

        def bends(power: int) -> bool:
            step = 2.0**power * direction
            return not abs(self.value(centre + step) + self.value(centre - step) - 2 * middle) < least

        return bisect.bisect_left(_POWERS, True, key=bends) + _POWERS.start

    def slope(self, x: np.ndarray, rough: bool = False) -> np.ndarray:
        """Return the gradient at x, shape (D,), by differences with error of order STEP**4, if ``rough`` STEP**2."""
        steps = STEP * np.eye(len(x)) * np.array([1.0, 2.0][: 2 - rough])[:, None, None]
        above, below = self.values(x + np.stack([steps, -steps]))
        with np.errstate(all="ignore"):
            slopes = (above - below) / (2 * np.diagonal(steps, axis1=1, axis2=2))
            return slopes[0] if rough else (4 * slopes[0] - slopes[1]) / 3

    def climb(self, start: np.ndarray, bounds: tuple[np.ndarray, np.ndarray] | None = None) -> np.ndarray:
        """Climb by L-BFGS-B within bounds, and return the end of the climb."""
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

    def peak(self, x: np.ndarray, free: Sequence[int] | None = None) -> Mode:
        """Take Newton steps from x as long as they gain, and describe the mode reached; by default all entries move.

        If only the ``free`` entries move, the mode has these entries alone, and the others stay as in x.
        """
        moving = np.arange(len(x)) if free is None else np.asarray(free, dtype=int)
        bounds = tuple(np.concatenate([limit[moving] for limit in self.coordinates.bounds()]).reshape(2, -1))

        def gradient(entries: np.ndarray) -> tuple[float, np.ndarray]:
            place = x.copy()
            place[moving] = entries
            return self.value(place), self.slope(place)[moving]

        try:
            with np.errstate(all="ignore"):
                place = describe(gradient, x[moving], steps=STEP)
                return polished(gradient, place, (bounds[0], bounds[1]), STEP)
        except NumericalError:  # the density ends or overflows next to it
            nothing = np.full((len(moving), len(moving)), math.nan)
            return Mode(x[moving], self.value(x), nothing, math.inf, math.inf, np.empty(0))

    def further(self, x: np.ndarray, way: Way) -> np.ndarray:
        """Move one entry far out to a side, let the others follow, and return the highest place.

        A positive entry at the lower edge may represent 0: it is moved up from the known place 0.
        """
        entry, side = way
        low, high = self.coordinates.bounds()
        is_at_edge = (np.arange(len(x)) == entry) & self.coordinates.logarithmic & (x <= low)
        begin = np.where(is_at_edge & (side > 0), 0.0, x)
        further = self.coordinates.stretch(FURTHER)
        low, high, out = low - further, high + further, side * further
        low[entry] = high[entry] = begin[entry] + out[entry]
        together = np.where(self.coordinates.logarithmic, out, 0.0)  # constant ratios, which often keep the height
        highest = max((np.clip(begin + move, low, high) for move in (together, 0.0)), key=self.value)
        return highest if self.value(highest) >= self.allowed(x) else self.climb(highest, (low, high))

    def allowed(self, x: np.ndarray) -> float:
        """Return the height that the surface must not reach far out if x is a maximum."""
        return (height := self.value(x)) - FALL * max(1.0, abs(height))

    @property
    def noun(self) -> str:
        """Name of the quantity whose log is the height."""
        return "evidence" if self.flat else "density"


def outward(surface: Surface, x: np.ndarray, climb: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, Sides]:
    """Look far out to every side of a mode, and climb from a higher place.

    Every mode of outer parameters is tested so: a local mode near the start must not pass for the maximum. Returns the
    best place, and for each of its entries the sides to which the density does not fall far out.
    """
    ways = [(entry, side) for entry in range(len(x)) for side in (-1, 1)]
    for climbs_left in range(MORE_CLIMBS, -1, -1):
        far = [surface.further(x, way) for way in ways]
        higher = max(far, key=surface.value)
        if not (climbs_left and surface.value(higher) > surface.value(x) + SAME):
            break
        reached = climb(higher)
        if not surface.value(reached) > surface.value(x) + SAME:
            break  # it is higher only beyond the edge of the search
        x = reached
    level = [way for way, place in zip(ways, far, strict=True) if surface.value(place) >= surface.allowed(x)]
    return x, [[side for side in (-1, 1) if (entry, side) in level] for entry in range(len(x))]


def levels_off(surface: Surface, entry: int, sides: Sequence[int]) -> str:
    """Describe the density in an entry by the sides to which it does not fall; empty if it falls to both."""
    label, scale = surface.coordinates.labels[entry], surface.coordinates.scales[entry]
    if len(sides) == 2:
        return f"the {surface.noun} does not depend on {label}"
    if not sides:
        return ""
    return without_maximum(surface.noun, label, scale.high if sides[0] > 0 else scale.low)


def without_maximum(noun: str, label: str, end: float) -> str:
    """Say that the density (``noun``) has no maximum in a parameter, as it does not fall towards an end."""
    limit = f"{end:g}".replace("inf", "infinity")
    return f"no maximum in {label}: the {noun} does not fall as {label} -> {limit}"


def still_rises(noun: str, label: str, value: float) -> str:
    """Say that the density (``noun``) still rises at the edge of the search."""
    return f"the {noun} still rises at {label} = {value:g}, the edge of the search"


def boundary_check(lines: Sequence[str]) -> Check:
    """Check that the density falls off on every side of a mode."""
    return at_most(": ".join(["no_outer_maximum", *lines]), len(lines), 0)
