"""Posterior modes under Laplace priors: scikit-learn's lasso, checked by the conditions of a minimum.

The weights theta, shape (T,), have independent priors Laplace(0, b_j), and the outcome has Gaussian noise of variance
sigma2. Their negative log posterior is, up to a constant,

    f(theta) = |outcome - design theta|^2 / (2 sigma2) + sum_j |theta_j| / b_j

Tibshirani (1996), Regression shrinkage and selection via the lasso. Efron, Hastie, Johnstone and Tibshirani (2004),
Least angle regression. Park and Casella (2008), The Bayesian lasso.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import lazy_loader
import numpy as np
import scipy

from bayeszoo.errors import NumericalError
from bayeszoo.foundation.process.threads import one_thread

sklearn = lazy_loader.load("sklearn")

LIMIT = 1e-6
"""Largest violation of the conditions at which a point counts as the mode."""
PARALLEL = 1e-12
"""Largest distance of a correlation from 1 or -1 at which two columns count as parallel."""
VARIANCES = 64
"""Grid points of the noise variance that bracket joint modes."""


@dataclass(frozen=True)
class LassoMode:
    """The weights of highest density, shape (T,), some of them exactly 0; and their violation by `kkt_violation`."""

    theta: np.ndarray
    violation: float


@dataclass(frozen=True)
class JointMode:
    """A local maximum of the density of weights and noise variance, and its log height up to a constant."""

    theta: np.ndarray
    sigma2: float
    height: float


def mode(design: np.ndarray, outcome: np.ndarray, b: np.ndarray, sigma2: float) -> LassoMode:
    """Return the weights of highest density given terms (R, T), outcomes (R,), prior scales (T,) and noise variance.

    Check its violation before showing it: above `LIMIT` it is no mode.

    Of several parallel columns, the one with the widest prior gets all of their weight in a mode. Least angle
    regression then follows the modes from theta = 0 to this noise variance; if ties stop it, coordinate descent
    continues. At the end the equations on the support are solved to full precision.
    """
    columns, target = design * (b / math.sqrt(sigma2)), outcome / math.sqrt(sigma2)  # all penalties are now 1
    kept, phi = _without_parallels(columns), np.zeros(len(b))
    if np.max(np.abs(columns.T @ target), initial=0.0) > 1:
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the violation is checked instead
            phi[kept] = _least_angle(columns[:, kept], target)
            if _violation(columns, target, phi) > LIMIT:
                phi[kept] = _coordinate_descent(columns[:, kept], target, phi[kept])
    return LassoMode(b * phi, _violation(columns, target, phi))


def kkt_violation(design: np.ndarray, outcome: np.ndarray, b: np.ndarray, sigma2: float, theta: np.ndarray) -> float:
    """Return the violation of the conditions of Karush, Kuhn and Tucker at ``theta`` (T,), relative to the penalties.

    With s the derivative of the squared error in f, it is the largest of abs(s_j b_j + sign(theta_j)) for theta_j not
    0, and of max(0, abs(s_j) b_j - 1) for theta_j = 0. It does not depend on units. As f is convex, it is 0 at the
    minimum and nowhere else.
    """
    root = math.sqrt(sigma2)
    return _violation(design * (b / root), outcome / root, theta / b)


def joint_modes(design: np.ndarray, outcome: np.ndarray, b: np.ndarray, shape: float, scale: float) -> list[JointMode]:
    """Return the modes of weights and noise variance, the highest first.

    Given the weights, the noise variance ~ InvGamma(shape, scale + squared error / 2). The density may have several
    modes: little noise with weights far out in their prior, or much noise with weights near 0 (Park and Casella 2008,
    section 2 and appendix A). At each mode the noise variance is the mode of its density given the weights. Such
    variances are bracketed by a grid, even in their logarithm; of several in one interval only one is found.
    """

    def excess(log_sigma2: float) -> float:
        theta = mode(design, outcome, b, math.exp(log_sigma2)).theta
        return math.log(noise_mode(design @ theta - outcome, shape, scale)) - log_sigma2

    # the squared error is between 0 and that of zero weights
    low, high = scale / (shape + 1), noise_mode(outcome, shape, scale)
    grid = np.linspace(math.log(low) - 1e-3, math.log(high) + 1e-3, VARIANCES)
    above = np.array([excess(log_sigma2) for log_sigma2 in grid]) > 0
    brackets = np.flatnonzero(above[:-1] & ~above[1:])
    if not len(brackets):
        raise NumericalError("no joint mode of weights and noise found", "not_converged")
    variances = [math.exp(scipy.optimize.brentq(excess, *grid[[i, i + 1]], xtol=1e-14, rtol=1e-14)) for i in brackets]
    modes = []
    for sigma2 in variances:
        weights = mode(design, outcome, b, sigma2)
        if weights.violation > LIMIT:
            missed = f"the conditions are missed by {weights.violation:.2g}"
            raise NumericalError(f"no joint mode of weights and noise found: {missed}", "not_converged")
        error, penalty = design @ weights.theta - outcome, float(np.sum(np.abs(weights.theta) / b))
        height = -penalty - (shape + 1) * math.log(sigma2) - (scale + float(error @ error) / 2) / sigma2
        modes.append(JointMode(weights.theta, sigma2, height))
    return sorted(modes, key=lambda candidate: -candidate.height)


def noise_mode(error: np.ndarray, shape: float, scale: float) -> float:
    """Return the mode of InvGamma(shape, scale + squared error / 2)."""
    return (scale + float(error @ error) / 2) / (shape + 1)


def _violation(columns: np.ndarray, target: np.ndarray, phi: np.ndarray) -> float:
    slope = columns.T @ (columns @ phi - target)
    misses = np.where(phi != 0, np.abs(slope + np.sign(phi)), np.maximum(np.abs(slope) - 1, 0.0))
    return float(np.max(misses, initial=0.0))


def _without_parallels(columns: np.ndarray) -> np.ndarray:
    """Return the indices of nonzero columns; of parallel columns only the longest, or the first of the longest."""
    size = np.sqrt(np.sum(np.square(columns), axis=0))
    order = np.argsort(-size, kind="stable")[: np.count_nonzero(size)]
    unit = columns[:, order] / size[order]
    alike = np.triu(np.abs(unit.T @ unit) > 1 - PARALLEL, 1)
    return np.sort(order[~alike.any(axis=0)])


def _least_angle(columns: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Follow the modes from phi = 0 to penalties of 1."""
    _, _, path = sklearn.linear_model.lars_path(columns, target, alpha_min=1 / len(target), method="lasso")
    return _polished(columns, target, path[:, -1])


