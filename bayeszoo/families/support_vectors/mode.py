"""The weights of highest density under eps-insensitive noise, judged by the conditions of a maximum.

Of rows (n, T) with targets t (n,), and weights u that are N(0, 1) a priori,

    f(u) = rate sum_n max(|t_n - x_n' u| - eps, 0) + |u|^2 / 2

is lowest where some rows are eps from their target: at corners of f. There rate sum_n beta_n x_n = u with beta_n = 0
within eps, 1 or -1 beyond, and anything between at a corner (Karush, Kuhn, Tucker; Smola and Schoelkopf 2004). The
corners are found with f made smooth about them, over shorter and shorter stretches (Madsen and Nielsen 1993), until the
rows that are on one are those of the minimum; the equations on them are then solved. Without the prior the minimum is
a linear program's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy

from bayeszoo.errors import NumericalError
from bayeszoo.families.statistics.factored import triangular
from bayeszoo.foundation.newton import Derivatives

AT_CORNER = 1e-9
"""How far from its corner a row may be that counts as on it, to the largest target."""
LIMIT = 1e-6
"""Largest violation of the conditions, in nats a standard deviation, at which a point counts as the mode."""
RANK = 1e-12
"""Share of the largest singular value from which one counts."""
SHORTER, STRETCHES = 0.1, 14
"""By how much each stretch about a corner is shorter than the one before, and how many there are."""
ITERATIONS, LEAST_GAIN = 100, 1e-22
"""Newton steps over one stretch, and the gain of a step, to the height, at which they end."""
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
MOVED = 1e-6
"""How far a direction along which nothing is lost must go, of at most 1, to be taken for one."""


@dataclass(frozen=True, eq=False)
class Tube:
    """Rows (n, T) with their targets (n,), ``eps`` and ``rate``, and the expected curvature of f, shape (T, T).

    ``has_prior`` says whether the prior is part of f.
    """

    rows: np.ndarray
    target: np.ndarray
    eps: float
    rate: float
    curvature: np.ndarray
    has_prior: bool

    @property
    def slack(self) -> float:
        """How far from its corner a row may be."""
        return AT_CORNER * float(np.max(np.abs(self.target), initial=self.eps))

    def sides(self, u: np.ndarray, near: float) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows are ``near`` a corner, and the side of all that are there or beyond: 1, -1, else 0."""
        residual = self.target - self.rows @ u
        excess = np.abs(residual) - self.eps
        return np.abs(excess) <= near, np.where(excess >= -near, np.sign(residual), 0.0)

    def least_slope(self, u: np.ndarray) -> np.ndarray:
        """Return the slope of -f at u nearest to 0: of the choices that corners leave the best."""
        at_corner, side = self.sides(u, self.slack)
        slope = self.rate * (side * ~at_corner) @ self.rows - self.has_prior * u
        if not at_corner.any():
            return slope
        unit = 1 / np.sqrt(np.diag(self.curvature))
        low = -1.0 if self.eps <= self.slack else 0.0  # of Laplace noise both sides meet in the corner
        pulls = self.rate * (np.where(side == 0, 1.0, side)[:, None] * self.rows)[at_corner]
        share = scipy.optimize.lsq_linear((pulls * unit).T, -slope * unit, (low, 1.0), method="bvls", tol=1e-15).x
        return slope + share @ pulls

    def violation(self, u: np.ndarray) -> float:
        """Return the largest component of the least slope, in nats a standard deviation of the expected curvature."""
        return float(np.max(np.abs(self.least_slope(u)) / np.sqrt(np.diag(self.curvature)), initial=0.0))

    def smoothed(self, u: np.ndarray, stretch: float) -> Derivatives:
        """Return -f with its derivatives, a parabola over a stretch beyond each corner in its place."""
        residual = self.target - self.rows @ u
        excess = np.maximum(np.abs(residual) - self.eps, 0.0)
        share = np.minimum(excess / stretch, 1.0)
        loss = self.rate * float(np.sum(np.where(share < 1, excess * share / 2, excess - stretch / 2)))
        slope = self.rate * (np.sign(residual) * share) @ self.rows - u
        # at eps = 0 residuals of 0 are curved to both sides
        curved = self.rows[(share < 1) & ((excess > 0) | (self.eps == 0))]
        curvature = self.rate / stretch * curved.T @ curved + np.eye(len(u))
        return Derivatives(-loss - float(u @ u) / 2, slope, curvature)

    def polished(self, u: np.ndarray, stretch: float) -> np.ndarray:
        """Return the weights of least f for which rows less than a stretch beyond a corner are on it."""
        residual = self.target - self.rows @ u
        excess, side = np.abs(residual) - self.eps, np.sign(residual) * (np.abs(residual) >= self.eps)
        at_corner = (side != 0) & (excess < stretch)
        corners, target = self.rows[at_corner], (self.target - self.eps * side)[at_corner]
        free = self.rate * (side * ~at_corner) @ self.rows
        if not len(corners):
            return free
        # what stays free once the corners are met: added to it, what they take away would cancel
        _, sizes, basis = np.linalg.svd(triangular(corners))
        rest = basis[int(np.sum(sizes > RANK * sizes[0])) :]
        return np.linalg.lstsq(corners, target, rcond=RANK)[0] + rest.T @ (rest @ free)


