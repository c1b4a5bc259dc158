"""A coefficient with a Laplace prior and a Gaussian likelihood: its exact posterior."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.named import RandomState
from bayeszoo.foundation.numerics.constants import LOG_2_PI

_FARTHEST = 1e6
"""Largest centre and prior slope, in standard errors, if both are large: beyond it digits are lost."""

_STEEPEST = 1e8
"""Ratio of standard error to prior scale above which the data do not change the prior in float64."""

_HALVINGS = 60
"""Bisections of the range of a quantile, at most 1,400 standard deviations wide, down to rounding."""

_LOG_ROOT_2_PI = 0.5 * LOG_2_PI

_QUIETLY = np.errstate(over="ignore", under="ignore", divide="ignore")
"""Ignores overflow of the squares of distant points."""


class LaplaceGaussian:
    """Distributions with density proportional to exp(-precision / 2 (w - centre)^2 - |w| / scale), elementwise.

    The posterior of a coefficient w ~ Laplace(0, scale) with a Gaussian likelihood: that of a single predictor, or of
    each of several orthogonal predictors. It joins two truncated normals at zero; ``loc`` is added to w. For a
    predictor x with known noise the precision is sum(x^2) / sigma^2; if it is 0, the distribution is the prior, for any
    centre. Raises `NumericalError` if data and prior are both so narrow that the digits of their difference are lost.

    Hans (2009), Bayesian lasso regression, section 2. In units of the standard error 1 / sqrt(precision), the density
    on each side of zero is proportional to exp(-s^2 / 2 - t s) in s = |w|, with t = p - k on the side of the centre and
    t = p + k on the other, where p = 1 / (scale sqrt(precision)) is the prior's slope and k the centre.
    """

    def __init__(
        self, precision: npt.ArrayLike, centre: object, scale: npt.ArrayLike, loc: npt.ArrayLike = 0.0
    ) -> None:
        arrays = (np.asarray(value, dtype=np.float64) for value in (precision, centre, scale, loc))
        precision, centre, scale, self._loc = np.broadcast_arrays(*arrays)
        ranges = {"precision must be >= 0": precision >= 0, "centre must be": True, "scale must be > 0": scale > 0}
        for (rule, inside), value in zip(ranges.items(), (precision, centre, scale), strict=True):
            if not np.all(np.isfinite(value) & inside):
                raise InputError(f"{rule} finite" if inside is True else f"{rule} and finite", "out_of_range")
        self._sign, self._far_off = np.where(centre < 0, -1.0, 1.0), np.abs(centre)
        with np.errstate(all="ignore"):
            error = 1 / np.sqrt(precision)
            self._slope = np.minimum(error / scale, _STEEPEST)
            self._unit = np.where(self._slope < _STEEPEST, error, scale * _STEEPEST)
            self._k = precision * self._far_off * self._unit
        if not np.all(np.isfinite(self._unit) & (self._k < 1e150)):  # larger squares would overflow
            raise InputError("precision, centre and scale: their product is too large to compute with", "too_large")
        if np.any(np.minimum(self._slope, self._k) > _FARTHEST):
            raise NumericalError(
                "an estimate is more than a million standard errors from a prior as narrow as they", "too_precise"
            )
        self._near, self._far = _HalfLine(self._slope - self._k), _HalfLine(self._slope + self._k)
        self._log_ratio = self._far.log_mass - self._near.log_mass
        self._p_near, self._p_far = scipy.special.expit(-self._log_ratio), scipy.special.expit(self._log_ratio)

    @property
    def log_normalizer(self) -> np.ndarray:
        """Log of the integral of exp(-precision / 2 (w - centre)^2 - |w| / scale) over w."""
        p, k, near = self._slope, self._k, self._near
        # avoids a cancellation of k^2 in the exponent and (p - k)^2 in the mass
        beyond = p * (p / 2 - k) + _LOG_ROOT_2_PI + near.log_above
        within = near.log_mass - k * k / 2
        return np.where(near.t < 0, beyond, within) + np.log1p(np.exp(self._log_ratio)) + np.log(self._unit)

    def mean(self) -> np.ndarray:
        """Return the mean, accurate relative to the standard deviation."""
        return self._loc + self._sign * (self._p_near * self._near.mean - self._p_far * self._far.mean) * self._unit

    def std(self) -> np.ndarray:
        """Return the standard deviation."""
        within = self._p_near * self._near.var + self._p_far * self._far.var
        of_means = self._p_near * self._p_far * (self._near.mean + self._far.mean) ** 2
        return np.sqrt(within + of_means) * self._unit

    @_QUIETLY
    def logpdf(self, x: npt.ArrayLike) -> np.ndarray:
        """Log density at ``x``."""
        y, s, z = self._place(x)
        near = self._near.logpdf(s, z) + scipy.special.log_expit(-self._log_ratio)
        far = self._far.logpdf(s, z) + scipy.special.log_expit(self._log_ratio)
        return np.where(y >= 0, near, far) - np.log(self._unit)

    @_QUIETLY
    def cdf(self, x: npt.ArrayLike) -> np.ndarray:
        """Probability below ``x``."""
        y, s, z = self._place(x)
        near_beyond, near_within = self._near.tails(s, z)
        far_beyond, far_within = self._far.tails(s, z)
        below = np.where(y >= 0, self._p_far + self._p_near * near_within, self._p_far * far_beyond)
        above = np.where(y >= 0, self._p_near * near_beyond, self._p_near + self._p_far * far_within)
        # the smaller probability is accurate; the larger is its complement
        below, above = np.where(above < 0.5, 1 - above, below), np.where(below < 0.5, 1 - below, above)
        return np.where(self._sign > 0, below, above)

    def ppf(self, q: npt.ArrayLike) -> np.ndarray:
        """Quantiles to the precision of floats; NaN if ``q`` is not between 0 and 1."""
        q = np.asarray(q, dtype=np.float64)
        inside = (q > 0) & (q < 1)
        safe, mean = np.where(inside, q, 0.5), self.mean()
        # a log-concave density has mass of less than exp(1 - c) beyond c standard deviations from its mean
        farthest = (2 - np.log(np.minimum(safe, 1 - safe))) * self.std() + 4 * np.spacing(np.abs(mean))
        low, high = mean - farthest, mean + farthest
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            short = self.cdf(middle) < safe
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        ends = np.select([q == 0, q == 1], [-np.inf, np.inf], np.nan)
        return np.where(inside, (low + high) / 2, ends)

    def rvs(self, size: int | tuple[int, ...] | None = None, random_state: RandomState = None) -> np.ndarray:
        """Draw independently, as in SciPy: ``size`` is the shape of the result and ends in that of the parameters."""
        size = self._sign.shape if size is None else size
        return np.broadcast_to(self.ppf(np.random.default_rng(random_state).random(size)), size)

    @_QUIETLY
    def _place(self, x: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return w, mirrored if the centre is negative; its size; and its distance from the near normal's mean."""
        y = self._sign * (np.asarray(x, dtype=np.float64) - self._loc)
        return y, np.abs(y) / self._unit, (y - self._far_off) / self._unit + self._slope


