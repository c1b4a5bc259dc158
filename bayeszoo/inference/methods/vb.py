"""Variational Bayes by coordinate ascent: q(z) q(theta) with a complete ELBO (Attias 1999; Bishop, PRML, section 10.2).

For conjugate models the best q(theta) is the posterior given expected statistics, and the best q(z) is the E-step of EM
at expected log parameters. The ELBO is the sum of the log normalizers of q(z) minus KL(q(theta) || prior), taken right
after the step of q(z); every constant is kept, so that it is a lower bound of the log evidence.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from bayeszoo.foundation.gate import at_most
from bayeszoo.foundation.named import Params
from bayeszoo.foundation.numerics.constants import TINY
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.inference.engine.acceleration import squared
from bayeszoo.inference.engine.approximation import until_believed
from bayeszoo.inference.engine.ascent import RESTARTS, Ascent, Effort, search
from bayeszoo.inference.engine.maxima import Search
from bayeszoo.inference.problem import LOG_WEIGHT, Outcome, Problem
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import LogConcave, PriorDensity, Sufficient, Variational, rows_have_parameters
from bayeszoo.model.capabilities.steps import Expectation
from bayeszoo.model.density import log_rows
from bayeszoo.model.draws import size_of
from bayeszoo.model.many_files.rows import expected, from_sample, of_each, of_sample, some_of

MAX_RIVAL = 0.05  # largest weight of the next optimum: k-hat of draws about one mode cannot see another mode
CELLS = 2**18  # most likelihoods in a block: rows times draws
MOST_NUMBERS = 2**24  # most numbers in the draws that are kept, or drawn at once
MOST_COORDINATES = 200
"""Most numbers in the parameters for which k-hat is computed, if rows have parameters."""


def run(problem: Problem, *, draws: int = 1000, chains: int = 4, restarts: int = RESTARTS) -> Outcome:
    """Fit q(z) q(theta) from ``restarts`` random starts, and draw from q(theta).

    While only one climb has reached the best, more are made, up to 200. Draws are independent; chains only give them
    ArviZ's shape.
    """
    model = problem.model_as(Variational)
    with problem.clock.phase("run"):
        search = searched(problem, restarts)
        facts = {**search.facts, "elbo": search.best.objective, "elbo_se": 0.0}
        occupied = model.occupied(search.best.state)
        facts |= {} if occupied is None else {"occupied_components": occupied}
        sample, coverage_facts, stats = described(problem, search.best.state, (chains, draws))
    # posterior mass about the next optimum, relative to the best
    weights = [math.exp(climb.objective - search.best.objective) for climb in search.distinct[1:2]]
    rival = at_most("next_optimum_weight", sum(weights), MAX_RIVAL)
    trace = {"elbo": search.best.trace}
    return Outcome(sample, "coordinate ascent", [*search.checks, rival], facts | coverage_facts, stats, trace)


Described = tuple[dict[str, np.ndarray], dict[str, Any], dict[str, np.ndarray]]


def described(problem: Problem, q: object, shape: tuple[int, int]) -> Described:
    """Draw chains and draws of q(theta), at most 2 ** 24 numbers.

    Returns the draws, facts about how well q covers the posterior, and the log weight of each draw. With many
    coordinates ``k_hat`` is None, ``k_hat_withheld`` says why, and there are no weights.

    With exchangeable labels q covers one of their orders; q averaged over the orders covers all, and has the same
    weights. The mean weight is not reported: it would miss modes that q does not cover, and so would its error.
    """
    model = problem.model_as(Variational)
    posterior = model.vb_posterior(q)
    size = sum(np.size(marginal.mean()) for marginal in posterior.values())
    chains, draws = shape
    kept = min(draws, max(1, MOST_NUMBERS // (chains * size)))
    facts: dict[str, Any] = {"draws_withheld": f"{kept} draws a chain instead of {draws}: they are of {size} numbers"}
    sample = posterior.rvs((chains, kept), problem.rng)
    facts = facts if kept < draws else {}
    if rows_have_parameters(model) and size > MOST_COORDINATES:
        why = f"too many parameters ({size}) to measure the error of the approximation"
        return sample, {**facts, "k_hat": None, "k_hat_withheld": why}, {}
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in sample.items()}
    own = _log_weights(problem, q, flat)
    weights, k_hat = until_believed(partial(_weighed, problem, q), own)
    return sample, {**facts, "k_hat": k_hat, "k_hat_draws": len(weights)}, {LOG_WEIGHT: own.reshape(chains, kept)}


def searched(problem: Problem, restarts: int = RESTARTS) -> Search:
    """Climb the ELBO from many starts; all methods share the climbs of a problem."""
    model, purpose = problem.model_as(Variational), ("VB", restarts)

    def climbed() -> Search:
        return climbs(model, problem.sample, problem.stream(*purpose), restarts, problem.reporter)

    return problem.once(purpose, climbed)


def climbs(
    model: Variational,
    data: object,
    rng: np.random.Generator,
    restarts: int = RESTARTS,
    reporter: Reporter | None = None,
) -> Search:
    """Climb the ELBO from many starts; of rows in files, a sample gives the starts and distinguishes the optima."""
    sample = some_of(data)
    coordinates = model.vb_coordinates(sample)

    def evaluate(q: object) -> tuple[float, Expectation]:
        expectation = expected(_e_step, model, q, data)
        return expectation.value - float(model.divergence(q)), expectation

    def fingerprint(q: object) -> np.ndarray | None:
        q = of_sample(model, q, data)
        terms = model.vb_row_terms(q, sample)
        means = {name: np.asarray(marginal.mean()) for name, marginal in model.vb_posterior(q).items()}
        return log_rows(model, means, sample) if terms is None else terms

    ascent = Ascent(
        lambda rng: from_sample(model, model.vb_start(sample, rng), data),
        (evaluate, model.vb_m_step),
        squared(evaluate, model.vb_m_step, coordinates) if coordinates else None,
        fingerprint=fingerprint,
    )
    return search(ascent, rng, reporter or Reporter(), restarts, Effort.of(model, sample))


def _e_step(model: Variational, q: object, data: object) -> Expectation:
    return model.vb_e_step(q, data)


def _weighed(problem: Problem, q: object, draws: int) -> np.ndarray:
    """Return log p(y, theta) - log q(theta) at draws of q, shape (draws,), in blocks to save memory."""
    model = problem.model_as(Variational)
    posterior = model.vb_posterior(q)
    size = sum(np.size(marginal.mean()) for marginal in posterior.values())
    block, weights = max(1, MOST_NUMBERS // size), [np.zeros(0)]
    for start in range(0, draws, block):
        weights.append(_log_weights(problem, q, posterior.rvs(min(block, draws - start), problem.rng)))
    return np.concatenate(weights)


def _log_weights(problem: Problem, q: object, drawn: Params) -> np.ndarray:
    """Return log p(y, theta) - log q(theta) at draws with one leading axis."""
    # a probability that underflowed has no logarithm: it becomes the smallest number
    sample = {name: np.where(values == 0, TINY, values) for name, values in drawn.items()}
    return _log_joint(problem, sample) - np.asarray(problem.model_as(Variational).vb_log_density(q, sample))


def _log_joint(problem: Problem, sample: Params) -> np.ndarray:
    """Return log p(y, theta) at draws with one leading axis: by the model's densities, or by PyMC's."""
    if isinstance(problem.model, LogConcave):
        rows = problem.model.concave(problem.data)
        return rows.joint_values(rows.place(sample)) - rows.log_volume
    likelihood = _log_likelihood(problem, sample)
    if likelihood is None or not isinstance(problem.model, PriorDensity):
        points = ({name: values[i] for name, values in sample.items()} for i in range(size_of(sample)))
        density = problem.density
        return np.array([density.constrained_joint(density.unconstrain(point))[0] for point in points])
    return likelihood + np.asarray(problem.model.log_prior(sample, some_of(problem.sample)))


def _log_likelihood(problem: Problem, sample: Params) -> np.ndarray | None:
    """Return the log likelihood at draws, (draws,); None if the model has none."""
    model = problem.model
    if isinstance(model, Sufficient):
        value = model.log_likelihood(problem.stats, sample)
        return None if value is None else np.asarray(value)
    parts = of_each(_log_likelihood_of, model, sample, problem.sample)
    return None if parts[0] is None else np.sum(parts, axis=0)


def _log_likelihood_of(model: Model, sample: Params, data: Any) -> np.ndarray | None:
    """Return the log likelihood of rows at draws, (draws,), in blocks to save memory; None if the model has none."""
    size, outcome = size_of(sample), model.inputs.outcome(data)
    block = max(1, CELLS // max(1, outcome.size))
    parts = ({name: values[i : i + block] for name, values in sample.items()} for i in range(0, size, block))
    rows = (log_rows(model, part, data) for part in parts)
    sums = [None if row is None else row.sum(axis=-1) for row in rows]  # the rows of a part are not kept
    return None if sums[0] is None else np.concatenate([value for value in sums if value is not None])
