"""The posterior of outer parameters on a grid, and of inner ones with a closed form given each point.

Marginals of the inner parameters are finite mixtures, one component per point of the grid. Their moments follow by the
laws of total expectation and variance, their quantiles by Newton steps within bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions.averages.grid_moments import Exists, Moments, Parts, covariance_over, moments_over
from bayeszoo.distributions.frozen import Frozen
from bayeszoo.distributions.posterior import QUANTILES, Posterior
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.numerics.constants import TINY
from bayeszoo.foundation.numerics.grid import Grid, Integrand, combinations
from bayeszoo.foundation.numerics.levels import solved
from bayeszoo.foundation.numerics.quadrature import Distribution

NOTHING = 1e-13
"""Probability below which a point of the grid is left out of mixtures."""

Inner = Callable[[Params], Posterior]
"""The posterior of the inner parameters, shape (P, *own shape), given outer ones at P points."""


Derived = Callable[[Params], Mapping[str, Any]]
"""Quantities derived from the outer parameters at P points, shape (P, *own shape)."""


class _Mixed:
    """A marginal with given moments."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments

    def mean(self) -> Any:
        """Return the mean; NaN where it does not exist or the grid is too coarse."""
        return self._moments.own_mean

    def std(self) -> np.ndarray:
        """Return the standard deviation; NaN where it does not exist or the grid is too coarse."""
        return self._moments.own_sd


class OuterMarginal(_Mixed):
    """The marginal of an outer parameter: a tabulated distribution function for each entry."""

    def __init__(self, moments: Moments, entries: Sequence[Distribution]) -> None:
        super().__init__(moments)
        self._entries, self._shape = entries, np.shape(moments.mean)

    def cdf(self, x: Any) -> Any:
        """Return P(parameter <= x); ``x`` has the parameter's shape, with or without leading axes."""
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
    """The marginal of an inner parameter: a mixture of distributions (P, *own shape) with weights (P,).

    The search for quantiles starts from those of ``coarse``, a similar mixture of fewer distributions.
    """

    def __init__(
        self, moments: Moments, components: Any, weights: np.ndarray, coarse: InnerMarginal | None = None
    ) -> None:
        super().__init__(moments)
        self._components, self._weights, self._quantiles = components, weights, dict[float, np.ndarray]()
        self._coarse = coarse

    def cdf(self, x: Any) -> np.ndarray:
        """Return P(parameter <= x); ``x`` has the parameter's shape, with or without leading axes."""
        return self._mixed(self._components.cdf, x)

    def pdf(self, x: Any) -> np.ndarray:
        """Return the density at ``x``, which has the parameter's shape, with or without leading axes."""
        return self._mixed(self._components.pdf, x)

    def _mixed(self, function: Callable[[Any], np.ndarray], x: Any) -> np.ndarray:
        x = np.asarray(x, dtype=np.float64)
        own_shape = np.shape(self._moments.mean)
        if x.ndim <= len(own_shape):
            return np.asarray(np.tensordot(self._weights, function(x), 1))
        flat = x.reshape(-1, *own_shape)
        averages = [np.tensordot(self._weights, function(place), 1) for place in flat]
        return np.reshape(averages, x.shape)

    def entries(self, places: np.ndarray) -> InnerMarginal:
        """Return the marginals of the entries at ``places`` along the last axis; others are not computed."""
        mean, sd, own_mean, own_sd = (np.asarray(moment)[..., places] for moment in self._moments[:4])
        moments = Moments(mean, sd, own_mean, own_sd, self._moments.moved)
        coarse = self._coarse.entries(places) if self._coarse else None
        return InnerMarginal(moments, self._components.entries(places), self._weights, coarse)

    def ppf(self, q: float) -> np.ndarray:
        """Return the quantile of a level, within 1e-12 in probability."""
        if q not in self._quantiles:
            self._quantiles[q] = self._solved(q)
        return self._quantiles[q]

    def _solved(self, q: float) -> np.ndarray:
        """Find a quantile: at most sd sqrt((1 - q) / q) below the mean, sd sqrt(q / (1 - q)) above it (Cantelli)."""
        mean, sd = self._moments[:2]
        if not np.size(mean):
            return mean
        support_low = float(np.min(self._components.support()[0]))
        low, high = np.maximum(mean - sd * np.sqrt((1 - q) / q), support_low), mean + sd * np.sqrt(q / (1 - q))
        if self._coarse is None:
            start = _guess(mean, sd, scipy.special.ndtri(q), support_low >= 0)
        else:
            start = np.clip(self._coarse.ppf(q), low, high)
        return solved(self.cdf, self.pdf, q, low, high, start, support_low >= 0)


