"""EM for a level that moves: its levels are hidden, and squared steps and deviations are expected given the rows.

Shumway and Stoffer 1982.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy

from bayeszoo.distributions.priors import HalfNormal, Prior
from bayeszoo.errors import NumericalError
from bayeszoo.families.state_space.levels import Levels

NEAR = 0.01
"""Share of the sd of the rows below which a step of the level is compared with none: EM comes near 0, never there."""
WIDE = 30.0
"""How many nats from its maximum likelihood a standard deviation is looked for, under a prior without a closed form."""


class Squares(NamedTuple):
    """How many steps of levels and rows there are, by the name of their sd, and expected sums of their squares.

    ``levels`` are those at the point of the E-step.
    """

    counts: Mapping[str, int]
    totals: Mapping[str, float]
    levels: Levels


def squares(levels: Levels) -> Squares:
    """Return the expected squares at one point."""
    steps, rows = levels.squares()
    counts = {"q": int(np.sum(~levels.opens)), "r": int(np.sum(~np.isnan(levels.y)))}
    return Squares(counts, {"q": float(steps), "r": float(rows)}, levels)


def best(stats: Squares, name: str, prior: Prior | None) -> float:
    """Return the sd whose log density -n log(sd) - S / (2 sd^2), plus that of a prior, is the highest."""
    n, total = stats.counts[name], stats.totals[name]
    if prior is None:
        if not n:
            raise NumericalError(f"{name} may be anything: no row follows another", "no_maximum")
        return math.sqrt(total / n)
    if isinstance(prior, HalfNormal):
        return math.sqrt(2 * total / (n + math.sqrt(n**2 + 4 * total / float(prior.sd) ** 2))) if total else 0.0
    middle = math.log(total / max(n, 1)) / 2 if total else 0.0

    def depth(log_sd: float) -> Any:
        return n * log_sd + total / 2 * math.exp(-2 * log_sd) - prior.logpdf(math.exp(log_sd))

    low, high = middle - WIDE, middle + WIDE
    if prior.scale.low > 0:
        low = max(low, math.log(prior.scale.low))
    if math.isfinite(prior.scale.high):
        high = min(high, math.log(prior.scale.high))
    found = scipy.optimize.minimize_scalar(depth, bounds=(low, high), method="bounded", options={"xatol": 1e-12})
    return math.exp(float(found.x))


def or_still(
    stats: Squares, sds: dict[str, float], log_prior: Callable[[Mapping[str, object]], object]
) -> dict[str, float]:
    """Return standard deviations, or where q is small those with q = 0, if the density of the rows is as high there.

    A mode on the edge is a mode, which EM comes ever nearer to.
    """
    if not sds["q"] < NEAR * sds["r"]:
        return sds

    def height(q: float) -> float:
        at = {"q": np.asarray(q), "r": np.asarray(sds["r"])}
        return float(replace(stats.levels, q=at["q"], r=at["r"]).log_marginal() + log_prior(at))

    return {**sds, "q": 0.0} if height(0.0) >= height(sds["q"]) else sds