class _HalfLine:
    """Distributions on s > 0 with density proportional to exp(-s^2 / 2 - t s): normal with mean -t, truncated at zero.

    ``log_mass`` is the log of the integral of exp(-s^2 / 2 - t s), and ``log_above`` the log probability of s > 0 under
    the normal distribution. Numbers are relative to exp(-t s) for t >= 0, and to the normal distribution for t < 0.
    """

    def __init__(self, t: np.ndarray) -> None:
        self.t, self.log_above = t, scipy.special.log_ndtr(-t)
        self._downhill, below = t >= 0, np.minimum(t, 0.0)
        log_mass = np.log(_mills(np.maximum(t, 0.0)))
        self.log_mass = np.where(self._downhill, log_mass, below * below / 2 + _LOG_ROOT_2_PI + self.log_above)
        self.mean, ratio = _ratios(t)
        self.var = np.where(t > 2, self.mean * (2 * ratio - self.mean), 1 - self.mean / _mills(t))

    def logpdf(self, s: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Log density of s; z is s + t, computed to more digits if t < 0."""
        downhill = -(s / 2 + self.t) * s - self.log_mass
        return np.where(self._downhill, downhill, -z * z / 2 - _LOG_ROOT_2_PI - self.log_above)

    def tails(self, s: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities beyond and within s; z is s + t, computed to more digits if t < 0."""
        t = np.maximum(self.t, 0.0)
        downhill = -(s / 2 + t) * s + np.log(_mills(t + s) / _mills(t))
        log_beyond = np.where(self._downhill, downhill, scipy.special.log_ndtr(-z) - self.log_above)
        return np.exp(log_beyond), np.maximum(-np.expm1(log_beyond), 0.0)


def _mills(t: np.ndarray) -> np.ndarray:
    """Return Mills' ratio, the integral of exp(-s^2 / 2 - t s) over s > 0."""
    return math.sqrt(math.pi / 2) * scipy.special.erfcx(t * math.sqrt(0.5))


def _ratios(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of the distribution on the half line, and half of its mean square divided by the mean.

    With J_n the integral of s^n / n! exp(-s^2 / 2 - t s), these are the first two of r_n = J_n / J_(n - 1). Integration
    by parts gives r_n = 1 / (t + (n + 1) r_(n + 1)): a continued fraction of positive terms, used for large t, where
    1 / mills - t would cancel.
    """
    large = np.maximum(t, 2.0)
    r = after = 2 / (large + np.sqrt(large * large + 4 * 64))
    for n in range(63, 0, -1):
        r, after = 1 / (large + (n + 1) * r), r
    small = np.minimum(t, 2.0)
    mean = 1 / _mills(small) - small
    return np.where(t > 2, r, mean), np.where(t > 2, after, (1 / mean - small) / 2)
