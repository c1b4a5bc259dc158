"""Exact answers by quadrature: over few outer parameters of `Conditional` models, or all weights of `LogConcave`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from bayeszoo.distributions.averages.about_mode import AboutMode, FirstMarginal, VectorMarginal
from bayeszoo.distributions.averages.grid_moments import MAX_MOVED as MAX_MOMENT_MOVED
from bayeszoo.distributions.averages.grid_moments import Exists, Moments, covariance_over, halved_mass, moments_over
from bayeszoo.distributions.averages.integrated import Derived, Inner, inner_moved, integrated, moments_of, parts_at
from bayeszoo.distributions.frozen import Frozen
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.gate import Check, at_least, at_most
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.numerics.grid import Grid, Integrand, Tilt, combinations, enclosing, refined
from bayeszoo.foundation.numerics.quadrature import peak
from bayeszoo.foundation.process.threads import one_thread
from bayeszoo.model.base import Model, number_of_parameters
from bayeszoo.model.capabilities import ClosedForm, LogConcave
from bayeszoo.model.capabilities.conditional import Conditional
from bayeszoo.model.capabilities.sequential import Sequential
from bayeszoo.model.outer.coordinates import OuterCoordinates
from bayeszoo.model.outer.limits import beyond_quadrature

type Points = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]

MAX_ERROR, MAX_MOVED, MAX_INNER_MOVED = 1e-6, 1e-5, 1e-4
"""Limits on what halving the grid changes: the log evidence in nats, and quantiles in probability, of the outer
and of the inner parameters.

