"""Variational Bayes by coordinate ascent: q(z) q(theta) with a complete ELBO (Attias 1999; Bishop, PRML, section 10.2).

For conjugate models the best q(theta) given expected statistics is the posterior given them, and the best q(z) is that
of EM at expected log parameters. The ELBO is the sum of the log normalizers of q(z) less KL(q(theta) || prior), taken
right after the step of q(z); every constant is kept, so that it is a bound of the log evidence.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from bayeszoo.foundation.gate import MAX_K_HAT, at_most, pareto_k
from bayeszoo.foundation.progress import Reporter
from bayeszoo.inference.engine.ascent import RESTARTS, Effort, Search, search
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.base import Observable, Sufficient
from bayeszoo.model.capabilities import Expectation, Values, rows_have_parameters
from bayeszoo.model.density import log_density

MAX_RIVAL = 0.05
"""k-hat of draws about one mode cannot see another, of which the search knows."""
WEIGHTS = 4000
"""Draws by which q(theta) is compared with the posterior."""
MAX_DRAWS = 64_000
"""Draws at which a k-hat above its limit is believed, as of `approximation`."""
CELLS = 2**18
"""Rows times draws of which likelihoods are computed at a time."""
HELD = 2**24
"""Numbers of which draws are kept, or drawn at a time."""
MOST_COORDINATES = 200
"""Numbers in the parameters up to which k-hat is computed, where rows have parameters of their own."""


def run(problem: Problem, *, draws: int = 1000, chains: int = 4, restarts: int = RESTARTS) -> Outcome:
    """Fit q(z) q(theta), and draw from q(theta).

    Parameters
    ----------
    problem : Problem
        Its model must be `Variational`.
    draws, chains : int
        The draws are independent; chains only give them ArviZ's shape.
    restarts : int
        Random starts. While only one has reached the best, more are made, up to 200.
    """
    model: Any = problem.model
    with problem.clock.phase("run"):
        found = climbs(model, problem.sample, problem.rng, restarts, problem.reporter)
        facts = {**found.facts, "elbo": found.best.objective, "elbo_se": 0.0}
        facts |= {"occupied_components": model.occupied(found.best.state)} if hasattr(model, "occupied") else {}
        sample, about = described(problem, found.best.state, (chains, draws))
    rival = at_most("weight of the next optimum beside the best, by the ELBO", _rival(found), MAX_RIVAL)
    checks = [*found.checks, rival, at_most("k_hat", about["k_hat"], MAX_K_HAT)]
    return Outcome(sample, "coordinate ascent", checks, facts | about, optimization={"elbo": found.best.trace})


def described(problem: Problem, q: Any, shape: tuple[int, int]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Draw from q(theta), as many as memory allows, and say how well it covers the posterior.

    Parameters
    ----------
    problem : Problem
    q : Any
        The end of a climb.
    shape : tuple of int
        Chains and draws of each that were asked for.

    Returns
    -------
    dict of str to ndarray
        The draws; fewer of so many coordinates that they would have more than 2 ** 24 numbers.
    dict
        ``k_hat`` and ``k_hat_draws``; of many coordinates k-hat is None, and ``k_hat_withheld`` says why.
    """
    model: Any = problem.model
    posterior = model.vb_posterior(q)
    size = sum(np.size(marginal.mean()) for marginal in posterior.values())
    chains, draws = shape
    kept = min(draws, max(1, HELD // (chains * size)))
    facts: dict[str, Any] = {"draws_withheld": f"{kept} draws a chain instead of {draws}: they are of {size} numbers"}
    sample = posterior.rvs((chains, kept), problem.rng)
    facts = facts if kept < draws else {}
    if rows_have_parameters(model) and size > MOST_COORDINATES:
        why = f"of {size} coordinates importance weights are too unequal to say how well q covers the posterior"
        return sample, {**facts, "k_hat": None, "k_hat_withheld": why}
    return sample, {**facts, **coverage(model, q, problem.sample, problem.rng)}


def _rival(found: Search) -> float:
    """Return exp(ELBO of the next optimum less that of the best): how much of the posterior may lie about it."""
    others = found.distinct[1:]
    return math.exp(others[0].objective - found.best.objective) if others else 0.0


def climbs(
    model: Any, data: Values, rng: np.random.Generator, restarts: int = RESTARTS, reporter: Reporter | None = None
) -> Search:
    """Climb the ELBO from many starts."""

    def evaluate(q: Any) -> tuple[float, Expectation]:
        expectation = model.vb_e_step(q, data)
        return expectation.value - float(model.divergence(q)), expectation

    return search(
        lambda rng: model.vb_start(data, rng),
        evaluate,
        model.vb_m_step,
        rng,
        reporter or Reporter(),
        restarts=restarts,
        fingerprint=(lambda q: model.vb_row_terms(q, data)) if hasattr(model, "vb_row_terms") else None,
        effort=Effort.of(model, data),
    )


def coverage(model: Any, q: Any, data: Values, rng: np.random.Generator) -> dict[str, Any]:
    """Return how well q(theta) covers the posterior: the Pareto shape of its importance weights.

    Parameters
    ----------
    model : Model
        Must be `Variational`.
    q : Any
        The end of a climb.
    data : mapping of str to ndarray
    rng : numpy.random.Generator

    Returns
    -------
    dict
        ``k_hat`` and ``k_hat_draws``, with more draws as long as it is above its limit.

    Notes
    -----
    Where labels mean nothing the posterior has a copy for each of their orders and q covers one; the average of q over
    the orders covers all, and gives the same weights whatever the order that a draw is from. The mean of the weights is
    not reported: mass about modes that q does not cover would be missing in it, and in its error.
    """
    draws = WEIGHTS
    k_hat = pareto_k(_log_weights(model, q, data, draws, rng))
    while draws < MAX_DRAWS and not k_hat <= MAX_K_HAT:
        draws *= 4
        k_hat = pareto_k(_log_weights(model, q, data, draws, rng))
    return {"k_hat": k_hat, "k_hat_draws": draws}


def _log_weights(model: Any, q: Any, data: Values, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return log p(y, theta) - log q(theta) at draws, some at a time so that little memory is needed."""
    posterior = model.vb_posterior(q)
    some = max(1, HELD // sum(np.size(marginal.mean()) for marginal in posterior.values()))
    sizes = [min(some, draws - i) for i in range(0, draws, some)]
    return np.concatenate([_weights_of(model, q, data, posterior.rvs(size, rng)) for size in sizes])


def _weights_of(model: Any, q: Any, data: Values, drawn: Values) -> np.ndarray:
    # a probability that underflowed has no logarithm, and is made the least number
    sample = {name: np.where(values == 0, np.finfo(np.float64).tiny, values) for name, values in drawn.items()}
    return _log_joint(model, sample, data) - np.asarray(model.vb_log_density(q, sample))


def _log_joint(model: Any, sample: Values, data: Values) -> np.ndarray:
    """Return log p(y, theta) at draws with one leading axis, some at a time so that little memory is needed."""
    if isinstance(model, Sufficient):
        return np.asarray(cast(Any, model).log_likelihood(data, sample) + cast(Any, model).log_prior(sample, data))
    size, outcome = len(next(iter(sample.values()))), model.inputs.outcome(data)
    some = max(1, CELLS // max(1, outcome.size))
    parts = [{name: values[i : i + some] for name, values in sample.items()} for i in range(0, size, some)]
    likelihood = [_log_rows(model, part, data).sum(axis=-1) for part in parts]
    return np.concatenate(likelihood) + np.asarray(model.log_prior(sample, data))


def _log_rows(model: Any, params: Values, data: Values) -> np.ndarray:
    """Return the log density of each row; where rows depend on each other, given those before."""
    if isinstance(model, Observable):
        return log_density(model.likelihood(params, data), cast(Any, model).inputs.outcome(data))
    return np.asarray(model.row_terms(params, data))
