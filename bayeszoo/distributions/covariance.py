"""The marginal distributions of the entries of an inverse-Wishart matrix, off the diagonal too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.special import deviance, log_peak, log_rising

_NEGLIGIBLE = 1e-18
"""Mass left out at either end of an integral."""

_MIN_SHAPE = 0.002
"""Shape of the inverse-gamma distribution of a variance below which 1e5 nodes would not span its logarithm."""

_FARTHEST = 512.0
"""Quantiles are not sought beyond its hyperbolic sine."""


class CovarianceMarginals:
    """Each entry of an inverse-Wishart matrix by itself: arrays of shape (D, D).

    Parameters
    ----------
    nu : float
        Degrees of freedom, > D - 1.
    Psi : array_like
        Scale matrix of shape (D, D).

    Notes
    -----
    A variance is inverse-gamma of shape (nu - D + 1) / 2 and scale Psi_jj / 2. A covariance is an integral, see
    `_Covariance`. Its numbers are NaN, withheld, where nu - D + 1 < 0.004.
    """

    def __init__(self, nu: float, Psi: Any) -> None:
        self.nu, self.Psi = float(nu), np.asarray(Psi, dtype=np.float64)
        self._dim = len(self.Psi)
        self._off = np.nonzero(~np.eye(self._dim, dtype=bool))
        shape, sd = (self.nu - self._dim + 1) / 2, np.sqrt(np.diagonal(self.Psi))
        self._unit = np.outer(sd, sd)
        self._variance = _Variance(shape, np.diagonal(self.Psi) / 2)
        self._covariance = _Covariance(shape, (self.Psi / self._unit)[self._off])

    def mean(self) -> np.ndarray:
        """Psi / (nu - D - 1); where that has no meaning, inf on the diagonal and NaN off it."""
        free = self.nu - self._dim - 1
        return self.Psi / free if free > 0 else np.where(np.eye(self._dim, dtype=bool), np.inf, np.nan)

    def var(self) -> np.ndarray:
        """Return the variance; inf on the diagonal and NaN off it where nu <= D + 3."""
        free = self.nu - self._dim - 1
        if free <= 2:
            return np.where(np.eye(self._dim, dtype=bool), np.inf, np.nan)
        squares = (free + 2) * (self.Psi / free) ** 2 + (self._unit / free) * (self._unit / free) * free
        return squares / ((free + 1) * (free - 2))

    def std(self) -> np.ndarray:
        """Return the standard deviation; inf on the diagonal and NaN off it where nu <= D + 3."""
        return np.sqrt(self.var())

    def cdf(self, x: Any) -> np.ndarray:
        """Cumulative probability at ``x``, of shape (..., D, D)."""
        return self._each(x, self._variance.cdf, self._covariance.cdf)

    def logpdf(self, x: Any) -> np.ndarray:
        """Log density at ``x``, of shape (..., D, D); NaN, withheld, far out in the tail of a covariance."""
        log_density = self._each(x, self._variance.logpdf, self._covariance.logpdf)
        log_density[..., *self._off] -= np.log(self._unit[self._off])
        return log_density

    def ppf(self, q: float) -> np.ndarray:
        """Quantiles, of shape (D, D)."""
        out = np.empty(self.Psi.shape)
        out[range(self._dim), range(self._dim)] = self._variance.ppf(q)
        out[self._off] = self._covariance.ppf(q) * self._unit[self._off]
        return out

    def _each(self, x: Any, of_variance: Any, of_covariance: Any) -> np.ndarray:
        x = np.asarray(x, dtype=np.float64)
        x = np.broadcast_to(x, np.broadcast_shapes(x.shape, self.Psi.shape))
        out, diagonal = np.empty(x.shape), (..., range(self._dim), range(self._dim))
        out[diagonal] = of_variance(x[diagonal])
        out[..., *self._off] = of_covariance(x[..., *self._off] / self._unit[self._off])
        return out


class _Variance:
    """Inverse-gamma distributions; SciPy's lose their digits when the shape is large."""

    def __init__(self, shape: float, scale: np.ndarray) -> None:
        self._shape, self._scale = shape, scale

    def ppf(self, q: float) -> np.ndarray:
        """Quantiles; inf beyond the largest float."""
        with np.errstate(divide="ignore"):
            return frozen.invgamma(self._shape, scale=self._scale).ppf(q)

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Cumulative probability at ``x``."""
        return np.where(x <= 0, 0.0, _gamma_above(self._shape, self._scale / np.where(x <= 0, 1.0, x)))

    def logpdf(self, x: np.ndarray) -> np.ndarray:
        """Log density at ``x``."""
        safe = np.where(x <= 0, 1.0, x)
        return np.where(x <= 0, -np.inf, _log_density_of_log_g(self._shape, self._scale / safe) - np.log(safe))


class _Covariance:
    """The off-diagonal entry of 2 x 2 inverse-Wishart matrices with scale matrix [[1, r], [r, 1]].

    Parameters
    ----------
    shape : float
        Of the inverse-gamma distribution of the variance: the degrees of freedom are nu = 2 shape + 1.
    r : ndarray of shape (n,)

    Notes
    -----
    The entry is b / (2 g) with independent g ~ Gamma(shape, 1) and b ~ t_nu(r, (1 - r^2) / nu), for the variance is
    1 / (2 g) and b the regression of one variable on the other (e.g. Eaton 2007, Multivariate Statistics, 8.1). With
    r >= 0, by symmetry, its distribution function is

        F(y) = E[T(2 y g)] = T(0) + E[Q(shape, b / (2 y)); b > 0]      the latter for y > 0,

    T that of b and 1 - Q that of g. The trapezoidal rule in log g, or in log b, converges exponentially as long as the
    nodes are dense where the function averaged varies: so the average is over the narrower of the two, b where it
    is the sharper and y > 0, else g. In log g the function T has its nearest singularities at distance arccos(+-r).
    """

    def __init__(self, shape: float, r: np.ndarray) -> None:
        r = r if shape >= _MIN_SHAPE else np.full_like(r, np.nan)
        rest = (1 - np.abs(r)) * (1 + np.abs(r))
        self._shape, self._nu, self._flip, self._r = shape, 2 * shape + 1, np.where(r < 0, -1.0, 1.0), np.abs(r)
        self._steepness = np.sqrt(self._nu / np.where(rest > 0, rest, np.nan))
        self._sharp = self._r**2 > 1 / 3
        self._z, self._log_w = self._nodes_of_g()
        self._v, self._log_w_b = self._nodes_of_b()

    def _nodes_of_g(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes in z = log(g / shape) and log weights."""
        a = max(self._shape, _MIN_SHAPE)
        low, high = scipy.special.gammaincinv(a, _NEGLIGIBLE), scipy.special.gammainccinv(a, _NEGLIGIBLE)
        # the lower quantile underflows for small shapes, where P(g < x) = x^a / Gamma(a + 1) gives it
        log_low = math.log(low) if low > 1e-300 else (math.log(_NEGLIGIBLE) + math.lgamma(a + 1)) / a
        z, step = _grid(log_low - math.log(a), math.log(high / a), 0.15 / math.sqrt(1 + a / 4))
        return z, _log_density_of_log_g(a, a * np.exp(z), -a * np.expm1(z)) + math.log(step)

    def _nodes_of_b(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes in v = log(b / r), of shape (n, nodes), and log weights; v = width sinh(u), evenly in u."""
        r, c = np.where(self._sharp, self._r, 0.9), np.where(self._sharp, self._steepness, 1.0)
        reach, width = -scipy.special.stdtrit(self._nu, _NEGLIGIBLE) / (r * c), 1 / (r * c)
        closest = np.log(_NEGLIGIBLE * width)  # the density of log b falls as b does
        low = np.where(reach < 1, np.log1p(-np.where(reach < 1, reach, 0.0)), closest)
        u, step = _grid(np.arcsinh(np.maximum(low, closest) / width), np.arcsinh(np.log1p(reach) / width), 0.05)
        v = width[:, None] * np.sinh(u)
        slope = np.log(width[:, None] * np.cosh(u) * step[:, None]) + v + np.log(r * c)[:, None]
        return v, slope + _log_t(self._nu, (r * c)[:, None] * np.expm1(v))

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """Cumulative probability at ``y`` of shape (..., n)."""
        return self._cdf(y, np.arange(len(self._r)))

    def _cdf(self, y: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Cumulative probability of the covariances numbered ``which`` at ``y``."""
        y, which = np.broadcast_arrays(y, which)
        y, out = y * self._flip[which], np.empty(y.shape)
        by_b = self._sharp[which] & (y > 0)
        with np.errstate(over="ignore", under="ignore"):
            out[~by_b] = self._cdf_over_g(y[~by_b], which[~by_b])
            out[by_b] = self._cdf_over_b(y[by_b], which[by_b])
        out = np.clip(out, 0.0, 1.0)
        return np.where(self._flip[which] < 0, 1 - out, out)

    def _cdf_over_g(self, y: np.ndarray, which: np.ndarray) -> np.ndarray:
        return scipy.special.stdtr(self._nu, self._standard(y, which)) @ np.exp(self._log_w)

    def _standard(self, y: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Return b = 2 y g at the nodes of g, standardized."""
        g = self._shape * np.exp(self._z)
        return (2 * y[:, None] * g - self._r[which, None]) * self._steepness[which, None]

    def _cdf_over_b(self, y: np.ndarray, which: np.ndarray) -> np.ndarray:
        below = scipy.special.stdtr(self._nu, -self._r[which] * self._steepness[which])
        tail = _gamma_above(self._shape, self._half_ratio(y, which))
        return below + np.sum(np.exp(self._log_w_b[which]) * tail, axis=1)

    def _half_ratio(self, y: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Return g = b / (2 y) at the nodes of b."""
        return self._r[which, None] * np.exp(self._v[which]) / (2 * y[:, None])

    def logpdf(self, y: np.ndarray) -> np.ndarray:
        """Log density at ``y`` of shape (..., n)."""
        y, which = np.broadcast_arrays(y * self._flip, np.arange(len(self._r)))
        out, by_b = np.empty(y.shape), self._sharp[which] & (y > 0)
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            out[~by_b] = _log_sum(self._log_terms_over_g(y[~by_b], which[~by_b]))
            out[by_b] = _log_sum(self._log_terms_over_b(y[by_b], which[by_b]))
        return out

    def _log_terms_over_g(self, y: np.ndarray, which: np.ndarray) -> np.ndarray:
        slope = np.log(2 * self._shape * self._steepness[which])[:, None] + self._z
        return self._log_w + slope + _log_t(self._nu, self._standard(y, which))

    def _log_terms_over_b(self, y: np.ndarray, which: np.ndarray) -> np.ndarray:
        x = self._half_ratio(y, which)
        return self._log_w_b[which] + _log_density_of_log_g(self._shape, x) - np.log(y)[:, None]

    def ppf(self, q: float) -> np.ndarray:
        """Quantiles, of shape (n,), by bracketing; NaN where none was found."""
        which = np.arange(len(self._r))
        if not 0 < q < 1 or self._shape < _MIN_SHAPE:
            return np.full(len(which), -np.inf if q == 0 else np.inf if q == 1 else np.nan)

        def place(s: np.ndarray) -> np.ndarray:  # covers many orders of magnitude where the tails are heavy
            return np.sinh(s) / (2 * self._shape)

        def excess(s: np.ndarray, which: np.ndarray) -> np.ndarray:
            return self._cdf(place(s), which.astype(np.int64)) - q

        low, high = np.full(len(which), -1.0), np.full(len(which), 1.0)
        while np.any(out := (excess(low, which) > 0) & (low > -_FARTHEST)):
            low = np.where(out, 2 * low, low)
        while np.any(out := (excess(high, which) < 0) & (high < _FARTHEST)):
            high = np.where(out, 2 * high, high)
        found = scipy.optimize.elementwise.find_root(excess, (low, high), args=(which,), tolerances={"fatol": 1e-13})
        return np.where(found.success, place(found.x), np.nan)


def _grid(low: Any, high: Any, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Return evenly spaced nodes along a last axis, as many for every pair of ends, and their steps."""
    low, high = np.asarray(low), np.asarray(high)
    count = 1 + math.ceil(np.max(high - low, initial=step) / step)
    return np.linspace(low, high, count, axis=-1), (high - low) / (count - 1)


def _gamma_above(shape: float, x: np.ndarray) -> np.ndarray:
    """Probability that Gamma(shape, 1) exceeds ``x``.

    SciPy's is off by up to 1e-6 at shapes from 1e6 on, more than 4.5 standard deviations below the mean, where it cuts
    its series short; there the first term of the uniform expansion is exact (Temme 1979; DLMF 8.12).
    """
    above = scipy.special.gammaincc(shape, x)
    if shape < 1e5:
        return above
    far = x < shape - 4 * math.sqrt(shape)
    x = np.where(far, x, shape / 2)
    twice = 2 * deviance(shape, x)
    correction = np.exp(-twice / 2) / math.sqrt(2 * math.pi) * (np.sqrt(1 / twice) - math.sqrt(shape) / (shape - x))
    return np.where(far, scipy.special.ndtr(np.sqrt(twice)) + correction, above)


def _log_density_of_log_g(shape: float, g: np.ndarray, difference: np.ndarray | None = None) -> np.ndarray:
    """Log density of log g at ``g`` ~ Gamma(shape, 1); ``difference`` is shape - g, where it is known better."""
    return log_peak(shape) + math.log(shape) - deviance(shape, g, difference)


def _log_t(nu: float, t: np.ndarray) -> np.ndarray:
    """Log density of the standard Student-t distribution, accurate for large nu."""
    return log_rising(nu / 2, 0.5) - 0.5 * math.log(nu * math.pi) - (nu + 1) / 2 * np.log1p(t * t / nu)


def _log_sum(terms: np.ndarray) -> np.ndarray:
    """Log of the sum of exponentials along the last axis; NaN where the sum is not over by its ends."""
    log_sum = scipy.special.logsumexp(terms, axis=-1)
    left = np.maximum(terms[..., 0], terms[..., -1]) - log_sum
    return np.where(left < math.log(1e-11), log_sum, np.nan)
