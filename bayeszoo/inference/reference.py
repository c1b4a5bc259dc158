"""The reference posterior: draws of the posterior that an approximation is measured against.

An approximation's own draws cannot measure it: importance weights say nothing about regions without draws. So the
reference is drawn by a route that reaches further: the exact posterior where the model has one; else importance
sampling from Student t distributions about the known modes, whose tails are wider than the posterior's; else chains of
NUTS, or of the model's Gibbs sampler, that passed their checks. If no route works, the approximation is not measured,
and the reason is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy

from bayeszoo.errors import NumericalError
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import DEEP, MAX_K_HAT, failures, pareto_k
from bayeszoo.foundation.numerics.newton import climb
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.inference.engine.inner import with_inner
from bayeszoo.inference.methods import gibbs, nuts
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.inference.starts import Start, described, starts
from bayeszoo.model.base import number_of_parameters
from bayeszoo.model.capabilities import (
    ClosedForm,
    Conditional,
    Gibbs,
    Sufficient,
    is_integrated,
    is_log_concave,
)
from bayeszoo.model.many_files.rows import FileRows

CHAINS, DRAWS, DRAWS_BY_NUTS = 4, 2500, 1000
"""Shape of the reference draws: with 10,000 independent draws a mean is known to 0.01 sd, and an sd to 1%."""
PROPOSALS, MOST_PROPOSALS = 16_000, 512_000
DEGREES = 5.0
"""Degrees of freedom of the proposals, whose tails are heavier than those of any log-concave density."""
ENOUGH = 8000.0
"""Effective draws that are enough, when the first round may have all `PROPOSALS`."""
LEAST_PROPOSALS = 2000
HOPELESS = 20.0
"""Effective draws of a round below which more proposals do not help."""
MOST_COORDINATES = 200
"""Most parameters of a model for which a reference is drawn."""
MOST_OBSERVATIONS = 20_000
"""Most observations for which NUTS is run as a reference, when the density has no sufficient statistics."""
MOST_DENSITIES = 2e8
"""Most densities computed, proposals times observations: some seconds."""


@dataclass(frozen=True, eq=False)
class Reference:
    """Draws of the posterior and their source; if there are no draws, ``source`` says why."""

    source: str
    draws: Mapping[str, np.ndarray] = field(default_factory=dict)  # shape (chain, draw, *parameter shape)


@dataclass(frozen=True, eq=False)
class _Target:
    """A log density over points of shape (draws, D), its modes, and the map of points (..., D) to parameters."""

    modes: list[Start]
    log_density: Callable[[np.ndarray], np.ndarray]
    params: Callable[[np.ndarray], Mapping[str, np.ndarray]]


def reference(problem: Problem) -> Reference:
    """Return draws of the posterior by the first route that works; the methods of a command share them."""

    def timed() -> Reference:
        with problem.clock.phase("measure"):
            return _reference(replace(problem, rng=problem.stream("reference"), reporter=Reporter()))

    return problem.once("reference", timed)


def _reference(problem: Problem) -> Reference:
    if isinstance(problem.observed, FileRows):
        return Reference("the rows are in files")
    why = ""
    for route in (_exact, _refuse_large, _weighted, _sampled):
        try:
            if drawn := route(problem):
                return drawn
        except _TooLarge as error:
            return Reference(str(error))
        except (NumericalError, np.linalg.LinAlgError) as error:
            why = str(error)
    return Reference(why)


class _TooLarge(Exception):
    """The posterior is too large for any route."""


def _exact(problem: Problem) -> Reference:
    """Draw from the exact posterior, in closed form or by quadrature."""
    if not (isinstance(problem.model, ClosedForm) or is_integrated(type(problem.model))):
        raise NumericalError(f"{problem.model.name} has no exact posterior", "no_closed_form")
    return Reference("the exact posterior", problem.posterior.rvs((CHAINS, DRAWS), problem.rng))


def _refuse_large(problem: Problem) -> None:
    """Raise `_TooLarge` when the model is too large for a quick measurement, before anything is compiled."""
    model = problem.model
    count = 0 if isinstance(model, Conditional) else number_of_parameters(model, problem.like)
    if count > MOST_COORDINATES:
        raise _TooLarge(f"{count:,} parameters are too many to measure the approximation")
    if _observations(problem) * LEAST_PROPOSALS > MOST_DENSITIES:
        raise _TooLarge(f"{_observations(problem):,} observations are too many to measure the approximation")


def _weighted(problem: Problem) -> Reference:
    """Resample proposals about the modes by their importance weights."""
    if _is_gibbs_usual(problem):
        raise NumericalError("the modes are too many", "not_converged")
    most = min(MOST_PROPOSALS, MOST_DENSITIES // _observations(problem))
    size = int(min(PROPOSALS, most))
    target, enough = _target(problem), min(ENOUGH, size / 2)
    while size <= most:
        points, log_q = _proposed(target.modes, size, problem.rng)
        log_weights = target.log_density(points) - log_q
        weights = np.exp(diagnostics.smoothed_weights(-log_weights)[0])
        effective = 1 / np.sum(np.square(weights))
        if pareto_k(log_weights) <= MAX_K_HAT and effective >= enough:
            kept = points[_resampled(weights, CHAINS * DRAWS, problem.rng)].reshape(CHAINS, DRAWS, -1)
            return Reference("importance sampling about the mode", _with_inner(problem, target.params(kept)))
        if not effective * most / size >= enough or effective < HOPELESS:
            break
        size *= 4
    raise NumericalError("importance sampling about the mode has too few effective draws", "not_converged")


def _target(problem: Problem) -> _Target:
    if is_log_concave(problem.model):
        rows = problem.model.concave(problem.data)
        peak = climb(rows.joint, rows.start())
        mode = Start(peak.x, np.linalg.cholesky(np.linalg.inv(peak.there.curvature)))
        return _Target([mode], rows.joint_values, rows.params)
    joint = problem.density.joint
    modes = [start if start.scale is not None else described(joint, start.x) for start in starts(problem)]
    if any(mode.scale is None for mode in modes):
        raise NumericalError("the log density has no curvature at its mode", "no_maximum")
    return _Target(modes, lambda points: np.array([joint(x)[0] for x in points]), problem.density.constrain)


def _proposed(modes: list[Start], size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw points (size, D) from a mixture of Student t's about the modes; return them and its log density."""
    masses = np.exp([mode.log_mass - modes[0].log_mass for mode in modes])
    shares, dimension = masses / masses.sum(), len(modes[0].x)
    noise = rng.standard_normal((size, dimension)) * np.sqrt(DEGREES / rng.chisquare(DEGREES, (size, 1)))
    scales = np.array([mode.scale for mode in modes])
    chosen = rng.choice(len(modes), size, p=shares)
    points = np.array([mode.x for mode in modes])[chosen] + np.einsum("nij,nj->ni", scales[chosen], noise)
    parts = [np.log(share) + _log_student(mode, points) for mode, share in zip(modes, shares, strict=True)]
    return points, np.logaddexp.reduce(parts, axis=0)


