"""Steps of series whose hidden state has several parts, moved and seen with noise of a few standard deviations."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable

import numpy as np

from bayeszoo.data.inputs import starts
from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.errors import NumericalError
from bayeszoo.families.state_space.components import Components
from bayeszoo.families.state_space.matrices import Matrices
from bayeszoo.families.state_space.model import LEAST_LOG, TINY, MovingSeries
from bayeszoo.families.state_space.structure import Structure
from bayeszoo.foundation.named import Arrays, Params

EXACT = 1e-9
"""Share of the spread of rows below which residuals of constant parts are rounding."""


class SeriesOfParts(MovingSeries, family=True):
    """A series whose state is a vector, and its parts are sums over the entries of the state."""

    @abstractmethod
    def structure(self, data: Arrays) -> Structure | Matrices:
        """Return the parts of the state, and the prior of the first one."""

    @abstractmethod
    def levels(self, params: Params, data: Arrays) -> Components:
        """Return the rows and their parts at standard deviations."""

    @abstractmethod
    def guesses(self, data: Arrays) -> dict[str, np.ndarray]:
        """Return the standard deviations that are tried as guesses, by the name of the outer parameter."""

    @property
    def may_be_still(self) -> tuple[str, ...]:
        """The standard deviations that may be 0 at a mode: any."""
        return tuple(self.outer)

    def numbers_at_start(self, data: Arrays) -> int:
        """Return the size of the first state plus the number of weights."""
        return int(self.structure(data).sizes.sum())

    def outer_guess(self, data: Arrays) -> dict[str, tuple[float, float]]:
        """Guess the standard deviations by the highest point of a grid."""
        self.require_spread(data)
        grid = itertools.product(*self.guesses(data).values())
        pairs = zip(self.outer_priors.items(), np.array(list(grid)).T, strict=True)
        points = {name: np.array([prior.scale.inside(x) for x in row]) for (name, prior), row in pairs}
        best = int(np.argmax(self.log_marginal(points, data) + self.log_outer_prior(points)))
        return {name: (float(values[best]), 1.0) for name, values in points.items()}

    def require_residuals(self, data: Arrays, basis: Callable[[np.ndarray], np.ndarray]) -> None:
        """Refuse rows that constant parts fit exactly, if the priors allow sds of 0: the density is unbounded."""
        residual, excess = left_over(data, basis)
        tiny = {name: np.float64(TINY) for name in self.outer}
        if excess >= len(self.outer) and residual <= EXACT and self.log_outer_prior(tiny) > LEAST_LOG:
            pattern = "are all equal" if np.ptp(data["y"][~np.isnan(data["y"])]) == 0 else "repeat exactly"
            why = f"the numbers {pattern}: without any variance the density has no bound"
            raise NumericalError(f"{self.name}: {why}; other priors, as r=InvGamma(2, 1), keep r from 0", "no_spread")

    def marginal_slopes(self, outer: Params, data: Arrays) -> dict[str, float]:
        """Return the derivatives of the log density of the rows at one point."""
        slopes = self.levels(outer, data).slopes()
        return {name: slopes[name] for name in self.outer}

    def parts(self, data: Arrays) -> tuple[str, ...]:
        """Return the names of the parts of the state, and if there are several, of the row mean."""
        return self.structure(data).shown

    def smoothed_parts(self, params: Params, data: Arrays) -> RowLaw:
        """Return the distribution of each part given all rows."""
        law: RowLaw = self.levels(params, data).smoothed()
        return law

    def smoothed(self, params: Params, data: Arrays) -> RowLaw:
        """Return the distribution of each level given all rows."""
        return self.part(self.smoothed_parts(params, data), "level", data)

    def filtered(self, params: Params, data: Arrays) -> RowLaw:
        """Return the distribution of each level given the rows so far."""
        return self.part(self.levels(params, data).filtered(), "level", data)

    def sampled_path(self, params: Params, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw the levels given all rows at one point, from the last row backwards."""
        return self.levels(params, data).path(rng)


def left_over(data: Arrays, basis: Callable[[np.ndarray], np.ndarray]) -> tuple[float, int]:
    """Return the largest residual about constant parts as a share of the spread, and the residual degrees of freedom.

    Each sequence has its constant parts, whose ``basis`` is a function of the places of rows in their sequence; all
    sequences share the weights of features.
    """
    residuals, largest, excess = [np.empty((0, 1 + data["X"].shape[1]))], 0.0, 0
    begins = starts(data["sequence"])
    for low, high in zip(begins, np.append(begins[1:], len(data["y"])), strict=True):
        seen = low + np.flatnonzero(~np.isnan(data["y"][low:high]))
        if len(seen):
            y, columns_of = data["y"][seen], basis(seen - low)
            has_constants = np.allclose(columns_of @ np.linalg.lstsq(columns_of, np.ones(len(y)))[0], 1.0)
            columns = np.column_stack([y - np.mean(y) * has_constants, data["X"][seen]])
            fitted, _, rank, _ = np.linalg.lstsq(columns_of, columns)
            residuals.append(columns - columns_of @ fitted)
            largest, excess = max(largest, float(np.max(np.abs(columns[:, 0])))), excess + len(seen) - int(rank)
    y, X = np.split(np.concatenate(residuals), [1], axis=1)
    weights, _, rank, _ = np.linalg.lstsq(X, y)
    left = float(np.max(np.abs(y - X @ weights), initial=0.0))
    return (left / largest if largest else 0.0), excess - int(rank)
