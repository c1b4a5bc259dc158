"""Rows each of which is a mixture of distributions: of components, or of the emissions of hidden states."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions.bases import ByVariance
from bayeszoo.foundation.levels import reached


class _Mixture(ByVariance):
    """Rows of numbers, each a mixture of K distributions (..., 1, K) by probabilities (..., rows, K)."""

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

    def _log_of_mixture(self, log_of_each: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):  # of a component that cannot be
            return np.asarray(scipy.special.logsumexp(np.log(self._weights) + log_of_each, axis=-1))

    def cdf(self, y: Any) -> np.ndarray:
        """Return the probabilities of at most ``y``."""
        return self._averaged(self._components.cdf(np.asarray(y)[..., None]))

    def logcdf(self, y: Any) -> np.ndarray:
        """Return the log probabilities of at most ``y``."""
        return self._log_of_mixture(self._components.logcdf(np.asarray(y)[..., None]))

    def logsf(self, y: Any) -> np.ndarray:
        """Return the log probabilities of more than ``y``."""
        return self._log_of_mixture(self._components.logsf(np.asarray(y)[..., None]))

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantiles of the mixture, bracketed by those of each component."""
        each = np.broadcast_to(self._components.ppf(q), self._weights.shape)
        low, high = each.min(axis=-1), each.max(axis=-1)
        low = low - 1 if self.is_count else np.nextafter(low, -np.inf)
        return reached(self.cdf, q, low, np.nextafter(high, np.inf) if not self.is_count else high, self.is_count)

    def rvs(self, size: tuple[int, ...], random_state: Any = None) -> np.ndarray:
        """Draw rows of shape ``size``, which ends in the rows."""
        rng = np.random.default_rng(random_state)
        ends = np.cumsum(self._weights, axis=-1)[..., :-1]
        which = np.sum(rng.random(size)[..., None] > ends, axis=-1)
        each = self._components.rvs(size=(*size, self._weights.shape[-1]), random_state=rng)
        return np.asarray(np.take_along_axis(each, which[..., None], axis=-1)[..., 0])


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
