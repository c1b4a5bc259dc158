"""Rows of groups with Gaussian random intercepts, which are integrated out group by group. Numba.

With z the intercept of a group in units of its standard deviation, the integrand is N(z | 0, 1) times the densities of
the group's rows at ``eta + sd z``. Its log is concave, with a curvature of at least 1: the mode is found by Newton's
method, the integrand is cut off 38 nats below it, and summed at equal distances (the trapezoidal rule converges
exponentially here), halved until the sums of all points and of every other one agree to 1e-6. The error of the former
is about the square of that. Derivatives in weights and sd are means over z at the same points (Louis 1982).

Rows are sorted by group: those of group j are ``starts[j]`` to ``starts[j + 1]``. Sizes of counts are in ``eta``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayeszoo.likelihoods.compiling import loop
from bayeszoo.likelihoods.loops.glm import LOGIT

DEPTH = 38.0
"""Nats below the mode at which an integrand is cut off."""
REACH = math.sqrt(2 * DEPTH)
"""The largest distance from the mode: the log integrand falls at least as fast as that of N(z | 0, 1)."""
FIRST_STEP = 0.55
"""First step, in standard deviations of the Gaussian with the curvature at the mode."""
AGREE, HALVINGS, CLIMBS = 1e-6, 14, 200
ENDED = 1e-3
"""Twice the nats by which the point that a climb ends at may be lower than the mode."""
MOST = 2**15
"""Most points on one side: with a large standard deviation, rows of equal outcomes become a step in z, which must be
resolved. For sd up to 5,000 in log odds the error of integrals is 1e-7, up to 20,000 it is 1e-5."""
STEPS = 60
_LOG_ROOT = math.log(2 * math.pi) / 2


@loop
def _row(eta: float, outcome: float, size: float, link: int) -> Any:
    """Return the log density of a row without constants, its slope in eta, and minus its second derivative."""
    if link == LOGIT:
        tail = math.exp(-abs(eta))
        less_likely = tail / (1 + tail)
        curvature = size * less_likely / (1 + tail)
        if eta < 0:
            return outcome * eta - size * math.log1p(tail), outcome - size * less_likely, curvature
        failures = size - outcome
        return -failures * eta - size * math.log1p(tail), size * less_likely - failures, curvature
    mean = math.exp(eta)
    return outcome * eta - mean, outcome - mean, mean


@loop
def _at(z: float, eta: np.ndarray, sd: float, outcome: np.ndarray, size: np.ndarray, link: int) -> Any:
    """Return the log of a group's integrand at z, its slope in z, and minus its second derivative."""
    value, slope, curvature = -z * z / 2 - _LOG_ROOT, 0.0, 0.0
    for i in range(len(eta)):
        term, first, second = _row(eta[i] + sd * z, outcome[i], size[i], link)
        value, slope, curvature = value + term, slope + first, curvature + second
    return value, sd * slope - z, 1 + sd * sd * curvature


@loop
def _mode(eta: np.ndarray, sd: float, outcome: np.ndarray, size: np.ndarray, link: int) -> Any:
    """Return the mode of a group's integrand, its log there and the curvature; the log is -inf on overflow.

    Far above a count, its log density falls exponentially, and a Newton step takes the predictor down by 1 only. The
    climb therefore begins where no mean exceeds its count by more than 1, if that is higher than z = 0. The log is NaN
    if the climb did not end.
    """
    z, lower = 0.0, 0.0
    value, slope, curvature = _at(z, eta, sd, outcome, size, link)
    if link != LOGIT and sd > 0:
        for i in range(len(eta)):
            lower = min(lower, (math.log(outcome[i] + 1) - eta[i]) / sd)
        below = _at(lower, eta, sd, outcome, size, link)
        if below[0] > value:
            z, value, slope, curvature = lower, below[0], below[1], below[2]
    for _ in range(CLIMBS):
        if not value > -math.inf or abs(slope) <= 1e-9 * math.sqrt(curvature):
            break
        step = slope / curvature
        proposed = _at(z + step, eta, sd, outcome, size, link)
        while not proposed[0] >= value - 1e-12 * (1 + abs(value)):
            step /= 2
            proposed = _at(z + step, eta, sd, outcome, size, link)
        z, value, slope, curvature = z + step, proposed[0], proposed[1], proposed[2]
    return z, math.nan if slope * slope > ENDED * curvature else value, curvature


