"""Flat coordinates of outer parameters, as engines see them: one number for each entry, called ``alpha[heads]``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bayeszoo.distributions.scale import Scale
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.capabilities.conditional import Conditional


@dataclass(frozen=True, eq=False)
class OuterCoordinates:
    """Coordinates (D,) of all entries of outer parameters: places on their scales, minus an origin, over a unit.

    ``shapes`` are the parameters' shapes by name; ``labels`` and ``scales`` are those of the D entries.
    """

    shapes: Mapping[str, tuple[int, ...]]
    labels: tuple[str, ...]
    scales: tuple[Scale, ...]
    origin: np.ndarray
    unit: np.ndarray

    @classmethod
    def of(cls, owner: Conditional, names: Sequence[str], data: Arrays | None = None, **origin_fields: Any) -> Self:
        """Make coordinates of outer parameters on the scales of their priors; the data name the entries."""
        vector_shapes = owner.outer_shapes(data)
        priors, shapes = owner.outer_priors, {name: vector_shapes.get(name, ()) for name in names}
        scales = [priors[name].scale for name, shape in shapes.items() for _ in range(math.prod(shape))]
        labels = _labels(owner, shapes, {} if data is None else owner.coords(data))
        return cls(shapes, labels, tuple(scales), np.zeros(len(scales)), np.ones(len(scales)), **origin_fields)

    def about(self, guesses: Mapping[str, tuple[Any, Any]]) -> tuple[np.ndarray, np.ndarray]:
        """Return the coordinates of guesses, moved inside the parameters' bounds, and their widths."""
        pairs = [np.broadcast_arrays(*guesses[name], np.empty(shape))[:2] for name, shape in self.shapes.items()]
        values, widths = (np.concatenate([np.ravel(pair[i]) for pair in pairs]) for i in (0, 1))
        places = [scale.place(scale.inside(float(value))) for scale, value in zip(self.scales, values, strict=True)]
        return (np.array(places) - self.origin) / self.unit, widths / self.unit

    @property
    def axes(self) -> dict[str, tuple[int, ...]]:
        """The coordinate numbers of each parameter's entries."""
        ends = np.cumsum([0, *(math.prod(shape) for shape in self.shapes.values())])
        pairs = zip(self.shapes, ends[:-1], ends[1:], strict=True)
        return {name: tuple(range(first, last)) for name, first, last in pairs}

    def value(self, i: int, x: Any) -> Any:
        """Return the i-th entry at its coordinate ``x``."""
        return self.scales[i].value(self.origin[i] + self.unit[i] * np.asarray(x))

    def entries(self, points: np.ndarray) -> np.ndarray:
        """Return the entries at points of shape (..., D), in the same shape."""
        return np.stack([self.value(i, points[..., i]) for i in range(len(self.scales))], axis=-1)

    def outer(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """Return the parameters at points (..., D), of shape (..., *own shape)."""
        entries, axes = self.entries(points), self.axes
        shapes = {name: (*points.shape[:-1], *shape) for name, shape in self.shapes.items()}
        return {name: np.reshape(entries[..., list(axes[name])], shape) for name, shape in shapes.items()}

    def complement(self, i: int, x: Any) -> Any:
        """Return the distance of the i-th entry to its upper bound at its coordinate ``x``."""
        return self.scales[i].complement(self.origin[i] + self.unit[i] * np.asarray(x))

    def places(self, values: Params) -> np.ndarray:
        """Return the coordinates (D,) of the parameters' values."""
        entries = np.concatenate([np.ravel(values[name]) for name in self.shapes])
        places = np.array([scale.place(value) for scale, value in zip(self.scales, entries, strict=True)])
        return (places - self.origin) / self.unit

    def log_slope(self, points: np.ndarray) -> np.ndarray:
        """Return the log Jacobian of the parameters by the coordinates at points (..., D), shape (...)."""
        places = self.origin + self.unit * points
        slopes = sum(scale.log_slope(places[..., i]) for i, scale in enumerate(self.scales))
        return slopes + np.sum(np.log(self.unit))


def _labels(owner: Conditional, shapes: Mapping[str, tuple[int, ...]], coords: Arrays) -> tuple[str, ...]:
    """Name the entries: ``sigma``, ``alpha[heads]``, and ``alpha[1]`` where the axis has no labels."""
    labels = []
    for name, shape in shapes.items():
        axes = owner.dims.get(name, ())[-len(shape) :] if shape else ()
        axis_labels = [coords.get(axis, range(size)) for axis, size in zip(axes, shape, strict=True)]
        for places in np.ndindex(shape):
            entry = ", ".join(str(label[i]) for label, i in zip(axis_labels, places, strict=True))
            labels.append(f"{name}[{entry}]" if shape else name)
    return tuple(labels)
