"""Models of a function of features, whose distribution follows from the parameters and the rows seen."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.base import Model
from bayeszoo.model.views import View


class OfFunction(Model, family=True):
    """Rows scatter about a function of their features, which has a law given the parameters and the rows seen.

    Leading axes of parameters are draws, or points of a quadrature. Rows depend on each other via the function.
    """

    beyond: ClassVar[str] = "the function returns to the prior"
    """The behaviour of the function outside the range of the rows, as shown to users."""

    function_is_estimated: ClassVar[bool] = False
    """Whether a point fit estimates the function itself, which then has no interval."""

    def views(self) -> frozenset[View]:
        """Show the function."""
        return super().views() | {View.FUNCTION}

    @abstractmethod
    def function(self, params: Params, seen: Arrays, new: Arrays) -> RowLaw:
        """Return the distribution of the function's value at each new row, (..., rows)."""

    def mean_outcome(self, function: np.ndarray) -> np.ndarray:
        """Return the mean outcome at values of the function; by default the values themselves."""
        return function

    @abstractmethod
    def drawn_function(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw the function at all new rows together, one function for each draw of the parameters, (..., rows)."""

    @abstractmethod
    def drawn_rows(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw new rows together, about one function for each draw of the parameters, (..., rows)."""

    @abstractmethod
    def share_of_prior(self, draws: Params, seen: Arrays, new: Arrays) -> np.ndarray:
        """Return the posterior variance of the function over its prior variance at each new row, shape (rows,).

        It is averaged over draws of the parameters. 1: the rows seen say nothing there.
        """


class HasSlopes(OfFunction, family=True):
    """A function of features with derivatives: the steps take the name of a feature as ``along``.

    Derivatives are per unit of the feature.
    """

    @abstractmethod
    def function(self, params: Params, seen: Arrays, new: Arrays, along: str | None = None) -> RowLaw:
        """Return the distribution of the function's value, or its derivative, at each new row, (..., rows)."""

    @abstractmethod
    def drawn_function(
        self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator, along: str | None = None
    ) -> np.ndarray:
        """Draw the function, or its derivative, at all new rows together, (..., rows)."""

    @abstractmethod
    def share_of_prior(self, draws: Params, seen: Arrays, new: Arrays, along: str | None = None) -> np.ndarray:
        """Return posterior over prior variance of the function, or its derivative, at each new row, (rows,)."""


class HasLengths(OfFunction, family=True):
    """A function with Gaussian noise, and one length scale for all features or one for each.

    The field ``scale`` is in units of the features, and lengths are multiples of it.
    """

    scale: float

    @abstractmethod
    def outer_guess(self, data: Arrays) -> dict[str, tuple[float, float]]:
        """Return rough posterior locations and widths of ``amplitude``, the common ``length`` and ``sigma``."""

    @abstractmethod
    def log_density_of_lengths(
        self, amplitude: float, lengths: np.ndarray, sigma: float, data: Arrays
    ) -> tuple[float, np.ndarray]:
        """Return the log density of the rows, and its derivatives in the logs of amplitude, lengths and sigma.

        ``lengths`` (F,) are in units of ``scale``.
        """