@loop
def _end(
    side: float,
    z: float,
    top: float,
    scale: float,
    eta: np.ndarray,
    sd: float,
    outcome: np.ndarray,
    size: np.ndarray,
    link: int,
) -> Any:
    """Return the distance on one side of the mode at which the integrand is negligible."""
    distance = min(REACH, REACH * scale)
    for _ in range(CLIMBS):
        drop = top - _at(z + side * distance, eta, sd, outcome, size, link)[0]
        if drop > 2 * DEPTH:
            distance *= 0.7
        elif drop < DEPTH and distance < REACH:
            distance = min(REACH, 1.3 * distance)
        else:
            break
    return distance


@loop
def _points(eta: np.ndarray, sd: float, outcome: np.ndarray, size: np.ndarray, link: int) -> Any:
    """Return mode, log at the mode, first step, and the numbers of steps to the left and right."""
    z, top, curvature = _mode(eta, sd, outcome, size, link)
    if not top > -math.inf:
        return z, top, 1.0, 0, 0
    scale = 1 / math.sqrt(curvature)
    step = FIRST_STEP * scale
    left = _end(-1.0, z, top, scale, eta, sd, outcome, size, link)
    right = _end(1.0, z, top, scale, eta, sd, outcome, size, link)
    step = max(step, max(left, right) / MOST)
    return z, top, step, 2 * math.ceil(left / step / 2), 2 * math.ceil(right / step / 2)


@loop
def _steps(eta: np.ndarray, sd: float, outcome: np.ndarray, size: np.ndarray, link: int) -> Any:
    """Return mode, log at the mode, log integral, a step that is fine enough, and its steps to the left and right."""
    z, top, step, left, right = _points(eta, sd, outcome, size, link)
    if not top > -math.inf:
        return z, top, top, step, left, right
    total, every_other = 0.0, 0.0
    for k in range(-left, right + 1):
        height = math.exp(_at(z + k * step, eta, sd, outcome, size, link)[0] - top)
        total += height
        every_other += height if k % 2 == 0 else 0.0
    for _ in range(HALVINGS):
        if abs(total - 2 * every_other) <= AGREE * total or left + right > MOST:
            break
        step, left, right, every_other = step / 2, 2 * left, 2 * right, total
        for k in range(-left + 1, right, 2):
            total += math.exp(_at(z + k * step, eta, sd, outcome, size, link)[0] - top)
    return z, top, top + math.log(total * step), step, left, right


@loop
def intercepts_values(
    eta: np.ndarray, sd: np.ndarray, outcome: np.ndarray, size: np.ndarray, starts: np.ndarray, link: int
) -> Any:
    """Return the log integral of each group (P, J) for predictors (P, n) and standard deviations (P,)."""
    values = np.empty((len(sd), len(starts) - 1))
    for p in range(len(sd)):
        for j in range(len(starts) - 1):
            a, b = starts[j], starts[j + 1]
            values[p, j] = _steps(eta[p, a:b], sd[p], outcome[a:b], size[a:b], link)[2]
    return values


@loop
def intercepts_heights(
    z: np.ndarray, eta: np.ndarray, sd: np.ndarray, outcome: np.ndarray, size: np.ndarray, starts: np.ndarray, link: int
) -> Any:
    """Return the log of each group's integrand at z (P, J), the intercept in units of sd."""
    heights = np.empty(z.shape)
    for p in range(len(sd)):
        for j in range(len(starts) - 1):
            a, b = starts[j], starts[j + 1]
            heights[p, j] = _at(z[p, j], eta[p, a:b], sd[p], outcome[a:b], size[a:b], link)[0]
    return heights


