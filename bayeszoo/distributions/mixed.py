"""Finite mixtures of one standard distribution, moved and scaled: what averaging over models gives.

Where weights do not add up to one, the rest is an atom at 0: of a weight that some of the models do not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy

from bayeszoo.foundation.blocks import blocks

CLOSE = 1e-13
"""Probability within which a quantile is found, where doubles are that dense."""
STEPS = 200
NO_ATOM = 1e-12
"""What rounding may leave of weights that add up to one."""


class LocationScaleMixture:
    """Numbers, of any shape: each is ``loc_p + scale_p x`` with probability ``weights_p``, else 0; p = 1..P.

    Parameters
    ----------
    standard : frozen SciPy distribution
        Of x, the same for all, or where P is small one for each of shape (P, *own shape).
    weights, loc, scale : ndarray
        Of shape (P, *own shape), or that broadcasts to it: weights >= 0, whose sum for each entry is at most 1, and
        scales > 0.
    """

    def __init__(self, standard: Any, weights: np.ndarray, loc: Any, scale: Any) -> None:
        self._standard = standard
        self._weights, self._loc, self._scale = np.broadcast_arrays(weights, loc, scale)
        self._inside = np.minimum(np.sum(self._weights, axis=0), 1.0)
        self.atom = np.where(self._inside < 1 - NO_ATOM, 1 - self._inside, 0.0)
        """Probability of 0, of the own shape."""
        self._quantiles = dict[float, Any]()

    def mean(self) -> Any:
        """Return the mean, of the own shape; as SciPy says it where there is none."""
        return self._average(self._loc + self._scale * self._standard.mean())[()]

    def var(self) -> Any:
        """Return the variance."""
        return np.square(self.std())

    def std(self) -> Any:
        """Return the standard deviation: within the components and between them, in units of the largest of them."""
        means = self._loc + self._scale * self._standard.mean()
        mean, spread = self._average(means), np.broadcast_to(self._scale * self._standard.std(), means.shape)
        apart = np.where(self._weights > 0, np.maximum(np.abs(means - mean), spread), 0.0)
        largest = np.maximum(np.max(apart, axis=0, initial=0.0), np.abs(mean) * (self.atom > 0))
        unit = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
        second = self._average(np.square(spread / unit) + np.square((means - mean) / unit))
        return (unit * np.sqrt(second + self.atom * np.square(mean / unit)))[()]

    def _average(self, values: np.ndarray) -> np.ndarray:
        used = self._weights > 0  # 0 * inf would be NaN
        return np.asarray(np.sum(np.where(used, self._weights * np.where(used, values, 0.0), 0.0), axis=0))

    def _parts(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        for some in blocks(len(self._weights), self._inside.size):
            yield self._weights[some], self._loc[some], self._scale[some]

    def _sum(self, function: Callable[[object], object], x: np.ndarray, is_density: bool = False) -> np.ndarray:
        """Add up a function of the standardized places, of the own shape or with leading axes before it."""
        axis = -1 - self._inside.ndim
        x, total = np.expand_dims(x, axis), np.zeros(np.shape(x))
        for weights, loc, scale in self._parts():
            heights = weights * function((x - loc) / scale)
            total = total + np.sum(heights / scale if is_density else heights, axis=axis)
        return total

    def _log_sum(self, function: Callable[[object], object], x: np.ndarray, is_density: bool = False) -> np.ndarray:
        """Add up exponentials of a logarithm, and return the logarithm."""
        axis = -1 - self._inside.ndim
        x, total = np.expand_dims(x, axis), np.full(np.shape(x), -np.inf)
        with np.errstate(divide="ignore"):
            for weights, loc, scale in self._parts():
                heights = np.log(weights) + function((x - loc) / scale)
                each = heights - np.log(scale) if is_density else heights
                total = np.logaddexp(total, np.asarray(scipy.special.logsumexp(each, axis=axis)))
        return total

    def _at(self, at: Callable[[np.ndarray], np.ndarray], x: object) -> Any:
        """Take a function at places with leading axes or without."""
        x = np.asarray(x, dtype=np.float64)
        own = self._inside.shape
        if x.ndim <= len(own):
            return at(np.broadcast_to(x, own))[()]
        leading = x.shape[: x.ndim - len(own)]
        places = np.broadcast_to(x, (*leading, *own)).reshape(-1, *own)
        values = np.empty(places.shape)
        for some in blocks(len(places), self._weights.size):
            values[some] = at(places[some])
        return values.reshape(*leading, *own)

    def cdf(self, x: np.ndarray) -> Any:
        """Return the probability of at most ``x``, of the own shape, with leading axes or without."""
        return self._at(lambda place: self._sum(self._standard.cdf, place) + self.atom * (place >= 0), x)

    def below(self, x: np.ndarray) -> np.ndarray:
        """Return the probability of less than ``x``, which the atom at 0 parts from that of at most ``x``."""
        return self._at(lambda place: self._sum(self._standard.cdf, place) + self.atom * (place > 0), x)

    def pdf(self, x: np.ndarray) -> np.ndarray:
        """Return the density of the part that is not 0."""
        return self._at(lambda place: self._sum(self._standard.pdf, place, True), x)

    def logpdf(self, x: Any) -> Any:
        """Return the log density, at an atom at 0 the log of its probability."""

        def at(place: np.ndarray) -> np.ndarray:
            density = self._log_sum(self._standard.logpdf, place, True)
            with np.errstate(divide="ignore"):
                return np.where((place == 0) & (self.atom > 0), np.log(self.atom), density)

        return self._at(at, x)

    def logcdf(self, x: np.ndarray) -> np.ndarray:
        """Return the log of the probability of at most ``x``."""

        def at(place: np.ndarray) -> np.ndarray:
            with np.errstate(divide="ignore"):
                return np.logaddexp(self._log_sum(self._standard.logcdf, place), np.log(self.atom * (place >= 0)))

        return self._at(at, x)

    def logsf(self, x: np.ndarray) -> np.ndarray:
        """Return the log of the probability of more than ``x``."""

        def at(place: np.ndarray) -> np.ndarray:
            with np.errstate(divide="ignore"):
                return np.logaddexp(self._log_sum(self._standard.logsf, place), np.log(self.atom * (place < 0)))

        return self._at(at, x)

    def ppf(self, q: float) -> Any:
        """Return the quantile of a level, 0 where the atom at 0 takes the level in."""
        if q not in self._quantiles:
            self._quantiles[q] = self._quantile(q)
        return self._quantiles[q]

    def _quantile(self, q: float) -> Any:
        zero = np.zeros(self._inside.shape)
        low = self._sum(self._standard.cdf, zero)
        within = (self.atom > 0) & (q >= low) & (q <= low + self.atom)
        level = np.where((q > low) & (self.atom > 0), q - self.atom, q)
        some = np.where(within, 0.5 * self._inside, level)  # a level that has a quantile, which is not looked at
        return np.where(within, 0.0, self._solved(np.where(self._inside > 0, some, 0.5)))[()]

    def _solved(self, level: np.ndarray) -> np.ndarray:
        """Find where the components together reach a level, between the least and the largest of their own quantiles.

        Newton's steps are taken where they stay between the bounds, else these are halved.
        """
        share = level / np.where(self._inside > 0, self._inside, 1.0)
        own = self._loc + self._scale * self._standard.ppf(share)
        used = self._weights > 0
        low = np.min(np.where(used, own, np.inf), axis=0, initial=np.inf)
        high = np.max(np.where(used, own, -np.inf), axis=0, initial=-np.inf)
        is_used = used.any(axis=0)
        low, high = np.where(is_used, low, 0.0), np.where(is_used, high, 0.0)
        x = np.clip(self._average(own) / np.where(self._inside > 0, self._inside, 1.0), low, high)
        for _ in range(STEPS):
            short = self._sum(self._standard.cdf, x) - level
            is_far = (np.abs(short) > CLOSE) & (high - low > 2 * np.spacing(np.abs(x)))
            if not is_far.any():
                break
            low, high = np.where(short < 0, x, low), np.where(short > 0, x, high)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # far out there is no density
                there = x - short / self._sum(self._standard.pdf, x, True)
            there = np.where((there > low) & (there < high), there, (low + high) / 2)
            x = np.where(is_far, there, x)
        return x


class Inclusion:
    """Indicators, of any shape, each 1 with a probability ``p``: SciPy's, but for their probability of less."""

    def __init__(self, p: object) -> None:
        self.p = np.asarray(p, dtype=np.float64)
        self.atom = np.ones_like(self.p)
        """Probability of values that have one: of 0 and 1 together."""

    def mean(self) -> np.ndarray:
        """Return the probabilities."""
        return self.p

    def std(self) -> np.ndarray:
        """Return the standard deviations."""
        return np.sqrt(self.p * (1 - self.p))

    def cdf(self, x: object) -> np.ndarray:
        """Return the probability of at most ``x``."""
        return np.where(np.asarray(x) >= 1, 1.0, (1 - self.p) * (np.asarray(x) >= 0))

    def below(self, x: object) -> np.ndarray:
        """Return the probability of less than ``x``."""
        return np.where(np.asarray(x) > 1, 1.0, (1 - self.p) * (np.asarray(x) > 0))

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantile, 0 or 1."""
        return np.where(1 - self.p >= q, 0.0, 1.0)
