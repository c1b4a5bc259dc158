"""Steps of models of a level with a slope and seasons, of which some move in time, seen with noise."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import RegressedSeries, starts
from bayeszoo.distributions.averaged import RowLaw
from bayeszoo.distributions.gaussian import Dense
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.scale import POSITIVE, Scale
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.state_space.components import Components
from bayeszoo.families.state_space.model import LEAST_LOG, TINY, MovingSeries, spread
from bayeszoo.families.state_space.structure import MOST_VARIANCES, PARTS, SDS, Structure, constant, words
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.model.base import Axes
from bayeszoo.model.fields import plain, positive, real, whole
from bayeszoo.model.types import DeclaredModel

pm = lazy_loader.load("pymc")
ours = lazy_loader.load("bayeszoo.families.state_space.declaration", suppress_warning=True)

FEATURE = "feature"
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
    tau : float, or one for each feature of the data
        Prior standard deviation of the weight of a feature in units of ``scale``, > 0.
    center, scale : float, or one for each feature of the data
        Where each feature is measured from, and its unit in the prior, > 0: the level is that of rows at ``center``.
    """

    components: str = field(default="level + slope + season", kw_only=True)
    variances: str = field(default="noise + level", kw_only=True)
    period: int = whole(12, "period", kw_only=True)
    tau: float = positive(1.0, "prior sd of the weights tau", axes=(FEATURE,), units=1, kw_only=True)
    center: float = real(0.0, "center", axes=(FEATURE,), kw_only=True)
    scale: float = positive(1.0, "scale", axes=(FEATURE,), kw_only=True)

    inputs = RegressedSeries("y")
    dims: ClassVar[Axes] = {"w": (FEATURE,)}
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
    def structure(self, data: Arrays) -> Structure:
        """Return the parts of the mean, and the priors of the first of each."""

    @property
    def may_be_still(self) -> tuple[str, ...]:
        """The standard deviations that may be 0 at a mode: any."""
        return tuple(self.outer)

    def numbers_at_start(self, data: Arrays) -> int:
        """Return the numbers of the first state, and of the weights."""
        return int(self.structure(data).sizes.sum())

    @property
    def lags_checked(self) -> int:
        """Over how many rows it is checked that what is left of each does not depend on those before: two periods."""
        seasons = 2 * self.period if "season" in words(self.components, PARTS, "components") else 0
        return max(super().lags_checked, seasons)

    def levels(self, params: Params, data: Arrays) -> Components:
        """Return what the rows say of the components at standard deviations."""
        of_outer = {name: params[name] for name in self.outer}
        return Components.of(of_outer, self.centred(data), float(self.first_mean), self.structure(data))

    def centred(self, data: Arrays) -> dict[str, np.ndarray]:
        """Return the rows with features measured from their centres."""
        return {**data, "X": data["X"] - self.entries("center", len(data[FEATURE]))}

    def weight_sds(self, data: Arrays) -> tuple[float, ...]:
        """Return the prior standard deviations of the weights, in the user's units."""
        size = len(data[FEATURE])
        return tuple((self.entries("tau", size) / self.entries("scale", size)).tolist())

    @property
    @abstractmethod
    def first_mean(self) -> float:
        """The prior mean of the first level of each sequence."""

    @property
    def first_intervals(self) -> int:
        """Twenty of three standard deviations, which are forty and eighty then; 128 of each take minutes."""
        return FIRST if len(self.outer) == MOST_VARIANCES else 0

    @classmethod
    def measured(cls, data: Arrays) -> dict[str, Any]:
        """Return the fields that measure features from their means in standard deviations, where there are any.

        A column of 0 and 1 is measured from 0 with the unit 1/2, the standard deviation of an even split: the level is
        that without the intervention, and the prior of its effect is the same however short it was.
        """
        if not len(data[FEATURE]):
            return {}
        is_mark = np.isin(data["X"], (0, 1)).all(axis=0)
        center = np.where(is_mark, 0.0, data["X"].mean(axis=0))
        sd = np.std(data["X"], axis=0)
        return {"center": plain(center), "scale": plain(np.where(is_mark, 0.5, np.where(sd > 0, sd, 1.0)))}

    # What is refused, and guesses

    def require_spread(self, data: Arrays) -> None:
        """Refuse fewer rows than seasons, and rows that constant parts fit exactly: variances of 0 have no bound."""
        parts = words(self.components, PARTS, "components")
        longest = int(np.max(np.bincount(data["sequence"])))
        if "season" in parts and longest < self.period:
            problem = f"{longest} rows are fewer than the {self.period} seasons: none is seen twice, and most never"
            hint = "give more rows, another period (--set period=4), or leave out the season (--set components=level)"
            raise InputError(f"{self.name}: {problem}", "too_few_rows", hint=hint)
        rest, excess = left_over(self.centred(data), parts, self.period)
        tiny = {name: np.float64(TINY) for name in self.outer}
        if excess >= len(self.outer) and rest <= EXACT and self.log_outer_prior(tiny) > LEAST_LOG:
            which = "are all equal" if np.ptp(data["y"][~np.isnan(data["y"])]) == 0 else "repeat exactly"
            why = f"the numbers {which}: without any variance the density has no bound"
            raise NumericalError(f"{self.name}: {why}; other priors, as r=InvGamma(2, 1), keep r from 0", "no_spread")

    def outer_guess(self, data: Arrays) -> dict[str, tuple[float, float]]:
        """Guess by the highest of some points."""
        self.require_spread(data)
        grid = np.array(list(itertools.product(GUESSES, repeat=len(self.outer)))).T * spread(data)
        scales = [prior.scale for prior in self.outer_priors.values()]
        inside = [np.array([scale.inside(x) for x in row]) for scale, row in zip(scales, grid, strict=True)]
        at = dict(zip(self.outer, inside, strict=True))
        best = int(np.argmax(self.log_marginal(at, data) + self.log_outer_prior(at)))
        return {name: (float(values[best]), 1.0) for name, values in at.items()}

    # Steps

    def marginal_slopes(self, outer: Params, data: Arrays) -> dict[str, float]:
        """Return the derivatives of the log density of the rows at one point."""
        slopes = self.levels(outer, data).slopes()
        return {name: slopes[name] for name in self.outer}

    def posterior_given(self, outer: Params, data: Arrays) -> Posterior:
        """Return the weights of features, jointly Gaussian.

        Parts of rows are no parameters, as constant ones have no density; `decode` shows them.
        """
        if not len(data[FEATURE]):
            return Posterior({}, lambda size, rng: {}, lambda params: 0.0)
        return Posterior.gaussian("w", Dense(*self.levels(outer, data).weights()))

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the rows as one Gaussian vector, whose covariance matrix is a sum over what varies."""
        seen, X = ~np.isnan(data["y"]), self.centred(data)["X"]
        structure, without = replace(self.structure(data), tau=()), {**data, "X": X[:, :0]}
        with pm.Model(coords={FEATURE: data[FEATURE]} if X.shape[1] else {}) as model:
            outer, mean = self.declared_outer(), np.full(seen.sum(), self.first_mean)
            if X.shape[1]:
                w = pm.Normal("w", np.float64(0.0), np.array(self.weight_sds(data)), dims=FEATURE)
                mean = mean + pm.math.dot(pm.Data("features", X[seen]), w)
            pm.MvNormal("y", mean, ours.covariance(outer, structure.terms(without, seen)), observed=data["y"][seen])
        return model

    def marginalized(self, data: Arrays) -> DeclaredModel:
        """Declare the density of the rows, by the Kalman filter."""
        self.require_spread(data)
        with pm.Model() as model:
            outer = self.declared_outer()
            pm.Potential("y", ours.structural(outer, self.centred(data), self.first_mean, self.structure(data)))
        return model

    # Parts over time

    def parts(self, data: Arrays) -> tuple[str, ...]:
        """Return the components, the sum of features, and where there are several the signal, the mean of the row."""
        return self.structure(data).shown

    def sequences_share_parameters(self, data: Arrays) -> bool:
        """Say whether there are features: their weights hold for all sequences."""
        return len(data[FEATURE]) > 0

    def smoothed_parts(self, params: Params, data: Arrays) -> RowLaw:
        """Return the distribution of each component given all rows."""
        law: RowLaw = self.levels(params, data).smoothed()
        return law

    def smoothed(self, params: Params, data: Arrays) -> RowLaw:
        """Return the distribution of each level given all rows."""
        return self.part(self.smoothed_parts(params, data), "level", data)

    def filtered(self, params: Params, data: Arrays) -> RowLaw:
        """Return the distribution of each level given the rows so far."""
        return self.part(self.levels(params, data).filtered(), "level", data)

    def parts_ahead(self, params: Params, data: Arrays, steps: int, new: Arrays | None = None) -> RowLaw:
        """Return the distribution of each component after each sequence; refuse rows of unknown features."""
        rows = self.inputs.unseen(data, steps) if new is None else new
        law: RowLaw = self.levels(params, data).ahead(steps, self.centred({**rows, FEATURE: data[FEATURE]})["X"])
        return law

    def levels_ahead(self, params: Params, data: Arrays, steps: int) -> RowLaw:
        """Return the distribution of the levels after each sequence, which do not hang on features to come."""
        none = {"X": np.zeros((steps, len(data[FEATURE]))), FEATURE: data[FEATURE]}
        return self.part(self.parts_ahead(params, data, steps, none), "level", data)

    def sampled_path(self, params: Params, data: Arrays, rng: np.random.Generator) -> np.ndarray:
        """Draw the levels given all rows at one point, from the last row backwards."""
        return self.levels(params, data).path(rng)

    # Simulation

    def simulated_features(self, rng: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        """Draw features of which nothing is modelled, two where the fields say nothing: normal, in their units."""
        named = self.labels.get(FEATURE)
        shapes = max([*np.shape(self.tau), *np.shape(self.center), *np.shape(self.scale)], default=2)
        labels = [f"x{j + 1}" for j in range(shapes)] if named is None else list(named)
        count = len(labels)
        X = self.entries("center", count) + self.entries("scale", count) * rng.standard_normal((size, count))
        return {"X": X, FEATURE: np.array(labels, dtype=str)}

    def simulated(self, rng: np.random.Generator, params: Params, data: Arrays, structure: Structure) -> np.ndarray:
        """Draw the rows of one sequence, step by step."""
        sd = {part: params.get(name, 0.0) for name, part in SDS.items()}
        level, slope = rng.normal(self.first_mean, structure.sds[0]), rng.normal(0.0, structure.sds[1])
        effects = rng.standard_normal(self.period)
        scale = structure.sds[2] * np.sqrt(self.period / max(self.period - 1, 1))
        past = list(scale * (effects - effects.mean()))  # of the last period, oldest first
        rows = self.centred(data)["X"] @ params.get("w", np.empty(0))
        for t in range(len(rows)):
            own = level + (past[-1] if "season" in structure.parts else 0.0)
            rows[t] = rng.normal(rows[t] + own, sd["noise"])
            level = level + (slope if "slope" in structure.parts else 0.0) + rng.normal(0.0, sd["level"])
            slope += rng.normal(0.0, sd["slope"])
            past = [*past[1:], rng.normal(-sum(past[1:]), sd["season"])]
        return rows

    def remarks(self, stats: Any, data: Arrays) -> tuple[str, ...]:
        """Say at which features the level is."""
        center = self.entries("center", len(data[FEATURE]))
        away = [f"{name} = {at:.4g}" for name, at in zip(data[FEATURE], center, strict=True) if at]
        line = f"the level is that of rows at {', '.join(away)}; set center=0 for features at 0"
        return (*super().remarks(stats, data), *[line] * bool(away))


def left_over(data: Arrays, parts: tuple[str, ...], period: int) -> tuple[float, int]:
    """Return the largest residual about constant parts as a share of the spread, and rows beyond the numbers fitted.

    Each sequence has constant parts of its own, and the weights of features are those of all.
    """
    residuals, largest, excess = [np.empty((0, 1 + data["X"].shape[1]))], 0.0, 0
    first = starts(data["sequence"])
    for low, high in zip(first, np.append(first[1:], len(data["y"])), strict=True):
        seen = low + np.flatnonzero(~np.isnan(data["y"][low:high]))
        if len(seen):
            y = data["y"][seen]
            basis = constant(parts, period, seen - low)
            columns = np.column_stack([y - np.mean(y), data["X"][seen]])
            fitted, _, rank, _ = np.linalg.lstsq(basis, columns)
            residuals.append(columns - basis @ fitted)
            largest, excess = max(largest, float(np.max(np.abs(columns[:, 0])))), excess + len(seen) - int(rank)
    rest, X = np.split(np.concatenate(residuals), [1], axis=1)
    weights, _, rank, _ = np.linalg.lstsq(X, rest)
    left = float(np.max(np.abs(rest - X @ weights), initial=0.0))
    return (left / largest if largest else 0.0), excess - int(rank)