@loop
def intercepts_derivatives(
    w: np.ndarray,
    sd: float,
    design: np.ndarray,
    offset: np.ndarray,
    outcome: np.ndarray,
    size: np.ndarray,
    starts: np.ndarray,
    link: int,
    curved: bool,
) -> Any:
    """Return the log integral of all groups, its slopes in the weights (T,) and in sd, and its curvature (T, T).

    The predictors are ``offset + design @ w``; without ``curved`` the curvature is 0.
    """
    terms = design.shape[1]
    design = np.ascontiguousarray(design)
    eta = offset + design @ np.ascontiguousarray(w)
    value, slope_sd = 0.0, 0.0
    slopes, curvature = np.zeros(len(eta)), np.zeros((terms, terms))
    for j in range(len(starts) - 1):
        a, b = starts[j], starts[j + 1]
        rows = eta[a:b], sd, outcome[a:b], size[a:b], link
        z, top, step, left, right = _points(*rows)
        if not top > -math.inf:
            return -math.inf, np.zeros(terms), 0.0, np.zeros((terms, terms))
        for _ in range(HALVINGS):
            sums = _sums(z, top, step, left, right, *rows, design[a:b], curved)
            if abs(sums[0] - 2 * sums[1]) <= AGREE * sums[0] or left + right > MOST:
                break
            step, left, right = step / 2, 2 * left, 2 * right
        total, _, of_sd, of_rows, bend, mean, square = sums
        value += top + math.log(total * step)
        slope_sd += of_sd / total
        slopes[a:b] = of_rows / total
        if curved:
            curvature += bend / total - square / total + np.outer(mean, mean) / total**2
    return value, design.T @ slopes, slope_sd, curvature


@loop
def _sums(
    z: float,
    top: float,
    step: float,
    left: int,
    right: int,
    eta: np.ndarray,
    sd: float,
    outcome: np.ndarray,
    size: np.ndarray,
    link: int,
    design: np.ndarray,
    curved: bool,
) -> Any:
    """Return sums over the points, weighted by the integrand over its height at the mode, for a group of n rows.

    They are of 1, of 1 at every other point, of the slope in sd, of slopes in the predictors (n,), and with ``curved``
    of the curvature of the rows (T, T), of their slopes in the weights (T,), and of products of these slopes.
    """
    n, terms = design.shape
    total, every_other, of_sd, of_rows = 0.0, 0.0, 0.0, np.zeros(n)
    first, second, bends = np.empty(n), np.empty(n), np.zeros(n)
    score, mean, square = np.empty(terms), np.zeros(terms), np.zeros((terms, terms))
    for k in range(-left, right + 1):
        point = z + k * step
        height, slope = -point * point / 2 - _LOG_ROOT - top, 0.0
        for i in range(n):
            term, first[i], second[i] = _row(eta[i] + sd * point, outcome[i], size[i], link)
            height, slope = height + term, slope + first[i]
        mass = math.exp(height)
        total += mass
        every_other += mass if k % 2 == 0 else 0.0
        of_sd += mass * point * slope
        for i in range(n):
            of_rows[i] += mass * first[i]
        if curved:
            _add_products(mass, first, second, design, score, bends, mean, square)
    return total, every_other, of_sd, of_rows, design.T @ (design * bends.reshape(-1, 1)), mean, square


@loop
def _add_products(
    mass: float,
    first: np.ndarray,
    second: np.ndarray,
    design: np.ndarray,
    score: np.ndarray,
    bends: np.ndarray,
    mean: np.ndarray,
    square: np.ndarray,
) -> None:
    """Add a point's terms of the curvature: that of each row, the slope in the weights, and its products."""
    score[:] = 0.0
    for i in range(len(first)):
        bends[i] += mass * second[i]
        for t in range(len(score)):
            score[t] += first[i] * design[i, t]
    for t in range(len(score)):
        mean[t] += mass * score[t]
        for s in range(len(score)):
            square[t, s] += mass * score[t] * score[s]


@loop
def intercepts_moments(
    eta: np.ndarray, sd: np.ndarray, outcome: np.ndarray, size: np.ndarray, starts: np.ndarray, link: int
) -> Any:
    """Return means and standard deviations of each group's intercept in units of sd, (P, J), given its rows."""
    points, groups = len(sd), len(starts) - 1
    means, sds = np.empty((points, groups)), np.empty((points, groups))
    for p in range(points):
        for j in range(groups):
            a, b = starts[j], starts[j + 1]
            predictors, y, n = eta[p, a:b], outcome[a:b], size[a:b]
            z, _, total, step, left, right = _steps(predictors, sd[p], y, n, link)
            mean, square = 0.0, 0.0
            for k in range(-left, right + 1):
                mass = math.exp(_at(z + k * step, predictors, sd[p], y, n, link)[0] - total) * step
                mean += mass * k * step
                square += mass * (k * step) ** 2
            means[p, j], sds[p, j] = z + mean, math.sqrt(max(square - mean * mean, 0.0))
    return means, sds


