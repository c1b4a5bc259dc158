"""The posterior mode under Laplace priors: L1-penalized least squares by coordinate descent, with its certificate.

Coordinates theta of length D have the negative log posterior, up to a constant,

    f(theta) = theta' G theta / 2 - g' theta + sum_j l1_j |theta_j| + sum_j l2_j (theta_j - m_j)^2 / 2

with G the Gram matrix X'X / sigma^2 and g = X'y / sigma^2, the data's precision and its pull; l1_j = 1 / b_j for a
prior Laplace(0, b_j), l2_j and m_j the precision and the mean of a Gaussian one; all 0 for a flat prior.

Tibshirani (1996), Regression shrinkage and selection via the lasso; Park & Casella (2008), The Bayesian lasso.
Friedman, Hastie & Tibshirani (2010), Regularization paths for generalized linear models via coordinate descent. Lee,
Battle, Raina & Ng (2007), Efficient sparse coding algorithms: the solution on the support. Tibshirani (2013), The lasso
problem and uniqueness.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.threads import one_thread

LIMIT = 1e-6
"""A solution whose violation is above this is not one."""

_EPS = float(np.finfo(np.float64).eps)

_SWEEPS, _SOLVES = 10, 10
"""Sweeps over the support, and solutions of the equations on it, before the next sweep over all coordinates."""


@dataclass(frozen=True)
class Solution:
    """What `coordinate_descent` found.

    Parameters
    ----------
    theta : ndarray of shape (D,)
        Coordinates outside of the support are exactly 0.
    violation : float
        By `kkt_violation`; the solution is not one where it is above `LIMIT`.
    sweeps : int
        Sweeps made, over all coordinates or over the support.
    active : ndarray of bool, of shape (D,)
        The support: where theta is not 0.
    unique : bool
        Whether the solution is known to be the only one: the Gram matrix of all columns whose pull reaches their
        penalty is not singular (Tibshirani 2013, lemma 2).
    """

    theta: np.ndarray
    violation: float
    sweeps: int
    active: np.ndarray
    unique: bool


@dataclass(frozen=True)
class Path:
    """Solutions for decreasing multipliers of the L1 penalty.

    Parameters
    ----------
    multipliers, violations : ndarray of shape (K,)
        The latter by `kkt_violation`.
    thetas : ndarray of shape (K, D)
    """

    multipliers: np.ndarray
    thetas: np.ndarray
    violations: np.ndarray


@dataclass(frozen=True)
class _Problem:
    """Minimize phi' gram phi / 2 - pull' phi + sum_j penalty_j |phi_j|, where the diagonal of gram is 1."""

    gram: np.ndarray
    pull: np.ndarray
    penalty: np.ndarray

    def on(self, support: np.ndarray) -> _Problem:
        """Return the problem of these coordinates, the others being 0."""
        return _Problem(self.gram[np.ix_(support, support)], self.pull[support], self.penalty[support])

    def slope(self, phi: np.ndarray) -> np.ndarray:
        """Return the derivative of all but the penalty."""
        return self.gram @ phi - self.pull

    def rounding(self, phi: np.ndarray) -> np.ndarray:
        """Return a bound on what rounding does to the slope."""
        return 8 * _EPS * (np.abs(self.gram) @ np.abs(phi) + np.abs(self.pull))


def coordinate_descent(
    gram: Any,
    target: Any,
    l1: Any,
    l2: Any = 0.0,
    mean: Any = 0.0,
    start: Any = None,
    max_sweeps: int = 10_000,
    tolerance: float = 1e-10,
) -> Solution:
    """Minimize f, the negative log posterior above.

    Parameters
    ----------
    gram : array_like
        G, of shape (D, D), symmetric and positive semidefinite.
    target : array_like
        g, of shape (D,), in the range of G.
    l1, l2, mean : array_like
        Numbers, or of shape (D,): L1 penalties >= 0, precisions >= 0 and means of Gaussian priors.
    start : array_like, optional
        Where to begin, of shape (D,); by default at 0.
    max_sweeps, tolerance : int and float, optional
        Sweeps after which, or up to 10 more, one gives up; and the violation sought, or as little as rounding allows.

    Raises
    ------
    InputError
        When shapes or signs are wrong, a number is not finite, or the matrix cannot be positive semidefinite.
    NumericalError
        When there is no minimum, or none that is unique whatever the data: coordinates without a penalty whose Gram
        matrix is singular.

    Notes
    -----
    Sweeps over all coordinates alternate with sweeps over the support, and with the solution of the linear equations
    on it: the way there is followed to the lowest point on it, which may have other signs, so f never rises. Columns
    are scaled to unit diagonal first, so that neither the sweeps nor their end depend on units. Without a start the
    penalties are first taken larger and halved step by step.

    The violation cannot be less than rounding makes it, about 1e-15 times the largest pull divided by the smallest
    penalty: penalties 1e-9 of the pull and less leave it above `LIMIT`.
    """
    problem, scale = _scaled(gram, target, l1, l2, mean)
    phi = _vector(0.0 if start is None else start, len(scale), "start") * scale
    halvings, sweeps = math.log2(max(_largest_share(problem), 1.0)) if start is None else 0.0, 0
    with one_thread():
        for times in range(int(halvings), max(int(halvings) - 40, 0), -1):  # what is left then is lost in rounding
            stage = replace(problem, penalty=2.0**times * problem.penalty)
            sweeps += _minimize(stage, phi, max_sweeps - sweeps, 0.01)
        sweeps += _minimize(problem, phi, max_sweeps - sweeps, tolerance)
    theta = phi / scale
    violation = kkt_violation(gram, target, l1, l2, mean, theta)
    return Solution(theta, violation, sweeps, theta != 0, _is_unique(problem, phi))


def kkt_violation(gram: Any, target: Any, l1: Any, l2: Any, mean: Any, theta: Any) -> float:
    """Return by how much theta misses the conditions of a minimum of f, relative to the penalties.

    Parameters
    ----------
    gram, target, l1, l2, mean, theta : array_like
        As for `coordinate_descent`; theta of shape (D,).

    Returns
    -------
    float
        The largest of, with s the derivative of all of f but the L1 penalty:

        - abs(s_j / l1_j + sign(theta_j)) where theta_j is not 0,
        - max(0, abs(s_j) / l1_j - 1) where it is,
        - abs(s_j) / sqrt(G_jj + l2_j) where l1_j = 0: how many conditional standard deviations theta_j is off.

        None of them depends on units. As f is convex it is 0 at the minimum, and nowhere else.
    """
    gram, target, l1, l2, mean = _checked(gram, target, l1, l2, mean)
    theta = _vector(theta, len(target), "theta")
    slope, root = gram @ theta - target + l2 * (theta - mean), np.sqrt(np.maximum(np.diag(gram) + l2, 1e-300))
    return float(np.max(_misses(slope / root, l1 / root, theta), initial=0.0))


def largest_penalty(gram: Any, target: Any, l1_pattern: Any = 1, l2: Any = 0.0, mean: Any = 0.0) -> float:
    """Return the smallest multiplier of the L1 penalties at which all coordinates that have one are 0.

    Parameters
    ----------
    gram, target, l1_pattern, l2, mean : array_like
        As for `coordinate_descent`; the pattern, its l1, is multiplied.

    Raises
    ------
    InputError, NumericalError
        As `coordinate_descent`.
    """
    return _largest_share(_scaled(gram, target, l1_pattern, l2, mean)[0])


def path(
    gram: Any, target: Any, l1_pattern: Any = 1, multipliers: Any = None, n: int = 50, ratio: float = 1e-3, **rest: Any
) -> Path:
    """Minimize f for a decreasing sequence of L1 penalties, each from the solution before.

    Parameters
    ----------
    gram, target, l1_pattern : array_like
        As for `largest_penalty`.
    multipliers : array_like, optional
        Of shape (K,), > 0; taken in decreasing order. By default geometric, from `largest_penalty` down.
    n, ratio : int and float, optional
        How many multipliers the default has, and the last divided by the first.
    **rest
        ``l2``, ``mean``, ``max_sweeps`` and ``tolerance`` of `coordinate_descent`.

    Raises
    ------
    InputError, NumericalError
        As `coordinate_descent`; also when no multipliers are given and all penalized coordinates are 0 at any.
    """
    if multipliers is None:
        top = largest_penalty(gram, target, l1_pattern, rest.get("l2", 0.0), rest.get("mean", 0.0))
        if top == 0:
            raise NumericalError("all penalized coefficients are 0 at any penalty: give the multipliers")
        multipliers = top * np.geomspace(1.0, ratio, n)
    grid = np.sort(np.asarray(multipliers, dtype=np.float64))[::-1]
    found: list[Solution] = []
    for l1 in np.multiply.outer(grid, np.asarray(l1_pattern, dtype=np.float64)):
        start = found[-1].theta if found else None
        found.append(coordinate_descent(gram, target, l1, start=start, **rest))
    return Path(grid, np.array([each.theta for each in found]), np.array([each.violation for each in found]))


def _misses(slope: np.ndarray, penalty: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """By how much each coordinate misses its condition, see `kkt_violation`."""
    has = penalty > 0
    pull = np.abs(slope / np.where(has, penalty, 1.0) + has * np.sign(theta))
    return np.where(has & (theta == 0), np.maximum(pull - 1, 0.0), pull)


def _largest_share(problem: _Problem) -> float:
    """Return the largest pull in units of its penalty, where all coordinates that have one are 0."""
    free, phi = np.flatnonzero(problem.penalty == 0), np.zeros_like(problem.pull)
    phi[free] = np.linalg.solve(problem.on(free).gram, problem.pull[free])
    shares = np.abs(problem.slope(phi)) / np.where(problem.penalty > 0, problem.penalty, np.inf)
    return float(np.max(shares, initial=0.0))


def _minimize(problem: _Problem, phi: np.ndarray, max_sweeps: int, tolerance: float) -> int:
    """Minimize in place; return the number of sweeps."""
    sweeps = 0
    while sweeps < max_sweeps and not _is_solved(problem, phi, tolerance):
        sweeps += _descend(problem, phi)
        _solve_on_support(problem, phi)
    return sweeps


def _is_solved(problem: _Problem, phi: np.ndarray, tolerance: float) -> bool:
    lost = problem.rounding(phi) / np.where(problem.penalty > 0, problem.penalty, 1.0)
    return bool(np.all(_misses(problem.slope(phi), problem.penalty, phi) <= np.maximum(tolerance, lost)))


def _descend(problem: _Problem, phi: np.ndarray) -> int:
    """Sweep over all coordinates, and then over the support, in place; return how many sweeps that were."""
    slope = problem.slope(phi)
    _sweep(problem, phi, slope)
    support = np.flatnonzero(phi)
    part, at, slope = problem.on(support), phi[support], slope[support]
    for _ in range(_SWEEPS):
        _sweep(part, at, slope)
    phi[support] = at
    return 1 + _SWEEPS


def _sweep(problem: _Problem, phi: np.ndarray, slope: np.ndarray) -> None:
    """Minimize over one coordinate after the other, in place."""
    for j, (before, penalty) in enumerate(zip(phi.tolist(), problem.penalty.tolist(), strict=True)):
        after = _soft_threshold(before - slope.item(j), penalty)
        if after != before:
            phi[j] = after
            slope += problem.gram[j] * (after - before)


def _soft_threshold(pull: float, penalty: float) -> float:
    excess = abs(pull) - penalty
    return math.copysign(excess, pull) if excess > 1e-14 * penalty else 0.0  # not for an excess by rounding


def _solve_on_support(problem: _Problem, phi: np.ndarray) -> None:
    """Go, in place, to the solution on the support with the signs as they are, as long as these change."""
    for _ in range(_SOLVES):
        support = np.flatnonzero((phi != 0) | (problem.penalty == 0))
        at = phi[support]
        phi[support] = moved = _toward_solution(problem.on(support), at) if len(at) else at
        if np.array_equal(np.sign(moved), np.sign(at)):
            return


def _toward_solution(part: _Problem, at: np.ndarray) -> np.ndarray:
    """Return the lowest point on the way to the solution of the equations; of dependent columns first let some go."""
    slope = part.slope(at) + part.penalty * np.sign(at)
    factor, failed = scipy.linalg.lapack.dpotrf(part.gram, lower=True)
    if not failed and np.min(np.diag(factor)) > 1e-7:
        return _lowest_on(part, at, -scipy.linalg.cho_solve((factor, True), slope))
    values, vectors = np.linalg.eigh(part.gram)
    flat = values <= 10 * _EPS * len(values) * values[-1]
    thinned = _without_dependence(part, at, vectors[:, flat])
    if np.any(thinned != at):
        return thinned
    return _lowest_on(part, at, -vectors[:, ~flat] @ (vectors[:, ~flat].T @ slope / values[~flat]))


def _without_dependence(part: _Problem, at: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """Go down along directions that the data do not see, until none is left or f is flat on them.

    There f falls in straight lines, which end where a coordinate meets 0; from there on others go that leave it at 0.
    """
    slope, lost = part.slope(at), 10 * np.max(part.rounding(at))
    while flat.shape[1]:
        along = flat.T @ (slope + part.penalty * np.sign(at))
        if np.max(np.abs(along)) <= lost:
            return at
        moved = _lowest_on(part, at, -flat @ along, is_flat=True)
        gone = (moved == 0) & (at != 0)
        flat, at = flat @ scipy.linalg.null_space(flat[gone]), moved
        flat[gone] = 0.0
    return at


def _lowest_on(part: _Problem, at: np.ndarray, direction: np.ndarray, is_flat: bool = False) -> np.ndarray:
    """Return the lowest point on a ray.

    f is quadratic between the points where a penalized coordinate passes 0; there its slope rises by twice the penalty.
    """
    slope = float(direction @ (part.slope(at) + part.penalty * np.sign(at)))
    curvature = 0.0 if is_flat else float(direction @ part.gram @ direction)
    if slope >= 0:
        return at
    crossing = np.flatnonzero((part.penalty > 0) & (at * direction < 0))
    crossing = crossing[np.argsort(-at[crossing] / direction[crossing])]
    times = np.append(-at[crossing] / direction[crossing], np.inf)
    rises = np.append(0.0, np.cumsum(2 * part.penalty[crossing] * np.abs(direction[crossing])))
    # the slope on the stretch before each crossing is lowest at its start, and highest at its end
    turned = slope + curvature * times[:-1] + rises[1:] >= 0
    k = int(np.argmax(turned)) if turned.any() else len(crossing)
    time = min(-(slope + rises[k]) / curvature if curvature > 0 else np.inf, times[k])
    if np.isinf(time):
        raise NumericalError("there is no maximum: the pull of dependent columns exceeds their penalty")
    moved = at + time * direction
    moved[crossing[times[:-1] == time]] = 0.0
    return moved


def _is_unique(problem: _Problem, phi: np.ndarray) -> bool:
    reached = (phi != 0) | (np.abs(problem.slope(phi)) >= problem.penalty * (1 - LIMIT))
    return not _is_singular(problem.on(np.flatnonzero(reached)).gram)


def _is_singular(gram: np.ndarray) -> bool:
    """Say whether a matrix with diagonal 1 is singular up to rounding."""
    return bool(np.min(np.linalg.eigvalsh(gram), initial=1.0) <= 4 * _EPS * len(gram))


def _scaled(gram: Any, target: Any, l1: Any, l2: Any, mean: Any) -> tuple[_Problem, np.ndarray]:
    """Return the problem of phi = scale * theta, and the scale."""
    gram, target, l1, l2, mean = _checked(gram, target, l1, l2, mean)
    pull, diagonal = target + l2 * mean, np.diag(gram) + l2
    empty = diagonal == 0
    if np.any(empty & (l1 <= np.abs(pull))):
        raise NumericalError("there is no unique maximum: a column of zeros without a prior")
    scale = np.where(empty, 1.0, np.sqrt(diagonal))
    unit = gram / scale / scale[:, None]
    np.fill_diagonal(unit, 1.0)  # also of a column of zeros, whose coefficient is then 0 as it should be
    problem = _Problem(unit, pull / scale, l1 / scale)
    if _is_singular(problem.on(np.flatnonzero(l1 == 0)).gram):
        raise NumericalError("there is no unique maximum: columns without a prior are linearly dependent")
    return problem, scale


def _checked(gram: Any, target: Any, l1: Any, l2: Any, mean: Any) -> tuple[np.ndarray, ...]:
    gram = np.asarray(gram, dtype=np.float64)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or not np.all(np.isfinite(gram)):
        raise InputError(f"gram must be a square matrix of finite numbers, got shape {gram.shape}")
    root = np.sqrt(np.maximum(np.diag(gram), 0.0))
    bound = root * root[:, None]
    if not np.all((np.abs(gram) <= (1 + 1e-8) * bound) & (np.abs(gram - gram.T) <= 1e-8 * bound)):
        raise InputError("gram must be symmetric and positive semidefinite")
    named = (("target", target), ("l1", l1), ("l2", l2), ("mean", mean))
    target, l1, l2, mean = (_vector(value, len(gram), name) for name, value in named)
    if np.any(l1 < 0) or np.any(l2 < 0):
        raise InputError("l1 and l2 must be >= 0")
    return gram, target, l1, l2, mean


def _vector(value: Any, size: int, name: str) -> np.ndarray:
    """Return a vector of this size, of one number if that is what was given."""
    vector = np.asarray(value, dtype=np.float64)
    if vector.shape not in ((), (size,)) or not np.all(np.isfinite(vector)):
        raise InputError(f"{name} must be a finite number, or finite numbers of shape ({size},)")
    return np.array(np.broadcast_to(vector, (size,)))
