"""Empirical Bayes by variational Bayes, where the evidence has no closed form: its lower bound is made largest.

Variational EM (Blei, Ng and Jordan 2003, section 5.3; Bishop, PRML, section 10.2): from an optimum of q at the fields
given, steps of q alternate with steps of the fields, each of which climbs the ELBO. What it finds is the maximum of a
bound, and not of the evidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayeszoo.comparison.evidence.surface import EmpiricalBayes
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError
from bayeszoo.families.documents.topic_model import LARGEST, SMALLEST
from bayeszoo.foundation.gate import at_most
from bayeszoo.foundation.progress import Reporter
from bayeszoo.inference.engine.ascent import Effort, Search, climb, search
from bayeszoo.model.capabilities import Expectation, Variational

WITHHELD = "the log evidence itself is withheld: the fields make its lower bound largest, by variational Bayes"
MOST_STEPS = 2000
"""Of a climb: where a field goes to an edge the ELBO rises ever more slowly, and no climb converges."""
NEAR = 1e-3
"""Relative distance to an edge of the search at which a field is at it."""


@dataclass(frozen=True, repr=False, eq=False)
class EmpiricalBayesByVB(EmpiricalBayes):
    """A model whose fields maximize the ELBO; ``log_evidence`` is withheld (NaN).

    Attributes
    ----------
    elbo, elbo_before : float
        The largest ELBO found over the fields and q, and at the fields given over q alone.
    trace : ndarray of shape (steps,)
        The ELBO of the best climb; its steps are of q and of the fields in turn.
    """

    elbo: float = math.nan
    elbo_before: float = math.nan
    trace: np.ndarray | None = None

    def about_evidence(self, shown: bool = True) -> list[str]:
        """Return what is known of the ELBO, a line each."""
        return [f"ELBO {self.elbo_before:.10g} -> {f'{self.elbo:.10g}' if shown else 'withheld'}", WITHHELD]


def by_vb(
    model: Variational,
    data: Data,
    over: Sequence[str],
    *,
    starts: int = 8,
    seed: int = 0,
    reporter: Reporter | None = None,
) -> EmpiricalBayesByVB:
    """Choose fields so that the ELBO is largest, by climbs from the fields given, each with a q at random.

    Its status is not ``"ok"`` where a field went to the edge of the search, 1e-6 or 1e6, or the best climb did not
    converge or was reached once only. Raises `InputError` where the model cannot choose such a field, `NumericalError`
    where no climb converged, as where a field has no best value.
    """
    for name in over:
        if name not in model.chosen_by_vb:
            raise InputError(f"--over {name}: {model.name} cannot choose it by variational Bayes")
    climbed, before = _search(model, data, tuple(over), starts, np.random.default_rng(seed), reporter or Reporter())
    after = climbed.best.state[0]
    edges = _edges(after, over)
    checks = [*climbed.checks, at_most("fields at the boundary", len(edges), 0)]
    chosen = after, model, tuple(over), edges, climbed.reached, len(climbed.climbs), checks
    return EmpiricalBayesByVB(*chosen, elbo=climbed.best.objective, elbo_before=before, trace=climbed.best.trace)


def _search(
    model: Variational, data: Data, over: tuple[str, ...], starts: int, rng: np.random.Generator, reporter: Reporter
) -> tuple[Search, float]:
    """Climb the ELBO over q and the fields, from optima of q at the fields given, and return the best of these.

    A state is a model and its q. From a q at random the fields often settle on what that is like; a quarter begins
    there none the less, for no start is best for all data.
    """
    effort, before = Effort.of(model, data), [-math.inf]
    effort = replace(effort, steps=min(effort.steps, MOST_STEPS))

    def evaluate(state: tuple[Any, Any]) -> tuple[float, Expectation]:
        own, q = state
        expected = own.vb_e_step(q, data)
        return expected.value - float(own.divergence(q)), Expectation((own, expected.stats), expected.value)

    def held(stats: tuple[Any, Any]) -> tuple[Any, Any]:
        return stats[0], stats[0].vb_m_step(stats[1])

    def chosen(stats: tuple[Any, Any]) -> tuple[Any, Any]:
        own, q = held(stats)
        return own.vb_choose(q, over)

    def begin(rng: np.random.Generator) -> tuple[Any, Any]:
        at_random, start = bool(before[0] > -math.inf and rng.random() < 0.25), (model, model.vb_start(data, rng))
        if at_random:
            return start
        climbed = climb(start, evaluate, held, effort)
        before[0] = max(before[0], climbed.objective)
        return climbed.state

    return search(begin, evaluate, chosen, rng, reporter, restarts=starts, effort=effort), before[0]


def _edges(model: Variational, over: Sequence[str]) -> dict[str, str]:
    """Say which fields ended at an edge of the search, where the ELBO has no maximum."""
    edges = {}
    for name in over:
        values = np.asarray(getattr(model, name))
        for limit, end in ((SMALLEST, "0"), (LARGEST, "infinity")):
            if np.any(np.abs(np.log(values / limit)) < NEAR):
                edges[name] = f"no maximum in {name}: the ELBO does not fall as {name} -> {end}"
    return edges
