"""A kernel of features: its fields, and where rows are in their units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.families.processes.kernels import Expression, Shape
from bayeszoo.families.processes.noise import extent
from bayeszoo.foundation.named import Arrays
from bayeszoo.model.base import Model
from bayeszoo.model.fields import plain, positive, real


@dataclass(frozen=True)
class AtPlaces(Model, family=True):
    """Rows at places of features.

    Parameters
    ----------
    center, scale : float, or one for each feature of the data
        Where each feature is measured from, and its unit, > 0.
    """

    center: float = real(0.0, "center", axes=("feature",), kw_only=True)
    scale: float = positive(1.0, "scale", axes=("feature",), kw_only=True)

    @classmethod
    def standardized(cls, data: Arrays) -> dict[str, Any]:
        """Return the fields that measure features from their means in standard deviations."""
        features = [Moments.of(column) for column in data["X"].T]
        return {"center": plain([each.mean for each in features]), "scale": plain([each.sd for each in features])}

    def places(self, data: Arrays) -> np.ndarray:
        """Return the features about their centres, in their units, (n, F)."""
        size = len(data["feature"])
        return (data["X"] - self.entries("center", size)) / self.entries("scale", size)

    def simulated_places(
        self, rng: np.random.Generator, size: int, lengths: tuple[int, ...] = ()
    ) -> dict[str, np.ndarray]:
        """Draw places at random, of as many features as the fields say, or the shape of the lengths."""
        count = max([*np.shape(self.center), *np.shape(self.scale), *lengths], default=1)
        places = self.entries("center", count) + self.entries("scale", count) * np.abs(rng.normal(size=(size, count)))
        return {"X": places, "feature": np.array([f"x{j + 1}" for j in range(count)], dtype=str)}


@dataclass(frozen=True)
class OfPlaces(AtPlaces, family=True):
    """Rows at places of features, and a kernel of these; the length is in units of ``scale``.

    Parameters
    ----------
    kernel : str
        A name of `bayeszoo.families.processes.kernels.KERNELS`, or sums and products of several, as ``linear + rbf``.
    period : float
        Of the kernel ``periodic``, in units of ``scale``, > 0.
    alpha : float
        Of the kernel ``rational_quadratic``, > 0: the larger, the nearer to ``rbf``.
    """

    kernel: str = field(default="rbf", kw_only=True)
    period: float = positive(1.0, "period", kw_only=True)
    alpha: float = positive(1.0, "alpha of the rational quadratic", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.expression  # refuses what is no kernel

    @property
    def expression(self) -> Expression:
        """The kernel, read."""
        return Expression.read(self.kernel, Shape(float(self.period), float(self.alpha)))

    @classmethod
    def standardized(cls, data: Arrays) -> dict[str, Any]:
        """Return the fields that measure several features from their means in standard deviations."""
        return {**super().standardized(data), **({} if len(data["feature"]) > 1 else {"scale": 1.0})}

    @classmethod
    def weak_given(cls, data: Arrays, given: Mapping[str, object]) -> Any:
        """Return a model with some fields given, and the others weakly informative; random walks begin at the least."""
        if "brownian" in str(given.get("kernel", "")) and len(data["X"]):
            given = {"center": plain(np.min(data["X"], axis=0)), **given}
        return super().weak_given(data, given)

    def extent(self, data: Arrays) -> float:
        """Return how far apart places may be, in units of ``scale``."""
        return extent(self.places(data))
