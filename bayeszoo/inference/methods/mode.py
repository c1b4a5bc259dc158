"""Point estimates: the MAP and the MLE, in closed form where the model has one, else by L-BFGS and Newton.

Both are taken in the *constrained* space, without the Jacobian of any transform, as PyMC's ``find_MAP`` does: the
MAP of a rate is not the exponential of the MAP of its logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.foundation.optimize import Gradient, distance_checks, maximize, require_few
from bayeszoo.inference.methods import em
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.inference.starts import starts
from bayeszoo.model.base import Exact, PointEstimates, Values
from bayeszoo.model.capabilities import Latent
from bayeszoo.model.density import log_likelihood, prior

STEPS = 32
"""Steps of either kind that a closed-form mode is tried by."""
MAX_ROWS = 10_000
"""Distinct rows up to which the likelihood of a step is taken row by row."""


def run_map(problem: Problem) -> Outcome:
    """Find the maximum a posteriori point."""
    model: Any = problem.model
    if isinstance(model, Latent):
        return em.run(problem)
    if hasattr(model, "certificate"):
        return _certified(problem, model.map, model.certificate, "least angle regression")
    if isinstance(model, PointEstimates) and isinstance(model, Exact):
        posterior = model.posterior(problem.stats)
        return _closed_form(problem, model.map, posterior.logpdf)
    return _optimized(problem, lambda density: density.constrained_joint)


def run_mle(problem: Problem) -> Outcome:
    """Find the maximum-likelihood point; the prior plays no part."""
    model: Any = problem.model
    if hasattr(model, "mle_certificate") and model.has_closed_mle(problem.stats):
        return _certified(problem, model.mle, model.mle_certificate, "closed form")
    if isinstance(model, Latent):
        return em.run(problem, estimate="mle")
    if isinstance(problem.model, PointEstimates) and isinstance(problem.model, Exact):
        return _closed_form(problem, problem.model.mle, _likelihood(problem))
    return _optimized(problem, lambda density: density.likelihood)


def _likelihood(problem: Problem) -> Callable[[Values], float]:
    """Return the log likelihood: of the rows; of many, or where none were kept, by Bayes' theorem, up to a constant."""
    model = cast(Any, problem.model)
    if hasattr(model, "log_likelihood"):
        return lambda params: cast(float, model.log_likelihood(problem.stats, params))
    if problem.has_rows and len(model.inputs.observations(problem.data)[1]) <= MAX_ROWS:
        return lambda params: cast(float, log_likelihood(model, params, problem.data))
    posterior, before = model.posterior(problem.stats), prior(model, problem.like)
    return lambda params: posterior.logpdf(params) - before.logpdf(params)


def _closed_form(problem: Problem, estimate: Callable[[Any], Values], objective: Callable[[Values], float]) -> Outcome:
    with problem.clock.phase("run"):
        params = estimate(problem.stats)
        facts = {"mode_space": em.SPACE, **_heights(problem, params)}
        checks = [at_most("gain of a small step", _nearby_gain(problem, params, objective), 0.0)]
    return Outcome(_as_draws(params), "closed form", checks, facts)


def _certified(
    problem: Problem, estimate: Callable[[Any], Values], certificate: Callable[..., list[Check]], sampler: str
) -> Outcome:
    """Take the model's own mode, whose optimality the model can check."""
    with problem.clock.phase("run"):
        params = estimate(problem.stats)
        facts = {"mode_space": em.SPACE, **_heights(problem, params)}
        checks = certificate(problem.stats, params)
    return Outcome(_as_draws(params), sampler, checks, facts)


def _nearby_gain(problem: Problem, params: Values, objective: Callable[[Values], float]) -> float:
    """Return the most that any of some small steps would gain, beyond rounding; NaN when it cannot be told."""
    posterior = _steps(problem)
    height = objective(params)
    if not math.isfinite(height):
        return math.nan
    rounding = 16 * np.finfo(np.float64).eps * max(1.0, abs(height))
    # outside the support SciPy says NaN or -inf
    inside = [there for there in _nearby(params, posterior) if math.isfinite(posterior.logpdf(there))]
    return float(np.max([objective(there) - height - rounding for there in inside])) if inside else math.nan


def _steps(problem: Problem) -> Any:
    """Return the posterior, or where it has no closed form the prior, to take steps towards draws of."""
    model = cast(Any, problem.model)
    try:
        return model.posterior(problem.stats)
    except NumericalError:
        return prior(model, problem.like)


def _nearby(params: Values, posterior: Any) -> Iterator[dict[str, np.ndarray]]:
    """Yield points a thousandth of the posterior's width away, on every side of the point.

    Parameter spaces are convex (numbers, simplexes, covariances): a step towards a draw stays inside, and so does one
    along the difference of two draws unless the point is on the edge.
    """
    draws = posterior.rvs(STEPS + 1, np.random.default_rng(0))
    here = {name: np.asarray(value, dtype=np.float64) for name, value in params.items()}
    for i in range(STEPS):
        yield {name: value + 1e-3 * (draws[name][i] - value) for name, value in here.items()}
        yield {name: value + 1e-3 * (draws[name][i] - draws[name][i + 1]) for name, value in here.items()}


def _heights(problem: Problem, params: Values) -> dict[str, float | None]:
    """Return log likelihood and log joint density of the ordered data at a point, each None when not at hand."""
    model = problem.model
    likelihood = log_likelihood(model, params, problem.data) if problem.has_rows else _by_bayes(problem, params)
    if likelihood is not None and isinstance(model, Latent):
        return {"log_likelihood": likelihood, "log_joint": likelihood + float(model.log_prior(params, problem.sample))}
    if likelihood is None or not isinstance(model, Exact):
        return {"log_likelihood": likelihood, "log_joint": None}
    return {"log_likelihood": likelihood, "log_joint": likelihood + prior(model, problem.like).logpdf(params)}


def _by_bayes(problem: Problem, params: Values) -> float | None:
    """Return the log likelihood as posterior times evidence over prior; None where these are not finite."""
    model = cast(Any, problem.model)
    if hasattr(model, "log_likelihood"):
        return float(model.log_likelihood(problem.stats, params))
    above, below = model.posterior(problem.stats).logpdf(params), prior(model, problem.like).logpdf(params)
    value = float(above) + float(model.log_evidence(problem.stats)) - float(below)
    return value if math.isfinite(value) else None


def _as_draws(params: Values) -> dict[str, np.ndarray]:
    return {name: np.asarray(value, dtype=np.float64)[None, None] for name, value in params.items()}


def _optimized(problem: Problem, target: Callable[[Any], Gradient]) -> Outcome:
    density = problem.density
    require_few(density.size, "the climb to the mode")
    with problem.clock.phase("compile"):
        climb, likelihood, joint = target(density), density.likelihood, density.constrained_joint
        density.constrain(density.start)
    with problem.clock.phase("run"):
        mode = maximize(climb, starts(problem)[0].x)
    facts = {
        "mode_space": em.SPACE,
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
