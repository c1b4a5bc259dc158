"""A density of one to three numbers on a grid: its integral, its marginal distributions, and draws from it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy

from bayeszoo.foundation.numerics.quadrature import DEEPEST, Distribution, Rule, peak

Columns = Sequence[np.ndarray] | np.ndarray
"""Coordinates along each axis; the grid has all combinations."""

INTERVALS = {1: (64, 4096), 2: (32, 512), 3: (16, 256)}
"""Initial and largest number of intervals of each axis, by the number of axes."""
SCAN = {1: 257, 2: 17, 3: 9}
"""Points of each axis in the first scan for peaks."""
MOST_PEAKS, PEAK_DEPTH = 4, 30.0
"""Most peaks of each axis around which points are dense, and nats below the maximum at which peaks are ignored."""
SMALLEST, AIM = 1.2, 1e-10
"""Smallest factor from one grid over three axes to the next, and the error from whose geometric convergence it follows:
a factor of 2 may take eight times as long as needed."""
SKIPPED = 45.0
"""Nats below the maximum at which a coarser grid replaces the density of three coordinates."""
FINER = 8
"""Factor by which the distribution for draws of an axis, given earlier axes, is finer than the grid."""
LEVELS = np.array([0.025, 0.25, 0.5, 0.75, 0.975])
CHUNK = 500
"""Draws in one block, to bound memory."""


Tilt = Callable[[np.ndarray], np.ndarray]
"""A log density, or the log of a factor of it, at points (P, D), shape (P,)."""
Limits = tuple[Any, Any]
"""The smallest and the largest coordinate of each axis."""
UNBOUNDED: Limits = (-math.inf, math.inf)


class Integrand(ABC):
    """A density in D coordinates, between ``low`` and ``high``, each of shape (D,)."""

    names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray
    finer: int = 1
    """Factor of the largest number of `INTERVALS`, for densities with corners."""
    begin: int = 0
    """Initial number of intervals of each axis, if not that of `INTERVALS`."""

    @abstractmethod
    def log_density(self, points: np.ndarray) -> np.ndarray:
        """Return the log density in the coordinates at points (P, D), -inf where it is 0; shape (P,)."""

    @abstractmethod
    def values(self, i: int, places: object) -> np.ndarray:
        """Return the i-th quantity at its coordinates; it increases with them."""

    @property
    def axes_of(self) -> Mapping[str, tuple[int, ...]]:
        """The axes of each quantity: one for a number, one for each entry of a vector."""
        return {name: (i,) for i, name in enumerate(self.names)}

    def quantities(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """Return all quantities at points (P, D)."""
        return {name: self.values(i, points[:, i]) for i, name in enumerate(self.names)}

    def heights(self, places: Columns) -> np.ndarray:
        """Return the log density at all combinations of coordinates, shape (len(places[0]), ...)."""
        return self.log_density(combinations(places)).reshape([len(column) for column in places])

    @property
    def climbed(self) -> Sequence[np.ndarray]:
        """Additional starting points (D,) of the search for peaks, as a scan may miss a narrow one."""
        return ()

    @property
    def tilts(self) -> Sequence[Tilt]:
        """Log factors of the density in the integrands of moments, which may peak elsewhere."""
        return ()

    def peaks(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return for each axis the centres and widths of peaks of the density and of its tilts."""
        points = combinations(np.linspace(self.low, self.high, SCAN[len(self.low)]).T)
        heights, tops = self.log_density(points), []
        for tilt in (_level, *self.tilts):
            tops += self._tops(points, heights + tilt(points), tilt)
        centres, scales = (np.stack(columns) for columns in zip(*tops, strict=True))
        return [_distinct(*axis) for axis in zip(centres.T, scales.T, strict=True)]

    def _tops(self, points: np.ndarray, heights: np.ndarray, tilt: Tilt) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return centres and widths of the peaks climbed to from the local maxima of a scan, highest first."""
        table = heights.reshape([SCAN[len(self.low)]] * len(self.low))
        is_top = np.ravel(table == scipy.ndimage.maximum_filter(table, size=3)) & (heights > -math.inf)
        order = np.argsort(-heights)
        starts = [*points[[i for i in order if is_top[i]][:MOST_PEAKS] or order[:1]]]
        tilted = lambda places: self.log_density(places) + tilt(places)  # noqa: E731
        ends = [peak(tilted, self.low, self.high, start) for start in (*starts, *self.climbed)]
        reached = tilted(np.array([centre for centre, _ in ends]))
        return [ends[i] for i in np.argsort(-reached) if not reached[i] < np.max(reached) - PEAK_DEPTH]


@dataclass(frozen=True, eq=False)
class Grid:
    """A log density at all combinations of the points of D rules, one for each axis."""

    rules: Sequence[Rule]
    log_density: np.ndarray

    @cached_property
    def halved(self) -> Grid:
        """The grid of every other point of each axis."""
        return Grid([rule.halved() for rule in self.rules], self.log_density[self.kept])

    def between(self, rules: Sequence[Rule]) -> np.ndarray:
        """Return the log density at all points of other rules of the same axes, by linear interpolation in t."""
        pairs = zip(self.rules, rules, strict=True)
        columns = [np.linspace(0, len(mine.t) - 1, len(other.t)) for mine, other in pairs]
        places = np.meshgrid(*columns, indexing="ij")
        return np.asarray(scipy.ndimage.map_coordinates(self.log_density, places, order=1, mode="nearest"))

    @property
    def kept(self) -> tuple[slice, ...]:
        """The indices of the points of the halved grid."""
        return (slice(None, None, 2),) * len(self.rules)

    @property
    def weights(self) -> np.ndarray:
        """The quadrature weight of every point."""
        return np.asarray(np.prod(np.meshgrid(*(rule.weights for rule in self.rules), indexing="ij"), axis=0))

    @cached_property
    def log_integral(self) -> float:
        """The log of the integral."""
        return float(scipy.special.logsumexp(self.log_density, b=self.weights))

    @property
    def error(self) -> float:
        """The change of the log integral when every other point is left out."""
        return abs(self.log_integral - self.halved.log_integral)

    @property
    def depth(self) -> float:
        """Nats by which the density at the bounds is below its maximum."""
        return float(np.max(self.log_density) - np.max(self.log_density[self.faces]))

    @cached_property
    def mass(self) -> np.ndarray:
        """The probability of every point."""
        return np.asarray(scipy.special.softmax(self.log_density + np.log(self.weights)))

    @property
    def faces(self) -> np.ndarray:
        """Whether a point is at a bound of any axis, or next to points of density 0, which may have overflowed."""
        inside = np.zeros(self.log_density.shape, dtype=bool)
        inside[(slice(1, -1),) * inside.ndim] = True
        is_known = self.log_density > -math.inf
        return ~(inside & scipy.ndimage.binary_erosion(is_known, np.ones((3,) * inside.ndim), border_value=1))

    def share(self, i: int) -> np.ndarray:
        """Return the probability of each point of the i-th axis."""
        return np.asarray(self.mass.sum(axis=tuple(j for j in range(len(self.rules)) if j != i)))

    def distribution(self, i: int) -> Distribution:
        """Return the distribution of the i-th coordinate."""
        with np.errstate(divide="ignore"):
            return self.rules[i].distribution(np.log(self.share(i) / self.rules[i].weights))

    @property
    def moved(self) -> float:
        """Largest change of quantiles of the coordinates, in probability, when the grid is halved."""
        pairs = [(self.distribution(i), self.halved.distribution(i)) for i in range(len(self.rules))]
        return float(max(np.max(np.abs(fine.cdf(coarse.quantile(LEVELS)) - LEVELS)) for fine, coarse in pairs))

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent points (count, D), each axis given the earlier ones."""
        levels = rng.random((count, len(self.rules)))
        return np.concatenate([self._placed(levels[i : i + CHUNK]) for i in range(0, count, CHUNK)])

    def _placed(self, levels: np.ndarray) -> np.ndarray:
        """Return the points at which the conditional distribution functions have these levels."""
        t = np.empty_like(levels)
        for i, rule in enumerate(self.rules):
            heights = self._marginal(i) if i == 0 else _interpolated(self._marginal(i), self.rules[:i], t[:, :i])
            t[:, i] = rule.inverse(np.atleast_2d(heights), levels[:, i], FINER)
        return np.stack([rule.at(t[:, i]) for i, rule in enumerate(self.rules)], axis=1)

    def _marginal(self, i: int) -> np.ndarray:
        """Return the log density of t of the axes up to the i-th, the later ones integrated out."""
        later_axes = tuple(range(i + 1, len(self.rules)))
        heights = (
            scipy.special.logsumexp(self.log_density, axis=later_axes, b=self._weights_of(later_axes))
            if later_axes
            else (self.log_density)
        )
        for axis, rule in enumerate(self.rules[: i + 1]):
            heights = heights + rule.log_slope.reshape([-1 if j == axis else 1 for j in range(i + 1)])
        return np.maximum(heights - np.max(heights), -DEEPEST)

    def _weights_of(self, axes: Sequence[int]) -> np.ndarray:
        columns = [rule.weights if i in axes else np.ones(1) for i, rule in enumerate(self.rules)]
        return np.asarray(np.prod(np.meshgrid(*columns, indexing="ij"), axis=0))


