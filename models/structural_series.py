r"""Structural series: a level with a slope and seasons, which may move in time, seen with noise.

    q, q_slope, q_season, r ~ HalfNormal               up to three of them; the others are 0
    level_1  ~ N(m0, s0^2),  slope_1 ~ N(0, s_slope^2)                    in each sequence
    season_1, .. ~ N(0, s_season^2)                    any `period` in a row have the sum 0
    level_t  ~ N(level_{t-1} + slope_{t-1}, q^2)       t = 2..T
    slope_t  ~ N(slope_{t-1}, q_slope^2)
    season_t ~ N(-season_{t-1} - .. - season_{t-period+1}, q_season^2)
    w_j      ~ N(0, tau^2)                             of feature j in units of `scale`, about its `center`
    y_t      ~ N(level_t + season_t + x_t' w, r^2)     t = 1..T

Given the standard deviations all is Gaussian, and the Kalman filter integrates components and weights out: it is exact
by quadrature over them. Features, as an intervention, are the columns that are named; sequences share their weights.
Priors of the first states are proper, so that the evidence is one: it has other constants than a diffuse start. Harvey
1989, sections 2.3, 4.1 and 7; Harvey and Durbin 1986; Durbin and Koopman 2012, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayeszoo.distributions.priors import HalfNormal, Prior
from bayeszoo.families.state_space.model import spread
from bayeszoo.families.state_space.structural import StructuralModel
from bayeszoo.families.state_space.structure import PARTS, Structure, words
from bayeszoo.model import Example, positive, real
from bayeszoo.model.types import Arrays, Simulated


@dataclass(frozen=True)
class StructuralSeries(StructuralModel):
    """Numbers in time about a level with a slope and seasons.

    Parameters
    ----------
    m0, s0 : float
        Mean and standard deviation of the normal prior of the first level of each sequence.
    s_slope, s_season : float
        Prior standard deviations of the first slope, and of the effect of each season, > 0.
    t_q, t_slope, t_season, t_r : float
        Scales of the half-normal priors of the standard deviations of steps of level (``q``), slope (``q_slope``) and
        season (``q_season``), and of rows about their mean (``r``), > 0.
    """

    m0: float = real(0.0, "prior mean of the first level", units=1, location=True)
    s0: float = positive(1.0, "prior sd of the first level", units=1)
    s_slope: float = positive(1.0, "prior sd of the first slope", units=1)
    s_season: float = positive(1.0, "prior sd of the effect of a season", units=1)
    t_q: float = positive(1.0, "prior scale of q", units=1)
    t_slope: float = positive(1.0, "prior scale of q_slope", units=1)
    t_season: float = positive(1.0, "prior scale of q_season", units=1)
    t_r: float = positive(1.0, "prior scale of r", units=1)

    examples = (
        Example(
            "drivers.csv",
            "car drivers killed or seriously injured in Great Britain a month, 1969-1984, natural logarithms",
            "Harvey and Durbin 1986",
            {"column": "log_drivers"},
        ),
        Example(
            "seat_belts.csv",
            "the same drivers, the natural logarithm of the price of petrol, and whether seat belts had to be worn",
            "Harvey and Durbin 1986",
            {"column": "log_drivers", "features": ["log_petrol", "law"]},
        ),
    )

    @classmethod
    def weak(cls, data: Arrays) -> StructuralSeries:
        """Centre the first level on the data, and scale all to their steps and their spread."""
        y, step = data["y"][~np.isnan(data["y"])], spread(data)
        sd = float(np.hypot(np.std(y), step))
        first = {"m0": float(np.mean(y)), "s0": 10 * sd, "s_slope": step, "s_season": 2 * sd}
        steps = {"t_q": 2 * step, "t_slope": step, "t_season": step, "t_r": 2 * step}
        return cls().replaced(**first, **steps, tau=sd, **cls.measured(data))

    @property
    def textbook_priors(self) -> dict[str, Prior]:
        """Half-normal of each standard deviation."""
        scales = {"q": self.t_q, "q_slope": self.t_slope, "q_season": self.t_season, "r": self.t_r}
        return {name: HalfNormal(scales[name]) for name in self.outer}

    @property
    def first_mean(self) -> float:
        """The prior mean of the first level."""
        return float(self.m0)

    def structure(self, data: Arrays) -> Structure:
        """Return the components, and the priors of the first of each."""
        parts = words(self.components, PARTS, "components")
        sds = float(self.s0), float(self.s_slope), float(self.s_season)
        return Structure(parts, self.period, sds, self.weight_sds(data))

    def simulate(self, rng: np.random.Generator, size: int = 30) -> Simulated:
        """Draw standard deviations and weights, and the rows of one sequence."""
        outer, features = self.drawn_outer(rng), self.simulated_features(rng, size)
        w = rng.normal(0.0, self.weight_sds(features))
        params = outer | ({"w": w} if w.size else {})
        y = self.simulated(rng, params, features, self.structure(features))
        return params, {"y": y, "sequence": np.zeros(size, dtype=np.int64), **features}
