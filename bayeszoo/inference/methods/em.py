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
from bayeszoo.inference.engine.ascent import RESTARTS, Effort, Evaluate, Search, Update, search
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.base import Values
from bayeszoo.model.capabilities import EM, Coordinates, Expectation
from bayeszoo.model.density import log_rows

SPACE = "constrained (no Jacobian)"
ESTIMATES = ("map", "mle")


def run(problem: Problem, *, estimate: str = "map", restarts: int = RESTARTS) -> Outcome:
    """Find the mode of the posterior, or with ``estimate`` "mle" of the likelihood, from ``restarts`` random starts.

    While only one has reached the best, more are made, up to 200. `NumericalError` says why there is no maximum, or
    that every climb ended at a degenerate one.
    """
    if estimate not in ESTIMATES:
        raise InputError(f"there is no estimate {estimate!r}", hint="use map or mle")
    flat = estimate == "mle"
    model = problem.model_as(EM)
    if not flat and (reason := model.unbounded(problem.sample)):
        raise NumericalError(f"the posterior density has no maximum: {reason}")
    with problem.clock.phase("run"):
        search = climbs(model, problem.sample, problem.rng, flat, restarts, problem.reporter)
        if why := model.undetermined(search.best.state, problem.sample, flat):
            raise NumericalError(f"the maximum is not a single point: {why}")
        likelihood, log_prior = search.best.expectation.value, float(model.log_prior(search.best.state, problem.sample))
        heights = {"log_likelihood": likelihood, "log_joint": likelihood + log_prior}
        facts = {"mode_space": SPACE, **heights, **search.facts}
    draws = {name: np.asarray(value, dtype=np.float64)[None, None] for name, value in search.best.state.items()}
    return Outcome(draws, "EM", search.checks, facts, optimization={"objective": search.best.trace})


def climbs(
    model: EM,
    data: Any,
    rng: np.random.Generator,
    flat: bool,
    restarts: int = RESTARTS,
    reporter: Reporter | None = None,
) -> Search:
    """Climb from many starts, with ``flat`` without the prior; the steps are given ``data``, rows or statistics."""

    def evaluate(params: Values) -> tuple[float, Expectation]:
        expectation = model.e_step(params, data)
        return expectation.value + (0.0 if flat else float(model.log_prior(params, data))), expectation

    def suspect(params: Values) -> str:
        # a proper prior keeps the density bounded: there a small component is an answer, and no artefact
        return model.degenerate(params, data) if flat else ""

    def update(stats: Any) -> Any:
        return model.m_step(stats, flat)

    steps: tuple[Evaluate, Update] = evaluate, update
    if coordinates := model.coordinates():
        steps = _accelerated(evaluate, update, coordinates)
    return search(
        lambda rng: model.start(data, rng),
        *steps,
        rng,
        reporter or Reporter(),
        suspect,
        restarts,
        lambda params: log_rows(model, params, data),
        Effort.of(model, data),
    )


def _accelerated(evaluate: Evaluate, update: Update, coordinates: Coordinates) -> tuple[Evaluate, Update]:
    """Return steps that go two at a time, and jump along their direction where that climbs higher: they never fall.

    EM converges linearly, and slowly where the latent variables say much about the parameters that the data do not: the
    loadings of a factor with little noise take thousands of steps. Varadhan and Roland 2008, scheme S3.
    """
    state: Any = None
    reached: Any = None  # the height and the E-step at ``state``, from where the next step is

    def remembered(here: Any) -> tuple[float, Expectation]:
        nonlocal state, reached
        if here is not state:
            state, reached = here, evaluate(here)
        return reached

    def two_steps_or_a_jump(stats: Any) -> Any:
        nonlocal state, reached
        first = update(stats)
        second = update(evaluate(first)[1].stats)
        farther = _extrapolated(*(coordinates.to_vector(each) for each in (state, first, second)))
        jump = None if farther is None else coordinates.from_vector(farther)
        state, reached = second, evaluate(second)
        if jump is not None and (there := evaluate(jump))[0] > reached[0]:  # NaN is not
            state, reached = jump, there
        return state

    return remembered, two_steps_or_a_jump


def _extrapolated(start: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray | None:
    """Return where the steps between three points lead; None where they do not bend."""
    step, bend = first - start, second - 2 * first + start
    size = np.linalg.norm(bend)
    if not size > 0:
        return None
    length = max(np.linalg.norm(step) / size, 1.0)
    return start + 2 * length * step + length**2 * bend


def mle(model: EM, data: Any) -> dict[str, Any]:
    """Return the maximum of the likelihood: in closed form where the model has one for these data, else by climbs."""
    params = model.closed_mle(data)
    state: dict[str, Any] = climbs(model, data, np.random.default_rng(0), True).best.state if params is None else params
    return state
