"""Point estimates: the MAP and the MLE, in closed form where the model has one, else by L-BFGS and Newton.

Both are taken in the *constrained* space, without the Jacobian of any transform, as PyMC's ``find_MAP`` does: the
MAP of a rate is not the exponential of the MAP of its logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from bayeszoo.gate import at_most
from bayeszoo.model import Conjugate, PointEstimates, Values
from bayeszoo.optimize import Gradient, distance_checks, maximize
from bayeszoo.problem import Outcome, Problem
from bayeszoo.score import log_likelihood, prior

SPACE = "constrained (no Jacobian)"


def run_map(problem: Problem) -> Outcome:
    """Find the maximum a posteriori point."""
    if isinstance(problem.model, PointEstimates) and isinstance(problem.model, Conjugate):
        posterior = problem.model.posterior(problem.stats)
        return _closed_form(problem, problem.model.map, posterior.logpdf)
    return _optimized(problem, lambda density: density.constrained_joint)


def run_mle(problem: Problem) -> Outcome:
    """Find the maximum-likelihood point; the prior plays no part."""
    model = problem.model
    if isinstance(model, PointEstimates) and isinstance(model, Conjugate):
        return _closed_form(problem, model.mle, lambda p: cast(float, log_likelihood(problem.model, p, problem.data)))
    return _optimized(problem, lambda density: density.likelihood)


def _closed_form(problem: Problem, estimate: Callable[[Any], Values], objective: Callable[[Values], float]) -> Outcome:
    with problem.clock.phase("run"):
        params = estimate(problem.stats)
        facts = {"mode_space": SPACE, **_heights(problem, params)}
        checks = [at_most("gain of a step of 0.001 sd", _nearby_gain(problem, params, objective), 0.0)]
    return Outcome(_as_draws(params), "closed form", checks, facts)


def _nearby_gain(problem: Problem, params: Values, objective: Callable[[Values], float]) -> float:
    """Return the most that moving any one coordinate a little either way would gain; NaN when it cannot be told."""
    posterior = cast(Any, problem.model).posterior(problem.stats)
    gains = [
        _gain(posterior, params, {**params, name: moved}, objective)
        for name, value in params.items()
        for moved in _moved(np.asarray(value, dtype=np.float64), posterior[name])
    ]
    return float(np.max(gains))


def _moved(value: np.ndarray, marginal: Any) -> Iterator[np.ndarray]:
    """Yield the value with each coordinate moved down and up; quantiles exist where a standard deviation may not."""
    steps = 1e-3 * (np.asarray(marginal.ppf(0.84)) - np.asarray(marginal.ppf(0.16))) / 2
    for i in range(value.size):
        for sign in (-1.0, 1.0):
            yield value + sign * steps * (np.arange(value.size) == i).reshape(value.shape)


def _gain(posterior: Any, here: Values, there: Values, objective: Callable[[Values], float]) -> float:
    if not math.isfinite(objective(here)):
        return math.nan
    outside = not math.isfinite(posterior.logpdf(there))  # of the support, where SciPy says NaN or -inf
    return -math.inf if outside else objective(there) - objective(here)


def _heights(problem: Problem, params: Values) -> dict[str, float | None]:
    """Return log likelihood and log joint density of the ordered data at a point, each None when not at hand."""
    likelihood = log_likelihood(problem.model, params, problem.data)
    if likelihood is None or not isinstance(problem.model, Conjugate):
        return {"log_likelihood": likelihood, "log_joint": None}
    return {"log_likelihood": likelihood, "log_joint": likelihood + prior(problem.model, problem.data).logpdf(params)}


def _as_draws(params: Values) -> dict[str, np.ndarray]:
    return {name: np.asarray(value, dtype=np.float64)[None, None] for name, value in params.items()}


def _optimized(problem: Problem, target: Callable[[Any], Gradient]) -> Outcome:
    density = problem.density
    with problem.clock.phase("compile"):
        climb, likelihood, joint = target(density), density.likelihood, density.constrained_joint
        density.constrain(density.start)
    with problem.clock.phase("run"):
        mode = maximize(climb, density.start)
    facts = {
        "mode_space": SPACE,
        "log_likelihood": likelihood(mode.x)[0],
        "log_joint": joint(mode.x)[0],
        "gradient_norm": mode.gradient_norm,
    }
    return Outcome(
        density.constrain(mode.x[None, None]),
        "L-BFGS and Newton",
        distance_checks(mode),
        facts,
        optimization={"objective": mode.trace},
        dims=density.dims,
        coords=density.coords,
    )
