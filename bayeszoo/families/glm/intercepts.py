"""Regressions with a link and random intercepts: each group of rows has an intercept from one normal distribution.

Given the weights and the standard deviation of the intercepts, the groups are independent, and each intercept is one
number: it is integrated out by adaptive quadrature (Pinheiro and Bates 1995). Given the standard deviation alone, the
log density of the rows is concave in the weights, as an integral of log-concave densities (Prekopa 1973).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs.groups.lines import CODE
from bayeszoo.data.inputs.groups.rows import GROUP
from bayeszoo.distributions.averages.averaged import RowLaw
from bayeszoo.distributions.posterior import Posterior, sum_over
from bayeszoo.distributions.priors import HalfNormal, Normal, Prior
from bayeszoo.distributions.scale import POSITIVE, REAL
from bayeszoo.errors import InputError
from bayeszoo.families.glm.group_rows import GroupIntercepts, SortedRows
from bayeszoo.families.glm.links import Link
from bayeszoo.families.glm.model import LinkedTerms
from bayeszoo.families.glm.rows import LinkedRows
from bayeszoo.families.linear.least_squares import Solution, solve
from bayeszoo.foundation.blocks import blocks
from bayeszoo.foundation.named import Arrays, Coords, Params, Statistics
from bayeszoo.foundation.numerics.newton import Derivatives
from bayeszoo.model.capabilities.conditional import Conditional, LogConcave, PointsOfGroups
from bayeszoo.model.fields import positive
from bayeszoo.model.types import DeclaredModel

pm = lazy_loader.load("pymc")
ops = lazy_loader.load("bayeszoo.likelihoods.ops.intercepts", suppress_warning=True)
in_pymc = lazy_loader.load("bayeszoo.model.declared_priors", suppress_warning=True)

SIMULATED = 6
"""Number of groups in simulated data."""
TRIED = (0.25, 1.0, 4.0)
"""Standard deviations of intercepts at which the mode of the weights is computed, to begin chains at the best."""
MEDIAN_OF_TWO = 0.9538725524089398
"""Median distance of two intercepts in units of their sd, sqrt(2) Phi^-1(3/4); computed, it would load SciPy early."""

REACH, FINE = 14.0, 0.25
"""How far points of an intercept reach, in its sd, and how near they are at least, in units of the predictor."""
LEAST_POINTS, MOST_POINTS = 200, 4000
"""Points on either side."""
NEW_GROUPS = (
    "rows of groups that the fit has not seen have intercepts of their own, which a point estimate does not draw"
)
MEANING = "u is how far a group is from the average group, in {}; sd is the standard deviation of u over all groups"
CONFOUNDED = "{} features are constant within groups, and there are {} groups: sd depends on the prior"
ROUGH, FEW_DRAWS = 5000.0, 0.01
"""Sd above which integrals of groups of equal outcomes have errors of 1e-7 to 1e-5 nats; share of draws to ignore."""
ROUGH_SAID = (
    "sd is above {:g} in {:.0f}% of the draws ({}): there integrals over intercepts are rough; narrow its prior by t0"
)
ALONE = "each group has one trial: the data do not tell how much groups differ; use logistic_regression"


@dataclass(frozen=True, eq=False)
class MarginalRows(LinkedRows):
    """Rows whose groups have intercepts of standard deviation ``spread``, which are integrated out."""

    spread: float = 0.0
    groups: SortedRows = None  # type: ignore[assignment]

    @cached_property
    def _sorted_design(self) -> np.ndarray:
        return np.ascontiguousarray(self.design[self.groups.order])

    def derivatives(self, u: np.ndarray) -> Derivatives:
        """Return the log likelihood at u, its gradient and its curvature."""
        offset = self.groups.offset + self.offset
        value, slopes, _, curvature = self.groups.derivatives(u, self.spread, self._sorted_design, offset)
        return Derivatives(value, slopes, curvature)

    def values(self, points: np.ndarray) -> np.ndarray:
        """Return the log likelihood at points (P, T)."""
        eta = self.offset + points @ self._sorted_design.T
        return self.groups.log_density(eta, np.full(len(points), self.spread))

    def gaussian_about(self, mode: np.ndarray) -> Solution:
        """Return the Gaussian at a mode with the curvature there, of weights in the user's units."""
        root, nothing = np.linalg.cholesky(self.derivatives(mode).curvature + 1e-12 * np.eye(self.size)).T, 0 * mode
        gaussian = solve(root, nothing, nothing, np.eye(self.size))
        return replace(gaussian, mean=mode).in_units(1 / self.sd, self.origin)


