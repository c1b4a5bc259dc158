"""Monte Carlo EM: climbs to the maximum of the evidence over fields of the prior, by draws of the posterior.

A field eta that only the prior depends on is moved to where the mean log prior density of the posterior's draws is
largest; then the posterior is drawn anew (Casella 2001; Park and Casella 2008, section 3.1). For Laplace weights of
scale b that is b = E[mean of |w_j|]. With the score s = d log p(w | eta) / d log eta of the draws,

    d log Z / d log eta      =  E[s]
    d^2 log Z / d log eta^2  =  E[d s / d log eta] + Var[s]

(Louis 1982), which give Newton's step near the maximum, whether it is a maximum, the Monte Carlo error of eta, and, by
integration along the climb, what the log evidence gained.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy

from bayeszoo.comparison.evidence.surface import Coordinates
from bayeszoo.data.read import Data
from bayeszoo.errors import Interrupted, NumericalError
from bayeszoo.foundation.gate import failures, passed
from bayeszoo.foundation.progress import Reporter
from bayeszoo.inference.problem import Problem

MAX_FITS = 30
"""Runs of NUTS before a climb is given up."""
MAX_STEP = math.log(4.0)
"""The furthest that one step moves the logarithm of a field."""
TENFOLD = math.log(10.0)
"""How much further out a climb begins that has to begin anew."""
NEAR = 1.0
"""How far, in the logarithm of the fields, a step of Newton's is trusted."""
SETTLED = 2.0
"""A climb ends where the score is zero within so many Monte Carlo errors."""
MAX_ERROR = 0.1
"""Largest Monte Carlo error of the logarithm of a chosen field."""
STEP = 2.0**-10
"""Step of the finite differences of the log prior density, in the logarithm of a field."""


def mcse(values: np.ndarray) -> float:
    """Return the Monte Carlo standard error of the mean of draws, shape (chain, draw); 0 when they are all equal."""
    from arviz_stats.base import array_stats

    if np.ptp(values) <= 1e-12 * float(np.max(np.abs(values))):
        return 0.0
    return float(array_stats.mcse(values, method="mean", chain_axis=0, draw_axis=1))


@dataclass(frozen=True, eq=False)
class Place:
    """Draws of the posterior with the D fields at a place, and how the log evidence changes there.

    Attributes
    ----------
    coordinates : Coordinates
        Logarithms of the fields, from the model's own.
    rows : Data
        None of the rows: their labels.
    x : ndarray of shape (D,)
        The place.
    draws : dict of str to ndarray of shape (chain, draw, ...)
        Of each parameter.
    """

    coordinates: Coordinates
    rows: Any
    x: np.ndarray
    draws: dict[str, np.ndarray]

    def log_prior(self, x: np.ndarray) -> np.ndarray:
        """Return the log prior density of each draw with the fields at x, shape (chain, draw)."""
        return np.asarray(cast(Any, self.coordinates.model_at(x)).log_prior(self.draws, self.rows))

    def score(self, x: np.ndarray) -> np.ndarray:
        """Return the derivative of the log prior density of each draw at x, shape (chain, draw, D)."""
        ends = [(self.log_prior(x + h), self.log_prior(x - h)) for h in STEP * np.eye(len(x))]
        return np.stack([(above - below) / (2 * STEP) for above, below in ends], axis=-1)

    @cached_property
    def scores(self) -> np.ndarray:
        """The scores at the place, shape (chain, draw, D)."""
        return self.score(self.x)

    @cached_property
    def slope(self) -> np.ndarray:
        """The gradient of the log evidence, shape (D,)."""
        return np.asarray(self.scores.mean(axis=(0, 1)))

    @cached_property
    def curvature(self) -> np.ndarray:
        """The Hessian of the log evidence, shape (D, D), by Louis's identity."""
        size = len(self.x)
        sides = [(self.score(self.x + h), self.score(self.x - h)) for h in STEP * np.eye(size)]
        bend = np.array([(above - below).mean(axis=(0, 1)) / (2 * STEP) for above, below in sides])
        return np.asarray((bend + bend.T) / 2 + np.cov(self.scores.reshape(-1, size).T).reshape(size, size))

    @property
    def is_concave(self) -> bool:
        """Whether the log evidence bends down in every direction."""
        return bool(np.isfinite(self.curvature).all() and np.all(np.linalg.eigvalsh(self.curvature) < 0))

    @property
    def z(self) -> float:
        """The largest entry of the slope, in its Monte Carlo errors."""
        errors = np.array([mcse(column) for column in np.moveaxis(self.scores, -1, 0)])
        size = np.abs(self.slope)
        return float(np.max(np.divide(size, errors, out=np.where(size > 0, math.inf, 0.0), where=errors > 0)))

    @cached_property
    def error(self) -> np.ndarray:
        """Monte Carlo error of where the slope is zero, shape (D,), by the delta method; infinite of no maximum."""
        if not self.is_concave:
            return np.full(len(self.x), math.inf)
        moved = self.scores @ np.linalg.inv(self.curvature)
        return np.array([mcse(column) for column in np.moveaxis(moved, -1, 0)])

    def next(self) -> np.ndarray:
        """Return the next place: Newton's where it is near, else where the draws' mean log prior is largest (EM)."""
        low, high = self.coordinates.bounds()
        if self.is_concave:
            step = -np.linalg.solve(self.curvature, self.slope)
            if np.max(np.abs(step)) <= NEAR:
                return np.clip(self.x + step, low, high)
        box = np.column_stack([np.maximum(self.x - MAX_STEP, low), np.minimum(self.x + MAX_STEP, high)])
        step = scipy.optimize.minimize(
            lambda x: (-self.log_prior(x).mean(), -self.score(x).mean(axis=(0, 1))),
            self.x,
            jac=True,
            method="L-BFGS-B",
            bounds=box,
        )
        return np.asarray(step.x)


