"""The evidence of a model times a prior of one or two of its fields, integrated on a grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy

from bayeszoo.comparison.evidence.grid import Axis, heights
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.quadrature import Rule, peak
from bayeszoo.model.base import Model

MAX_ERROR = 1e-4
"""Nats by which halving the grid may change the log evidence.

It is the error of half the points; that of all of them is of fourth order at the least, and so a sixteenth.
"""
MAX_MOMENT_ERROR = 5e-3
"""Standard deviations by which halving the grid may change a mean, a quantile or a standard deviation."""
INTERVALS = {1: (128, 2048), 2: (64, 256)}
"""Of each field, where one or two are integrated out: how many to begin and to end with."""
SCAN = {1: 65, 2: 17}
"""Points of each field at which the highest posterior density is looked for first."""

LogPrior = Callable[..., float]
"""``log_prior(tau=..., sigma=...)`` is the log density of a prior of these fields."""


@dataclass(frozen=True, eq=False)
class Integral:
    """Evidence times prior over the coordinates of the fields."""

    model: Model
    stats: Any
    axes: list[Axis]
    log_prior: LogPrior | None

    def prior(self, places: Sequence[np.ndarray]) -> np.ndarray:
        """Return the log prior density in the coordinates at every combination of them."""
        shape = [len(place) for place in places]
        if self.log_prior is None:
            return np.full(shape, -math.fsum(math.log(axis.width) for axis in self.axes))
        values = [axis.values(place) for axis, place in zip(self.axes, places, strict=True)]
        log_prior = np.array([self._prior_at(*point) for point in combinations(values)]).reshape(shape)
        slopes = [axis.log_slope(place) for axis, place in zip(self.axes, places, strict=True)]
        return log_prior + sum(np.meshgrid(*slopes, indexing="ij"))

    def _prior_at(self, *values: float) -> float:
        fields = {axis.name: value for axis, value in zip(self.axes, values, strict=True)}
        log_density = float(cast(LogPrior, self.log_prior)(**fields))
        if not log_density < math.inf:
            place = ", ".join(f"{name}={value:g}" for name, value in fields.items())
            raise InputError(f"log_prior must be a number below infinity, got {log_density} at {place}")
        return log_density

    def evidence(self, places: Sequence[np.ndarray]) -> np.ndarray:
        """Return the log evidence at every combination of coordinates."""
        return heights(self.model, self.stats, self.axes, places)

    def at(self, place: np.ndarray) -> float:
        """Return the log of evidence times prior at one place."""
        single = [np.array([coordinate]) for coordinate in place]
        return float(_without_nan(self.evidence(single) + self.prior(single)).item())

    def highest(self, known: Model | None) -> tuple[np.ndarray, np.ndarray]:
        """Return where the integrand is highest and how wide its peak is; ``known`` is a place to begin."""
        low, high = np.transpose([axis.ends for axis in self.axes])
        scan = [np.linspace(*axis.ends, SCAN[len(self.axes)]) for axis in self.axes]
        density = _without_nan(self.evidence(scan) + self.prior(scan))
        starts = [combinations(scan)[int(np.argmax(density))]]
        if known is not None:
            own = [float(axis.place(getattr(known, axis.name))) for axis in self.axes]
            starts.append(np.clip(own, low, high))
        return peak(self.at, low, high, max(starts, key=self.at))


def _without_nan(log_density: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(log_density), -math.inf, log_density)


def combinations(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return every combination of entries, one a row, the last column changing fastest."""
    return np.stack([np.ravel(grid) for grid in np.meshgrid(*columns, indexing="ij")], axis=1)


