"""The log evidence as a function of chosen fields of a model, how it is climbed, and what empirical Bayes returns."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy

from bayeszoo.errors import InputError
from bayeszoo.foundation.gate import Check, passed
from bayeszoo.foundation.optimize import MAX_DISTANCE
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import ClosedForm
from bayeszoo.model.fields import hyperparameters, plain, text

SAME = 1e-6
"""Two climbs reached the same maximum when their log evidences differ by less, in nats."""
ENVELOPE = "the fields were chosen by these data, so this is an upper envelope and not the evidence of a model"
REACH = 1e6
"""How far beyond the model's own fields and the weak ones to look."""
FURTHER = 1e3
"""How much further out the evidence must be lower for a maximum to be one."""
FALL = 1e-9
"""By how much it must be lower there, relative to its size."""
SPREAD = 1e2
"""How far around the known places to begin."""
STEP = 2.0**-10
"""Step of the finite differences. A power of two, as the units of real fields are: so 1e9 + STEP is exact."""
_POWERS = range(-200, 200)
"""Powers of two among which the units of real fields are looked for."""
WORST = 1e250
"""Stands for the depth of a place without an evidence; the line search cannot reckon with infinity."""


@dataclass(frozen=True, repr=False)
class EmpiricalBayes:
    """A model whose fields maximize the evidence, or why there is none.

    Attributes
    ----------
    model : Model
        The model at the largest evidence found; where ``boundary`` is not empty, only where the search ended.
    before : Model
        The model that was given.
    log_evidence, log_evidence_before : float
        max over the fields of log p(data), and log p(data) at the fields given. The first is an upper envelope: it
        may not be compared with the evidence of a model whose fields were not chosen by the same data.
    over : tuple of str
        The fields that were chosen.
    boundary : dict of str to str
        What the evidence does, for each field, or entry of one, in which it has no maximum.
    reached, starts : int
        How many climbs ended within `SAME` nats of the best, and how many there were.
    checks : list of Check
        All of them must pass.
    """

    model: Model
    before: Model
    over: tuple[str, ...]
    boundary: dict[str, str]
    reached: int
    starts: int
    checks: list[Check]
    log_evidence: float = math.nan
    log_evidence_before: float = math.nan

    @property
    def status(self) -> str:
        """``"ok"``, ``"at the boundary"`` or ``"not converged"``."""
        if self.boundary:
            return "at the boundary"
        return "ok" if passed(self.checks) else "not converged"

    def __repr__(self) -> str:
        """Show the fields before and after, the evidence and the status."""
        ended = "" if self.status == "ok" else "  (where the search ended)"
        changes = [
            f"{name} {text(getattr(self.before, name))} -> {text(getattr(self.model, name))}" for name in self.over
        ]
        lines = [
            f"{self.model.name}: {', '.join(changes)}{ended}",
            *self.about_evidence(),
            ENVELOPE,
            f"{self.reached} of {self.starts} climbs reached the best",
            f"status {self.status}",
        ]
        return "\n".join([*lines, *self.reasons])

    def about_evidence(self, shown: bool = True, decimals: int = 2) -> list[str]:
        """Return what is known of the evidence, a line each; what it is at the fields chosen may be withheld."""
        after = f"{self.log_evidence:.{decimals}f}" if shown else "withheld"
        return [f"log evidence {self.log_evidence_before:.{decimals}f} -> {after}"]

    @property
    def reasons(self) -> list[str]:
        """Why the status is not ``"ok"``, a line each."""
        failed = [str(check) for check in self.checks if not check.passed]
        return list(self.boundary.values()) or failed


def differences(function: Callable[[np.ndarray], Any], x: np.ndarray, step: float = STEP) -> np.ndarray:
    """Return central differences of a function along each of the D entries of x, as a new last axis."""
    return np.stack([(function(x + h) - function(x - h)) / (2 * step) for h in step * np.eye(len(x))], axis=-1)


