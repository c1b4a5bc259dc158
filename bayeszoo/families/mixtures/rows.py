"""The distribution of the rows of a Gaussian mixture: moments, quantiles, density and draws, for many draws at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy

from bayeszoo.families.mixtures.gaussian_components import GaussianComponents

_CELLS = 2**20
"""Numbers that are held at once."""
_HALVINGS = 64
"""By then an interval of floats is down to two neighbours, or to a 2**-64th of its length."""

Values = Mapping[str, Any]


def piecewise(function: Callable[[Values], dict[str, Any]], params: Values, cells: int) -> dict[str, np.ndarray]:
    """Apply a function to a few draws at a time, so that little memory is needed.

    Parameters
    ----------
    function : callable
        Takes parameters with one leading axis of draws, and returns arrays that have it too.
    params : mapping of str to array_like
        With any number of leading axes of draws; ``weights`` has one more.
    cells : int
        Numbers that one draw needs.
    """
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in params.items()}
    leading = arrays["weights"].shape[:-1]
    flat = {name: values.reshape(-1, *values.shape[len(leading) :]) for name, values in arrays.items()}
    step = max(_CELLS // max(cells, 1), 1)
    starts = range(0, len(flat["weights"]), step)
    parts = [function({name: v[i : i + step] for name, v in flat.items()}) for i in starts]
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {name: values.reshape(*leading, *values.shape[1:]) for name, values in whole.items()}


class MixtureRows:
    """Rows of a Gaussian mixture given its parameters; leading axes of these are draws.

    Parameters
    ----------
    components : GaussianComponents
        How covariances are written.
    params : mapping of str to array_like
        ``weights`` (..., K), ``means`` (..., K, D) and ``covariances``.
    rows : int
        How many.
    """

    def __init__(self, components: GaussianComponents, params: Values, rows: int) -> None:
        names = ("weights", "means", "covariances")
        self._components, self._rows = components, rows
        self._params = {name: np.asarray(params[name], dtype=np.float64) for name in names}
        self._weights, self._means, covariances = self._params.values()
        self._sds = np.sqrt(components.variances(covariances))

    def _tile(self, values: np.ndarray) -> np.ndarray:
        shape = (*values.shape[:-1], self._rows, values.shape[-1])
        return np.broadcast_to(values[..., None, :], shape)

    def _average(self, values: np.ndarray) -> np.ndarray:
        """Average over components what has shape (..., K, D)."""
        return np.sum(self._weights[..., None] * values, axis=-2)

    def _centre(self) -> np.ndarray:
        first = self._means[..., :1, :]  # about it, so that means near 1e9 keep their digits
        return first[..., 0, :] + self._average(self._means - first)

    def _variance(self) -> np.ndarray:
        shift = self._means - self._centre()[..., None, :]
        return self._average(self._sds**2 + shift**2)

    def mean(self) -> np.ndarray:
        """Return the mean of each entry, of shape (..., rows, D)."""
        return self._tile(self._centre())

    def var(self) -> np.ndarray:
        """Return the variance of each entry, of shape (..., rows, D)."""
        return self._tile(self._variance())

    def std(self) -> np.ndarray:
        """Return the standard deviation of each entry, of shape (..., rows, D)."""
        return self._tile(np.sqrt(self._variance()))

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantile of each entry, of shape (..., rows, D), by halving the interval of the components'."""
        each = self._means + self._sds * scipy.special.ndtri(q)
        low, high = each.min(axis=-2), each.max(axis=-2)
        for _ in range(_HALVINGS):
            middle = low + (high - low) / 2
            below = self._average(scipy.special.ndtr((middle[..., None, :] - self._means) / self._sds)) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return self._tile(high)

    def logpdf(self, Y: Any) -> np.ndarray:
        """Joint log density of each row of ``Y``, of shape (rows, D); of shape (..., rows)."""
        rows = np.asarray(Y, dtype=np.float64)

        def log_density(params: Values) -> dict[str, np.ndarray]:
            return {"rows": np.logaddexp.reduce(log_terms(self._components, params, rows), axis=-1)}

        return piecewise(log_density, self._params, self._means.shape[-2] * rows.size)["rows"]

    def rvs(self, size: tuple[int, ...], random_state: Any = None) -> np.ndarray:
        """Draw rows of shape ``size``, which is (..., rows, D)."""
        rng = np.random.default_rng(random_state)
        ends = np.cumsum(self._weights, axis=-1)[..., None, :-1]
        which = np.sum(rng.random(size[:-1])[..., None] > ends, axis=-1)
        z, drawn = rng.standard_normal(size), np.empty(size)
        factors = np.linalg.cholesky(self._components.matrices(self._params["covariances"]))
        for k in range(self._weights.shape[-1]):
            of_k = self._means[..., k, None, :] + z @ factors[..., k, :, :].mT
            drawn = np.where((which == k)[..., None], of_k, drawn)
        return drawn


def log_terms(components: GaussianComponents, params: Values, Y: np.ndarray) -> np.ndarray:
    """Log of weight times density of rows (N, D), of shape (..., N, K)."""
    with np.errstate(divide="ignore"):  # of a weight of 0
        log_weights = np.log(np.asarray(params["weights"], dtype=np.float64))
    return log_weights[..., None, :] + components.log_density(Y, params["means"], params["covariances"])
