"""Models whose rows depend on features through a weighted sum of terms, the linear predictor."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, NamedTuple, TypeGuard

import numpy as np

from bayeszoo.errors import NumericalError
from bayeszoo.foundation.named import Arrays, Params, Statistics
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities.observable import Observable
from bayeszoo.model.views import View


class Feature(NamedTuple):
    """A feature: its column numbers in ``X``, and its levels, reference first; a numeric feature has no levels."""

    places: list[int]
    levels: list[str]

    def rows(self, baseline: np.ndarray) -> np.ndarray:
        """Return one row for each level, shape (levels, F), with the other features as in ``baseline``, shape (F,)."""
        rows = np.tile(baseline, (len(self.levels), 1))
        rows[:, self.places] = np.eye(len(self.levels))[:, 1:]
        return rows


class LinearPredictor(Observable, family=True):
    """A weighted sum of terms. Weights ``w`` have shape (..., T), or (..., K, T) for K classes."""

    intercept: bool
    predicted_quantity: ClassVar[str] = "linear predictor"
    """The name of the weighted sum of terms."""
    mean_quantity: ClassVar[str] = "mean outcome"
    """The name of the mean of one trial, or of an exposure of 1."""
    ratio_of: ClassVar[str] = ""
    """The quantity that exp of a difference of the weighted sum multiplies: odds or rate; empty without such a link."""
    has_identity_link: ClassVar[bool] = False
    """Whether the weighted sum is the mean outcome itself."""

    def views(self) -> frozenset[View]:
        """Show slopes where each term has one weight."""
        return super().views() | ({View.SLOPES} if self.dims.get("w") == ("term",) else set())

    @abstractmethod
    def design(self, data: Arrays) -> np.ndarray:
        """Return the terms in the user's units, shape (n, T)."""

    @abstractmethod
    def predictor(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the linear predictor of each row; weights of shape (..., T) give (..., rows)."""

    @abstractmethod
    def mean(self, params: Params, data: Arrays) -> np.ndarray:
        """Return each row's mean for one trial or an exposure of 1; weights (..., T) give (..., rows)."""

    def mean_in_groups(self, params: Params, data: Arrays) -> np.ndarray | None:
        """Return the mean of each row in its group, as `mean`; None where groups have no intercepts of their own."""
        return None

    @abstractmethod
    def separate_features(self, data: Arrays) -> dict[str, Feature]:
        """Return the features that the model uses and that can vary alone."""

    def leverage(self, data: Arrays) -> np.ndarray:
        """Return the diagonal of the hat matrix of the posterior mean, shape (rows,); NaN where undefined."""
        return np.full(self.inputs.size(data), np.nan)

    def least_squares(self, stats: Statistics) -> tuple[np.ndarray, float]:
        """Return the least-squares estimate in the user's units and its sum of squared errors; raise if not unique."""
        raise NumericalError("it is not a linear model of a Gaussian outcome", "not_linear")


def has_slopes(model: Model) -> TypeGuard[LinearPredictor]:
    """Say whether a model is a regression of one outcome with one weight for each term."""
    return View.SLOPES in model.views()
