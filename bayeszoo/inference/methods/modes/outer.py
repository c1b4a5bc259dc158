"""MAP and MLE of the outer parameters of a `Conditional` model, with the inner parameters integrated out.

The joint mode of outer and inner parameters is no answer: its density is infinite as their spread goes to 0. Modes are
taken in the constrained space, and may lie on its edge, as when the spread of the groups is 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions.scale import REAL, Scale
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.inference.methods.em import SPACE
from bayeszoo.inference.methods.modes.surface import Surface, SurfaceCoordinates, boundary_check, levels_off, outward
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.capabilities import Conditional
from bayeszoo.model.outer.coordinates import OuterCoordinates

FAR = 1e4
"""Largest estimate, as a multiple of the guess or in widths from it; a larger one has run away."""
STEP = 1e-3
"""Steps that test a mode, relative to its size."""
INSIDE = 1e-12
"""Distance of a share from 0 and 1."""
FLAT = 1e-6
"""Smallest change of the density, in nats, far from a mode in the direction of each parameter."""
NEAR, MAX_AT_EDGE = 0.01, 0.01
"""Distance from an edge within which a parameter is moved halfway to it, and the nats that this may gain."""
APART = 0.02
"""Largest distance between the ends of climbs of equal height, in the units of the starts."""
STARTS = (1.0, 0.1, 10.0, 1e-3)
"""Starts of positive parameters, as multiples of the guess."""
AT_EDGE = 1e-6
"""Distance from 0 within which a positive parameter is also tried at 0: the edge may be a mode."""
LOWEST = -1e250
"""Replaces a log density of minus infinity, with which an optimizer cannot compute."""

Height = Callable[[np.ndarray], float]
Slope = Callable[[np.ndarray], np.ndarray]
Bounds = tuple[float, float]
POSITIVE: Bounds = (0.0, math.inf)


def run(problem: Problem, flat: bool) -> Outcome:
    """Maximize the density of the outer parameters given the data, or with ``flat`` the likelihood.

    Raises
    ------
    NumericalError
        When there is no maximum, as the climb runs away.
    """
    model = problem.model_as(Conditional)
    with problem.clock.phase("run"):
        places = _Places(model, problem)
        height = places.height(flat)
        slope = places.slope(flat)
        climbs = [_climbed(height, start, places.bounds, slope) for start in places.starts()]
        far = _Far(places, Surface(_about_guess(model, problem.data), problem.data, flat))
        place, lines = far.highest(max(climbs, key=height))
        _refuse_runaway(places, place)
        checks = [
            *_checks_of_height(places, height, place),
            _check_all_matter(places, height, [place, *climbs]),
            boundary_check(lines),
        ]
    joint, likelihood = places.height(False)(place), places.height(True)(place)
    facts = {"mode_space": SPACE, "log_likelihood": likelihood, "log_joint": joint}
    facts |= {"at_edge": at_edge} if (at_edge := places.at_edge(place)) else {}
    draws = {name: np.full((1, 1), value) for name, value in places.values(place).items()}
    return Outcome(draws, "L-BFGS-B", checks, facts)


class _Places:
    """Outer parameters scaled to about 1: real ones in widths about the guess, positive ones relative to the guess."""

    def __init__(self, model: Conditional, problem: Problem) -> None:
        self._model, self._data = model, problem.data
        guesses = model.outer_guess(problem.data)
        columns = [_axis(prior.scale, *guesses[name]) for name, prior in model.outer_priors.items()]
        origin, unit, self._begin, self.bounds = zip(*columns, strict=True)
        shapes: dict[str, tuple[int, ...]] = {name: () for name in model.outer}
        real = (REAL,) * len(shapes)
        self._coordinates = OuterCoordinates(shapes, tuple(shapes), real, np.array(origin), np.array(unit))

    def values(self, place: np.ndarray) -> dict[str, float]:
        """Return the outer parameters at a place."""
        return {name: float(value) for name, value in self._coordinates.outer(place).items()}

    def at_edge(self, place: np.ndarray) -> list[str]:
        """Name the parameters that are at an end of their range at a place."""
        named = zip(self._model.outer, place, self.bounds, strict=True)
        return [name for name, value, (low, high) in named if not low < value < high]

    def of(self, values: Params) -> np.ndarray:
        """Return the place of outer parameters."""
        low, high = np.transpose(self.bounds)
        return np.clip(self._coordinates.places(values), low, high)

    def height(self, flat: bool) -> Height:
        """Return the log likelihood, unless ``flat`` plus the log prior, as a function of the place."""

        def height(place: np.ndarray) -> float:
            outer = self.values(place)
            with np.errstate(all="ignore"):  # the density is 0 where numbers overflow
                value = float(self._model.log_marginal(outer, self._data))
                value += 0.0 if flat else float(self._model.log_outer_prior(outer))
            return value if math.isfinite(value) else -math.inf

        return height

    def slope(self, flat: bool) -> Slope | None:
        """Return the derivatives of the height, None if the model has none of its marginal density."""
        begin = self.values(np.array(self._begin))
        if self._model.marginal_slopes(begin, self._data) is None:
            return None

        def slope(place: np.ndarray) -> np.ndarray:
            outer = self.values(place)
            with np.errstate(all="ignore"):
                of_density = self._model.marginal_slopes(outer, self._data) or {}
                of_prior = [0.0 if flat else self._prior_slope(name, x) for name, x in outer.items()]
                slopes = (np.array([of_density[name] for name in outer]) + of_prior) * self._coordinates.unit
            return np.asarray(np.nan_to_num(slopes, posinf=0.0, neginf=0.0))

        return slope

    def _prior_slope(self, name: str, x: float) -> float:
        prior, step = self._model.outer_priors[name], 1e-6 * max(abs(x), 1e-300)
        return float((prior.logpdf(x + step) - prior.logpdf(x - step)) / (2 * step))

    def starts(self) -> Iterator[np.ndarray]:
        """Yield the starts of the climbs: the guess, and positive parameters far from it."""
        is_positive = np.array([bounds == POSITIVE for bounds in self.bounds])
        yield from (np.where(is_positive, factor, self._begin) for factor in STARTS)


def _axis(scale: Scale, value: float, width: float) -> tuple[float, float, float, Bounds]:
    """Return origin, unit, start and bounds of a parameter's places about its guess."""
    low, high, value = scale.low, scale.high, scale.inside(value)
    if math.isinf(low):
        return value, width, 0.0, (-math.inf, math.inf)
    if math.isinf(high):
        return low, value - low, 1.0, POSITIVE
    return low, high - low, (value - low) / (high - low), (INSIDE, 1 - INSIDE)


