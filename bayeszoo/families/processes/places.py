"""A kernel of features: its fields, and the places of rows in units of the features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.families.processes.kernels import Expression, Shape
from bayeszoo.families.processes.noise import extent
from bayeszoo.foundation.named import Arrays, Fields
from bayeszoo.model.base import Model
from bayeszoo.model.fields import plain, positive, real


@dataclass(frozen=True)
class AtPlaces(Model, family=True):
    """Rows at places of features.

    Parameters
    ----------
    center, scale : float, or one for each feature of the data
        The zero point of each feature, and its unit, > 0.
    """

    center: float = real(0.0, "center", axes=("feature",), kw_only=True)
    scale: float = positive(1.0, "scale", axes=("feature",), kw_only=True)

    @classmethod
    def standardized(cls, data: Arrays) -> Fields:
        """Return the fields that centre features at their means and scale them by their standard deviations."""
        moments = [Moments.of(column) for column in data["X"].T]
        return {"center": plain([m.mean for m in moments]), "scale": plain([m.sd for m in moments])}

    def places(self, data: Arrays) -> np.ndarray:
        """Return the features minus their centres, in their units, (n, F)."""
        size = len(data["feature"])
        return (data["X"] - self.entries("center", size)) / self.entries("scale", size)

    def simulated_places(
        self, rng: np.random.Generator, size: int, lengths: tuple[int, ...] = ()
    ) -> dict[str, np.ndarray]:
        """Draw random places, with as many features as the fields or the lengths have entries."""
        count = max([*np.shape(self.center), *np.shape(self.scale), *lengths], default=1)
        places = self.entries("center", count) + self.entries("scale", count) * np.abs(rng.normal(size=(size, count)))
        return {"X": places, "feature": np.array([f"x{j + 1}" for j in range(count)], dtype=str)}


@dataclass(frozen=True)
class OfPlaces(AtPlaces, family=True):
    """Rows at places of features, and a kernel of the places; the length is in units of ``scale``.

    Parameters
    ----------
    kernel : str
        A name in `bayeszoo.families.processes.kernels.KERNELS`, or sums and products of names, as ``linear + rbf``.
    period : float
        Period of the kernel ``periodic``, in units of ``scale``, > 0.
    alpha : float
        Parameter of the kernel ``rational_quadratic``, > 0; for large alpha it is nearly ``rbf``.
    """

    kernel: str = field(default="rbf", kw_only=True)
    period: float = positive(1.0, "period", kw_only=True)
    alpha: float = positive(1.0, "alpha of the rational quadratic", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.expression  # raises an error for unknown kernels

    @property
    def expression(self) -> Expression:
        """The parsed kernel."""
        return Expression.read(self.kernel, Shape(float(self.period), float(self.alpha)))

    @classmethod
    def standardized(cls, data: Arrays) -> Fields:
        """Return the fields that centre features, and scale them if there are several."""
        return {**super().standardized(data), **({} if len(data["feature"]) > 1 else {"scale": 1.0})}

    @classmethod
    def weak_with(cls, data: Arrays, fields: Mapping[str, object]) -> Any:
        """Return a model with these fields, the others weakly informative; random walks start at the minimum."""
        if "brownian" in str(fields.get("kernel", "")) and len(data["X"]):
            fields = {"center": plain(np.min(data["X"], axis=0)), **fields}
        return super().weak_with(data, fields)

    def extent(self, data: Arrays) -> float:
        """Return the extent of the places, in units of ``scale``."""
        return extent(self.places(data))
