"""Steps of structural series: a level with slope, seasons and features, some of which move in time, plus noise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import RegressedSeries
from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.gaussian import Dense
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.distributions.scale import POSITIVE, Scale
from bayeszoo.errors import InputError
from bayeszoo.families.state_space.components import Components
from bayeszoo.families.state_space.model import spread
from bayeszoo.families.state_space.parts import SeriesOfParts
from bayeszoo.families.state_space.structure import MOST_VARIANCES, PARTS, SDS, Structure, constant, words
from bayeszoo.foundation.named import Arrays, Fields, Params, Statistics
from bayeszoo.model.base import Axes
from bayeszoo.model.fields import plain, positive, real, whole
from bayeszoo.model.types import DeclaredModel

pm = lazy_loader.load("pymc")
ours = lazy_loader.load("bayeszoo.families.state_space.declaration", suppress_warning=True)

FEATURE = "feature"
GUESSES = (1.0, 0.3, 0.1, 0.02)
"""Standard deviations of the grid of guesses, in units of the spread of the steps of rows."""
FIRST = 24
"""Initial number of intervals per standard deviation in a quadrature over three of them."""
MOST_ROWS_OF_THREE = 300
"""Most rows for quadrature over three standard deviations: a million points or more, up to a minute or two."""


@dataclass(frozen=True)
class StructuralModel(SeriesOfParts, family=True):
    """A level, with or without slope and seasons, and up to three standard deviations.

    Parameters
    ----------
    components : str
        The components of the mean of a row: the level, with or without slope and season.
    variances : str
        One to three of ``noise``, of rows about their mean, and the components, which then take random steps. Other
        components are constant: the slope is one number, and the season of a row equals that of the row a period
        before.
    period : int
        Rows per cycle of the seasons, such as 4 for quarterly and 12 for monthly rows, >= 2.
    tau : float, or one for each feature of the data
        Prior standard deviation of the weight of a feature in units of ``scale``, > 0.
    center, scale : float, or one for each feature of the data
        The zero point of each feature, and its unit in the prior, > 0: the level is that of rows at ``center``.
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
            line = f"variances = {self.variances!r} names {len(varying)}, not one to {MOST_VARIANCES}"
            raise InputError(line, "out_of_range", hint="as 'noise + level'")
        if len(varying) == MOST_VARIANCES:
            object.__setattr__(self, "most_integrated", MOST_ROWS_OF_THREE)
        object.__setattr__(self, "outer", {name: POSITIVE for name, part in SDS.items() if part in varying})
        super().__post_init__()
        if "season" in parts and self.period < 2:
            raise InputError(f"period must be at least 2, got {self.period}", "out_of_range")

    @abstractmethod
    def structure(self, data: Arrays) -> Structure:
        """Return the parts of the mean, and the priors of their first states."""

    @property
    def lags_checked(self) -> int:
        """The number of lags at which autocorrelation of residuals is checked: at least two periods."""
        seasons = 2 * self.period if "season" in words(self.components, PARTS, "components") else 0
        return max(super().lags_checked, seasons)

    def levels(self, params: Params, data: Arrays) -> Components:
        """Return the rows and their components at standard deviations."""
        of_outer = {name: params[name] for name in self.outer}
        return Components.of(of_outer, self.centred(data), float(self.first_mean), self.structure(data))

    def centred(self, data: Arrays) -> dict[str, np.ndarray]:
        """Return the rows with centred features."""
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
        """Initial intervals per sd of a quadrature: 20 for three sds, as the default 128 takes minutes; else 0."""
        return FIRST if len(self.outer) == MOST_VARIANCES else 0

    @classmethod
    def measured(cls, data: Arrays) -> Fields:
        """Return the fields that centre features at their means and scale them by their standard deviations.

        A column of 0 and 1 keeps its zero, with the unit 1/2, the standard deviation of an even split: the level is
        that without the intervention, and the prior of its effect does not depend on its duration.
        """
        if not len(data[FEATURE]):
            return {}
        is_mark = np.isin(data["X"], (0, 1)).all(axis=0)
        center = np.where(is_mark, 0.0, data["X"].mean(axis=0))
        sd = np.std(data["X"], axis=0)
        return {"center": plain(center), "scale": plain(np.where(is_mark, 0.5, np.where(sd > 0, sd, 1.0)))}

    # Refused data, and guesses

    def require_spread(self, data: Arrays) -> None:
        """Refuse fewer rows than seasons, and rows that constant parts fit exactly: the density is then unbounded."""
        parts = words(self.components, PARTS, "components")
        longest = int(np.max(np.bincount(data["sequence"])))
        if "season" in parts and longest < self.period:
            problem = f"{longest} rows are fewer than the {self.period} seasons: none is seen twice, and most never"
            hint = "give more rows, another period (--set period=4), or leave out the season (--set components=level)"
            raise InputError(f"{self.name}: {problem}", "too_few_rows", hint=hint)
        self.require_residuals(self.centred(data), partial(constant, parts, self.period))

    def guesses(self, data: Arrays) -> dict[str, np.ndarray]:
        """Return shares of the spread of the steps of rows, the same for all standard deviations."""
        return dict.fromkeys(self.outer, np.array(GUESSES) * spread(data))

    # Steps

    def posterior_given(self, outer: Params, data: Arrays) -> Posterior:
        """Return the joint Gaussian of the weights of features.

        Components of rows are no parameters, as constant ones have no density; `decode` shows them.
        """
        if not len(data[FEATURE]):
            return super().posterior_given(outer, data)
        return Posterior.gaussian("w", Dense(*self.levels(outer, data).weights()))

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the rows as a Gaussian vector, whose covariance matrix is a sum over the moving parts."""
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

    def sequences_share_parameters(self, data: Arrays) -> bool:
        """Say whether there are features, whose weights are the same in all sequences."""
        return len(data[FEATURE]) > 0

    def parts_ahead(self, params: Params, data: Arrays, steps: int, new: Arrays | None = None) -> RowLaw:
        """Return the distribution of each component after each sequence; refuse future rows without features."""
        rows = self.inputs.unseen(data, steps) if new is None else new
        law: RowLaw = self.levels(params, data).ahead(steps, self.centred({**rows, FEATURE: data[FEATURE]})["X"])
        return law

    def levels_ahead(self, params: Params, data: Arrays, steps: int) -> RowLaw:
        """Return the distribution of the levels after each sequence, which do not depend on future features."""
        zeros = {"X": np.zeros((steps, len(data[FEATURE]))), FEATURE: data[FEATURE]}
        return self.part(self.parts_ahead(params, data, steps, zeros), "level", data)

    # Simulation

    def simulated_features(self, rng: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        """Draw features, which have no model: normal, in their units; two unless the fields tell the number."""
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
            mean = level + (past[-1] if "season" in structure.parts else 0.0)
            rows[t] = rng.normal(rows[t] + mean, sd["noise"])
            level = level + (slope if "slope" in structure.parts else 0.0) + rng.normal(0.0, sd["level"])
            slope += rng.normal(0.0, sd["slope"])
            past = [*past[1:], rng.normal(-sum(past[1:]), sd["season"])]
        return rows

    def remarks(self, stats: Statistics, data: Arrays) -> tuple[str, ...]:
        """Name the features at which the level applies."""
        center = self.entries("center", len(data[FEATURE]))
        centres = [f"{name} = {value:.4g}" for name, value in zip(data[FEATURE], center, strict=True) if value]
        line = f"the level is that of rows at {', '.join(centres)}; set center=0 for features at 0"
        return (*super().remarks(stats, data), *[line] * bool(centres))
