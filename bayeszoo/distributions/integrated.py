"""The posterior of few outer parameters on a grid, and of inner ones that have a closed form given each of its points.

Marginals of the inner parameters are finite mixtures, one component a point of the grid. Their moments follow by the
laws of total expectation and variance, their quantiles by Newton steps within bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy

from bayeszoo.distributions.posterior import QUANTILES, Posterior
from bayeszoo.foundation.grid import Grid, Integrand, combinations
from bayeszoo.foundation.quadrature import Distribution

NOTHING = 1e-13
"""Probability below which a point of the grid is left out of the mixtures."""
DECIDED = 1e-6
"""Height at the bounds of what is integrated for a moment, to its highest: above, the bounds decide it: it is NaN."""
MOST_NUMBERS = 2_000_000
"""Entries, points times rows, that are computed at a time."""
CLOSE = 1e-11
"""Probability within which a quantile is found."""
NEWTON = 100
TINY = np.finfo(np.float64).tiny

Values = Mapping[str, Any]
Inner = Callable[[Values], Posterior]
"""The distribution of the inner parameters given outer ones, of shape (P,): of shape (P, *own shape)."""


class Moments(NamedTuple):
    """Mean and sd over the grid, and those of them that the bounds do not decide; the others are NaN."""

    mean: np.ndarray
    sd: np.ndarray
    own_mean: np.ndarray
    own_sd: np.ndarray


class _Mixed:
    """A marginal whose moments are known."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments

    def mean(self) -> Any:
        """Return the mean; NaN where the bounds of the grid decide it."""
        return self._moments.own_mean

    def std(self) -> Any:
        """Return the standard deviation; NaN where the bounds of the grid decide it."""
        return self._moments.own_sd


class OuterMarginal(_Mixed):
    """The marginal of an outer parameter, whose distribution function is tabulated."""

    def __init__(self, moments: Moments, distribution: Distribution) -> None:
        super().__init__(moments)
        self.cdf, self.ppf = distribution.cdf, distribution.quantile


class InnerMarginal(_Mixed):
    """The marginal of an inner parameter: a mixture of P distributions, of shape (P, *own shape), by weights (P,)."""

    def __init__(self, moments: Moments, components: Any, weights: np.ndarray) -> None:
        super().__init__(moments)
        self._components, self._weights, self._quantiles = components, weights, dict[float, np.ndarray]()

    def cdf(self, x: Any) -> np.ndarray:
        """Return the probability below ``x``, of the own shape, with leading axes or without."""
        return self._mixed(self._components.cdf, x)

    def pdf(self, x: Any) -> np.ndarray:
        """Return the density at ``x``, of the own shape, with leading axes or without."""
        return self._mixed(self._components.pdf, x)

    def _mixed(self, function: Callable[[Any], np.ndarray], x: Any) -> np.ndarray:
        x = np.asarray(x, dtype=np.float64)
        own = np.shape(self._moments.mean)
        if x.ndim <= len(own):
            return np.asarray(np.tensordot(self._weights, function(x), 1))
        flat = x.reshape(-1, *own)
        each = [np.tensordot(self._weights, function(place), 1) for place in flat]
        return np.reshape(each, x.shape)

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantile of a level, within 1e-11 in probability."""
        if q not in self._quantiles:
            self._quantiles[q] = self._solved(q)
        return self._quantiles[q]

    def _solved(self, q: float) -> np.ndarray:
        """Take Newton steps, in normal scores, to a quantile, and where they leave its bounds halve these.

        It lies within sd sqrt((1 - q) / q) below the mean and sd sqrt(q / (1 - q)) above it (Cantelli).
        """
        mean, sd = self._moments[:2]
        if not np.size(mean):
            return mean
        least = float(np.min(self._components.support()[0]))
        low, high = np.maximum(mean - sd * np.sqrt((1 - q) / q), least), mean + sd * np.sqrt(q / (1 - q))
        score = scipy.special.ndtri(q)
        x = _guess(mean, sd, score, least >= 0)
        for _ in range(NEWTON):
            below = self.cdf(x)
            is_far = np.abs(below - q) > CLOSE
            if not is_far.any():
                break
            low, high = np.where(below < q, x, low), np.where(below > q, x, high)
            own = scipy.special.ndtri(below)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # far out there is no density
                step = (score - own) * np.exp(-own * own / 2) / (np.sqrt(2 * np.pi) * self.pdf(x))
                there = x * np.exp(step / x) if least >= 0 else x + step
            there = np.where((there >= low) & (there <= high), there, _middle(low, high))
            x = np.where(is_far, there, x)
        return x


def _guess(mean: np.ndarray, sd: np.ndarray, score: float, is_positive: bool) -> np.ndarray:
    """Return the quantile of a normal distribution, of positive numbers of a log-normal one, with these moments."""
    if not is_positive:
        return mean + sd * score
    width = np.sqrt(np.log1p(np.square(sd / mean)))
    return mean * np.exp(width * (score - width / 2))


def _middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return a point between, of positive numbers that differ much their geometric mean: quantiles may be 1e-100."""
    apart = (low >= 0) & (high > 1e3 * low)
    return np.where(apart, np.sqrt(np.maximum(low, TINY) * np.maximum(high, TINY)), (low + high) / 2)


