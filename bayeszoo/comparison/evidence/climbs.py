"""Maxima of an evidence within bounds, by climbs from several starts; and where the evidence levels off."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy

from bayeszoo.foundation.gate import Check, at_least, at_most
from bayeszoo.inference.methods.modes.surface import boundary_check, without_maximum

LEVEL = 1e-3
"""Nats by which the evidence must fall from the maximum to an end of the search."""
SAME = 1e-5
"""A climb reached the best one if it ended within this many nats of it."""
STEP, GAIN = 1e-2, 1e-8
"""Step in a coordinate that tests a maximum, and the most nats that it may gain."""


class Evidence(ABC):
    """The log evidence as a function of coordinates (D,); each has a label and a value at either infinite end."""

    noun: str
    """The name of the quantity in messages."""

    @property
    @abstractmethod
    def labels(self) -> list[str]:
        """The names of the coordinates."""

    @property
    @abstractmethod
    def ends(self) -> list[tuple[float, float]]:
        """The values at the lower and upper end of each coordinate."""

    @abstractmethod
    def height(self, x: np.ndarray) -> float:
        """Return the log evidence, -inf where it does not exist."""

    def slope(self, x: np.ndarray) -> np.ndarray | None:
        """Return the gradient, or None to take differences."""
        return None


class Climbed(NamedTuple):
    """The end of the best climb and its height, how many climbs reached it, and where there is no maximum.

    ``boundary`` gives the reason for each coordinate without a maximum, ``limits`` the end that such a coordinate goes
    to if other coordinates have a maximum.
    """

    x: np.ndarray
    height: float
    reached: int
    boundary: dict[str, str]
    limits: dict[str, float]
    checks: list[Check]


def climbed(surface: Evidence, starts: Sequence[np.ndarray], bounds: scipy.optimize.Bounds) -> Climbed:
    """Climb from each start, and follow the evidence from the best end to both ends of each coordinate."""
    climbs = sorted((_climb(surface, start, bounds) for start in starts), key=lambda end: -end[1])
    best, height = climbs[0]
    reached = sum(height - other <= SAME for _, other in climbs)
    level_ends, best = _at_ends(surface, best, height, bounds)
    limits = level_ends if len(level_ends) < len(best) else {}
    caveat = f"in the limit {', '.join(f'{label} -> {end:g}' for label, end in limits.items())}" if limits else ""
    lines = {label: without_maximum(surface.noun, label, end) for label, end in level_ends.items()}
    steps = [surface.height(best + sign * STEP * axis) for axis in np.eye(len(best)) for sign in (-1, 1)]
    checks = [
        boundary_check([*lines.values()]).or_caveat(caveat),
        at_least("restarts", reached, 2),
        at_most("small_step_gain", max(max(steps) - height, 0.0), LEVEL if level_ends else GAIN),
    ]
    return Climbed(best, height, reached, lines, limits, checks)


def _climb(surface: Evidence, start: np.ndarray, bounds: scipy.optimize.Bounds) -> tuple[np.ndarray, float]:
    start = np.clip(start, bounds.lb, bounds.ub)
    if not math.isfinite(surface.height(start)):
        return start, -math.inf

    def downhill(x: np.ndarray) -> np.ndarray:
        slope = surface.slope(x)
        assert slope is not None  # else differences are taken
        return -slope

    jac = "2-point" if surface.slope(start) is None else downhill
    options = {"ftol": 1e-13, "gtol": 1e-6}
    end = scipy.optimize.minimize(
        lambda x: min(-surface.height(x), 1e300), start, method="L-BFGS-B", jac=jac, bounds=bounds, options=options
    )
    return end.x, -float(end.fun)


def _at_ends(
    surface: Evidence, best: np.ndarray, height: float, bounds: scipy.optimize.Bounds
) -> tuple[dict[str, float], np.ndarray]:
    """Return the ends towards which the evidence does not fall, other coordinates held, and the point moved to them.

    Such an end is an infinite length of an irrelevant feature, where the evidence levels off.
    """
    level_ends = dict[str, float]()
    for i, (label, ends) in enumerate(zip(surface.labels, surface.ends, strict=True)):
        for bound, end in zip((bounds.lb[i], bounds.ub[i]), ends, strict=True):
            moved = np.where(np.arange(len(best)) == i, bound, best)
            if surface.height(moved) > height - LEVEL:
                level_ends[label], best = end, moved
    return level_ends, best
