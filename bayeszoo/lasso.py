"""The posterior mode under Laplace priors: L1-penalized least squares by coordinate descent, with its certificate.

Coordinates theta of length D have the negative log posterior, up to a constant,

    f(theta) = theta' G theta / 2 - g' theta + sum_j l1_j |theta_j| + sum_j l2_j (theta_j - m_j)^2 / 2

with G the Gram matrix X'X / sigma^2 and g = X'y / sigma^2, the data's precision and its pull; l1_j = 1 / b_j for a prior
Laplace(0, b_j), l2_j and m_j the precision and the mean of a Gaussian one; all 0 for a flat prior.

Tibshirani (1996), Regression shrinkage and selection via the lasso; Park & Casella (2008), The Bayesian lasso. Friedman,
Hastie & Tibshirani (2010), Regularization paths for generalized linear models via coordinate descent. Lee, Battle, Raina
& Ng (2007), Efficient sparse coding algorithms: the solution on the support. Tibshirani (2013), The lasso problem and
uniqueness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from bayeszoo.errors import InputError, NumericalError

LIMIT = 1e-6
"""A solution whose violation is above this is not one."""

_EPS = float(np.finfo(np.float64).eps)

_TIE = 1 + 1e-14
"""A pull that exceeds its penalty by rounding only does not exceed it."""

_SWEEPS = 10
"""Sweeps over the support before the equations on it are solved."""

_SOLVES = 10
"""How often they are solved, with other signs each time, before the next sweep over all coordinates."""


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
    multipliers : ndarray of shape (K,)
        Decreasing.
    thetas : ndarray of shape (K, D)
    violations : ndarray of shape (K,)
        By `kkt_violation`.
    """

    multipliers: np.ndarray
    thetas: np.ndarray
    violations: np.ndarray


