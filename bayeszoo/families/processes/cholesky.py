"""The log density of rows of a process at one point by a Cholesky factor, n^3 / 3 operations, and its gradient, n^3.

With C = a^2 K + s^2 I and u = C^-1 y, the derivative in a parameter is (u' dC u - tr C^-1 dC) / 2; Rasmussen and
Williams 2006, equation 5.9. The derivative in the log amplitude needs no other matrix, as a^2 K = C - s^2 I.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from bayeszoo.families.processes.kernels import Expression
from bayeszoo.foundation.numerics.constants import LOG_2_PI

Point = tuple[float, float, float]
"""Amplitude, length and sigma."""


def log_density(kernel: Expression, tables: list[list[np.ndarray]], y: np.ndarray, point: Point, least: float) -> float:
    """Return the log density of rows ``y`` with mean 0; -inf if the condition number is above 1 / ``least``."""
    amplitude, length, sigma = point
    factor = _factor(np.asarray(kernel.correlations(tables, length)), amplitude, sigma, least)
    if factor is None:
        return -math.inf
    z = scipy.linalg.solve_triangular(factor, y, lower=True, check_finite=False)
    return _height(factor, float(z @ z))


def with_slopes(
    kernel: Expression, tables: list[list[np.ndarray]], y: np.ndarray, point: Point, least: float
) -> tuple[float, np.ndarray]:
    """Return the log density, and its derivatives in the logs of amplitude, length and sigma; 0 if it is -inf."""
    correlations, by_length = kernel.with_slope(tables, point[1])
    return _with_slopes(correlations, [by_length], y, (point[0], point[2]), least)


def with_slopes_of_lengths(
    kernel: Expression, places: np.ndarray, y: np.ndarray, point: tuple[float, np.ndarray, float], least: float
) -> tuple[float, np.ndarray]:
    """Return the log density with a length for each feature, and its derivatives in the logs of all parameters.

    The parameters are amplitude, lengths and sigma. The kernel depends on distances, so that a feature's share of the
    derivative is its share of the squared distance.
    """
    amplitude, lengths, sigma = point
    squares = [np.square(column[:, None] - column) for column in (places / lengths).T]
    total = np.add.reduce(squares)
    correlations, slope = kernel.with_slope([[total for _ in term] for term in kernel.terms], 1.0)
    by_distance = np.divide(slope, total, out=np.zeros_like(total), where=total > 0)
    return _with_slopes(correlations, [by_distance * square for square in squares], y, (amplitude, sigma), least)


def _with_slopes(
    correlations: np.ndarray, by_lengths: list[np.ndarray], y: np.ndarray, sds: tuple[float, float], least: float
) -> tuple[float, np.ndarray]:
    """Return the log density and its derivatives, given the derivatives of the correlations in log lengths."""
    amplitude, sigma = sds
    factor = _factor(correlations, amplitude, sigma, least)
    if factor is None:
        return -math.inf, np.zeros(2 + len(by_lengths))
    u = scipy.linalg.cho_solve((factor, True), y, check_finite=False)
    inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1)  # the lower triangle; the upper one stays 0
    trace, square = float(np.trace(inverse)), float(u @ u)
    of_lengths = [u @ by @ u - (2 * np.vdot(inverse, by) - np.diag(inverse) @ np.diag(by)) for by in by_lengths]
    noise = sigma**2 * (square - trace)
    slopes = [float(u @ y) - len(y) - noise, *(amplitude**2 * slope / 2 for slope in of_lengths), noise]
    return _height(factor, float(u @ y)), np.array(slopes)


def _height(factor: np.ndarray, squares: float) -> float:
    n = len(factor)
    return -squares / 2 - float(np.sum(np.log(np.diag(factor)))) - n / 2 * LOG_2_PI


def _factor(correlations: np.ndarray, amplitude: float, sigma: float, least: float) -> np.ndarray | None:
    """Return the lower Cholesky factor of the covariance, 0 above; None if it is singular up to rounding."""
    covariance = np.asfortranarray(amplitude**2 * correlations)
    covariance.flat[:: len(covariance) + 1] += sigma**2
    norm = float(np.max(np.sum(np.abs(covariance), axis=0), initial=0.0))
    factor, info = scipy.linalg.lapack.dpotrf(covariance, lower=1, clean=1, overwrite_a=1)
    if info or not math.isfinite(norm):
        return None
    share, _ = scipy.linalg.lapack.dpocon(factor, norm, uplo="L")
    return factor if share > least else None
