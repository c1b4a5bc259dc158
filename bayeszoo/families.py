"""Closed-form pieces that SciPy lacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy

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


def _stirling_remainder(x: float) -> float:
    """Return log Gamma(x) less the leading terms (x - 1/2) log x - x + log(2 pi)/2, for large x."""
    return (1 / 12 - (1 / 360 - 1 / (1260 * x * x)) / (x * x)) / x


def log_rising(a: float, n: float) -> float:
    """Log of the rising factorial, log Gamma(a + n) - log Gamma(a), without cancellation when a is large.

    Parameters
    ----------
    a : float
        Positive base.
    n : float
        Non-negative number of factors.

    Notes
    -----
    The difference of two log gammas at a = 1e9 loses six digits; the difference of their Stirling series, taken term
    by term, loses none (checked against mpmath).
    """
    if a < _LARGE:
        return float(scipy.special.gammaln(a + n) - scipy.special.gammaln(a))
    leading = (a - 0.5) * math.log1p(n / a) + n * math.log(a + n) - n
    return leading + _stirling_remainder(a + n) - _stirling_remainder(a)


def log_beta_ratio(a: float, b: float, successes: float, failures: float) -> float:
    """Log of B(a + successes, b + failures) / B(a, b): the evidence of a Beta prior and ordered binary data."""
    terms = log_rising(a, successes), log_rising(b, failures), -log_rising(a + b, successes + failures)
    return math.fsum(terms)


def log_binomial(n: np.ndarray, k: np.ndarray) -> float:
    """Sum over rows of log binomial coefficients, log C(n, k): the number of orders that give the same counts."""
    n, k = np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64)
    return math.fsum(np.ravel(-scipy.special.betaln(k + 1, n - k + 1) - np.log1p(n)))
