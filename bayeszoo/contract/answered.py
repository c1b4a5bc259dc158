"""Identities of results that methods and answers compute from a model: Laplace's evidence, and the states of a chain.

Each function takes a `Case` and returns a `Check`, as in `identities`. Laplace's method is compared with SciPy's mode
of the textbook declaration and its curvature by differences, the states of hidden Markov models with sums over paths.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import scipy
import xarray as xr

from bayeszoo.answers.series.decode import decode
from bayeszoo.compile.density import Density
from bayeszoo.contract.case import Case
from bayeszoo.contract.identities import relative
from bayeszoo.contract.latent import excerpt
from bayeszoo.data.read import read
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.foundation.numerics.optimize import Gradient
from bayeszoo.inference.methods.mode import laplace
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.capabilities import Conditional
from bayeszoo.results.assemble import assemble
from bayeszoo.results.stored import Fit

GAUSSIAN, FAR, FAR_POINTS = 1e-7, 5.0, 50
"""Most nats between a Gaussian log density and its quadratic form; distance of points in sd, and their number."""
DRAWS = 100  # draws from Laplace's Gaussian, whose mean is near its mode
STEP = 1e-3  # step, in sd, of the differences of slopes
PATHS_AT = 5  # states are decoded at each fifth point of the case


def laplace_evidence(case: Case) -> Check:
    """L1c: log joint at SciPy's mode + D/2 log 2 pi - log det(curvature)/2; of a Gaussian posterior, the exact one."""
    name = "Laplace's evidence by another mode and curvature"
    try:
        fitted = laplace(Problem(case.model, case.data, case.rng), draws=DRAWS, chains=1)
    except NumericalError:  # as of a density with corners: no number is printed
        return at_most(name, 0.0, 1e-6)
    if (evidence := fitted.facts["log_evidence"]) is None:  # withheld, as under a flat prior
        return at_most(name, 0.0, 1e-6)
    density = _textbook(case)
    points = np.array([density.unconstrain({k: v[0, i] for k, v in fitted.draws.items()}) for i in range(DRAWS)])
    mode, height, precision = _peak(density.joint, points.mean(axis=0), _root(points))
    expected = height - case.log_coefficient + _log_volume(precision)
    errors = [abs(evidence - expected)]
    if case.is_closed and _is_gaussian(density.joint, mode, height, precision, case.rng):
        errors.append(abs(evidence - case.log_evidence))
    return at_most(name, max(errors), 1e-6)


def _textbook(case: Case) -> Density:
    """Return the textbook density of the sampled parameters, by PyTensor's own code."""
    if isinstance(case.model, Conditional):
        return Density(case.model.marginalized(case.data), mode="FAST_COMPILE")
    return case.declared


def _root(points: np.ndarray) -> np.ndarray:
    """Return a root of the covariance of draws (n, D); of few draws, of its diagonal alone."""
    n, D = points.shape
    return np.linalg.cholesky(np.atleast_2d(np.cov(points.T))) if n > 4 * D else np.diag(points.std(axis=0))


