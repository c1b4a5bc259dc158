"""Steps of models with a level that moves in time, and Gaussian rows about it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from bayeszoo.data.inputs import RealSeries, starts
from bayeszoo.distributions import frozen
from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.scale import POSITIVE, Scale
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import NumericalError
from bayeszoo.families.state_space.em import Squares, best, or_still
from bayeszoo.families.state_space.levels import Levels
from bayeszoo.foundation.named import Arrays, Coords, Params, Statistics
from bayeszoo.model.base import Axes
from bayeszoo.model.capabilities import EM, Conditional
from bayeszoo.model.capabilities.sequential import LevelsInTime
from bayeszoo.model.capabilities.steps import Coordinates, Expectation

TIME = "time"
LEAST_SHARE = 0.05
"""Smallest guess of either variance, as a share of the variance of a step."""
LEAST = 1e-150
"""Replaces a standard deviation of 0 in the coordinates of EM."""
TINY, LEAST_LOG = 1e-100, -1000.0
"""A tiny standard deviation, and a log density: a prior with a higher log density there does not exclude sd 0."""


class MovingSeries(LevelsInTime, Conditional, EM, family=True):
    """A series whose hidden levels and rows are Gaussian given a few standard deviations, of steps and of rows."""

    inputs = RealSeries("y")
    usual_method = "exact"  # seconds, where NUTS takes a minute or two

    @abstractmethod
    def levels(self, params: Params, data: Arrays) -> Any:
        """Return the rows at standard deviations, as `Levels` or `Components`."""

    @abstractmethod
    def require_spread(self, data: Arrays) -> None:
        """Refuse rows without variation if the priors allow sds of 0: the density is then unbounded."""

    @property
    def may_be_still(self) -> tuple[str, ...]:
        """The standard deviations that may be 0 at a mode."""
        return ("q",)

    def coords(self, data: Arrays) -> Coords:
        """Return the numbers of the rows."""
        return {**super().coords(data), TIME: np.arange(1, len(data["y"]) + 1)}

    def sizes(self, data: Arrays) -> dict[str, int]:
        """Return the number of rows."""
        return {**super().sizes(data), TIME: len(data["y"])}

    def log_marginal(self, outer: Params, data: Arrays) -> Any:
        """Return the log density of the rows given the standard deviations, hidden levels integrated out."""
        return self.levels(outer, data).log_marginal()

    def log_rows(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the log density of each row given the rows before, (..., T)."""
        return np.asarray(self.levels(params, data).log_rows())

    def rows_one_ahead(self, params: Params, data: Arrays, places: np.ndarray) -> RowLaw:
        """Return the normal distribution of rows at ``places``, each given the rows before."""
        law: RowLaw = self.levels(params, data).one_ahead(places)
        return law

    def numbers_at_start(self, data: Arrays) -> int:
        """Return the size of the first state: 1, the level."""
        return 1

    def rows_about(self, params: Params, means: RowLaw) -> RowLaw:
        """Return the normal distribution of rows given that of their means, with r^2 added to the variances."""
        noise = np.asarray(params.get("r", 0.0))[..., None]
        law: RowLaw = frozen.norm(means.mean(), np.hypot(means.std(), noise))
        return law

    def held_out(self, params: Params, seen: Arrays, places: np.ndarray) -> RowLaw:
        """Return the distribution of rows at ``places``, each given all others (de Jong 1988)."""
        law: RowLaw = self.levels(params, seen).given_others(places)
        return law

    # EM for the standard deviations, with hidden levels

    def start(self, data: Arrays, rng: np.random.Generator) -> dict[str, Any]:
        """Return parameters to climb from: the guess, with random factors."""
        scales, guess = {name: prior.scale for name, prior in self.outer_priors.items()}, self.outer_guess(data)
        return {name: np.float64(scales[name].inside(v * np.exp(rng.normal()))) for name, (v, _) in guess.items()}

    def e_step(self, params: Params, data: Arrays) -> Expectation:
        """Return the expected squares of steps and of deviations of rows, and the log likelihood."""
        moving = self._single(params, data)
        counts, totals = moving.squares()
        return Expectation(Squares(counts, totals, moving), float(moving.log_marginal()))

    def _single(self, params: Params, data: Arrays) -> Any:
        """Return the rows at one point, as one of many in turn."""
        return self.levels(params, data)

    def m_step(self, stats: Squares, flat: bool = False) -> dict[str, float]:
        """Return the most probable standard deviations given the squares, or with ``flat`` their maximum likelihood."""
        priors: Any = dict.fromkeys(self.outer) if flat else self.outer_priors
        sds = {name: best(stats, name, prior) for name, prior in priors.items()}
        return or_still(stats, sds, (lambda sds: 0.0) if flat else self.log_outer_prior, self.may_be_still)

    def log_prior(self, params: Params, data: Arrays) -> float:
        """Return the log density of the standard deviations."""
        return self.log_outer_prior({name: params[name] for name in self.outer})

    def free_parameters(self, stats: Statistics) -> int:
        """Return the number of standard deviations."""
        return len(self.outer)

    def coordinates(self, data: Arrays) -> Coordinates:
        """Return the logs of the standard deviations, in units of their guesses."""
        unit = np.array([value for value, _ in self.outer_guess(data).values()])

        def to_vector(params: Params) -> np.ndarray:
            return np.log(np.maximum([params[name] for name in self.outer], LEAST) / unit)

        def from_vector(x: np.ndarray) -> dict[str, np.ndarray]:
            return dict(zip(self.outer, unit * np.exp(x), strict=True))

        return Coordinates(to_vector, from_vector)


