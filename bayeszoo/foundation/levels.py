"""Where distribution functions of several entries reach a level."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

CLOSE = 1e-12
"""Probability within which a level is reached."""
STEPS = 300
"""More than it takes to close a bracket whose ends differ by a factor of 1e300."""
LEAST, MOST = 1e-300, 1 - 1e-16
"""Probabilities that have a normal score."""
TINY, APART = np.finfo(np.float64).tiny, 1e3


def reached(
    cdf: Callable[[np.ndarray], np.ndarray], q: float, low: np.ndarray, high: np.ndarray, is_whole: bool = False
) -> np.ndarray:
    """Return where each entry's distribution function reaches ``q``: of ``is_whole`` numbers the smallest that does.

    It is below ``q`` at ``low``, and reaches it at ``high``. Halvings of the bracket take turns with steps to where a
    straight line between the normal scores of its ends reaches that of the level.
    """
    at_ends = [cdf(low), cdf(high)]
    for step in range(STEPS):
        is_open = high - low > np.maximum(float(is_whole), 4 * np.spacing(np.maximum(np.abs(low), np.abs(high))))
        if not is_open.any():
            break
        least = np.maximum(low, 0.0) if is_whole else low
        at = between(least, high) if step % 2 else _along(least, high, at_ends, q)
        if is_whole:
            at = np.where(is_open, np.clip(np.floor(at), low + 1, high - 1), high)
        own = cdf(at)
        is_there = is_open & (np.abs(own - q) <= CLOSE) & (not is_whole)
        is_below = is_open & (own < q - CLOSE)
        is_above = is_open & ~is_below
        low, high = np.where(is_below | is_there, at, low), np.where(is_above, at, high)
        at_ends = [np.where(is_below, own, at_ends[0]), np.where(is_above, own, at_ends[1])]
    return high


def between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return a point between, of positive numbers that differ much their geometric mean: quantiles may be 1e-100."""
    is_far = (low >= 0) & (low < high / APART)
    return np.where(is_far, np.sqrt(np.maximum(low, TINY)) * np.sqrt(np.maximum(high, TINY)), low + (high - low) / 2)


def _along(low: np.ndarray, high: np.ndarray, at_ends: list[np.ndarray], q: float) -> np.ndarray:
    """Return where the line between the normal scores at both ends has that of the level, halfway where it has none."""
    first, last = (scipy.special.ndtri(np.clip(each, LEAST, MOST)) for each in at_ends)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        line = low + (high - low) * ((scipy.special.ndtri(q) - first) / (last - first))
    return np.where((line > low) & (line < high), line, between(low, high))
