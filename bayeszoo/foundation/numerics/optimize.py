"""Maximization of a log density with a gradient."""

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
"""The smallest and the largest value of each coordinate."""
UNBOUNDED: Bounds = (-math.inf, math.inf)
MAX_DISTANCE = 1e-5
"""Largest distance to a stationary point at which an optimizer may stop, in standard deviations of the curvature."""
NEAR = 1e-2
"""Distance to a maximum, in standard deviations, at which rounding may hide the gain of a Newton step."""
NOT_FINITE = "the log density is not finite at the start: can the model give these data?"
MOST_COORDINATES = 2000
"""Most coordinates D for which D x D matrices are used."""


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
    """Newton decrement, sqrt(g' H^-1 g): length of the next Newton step in standard deviations of the Gaussian with
    this curvature; infinite if the curvature is not positive definite, as at a saddle."""
    trace: np.ndarray
    """The log density after each iteration."""


def require_few(size: int, method: str) -> None:
    """Raise `NumericalError` if a method would need too large matrices."""
    if size > MOST_COORDINATES:
        raise NumericalError(
            f"{method} needs matrices of {size:,} x {size:,} numbers, at most {MOST_COORDINATES:,} are supported: "
            "use vb, gibbs or nuts, if the model has them",
            "too_large",
        )


def maximize(gradient: Gradient, start: np.ndarray) -> Mode:
    """Maximize a log density from ``start`` by L-BFGS, then by Newton steps."""
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
    """Improve a maximum by Newton steps within bounds, while they help; ``steps`` are those of `curvature`."""
    for _ in range(5):
        if mode.distance < 1e-3 * MAX_DISTANCE:
            break
        further = _newton_step(gradient, mode, bounds, steps)
        if further is None:
            break
        mode = further
    return mode


def _newton_step(gradient: Gradient, mode: Mode, bounds: Bounds, steps: object) -> Mode | None:
    """Return the point after a full Newton step; None if H is not positive definite, or nothing improves."""
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
    """Return the fall of a value along a step that rounding can explain, as for a sum of large numbers.

    It is twice the range of values over the first eighth of the step; for a real fall, as along a slope that ends in a
    kink, this is only a quarter of the fall.
    """
    return 2 * float(np.ptp([gradient(x + share * step)[0] for share in np.linspace(0, 1 / 8, 9)]))


def describe(gradient: Gradient, x: np.ndarray, trace: Sequence[float] = (), steps: Any = None) -> Mode:
    """Return ``x`` as a mode, with its distance to a maximum."""
    value, slope = gradient(x)
    precision = curvature(gradient, x, steps)
    try:
        distance = float(np.linalg.norm(scipy.linalg.solve(np.linalg.cholesky(precision), slope)))
    except np.linalg.LinAlgError:
        distance = math.inf
    return Mode(x, value, precision, float(np.max(np.abs(slope))), distance, np.array(trace))


def curvature(gradient: Gradient, x: np.ndarray, steps: Any = None) -> np.ndarray:
    """Return the negative Hessian of a log density at x, shape (D, D), from central differences of its gradient."""
    steps = 6e-6 * np.maximum(1.0, np.abs(x)) if steps is None else np.broadcast_to(steps, x.shape)
    rows = [
        (gradient(x - h)[1] - gradient(x + h)[1]) / (2 * step) for h, step in zip(np.diag(steps), steps, strict=True)
    ]
    hessian = np.array(rows)
    if not np.isfinite(hessian).all():
        raise NumericalError("the curvature of the log density at the mode is not finite", "not_finite")
    return (hessian + hessian.T) / 2


def distance_checks(mode: Mode) -> list[Check]:
    """Check that a numerical maximum is stationary."""
    return [at_most("stationary_distance", mode.distance, MAX_DISTANCE)]
