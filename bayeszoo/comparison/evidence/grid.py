"""The evidence on a grid of one or two fields of a model: to look at it, and to integrate it times a prior."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np

from bayeszoo.comparison.evidence.surface import FieldCoordinates, Surface, require_same_statistics
from bayeszoo.data.read import read
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.grid import Columns, Grid, Integrand, combinations, differences, figures, refined
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


def heights(surface: Surface, places: Columns) -> np.ndarray:
    """Return the log evidence at every combination of coordinates, shape (len(places[0]), ...), -inf without one."""
    values = np.array([surface.value(x) for x in combinations(places)])
    return np.where(np.isfinite(values), values, -math.inf).reshape([len(column) for column in places])


class Integral(Integrand):
    """Evidence times prior over the coordinates of the fields, between ``low`` and ``high``, each of shape (D,)."""

    def __init__(self, surface: Surface, low: np.ndarray, high: np.ndarray, log_prior: LogPrior | None) -> None:
        self.surface, self.low, self.high, self.log_prior = surface, low, high, log_prior
        self.names = surface.coordinates.names

    def prior(self, points: np.ndarray) -> np.ndarray:
        """Return the log prior density in the coordinates at points (P, D)."""
        if self.log_prior is None:
            return np.full(len(points), -math.fsum(np.log(self.high - self.low)))
        coordinates, density = self.surface.coordinates, []
        for values in coordinates.values(points):
            fields = dict(zip(coordinates.names, values, strict=True))
            density.append(float(self.log_prior(**fields)))
            if not density[-1] < math.inf:
                place = ", ".join(f"{name}={value:g}" for name, value in fields.items())
                raise InputError(f"log_prior must be a number below infinity, got {density[-1]} at {place}")
        return np.array(density) + np.log(coordinates.slopes(points)).sum(axis=1)

    def values(self, i: int, places: Any) -> np.ndarray:
        """Return the values of the i-th field at its coordinates, of shape (P,)."""
        return self.surface.coordinates.values(np.outer(places, np.eye(len(self.low))[i]))[:, i]

    def log_density(self, points: np.ndarray) -> np.ndarray:
        """Return the log of evidence times prior at points (P, D), -inf without an evidence."""
        values = np.array([self.surface.value(x) for x in points])
        return np.where(np.isfinite(values), values, -math.inf) + self.prior(points)

    def grid(self) -> Grid:
        """Return a grid that is fine enough, or the finest.

        Raises `NumericalError` when there is no evidence anywhere between the bounds.
        """
        grid = refined(self, self._is_fine, times=2)
        if not np.max(grid.log_density) > -math.inf:
            raise NumericalError(f"{self.surface.coordinates.model.name} has no evidence between the bounds")
        return grid

    def _is_fine(self, grid: Grid) -> bool:
        moved = differences(figures(self, grid), figures(self, grid.halved))
        return grid.error <= MAX_ERROR and moved <= MAX_MOMENT_ERROR
