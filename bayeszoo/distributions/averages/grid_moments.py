"""Means, standard deviations and covariances over the points of a grid, withheld where unreliable.

A moment is an integral like the evidence, but its integrand may have its mass far from that of the density.
It is withheld, as NaN, where it does not exist, depends on the bounds of the grid, or changes by more than
`MAX_MOVED` when the grid is halved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from bayeszoo.foundation.numerics.grid import Grid

DECIDED = 1e-6
"""Largest height of a moment's integrand at the bounds, relative to its maximum: above, the moment depends on the
bounds. Also the largest probability of points with an infinite sd; above, there is no sd."""
MAX_MOVED = 1e-6
"""Largest change when the grid is halved: of a mean in mean absolute deviations, of an sd relative to it."""
ROUNDING = 64 * np.finfo(np.float64).eps
"""Relative rounding error of a mean."""
MOST = 1e150
"""Largest multiple of the unit, whose square does not overflow."""

Parts = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""Means and standard deviations of each quantity at points of the grid, each of shape (P, *own shape)."""
Exists = Mapping[str, tuple[Any, Any]]
"""Whether the mean and the variance of a quantity exist; by default they do."""


class Moments(NamedTuple):
    """Mean and sd over the grid, and the same with NaN where unreliable."""

    mean: np.ndarray
    sd: np.ndarray
    own_mean: np.ndarray
    own_sd: np.ndarray
    moved: float
    """Largest change when the grid is halved, of moments that exist and do not depend on the bounds."""


def halved_mass(grid: Grid) -> np.ndarray:
    """Return the probability of each point in the grid of every other point; 0 at points left out."""
    mass = np.zeros(grid.mass.shape)
    mass[grid.kept] = grid.halved.mass
    return mass


def moments_over(grid: Grid, blocks: Iterable[tuple[slice, Parts]], exists: Exists) -> dict[str, Moments]:
    """Return the moments of quantities over a grid, whose points come in consecutive blocks."""
    masses = np.stack([np.ravel(grid.mass), np.ravel(halved_mass(grid))])
    height, faces = np.ravel(np.exp(grid.log_density - np.max(grid.log_density))), np.ravel(grid.faces)
    sums: dict[str, _Sums] = {}
    for points, parts in blocks:
        for name, pair in parts.items():
            sums.setdefault(name, _Sums()).add(masses[:, points], height[points], faces[points], *pair)
    return {name: sums_of_quantity.moments(*exists.get(name, (True, True))) for name, sums_of_quantity in sums.items()}


class _Sums:
    """Sums over points of first and second moments about the mean of the first block, and their highest terms.

    They are in units of the mean distance from it, so that no square overflows or underflows. The first axis is for the
    whole grid and the halved one.
    """

    def __init__(self) -> None:
        self.centre: Any = None
        self.unit: Any = 1.0
        self.first: Any = 0.0
        self.absolute: Any = 0.0
        self.second: Any = 0.0
        self.infinite: Any = 0.0
        self.highest, self.at_faces = [0.0, 0.0], [0.0, 0.0]

    def add(
        self, masses: np.ndarray, height: np.ndarray, faces: np.ndarray, means: np.ndarray, sds: np.ndarray
    ) -> None:
        """Add P points with means and sds (P, *own shape); ``faces`` marks points at the faces of the grid."""
        if self.centre is None:
            weights = np.maximum(masses[0], 1e-300) / np.maximum(masses[0], 1e-300).sum()
            self.centre = np.tensordot(weights, means, 1)
            size = np.tensordot(weights, np.hypot(sds, means - self.centre), 1)
            self.unit = np.where((size > 0) & np.isfinite(size), size, 1.0)
        self.infinite = self.infinite + np.tensordot(masses[0], np.isinf(sds), 1)
        moved, sds = (np.clip(quantity / self.unit, -MOST, MOST) for quantity in (means - self.centre, sds))
        size = np.hypot(sds, moved)
        second = np.square(size)
        self.first = self.first + np.tensordot(masses, moved, 1)
        self.absolute = self.absolute + np.tensordot(masses[0], size, 1)
        self.second = self.second + np.tensordot(masses, second, 1)
        for order, values in enumerate((size, second)):
            terms = values * np.expand_dims(height, tuple(range(1, values.ndim)))
            self.highest[order] = np.maximum(self.highest[order], terms.max(axis=0))
            self.at_faces[order] = np.maximum(self.at_faces[order], terms[faces].max(axis=0, initial=0.0))

    def moments(self, has_mean: Any, has_sd: Any) -> Moments:
        """Return mean and sd; NaN where unreliable."""
        means = self.centre + self.unit * self.first
        share = np.sqrt(np.maximum(self.second - np.square(self.first), 0.0))
        sds, noise = self.unit * share, ROUNDING * np.abs(means[0]) / self.unit
        moved = [_moved(self.first, self.absolute, noise), _moved(share, share[0], noise)]
        depends_on_bounds = [
            at_bounds > DECIDED * highest for at_bounds, highest in zip(self.at_faces, self.highest, strict=True)
        ]
        has_sd = has_sd & (self.infinite <= DECIDED)
        is_reliable = [
            has & ~(is_cut | np.isnan(change))
            for has, is_cut, change in zip((has_mean, has_sd), depends_on_bounds, moved, strict=True)
        ]
        largest = max(
            float(np.max(change, where=is_known, initial=0.0))
            for change, is_known in zip(moved, is_reliable, strict=True)
        )
        mean, sd = (
            np.where(is_known & (change <= MAX_MOVED), values[0], np.nan)
            for values, change, is_known in zip((means, sds), moved, is_reliable, strict=True)
        )
        return Moments(means[0], sds[0], mean, sd, largest)


def _moved(pair: np.ndarray, scale: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return the difference between both grids in units of a scale, minus rounding."""
    difference = np.maximum(np.abs(pair[0] - pair[1]) - noise, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(difference == 0, 0.0, difference / scale))


def covariance_over(mass: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the covariance matrix of a mixture, from probabilities (P,), means (P, N) and variances (P, N)."""
    moved = means - mass @ means
    return np.asarray((moved * mass[:, None]).T @ moved + np.diag(mass @ variances))
