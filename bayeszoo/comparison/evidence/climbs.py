"""Climbs of an evidence whose value alone is computed, from several starts inside bounds; and where it levels off."""

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
"""Nats by which the evidence must fall on the way from the maximum to an end of the search."""
SAME = 1e-5
"""Nats within which climbs have reached the best."""
STEP, GAIN = 1e-2, 1e-8
"""Step in a coordinate by which a maximum is tried, and the nats that it may gain."""


class Evidence(ABC):
    """The log evidence by coordinates (D,), each with a label and two ends at infinite coordinates."""

    noun: str
    """What it is called."""

    @property
    @abstractmethod
    def labels(self) -> list[str]:
        """The names of the coordinates."""

    @property
    @abstractmethod
    def ends(self) -> list[tuple[float, float]]:
        """The values at the two ends of each coordinate."""

    @abstractmethod
    def height(self, x: np.ndarray) -> float:
        """Return the log evidence, -inf where there is none."""

    def slope(self, x: np.ndarray) -> np.ndarray | None:
        """Return the gradient; None: by differences."""
        return None


class Climbed(NamedTuple):
    """Where the best climb ended and how high, how many reached it, and what the evidence does at its ends.

    ``boundary`` says of each entry without a maximum why, ``limits`` which end these have where others have one.
    """

    x: np.ndarray
    height: float
    reached: int
    boundary: dict[str, str]
    limits: dict[str, float]
    checks: list[Check]


def climbed(surface: Evidence, starts: Sequence[np.ndarray], bounds: scipy.optimize.Bounds) -> Climbed:
    """Climb from each start, and look from the highest end towards both ends of each coordinate."""
    climbs = sorted((_climb(surface, start, bounds) for start in starts), key=lambda end: -end[1])
    best, height = climbs[0]
    reached = sum(height - other <= SAME for _, other in climbs)
    there, best = _at_ends(surface, best, height, bounds)
    limits = there if len(there) < len(best) else {}
    caveat = f"in the limit {', '.join(f'{label} -> {end:g}' for label, end in limits.items())}" if limits else ""
    lines = {label: without_maximum(surface.noun, label, end) for label, end in there.items()}
    steps = [surface.height(best + sign * STEP * axis) for axis in np.eye(len(best)) for sign in (-1, 1)]
    checks = [
        boundary_check([*lines.values()]).or_caveat(caveat),
        at_least("restarts", reached, 2),
        at_most("small_step_gain", max(max(steps) - height, 0.0), LEVEL if there else GAIN),
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
    """Return the ends towards which the evidence does not fall, the other entries as they are; and move them there.

    So does a length of a feature that does not matter, towards infinity: the evidence levels off.
    """
    level = dict[str, float]()
    for i, (label, ends) in enumerate(zip(surface.labels, surface.ends, strict=True)):
        for far, end in zip((bounds.lb[i], bounds.ub[i]), ends, strict=True):
            there = np.where(np.arange(len(best)) == i, far, best)
            if surface.height(there) > height - LEVEL:
                level[label], best = end, there
    return level, best
