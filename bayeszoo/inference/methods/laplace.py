"""The Laplace approximation: a Gaussian at the mode of the *unconstrained* density, with its curvature there."""

from __future__ import annotations

import math

from bayeszoo.foundation.optimize import distance_checks, maximize, require_few
from bayeszoo.inference.engine.approximation import Approximation, gaussian
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.inference.starts import starts

SPACE = "unconstrained (with Jacobian)"


def run(problem: Problem, *, draws: int = 1000, chains: int = 4) -> Outcome:
    """Fit the approximation (MacKay 2003, chapter 27) and draw from it.

    Its log evidence is log p(y, mode) + D/2 log(2 pi) - log det(precision)/2: an approximation, not a bound.
    """
    density = problem.density
    require_few(density.size, "laplace")
    with problem.clock.phase("compile"):
        joint = density.joint
        density.constrain(density.start)
    with problem.clock.phase("run"):
        mode = maximize(joint, starts(problem)[0].x)
        q = gaussian(mode)
        log_evidence = mode.value + q.log_volume + 0.5 * density.size * math.log(2 * math.pi)
        facts = {"mode_space": SPACE, "gradient_norm": mode.gradient_norm, "log_evidence": log_evidence}
        found = Approximation(q, "L-BFGS and Newton", distance_checks(mode), facts, {"objective": mode.trace})
        return found.outcome(problem, (chains, draws))