@dataclass(frozen=True)
class RandomIntercepts(LinkedTerms, Conditional, LogConcave, family=True):
    """A regression with a link, and an intercept of each group: ``u_j ~ N(0, sd^2)`` is added to the linear predictor.

    Parameters
    ----------
    t0 : float
        Scale of the half-normal prior of sd, the standard deviation of the groups' intercepts, > 0.
    centred : bool
        Whether `declare` has intercepts as variables, or deviations in units of sd, whose funnel NUTS samples better.
    """

    t0: float = positive(1.0, "prior scale of sd t0", kw_only=True)
    centred: bool = True

    link: ClassVar[Link]
    _kept: ClassVar[dict[str, Any]]
    outer = {"w": REAL, "sd": POSITIVE}  # noqa: RUF012
    integrated = False  # as sd goes to 0 intercepts become spikes, for which a grid takes minutes
    profile_grid = np.r_[0.0, np.logspace(-3, 2, 26)]
    nonnegative: ClassVar[tuple[str, ...]] = ("sd",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_kept", {})
        if "w" in self.priors:
            hint = "set tau, s0 and m0: weights ~ N(0, tau^2) of standardized terms"
            raise InputError("the prior of w has an entry for each term", "unknown_name", hint=hint)

    def coords(self, data: Arrays) -> Coords:
        """Return the labels of the terms and of the groups."""
        return {**super().coords(data), GROUP: data[GROUP]}

    def outer_shapes(self, data: Arrays | None = None) -> Mapping[str, tuple[int, ...]]:
        """Return the shape of the weights, one for each term."""
        return {"w": (1 if data is None else len(self.coords(data)["term"]),)}

    # Priors

    @property
    def textbook_priors(self) -> dict[str, Prior]:
        """Half-normal for sd; standard normal for each weight, in units of its prior sd."""
        return {"w": Normal(0.0, 1.0), "sd": HalfNormal(self.t0)}

    @property
    def profiled(self) -> dict[str, Prior]:
        """The prior of sd; given sd the log joint density is concave in the weights."""
        return {"sd": self.outer_priors["sd"]}

    def log_outer_prior(self, outer: Params, data: Arrays | None = None) -> Any:
        """Return the log prior density of weights and sd; leading axes are points."""
        assert data is not None
        mean, sd = self.prior(data)
        of_weights = sum_over(scipy.stats.norm.logpdf(outer["w"], mean, sd), 1)
        return of_weights + self.profiled["sd"].logpdf(outer["sd"])

    def drawn_outer(self, rng: np.random.Generator, data: Arrays | None = None) -> dict[str, Any]:
        """Draw weights and sd from their prior."""
        assert data is not None
        return {"w": rng.normal(*self.prior(data)), "sd": self.profiled["sd"].rvs(rng)}

    def declared_outer(self, data: Arrays | None = None) -> dict[str, Any]:
        """Declare sd, and the weights in coordinates in which their posterior is about standard normal."""
        assert data is not None
        return {"w": self.declared_weights(data), "sd": in_pymc.declared(self.profiled["sd"], "sd")}

    def outer_guess(self, data: Arrays) -> dict[str, tuple[Any, Any]]:
        """Guess sd as the best of a few values, and the weights by their mode given it."""
        spread, rows = self._tried(data)
        laplace = rows.gaussian_about(rows.highest().x)
        return {"w": (laplace.mean, np.sqrt(laplace.spread(np.eye(rows.size)))), "sd": (spread, 1.0)}

    def _tried(self, data: Arrays) -> tuple[float, MarginalRows]:
        """Return the best of a few values of sd by Laplace's evidence, and the rows given it."""
        candidates = [(spread, self.concave(data, sd=spread)) for spread in TRIED]
        return max(candidates, key=lambda pair: pair[1].laplace_evidence() + float(self.profiled["sd"].logpdf(pair[0])))

    def laplace_solution(self, data: Arrays) -> Solution:
        """Return the Gaussian at the mode of the weights given the best of a few values of sd."""
        rows = self._tried(data)[1]
        return rows.gaussian_about(rows.highest().x)

    # The rows

    def sorted_rows(self, data: Arrays) -> SortedRows:
        """Return the outcomes sorted by group; the result for the latest data is cached."""
        if self._kept.get("data") is not data:
            outcome, sizes = (np.asarray(v, dtype=np.float64) for v in (self.inputs.outcome(data), self.sizes_of(data)))
            design = self.design(data)
            rows = SortedRows.of(self.link, design, outcome, sizes, data[CODE], len(data[GROUP]))
            self._kept.update(data=data, rows=rows, design=design[rows.order])
        rows = self._kept["rows"]
        return rows

    def sorted_design(self, data: Arrays) -> np.ndarray:
        """Return the terms of the sorted rows."""
        self.sorted_rows(data)
        design: np.ndarray = self._kept["design"]
        return design

    def concave(self, data: Arrays, **profiled: float) -> MarginalRows:
        """Return the log likelihood of the rows given sd, intercepts integrated out, in units of the prior."""
        rows = self.linked(self.link, data)
        return MarginalRows(**vars(rows), spread=profiled["sd"], groups=self.sorted_rows(data))

    def profile_runs_away(self, is_above: bool) -> str:
        """Say that sd runs to infinity."""
        return (
            "no maximum: the outcomes are alike within each group, and sd runs to infinity; map and nuts have a prior"
        )

    def log_marginal(self, outer: Params, data: Arrays) -> Any:
        """Return the log density of the rows, intercepts integrated out; leading axes of ``outer`` are points."""
        rows, design, shape = self.sorted_rows(data), self.sorted_design(data), np.shape(outer["sd"])
        sd, w = np.reshape(outer["sd"], -1), np.reshape(outer["w"], (-1, design.shape[1]))
        values = [rows.log_density(w[block] @ design.T, sd[block]) for block in blocks(len(sd), len(rows.outcome))]
        return np.reshape(np.concatenate([*values, np.zeros(0)]), shape)[()]

    def posterior_given(self, outer: Params, data: Arrays) -> Posterior:
        """Return the posterior of the groups' intercepts, which are independent given the outer parameters."""
        return Posterior.of_rows("u", self._intercepts(outer, data))

    def marginalized(self, data: Arrays) -> DeclaredModel:
        """Declare the density of the rows with its gradient, intercepts integrated out."""
        rows = self.sorted_rows(data)
        arrays = {"terms": self.sorted_design(data), "offset": rows.offset, "y_data": rows.outcome}
        arrays |= {"sizes": rows.sizes, "starts": rows.starts, "link": np.array([self.link.code])}
        with pm.Model(coords=self.coords(data)) as model:
            outer = self.declared_outer(data)
            of_rows = ops.intercepts_log_density(
                *outer.values(), *(pm.Data(name, values) for name, values in arrays.items())
            )
            constant = rows.constant + self.log_coefficient(data)
            pm.Potential("y", of_rows + pm.Data("constant", np.float64(constant)))
        return model

    def declared_predictor(self, data: Arrays) -> Any:
        """Declare weights, sd and intercepts in a ``pm.Model``; return the linear predictor of each row."""
        w, sd = self.declared_outer(data).values()
        if self.centred:
            u = pm.Normal("u", np.float64(0), sd, dims=GROUP)
        else:
            deviation = pm.Normal("deviation", np.float64(0), np.float64(1), dims=GROUP)
            u = pm.Deterministic("u", sd * deviation, dims=GROUP)
        terms = pm.Data("terms", self.design(data), dims=("row", "term"))
        return pm.math.dot(terms, w) + u[pm.Data("group_code", data[CODE], dims="row")]

    # Parameters, and rows given them

    def simulate_groups(self, rng: np.random.Generator, size: int) -> tuple[dict[str, Any], dict[str, Any], np.ndarray]:
        """Draw parameters from the prior, and rows of six groups; return them with the linear predictor."""
        design = self.simulate_design(rng, size, np.shape(self.tau))
        data = {**design, CODE: np.arange(size) % SIMULATED, GROUP: np.arange(1, SIMULATED + 1).astype(str)}
        outer = self.drawn_outer(rng, data)
        params = {**outer, "u": rng.normal(0.0, outer["sd"], SIMULATED)}
        return params, data, self.of_rows(params, data)

    def median_ratio(self, params: Params) -> np.ndarray:
        """Return the median ratio of the odds, or rates, of two groups, the higher over the lower (Larsen 2000)."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(MEDIAN_OF_TWO * np.asarray(params["sd"])))

    def mean(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the mean of one trial, or of an exposure of 1, in a group whose intercept is 0."""
        return self.link.mean(self.predictor(params, data))

    def mean_in_groups(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the mean of one trial, or of an exposure of 1, in the group of each row."""
        return self.link.mean(self.of_rows(params, data))

    def of_rows(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the linear predictor of each row with its group's intercept, (..., rows)."""
        return self.predictor(params, data) + np.asarray(params["u"])[..., data[CODE]]

    @abstractmethod
    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return the distribution of each row given its group's intercept."""

    @classmethod
    def has_law_given_outer(cls) -> bool:
        """Return False: the law of a row needs its group's intercept, not only the outer parameters."""
        return False

    def law(self, params: Params, seen: Arrays, new: Arrays, rng: np.random.Generator | None = None) -> RowLaw:
        """Return the distribution of new rows given the parameters; intercepts of new groups are drawn from N(0, sd^2).

        Raises `InputError` if there are new groups and no ``rng``.
        """
        extra = len(new[GROUP]) - np.shape(params["u"])[-1]
        if extra <= 0:
            return self.likelihood(params, new)
        if rng is None:
            raise InputError(NEW_GROUPS, "no_row_law", hint="fit by nuts, or leave the rows out")
        sd = np.asarray(params["sd"])[..., None]
        new_u = sd * rng.standard_normal((*sd.shape[:-1], extra))
        return self.likelihood({**params, "u": np.concatenate([params["u"], new_u], axis=-1)}, new)

    def points_of_groups(self, params: Params, seen: Arrays, new: Arrays) -> PointsOfGroups:
        """Return the intercepts of the groups of new rows on a grid of points, given one value of weights and sd.

        A group of the fit has the distribution given its rows, a new group N(0, sd^2).
        """
        old, extra = len(seen[GROUP]), len(new[GROUP]) - len(seen[GROUP])
        outer = {name: np.asarray(params[name], dtype=np.float64) for name in ("w", "sd")}
        intercepts = self._intercepts(outer, seen)
        mean = np.concatenate([intercepts.mean(), np.zeros(extra)])
        scale = np.concatenate([intercepts.std(), np.full(extra, outer["sd"])])
        size = int(np.clip(np.ceil(REACH * np.max(scale, initial=0.0) / FINE), LEAST_POINTS, MOST_POINTS))
        z = np.linspace(-REACH, REACH, 2 * size + 1)[:, None]
        u = mean + scale * z
        repeated = {name: np.broadcast_to(values, (len(z), *values.shape)) for name, values in outer.items()}
        heights = np.broadcast_to(-np.square(z) / 2, u.shape).copy()
        if outer["sd"] > 0:
            heights[:, :old] = self._intercepts(repeated, seen).logpdf(u[:, :old])
        weights = scipy.special.softmax(heights, axis=0)
        halved = scipy.special.softmax(np.where(np.arange(len(z))[:, None] % 2, -np.inf, heights), axis=0)
        return PointsOfGroups({**repeated, "u": u}, weights, halved)

    def _intercepts(self, outer: Params, data: Arrays) -> GroupIntercepts:
        return GroupIntercepts(self.sorted_rows(data), self.sorted_design(data), outer["w"], outer["sd"])

    def remarks(self, stats: Statistics, data: Arrays) -> tuple[str, ...]:
        """Explain also the intercepts of the groups, and say if the data do not determine sd."""
        lines = [*super().remarks(stats, data), MEANING.format(self.predicted_quantity)]
        codes, groups = data[CODE], len(data[GROUP])
        if len(codes) > groups or not groups:
            fixed = [not np.any(column != column[_first_rows(codes, groups)][codes]) for column in data["X"].T]
            if 1 < groups <= sum(fixed) + 1:
                lines.append(CONFOUNDED.format(sum(fixed), groups))
        elif not self.varies_alone(data):
            lines.append(ALONE)
        return tuple(lines)

    def remarks_of_draws(self, draws: Params) -> tuple[str, ...]:
        """Say where sd is so large in some draws that the integrals of groups are rough."""
        share = float(np.mean(np.asarray(draws["sd"]) > ROUGH)) if "sd" in draws else 0.0
        return (ROUGH_SAID.format(ROUGH, 100 * share, self.predicted_quantity),) if share > FEW_DRAWS else ()

    def varies_alone(self, data: Arrays) -> bool:
        """Say whether groups of one row determine sd: counts do, single trials do not."""
        return True


def _first_rows(codes: np.ndarray, groups: int) -> np.ndarray:
    """Return the index of each group's first row, (groups,); 0 for a group without rows."""
    rows = np.zeros(groups, dtype=np.int64)
    rows[codes[::-1]] = np.arange(len(codes))[::-1]
    return rows
