"""MAP and MLE of a log-concave model by Newton's method, which certifies that the maximum is the only one."""

from __future__ import annotations

import numpy as np

from bayeszoo.foundation.optimize import require_few
from bayeszoo.inference.methods.em import SPACE
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.capabilities import LogConcave


def run(problem: Problem, flat: bool) -> Outcome:
    """Maximize the log joint density, or with ``flat`` the likelihood.

    Raises
    ------
    NumericalError
        When the likelihood has no maximum, or none at a single point.
    """
    model = problem.model_as(LogConcave)
    with problem.clock.phase("run"):
        rows = model.concave(problem.data)
        require_few(rows.size, "Newton's method")
        if flat:
            rows.refuse_unbounded()
        peak = rows.highest(flat)
        params = rows.params(peak.x)
        likelihood = float(rows.values(peak.x[None])[0])
        heights = {"log_likelihood": likelihood, "log_joint": likelihood + float(rows.log_prior(params))}
        checks = peak.certificate()
    facts = {"mode_space": SPACE, **heights, "gradient_norm": float(np.max(np.abs(peak.there.gradient), initial=0.0))}
    draws = {name: np.asarray(value)[None, None] for name, value in params.items()}
    return Outcome(draws, peak.method, checks, facts, optimization={"objective": peak.trace})
