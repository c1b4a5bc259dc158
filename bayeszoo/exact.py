"""The exact posterior of a conjugate model: closed form, and independent draws from it. PyMC is not imported."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayeszoo.families import Posterior
from bayeszoo.gate import at_most
from bayeszoo.problem import Outcome, Problem
from bayeszoo.tree import QUANTILES


def run(problem: Problem, *, draws: int = 1000, chains: int = 4) -> Outcome:
    """Draw independently from the closed-form posterior and compute the evidence.

    Parameters
    ----------
    problem : Problem
        Its model must be `Conjugate`.
    draws, chains : int
        The draws are independent; chains only give them ArviZ's shape.
    """
    model: Any = problem.model
    with problem.clock.phase("run"):
        sample = model.posterior(problem.stats).rvs((chains, draws), problem.rng)
        log_evidence = model.log_evidence(problem.stats)
        numbers = [log_evidence, *sample.values(), *_closed_forms(model.posterior(problem.stats))]
    broken = sum(int((~np.isfinite(values)).sum()) for values in numbers)
    return Outcome(sample, "closed form", [at_most("numbers not finite", broken, 0)], {"log_evidence": log_evidence})


def _closed_forms(posterior: Posterior) -> list[np.ndarray]:
    """Return the quantiles that a summary will print; moments may be infinite or undefined, and are printed as such."""
    return [np.asarray(marginal.ppf(q)) for marginal in posterior.values() for q in QUANTILES.values()]
