"""The evidence around a place in the space of a prior's fields, from draws of the posterior there.

A field eta that only the prior depends on changes the evidence Z by a ratio that draws tell,

    Z(eta') / Z(eta)  =  E[ p(w | eta') / p(w | eta) ]        w drawn from the posterior at eta,

by importance reweighting, near eta only (Casella 2001; Geyer 1994); and at eta itself

    d log Z / d log eta  =  E[ d log p(w | eta) / d log eta ],

which is zero at a maximum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy

from bayeszoo.comparison.evidence.surface import Coordinates
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import pareto_k
from bayeszoo.inference.engine.approximation import GOOD_K_HAT

MAX_STEP = math.log(10.0)
"""The furthest that one step moves the logarithm of a field."""
MIN_SHARE = 1e-6
"""Least share of the way to the maximum that one step goes."""
MAX_GAIN_ERROR = 0.1
"""Largest Monte Carlo error of the log evidence that one step gains."""
SETTLED = 2.0
"""The climb ends where the score is zero within so many Monte Carlo errors."""
CLOSE = 1e-4
"""How near the maximum of the reweighted evidence has to be, in the logarithm of a field."""
SURE = 3.0
"""A change of the log evidence counts when it is more than so many times its error."""
STEP = 2.0**-10
"""Step of the finite differences of the log prior density, in the logarithm of a field."""


@dataclass(frozen=True, eq=False)
class Place:
    """Draws of the posterior with the fields at a place, and the evidence around it.

    Attributes
    ----------
    coordinates : Coordinates
        Logarithms of the D fields, from the model's own.
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

    @cached_property
    def _own(self) -> np.ndarray:
        return self.log_prior(self.x)

    def log_weights(self, x: np.ndarray) -> np.ndarray:
        """Return log p(w | x) less log p(w) at the place of the draws, shape (chain, draw)."""
        return self.log_prior(x) - self._own

    def gain(self, x: np.ndarray) -> float:
        """Return the log evidence at x less that at the place."""
        log_weights = self.log_weights(x)
        return float(scipy.special.logsumexp(log_weights)) - math.log(log_weights.size)

    def weights(self, x: np.ndarray) -> np.ndarray:
        """Return the weights of the draws at x, of mean 1: their Monte Carlo error is that of the gain."""
        return np.asarray(np.exp(self.log_weights(x) - self.gain(x)))

    def score(self, x: np.ndarray) -> np.ndarray:
        """Return the derivative of the log prior density of each draw at x, shape (chain, draw, D)."""
        ends = [(self.log_prior(x + h), self.log_prior(x - h)) for h in STEP * np.eye(len(x))]
        return np.stack([(above - below) / (2 * STEP) for above, below in ends], axis=-1)

    def weighted_score(self, x: np.ndarray) -> np.ndarray:
        """Return score times weight over mean weight at x: its mean is the gradient of the log evidence there."""
        return np.asarray(self.weights(x)[..., None] * self.score(x))

    def slope(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of the log evidence at x, shape (D,)."""
        return np.asarray(self.weighted_score(x).mean(axis=(0, 1)))

    def curvature(self, x: np.ndarray) -> np.ndarray:
        """Return the Hessian of the log evidence at x, shape (D, D)."""
        rows = [(self.slope(x + h) - self.slope(x - h)) / (2 * STEP) for h in STEP * np.eye(len(x))]
        return (np.array(rows) + np.transpose(rows)) / 2

    def highest(self) -> np.ndarray:
        """Return where the reweighted evidence is largest, no more than `MAX_STEP` away."""
        low, high = self.coordinates.bounds()
        box = np.column_stack([np.maximum(self.x - MAX_STEP, low), np.minimum(self.x + MAX_STEP, high)])

        def descend(x: np.ndarray) -> tuple[float, np.ndarray]:
            return -self.gain(x), -self.slope(x)

        options = {"gtol": 1e-7, "ftol": 1e-14}
        found = scipy.optimize.minimize(descend, self.x, jac=True, method="L-BFGS-B", bounds=box, options=options)
        return np.asarray(found.x)

    def step(self) -> Step:
        """Go to the maximum of the reweighted evidence, or so far towards it as the weights can be trusted."""
        x, share = self.highest(), 1.0
        while not self._trusted(x) and share > MIN_SHARE:
            share /= 2
            x = self.x + (x - self.x) / 2
        scores = np.moveaxis(self.score(self.x), -1, 0)
        z = max(_ratio(abs(float(one.mean())), mcse(one)) for one in scores)
        k_hat, error = self.k_hat(x), mcse(self.weights(x))
        return Step(x, self.gain(x), error, k_hat, z, self.curvature(x), self.weighted_score(x))

    def k_hat(self, x: np.ndarray) -> float:
        """Return the Pareto shape of the weights of the draws at x."""
        return float(pareto_k(self.log_weights(x).ravel()))

    def _trusted(self, x: np.ndarray) -> bool:
        return self.k_hat(x) <= GOOD_K_HAT and mcse(self.weights(x)) <= MAX_GAIN_ERROR


@dataclass(frozen=True, eq=False)
class Step:
    """One step of the climb.

    Attributes
    ----------
    x : ndarray of shape (D,)
        Where it ended.
    gain, gain_error : float
        What the log evidence rose by, and its Monte Carlo error.
    k_hat : float
        Pareto shape of the weights.
    z : float
        The largest mean score where the draws were made, in its Monte Carlo errors.
    curvature : ndarray of shape (D, D)
        Hessian of the log evidence at x.
    influence : ndarray of shape (chain, draw, D)
        Weighted scores at x.
    """

    x: np.ndarray
    gain: float
    gain_error: float
    k_hat: float
    z: float
    curvature: np.ndarray
    influence: np.ndarray

    @property
    def settled(self) -> bool:
        """Whether the draws were made at the maximum, as far as they can tell."""
        return self.z <= SETTLED

    @cached_property
    def error(self) -> np.ndarray:
        """Monte Carlo errors of x, shape (D,) (delta method): infinite where x is no maximum."""
        if not np.isfinite(self.curvature).all() or not np.all(np.linalg.eigvalsh(self.curvature) < 0):
            return np.full(len(self.x), math.inf)
        moved = -self.influence @ np.linalg.inv(self.curvature)
        found = np.array([mcse(one) for one in np.moveaxis(moved, -1, 0)])
        return np.where(np.abs(moved.mean(axis=(0, 1))) <= CLOSE, found, math.inf)


def mcse(values: np.ndarray) -> float:
    """Return the Monte Carlo standard error of the mean of draws, shape (chain, draw); 0 when they are all equal."""
    if np.ptp(values) <= 1e-12 * float(np.max(np.abs(values))):
        return 0.0
    return float(diagnostics.mcse(values))


def _ratio(size: float, error: float) -> float:
    return size / error if error > 0 else math.inf * size if size > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Side:
    """The log evidence on the way out from a maximum, in one field and to one side, less that at the maximum.

    Attributes
    ----------
    entry, sign : int
        The field, and which way.
    places : ndarray of shape (P,)
        How far out, in the logarithm of the field.
    change, error : ndarray of shape (P,)
        Of the log evidence; the error is of Monte Carlo and of the quadrature.
    """

    entry: int
    sign: int
    places: np.ndarray
    change: np.ndarray
    error: np.ndarray

    @property
    def falls(self) -> bool:
        """Whether the evidence is surely lower in the end."""
        return bool(self.change[-1] < -SURE * self.error[-1])

    @property
    def highest(self) -> int | None:
        """Which place is surely higher than the maximum, most of all; None where none is."""
        at = int(np.argmax(self.change - SURE * self.error))
        return at if self.change[at] > SURE * self.error[at] else None

    @property
    def rise(self) -> tuple[float, float]:
        """The change at that place and its error; 0 where there is none."""
        at = self.highest
        return (0.0, 0.0) if at is None else (float(self.change[at]), float(self.error[at]))


def integrated(x: np.ndarray, slope: np.ndarray, bend: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Integrate a slope from the first of P + 1 places to each of the others.

    Parameters
    ----------
    x, slope, bend, error : ndarray of shape (P + 1,)
        Places, the slope there, its derivative, and its Monte Carlo error.

    Returns
    -------
    change, error : ndarray of shape (P,)
        By the trapezoidal rule with its end corrections, exact for cubic polynomials. The error is that of the draws,
        and half of what the corrections change, which is much more than what is left after them.
    """
    width = np.diff(x)
    correction = np.square(width) / 12 * (bend[:-1] - bend[1:])
    change = np.cumsum(width / 2 * (slope[:-1] + slope[1:]) + correction)
    panels = np.tril(np.ones((len(width), len(width)))) * width / 2
    weights = np.pad(panels, ((0, 0), (0, 1))) + np.pad(panels, ((0, 0), (1, 0)))
    of_draws = np.linalg.norm(weights * error, axis=1)
    return change, of_draws + np.cumsum(np.abs(correction)) / 2
