"""Point estimates, in closed form if the model has one, else by L-BFGS and Newton; and the Laplace approximation.

MAP and MLE are taken in the *constrained* space, without the Jacobian of any transform, as PyMC's ``find_MAP`` does:
the MAP of a rate is not the exponential of the MAP of its logarithm. Laplace's Gaussian is at the mode of the
*unconstrained* density.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bayeszoo.distributions.posterior import Posterior
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import Check, at_most, passed
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.numerics.constants import LOG_2_PI
from bayeszoo.foundation.numerics.optimize import (
    Gradient,
    Mode,
    distance_checks,
    maximize,
    require_few,
)
from bayeszoo.inference.engine import approximation
from bayeszoo.inference.engine.ascent import NO_CLIMB
from bayeszoo.inference.engine.maxima import SAME, TIED
from bayeszoo.inference.labels.symmetry import is_symmetric
from bayeszoo.inference.methods import em
from bayeszoo.inference.methods.modes import concave, fields, outer
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.inference.starts import VISITS, starts, visit_checks
from bayeszoo.model.capabilities import (
    EM,
    ClosedForm,
    Conditional,
    LogConcave,
    PointEstimates,
    Sufficient,
    Symmetric,
    Variational,
    is_exact,
    is_log_concave,
)
from bayeszoo.model.density import log_likelihood, prior
from bayeszoo.model.many_files.rows import some_of
from bayeszoo.model.outer.over import Over

STEPS = 32  # steps of each of two kinds that test a closed-form mode
MAX_ROWS = 10_000  # most distinct rows for which the likelihood of a test step is computed row by row

_NO_MLE = ("no_maximum", "no_data", "exact_fit", "not_identified")
"""Codes of errors of data that have no maximum of the likelihood, or several."""

CORNERS = "laplace: the log density has corners, and no curvature at a mode on one; nuts samples it"


def run_map(problem: Problem) -> Outcome:
    """Find the maximum a posteriori point. Where there is none, propose a method that needs none."""
    try:
        return _map(problem)
    except NumericalError as error:
        if error.code != "no_maximum" or _names_a_step(str(error)):
            raise
        model = problem.model
        other = "exact" if is_exact(type(model)) else "vb" if isinstance(model, Variational) else "nuts"
        raise NumericalError(f"{error}; try {other}, which needs no mode", error.code) from error


def _names_a_step(line: str) -> bool:
    return any(step in line for step in (": use ", "; use ", " map ", "try "))


def _map(problem: Problem) -> Outcome:
    model = problem.model
    if isinstance(model, LogConcave):
        return concave.run(problem, flat=False)
    if isinstance(model, Over):
        return fields.run(problem, flat=False)
    if isinstance(model, Conditional) and not model.outer_shapes():
        return outer.run(problem, flat=False)
    if isinstance(model, EM):
        return em.run(problem)
    if isinstance(model, PointEstimates):
        with problem.clock.phase("run"):
            params = model.map(problem.stats)
            if certificate := model.certificate(problem.stats, params):
                return _computed(problem, params, "least angle regression", certificate)
            gain = _nearby_gain(problem, params, problem.posterior.logpdf)
        return _computed(problem, params, "closed form", [at_most("small_step_gain", gain, 0.0)])
    return _optimized(problem, lambda density: density.constrained_joint)


def run_mle(problem: Problem) -> Outcome:
    """Find the maximum-likelihood point; the prior plays no part. Where there is none, propose `run_map`."""
    try:
        return _mle(problem)
    except NumericalError as error:
        line = str(error)
        is_of_rows = error.code in _NO_MLE or line.startswith(NO_CLIMB)
        if not is_of_rows or _names_a_step(line):
            raise
        line = line if "maximum" in line else f"no maximum-likelihood estimate: {line}"
        raise NumericalError(f"{line}; try map, whose prior decides where the data do not", error.code) from error


def _mle(problem: Problem) -> Outcome:
    model = problem.model
    if isinstance(model, LogConcave):
        return concave.run(problem, flat=True)
    if isinstance(model, Over):
        return fields.run(problem, flat=True)
    if isinstance(model, Conditional) and not model.outer_shapes():
        return outer.run(problem, flat=True)
    if isinstance(model, EM):
        params = model.closed_mle(some_of(problem.sample))
        if params is None:
            return em.run(problem, estimate="mle")
        return _computed(problem, params, "closed form", model.certificate(problem.sample, params))
    if isinstance(model, PointEstimates):
        with problem.clock.phase("run"):
            params = model.mle(problem.stats)
            gain = _nearby_gain(problem, params, lambda point: _log_likelihood(problem, point, MAX_ROWS))
        return _computed(problem, params, "closed form", [at_most("small_step_gain", gain, 0.0)])
    return _optimized(problem, lambda density: density.likelihood)


def _log_likelihood(problem: Problem, params: Params, most: float = math.inf) -> float:
    """Return the log likelihood from statistics or at most ``most`` rows, else by Bayes' theorem; NaN if unknown."""
    model = problem.model
    if isinstance(model, Sufficient) and (from_stats := model.log_likelihood(problem.stats, params)) is not None:
        return float(from_stats)
    has_few_rows = problem.has_rows and (most == math.inf or len(model.inputs.observations(problem.data)[1]) <= most)
    if has_few_rows and (value := log_likelihood(model, params, problem.data)) is not None:
        return value
    if not isinstance(model, ClosedForm):
        return math.nan
    log_posterior, log_prior = problem.posterior.logpdf(params), prior(model, problem.like).logpdf(params)
    return float(log_posterior) + float(model.log_evidence(problem.stats)) - float(log_prior)


