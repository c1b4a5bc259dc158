r"""Local level: a level that moves in time as a random walk, seen with noise.

    q ~ HalfNormal(t_q),  r ~ HalfNormal(t_r)
    level_1 ~ N(m0, s0^2)                       in each sequence
    level_t ~ N(level_{t-1}, q^2)               t = 2..T
    y_t     ~ N(level_t, r^2)                   t = 1..T

Given q and r all is Gaussian, and the Kalman filter integrates the levels out: it is exact by quadrature over q and r.
Kalman 1960; Harvey 1989, section 2.2; Durbin and Koopman 2012, chapter 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import starts
from bayeszoo.distributions.priors import HalfNormal, Prior
from bayeszoo.families.state_space.levels import Levels
from bayeszoo.families.state_space.model import MovingLevel, spread
from bayeszoo.model import Example, positive, real
from bayeszoo.model.types import Arrays, DeclaredModel, Params, Simulated

pm = lazy_loader.load("pymc")
ours = lazy_loader.load("bayeszoo.families.state_space.declaration", suppress_warning=True)


@dataclass(frozen=True)
class LocalLevel(MovingLevel):
    """Numbers in time about a level that takes a random step from each row to the next.

    Parameters
    ----------
    m0, s0 : float
        Mean and standard deviation of the normal prior of the first level of each sequence.
    t_q, t_r : float
        Scales of the half-normal priors of q, the standard deviation of the level's steps, and of r, that of rows about
        the level, > 0.
    """

    m0: float = real(0.0, "prior mean of the first level", units=1, location=True)
    s0: float = positive(1.0, "prior sd of the first level", units=1)
    t_q: float = positive(1.0, "prior scale of q", units=1)
    t_r: float = positive(1.0, "prior scale of r", units=1)

    probabilities = ("gain",)
    examples = (
        Example("nile.csv", "annual flow of the Nile at Aswan, 1871-1970, 10^8 m^3", "Cobb 1978", {"column": "flow"}),
    )

    @classmethod
    def weak(cls, data: Arrays) -> LocalLevel:
        """Centre the first level on the data, and scale all to their steps and their spread."""
        y, step = data["y"][~np.isnan(data["y"])], spread(data)
        return cls(float(np.mean(y)), 10 * float(np.hypot(np.std(y), step)), 2 * step, 2 * step)

    @property
    def textbook_priors(self) -> dict[str, Prior]:
        """Half-normal of both standard deviations."""
        return {"q": HalfNormal(self.t_q), "r": HalfNormal(self.t_r)}

    def levels(self, params: Params, data: Arrays) -> Levels:
        """Return what the rows say of their levels at q and r."""
        return Levels.of(params, data, self.m0, self.s0)

    @property
    def means_are_averages(self) -> bool:
        """Whether means one step ahead are bounded: they are weighted averages of m0 and of the rows before."""
        return True

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return the share of a forecast's error by which the next forecast moves, after many rows (Kalman's gain)."""
        with np.errstate(divide="ignore", over="ignore"):
            return {"gain": 2 / (1 + np.hypot(1.0, 2 * np.asarray(params["r"]) / np.asarray(params["q"])))}

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw q and r, the levels of one sequence, and rows about them."""
        outer = self.drawn_outer(rng)
        level = np.cumsum(rng.normal(0.0, np.where(np.arange(size) > 0, outer["q"], self.s0))) + self.m0
        data = {"y": rng.normal(level, outer["r"]), "sequence": np.zeros(size, dtype=np.int64)}
        return {**outer, "level": level}, data

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the levels, and a normal row about each where it is not missing."""
        seen = np.flatnonzero(~np.isnan(data["y"]))
        opens = np.isin(np.arange(len(data["y"])), starts(data["sequence"]))
        with pm.Model(coords=self.coords(data)) as model:
            q, r = self.declared_outer().values()
            level = ours.walk("level", q, self.m0, self.s0, opens, self.dims["level"])
            pm.Normal("y", mu=level[pm.Data("seen", seen)], sigma=r, observed=pm.Data("y_data", data["y"][seen]))
        return model

    def marginalized(self, data: Arrays) -> DeclaredModel:
        """Declare the density of the rows with the levels integrated out, by the Kalman filter."""
        self.require_spread(data)
        with pm.Model() as model:
            both = self.declared_outer().values()
            pm.Potential("y", ours.marginal(*both, data["y"], self.m0, self.s0, starts(data["sequence"])))
        return model