@dataclass(frozen=True)
class _Problem:
    """Minimize phi' gram phi / 2 - pull' phi + sum_j penalty_j |phi_j|, in phi = scale * theta: gram has diagonal 1."""

    gram: np.ndarray
    pull: np.ndarray
    penalty: np.ndarray
    scale: np.ndarray

    def slope(self, phi: np.ndarray) -> np.ndarray:
        """Derivative of all but the penalty."""
        return self.gram @ phi - self.pull

    def rounding(self, phi: np.ndarray) -> np.ndarray:
        """Bound on what rounding does to the slope."""
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
    max_sweeps : int, optional
        After so many sweeps the coordinates are returned as they are.
    tolerance : float, optional
        Violation to be reached, or as little as rounding allows.

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
    on it. The way there is followed to the lowest point on it, which may have other signs; f never rises. Columns are
    scaled to unit diagonal first, so that neither the sweeps nor their end depend on units.
    """
    problem = _scaled(gram, target, l1, l2, mean)
    phi = np.zeros_like(problem.pull) if start is None else _vector(start, len(problem.pull), "start") * problem.scale
    sweeps = 0
    while True:
        slope = problem.slope(phi)
        if sweeps >= max_sweeps or _is_solved(problem, phi, slope, tolerance):
            break
        sweeps += _descend(problem, phi, slope)
        _solve_on_support(problem, phi)
    theta = phi / problem.scale
    violation = kkt_violation(gram, target, l1, l2, mean, theta)
    return Solution(theta, violation, sweeps, theta != 0, _is_unique(problem, phi, slope))


def kkt_violation(gram: Any, target: Any, l1: Any, l2: Any, mean: Any, theta: Any) -> float:
    """Return by how much theta misses the conditions of a minimum of f, relative to the penalties.

    Parameters
    ----------
    gram, target, l1, l2, mean : array_like
        As for `coordinate_descent`.
    theta : array_like
        Of shape (D,).

    Returns
    -------
    float
        The largest of, with s the derivative of all of f but the L1 penalty:

        - abs(s_j / l1_j + sign(theta_j)) where theta_j is not 0,
        - max(0, abs(s_j) / l1_j - 1) where it is,
        - abs(s_j) / sqrt(G_jj + l2_j) where l1_j = 0: how many conditional standard deviations theta_j is off.

        None of them depends on units. 0 at the minimum, and for no other theta, as f is convex; a certificate that
        needs no second solver.
    """
    gram, target, l1, l2, mean = _checked(gram, target, l1, l2, mean)
    theta = _vector(theta, len(target), "theta")
    slope = gram @ theta - target + l2 * (theta - mean)
    return float(np.max(_misses(slope, l1, theta, np.sqrt(np.diag(gram) + l2)), initial=0.0))


def largest_penalty(gram: Any, target: Any, l1_pattern: Any = 1.0, l2: Any = 0.0, mean: Any = 0.0) -> float:
    """Return the smallest multiplier of the L1 penalties at which all coordinates that have one are 0.

    Parameters
    ----------
    gram, target, l2, mean : array_like
        As for `coordinate_descent`.
    l1_pattern : array_like, optional
        The penalties that are multiplied: a number, or of shape (D,).

    Raises
    ------
    InputError, NumericalError
        As `coordinate_descent`.
    """
    problem = _scaled(gram, target, l1_pattern, l2, mean)
    free = problem.penalty == 0
    phi = np.zeros_like(problem.pull)
    if free.any():
        phi[free] = np.linalg.solve(problem.gram[np.ix_(free, free)], problem.pull[free])
    return float(np.max(np.abs(problem.slope(phi)[~free]) / problem.penalty[~free], initial=0.0))


def path(
    gram: Any,
    target: Any,
    l1_pattern: Any = 1.0,
    multipliers: Any = None,
    n: int = 50,
    ratio: float = 1e-3,
    l2: Any = 0.0,
    mean: Any = 0.0,
    **options: Any,
) -> Path:
    """Minimize f for a decreasing sequence of L1 penalties, each from the solution before.

    Parameters
    ----------
    gram, target, l2, mean : array_like
        As for `coordinate_descent`.
    l1_pattern : array_like, optional
        The penalties at multiplier 1: a number, or of shape (D,).
    multipliers : array_like, optional
        Of shape (K,), > 0; taken in decreasing order. By default geometric, from `largest_penalty` down.
    n, ratio : int and float, optional
        How many multipliers the default has, and the last divided by the first.
    **options
        ``max_sweeps`` and ``tolerance`` of `coordinate_descent`.

    Raises
    ------
    InputError, NumericalError
        As `coordinate_descent`; also when no multipliers are given and all penalized coordinates are 0 at any.
    """
    if multipliers is None:
        top = largest_penalty(gram, target, l1_pattern, l2, mean)
        if top == 0:
            raise NumericalError("all penalized coefficients are 0 at any penalty: give the multipliers")
        multipliers = top * np.geomspace(1.0, ratio, n)
    grid = np.sort(np.asarray(multipliers, dtype=np.float64))[::-1]
    solutions: list[Solution] = []
    for multiplier in grid:
        start = solutions[-1].theta if solutions else None
        l1 = multiplier * np.asarray(l1_pattern, dtype=np.float64)
        solutions.append(coordinate_descent(gram, target, l1, l2, mean, start, **options))
    return Path(grid, np.array([s.theta for s in solutions]), np.array([s.violation for s in solutions]))


def _misses(slope: np.ndarray, l1: np.ndarray, theta: np.ndarray, root: np.ndarray) -> np.ndarray:
    """By how much each coordinate misses its condition, see `kkt_violation`."""
    share = np.abs(slope)
    has = l1 > 0
    relative = slope / np.where(has, l1, 1.0)
    penalized = np.where(theta != 0, np.abs(relative + np.sign(theta)), np.maximum(np.abs(relative) - 1, 0.0))
    free = np.where(share > 0, share / np.where(root > 0, root, 1.0), 0.0)
    return np.where(has, penalized, np.where((root == 0) & (share > 0), np.inf, free))


def _is_solved(problem: _Problem, phi: np.ndarray, slope: np.ndarray, tolerance: float) -> bool:
    misses = _misses(slope, problem.penalty, phi, np.ones_like(phi))
    if np.all(misses <= tolerance):
        return True
    lost = problem.rounding(phi) / np.where(problem.penalty > 0, problem.penalty, 1.0)
    return bool(np.all(misses <= np.maximum(tolerance, lost)))


def _descend(problem: _Problem, phi: np.ndarray, slope: np.ndarray) -> int:
    """Sweep over all coordinates, and then over the support, in place; return how many sweeps that were."""
    _sweep(problem.gram, phi, slope, problem.penalty)
    support = np.flatnonzero(phi)
    inner, at, slope_at = problem.gram[np.ix_(support, support)], phi[support], slope[support]
    for _ in range(_SWEEPS):
        _sweep(inner, at, slope_at, problem.penalty[support])
    phi[support] = at
    return 1 + _SWEEPS


def _sweep(gram: np.ndarray, phi: np.ndarray, slope: np.ndarray, penalty: np.ndarray) -> None:
    """Minimize over one coordinate after the other, in place."""
    for j, (before, limit) in enumerate(zip(phi.tolist(), penalty.tolist(), strict=True)):
        after = _soft_threshold(before - slope.item(j), limit)
        if after != before:
            phi[j] = after
            slope += gram[j] * (after - before)


def _soft_threshold(pull: float, penalty: float) -> float:
    if abs(pull) <= penalty * _TIE:
        return 0.0
    return pull - penalty if pull > 0 else pull + penalty


def _solve_on_support(problem: _Problem, phi: np.ndarray) -> None:
    """Go, in place, to the solution on the support with the signs as they are, as long as these change."""
    for _ in range(_SOLVES):
        support = np.flatnonzero((phi != 0) | (problem.penalty == 0))
        gram, at, penalty = problem.gram[np.ix_(support, support)], phi[support], problem.penalty[support]
        lost = float(np.max(problem.rounding(phi)[support], initial=0.0))
        phi[support] = moved = _toward_solution(gram, at, gram @ at - problem.pull[support], penalty, lost)
        if np.array_equal(np.sign(moved), np.sign(at)):
            return


def _toward_solution(
    gram: np.ndarray, at: np.ndarray, slope: np.ndarray, penalty: np.ndarray, lost: float
) -> np.ndarray:
    """Return the lowest point on the way to the solution of the equations; of dependent columns first let some go."""
    total = slope + penalty * np.sign(at)
    factor = _cholesky(gram)
    if factor is not None:
        direction = -scipy.linalg.cho_solve((factor, True), total)
        return _lowest_on(at, direction, total @ direction, direction @ gram @ direction, penalty)
    values, vectors = np.linalg.eigh(gram)
    flat = values <= 10 * _EPS * len(values) * values[-1]
    thinned = _without_dependence(at, vectors[:, flat], slope, penalty, 10 * lost)
    if np.any(thinned != at):
        return thinned
    direction = -vectors[:, ~flat] @ (vectors[:, ~flat].T @ total / values[~flat])
    return _lowest_on(at, direction, total @ direction, direction @ gram @ direction, penalty)


def _cholesky(gram: np.ndarray) -> np.ndarray | None:
    """Return the lower factor of a matrix with diagonal 1, or None where it is nearly singular."""
    try:
        factor = scipy.linalg.cholesky(gram, lower=True)
    except np.linalg.LinAlgError:
        return None
    return factor if np.min(np.diag(factor), initial=1.0) > 1e-7 else None


def _without_dependence(
    at: np.ndarray, flat: np.ndarray, slope: np.ndarray, penalty: np.ndarray, lost: float
) -> np.ndarray:
    """Go down along directions that the data do not see, until none is left or f is flat on them.

    There f falls in straight lines, which end where a coordinate meets 0. The directions that leave it there are the
    others after a reflection that turns the first into the only one that moves it.
    """
    while flat.shape[1]:
        along = flat.T @ (slope + penalty * np.sign(at))
        if np.max(np.abs(along)) <= lost:
            return at
        moved = _lowest_on(at, -flat @ along, -along @ along, 0.0, penalty)
        for gone in np.flatnonzero((moved == 0) & (at != 0)):
            normal = flat[gone].copy()
            normal[0] += np.copysign(np.linalg.norm(normal), normal[0])
            flat = (flat - np.outer(flat @ normal, normal) * (2 / (normal @ normal)))[:, 1:]
            flat[gone] = 0.0
        at = moved
    return at


def _lowest_on(
    at: np.ndarray, direction: np.ndarray, slope: float, curvature: float, penalty: np.ndarray
) -> np.ndarray:
    """Return the lowest point on a ray.

    f is quadratic between the points where a penalized coordinate passes 0; there its slope rises by twice the penalty.
    """
    if slope >= 0:
        return at
    crossing = np.flatnonzero((penalty > 0) & (at * direction < 0))
    times = -at[crossing] / direction[crossing]
    order = np.argsort(times)
    crossing, times = crossing[order], times[order]
    rises = np.concatenate([[0.0], np.cumsum(2 * penalty[crossing] * np.abs(direction[crossing]))])
    turned = slope + curvature * times + rises[1:] >= 0
    k = int(np.argmax(turned)) if turned.any() else len(times)
    if k == len(times) and curvature <= 0:
        raise NumericalError("there is no maximum: the pull of dependent columns exceeds their penalty")
    time = -(slope + rises[k]) / curvature if curvature > 0 else np.inf
    time = min(time, times[k]) if k < len(times) else time
    moved = at + time * direction
    moved[crossing[times == time]] = 0.0
    return moved


def _is_unique(problem: _Problem, phi: np.ndarray, slope: np.ndarray) -> bool:
    reached = np.flatnonzero((phi != 0) | (np.abs(slope) >= problem.penalty * (1 - LIMIT)))
    return not _is_singular(problem.gram[np.ix_(reached, reached)])


def _is_singular(gram: np.ndarray) -> bool:
    """Say whether a matrix with diagonal 1 is singular up to rounding."""
    return len(gram) > 0 and bool(np.linalg.eigvalsh(gram)[0] <= 4 * _EPS * len(gram))


def _scaled(gram: Any, target: Any, l1: Any, l2: Any, mean: Any) -> _Problem:
    gram, target, l1, l2, mean = _checked(gram, target, l1, l2, mean)
    pull, diagonal = target + l2 * mean, np.diag(gram) + l2
    empty = diagonal == 0
    if np.any(empty & (l1 <= np.abs(pull))):
        raise NumericalError("there is no unique maximum: a column of zeros without a prior")
    scale = np.where(empty, 1.0, np.sqrt(diagonal))
    unit = gram / scale / scale[:, None]
    np.fill_diagonal(unit, 1.0)  # also of a column of zeros, whose coefficient is then 0 as it should be
    free = np.flatnonzero(l1 == 0)
    if _is_singular(unit[np.ix_(free, free)]):
        raise NumericalError("there is no unique maximum: columns without a prior are linearly dependent")
    return _Problem(unit, pull / scale, l1 / scale, scale)


def _checked(gram: Any, target: Any, l1: Any, l2: Any, mean: Any) -> tuple[np.ndarray, ...]:
    gram = np.asarray(gram, dtype=np.float64)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
        raise InputError(f"gram must be a square matrix, got shape {gram.shape}")
    root = np.sqrt(np.maximum(np.diag(gram), 0.0))
    bound = root * root[:, None]
    if not np.all(np.isfinite(gram)) or np.any(np.abs(gram) > bound * (1 + 1e-8)):
        raise InputError("gram must be finite and positive semidefinite")
    if np.any(np.abs(gram - gram.T) > 1e-8 * bound):
        raise InputError("gram must be symmetric")
    named = (("target", target), ("l1", l1), ("l2", l2), ("mean", mean))
    target, l1, l2, mean = (_vector(value, len(gram), name) for name, value in named)
    if np.any(l1 < 0) or np.any(l2 < 0):
        raise InputError("l1 and l2 must be >= 0")
    return gram, target, l1, l2, mean


def _vector(value: Any, size: int, name: str) -> np.ndarray:
    """Return a vector of this size, of one number if that is what was given."""
    vector = np.asarray(value, dtype=np.float64)
    if vector.shape not in ((), (size,)):
        raise InputError(f"{name} must be a number or have shape ({size},), got {vector.shape}")
    if not np.all(np.isfinite(vector)):
        raise InputError(f"{name} must be finite")
    return np.array(np.broadcast_to(vector, (size,)))