def _interpolated(heights: np.ndarray, rules: Sequence[Rule], t: np.ndarray) -> np.ndarray:
    """Return rows (N, P) along a table's last axis at t (N, d) of its first axes, by cubic splines."""
    places = [(column - rule.t[0]) / (rule.t[1] - rule.t[0]) for rule, column in zip(rules, t.T, strict=True)]
    last = np.arange(heights.shape[-1], dtype=np.float64)
    coordinates = [np.broadcast_to(place[:, None], (len(t), len(last))) for place in places]
    all_coordinates = np.stack([*coordinates, np.broadcast_to(last, (len(t), len(last)))])
    return np.asarray(scipy.ndimage.map_coordinates(heights, all_coordinates, order=3, mode="nearest"))


def _level(points: np.ndarray) -> np.ndarray:
    return np.zeros(len(points))


def _distinct(centres: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Drop peaks that overlap with an earlier one of similar width; keep at most `MOST_PEAKS`."""
    kept: list[int] = []
    for i in range(len(centres)):
        is_apart = [abs(centres[i] - centres[j]) > scales[i] + scales[j] or 4 * scales[i] < scales[j] for j in kept]
        if all(is_apart) and len(kept) < MOST_PEAKS:
            kept.append(i)
    return centres[kept], scales[kept]


def combinations(columns: Columns) -> np.ndarray:
    """Return all combinations of entries as rows, the last column changing fastest."""
    return np.stack([np.ravel(grid) for grid in np.meshgrid(*columns, indexing="ij")], axis=1)


def refined(integrand: Integrand, is_fine: Callable[[Grid], bool], times: int = 1) -> Grid:
    """Return the first grid that is fine enough, or the finest.

    The first grid has ``times`` the initial intervals; it is returned if the density is 0 on it.
    """
    peaks = integrand.peaks()
    begin, most = INTERVALS[len(integrand.low)]
    intervals, most = times * (integrand.begin or begin), integrand.finer * most
    grid = None
    while True:
        rules = _rules(integrand, peaks, intervals)
        grid = Grid(rules, _heights(integrand, rules, grid))
        if intervals >= most or not np.max(grid.log_density) > -math.inf or is_fine(grid):
            return grid
        intervals = min(_next(grid, intervals), most)


def _rules(integrand: Integrand, peaks: Sequence[tuple[np.ndarray, np.ndarray]], intervals: int) -> list[Rule]:
    """Return a rule for each axis; of three the shorter ones have fewer intervals, so that all have about one step."""
    axes = [(low, high, *peak) for low, high, peak in zip(integrand.low, integrand.high, peaks, strict=True)]
    rules = [Rule.between(*axis, intervals) for axis in axes]
    if len(rules) < 3:
        return rules
    lengths = np.array([rule.t[-1] - rule.t[0] for rule in rules])
    counts = np.maximum(4 * np.ceil(intervals / 4 * lengths / np.max(lengths)).astype(int), 12)
    return [Rule.between(*axis, count) for axis, count in zip(axes, counts.tolist(), strict=True)]


def _next(grid: Grid, intervals: int) -> int:
    """Return the intervals of the next grid: twice as many, or over three axes as many as the error asks for."""
    if len(grid.rules) < 3:
        return 2 * intervals
    needed = math.log(AIM) / math.log(grid.error) if 0 < grid.error < 1 else 2.0
    return math.ceil(intervals * min(max(needed, SMALLEST), 2.0))


def _heights(integrand: Integrand, rules: Sequence[Rule], coarser: Grid | None) -> np.ndarray:
    """Return the log density at all combinations of points of the rules.

    Of three coordinates it is evaluated where it, or one of its tilts, is within `SKIPPED` nats of its maximum, and
    at neighbours of such points; elsewhere a coarser grid gives it, and it is negligible.
    """
    places = [rule.points for rule in rules]
    if coarser is None or len(rules) < 3:
        return integrand.heights(places)
    heights, points = coarser.between(rules), combinations(places)
    tilts = [tilt(points).reshape(heights.shape) for tilt in (_level, *integrand.tilts)]
    is_known = np.zeros(heights.shape, dtype=bool)
    while (missing := _high(heights, tilts) & ~is_known).any():
        heights[missing] = integrand.log_density(points[missing.ravel()])
        is_known |= missing
    return heights


def _high(heights: np.ndarray, tilts: Sequence[np.ndarray]) -> np.ndarray:
    """Mark points with a tilted log density not known or within `SKIPPED` nats of its maximum, and their neighbours."""
    is_high, known = ~np.isfinite(heights), np.where(np.isfinite(heights), heights, -math.inf)
    for tilt in tilts:
        is_high |= known + tilt > np.max(known + tilt) - SKIPPED
    return np.asarray(scipy.ndimage.binary_dilation(is_high, np.ones((3,) * heights.ndim)))


class Enclosed(NamedTuple):
    """Bounds of a density, and the highest of the evaluated points, each of shape (D,)."""

    low: np.ndarray
    high: np.ndarray
    highest: np.ndarray


def enclosing(
    log_density: Tilt,
    centre: np.ndarray,
    scale: np.ndarray,
    reach: np.ndarray,
    depth: float,
    limits: Limits = UNBOUNDED,
) -> Enclosed:
    """Return bounds beyond which a log density is more than ``depth`` nats below its maximum.

    The density is evaluated on grids around a centre, dense within its scale, up to a reach, which grows until it is
    wide enough, but not beyond the limits.
    """
    for _ in range(8):
        low, high = np.maximum(centre - reach, limits[0]), np.minimum(centre + reach, limits[1])
        rules = [Rule.between(*axis, 32) for axis in zip(low, high, centre, scale, strict=True)]
        points = combinations([rule.points for rule in rules])
        flat = log_density(points)
        heights = flat.reshape([len(rule.t) for rule in rules])
        ends = np.array([_ends_of(heights, axis, depth) for axis in range(len(rules))])
        is_short = ((ends[:, 0] == 0) & (low > limits[0])) | ((ends[:, 1] == 32) & (high < limits[1]))
        if not is_short.any():
            break
        reach = np.where(is_short, 8 * reach, reach)
    return Enclosed(*_outside(rules, ends), points[np.argmax(flat)])


def _ends_of(heights: np.ndarray, axis: int, depth: float) -> tuple[int, int]:
    """Return the first and the last point of an axis at which the density is within ``depth`` nats of its maximum."""
    profile = heights.max(axis=tuple(j for j in range(heights.ndim) if j != axis))
    inside = np.flatnonzero(profile >= np.max(profile) - depth)
    return int(inside[0]), int(inside[-1])


def _outside(rules: Sequence[Rule], ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points next to the ends, on the outer side."""
    low = [rule.points[max(first - 1, 0)] for rule, (first, _) in zip(rules, ends, strict=True)]
    high = [rule.points[min(last + 1, len(rule.t) - 1)] for rule, (_, last) in zip(rules, ends, strict=True)]
    return np.array(low), np.array(high)