class MovingLevel(MovingSeries, family=True):
    """A series whose levels and rows are Gaussian given the sds q of the level's steps and r of rows about it."""

    dims: ClassVar[Axes] = {"level": (TIME,)}
    outer: ClassVar[Mapping[str, Scale]] = {"q": POSITIVE, "r": POSITIVE}
    nonnegative = ("q", "r")

    @abstractmethod
    def levels(self, params: Params, data: Arrays) -> Levels:
        """Return the rows at parameters q and r."""

    def outer_guess(self, data: Arrays) -> dict[str, tuple[float, float]]:
        """Guess both variances from the moments of steps of the rows; if there are none, from the spread of the rows.

        A step has the variance q^2 + 2 r^2, and two steps in a row have the covariance -r^2.
        """
        self.require_spread(data)
        steps = steps_of(data)
        if not np.isfinite(steps).any() or not np.nanmax(np.abs(steps)) > 0:
            return {name: (float(prior.scale.inside(spread(data))), 1.0) for name, prior in self.outer_priors.items()}
        square, pairs = float(np.nanmean(np.square(steps))), steps[1:] * steps[:-1]
        least = LEAST_SHARE * square
        noise = np.clip(-np.nanmean(pairs) if np.isfinite(pairs).any() else square / 3, least, (square - least) / 2)
        return {"q": (float(np.sqrt(square - 2 * noise)), 1.0), "r": (float(np.sqrt(noise)), 1.0)}

    def require_spread(self, data: Arrays) -> None:
        """Refuse rows that are all equal if the priors allow sds of 0: the density is then unbounded."""
        seen, sequence = ~np.isnan(data["y"]), data["sequence"]
        y, begins = data["y"][seen], starts(sequence[seen])
        at_start = np.repeat(y[begins], np.diff(np.append(begins, len(y))))
        tiny = {name: np.float64(TINY) for name in self.outer}
        if len(y) - len(begins) >= 2 and np.all(y == at_start) and self.log_outer_prior(tiny) > LEAST_LOG:
            why = f"all {len(y)} numbers are equal, so that the density has no bound as q and r go to 0"
            raise NumericalError(f"{self.name}: {why}; other priors, as r=InvGamma(2, 1), keep r from 0", "no_spread")

    def posterior_given(self, outer: Params, data: Arrays) -> Posterior:
        """Return the levels given all rows: Gaussian, each depending on the next."""
        return Posterior.gaussian("level", self.levels(outer, data).smoothed())

    def smoothed(self, params: Params, data: Arrays) -> RowLaw:
        """Return the distribution of each level given all rows."""
        chain = self.levels(params, data).smoothed()
        law: RowLaw = frozen.norm(chain.mean, chain.sd)
        return law

    def filtered(self, params: Params, data: Arrays) -> RowLaw:
        """Return the distribution of each level given the rows so far."""
        law: RowLaw = self.levels(params, data).filtered()
        return law

    def levels_ahead(self, params: Params, data: Arrays, steps: int) -> RowLaw:
        """Return the distribution of the levels after each sequence."""
        law: RowLaw = self.levels(params, data).ahead(steps)
        return law

    def sampled_path(self, params: Params, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw the levels given all rows at one point, from the last row backwards."""
        return self.levels(params, data).smoothed().rvs((), rng)

    def _single(self, params: Params, data: Arrays) -> Levels:
        """Return the rows at one point; for many points in turn compiled loops are faster."""
        return replace(self.levels(params, data), one_by_one=True)


def steps_of(data: Arrays) -> np.ndarray:
    """Return the steps from each row to the next one, NaN if either is missing or a sequence ends."""
    return np.where(np.diff(data["sequence"]) == 0, np.diff(data["y"]), np.nan)


def spread(data: Arrays) -> float:
    """Return the root mean square of the steps; if there are none, the standard deviation of rows, or 1."""
    steps = steps_of(data)
    square = np.nanmean(np.square(steps)) if np.isfinite(steps).any() else 0.0
    return float(np.sqrt(square)) if square > 0 else float(Moments.of(data["y"][~np.isnan(data["y"])]).sd)