@dataclass(frozen=True, eq=False)
class Climb:
    """The places of a climb; ``ended`` where the score of the last is zero within its Monte Carlo error."""

    places: list[Place]
    ended: bool

    @property
    def x(self) -> np.ndarray:
        """Where the slope is zero, as the last draws tell."""
        last = self.places[-1]
        return last.next() if self.is_at_maximum else last.x

    @property
    def error(self) -> np.ndarray:
        """Monte Carlo errors of x."""
        return self.places[-1].error

    @property
    def is_at_maximum(self) -> bool:
        """Whether the draws tell where the maximum is."""
        return self.ended and bool(np.max(self.error) <= MAX_ERROR)

    def gain(self) -> tuple[float, float]:
        """Return what the log evidence rose by along the climb, and its error.

        The slope is integrated by the trapezoidal rule with its end corrections, which is exact where it is a cubic
        polynomial. The error is that of the draws, and half of what the corrections change, which is much more than
        what is left after them.
        """
        steps = np.diff([place.x for place in self.places], axis=0)
        ends = list(zip(steps, self.places[:-1], self.places[1:], strict=True))
        panels = [step @ (first.slope + last.slope) / 2 for step, first, last in ends]
        corrections = [step @ (first.curvature - last.curvature) @ step / 12 for step, first, last in ends]
        weights = (np.pad(steps, ((1, 0), (0, 0))) + np.pad(steps, ((0, 1), (0, 0)))) / 2
        errors = [mcse(place.scores @ weight) for place, weight in zip(self.places, weights, strict=True)]
        return math.fsum([*panels, *corrections]), math.hypot(*errors) + float(np.sum(np.abs(corrections))) / 2


@dataclass(frozen=True, eq=False)
class Search:
    """Runs NUTS with the fields at one place after another.

    Attributes
    ----------
    coordinates : Coordinates
        Of the fields.
    data : Data
        The data.
    rng : numpy.random.Generator
        Seeds of the runs.
    reporter : Reporter
        Takes progress.
    failed : list of str
        Runs that did not pass their gate, with the reason.
    fits : list of str
        Where NUTS ran.
    """

    coordinates: Coordinates
    data: Data
    rng: np.random.Generator
    reporter: Reporter = field(default_factory=Reporter)
    failed: list[str] = field(default_factory=list)
    fits: list[str] = field(default_factory=list)

    def at(self, x: np.ndarray) -> str:
        """Name the fields at x."""
        values = zip(self.coordinates.labels, self.coordinates.values(x), strict=True)
        return ", ".join(f"{label} = {value:.6g}" for label, value in values)

    def sample(self, x: np.ndarray) -> Place | None:
        """Draw the posterior with the fields at x; None, and the reason kept, when the gate is not passed."""
        from bayeszoo.inference.methods import nuts

        model = self.coordinates.model_at(x)
        self.fits.append(self.at(x))
        seed = int(self.rng.integers(2**31 - 1))
        try:
            outcome = nuts.run(Problem(model, self.data, np.random.default_rng(seed), self.reporter))
        except NumericalError as error:
            self.failed.append(f"NUTS at {self.at(x)}: {error}")
            return None
        if outcome.interrupted:
            raise Interrupted("stopped before the fields were chosen; nothing was kept")
        if not passed(outcome.checks):
            self.failed.append(f"NUTS at {self.at(x)}: {failures(outcome.checks)}")
            return None
        rows, _ = model.inputs.split(self.data, 0)
        return Place(self.coordinates, rows, x, dict(outcome.draws))

    def run(self) -> list[Climb]:
        """Climb from one place after another, until two climbs ended at a maximum or one failed."""
        weak, climbs = self.coordinates.weak, []
        away = weak if np.max(np.abs(weak)) > NEAR else weak + TENFOLD
        for x in (np.zeros(len(weak)), away, away + TENFOLD):
            climbs.append(self.climb(x))
            if not climbs[-1].ended or sum(climb.is_at_maximum for climb in climbs) == 2:
                break
        return climbs

    def bridge(self, first: Climb, best: Climb) -> list[Place]:
        """Draw between the end of one climb and the beginning of another, no further apart than a step."""
        ends = first.places[-1].x, best.places[0].x
        count = math.ceil(np.max(np.abs(ends[1] - ends[0])) / MAX_STEP)
        places = [self.sample(x) for x in np.linspace(*ends, count + 1)[1:-1]]
        return [place for place in places if place is not None]

    def climb(self, x: np.ndarray) -> Climb:
        """Step from x until the score is zero within its Monte Carlo error."""
        places: list[Place] = []
        while len(places) < MAX_FITS and (place := self.sample(x)):
            places.append(place)
            if place.z <= SETTLED:
                return Climb(places, ended=True)
            x = place.next()
            if np.array_equal(x, place.x):
                break  # at the edge of the search
        return Climb(places, ended=False)
