"""Closed-form pieces that SciPy lacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions import frozen

QUANTILES = {"q025": 0.025, "median": 0.5, "q975": 0.975}
"""Names and levels of the quantiles by which every posterior is summarized."""

_LARGE = 64.0
"""From here on three terms of Stirling's series are exact to double precision."""


class Posterior(Mapping[str, Any]):
    """A posterior (or prior): marginals by name, joint draws and joint density.

    Parameters
    ----------
    marginals : mapping of str to frozen SciPy distribution
        Elementwise, of the parameter's shape: ``mean()``, ``std()``, ``ppf(q)``, ``cdf(x)``, and where the parameters
        are independent also ``rvs(size, random_state)`` and ``logpdf(x)``.
    draw : callable, optional
        ``draw(size, rng) -> {name: array of shape (*size, *parameter shape)}``, jointly; by default the marginals are
        drawn independently.
    log_density : callable, optional
        ``log_density(params) -> float``, jointly, with every constant; by default the marginals' densities multiply.
    """

    def __init__(
        self,
        marginals: Mapping[str, Any],
        draw: Callable[[tuple[int, ...], np.random.Generator], dict[str, np.ndarray]] | None = None,
        log_density: Callable[[Mapping[str, Any]], float] | None = None,
    ) -> None:
        self._marginals = dict(marginals)
        self._draw, self._log_density = draw or self._independent_draws, log_density or self._product

    @classmethod
    def product(cls, *parts: Posterior) -> Posterior:
        """Return the distribution of the parameters of several, which are independent of each other."""

        def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
            return {name: values for part in parts for name, values in part.rvs(size, rng).items()}

        marginals = {name: marginal for part in parts for name, marginal in part.items()}
        return cls(marginals, draw, lambda params: math.fsum(part.logpdf(params) for part in parts))

    def __getitem__(self, name: str) -> Any:
        return self._marginals[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._marginals)

    def __len__(self) -> int:
        return len(self._marginals)

    def rvs(self, size: int | tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw independently: arrays of shape ``(*size, *parameter shape)``."""
        return self._draw((size,) if isinstance(size, int) else size, rng)

    def logpdf(self, params: Mapping[str, Any]) -> float:
        """Log density at one point, with every constant."""
        return self._log_density(params)

    def _independent_draws(self, size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        shapes = {name: np.shape(marginal.mean()) for name, marginal in self.items()}
        return {name: self[name].rvs(size=(*size, *shape), random_state=rng) for name, shape in shapes.items()}

    def _product(self, params: Mapping[str, Any]) -> float:
        return math.fsum(float(np.sum(marginal.logpdf(params[name]))) for name, marginal in self.items())


def _stirling_remainder(x: np.ndarray) -> np.ndarray:
    """Return log Gamma(x) less the leading terms (x - 1/2) log x - x + log(2 pi)/2, for large x."""
    return (1 / 12 - (1 / 360 - 1 / (1260 * x * x)) / (x * x)) / x


def log_rising(a: Any, n: Any) -> np.ndarray:
    """Log of the rising factorial, log Gamma(a + n) - log Gamma(a), without cancellation when a is large.

    Parameters
    ----------
    a : array_like
        Positive base.
    n : array_like
        Non-negative number of factors.

    Returns
    -------
    ndarray
        Of the broadcast shape.

    Notes
    -----
    The difference of two log gammas at a = 1e9 loses six digits; the difference of their Stirling series, taken term
    by term, loses none (checked against mpmath).
    """
    a, n = np.asarray(a, dtype=np.float64), np.asarray(n, dtype=np.float64)
    small = scipy.special.gammaln(a + n) - scipy.special.gammaln(a)
    base = np.maximum(a, _LARGE)
    leading = (base - 0.5) * np.log1p(n / base) + n * np.log(base + n) - n
    return np.where(a < _LARGE, small, leading + _stirling_remainder(base + n) - _stirling_remainder(base))


def log_beta(x: Any, y: Any) -> np.ndarray:
    """Log of the Beta function, accurate relative to its size for any positive arguments.

    Notes
    -----
    The three log gammas of the definition are each of size x log x and cancel; here every term has the sign of the sum.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    low, high = np.minimum(x, y), np.maximum(x, y)
    small = scipy.special.gammaln(low) - log_rising(high, low)
    low, high = np.maximum(low, _LARGE), np.maximum(high, _LARGE)
    total = low + high
    leading = low * np.log(low / total) - high * np.log1p(low / high) + 0.5 * np.log(2 * np.pi * total / (low * high))
    large = leading + _stirling_remainder(low) + _stirling_remainder(high) - _stirling_remainder(total)
    return np.where(np.minimum(x, y) < _LARGE, small, large)


def log_beta_ratio(a: Any, b: Any, successes: Any, failures: Any) -> np.ndarray:
    """Log of B(a + successes, b + failures) / B(a, b): the evidence of a Beta prior and ordered binary data.

    Notes
    -----
    With a strong prior and few data the two Beta functions are nearly equal, and the series of their quotient is taken
    term by term; otherwise they are not, and their logarithms are subtracted.
    """
    a, b, s, f = (np.asarray(value, dtype=np.float64) for value in (a, b, successes, failures))
    before = log_beta(a, b)
    weak = log_beta(a + s, b + f) - before  # loses eps * |before|, the series below eps * (s + f)
    use_weak = (np.minimum(a, b) <= _LARGE) | (s + f > np.abs(before))
    a, b = np.maximum(a, _LARGE), np.maximum(b, _LARGE)
    strong = _log_beta_ratio_of_large(a, b, s, f)
    return np.where(use_weak, weak, strong)


def _log_beta_ratio_of_large(a: np.ndarray, b: np.ndarray, s: np.ndarray, f: np.ndarray) -> np.ndarray:
    total, n = a + b, s + f
    shares = (a + s) / (total + n), (b + f) / (total + n)
    # log of a share near one comes from the other, small share
    log_first = np.where(shares[0] < 0.5, np.log(shares[0]), np.log1p(-shares[1]))
    log_second = np.where(shares[1] < 0.5, np.log(shares[1]), np.log1p(-shares[0]))
    powers = (a - 0.5) * np.log1p(s / a) + (b - 0.5) * np.log1p(f / b) - (total - 0.5) * np.log1p(n / total)
    after = _stirling_remainder(a + s) + _stirling_remainder(b + f) - _stirling_remainder(total + n)
    before = _stirling_remainder(a) + _stirling_remainder(b) - _stirling_remainder(total)
    return powers + s * log_first + f * log_second + after - before


def log_binomial(n: Any, k: Any) -> np.ndarray:
    """Log binomial coefficients, log C(n, k): the number of orders that give the same counts."""
    n, k = np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64)
    return -log_beta(k + 1, n - k + 1) - np.log1p(n)