def _climbed(height: Height, start: np.ndarray, bounds: Sequence[Bounds], slope: Slope | None = None) -> np.ndarray:
    """Climb from a start, and again from its end, where the finite differences are finer."""
    place, precise = start, {"ftol": 1e-15, "gtol": 1e-9}
    jac: Any = "3-point" if slope is None else (lambda place, height: -slope(place))
    for _ in range(2):
        climb = scipy.optimize.minimize(_depth, place, (height,), jac=jac, bounds=bounds, options=precise)
        place = climb.x
    is_positive = np.array([interval == POSITIVE for interval in bounds])
    edge = np.where(is_positive & (place <= AT_EDGE), 0.0, place)
    highest = height(place)
    return edge if height(edge) >= highest - _rounding(highest) else np.asarray(place)


def _rounding(height: float) -> float:
    return 16 * float(np.finfo(np.float64).eps) * max(1.0, abs(height))


def _depth(place: np.ndarray, height: Height) -> float:
    return -max(height(place), LOWEST)


def _refuse_runaway(places: _Places, place: np.ndarray) -> None:
    for name, x in zip(places.values(place), place, strict=True):
        if abs(x) > FAR:
            raise NumericalError(
                f"no mode: the density grows as {name} runs off to {math.copysign(math.inf, x):g}", "no_maximum"
            )


def _checks_of_height(places: _Places, height: Height, place: np.ndarray) -> list[Check]:
    """Check that no place near a mode is higher, nor one nearer to the edge, where the density may be unbounded."""
    highest = height(place)
    rounding = _rounding(highest)
    gain = max(height(near) for near in _near(place, places.bounds)) - highest
    gain = gain - rounding if rounding <= MAX_AT_EDGE else rounding  # larger rounding hides gains of nats
    at_edge = height(_towards_edges(place, places.bounds)) - highest
    return [
        at_most("small_step_gain", max(gain, 0.0), 0.0),
        at_most("edge_gain", max(at_edge, 0.0), MAX_AT_EDGE),
    ]


