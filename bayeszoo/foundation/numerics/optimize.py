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
_STEP = float(np.finfo(np.float64).eps) ** (1 / 3)
"""Step of a difference, as a share of the width of a function, at which rounding and truncation are alike."""
_SHARES = 1e-8, 1e-3
"""Steps as shares of the width, between which neither rounding nor truncation matters."""
_ASYMMETRY = 1e-6
"""Asymmetry of a matrix of differences, in units of the curvature, from which rounding is seen in it."""
_OCTAVES = 25
"""Powers of four, up and down, among which the width of a coordinate is sought."""
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
    if fall <= 1e-12 * abs(mode.value) and moved.distance < mode.distance:  # which has no units, unlike the slope
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
    """Return the negative Hessian of a log density at x, shape (D, D), from central differences of its gradient.

    By default steps are `_STEP` times the size of a coordinate, or 1; where that is no small part of its width, as of a
    mean near 1e6 known to 0.1, the steps are of the width. Where rounding of the data, as of outcomes near 1e9, makes
    the differences asymmetric, they are longer.
    """
    if steps is not None:
        hessian = _differences(gradient, x, np.broadcast_to(steps, x.shape))
    else:
        steps = _STEP * np.maximum(1.0, np.abs(x))
        hessian = _differences(gradient, x, steps)
        shares = _shares(hessian, steps)
        if unlike := [i for i, share in enumerate(shares) if not _SHARES[0] <= share <= _SHARES[1]]:
            steps[unlike] = [_step(gradient, x, i, steps[i]) for i in unlike]
            hessian = _differences(gradient, x, steps)
            shares = _shares(hessian, steps)
        rounding = np.max(np.abs(hessian - hessian.T) * np.outer(steps, steps) / np.outer(shares, shares))
        if rounding > _ASYMMETRY:
            hessian = _differences(gradient, x, steps * np.maximum(1.0, np.cbrt(rounding * shares) / shares))
    if not np.isfinite(hessian).all():
        raise NumericalError("the curvature of the log density at the mode is not finite", "not_finite")
    return (hessian + hessian.T) / 2


def _shares(hessian: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return each step as a share of the width of its coordinate; NaN where the log density curves upwards."""
    with np.errstate(invalid="ignore"):
        return np.asarray(steps * np.sqrt(np.diag(hessian)))


def _differences(gradient: Gradient, x: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the derivatives of the gradient, a row for each coordinate, as differences over two steps."""
    pairs = zip(np.diag(steps), steps, strict=True)
    return np.array([(gradient(x - h)[1] - gradient(x + h)[1]) / (2 * step) for h, step in pairs])


def _step(gradient: Gradient, x: np.ndarray, i: int, usual: float) -> float:
    """Return the step along a coordinate whose errors of rounding and truncation balance; the usual one if unknown.

    The width is that at which the log density falls by about half a nat.
    """
    height, size, axis = gradient(x)[0], max(1.0, abs(float(x[i]))), np.eye(1, len(x), i)[0]

    def fall(width: float) -> float:
        ends = gradient(x - width * axis)[0], gradient(x + width * axis)[0]
        return height - sum(ends) / 2 if np.isfinite(ends).all() else math.inf

    falls = {width: fall(width) for width in size * 4.0 ** np.arange(-_OCTAVES, _OCTAVES)}
    widths = [width / math.sqrt(2 * drop) for width, drop in falls.items() if 0.05 <= drop <= 2.0]
    if not widths:
        return usual
    width = min(widths)
    return _STEP * max(width, abs(float(x[i])) ** (1 / 3) * width ** (2 / 3))


def distance_checks(mode: Mode) -> list[Check]:
    """Check that a numerical maximum is stationary."""
    return [at_most("stationary_distance", mode.distance, MAX_DISTANCE)]