def _computed(problem: Problem, params: Params, sampler: str, checks: list[Check]) -> Outcome:
    """Return the outcome of an estimate that the model computed, with its checks."""
    with problem.clock.phase("run"):
        facts = {"mode_space": em.SPACE, **_heights(problem, params)}
    draws = {name: np.asarray(value, dtype=np.float64)[None, None] for name, value in params.items()}
    return Outcome(draws, sampler, checks, facts)


def _nearby_gain(problem: Problem, params: Params, objective: Callable[[Params], float]) -> float:
    """Return the largest gain, beyond rounding, of small steps from a point; NaN if it cannot be computed."""
    try:
        posterior = problem.posterior
    except NumericalError:  # steps are then taken towards draws from the prior
        posterior = prior(problem.model_as(ClosedForm), problem.like)
    height = objective(params)
    if not math.isfinite(height):
        return math.nan
    rounding = 16 * np.finfo(np.float64).eps * max(1.0, abs(height))
    # outside the support SciPy returns NaN or -inf
    inside = [point for point in _nearby(params, posterior) if math.isfinite(posterior.logpdf(point))]
    return float(np.max([objective(point) - height - rounding for point in inside])) if inside else math.nan


def _nearby(params: Params, posterior: Posterior) -> Iterator[dict[str, np.ndarray]]:
    """Yield points a thousandth of the posterior's width away, on every side of the point.

    Parameter spaces are convex: a step towards a draw stays inside, and so does a step along the difference of two
    draws, unless the point is on the edge.
    """
    draws = posterior.rvs(STEPS + 1, np.random.default_rng(0))
    point = {name: np.asarray(value, dtype=np.float64) for name, value in params.items()}
    for i in range(STEPS):
        yield {name: value + 1e-3 * (draws[name][i] - value) for name, value in point.items()}
        yield {name: value + 1e-3 * (draws[name][i] - draws[name][i + 1]) for name, value in point.items()}


def _heights(problem: Problem, params: Params) -> dict[str, float | None]:
    """Return log likelihood and log joint density of the ordered data at a point, each None if unknown."""
    model = problem.model
    likelihood, log_prior = _log_likelihood(problem, params), math.nan
    if isinstance(model, EM):
        log_prior = float(model.log_prior(params, problem.sample))
    elif isinstance(model, ClosedForm):
        log_prior = float(prior(model, problem.like).logpdf(params))
    heights = {"log_likelihood": likelihood, "log_joint": likelihood + log_prior}
    return {name: height if math.isfinite(height) else None for name, height in heights.items()}


