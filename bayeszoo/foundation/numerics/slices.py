"""Slice sampling of one coordinate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

WIDTH, STEPS = 1.0, 10
"""Initial width of a slice in the coordinate (a factor of e for logs), and largest number of times it is widened."""
NARROWEST = 1e-12
"""Width below which a slice cannot be distinguished from its start."""


def sliced(height: Callable[[float], float], x: float, at_x: float, rng: np.random.Generator) -> tuple[float, float]:
    """Draw a coordinate by slice sampling, stepping out (Neal 2003, figures 3 and 5); return it and its height.

    Parameters
    ----------
    height : callable
        Log density of the coordinate, up to a constant; -inf where the density is 0.
    x, at_x : float
        The current coordinate, and its height.
    rng : numpy.random.Generator
    """
    level = at_x - rng.exponential()
    low = x - WIDTH * rng.random()
    high, below = low + WIDTH, int(rng.integers(STEPS))
    above = STEPS - 1 - below
    while below > 0 and height(low) > level:
        low, below = low - WIDTH, below - 1
    while above > 0 and height(high) > level:
        high, above = high + WIDTH, above - 1
    while True:
        new = rng.uniform(low, high)
        at_new = height(new)
        if at_new > level:
            return new, at_new
        if high - low < NARROWEST:
            return x, at_x
        low, high = (new, high) if new < x else (low, new)
