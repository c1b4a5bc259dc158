"""The weights of highest density under eps-insensitive noise, checked by the conditions of a maximum.

For rows (n, T) with targets t (n,), and weights u that are N(0, 1) a priori, the negative log density

    f(u) = rate sum_n max(|t_n - x_n' u| - eps, 0) + |u|^2 / 2

is lowest at a corner of f, where some rows are eps from their target. There rate sum_n beta_n x_n = u, with beta_n = 0
within eps, 1 or -1 beyond, and any number between at a corner (Karush, Kuhn, Tucker; Smola and Schoelkopf 2004). The
rows at a corner are found by smoothing f about its corners, over shorter and shorter stretches (Madsen and Nielsen
1993); the equations for these rows are then solved. Without the prior, a linear program gives the minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy

from bayeszoo.errors import NumericalError
from bayeszoo.families.statistics.factored import triangular
from bayeszoo.foundation.numerics.newton import Derivatives

AT_CORNER = 1e-9
"""Largest distance of a row from its corner at which it counts as on it, relative to the largest target."""
LIMIT = 1e-6
"""Largest violation of the conditions, in nats per standard deviation, at which a point counts as the mode."""
RANK = 1e-12
"""Share of the largest singular value above which a singular value counts."""
SHORTER, STRETCHES = 0.1, 14
"""Ratio of the lengths of successive stretches about a corner, and their number."""
ITERATIONS, LEAST_GAIN = 100, 1e-22
"""Most Newton steps over one stretch, and the smallest gain of a step, relative to the height."""
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
MOVED = 1e-6
"""Smallest size, with entries of at most 1, of a direction along which f is constant."""


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
        """The largest distance of a row from its corner at which it counts as on it."""
        return AT_CORNER * float(np.max(np.abs(self.target), initial=self.eps))

    def sides(self, u: np.ndarray, near: float) -> tuple[np.ndarray, np.ndarray]:
        """Mark rows within ``near`` of a corner, (n,), and return the side of rows at or beyond it: 1, -1, else 0."""
        residual = self.target - self.rows @ u
        excess = np.abs(residual) - self.eps
        return np.abs(excess) <= near, np.where(excess >= -near, np.sign(residual), 0.0)

    def least_slope(self, u: np.ndarray) -> np.ndarray:
        """Return the slope of -f at u that is nearest to 0, (T,): at corners the slope is not unique."""
        at_corner, side = self.sides(u, self.slack)
        slope = self.rate * (side * ~at_corner) @ self.rows - self.has_prior * u
        if not at_corner.any():
            return slope
        unit = 1 / np.sqrt(np.diag(self.curvature))
        low = -1.0 if self.eps <= self.slack else 0.0  # with Laplace noise both sides meet in one corner
        pulls = self.rate * (np.where(side == 0, 1.0, side)[:, None] * self.rows)[at_corner]
        share = scipy.optimize.lsq_linear((pulls * unit).T, -slope * unit, (low, 1.0), method="bvls", tol=1e-15).x
        return slope + share @ pulls

    def violation(self, u: np.ndarray) -> float:
        """Return the largest component of the least slope, in nats per standard deviation by expected curvature."""
        return float(np.max(np.abs(self.least_slope(u)) / np.sqrt(np.diag(self.curvature)), initial=0.0))

    def smoothed(self, u: np.ndarray, stretch: float) -> Derivatives:
        """Return -f and its derivatives, with each corner replaced by a parabola over a stretch beyond it."""
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
        """Return the weights that minimize f with all rows within a stretch beyond a corner moved onto it."""
        residual = self.target - self.rows @ u
        excess, side = np.abs(residual) - self.eps, np.sign(residual) * (np.abs(residual) >= self.eps)
        at_corner = (side != 0) & (excess < stretch)
        corners, target = self.rows[at_corner], (self.target - self.eps * side)[at_corner]
        free = self.rate * (side * ~at_corner) @ self.rows
        if not len(corners):
            return free
        # project onto the null space of the corners: to subtract their part would cancel digits
        _, sizes, basis = np.linalg.svd(triangular(corners))
        null_space = basis[int(np.sum(sizes > RANK * sizes[0])) :]
        return np.linalg.lstsq(corners, target, rcond=RANK)[0] + null_space.T @ (null_space @ free)


def mode(tube: Tube) -> np.ndarray:
    """Return the weights of highest density; check `Tube.violation` before showing them."""
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
    """Climb from u to the maximum of the smoothed density, by Newton steps with an exact line search.

    Halving the step would not do: the curvature may jump a thousandfold along it.
    """
    for _ in range(ITERATIONS):
        derivatives = tube.smoothed(u, stretch)
        try:
            step = scipy.linalg.cho_solve(scipy.linalg.cho_factor(derivatives.curvature), derivatives.gradient)
        except np.linalg.LinAlgError:  # over a short stretch the prior's curvature is lost in rounding
            break
        if not derivatives.gradient @ step > LEAST_GAIN * (1 + abs(derivatives.value)):
            break
        slope = partial(_slope_along, tube, u, step, stretch)
        u = u + step * (1.0 if slope(1.0) >= 0 else scipy.optimize.brentq(slope, 0.0, 1.0, xtol=1e-12))
    return u


def _slope_along(tube: Tube, u: np.ndarray, step: np.ndarray, stretch: float, share: float) -> float:
    return float(tube.smoothed(u + share * step, stretch).gradient @ step)


def flat_mode(tube: Tube) -> np.ndarray:
    """Return the weights of highest likelihood; raise `NumericalError` if they are not unique."""
    scale = np.max(np.abs(tube.rows), axis=0)
    rows = (tube.rows / scale).T
    # the dual program: its variables are beta of rows above and of rows below, its marginals the weights
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
    """Return u with the rows nearest to a corner moved exactly onto it."""
    at_corner, side = tube.sides(u, 1e3 * tube.slack)
    corners, target = tube.rows[at_corner], (tube.target - tube.eps * side)[at_corner]
    return u + np.linalg.lstsq(corners, target - corners @ u, rcond=RANK)[0] if len(corners) else u


def _lost_nothing_along(tube: Tube, u: np.ndarray) -> np.ndarray:
    """Return a direction from u along which f is constant; 0 if every direction changes f.

    From a minimum f rises along a direction d by sum_k max(-side_k x_k' d, 0) - sum_n side_n x_n' d, over the rows k on
    a corner and n beyond. If that is 0 for some d, one of two linear programs with opposite objectives finds it.
    """
    scale = np.max(np.abs(tube.rows), axis=0)
    at_corner, side = tube.sides(u, tube.slack)
    corners = ((np.where(side == 0, 1.0, side)[:, None] * tube.rows)[at_corner]) / scale
    pull = (side * ~at_corner) @ tube.rows / scale
    signed = np.vstack([corners, -corners]) if tube.eps <= tube.slack else corners
    k, terms = len(signed), len(scale)
    limits = np.vstack([np.hstack([-signed, -np.eye(k)]), np.append(-pull, np.ones(k))])
    bounds = [(-1, 1)] * terms + [(0, None)] * k
    generic = np.cos(np.arange(1, terms + 1))
    for weights in (generic, -generic):
        costs = np.append(-weights, np.zeros(k))
        optimum = scipy.optimize.linprog(costs, limits, np.zeros(k + 1), bounds=bounds, options=EXACT)
        if optimum.status == 0 and -optimum.fun > MOVED:
            return np.asarray(optimum.x[:terms])
    return np.zeros(terms)