def _coordinate_descent(columns: np.ndarray, target: np.ndarray, start: np.ndarray) -> np.ndarray:
    settings = {"alphas": [1 / len(target)], "coef_init": start, "tol": 1e-14, "max_iter": 100_000}
    _, path, _ = sklearn.linear_model.lasso_path(columns, target, **settings)
    return _polished(columns, target, path[:, -1])


def _polished(columns: np.ndarray, target: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Return the best of a solution and of those of the equations on its support, with and without tiny entries."""
    share = np.abs(phi) * np.linalg.norm(columns, axis=0)
    supports = np.flatnonzero(phi), np.flatnonzero(share > 1e-14 * np.linalg.norm(target))
    candidates = [phi, *(_solved(columns, target, np.sign(phi), support) for support in supports)]
    return min(candidates, key=lambda candidate: _violation(columns, target, candidate))


def _solved(columns: np.ndarray, target: np.ndarray, signs: np.ndarray, support: np.ndarray) -> np.ndarray:
    """Solve the equations of the minimum on a support; return 0 if they are not of full rank."""
    phi = np.zeros_like(signs)
    q, r = np.linalg.qr(columns[:, support])
    if q.shape[1] == len(support) and np.all(np.diag(r)):
        pull = q.T @ target - scipy.linalg.solve_triangular(r, signs[support], trans="T")
        phi[support] = scipy.linalg.solve_triangular(r, pull)
    return phi