def _peak(joint: Gradient, start: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """Climb by SciPy from near a mode: return the mode, its height, and the curvature there.

    The curvature is by differences of slopes over five points, too near to each other for a corner between them, in
    coordinates in which the posterior is nearly standard normal: ``start + root z``.
    """

    def slope(z: np.ndarray) -> np.ndarray:
        return root.T @ joint(x + root @ z)[1]

    def descent(z: np.ndarray) -> tuple[float, np.ndarray]:
        height, slope = joint(start + root @ z)
        return -height, -(root.T @ slope)

    x = start + root @ scipy.optimize.minimize(descent, np.zeros(len(start)), jac=True, method="BFGS").x
    for _ in range(3):  # Newton's steps: a climb by heights is only exact to 1e-8 of a standard deviation
        rows = [slope(-2 * h) - slope(2 * h) + 8 * (slope(h) - slope(-h)) for h in STEP * np.eye(len(x))]
        curvature = np.array(rows) / (-12 * STEP)
        x = x + root @ np.linalg.solve(curvature, slope(0 * x))
    inverse = np.linalg.inv(root)
    return x, joint(x)[0], inverse.T @ ((curvature + curvature.T) / 2) @ inverse


def _log_volume(precision: np.ndarray) -> float:
    """Return the log integral of the unnormalized Gaussian with this precision."""
    sign, log_det = np.linalg.slogdet(precision)
    return (len(precision) * LOG_2_PI - float(log_det)) / 2 if sign > 0 else math.nan


def _is_gaussian(
    joint: Gradient, mode: np.ndarray, height: float, precision: np.ndarray, rng: np.random.Generator
) -> bool:
    """Say whether the log density equals its quadratic approximation at the mode, out to the tails."""
    steps = FAR * rng.standard_normal((FAR_POINTS, len(mode))) @ np.linalg.inv(np.linalg.cholesky(precision))
    return all(abs(joint(mode + step)[0] - height + step @ precision @ step / 2) < GAUSSIAN for step in steps)


def decoded_states(case: Case) -> Check:
    """L1c: most probable path, probabilities of states and log densities equal sums over all paths."""
    head = excerpt(case)
    paths = _every_path(case.model.K, head.size)
    errors = [error for point in case.latent_points[::PATHS_AT] for error in _decoded(head, point, paths)]
    return at_most("states by sums over every path", float(np.max(errors)), 1e-9)


def _decoded(case: Case, point: Params, paths: np.ndarray) -> list[float]:
    """Return the errors of decoding at one point, with components in the order of the fit."""
    tree = _estimate(case, point)
    point = {name: values[0, 0] for name, values in Fit(tree).draws().items()}
    joint = case.model.log_complete(point, paths, case.data)
    frame, states = decode(tree), list(case.model.coords(case.data)["state"])
    path = np.array([states.index(state) for state in frame["viterbi"]])
    declared = case.declared.heights(case.declared.unconstrain(point)).likelihood - case.log_coefficient
    heights = [joint[np.all(paths == path, axis=1)][0], frame.attrs["viterbi_log_joint"], frame.attrs["log_likelihood"]]
    errors = [relative(heights, [joint.max(), joint.max(), declared])]
    errors.append(relative(scipy.special.logsumexp(joint), declared))  # PyMC's density, not the model's
    filtered = np.array([_last_state(case, point, rows) for rows in range(1, case.size + 1)])
    for name, expected in (("smoothed", _occupied(paths, joint)), ("filtered", filtered)):
        errors.append(relative(frame[[f"{name}[{state}]" for state in states]].to_numpy(), expected))
    return errors


def _last_state(case: Case, point: Params, rows: int) -> np.ndarray:
    """Return the probability of each state of the last of the first ``rows`` rows, given these rows alone."""
    data = case.model.inputs.reordered(case.data, np.arange(rows))
    paths = _every_path(case.model.K, rows)
    return _occupied(paths, case.model.log_complete(point, paths, data))[-1]


def _every_path(states: int, rows: int) -> np.ndarray:
    """Return all paths of states, shape (states ** rows, rows)."""
    return np.array(list(product(range(states), repeat=rows)))


def _occupied(paths: np.ndarray, joint: np.ndarray) -> np.ndarray:
    """Return the probability of each state of each row, shape (T, K)."""
    weights = scipy.special.softmax(joint)
    return np.stack([weights @ (paths == k) for k in range(int(paths.max()) + 1)], axis=1)


def _estimate(case: Case, point: Params) -> xr.DataTree:
    """Return a fit whose only draw is the point."""
    outcome = Outcome(
        {name: np.asarray(value)[None, None] for name, value in point.items()}, "given", [at_most("", 0, 0)]
    )
    how = {"method": "given", "kind": "point estimate", "seed": 0}
    return assemble(Problem(case.model, read(case.model, dict(case.data)), case.rng), outcome, how, {})