def _optimized(problem: Problem, target: Callable[[Any], Gradient]) -> Outcome:
    density = problem.density
    require_few(density.size, "the climb to the mode")
    with problem.clock.phase("compile"):
        climb, likelihood, joint = target(density), density.likelihood, density.constrained_joint
        density.constrain(density.start)
    with problem.clock.phase("run"):
        modes = sorted((maximize(climb, start.x) for start in starts(problem)), key=lambda end: -end.value)
    mode = modes[0]
    heights = {"log_likelihood": likelihood(mode.x)[0], "log_joint": joint(mode.x)[0]}
    facts = {"mode_space": em.SPACE, **heights, "gradient_norm": mode.gradient_norm}
    draws, trace = density.constrain(mode.x[None, None]), {"objective": mode.trace}
    checks, dims, coords = [*distance_checks(mode), *_ties(problem, modes)], density.dims, density.coords
    return Outcome(draws, "L-BFGS and Newton", checks, facts, optimization=trace, dims=dims, coords=coords)


def _ties(problem: Problem, modes: Sequence[Mode]) -> list[Check]:
    """Check that climbs that end as high as the best end at the same point, to a hundredth of an sd."""
    best, *rivals = modes
    if is_symmetric(problem.model):
        return []
    steps = [rival.x - best.x for rival in rivals if best.value - rival.value <= SAME]
    apart = [step for step in steps if step @ best.precision @ step > 1e-4]
    return [at_most("equal_maxima", len(apart), 0).or_caveat(TIED)] if apart else []


def is_on_corner(joint: Gradient, q: approximation.Gaussian) -> bool:
    """Say whether a mode is on a corner of the log density, where the slope jumps and there is no curvature.

    If the density is smooth, a step of 0.1 sd changes the slope about a tenth as much as a step of one sd.
    """

    def change(i: int, step: float) -> float:
        along = step * q.sd[i] * np.eye(len(q.mean))[i]
        return float(joint(q.mean - along)[1][i] - joint(q.mean + along)[1][i])

    return any(change(i, 0.1) > 0.5 * change(i, 1.0) > 0 for i in range(len(q.mean)))


def laplace(problem: Problem, *, draws: int = 1000, chains: int = 4) -> Outcome:
    """Fit a Gaussian with the curvature at the mode of the unconstrained density (MacKay 2003, chapter 27).

    Its log evidence is log p(y, mode) + D/2 log(2 pi) - log det(precision)/2: an approximation, not a bound.
    """
    if is_log_concave(problem.model) and problem.model.concave(problem.data).has_corners:
        raise NumericalError(CORNERS, "no_curvature")
    if isinstance(problem.model, Symmetric) and problem.model.prior_orders_labels:
        why = "Laplace's method covers only one of many orders of the sticks: use --method gibbs"
        raise NumericalError(why, "unvisited_mode")
    density = problem.density
    require_few(density.size, "laplace")
    with problem.clock.phase("compile"):
        joint = density.joint
        density.constrain(density.start)
    with problem.clock.phase("run"):
        mode = maximize(joint, starts(problem)[0].x)
        q = approximation.gaussian(mode)
        if not passed(at_mode := distance_checks(mode)) and is_on_corner(joint, q):
            raise NumericalError(CORNERS, "no_curvature")
        log_evidence = mode.value + q.log_volume + 0.5 * density.size * LOG_2_PI
        facts = {"mode_space": "unconstrained (with Jacobian)", "gradient_norm": mode.gradient_norm}
        facts["log_evidence"] = log_evidence
        points = q.at(problem.rng.spawn(1)[0].standard_normal((VISITS, density.size)))
        checks, trace = [*at_mode, *visit_checks(problem, points)], {"objective": mode.trace}
        return approximation.outcome(problem, q, "L-BFGS and Newton", checks, facts, trace, (chains, draws))
