"""The posterior of few outer parameters on a grid, and of inner ones that have a closed form given each of its points.

Marginals of the inner parameters are finite mixtures, one component a point of the grid. Their moments follow by the
laws of total expectation and variance, their quantiles by Newton steps within bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions.frozen import Frozen
from bayeszoo.distributions.grid_moments import Exists, Moments, Parts, covariance_over, moments_over
from bayeszoo.distributions.posterior import QUANTILES, Posterior
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.grid import Grid, Integrand, combinations
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.quadrature import Distribution

NOTHING = 1e-13
"""Probability below which a point of the grid is left out of the mixtures."""
CLOSE = 1e-11
"""Probability within which a quantile is found."""
NEWTON = 100
TINY = np.finfo(np.float64).tiny

Inner = Callable[[Params], Posterior]
"""The distribution of the inner parameters given outer ones, of shape (P,): of shape (P, *own shape)."""


Derived = Callable[[Params], Mapping[str, Any]]
"""Quantities that follow from the outer parameters, of shape (P,): of shape (P, *own shape)."""


class _Mixed:
    """A marginal whose moments are known."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments

    def mean(self) -> Any:
        """Return the mean; NaN where it does not exist or the grid does not give it."""
        return self._moments.own_mean

    def std(self) -> np.ndarray:
        """Return the standard deviation; NaN where it does not exist or the grid does not give it."""
        return self._moments.own_sd


class OuterMarginal(_Mixed):
    """The marginal of an outer parameter, a tabulated distribution function for each of its entries."""

    def __init__(self, moments: Moments, entries: Sequence[Distribution]) -> None:
        super().__init__(moments)
        self._entries, self._shape = entries, np.shape(moments.mean)

    def cdf(self, x: Any) -> Any:
        """Return the probability below ``x``, of the own shape, with leading axes or without."""
        if not self._shape:
            return self._entries[0].cdf(x)
        columns = np.reshape(x, (-1, len(self._entries))).T
        below = [entry.cdf(column) for entry, column in zip(self._entries, columns, strict=True)]
        return np.reshape(np.transpose(below), np.shape(x))

    def ppf(self, q: Any) -> Any:
        """Return the quantile of a level."""
        if not self._shape:
            return self._entries[0].quantile(q)
        return np.reshape([entry.quantile(q) for entry in self._entries], self._shape)


class InnerMarginal(_Mixed):
    """The marginal of an inner parameter: a mixture of P distributions, of shape (P, *own shape), by weights (P,).

    Quantiles are looked for from those of ``coarse``, a mixture of fewer distributions that is nearly the same.
    """

    def __init__(
        self, moments: Moments, components: Any, weights: np.ndarray, coarse: InnerMarginal | None = None
    ) -> None:
        super().__init__(moments)
        self._components, self._weights, self._quantiles = components, weights, dict[float, np.ndarray]()
        self._coarse = coarse

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

    def entries(self, places: np.ndarray) -> InnerMarginal:
        """Return the marginals of some entries along the last axis; what asks for few of many computes no others."""
        mean, sd, own_mean, own_sd = (np.asarray(each)[..., places] for each in self._moments[:4])
        some = Moments(mean, sd, own_mean, own_sd, self._moments.moved)
        coarse = self._coarse.entries(places) if self._coarse else None
        return InnerMarginal(some, self._components.entries(places), self._weights, coarse)

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
        x = _guess(mean, sd, score, least >= 0) if self._coarse is None else np.clip(self._coarse.ppf(q), low, high)
        for _ in range(NEWTON):
            below = self.cdf(x)
            is_far = (np.abs(below - q) > CLOSE) & (high - low > 2 * np.spacing(np.abs(x))) & (np.abs(high) > TINY)
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


def alone(marginal: Any, index: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """Return a marginal of few entries that has an entry, and its place there; all of them where no fewer are had.

    What asks for one of many entries has no need to average over a grid for the others.
    """
    law = marginal._components if isinstance(marginal, InnerMarginal) else marginal
    if not index or not isinstance(law, Frozen):
        return marginal, index
    return marginal.entries(np.array(index[-1:])), (*index[:-1], 0)


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
    integrand: Integrand,
    grid: Grid,
    inner: Inner,
    log_joint: Callable[[Params], Any],
    moments: Mapping[str, Moments],
    rows: int,
) -> Posterior:
    """Return the joint posterior of the outer parameters, which the integrand names, and the inner ones of ``rows``.

    ``log_joint`` returns the log density in the outer parameters themselves, not their coordinates.
    """

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        outer = integrand.quantities(grid.draw(math.prod(size), rng))
        both = {**_named(integrand, outer), **inner(outer).rvs((), rng)}
        return {name: np.reshape(values, (*size, *values.shape[1:])) for name, values in both.items()}

    def log_density(params: Params) -> np.ndarray:
        outer = {name: np.asarray(params[name]) for name in integrand.axes_of}
        return log_joint(outer) - grid.log_integral + inner(outer).logpdf(params)

    marginals: dict[str, Any] = {}
    for name, axes in integrand.axes_of.items():
        tabulated = [grid.distribution(i) for i in axes]
        pairs = zip(axes, tabulated, strict=True)
        marginals[name] = OuterMarginal(
            moments[name], [Distribution(integrand.values(i, of.points), of.below) for i, of in pairs]
        )
    coarse = _inner_marginals(integrand, grid.halved, inner, moments)
    marginals |= _inner_marginals(integrand, grid, inner, moments, coarse)
    return Posterior(marginals, draw, log_density, covariance=lambda: _covariance(integrand, grid, inner, rows))


