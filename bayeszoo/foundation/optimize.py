"""Maxima of a log density that comes with its gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import Check, at_most

Gradient = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""A log density and its gradient at a flat point of shape (D,)."""

Bounds = tuple[Any, Any]
"""The least and the largest value of each coordinate."""
UNBOUNDED: Bounds = (-math.inf, math.inf)
MAX_DISTANCE = 1e-5
"""How far from a stationary point an optimizer may stop, in units of the curvature's standard deviation."""
NEAR = 1e-2
"""Standard deviations to a maximum from where the gain of a Newton step may drown in the rounding of the value."""
NOT_FINITE = "the log density is not finite at the start: can the model give these data?"
MOST_COORDINATES = 2000
"""Coordinates D up to which matrices of D x D are worked with."""


@dataclass(frozen=True)
class Mode:
    """A maximum of a log density in D unconstrained coordinates, found numerically."""

    x: np.ndarray
    value: float
    precision: np.ndarray
    """The negative Hessian at x, shape (D, D)."""
    gradient_norm: float
    """Largest absolute component of the gradient at x."""
    distance: float
    """Newton decrement, sqrt(g' H^-1 g): how many standard deviations of the Gaussian with this curvature the next
    Newton step would move; infinite where the curvature is not positive definite, as on a saddle."""
    trace: np.ndarray
    """The log density after each iteration."""


def require_few(size: int, method: str) -> None:
    """Raise `NumericalError` where a method would need matrices that are too large."""
    if size > MOST_COORDINATES:
        raise NumericalError(
            f"{method} works with matrices of {size:,} x {size:,} numbers here, and {MOST_COORDINATES:,} is the most: "
            "use vb, gibbs or nuts, if the model has them",
            "too_large",
        )


def maximize(gradient: Gradient, start: np.ndarray) -> Mode:
    """Climb a log density from ``start`` by L-BFGS, then polish with Newton steps."""
    trace: list[float] = []

    def descend(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = gradient(x)
        return (-value, -slope) if math.isfinite(value) else (math.inf, np.zeros(len(x)))  # the search turns back

    def note(intermediate_result: Any) -> None:
        trace.append(-float(intermediate_result.fun))

    if not math.isfinite(descend(start)[0]):
        raise NumericalError(NOT_FINITE, "not_finite")
    options = {"gtol": 1e-9, "ftol": 1e-15, "maxiter": 5000}
    x = scipy.optimize.minimize(descend, start, jac=True, method="L-BFGS-B", callback=note, options=options).x
    return polished(gradient, describe(gradient, x, trace))


def polished(gradient: Gradient, mode: Mode, bounds: Bounds = UNBOUNDED, steps: object = None) -> Mode:
    """Go on from near a maximum by Newton steps, within bounds, as long as they help; ``steps`` are `curvature`'s."""
    for _ in range(5):
        if mode.distance < 1e-3 * MAX_DISTANCE:
            break
        further = _newton_step(gradient, mode, bounds, steps)
        if further is None:
            break
        mode = further
    return mode


def _newton_step(gradient: Gradient, mode: Mode, bounds: Bounds, steps: object) -> Mode | None:
    """Return where a full Newton step leads; None where the curvature is no maximum's, or the slope gets no smaller."""
    try:
        factor = scipy.linalg.cho_factor(mode.precision)
        step = scipy.linalg.cho_solve(factor, gradient(mode.x)[1])
        x = np.clip(mode.x + step, *bounds)
        moved = describe(gradient, x, [*mode.trace, gradient(x)[0]], steps)
    except (np.linalg.LinAlgError, NumericalError):
        return None
    fall = mode.value - moved.value
    if fall <= 1e-12 * abs(mode.value) and moved.gradient_norm < mode.gradient_norm:
        return moved
    is_nearer = mode.distance < NEAR and moved.distance < mode.distance / 2
    return moved if is_nearer and fall <= _rounding(gradient, mode.x, step) else None


def _rounding(gradient: Gradient, x: np.ndarray, step: np.ndarray) -> float:
    """Return by how much a value may fall along a step because it is rounded, as where it is a sum of large numbers.

    It is twice the range of values over the first eighth of the step: if it is no rounding, as along a slope that a
    kink ends, that is a quarter of the fall.
    """
    return 2 * float(np.ptp([gradient(x + share * step)[0] for share in np.linspace(0, 1 / 8, 9)]))


def describe(gradient: Gradient, x: np.ndarray, trace: Sequence[float] = (), steps: Any = None) -> Mode:
    """Measure how near ``x`` is to a maximum."""
    value, slope = gradient(x)
    precision = curvature(gradient, x, steps)
    try:
        distance = float(np.linalg.norm(scipy.linalg.solve(np.linalg.cholesky(precision), slope)))
    except np.linalg.LinAlgError:
        distance = math.inf
    return Mode(x, value, precision, float(np.max(np.abs(slope))), distance, np.array(trace))


def curvature(gradient: Gradient, x: np.ndarray, steps: Any = None) -> np.ndarray:
    """Return the negative Hessian of a log density at x, shape (D, D), by central differences of its gradient."""
    steps = 6e-6 * np.maximum(1.0, np.abs(x)) if steps is None else np.broadcast_to(steps, x.shape)
    rows = [
        (gradient(x - h)[1] - gradient(x + h)[1]) / (2 * step) for h, step in zip(np.diag(steps), steps, strict=True)
    ]
    hessian = np.array(rows)
    if not np.isfinite(hessian).all():
        raise NumericalError("the curvature of the log density at the mode is not finite", "not_finite")
    return (hessian + hessian.T) / 2


def distance_checks(mode: Mode) -> list[Check]:
    """Check that a numerical maximum is one."""
    return [at_most("stationary_distance", mode.distance, MAX_DISTANCE)]
