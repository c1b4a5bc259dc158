"""Rows with mixture distributions: of components, or of the emissions of hidden states."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions.bases import ByVariance
from bayeszoo.foundation.named import RandomState
from bayeszoo.foundation.numerics.levels import reached


class _Mixture(ByVariance):
    """Rows of numbers, each a mixture of K distributions (..., 1, K) with probabilities (..., rows, K)."""

    is_count = False

    def __init__(self, weights: np.ndarray, components: Any) -> None:
        self._weights, self._components = weights, components
        means = np.asarray(components.mean())
        self._mean = means[..., 0] + self._averaged(means - means[..., :1])  # means near 1e9 keep their digits
        self._var = self._averaged(np.asarray(components.var()) + np.square(means - self._mean[..., None]))

    def _averaged(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(np.sum(self._weights * values, axis=-1))

    def mean(self) -> np.ndarray:
        """Return the means."""
        return self._mean

    def var(self) -> np.ndarray:
        """Return the variances."""
        return self._var

    def _log_of_mixture(self, log_components: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):  # log 0 of an impossible component
            return np.asarray(scipy.special.logsumexp(np.log(self._weights) + log_components, axis=-1))

    def cdf(self, y: Any) -> np.ndarray:
        """Return P(row <= y)."""
        return self._averaged(self._components.cdf(np.asarray(y)[..., None]))

    def logcdf(self, y: Any) -> np.ndarray:
        """Return log P(row <= y)."""
        return self._log_of_mixture(self._components.logcdf(np.asarray(y)[..., None]))

    def logsf(self, y: Any) -> np.ndarray:
        """Return log P(row > y)."""
        return self._log_of_mixture(self._components.logsf(np.asarray(y)[..., None]))

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantiles of the mixture, which lie between those of the components."""
        quantiles = np.broadcast_to(self._components.ppf(q), self._weights.shape)
        low, high = quantiles.min(axis=-1), quantiles.max(axis=-1)
        low = low - 1 if self.is_count else np.nextafter(low, -np.inf)
        return reached(self.cdf, q, low, np.nextafter(high, np.inf) if not self.is_count else high, self.is_count)

    def rvs(self, size: tuple[int, ...], random_state: RandomState = None) -> np.ndarray:
        """Draw rows of shape ``size``, (..., rows)."""
        rng = np.random.default_rng(random_state)
        ends = np.cumsum(self._weights, axis=-1)[..., :-1]
        component = np.sum(rng.random(size)[..., None] > ends, axis=-1)
        drawn = self._components.rvs(size=(*size, self._weights.shape[-1]), random_state=rng)
        return np.asarray(np.take_along_axis(drawn, component[..., None], axis=-1)[..., 0])


class RealRows(_Mixture):
    """Rows of real numbers."""

    def logpdf(self, y: Any) -> np.ndarray:
        """Return the log densities."""
        return self._log_of_mixture(self._components.logpdf(np.asarray(y)[..., None]))


class CountRows(_Mixture):
    """Rows of counts."""

    is_count = True

    def logpmf(self, y: Any) -> np.ndarray:
        """Return the log masses."""
        return self._log_of_mixture(self._components.logpmf(np.asarray(y)[..., None]))
