"""Steps of models of a level with a slope and seasons, of which some move in time, seen with noise."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import starts
from bayeszoo.distributions.averaged import RowLaw
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.scale import POSITIVE, Scale
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.state_space.components import Components
from bayeszoo.families.state_space.model import LEAST_LOG, TINY, MovingSeries, spread
from bayeszoo.families.state_space.structure import MOST_VARIANCES, PARTS, SDS, Structure, constant, words
from bayeszoo.model.base import Values
from bayeszoo.model.fields import whole

pm = lazy_loader.load("pymc")
ours = lazy_loader.load("bayeszoo.families.state_space.declaration", suppress_warning=True)

GUESSES = (1.0, 0.3, 0.1, 0.02)
"""Times the spread of the steps of rows, the standard deviations that are looked at first."""
FIRST = 20
"""Intervals of each of three standard deviations that a quadrature begins with."""
MOST_ROWS_OF_THREE = 150
"""Rows up to which three standard deviations are integrated over: half a million points or more, a minute or two."""
EXACT = 1e-9
"""Share of the spread of rows below which what constant parts leave of them is rounding."""


@dataclass(frozen=True)
class StructuralModel(MovingSeries, family=True):
    """A level, perhaps with a slope and with seasons, and up to three standard deviations.

    Parameters
    ----------
    components : str
        What the mean of a row is the sum of: the level, with or without slope and season.
    variances : str
        What varies, of ``noise``, rows about their mean, and of the components, which then take random steps; one to
        three. The others are constant: a slope that is not named is one number, and the season of a row that of the row
        a period before.
    period : int
        Rows after which a season comes again, as 4 of quarterly and 12 of monthly rows, >= 2.
    """

    components: str = field(default="level + slope + season", kw_only=True)
    variances: str = field(default="noise + level", kw_only=True)
    period: int = whole(12, "period", kw_only=True)

    outer: ClassVar[Mapping[str, Scale]] = {"q": POSITIVE, "r": POSITIVE}
    nonnegative = tuple(SDS)
    most_integrated: ClassVar[float] = 1000

    def __post_init__(self) -> None:
        parts = words(self.components, PARTS, "components")
        if "level" not in parts:
            raise InputError(f"components = {self.components!r} lacks the level", "missing_name")
        varying = words(self.variances, ("noise", *parts), "variances")
        if not 1 <= len(varying) <= MOST_VARIANCES:
            many = f"variances = {self.variances!r} are {len(varying)}, and there are one to {MOST_VARIANCES}"
            raise InputError(many, "out_of_range", hint="as 'noise + level'")
        if len(varying) == MOST_VARIANCES:
            object.__setattr__(self, "most_integrated", MOST_ROWS_OF_THREE)
        object.__setattr__(self, "outer", {name: POSITIVE for name, part in SDS.items() if part in varying})
        super().__post_init__()
        if "season" in parts and self.period < 2:
            raise InputError(f"period must be at least 2, got {self.period}", "out_of_range")

    @abstractmethod
    def structure(self, data: Values) -> Structure:
        """Return the parts of the mean, and the priors of the first of each."""

    @property
    def may_be_still(self) -> tuple[str, ...]:
        """The standard deviations that may be 0 at a mode: any."""
        return tuple(self.outer)

    def levels(self, params: Values, data: Values) -> Components:
        """Return what the rows say of the components at standard deviations."""
        of_outer = {name: params[name] for name in self.outer}
        return Components.of(of_outer, data, float(self.first_mean), self.structure(data))

    @property
    @abstractmethod
    def first_mean(self) -> float:
        """The prior mean of the first level of each sequence."""

    @property
    def first_intervals(self) -> int:
        """Twenty of three standard deviations, which are forty and eighty then; 128 of each take minutes."""
        return FIRST if len(self.outer) == MOST_VARIANCES else 0

    # What is refused, and guesses

    def require_spread(self, data: Values) -> None:
        """Refuse fewer rows than seasons, and rows that constant parts fit exactly: variances of 0 have no bound."""
        parts = words(self.components, PARTS, "components")
        longest = int(np.max(np.bincount(data["sequence"])))
        if "season" in parts and longest < self.period:
            problem = f"{longest} rows are fewer than the {self.period} seasons: none is seen twice, and most never"
            hint = "give more rows, another period (--set period=4), or leave out the season (--set components=level)"
            raise InputError(f"{self.name}: {problem}", "too_few_rows", hint=hint)
        rest, excess = left_over(data, parts, self.period)
        tiny = {name: np.float64(TINY) for name in self.outer}
        if excess >= len(self.outer) and rest <= EXACT and self.log_outer_prior(tiny) > LEAST_LOG:
            which = "are all equal" if np.ptp(data["y"][~np.isnan(data["y"])]) == 0 else "repeat exactly"
            why = f"the numbers {which}: without any variance the density has no bound"
            raise NumericalError(f"{self.name}: {why}; other priors, as r=InvGamma(2, 1), keep r from 0", "no_spread")

    def outer_guess(self, data: Values) -> dict[str, tuple[float, float]]:
        """Guess by the highest of some points."""
        self.require_spread(data)
        grid = np.array(list(itertools.product(GUESSES, repeat=len(self.outer)))).T * spread(data)
        scales = [prior.scale for prior in self.outer_priors.values()]
        inside = [np.array([scale.inside(x) for x in row]) for scale, row in zip(scales, grid, strict=True)]
        at = dict(zip(self.outer, inside, strict=True))
        best = int(np.argmax(self.log_marginal(at, data) + self.log_outer_prior(at)))
        return {name: (float(values[best]), 1.0) for name, values in at.items()}

    # Steps

    def marginal_slopes(self, outer: Values, data: Values) -> dict[str, float]:
        """Return the derivatives of the log density of the rows at one point."""
        slopes = self.levels(outer, data).slopes()
        return {name: slopes[name] for name in self.outer}

    def posterior_given(self, outer: Values, data: Values) -> Posterior:
        """Return nothing: parts of rows are no parameters, as constant ones have no density; `decode` shows them."""
        return Posterior({}, lambda size, rng: {}, lambda params: 0.0)

    def declare(self, data: Values) -> Any:
        """Declare the rows as one Gaussian vector, whose covariance matrix is a sum over what varies."""
        seen = ~np.isnan(data["y"])
        with pm.Model() as model:
            outer = self.declared_outer()
            cov = ours.covariance(outer, self.structure(data).terms(data, seen))
            pm.MvNormal("y", np.full(seen.sum(), self.first_mean), cov, observed=data["y"][seen])
        return model

    def marginalized(self, data: Values) -> Any:
        """Declare the density of the rows, by the Kalman filter."""
        self.require_spread(data)
        with pm.Model() as model:
            outer = self.declared_outer()
            pm.Potential("y", ours.structural(outer, data, self.first_mean, self.structure(data)))
        return model

    # Parts over time

    @property
    def parts(self) -> tuple[str, ...]:
        """The components, and where there are several the signal, the mean of the row."""
        return Structure(words(self.components, PARTS, "components"), self.period, (1.0, 1.0, 1.0)).shown

    def smoothed_parts(self, params: Values, data: Values) -> RowLaw:
        """Return the distribution of each component given all rows."""
        law: RowLaw = self.levels(params, data).smoothed()
        return law

    def smoothed(self, params: Values, data: Values) -> RowLaw:
        """Return the distribution of each level given all rows."""
        return self.part(self.smoothed_parts(params, data), "level")

    def filtered(self, params: Values, data: Values) -> RowLaw:
        """Return the distribution of each level given the rows so far."""
        return self.part(self.levels(params, data).filtered(), "level")

    def parts_ahead(self, params: Values, data: Values, steps: int) -> RowLaw:
        """Return the distribution of each component after each sequence."""
        law: RowLaw = self.levels(params, data).ahead(steps)
        return law

    def levels_ahead(self, params: Values, data: Values, steps: int) -> RowLaw:
        """Return the distribution of the levels after each sequence."""
        return self.part(self.parts_ahead(params, data, steps), "level")

    def sampled_path(self, params: Values, data: Values, rng: np.random.Generator) -> np.ndarray:
        """Draw the levels given all rows at one point, from the last row backwards."""
        return self.levels(params, data).path(rng)

    # Simulation

    def simulated(self, rng: np.random.Generator, outer: Values, structure: Structure, size: int) -> np.ndarray:
        """Draw the rows of one sequence, step by step."""
        sd = {part: outer.get(name, 0.0) for name, part in SDS.items()}
        level, slope = rng.normal(self.first_mean, structure.sds[0]), rng.normal(0.0, structure.sds[1])
        effects = rng.standard_normal(self.period)
        scale = structure.sds[2] * np.sqrt(self.period / max(self.period - 1, 1))
        past = list(scale * (effects - effects.mean()))  # of the last period, oldest first
        rows = np.empty(size)
        for t in range(size):
            own = level + (past[-1] if "season" in structure.parts else 0.0)
            rows[t] = rng.normal(own, sd["noise"])
            level = level + (slope if "slope" in structure.parts else 0.0) + rng.normal(0.0, sd["level"])
            slope += rng.normal(0.0, sd["slope"])
            past = [*past[1:], rng.normal(-sum(past[1:]), sd["season"])]
        return rows


def left_over(data: Values, parts: tuple[str, ...], period: int) -> tuple[float, int]:
    """Return the largest residual about constant parts as a share of the spread, and rows beyond the numbers fitted."""
    rest, largest, excess = 0.0, 0.0, 0
    first = starts(data["sequence"])
    for low, high in zip(first, np.append(first[1:], len(data["y"])), strict=True):
        seen = np.flatnonzero(~np.isnan(data["y"][low:high]))
        if len(seen):
            y = data["y"][low:high][seen]
            basis, about = constant(parts, period, seen), y - np.mean(y)
            fitted, _, rank, _ = np.linalg.lstsq(basis, about)
            largest = max(largest, float(np.max(np.abs(about))))
            rest, excess = max(rest, float(np.max(np.abs(about - basis @ fitted)))), excess + len(seen) - int(rank)
    return (rest / largest if largest else 0.0), excess