def integrated(
    integrand: Integrand, grid: Grid, inner: Inner, log_joint: Callable[[Values], Any], rows: int
) -> Posterior:
    """Return the joint posterior of the outer parameters, which the integrand names, and the inner ones of ``rows``.

    ``log_joint`` returns the log density in the outer parameters themselves, not their coordinates.
    """
    at = partial(_at, integrand)

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        outer = at(grid.draw(math.prod(size), rng))
        both = {**outer, **inner(outer).rvs((), rng)}
        return {name: np.reshape(values, (*size, *values.shape[1:])) for name, values in both.items()}

    def log_density(params: Values) -> Any:
        outer = {name: np.asarray(params[name]) for name in integrand.names}
        return log_joint(outer) - grid.log_integral + inner(outer).logpdf(params)

    moments = _moments(integrand, grid, inner, max(1, MOST_NUMBERS // max(1, rows)))
    marginals: dict[str, Any] = {}
    for i, name in enumerate(integrand.names):
        tabulated = grid.distribution(i)
        distribution = Distribution(integrand.values(i, tabulated.points), tabulated.below)
        marginals[name] = OuterMarginal(moments[name], distribution)
    # the halved grid is as good, or a check fails, and quantiles take a quarter of the time
    return Posterior(marginals | _inner_marginals(integrand, grid.halved, inner, moments), draw, log_density)


def inner_moved(integrand: Integrand, grid: Grid, inner: Inner) -> float:
    """Return by how much probability quantiles of the inner parameters move when the grid is halved.

    It sees components that are narrower than the grid, which then add up to steps and not to a smooth distribution.
    """
    moments = _moments(integrand, grid, inner, MOST_NUMBERS)
    fine, coarse = (_inner_marginals(integrand, each, inner, moments) for each in (grid, grid.halved))
    moved = [0.0]
    for name, q in itertools.product(fine, QUANTILES.values()):
        quantile = coarse[name].ppf(q)
        is_number = np.abs(quantile) > 1e3 * TINY  # below, it is shown as 0
        moved.append(float(np.max(np.abs(fine[name].cdf(quantile) - q), where=is_number, initial=0.0)))
    return max(moved)


def _at(integrand: Integrand, places: np.ndarray) -> dict[str, np.ndarray]:
    return {name: integrand.values(i, places[:, i]) for i, name in enumerate(integrand.names)}


def _inner_marginals(
    integrand: Integrand, grid: Grid, inner: Inner, moments: Mapping[str, Moments]
) -> dict[str, InnerMarginal]:
    places, mass = combinations([rule.points for rule in grid.rules]), np.ravel(grid.mass)
    kept = mass > NOTHING
    weights, components = mass[kept] / mass[kept].sum(), inner(_at(integrand, places[kept]))
    return {name: InnerMarginal(moments[name], components[name], weights) for name in components}


def _moments(integrand: Integrand, grid: Grid, inner: Inner, step: int) -> dict[str, Moments]:
    """Return the moments of every parameter; of the points ``step`` at a time."""
    places = combinations([rule.points for rule in grid.rules])
    mass, height = np.ravel(grid.mass), np.ravel(np.exp(grid.log_density - np.max(grid.log_density)))
    sums: dict[str, _Sums] = {}
    for begin in range(0, len(mass), step):
        few = slice(begin, begin + step)
        outer = _at(integrand, places[few])
        parts = {name: (values, np.zeros_like(values)) for name, values in outer.items()}
        parts |= {name: (np.asarray(c.mean()), np.asarray(c.std())) for name, c in inner(outer).items()}
        for name, pair in parts.items():
            sums.setdefault(name, _Sums()).add(mass[few], height[few], np.ravel(grid.faces)[few], *pair)
    return {name: each.moments() for name, each in sums.items()}


class _Sums:
    """Sums over points, of first and second moments about the mean of the first points, and their highest terms."""

    def __init__(self) -> None:
        self.centre: Any = None
        self.first: Any = 0.0
        self.second: Any = 0.0
        self.highest, self.at_faces = [0.0, 0.0], [0.0, 0.0]

    def add(self, mass: np.ndarray, height: np.ndarray, faces: np.ndarray, means: np.ndarray, sds: np.ndarray) -> None:
        """Add points (P,), of which some are at the faces of the grid, with means and sds (P, *own shape)."""
        if self.centre is None:
            self.centre = np.tensordot(np.maximum(mass, 1e-300), means, 1) / np.maximum(mass, 1e-300).sum()
        moved = means - self.centre
        second = np.square(sds) + np.square(moved)
        self.first, self.second = self.first + np.tensordot(mass, moved, 1), self.second + np.tensordot(mass, second, 1)
        for order, values in enumerate((np.sqrt(second), second)):
            terms = values * np.expand_dims(height, tuple(range(1, values.ndim)))
            self.highest[order] = np.maximum(self.highest[order], terms.max(axis=0))
            self.at_faces[order] = np.maximum(self.at_faces[order], terms[faces].max(axis=0, initial=0.0))

    def moments(self) -> Moments:
        """Return mean and sd."""
        mean, sd = self.centre + self.first, np.sqrt(np.maximum(self.second - np.square(self.first), 0.0))
        decided = [at > DECIDED * highest for at, highest in zip(self.at_faces, self.highest, strict=True)]
        return Moments(mean, sd, np.where(decided[0], np.nan, mean), np.where(decided[1], np.nan, sd))