def _check_all_matter(places: _Places, height: Height, climbs: Sequence[np.ndarray]) -> Check:
    """Check that every parameter changes the density at the mode, and that no climb reached an equal mode elsewhere.

    The data may not determine a parameter, such as the correlation with an effect that does not vary, or two spreads
    that the data cannot separate.
    """
    place = max(climbs, key=height)
    apart = np.ptp([climb for climb in climbs if height(climb) >= height(place) - FLAT], axis=0) > APART
    flat = []
    for i, (name, bounds) in enumerate(zip(places.values(place), places.bounds, strict=True)):
        far = [np.where(np.arange(len(place)) == i, value, place) for value in _far_values(place[i], *bounds)]
        if apart[i] or max(abs(height(moved) - height(place)) for moved in far) < FLAT:
            flat.append(name)
    named = f": {', '.join(flat)}" if flat else ""
    check = at_most(f"not_identified{named}", len(flat), 0)
    return check.or_caveat(f"not identified: {', '.join(flat)}")


@dataclass(frozen=True, eq=False)
class _Far:
    """The surface in its coordinates, on which a mode is compared with places far out."""

    places: _Places
    surface: Surface

    def highest(self, place: np.ndarray) -> tuple[np.ndarray, list[str]]:
        """Return the highest place after looking far out, and for each parameter without a maximum the reason.

        A mode may lie on an edge, so that only sides without an end are looked at. A parameter that matters on neither
        side is left to the check of parameters that are not identified.
        """
        x, sides = outward(self.surface, begin := self._coordinates_of(place), self._climb)
        lines = []
        for entry, (level_sides, scale) in enumerate(zip(sides, self.surface.coordinates.scales, strict=True)):
            level = [side for side in level_sides if side > 0 or math.isinf(scale.low)]
            if not scale.has_ends and len(level_sides) == 1 and level:
                lines.append(levels_off(self.surface, entry, level))
        return (place if x is begin else self._place_of(x)), lines

    def _climb(self, x: np.ndarray) -> np.ndarray:
        places, flat = self.places, self.surface.flat
        return self._coordinates_of(_climbed(places.height(flat), self._place_of(x), places.bounds, places.slope(flat)))

    def _coordinates_of(self, place: np.ndarray) -> np.ndarray:
        coordinates = self.surface.coordinates
        with np.errstate(divide="ignore"):
            x = coordinates.places({name: np.asarray(value) for name, value in self.places.values(place).items()})
        return np.clip(x, *coordinates.bounds())

    def _place_of(self, x: np.ndarray) -> np.ndarray:
        return self.places.of(self.surface.coordinates.outer(x))


def _about_guess(model: Conditional, data: Arrays) -> SurfaceCoordinates:
    """Return coordinates that are 0 at the model's guess, of real parameters in widths of the guess."""
    coordinates = SurfaceCoordinates.of(model, tuple(model.outer), model=model, weak=np.zeros(len(model.outer)))
    origin, widths = coordinates.about(model.outer_guess(data))
    return replace(coordinates, origin=origin, unit=np.where(coordinates.logarithmic, 1.0, widths))


def _far_values(value: float, low: float, high: float) -> tuple[float, ...]:
    """Return values far from a value, inside the bounds."""
    if math.isfinite(high):
        return 0.25, 0.75
    return (value + max(1.0, value) / 2,) if math.isfinite(low) else (value - 0.5, value + 0.5)


def _towards_edges(place: np.ndarray, bounds: Sequence[Bounds]) -> np.ndarray:
    """Return the place moved halfway to each near edge, where an unbounded density is higher by nats."""
    low, high = np.transpose(bounds)
    low, high = np.where(low == INSIDE, 0.0, low), np.where(high == 1 - INSIDE, 1.0, high)
    place = np.where(place - low < NEAR, (place + low) / 2, place)
    return np.where(high - place < NEAR, (place + high) / 2, place)


def _near(place: np.ndarray, bounds: Sequence[Bounds]) -> Iterator[np.ndarray]:
    """Yield the places a small step away along all axes and diagonals, inside the bounds."""
    low, high = np.transpose(bounds)
    for direction in itertools.product((-1.0, 0.0, 1.0), repeat=len(place)):
        yield np.clip(place + STEP * np.maximum(np.abs(place), STEP) * np.array(direction), low, high)