This is the error of half the points; the error of all points is of fourth order at least, hence a sixteenth.
"""
SHOWN_MOVED = 1e-3
"""Up to this change of quantiles, in probability, they are shown with a warning: draws are off by ten times as much."""
PROBED = 8
"""Number of entries of inner parameters whose quantiles are checked."""
DEPTH, LEAST_DEPTH = 50.0, 30.0
"""Nats below the maximum at which the density is cut off, and the least allowed."""
MOST_STATES = 3000
"""Most states over time whose distributions at all points of a grid are kept in memory: 2 GB."""
FINER_AT_CORNERS, CORNERS = 4, 100
"""Factor of the points of each axis that a density with corners may take, and the number of corners that counts as
few: errors at few corners do not cancel, and may seem eight times smaller than they are."""
TIMES_FINER = {1: 32, 2: 8}
"""Factor of the initial intervals of each axis in the finer grid, by the number of axes."""
LEAST_KEPT = 1000
"""Fewest points whose densities are cached: each moment evaluates the same points."""
NEGLIGIBLE = 1e-20
"""Probability below which a point of the grid is left out of posterior averages."""
LEAST_FALL = 1.0
"""Nats by which the integrand of an existing moment must fall from halfway to far from the centre."""


@dataclass(frozen=True, eq=False)
class Integrated:
    """The posterior, the log evidence, the checks of the quadrature, and its points.

    ``points`` are the parameters that are integrated over, of shape (P, *own shape), and ``mass`` the probability of
    each point; ``halved`` is the mass on the grid of every other point, which shows the error of a mean.
    ``derived`` holds the moments of quantities derived from these parameters.
    """

    posterior: Posterior
    log_evidence: float
    checks: list[Check]
    derived: dict[str, Moments] = field(default_factory=dict)
    points: dict[str, np.ndarray] = field(default_factory=dict)
    mass: np.ndarray = field(default_factory=lambda: np.empty(0))
    halved: np.ndarray = field(default_factory=lambda: np.empty(0))
    finer: Callable[[], tuple[dict[str, np.ndarray], np.ndarray]] | None = None
    grid: Grid | None = None


class OuterIntegrand(Integrand):
    """Evidence times prior over coordinates of a model's outer parameters, inner ones integrated out."""

    def __init__(self, model: Conditional, data: Arrays) -> None:
        self._model, self._data = model, data
        self._coordinates = coordinates = OuterCoordinates.of(model, model.integrated_over, data)
        if why := beyond_quadrature(model, data):
            raise NumericalError(why, "too_large")
        self.names, self.begin, self.finer = coordinates.labels, model.first_intervals, model.finer
        self._last = np.empty(0), np.empty(0)
        start, reach = coordinates.about(model.outer_guess(data))
        reach = 64 * reach
        limits = np.array([scale.limits() for scale in coordinates.scales]).T
        self._climbed, scale = peak(self.log_density, start - reach, start + reach, start)
        bounds = [enclosing(self.log_density, self._climbed, scale, reach, DEPTH, (limits[0], limits[1]))]
        self._centre, self._scale = peak(self.log_density, bounds[0].low, bounds[0].high, bounds[0].highest)
        for tilt in self.tilts:
            tilted = partial(self._tilted, tilt)
            bounds.append(enclosing(tilted, self._centre, self._scale, reach, DEPTH, (limits[0], limits[1])))
        self.low = np.min([box.low for box in bounds], axis=0)
        self.high = np.max([box.high for box in bounds], axis=0)

    @property
    def axes_of(self) -> dict[str, tuple[int, ...]]:
        """The coordinate numbers of each outer parameter."""
        return self._coordinates.axes

    def _tilted(self, tilt: Tilt, points: np.ndarray) -> np.ndarray:
        heights = self.log_density(points)
        with np.errstate(over="ignore", invalid="ignore"):  # far out, where the density is 0
            return np.where(np.isneginf(heights), heights, heights + tilt(points))

    @property
    def climbed(self) -> list[np.ndarray]:
        """The peak that is reached from the model's guess."""
        return [self._climbed]

    @cached_property
    def tilts(self) -> list[Tilt]:
        """Log sizes of unbounded outer parameters, in units of their spread, and of their squares, if moments exist."""
        sizes = {i: self._log_size(i) for i, scale in enumerate(self._coordinates.scales) if not scale.has_ends}
        places, _ = self.far()
        return [
            partial(lambda size, order, points: order * size(points), size, order)
            for size in sizes.values()
            for order in (1, 2)
            if self.falls(order * size(places.reshape(-1, len(self.names))).reshape(places.shape[:-1]))
        ]

    def _log_size(self, i: int) -> Tilt:
        centre = self.values(i, self._centre[i])
        spread = abs(self.values(i, self._centre[i] + self._scale[i]) - centre)
        return lambda points: np.log(np.hypot(1.0, (self.values(i, points[:, i]) - centre) / spread))

    def far(self) -> tuple[np.ndarray, np.ndarray]:
        """Return two far points along each axis in both directions, (F, 2, D), and their log slopes (F, 2)."""
        places, slopes = [], []
        for i, scale in enumerate(self._coordinates.scales):
            for side in (-1, 1):
                ends, log_slopes = scale.far(float(self._centre[i]), side)
                points = np.tile(self._centre, (2, 1))
                points[:, i] = ends
                places.append(points)
                slopes.append(log_slopes)
        return np.array(places), np.array(slopes)

    def falls(self, log_sizes: np.ndarray) -> np.ndarray:
        """Say whether density times size falls off at the far points; ``log_sizes`` (F, 2, ...) give shape (...)."""
        places, slopes = self.far()
        mass = self.log_density(places.reshape(-1, len(self.names))).reshape(slopes.shape) + slopes
        at_far_points = np.expand_dims(mass, tuple(range(2, log_sizes.ndim))) + log_sizes
        with np.errstate(invalid="ignore"):
            return ~np.any(at_far_points[:, 0] - at_far_points[:, 1] < LEAST_FALL, axis=0)

    def log_density(self, points: np.ndarray) -> np.ndarray:
        """Return the log density in the coordinates at points (P, D); the last points are cached."""
        if not np.array_equal(points, self._last[0]):
            rows = self._model.inputs.size(self._data)
            heights = np.concatenate([self._block_heights(points[part]) for part in blocks(len(points), rows)])
            if len(points) < LEAST_KEPT:
                return heights
            self._last = points, heights
        return self._last[1]

    def _block_heights(self, points: np.ndarray) -> np.ndarray:
        quantities = self.quantities(points)
        slopes = self._coordinates.log_slope(points)
        with np.errstate(all="ignore"):  # far from the centre numbers overflow where the density is 0
            heights = self.log_joint(quantities) + slopes
        return np.where(np.isfinite(heights), heights, -math.inf)

    def quantities(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """Return the outer parameters at points (P, D), and the complements that the model names."""
        coordinates, complements = self._coordinates, {}
        for name in self._model.complements.keys() & coordinates.shapes.keys():
            (i,) = coordinates.axes[name]
            beyond = self._model.outer[name].high - coordinates.scales[i].high
            complements[self._model.complements[name]] = beyond + coordinates.scales[i].complement(points[:, i])
        return coordinates.outer(points) | complements

    def values(self, i: int, places: Any) -> np.ndarray:
        """Return the i-th outer parameter at its coordinates."""
        return np.asarray(self._coordinates.value(i, places))

    def log_joint(self, quantities: Params) -> np.ndarray:
        """Return the log of evidence times prior in the outer parameters themselves."""
        return self._model.log_outer_prior(quantities, self._data) + self._model.log_marginal(quantities, self._data)


def exact_evidence(model: Model, data: Arrays) -> float:
    """Return the log evidence of the ordered data, in closed form or by quadrature."""
    if isinstance(model, LogConcave):
        return integrate(model, data).log_evidence
    if isinstance(model, Conditional):
        with one_thread():
            return refined(OuterIntegrand(model, data), _is_fine).log_integral
    assert isinstance(model, ClosedForm)
    return float(model.log_evidence(model.statistics(data)))


def integrate(model: Model, data: Arrays) -> Integrated:
    """Integrate over the outer parameters of a model, or over all weights of a `LogConcave` one.

    Raises `NumericalError` if the density is zero everywhere, or there are too many parameters or rows.
    """
    if isinstance(model, LogConcave):
        with one_thread():
            return _over_weights(model, data)
    assert isinstance(model, Conditional)
    with one_thread():
        return _over_outer(model, data)


def _over_outer(model: Conditional, data: Arrays) -> Integrated:
    """Integrate over the outer parameters."""
    if isinstance(model, Sequential) and (states := number_of_parameters(model, data)) > MOST_STATES:
        line = f"quadrature takes at most {MOST_STATES:,} states over time, and there are {states:,}"
        raise NumericalError(f"{model.name}: {line}; use map, laplace or nuts", "too_large")
    integrand, inner = OuterIntegrand(model, data), partial(model.posterior_given, data=data)
    inner_of_few, derived = _posterior_of_probed(model, data), partial(_derived, model)
    exists = _existing(integrand, inner_of_few, derived)
    moments = cache(lambda grid: moments_of(integrand, grid, inner_of_few, derived, exists, PROBED))
    moved = cache(lambda grid: inner_moved(integrand, grid, inner_of_few, moments(grid)))

    def is_fine(grid: Grid) -> bool:
        if not _is_fine(grid) or max(moment.moved for moment in moments(grid).values()) > MAX_MOMENT_MOVED:
            return False
        return moved(grid) <= MAX_INNER_MOVED

    grid = refined(integrand, is_fine)
    if not np.max(grid.log_density) > -math.inf:
        raise NumericalError(f"{model.name}: the density is zero on the whole grid", "impossible_data")
    rows = model.inputs.size(data)
    all_moments = moments_of(integrand, grid, inner, derived, _existing(integrand, inner, derived), rows)
    posterior = integrated(integrand, grid, inner, integrand.log_joint, all_moments, rows)
    checks = [
        at_most("grid_evidence", grid.error, MAX_ERROR),
        at_most("grid_outer_quantiles", grid.moved, MAX_MOVED, SHOWN_MOVED),
        at_most("grid_inner_quantiles", moved(grid), MAX_INNER_MOVED, SHOWN_MOVED),
        at_least("drop_at_bounds", grid.depth, LEAST_DEPTH),
    ]
    of_derived = {name: moment for name, moment in all_moments.items() if name not in posterior}
    return Integrated(posterior, grid.log_integral, checks, of_derived, *_outer_points(integrand, grid), grid=grid)


def posterior_points(model: Model, data: Arrays) -> Points:
    """Return points of a quadrature fine enough for the evidence, their mass, and that on half the grid."""
    if not isinstance(model, Conditional):
        result = integrate(model, data)
        return result.points, result.mass, result.halved
    with one_thread():
        integrand = OuterIntegrand(model, data)
        return _outer_points(integrand, refined(integrand, _is_fine))


def _outer_points(integrand: OuterIntegrand, grid: Grid) -> Points:
    return _points(grid, integrand.quantities(combinations([rule.points for rule in grid.rules])))


def _existing(integrand: OuterIntegrand, inner: Inner, derived: Derived) -> Exists:
    """Say which means and variances exist: their integrands fall off far from the centre along each axis."""
    places, _ = integrand.far()
    exists = {}
    with np.errstate(all="ignore"):
        parts = parts_at(integrand, places.reshape(-1, places.shape[-1]), inner, derived)
        for name, pair in parts.items():
            size = np.log(np.hypot(*pair)).reshape(*places.shape[:2], *pair[0].shape[1:])
            exists[name] = integrand.falls(size), integrand.falls(2 * size)
    return exists


def _derived(model: Model, params: Params) -> dict[str, np.ndarray]:
    """Return quantities derived from the parameters that are integrated over, except those without moments."""
    with suppress(KeyError, NumericalError):  # it needs inner parameters too, or overflows at some point
        return {name: v for name, v in model.derived(params).items() if name not in model.without_moments}
    return {}


def _over_weights(model: LogConcave, data: Arrays) -> Integrated:
    """Integrate over the one or two weights of a log-concave model, in units of its prior."""
    if why := beyond_quadrature(model, data):
        raise NumericalError(why, "integration_failed")
    rows = model.concave(data)
    mode = rows.highest()
    orders = [(0,)] if rows.size == 1 else [(0, 1), (1, 0)]
    finer = FINER_AT_CORNERS if rows.has_corners else 1
    integrands = [AboutMode(rows.joint_values, mode.x, mode.there.curvature, order, finer) for order in orders]
    has_few_corners = rows.has_corners and 2 * model.inputs.size(data) <= CORNERS
    allowed = MAX_ERROR / 8 if has_few_corners else MAX_ERROR
    grids = [refined(integrand, lambda grid: _is_fine(grid) and grid.error <= allowed) for integrand in integrands]
    first, evidence = integrands[0], grids[0].log_integral
    marginals = [FirstMarginal(*pair) for pair in zip(integrands, grids, strict=True)]
    origin = rows.params(np.zeros(rows.size))["w"]
    marginal = VectorMarginal(marginals, origin, rows.params(np.ones(rows.size))["w"] - origin)
    params = rows.params(first.points(combinations([rule.points for rule in grids[0].rules])))
    parts = {name: (values, np.zeros_like(values)) for name, values in _derived(model, params).items()}

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
        u = first.points(grids[0].draw(math.prod(size), rng))
        return rows.params(u.reshape(*size, rows.size))

    def log_density(params: Params) -> Any:
        u = rows.place(params)
        heights = rows.joint_values(u.reshape(-1, rows.size)).reshape(u.shape[:-1])
        return heights - rows.log_volume - evidence

    checks = [
        at_most("grid_evidence", max(grid.error for grid in grids), MAX_ERROR),
        at_most("other_grid_evidence", abs(grids[-1].log_integral - evidence), MAX_ERROR),
        at_most("grid_quantiles", max(g.moved for g in grids), MAX_MOVED, SHOWN_MOVED),
        at_least("drop_at_bounds", min(g.depth for g in grids), LEAST_DEPTH),
    ]
    mass = np.ravel(grids[0].mass)
    covariance = lambda: covariance_over(mass, params["w"], np.zeros_like(params["w"]))  # noqa: E731

    @cache
    def on_finer_grid() -> tuple[dict[str, np.ndarray], np.ndarray]:
        with one_thread():
            grid = refined(first, lambda _: True, TIMES_FINER[rows.size])
        points, mass, _ = _points(grid, rows.params(first.points(combinations([rule.points for rule in grid.rules]))))
        return points, mass

    return Integrated(
        Posterior({"w": marginal}, draw, log_density, covariance=covariance),
        evidence,
        checks,
        moments_over(grids[0], [(slice(None), parts)], {}),
        *_points(grids[0], params),
        on_finer_grid,
    )


def log_expectation(
    model: LogConcave, data: Arrays, log_evidence: float, log_values: Callable[[dict[str, np.ndarray]], np.ndarray]
) -> float:
    """Return the log posterior mean of a positive function of the weights that is dominated by tails; NaN if inexact.

    The grid is centred on the maximum of function times density. ``log_values`` takes weights of
    shape (P, T), and raises `NumericalError` where the function is too large.
    """
    rows = model.concave(data)
    mode = rows.highest()
    product = lambda u: rows.joint_values(u) + log_values(rows.params(u))  # noqa: E731
    with one_thread():
        top = AboutMode(product, mode.x, mode.there.curvature, range(rows.size)).highest()
        grid = refined(AboutMode(product, top, rows.joint(top).curvature, range(rows.size)), _is_fine)
    return grid.log_integral - log_evidence if _is_fine(grid) and grid.depth >= LEAST_DEPTH else math.nan


def _points(grid: Grid, params: Mapping[str, np.ndarray]) -> Points:
    """Return parameters at the grid points that are not negligible, their mass, and that on half the grid."""
    mass = np.ravel(grid.mass)
    is_kept = mass > NEGLIGIBLE
    return (
        {name: values[is_kept] for name, values in params.items()},
        mass[is_kept],
        np.ravel(halved_mass(grid))[is_kept],
    )


def _is_fine(grid: Grid) -> bool:
    return grid.error <= MAX_ERROR and grid.moved <= MAX_MOVED


def _posterior_of_probed(model: Conditional, data: Arrays) -> Inner:
    """Return the posterior of a few entries of the inner parameters, whose quantiles are checked."""

    def inner(outer: Params) -> Posterior:
        marginals = model.posterior_given(outer, data).items()
        return Posterior({name: _probed_entries(marginal) for name, marginal in marginals}, lambda size, rng: {})

    return inner


def _probed_entries(marginal: Any) -> Any:
    """Return the marginals of a few entries along the last axis, which follows that of points."""
    shape = np.shape(marginal.mean())
    return marginal.entries(_probed(shape[-1])) if isinstance(marginal, Frozen) and len(shape) > 1 else marginal


def _probed(size: int) -> np.ndarray:
    """Return `PROBED` numbers below ``size``, evenly spaced, with the first and last."""
    return np.unique(np.linspace(0, max(size - 1, 0), PROBED).astype(int)) if size else np.zeros(0, dtype=int)
