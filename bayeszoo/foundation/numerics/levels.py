"""Quantiles of arrays of distribution functions: by bracketing, or with the density by Newton steps between bounds."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy

from bayeszoo.foundation.numerics.constants import TINY

CLOSE = 1e-12
"""Tolerance in probability."""
STEPS = 300
"""More steps than a bracket needs whose ends differ by a factor of 1e300."""
LEAST, MOST = 1e-300, 1 - 1e-16
"""Smallest and largest probability with a finite normal score."""
APART = 1e3


def reached(
    cdf: Callable[[np.ndarray], np.ndarray], q: float, low: np.ndarray, high: np.ndarray, is_whole: bool = False
) -> np.ndarray:
    """Return where each distribution function reaches ``q``; for ``is_whole`` numbers, the smallest that does.

    It is below ``q`` at ``low``, and reaches it at ``high``. Bisection alternates with interpolation: a straight line
    between the normal scores of the bracket's ends.
    """
    at_ends = [cdf(low), cdf(high)]
    for step in range(STEPS):
        is_open = high - low > np.maximum(float(is_whole), 4 * np.spacing(np.maximum(np.abs(low), np.abs(high))))
        if not is_open.any():
            break
        lowest = np.maximum(low, 0.0) if is_whole else low
        x = between(lowest, high) if step % 2 else _along(lowest, high, at_ends, q)
        if is_whole:
            x = np.where(is_open, np.clip(np.floor(x), low + 1, high - 1), high)
        cdf_at_x = cdf(x)
        is_reached = is_open & (np.abs(cdf_at_x - q) <= CLOSE) & (not is_whole)
        is_below = is_open & (cdf_at_x < q - CLOSE)
        is_above = is_open & ~is_below
        low, high = np.where(is_below | is_reached, x, low), np.where(is_above, x, high)
        at_ends = [np.where(is_below, cdf_at_x, at_ends[0]), np.where(is_above, cdf_at_x, at_ends[1])]
    return high


def solved(
    cdf: Callable[[np.ndarray], np.ndarray],
    pdf: Callable[[np.ndarray], np.ndarray],
    q: float | np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    start: np.ndarray,
    is_positive: bool = False,
) -> np.ndarray:
    """Return where each continuous distribution function is ``q``, within bounds of its quantile.

    Newton steps in normal scores, of the logarithm of positive numbers; bisection where they leave the bounds.
    """
    x, score = start, scipy.special.ndtri(q)
    for _ in range(STEPS):
        below = cdf(x)
        is_far = (np.abs(below - q) > CLOSE) & (high - low > 2 * np.spacing(np.abs(x)))
        is_far &= (high > TINY) | (not is_positive)
        if not is_far.any():
            break
        low, high = np.where(below < q, x, low), np.where(below > q, x, high)
        own_score = scipy.special.ndtri(below)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # the density underflows in the tails
            step = (score - own_score) * np.exp(-own_score * own_score / 2) / (math.sqrt(2 * math.pi) * pdf(x))
            proposed = x * np.exp(step / x) if is_positive else x + step
        proposed = np.where((proposed > low) & (proposed < high), proposed, between(low, high))
        x = np.where(is_far, proposed, x)
    return x


def between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the midpoint; the geometric one of very different positive bounds, as quantiles may be 1e-100."""
    is_far = (low >= 0) & (low < high / APART)
    return np.where(is_far, np.sqrt(np.maximum(low, TINY)) * np.sqrt(np.maximum(high, TINY)), low + (high - low) / 2)


def _along(low: np.ndarray, high: np.ndarray, at_ends: list[np.ndarray], q: float) -> np.ndarray:
    """Return where the line between normal scores at both ends reaches the level's score, else the midpoint."""
    first, last = (scipy.special.ndtri(np.clip(probability, LEAST, MOST)) for probability in at_ends)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        line = low + (high - low) * ((scipy.special.ndtri(q) - first) / (last - first))
    return np.where((line > low) & (line < high), line, between(low, high))