def inner_moved(integrand: Integrand, grid: Grid, inner: Inner, moments: Mapping[str, Moments]) -> float:
    """Return by how much probability quantiles of the inner parameters move when the grid is halved.

    It sees components that are narrower than the grid, which then add up to steps and not to a smooth distribution.
    """
    fine, coarse = (_inner_marginals(integrand, each, inner, moments) for each in (grid, grid.halved))
    moved = [0.0]
    for name, q in itertools.product(fine, QUANTILES.values()):
        quantile = coarse[name].ppf(q)
        step = 2 * np.spacing(np.abs(quantile))  # a quantile that rounds to 1 is one number with many levels
        apart = np.maximum(fine[name].cdf(quantile - step) - q, q - fine[name].cdf(quantile + step))
        is_number = np.abs(quantile) > 1e3 * TINY  # below, it is shown as 0
        moved.append(float(np.max(apart, where=is_number, initial=0.0)))
    return max(moved)


def _inner_marginals(
    integrand: Integrand,
    grid: Grid,
    inner: Inner,
    moments: Mapping[str, Moments],
    coarse: Mapping[str, InnerMarginal] | None = None,
) -> dict[str, InnerMarginal]:
    places, mass = combinations([rule.points for rule in grid.rules]), np.ravel(grid.mass)
    kept = mass > NOTHING
    weights, components = mass[kept] / mass[kept].sum(), inner(integrand.quantities(places[kept]))
    return {
        name: InnerMarginal(moments[name], components[name], weights, coarse[name] if coarse else None)
        for name in components
    }


def _named(integrand: Integrand, quantities: Params) -> dict[str, np.ndarray]:
    """Return the outer parameters alone."""
    return {name: quantities[name] for name in integrand.axes_of}


def parts_at(integrand: Integrand, places: np.ndarray, inner: Inner, derived: Derived) -> Parts:
    """Return means and sds given the outer parameters at places (P, D): of outer, derived and inner parameters."""
    outer = integrand.quantities(places)
    known = {
        name: np.asarray(v, dtype=np.float64) for name, v in {**_named(integrand, outer), **derived(outer)}.items()
    }
    parts = {name: (values, np.zeros_like(values)) for name, values in known.items()}
    return parts | {name: (np.asarray(each.mean()), np.asarray(each.std())) for name, each in inner(outer).items()}


def moments_of(
    integrand: Integrand, grid: Grid, inner: Inner, derived: Derived, exists: Exists, rows: int
) -> dict[str, Moments]:
    """Return the moments of the outer parameters, of derived quantities, and of the inner parameters of ``rows``."""
    places = combinations([rule.points for rule in grid.rules])
    parts = ((few, parts_at(integrand, places[few], inner, derived)) for few in blocks(len(places), rows))
    return moments_over(grid, parts, exists)


def _covariance(integrand: Integrand, grid: Grid, inner: Inner, rows: int) -> np.ndarray:
    """Return the covariance matrix of outer and inner parameters: within the points of the grid, and between them."""
    mass = np.ravel(grid.mass)
    kept = mass > NOTHING
    places, mass = combinations([rule.points for rule in grid.rules])[kept], mass[kept] / mass[kept].sum()
    columns, correlated = [], dict[str, np.ndarray]()
    for few in blocks(len(places), rows * rows if inner(integrand.quantities(places[:1])).correlated() else rows):
        outer = integrand.quantities(places[few])
        given, own = inner(outer), _named(integrand, outer)
        nodes = given.nodes()
        columns += [
            (mass[few] / len(nodes), _columns({name: (v, 0 * v) for name, v in own.items()} | node)) for node in nodes
        ]
        for name, matrices in given.correlated().items():
            correlated[name] = correlated.get(name, 0.0) + np.tensordot(mass[few], matrices(), 1)
    weights = np.concatenate([weight for weight, _ in columns])
    means, sds = (np.concatenate([pair[i] for _, pair in columns]) for i in (0, 1))
    matrix = covariance_over(weights, means, np.square(sds))
    first = sum(np.size(value[0]) for value in own.values())
    for name, (mean, _) in nodes[0].items():
        own_places = slice(first, first := first + np.size(mean[0]))
        if name in correlated:
            np.fill_diagonal(correlated[name], 0.0)  # as the variances are there
            matrix[own_places, own_places] += correlated[name]
    return matrix


def _columns(parts: Parts) -> tuple[np.ndarray, np.ndarray]:
    """Return means and sds with a column for each entry, one quantity after the other."""
    means, sds = (
        np.concatenate([pair[i].reshape(len(pair[i]), -1) for pair in parts.values()], axis=1) for i in (0, 1)
    )
    return means, sds
