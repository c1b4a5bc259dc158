"""Expectation-maximization (Dempster, Laird and Rubin 1977): the mode of the posterior, or of the likelihood.

Under a conjugate prior the M-step adds pseudo-counts, so that the fixed point is the MAP, in the constrained space;
under a flat one it is the MLE. The engine checks that the objective never falls, restarts, says how many climbs reached
the best, and refuses degenerate maxima as the answer. Bishop, PRML, section 9.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.progress import Reporter
from bayeszoo.inference.engine.ascent import RESTARTS, Climb, Effort, Evaluate, Search, Update, search
from bayeszoo.inference.engine.squarem import Accelerated
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.capabilities import Expectation, Values

SPACE = "constrained (no Jacobian)"
ESTIMATES = ("map", "mle")


def run(problem: Problem, *, estimate: str = "map", restarts: int = RESTARTS) -> Outcome:
    """Find the mode of the posterior, or of the likelihood.

    Parameters
    ----------
    problem : Problem
        Its model must be `Latent`.
    estimate : {"map", "mle"}
        Under the model's prior, or under a flat one.
    restarts : int
        Random starts. While only one has reached the best, more are made, up to 200.

    Raises
    ------
    NumericalError
        When there is no maximum, or every climb ended at a degenerate one.
    """
    if estimate not in ESTIMATES:
        raise InputError(f"there is no estimate {estimate!r}", hint="use map or mle")
    flat = estimate == "mle"
    model: Any = problem.model
    if not flat and hasattr(model, "unbounded") and (reason := model.unbounded(problem.sample)):
        raise NumericalError(f"the posterior density has no maximum: {reason}")
    with problem.clock.phase("run"):
        found = climbs(model, problem.sample, problem.rng, flat, restarts, problem.reporter)
        if hasattr(model, "undetermined") and (why := model.undetermined(found.best.state, problem.data, flat)):
            raise NumericalError(f"the maximum is not a single point: {why}")
        facts = {"mode_space": SPACE, **_heights(problem, found.best), **found.facts}
    draws = {name: np.asarray(value, dtype=np.float64)[None, None] for name, value in found.best.state.items()}
    return Outcome(draws, "EM", found.checks, facts, optimization={"objective": found.best.trace})


def climbs(
    model: Any,
    data: Any,
    rng: np.random.Generator,
    flat: bool,
    restarts: int = RESTARTS,
    reporter: Reporter | None = None,
) -> Search:
    """Climb from many starts; ``flat`` leaves the prior out.

    The steps are given ``data``: the rows, or the statistics of a model that is `Sufficient`.

    Raises
    ------
    NumericalError
        When no climb gave an answer.
    """

    def evaluate(params: Values) -> tuple[float, Expectation]:
        expectation = model.e_step(params, data)
        return expectation.value + (0.0 if flat else float(model.log_prior(params, data))), expectation

    def suspect(params: Values) -> str:
        # a proper prior keeps the density bounded: there a small component is an answer, and no artefact
        return model.degenerate(params, data) if flat and hasattr(model, "degenerate") else ""

    def update(stats: Any) -> Any:
        return model.m_step(stats, flat)

    steps: tuple[Evaluate, Update] = evaluate, update
    if hasattr(model, "to_vector"):
        faster = Accelerated(evaluate, update, model.to_vector, model.from_vector)
        steps = faster.evaluate, faster.update
    return search(
        lambda rng: model.start(data, rng),
        *steps,
        rng,
        reporter or Reporter(),
        suspect,
        restarts,
        (lambda params: model.row_terms(params, data)) if hasattr(model, "row_terms") else None,
        Effort.of(model, data),
    )


def _heights(problem: Problem, best: Climb) -> dict[str, float]:
    model: Any = problem.model
    likelihood = best.expectation.value
    return {
        "log_likelihood": likelihood,
        "log_joint": likelihood + float(model.log_prior(best.state, problem.sample)),
    }
