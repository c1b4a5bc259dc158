"""Variational Bayes by coordinate ascent: q(z) q(theta) with a complete ELBO (Attias 1999; Bishop, PRML, section 10.2).

For conjugate models the best q(theta) given expected statistics is the posterior given them, and the best q(z) is that
of EM at expected log parameters. The ELBO is the sum of the log normalizers of q(z) less KL(q(theta) || prior), taken
right after the step of q(z); every constant is kept, so that it is a bound of the log evidence.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayeszoo.approximation import pareto_k
from bayeszoo.ascent import RESTARTS, Search, search
from bayeszoo.gate import MAX_K_HAT, at_most
from bayeszoo.latent import Expectation, Values
from bayeszoo.problem import Outcome, Problem, Reporter
from bayeszoo.score import log_density

WEIGHTS = 4000
"""Draws by which q(theta) is compared with the posterior."""
MAX_DRAWS = 64_000
"""Draws at which a k-hat above its limit is believed, as of `approximation`."""
CELLS = 2**18
OPTIMA = 10
"""Optima of the ELBO whose surroundings are looked at for mass of the posterior, and the least draws of each."""
LEAST = 200


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
        found = climbs(model, problem.data, problem.rng, restarts, problem.reporter)
        posterior = model.vb_posterior(found.best.state)
        sample = posterior.rvs((chains, draws), problem.rng)
        facts = {
            **found.facts,
            "elbo": found.best.objective,
            "elbo_se": 0.0,
            **quality(model, found, problem.data, problem.rng),
        }
    checks = [*found.checks, at_most("k_hat", facts["k_hat"], MAX_K_HAT)]
    return Outcome(sample, "coordinate ascent", checks, facts, optimization={"elbo": found.best.trace})


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
    )


def quality(model: Any, found: Search, data: Values, rng: np.random.Generator) -> dict[str, Any]:
    """Compare q(theta) with the posterior by importance weights.

    Parameters
    ----------
    model : Model
        Must be `Variational`.
    found : Search
        Climbs of the ELBO.
    data : mapping of str to ndarray
    rng : numpy.random.Generator

    Returns
    -------
    dict
        ``k_hat``, the Pareto shape of the weights of the best q, which says how well it covers the posterior; and
        where the weights of all optima together have a good one, ``log_evidence`` by importance sampling with its
        Monte Carlo error ``log_evidence_mcse``, and ``evidence_k_hat``.

    Notes
    -----
    Draws are of a mixture of every q that a climb ended at, with weights like exp(ELBO), and more of the best: the mass
    of the posterior about a mode that no climb found is not in the estimate, nor in its error. Where labels mean
    nothing the posterior has a copy for each of their orders and a q covers one; the average of q over the orders
    covers all, and gives the same weights whatever the order that a draw is from.
    """
    optima = [climb.state for climb in found.distinct[:OPTIMA]]
    shares = np.exp([climb.objective - found.best.objective for climb in found.distinct[:OPTIMA]])
    draws = WEIGHTS
    facts = _weighed(model, optima, shares, draws, data, rng)
    while draws < MAX_DRAWS and not max(facts["k_hat"], facts["evidence_k_hat"]) <= MAX_K_HAT:
        draws *= 4
        facts = _weighed(model, optima, shares, draws, data, rng)
    return facts | ({"occupied_components": model.occupied(optima[0])} if hasattr(model, "occupied") else {})


def _weighed(
    model: Any, optima: list[Any], shares: np.ndarray, draws: int, data: Values, rng: np.random.Generator
) -> dict[str, Any]:
    """Draw from each optimum by its share, but from each at least some, and weigh the draws."""
    counts = np.maximum((draws * shares / shares.sum()).astype(int), LEAST)
    sample = _drawn(model, optima, counts, rng)
    log_q = np.array([model.vb_log_density(q, sample) for q in optima])
    log_p = _log_joint(model, sample, data)
    of_best = (log_p - log_q[0])[: counts[0]]
    log_mixture = np.logaddexp.reduce(log_q + np.log(counts / counts.sum())[:, None], axis=0)
    return {"k_hat": pareto_k(of_best), "k_hat_draws": int(counts[0]), **_evidence(log_p - log_mixture, counts)}


def _drawn(model: Any, optima: list[Any], counts: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw from each q so many times; a probability that underflowed has no logarithm, and is made the least number."""
    parts = [model.vb_posterior(q).rvs(int(count), rng) for q, count in zip(optima, counts, strict=True)]
    drawn = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {name: np.where(values == 0, np.finfo(np.float64).tiny, values) for name, values in drawn.items()}


def _evidence(weights: np.ndarray, counts: np.ndarray) -> dict[str, float]:
    """Average importance weights of draws that are stratified by the optimum which they are from."""
    k_hat = pareto_k(weights)
    if not k_hat <= MAX_K_HAT:
        return {"evidence_k_hat": k_hat}
    log_mean = float(np.logaddexp.reduce(weights) - math.log(len(weights)))
    strata = np.split(np.exp(weights - log_mean), np.cumsum(counts)[:-1])
    variance = math.fsum(stratum.var() * len(stratum) for stratum in strata) / len(weights) ** 2
    return {"log_evidence": log_mean, "log_evidence_mcse": math.sqrt(variance), "evidence_k_hat": k_hat}


def _log_joint(model: Any, sample: Values, data: Values) -> np.ndarray:
    """Return log p(y, theta) at draws with one leading axis, some at a time so that little memory is needed."""
    size, outcome = len(next(iter(sample.values()))), model.inputs.outcome(data)
    some = max(1, CELLS // max(1, outcome.size))
    parts = [{name: values[i : i + some] for name, values in sample.items()} for i in range(0, size, some)]
    likelihood = [log_density(model.likelihood(part, data), outcome).sum(axis=-1) for part in parts]
    return np.concatenate(likelihood) + np.asarray(model.log_prior(sample, data))