def alone(marginal: Any, index: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """Return a marginal of fewer entries that has an entry, and the entry's index there; else the marginal itself.

    So a summary of one entry does not average over the grid for all others.
    """
    law = marginal._components if isinstance(marginal, InnerMarginal) else marginal
    if not index or not isinstance(law, Frozen):
        return marginal, index
    return marginal.entries(np.array(index[-1:])), (*index[:-1], 0)


def _guess(mean: np.ndarray, sd: np.ndarray, score: float, is_positive: bool) -> np.ndarray:
    """Return the quantile of a normal, or for positive numbers log-normal, distribution with these moments."""
    if not is_positive:
        return mean + sd * score
    width = np.sqrt(np.log1p(np.square(sd / mean)))
    return mean * np.exp(width * (score - width / 2))


def integrated(
    integrand: Integrand,
    grid: Grid,
    inner: Inner,
    log_joint: Callable[[Params], Any],
    moments: Mapping[str, Moments],
    rows: int,
) -> Posterior:
    """Return the joint posterior of the outer parameters of the integrand and of the inner ones of ``rows`` rows.

    ``log_joint`` returns the log density in the outer parameters themselves, not in their coordinates.
    """

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        outer = integrand.quantities(grid.draw(math.prod(size), rng))
        params_ = {**_named(integrand, outer), **inner(outer).rvs((), rng)}
        return {name: np.reshape(values, (*size, *values.shape[1:])) for name, values in params_.items()}

    def log_density(params: Params) -> np.ndarray:
        outer = {name: np.asarray(params[name]) for name in integrand.axes_of}
        return log_joint(outer) - grid.log_integral + inner(outer).logpdf(params)

    marginals: dict[str, Any] = {}
    for name, axes in integrand.axes_of.items():
        tabulated = [grid.distribution(i) for i in axes]
        pairs = zip(axes, tabulated, strict=True)
        marginals[name] = OuterMarginal(
            moments[name], [Distribution(integrand.values(i, table.points), table.below) for i, table in pairs]
        )
    coarse = _inner_marginals(integrand, grid.halved, inner, moments)
    marginals |= _inner_marginals(integrand, grid, inner, moments, coarse)
    return Posterior(marginals, draw, log_density, covariance=lambda: _covariance(integrand, grid, inner, rows))


def inner_moved(integrand: Integrand, grid: Grid, inner: Inner, moments: Mapping[str, Moments]) -> float:
    """Return the largest change of quantiles of the inner parameters, in probability, when the grid is halved.

    It detects components narrower than the spacing of the grid, which add up to steps instead of a smooth function.
    """
    fine, coarse = (_inner_marginals(integrand, a_grid, inner, moments) for a_grid in (grid, grid.halved))
    moved = [0.0]
    for name, q in itertools.product(fine, QUANTILES.values()):
        quantile = coarse[name].ppf(q)
        step = 2 * np.spacing(np.abs(quantile))  # a quantile that rounds to 1 is the quantile of many levels
        difference = np.maximum(fine[name].cdf(quantile - step) - q, q - fine[name].cdf(quantile + step))
        is_number = np.abs(quantile) > 1e3 * TINY  # below, it is shown as 0
        moved.append(float(np.max(difference, where=is_number, initial=0.0)))
    return max(moved)


def _inner_marginals(
    integrand: Integrand,
    grid: Grid,
    inner: Inner,
    moments: Mapping[str, Moments],
    coarse: Mapping[str, InnerMarginal] | None = None,
) -> dict[str, InnerMarginal]:
    places, mass = combinations([rule.points for rule in grid.rules]), np.ravel(grid.mass)
    is_kept = mass > NOTHING
    weights, components = mass[is_kept] / mass[is_kept].sum(), inner(integrand.quantities(places[is_kept]))
    return {
        name: InnerMarginal(moments[name], components[name], weights, coarse[name] if coarse else None)
        for name in components
    }


def _named(integrand: Integrand, quantities: Params) -> dict[str, np.ndarray]:
    """Return the outer parameters without their complements."""
    return {name: quantities[name] for name in integrand.axes_of}


def parts_at(integrand: Integrand, places: np.ndarray, inner: Inner, derived: Derived) -> Parts:
    """Return means and sds of outer, derived and inner parameters, given the outer ones at coordinates (P, D)."""
    outer = integrand.quantities(places)
    exact = {
        name: np.asarray(quantity, dtype=np.float64)
        for name, quantity in {**_named(integrand, outer), **derived(outer)}.items()
    }
    parts = {name: (values, np.zeros_like(values)) for name, values in exact.items()}
    return parts | {
        name: (np.asarray(marginal.mean()), np.asarray(marginal.std())) for name, marginal in inner(outer).items()
    }


def moments_of(
    integrand: Integrand, grid: Grid, inner: Inner, derived: Derived, exists: Exists, rows: int
) -> dict[str, Moments]:
    """Return the moments of outer parameters, derived quantities, and inner parameters of ``rows`` rows."""
    places = combinations([rule.points for rule in grid.rules])
    parts = ((chunk, parts_at(integrand, places[chunk], inner, derived)) for chunk in blocks(len(places), rows))
    return moments_over(grid, parts, exists)


def _covariance(integrand: Integrand, grid: Grid, inner: Inner, rows: int) -> np.ndarray:
    """Return the covariance matrix of outer and inner parameters: within points of the grid plus between points."""
    mass = np.ravel(grid.mass)
    is_kept = mass > NOTHING
    places, mass = combinations([rule.points for rule in grid.rules])[is_kept], mass[is_kept] / mass[is_kept].sum()
    columns, correlated = [], dict[str, np.ndarray]()
    for chunk in blocks(len(places), rows * rows if inner(integrand.quantities(places[:1])).correlated() else rows):
        outer = integrand.quantities(places[chunk])
        law, outer_alone = inner(outer), _named(integrand, outer)
        nodes = law.nodes()
        columns += [
            (
                mass[chunk] / len(nodes),
                _columns({name: (values, 0 * values) for name, values in outer_alone.items()} | node),
            )
            for node in nodes
        ]
        for name, matrices in law.correlated().items():
            correlated[name] = correlated.get(name, 0.0) + np.tensordot(mass[chunk], matrices(), 1)
    weights = np.concatenate([weight for weight, _ in columns])
    means, sds = (np.concatenate([pair[i] for _, pair in columns]) for i in (0, 1))
    matrix = covariance_over(weights, means, np.square(sds))
    first = sum(np.size(value[0]) for value in outer_alone.values())
    for name, (mean, _) in nodes[0].items():
        block = slice(first, first := first + np.size(mean[0]))
        if name in correlated:
            np.fill_diagonal(correlated[name], 0.0)  # the variances are in the matrix already
            matrix[block, block] += correlated[name]
    return matrix


def _columns(parts: Parts) -> tuple[np.ndarray, np.ndarray]:
    """Return means and sds with a column for each entry, quantity by quantity."""
    means, sds = (
        np.concatenate([pair[i].reshape(len(pair[i]), -1) for pair in parts.values()], axis=1) for i in (0, 1)
    )
    return means, sds
