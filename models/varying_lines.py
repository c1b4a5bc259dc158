r"""Varying lines: random intercepts and slopes by group.

    mean_intercept ~ N(m_intercept, s_intercept^2),   mean_slope ~ N(m_slope, s_slope^2)
    sd_intercept   ~ HalfNormal(t_intercept),         sd_slope   ~ HalfNormal(t_slope)
    rho            ~ Uniform(-1, 1),                  sigma      ~ HalfNormal(t_sigma)
    (intercept_j, slope_j) ~ N((mean_intercept, mean_slope), S)     j = 1..J groups
    y_n ~ N(intercept_j + slope_j (x_n - center), sigma^2)          n = 1..N rows, j the group of row n

S has the standard deviations sd_intercept and sd_slope, and the correlation rho: what ``y ~ x + (x | group)`` stands
for. Given these six numbers all lines are Gaussian, and are integrated out. Laird and Ware 1982; Bates et al. 2015;
Gelman and Hill 2007, section 13.1; W4400, hierarchical models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import GroupRows
from bayeszoo.distributions import frozen
from bayeszoo.distributions.priors import HalfNormal, Normal, Prior, Uniform
from bayeszoo.distributions.scale import POSITIVE, REAL, Scale
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.families.lines.statistics import Lines, drawn_lines, guess, lines_given, log_marginal, said_of_lines
from bayeszoo.model import Conditional, Example, Observable, Posterior, positive, real
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.lines.declaration", suppress_warning=True)

SIMULATED = 6  # groups of simulated data, however many rows


@dataclass(frozen=True)
class VaryingLines(Conditional, Observable):
    """Gaussian outcomes about the line of each group; intercepts and slopes are correlated Gaussians.

    Parameters
    ----------
    m_intercept, s_intercept, m_slope, s_slope : float
        Means and standard deviations of the normal priors of mean intercept and mean slope.
    t_intercept, t_slope, t_sigma : float
        Scales of the half-normal priors of the standard deviations of intercepts, slopes and rows, > 0.
    center : float
        Where the feature is counted from: intercepts are what the lines are there.
    """

    m_intercept: float = real(0.0, "prior mean of the mean intercept", units=1, location=True)
    s_intercept: float = positive(1.0, "prior sd of the mean intercept", units=1)
    m_slope: float = real(0.0, "prior mean of the mean slope", units=1)
    s_slope: float = positive(1.0, "prior sd of the mean slope", units=1)
    t_intercept: float = positive(1.0, "prior scale of the sd of intercepts", units=1)
    t_slope: float = positive(1.0, "prior scale of the sd of slopes", units=1)
    t_sigma: float = positive(1.0, "prior scale of sigma", units=1)
    center: float = real(0.0, "center of the feature")

    inputs = GroupRows("y")
    dims = {"intercept": ("group",), "slope": ("group",)}  # noqa: RUF012
    outer = {"mean_intercept": REAL, "mean_slope": REAL, "sd_intercept": POSITIVE, "sd_slope": POSITIVE}  # noqa: RUF012
    outer |= {"rho": Scale(-1.0, 1.0), "sigma": POSITIVE}
    examples = (
        Example(
            "sleepstudy.csv",
            "reaction times, in milliseconds, of 18 people after days of too little sleep",
            "Belenky et al. 2003",
            {"target": "reaction", "features": ["days"], "group": "subject"},
        ),
    )

    @classmethod
    def weak(cls, data: Arrays) -> VaryingLines:
        """Scale to the spread of outcome and feature; count from 0 where the feature reaches it, else from its mean."""
        x, y = Moments.of(data["x"]), Moments.of(data["y"])
        center = 0.0 if np.min(data["x"]) <= 0 <= np.max(data["x"]) else float(x.mean)
        sd, per_x = y.sd, y.sd / x.sd
        return cls(float(y.mean), 10 * sd, 0.0, 10 * per_x, 2 * sd, 2 * per_x, 2 * sd, center)

    def remarks(self, stats: Any, data: Arrays) -> tuple[str, ...]:
        """Say what intercepts are where the feature is not counted from 0, and where rows are few."""
        return said_of_lines(data, self.center)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw the parameters from the prior, lines of six groups, and rows of each in turn."""
        params: dict[str, Any] = self.drawn_outer(rng)
        params |= drawn_lines(params, SIMULATED, rng)
        code, names = np.arange(size) % SIMULATED, np.arange(1, SIMULATED + 1).astype(str)
        data = {"x": self.center + rng.normal(size=size), "group_code": code, "group": names}
        return params, {"y": rng.normal(self._at_rows(params, data), params["sigma"]), **data}

    def _at_rows(self, params: Params, data: Arrays) -> np.ndarray:
        """Return what its group's line is at each row."""
        intercept, slope = (np.asarray(params[name])[..., data["group_code"]] for name in ("intercept", "slope"))
        return intercept + slope * (data["x"] - self.center)

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare a line of each group, the slope given the intercept, and a normal outcome of each row."""
        with pm.Model(coords={"group": data["group"]}) as model:
            m_a, m_b, a, b, rho, sigma = self.declared_outer().values()
            intercept = pm.Normal("intercept", mu=m_a, sigma=a, dims="group")
            by_intercept = m_b + rho * b * (intercept - m_a) / a
            slope = pm.Normal("slope", mu=by_intercept, sigma=b * pm.math.sqrt((1 - rho) * (1 + rho)), dims="group")
            code, u = pm.Data("group_code", data["group_code"]), pm.Data("u", data["x"] - self.center)
            observed = pm.Data("y_data", data["y"], dims="row")
            pm.Normal("y", mu=intercept[code] + slope[code] * u, sigma=sigma, observed=observed, dims="row")
        return model

    @property
    def textbook_priors(self) -> dict[str, Prior]:
        """Normal of the means, half-normal of the standard deviations, uniform of rho."""
        priors: dict[str, Prior] = {"mean_intercept": Normal(self.m_intercept, self.s_intercept)}
        priors |= {"mean_slope": Normal(self.m_slope, self.s_slope), "rho": Uniform(-1.0, 1.0)}
        scales = {"sd_intercept": self.t_intercept, "sd_slope": self.t_slope, "sigma": self.t_sigma}
        return priors | {name: HalfNormal(scale) for name, scale in scales.items()}

    def marginalized(self, data: Arrays) -> DeclaredModel:
        """Declare the density of the rows with the lines integrated out, from the statistics of each group."""
        with pm.Model() as model:
            pm.Potential("y", ours.marginal(self._lines(data), *self.declared_outer().values()))
        return model

    def _lines(self, data: Arrays) -> Lines:
        return Lines.of(data["x"] - self.center, data["y"], data["group_code"], len(data["group"]))

    def outer_guess(self, data: Arrays) -> dict[str, tuple[float, float]]:
        """Guess the mean line by least squares of all rows, and the spreads by those of outcome and feature."""
        return guess(data["x"] - self.center, data["y"])

    def log_marginal(self, outer: Params, data: Arrays) -> float:
        """Return the log density of the rows, from the statistics of each group."""
        return log_marginal(outer, self._lines(data))

    def posterior_given(self, outer: Params, data: Arrays) -> Posterior:
        """Return the lines of the groups: Gaussian, independent of each other."""
        return lines_given(outer, self._lines(data))

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's normal distribution about the line of its group."""
        return frozen.norm(self._at_rows(params, data), np.asarray(params["sigma"])[..., None])