@dataclass(frozen=True, eq=False)
class FieldCoordinates:
    """Flat coordinates of chosen fields: logarithms of positive entries, real entries in units; 0 is the model's own.

    ``labels`` name the D entries: ``sigma``, ``alpha[2]``. The ``logarithmic`` ones are positive, and exceed ``low``,
    which is 0 unless the model's ``lower_bounds`` say more. ``origin`` are the model's own entries, ``unit`` by how
    much a real entry grows with its coordinate, and ``weak`` the coordinates of the weakly informative fields.
    """

    model: ClosedForm[Any]
    names: tuple[str, ...]
    labels: tuple[str, ...]
    logarithmic: np.ndarray
    low: np.ndarray
    origin: np.ndarray
    unit: np.ndarray
    weak: np.ndarray

    @classmethod
    def of(cls, model: ClosedForm[Any], names: Sequence[str], weak: Model | None = None) -> FieldCoordinates:
        """Lay coordinates over fields of a model; ``weak`` has the scale of the data, by default the model's own."""
        known, own = hyperparameters(model), {name: np.asarray(getattr(model, name)) for name in names}
        labels = [f"{name}{list(i) if i else ''}" for name, value in own.items() for i in np.ndindex(value.shape)]
        logarithmic = _flat(np.full(value.shape, known[name].positive) for name, value in own.items())
        low = _flat(np.full(value.shape, model.lower_bounds.get(name, 0.0)) for name, value in own.items())
        origin = _flat(own.values())
        at_own = cls(model, tuple(names), tuple(labels), logarithmic, low, origin, np.ones(len(labels)), 0 * origin)
        there = _flat(_alike(getattr(weak or model, name), value) for name, value in own.items())
        return replace(at_own, weak=at_own.places(there))

    def places(self, values: np.ndarray) -> np.ndarray:
        """Return the coordinates of entries of shape (..., D)."""
        above, own = (np.where(self.logarithmic, each - self.low, 1.0) for each in (values, self.origin))
        return np.where(self.logarithmic, np.log(above / own), (values - self.origin) / self.unit)

    def values(self, x: np.ndarray) -> np.ndarray:
        """Return the entries at x, shape (..., D)."""
        above = self.low + (self.origin - self.low) * np.exp(np.where(self.logarithmic, x, 0.0))
        return np.where(self.logarithmic, above, self.origin + self.unit * x)

    def slopes(self, x: np.ndarray) -> np.ndarray:
        """Return the derivative of each entry with respect to its coordinate, shape (..., D)."""
        return np.where(self.logarithmic, self.values(x) - self.low, self.unit)

    def model_at(self, x: np.ndarray) -> ClosedForm[Any]:
        """Return the model with the fields at x."""
        shapes = [np.shape(getattr(self.model, name)) for name in self.names]
        parts = np.split(self.values(x), np.cumsum([math.prod(shape) for shape in shapes])[:-1])
        entries = zip(self.names, parts, shapes, strict=True)
        return self.model.replaced(**{name: plain(part.reshape(shape)) for name, part, shape in entries})

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the edges of the search, each of shape (D,)."""
        reach = self.stretch(REACH)
        return np.minimum(self.weak, 0.0) - reach, np.maximum(self.weak, 0.0) + reach

    def stretch(self, factor: float) -> np.ndarray:
        """Return how far a positive entry moves when it is multiplied by ``factor``; a real one moves so many units."""
        return np.where(self.logarithmic, math.log(factor), factor)

    def starts(self, count: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Yield the model's own fields, then places around the weak ones and around its own, in turn."""
        size = len(self.origin)
        yield np.zeros(size)
        for i in range(1, count):
            away = np.where(self.logarithmic, rng.uniform(-1, 1, size), rng.normal(size=size)) * self.stretch(SPREAD)
            yield away + (self.weak if i % 2 else 0.0)


def _flat(parts: Iterable[Any]) -> np.ndarray:
    return np.concatenate([np.ravel(part) for part in parts])


def _alike(value: Any, own: np.ndarray) -> np.ndarray:
    """Return a field of another model in the shape that it has in this one."""
    values = np.asarray(value)
    return np.broadcast_to(values if values.shape == own.shape else np.median(values), own.shape)


class Peak(NamedTuple):
    """Where a climb ended: x, the log evidence there, its gradient, and its negative Hessian, shape (D, D).

    The distance is the Newton decrement, sqrt(g' H^-1 g); infinite where the curvature is not that of a maximum.
    """

    x: np.ndarray
    value: float
    slope: np.ndarray
    precision: np.ndarray
    distance: float


def log_evidence(model: ClosedForm[Any], stats: Any) -> float:
    """Return the log evidence; NaN where it cannot be computed."""
    try:
        with np.errstate(all="ignore"):
            return float(model.log_evidence(stats))
    except (ArithmeticError, ValueError):  # overflow, the domain of a logarithm
        return math.nan


def require_same_statistics(model: ClosedForm[Any], data: Any, others: Mapping[str, float]) -> None:
    """Refuse a field that the statistics depend on: they are computed once, and serve all values of the fields.

    At the ``others``, a value for each field, the evidence must be the same with statistics computed there.
    """
    own = model.statistics(data)
    for name, value in others.items():
        try:
            there = model.replaced(**{name: np.float64(value)})
        except InputError:
            continue
        if not np.array_equal(log_evidence(there, own), log_evidence(there, there.statistics(data)), equal_nan=True):
            raise InputError(f"over {name}: {model.name} needs it to read the data, so it cannot vary")