@dataclass(frozen=True, eq=False)
class Grid:
    """The integrand on a grid, and its integral by all points and by every other one."""

    rules: list[Rule]
    evidence: np.ndarray
    prior: np.ndarray

    @property
    def log_density(self) -> np.ndarray:
        """The log of evidence times prior at every point, minus infinity where there is no evidence."""
        return _without_nan(self.evidence + self.prior)

    def weights(self, every: int = 1) -> np.ndarray:
        """Return what the integrand is multiplied by at every point."""
        columns = [_of(rule, every) for rule in self.rules]
        return np.asarray(np.prod(np.meshgrid(*columns, indexing="ij"), axis=0))

    def log_integral(self, every: int = 1) -> float:
        """Return the log of the integral."""
        return float(scipy.special.logsumexp(self.log_density, b=self.weights(every)))

    @property
    def error(self) -> float:
        """What leaving out every other point changes it by."""
        return abs(self.log_integral() - self.log_integral(2))

    def mass(self, every: int = 1) -> np.ndarray:
        """Return the posterior probability that every point stands for."""
        log_density = self.log_density
        mass = np.exp(log_density - np.max(log_density)) * self.weights(every)
        return np.asarray(mass / np.sum(mass))

    def marginal(self, i: int, every: int = 1) -> np.ndarray:
        """Return the log posterior density of one coordinate at its points, but for a constant."""
        others = tuple(j for j in range(len(self.rules)) if j != i)
        columns = [np.ones(len(rule.t)) if j == i else _of(rule, every) for j, rule in enumerate(self.rules)]
        weights = np.prod(np.meshgrid(*columns, indexing="ij"), axis=0)
        return np.asarray(scipy.special.logsumexp(self.log_density, b=weights, axis=others))


def _of(rule: Rule, every: int) -> np.ndarray:
    return rule.weights if every == 1 else rule.halved()


def refined(integral: Integral, known: Model | None) -> Grid:
    """Return a grid that is fine enough, or the finest.

    Parameters
    ----------
    integral : Integral
    known : Model, optional
        A model at a place to look for the peak from.

    Raises
    ------
    NumericalError
        When there is no evidence anywhere between the bounds.
    """
    centre, scale = integral.highest(known)
    intervals, most = INTERVALS[len(integral.axes)]
    while True:
        ends = [axis.ends for axis in integral.axes]
        rules = [Rule.between(*pair, c, s, intervals) for pair, c, s in zip(ends, centre, scale, strict=True)]
        places = [rule.points for rule in rules]
        grid = Grid(rules, integral.evidence(places), integral.prior(places))
        if not np.max(grid.log_density) > -math.inf:
            raise NumericalError(f"{integral.model.name} has no evidence between the bounds")
        if intervals >= most or (grid.error <= MAX_ERROR and _moved(integral.axes, grid) <= MAX_MOMENT_ERROR):
            return grid
        intervals *= 2


def _moved(axes: Sequence[Axis], grid: Grid) -> float:
    """Return the most that leaving out every other point moves a figure of a field by, in standard deviations."""
    return differences(of_fields(axes, grid, 1), of_fields(axes, grid, 2))


def of_fields(axes: Sequence[Axis], grid: Grid, every: int) -> dict[str, dict[str, float]]:
    """Return mean, standard deviation and quantiles of each field."""
    mass, figures = grid.mass(every), {}
    for i, axis in enumerate(axes):
        share = mass.sum(axis=tuple(j for j in range(mass.ndim) if j != i))
        values = axis.values(grid.rules[i].points)
        mean = float(share @ values)
        distribution = grid.rules[i].distribution(grid.marginal(i, every), every)
        quantiles = {name: float(axis.values(distribution.quantile(q))) for name, q in QUANTILES.items()}
        figures[axis.name] = {"mean": mean, "sd": math.sqrt(float(share @ np.square(values - mean))), **quantiles}
    return figures


def differences(fine: Mapping[str, Mapping[str, Any]], coarse: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the largest difference of any two figures in standard deviations; what is not finite is left out."""
    largest = 0.0
    for name, figures in fine.items():
        for key, figure in figures.items():
            with np.errstate(invalid="ignore", divide="ignore"):
                moved = np.abs(np.asarray(figure) - np.asarray(coarse[name][key])) / np.asarray(figures["sd"])
            largest = max(largest, float(np.max(moved[np.isfinite(moved)], initial=0.0)))
    return largest
