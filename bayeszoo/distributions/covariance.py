"""The marginal distributions of the entries of an inverse-Wishart matrix, off the diagonal too."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions import frozen
from bayeszoo.distributions.special import deviance, log_peak, log_rising

_NEGLIGIBLE = 1e-18
"""Mass left out at either end of an integral."""
_MIN_SHAPE = 0.002
"""Shape of the inverse-gamma distribution of a variance below which its logarithm spreads too far to integrate over."""
_ERROR = 1e-10
"""Error of a probability, or of a density relative to itself, above which it is withheld."""


class CovarianceMarginals:
    """Each entry of InvWishart(nu, Psi) by itself: arrays of shape (D, D).

    A variance is inverse-gamma of shape a = (nu - D + 1) / 2 and scale Psi_jj / 2. Where the variances of the scale
    matrix are 1 and its covariance is r, a covariance is b / (2 g) with independent g ~ Gamma(a, 1) and
    b ~ t_(2a + 1)(r, (1 - r^2) / (2a + 1)), for the variance is 1 / (2 g) and b the regression of one variable on the
    other (Eaton 2007, Multivariate Statistics, 8.1). Its distribution function at y is that of b at 2 y g, averaged
    over g: an integral over log g (tanh-sinh), in two parts that meet where 2 y g = r. Its numbers are NaN, withheld,
    where nu - D + 1 < 0.004 or the error of the integral is above 1e-10.
    """

    def __init__(self, nu: float, Psi: Any) -> None:
        self.nu, self.Psi = float(nu), np.asarray(Psi, dtype=np.float64)
        dim = len(self.Psi)
        self._free, self._diagonal = self.nu - dim - 1, np.eye(dim, dtype=bool)
        self._off = np.nonzero(~self._diagonal)
        sd = np.sqrt(np.diagonal(self.Psi))
        self._unit = np.outer(sd, sd)
        self._shape = (self.nu - dim + 1) / 2
        self._scale = np.diagonal(self.Psi) / 2
        self._variance = frozen.invgamma(self._shape, scale=self._scale)
        self._covariance = _Covariance(self._shape, (self.Psi / self._unit)[self._off])

    def mean(self) -> np.ndarray:
        """Psi / (nu - D - 1); where that has no meaning, inf on the diagonal and NaN off it."""
        return self.Psi / self._free if self._free > 0 else np.where(self._diagonal, np.inf, np.nan)

    def var(self) -> np.ndarray:
        """Return the variance; inf on the diagonal and NaN off it where nu <= D + 3."""
        free = self._free
        if free <= 2:
            return np.where(self._diagonal, np.inf, np.nan)
        squares = (free + 2) * (self.Psi / free) ** 2 + (self._unit / free) * (self._unit / free) * free
        return squares / ((free + 1) * (free - 2))

    def std(self) -> np.ndarray:
        """Return the standard deviation; inf on the diagonal and NaN off it where nu <= D + 3."""
        return np.sqrt(self.var())

    def cdf(self, x: Any) -> np.ndarray:
        """Cumulative probability at ``x``, of shape (..., D, D)."""

        def of_variance(x: np.ndarray) -> np.ndarray:
            with np.errstate(divide="ignore"):
                return np.where(x <= 0, 0.0, _gamma_exceeds(self._shape, self._scale / np.maximum(x, 0.0)))

        return self._each(x, of_variance, self._covariance.cdf)

    def logpdf(self, x: Any) -> np.ndarray:
        """Log density at ``x``, of shape (..., D, D); NaN, withheld, far out in the tail of a covariance."""

        def of_variance(x: np.ndarray) -> np.ndarray:
            safe = np.where(x <= 0, 1.0, x)
            return np.where(x <= 0, -np.inf, _log_density_of_log_g(self._shape, self._scale / safe) - np.log(safe))

        log_density = self._each(x, of_variance, self._covariance.logpdf)
        log_density[..., *self._off] -= np.log(self._unit[self._off])
        return log_density

    def ppf(self, q: float) -> np.ndarray:
        """Quantiles, of shape (D, D); those of variances are inf beyond the largest float."""
        quantiles = np.empty(self.Psi.shape)
        with np.errstate(divide="ignore"):
            quantiles[self._diagonal] = self._variance.ppf(q)
        quantiles[self._off] = self._covariance.ppf(q) * self._unit[self._off]
        return quantiles

    def _each(self, x: Any, of_variance: Callable[..., Any], of_covariance: Callable[..., Any]) -> np.ndarray:
        x = np.asarray(x, dtype=np.float64)
        x = np.broadcast_to(x, np.broadcast_shapes(x.shape, self.Psi.shape))
        values = np.empty(x.shape)
        values[..., self._diagonal] = of_variance(x[..., self._diagonal])
        values[..., *self._off] = of_covariance(x[..., *self._off] / self._unit[self._off])
        return values


def _gamma_exceeds(shape: float, x: np.ndarray) -> np.ndarray:
    """Probability that Gamma(shape, 1) exceeds ``x``.

    SciPy's is off by up to 1e-6 at shapes from 1e6 on, more than 4.5 standard deviations below the mean, where it cuts
    its series short; there the first term of the uniform expansion is exact (Temme 1979; DLMF 8.12).
    """
    above = scipy.special.gammaincc(shape, x)
    if shape < 1e5:
        return np.asarray(above)
    far = (x > 0) & (x < shape - 4 * math.sqrt(shape))
    x = np.where(far, x, shape / 2)
    twice = 2 * deviance(shape, x)
    correction = np.exp(-twice / 2) / math.sqrt(2 * math.pi) * (np.sqrt(1 / twice) - math.sqrt(shape) / (shape - x))
    return np.where(far, scipy.special.ndtr(np.sqrt(twice)) + correction, above)


class _Covariance:
    """The covariances of 2 x 2 inverse-Wishart matrices whose scale matrices are [[1, r], [r, 1]], r of shape (n,).

    ``shape`` is that of the inverse-gamma distribution of a variance: the degrees of freedom are nu = 2 shape + 1.
    """

    def __init__(self, shape: float, r: np.ndarray) -> None:
        self._shape, self._nu, self._sign = shape, 2 * shape + 1, np.where(r < 0, -1.0, 1.0)
        self._r = np.abs(r) if shape >= _MIN_SHAPE else np.full_like(r, np.nan)
        rest = (1 - self._r) * (1 + self._r)
        self._steepness = np.sqrt(self._nu / np.where(rest > 0, rest, np.nan))
        a = max(shape, _MIN_SHAPE)
        low, high = scipy.special.gammaincinv(a, _NEGLIGIBLE), scipy.special.gammainccinv(a, _NEGLIGIBLE)
        # the lower quantile underflows for small shapes, where P(g < x) = x^a / Gamma(a + 1) gives it
        log_low = math.log(low) if low > 1e-300 else (math.log(_NEGLIGIBLE) + math.lgamma(a + 1)) / a
        self._ends = log_low - math.log(a), math.log(high / a)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """Cumulative probability at ``y`` of shape (..., n)."""
        return self._cdf(y, self._r, self._steepness, self._sign)

    def _cdf(self, y: Any, r: Any, steepness: Any, sign: Any) -> np.ndarray:
        def below(t: np.ndarray, g: np.ndarray) -> np.ndarray:
            return scipy.special.stdtr(self._nu, t)

        below_y, error = self._average(below, sign * y, r, steepness, 1e-13)
        below_y = np.where(error <= _ERROR, np.clip(below_y, 0.0, 1.0), np.nan)
        return np.where(sign < 0, 1 - below_y, below_y)

    def logpdf(self, y: np.ndarray) -> np.ndarray:
        """Log density at ``y`` of shape (..., n)."""
        constant = log_rising(self._nu / 2, 0.5) - 0.5 * math.log(self._nu * math.pi)

        def density(t: np.ndarray, g: np.ndarray) -> np.ndarray:
            return 2 * g * np.exp(constant - (self._nu + 1) / 2 * np.log1p(t * t / self._nu))

        value, error = self._average(density, self._sign * y, self._r, self._steepness, 0.0)
        known = (value > 0) & (error <= _ERROR * value)
        return np.where(known, np.log(np.where(known, value * self._steepness, 1.0)), np.nan)

    def _average(
        self, function: Callable[..., np.ndarray], y: Any, r: Any, steepness: Any, tolerance: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Average ``function(standardized 2 y g, g)`` over g; return the average and a bound on its error."""
        (low, high), a = self._ends, self._shape

        def integrand(z: np.ndarray, y: np.ndarray, r: np.ndarray, steepness: np.ndarray) -> np.ndarray:
            g = a * np.exp(z)
            weight = np.exp(_log_density_of_log_g(a, g, -a * np.expm1(z)))
            return weight * function((2 * y * g - r) * steepness, g)

        with np.errstate(all="ignore"):
            y, r, steepness = np.broadcast_arrays(y, r, steepness)
            middle = np.where((y > 0) & (r > 0), np.clip(np.log(r / (2 * y * a)), low, high), (low + high) / 2)
            limits = {"atol": tolerance, "rtol": 1e-13, "minlevel": 5, "args": (y, r, steepness)}
            parts = [scipy.integrate.tanhsinh(integrand, *ends, **limits) for ends in ((low, middle), (middle, high))]
            # what is beyond the ends, which matters to a density far out
            left_out = np.maximum(*(integrand(np.asarray(end), y, r, steepness) for end in self._ends)) * (high - low)
        return sum(part.integral for part in parts), sum(part.error for part in parts) + left_out

    def ppf(self, q: float) -> np.ndarray:
        """Quantiles, of shape (n,), by bracketing; NaN where none was found."""
        if not 0 < q < 1 or self._shape < _MIN_SHAPE:
            return np.full(self._r.shape, -np.inf if q == 0 else np.inf if q == 1 else np.nan)
        args = (self._r, self._steepness, self._sign)

        def place(s: np.ndarray) -> np.ndarray:  # covers many orders of magnitude where the tails are heavy
            return np.sinh(s) / (2 * self._shape)

        def excess(s: np.ndarray, *args: np.ndarray) -> np.ndarray:
            return self._cdf(place(s), *args) - q

        ends = scipy.optimize.elementwise.bracket_root(excess, -np.ones_like(self._r), args=args).bracket
        root = scipy.optimize.elementwise.find_root(excess, ends, args=args, tolerances={"fatol": 1e-13})
        return np.where(root.success, place(root.x), np.nan)


def _log_density_of_log_g(shape: float, g: np.ndarray, difference: np.ndarray | None = None) -> np.ndarray:
    """Log density of log g at ``g`` ~ Gamma(shape, 1); ``difference`` is shape - g, where it is known better."""
    return log_peak(shape) + math.log(shape) - deviance(shape, g, difference)
