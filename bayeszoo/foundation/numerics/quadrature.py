"""Integrals over a few bounded coordinates, on grids that are dense around peaks and reach the bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

Function = Callable[[np.ndarray], np.ndarray]
"""A log density at points (P, D), shape (P,)."""

FINER, MOST_TABULATED = 64, 2**15
"""Factor by which tabulated distribution functions are finer than the grid, and their largest number of cells."""
DEEPEST = 700.0
"""Nats below the peak at which a density counts as 0."""
WORST = -1e250
"""A finite stand-in for a log density of minus infinity, which optimizers cannot handle."""
STEPS = 200
"""Most Newton steps or bisections."""
STEP = 1e-6
"""Step of slopes by differences, as a share of the distance between bounds."""
_ENDS = np.array([3 / 8, 7 / 6, 23 / 24])


@dataclass(frozen=True, eq=False)
class Rule:
    """Points and weights of an integral over one coordinate u, at equal distances in t(u) = sum asinh((u - c) / s).

    The points are dense where u is within a few scales s of a centre c, and reach the bounds in steps that grow. Where
    there is one centre, u = c + s sinh(t). The weights are Gregory's (Press et al., Numerical Recipes, equation
    4.1.14): the error is of fourth order where the integrand does not vanish at a bound; where it does they are the
    trapezoidal rule, which converges exponentially.
    """

    t: np.ndarray
    """Shape (P,), an odd number, at least 13."""
    points: np.ndarray
    weights: np.ndarray
    """Weights of the integrand at the points."""
    centres: np.ndarray
    """Shape (K,)."""
    scales: np.ndarray

    @classmethod
    def between(cls, low: float, high: float, centres: Any, scales: Any, intervals: int) -> Rule:
        """Return a rule with an even number of intervals, at least 12, between bounds, dense around the centres."""
        centres, scales = np.atleast_1d(centres).astype(np.float64), np.atleast_1d(scales).astype(np.float64)
        first, last = np.sum(np.arcsinh((np.array([[low], [high]]) - centres) / scales), axis=1)
        t = np.linspace(first, last, intervals + 1)
        points = _places(t, centres, scales)
        points[[0, -1]] = low, high
        step = (last - first) / intervals
        return cls(t, points, _gregory(len(t)) * step * _slope(points, centres, scales), centres, scales)

    def halved(self) -> Rule:
        """Return the rule for the same integral with every other point."""
        weights = 2 * (self.weights / _gregory(len(self.t)))[::2] * _gregory(len(self.t[::2]))
        return replace(self, t=self.t[::2], points=self.points[::2], weights=weights)

    def at(self, t: np.ndarray) -> np.ndarray:
        """Return u at any t."""
        slope = _slope(self.points, self.centres, self.scales)
        guess = scipy.interpolate.CubicHermiteSpline(self.t, self.points, slope)(t)
        return _places(np.asarray(t), self.centres, self.scales, guess)

    @property
    def log_slope(self) -> np.ndarray:
        """The log of du/dt at the points, which turns a density of u into one of t."""
        return np.asarray(np.log(_slope(self.points, self.centres, self.scales)))

    def inverse(self, heights: np.ndarray, levels: np.ndarray, finer: int) -> np.ndarray:
        """Return t where distributions of t, one for each level or one for all, reach levels (N,).

        ``heights``, of shape (N, P) or (1, P), are log densities of t at the points.
        """
        t = np.linspace(self.t[0], self.t[-1], finer * (len(self.t) - 1) + 1)
        density = np.exp(scipy.interpolate.CubicSpline(self.t, heights, axis=1)(t))
        below = np.cumsum((density[:, 1:] + density[:, :-1]) / 2, axis=1)
        rows = np.arange(len(levels)) if len(below) > 1 else np.zeros(len(levels), dtype=np.int64)
        target = levels * below[rows, -1]
        is_shared = len(below) == 1
        cell = np.searchsorted(below[0], target) if is_shared else (below < target[:, None]).sum(axis=1)
        before = np.where(cell > 0, below[rows, cell - 1], 0.0)
        return np.asarray(t[cell] + (target - before) / (below[rows, cell] - before) * (t[1] - t[0]))

    def distribution(self, log_density: np.ndarray) -> Distribution:
        """Return the distribution with this log density in u at the points, up to a constant."""
        heights = log_density + self.log_slope
        heights = np.maximum(heights - np.max(heights), -DEEPEST)
        spline = scipy.interpolate.make_interp_spline(self.t, heights, k=5)
        intervals = len(self.t) - 1
        t = np.linspace(self.t[0], self.t[-1], max(4, min(FINER, MOST_TABULATED // intervals)) * intervals + 1)
        below = scipy.integrate.cumulative_simpson(np.exp(spline(t)), x=t, initial=0.0)
        return Distribution(self.at(t), below / below[-1])


@dataclass(frozen=True, eq=False)
class Distribution:
    """A distribution function tabulated on a fine grid: points and probabilities, both of shape (Q,)."""

    points: np.ndarray
    below: np.ndarray

    def cdf(self, point: Any) -> Any:
        """Return the probability below a point."""
        return np.interp(point, self.points, self.below)

    def quantile(self, probability: Any) -> Any:
        """Return the quantile of a probability."""
        return np.interp(probability, self.below, self.points)


def _gregory(size: int) -> np.ndarray:
    """Return the weights of ``size`` points at unit distance; Press et al., equation 4.1.14."""
    weights = np.ones(size)
    weights[:3], weights[-3:] = _ENDS, _ENDS[::-1]
    return weights


def _slope(u: np.ndarray, centres: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return du/dt at u."""
    return np.asarray(1 / np.sum(1 / np.hypot(scales, u[..., None] - centres), axis=-1))