def mode(tube: Tube) -> np.ndarray:
    """Return the weights of highest density; whoever prints them must look at `Tube.violation` first."""
    u, stretch = np.zeros(tube.rows.shape[1]), 1 / tube.rate
    best = (tube.violation(u), u)
    for _ in range(STRETCHES):
        u = _climbed(tube, u, stretch)
        exact = tube.polished(u, stretch)
        best = min(best, (tube.violation(exact), exact), key=lambda pair: pair[0])
        if best[0] <= LIMIT * 1e-3:
            break
        stretch *= SHORTER
    return best[1]


def _climbed(tube: Tube, u: np.ndarray, stretch: float) -> np.ndarray:
    """Return the maximum of the smoothed density from u, by Newton steps to the highest point along each.

    Halving a step does not find that point where the curvature jumps a thousandfold on the way.
    """
    for _ in range(ITERATIONS):
        there = tube.smoothed(u, stretch)
        try:
            step = scipy.linalg.cho_solve(scipy.linalg.cho_factor(there.curvature), there.gradient)
        except np.linalg.LinAlgError:  # over a stretch so short that the prior's curvature is lost in rounding
            break
        if not there.gradient @ step > LEAST_GAIN * (1 + abs(there.value)):
            break
        slope = partial(_slope_along, tube, u, step, stretch)
        u = u + step * (1.0 if slope(1.0) >= 0 else scipy.optimize.brentq(slope, 0.0, 1.0, xtol=1e-12))
    return u


def _slope_along(tube: Tube, u: np.ndarray, step: np.ndarray, stretch: float, share: float) -> float:
    return float(tube.smoothed(u + share * step, stretch).gradient @ step)


def flat_mode(tube: Tube) -> np.ndarray:
    """Return the weights of highest likelihood; raise `NumericalError` where they are not the only ones."""
    scale = np.max(np.abs(tube.rows), axis=0)
    rows = (tube.rows / scale).T
    # its dual: the shares beta of rows above and of rows below, whose prices are the weights
    costs = np.concatenate([tube.eps - tube.target, tube.eps + tube.target])
    settings = {"bounds": (0, 1), "method": "highs", "options": EXACT}
    result = scipy.optimize.linprog(costs, A_eq=np.hstack([rows, -rows]), b_eq=np.zeros(len(rows)), **settings)
    if result.status != 0:
        raise NumericalError(f"the maximum of the likelihood was not found: {result.message}", "not_converged")
    u = -result.eqlin.marginals / scale
    u = min(u, _on_corners(tube, u), key=tube.violation)
    if np.max(np.abs(_lost_nothing_along(tube, u)), initial=0.0) > MOVED:
        raise NumericalError(
            "no unique maximum-likelihood estimate: several weight vectors have the same likelihood; use map or nuts",
            "no_maximum",
        )
    return u


def _on_corners(tube: Tube, u: np.ndarray) -> np.ndarray:
    """Return u with the rows nearest to a corner on it, to the last digits."""
    at_corner, side = tube.sides(u, 1e3 * tube.slack)
    corners, target = tube.rows[at_corner], (tube.target - tube.eps * side)[at_corner]
    return u + np.linalg.lstsq(corners, target - corners @ u, rcond=RANK)[0] if len(corners) else u


def _lost_nothing_along(tube: Tube, u: np.ndarray) -> np.ndarray:
    """Return a direction from u along which f is constant; 0 if every direction changes f.

    From a minimum f rises along a direction d by sum_k max(-side_k x_k' d, 0) - sum_n side_n x_n' d, over the rows k on
    a corner and n beyond. Where that is 0 for some d, one of two opposite weightings of its entries sees it.
    """
    scale = np.max(np.abs(tube.rows), axis=0)
    at_corner, side = tube.sides(u, tube.slack)
    corners = ((np.where(side == 0, 1.0, side)[:, None] * tube.rows)[at_corner]) / scale
    pull = (side * ~at_corner) @ tube.rows / scale
    both = np.vstack([corners, -corners]) if tube.eps <= tube.slack else corners
    k, terms = len(both), len(scale)
    limits = np.vstack([np.hstack([-both, -np.eye(k)]), np.append(-pull, np.ones(k))])
    bounds = [(-1, 1)] * terms + [(0, None)] * k
    generic = np.cos(np.arange(1, terms + 1))
    for weights in (generic, -generic):
        costs = np.append(-weights, np.zeros(k))
        optimum = scipy.optimize.linprog(costs, limits, np.zeros(k + 1), bounds=bounds, options=EXACT)
        if optimum.status == 0 and -optimum.fun > MOVED:
            return np.asarray(optimum.x[:terms])
    return np.zeros(terms)