@loop
def _table(eta: np.ndarray, sd: float, outcome: np.ndarray, size: np.ndarray, link: int) -> Any:
    """Return start and width of the cells of a group's density, with density, derivatives and cumulative mass."""
    z, top, _, step, left, right = _steps(eta, sd, outcome, size, link)
    begin, width, cells = z - left * step, step / 2, 2 * (left + right)
    density, slope, bend = np.empty(cells + 1), np.empty(cells + 1), np.empty(cells + 1)
    below = np.zeros(cells + 1)
    for k in range(cells + 1):
        value, first, second = _at(begin + k * width, eta, sd, outcome, size, link)
        density[k] = math.exp(value - top)
        slope[k], bend[k] = density[k] * first, density[k] * (first * first - second)
        if k:
            ends = width / 2 * (density[k - 1] + density[k]) + width**2 / 10 * (slope[k - 1] - slope[k])
            below[k] = below[k - 1] + max(ends + width**3 / 120 * (bend[k - 1] + bend[k]), 0.0)
    total = below[cells]
    return begin, width, density / total, slope / total, bend / total, below / total


@loop
def _within(t: float, width: float, k: int, density: np.ndarray, slope: np.ndarray, bend: np.ndarray) -> Any:
    """Return the integral, up to a share t of a cell, of the quintic through both ends, and its value there."""
    a, b = density[k], density[k + 1]
    da, db, ca, cb = slope[k] * width, slope[k + 1] * width, bend[k] * width**2, bend[k + 1] * width**2
    c3 = 10 * (b - a) - 6 * da - 4 * db - 1.5 * ca + 0.5 * cb
    c4 = -15 * (b - a) + 8 * da + 7 * db + 1.5 * ca - cb
    c5 = 6 * (b - a) - 3 * da - 3 * db - 0.5 * ca + 0.5 * cb
    value = a + t * (da + t * (ca / 2 + t * (c3 + t * (c4 + t * c5))))
    integral = t * (a + t * (da / 2 + t * (ca / 6 + t * (c3 / 4 + t * (c4 / 5 + t * c5 / 6)))))
    return width * integral, value


@loop
def intercepts_cdf(
    x: np.ndarray, eta: np.ndarray, sd: np.ndarray, outcome: np.ndarray, size: np.ndarray, starts: np.ndarray, link: int
) -> Any:
    """Return the probability that each group's intercept, in units of sd, is at most x (P, J)."""
    below = np.empty(x.shape)
    for p in range(len(sd)):
        for j in range(len(starts) - 1):
            a, b = starts[j], starts[j + 1]
            begin, width, density, slope, bend, mass = _table(eta[p, a:b], sd[p], outcome[a:b], size[a:b], link)
            place = min(max((x[p, j] - begin) / width, 0.0), len(mass) - 1.0)
            k = min(int(place), len(mass) - 2)
            below[p, j] = mass[k] + _within(place - k, width, k, density, slope, bend)[0]
    return below


@loop
def intercepts_quantiles(
    q: np.ndarray, eta: np.ndarray, sd: np.ndarray, outcome: np.ndarray, size: np.ndarray, starts: np.ndarray, link: int
) -> Any:
    """Return the quantiles of levels q (P, J) of each group's intercept in units of sd."""
    places = np.empty(q.shape)
    for p in range(len(sd)):
        for j in range(len(starts) - 1):
            a, b = starts[j], starts[j + 1]
            begin, width, density, slope, bend, mass = _table(eta[p, a:b], sd[p], outcome[a:b], size[a:b], link)
            k = min(max(np.searchsorted(mass, q[p, j], side="right") - 1, 0), len(mass) - 2)
            while k > 0 and not mass[k + 1] > mass[k]:
                k -= 1
            low, high, t = 0.0, 1.0, 0.5
            for _ in range(STEPS):
                integral, value = _within(t, width, k, density, slope, bend)
                excess = mass[k] + integral - q[p, j]
                low, high = (t, high) if excess < 0 else (low, t)
                newton = t - excess / (width * value) if value > 0 else -1.0
                moved = newton if low < newton < high else (low + high) / 2
                if abs(excess) <= 1e-15 or abs(moved - t) <= 1e-14:
                    break
                t = moved
            places[p, j] = begin + (k + t) * width
    return places