def _places(t: np.ndarray, centres: np.ndarray, scales: np.ndarray, near: np.ndarray | None = None) -> np.ndarray:
    """Return u at any t: where the mean of asinh((u - c) / s) over K centres is t / K.

    The solution lies between those for single centres. Newton steps that stay between the bounds are taken; else, and
    every third time, bisection, as Newton steps may oscillate for long.
    """
    single_solutions = centres + scales * np.sinh(t[..., None] / len(centres))
    low, high = single_solutions.min(axis=-1), single_solutions.max(axis=-1)
    u = (low + high) / 2 if near is None else np.clip(near, low, high)
    for step in range(STEPS):
        excess, slope = np.sum(np.arcsinh((u[..., None] - centres) / scales), axis=-1) - t, _slope(u, centres, scales)
        rounding = np.spacing(8 * np.maximum(np.abs(u), np.max(np.abs(centres)))) / slope
        is_far = np.abs(excess) > rounding + np.spacing(32 * (1 + np.abs(t)))
        if not is_far.any():
            break
        low, high = np.where(excess <= 0, u, low), np.where(excess >= 0, u, high)
        newton = u - excess * slope
        is_inside = (newton >= low) & (newton <= high) & (step % 3 < 2)
        u = np.where(is_far, np.where(is_inside, newton, (low + high) / 2), u)
    return np.asarray(u)


def peak(log_density: Function, low: np.ndarray, high: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a maximum, climbed to from a start, and the standard deviations of the Gaussian with its curvature.

    Both only determine where points are needed; results do not depend on them.
    """
    width, moves = high - low, STEP * np.eye(len(low))

    def depths(shares: np.ndarray) -> np.ndarray:
        values = log_density(low + width * shares)
        return np.where(np.isfinite(values), -values, -WORST)

    def with_slope(share: np.ndarray) -> tuple[float, np.ndarray]:
        sides = np.where(share < 0.5, 1.0, -1.0)  # towards the inside of the bounds
        first, *moved = depths(np.vstack([share, share + sides[:, None] * moves]))
        return float(first), (np.array(moved) - first) / (STEP * sides)

    begin, bounds = (start - low) / width, [(0.0, 1.0)] * len(low)
    optimum = scipy.optimize.minimize(
        with_slope, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-12}
    )
    centre = optimum.x if optimum.fun <= depths(begin[None])[0] else begin
    scale = np.full(len(low), 2e-3)
    for _ in range(4):  # the step of the differences must exceed rounding and stay within the peak
        scale = np.minimum(_sd(depths, centre, scale / 2), 0.1)
    return low + width * centre, width * np.clip(scale, 1e-9, 0.1)


def _sd(depths: Function, centre: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the square roots of the diagonal of the inverse second derivatives; 0.1 if not positive definite."""
    size, moves, signs = len(centre), np.diag(steps), [(a, b) for a in (1, -1) for b in (1, -1)]
    places = [centre + a * moves[i] + b * moves[j] for i in range(size) for j in range(size) for a, b in signs]
    corners = depths(np.array(places)).reshape(size, size, 4) * [a * b for a, b in signs]
    with np.errstate(over="ignore", invalid="ignore"):
        hessian = np.sum(corners, axis=-1) / (4 * np.outer(steps, steps))
    lowest = np.linalg.eigvalsh(hessian)[0] if np.isfinite(hessian).all() else -1.0
    return np.sqrt(np.diag(np.linalg.inv(hessian))) if lowest > 0 else np.full(size, 0.1)
