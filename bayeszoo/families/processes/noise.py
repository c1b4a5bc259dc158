"""A search of the highest density of rows of a process, and the refusal of data that leave no noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from bayeszoo.distributions.priors import Prior
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import NumericalError
from bayeszoo.families.processes.spectrum import Rows

MATTERS = 30.0
"""Largest distance in nats from the highest density at which a point matters."""
AMPLITUDES, LENGTHS, NOISES = np.array([0.3, 1.0, 3.0]), np.geomspace(0.01, 2.0, 10), np.geomspace(1.0, 1e-6, 13)
"""The grid of the search: amplitudes and noises in units of the outcome's sd, lengths in units of the extent of the
places."""
NEXT_TO_NOTHING, VANISHES = 1e-100, -1e6
"""A tiny noise, and a log density: a prior vanishes at 0 if its log density at that noise is lower."""
VANISHING = "for sigma a prior that vanishes at 0, as InvGamma(2, 1)"


def extent(places: np.ndarray) -> float:
    """Return the diagonal of the box about places (n, F); 1 if it is 0."""
    return float(np.linalg.norm(np.ptp(places, axis=0))) or 1.0 if len(places) else 1.0


def highest(rows: Rows, noise: Prior, log_prior: Callable[[Mapping[str, object]], object]) -> dict[str, float]:
    """Return the highest point of a grid; raise `NumericalError` if the data leave no noise."""
    if not len(rows.y):
        return {"amplitude": 1.0, "length": 1.0, "sigma": 1.0}
    _refuse_repeated(rows, noise)
    sd, size = float(Moments.of(rows.y).sd), extent(rows.places)
    grid = np.meshgrid(sd * AMPLITUDES, size * LENGTHS, sd * NOISES, indexing="ij")
    points = dict(zip(("amplitude", "length", "sigma"), grid, strict=True))
    heights = rows.log_density(points) + log_prior(points) + sum(map(np.log, grid))  # density of the logarithms
    is_last = np.isfinite(heights[..., :-1]) & np.isneginf(heights[..., 1:])  # with less noise it is singular
    if np.max(heights[..., :-1], where=is_last, initial=-np.inf) > np.max(heights) - MATTERS:
        raise NumericalError(
            f"the data leave next to no noise, and with so little the kernel {rows.kernel} of {len(rows.y)} rows is "
            f"singular but for rounding; take a rougher kernel, as matern32, or {VANISHING}",
            "singular_kernel",
        )
    best = np.unravel_index(np.argmax(heights), heights.shape)
    return {name: float(values[best]) for name, values in points.items()}


def _refuse_repeated(rows: Rows, noise: Prior) -> None:
    """Refuse data whose rows at each place are all equal: their density grows without bound as noise goes to 0."""
    if noise.logpdf(NEXT_TO_NOTHING) < VANISHES or len(rows.y) < 2:
        return
    if not np.ptp(rows.y):
        line = f"the outcome is constant, which says nothing of the noise; take {VANISHING}"
        raise NumericalError(line, "no_noise")
    _, row, place = np.unique(rows.places, axis=0, return_index=True, return_inverse=True)
    if len(row) < len(rows.y) and np.array_equal(rows.y[row][np.ravel(place)], rows.y):
        twice = np.flatnonzero(row[np.ravel(place)] != np.arange(len(rows.y)))[0]
        raise NumericalError(
            f"duplicate rows, as row {twice + 1}, have equal outcomes wherever places are equal: the noise may be 0, "
            f"and the posterior has no mass elsewhere; leave the duplicates out, or take {VANISHING}",
            "duplicate_rows",
        )
