"""Newton's method with step halving for concave log densities, whose one maximum it certifies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy

from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import Check, at_least, at_most

MAX_SLOPE = 1e-10
"""Slope at the maximum, in nats a standard deviation of the Gaussian with the curvature there."""
LEAST_CURVATURE = 1e-12
"""Least eigenvalue of the curvature at the maximum, its diagonal scaled to 1: below it the maximum is not one point."""
ITERATIONS, HALVINGS = 200, 60
SUFFICIENT = 1e-4
"""Share of the gain that the slope promises which a step must make (Armijo)."""
NEAR, FLATTER = 1e-3, 0.9
"""Nats that a step promises below which it is judged by the slope along it, and what share of that it may leave."""


class Derivatives(NamedTuple):
    """A log density at a point of shape (D,), its gradient (D,), and its curvature: the negative Hessian (D, D)."""

    value: float
    gradient: np.ndarray
    curvature: np.ndarray


@dataclass(frozen=True, eq=False)
class Peak:
    """The maximum of a concave log density, at ``x``, shape (D,), and the log density after each iteration."""

    x: np.ndarray
    there: Derivatives
    trace: np.ndarray
    method: str = field(default="Newton's method", kw_only=True)

    @property
    def slope(self) -> float:
        """The largest component of the gradient in nats a standard deviation: its coordinate's at the curvature."""
        return slope_of(self.there)

    def certificate(self) -> list[Check]:
        """Check that the point is the maximum, and the only one: a concave density that is curved there has no other.

        The slope is in nats a standard deviation; where the curvature of a prior N(0, 1) is part of the density that is
        at most what it is in units of the prior.
        """
        return [
            at_most("slope", self.slope, MAX_SLOPE),
            at_least("curvature", self._least_curvature(), LEAST_CURVATURE),
        ]

    def _least_curvature(self) -> float:
        scale = np.sqrt(np.diag(self.there.curvature))
        return float(np.linalg.eigvalsh(self.there.curvature / np.outer(scale, scale))[0]) if len(scale) else 1.0


def climb(derivatives: Callable[[np.ndarray], Derivatives], start: np.ndarray) -> Peak:
    """Climb a concave log density by Newton steps, each halved until it gains.

    Raises `NumericalError` where the density is not finite at the start, or not curved on the way: it has no one
    maximum then.
    """
    x, there = start, derivatives(start)
    if not math.isfinite(there.value):
        raise NumericalError("the log density is not finite at the start: can the model give these data?", "not_finite")
    trace = [there.value]
    for _ in range(ITERATIONS):
        if slope_of(there) <= MAX_SLOPE / 10:
            break
        moved = _stepped(derivatives, x, there)
        if moved is None:
            break
        x, there = moved
        trace.append(there.value)
    return Peak(x, there, np.array(trace))


def _stepped(
    derivatives: Callable[[np.ndarray], Derivatives], x: np.ndarray, there: Derivatives
) -> tuple[np.ndarray, Derivatives] | None:
    """Return the point after a Newton step, or a half or a quarter of it ...; None where none gains, or less slope."""
    try:
        step = scipy.linalg.cho_solve(scipy.linalg.cho_factor(there.curvature), there.gradient)
    except np.linalg.LinAlgError:
        raise NumericalError("the log density is not curved: it has no maximum at one point", "no_maximum") from None
    promised = float(there.gradient @ step)
    for halving in range(HALVINGS):
        share = 0.5**halving
        moved = derivatives(x + share * step)
        is_higher = moved.value - there.value >= SUFFICIENT * share * promised
        # near the maximum the gain drowns in the rounding of the value, and the slope along the step does not
        is_flatter = promised < NEAR and abs(float(moved.gradient @ step)) <= FLATTER * promised
        if is_flatter or (is_higher and promised >= NEAR):
            return x + share * step, moved
    return None


def slope_of(there: Derivatives) -> float:
    """Return the largest component of the gradient, each in nats a standard deviation by its own curvature."""
    scale = np.sqrt(np.diag(there.curvature))
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.where(there.gradient == 0, 0.0, np.abs(there.gradient) / scale), initial=0.0))
