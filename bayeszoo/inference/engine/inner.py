"""The inner parameters of a fit whose method works on the outer parameters alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.foundation.blocks import blocks
from bayeszoo.inference.problem import Outcome, Problem
from bayeszoo.model.base import number_of_parameters
from bayeszoo.model.capabilities import Conditional

MOST_DRAWN = 2**28
"""Most numbers in all draws: 2 GB."""
AT_ONCE = 2**22
"""Most numbers of inner parameters drawn at once: 32 MB."""


def require_room(problem: Problem, options: Mapping[str, Any]) -> None:
    """Refuse draws of the inner parameters that do not fit in memory, before the outer parameters are sampled."""
    if isinstance(problem.model, Conditional) and problem.has_rows and "draws" in options:
        inner = number_of_parameters(problem.model, problem.data)
        refuse_many(inner, options["draws"], options.get("chains", 1))


def refuse_many(size: int, draws: int, chains: int) -> None:
    """Refuse draws of N quantities that do not fit in memory."""
    if (numbers := size * draws * chains) > MOST_DRAWN:
        line = f"{draws * chains:,} draws of {size:,} quantities take {8 * numbers / 1e9:.1f} GB"
        raise InputError(
            line, "not_writable", hint=f"ask for fewer draws of each of the {chains} chains, or choose columns"
        )


def with_inner(problem: Problem, outcome: Outcome, kind: str) -> Outcome:
    """Add the inner parameters: a draw given each draw of the outer ones, or for a point estimate their means."""
    model = problem.model
    if not isinstance(model, Conditional) or model.outer.keys() != outcome.draws.keys():
        return outcome
    if kind == "point estimate":
        inner = model.posterior_given(outcome.draws, problem.data)
        means = {name: np.asarray(marginal.mean()) for name, marginal in inner.items()}
        return replace(outcome, draws={**outcome.draws, **means})
    return replace(outcome, draws={**outcome.draws, **_drawn(model, outcome.draws, problem)})


def _drawn(model: Conditional, outer: Mapping[str, np.ndarray], problem: Problem) -> dict[str, np.ndarray]:
    """Draw inner parameters, (chain, draw, ...), given each draw of the outer ones, in blocks of draws."""
    shape = next(iter(outer.values())).shape[:2]
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in outer.items()}

    def parts() -> Iterator[dict[str, np.ndarray]]:
        for block in blocks(shape[0] * shape[1], number_of_parameters(model, problem.data), AT_ONCE):
            outer_block = {name: values[block] for name, values in flat.items()}
            yield model.posterior_given(outer_block, problem.data).rvs((), problem.rng)

    inner = list(parts())
    joined = {name: np.concatenate([part[name] for part in inner]) for name in inner[0]}
    return {name: values.reshape(*shape, *values.shape[1:]) for name, values in joined.items()}
