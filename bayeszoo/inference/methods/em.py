"""Expectation-maximization (Dempster, Laird and Rubin 1977): the mode of the posterior, or of the likelihood.

Under a conjugate prior the M-step adds pseudo-counts, so that the fixed point is the MAP, in the constrained space;
under a flat prior it is the MLE. The engine checks that the objective never falls, restarts, reports how many climbs
reached the best, and refuses degenerate maxima. Bishop, PRML, section 9.4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.numerics.newton import slope_of
from bayeszoo.foundation.numerics.optimize import MAX_DISTANCE
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.inference.engine.acceleration import QuasiNewton, Steps, squared
from bayeszoo.inference.engine.ascent import RESTARTS, Ascent, Effort, climb, search
from bayeszoo.inference.engine.maxima import SAME, Search
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.capabilities import EM, Conditional, Latent, LogConcave, Symmetric, exchangeable_axis
from bayeszoo.model.capabilities.steps import Expectation
from bayeszoo.model.density import log_rows
from bayeszoo.model.many_files.rows import expected, from_sample, of_sample, some_of

NOTHING = 1e-100
"""Size below which a parameter counts as 0: an edge that a climb approaches."""
MOVED = 0.01
"""Largest relative difference of a quantity between two climbs to one maximum."""
SPACE = "constrained (no Jacobian)"
ESTIMATES = ("map", "mle")


def run(problem: Problem, *, estimate: str = "map", restarts: int = RESTARTS) -> Outcome:
    """Find the mode of the posterior, or with ``estimate`` "mle" of the likelihood, from ``restarts`` random starts.

    While only one climb has reached the best, more are made, up to 200. Raises `NumericalError` when there is no
    maximum, or every climb ended at a degenerate one.
    """
    if estimate not in ESTIMATES:
        raise InputError(f"there is no estimate {estimate!r}", "unknown_method", hint="use map or mle")
    flat = estimate == "mle"
    model, sample = problem.model_as(EM), some_of(problem.sample)
    if not flat and (reason := model.unbounded(sample)):
        raise NumericalError(f"the posterior density has no maximum: {reason}", "no_maximum")
    with problem.clock.phase("run"):
        search = searched(problem, flat, restarts)
        expectation = search.best.expectation
        why = model.undetermined(search.best.state, sample, expectation.stats, flat)
        if why := why or _equal_maximum(problem, search, flat):
            raise NumericalError(f"the maximum is not a single point: {why}", "no_maximum")
        likelihood, log_prior = expectation.value, float(model.log_prior(search.best.state, sample))
        heights = {"log_likelihood": likelihood, "log_joint": likelihood + log_prior}
        facts = {"mode_space": SPACE, **heights, **search.facts}
        if isinstance(model, Conditional) and (zero := [name for name, v in search.best.state.items() if v == 0]):
            facts["at_edge"] = zero
    draws = {name: np.asarray(value, dtype=np.float64)[None, None] for name, value in search.best.state.items()}
    checks = [*search.checks, *search.ties, *_slope_checks(model, problem.sample, search.best.state, flat)]
    return Outcome(draws, "EM", checks, facts, optimization={"objective": search.best.trace})


def _slope_checks(model: EM, data: Any, params: Params, flat: bool) -> list[Check]:
    """Check by the gradient, if the model has one, that the climb reached the maximum: its last steps may be tiny."""
    if not isinstance(model, LogConcave):
        return []
    rows = model.concave(data)
    derivatives = (rows.derivatives if flat else rows.joint)(rows.place(params))
    return [at_most("slope", slope_of(derivatives), MAX_DISTANCE)]


def searched(problem: Problem, flat: bool = False, restarts: int = RESTARTS) -> Search:
    """Climb from many starts; MAP and the chains of NUTS share the climbs of a problem."""
    model, purpose = problem.model_as(EM), ("EM", int(flat), restarts)

    def climbed() -> Search:
        return climbs(model, problem.sample, problem.stream(*purpose), flat, restarts, problem.reporter)

    return problem.once(purpose, climbed)


def climbs(
    model: EM,
    data: Any,
    rng: np.random.Generator,
    flat: bool,
    restarts: int = RESTARTS,
    reporter: Reporter | None = None,
) -> Search:
    """Climb from many starts, with ``flat`` without the prior; ``data`` are rows or sufficient statistics.

    If the rows are in files, a sample of them gives the starts and distinguishes the maxima. Raises `NumericalError`
    when the likelihood is known to have no maximum.
    """
    if flat and isinstance(model, LogConcave):
        model.concave(data).refuse_unbounded()
    sample = some_of(data)
    steps = _steps(model, data, flat)

    def suspect(params: Params, stats: object) -> str:
        # a proper prior keeps the density bounded: with it a small component may be the answer
        return model.degenerate(params, stats) if flat else ""

    ascent = Ascent(
        lambda rng: from_sample(model, model.start(sample, rng), data),
        steps,
        _longer(model, steps, sample, flat),
        suspect,
        lambda params: _fingerprint(model, of_sample(model, params, data), sample),
    )
    effort = replace(Effort.of(model, sample), gives_up=flat)
    return search(ascent, rng, reporter or Reporter(), restarts, effort)


def _steps(model: EM, data: object, flat: bool) -> Steps:
    """Return the E-step, which also gives the height at parameters, and the M-step."""
    sample = some_of(data)

    def evaluate(params: Params) -> tuple[float, Expectation]:
        expectation = expected(_e_step, model, params, data)
        return expectation.value + (0.0 if flat else float(model.log_prior(params, sample))), expectation

    def update(stats: object) -> Any:
        return model.m_step(stats, flat)

    return evaluate, update


def _equal_maximum(problem: Problem, search: Search, flat: bool) -> str:
    """Name the parameters that differ at another maximum, as high and with every row as likely; empty if none do.

    Of the climbs that were taken to end at the best maximum, the one farthest from it is climbed to its end.
    """
    model, data, best = problem.model_as(EM), problem.sample, search.best
    merged = [climb.merged_at for climb in search.by_maximum[0] if climb.merged_at is not None]
    if not merged:
        return ""
    sample = some_of(data)

    def moved(state: Params) -> dict[str, float]:
        near, far = (_label_free(model, of_sample(model, params, data), sample) for params in (best.state, state))
        return {name: _relative(near[name], far[name]) for name in near}

    start = max(merged, key=lambda state: max(moved(state).values()))
    end = climb(start, *_longer(model, _steps(model, data, flat), sample, flat))
    if best.objective - end.objective > SAME:
        return ""
    names = [name for name, share in moved(end.state).items() if share > MOVED]
    differing = f"parameters of each {axis}" if (axis := exchangeable_axis(model)) else ", ".join(names)
    return f"another maximum is as high and fits every row as well, and {differing} differ" if names else ""


def _label_free(model: EM, params: Params, data: object) -> Arrays:
    """Return quantities that do not depend on labels: invariants, or the parameters if labels are not exchangeable."""
    if exchangeable_axis(model) is None:
        return params
    draws = {name: np.asarray(value)[None, None] for name, value in params.items()}
    return cast(Symmetric, model).invariants(draws, data)


def _relative(first: Any, second: Any) -> float:
    """Return the largest difference of two arrays as a share of the largest number of the first."""
    size = np.max(np.abs(first), initial=NOTHING)
    return float(np.nanmax(np.abs(np.subtract(first, second)), initial=0.0) / size)


def _fingerprint(model: EM, params: Params, data: Any) -> np.ndarray | None:
    """Return the log density of each row, and its component unless labels are exchangeable; maxima differ in them."""
    rows = log_rows(model, params, data)
    if rows is None or not isinstance(model, Latent) or exchangeable_axis(model) is not None:
        return rows
    return np.concatenate([np.ravel(rows), np.ravel(model.component_probabilities(params, data))])


def _longer(model: EM, steps: Steps, data: object, flat: bool) -> Steps:
    """Return longer steps: extrapolated ones if the model has coordinates, else quasi-Newton steps."""
    if coordinates := model.coordinates(data):
        return squared(*steps, coordinates)
    climber = QuasiNewton(*steps, lambda params, stats: model.chart(params, stats, flat))
    return climber.evaluated, climber.longer_step


def _e_step(model: EM, params: Params, data: object) -> Expectation:
    return model.e_step(params, data)


def mle(model: EM, data: object) -> dict[str, np.ndarray]:
    """Return the parameters of maximum likelihood: in closed form if these data have one, else by climbs."""
    params = model.closed_mle(data)
    state: dict[str, Any] = climbs(model, data, np.random.default_rng(0), True).best.state if params is None else params
    return state
