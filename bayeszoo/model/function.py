"""Models of a function of features, whose values are no parameters: the parameters and the rows tell them."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from bayeszoo.distributions.averaged import RowLaw
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.base import Model
from bayeszoo.model.views import View


class OfFunction(Model, family=True):
    """Rows are about a function of their features, which has a distribution given the parameters and the rows seen.

    Leading axes of parameters are draws, or points of a quadrature. Rows depend on each other by the function.
    """

    beyond: ClassVar[str] = "the function returns to the prior"
    """What the function does beyond the rows, as a page says it."""

    function_is_estimated: ClassVar[bool] = False
    """Whether a point estimate is of the function itself, which then has no interval."""

    def views(self) -> frozenset[View]:
        """Show the function."""
        return super().views() | {View.FUNCTION}

    @abstractmethod
    def function(self, params: Params, seen: Arrays, new: Arrays) -> RowLaw:
        """Return the distribution of the function's value at each new row, (..., rows)."""

    def mean_outcome(self, function: np.ndarray) -> np.ndarray:
        """Return the mean of a row at values of the function: by default the values."""
        return function

    @abstractmethod
    def drawn_function(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw the function at all new rows together, one draw for each draw of the parameters, (..., rows)."""

    @abstractmethod
    def drawn_rows(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw new rows together, about one function for each draw of the parameters, (..., rows)."""

    @abstractmethod
    def share_of_prior(self, draws: Params, seen: Arrays, new: Arrays) -> np.ndarray:
        """Return the variance of the function at new rows over that of the prior, (rows,), by draws of the parameters.

        1: nothing is known.
        """


class HasSlopes(OfFunction, family=True):
    """A function of features, whose derivative along each is known with it: the steps take its name, ``along``.

    Derivatives are by the units of the feature.
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
        """Return the variance of the function, or its derivative, at new rows over that of the prior, (rows,)."""


class HasLengths(OfFunction, family=True):
    """A function about which rows have Gaussian noise, and each feature may have a length of its own.

    The field ``scale`` has the units of the features: lengths of features are units of them.
    """

    scale: float

    @abstractmethod
    def outer_guess(self, data: Arrays) -> dict[str, tuple[float, float]]:
        """Return about where ``amplitude``, the one ``length`` and ``sigma`` are, and how wide."""

    @abstractmethod
    def log_density_of_lengths(
        self, amplitude: float, lengths: np.ndarray, sigma: float, data: Arrays
    ) -> tuple[float, np.ndarray]:
        """Return the log density of the rows, and its derivatives in the logs of amplitude, lengths and sigma.

        ``lengths`` (F,) are in units of ``scale``.
        """
