"""The evidence on a grid of one or two fields of a model: for looking at it, and for integrating over it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import lazy_loader
import numpy as np
from threadpoolctl import threadpool_limits

from bayeszoo.data.read import read
from bayeszoo.errors import InputError
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import ClosedForm
from bayeszoo.model.fields import hyperparameters

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

Bounds = Mapping[str, tuple[float, float]]
"""The lowest and the highest value of each field."""

MAX_FIELDS = 2
MAX_POINTS = 1_000_000


@dataclass(frozen=True)
class Axis:
    """One field of a model between bounds, and its coordinate: its logarithm where it is positive, else itself.

    Attributes
    ----------
    name : str
        The field.
    low, high : float
        Its bounds.
    logarithmic : bool
        Whether it is positive.
    above : float
        What a positive field must exceed: 0, unless the model's ``lower_bounds`` say more.
    """

    name: str
    low: float
    high: float
    logarithmic: bool
    above: float = 0.0

    @property
    def ends(self) -> tuple[float, float]:
        """The coordinates of the bounds."""
        return float(self.place(self.low)), float(self.place(self.high))

    @property
    def width(self) -> float:
        """The distance of the bounds in the coordinate."""
        low, high = self.ends
        return high - low

    @property
    def label(self) -> str:
        """What the coordinate is: ``log tau``, ``m0``, ``log(nu0 - 2)``."""
        if not self.logarithmic:
            return self.name
        return f"log({self.name} - {self.above:g})" if self.above else f"log {self.name}"

    def place(self, values: Any) -> np.ndarray:
        """Return the coordinates of values of the field."""
        values = np.asarray(values, dtype=np.float64)
        return np.log(values - self.above) if self.logarithmic else values

    def values(self, places: Any) -> np.ndarray:
        """Return the values of the field at coordinates."""
        places = np.asarray(places, dtype=np.float64)
        return self.above + np.exp(places) if self.logarithmic else places

    def log_slope(self, places: Any) -> np.ndarray:
        """Return the log derivative of the field with respect to its coordinate, which a density changes by."""
        places = np.asarray(places, dtype=np.float64)
        return places if self.logarithmic else np.zeros_like(places)


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
    78.8
    """
    axes = axes_of(model, over or {})
    if isinstance(points, bool) or not isinstance(points, int) or points < 2 or points ** len(axes) > MAX_POINTS:
        raise InputError(f"points must be a whole number >= 2, and at most {MAX_POINTS} in all, got {points!r}")
    data = read(model, data)
    require_same_statistics(model, data, axes)
    places = [np.linspace(*axis.ends, points) for axis in axes]
    with threadpool_limits(1):  # threads waiting for each other take most of the time of matrices this small
        log_evidence = heights(model, cast(Any, model).statistics(data), axes, places)
    coords = {axis.name: axis.values(place) for axis, place in zip(axes, places, strict=True)}
    attrs = {"model": str(model), "data_digest": data.digest}
    return xr.Dataset({"log_evidence": (tuple(coords), log_evidence)}, coords, attrs)


def axes_of(model: Model, bounds: Bounds) -> list[Axis]:
    """Return the axes of fields between bounds, or say what is wrong with them."""
    if not isinstance(bounds, Mapping):
        raise InputError("the fields of a grid need bounds", hint='give over={"tau": (lowest, highest)}')
    require_fields(model, tuple(bounds))
    known, lowest = hyperparameters(model), model.lower_bounds
    axes = []
    for name, (low, high) in {name: _pair(name, pair) for name, pair in bounds.items()}.items():
        axis = Axis(name, low, high, known[name].positive, float(lowest.get(name, 0.0)))
        if axis.logarithmic and not low > axis.above:
            raise InputError(f"the bounds of {name} must be > {axis.above:g}, got {low:g} and {high:g}")
        axes.append(axis)
    return axes


def require_fields(model: Model, names: Sequence[str]) -> None:
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


def _pair(name: str, bounds: Any) -> tuple[float, float]:
    try:
        low, high = (float(value) for value in bounds)
    except (TypeError, ValueError):
        raise InputError(f"the bounds of {name} must be two numbers, got {bounds!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"the bounds of {name} must be finite and increase, got {low:g} and {high:g}")
    return low, high


def require_same_statistics(model: Model, data: Any, axes: Sequence[Axis]) -> None:
    """Refuse a field that the statistics depend on: they are computed once, and serve the whole grid.

    Raises
    ------
    InputError
        When the evidence at a bound is another with statistics made there.
    """
    own = cast(Any, model).statistics(data)
    for axis in axes:
        there: Any = _at(model, [axis], [axis.high])
        if there is None:
            continue
        with_own, with_new = (_height(there, stats) for stats in (own, there.statistics(data)))
        if not (with_own == with_new or (math.isnan(with_own) and math.isnan(with_new))):
            raise InputError(f"over {axis.name}: {model.name} needs it to read the data, so it cannot vary")


def heights(model: Model, stats: Any, axes: Sequence[Axis], places: Sequence[np.ndarray]) -> np.ndarray:
    """Return the log evidence at every combination of coordinates, of shape (len(places[0]), ...); NaN without one."""
    values = [axis.values(place) for axis, place in zip(axes, places, strict=True)]
    log_evidence = np.empty([len(place) for place in places])
    for index in np.ndindex(log_evidence.shape):
        there = _at(model, axes, [column[i] for column, i in zip(values, index, strict=True)])
        log_evidence[index] = math.nan if there is None else _height(there, stats)
    return log_evidence


def model_at(model: Model, axes: Sequence[Axis], values: Sequence[float]) -> Model:
    """Return the model with fields at the values."""
    fields = {axis.name: np.float64(value) for axis, value in zip(axes, values, strict=True)}
    return cast(Model, replace(cast(Any, model), **fields))


def _at(model: Model, axes: Sequence[Axis], values: Sequence[float]) -> Model | None:
    """Return the model with fields at the values, or None where they are not valid."""
    try:
        return model_at(model, axes, values)
    except InputError:
        return None


def _height(model: Any, stats: Any) -> float:
    """Return the log evidence; NaN where it cannot be computed, or is infinite."""
    try:
        with np.errstate(all="ignore"):
            height = float(model.log_evidence(stats))
    except (ArithmeticError, ValueError):  # overflow, the domain of a logarithm
        return math.nan
    return height if math.isfinite(height) else math.nan
