"""Models whose rows depend on features by a weighted sum of terms, the linear predictor."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, TypeGuard

import numpy as np

from bayeszoo.errors import NumericalError
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.base import Model
from bayeszoo.model.observable import Observable
from bayeszoo.model.views import View


class Feature(NamedTuple):
    """A feature: the places of its columns in ``X``, and its levels, the reference first; none of one of numbers."""

    places: list[int]
    levels: list[str]

    def rows(self, others: np.ndarray) -> np.ndarray:
        """Return a row at each level, shape (levels, F), where the other features are as in ``others``, shape (F,)."""
        rows = np.tile(others, (len(self.levels), 1))
        rows[:, self.places] = np.eye(len(self.levels))[:, 1:]
        return rows


class LinearPredictor(Observable, family=True):
    """The linear predictor is a weighted sum of terms: weights ``w`` (..., T), or a row of them for each class."""

    intercept: bool
    predicted_quantity: ClassVar[str] = "linear predictor"
    """What the weighted sum of terms is."""
    mean_quantity: ClassVar[str] = "mean outcome"
    """What the mean of one trial, or of an exposure of 1, is called."""
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
        """Return the mean of one trial, or of an exposure of 1, of each row; weights (..., T) give (..., rows)."""

    def mean_in_groups(self, params: Params, data: Arrays) -> np.ndarray | None:
        """Return the mean of each row in its group, as `mean`; None where groups have no intercepts of their own."""
        return None

    @abstractmethod
    def separate_features(self, data: Arrays) -> dict[str, Feature]:
        """Return the features that the model uses and that can vary alone."""

    def least_squares(self, stats: Any) -> tuple[np.ndarray, float]:
        """Return the unique least-squares estimate in the user's units, and its squared error; or raise."""
        raise NumericalError("it is not a linear model of a Gaussian outcome", "not_linear")


def has_slopes(model: Model) -> TypeGuard[LinearPredictor]:
    """Say whether a model is a regression of one outcome, with a weight for each term."""
    return View.SLOPES in model.views()
