"""The evidence on a grid of one or two fields of a model: to look at it, and to integrate it times a prior."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np
import scipy

from bayeszoo.comparison.evidence.surface import FieldCoordinates, Surface, require_same_statistics
from bayeszoo.data.read import read
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.quadrature import Distribution, Rule, peak
from bayeszoo.foundation.threads import one_thread
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import ClosedForm
from bayeszoo.model.fields import hyperparameters

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

Bounds = Mapping[str, tuple[float, float]]
"""The lowest and the highest value of each field."""
Columns = Sequence[np.ndarray] | np.ndarray
"""Coordinates of each field, of which every combination is meant."""
LogPrior = Callable[..., float]
"""``log_prior(tau=..., sigma=...)`` is the log density of a prior of these fields."""

MAX_FIELDS = 2
MAX_POINTS = 1_000_000
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


def evidence_grid(model: Model, data: Any = None, over: Bounds | None = None, *, points: int = 41) -> xr.Dataset:
    """Compute the exact log evidence on a grid of one or two fields.

    Parameters
    ----------
    model : Model
        Must be `ClosedForm`; its other fields stay.
    data : Data or anything that `read` takes, optional
        The model's first example by default.
    over : mapping of str to pair of float
        The fields, each a single number, and the lowest and highest value of each.
    points : int
        How many values of each, bounds included: at equal ratios where the field must be positive, else at equal
        distances.

    Returns
    -------
    xarray.Dataset
        ``log_evidence`` along the fields, in nats, NaN where the model has none.

    Raises
    ------
    InputError
        When the model has no closed form or no such fields, or the bounds are no bounds.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> speeds = bz.find("gaussian_mean")(m0=850, s0=50)
    >>> grid = bz.evidence_grid(speeds, over={"sigma": (50, 150)}, points=101)
    >>> round(float(grid.log_evidence.idxmax()), 1)
    79.3
    """
    known, bounds = checked(model, over or {})
    if isinstance(points, bool) or not isinstance(points, int) or points < 2 or points ** len(bounds) > MAX_POINTS:
        raise InputError(f"points must be a whole number >= 2, and at most {MAX_POINTS} in all, got {points!r}")
    data = read(model, data)
    require_same_statistics(known, data, {name: high for name, (_, high) in bounds.items()})
    surface = Surface(FieldCoordinates.of(known, tuple(bounds)), known.statistics(data))
    low, high = surface.coordinates.places(np.transpose([*bounds.values()]))
    places = np.linspace(low, high, points)
    with one_thread():
        log_evidence = heights(surface, places.T)
    log_evidence[np.isneginf(log_evidence)] = math.nan
    coords = dict(zip(bounds, surface.coordinates.values(places).T, strict=True))
    attrs = {"model": str(model), "data_digest": data.digest}
    return xr.Dataset({"log_evidence": (tuple(coords), log_evidence)}, coords, attrs)


def checked(model: Model, bounds: Bounds) -> tuple[ClosedForm[Any], dict[str, tuple[float, float]]]:
    """Return the model and the bounds of its fields as numbers, or say what is wrong with them."""
    if not isinstance(bounds, Mapping):
        raise InputError("the fields of a grid need bounds", hint='give over={"tau": (lowest, highest)}')
    known = require_fields(model, tuple(bounds))
    pairs = {name: _pair(name, pair) for name, pair in bounds.items()}
    for name, (low, high) in pairs.items():
        above = float(model.lower_bounds.get(name, 0.0))
        if hyperparameters(model)[name].positive and not low > above:
            raise InputError(f"the bounds of {name} must be > {above:g}, got {low:g} and {high:g}")
    return known, pairs


def require_fields(model: Model, names: Sequence[str]) -> ClosedForm[Any]:
    """Refuse a model without a closed form, and what is not one or two of its fields that are single numbers."""
    if not isinstance(model, ClosedForm):
        raise InputError(f"{model.name} has no closed-form evidence", hint="see `bayeszoo list`")
    known, fields = hyperparameters(model), f"{model.name} has {', '.join(hyperparameters(model))}"
    if not 1 <= len(names) <= MAX_FIELDS or len(set(names)) < len(names):
        raise InputError(f"a grid is over one or two fields, got {', '.join(names) or 'none'}; {fields}")
    for name in names:
        if name not in known or known[name].matrix:
            raise InputError(f"over {name}: {model.name} has no such field of numbers; {fields}")
        if np.ndim(getattr(model, name)):
            raise InputError(f"over {name}: it has several entries", hint="set it to one number that stands for all")
    return model


def _pair(name: str, bounds: Any) -> tuple[float, float]:
    try:
        low, high = (float(value) for value in bounds)
    except (TypeError, ValueError):
        raise InputError(f"the bounds of {name} must be two numbers, got {bounds!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"the bounds of {name} must be finite and increase, got {low:g} and {high:g}")
    return low, high


def combinations(columns: Columns) -> np.ndarray:
    """Return every combination of entries, one a row, the last column changing fastest."""
    return np.stack([np.ravel(grid) for grid in np.meshgrid(*columns, indexing="ij")], axis=1)


def heights(surface: Surface, places: Columns) -> np.ndarray:
    """Return the log evidence at every combination of coordinates, shape (len(places[0]), ...), -inf without one."""
    values = np.array([surface.value(x) for x in combinations(places)])
    return np.where(np.isfinite(values), values, -math.inf).reshape([len(column) for column in places])


# The evidence times a prior


@dataclass(frozen=True, eq=False)
class Integral:
    """Evidence times prior over the coordinates of the fields, between ``low`` and ``high``, each of shape (D,)."""

    surface: Surface
    low: np.ndarray
    high: np.ndarray
    log_prior: LogPrior | None

    def prior(self, places: Columns) -> np.ndarray:
        """Return the log prior density in the coordinates at every combination of them."""
        shape, points = [len(column) for column in places], combinations(places)
        if self.log_prior is None:
            return np.full(shape, -math.fsum(np.log(self.high - self.low)))
        coordinates, density = self.surface.coordinates, []
        for values in coordinates.values(points):
            fields = dict(zip(coordinates.names, values, strict=True))
            density.append(float(self.log_prior(**fields)))
            if not density[-1] < math.inf:
                place = ", ".join(f"{name}={value:g}" for name, value in fields.items())
                raise InputError(f"log_prior must be a number below infinity, got {density[-1]} at {place}")
        return (np.array(density) + np.log(coordinates.slopes(points)).sum(axis=1)).reshape(shape)

    def values(self, i: int, places: Any) -> np.ndarray:
        """Return the values of the i-th field at its coordinates, of shape (P,)."""
        return self.surface.coordinates.values(np.outer(places, np.eye(len(self.low))[i]))[:, i]

    def log_density(self, places: Columns) -> np.ndarray:
        """Return the log of evidence times prior at every combination of coordinates."""
        return np.asarray(heights(self.surface, places) + self.prior(places))

    def highest(self) -> tuple[np.ndarray, np.ndarray]:
        """Return where the integrand is highest and how wide its peak is."""
        scan = np.linspace(self.low, self.high, SCAN[len(self.low)]).T
        start = combinations(scan)[int(np.argmax(self.log_density(scan)))]
        return peak(lambda place: float(self.log_density(place[:, None]).item()), self.low, self.high, start)


@dataclass(frozen=True, eq=False)
class Grid:
    """Log evidence and log prior on a grid, and the integral of their product."""

    rules: list[Rule]
    evidence: np.ndarray
    prior: np.ndarray

    @cached_property
    def halved(self) -> Grid:
        """The grid of every other point of each field."""
        return Grid([rule.halved() for rule in self.rules], self.evidence[self.kept], self.prior[self.kept])

    @property
    def kept(self) -> tuple[slice, ...]:
        """Where the points of the halved grid are."""
        return (slice(None, None, 2),) * len(self.rules)

    @property
    def log_density(self) -> np.ndarray:
        """The log of evidence times prior at every point, minus infinity where there is no evidence."""
        return np.asarray(self.evidence + self.prior)

    @property
    def weights(self) -> np.ndarray:
        """What the integrand is multiplied by at every point."""
        return np.asarray(np.prod(np.meshgrid(*(rule.weights for rule in self.rules), indexing="ij"), axis=0))

    @property
    def log_integral(self) -> float:
        """The log of the integral."""
        return float(scipy.special.logsumexp(self.log_density, b=self.weights))

    @property
    def error(self) -> float:
        """What leaving out every other point changes it by."""
        return abs(self.log_integral - self.halved.log_integral)

    @cached_property
    def mass(self) -> np.ndarray:
        """The posterior probability that every point stands for."""
        return np.asarray(scipy.special.softmax(self.log_density + np.log(self.weights)))

    def share(self, i: int) -> np.ndarray:
        """Return the posterior probability that each point of the i-th field stands for."""
        return np.asarray(self.mass.sum(axis=tuple(j for j in range(len(self.rules)) if j != i)))

    def distribution(self, i: int) -> Distribution:
        """Return the posterior distribution of the i-th coordinate."""
        with np.errstate(divide="ignore"):
            return self.rules[i].distribution(np.log(self.share(i) / self.rules[i].weights))


def refined(integral: Integral) -> Grid:
    """Return a grid that is fine enough, or the finest.

    Raises `NumericalError` when there is no evidence anywhere between the bounds.
    """
    centre, scale = integral.highest()
    intervals, most = INTERVALS[len(integral.low)]
    while True:
        ends = zip(integral.low, integral.high, centre, scale, strict=True)
        rules = [Rule.between(*of_field, intervals) for of_field in ends]
        places = [rule.points for rule in rules]
        grid = Grid(rules, heights(integral.surface, places), integral.prior(places))
        if not np.max(grid.log_density) > -math.inf:
            raise NumericalError(f"{integral.surface.coordinates.model.name} has no evidence between the bounds")
        moved = differences(of_fields(integral, grid), of_fields(integral, grid.halved))
        if intervals >= most or (grid.error <= MAX_ERROR and moved <= MAX_MOMENT_ERROR):
            return grid
        intervals *= 2


def of_fields(integral: Integral, grid: Grid) -> dict[str, dict[str, float]]:
    """Return mean, standard deviation and quantiles of each field."""
    figures = {}
    for i, (name, rule) in enumerate(zip(integral.surface.coordinates.names, grid.rules, strict=True)):
        values, share, distribution = integral.values(i, rule.points), grid.share(i), grid.distribution(i)
        mean = float(share @ values)
        quantiles = integral.values(i, [distribution.quantile(q) for q in QUANTILES.values()]).tolist()
        sd = math.sqrt(float(share @ np.square(values - mean)))
        figures[name] = {"mean": mean, "sd": sd, **dict(zip(QUANTILES, quantiles, strict=True))}
    return figures


def differences(fine: Mapping[str, Mapping[str, Any]], coarse: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the largest difference of any two figures in standard deviations; what is not finite is left out."""
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = [
            np.ravel(np.abs(np.subtract(figure, coarse[name][key])) / figures["sd"])
            for name, figures in fine.items()
            for key, figure in figures.items()
        ]
    each = np.concatenate(moved)
    return float(np.max(each[np.isfinite(each)], initial=0.0))
