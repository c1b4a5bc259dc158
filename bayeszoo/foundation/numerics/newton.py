"""Newton's method with step halving for concave log densities, with a certificate of the maximum."""

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
"""Largest slope at the maximum, in nats per standard deviation of the Gaussian with the curvature there."""
LEAST_CURVATURE = 1e-12
"""Smallest eigenvalue of the curvature at the maximum, its diagonal scaled to 1: below, the maximum is not unique."""
ITERATIONS, HALVINGS = 200, 60
SUFFICIENT = 1e-4
"""Share of the predicted gain that a step must make (Armijo)."""
NEAR, FLATTER = 1e-3, 0.9
"""Predicted gain in nats below which a step is judged by the slope along it, and the share of it that may remain."""


class Derivatives(NamedTuple):
    """A log density at a point of shape (D,), its gradient (D,), and its curvature: the negative Hessian (D, D)."""

    value: float
    gradient: np.ndarray
    curvature: np.ndarray


@dataclass(frozen=True, eq=False)
class Peak:
    """The maximum of a concave log density at ``x`` (D,), and the log density after each iteration."""

    x: np.ndarray
    there: Derivatives
    trace: np.ndarray
    method: str = field(default="Newton's method", kw_only=True)

    @property
    def slope(self) -> float:
        """The largest component of the gradient, in nats per standard deviation of its coordinate."""
        return slope_of(self.there)

    def certificate(self) -> list[Check]:
        """Check that the point is the unique maximum: a concave density that is curved there has no other.

        The slope is in nats per standard deviation of the density's curvature; if that includes the curvature 1 of a
        prior N(0, 1), it is at most the slope in units of the prior.
        """
        return [
            at_most("slope", self.slope, MAX_SLOPE),
            at_least("curvature", self._least_curvature(), LEAST_CURVATURE),
        ]

    def _least_curvature(self) -> float:
        scale = np.sqrt(np.diag(self.there.curvature))
        return float(np.linalg.eigvalsh(self.there.curvature / np.outer(scale, scale))[0]) if len(scale) else 1.0


def climb(derivatives: Callable[[np.ndarray], Derivatives], start: np.ndarray) -> Peak:
    """Maximize a concave log density by Newton steps, each halved until it gains.

    Raises `NumericalError` if the density is not finite at the start, or not curved on the way: it has no unique
    maximum then.
    """
    x, current = start, derivatives(start)
    if not math.isfinite(current.value):
        raise NumericalError("the log density is not finite at the start: can the model give these data?", "not_finite")
    trace = [current.value]
    for _ in range(ITERATIONS):
        if slope_of(current) <= MAX_SLOPE / 10:
            break
        moved = _stepped(derivatives, x, current)
        if moved is None:
            break
        x, current = moved
        trace.append(current.value)
    return Peak(x, current, np.array(trace))


def _stepped(
    derivatives: Callable[[np.ndarray], Derivatives], x: np.ndarray, current: Derivatives
) -> tuple[np.ndarray, Derivatives] | None:
    """Return the point after a Newton step, or a half or a quarter of it ...; None if none gains or flattens."""
    try:
        step = scipy.linalg.cho_solve(scipy.linalg.cho_factor(current.curvature), current.gradient)
    except np.linalg.LinAlgError:
        raise NumericalError("the log density is not curved: it has no unique maximum", "no_maximum") from None
    promised = float(current.gradient @ step)
    for halving in range(HALVINGS):
        share = 0.5**halving
        moved = derivatives(x + share * step)
        is_higher = moved.value - current.value >= SUFFICIENT * share * promised
        # near the maximum, rounding hides the gain but not the slope along the step
        is_flatter = promised < NEAR and abs(float(moved.gradient @ step)) <= FLATTER * promised
        if is_flatter or (is_higher and promised >= NEAR):
            return x + share * step, moved
    return None


def slope_of(derivatives: Derivatives) -> float:
    """Return the largest component of the gradient, in nats per standard deviation by its own curvature."""
    scale = np.sqrt(np.diag(derivatives.curvature))
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(
            np.max(np.where(derivatives.gradient == 0, 0.0, np.abs(derivatives.gradient) / scale), initial=0.0)
        )