def sum_or_nan(value: float, first: float, second: float, tolerance: float = 1e-9) -> float:
    """Add to a value two numbers that may cancel.

    Where they are each other's opposite nothing is lost; NaN where rounding alone could exceed ``tolerance`` relative
    to max(1, |sum|).
    """
    total = value + (first + second)
    lost = 0.0 if first == -second else 4 * np.finfo(np.float64).eps * max(abs(first), abs(second))
    return total if lost <= tolerance * max(1.0, abs(total)) else math.nan


class InverseRootGamma:
    """The standard deviation lam**(-1/2) whose precision lam ~ Gamma(shape, rate); SciPy has only its square.

    Its tail is heavy: the mean is infinite for shape <= 1/2 and the standard deviation for shape <= 1, and draws do not
    show it.

    Parameters
    ----------
    shape, rate : float
        Of the Gamma distribution, > 0.
    """

    def __init__(self, shape: float, rate: float) -> None:
        self.shape, self.rate = float(shape), float(rate)
        self._precision = frozen.gamma(self.shape, scale=1 / self.rate)

    def mean(self) -> float:
        """Return sqrt(rate) Gamma(shape - 1/2) / Gamma(shape)."""
        if self.shape <= 0.5:
            return math.inf
        return math.sqrt(self.rate) * math.exp(-float(log_rising(self.shape - 0.5, 0.5)))

    def std(self) -> float:
        """Return the square root of rate / (shape - 1) less the squared mean."""
        if self.shape <= 1:
            return math.inf
        log_share = math.log(self.shape - 1) - 2 * float(log_rising(self.shape - 0.5, 0.5))  # mean^2 of the square's
        return math.sqrt(self.rate / (self.shape - 1) * -math.expm1(log_share))

    def cdf(self, x: Any) -> np.ndarray:
        """Cumulative probability at x."""
        x = np.asarray(x, dtype=np.float64)
        return np.where(x > 0, self._precision.sf(np.where(x > 0, x, 1.0) ** -2.0), 0.0)

    def ppf(self, q: float) -> float:
        """Return the quantile."""
        return float(self._precision.isf(q) ** -0.5)