@dataclass(frozen=True, eq=False)
class Surface:
    """The log evidence of given statistics over coordinates of the fields."""

    coordinates: FieldCoordinates
    stats: Any

    def value(self, x: np.ndarray) -> float:
        """Return the log evidence at x; minus infinity where it cannot be computed."""
        try:
            with np.errstate(all="ignore"):
                height = log_evidence(self.coordinates.model_at(x), self.stats)
        except InputError:  # a field beyond its largest
            return -math.inf
        return -math.inf if math.isnan(height) else height

    def in_its_units(self) -> Surface:
        """Return the surface with real entries in units that change the evidence by about a nat.

        The curvature at the better of the weak fields and the model's own tells the unit: data may be of any size.
        """
        at = self.coordinates
        unit = np.ones_like(at.weak)
        for i in np.flatnonzero(~at.logarithmic):
            unit[i] = 2.0 ** self._doublings(np.eye(len(unit))[i])
        weak = np.where(at.logarithmic, at.weak, at.weak * at.unit / unit)
        return replace(self, coordinates=replace(at, unit=unit, weak=weak))

    def _doublings(self, direction: np.ndarray) -> int:
        """Return the exponent of the smallest power of two that bends the evidence by a nat, the last if none does."""
        centre = max(self.coordinates.weak, np.zeros_like(direction), key=self.value)
        middle = self.value(centre)
        least = max(1.0, 1e-8 * abs(middle))  # above its rounding

        def bends(power: int) -> bool:
            step = 2.0**power * direction
            return not abs(self.value(centre + step) + self.value(centre - step) - 2 * middle) < least

        return bisect.bisect_left(_POWERS, True, key=bends) + _POWERS.start

    def slope(self, x: np.ndarray, rough: bool = False) -> np.ndarray:
        """Return the gradient at x, shape (D,), by differences: good to STEP**4, or roughly STEP**2."""
        with np.errstate(all="ignore"):
            near = differences(self.value, x)
            return near if rough else (4 * near - differences(self.value, x, 2 * STEP)) / 3

    def climb(self, start: np.ndarray, bounds: tuple[np.ndarray, np.ndarray] | None = None) -> np.ndarray:
        """Climb by L-BFGS-B within bounds, and return where that ends."""
        low, high = bounds or self.coordinates.bounds()
        start = np.clip(start, low, high)
        options = {"gtol": 1e-8, "ftol": 1e-14, "maxiter": 500}
        box = np.column_stack([low, high])
        x = scipy.optimize.minimize(self._descend, start, jac=True, method="L-BFGS-B", bounds=box, options=options).x
        return x if self.value(x) > self.value(start) else start

    def _descend(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        value = self.value(x)
        if not math.isfinite(value):
            return math.copysign(WORST, -value), np.zeros_like(x)
        return -value, -np.nan_to_num(self.slope(x, rough=True), posinf=0.0, neginf=0.0)

    def peak(self, x: np.ndarray) -> Peak:
        """Go on from x by Newton steps as long as they help, and describe the place."""
        best = self._described(x)
        low, high = self.coordinates.bounds()
        for _ in range(5):
            if best.distance < 1e-3 * MAX_DISTANCE or not math.isfinite(best.distance):
                break
            moved = np.clip(best.x + np.linalg.solve(best.precision, best.slope), low, high)
            further = self._described(moved)
            if not further.distance < best.distance or further.value < best.value - 1e-12 * abs(best.value):
                break
            best = further
        return best

    def _described(self, x: np.ndarray) -> Peak:
        slope = self.slope(x)
        with np.errstate(all="ignore"):
            bend = differences(lambda x: self.slope(x, rough=True), x)
        precision, distance = -(bend + bend.T) / 2, math.inf
        if np.isfinite(precision).all() and np.linalg.eigvalsh(precision)[0] > 0:
            distance = math.sqrt(np.maximum(slope @ np.linalg.solve(precision, slope), 0.0))
        return Peak(x, self.value(x), slope, precision, distance)

    def further(self, peak: Peak, entry: int, side: int) -> np.ndarray:
        """Move one entry far out to a side, let the others follow, and return the highest place found."""
        low, high = self.coordinates.bounds()
        further = self.coordinates.stretch(FURTHER)
        low, high, out = low - further, high + further, side * further
        low[entry] = high[entry] = peak.x[entry] + out[entry]
        together = np.where(self.coordinates.logarithmic, out, 0.0)  # at a constant ratio, often all there is to it
        highest = max((np.clip(peak.x + move, low, high) for move in (together, 0.0)), key=self.value)
        return highest if self.value(highest) >= self.allowed(peak) else self.climb(highest, (low, high))

    @staticmethod
    def allowed(peak: Peak) -> float:
        """Return how high the evidence may be far out if the peak is to be a maximum."""
        return peak.value - FALL * max(1.0, abs(peak.value))
