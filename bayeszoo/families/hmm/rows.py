"""The distribution of a row whose state is not known: the mixture of the emissions of all states."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions import discrete, frozen
from bayeszoo.distributions.averaged import RowLaw
from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.law import Law
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.foundation.levels import reached
from bayeszoo.foundation.named import Params


def rows_of(block: Law[Any], params: Params, states: np.ndarray) -> RowLaw:
    """Return the distribution of rows by probabilities of their states, (..., rows, K), at the block's parameters."""
    if isinstance(block, Categorical):
        return discrete.Categorical(states @ block.row_mean(params))
    if isinstance(block, Poisson):
        return CountRows(states, discrete.Poisson(np.asarray(block.row_mean(params))[..., None, :]))
    assert isinstance(block, Normal)
    means, variances = (np.asarray(values)[..., None, :] for values in block.means_and_variances(params))
    return RealRows(states, frozen.norm(means, np.sqrt(variances)))


class _Mixture(discrete.ByVariance):
    """Rows of numbers, each a mixture of K distributions (..., 1, K) by probabilities (..., rows, K)."""

    is_count = False

    def __init__(self, states: np.ndarray, components: Any) -> None:
        self._states, self._components = states, components
        means = np.asarray(components.mean())
        self._mean = means[..., 0] + self._over_states(means - means[..., :1])  # means near 1e9 keep their digits
        self._var = self._over_states(np.asarray(components.var()) + np.square(means - self._mean[..., None]))

    def _over_states(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(np.sum(self._states * values, axis=-1))

    def mean(self) -> np.ndarray:
        """Return the means."""
        return self._mean

    def var(self) -> np.ndarray:
        """Return the variances."""
        return self._var

    def _log_density(self, log_of_each: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):  # of a state that cannot be
            return np.asarray(scipy.special.logsumexp(np.log(self._states) + log_of_each, axis=-1))

    def cdf(self, y: Any) -> np.ndarray:
        """Return the probabilities of at most ``y``."""
        return self._over_states(self._components.cdf(np.asarray(y)[..., None]))

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantiles of the mixture over states, bracketed by the quantiles of each state."""
        each = np.broadcast_to(self._components.ppf(q), self._states.shape)
        low, high = each.min(axis=-1), each.max(axis=-1)
        low = low - 1 if self.is_count else np.nextafter(low, -np.inf)
        return reached(self.cdf, q, low, np.nextafter(high, np.inf) if not self.is_count else high, self.is_count)

    def rvs(self, size: tuple[int, ...], random_state: Any = None) -> np.ndarray:
        """Draw rows of shape ``size``, which ends in the rows."""
        rng = np.random.default_rng(random_state)
        ends = np.cumsum(self._states, axis=-1)[..., :-1]
        which = np.sum(rng.random(size)[..., None] > ends, axis=-1)
        each = self._components.rvs(size=(*size, self._states.shape[-1]), random_state=rng)
        return np.asarray(np.take_along_axis(each, which[..., None], axis=-1)[..., 0])


class RealRows(_Mixture):
    """Rows of real numbers."""

    def logpdf(self, y: Any) -> np.ndarray:
        """Return the log densities."""
        return self._log_density(self._components.logpdf(np.asarray(y)[..., None]))


class CountRows(_Mixture):
    """Rows of counts."""

    is_count = True

    def logpmf(self, y: Any) -> np.ndarray:
        """Return the log masses."""
        return self._log_density(self._components.logpmf(np.asarray(y)[..., None]))
