"""Unbounded coordinates of a number with or without bounds: the number itself, its logarithm, or a logit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

LARGEST = 345.0
"""Log of the largest numbers for which moments are checked, 1e150: their squares do not overflow."""
FAR = 200.0
"""Distance from the centre, in log units, that counts as far."""


@dataclass(frozen=True)
class Scale:
    """The range of a number, and unbounded coordinates of it.

    The coordinate is the number itself without bounds, its log above a lower bound, and its logit between two bounds;
    with ``logarithmic`` the logit of log(number - above) between the logs of the bounds.
    """

    low: float = -math.inf
    high: float = math.inf
    logarithmic: bool = False
    above: float = 0.0

    @cached_property
    def _of_log(self) -> Scale:
        return Scale(math.log(self.low - self.above), math.log(self.high - self.above))

    @property
    def has_ends(self) -> bool:
        """Whether the number lies between two bounds."""
        return math.isfinite(self.high)

    def place(self, value: Any) -> Any:
        """Return the coordinate of a value."""
        if self.logarithmic:
            return self._of_log.place(np.log(np.subtract(value, self.above)))
        if math.isinf(self.low):
            return np.asarray(value)
        if math.isinf(self.high):
            return np.log(np.subtract(value, self.low))
        return scipy.special.logit(np.subtract(value, self.low) / (self.high - self.low))

    def value(self, place: Any) -> Any:
        """Return the value at a coordinate."""
        if self.logarithmic:
            return np.clip(self.above + np.exp(self._of_log.value(place)), self.low, self.high)
        if math.isinf(self.low):
            return np.asarray(place)
        if math.isinf(self.high):
            return self.low + np.exp(place)
        inside = self.low + (self.high - self.low) * scipy.special.expit(place)
        return np.clip(inside, self.low, self.high)  # rounding must not cross a bound

    def complement(self, place: object) -> np.ndarray:
        """Return the distance to the upper bound of the value at a coordinate."""
        if self.logarithmic:
            return -(self.high - self.above) * np.expm1(-self._of_log.complement(place))
        return (self.high - self.low) * scipy.special.expit(-np.asarray(place))

    def log_slope(self, place: np.ndarray) -> np.ndarray:
        """Return the log derivative of the value with respect to its coordinate."""
        if self.logarithmic:
            return self._of_log.log_slope(place) + self._of_log.value(place)
        if math.isinf(self.low):
            return np.zeros(np.shape(place))
        if math.isinf(self.high):
            return np.asarray(place)
        return math.log(self.high - self.low) + scipy.special.log_expit(place) + scipy.special.log_expit(-place)

    def limits(self) -> tuple[float, float]:
        """Return the coordinates between which the value and its distance to a bound are finite and nonzero."""
        largest = math.exp(LARGEST) if math.isinf(self.low) else 2 * LARGEST
        return -largest, largest

    def far(self, centre: float, side: int) -> tuple[list[float], list[float]]:
        """Return two coordinates far from a centre on one side, the second twice as far, and their log slopes.

        Slopes are of the coordinate by the log distance. The distance is `LARGEST`, or `FAR` if the centre is near it.
        """
        if math.isinf(self.low):
            return [side * math.exp(LARGEST / 2), side * math.exp(LARGEST)], [LARGEST / 2, LARGEST]
        distance = max(LARGEST - side * centre, FAR)
        return [centre + side * distance / 2, centre + side * distance], [0.0, 0.0]

    def holds(self, other: Scale) -> bool:
        """Say whether the range of another scale lies within this one."""
        return self.low <= other.low and other.high <= self.high

    def inside(self, value: float) -> float:
        """Return the value if it lies between the bounds, else another value that does."""
        if self.low < value < self.high:
            return value
        return float(self.value(0.0)) if self.has_ends else self.low + (abs(value - self.low) or 1.0)


REAL, POSITIVE, UNIT = Scale(), Scale(0.0), Scale(0.0, 1.0)
