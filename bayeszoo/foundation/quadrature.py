"""Integrals over a few coordinates between bounds, by grids that are dense around a peak and end at the bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

Function = Callable[[np.ndarray], float]
"""A log density at a point of shape (D,)."""

FINER = 64
"""How many times finer than the grid distribution functions are tabulated."""
DEEPEST = 700.0
"""Nats below the peak from which a density is taken for as good as 0."""
WORST = -1e250
"""Stands for a log density of minus infinity; an optimizer cannot reckon with it."""
_ENDS = np.array([3 / 8, 7 / 6, 23 / 24])


@dataclass(frozen=True, eq=False)
class Rule:
    """Points and weights of an integral over one coordinate, u = centre + scale sinh(t) with t at equal distances.

    The points are dense where u is within a few scales of the centre, and reach the bounds in steps that grow. The
    weights are Gregory's (Press et al., Numerical Recipes, equation 4.1.14): the error is of fourth order where the
    integrand does not vanish at a bound; where it does they are the trapezoidal rule, which converges exponentially.
    """

    t: np.ndarray
    """Shape (P,), an odd number, at least 13."""
    points: np.ndarray
    weights: np.ndarray
    """What the integrand is multiplied by at each of the points."""
    centre: float
    scale: float

    @classmethod
    def between(cls, low: float, high: float, centre: float, scale: float, intervals: int) -> Rule:
        """Lay an even number of intervals, at least 12, between bounds."""
        first, last = np.arcsinh((np.array([low, high]) - centre) / scale)
        t = np.linspace(first, last, intervals + 1)
        points = centre + scale * np.sinh(t)
        points[[0, -1]] = low, high
        step = (last - first) / intervals
        return cls(t, points, _gregory(len(t)) * step * scale * np.cosh(t), float(centre), float(scale))

    def halved(self) -> Rule:
        """Return the rule for the same integral by every other point."""
        weights = 2 * (self.weights / _gregory(len(self.t)))[::2] * _gregory(len(self.t[::2]))
        return replace(self, t=self.t[::2], points=self.points[::2], weights=weights)

    def at(self, t: np.ndarray) -> np.ndarray:
        """Return the places of any t."""
        return np.asarray(self.centre + self.scale * np.sinh(t))

    def inverse(self, heights: np.ndarray, levels: np.ndarray, finer: int) -> np.ndarray:
        """Return t where distributions of t, one a level or one for all, reach levels (N,).

        ``heights``, of shape (N, P) or (1, P), are log densities of t at the points.
        """
        t = np.linspace(self.t[0], self.t[-1], finer * (len(self.t) - 1) + 1)
        density = np.exp(scipy.interpolate.CubicSpline(self.t, heights, axis=1)(t))
        below = np.cumsum((density[:, 1:] + density[:, :-1]) / 2, axis=1)
        rows = np.arange(len(levels)) if len(below) > 1 else np.zeros(len(levels), dtype=np.int64)
        target = levels * below[rows, -1]
        cell = (below[rows] < target[:, None]).sum(axis=1)
        before = np.where(cell > 0, below[rows, cell - 1], 0.0)
        return np.asarray(t[cell] + (target - before) / (below[rows, cell] - before) * (t[1] - t[0]))

    def distribution(self, log_density: np.ndarray) -> Distribution:
        """Return the distribution whose log density in the coordinate is given at the points, but for a constant."""
        heights = log_density + np.log(np.cosh(self.t))
        heights = np.maximum(heights - np.max(heights), -DEEPEST)
        spline = scipy.interpolate.make_interp_spline(self.t, heights, k=5)
        t = np.linspace(self.t[0], self.t[-1], FINER * (len(self.t) - 1) + 1)
        below = scipy.integrate.cumulative_simpson(np.exp(spline(t)), x=t, initial=0.0)
        return Distribution(self.at(t), below / below[-1])


@dataclass(frozen=True, eq=False)
class Distribution:
    """A distribution function tabulated on a fine grid of points, both of shape (Q,)."""

    points: np.ndarray
    below: np.ndarray

    def cdf(self, point: Any) -> Any:
        """Return the probability below a point."""
        return np.interp(point, self.points, self.below)

    def quantile(self, probability: Any) -> Any:
        """Return the point below which so much probability lies."""
        return np.interp(probability, self.below, self.points)


def _gregory(size: int) -> np.ndarray:
    """Return the weights of so many points at unit distance; Press et al., equation 4.1.14."""
    weights = np.ones(size)
    weights[:3], weights[-3:] = _ENDS, _ENDS[::-1]
    return weights


def peak(log_density: Function, low: np.ndarray, high: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Climb from a start, and return where that ends and the standard deviations of the Gaussian with its curvature.

    Both only say where points are needed; no result is taken from them.
    """
    width = high - low

    def depth(share: np.ndarray) -> float:
        value = log_density(low + width * share)
        return -value if math.isfinite(value) else -WORST

    begin, options = (start - low) / width, {"eps": 1e-6, "ftol": 1e-12}
    optimum = scipy.optimize.minimize(depth, begin, method="L-BFGS-B", bounds=[(0.0, 1.0)] * len(low), options=options)
    centre = optimum.x if optimum.fun <= depth(begin) else begin
    scale = np.full(len(low), 2e-3)
    for _ in range(4):  # the step of the differences must neither drown in rounding nor leave the peak
        scale = _sd(depth, centre, scale / 2)
    return low + width * centre, width * np.clip(scale, 1e-9, 0.1)


def _sd(depth: Function, centre: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the square roots of the diagonal of the inverse second derivatives; 0.1 where there is none."""
    size, moves = len(centre), np.diag(steps)
    hessian = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            corners = [depth(centre + a * moves[i] + b * moves[j]) * a * b for a in (1, -1) for b in (1, -1)]
            hessian[i, j] = math.fsum(corners) / (4 * steps[i] * steps[j])
    lowest = np.linalg.eigvalsh(hessian)[0] if np.isfinite(hessian).all() else -1.0
    return np.sqrt(np.diag(np.linalg.inv(hessian))) if lowest > 0 else np.full(size, 0.1)
