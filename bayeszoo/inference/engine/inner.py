"""The inner parameters of a fit, whose method works on the outer ones alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.capabilities import Conditional


def with_inner(problem: Problem, outcome: Outcome, kind: str) -> Outcome:
    """Add the inner parameters: drawn given each draw of the outer ones, and at a point estimate their means there."""
    model = problem.model
    if not isinstance(model, Conditional) or model.outer.keys() != outcome.draws.keys():
        return outcome
    inner = model.posterior_given(outcome.draws, problem.data)
    is_point = kind == "point estimate"
    rest = {k: np.asarray(v.mean()) for k, v in inner.items()} if is_point else inner.rvs((), problem.rng)
    return replace(outcome, draws={**outcome.draws, **rest})
