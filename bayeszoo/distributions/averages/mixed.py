"""Finite location-scale mixtures of one standard distribution, as from averaging over models.

If weights sum to less than one, the remainder is an atom at 0: of a parameter that some models lack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy

from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.numerics.levels import solved

NO_ATOM = 1e-12
"""Largest rounding error of weights that sum to one."""


class LocationScaleMixture:
    """Numbers, of any shape: each is ``loc_p + scale_p x`` with probability ``weights_p``, else 0; p = 1..P.

    Parameters
    ----------
    standard : frozen SciPy distribution
        The law of x, common to all components; or one for each, shape (P, *own shape), if P is small.
    weights, loc, scale : ndarray
        Of shape (P, *own shape), or broadcast to it: weights >= 0, which sum to at most 1 for each entry, and
        scales > 0.
    """

    def __init__(self, standard: Any, weights: np.ndarray, loc: Any, scale: Any) -> None:
        self._standard = standard
        self._weights, self._loc, self._scale = np.broadcast_arrays(weights, loc, scale)
        self._inside = np.minimum(np.sum(self._weights, axis=0), 1.0)
        self.atom = np.where(self._inside < 1 - NO_ATOM, 1 - self._inside, 0.0)
        """Probability of 0 for each entry."""
        self._quantiles = dict[float, Any]()

    def mean(self) -> Any:
        """Return the mean of each entry; as SciPy returns it if undefined."""
        return self._average(self._loc + self._scale * self._standard.mean())[()]

    def var(self) -> Any:
        """Return the variance."""
        return np.square(self.std())

    def std(self) -> Any:
        """Return the standard deviation: within and between components, in units of the largest term."""
        means = self._loc + self._scale * self._standard.mean()
        mean, spread = self._average(means), np.broadcast_to(self._scale * self._standard.std(), means.shape)
        sizes = np.where(self._weights > 0, np.maximum(np.abs(means - mean), spread), 0.0)
        largest = np.maximum(np.max(sizes, axis=0, initial=0.0), np.abs(mean) * (self.atom > 0))
        unit = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
        second = self._average(np.square(spread / unit) + np.square((means - mean) / unit))
        return (unit * np.sqrt(second + self.atom * np.square(mean / unit)))[()]

    def _average(self, values: np.ndarray) -> np.ndarray:
        is_used = self._weights > 0  # 0 * inf would be NaN
        return np.asarray(np.sum(np.where(is_used, self._weights * np.where(is_used, values, 0.0), 0.0), axis=0))

    def _parts(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        for chunk in blocks(len(self._weights), self._inside.size):
            yield self._weights[chunk], self._loc[chunk], self._scale[chunk]

    def _sum(self, function: Callable[[object], object], x: np.ndarray, is_density: bool = False) -> np.ndarray:
        """Sum weights times a function of standardized ``x``, with or without leading axes."""
        axis = -1 - self._inside.ndim
        x, total = np.expand_dims(x, axis), np.zeros(np.shape(x))
        for weights, loc, scale in self._parts():
            heights = weights * function((x - loc) / scale)
            total = total + np.sum(heights / scale if is_density else heights, axis=axis)
        return total

    def _log_sum(self, function: Callable[[object], object], x: np.ndarray, is_density: bool = False) -> np.ndarray:
        """Return the log of the weighted sum of exp(function), as `_sum`."""
        axis = -1 - self._inside.ndim
        x, total = np.expand_dims(x, axis), np.full(np.shape(x), -np.inf)
        with np.errstate(divide="ignore"):
            for weights, loc, scale in self._parts():
                heights = np.log(weights) + function((x - loc) / scale)
                terms = heights - np.log(scale) if is_density else heights
                total = np.logaddexp(total, np.asarray(scipy.special.logsumexp(terms, axis=axis)))
        return total

    def _in_blocks(self, function: Callable[[np.ndarray], np.ndarray], x: object) -> Any:
        """Apply a function at ``x`` with or without leading axes, in blocks."""
        x = np.asarray(x, dtype=np.float64)
        own_shape = self._inside.shape
        if x.ndim <= len(own_shape):
            return function(np.broadcast_to(x, own_shape))[()]
        leading = x.shape[: x.ndim - len(own_shape)]
        places = np.broadcast_to(x, (*leading, *own_shape)).reshape(-1, *own_shape)
        values = np.empty(places.shape)
        for chunk in blocks(len(places), self._weights.size):
            values[chunk] = function(places[chunk])
        return values.reshape(*leading, *own_shape)

    def cdf(self, x: np.ndarray) -> Any:
        """Return P(X <= x); ``x`` has the entries' shape, with or without leading axes."""
        return self._in_blocks(lambda place: self._sum(self._standard.cdf, place) + self.atom * (place >= 0), x)

    def below(self, x: np.ndarray) -> np.ndarray:
        """Return P(X < x), which differs from `cdf` at an atom."""
        return self._in_blocks(lambda place: self._sum(self._standard.cdf, place) + self.atom * (place > 0), x)

    def pdf(self, x: np.ndarray) -> np.ndarray:
        """Return the density of the continuous part."""
        return self._in_blocks(lambda place: self._sum(self._standard.pdf, place, True), x)

    def logpdf(self, x: Any) -> Any:
        """Return the log density; at the atom, the log of its probability."""

        def at_places(place: np.ndarray) -> np.ndarray:
            density = self._log_sum(self._standard.logpdf, place, True)
            with np.errstate(divide="ignore"):
                return np.where((place == 0) & (self.atom > 0), np.log(self.atom), density)

        return self._in_blocks(at_places, x)

    def logcdf(self, x: np.ndarray) -> np.ndarray:
        """Return log P(X <= x)."""

        def at_places(place: np.ndarray) -> np.ndarray:
            with np.errstate(divide="ignore"):
                return np.logaddexp(self._log_sum(self._standard.logcdf, place), np.log(self.atom * (place >= 0)))

        return self._in_blocks(at_places, x)

    def logsf(self, x: np.ndarray) -> np.ndarray:
        """Return log P(X > x)."""

        def at_places(place: np.ndarray) -> np.ndarray:
            with np.errstate(divide="ignore"):
                return np.logaddexp(self._log_sum(self._standard.logsf, place), np.log(self.atom * (place < 0)))

        return self._in_blocks(at_places, x)

    def ppf(self, q: float) -> Any:
        """Return the quantile of a level; 0 where the level falls within the atom."""
        if q not in self._quantiles:
            self._quantiles[q] = self._quantile(q)
        return self._quantiles[q]

    def _quantile(self, q: float) -> Any:
        zero = np.zeros(self._inside.shape)
        low = self._sum(self._standard.cdf, zero)
        is_at_atom = (self.atom > 0) & (q >= low) & (q <= low + self.atom)
        level = np.where((q > low) & (self.atom > 0), q - self.atom, q)
        solvable = np.where(is_at_atom, 0.5 * self._inside, level)  # any valid level: its quantile is not used
        return np.where(is_at_atom, 0.0, self._solved(np.where(self._inside > 0, solvable, 0.5)))[()]

    def _solved(self, level: np.ndarray) -> np.ndarray:
        """Find where the sum of the components reaches a level, between their smallest and largest quantiles."""
        inside, is_component = np.where(self._inside > 0, self._inside, 1.0), self._weights > 0
        quantiles = self._loc + self._scale * self._standard.ppf(level / inside)
        low = np.min(np.where(is_component, quantiles, np.inf), axis=0, initial=np.inf)
        high = np.max(np.where(is_component, quantiles, -np.inf), axis=0, initial=-np.inf)
        is_used = is_component.any(axis=0)
        low, high = np.where(is_used, low, 0.0), np.where(is_used, high, 0.0)
        start = np.clip(self._average(quantiles) / inside, low, high)
        cdf = lambda x: self._sum(self._standard.cdf, x) / inside  # noqa: E731
        return solved(cdf, lambda x: self._sum(self._standard.pdf, x, True) / inside, level / inside, low, high, start)


class Inclusion:
    """Indicators of any shape, each 1 with probability ``p``: SciPy's Bernoulli law plus `below`."""

    def __init__(self, p: object) -> None:
        self.p = np.asarray(p, dtype=np.float64)
        self.atom = np.ones_like(self.p)
        """Total probability of atoms, 0 and 1 together."""

    def mean(self) -> np.ndarray:
        """Return the probabilities."""
        return self.p

    def std(self) -> np.ndarray:
        """Return the standard deviations."""
        return np.sqrt(self.p * (1 - self.p))

    def cdf(self, x: object) -> np.ndarray:
        """Return P(X <= x)."""
        return np.where(np.asarray(x) >= 1, 1.0, (1 - self.p) * (np.asarray(x) >= 0))

    def below(self, x: object) -> np.ndarray:
        """Return P(X < x)."""
        return np.where(np.asarray(x) > 1, 1.0, (1 - self.p) * (np.asarray(x) > 0))

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantile, 0 or 1."""
        return np.where(1 - self.p >= q, 0.0, 1.0)
