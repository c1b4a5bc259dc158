"""Marginal distributions of the entries of an inverse-Wishart matrix, also off the diagonal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.bases import Stackable
from bayeszoo.distributions.special import deviance, log_peak, log_rising

_NEGLIGIBLE = 1e-18
"""Mass left out at each end of an integral."""
_MIN_SHAPE = 0.002
"""Smallest shape of a variance's inverse-gamma law; below, log variances spread too far for the integral."""
_ERROR = 1e-10
"""Largest error of a probability, or relative error of a density; beyond, it is withheld."""


class CovarianceMarginals(Stackable):
    """Marginals of the entries of InvWishart(nu, Psi): arrays of shape (..., D, D) for nu (...) and Psi (..., D, D).

    A variance is inverse-gamma of shape a = (nu - D + 1) / 2 and scale Psi_jj / 2. If the variances of the scale
    matrix are 1 and its covariance is r, a covariance is b / (2 g) with independent g ~ Gamma(a, 1) and
    b ~ t_(2a + 1)(r, (1 - r^2) / (2a + 1)), as the variance is 1 / (2 g) and b the regression of one variable on the
    other (Eaton 2007, Multivariate Statistics, 8.1). Its distribution function at y is that of b at 2 y g, averaged
    over g: an integral over log g (tanh-sinh), in two parts that meet where 2 y g = r. Its numbers are NaN (withheld)
    where nu - D + 1 < 0.004 or the error of the integral is above 1e-10.
    """

    def __init__(self, nu: npt.ArrayLike, Psi: object) -> None:
        self.nu, self.Psi = np.asarray(nu, dtype=np.float64), np.asarray(Psi, dtype=np.float64)
        dim, variances = self.Psi.shape[-1], np.diagonal(self.Psi, axis1=-2, axis2=-1)
        self._shape, self._scale = (self.nu[..., None] - dim + 1) / 2, variances / 2
        self._free, self._diagonal = 2 * (self._shape[..., None] - 1), np.eye(dim, dtype=bool)
        self._off = np.nonzero(~self._diagonal)
        self._is_upper = self._off[0] < self._off[1]
        self._unit = np.sqrt(variances[..., :, None]) * np.sqrt(variances[..., None, :])
        self._variance = frozen.invgamma(self._shape, scale=self._scale)
        self._quantiles: dict[float, np.ndarray] = {}
        self._pairs = _of_pairs(self._shape, (self.Psi / self._unit)[..., *self._off])

    def beside(self, laws: Sequence[Self], axes: tuple[int, ...]) -> Self:
        """Stack the entries of several matrices to shape (*axes, ..., D, D)."""
        stacked = (np.stack([getattr(law, name) for law in laws]) for name in ("nu", "Psi"))
        return type(self)(*(values.reshape(*axes, *values.shape[1:]) for values in stacked))

    def mean(self) -> np.ndarray:
        """Psi / (nu - D - 1); where undefined, inf on the diagonal and NaN off it."""
        free = np.where(self._free > 0, self._free, np.nan)
        return np.where(self._diagonal & np.isnan(free), np.inf, self.Psi / free)

    def var(self) -> np.ndarray:
        """Return the variance; inf on the diagonal and NaN off it where nu <= D + 3."""
        return np.square(self.std())

    def std(self) -> np.ndarray:
        """Return the standard deviation; inf on the diagonal and NaN off it where nu <= D + 3."""
        free = np.where(self._free > 2, self._free, np.nan)
        root = np.hypot(np.sqrt(free + 2) * (self.Psi / free), np.sqrt(free) * (self._unit / free))
        return np.where(self._diagonal & np.isnan(free), np.inf, root / np.sqrt((free + 1) * (free - 2)))

    def cdf(self, x: npt.ArrayLike) -> np.ndarray:
        """Cumulative probability at ``x``, of shape (..., D, D)."""

        def of_variance(x: np.ndarray) -> np.ndarray:
            with np.errstate(divide="ignore"):
                return np.where(x <= 0, 0.0, _gamma_exceeds(self._shape, self._scale / np.maximum(x, 0.0)))

        return self._by_entry(x, of_variance, _cdf)

    def logpdf(self, x: npt.ArrayLike) -> np.ndarray:
        """Log density at ``x``, of shape (..., D, D); NaN (withheld) far in the tail of a covariance."""

        def of_variance(x: np.ndarray) -> np.ndarray:
            safe = np.where(x <= 0, 1.0, x)
            return np.where(x <= 0, -np.inf, _log_density_of_log_g(self._shape, self._scale / safe) - np.log(safe))

        log_density = self._by_entry(x, of_variance, _log_density)
        log_density[..., *self._off] -= np.log(self._unit[..., *self._off])
        return log_density

    def pdf(self, x: npt.ArrayLike) -> np.ndarray:
        """Density at ``x``, of shape (..., D, D); 0 where its logarithm is withheld, far in a tail."""
        return np.asarray(np.exp(np.nan_to_num(self.logpdf(x), nan=-np.inf)))

    def support(self) -> tuple[float, float]:
        """Return the ends of the support: a covariance may be any number."""
        return -math.inf, math.inf

    def ppf(self, q: float) -> np.ndarray:
        """Quantiles, of the shape of Psi; those of variances are inf beyond the largest float."""
        if q not in self._quantiles:  # two milliseconds an entry, and a fit needs each level several times
            self._quantiles[q] = self._computed(q)
        return self._quantiles[q].copy()

    def _computed(self, q: float) -> np.ndarray:
        quantiles = np.empty(self.Psi.shape)
        with np.errstate(divide="ignore", over="ignore"):
            quantiles[..., self._diagonal] = self._variance.ppf(q)
        i, j = (indices[self._is_upper] for indices in self._off)
        pairs = (values[..., self._is_upper] for values in self._pairs)
        quantiles[..., i, j] = quantiles[..., j, i] = _quantile(q, *pairs) * self._unit[..., i, j]
        return quantiles

    def _by_entry(self, x: Any, of_variance: Callable[..., Any], of_covariance: Callable[..., Any]) -> np.ndarray:
        x = np.asarray(x, dtype=np.float64)
        x = np.broadcast_to(x, np.broadcast_shapes(x.shape, self.Psi.shape))
        values = np.empty(x.shape)
        values[..., self._diagonal] = of_variance(x[..., self._diagonal])
        chosen = (
            self._is_upper if np.array_equal(x, x.mT) else slice(None)
        )  # each covariance of a symmetric matrix once
        i, j = (indices[chosen] for indices in self._off)
        pairs = (values[..., chosen] for values in self._pairs)
        values[..., i, j] = of_covariance(x[..., i, j] / self._unit[..., i, j], *pairs)
        if chosen is self._is_upper:
            values[..., j, i] = values[..., i, j]
        return values