def _log_student(mode: Start, points: np.ndarray) -> np.ndarray:
    """Return the log density of the Student t about a mode, up to a constant common to all modes."""
    z = scipy.linalg.solve_triangular(mode.scale, (points - mode.x).T, lower=True)
    squares = np.sum(np.square(z), axis=0)
    return -(DEGREES + len(mode.x)) / 2 * np.log1p(squares / DEGREES) + mode.height


def _resampled(weights: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw indices in proportion to their weights by systematic resampling, in random order."""
    levels = (rng.random() + np.arange(size)) / size
    indices = np.searchsorted(np.cumsum(weights) / np.sum(weights), levels)
    return rng.permutation(np.minimum(indices, len(weights) - 1))


def _sampled(problem: Problem) -> Reference:
    """Run NUTS, or Gibbs sampling where that is the usual method; raise unless its draws pass their checks."""
    if (observations := _observations(problem)) > MOST_OBSERVATIONS:
        raise NumericalError(f"{observations:,} observations are too many to measure the approximation", "too_large")
    name, model = "NUTS", problem.model
    if isinstance(model, Gibbs) and _is_gibbs_usual(problem):
        name, outcome = "Gibbs sampling", gibbs.run(problem, **dict[str, Any](model.gibbs_options))
    else:
        outcome = nuts.run(problem, draws=DRAWS_BY_NUTS, chains=CHAINS)
    if outcome.interrupted:
        raise KeyboardInterrupt  # the caller keeps the draws of the approximation
    missed = [check for check in outcome.checks if not (check.passed or check.name == DEEP)]
    if missed:
        raise NumericalError(
            f"{name}, against which it would be measured, did not pass its checks: {failures(missed)}", "not_converged"
        )
    return Reference(name, _with_inner(problem, outcome.draws))


def _is_gibbs_usual(problem: Problem) -> bool:
    return isinstance(problem.model, Gibbs) and problem.model.usual_method == "gibbs"


def _with_inner(problem: Problem, draws: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    return with_inner(problem, Outcome(draws, "", []), "sampled").draws


def _observations(problem: Problem) -> int:
    """Return the number of observations of which a density is computed; 1 with sufficient statistics."""
    if isinstance(problem.model, Sufficient):
        return 1
    return max(1, int(math.prod(np.shape(problem.model.inputs.outcome(problem.data)))))
