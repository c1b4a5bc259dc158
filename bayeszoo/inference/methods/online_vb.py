"""Variational Bayes by minibatches (Hoffman, Blei and Bach 2010): q of the shared parameters, from a few rows per step.

For each minibatch, the q of its rows is optimized with the shared q held fixed; the shared q then moves towards its
optimum if all rows were like these, by steps that fall as (t + delay) ** -forgetting (Robbins and Monro 1951). At the
end the q of every row is optimized. The ELBO is complete and of all rows, as in `vb`; the gain of one full step of `vb`
measures the distance to an optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.foundation.gate import at_least, at_most
from bayeszoo.foundation.named import Arrays
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.inference.engine.ascent import COARSE
from bayeszoo.inference.engine.maxima import SAME, STOPPED
from bayeszoo.inference.methods.vb import described
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.capabilities import Stochastic

RESTARTS = 3

Step = Callable[[int], float]


def run(
    problem: Problem,
    *,
    draws: int = 1000,
    chains: int = 4,
    batch: int = 64,
    passes: int = 20,
    restarts: int = RESTARTS,
    delay: int = 1,
    forgetting: float = 0.7,
) -> Outcome:
    """Fit q(z) q(theta) by minibatches of ``batch`` rows, passing ``passes`` times through all, and draw from q(theta).

    The step at minibatch t is (t + delay) ** -forgetting: ``delay`` shortens the first steps, and ``forgetting``, above
    0.5 and below 1, is the rate at which steps fall. Draws are independent; chains only give them ArviZ's shape.
    """
    if not forgetting > 0.5:
        raise InputError(f"forgetting must be above 0.5 and below 1, got {forgetting:g}", "out_of_range")
    model, data, rng = problem.model_as(Stochastic), problem.data, problem.rng

    def step(t: int) -> float:
        return float((t + delay) ** -forgetting)

    with problem.clock.phase("run"):
        climbs = [climbed(model, data, rng, batch, passes, step, problem.reporter) for _ in range(restarts)]
        heights = [elbo(model, q, data) for q in climbs]
        q, best = climbs[int(np.argmax(heights))], max(heights)
        swept = model.vb_m_step(model.vb_e_step(q, data).stats)
        gain = (elbo(model, swept, data) - best) / max(1.0, abs(best))
        sample, coverage_facts, stats = described(problem, q, (chains, draws))
    reached = sum(best - height <= SAME for height in heights)
    checks = [
        at_most("sweep_gain", gain, COARSE),
        at_least("restarts", reached, 2).or_caveat(STOPPED),
    ]
    search = {"restarts": restarts, "reached_the_best": reached, "degenerate": 0}
    facts = {"elbo": best, "elbo_se": 0.0, **search, "maxima": sorted(heights, reverse=True)[:5], **coverage_facts}
    return Outcome(sample, "coordinate ascent by minibatches", checks, facts, stats)


def climbed(
    model: Stochastic,
    data: Arrays,
    rng: np.random.Generator,
    batch: int,
    passes: int,
    step: Step,
    reporter: Reporter | None = None,
) -> Any:
    """Return q of all rows after N passes from a random start; minibatch t moves the shared q by ``step(t)``."""
    inputs, q, t = model.inputs, model.vb_start(data, rng), 0
    size = inputs.size(data)
    for done in range(passes):
        (reporter or Reporter()).progress("passes", done, passes)
        order = rng.permutation(size)
        for start in range(0, size, batch):
            rows = np.sort(order[start : start + batch])
            q = model.vb_mixed(q, _target(model, q, inputs.reordered(data, rows), size / len(rows)), step(t))
            t += 1
    return model.vb_local(q, data)


def _target(model: Stochastic, q: object, part: Arrays, factor: float) -> Any:
    """Return the optimal shared q if all rows were like these."""
    stats = model.vb_e_step(model.vb_local(q, part), part).stats
    return model.vb_m_step(model.vb_scaled(stats, factor))


def elbo(model: Stochastic, q: object, data: Arrays) -> float:
    """Return the ELBO of all rows, with every constant."""
    return float(model.vb_e_step(q, data).value - model.divergence(q))
