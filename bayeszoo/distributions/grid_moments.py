"""Means, standard deviations and covariances over the points of a grid, and which of them can be relied on.

A moment is an integral as the evidence is, but of another integrand, which may live far from where the density does.
It is withheld, as NaN, where it does not exist, where the bounds of the grid decide it, or where it moves by more than
`MAX_MOVED` when the grid is halved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from bayeszoo.foundation.grid import Grid

DECIDED = 1e-6
"""Height of a moment's integrand at the bounds, relative to its highest: above, the bounds decide it. It is also the
probability of points with an infinite sd above which there is none."""
MAX_MOVED = 1e-6
"""By how much halving the grid may move a mean, in mean absolute deviations, and an sd, as a share of it."""
ROUNDING = 64 * np.finfo(np.float64).eps
"""Share of its mean by which rounding moves a quantity."""
MOST = 1e150
"""Units of a quantity whose square is still a number."""

Parts = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""By quantity, its means and standard deviations at points of the grid, each of shape (P, *own shape)."""
Exists = Mapping[str, tuple[Any, Any]]
"""By quantity, whether its mean and its variance exist; those of others do."""


class Moments(NamedTuple):
    """Mean and sd over the grid, and those of them that can be relied on; the others are NaN."""

    mean: np.ndarray
    sd: np.ndarray
    own_mean: np.ndarray
    own_sd: np.ndarray
    moved: float
    """Change when the grid is halved, of moments that exist and do not depend on the bounds."""


def halved_mass(grid: Grid) -> np.ndarray:
    """Return the probability that each point stands for in the grid of every other point, 0 at those left out."""
    mass = np.zeros(grid.mass.shape)
    mass[grid.kept] = grid.halved.mass
    return mass


def moments_over(grid: Grid, blocks: Iterable[tuple[slice, Parts]], exists: Exists) -> dict[str, Moments]:
    """Return the moments of quantities over a grid; blocks are of its points, one after the other."""
    masses = np.stack([np.ravel(grid.mass), np.ravel(halved_mass(grid))])
    height, faces = np.ravel(np.exp(grid.log_density - np.max(grid.log_density))), np.ravel(grid.faces)
    sums: dict[str, _Sums] = {}
    for few, parts in blocks:
        for name, pair in parts.items():
            sums.setdefault(name, _Sums()).add(masses[:, few], height[few], faces[few], *pair)
    return {name: each.moments(*exists.get(name, (True, True))) for name, each in sums.items()}


class _Sums:
    """Sums over points, of first and second moments about the mean of the first points, and their highest terms.

    They are in units of the mean distance from it, so that no square overflows or vanishes. A first axis is for the
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
        """Add points (P,), of which some are at the faces of the grid, with means and sds (P, *own shape)."""
        if self.centre is None:
            weights = np.maximum(masses[0], 1e-300) / np.maximum(masses[0], 1e-300).sum()
            self.centre = np.tensordot(weights, means, 1)
            size = np.tensordot(weights, np.hypot(sds, means - self.centre), 1)
            self.unit = np.where((size > 0) & np.isfinite(size), size, 1.0)
        self.infinite = self.infinite + np.tensordot(masses[0], np.isinf(sds), 1)
        moved, sds = (np.clip(v / self.unit, -MOST, MOST) for v in (means - self.centre, sds))
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
        """Return mean and sd, where they exist."""
        means = self.centre + self.unit * self.first
        share = np.sqrt(np.maximum(self.second - np.square(self.first), 0.0))
        sds, noise = self.unit * share, ROUNDING * np.abs(means[0]) / self.unit
        moved = [_moved(self.first, self.absolute, noise), _moved(share, share[0], noise)]
        decided = [at > DECIDED * highest for at, highest in zip(self.at_faces, self.highest, strict=True)]
        has_sd = has_sd & (self.infinite <= DECIDED)
        known = [has & ~(cut | np.isnan(by)) for has, cut, by in zip((has_mean, has_sd), decided, moved, strict=True)]
        largest = max(float(np.max(by, where=is_known, initial=0.0)) for by, is_known in zip(moved, known, strict=True))
        mean, sd = (
            np.where(is_known & (by <= MAX_MOVED), values[0], np.nan)
            for values, by, is_known in zip((means, sds), moved, known, strict=True)
        )
        return Moments(means[0], sds[0], mean, sd, largest)


def _moved(pair: np.ndarray, scale: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return the difference of the figures by both grids in units of a scale, but for rounding."""
    apart = np.maximum(np.abs(pair[0] - pair[1]) - noise, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(apart == 0, 0.0, apart / scale))


def covariance_over(mass: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the covariance matrix of a mixture, from probabilities (P,), means (P, N) and variances (P, N)."""
    moved = means - mass @ means
    return np.asarray((moved * mass[:, None]).T @ moved + np.diag(mass @ variances))
