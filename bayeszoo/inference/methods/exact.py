"""The exact posterior, in closed form or by quadrature, and independent draws from it. PyMC is not imported."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayeszoo.distributions.posterior import QUANTILES, Marginal
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.foundation.numerics.constants import TINY
from bayeszoo.inference.engine.inner import refuse_many
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.capabilities import ClosedForm, is_integrated

MAX_ERROR = 1e-6
"""Largest error of a quantile, as a probability."""


def run(problem: Problem, *, draws: int = 1000, chains: int = 4) -> Outcome:
    """Draw independently from the exact posterior and compute the evidence."""
    size = sum(np.size(marginal.mean()) for marginal in problem.posterior.values())
    refuse_many(size, draws, chains)
    with problem.clock.phase("run"):
        sample = problem.posterior.rvs((chains, draws), problem.rng)
        log_evidence, facts, quadrature = _evidence(problem)
        # moments are not checked: they may be infinite or undefined, and are printed as such
        errors = [np.max(_error(marginal, q)) for marginal in problem.posterior.values() for q in QUANTILES.values()]
    broken = sum(int(np.sum(~np.isfinite(values))) for values in (np.asarray(log_evidence), *sample.values()))
    checks = [
        at_most("non_finite_numbers", broken, 0),
        at_most("quantile_inversion", float(np.max(errors)), MAX_ERROR),
    ]
    sampler = "quadrature" if quadrature else "closed form"
    return Outcome(sample, sampler, [*checks, *quadrature], {**facts, "log_evidence": log_evidence})


def run_mean(problem: Problem) -> Outcome:
    """Return the exact posterior mean of each parameter: the estimate with the smallest expected squared error."""
    with problem.clock.phase("run"):
        means = {name: np.asarray(marginal.mean(), dtype=np.float64) for name, marginal in problem.posterior.items()}
    if missing := [name for name, mean in means.items() if not np.isfinite(mean).all()]:
        raise NumericalError(f"the posterior of {', '.join(missing)} has no mean that is finite", "not_finite")
    checks = [at_most("non_finite_numbers", 0, 0), *_quadrature(problem)]
    return Outcome({name: mean[None, None] for name, mean in means.items()}, "posterior mean", checks)


def _quadrature(problem: Problem) -> list[Check]:
    """Return the checks of a quadrature; a closed form has none."""
    return problem.integrated.checks if is_integrated(type(problem.model)) else []


def _evidence(problem: Problem) -> tuple[float, Mapping[str, float], list[Check]]:
    """Return the log evidence, other figures of the model, and the checks of a quadrature."""
    model = problem.model
    if is_integrated(type(model)):
        return problem.integrated.log_evidence, {}, problem.integrated.checks
    closed_form = problem.model_as(ClosedForm)
    return closed_form.log_evidence(problem.stats), closed_form.figures(problem.stats), []


def _error(marginal: Marginal, q: float) -> np.ndarray:
    """Return |cdf(ppf(q)) - q|, or 0 where the spacing of doubles, far smaller than the sd, is the only error."""
    quantile = np.asarray(marginal.ppf(q))
    plain = np.abs(marginal.cdf(quantile) - q)
    if np.all(plain <= MAX_ERROR):
        return plain
    step = 2 * np.spacing(np.abs(quantile))
    is_fine = (np.abs(quantile) <= TINY) | (step <= 1e-3 * marginal.std())
    is_next = (marginal.cdf(quantile - np.maximum(step, TINY)) <= q) & (q <= marginal.cdf(quantile + step))
    return np.where(is_fine & is_next, 0.0, plain)