def covariance_of_entries(nu: float, Psi: np.ndarray) -> np.ndarray:
    """Return the covariance matrix of the entries of InvWishart(nu, Psi), (D^2, D^2), if nu > D + 3 (Press 1982, 5.2).

    Else a diagonal matrix of the marginals' variances.
    """
    free = nu - len(Psi)
    if free <= 3:
        return np.diag(np.ravel(CovarianceMarginals(nu, Psi).var()))
    pairs = np.einsum("ik,jl->ijkl", Psi, Psi) + np.einsum("il,jk->ijkl", Psi, Psi)
    together = 2 * np.einsum("ij,kl->ijkl", Psi, Psi) + (free - 1) * pairs
    return (together / (free * (free - 1) ** 2 * (free - 3))).reshape(Psi.size, Psi.size)


def _gamma_exceeds(shape: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Probability that Gamma(shape, 1) exceeds ``x``; NaN where it is within 3e-5 of 1 and SciPy's error reaches 1e-6.

    That is at shapes above 1e6, over 4.5 standard deviations below the mean, where SciPy truncates its series.
    """
    is_off = (shape > 1e6) & (x < shape - 4 * np.sqrt(shape)) & (x > shape - 10 * np.sqrt(shape))
    return np.where(is_off, np.nan, scipy.special.gammaincc(shape, x))


def _of_pairs(shape: np.ndarray, r: np.ndarray) -> list[np.ndarray]:
    """Return parameters of covariances of 2 x 2 inverse-Wishart matrices of scale [[1, r], [r, 1]], r (..., n).

    ``shape`` is that of the inverse-gamma distribution of a variance: the degrees of freedom are nu = 2 shape + 1.
    They are the sign and the size of r, the steepness of t, the shape, and the ends of the integral.
    """
    is_computable, a = shape >= _MIN_SHAPE, np.maximum(shape, _MIN_SHAPE)
    size = np.where(is_computable, np.abs(r), np.nan)
    unexplained = (1 - size) * (1 + size)
    steepness = np.sqrt((2 * a + 1) / np.where(unexplained > 0, unexplained, np.nan))
    low, high = scipy.special.gammaincinv(a, _NEGLIGIBLE), scipy.special.gammainccinv(a, _NEGLIGIBLE)
    # the lower quantile underflows for small shapes, where P(g < x) = x^a / Gamma(a + 1) gives it
    of_power = (math.log(_NEGLIGIBLE) + scipy.special.gammaln(a + 1)) / a
    log_low = np.where(low > 1e-300, np.log(np.maximum(low, 1e-300)), of_power)
    return list(
        np.broadcast_arrays(np.where(r < 0, -1.0, 1.0), size, steepness, a, log_low - np.log(a), np.log(high / a))
    )


def _log_density(
    y: np.ndarray, sign: np.ndarray, r: np.ndarray, steepness: np.ndarray, *shape_and_ends: np.ndarray
) -> np.ndarray:
    """Log density at y of the covariance whose scale is sign r."""

    def density(t: np.ndarray, g: np.ndarray, nu: np.ndarray) -> np.ndarray:
        constant = log_rising(nu / 2, 0.5) - 0.5 * np.log(nu * math.pi)
        return 2 * g * np.exp(constant - (nu + 1) / 2 * np.log1p(t * t / nu))

    value, error = _average(density, 0.0, sign * y, r, steepness, *shape_and_ends)
    is_known = (value > 0) & (error <= _ERROR * value)
    return np.where(is_known, np.log(np.where(is_known, value * steepness, 1.0)), np.nan)


def _quantile(q: float, *args: np.ndarray) -> np.ndarray:
    """Return quantiles, of shape (..., n), by bracketing; NaN where the search fails."""
    shape, a = args[0].shape, args[3]
    if not 0 < q < 1:
        return np.full(shape, -np.inf if q == 0 else np.inf if q == 1 else np.nan)

    def place(s: np.ndarray, a: np.ndarray) -> np.ndarray:  # covers the many orders of magnitude of heavy tails
        return np.sinh(s) / (2 * a)

    def excess(s: np.ndarray, *args: np.ndarray) -> np.ndarray:
        return _cdf(place(s, args[3]), *args) - q

    ends = scipy.optimize.elementwise.bracket_root(excess, -np.ones(shape), args=args).bracket
    root = scipy.optimize.elementwise.find_root(excess, ends, args=args, tolerances={"fatol": 1e-13})
    return np.where(root.success, place(root.x, a), np.nan)


def _cdf(y: np.ndarray, sign: np.ndarray, r: np.ndarray, *steepness_shape_and_ends: Any) -> np.ndarray:
    """Distribution function at y of the covariance whose scale is sign r."""
    below, error = _average(lambda t, g, nu: scipy.special.stdtr(nu, t), 1e-13, sign * y, r, *steepness_shape_and_ends)
    below = np.where(error <= _ERROR, np.clip(below, 0.0, 1.0), np.nan)
    return np.where(sign < 0, 1 - below, below)


def _average(
    function: Callable[..., np.ndarray],
    tolerance: float,
    y: np.ndarray,
    r: np.ndarray,
    steepness: np.ndarray,
    a: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Average ``function(standardized 2 y g, g, nu)`` over log(g / a) from low to high; return it and its error bound.

    The distribution of g is Gamma(a, 1).
    """

    def integrand(z: np.ndarray, y: np.ndarray, r: np.ndarray, steepness: np.ndarray, a: np.ndarray) -> np.ndarray:
        g = a * np.exp(z)
        weight = np.exp(_log_density_of_log_g(a, g, -a * np.expm1(z)))
        return weight * function((2 * y * g - r) * steepness, g, 2 * a + 1)

    with np.errstate(all="ignore"):
        y, r, steepness, a, low, high = np.broadcast_arrays(y, r, steepness, a, low, high)
        middle = np.where((y > 0) & (r > 0), np.clip(np.log(r / (2 * y * a)), low, high), (low + high) / 2)
        limits = {"atol": tolerance, "rtol": 1e-13, "minlevel": 5, "args": (y, r, steepness, a)}
        parts = [scipy.integrate.tanhsinh(integrand, *ends, **limits) for ends in ((low, middle), (middle, high))]
        # the part beyond the ends, which matters for densities far in a tail
        left_out = np.maximum(*(integrand(end, y, r, steepness, a) for end in (low, high))) * (high - low)
    return sum(part.integral for part in parts), sum(part.error for part in parts) + left_out


def _log_density_of_log_g(shape: npt.ArrayLike, g: np.ndarray, difference: np.ndarray | None = None) -> np.ndarray:
    """Log density of log g at ``g`` ~ Gamma(shape, 1); ``difference`` is shape - g, if known to more digits."""
    return log_peak(shape) + np.log(shape) - deviance(shape, g, difference)
